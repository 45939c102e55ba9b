"""Inference: everything that a learned model can be asked."""

from __future__ import annotations

import difflib
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _conditions, _core, _frames, _html, _imputation, _plots
from ._errors import UnknownColumn, not_fitted
from ._parameters import count, number, seed, whole
from ._progress import Rows
from ._results import Answer, LogProb, MostProbable, Query, Surprisal

Given = Mapping[Any, Any]


class Inference:
    """Questions to a model; learning is another matter."""

    random_state: Any
    threads: Any
    n_features_in_: int
    _model: _core.Model | None = None
    _look: _frames.Look | None = None
    _owner: str = ""
    _left_out: tuple[str, ...] = ()
    _about: dict[str, Any]
    _values: list[_frames.Values]
    _places: dict[Any, int]

    # Scores -----------------------------------------------------------------------------------------------------------

    def score_samples(
        self,
        X: Any,
        *,
        missing_as_state: bool = False,
        unknown: str = "unobserved",
        tolerance: float = 0.05,
        trees: int = 20_000,
        drop: Any = None,
        random_state: Any = None,
    ) -> np.ndarray:
        """The log-likelihood of every row, in nats.

        Exact for complete rows. Of a row with missing cells it is the log-probability of what was observed: exact in families
        of one tree and where few cells are missing, otherwise estimated; :meth:`log_prob` has the standard errors.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> model.score_samples(table).round(2)[:2].tolist()
        [-0.81, -0.81]
        """
        return self.log_prob(
            X,
            missing_as_state=missing_as_state,
            unknown=unknown,
            tolerance=tolerance,
            trees=trees,
            drop=drop,
            random_state=random_state,
        ).log_prob

    def log_prob(
        self,
        X: Any,
        *,
        missing_as_state: bool = False,
        unknown: str = "unobserved",
        tolerance: float = 0.05,
        trees: int = 20_000,
        drop: Any = None,
        random_state: Any = None,
    ) -> LogProb:
        """The log-probability of what was observed of every row, with standard errors (0 where it is exact).

        Parameters
        ----------
        X : table
        missing_as_state : bool
            Score a missing cell as the state "missing", where training had missing cells in its column.
        unknown : "unobserved", "error" or "other"
            What to do with a label that the model does not know: take the cell for missing, with a warning; refuse it; or
            take it for the state "other", which a model has that was learned with ``other``.
        tolerance : float
            Standard error that is good enough.
        trees : int
            Most random trees for one row.
        drop : column or list of columns, optional
            Columns that are taken for not observed; the table may have them or not.
        random_state : int, optional

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> found = model.log_prob({"rain": ["yes"], "wet": [None]})
        >>> found.log_prob.round(2).tolist(), found.standard_error.tolist()
        ([-0.69], [0.0])
        """
        model = self._fitted()
        table = self._table(X, drop=drop)
        how = self._scoring(tolerance, trees, random_state, missing_as_state=bool(missing_as_state), unknown=unknown)
        with self._progress("scored") as on_rows:
            scores, errors, notes = model.score(table, how, on_rows)
        for note in notes:
            warnings.warn(note, stacklevel=3)
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
        self,
        X: Any,
        target: Any,
        *,
        unknown: str = "unobserved",
        tolerance: float = 0.02,
        trees: int = 20_000,
        random_state: Any = None,
    ) -> np.ndarray:
        """The distribution of one column given the others, for every row.

        Exact where all other cells are there. Columns of the result are the values of ``states_[target]`` (without missing).
        X may have the column or not; what it holds there is not looked at.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> model.conditional({"rain": ["yes"]}, "wet").round(2).tolist()  # no, yes
        [[0.11, 0.89]]
        """
        model = self._fitted()
        place = self._place(target)
        name = self._values[place].name
        table = self._table(X, without=name)
        how = self._scoring(tolerance, trees, random_state, missing_as_state=False, unknown=unknown)
        probabilities, _, notes = model.conditional(table, name, how)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        states = len([value for value in self._values[place].values if value is not None])
        return np.frombuffer(probabilities).reshape(-1, states)

    def surprisal(
        self,
        X: Any,
        *,
        missing_as_state: bool = False,
        unknown: str = "unobserved",
        tolerance: float = 0.05,
        trees: int = 20_000,
        drop: Any = None,
        random_state: Any = None,
    ) -> Surprisal:
        """The surprisal of every row, and of every cell of it given the others, in nats: for anomaly detection.

        ``rows`` is −log p(row); ``cells`` has −log p(cell | rest of the row) for every column, NaN where a cell is missing.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> odd = model.surprisal({"rain": ["yes", "no"], "wet": ["yes", "yes"]})
        >>> odd.top(1, cells=1)[0][0]
        1
        """
        model = self._fitted()
        table = self._table(X, drop=drop)
        how = self._scoring(tolerance, trees, random_state, missing_as_state=bool(missing_as_state), unknown=unknown)
        with self._progress("scored") as on_rows:
            rows, cells, notes = model.surprisal(table, how, on_rows)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        names = [values.name for values in self._values]
        return Surprisal(np.frombuffer(rows), np.frombuffer(cells).reshape(-1, len(names)), names)

    surprise = surprisal

    # Questions --------------------------------------------------------------------------------------------------------

    def query(
        self,
        given: Given | str | Sequence[str] | None = None,
        targets: Sequence[Any] | str | None = None,
        *,
        method: str = "auto",
        tolerance: float = 0.005,
        trees: int = 200_000,
        missing_as_state: bool = False,
        edges: bool = False,
        data: Any = None,
        random_state: Any = None,
    ) -> Query:
        """Posterior probabilities of columns, given evidence about others.

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
            Also which columns explain which, given the evidence.
        data : table, optional
            Rows to look at beside: how many agree with the evidence, and which share of them has each value.

        Returns
        -------
        Query
            Probabilities with standard errors, the effective sample size, and the probability of what is given.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> answer = model.query({"rain": "yes"}, ["wet"])
        >>> round(answer["wet", "yes"], 2), answer.method
        (0.89, 'exact')
        """
        model = self._fitted()
        asked = None
        if targets is not None:
            listed = [targets] if isinstance(targets, (str, tuple)) and self._is_target(targets) else list(targets)
            asked = [self._target(target) for target in listed]
        how = self._how(
            tolerance, trees, random_state, missing_as_state=bool(missing_as_state), method=method, edges=bool(edges)
        )
        beside = None if data is None else self._table(data)
        found = json.loads(model.query(self._given(given), asked, how, beside))
        value = lambda name, state: self._values[self._places[name]].values[state]  # noqa: E731
        answers = [
            Answer(name, value(name, state), p, float("nan") if error is None else error, observed)
            for name, state, p, error, observed in found["answers"]
        ]
        figure = lambda value: float("nan") if value is None else value  # noqa: E731
        return Query(
            answers=answers,
            method=found["method"],
            trees=found["trees"],
            effective_sample_size=figure(found["effective_sample_size"]),
            log_evidence=found["log_evidence"],
            matching_rows=found["matching_rows"],
            data_rows=found["data_rows"],
            unknown_rows=found["unknown_rows"],
            log_evidence_standard_error=figure(found["log_evidence_standard_error"]),
            r_hat=found["r_hat"],
            edges=[tuple(edge) for edge in found["edges"]] if edges else None,
            _places=self._places,
            _names=[values.name for values in self._values],
        )

    def sample(self, n: int = 1, given: Given | str | Sequence[str] | None = None, random_state: Any = None) -> Any:
        """Draws rows, given the values of some columns or none; a table of the kind that the model has learned from.

        Exact and independent without evidence. A number that was cut into bins comes as one in the middle of its bin.
        Columns that were named as ``id`` are numbers from 1; an array has none of them.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> model.sample(3, given={"rain": "no"}, random_state=1)["rain"]
        ['no', 'no', 'no']
        """
        model = self._fitted()
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise ValueError(f"n {n!r}: a number of rows")
        known = self._given(given)
        codes, _ = model.sample(known, int(n), self._options(random_state))
        return self._rows(codes, self._values_given(known), numbered=True)

    def most_probable(
        self,
        given: Given | str | Sequence[str] | None = None,
        n: int = 1,
        *,
        missing_as_state: bool = False,
        trees: int = 1024,
        random_state: Any = None,
    ) -> MostProbable:
        """The n most probable rows that agree with what is given, the most probable first.

        ``proven`` says of each whether every row was looked at; otherwise it is the best that a search has found, with its
        exact log-probability.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> model.most_probable(given={"wet": "yes"}).rows
        {'rain': ['yes'], 'wet': ['yes']}
        """
        model = self._fitted()
        how = self._options(random_state, trees=whole("trees", trees), missing_as_state=bool(missing_as_state))
        if whole("n", n) < 1:
            raise ValueError(f"n {n}: at least one row")
        known = self._given(given)
        codes, logs, proven = model.most_probable(known, int(n), how)
        return MostProbable(self._rows(codes, self._values_given(known)), np.array(logs), np.array(proven, dtype=bool))

    def impute(
        self,
        X: Any,
        *,
        how: str = "map",
        given: Given | str | Sequence[str] | None = None,
        unknown: str = "unobserved",
        return_probabilities: bool = False,
        random_state: Any = None,
    ) -> Any:
        """A copy of the table with its missing cells filled; nothing else changes.

        Parameters
        ----------
        X : table
        how : "map", "sample" or "mean-state"
            The most probable way to complete a row, one at random, or each cell alone (numbers: the value nearest to the
            mean).
        given : dict or text, optional
            Evidence about missing cells, as in :meth:`query`: only such values fill them.
        unknown : "unobserved", "error" or "other"
            What to do with a label that the model does not know; with "unobserved" it stays as it is.
        return_probabilities : bool
            Also a list of ``(row, column, value, probability, standard_error)``, one for every cell that was filled.

        Examples
        --------
        >>> import everytree
        >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
        >>> model = everytree.ChowLiuTree().fit(table)
        >>> model.impute({"rain": ["yes", "no"], "wet": [None, "no"]})["wet"]
        ['yes', 'no']
        """
        model = self._fitted()
        if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "columns"):
            import pyarrow

            # What can be read only once is read here.
            X = pyarrow.table(X)
        part, table = _frames.look(X, only=self._only())
        table = self._renamed(part, table)
        told = self._options(random_state, how=how, unknown=unknown, probabilities=bool(return_probabilities))
        known = self._given(given)
        by_column = self._values_given(known)
        with self._progress("filled") as on_rows:
            (*places, probabilities, errors), note = model.impute(table, told, on_rows, known)
        if note is not None:
            warnings.warn(note, stacklevel=2)
        rows, variables, states = (np.frombuffer(some, dtype=np.int64).tolist() for some in places)
        values = [by_column[v].values[s] for v, s in zip(variables, states)]
        # The columns of the table, by the variables of the model.
        by_place = len(part.names) == len(self._values) and not (part.named and self._named)
        back = {value.name: own for value, own in zip(self._values, part.names)} if by_place else {}
        columns = [back.get(self._values[v].name, self._values[v].name) for v in variables]
        cells: dict[str, _imputation.Cells] = {}
        for row, column, value in zip(rows, columns, values):
            where, what = cells.setdefault(column, ([], []))
            where.append(row)
            what.append(value)
        alike = self._look is not None and self._look.kind == part.kind
        trained = dict(zip(self._look.names, self._look.types)) if self._look is not None and alike else {}
        filled = _imputation.fill(X, part, cells, trained)
        if not return_probabilities:
            return filled
        p, e = np.frombuffer(probabilities), np.frombuffer(errors)
        return filled, list(zip(rows, columns, values, p.tolist(), e.tolist()))

    def entropy(self, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None) -> tuple[float, float]:
        """The entropy of the model in nats, and its standard error (0 where it is exact)."""
        return self._fitted().entropy(self._how(tolerance, trees, random_state))

    def divergence(
        self, other: Any, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The Kullback–Leibler divergence to another model of the same columns in nats, and its standard error."""
        return self._fitted().divergence(other._fitted(), self._how(tolerance, trees, random_state))

    def mutual_information(
        self, one: Any, other: Any, *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The mutual information of two columns in nats, and its standard error (0 where it is exact)."""
        model = self._fitted()
        names = [self._values[self._place(column)].name for column in (one, other)]
        return model.mutual_information(names[0], names[1], self._how(tolerance, trees, random_state))

    def probability(
        self, given: Given | str | Sequence[str], *, tolerance: float = 0.005, trees: int = 200_000, random_state: Any = None
    ) -> tuple[float, float]:
        """The probability that columns have these values together, and its standard error (0 where it is exact)."""
        how = self._how(tolerance, trees, random_state)
        return self._fitted().probability(self._given(given), how)

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

    def _progress(self, done: str) -> Rows:
        """Shows how many rows are done, where progress is wanted."""
        return Rows(done, bool(getattr(self, "verbose", False)))

    def _options(self, random_state: Any, **more: Any) -> str:
        """Options of a call for the core, which takes no others."""
        seed_ = seed(self.random_state if random_state is None else random_state)
        return json.dumps({"seed": seed_, "threads": count("threads", self.threads), **more})

    def _how(self, tolerance: float, trees: int, random_state: Any, **more: Any) -> str:
        told = {"tolerance": number("tolerance", tolerance), "trees": whole("trees", trees), **more}
        return self._options(random_state, **told)

    def _scoring(self, tolerance: float, trees: int, random_state: Any, **more: Any) -> str:
        return self._how(tolerance, trees, random_state, device=str(getattr(self, "device", "auto")), **more)

    def _table(self, X: Any, without: str | None = None, drop: Any = None) -> Any:
        alone = drop is None or isinstance(drop, (str, bytes)) or not hasattr(drop, "__iter__")
        dropped = [self._values[self._place(column)].name for column in ([] if drop is None else [drop] if alone else drop)]
        only = self._only()
        if dropped and only is None:
            raise ValueError("drop: the model was learned from a table without names; make the cells missing instead")
        made, table = _frames.look(X, only=only if only is None else only - set(dropped))
        if made.rows == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape=(0, {len(made.names)})) while a minimum of 1 is required.")
        if dropped:
            return _frames.unobserved(made, table, dropped)
        return self._renamed(made, table, without)

    @property
    def _named(self) -> bool:
        """Had the table that was learned from names?"""
        return hasattr(self, "feature_names_in_")

    def _only(self) -> set[str] | None:
        """Columns that are looked at, of tables that have names."""
        return {values.name for values in self._values} if self._named else None

    def _renamed(self, made: _frames.Look, table: Any, without: str | None = None) -> Any:
        """Columns are matched by name, or by place where one side has none."""
        names = [values.name for values in self._values]
        if not made.names or (made.named and (self._named or set(names) - {without} <= set(made.names))):
            return table
        expected = self.n_features_in_
        if self._left_out and len(made.names) == expected + len(self._left_out) and not self._named:
            # With the columns that were left out.
            return _frames.under(made, table, [f"x{place}" for place in range(len(made.names))])
        if len(made.names) == expected - 1 and without is not None:
            names = [name for name in names if name != without]
        elif len(made.names) != expected:
            features = expected - (without is not None)
            raise ValueError(
                f"X has {len(made.names)} features, but {self._said_name()} is expecting {features} features as input."
            )
        if self._named and not made.named:
            warnings.warn(
                f"X does not have valid feature names, but {self._said_name()} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )
        elif made.named and not self._named:
            warnings.warn(
                f"X has feature names, but {self._said_name()} was fitted without feature names", UserWarning, stacklevel=4
            )
        return _frames.under(made, table, names)

    def _said_name(self) -> str:
        """What this is called in messages."""
        return self._owner or type(self).__name__

    def _place(self, column: Any) -> int:
        if hashable(column) and column in self._places:
            return self._places[column]
        names = [values.name for values in self._values]
        alike = difflib.get_close_matches(str(column), names, n=1)
        hint = f' (did you mean "{alike[0]}"?)' if alike else ""
        known = ", ".join(names[:20])
        more = ", …" if len(names) > 20 else ""
        raise UnknownColumn(f'there is no column "{column}"{hint}; the columns are {known}{more}')

    def _given(self, given: Given | str | Sequence[str] | None) -> list[tuple[str, str, list[str | None], list[float]]]:
        if given is None:
            return []
        if isinstance(given, str):
            given = [given]
        if isinstance(given, (list, tuple)) and all(isinstance(text, str) for text in given):
            return [(text, "text", [], []) for text in given]
        if not isinstance(given, Mapping):
            raise TypeError('given: a dict of values by column, or texts such as "age in 30..40"')
        known = []
        for column, value in given.items():
            kind, texts, numbers = _conditions.told(value)
            if not texts:
                raise ValueError(f"given {column!r}: at least one value is needed")
            known.append((self._values[self._place(column)].name, kind, texts, numbers))
        return known

    def _is_target(self, target: Any) -> bool:
        if hashable(target) and target in self._places:
            return True
        return isinstance(target, str) or (
            isinstance(target, tuple)
            and len(target) == 2
            and target[0] in self._places
            and not (hashable(target[1]) and target[1] in self._places)
        )

    def _target(self, target: Any) -> tuple[str, list[str | None] | None]:
        if isinstance(target, tuple) and target not in self._places:
            column, value = target
            return self._values[self._place(column)].name, [_frames.text(value)]
        return self._values[self._place(target)].name, None

    def _values_given(self, known: list[Any]) -> list[_frames.Values]:
        """The values of every column by their states; of bins, numbers in the range that is known."""
        within = dict(self._fitted().cells(known)) if known else {}
        return [values.within(within[place]) if place in within else values for place, values in enumerate(self._values)]

    def _rows(self, codes: bytearray, by_column: list[_frames.Values], *, numbered: bool = False) -> Any:
        table = np.frombuffer(codes, dtype=np.uint16).reshape(-1, len(self._values))
        columns = {values.name: values.take(table[:, place]) for place, values in enumerate(by_column)}
        numbers = list(range(1, len(table) + 1))
        return _frames.build(self._look, columns, {name: numbers for name in self._about["ids"]} if numbered else {})


def hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
