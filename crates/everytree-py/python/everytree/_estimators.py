"""The estimators: the mixture of all trees, and baselines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._density import OPTIONS, Density
from ._parameters import keep, whole

_COMMON = """
    holdout : float, default 0.1
        Fraction of the rows that is held out to choose the best epoch and size, where ``fit`` gets no ``valid``.
    refit : bool, optional
        Learn once more, from the held-out rows too, for as many epochs as were best. Default: yes, unless ``fit`` gets
        ``valid``.
    max_states : int, default 64
        Most different values of a column that are states as they are. Columns of more numbers are cut into 8 quantile bins;
        columns of more texts are refused, unless ``other`` says how many to tell apart.
    bins : int, dict or "none", optional
        Quantile bins: so many for every column of more numbers than that, or numbers by column; "none" refuses columns of too
        many numbers.
    missing : {"category", "marginalise", "error"}, default "category"
        Missing cells are one more state of their column, values that were not observed and are summed out, or refused.
    na : list of str, optional
        Texts that stand for a missing cell. Default: none; missing is what is None, NaN, ``pd.NA`` or null.
    columns, drop : str or list of str, optional
        Only these columns, or not these; ``*`` stands for anything, ``?`` for one character. The model remembers what was left
        out, and later tables may have it.
    id : str or list of str, optional
        Columns that name rows: left out of the model like those of ``drop``, and known to its file as names of rows, which
        the command line carries into scores and samples. Imputed tables keep them.
    other : int or dict, optional
        Of columns of more texts than that (or by column), so many of the most frequent are told apart; all others are one
        state, "other", and so is every label that is met later.
    blocks : optional
        Columns modelled jointly: "auto", a pattern such as "colour_*", or a list of lists of names.
    block_states : list of int, optional
        With ``blocks="auto"``: most combinations of a block; several are tried one by one.
    timeout : float, optional
        Seconds after which the best model so far is kept.
    threads : int, optional
        Default: all. The result does not depend on it.
    device : {"auto", "cpu", "cuda", "cuda:N"}, default "auto"
        Where learning and scoring of complete rows are done; "auto" takes a GPU where there is one, from 128 columns on,
        and the notes say so. Trees without latent variables are learned on the CPU.
    random_state : int or generator, optional
        Seed of everything random. None is 0: the same data give the same model.
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
    doubts_ : list of str
        What should make one careful: few rows to validate with, rows learned by heart, a best epoch that is the first or last.
    stopped_by_ : str
        "done", "patience", "timeout", "stopped" (by a callback) or "interrupted".
    """


class MixtureOfAllTrees(Density):
    """A mixture of all trees: an exactly normalised distribution over the rows of a discrete table.

    Parameters
    ----------
    family : str, default "moat"
        One of :func:`families`. "moat" is the family of the paper; "directed" has rooted forests with free tables, and
        usually fits best. Families of single trees are baselines.
    components : int or "auto", default 1
        How many models are mixed; "auto": 1, 2, 4 … as long as validation gets better.
    hidden : int or "auto", optional
        States of the latent variables of "hclt".
    epochs, batch_size, learning_rate, patience, cosine, ema, optimiser, pseudocount, laplace, shrinkage, pairs, init, precision
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

    def _fit_options(self) -> dict[str, Any]:
        told = self.get_params()
        options = {name: told[name] for name in OPTIONS if name in told}
        if told["family"] == "mixture-of-trees" and told["components"] == 1:
            # One tree is chow-liu; a mixture is as large as pays.
            options["components"] = None
        return options


class DensityEstimator(Density):
    """The best distribution over the rows of a discrete table that was found: a family, or an average of several.

    Families, sizes, blocks and priors are tried within a budget of work and judged by rows held out; what is best learns once
    more from all rows.

    Parameters
    ----------
    effort : {"quick", "normal", "thorough"}, default "normal"
        How much work the choice may be. Normal is about a minute on two cores for 20,000 rows of 100 columns, and several
        seconds for small tables; quick is a sixth of it, thorough twenty times as much.
    folds : int, optional
        In how many folds all rows are held out, one after the other; 1: a fraction of them, once. Default: 5 below 5,000 rows.
    kernel : bool, default False
        Let a kernel over stored rows take part. The model then contains the training rows, and whoever has its file can read
        them. Without it, ``notes_`` say what it would gain.
    precision : {"f32", "f64"}, default "f32"

    Examples
    --------
    >>> import everytree
    >>> table = {"smoker": ["yes", "no"] * 50, "cough": ["yes", "no"] * 45 + ["no", "yes"] * 5}
    >>> model = everytree.DensityEstimator(effort="quick").fit(table)
    >>> model.query(given={"smoker": "yes"}, targets=["cough"])["cough", "yes"] > 0.8
    True
    """

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

    def _fit_options(self) -> dict[str, Any]:
        told = self.get_params()
        if told["effort"] not in ("quick", "normal", "thorough"):
            raise ValueError(f"effort {told['effort']!r}: quick, normal or thorough")
        options: dict[str, Any] = {"family": "auto", "effort": told["effort"], "precision": told["precision"]}
        options["kernel"] = bool(told["kernel"])
        if told["folds"] is not None:
            folds = whole("folds", told["folds"])
            if folds < 1:
                raise ValueError(f"folds {folds}: at least 1")
            options["folds"] = folds
        return options


class Baseline(Density):
    """A baseline: the same questions to a simpler model."""

    _family: str

    def _fit_options(self) -> dict[str, Any]:
        told = self.get_params()
        return {"family": self._family, **{name: told[name] for name in OPTIONS if name in told}}


class IndependentColumns(Baseline):
    """Independent columns: the floor. Several components: latent classes.

    Parameters
    ----------
    components : int or "auto", default 1
    laplace : float, optional
        Laplace smoothing of tables. Default: 1 a table.
    """

    _family = "independent"

    def __init__(
        self,
        components: int | str = 1,
        *,
        laplace: float | None = None,
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


class ChowLiuTree(Baseline):
    """The tree of the highest mutual information (Chow and Liu), smoothed: exact answers to everything.

    Parameters
    ----------
    laplace : float, optional
        Laplace smoothing of tables. Default: 1 a table.
    """

    _family = "chow-liu"

    def __init__(
        self,
        *,
        laplace: float | None = None,
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


class MixtureOfTrees(Baseline):
    """Several trees with mixing weights (Meilă and Jordan), as many as pay on validation rows.

    Parameters
    ----------
    components : int or "auto", default "auto"
    laplace, shrinkage : float, optional
        Laplace smoothing per table, and how much components are shrunk towards what they have in common.
    """

    _family = "mixture-of-trees"

    def __init__(
        self,
        components: int | str = "auto",
        *,
        laplace: float | None = None,
        shrinkage: float | None = None,
        epochs: int | None = None,
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


class HiddenChowLiuTree(Baseline):
    """A tree of latent variables, one behind each column, with as many states as pay on validation rows.

    Parameters
    ----------
    hidden : int or "auto", default "auto"
    epochs, batch_size : int, optional
    """

    _family = "hclt"

    def __init__(
        self,
        hidden: int | str = "auto",
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
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


class KernelDensity(Baseline):
    """A kernel over stored rows (Aitchison and Aitken): every training row, spread out a little.

    The model contains the training rows, and whoever has its file can read them.

    Parameters
    ----------
    laplace : float, optional
        Pseudocount of the margins that rows are spread towards. Default: 1 a column.
    """

    _family = "kernel"

    def __init__(
        self,
        *,
        laplace: float | None = None,
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


for _estimator in (
    DensityEstimator,
    MixtureOfAllTrees,
    IndependentColumns,
    ChowLiuTree,
    MixtureOfTrees,
    HiddenChowLiuTree,
    KernelDensity,
):
    _before, _examples, _after = (_estimator.__doc__ or "").rstrip().partition("\n    Examples\n")
    _estimator.__doc__ = _before.rstrip() + _COMMON + _examples + _after


def fit(table: Any, **parameters: Any) -> DensityEstimator:
    """The best model of a table that was found: :class:`DensityEstimator` with these parameters, fitted.

    >>> import everytree
    >>> table = {"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 45 + ["yes", "no"] * 5}
    >>> everytree.fit(table, effort="quick").score_samples(table).shape
    (100,)
    """
    return DensityEstimator(**parameters).fit(table)


def load(path: str | os.PathLike[str]) -> MixtureOfAllTrees:
    """An estimator with the model of a file, whichever of our programs wrote it.

    It answers questions; its parameters are those of a fresh estimator, not those of the fit behind the file.
    """
    return MixtureOfAllTrees.load(path)


def families() -> dict[str, str]:
    """The families of models that a fit knows, each in a few words.

    >>> import everytree
    >>> everytree.families()["chow-liu"]
    'one tree, of the highest mutual information'
    """
    return dict(_core.families())


def memory_limit() -> int:
    """The number of bytes that may be used: 80 % of what the machine or its container has, unless it was set.

    >>> import everytree
    >>> everytree.memory_limit() > 0
    True
    """
    return _core.memory_limit()


def set_memory_limit(size: int | str) -> None:
    """Say how much memory may be used, in bytes or as ``"8GB"``.

    What would take more is refused before it begins, with a :class:`MemoryError` that names what it needs. One limit for
    the whole process.

    >>> import everytree
    >>> before = everytree.memory_limit()
    >>> everytree.set_memory_limit("8GB")
    >>> everytree.memory_limit()
    8000000000
    >>> everytree.set_memory_limit(before)
    """
    _core.set_memory_limit(str(size))
