"""A classifier out of a joint distribution."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from . import _frames
from ._density import Density
from ._errors import not_fitted
from ._estimators import DensityEstimator, MixtureOfAllTrees
from ._parameters import Parameters, keep, weights_of

__all__ = ["Classifier", "MixtureOfAllTreesClassifier"]


class MixtureOfAllTreesClassifier(Parameters):
    """A classifier: the label given the features, exactly, from the joint distribution of both.

    Missing features need no special care, and the probabilities are as good as the joint model is.

    Parameters
    ----------
    Those of :class:`MixtureOfAllTrees`; the family is "directed" unless another is asked for.

    Attributes
    ----------
    classes_ : array
        The labels, in the order of the columns of :meth:`predict_proba`.
    n_features_in_, feature_names_in_ : of the features alone.
    joint_ : MixtureOfAllTrees
        The joint model of features and label, for every other question.
    label_ : str
        The name of the label in the joint model.

    Examples
    --------
    >>> import everytree
    >>> features = {"a": [0, 1] * 60, "b": [0, 0, 1, 1] * 30}
    >>> label = ["no", "no", "no", "yes"] * 30
    >>> model = everytree.MixtureOfAllTreesClassifier(family="directed").fit(features, label)
    >>> model.predict({"a": [0, 1], "b": [0, 1]}).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        family: str = "directed",
        components: int | str = 1,
        *,
        hidden: int | str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        patience: int | None = None,
        cosine: bool = False,
        ema: float | None = None,
        optimiser: str | None = None,
        pseudocount: float = 1.0,
        laplace: float | None = None,
        shrinkage: float | None = None,
        pairs: str | None = None,
        init: str = "counts",
        precision: str = "f32",
        holdout: float = 0.1,
        refit: bool | None = None,
        max_states: int = 64,
        bins: int | Mapping[Any, int] | str | None = None,
        missing: str = "category",
        na: Sequence[str] | None = None,
        columns: str | Sequence[Any] | None = None,
        drop: str | Sequence[Any] | None = None,
        id: str | Sequence[Any] | None = None,
        other: int | Mapping[Any, int] | None = None,
        blocks: Any = None,
        block_states: Sequence[int] | None = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        keep(self, locals())

    max_states: int
    #: What the joint distribution of features and label is.
    _joint: type[Density] = MixtureOfAllTrees

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, valid: Any = None, callbacks: Any = None) -> Self:
        """Learns the joint distribution of features and label; ``valid`` is a pair of features and labels."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        looked = _frames.look(X)
        made = looked[0]
        labels = _labels(y, made.rows)
        if not len(labels):
            raise ValueError(f"Found array with 0 sample(s) (shape=(0, {len(made.names)})) while a minimum of 1 is required.")
        if not made.names and made.rows >= 0:
            raise ValueError(f"0 feature(s) (shape=({made.rows}, 0)) while a minimum of 1 is required.")
        weights = weights_of(sample_weight, made.rows)
        seen = np.unique(labels if weights is None else labels[weights > 0])
        classes = np.unique(labels)
        if not len(seen):
            raise ValueError("all weights are zero: there is nothing to learn from")
        if len(seen) < 2:
            raise ValueError(f"there is only one class, {seen.tolist()}; a classifier needs samples of at least 2 classes")
        if len(classes) > self.max_states:
            raise ValueError(
                f"Unknown label type: {len(classes)} different labels are more than max_states={self.max_states}; "
                "continuous targets are not for classifiers"
            )
        if labels.dtype.kind == "f" and not np.all(labels == np.floor(labels)):
            raise ValueError("Unknown label type: continuous; a classifier needs labels, not numbers between them")
        name = getattr(y, "name", None)
        name = name if isinstance(name, str) and name else "label"
        while name in made.names:
            name += "_"
        told = self.get_params()
        if told["columns"] is not None:
            several = [told["columns"]] if isinstance(told["columns"], str) else list(told["columns"])
            told["columns"] = [*several, name]
        joint = self._joint(**told)
        checked = None
        if valid is not None:
            features, others = valid
            apart = _frames.look(features)
            checked = apart[0].and_also(apart[1], name, _labels(others, apart[0].rows))
        joint._fit_with(made.and_also(looked[1], name, labels), sample_weight, callbacks, checked)
        self._become(joint, name, classes)
        return self

    def _become(self, joint: Density, name: str, classes: np.ndarray) -> None:
        states = [value for value in joint.states_[name] if value is not None]
        if len(states) != len(classes):
            raise ValueError(f"labels among na={joint.na} stand for missing cells")
        joint._owner = type(self).__name__
        self.joint_ = joint
        self.label_ = name
        self.classes_ = classes
        self.n_features_in_ = joint.n_features_in_ - 1
        if hasattr(joint, "feature_names_in_"):
            self.feature_names_in_ = np.array([own for own in joint.feature_names_in_ if own != name], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file of the joint distribution."""
        self._fitted()
        self.joint_.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], label: str = "label") -> Self:
        """A classifier for a column of the model in a file."""
        joint = cls._joint.load(path)
        states = [value for value in joint.states_[joint._values[joint._place(label)].name] if value is not None]
        classifier = cls()
        classifier._become(joint, label, np.array(states))
        return classifier

    def _fitted(self) -> Any:
        if not hasattr(self, "joint_"):
            raise not_fitted(self)
        return self.joint_._fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "joint_")

    def predict_proba(self, X: Any, *, unknown: str = "unobserved") -> np.ndarray:
        """The probability of every label, one row for each row of X.

        ``unknown`` says what becomes of values that were not seen in training: "unobserved", "error" or "other".
        """
        self._fitted()
        return self.joint_.conditional(X, self.label_, unknown=unknown)

    def predict_log_proba(self, X: Any, *, unknown: str = "unobserved") -> np.ndarray:
        """The logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, unknown=unknown))

    def predict(self, X: Any, *, unknown: str = "unobserved") -> np.ndarray:
        """The most probable label of every row."""
        probabilities = self.predict_proba(X, unknown=unknown)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is the most probable one."""
        right = self.predict(X) == _labels(y, -1)
        return float(np.average(right, weights=sample_weight))

    def _repr_html_(self) -> str:
        return self.joint_._repr_html_() if hasattr(self, "joint_") else f"<code>{self!r}</code>"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=ClassifierTags(),
            regressor_tags=None,
            input_tags=InputTags(allow_nan=True, string=True, categorical=True),
        )


class Classifier(MixtureOfAllTreesClassifier):
    """A classifier out of the best joint distribution of features and label that was found.

    Parameters
    ----------
    Those of :class:`DensityEstimator`. Attributes are those of :class:`MixtureOfAllTreesClassifier`.

    Examples
    --------
    >>> import everytree
    >>> features = {"a": [0, 1] * 60, "b": [0, 0, 1, 1] * 30}
    >>> label = ["no", "no", "no", "yes"] * 30
    >>> model = everytree.Classifier(effort="quick").fit(features, label)
    >>> model.predict({"a": [0, 1], "b": [0, 1]}).tolist()
    ['no', 'yes']
    """

    _joint = DensityEstimator

    def __init__(
        self,
        effort: str = "normal",
        *,
        folds: int | None = None,
        kernel: bool = False,
        precision: str = "f32",
        holdout: float = 0.1,
        refit: bool | None = None,
        max_states: int = 64,
        bins: Any = None,
        missing: str = "category",
        na: Any = None,
        columns: Any = None,
        drop: Any = None,
        id: Any = None,
        other: Any = None,
        blocks: Any = None,
        block_states: Any = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        keep(self, locals())


def _labels(y: Any, rows: int) -> np.ndarray:
    _frames.check_arrow("y", y)
    if type(y).__module__.startswith("pyarrow"):
        y = y.to_pylist()
    labels = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        import warnings

        try:
            from sklearn.exceptions import DataConversionWarning as Category
        except ImportError:
            Category = UserWarning
        warnings.warn("A column-vector y was passed when a 1d array was expected.", Category, stacklevel=3)
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
    if rows >= 0 and len(labels) != rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{rows}, {len(labels)}]")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity.")
    if labels.dtype == object and any(label is None or label != label for label in labels):
        raise ValueError("Input y contains missing labels.")
    if labels.dtype == object:
        simple = _frames.plain(labels)
        kinds = {type(label) for label in labels}
        labels = simple if len(kinds) == 1 and simple.dtype != object else labels.astype(str) if kinds == {str} else labels
    return labels
