"""Parameters as scikit-learn wants them, and as the core does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._frames import check_arrow


class Parameters:
    """Parameters as scikit-learn wants them: what ``__init__`` takes, kept as it was given."""

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Any:
        """Sets parameters by name and returns the estimator."""
        known = self._names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {known!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters

        def changed(name: str) -> bool:
            value, default = getattr(self, name), defaults[name].default
            return value is not default and repr(value) != repr(default)

        changes = [f"{name}={getattr(self, name)!r}" for name in self._names() if changed(name)]
        return f"{type(self).__name__}({', '.join(changes)})"

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_model", None) is not None


def seed(random_state: Any) -> int:
    """A seed; nothing is 0: the same answer every time unless another is asked for."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state {random_state}: a number from 0 to 2**64 - 1")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    raise ValueError(f"random_state {random_state!r}: a number, or a generator of numpy")


def count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} {value!r}: a number of at least 1, or None")
    return int(value)


def weights_of(sample_weight: Any, rows: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    check_arrow("sample_weight", sample_weight)
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight has shape {weights.shape}; one number for each row is needed")
    if rows >= 0 and len(weights) != rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({rows},)!")
    return weights


def jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): jsonable(some) for key, some in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(some) for some in value]
    return value.item() if isinstance(value, np.generic) else value


def keep(estimator: Any, given: dict[str, Any]) -> None:
    """Parameters as they were given."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def number(name: str, value: Any) -> float:
    """A finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} {value!r}: a number") from None
    if not np.isfinite(found):
        raise ValueError(f"{name} {value!r}: a finite number")
    return found


def whole(name: str, value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} {value!r}: a whole number")
    return int(value)
