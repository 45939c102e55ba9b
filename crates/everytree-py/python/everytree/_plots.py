"""Pictures with matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _graph


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'everytree[plot]'") from error
    return plt.subplots()[1] if ax is None else ax


def edges(estimator: Any, ax: Any, most: int) -> Any:
    """The dependency graph."""
    ax = _axes(ax)
    directed = estimator._about["directed"]
    strong = _graph.strongest(estimator.edge_probabilities_, directed, most)
    shown = sorted({vertex for u, v, _ in strong for vertex in (u, v)}) or list(range(len(estimator.blocks_)))[:most]
    place = {vertex: number for number, vertex in enumerate(shown)}
    points = _graph.layout(len(shown), [(place[u], place[v], p) for u, v, p in strong])
    for u, v, p in reversed(strong):
        start, end = points[place[u]], points[place[v]]
        style = {"arrowstyle": "-|>" if directed else "-", "lw": 0.5 + 3 * p, "alpha": 0.15 + 0.75 * p, "color": "0.4"}
        ax.annotate("", xy=end, xytext=start, arrowprops={**style, "shrinkA": 6, "shrinkB": 6})
    if shown:
        ax.plot(points[:, 0], points[:, 1], "o", color="#3b82c4")
    for vertex in shown:
        x, y = points[place[vertex]]
        ax.annotate(estimator.blocks_[vertex], (x, y), textcoords="offset points", xytext=(0, 7), ha="center", fontsize=9)
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def history(estimator: Any, ax: Any) -> Any:
    """The learning curve."""
    ax = _axes(ax)
    epochs = [epoch["epoch"] for epoch in estimator.history_]
    for key, colour in (("train", "#d1762c"), ("valid", "#3b82c4")):
        ax.plot(epochs, [epoch[key] for epoch in estimator.history_], color=colour, label=key)
    if estimator.best_epoch_ is not None and epochs:
        best = estimator.history_[epochs.index(estimator.best_epoch_)]
        ax.plot([best["epoch"]], [best["valid"]], "o", color="#3b82c4")
    if len(epochs) > 2:
        later = np.array([[epoch["train"], epoch["valid"]] for epoch in estimator.history_[1:]])
        span = later.max() - later.min() or 1.0
        ax.set_ylim(later.min() - 0.1 * span, later.max() + 0.1 * span)
    ax.set_xlabel("epoch")
    ax.set_ylabel("log-likelihood, nats a row")
    ax.legend()
    return ax
