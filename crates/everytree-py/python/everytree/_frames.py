"""Tables of any kind into the core, and back out as they came.

A table is looked at once (:func:`look`): what kind it is, which columns it has and of which types. The core takes an Arrow
stream, or columns as ``(name, kind, values, valid)``; see ``frame.rs`` for the kinds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Look:
    """What a table is like, without its rows."""

    kind: str  #: "pandas", "polars", "arrow", "dict" or "numpy"
    names: list[str]  #: of the columns, as text
    labels: list[Any]  #: the same as the table has them
    types: list[Any]  #: of the columns, in the words of its library
    rows: int
    named: bool  #: does the table have names of its own?
    #: of columns with values of several types: the values by their text
    originals: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: the table itself, where its columns cannot be named otherwise
    source: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # What it was like is kept, the rows are not.
        return {**self.__dict__, "source": None}

    def and_also(self, table: Any, name: str, values: np.ndarray) -> tuple[Look, Any]:
        """What the table is like with one more column, and the table as the core takes it."""
        kind = values.dtype if self.kind == "numpy" else None
        made = Look(
            self.kind, [*self.names, name], [*self.labels, name], [*self.types, kind], self.rows, self.named, self.originals
        )
        column = _column(made, name, values)
        return made, [*table, column] if isinstance(table, list) else (table, [column])


def _module(name: str) -> Any:
    """A library, if whoever made the table has loaded it."""
    return sys.modules.get(name)


def _is_pandas(table: Any) -> bool:
    pandas = _module("pandas")
    return pandas is not None and isinstance(table, (pandas.DataFrame, pandas.Series))


def _is_polars(table: Any) -> bool:
    polars = _module("polars")
    return polars is not None and isinstance(table, (polars.DataFrame, polars.LazyFrame, polars.Series))


def look(table: Any, only: Any = None) -> tuple[Look, Any]:
    """What a table is like, and the table as the core takes it; of a table with names ``only`` these columns, if it has any."""
    # Before dicts: a sparse array may be one.
    if hasattr(table, "tocsr"):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        )
    if _is_polars(table):
        return _polars(table, only)
    if _is_pandas(table):
        return _pandas(table, only)
    if isinstance(table, dict):
        return _dict(table, only)
    if hasattr(table, "__arrow_c_stream__"):
        return _arrow(table)
    return _array(table)


def renamed(made: Look, table: Any, names: list[str], named: bool) -> Any:
    """Another table, whose columns are taken by their places where one of the two has no names."""
    if (made.named and named) or made.names == names or not names:
        return table
    if len(made.names) != len(names):
        raise ValueError(f"{len(made.names)} columns where there should be {len(names)}")
    return under(made, table, names)


def under(made: Look, table: Any, names: list[str]) -> Any:
    """The table under these names."""
    if isinstance(table, list):
        return [(name, *column[1:]) for name, column in zip(names, table)]
    if made.source is None or made.names == names:
        return table
    # An Arrow stream has its names inside.
    if made.kind == "polars":
        return made.source.rename(dict(zip(made.names, names))).__arrow_c_stream__()
    return made.source.rename_columns(names).__arrow_c_stream__()


def unobserved(made: Look, table: Any, names: list[str]) -> Any:
    """The table with columns of missing cells under these names; those that it has of these names are taken out."""
    if made.rows < 0 or not made.named:
        raise ValueError("drop: a table with names, whose rows can be counted, is needed")
    if isinstance(table, list):
        table = [column for column in table if column[0] not in names]
    elif made.source is not None and set(names) & set(made.names):
        kept = [name for name in made.names if name not in names]
        table = made.source.select(kept).__arrow_c_stream__()
    more = [(name, "objects", [None] * made.rows, None) for name in names]
    return [*table, *more] if isinstance(table, list) else (table, more)


def check_arrow(name: str, values: Any) -> None:
    """Values that Arrow keeps, in an array of its own or in one of pandas, are whole; others are left alone.

    How long buffers are is known to pyarrow only: neither the interface to the core nor pandas looks.
    """
    pyarrow = _module("pyarrow")
    pandas = _module("pandas")
    if pyarrow is None:
        return
    if pandas is not None:
        values = values.array if isinstance(values, (pandas.Series, pandas.Index)) else values
        if isinstance(values, pandas.Categorical):
            check_arrow(name, values.categories)
            return
        kinds = (getattr(pandas.arrays, "ArrowExtensionArray", ()), getattr(pandas.arrays, "ArrowStringArray", ()))
        if isinstance(values, kinds):
            values = values.__arrow_array__()
    if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)):
        try:
            values.validate(full=True)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f'column "{name}" is damaged: {error}') from None


# polars ---------------------------------------------------------------------------------------------------------------


def _polars(table: Any, only: Any) -> tuple[Look, Any]:
    import polars

    if isinstance(table, polars.Series):
        raise ValueError("Expected 2D array, got a Series. Reshape your data: a table has rows and columns.")
    if hasattr(table, "collect"):
        table = table.collect()
    if only is not None and any(name in only for name in table.columns):
        table = table.select([name for name in table.columns if name in only])
    names = list(table.columns)
    made = Look("polars", names, names, list(table.schema.values()), table.height, True)
    for name, kind in table.schema.items():
        if kind == polars.Null:
            table = table.with_columns(polars.col(name).cast(polars.String))
        elif kind == polars.UInt64 and (table[name].max() or 0) >= 2**63:
            made.originals[name] = {str(value): value for value in table[name].unique().to_list() if value is not None}
            table = table.with_columns(polars.col(name).cast(polars.String))
    made.source = table
    return made, table.__arrow_c_stream__()


# pandas ---------------------------------------------------------------------------------------------------------------


def _pandas(table: Any, only: Any) -> tuple[Look, Any]:
    if table.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: shape={table.shape}. Reshape your data: a table has rows and columns."
        )
    # Like scikit-learn: names are names if all of them are text.
    named = len(table.columns) > 0 and all(isinstance(label, str) for label in table.columns)
    if only is not None and named and any(name in only for name in table.columns):
        table = table.loc[:, [name in only for name in table.columns]]
    labels = list(table.columns)
    names = [label if isinstance(label, str) else str(label) for label in labels]
    made = Look("pandas", names, labels, list(table.dtypes), len(table), named)
    columns = [_series(made, name, table.iloc[:, place]) for place, name in enumerate(names)]
    return made, columns


def _series(made: Look, name: str, series: Any) -> tuple[str, str, Any, Any]:
    import pandas

    check_arrow(name, series)
    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = dtype.categories
        codes = np.ascontiguousarray(series.cat.codes.to_numpy(), dtype=np.int32)
        if all(isinstance(category, str) for category in categories):
            return name, "codes", (codes, list(categories)), None
        values = np.array([*categories.astype(object), None], dtype=object)[codes]
        return _objects(made, name, values.tolist())
    if isinstance(dtype, np.dtype):
        return _column(made, name, series.to_numpy())
    valid = np.ascontiguousarray(series.notna().to_numpy(), dtype=np.uint8)
    if pandas.api.types.is_bool_dtype(dtype):
        values = np.ascontiguousarray(series.to_numpy(dtype=bool, na_value=False))
        return name, "bool", values.view(np.uint8), valid
    if pandas.api.types.is_signed_integer_dtype(dtype):
        return name, "int", np.ascontiguousarray(series.to_numpy(dtype=np.int64, na_value=0)), valid
    if pandas.api.types.is_float_dtype(dtype):
        return name, "float", np.ascontiguousarray(series.to_numpy(dtype=np.float64, na_value=np.nan)), valid
    return _objects(made, name, series.astype(object).tolist())


# numpy, and anything like it ------------------------------------------------------------------------------------------


def _array(table: Any) -> tuple[Look, Any]:
    mask = np.ma.getmaskarray(table) if isinstance(table, np.ma.MaskedArray) else None
    array = np.asarray(table)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported\n" + str(array))
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: shape={array.shape}. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    names = [f"x{column}" for column in range(array.shape[1])]
    made = Look("numpy", names, list(range(len(names))), [array.dtype] * len(names), array.shape[0], False)
    columns = [_column(made, name, array[:, column]) for column, name in enumerate(names)]
    if mask is not None:
        columns = [_masked(column, ~mask[:, place]) for place, column in enumerate(columns)]
    return made, columns


def _masked(column: tuple[str, str, Any, Any], there: np.ndarray) -> tuple[str, str, Any, Any]:
    """A column without the cells that are masked."""
    name, kind, values, _ = column
    if kind == "objects":
        return name, kind, [value if some else None for value, some in zip(values, there)], None
    return name, kind, values, np.ascontiguousarray(there, dtype=np.uint8)


def _dict(table: dict[Any, Any], only: Any) -> tuple[Look, Any]:
    if only is not None and any(str(label) in only for label in table):
        table = {label: values for label, values in table.items() if str(label) in only}
    labels = list(table)
    names = [str(label) for label in labels]
    lengths = {len(values) for values in table.values()}
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
    made = Look("dict", names, labels, [None] * len(names), lengths.pop() if lengths else 0, True)
    columns = []
    for name, values in zip(names, table.values()):
        check_arrow(name, values)
        if isinstance(values, np.ndarray):
            columns.append(_column(made, name, values))
        else:
            columns.append(_objects(made, name, list(values)))
    return made, columns


def _column(made: Look, name: str, values: np.ndarray) -> tuple[str, str, Any, Any]:
    kind = values.dtype.kind
    if kind == "b":
        return name, "bool", np.ascontiguousarray(values).view(np.uint8), None
    if kind in "iu":
        if kind == "u" and values.size and values.max() > np.iinfo(np.int64).max:
            return _objects(made, name, values.tolist())
        return name, "int", np.ascontiguousarray(values, dtype=np.int64), None
    if kind == "f":
        if values.dtype.itemsize <= 4:
            return name, "single", np.ascontiguousarray(values, dtype=np.float32), None
        return name, "float", np.ascontiguousarray(values, dtype=np.float64), None
    if kind in "OUT":
        return _objects(made, name, values.tolist())
    if kind == "M":
        made_of = values.astype("datetime64[us]")
        there = np.ascontiguousarray(~np.isnat(made_of), dtype=np.uint8)
        return name, "microseconds", (np.ascontiguousarray(made_of.view(np.int64)), str(values.dtype)), there
    # It may be among the columns that are left out.
    return name, "others", (str(values.dtype), len(values)), None


def _objects(made: Look, name: str, values: list[Any]) -> tuple[str, str, Any, Any]:
    kinds = {type(value) for value in values if value is not None}
    large = int in kinds and any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values)
    if len(kinds) > 1 or large:
        made.originals[name] = {key: value for value in values if (key := text(value)) is not None}
    return name, "objects", values, None


# Arrow ----------------------------------------------------------------------------------------------------------------


def _arrow(table: Any) -> tuple[Look, Any]:
    pyarrow = _module("pyarrow")
    if pyarrow is not None and isinstance(table, (pyarrow.Array, pyarrow.ChunkedArray)):
        raise ValueError("Expected 2D array, got one column. Reshape your data: a table has rows and columns.")
    if pyarrow is not None and isinstance(table, pyarrow.RecordBatch):
        table = pyarrow.Table.from_batches([table])
    if pyarrow is not None and isinstance(table, pyarrow.Table):
        names = list(table.column_names)
        for name, column in zip(names, table.columns):
            check_arrow(name, column)
        made = Look("arrow", names, names, list(table.schema.types), table.num_rows, True)
        made.source = table
        return made, table.__arrow_c_stream__()
    # Whoever has only the interface (a relation of DuckDB, say) can be looked at once.
    columns = getattr(table, "columns", None)
    names = list(columns) if columns is not None and not callable(columns) else []
    shape = getattr(table, "shape", None)
    rows = shape[0] if isinstance(shape, tuple) else -1
    return Look("arrow", names, names, [None] * len(names), rows, True), table.__arrow_c_stream__()


# Back ------------------------------------------------------------------------------------------------------------------


def text(value: Any) -> str | None:
    """A value as the core writes it; None for a missing one."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return None
        short = isinstance(value, np.floating) and value.itemsize < 8
        return str(value) if short else repr(float(value))
    return str(value)


@dataclass
class Values:
    """The values of a column by their states; the last is None where missing is one."""

    name: str
    values: list[Any]
    binned: bool

    @classmethod
    def of(cls, variable: dict[str, Any], made: Look | None) -> Values:
        ((kind, states),) = variable["states"].items()
        binned = kind == "bins"
        if kind == "booleans":
            values: list[Any] = [False, True]
        elif binned:
            cells = variable["cells"][: len(states) + 1]
            values = [float(cell) for cell in cells]
            if all(value.is_integer() for value in states):
                values = [int(value) for value in values]
        else:
            values = list(states) + ["other"] * (kind == "others")
        known = made.originals.get(variable["name"]) if made is not None else None
        if known and kind in ("texts", "others"):
            values = [known.get(value, value) for value in values]
        return cls(variable["name"], values + [None] * bool(variable["missing"]), binned)

    def within(self, numbers: list[float]) -> Values:
        """The same with other numbers for its bins, as long as whole numbers stay whole."""
        whole = all(isinstance(value, int) for value in self.values[: len(numbers)])
        made = [int(x) if whole and x.is_integer() else x for x in numbers]
        return Values(self.name, made + self.values[len(numbers) :], self.binned)

    def take(self, codes: np.ndarray) -> np.ndarray:
        """The values of these states."""
        array = np.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array[codes]


def plain(values: np.ndarray) -> np.ndarray:
    """An array of the simplest type that has all of its values."""
    present = [value for value in values if value is not None]
    missing = len(present) < len(values)
    kinds = {type(value) for value in present}
    if kinds <= {bool} and not missing and kinds:
        return values.astype(bool)
    if kinds == {int} and not missing:
        small = all(-(2**63) <= value < 2**63 for value in present)
        return values.astype(np.int64) if small else values
    if kinds and kinds <= {int, float}:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return values


def build(made: Look | None, columns: dict[str, np.ndarray], ids: dict[str, list[int]]) -> Any:
    """A table of the kind that was looked at, with these columns of values (None where missing), behind numbers for the ids.

    An array has no place for ids: its columns are of one type, and those of the model.
    """
    if made is None:
        kind = "pandas" if _importable("pandas") else "dict"
        made = Look(kind, list(columns), list(columns), [None] * len(columns), 0, True)
    # Numbers stand for ids of any type.
    types = {name: kind for name, kind in zip(made.names, made.types) if name not in ids}
    if made.kind != "numpy":
        columns = {**{name: np.array(numbers, dtype=object) for name, numbers in ids.items()}, **columns}
    labels = dict(zip(made.names, made.labels))
    if made.kind == "pandas":
        import pandas

        parts = [_as_pandas(values, types.get(name)) for name, values in columns.items()]
        frame = pandas.concat(parts, axis=1) if parts else pandas.DataFrame()
        wanted = [labels.get(name, name) for name in columns]
        tuples = bool(wanted) and all(isinstance(label, tuple) for label in wanted)
        frame.columns = pandas.MultiIndex.from_tuples(wanted) if tuples else wanted
        return frame
    if made.kind == "polars":
        import polars

        return polars.DataFrame({name: _as_polars(name, values, types.get(name)) for name, values in columns.items()})
    if made.kind == "arrow" and _importable("pyarrow"):
        import pyarrow

        arrays = [_as_arrow(values, types.get(name)) for name, values in columns.items()]
        return pyarrow.table(arrays, names=list(columns))
    if made.kind == "numpy":
        dtype = made.types[0] if made.types else np.dtype(object)
        simple = [plain(values) for values in columns.values()]
        rows = len(simple[0]) if simple else 0
        if any(values.dtype == object for values in simple):
            whole = all(isinstance(value, str) for values in simple for value in values)
            dtype = dtype if dtype.kind in "UT" and whole else np.dtype(object)
        elif dtype.kind in "biu" and any(values.dtype.kind == "f" for values in simple):
            dtype = np.dtype(np.float64)
        out = np.empty((rows, len(simple)), dtype=dtype)
        for place, values in enumerate(simple):
            out[:, place] = values
        return out
    return {labels.get(name, name): values.tolist() for name, values in columns.items()}


def _importable(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def _as_pandas(values: np.ndarray, dtype: Any) -> Any:
    import pandas

    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return pandas.Series(values, dtype=object)
    simple = plain(values)
    if dtype is None:
        return pandas.Series(simple)
    if isinstance(dtype, pandas.CategoricalDtype):
        return pandas.Series(pandas.Categorical(values, dtype=dtype))
    try:
        return pandas.Series(simple if simple.dtype != object else values, dtype=dtype)
    except (TypeError, ValueError):
        # Missing values in a type that has none, or numbers that do not fit it.
        return pandas.Series(simple)


def _as_polars(name: str, values: np.ndarray, dtype: Any) -> Any:
    import polars

    series = polars.Series(name, values.tolist(), strict=False)
    return series if dtype is None else series.cast(dtype, strict=False)


def _as_arrow(values: np.ndarray, dtype: Any) -> Any:
    import pyarrow

    if dtype is not None and pyarrow.types.is_dictionary(dtype):
        return pyarrow.array(values.tolist()).dictionary_encode().cast(dtype)
    return pyarrow.array(values.tolist(), type=dtype)
