"""Answers, small and printable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Answer:
    """The probability of one value of a column."""

    column: str
    value: Any  #: None is a missing cell
    probability: float
    standard_error: float  #: 0 where it is exact
    observed: float | None = None  #: share of the matching rows of ``data``, where that was given


@dataclass(frozen=True)
class Query:
    """Posterior probabilities, given evidence.

    ``query[column]`` is a dict of probabilities by value, ``query[column, value]`` one of them.
    """

    answers: list[Answer]
    method: str  #: "exact", "collapsed", "tilted", …
    trees: int  #: random trees behind the answer
    effective_sample_size: float  #: independent draws that they are worth
    log_evidence: float  #: log P(evidence)
    log_evidence_standard_error: float
    r_hat: float | None = None  #: of chains; near 1 where they agree
    edges: list[tuple[str | None, str, float, float]] | None = None  #: from (None: a root), to, probability, error
    matching_rows: float | None = None  #: rows of ``data`` that agree with the evidence
    data_rows: float | None = None  #: rows of ``data``
    unknown_rows: int | None = None  #: rows of ``data`` with values of given columns that the model does not know
    _places: dict[Any, int] = field(default_factory=dict, repr=False)
    _names: list[str] = field(default_factory=list, repr=False)

    def _name(self, column: Any) -> Any:
        """The name of a column by any of its labels."""
        place = self._places.get(column)
        return column if place is None else self._names[place]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2 and key not in self._places:
            column, value = self._name(key[0]), key[1]
            for answer in self.answers:
                if answer.column == column and answer.value == value:
                    return answer.probability
            raise KeyError(key)
        name = self._name(key)
        found = {answer.value: answer.probability for answer in self.answers if answer.column == name}
        if not found:
            raise KeyError(key)
        return found

    def standard_error(self, column: str, value: Any) -> float:
        """The standard error of one probability."""
        for answer in self.answers:
            if answer.column == self._name(column) and answer.value == value:
                return answer.standard_error
        raise KeyError((column, value))

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        by_column: dict[str, list[Answer]] = {}
        for answer in self.answers:
            by_column.setdefault(answer.column, []).append(answer)
        lines = [line for column, answers in by_column.items() for line in _shown(column, answers)]
        names = max((len(name) for name, *_ in lines), default=0)
        values = max((len(value) for _, value, _ in lines), default=0)
        text = [f"{name:<{names}}  {value:<{values}}  {figures}" for name, value, figures in lines]
        if self.matching_rows is not None:
            agree = "agrees" if self.matching_rows == 1 else "agree"
            text.append(f"{self.matching_rows:,g} of {self.data_rows:,g} rows in the data {agree} with the evidence")
        if self.unknown_rows:
            have = "row has" if self.unknown_rows == 1 else "rows have"
            text.append(f"{self.unknown_rows:,} {have} a value of a given column that the model does not know: not counted")
        if self.method == "exact":
            text.append(f"exact under the model; log P(evidence) {self.log_evidence + 0.0:.4f}")
        else:
            text.append(
                f"{self.trees:,} trees ({self.method}), effective sample size {self.effective_sample_size:,.0f}; "
                f"log P(evidence) {self.log_evidence:.4f} ± {self.log_evidence_standard_error:.4f}"
            )
        return "\n".join(text)


#: Values of a column that are printed: the most probable ones, in the order of the column.
SHOWN = 12


def _shown(column: str, answers: list[Answer]) -> list[tuple[str, str, str]]:
    """Lines of one column: its name, a value, figures."""
    kept = answers
    if len(answers) > SHOWN + 1:
        least = sorted((answer.probability for answer in answers), reverse=True)[SHOWN - 1]
        kept = [answer for answer in answers if answer.probability >= least][:SHOWN]
    lines: list[tuple[str, str, str]] = []
    for answer in kept:
        value = "(missing)" if answer.value is None else str(answer.value)
        error = f" ± {answer.standard_error:.4f}" if round(answer.standard_error, 4) > 0 else ""
        beside = "" if answer.observed is None else f"  (rows: {answer.observed:.4f})"
        lines.append(("" if lines else column, value, f"{answer.probability:.4f}{error}{beside}"))
    if len(kept) < len(answers):
        rest = sum(answer.probability for answer in answers) - sum(answer.probability for answer in kept)
        lines.append(("", f"({len(answers) - len(kept)} others)", f"{rest:.4f}"))
    return lines


@dataclass(frozen=True)
class LogProb:
    """Log-probabilities of rows, in nats, with standard errors (0 where they are exact)."""

    log_prob: np.ndarray
    standard_error: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.log_prob, dtype=dtype)

    def __len__(self) -> int:
        return len(self.log_prob)


@dataclass(frozen=True)
class MostProbable:
    """The most probable rows, the most probable first."""

    rows: Any  #: a table of the kind that was learned from
    log_prob: np.ndarray
    proven: np.ndarray  #: was every row looked at?


@dataclass(frozen=True)
class Surprisal:
    """How surprising rows and their cells are, in nats."""

    rows: np.ndarray
    cells: np.ndarray  #: one column for each of ``columns``; NaN where a cell is missing
    columns: list[str]

    def top(self, n: int = 10, cells: int = 3) -> list[tuple[int, float, list[tuple[str, float]]]]:
        """The n most surprising rows: number, surprisal, and the cells that stand out most in each."""
        found = []
        for row in np.argsort(-self.rows, kind="stable")[:n]:
            own = self.cells[row]
            there = np.flatnonzero(~np.isnan(own))
            most = there[np.argsort(-own[there], kind="stable")][:cells]
            found.append((int(row), float(self.rows[row]), [(self.columns[c], float(own[c])) for c in most]))
        return found
