"""Scores of a Ray dataset, on its workers.

Ray itself is not needed to import this: it comes with the dataset.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _frames, _worker

__all__ = ["Scorer"]


class Scorer:
    """For ``dataset.map_batches``: adds the log-likelihood of every row, the very numbers of ``score_samples``.

    >>> scored = dataset.map_batches(                                       # doctest: +SKIP
    ...     Scorer, fn_constructor_args=[Scorer.pack(model)], batch_format="pyarrow", concurrency=2
    ... )

    Every worker makes one, and with it loads the model once.

    Parameters
    ----------
    model : estimator, path of a model file, or what :meth:`pack` made
    column : str
    how : keywords of ``score_samples``
    """

    def __init__(self, model: Any, column: str = "log_likelihood", **how: Any) -> None:
        self._data = _worker.data_of(model)
        self._how = _worker.keywords(how)
        self._column = column

    @staticmethod
    def pack(model: Any) -> bytes:
        """The model as bytes, to be sent to workers."""
        return _worker.data_of(model)

    def __call__(self, batch: Any) -> Any:
        if self._column in (batch.column_names if hasattr(batch, "column_names") else list(batch)):
            raise ValueError(f"the batch has a column {self._column!r} already; say another with column=")
        made, table = _frames.look(batch)
        scores = np.empty(0) if made.rows == 0 else _worker.score(self._data, table, self._how)
        if isinstance(batch, dict):
            return {**batch, self._column: scores}
        if made.kind == "pandas":
            return batch.assign(**{self._column: scores})
        import pyarrow

        return batch.append_column(self._column, pyarrow.array(scores))
