"""Tables of every kind go in, and come back as they went in."""

import warnings

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everytree
from conftest import survey

CHEAP = everytree.ChowLiuTree()


def kinds():
    table = survey(200)
    frame = pandas.DataFrame(table)
    return {
        "dict": table,
        "pandas": frame,
        "polars": polars.DataFrame(table),
        "lazy": polars.LazyFrame(table),
        "pyarrow": pyarrow.table(table),
        "duckdb": duckdb.from_df(frame),
        "objects": frame.to_numpy(dtype=object),
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_is_the_same_table(kind):
    expected = everytree.ChowLiuTree().fit(survey(200))
    model = everytree.ChowLiuTree().fit(kinds()[kind])
    scores = model.score_samples(kinds()[kind])
    assert np.array_equal(scores, expected.score_samples(survey(200)))
    drawn = model.sample(5, random_state=1)
    if kind == "objects":
        assert drawn.dtype == object and drawn.shape == (5, 5)
    else:
        assert list(pandas.DataFrame(drawn.to_pydict() if kind in ("pyarrow", "duckdb") else drawn).columns) == [
            *survey(1)
        ] or list(drawn.columns) == [*survey(1)]


def typed():
    """Columns of many types."""
    rng = np.random.default_rng(3)
    rows = 120
    some = rng.integers(0, 3, size=rows)
    return pandas.DataFrame(
        {
            "small": some.astype(np.int8),
            "unsigned": some.astype(np.uint16),
            "real": (some / 2).astype(np.float64),
            "single": (some / 10).astype(np.float32),
            "truth": some == 1,
            "word": np.array(["a", "b", "c"], dtype=object)[some],
            "string": pandas.array(np.array(["a", "b", "c"], dtype=object)[some], dtype="string"),
            "nullable": pandas.array(np.where(some == 2, None, some), dtype="Int64"),
            "maybe": pandas.array(np.where(some == 2, None, some == 1), dtype="boolean"),
            "floating": pandas.array(np.where(some == 2, None, some / 4), dtype="Float64"),
            "category": pandas.Categorical(np.array(["x", "y", "z"])[some], categories=["z", "y", "x", "never"]),
            "numbered": pandas.Categorical(some + 10, categories=[12, 11, 10, 9]),
        }
    )


def test_types_of_pandas_come_back():
    frame = typed()
    model = CHEAP.fit(frame)
    drawn = model.sample(50, random_state=2)
    assert drawn.dtypes.to_dict() == frame.dtypes.to_dict()
    for name in frame:
        assert set(drawn[name].dropna().tolist()) <= set(frame[name].dropna().tolist())
    assert np.isfinite(model.score_samples(drawn)).all()
    # What scores is not the type but the value.
    assert np.array_equal(model.score_samples(frame), model.score_samples(frame.astype({"small": "int64"})))
    assert model.states_["single"] == [0.0, 0.1, 0.2]
    assert model.states_["category"] == ["x", "y", "z"]


def test_types_of_polars_and_arrow_come_back():
    frame = polars.DataFrame(
        {
            "small": polars.Series([0, 1, 2, None] * 30, dtype=polars.Int8),
            "word": ["a", "b", "b", None] * 30,
            "category": polars.Series(["u", "v", "v", "u"] * 30, dtype=polars.Categorical),
            "enum": polars.Series(["lo", "hi", "hi", "lo"] * 30, dtype=polars.Enum(["lo", "mid", "hi"])),
            "real": [0.5, 1.5, 1.5, None] * 30,
            "truth": [True, False, None, True] * 30,
        }
    )
    model = CHEAP.fit(frame)
    drawn = model.sample(40, random_state=1)
    assert drawn.schema == frame.schema
    assert np.isfinite(model.score_samples(drawn)).all()
    table = frame.to_arrow()
    drawn = everytree.ChowLiuTree().fit(table).sample(40, random_state=1)
    assert drawn.schema.names == table.schema.names
    assert [drawn.schema.field(name).type for name in ("small", "real", "truth")] == [
        table.schema.field(name).type for name in ("small", "real", "truth")
    ]


def test_missing_is_missing_however_it_is_written():
    values = {
        "None": [1.0, None, 2.0] * 40,
        "NaN": np.array([1.0, np.nan, 2.0] * 40),
        "NA": pandas.array([1, pandas.NA, 2] * 40, dtype="Int64"),
        "object": np.array([1, pandas.NA, 2] * 40, dtype=object),
        "NaT": np.array([1, pandas.NaT, 2] * 40, dtype=object),
    }
    other = ["a", "b", "a"] * 40
    expected = None
    for column in values.values():
        frame = pandas.DataFrame({"x": column, "y": other})
        model = everytree.ChowLiuTree().fit(frame)
        assert model.states_["x"] == [1, 2, None]
        scores = model.score_samples(frame, missing_as_state=True)
        expected = scores if expected is None else expected
        assert np.array_equal(scores, expected)
        assert not model.impute(frame)["x"].isna().any()


def test_mixed_types_come_back():
    table = {"mixed": [1, "one", 2.5, True, None] * 20, "y": list("abcde") * 20}
    model = everytree.ChowLiuTree().fit(table)
    assert sorted(map(repr, model.states_["mixed"])) == sorted(["1", "'one'", "2.5", "True", "None"])
    assert set(map(repr, model.sample(200)["mixed"])) <= {"1", "'one'", "2.5", "True", "None"}
    assert model.query({"mixed": 2.5}, ["y"])["y", "c"] > 0.5
    with pytest.raises(ValueError, match="1 is there as int and as str; make the column one type"):
        everytree.ChowLiuTree().fit({"mixed": [1, "1"] * 20, "y": [0, 1] * 20})
    with pytest.raises(ValueError, match='column "when" has type'):
        everytree.ChowLiuTree().fit(pandas.DataFrame({"when": pandas.to_datetime(["2020-01-01"] * 20), "y": [0, 1] * 10}))
    with pytest.raises(ValueError, match='column "what" has type dict'):
        everytree.ChowLiuTree().fit({"what": [{}, {}] * 10, "y": [0, 1] * 10})


def test_odd_frames():
    cases = [
        (pandas.DataFrame({"a": [], "b": []}), "0 sample"),
        (pandas.DataFrame({"a": [1], "b": [2]}), "one row is too few"),
        (pandas.DataFrame({"a": [1, 2]}), "only one column"),
        (pandas.DataFrame([[1, 2], [2, 1]] * 5, columns=["a", "a"]), 'columns 1 and 2 are both named "a"'),
        (pandas.DataFrame({"a": [None, None], "b": [None, None]}), "every cell is missing"),
        (polars.DataFrame({"a": [1, 2]}), "only one column"),
        (polars.DataFrame({"a": [], "b": []}), "0 sample"),
        (np.zeros(3), "Reshape your data"),
        ({"a": [1, 2], "b": [1]}, "different lengths"),
    ]
    for frame, words in cases:
        with pytest.raises(ValueError, match=words):
            everytree.ChowLiuTree().fit(frame)
    labels = [f"label {number}" for number in range(40_000)]
    with pytest.raises(ValueError, match='column "id" has more than .* different values.*max_states'):
        everytree.ChowLiuTree().fit(pandas.DataFrame({"id": labels, "y": [0, 1] * 20_000}))
    names = pandas.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    index = pandas.MultiIndex.from_product([range(20), list("xy")])
    frame = pandas.DataFrame(np.random.default_rng(0).integers(0, 2, (40, 3)), columns=names, index=index)
    model = everytree.ChowLiuTree().fit(frame)
    assert model.sample(3).columns.equals(names)
    assert model.query({("a", 1): 0}, [("b", 1)]).answers[0].column == "('b', 1)"
    holes = frame.astype(float)
    holes.iloc[3, 1] = np.nan
    filled = model.impute(holes)
    assert filled.index.equals(index) and filled.columns.equals(names) and not filled.isna().any().any()
    with pytest.raises(KeyError, match='no column "c"'):
        model.query({"c": 1})
    constant = everytree.ChowLiuTree().fit(pandas.DataFrame({"a": [1] * 30, "b": [0, 1] * 15}))
    assert constant.notes_ == ['constant: 1 column ("a")']


def test_columns_are_found_by_name():
    frame = pandas.DataFrame(survey(100))
    model = everytree.ChowLiuTree().fit(frame)
    expected = model.score_samples(frame)
    assert np.array_equal(model.score_samples(frame[frame.columns[::-1]].assign(more=1)), expected)
    with pytest.raises(KeyError, match='no column "age"'):
        model.score_samples(frame.drop(columns="age"))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.score_samples(frame.to_numpy(dtype=object)), expected)


CELLS = {
    "integers": st.one_of(st.none(), st.integers(-3, 3)),
    "booleans": st.one_of(st.none(), st.booleans()),
    "texts": st.one_of(st.none(), st.sampled_from(["", "a", "NA", "ä", "a,b", '"q"', "true", " x", "1"])),
    "reals": st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.1, 1e17, 2.5, float("nan"), float("inf")])),
    "mixed": st.one_of(st.none(), st.sampled_from([1, "b", 2.5, False])),
}


@st.composite
def frames(draw):
    rows = draw(st.integers(2, 12))
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), min_size=2, max_size=4, unique=True))
    return {name: draw(st.lists(CELLS[draw(st.sampled_from(sorted(CELLS)))], min_size=rows, max_size=rows)) for name in names}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(frames())
def test_any_frame_is_learned_or_refused_with_words(table):
    frame = pandas.DataFrame(table, dtype=object)
    try:
        model = everytree.ChowLiuTree().fit(frame)
    except ValueError as error:
        assert str(error)
        return
    scores = model.score_samples(frame, missing_as_state=True)
    assert np.isfinite(scores).all()
    assert np.array_equal(everytree.ChowLiuTree().fit(table).score_samples(table, missing_as_state=True), scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = model.sample(8)
    assert np.isfinite(model.score_samples(drawn, missing_as_state=True)).all()
    filled = model.impute(frame)
    for name in frame:
        values = model.states_[name]
        if any(value is not None for value in values):
            assert not filled[name].isna().any() or None in [value for value in values[:-1]]
