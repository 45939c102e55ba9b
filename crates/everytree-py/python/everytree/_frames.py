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
    #: columns of text: "True" is not True there
    texts: set[str] = field(default_factory=set)

    @property
    def continuous(self) -> list[str]:
        """Columns of floating-point type."""
        return [name for name, kind in zip(self.names, self.types) if _is_float(kind)]

    def and_also(self, table: Any, name: str, values: np.ndarray) -> Any:
        """The table as the core takes it, with one more column."""
        column = _column(self, name, values)
        self.names, self.labels, self.types = [*self.names, name], [*self.labels, name], [*self.types, None]
        if self.kind == "numpy":
            self.types[-1] = values.dtype
        return [*table, column] if isinstance(table, list) else (table, [column])


def _module(name: str) -> Any:
    """A library, if whoever made the table has loaded it."""
    return sys.modules.get(name)


def _is_float(kind: Any) -> bool:
    if isinstance(kind, np.dtype):
        return kind.kind == "f"
    if hasattr(kind, "is_float"):  # polars
        return bool(kind.is_float())
    return str(kind).lower() in ("float32", "float64", "float", "double", "halffloat")


def _is_pandas(table: Any) -> bool:
    pandas = _module("pandas")
    return pandas is not None and isinstance(table, (pandas.DataFrame, pandas.Series))


def _is_polars(table: Any) -> bool:
    polars = _module("polars")
    return polars is not None and isinstance(table, (polars.DataFrame, polars.LazyFrame))


def look(table: Any) -> tuple[Look, Any]:
    """What a table is like, and the table as the core takes it."""
    if isinstance(table, Look):
        raise TypeError("a table is needed")
    # Before dicts: a sparse array may be one.
    if hasattr(table, "tocsr"):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        )
    if _is_polars(table):
        if hasattr(table, "collect"):
            table = table.collect()
        names = list(table.columns)
        kinds = list(table.schema.values())
        made = Look("polars", names, names, kinds, table.height, True)
        made.texts = {name for name, kind in zip(names, kinds) if not (kind.is_numeric() or str(kind) == "Boolean")}
        return made, table.__arrow_c_stream__()
    if _is_pandas(table):
        return _pandas(table)
    if isinstance(table, dict):
        return _dict(table)
    if hasattr(table, "__arrow_c_stream__"):
        return _arrow(table)
    return _array(table)


# pandas ---------------------------------------------------------------------------------------------------------------


def _pandas(table: Any) -> tuple[Look, Any]:
    if table.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: shape={table.shape}. Reshape your data: a table has rows and columns."
        )
    labels = list(table.columns)
    names = [label if isinstance(label, str) else str(label) for label in labels]
    # Like scikit-learn: names are names if all of them are text.
    named = bool(labels) and all(isinstance(label, str) for label in labels)
    made = Look("pandas", names, labels, list(table.dtypes), len(table), named)
    columns = [_series(made, name, table.iloc[:, place]) for place, name in enumerate(names)]
    return made, columns


def _series(made: Look, name: str, series: Any) -> tuple[str, str, Any, Any]:
    import pandas

    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = dtype.categories
        codes = np.ascontiguousarray(series.cat.codes.to_numpy(), dtype=np.int32)
        if all(isinstance(category, str) for category in categories):
            made.texts.add(name)
            return name, "codes", (codes, list(categories)), None
        values = np.array([*categories.astype(object), None], dtype=object)[codes]
        return _objects(made, name, values.tolist())
    if isinstance(dtype, np.dtype):
        return _column(made, name, series.to_numpy())
    valid = np.ascontiguousarray(series.notna().to_numpy(), dtype=np.uint8)
    if pandas.api.types.is_bool_dtype(dtype):
        values = series.to_numpy(dtype=np.uint8, na_value=0)
        return name, "bool", np.ascontiguousarray(values), valid
    if pandas.api.types.is_signed_integer_dtype(dtype):
        return name, "int", np.ascontiguousarray(series.to_numpy(dtype=np.int64, na_value=0)), valid
    if pandas.api.types.is_float_dtype(dtype):
        return name, "float", np.ascontiguousarray(series.to_numpy(dtype=np.float64, na_value=np.nan)), valid
    return _objects(made, name, series.astype(object).tolist())


# numpy, and anything like it ------------------------------------------------------------------------------------------


def _array(table: Any) -> tuple[Look, Any]:
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
    return made, [_column(made, name, array[:, column]) for column, name in enumerate(names)]


def _dict(table: dict[Any, Any]) -> tuple[Look, Any]:
    labels = list(table)
    names = [str(label) for label in labels]
    lengths = {len(values) for values in table.values()}
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
    made = Look("dict", names, labels, [None] * len(names), lengths.pop() if lengths else 0, True)
    columns = []
    for name, values in zip(names, table.values()):
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
    raise ValueError(
        f'column "{name}" has type {values.dtype}, which has no discrete states here; convert it to text or numbers'
    )


def _objects(made: Look, name: str, values: list[Any]) -> tuple[str, str, Any, Any]:
    kinds = {type(value) for value in values if value is not None}
    if any(issubclass(kind, str) for kind in kinds):
        made.texts.add(name)
    if len(kinds) > 1:
        made.originals[name] = {text(value): value for value in values}
    return name, "objects", values, None


# Arrow ----------------------------------------------------------------------------------------------------------------


def _arrow(table: Any) -> tuple[Look, Any]:
    pyarrow = _module("pyarrow")
    if pyarrow is not None and isinstance(table, pyarrow.RecordBatch):
        table = pyarrow.Table.from_batches([table])
    if pyarrow is not None and isinstance(table, pyarrow.Table):
        names = list(table.column_names)
        made = Look("arrow", names, names, list(table.schema.types), table.num_rows, True)
        made.texts = {name for name, kind in zip(names, made.types) if "string" in str(kind)}
        return made, table.__arrow_c_stream__()
    # Whoever has only the interface (a relation of DuckDB, say) can be looked at once.
    columns = getattr(table, "columns", None)
    names = list(columns) if columns is not None and not callable(columns) else []
    shape = getattr(table, "shape", None)
    rows = shape[0] if isinstance(shape, tuple) else -1
    return Look("arrow", names, names, [None] * len(names), rows, True), table.__arrow_c_stream__()


# Back ------------------------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """A value as the core writes it; nothing for a missing one."""
    if value is None or value is getattr(_module("pandas"), "NA", None):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (float, np.floating)):
        return (
            ""
            if np.isnan(value)
            else str(value)
            if isinstance(value, np.floating) and value.itemsize < 8
            else repr(float(value))
        )
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
            text = made is not None and variable["name"] in made.texts
            values: list[Any] = list(states) if text else [False, True]
        elif binned:
            cells = variable["cells"][: len(states) + 1]
            values = [float(cell) for cell in cells]
            if all(value.is_integer() for value in states):
                values = [int(value) for value in values]
        else:
            values = list(states)
        known = made.originals.get(variable["name"]) if made is not None else None
        if known and kind == "texts":
            values = [known.get(value, value) for value in values]
        return cls(variable["name"], values + [None] * bool(variable["missing"]), binned)

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
        return values.astype(np.int64)
    if kinds and kinds <= {int, float}:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return values


def build(made: Look | None, columns: dict[str, np.ndarray]) -> Any:
    """A table of the kind that was looked at, with these columns of values (None where missing)."""
    if made is None:
        kind = "pandas" if _importable("pandas") else "dict"
        made = Look(kind, list(columns), list(columns), [None] * len(columns), 0, True)
    types = dict(zip(made.names, made.types))
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

        return polars.DataFrame([_as_polars(name, values, types.get(name)) for name, values in columns.items()])
    if made.kind == "arrow" and _importable("pyarrow"):
        import pyarrow

        arrays = [_as_arrow(values, types.get(name)) for name, values in columns.items()]
        return pyarrow.table(arrays, names=list(columns))
    if made.kind == "numpy":
        dtype = made.types[0] if made.types else np.dtype(object)
        simple = [plain(values) for values in columns.values()]
        rows = len(simple[0]) if simple else 0
        if any(values.dtype == object for values in simple):
            dtype = dtype if dtype.kind in "OUT" else np.dtype(object)
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


def fill(table: Any, made: Look, rows: list[int], columns: list[str], values: list[Any]) -> Any:
    """A copy of the table with these cells filled."""
    by_column: dict[str, tuple[list[int], list[Any]]] = {}
    for row, name, value in zip(rows, columns, values):
        places, some = by_column.setdefault(name, ([], []))
        places.append(row)
        some.append(value)
    if made.kind == "pandas":
        import pandas

        parts = []
        for place, name in enumerate(made.names):
            series = table.iloc[:, place]
            if name in by_column:
                series = series.copy()
                places, some = by_column[name]
                series.iloc[places] = some
            parts.append(series)
        filled = pandas.concat(parts, axis=1)
        filled.columns = table.columns
        return filled
    if made.kind == "polars":
        if hasattr(table, "collect"):
            table = table.collect()
        import polars

        parts = []
        for name in made.names:
            series = table[name]
            if name in by_column:
                cells = series.to_list()
                for place, value in zip(*by_column[name]):
                    cells[place] = value
                kind = None if series.dtype == polars.Null else series.dtype
                series = polars.Series(name, cells, strict=False)
                series = series if kind is None else series.cast(kind, strict=False)
            parts.append(series)
        return polars.DataFrame(parts)
    if made.kind == "arrow":
        import pyarrow

        if not isinstance(table, pyarrow.Table):
            raise TypeError("only tables can be filled; convert this to a pyarrow, polars or pandas table first")
        for place, name in enumerate(made.names):
            if name in by_column:
                cells = table.column(place).to_pylist()
                for row, value in zip(*by_column[name]):
                    cells[row] = value
                table = table.set_column(place, name, _as_arrow(np.array(cells, dtype=object), made.types[place]))
        return table
    if made.kind == "dict":
        filled = dict(table)
        for label, name in zip(made.labels, made.names):
            if name in by_column:
                cells = list(filled[label])
                for place, value in zip(*by_column[name]):
                    cells[place] = value
                filled[label] = np.asarray(cells) if isinstance(filled[label], np.ndarray) else cells
        return filled
    array = np.array(table, copy=True)
    for place, name in enumerate(made.names):
        if name in by_column:
            some, cells = by_column[name]
            array[some, place] = cells
    return array
