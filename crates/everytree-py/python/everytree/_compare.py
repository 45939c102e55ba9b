"""Families side by side on the same rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from . import _core, _frames
from ._estimators import DensityEstimator, MixtureOfAllTrees
from ._parameters import count, number, seed

_COLUMNS = ("family", "components", "parameters", "train", "valid", "test", "difference", "standard_error", "seconds")


class Comparison:
    """What :func:`compare` came to.

    Attributes
    ----------
    families : list of dict
        A dict a family: ``family``, ``components``, ``parameters``, mean log-likelihoods in nats (``train``, ``valid``,
        ``test``), the ``difference`` to the best and its ``standard_error``, ``within_error`` (behind by less than two of
        them), ``seconds``, ``finished`` (False where time ran out).
    models : dict
        A fitted estimator for each family.
    winner : str
        The family that is best on the rows to validate with, whatever rows to test with say.
    left_out : dict
        Families that did not take part, and why.
    notes : list of str
        What happened to the data on the way.
    """

    def __init__(self, about: dict[str, Any], models: dict[str, MixtureOfAllTrees], notes: list[str]) -> None:
        self.families: list[dict[str, Any]] = about["families"]
        self.models = models
        self.winner: str = about["winner"]
        self.left_out: dict[str, str] = dict(about["left_out"])
        self.n_rows: int = about["rows"]
        self.n_valid_rows: int = about["valid_rows"]
        self.n_test_rows: int | None = about["test_rows"]
        self.notes = notes

    @property
    def best(self) -> MixtureOfAllTrees:
        """The estimator of the winner."""
        return self.models[self.winner]

    def _rows(self) -> list[list[str]]:
        columns = [name for name in _COLUMNS if name != "test" or self.n_test_rows is not None]
        return [columns, *([_cell(line, name) for name in columns] for line in self.families)]

    def _remarks(self) -> list[str]:
        over = "test rows" if self.n_test_rows is not None else "the validation rows that chose epochs and sizes: give test"
        remarks = [f"nats a row; differences over {over}", f"best on the validation rows: {self.winner}"]
        if any(not line["finished"] for line in self.families):
            remarks.append("* stopped by the clock; more time may give more")
        return remarks + [f"left out: {family} ({why})" for family, why in self.left_out.items()]

    def __repr__(self) -> str:
        rows = self._rows()
        width = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width[0]) if place == 0 else cell.rjust(width[place]) for place, cell in enumerate(row))
            for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self._remarks()])

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        heads = "".join(f"<th>{escape(name)}</th>" for name in head)
        return f"<table><tr>{heads}</tr>{body}</table>" + "".join(f"<p>{escape(text)}</p>" for text in self._remarks())


def _cell(line: dict[str, Any], name: str) -> str:
    value = line[name]
    if name == "family":
        return str(value) + ("" if line["finished"] else " *")
    if name == "difference" and value == 0:
        return "best"
    if value is None or (name == "standard_error" and line["difference"] == 0):
        return ""
    if name == "seconds":
        return f"{value:.1f}"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def compare(
    X: Any,
    *,
    test: Any = None,
    valid: Any = None,
    families: str | Sequence[str] | None = None,
    time: float = 300.0,
    holdout: float = 0.1,
    random_state: Any = None,
    threads: int | None = None,
    verbose: bool = False,
    max_states: int = 64,
    bins: int | Mapping[Any, int] | str | None = None,
    missing: str = "category",
    na: Sequence[str] | None = None,
    columns: Any = None,
    drop: Any = None,
    id: Any = None,
    other: Any = None,
    unknown: str = "unobserved",
) -> Comparison:
    """Fits several families to one table, within a time, and lays them side by side.

    All of them learn from the same rows, and none learns once more from the rows held out. Every family gets an equal part
    of the time that is left.

    Parameters
    ----------
    X : table
        As for :meth:`DensityEstimator.fit`.
    test : table, optional
        Rows on which families are compared, and which no fit looks at. Without them the comparison is on the rows by which
        epochs and sizes were chosen, and flatters.
    valid : table, optional
        Rows that choose epochs and sizes. By default a tenth of X is held out (``holdout``).
    families : list of str, optional
        Of :func:`families`, and "auto", which is what :func:`fit` chooses. Default: all but that.
    time : float, default 300
        Seconds for all fits together.
    verbose : bool, default False
        Print what each family came to as soon as it is known.
    unknown : "unobserved", "error" or "other"
        What becomes of values of ``test`` that training does not have: cells that were not observed, with a warning that
        counts them; an error; or the state of all labels that are not told apart.
    max_states, bins, missing, na, columns, drop, id, other, random_state, threads
        As for :class:`DensityEstimator`.

    Examples
    --------
    >>> import everytree
    >>> table = {"smoker": ["yes", "no"] * 50, "cough": ["yes", "no"] * 45 + ["no", "yes"] * 5}
    >>> comparison = everytree.compare(table, families=["independent", "chow-liu"])
    >>> comparison.winner
    'chow-liu'
    >>> comparison.best.query(given={"smoker": "yes"})["cough", "yes"] > 0.7
    True
    """
    made, table = _frames.look(X)

    def alike(rows: Any) -> Any:
        return None if rows is None else _frames.renamed(*_frames.look(rows), made.names, made.named)

    reader = DensityEstimator(
        max_states=max_states,
        bins=bins,
        missing=missing,
        na=na,
        columns=columns,
        drop=drop,
        id=id,
        other=other,
    )
    seconds = number("time", time)
    if not seconds >= 0:
        raise ValueError(f"time {time!r}: seconds, not negative")
    call = {
        "families": [families] if isinstance(families, str) else list(families or []),
        "time": min(seconds, 1e9),
        "seed": seed(random_state),
        "holdout": number("holdout", holdout),
        "read": {**reader._call(made)["read"], "unknown": unknown},
        "threads": count("threads", threads),
    }

    def on_family(text: str) -> None:
        line = json.loads(text)
        print(f"{line['family']}: validation {line['valid']:.4f} in {line['seconds']:.1f} s")

    listening = on_family if verbose else None
    told = json.dumps(call, allow_nan=False)
    text, models, notes = _core.compare(table, alike(valid), alike(test), made.named, told, listening)
    about = json.loads(text)
    estimators = {}
    for line, model in zip(about["families"], models):
        estimators[line["family"]] = MixtureOfAllTrees()
        estimators[line["family"]]._take(model, made)
    if about["unknown"]:
        labels = "1 label was" if about["unknown"] == 1 else f"{about['unknown']} labels were"
        warnings.warn(f'{labels} not seen in training: taken for not observed (unknown="error" refuses them)', stacklevel=2)
    if about["interrupted"]:
        warnings.warn("interrupted: of families that are not done, the best so far is kept", stacklevel=2)
    return Comparison(about, estimators, notes)
