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


def by_polars(table, model):
    """The same through polars and Arrow, where they can hold the table.

    The scores are the same, all missing cells are filled, and the types are kept.
    """
    try:
        frame = polars.DataFrame(table)
        other = everytree.ChowLiuTree().fit(frame)
    except (TypeError, ValueError, polars.exceptions.PolarsError):
        return
    if other.states_ != model.states_:
        return  # numbers that polars has made floats of, say
    for kind in (frame, frame.to_arrow()):
        own = everytree.ChowLiuTree().fit(kind)
        scores = own.score_samples(kind, missing_as_state=True)
        assert np.array_equal(scores, model.score_samples(table, missing_as_state=True))
        drawn = own.sample(8)
        assert drawn.schema == kind.schema
        assert np.isfinite(own.score_samples(drawn, missing_as_state=True)).all()
    filled = other.impute(frame)
    for name in frame.columns:
        if any(value is not None for value in model.states_[name]):
            # Cells that were there stay as they are, with the blanks around them.
            values = {value.strip() if isinstance(value, str) else value for value in filled[name]}
            assert filled[name].null_count() == 0 and values <= set(model.states_[name])


@st.composite
def frames(draw):
    rows = draw(st.integers(2, 12))
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), min_size=2, max_size=4, unique=True))
    return {name: draw(st.lists(CELLS[draw(st.sampled_from(sorted(CELLS)))], min_size=rows, max_size=rows)) for name in names}


def test_texts_are_what_they_say():
    frame = pandas.DataFrame({"c": ["NA", "FR", "?", ""] * 20, "t": ["true", "FALSE", "True", "x"] * 20})
    model = everytree.ChowLiuTree().fit(frame)
    assert model.states_ == {"c": ["", "?", "FR", "NA"], "t": ["FALSE", "True", "true", "x"]}
    assert set(model.sample(300, random_state=1)["c"]) == {"", "?", "FR", "NA"}
    assert model.impute(frame).equals(frame)
    model = everytree.ChowLiuTree(na="NA").fit(frame)
    assert model.states_["c"] == ["", "?", "FR", None]
    with pytest.raises(ValueError, match="na .*: a list of texts"):
        everytree.ChowLiuTree(na=[1]).fit(frame)
    two = everytree.ChowLiuTree().fit(polars.DataFrame({"t": ["true", "false"] * 20, "y": [0, 1] * 20}))
    assert two.states_["t"] == ["false", "true"]


def test_other_columns_are_passed_over():
    table = survey(100)
    model = everytree.ChowLiuTree().fit(table)
    expected = model.score_samples(table)
    odd = pandas.DataFrame(table).assign(when=pandas.Timestamp("2020-01-01"), what=[{}] * 100)
    assert np.array_equal(model.score_samples(odd), expected)
    assert list(model.impute(odd)) == list(odd)
    odd = polars.DataFrame(table).with_columns(polars.lit([1, 2]).alias("list"), polars.lit(None).alias("null"))
    assert np.array_equal(model.score_samples(odd), expected)
    assert np.array_equal(model.score_samples(odd.to_arrow()), expected)
    assert model.impute(odd).columns == odd.columns
    assert np.array_equal(model.score_samples({**table, "when": [None, object()] * 50}), expected)
    assert np.allclose(model.conditional(odd.with_columns(cough=polars.lit([1])), "cough").sum(axis=1), 1)


def test_names_are_names_even_if_they_look_like_none():
    frame = pandas.DataFrame({"x0": [0, 1, 1, 0, 1] * 20, "x1": [0, 1, 1, 1, 1] * 20})
    model = everytree.ChowLiuTree().fit(frame)
    with pytest.raises(KeyError, match='no column "x0"'):
        model.score_samples(pandas.DataFrame({"foo": [0], "bar": [1]}))
    nameless = everytree.ChowLiuTree().fit(frame.to_numpy())
    assert not hasattr(nameless, "feature_names_in_")
    swapped = frame[["x1", "x0"]]
    assert np.array_equal(nameless.score_samples(swapped), model.score_samples(swapped))
    with pytest.warns(UserWarning, match="has feature names"):
        by_place = nameless.score_samples(pandas.DataFrame({"foo": [0, 1], "bar": [1, 1]}))
    assert np.array_equal(by_place, nameless.score_samples(np.array([[0, 1], [1, 1]])))
    with pytest.warns(UserWarning, match="has feature names"):
        assert np.array_equal(nameless.score_samples(polars.DataFrame({"foo": [0, 1], "bar": [1, 1]})), by_place)


def holes():
    """Columns to be filled whose types are not those of training, and what they may become."""
    ys = list("abc")
    return [
        pandas.DataFrame({"s": [np.nan] * 3, "y": ys}),
        pandas.DataFrame({"s": pandas.Categorical(["yes", None, None]), "y": ys}),
        pandas.DataFrame({"s": pandas.array(["yes", None, None], dtype="string"), "y": ys}),
        polars.DataFrame({"s": polars.Series([None] * 3, dtype=polars.Float64), "y": ys}),
        polars.DataFrame({"s": polars.Series(["yes", None, None], dtype=polars.Enum(["yes"])), "y": ys}),
        polars.DataFrame({"s": [None] * 3, "y": ys}),
        pyarrow.table({"s": pyarrow.nulls(3), "y": ys}),
        pyarrow.record_batch({"s": pyarrow.nulls(3), "y": ys}),
        duckdb.from_arrow(pyarrow.table({"s": ["yes", None, None], "y": ys})),
        pyarrow.table({"s": ["yes", None, None], "y": ys}).to_reader(),
        {"s": np.array([None] * 3, dtype=object), "y": ys},
        {"s": [None] * 3, "y": ys},
    ]


@pytest.mark.parametrize("case", range(len(holes())))
def test_every_hole_is_filled(case):
    model = everytree.ChowLiuTree().fit(pandas.DataFrame({"s": ["yes", "maybe", "no"] * 20, "y": list("abc") * 20}))
    filled = model.impute(holes()[case])
    column = filled["s"]
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    assert values == ["yes", "maybe", "no"]


def test_what_fills_fits():
    X = np.array([["yes", "a"], ["maybe", "b"], ["no", "a"]] * 20)
    gaps = np.array([["", "a"], ["", "b"]])
    filled = everytree.ChowLiuTree(na="").fit(X).impute(gaps)
    assert filled[1].tolist() == ["maybe", "b"] and filled.dtype.kind == "U"
    rng = np.random.default_rng(0)
    real = rng.normal(size=(300, 2))
    model = everytree.ChowLiuTree().fit(pandas.DataFrame(real, columns=["a", "b"]))
    whole = polars.DataFrame({"a": [1, None], "b": [0.1, 0.2]})
    value = model.impute(whole)["a"][1]
    assert value == model.impute(whole.to_pandas())["a"][1] and value != int(value)
    single = model.impute({"a": np.array([1, np.nan], dtype=np.float32), "b": [0.1, 0.2]})["a"]
    assert single.dtype == np.float32 and not np.isnan(single).any()
    masked = np.ma.array([[0, 1], [1, 2], [1, 2]] * 20, mask=[[0, 0], [0, 1], [0, 0]] * 20)
    assert everytree.ChowLiuTree().fit(masked).states_["x1"] == [1, 2, None]
    with pytest.raises(ValueError, match="has an infinite number"):
        everytree.ChowLiuTree().fit(np.array([[1.0, np.inf], [0.0, 1.0]] * 10))


def test_large_numbers_come_back():
    large = [2**63 + 1, 5, 2**64 - 1] * 20
    for frame in (
        pandas.DataFrame({"x": np.array(large, dtype=np.uint64), "y": list("abc") * 20}),
        polars.DataFrame({"x": polars.Series(large, dtype=polars.UInt64), "y": list("abc") * 20}),
    ):
        model = everytree.ChowLiuTree().fit(frame)
        assert set(model.sample(100)["x"].to_list()) == set(large)
        assert model.query({"x": 2**64 - 1}, ["y"])["y", "c"] > 0.8
    arrow = pandas.DataFrame({"x": [True, False, None] * 20, "y": list("abc") * 20}).convert_dtypes(dtype_backend="pyarrow")
    assert everytree.ChowLiuTree().fit(arrow).states_["x"] == [False, True, None]
    mixed = everytree.ChowLiuTree().fit({"m": [1e16, "a"] * 20, "y": [0, 1] * 20})
    assert mixed.states_["m"] == [1e16, "a"] and mixed.query({"m": 1e16}, ["y"])["y", 0] > 0.8
    close = everytree.ChowLiuTree().fit({"m": [2**53 + 1, 2**53, 0.5] * 20, "y": list("abc") * 20})
    assert len(close.states_["m"]) == 3


def test_bins_are_for_every_kind_of_table():
    rng = np.random.default_rng(0)
    real, other = rng.normal(size=50), rng.integers(0, 2, 50)
    for table in (
        {"x": real.tolist(), "y": other.tolist()},
        {"x": real, "y": other},
        pandas.DataFrame({"x": real, "y": other}),
        pandas.DataFrame({"x": real, "y": other}).convert_dtypes(dtype_backend="pyarrow"),
        polars.DataFrame({"x": real, "y": other}),
        pyarrow.table({"x": real, "y": other}),
        duckdb.from_arrow(pyarrow.table({"x": real, "y": other})),
    ):
        assert [len(values) for values in everytree.ChowLiuTree(bins=4).fit(table).states_.values()] == [4, 2]
    X = np.column_stack([real, other])
    assert len(everytree.ChowLiuTree(bins={0: 3}).fit(X).states_["x0"]) == 3
    model = everytree.ChowLiuTree(blocks=[[0, 1]], bins=3).fit(np.column_stack([X, other]))
    assert model.blocks_ == ["x0 + x1", "x2"] and model.query({2: 1}, [0])[0] == model.query({2: 1}, [0])["x0"]


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
            assert not filled[name].isna().any()
    by_polars(table, model)
