"""A model as a notebook shows it: facts, the dependency graph, the learning curve."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from . import _graph

_STYLE = """<style>
.everytree{font:13px system-ui,sans-serif;max-width:760px;color:inherit}
.everytree table{border-collapse:collapse;margin:.4em 0}
.everytree td{padding:1px 10px 1px 0;text-align:left}
.everytree svg{vertical-align:top}
.everytree .ink{fill:currentColor}
.everytree .line{stroke:currentColor}
</style>"""

#: More vertices than this are a hedgehog, not a picture.
_MOST_VERTICES = 40


def page(estimator: Any) -> str:
    """The whole summary."""
    title = f"<b>{escape(type(estimator).__name__)}</b> <code>{escape(repr(estimator))}</code>"
    if getattr(estimator, "_model", None) is None:
        return f'{_STYLE}<div class="everytree">{title}<div>not fitted</div></div>'
    return f'{_STYLE}<div class="everytree">{title}{_facts(estimator)}<div>{graph(estimator)}{curve(estimator)}</div></div>'


def _facts(estimator: Any) -> str:
    rows = [
        ("family", estimator.family_),
        ("columns", f"{estimator.n_features_in_:,}"),
        ("components", f"{estimator.n_components_:,}"),
        ("parameters", f"{estimator.n_parameters_:,}"),
    ]
    if estimator.valid_log_likelihood_ is not None:
        rows.append(
            (
                "log-likelihood",
                f"train {estimator.train_log_likelihood_:.4f}, validation {estimator.valid_log_likelihood_:.4f} nats a row",
            )
        )
    shown = 5 if len(estimator.notes_) > 6 else 6
    rows += [("note", note) for note in estimator.notes_[:shown]]
    if len(estimator.notes_) > shown:
        rows.append(("", f"… and {len(estimator.notes_) - shown} more notes in notes_"))
    cells = "".join(f"<tr><td>{escape(str(name))}</td><td>{escape(str(value))}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


def graph(estimator: Any, width: int = 430, height: int = 320) -> str:
    """The dependency graph as SVG: the wider and darker an edge, the more probable."""
    directed = estimator._about["directed"]
    probabilities = estimator.edge_probabilities_
    edges = _graph.strongest(probabilities, directed, 3 * _MOST_VERTICES)
    shown = sorted({vertex for u, v, _ in edges for vertex in (u, v)}) or list(range(min(len(probabilities), _MOST_VERTICES)))
    if len(shown) > _MOST_VERTICES:
        # The vertices of the strongest edges.
        kept: list[int] = []
        for u, v, _ in edges:
            kept += [vertex for vertex in (u, v) if vertex not in kept]
            if len(kept) >= _MOST_VERTICES:
                break
        shown = sorted(kept[:_MOST_VERTICES])
    place = {vertex: number for number, vertex in enumerate(shown)}
    edges = [(place[u], place[v], p) for u, v, p in edges if u in place and v in place]
    points = _graph.layout(len(shown), edges) * np.array([width - 130, height - 50]) + np.array([65, 25])
    parts = []
    for u, v, p in reversed(edges):
        (x1, y1), (x2, y2) = points[u], points[v]
        if directed:
            # Ends short of the name, where the arrow head is.
            length = float(np.hypot(x2 - x1, y2 - y1)) or 1.0
            x2, y2 = x2 - (x2 - x1) / length * 9, y2 - (y2 - y1) / length * 9
        head = ' marker-end="url(#everytree-arrow)"' if directed else ""
        names = f"{estimator.blocks_[shown[u]]} {'→' if directed else '–'} {estimator.blocks_[shown[v]]}"
        parts.append(
            f'<line class="line" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-width="{0.6 + 3.4 * p:.2f}" '
            f'stroke-opacity="{0.15 + 0.75 * p:.2f}"{head}><title>{escape(names)}: {p:.3f}</title></line>'
        )
    for number, vertex in enumerate(shown):
        x, y = points[number]
        name = estimator.blocks_[vertex]
        short = name if len(name) <= 16 else name[:15] + "…"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#3b82c4"/><text class="ink" x="{x:.1f}" y="{y - 7:.1f}" '
            f'font-size="11" text-anchor="middle">{escape(short)}<title>{escape(name)}</title></text>'
        )
    arrow = (
        '<defs><marker id="everytree-arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" markerHeight="5" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="ink" d="M0,0L6,3L0,6z"/></marker></defs>'
    )
    hidden = len(estimator.blocks_) - len(shown)
    more = (
        f'<text class="ink" x="8" y="{height - 6}" font-size="10">and {hidden:,} columns without strong edges</text>'
        if hidden > 0
        else ""
    )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="dependency graph">{arrow}{"".join(parts)}{more}</svg>'
    )


def curve(estimator: Any, width: int = 310, height: int = 220) -> str:
    """The learning curve as SVG."""
    history = estimator.history_
    if len(history) < 2:
        return ""
    epochs = [epoch["epoch"] for epoch in history]
    train, valid = ([epoch[key] for epoch in history] for key in ("train", "valid"))
    # The start is often far below: the curve from the second point on is what tells.
    some = sorted(train[1:] + valid[1:])
    low, high = some[0], some[-1]
    low -= 0.1 * (high - low or 1.0)
    left, top, right, bottom = 58, 14, width - 12, height - 30

    def at(epoch: int, value: float) -> str:
        x = left + (right - left) * epoch / max(epochs[-1], 1)
        y = bottom - (bottom - top) * min(max((value - low) / (high - low or 1.0), 0.0), 1.0)
        return f"{x:.1f},{y:.1f}"

    lines = []
    for values, colour, name in ((train, "#d1762c", "train"), (valid, "#3b82c4", "validation")):
        path = " ".join(at(epoch, value) for epoch, value in zip(epochs, values))
        lines.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"><title>{name}</title></polyline>'
        )
    best = estimator.best_epoch_
    if best:
        x, y = at(best, valid[epochs.index(best)]).split(",")
        lines.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="#3b82c4"><title>best epoch {best}</title></circle>')
    text = (
        f'<text class="ink" x="{left - 4}" y="{top + 4}" font-size="10" text-anchor="end">{high:.3f}</text>'
        f'<text class="ink" x="{left - 4}" y="{bottom}" font-size="10" text-anchor="end">{low:.3f}</text>'
        f'<text class="ink" x="{right}" y="{height - 16}" font-size="10" text-anchor="end">epoch {epochs[-1]}</text>'
        f'<text x="{left}" y="{height - 3}" font-size="11" fill="#d1762c">train</text>'
        f'<text x="{left + 40}" y="{height - 3}" font-size="11" fill="#3b82c4">validation</text>'
        f'<text class="ink" x="{left}" y="{height - 16}" font-size="10">nats a row</text>'
    )
    axes = f'<path class="line" d="M{left},{top}V{bottom}H{right}" fill="none" stroke-opacity=".4"/>'
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="learning curve">'
        f"{axes}{''.join(lines)}{text}</svg>"
    )
