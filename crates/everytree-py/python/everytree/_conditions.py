"""What can be said of a column besides a value: the same as on the command line, as values of Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _frames
from ._parameters import number


@dataclass(frozen=True)
class Condition:
    """What is known of a column; made by :func:`between`, :func:`isin`, :func:`isnot`, :func:`above`, :func:`below` and
    :func:`likelihood`."""

    kind: str
    values: tuple[Any, ...] = ()
    numbers: tuple[float, ...] = ()

    def told(self) -> tuple[str, list[str | None], list[float]]:
        """As the core takes it."""
        if self.kind == "range":
            return self.kind, [str(value) for value in self.values], list(self.numbers)
        return self.kind, [_frames.text(value) for value in self.values], list(self.numbers)


def _range(low: float, high: float, ends: str) -> Condition:
    return Condition("range", tuple(ends), (low, high))


def _end(name: str, value: float | None, otherwise: float) -> float:
    """An end of a range; nothing, or infinity, leaves it open."""
    return otherwise if value is None or value == otherwise else number(name, value)


def between(low: float | None, high: float | None) -> Condition:
    """A number between two, both included; also of columns that were cut into bins. ``None`` leaves an end open.

    Examples
    --------
    >>> import everytree
    >>> table = {"age": [20, 30, 40, 50] * 25, "well": ["yes", "yes", "no", "no"] * 25}
    >>> model = everytree.ChowLiuTree().fit(table)
    >>> answer = model.query(given={"age": everytree.between(15, 35)}, targets=["well"])
    >>> answer["well", "yes"] > 0.9
    True
    """
    return _range(_end("low", low, -math.inf), _end("high", high, math.inf), "[]")


def above(low: float, *, included: bool = False) -> Condition:
    """A number above another.

    Examples
    --------
    >>> import everytree
    >>> everytree.above(30).numbers
    (30.0, inf)
    """
    return _range(number("low", low), math.inf, "[]" if included else "(]")


def below(high: float, *, included: bool = False) -> Condition:
    """A number below another.

    Examples
    --------
    >>> import everytree
    >>> everytree.below(30, included=True).numbers
    (-inf, 30.0)
    """
    return _range(-math.inf, number("high", high), "[]" if included else "[)")


def isin(values: Iterable[Any]) -> Condition:
    """One of these values; None is a missing cell.

    Examples
    --------
    >>> import everytree
    >>> everytree.isin(["nurse", "cook"]).values
    ('nurse', 'cook')
    """
    return Condition("in", tuple(values))


def isnot(*values: Any) -> Condition:
    """Observed, and none of these values, one by one or as a list; ``isnot(None)``: observed.

    Examples
    --------
    >>> import everytree
    >>> everytree.isnot("nurse").values
    ('nurse',)
    """
    if len(values) == 1 and isinstance(values[0], (list, tuple, set, frozenset, np.ndarray)):
        values = tuple(values[0])
    return Condition("not-in", values)


def likelihood(weights: Mapping[Any, float]) -> Condition:
    """Virtual evidence: what was seen speaks for values in these proportions.

    Weights are likelihoods, not the probabilities that are to come out; values that are not listed weigh 0.

    Examples
    --------
    >>> import everytree
    >>> everytree.likelihood({"nurse": 3, "cook": 1}).numbers
    (3.0, 1.0)
    """
    return Condition("likelihoods", tuple(weights), tuple(number("likelihood", weight) for weight in weights.values()))


def told(value: Any) -> tuple[str, list[str | None], list[float]]:
    """What a user gave for a column, as the core takes it: a value, several of which it is one, or a condition."""
    if isinstance(value, Condition):
        return value.told()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    several = hasattr(value, "__iter__") and not isinstance(value, (str, bytes, Mapping))
    return isin(value if several else [value]).told()
