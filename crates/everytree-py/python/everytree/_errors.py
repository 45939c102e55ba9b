"""What can go wrong, beyond what Python has names for."""

from __future__ import annotations


class UnknownColumn(KeyError, ValueError):
    """A name that no column has."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ImpossibleEvidence(ValueError):
    """What is given has probability zero under the model."""


class InternalError(RuntimeError):
    """A mistake of this package: something that should never happen has happened. Please report it."""


class _NotFitted(ValueError, AttributeError):
    """An estimator that has not learned yet, where scikit-learn has no name for it."""


def not_fitted(estimator: object) -> Exception:
    """The exception for an estimator that has not learned yet: scikit-learn's, where that is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        NotFittedError = _NotFitted
    name = type(estimator).__name__
    return NotFittedError(
        f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
    )
