//! Columns of Python as Arrow. Arrow streams and arrays of numpy are copied, and the copies checked: other programs made
//! them, and another thread of Python may write to them while they are read.

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeStringArray, NullArray, RecordBatch, RecordBatchOptions, RecordBatchReader, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use everytree_read::{Frame, TYPE_NAME, copied};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;

/// A table: a capsule with an Arrow stream, a list of columns, or one with the other.
pub fn frame(table: &Bound<'_, PyAny>, name: &str) -> PyResult<Frame> {
    if let Ok(both) = table.cast::<PyTuple>() {
        return beside(frame(&both.get_item(0)?, name)?, &frame(&both.get_item(1)?, name)?);
    }
    match table.cast::<PyCapsule>() {
        Ok(capsule) => stream(capsule, name),
        Err(_) => columns(table.cast::<PyList>()?, name),
    }
}

fn bad(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn stream(capsule: &Bound<'_, PyCapsule>, name: &str) -> PyResult<Frame> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the name says that a stream is behind the pointer; it is moved out, and what is left behind is released already.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) }.map_err(bad)?;
    let schema = reader.schema();
    let mut batches: Vec<RecordBatch> = Vec::new();
    for batch in reader {
        let batch = batch.map_err(bad)?;
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            let copy = checked(column).map_err(|error| {
                PyValueError::new_err(format!("{name}: column {:?} is damaged: {error}", field.name()))
            })?;
            fields.push(field.as_ref().clone().with_data_type(copy.data_type().clone()).with_nullable(true));
            columns.push(copy);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let own = Arc::new(Schema::new(fields));
        batches.push(RecordBatch::try_new_with_options(own, columns, &options).map_err(bad)?);
    }
    let schema = batches.first().map_or(schema, |batch| batch.schema());
    Ok(Frame { name: name.to_owned(), named: true, schema, batches })
}

/// A copy of a column in which offsets, UTF-8 and indices of dictionaries are what reading relies on.
fn checked(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    // What cannot even be copied; what is wrong by the time of the copy is found there.
    column.to_data().validate_full()?;
    let copy = copied(column)?;
    copy.to_data().validate_full()?;
    Ok(copy)
}

/// Columns as `(name, kind, values, valid)`: what the kinds are is said in [`column`].
fn columns(list: &Bound<'_, PyList>, name: &str) -> PyResult<Frame> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for one in list {
        let one = one.cast_into::<PyTuple>()?;
        let (column_name, kind): (String, String) =
            (one.get_item(0)?.extract()?, one.get_item(1)?.extract()?);
        let (values, valid) = (one.get_item(2)?, one.get_item(3)?);
        let valid = if valid.is_none() { None } else { Some(valid) };
        let (array, type_name) = column(&column_name, &kind, &values, valid.as_ref())?;
        let field = Field::new(column_name, array.data_type().clone(), true);
        let said = type_name.map(|type_name| (TYPE_NAME.to_owned(), type_name));
        fields.push(field.with_metadata(said.into_iter().collect()));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let rows = arrays.first().map_or(0, |array| array.len());
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options).map_err(bad)?;
    Ok(Frame { name: name.to_owned(), named: true, schema, batches: vec![batch] })
}

/// One column: `int`, `float`, `single` and `bool` are arrays of int64, float64, float32 and uint8; `codes` an array of int32
/// and a list of labels, with −1 for missing; `objects` a list; `microseconds` an array of int64, and the name of its type; `others`
/// the name of a type without states, and how many cells there are. With the name of the type, where Arrow has another.
fn column(
    name: &str,
    kind: &str,
    values: &Bound<'_, PyAny>,
    valid: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ArrayRef, Option<String>)> {
    let nulls = valid.map(|valid| -> PyResult<NullBuffer> {
        let bytes = values_of::<u8>(valid)?;
        Ok(bytes.iter().map(|&byte| byte != 0).collect::<Vec<bool>>().into())
    });
    let nulls = nulls.transpose()?;
    let array: ArrayRef = match kind {
        "int" => Arc::new(Int64Array::try_new(values_of(values)?, nulls).map_err(bad)?),
        "float" => Arc::new(Float64Array::try_new(values_of(values)?, nulls).map_err(bad)?),
        "single" => Arc::new(Float32Array::try_new(values_of(values)?, nulls).map_err(bad)?),
        "bool" => {
            let bytes = values_of::<u8>(values)?;
            Arc::new(BooleanArray::new(bytes.iter().map(|&byte| byte != 0).collect(), nulls))
        }
        "codes" => {
            let both = values.cast::<PyTuple>()?;
            let codes = values_of::<i32>(&both.get_item(0)?)?;
            let labels: Vec<String> = both.get_item(1)?.extract()?;
            let valid: NullBuffer = codes.iter().map(|&code| code >= 0).collect::<Vec<bool>>().into();
            let keys = Int32Array::try_new(codes, Some(valid)).map_err(bad)?;
            let labels = Arc::new(StringArray::from(labels));
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, labels).map_err(bad)?)
        }
        "objects" => match objects(name, values.cast::<PyList>()?)? {
            Ok(array) => array,
            Err(class) => return Ok((without_states(values.len()?), Some(class))),
        },
        "microseconds" => {
            let both = values.cast::<PyTuple>()?;
            let array =
                TimestampMicrosecondArray::try_new(values_of(&both.get_item(0)?)?, nulls).map_err(bad)?;
            return Ok((Arc::new(array), Some(both.get_item(1)?.extract()?)));
        }
        "others" => {
            let (type_name, cells) = values.extract()?;
            return Ok((without_states(cells), Some(type_name)));
        }
        other => return Err(PyValueError::new_err(format!("column {name:?}: no kind {other:?}"))),
    };
    Ok((array, None))
}

/// A column of a type that has no states: no model can have it, but it may be left out.
fn without_states(cells: usize) -> ArrayRef {
    new_null_array(&DataType::Binary, cells)
}

/// The values of an array of Python.
fn values_of<T: Element + arrow_buffer::ArrowNativeType>(
    array: &Bound<'_, PyAny>,
) -> PyResult<ScalarBuffer<T>> {
    Ok(PyBuffer::<T>::get(array)?.to_vec(array.py())?.into())
}

/// What a cell of a list is.
enum Item {
    Missing,
    /// Of a type that has no states.
    Other(String),
    Boolean(bool),
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Item {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self::Missing);
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self::Text(text.to_cow()?.into_owned()));
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            return Ok(Self::Boolean(truth.is_true()));
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            let number = number.value();
            return Ok(if number.is_nan() { Self::Missing } else { Self::Real(number) });
        }
        if value.is_instance_of::<PyInt>() {
            // Beyond 64 bits digits are names.
            let number = value.extract::<i64>().map(Self::Integer);
            return number.or_else(|_| Ok(Self::Text(value.str()?.extract()?)));
        }
        // Numbers of numpy, and the missing values of pandas.
        let class = value.get_type().name()?.extract::<String>()?;
        match class.as_str() {
            "NAType" | "NaTType" => return Ok(Self::Missing),
            "bool" | "bool_" => return Ok(Self::Boolean(value.is_truthy()?)),
            _ => {}
        }
        if value.hasattr("dtype")? && value.hasattr("item")? {
            let item = value.call_method0("item")?;
            if !item.hasattr("dtype")? {
                return match class.as_str() {
                    // 0.1 in single precision is the number that people wrote as 0.1.
                    "float32" | "float16" => {
                        let text: String = value.str()?.extract()?;
                        Ok(text.parse().map_or(Self::Missing, |number: f64| match number.is_nan() {
                            true => Self::Missing,
                            false => Self::Real(number),
                        }))
                    }
                    _ => Self::of(&item),
                };
            }
        }
        Ok(Self::Other(class))
    }
}

/// A list of anything: truth values, numbers or texts where all are; else everything as text, as long as that confuses nothing. Or
/// the name of a type without states that is among them.
fn objects(name: &str, list: &Bound<'_, PyList>) -> PyResult<Result<ArrayRef, String>> {
    let items: PyResult<Vec<Item>> = list.iter().map(|value| Item::of(&value)).collect();
    let items = items?;
    if let Some(Item::Other(class)) = items.iter().find(|item| matches!(item, Item::Other(_))) {
        return Ok(Err(class.clone()));
    }
    let (mut booleans, mut integers, mut reals, mut texts) = (0, 0, 0, 0);
    for item in &items {
        match item {
            Item::Missing | Item::Other(_) => {}
            Item::Boolean(_) => booleans += 1,
            Item::Integer(_) => integers += 1,
            Item::Real(_) => reals += 1,
            Item::Text(_) => texts += 1,
        }
    }
    let array: ArrayRef = match (booleans, integers, reals, texts) {
        (0, 0, 0, 0) => Arc::new(NullArray::new(items.len())),
        (_, 0, 0, 0) => Arc::new(BooleanArray::from_iter(items.iter().map(|item| match item {
            Item::Boolean(value) => Some(*value),
            _ => None,
        }))),
        (0, _, 0, 0) => Arc::new(Int64Array::from_iter(items.iter().map(|item| match item {
            Item::Integer(value) => Some(*value),
            _ => None,
        }))),
        (0, _, _, 0)
            if items
                .iter()
                .all(|item| !matches!(item, Item::Integer(value) if value.unsigned_abs() > 1 << 53)) =>
        {
            Arc::new(Float64Array::from_iter(items.iter().map(|item| match item {
                Item::Integer(value) => Some(*value as f64),
                Item::Real(value) => Some(*value),
                _ => None,
            })))
        }
        (0, 0, 0, _) => Arc::new(LargeStringArray::from_iter(items.into_iter().map(|item| match item {
            Item::Text(text) => Some(text),
            _ => None,
        }))),
        _ => mixed(name, items)?,
    };
    Ok(Ok(array))
}

/// A number as Python writes it: `1e+16`.
fn python_text(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power:0>2}"),
        Some((digits, power)) => format!("{digits}e-{:0>2}", &power[1..]),
        None => text,
    }
}

fn mixed(name: &str, items: Vec<Item>) -> PyResult<ArrayRef> {
    let mut seen: HashMap<String, &'static str> = HashMap::new();
    let mut cells = Vec::with_capacity(items.len());
    for item in items {
        let (text, kind) = match item {
            Item::Missing | Item::Other(_) => {
                cells.push(None);
                continue;
            }
            Item::Boolean(value) => ((if value { "True" } else { "False" }).to_owned(), "bool"),
            Item::Integer(value) => (value.to_string(), "int"),
            // As Python writes it.
            Item::Real(value) => (python_text(value), "float"),
            Item::Text(text) => (text, "str"),
        };
        match seen.get(text.as_str()) {
            Some(other) if *other != kind => {
                return Err(PyValueError::new_err(format!(
                    "column {name:?}: {text} is there as {other} and as {kind}; make the column one type"
                )));
            }
            Some(_) => {}
            None => drop(seen.insert(text.clone(), kind)),
        }
        cells.push(Some(text));
    }
    Ok(Arc::new(LargeStringArray::from_iter(cells)))
}

/// Columns of one batch beside those of a table.
fn beside(frame: Frame, more: &Frame) -> PyResult<Frame> {
    let fields = frame.schema.fields().iter().chain(more.schema.fields()).cloned();
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut first = 0;
    let batch = |batch: RecordBatch| {
        let rows = batch.num_rows();
        let from = first;
        first += rows;
        let others =
            more.batches.iter().flat_map(|other| other.columns()).map(|array| array.slice(from, rows));
        let arrays = batch.columns().iter().cloned().chain(others).collect();
        RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(bad)
    };
    if frame.rows() != more.rows() {
        return Err(PyValueError::new_err(format!("{} rows beside {}", frame.rows(), more.rows())));
    }
    let batches: PyResult<Vec<RecordBatch>> = frame.batches.iter().cloned().map(batch).collect();
    Ok(Frame { batches: batches?, schema: Arc::clone(&schema), ..frame })
}

/// The table with nothing in this column, which it may or may not have had.
pub fn without_values(frame: Frame, column: &str) -> PyResult<Frame> {
    let place = frame.schema.fields().iter().position(|field| field.name() == column);
    let mut fields: Vec<Arc<Field>> = frame.schema.fields().iter().cloned().collect();
    let nothing = Arc::new(Field::new(column, arrow_schema::DataType::Null, true));
    match place {
        Some(place) => fields[place] = nothing,
        None => fields.push(nothing),
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = |batch: RecordBatch| {
        let mut arrays = batch.columns().to_vec();
        let empty: ArrayRef = Arc::new(NullArray::new(batch.num_rows()));
        match place {
            Some(place) => arrays[place] = empty,
            None => arrays.push(empty),
        }
        RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(bad)
    };
    let batches: PyResult<Vec<RecordBatch>> = frame.batches.iter().cloned().map(batch).collect();
    Ok(Frame { batches: batches?, schema: Arc::clone(&schema), ..frame })
}

/// Weights of rows.
pub fn numbers(array: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    Ok(values_of::<f64>(array)?.to_vec())
}
