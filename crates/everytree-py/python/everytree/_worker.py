"""What runs on the workers of Spark and Ray: a model per process, and scores of batches."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._parameters import seed


def data_of(model: Any) -> bytes:
    """The bytes of the model file: of an estimator, of a path, or as they are."""
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes()
    return model._fitted().to_bytes()


def keywords(how: dict[str, Any]) -> str:
    """Keywords of ``score_samples`` for the core."""
    usual = {"missing_as_state": False, "unknown": "unobserved", "tolerance": 0.05, "trees": 20_000, "random_state": None}
    if unknown := sorted(set(how) - set(usual)):
        raise TypeError(f"score got unexpected keywords {unknown}; it takes {sorted(usual)}")
    told = {**usual, **how}
    own_seed = seed(told.pop("random_state"))
    # A worker is one of many on its machine: one thread each.
    return json.dumps({**told, "seed": own_seed, "threads": 1, "device": "cpu"})


@functools.lru_cache(maxsize=4)
def _model(data: bytes) -> _core.Model:
    return _core.Model.from_bytes(data)


def score(data: bytes, table: Any, how: str) -> np.ndarray:
    """The log-likelihood of every row of a table."""
    scores, _, _ = _model(data).score(table, how)
    return np.frombuffer(scores)
