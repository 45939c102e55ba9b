"""Scores of a Spark frame, on its workers.

Spark itself is not needed to import this: it comes with the frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _worker

__all__ = ["score"]


def score(frame: Any, model: Any, column: str = "log_likelihood", **how: Any) -> Any:
    """The frame with one more column: the log-likelihood of every row, the very numbers of ``score_samples``.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    model : estimator, or path of a model file
        It travels with the task; every worker process loads it once.
    column : str
    how : keywords of ``score_samples``
        A row that is not complete is estimated with random numbers of its own: by its place in a batch, so that its
        estimate (not that of complete rows) may differ from ``score_samples`` within the standard error.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    data = _worker.data_of(model)
    keywords = _worker.keywords(how)
    if column in frame.columns:
        raise ValueError(f"the frame has a column {column!r} already; say another with column=")
    schema = StructType([*frame.schema.fields, StructField(column, DoubleType(), True)])

    def scored(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            if batch.num_rows == 0:
                continue
            scores = _worker.score(data, pyarrow.Table.from_batches([batch]).__arrow_c_stream__(), keywords)
            arrays = [*batch.columns, pyarrow.array(scores)]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, column])

    return frame.mapInArrow(scored, schema)
