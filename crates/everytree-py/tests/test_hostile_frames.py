"""Frames that other programs have got wrong: errors that can be caught, whatever is inside."""

import struct
import threading

import numpy as np
import pandas
import pyarrow as pa
import pytest

import everytree
from everytree import _core


class Stream:
    """Whoever has only the interface: nothing but the core can check what is inside."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def strings(kind, offsets, data):
    letter = "i" if kind == pa.string() else "q"
    buffer = pa.py_buffer(struct.pack(f"{len(offsets)}{letter}", *offsets))
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, buffer, pa.py_buffer(data)])


def beside(column):
    return pa.table({"a": column, "b": ["x", "y"] * (len(column) // 2)})


def indices(keys):
    buffer = pa.py_buffer(struct.pack(f"{len(keys)}i", *keys))
    codes = pa.Array.from_buffers(pa.int32(), len(keys), [None, buffer])
    return pa.DictionaryArray.from_arrays(codes, pa.array(["one", "two"]), safe=False)


BAD = {
    "Latin-1": lambda: strings(pa.string(), [0, 1, 2, 3, 4], b"a\xe9bc"),
    "Latin-1, large": lambda: strings(pa.large_string(), [0, 1, 2, 3, 4], b"a\xe9bc"),
    "half a character": lambda: strings(pa.string(), [0, 1, 2, 3, 4], "aäb".encode()),
    "offsets that fall": lambda: strings(pa.string(), [0, 3, 1, 2, 4], b"abcd"),
    "an offset below zero": lambda: strings(pa.string(), [0, -5, 2, 3, 4], b"abcd"),
    "an offset past the end": lambda: strings(pa.string(), [0, 1_000_000_000, 2, 3, 4], b"abcd"),
    "dictionary index out of range": lambda: indices([0, 1, 7, 0]),
    "dictionary index below zero": lambda: indices([0, 1, -3, 0]),
    "Latin-1 in a dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0, 1], pa.int32()), strings(pa.string(), [0, 1, 2], b"a\xe9"), safe=False
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("wrap", [lambda table: table, Stream], ids=["pyarrow", "stream"])
def test_damaged_columns_are_refused(name, wrap):
    table = wrap(beside(BAD[name]()))
    with pytest.raises(ValueError, match='column "a" is damaged'):
        everytree.MixtureOfAllTrees(epochs=1).fit(table)


@pytest.mark.parametrize("name", BAD)
def test_damaged_columns_of_pandas_are_refused(name):
    # Where pandas keeps Arrow's arrays, which it does with texts by default from version 3 on.
    frame = beside(BAD[name]()).to_pandas(types_mapper=pandas.ArrowDtype)
    with pytest.raises(ValueError, match='column "a" is damaged'):
        everytree.ChowLiuTree().fit(frame)
    good = {"b": ["x", "y"] * 20, "c": ["u", "v"] * 20}
    damaged = BAD[name]()
    for y in (frame["a"], damaged):
        with pytest.raises(ValueError, match='column "y" is damaged'):
            everytree.Classifier(effort="quick").fit(good, y)
        with pytest.raises(ValueError, match='column "sample_weight" is damaged'):
            everytree.ChowLiuTree().fit(good, sample_weight=y)


def test_damaged_columns_are_refused_when_scoring():
    model = everytree.MixtureOfAllTrees(epochs=1).fit(pa.table({"a": ["a", "b"] * 10, "b": ["x", "y"] * 10}))
    with pytest.raises(ValueError, match='column "a" is damaged'):
        model.score_samples(Stream(beside(BAD["Latin-1"]())))


@pytest.mark.parametrize("in_worker", [False, True])
def test_a_mistake_of_ours_is_an_exception(in_worker):
    with pytest.raises(everytree.InternalError, match="please report it: a made-up mistake"):
        _core.panic(in_worker)
    assert issubclass(everytree.InternalError, Exception)


def test_arrays_may_change_while_they_are_learned_from():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, size=(20_000, 8))
    category = pandas.Categorical.from_codes(rng.integers(0, 2, 20_000), ["no", "yes"])
    frame = pandas.DataFrame({**{f"c{i}": table[:, i] for i in range(8)}, "d": category})
    done = threading.Event()

    def write():
        while not done.is_set():
            table[rng.integers(0, 20_000, 100)] = rng.integers(0, 3)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        everytree.MixtureOfAllTrees(epochs=2).fit(frame)
    finally:
        done.set()
        writer.join()


def test_blanks_around_labels_are_not_part_of_them(tmp_path):
    plain = {"a": ["yes", "no"] * 20, "b": ["x", "y"] * 19 + ["y", "x"]}
    spaced = {"a": [" yes", "no\t"] * 20, "b": ["x ", " y"] * 19 + ["y", "x"]}
    path = tmp_path / "spaced.csv"
    pandas.DataFrame(spaced).to_csv(path, index=False)
    expected = everytree.MixtureOfAllTrees(epochs=2).fit(plain)
    answer = expected.query({"a": "yes"}, ["b"])
    for table in [spaced, pandas.DataFrame(spaced), pa.table(spaced), pandas.read_csv(path)]:
        model = everytree.MixtureOfAllTrees(epochs=2).fit(table)
        assert model.query({"a": " yes "}, ["b"])["b"] == answer["b"]
        np.testing.assert_array_equal(model.score_samples(table), expected.score_samples(plain))


def test_whole_numbers_that_floats_confuse():
    large = [2**53, 2**53 + 1] * 20
    model = everytree.MixtureOfAllTrees(epochs=1).fit({"a": large, "b": ["x", "y"] * 20})
    assert model.query({"a": 2**53 + 1}, ["b"])["b"]["y"] > 0.9
    assert model.query({"a": 2**53}, ["b"])["b"]["x"] > 0.9


def test_nulls_among_the_values_of_a_dictionary_are_missing():
    pyarrow = pytest.importorskip("pyarrow")
    values = pyarrow.array(["x", None, "y"])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 2] * 10, pyarrow.int8()), values)
    table = pyarrow.table({"a": column, "b": pyarrow.array(["u", "v", "u"] * 10)})
    assert everytree.ChowLiuTree().fit(table).states_["a"] == ["x", "y", None]
