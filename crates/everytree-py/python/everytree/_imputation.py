"""Copies of tables with cells filled in: in the type that a column has, or in one that can hold what fills it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _frames
from ._frames import Look

#: Places of a column, and what goes there.
Cells = tuple[list[int], list[Any]]


def fill(table: Any, made: Look, cells: dict[str, Cells], trained: dict[str, Any]) -> Any:
    """A copy of the table with these cells filled, by column; ``trained`` are the types that columns had in training."""
    if made.kind == "pandas":
        return _pandas(table, cells, trained)
    if made.kind == "polars":
        return _polars(table, cells)
    if made.kind == "arrow":
        return _arrow(table, cells)
    if made.kind == "dict":
        return _dict(table, cells)
    return _array(table, made, cells)


def _put(before: list[Any], cells: Cells) -> list[Any]:
    after = list(before)
    for place, value in zip(*cells):
        after[place] = value
    return after


def _same(found: list[Any], wanted: list[Any]) -> bool:
    """Are these the values, whatever their type?"""
    return all(one == other for one, other in zip(found, wanted))


# pandas ---------------------------------------------------------------------------------------------------------------


def _pandas(table: Any, cells: dict[str, Cells], trained: dict[str, Any]) -> Any:
    import pandas

    parts = []
    for place, label in enumerate(table.columns):
        name = label if isinstance(label, str) else str(label)
        series = table.iloc[:, place]
        parts.append(_series(series, cells[name], trained.get(name)) if name in cells else series)
    filled = pandas.concat(parts, axis=1)
    filled.columns = table.columns
    return filled


def _series(series: Any, cells: Cells, trained: Any) -> Any:
    import pandas

    places, values = cells
    if isinstance(series.dtype, pandas.CategoricalDtype):
        known = set(series.cat.categories)
        series = series.cat.add_categories(sorted({value for value in values if value not in known}, key=str))
    empty = series.isna().all()
    if not (empty and trained is not None):
        try:
            filled = series.copy()
            filled.iloc[places] = values
            if _same(filled.iloc[places].tolist(), values):
                return filled
        except (TypeError, ValueError):
            pass
    cellwise = series.astype(object)
    cellwise.iloc[places] = values
    if empty and trained is not None:
        # A column of nothing has no type of its own.
        try:
            return cellwise.astype(trained)
        except (TypeError, ValueError):
            pass
    return cellwise.infer_objects()


# polars, Arrow ---------------------------------------------------------------------------------------------------------


def _polars(table: Any, cells: dict[str, Cells]) -> Any:
    import polars

    if hasattr(table, "collect"):
        table = table.collect()
    parts = {}
    for name in table.columns:
        series = table[name]
        if name in cells:
            after = _put(series.to_list(), cells[name])
            series = _as_polars(series, after, polars)
        parts[name] = series
    return polars.DataFrame(parts)


def _as_polars(series: Any, after: list[Any], polars: Any) -> Any:
    if series.dtype != polars.Null:
        try:
            filled = polars.Series(series.name, after, dtype=series.dtype, strict=True)
            if _same(filled.to_list(), after):
                return filled
        except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
            pass
    filled = polars.Series(series.name, after, strict=False)
    if not _same(filled.to_list(), after):
        raise TypeError(f"column {series.name!r} of type {series.dtype} cannot hold what fills it; convert it first")
    return filled


def _arrow(table: Any, cells: dict[str, Cells]) -> Any:
    import pyarrow

    if not isinstance(table, pyarrow.Table):
        table = pyarrow.table(table)
    for place, name in enumerate(table.column_names):
        if name in cells:
            kind = table.schema.types[place]
            after = _put(table.column(place).to_pylist(), cells[name])
            table = table.set_column(place, name, _as_arrow(after, kind, pyarrow))
    return table


def _as_arrow(after: list[Any], kind: Any, pyarrow: Any) -> Any:
    try:
        filled = _frames._as_arrow(np.array(after, dtype=object), None if pyarrow.types.is_null(kind) else kind)
        if _same(filled.to_pylist(), after):
            return filled
    except (TypeError, ValueError, OverflowError):  # pyarrow's own are of these kinds
        pass
    numbers = all(value is None or isinstance(value, (int, float)) for value in after)
    return pyarrow.array(after, type=pyarrow.float64() if numbers else None)


# numpy, and lists ------------------------------------------------------------------------------------------------------


def _column(before: np.ndarray, cells: Cells) -> np.ndarray:
    places, values = cells
    if before.dtype.kind == "U" and all(isinstance(value, str) for value in values):
        before = before.astype(np.result_type(before.dtype, np.array(values).dtype))
    filled = before.copy()
    try:
        filled[places] = values
        if _same(filled[places].tolist(), values):
            return filled
    except (TypeError, ValueError, OverflowError):
        pass
    if before.dtype.kind == "f" or (before.dtype.kind in "iu" and all(isinstance(v, (int, float)) for v in values)):
        try:
            filled = before.astype(np.float64)
            filled[places] = values
            return filled if before.dtype.kind != "f" else filled.astype(before.dtype)
        except (TypeError, ValueError):
            pass
    cellwise = before.astype(object)
    cellwise[places] = values
    return cellwise


def _dict(table: dict[Any, Any], cells: dict[str, Cells]) -> dict[Any, Any]:
    filled = dict(table)
    for label in table:
        if str(label) in cells:
            before = filled[label]
            own = cells[str(label)]
            filled[label] = _column(before, own) if isinstance(before, np.ndarray) else _put(list(before), own)
    return filled


def _array(table: Any, made: Look, cells: dict[str, Cells]) -> np.ndarray:
    array = np.asarray(table)
    columns = [
        _column(array[:, place], cells[name]) if name in cells else array[:, place] for place, name in enumerate(made.names)
    ]
    kind = array.dtype if all(column.dtype == array.dtype for column in columns) else None
    if kind is None:
        same = all(column.dtype.kind == array.dtype.kind for column in columns)
        numbers = all(column.dtype.kind in "biuf" for column in columns)
        kind = np.result_type(*columns) if same or numbers else np.dtype(object)
    out = np.empty(array.shape, dtype=kind)
    for place, column in enumerate(columns):
        out[:, place] = column
    return out
