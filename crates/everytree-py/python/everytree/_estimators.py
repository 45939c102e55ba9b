"""Estimators with scikit-learn's contract, and what models can be asked beyond it."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from . import _core, _frames, _html, _plots
from ._errors import not_fitted
from ._progress import Progress
from ._results import Answer, LogProb, MostProbable, Query, Surprise

__all__ = [
    "ChowLiuTree",
    "HiddenChowLiuTree",
    "IndependentColumns",
    "MixtureOfAllTrees",
    "MixtureOfTrees",
    "load",
]

Given = Mapping[Any, Any]


def _seed(random_state: Any) -> int:
    """A seed; nothing is 0: the same answer every time unless another is asked for."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state {random_state}: not negative")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    raise ValueError(f"random_state {random_state!r}: a number, or a generator of numpy")


class _Parameters:
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

        told = [f"{name}={getattr(self, name)!r}" for name in self._names() if changed(name)]
        return f"{type(self).__name__}({', '.join(told)})"

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_model", None) is not None


class _Density(_Parameters):
    """What all estimators share: learning, and everything a learned model can be asked."""

    _model: _core.Model | None = None
    _look: _frames.Look | None = None

    # Learning ---------------------------------------------------------------------------------------------------------

    def _recipe(self) -> dict[str, Any]:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        valid: Any = None,
        callbacks: Callable[[dict[str, Any]], Any] | Iterable[Callable[[dict[str, Any]], Any]] | None = None,
    ) -> Any:
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
        return self._fit_with(X, None, sample_weight, callbacks, valid)

    def _fit_with(
        self, X: Any, label: tuple[str, np.ndarray] | None, sample_weight: Any, callbacks: Any, valid: Any = None
    ) -> Any:
        """Learns from a table, and from one more column if there is one."""
        made, table = _frames.look(X)
        if made.rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {len(made.names)})) while a minimum of 1 is required."
            )
        if made.kind != "arrow" and not made.names:
            raise ValueError(f"0 feature(s) (shape=({made.rows}, 0)) while a minimum of 1 is required.")
        if len(made.names) == 1 and label is None:
            raise ValueError(f"1 feature(s) (shape=({made.rows}, 1)): there is only one column; a tree needs two.")
        if made.rows == 1 and valid is None:
            raise ValueError(
                "1 sample: one row is too few: at least two are needed, one to learn from and one to validate with"
            )
        if label is not None:
            table = made.and_also(table, *label)
        checked = None
        if valid is not None:
            _, checked = _frames.look(valid)
        weights = _weights(sample_weight, made.rows)
        seed = _seed(self.random_state)
        recipe = {**_USUAL, **self._recipe(), "seed": seed}
        told = [callbacks] if callable(callbacks) else list(callbacks or [])
        progress = Progress() if self.verbose else None

        def watch(text: str) -> bool:
            event = json.loads(text)
            if progress is not None:
                progress.show(event)
            if event["event"] != "epoch":
                return True
            return all([callback(dict(event)) is not False for callback in told])

        listening = watch if told or progress is not None else None
        try:
            model, notes, ended = _core.fit(
                table,
                checked,
                weights,
                json.dumps(_jsonable(recipe)),
                json.dumps(self._options(made.continuous)),
                listening,
            )
        finally:
            if progress is not None:
                progress.close()
        self._take(model, made)
        self.notes_ = notes
        self.stopped_by_ = ended
        if self.verbose:
            for note in notes:
                print(f"note: {note}")
        if ended in ("interrupted", "failed"):
            why = notes[-1] if ended == "failed" and notes else "interrupted"
            warnings.warn(f"{why}: the best model so far is kept", stacklevel=3)
        return self

    def _options(self, continuous: list[str]) -> dict[str, Any]:
        bins = self.bins
        if isinstance(bins, Mapping):
            named = {str(name): int(count) for name, count in bins.items()}
        elif isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
            named = {name: int(bins) for name in continuous}
        elif bins is None or bins == "none":
            named = {}
        else:
            raise ValueError(f"bins {bins!r}: a number, a dict of numbers by column, or 'none'")
        na = ["NA", "NaN", "null", "?"] if self.na is None else list(self.na)
        if self.device not in ("auto", "cpu"):
            raise ValueError(f"device {self.device!r}: auto or cpu")
        return {
            "holdout": float(self.holdout),
            "max_states": int(self.max_states),
            "bins": named,
            "bin_numbers": bins != "none",
            "missing": self.missing,
            "na": ["", *na],
            "blocks": _jsonable(self.blocks),
            "block_states": [int(most) for most in self.block_states or []],
            "refit": bool(self.refit),
            "timeout": None if self.timeout is None else float(self.timeout),
            "threads": _count("threads", self.threads),
        }

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
            self._places.update(
                {label: self._places[name] for label, name in zip(made.labels, made.names) if _hashable(label)}
            )
        self.n_features_in_ = len(names)
        if made is None or made.named:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.states_ = {values.name: list(values.values) for values in self._values}
        self.family_ = about["family"]
        self.n_components_ = about["components"]
        self.weights_ = np.array(about["shares"])
        self.hidden_states_ = about["hidden"]
        self.n_parameters_ = about["parameters"]
        self.blocks_ = list(about["blocks"])
        side = len(self.blocks_)
        self.edge_probabilities_ = np.frombuffer(model.edge_probabilities()).reshape(side, side)
        results = about["provenance"].get("results") or {}
        self.history_ = list(results.get("history") or [])
        self.best_epoch_ = results.get("best_epoch")
        self.train_log_likelihood_ = results.get("train_ll")
        self.valid_log_likelihood_ = results.get("valid_ll")
        self.notes_: list[str] = []
        self.stopped_by_ = None

    @property
    def edges_(self) -> list[tuple[str, str, float]]:
        """All edges, the most probable first: from, to, probability."""
        return [tuple(edge) for edge in json.loads(self._fitted().edges(2**31))]

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, whole or not at all; the command line and Rust read it too."""
        self._fitted().save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
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

    # Scores -----------------------------------------------------------------------------------------------------------

    def score_samples(
        self,
        X: Any,
        *,
        missing_as_state: bool = False,
        unknown: str = "error",
        tolerance: float = 0.05,
        trees: int = 20_000,
        random_state: Any = None,
    ) -> np.ndarray:
        """The log-likelihood of every row, in nats.

        Exact for complete rows. Of a row with missing cells it is the log-probability of what was observed: exact in families
        of one tree and where few cells are missing, otherwise estimated; :meth:`log_prob` has the standard errors.
        """
        return self.log_prob(
            X,
            missing_as_state=missing_as_state,
            unknown=unknown,
            tolerance=tolerance,
            trees=trees,
            random_state=random_state,
        ).log_prob

    def log_prob(
        self,
        X: Any,
        *,
        missing_as_state: bool = False,
        unknown: str = "error",
        tolerance: float = 0.05,
        trees: int = 20_000,
        random_state: Any = None,
    ) -> LogProb:
        """The log-probability of what was observed of every row, with standard errors (0 where it is exact).

        Parameters
        ----------
        X : table
        missing_as_state : bool
            Score a missing cell as the state "missing", where training had missing cells in its column.
        unknown : "error" or "unobserved"
            What to do with a label that the model does not know.
        tolerance : float
            Standard error that is good enough.
        trees : int
            Most random trees for one row.
        random_state : int, optional
        """
        model = self._fitted()
        table = self._table(X)
        how = self._how(tolerance, trees, random_state, missing_as_state=bool(missing_as_state), unknown=unknown)
        scores, errors, _ = model.score(table, how)
        values = np.frombuffer(scores)
        deviations = np.frombuffer(errors) if len(errors) else np.zeros(len(values))
        return LogProb(values, deviations)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log-likelihood of the rows: larger is better."""
        scores = self.score_samples(X)
        if sample_weight is None:
            return float(scores.mean())
        return float(np.average(scores, weights=np.asarray(sample_weight, dtype=np.float64)))

    def conditional(
        self, X: Any, target: Any, *, tolerance: float = 0.02, trees: int = 20_000, random_state: Any = None
    ) -> np.ndarray:
        """The distribution of one column given the others, for every row.

        Exact where all other cells are there. Columns of the result are the values of ``states_[target]`` (without missing).
        X may have the column or not; what it holds there is not looked at.
        """
        model = self._fitted()
        place = self._place(target)
        name = self._values[place].name
        table = self._table(X, without=name)
        how = self._how(tolerance, trees, random_state, missing_as_state=False, unknown="error")
        probabilities, _ = model.conditional(table, name, how)
        states = len([value for value in self._values[place].values if value is not None])
        return np.frombuffer(probabilities).reshape(-1, states)

    def surprise(
        self,
        X: Any,
        *,
        missing_as_state: bool = False,
        tolerance: float = 0.05,
        trees: int = 20_000,
        random_state: Any = None,
    ) -> Surprise:
        """How surprising every row is, and every cell of it given the others, in nats: for finding what is odd, and why.

        ``rows`` is −log p(row); ``cells`` has −log p(cell | rest of the row) for every column, NaN where a cell is missing.
        """
        model = self._fitted()
        table = self._table(X)
        how = self._how(tolerance, trees, random_state, missing_as_state=bool(missing_as_state), unknown="error")
        rows, cells = model.surprise(table, how)
        names = [values.name for values in self._values]
        return Surprise(np.frombuffer(rows), np.frombuffer(cells).reshape(-1, len(names)), names)

    # Questions --------------------------------------------------------------------------------------------------------

    def query(
        self,
        given: Given | None = None,
        targets: Sequence[Any] | str | None = None,
        *,
        method: str = "auto",
        tolerance: float = 0.005,
        trees: int = 200_000,
        missing_as_state: bool = False,
        edges: bool = False,
        random_state: Any = None,
    ) -> Query:
        """Probabilities of columns given the values of others.

        Parameters
        ----------
        given : dict, optional
            Values by column; a list of values where it is one of several; None for a missing cell.
        targets : list, optional
            Columns, or ``(column, value)``. By default every column that is not given.
        method : str
            "auto", "exact", "importance", "collapsed", "tilted", "gibbs" or "block-gibbs".
        tolerance : float
            Standard error that is good enough.
        edges : bool
            Also which columns explain which, given what is known.

        Returns
        -------
        Query
            Probabilities with standard errors, the effective sample size, and the probability of what is given.
        """
        model = self._fitted()
        asked = None
        if targets is not None:
            listed = [targets] if isinstance(targets, (str, tuple)) and self._is_target(targets) else list(targets)
            asked = [self._target(target) for target in listed]
        how = self._how(
            tolerance, trees, random_state, missing_as_state=bool(missing_as_state), method=method, edges=bool(edges)
        )
        found = json.loads(model.query(self._given(given), asked, how))
        answers = [
            Answer(name, self._values[self._places[name]].values[state], p, float("nan") if error is None else error)
            for name, state, p, error in found["answers"]
        ]
        number = lambda value: float("nan") if value is None else value  # noqa: E731
        return Query(
            answers=answers,
            method=found["method"],
            trees=found["trees"],
            effective_sample_size=number(found["effective_sample_size"]),
            log_evidence=found["log_evidence"],
            log_evidence_standard_error=number(found["log_evidence_standard_error"]),
            r_hat=found["r_hat"],
            edges=[tuple(edge) for edge in found["edges"]] if edges else None,
        )

    def sample(self, n: int = 1, given: Given | None = None, random_state: Any = None) -> Any:
        """Draws rows, given the values of some columns or none; a table of the kind that the model has learned from.

        Exact and independent without evidence. A number that was cut into bins comes as one in the middle of its bin.
        """
        model = self._fitted()
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise ValueError(f"n {n!r}: a number of rows")
        seed = _seed(self.random_state if random_state is None else random_state)
        how = json.dumps({"seed": seed, "threads": _count("threads", self.threads)})
        codes, _ = model.sample(self._given(given), int(n), how)
        return self._rows(codes)

    def most_probable(
        self,
        given: Given | None = None,
        n: int = 1,
        *,
        missing_as_state: bool = False,
        trees: int = 1024,
        random_state: Any = None,
    ) -> MostProbable:
        """The n most probable rows that agree with what is given, the most probable first.

        ``proven`` says of each whether every row was looked at; otherwise it is the best that a search has found, with its
        exact log-probability.
        """
        model = self._fitted()
        how = self._how(0.005, trees, random_state, missing_as_state=bool(missing_as_state))
        codes, logs, proven = model.most_probable(self._given(given), int(n), how)
        return MostProbable(self._rows(codes), np.array(logs), np.array(proven, dtype=bool))

    def impute(
        self,
        X: Any,
        *,
        how: str = "map",
        unknown: str = "error",
        return_probabilities: bool = False,
        random_state: Any = None,
    ) -> Any:
        """A copy of the table with its missing cells filled; nothing else changes.

        Parameters
        ----------
        X : table
        how : "map", "sample" or "mean-state"
            The most probable way to complete a row, one by chance, or each cell by itself (numbers: the value nearest to the
            mean).
        unknown : "error" or "unobserved"
            What to do with a label that the model does not know; with "unobserved" it stays as it is.
        return_probabilities : bool
            Also a list of ``(row, column, value, probability, standard_error)``, one for every cell that was filled.
        """
        model = self._fitted()
        made, table = _frames.look(X)
        table = self._renamed(made, table)
        told = {
            "how": how,
            "unknown": unknown,
            "probabilities": bool(return_probabilities),
            "seed": _seed(self.random_state if random_state is None else random_state),
            "threads": _count("threads", self.threads),
        }
        rows, variables, states, probabilities, errors = model.impute(table, json.dumps(told))
        rows, variables, states = (np.frombuffer(some, dtype=np.int64) for some in (rows, variables, states))
        values = [self._values[v].values[s] for v, s in zip(variables.tolist(), states.tolist())]
        # The columns of the table, by the variables of the model.
        names = made.names if made.named else [value.name for value in self._values]
        back = dict(zip(names, made.names))
        columns = [back.get(self._values[v].name, self._values[v].name) for v in variables.tolist()]
        filled = _frames.fill(X, made, rows, columns, values)
        if not return_probabilities:
            return filled
        p, e = np.frombuffer(probabilities), np.frombuffer(errors)
        cells = list(zip(rows.tolist(), columns, values, p.tolist(), e.tolist()))
        return filled, cells

    def entropy(
        self, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The entropy of the model in nats, and its standard error (0 where it is exact)."""
        return self._fitted().figure("entropy", [], [], self._how(tolerance, trees, random_state))

    def divergence(
        self, other: Any, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The Kullback–Leibler divergence to another model of the same columns in nats, and its standard error."""
        return self._fitted().divergence(other._fitted(), self._how(tolerance, trees, random_state))

    def mutual_information(
        self, one: Any, other: Any, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The mutual information of two columns in nats, and its standard error (0 where it is exact)."""
        names = [self._values[self._place(column)].name for column in (one, other)]
        return self._fitted().figure("mutual-information", names, [], self._how(tolerance, trees, random_state))

    def probability(
        self, given: Given, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The probability that columns have these values together, and its standard error (0 where it is exact)."""
        how = self._how(tolerance, trees, random_state)
        return self._fitted().figure("probability", [], self._given(given), how)

    # Pictures ---------------------------------------------------------------------------------------------------------

    def plot_edges(self, ax: Any = None, *, most: int = 60) -> Any:
        """The dependency graph with matplotlib: the wider an edge, the more probable. Returns the axes."""
        self._fitted()
        return _plots.edges(self, ax, most)

    def plot_history(self, ax: Any = None) -> Any:
        """The learning curve with matplotlib. Returns the axes."""
        self._fitted()
        return _plots.history(self, ax)

    def _repr_html_(self) -> str:
        return _html.page(self)

    # Odds and ends ----------------------------------------------------------------------------------------------------

    def _fitted(self) -> _core.Model:
        if self._model is None:
            raise not_fitted(self)
        return self._model

    def _how(self, tolerance: float, trees: int, random_state: Any, **more: Any) -> str:
        seed = _seed(self.random_state if random_state is None else random_state)
        told = {
            "tolerance": float(tolerance),
            "trees": int(trees),
            "seed": seed,
            "threads": _count("threads", self.threads),
            **more,
        }
        return json.dumps(told)

    def _table(self, X: Any, without: str | None = None) -> Any:
        made, table = _frames.look(X)
        if made.rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {len(made.names)})) while a minimum of 1 is required."
            )
        return self._renamed(made, table, without)

    def _renamed(self, made: _frames.Look, table: Any, without: str | None = None) -> Any:
        """Columns are matched by name, or by place where one side has none."""
        names = [values.name for values in self._values]
        had_names = hasattr(self, "feature_names_in_")
        if made.named and had_names:
            return table
        expected = self.n_features_in_
        if len(made.names) == expected - 1 and without is not None:
            names = [name for name in names if name != without]
        elif len(made.names) != expected:
            raise ValueError(
                f"X has {len(made.names)} features, but {type(self).__name__} is expecting {expected} features as input."
            )
        if had_names != made.named and had_names:
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )
        elif had_names != made.named:
            warnings.warn(
                f"X has feature names, but {type(self).__name__} was fitted without feature names",
                UserWarning,
                stacklevel=4,
            )
        if isinstance(table, list):
            return [(name, *column[1:]) for name, column in zip(names, table)]
        if made.names == names:
            return table
        raise ValueError(f"columns {made.names[:5]}: the model was fitted without names; give it a numpy array")

    def _place(self, column: Any) -> int:
        if _hashable(column) and column in self._places:
            return self._places[column]
        from ._errors import UnknownColumn

        known = ", ".join(values.name for values in self._values[:20])
        more = ", …" if len(self._values) > 20 else ""
        raise UnknownColumn(f'there is no column "{column}"; the columns are {known}{more}')

    def _given(self, given: Given | None) -> list[tuple[str, list[str]]]:
        if given is None:
            return []
        if not isinstance(given, Mapping):
            raise TypeError("given: a dict of values by column")
        known = []
        for column, value in given.items():
            several = isinstance(value, (list, tuple, set, frozenset, np.ndarray))
            texts = [_frames.text(one) for one in (value if several else [value])]
            if not texts:
                raise ValueError(f"given {column!r}: at least one value is needed")
            known.append((self._values[self._place(column)].name, texts))
        return known

    def _is_target(self, target: Any) -> bool:
        if _hashable(target) and target in self._places:
            return True
        return isinstance(target, str) or (
            isinstance(target, tuple)
            and len(target) == 2
            and target[0] in self._places
            and not (_hashable(target[1]) and target[1] in self._places)
        )

    def _target(self, target: Any) -> tuple[str, str | None]:
        if isinstance(target, tuple) and target not in self._places:
            column, value = target
            return self._values[self._place(column)].name, _frames.text(value)
        return self._values[self._place(target)].name, None

    def _rows(self, codes: bytearray) -> Any:
        table = np.frombuffer(codes, dtype=np.uint16).reshape(-1, len(self._values))
        columns = {values.name: values.take(table[:, place]) for place, values in enumerate(self._values)}
        return _frames.build(self._look, columns)

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


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} {value!r}: a number of at least 1, or None")
    return int(value)


def _weights(sample_weight: Any, rows: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight has shape {weights.shape}; one number for each row is needed")
    if rows >= 0 and len(weights) != rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({rows},)!")
    return weights


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(some) for key, some in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(some) for some in value]
    return value.item() if isinstance(value, np.generic) else value


#: What a recipe says where nothing else is said.
_USUAL: dict[str, Any] = {
    "family": "moat",
    "components": None,
    "hidden": None,
    "pairs": "lambda",
    "random": False,
    "smoothing": 1.0,
    "prior": None,
    "shrinkage": None,
    "optimiser": None,
    "epochs": None,
    "patience": None,
    "batch": None,
    "lr": None,
    "cosine": False,
    "average": None,
    "precision": "f32",
}

_COMMON = """
    holdout : float, default 0.1
        Fraction of the rows that is held out to choose the best epoch and size, where ``fit`` gets no ``valid``.
    refit : bool, default False
        Learn once more, from the held-out rows too, for as many epochs as were best.
    max_states : int, default 64
        Most different values of a column that are states as they are. Columns of more numbers are cut into 8 quantile bins;
        columns of more texts are refused.
    bins : int, dict or "none", optional
        Quantile bins: so many for every column of floating-point type, or numbers by column; "none" refuses columns of too many
        numbers.
    missing : {"category", "marginalise", "error"}, default "category"
        Missing cells are one more state of their column, values that were not observed and are summed out, or refused.
    na : list of str, optional
        Texts that stand for a missing cell. Default: NA, NaN, null, ? (the empty text always does).
    blocks : optional
        Columns modelled jointly: "auto", a pattern such as "colour_*", or a list of lists of names.
    block_states : list of int, optional
        With ``blocks="auto"``: most combinations of a block; several are tried one by one.
    timeout : float, optional
        Seconds after which the best model so far is kept.
    threads : int, optional
        Default: all. The result does not depend on it.
    device : {"auto", "cpu"}, default "auto"
        Where the work is done.
    random_state : int or generator, optional
        Seed of everything that is left to chance. None is 0: the same data give the same model.
    verbose : bool, default False
        Show progress, in a terminal or a notebook.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : what was learned from.
    states_ : dict
        The values of every column in the order of their states; None is missing.
    edge_probabilities_ : array
        How probable every edge is, given a row of the training data, on average. Row: what is explained; column: what
        explains. The diagonal of families with arrows has the probability of being a root.
    edges_ : list of (from, to, probability), the most probable first.
    history_ : list of dict
        Mean log-likelihoods ``train`` and ``valid`` by ``epoch``.
    best_epoch_, train_log_likelihood_, valid_log_likelihood_, n_components_, weights_, n_parameters_, blocks_
        Of the model that was kept.
    notes_ : list of str
        What happened to the data on the way: bins, missing cells, constant columns.
    stopped_by_ : str
        "done", "patience", "timeout", "stopped" (by a callback) or "interrupted".
    """


class MixtureOfAllTrees(_Density):
    """A mixture of all trees: an exactly normalised distribution over the rows of a discrete table.

    Parameters
    ----------
    family : {"moat", "directed", "independent", "chow-liu", "mixture-of-trees", "hclt"}, default "moat"
        "moat" is the family of the paper; "directed" has rooted forests with free tables, and usually fits best. The others
        are its neighbours.
    components : int or "auto", default 1
        How many models are mixed; "auto": 1, 2, 4 … as long as validation gets better.
    hidden : int or "auto", optional
        States of the hidden variables of "hclt".
    epochs, batch, lr, patience, cosine, average, optimiser, smoothing, prior, shrinkage, pairs, init, precision
        As on the command line (``everytree fit --help``); None is what is usual for the family.

    Examples
    --------
    >>> import everytree
    >>> table = {"smoker": ["yes", "no"] * 50, "cough": ["yes", "no"] * 45 + ["no", "yes"] * 5}
    >>> model = everytree.MixtureOfAllTrees().fit(table)
    >>> answer = model.query(given={"smoker": "yes"}, targets=["cough"])
    >>> answer["cough", "yes"] > 0.7
    True
    >>> model.sample(2, given={"smoker": "no"})["smoker"]
    ['no', 'no']
    """

    def __init__(
        self,
        family: str = "moat",
        components: int | str = 1,
        *,
        hidden: int | str | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        lr: float | None = None,
        patience: int | None = None,
        cosine: bool = False,
        average: float | None = None,
        optimiser: str | None = None,
        smoothing: float = 1.0,
        prior: float | None = None,
        shrinkage: float | None = None,
        pairs: str = "lambda",
        init: str = "counts",
        precision: str = "f32",
        holdout: float = 0.1,
        refit: bool = False,
        max_states: int = 64,
        bins: Mapping[Any, int] | str | None = None,
        missing: str = "category",
        na: Sequence[str] | None = None,
        blocks: Any = None,
        block_states: Sequence[int] | None = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.family = family
        self.components = components
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.lr = lr
        self.patience = patience
        self.cosine = cosine
        self.average = average
        self.optimiser = optimiser
        self.smoothing = smoothing
        self.prior = prior
        self.shrinkage = shrinkage
        self.pairs = pairs
        self.init = init
        self.precision = precision
        self.holdout = holdout
        self.refit = refit
        self.max_states = max_states
        self.bins = bins
        self.missing = missing
        self.na = na
        self.blocks = blocks
        self.block_states = block_states
        self.timeout = timeout
        self.threads = threads
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _recipe(self) -> dict[str, Any]:
        if self.init not in ("counts", "random"):
            raise ValueError(f"init {self.init!r}: counts or random")
        components = self.components
        if self.family == "mixture-of-trees" and components == 1:
            # One tree is chow-liu; a mixture is as large as pays.
            components = None
        return {
            "family": self.family,
            "components": components,
            "hidden": self.hidden,
            "pairs": self.pairs,
            "random": self.init == "random",
            "smoothing": float(self.smoothing),
            "prior": self.prior,
            "shrinkage": self.shrinkage,
            "optimiser": self.optimiser,
            "epochs": self.epochs,
            "patience": self.patience,
            "batch": self.batch,
            "lr": self.lr,
            "cosine": bool(self.cosine),
            "average": self.average,
            "precision": self.precision,
        }


class _Neighbour(_Density):
    """A baseline: the same questions to a simpler model."""

    _family: str

    def _recipe(self) -> dict[str, Any]:
        recipe: dict[str, Any] = {"family": self._family}
        for name in ("components", "hidden", "prior", "shrinkage", "epochs", "batch"):
            if name in self._names():
                recipe[name] = getattr(self, name)
        return recipe


class IndependentColumns(_Neighbour):
    """Columns that have nothing to do with each other: the floor. Several components: latent classes.

    Parameters
    ----------
    components : int or "auto", default 1
    prior : float, optional
        Rows of even chance that tables are smoothed with. Default: 1 a table.
    """

    _family = "independent"

    def __init__(
        self,
        components: int | str = 1,
        *,
        prior: float | None = None,
        holdout: float = 0.1,
        refit: bool = False,
        max_states: int = 64,
        bins: Any = None,
        missing: str = "category",
        na: Any = None,
        blocks: Any = None,
        block_states: Any = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        _keep(self, locals())


class ChowLiuTree(_Neighbour):
    """The tree of the highest mutual information (Chow and Liu), smoothed: exact answers to everything.

    Parameters
    ----------
    prior : float, optional
        Rows of even chance that tables are smoothed with. Default: 1 a table.
    """

    _family = "chow-liu"

    def __init__(
        self,
        *,
        prior: float | None = None,
        holdout: float = 0.1,
        refit: bool = False,
        max_states: int = 64,
        bins: Any = None,
        missing: str = "category",
        na: Any = None,
        blocks: Any = None,
        block_states: Any = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        _keep(self, locals())


class MixtureOfTrees(_Neighbour):
    """Several trees with shares (Meilă and Jordan), as many as pay on validation rows.

    Parameters
    ----------
    components : int or "auto", default "auto"
    prior, shrinkage : float, optional
        Rows of even chance per table, and how much components are pulled towards what they have in common.
    """

    _family = "mixture-of-trees"

    def __init__(
        self,
        components: int | str = "auto",
        *,
        prior: float | None = None,
        shrinkage: float | None = None,
        epochs: int | None = None,
        holdout: float = 0.1,
        refit: bool = False,
        max_states: int = 64,
        bins: Any = None,
        missing: str = "category",
        na: Any = None,
        blocks: Any = None,
        block_states: Any = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        _keep(self, locals())


class HiddenChowLiuTree(_Neighbour):
    """A tree of hidden variables, one behind each column, with as many states as pay on validation rows.

    Parameters
    ----------
    hidden : int or "auto", default "auto"
    epochs, batch : int, optional
    """

    _family = "hclt"

    def __init__(
        self,
        hidden: int | str = "auto",
        *,
        epochs: int | None = None,
        batch: int | None = None,
        holdout: float = 0.1,
        refit: bool = False,
        max_states: int = 64,
        bins: Any = None,
        missing: str = "category",
        na: Any = None,
        blocks: Any = None,
        block_states: Any = None,
        timeout: float | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        _keep(self, locals())


def _keep(estimator: Any, given: dict[str, Any]) -> None:
    """Parameters as they were given."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


for _estimator in (MixtureOfAllTrees, IndependentColumns, ChowLiuTree, MixtureOfTrees, HiddenChowLiuTree):
    _before, _examples, _after = (_estimator.__doc__ or "").rstrip().partition("\n    Examples\n")
    _estimator.__doc__ = _before.rstrip() + _COMMON + _examples + _after


def load(path: str | os.PathLike[str]) -> MixtureOfAllTrees:
    """An estimator with the model of a file, whichever of our programs wrote it.

    It answers questions; its parameters are those of a fresh estimator, not those of the fit behind the file.
    """
    return MixtureOfAllTrees.load(path)
