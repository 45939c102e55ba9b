//! Arrow columns of other programs, copied and checked.
//!
//! Buffers behind an Arrow array may be somebody's: an array of numpy that another thread of Python writes to while we read. What
//! was checked there need not hold a moment later, and reading relies on it: offsets, UTF-8, indices of dictionaries. So each
//! column is copied, and the copy is what is checked. Only the part that a batch looks at is copied, since batches share buffers.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, GenericStringArray, OffsetSizeTrait, PrimitiveArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;

/// A copy of a column that nobody else can write to. Columns of types that are never read stay as they are.
pub fn copied(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = bits(array.as_boolean().values());
            Arc::new(BooleanArray::new(values, nulls(array)))
        }
        DataType::Int8 => primitive::<Int8Type>(array)?,
        DataType::Int16 => primitive::<Int16Type>(array)?,
        DataType::Int32 => primitive::<Int32Type>(array)?,
        DataType::Int64 => primitive::<Int64Type>(array)?,
        DataType::UInt8 => primitive::<UInt8Type>(array)?,
        DataType::UInt16 => primitive::<UInt16Type>(array)?,
        DataType::UInt32 => primitive::<UInt32Type>(array)?,
        DataType::UInt64 => primitive::<UInt64Type>(array)?,
        DataType::Float16 => primitive::<Float16Type>(array)?,
        DataType::Float32 => primitive::<Float32Type>(array)?,
        DataType::Float64 => primitive::<Float64Type>(array)?,
        DataType::Utf8 => strings::<i32>(array)?,
        DataType::LargeUtf8 => strings::<i64>(array)?,
        DataType::Utf8View => views(array)?,
        DataType::Dictionary(keys, _) => match **keys {
            DataType::Int8 => dictionary::<Int8Type>(array)?,
            DataType::Int16 => dictionary::<Int16Type>(array)?,
            DataType::Int32 => dictionary::<Int32Type>(array)?,
            DataType::Int64 => dictionary::<Int64Type>(array)?,
            DataType::UInt8 => dictionary::<UInt8Type>(array)?,
            DataType::UInt16 => dictionary::<UInt16Type>(array)?,
            DataType::UInt32 => dictionary::<UInt32Type>(array)?,
            _ => dictionary::<UInt64Type>(array)?,
        },
        _ => Arc::clone(array),
    })
}

fn bits(of: &BooleanBuffer) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from(of.sliced().as_slice()), 0, of.len())
}

fn nulls(array: &ArrayRef) -> Option<NullBuffer> {
    array.nulls().map(|nulls| NullBuffer::new(bits(nulls.inner())))
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let values = ScalarBuffer::from(array.as_primitive::<T>().values().to_vec());
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls(array))?))
}

fn outside() -> ArrowError {
    ArrowError::InvalidArgumentError("a text outside of its column".to_owned())
}

fn strings<O: OffsetSizeTrait>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let array_of = array.as_string::<O>();
    let offsets: Vec<O> = array_of.offsets().to_vec();
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let bytes = array_of.values().as_slice().get(first..last).ok_or_else(outside)?;
    if offsets.windows(2).any(|both| both[1] < both[0]) {
        return Err(outside());
    }
    let offsets = offsets.iter().map(|&offset| offset - offsets[0]).collect::<Vec<O>>();
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(GenericStringArray::<O>::try_new(offsets, Buffer::from(bytes), nulls(array))?))
}

/// Views as texts one after the other.
fn views(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let array_of = array.as_string_view();
    let buffers = array_of.data_buffers();
    let (mut bytes, mut offsets) = (Vec::new(), vec![0i64]);
    for (row, view) in array_of.views().to_vec().into_iter().enumerate() {
        let length = (view as u32) as usize;
        if array_of.is_null(row) {
            // Whatever stands there.
        } else if length <= 12 {
            bytes.extend_from_slice(&view.to_le_bytes()[4..4 + length]);
        } else {
            let (buffer, first) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
            let text = buffers.get(buffer).and_then(|buffer| buffer.get(first..first.checked_add(length)?));
            bytes.extend_from_slice(text.ok_or_else(outside)?);
        }
        offsets.push(bytes.len() as i64);
    }
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(GenericStringArray::<i64>::try_new(offsets, Buffer::from_vec(bytes), nulls(array))?))
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let array_of = array.as_dictionary::<K>();
    let keys = array_of.keys();
    let keys_of = ScalarBuffer::from(keys.values().to_vec());
    let nulls = keys.nulls().map(|nulls| NullBuffer::new(bits(nulls.inner())));
    let keys = PrimitiveArray::<K>::try_new(keys_of, nulls)?;
    Ok(Arc::new(DictionaryArray::<K>::try_new(keys, copied(array_of.values())?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int32Array, LargeStringArray, NullArray, StringArray, StringViewArray};

    #[test]
    fn copies_are_equal_and_elsewhere() {
        let long = "a text of more than twelve bytes";
        let texts = [Some("x"), None, Some(long), Some("größe"), Some("")];
        let keys = Int32Array::from(vec![Some(4), None, Some(0), Some(2), Some(1)]);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4), None])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None])),
            Arc::new(StringArray::from(texts.to_vec())),
            Arc::new(LargeStringArray::from(texts.to_vec())),
            Arc::new(StringViewArray::from(texts.to_vec())),
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(texts.to_vec())))),
            Arc::new(NullArray::new(5)),
        ];
        for array in arrays {
            for slice in [Arc::clone(&array), array.slice(1, 3), array.slice(2, 0)] {
                let copy = copied(&slice).unwrap();
                copy.to_data().validate_full().unwrap();
                let text = |array: &ArrayRef| -> Vec<Option<String>> {
                    let text = arrow_cast::cast(array, &DataType::Utf8).unwrap();
                    text.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
                };
                assert_eq!(text(&copy), text(&slice), "{:?}", array.data_type());
                let place =
                    |array: &ArrayRef| array.to_data().buffers().first().map(|buffer| buffer.as_ptr());
                assert!(slice.is_empty() || place(&copy).is_none() || place(&copy) != place(&slice));
            }
        }
    }
}
