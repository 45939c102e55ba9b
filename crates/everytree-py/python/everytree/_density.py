"""Learning: from a table to an estimator that has a model."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np

from . import _core, _frames
from ._inference import Inference, hashable
from ._parameters import Parameters, count, jsonable, number, seed, weights_of, whole
from ._progress import Progress

#: Parameters that are options of a fit, as they are.
OPTIONS = (
    "family",
    "components",
    "hidden",
    "pairs",
    "init",
    "pseudocount",
    "laplace",
    "shrinkage",
    "optimiser",
    "epochs",
    "patience",
    "batch_size",
    "learning_rate",
    "cosine",
    "ema",
    "precision",
)

Callback = Callable[[dict[str, Any]], Any]


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options with numbers that are numbers; what is None is what is usual."""
    options = {name: value for name, value in options.items() if value is not None}
    for name in ("pseudocount", "laplace", "shrinkage", "learning_rate", "ema"):
        if name in options:
            options[name] = number(name, options[name])
    for name in ("epochs", "patience", "batch_size"):
        if name in options and whole(name, options[name]) < 0:
            raise ValueError(f"{name} {options[name]}: not negative")
    for name in ("components", "hidden"):
        if name in options and not isinstance(options[name], str):
            whole(name, options[name])
    if "cosine" in options:
        options["cosine"] = bool(options["cosine"])
    return jsonable(options)


def _names(option: str, names: Any, name_of: dict[Any, str]) -> list[str]:
    """Names and patterns of columns."""
    if names is None:
        return []
    single = isinstance(names, str) or (hashable(names) and names in name_of)
    several = [names] if single else list(names)
    found = [name_of.get(name, name) if hashable(name) else name for name in several]
    if not all(isinstance(name, str) for name in found):
        raise ValueError(f"{option} {names!r}: names of columns, or patterns such as 'x*'")
    return found


def _other(other: Any, name_of: dict[Any, str]) -> dict[str, Any]:
    """How many labels are told apart from all others: in every column, or by column."""
    if isinstance(other, Mapping):
        return {"others": {name_of.get(column, str(column)): whole("other", most) for column, most in other.items()}}
    return {"other": None if other is None else whole("other", other)}


class Density(Parameters, Inference):
    """What all density estimators share."""

    # Parameters that every one of them has.
    holdout: float
    refit: bool | None
    max_states: int
    bins: Any
    missing: str
    na: Any
    columns: Any
    drop: Any
    id: Any
    other: Any
    blocks: Any
    block_states: Any
    timeout: float | None
    device: str
    verbose: bool
    notes_: list[str]
    doubts_: list[str]

    def _fit_options(self) -> dict[str, Any]:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        valid: Any = None,
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Learns from a table.

        Parameters
        ----------
        X : table
            Anything with the Arrow PyCapsule interface (polars, pyarrow, DuckDB), a pandas frame, a numpy array, or a dict of
            lists. ``None``, ``NaN``, ``pd.NA`` and nulls are missing cells.
        y : ignored
        sample_weight : array of n_rows, optional
            A row of weight 2 counts as two rows, one of weight 0 as none.
        valid : table, optional
            Rows that choose the best epoch and size. By default a tenth of the rows of X is held out (``holdout``).
        callbacks : function or list of functions, optional
            Called with a dict after every epoch (``epoch``, ``train``, ``valid``, …). One that returns ``False`` ends the fit;
            the best model so far is kept.

        Returns
        -------
        self

        Notes
        -----
        Ctrl-C (or the stop button of a notebook) ends the fit and keeps the best model so far; ``stopped_by_`` tells.
        """
        checked = None if valid is None else _frames.look(valid)
        return self._fit_with(_frames.look(X), sample_weight, callbacks, checked)

    def _fit_with(
        self,
        looked: tuple[_frames.Look, Any],
        sample_weight: Any,
        callbacks: Any,
        valid: tuple[_frames.Look, Any] | None,
    ) -> Self:
        """Learns from a table that was looked at."""
        made, table = looked
        unseen = made.kind == "arrow" and not made.names
        if made.rows == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape=(0, {len(made.names)})) while a minimum of 1 is required.")
        if not made.names and not unseen:
            raise ValueError(f"0 feature(s) (shape=({made.rows}, 0)) while a minimum of 1 is required.")
        if len(made.names) == 1:
            raise ValueError(f"1 feature(s) (shape=({made.rows}, 1)): there is only one column; a tree needs two.")
        if made.rows == 1 and valid is None:
            raise ValueError(
                "1 sample: one row is too few: at least two are needed, one to learn from and one to validate with"
            )
        checked = None if valid is None else _frames.renamed(*valid, made.names, made.named)
        weights = weights_of(sample_weight, made.rows)
        told = [callbacks] if callable(callbacks) else list(callbacks or [])
        progress = Progress() if self.verbose else None

        def on_event(text: str) -> bool:
            event = json.loads(text)
            if progress is not None:
                progress.show(event)
            if event["event"] != "epoch":
                return True
            return all([callback(dict(event)) is not False for callback in told])

        listening = on_event if told or progress is not None else None
        told_text = json.dumps(self._call(made), allow_nan=False)
        try:
            model, notes, doubts, ended = _core.fit(table, checked, weights, made.named, told_text, listening)
        finally:
            if progress is not None:
                progress.close()
        self._take(model, made)
        self.notes_ = notes
        self.doubts_ = doubts
        self.stopped_by_ = ended
        if self.verbose:
            for note in notes:
                print(f"note: {note}")
            for doubt in doubts:
                print(f"warning: {doubt}")
        if ended == "failed":
            warnings.warn(notes[-1] if notes else "learning failed; the best model so far is kept", stacklevel=3)
        elif ended == "interrupted":
            warnings.warn("interrupted: the best model so far is kept", stacklevel=3)
        return self

    def _call(self, made: _frames.Look) -> dict[str, Any]:
        """Everything that the core is told about a fit; it takes no other options."""
        name_of = {label: name for label, name in zip(made.labels, made.names) if hashable(label)}
        bins = self.bins
        named: dict[str, int] = {}
        every = None
        if isinstance(bins, Mapping):
            named = {name_of.get(column, str(column)): whole("bins", some) for column, some in bins.items()}
        elif isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
            every = int(bins)
        elif bins is not None and bins != "none":
            raise ValueError(f"bins {bins!r}: a number, a dict of numbers by column, or 'none'")
        na = [self.na] if isinstance(self.na, str) else list(self.na or [])
        if not all(isinstance(text, str) for text in na):
            raise ValueError(f"na {na!r}: a list of texts")
        blocks = self.blocks
        if isinstance(blocks, (list, tuple)):
            blocks = [
                [name_of.get(column, column) if hashable(column) else column for column in group]
                if isinstance(group, (list, tuple))
                else group
                for group in blocks
            ]
        fit = {
            **_checked(self._fit_options()),
            "seed": seed(self.random_state),
            "holdout": number("holdout", self.holdout),
            "blocks": jsonable(blocks),
            "block_states": [whole("block_states", most) for most in self.block_states or []],
            "refit": None if self.refit is None else bool(self.refit),
            "timeout": None if self.timeout is None else min(float(self.timeout), 1e9),
            "device": str(self.device),
        }
        max_states = whole("max_states", self.max_states)
        read = {
            "max_states": max(max_states, 0),
            "bins": named,
            "all_bins": every,
            "bin_numbers": bins != "none",
            "missing": self.missing,
            "na": na,
            "columns": _names("columns", self.columns, name_of),
            "drop": _names("drop", self.drop, name_of),
            "id": _names("id", self.id, name_of),
            **_other(self.other, name_of),
        }
        return {"fit": fit, "read": read, "threads": count("threads", self.threads)}

    def _take(self, model: _core.Model, made: _frames.Look | None) -> None:
        """Becomes an estimator that has this model."""
        self._model = model
        about = json.loads(model.description())
        self._about = about
        if made is not None and not made.names:
            names = [variable["name"] for variable in about["variables"]]
            made = _frames.Look(made.kind, names, names, [None] * len(names), made.rows, True)
        self._look = made
        names = [variable["name"] for variable in about["variables"]]
        self._values = [_frames.Values.of(variable, made) for variable in about["variables"]]
        self._places = {name: place for place, name in enumerate(names)}
        if made is not None:
            # Columns by the labels that the table has, where they are no text.
            both = zip(made.labels, made.names)
            labels = {label: name for label, name in both if hashable(label) and name in self._places}
            self._places.update({label: self._places[name] for label, name in labels.items()})
        self.n_features_in_ = len(names)
        self._left_out = tuple(about["left_out"])
        if about["named"]:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.states_ = {values.name: list(values.values) for values in self._values}
        self.family_ = about["family"]
        self.n_components_ = about["components"]
        self.weights_ = np.array(about["mixing_weights"])
        self.hidden_states_ = about["hidden"]
        self.n_parameters_ = about["parameters"]
        self.blocks_ = list(about["blocks"])
        self._edge_probabilities: np.ndarray | None = None
        results = about["provenance"].get("results") or {}
        self.history_ = list(results.get("history") or [])
        self.best_epoch_ = results.get("best_epoch")
        self.train_log_likelihood_ = results.get("train_ll")
        self.valid_log_likelihood_ = results.get("valid_ll")
        self.notes_ = []
        self.doubts_ = []
        self.stopped_by_ = ""

    @property
    def edge_probabilities_(self) -> np.ndarray:
        """How probable every edge is: computed when it is first asked for, because of a large model it takes memory."""
        model = getattr(self, "_model", None)
        if model is None:
            raise AttributeError("edge_probabilities_: the estimator is not fitted yet")
        known: np.ndarray | None = self._edge_probabilities
        if known is None:
            side = len(self.blocks_)
            known = np.frombuffer(model.edge_probabilities()).reshape(side, side)
            self._edge_probabilities = known
        return known

    @property
    def edges_(self) -> list[tuple[str, str, float]]:
        """All edges, the most probable first: from, to, probability."""
        return [tuple(edge) for edge in json.loads(self._fitted().edges(2**31))]

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, whole or not at all; the command line and Rust read it too.

        Examples
        --------
        >>> import everytree, os, tempfile
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.everytree")
        >>> everytree.ChowLiuTree().fit(table).save(path)
        >>> everytree.load(path).states_
        {'rain': ['no', 'yes'], 'wet': ['no', 'yes']}
        """
        self._fitted().save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """An estimator with the model of a file, whichever of our programs wrote it."""
        estimator = cls()
        estimator._take(_core.Model.load(os.fspath(path)), None)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        model = state.pop("_model", None)
        if model is not None:
            state["_model_file"] = model.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        data = state.pop("_model_file", None)
        self.__dict__.update(state)
        if data is not None:
            self._model = _core.Model.from_bytes(data)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="density_estimator",
            target_tags=TargetTags(required=False),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(allow_nan=True, string=True, categorical=True),
        )
