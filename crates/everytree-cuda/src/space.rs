//! Memory of the device that is kept from one batch to the next.

use crate::engine::{Cuda, CudaError, failed};
use bytemuck::Pod;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, PinnedHostSlice};
use std::sync::Arc;

/// Where memory begins.
pub(crate) fn address(memory: &CudaSlice<u8>, stream: &CudaStream) -> u64 {
    memory.device_ptr(stream).0
}

/// Memory of the host that the device reads and writes at full speed; it grows.
#[derive(Default)]
pub(crate) struct Staging {
    held: Option<PinnedHostSlice<u8>>,
}

impl Staging {
    /// Room for so many numbers, whatever was in it.
    pub fn numbers<N: Pod>(&mut self, stream: &Arc<CudaStream>, count: usize) -> Result<&mut [N], CudaError> {
        let bytes = count * size_of::<N>();
        let reserving = |error| failed("reserving memory beside the GPU", error);
        if self.held.as_ref().is_none_or(|held| held.len() < bytes) {
            self.held = None;
            // SAFETY: bytes have no invalid values.
            let fresh = unsafe { stream.context().alloc_pinned_with_flags::<u8>(bytes.max(1), 0) };
            self.held = Some(fresh.map_err(reserving)?);
        }
        match &mut self.held {
            Some(held) => {
                let all = held.as_mut_slice().map_err(reserving)?;
                // It begins at a page, so that any number may begin there.
                Ok(bytemuck::cast_slice_mut(&mut all[..bytes]))
            }
            None => Ok(&mut []),
        }
    }
}

/// A piece of memory that grows.
#[derive(Default)]
pub(crate) struct Memory {
    held: Option<CudaSlice<u8>>,
}

impl Memory {
    /// At least so many bytes; what was in them may be lost. Where they begin.
    pub fn reserve(&mut self, stream: &Arc<CudaStream>, bytes: usize) -> Result<u64, CudaError> {
        if self.held.as_ref().is_none_or(|held| held.len() < bytes) {
            self.held = None;
            // SAFETY: bytes have no invalid values, and nobody reads what has not been written.
            let fresh = unsafe { stream.alloc::<u8>(bytes.max(1)) };
            self.held = Some(fresh.map_err(|error| match error.0 {
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => CudaError::OutOfMemory { megabytes: bytes >> 20 },
                _ => failed("reserving memory of the GPU", error),
            })?);
        }
        Ok(self.held.as_ref().map_or(0, |held| address(held, stream)))
    }

    /// Where it begins; 0 if there is nothing yet.
    pub fn place<T>(&self, gpu: &Cuda<T>) -> u64 {
        self.held.as_ref().map_or(0, |held| address(held, &gpu.stream))
    }

    /// Copies numbers to the device.
    pub fn put<N: Pod>(&mut self, stream: &Arc<CudaStream>, numbers: &[N]) -> Result<u64, CudaError> {
        let bytes = size_of_val(numbers);
        let place = self.reserve(stream, bytes)?;
        if let Some(held) = &mut self.held
            && bytes > 0
        {
            let mut part = held.slice_mut(0..bytes);
            stream
                .memcpy_htod(bytemuck::cast_slice::<N, u8>(numbers), &mut part)
                .map_err(|error| failed("copying to the GPU", error))?;
        }
        Ok(place)
    }

    /// Copies numbers back.
    pub fn get<N: Pod>(&self, stream: &Arc<CudaStream>, out: &mut [N]) -> Result<(), CudaError> {
        let bytes = size_of_val(out);
        if let Some(held) = &self.held
            && bytes > 0
        {
            let part = held.slice(0..bytes);
            stream
                .memcpy_dtoh(&part, bytemuck::cast_slice_mut::<N, u8>(out))
                .map_err(|error| failed("copying from the GPU", error))?;
            stream.synchronize().map_err(|error| failed("waiting for the GPU", error))?;
        }
        Ok(())
    }

    /// Copies bytes from elsewhere on the device.
    pub fn copy(&mut self, stream: &Arc<CudaStream>, from: &Memory, bytes: usize) -> Result<u64, CudaError> {
        let place = self.reserve(stream, bytes)?;
        if let (Some(held), Some(from)) = (&mut self.held, &from.held) {
            let (part, mut to) = (from.slice(0..bytes), held.slice_mut(0..bytes));
            stream.memcpy_dtod(&part, &mut to).map_err(|error| failed("copying on the GPU", error))?;
        }
        Ok(place)
    }

    /// Zeros.
    pub fn clear(&mut self, stream: &Arc<CudaStream>, bytes: usize) -> Result<u64, CudaError> {
        let place = self.reserve(stream, bytes)?;
        if let Some(held) = &mut self.held {
            let mut part = held.slice_mut(0..bytes);
            stream.memset_zeros(&mut part).map_err(|error| failed("clearing memory of the GPU", error))?;
        }
        Ok(place)
    }
}
