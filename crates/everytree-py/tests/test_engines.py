"""Scores inside Spark and Ray are the numbers of `score_samples`."""

import os
import shutil
import sys

import numpy as np
import pandas
import pytest

import everytree
from conftest import survey


@pytest.fixture(scope="module")
def frame():
    return pandas.DataFrame(survey(5000, seed=3))


@pytest.fixture(scope="module")
def learned():
    return everytree.MixtureOfAllTrees("directed", epochs=5).fit(pandas.DataFrame(survey(1000)))


def test_workers_score_alike(frame, learned):
    """What the workers of both engines do, without either."""
    import pyarrow

    from everytree import _worker

    how = _worker.keywords({"unknown": "error", "random_state": 3})
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    scores = _worker.score(_worker.data_of(learned), table.__arrow_c_stream__(), how)
    assert np.array_equal(scores, learned.score_samples(frame))


@pytest.mark.full
def test_spark(frame, learned, tmp_path):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        print("\n*** SKIPPED: there is no Java, so nothing is known about Spark ***", file=sys.__stderr__)
        pytest.skip("no Java")
    from pyspark.sql import SparkSession

    import everytree.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        table = session.createDataFrame(frame.assign(row=np.arange(len(frame)))).repartition(4)
        learned.save(tmp_path / "model.everytree")
        for model in (learned, tmp_path / "model.everytree"):
            scored = everytree.spark.score(table, model).toPandas().sort_values("row")
            assert np.array_equal(scored["log_likelihood"].to_numpy(), learned.score_samples(frame))
            assert list(scored.columns) == [*frame.columns, "row", "log_likelihood"]
        with pytest.raises(ValueError, match="has a column 'row' already"):
            everytree.spark.score(table, learned, column="row")
        with pytest.raises(TypeError, match="unexpected keywords"):
            everytree.spark.score(table, learned, colour="red")
    finally:
        session.stop()


@pytest.mark.full
def test_ray(frame, learned):
    import ray

    from everytree.ray import Scorer

    # Two workers, and room for what reads and sorts.
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    try:
        data = ray.data.from_pandas(frame.assign(row=np.arange(len(frame)))).repartition(4)
        for batch_format in ("pyarrow", "pandas"):
            scored = data.map_batches(
                Scorer, fn_constructor_args=[Scorer.pack(learned)], batch_format=batch_format, concurrency=2
            )
            table = scored.to_pandas().sort_values("row")
            assert np.array_equal(table["log_likelihood"].to_numpy(), learned.score_samples(frame))
    finally:
        ray.shutdown()


def test_workers_load_a_model_once(learned):
    from everytree import _worker

    data = _worker.data_of(learned)
    assert _worker._model(data) is _worker._model(bytes(data))
