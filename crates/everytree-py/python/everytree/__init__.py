"""Mixtures of all trees: exactly normalised density models of discrete tables.

>>> import everytree
>>> table = {"smoker": ["yes", "no"] * 50, "cough": ["yes", "no"] * 45 + ["no", "yes"] * 5}
>>> model = everytree.fit(table, effort="quick")
>>> model.score_samples(table).shape
(100,)
"""

from ._classifier import Classifier, MixtureOfAllTreesClassifier
from ._compare import Comparison, compare
from ._conditions import Condition, above, below, between, isin, isnot, likelihood
from ._core import __version__
from ._errors import ImpossibleEvidence, InternalError, UnknownColumn
from ._estimators import (
    ChowLiuTree,
    DensityEstimator,
    HiddenChowLiuTree,
    IndependentColumns,
    KernelDensity,
    MixtureOfAllTrees,
    MixtureOfTrees,
    families,
    fit,
    load,
    memory_limit,
    set_memory_limit,
)
from ._results import Answer, LogProb, MostProbable, Query, Surprisal

__all__ = [
    "Answer",
    "ChowLiuTree",
    "Classifier",
    "Comparison",
    "Condition",
    "DensityEstimator",
    "HiddenChowLiuTree",
    "ImpossibleEvidence",
    "IndependentColumns",
    "InternalError",
    "KernelDensity",
    "LogProb",
    "MixtureOfAllTrees",
    "MixtureOfAllTreesClassifier",
    "MixtureOfTrees",
    "MostProbable",
    "Query",
    "Surprisal",
    "UnknownColumn",
    "__version__",
    "above",
    "below",
    "between",
    "compare",
    "families",
    "fit",
    "isin",
    "isnot",
    "likelihood",
    "load",
    "memory_limit",
    "set_memory_limit",
]
