//! Rows that fit into shared memory: a thread block takes one after the other, from beginning to end (`kernels/rows.cu`).

use super::{Look, MOST_SUMS, Prior, Shape, Space};
use crate::engine::{Cuda, CudaError, threads};
use crate::launch;
use crate::real::CudaReal;
use cudarc::driver::LaunchConfig;

/// What the kernels do.
pub(super) const ELIMINATE: usize = 1;
pub(super) const KEEP: usize = 2;
const BACKWARD: usize = 4;
const SUM: usize = 8;

/// Thread blocks for rows in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Small {
    threads: usize,
    /// Bytes of shared memory.
    bytes: usize,
    /// Which kernel.
    name: &'static str,
    /// Thread blocks that the device has room for at once.
    at_once: usize,
}

impl Small {
    /// None where they do not fit, or blocks are faster.
    pub fn new<T: CudaReal>(
        gpu: &Cuda<T>,
        directed: bool,
        n: usize,
        size: usize,
    ) -> Result<Option<Self>, CudaError> {
        let (threads, name) = match size {
            0..=32 => (64, ["undirected_1", "directed_1"]),
            33..=64 => (128, ["undirected_4", "directed_4"]),
            65..=112 => (256, ["undirected_4", "directed_4"]),
            _ => return Ok(None),
        };
        let name = name[usize::from(directed)];
        let beside = threads / 32 + if directed { 2 } else { 1 };
        let bytes = (size * (size | 1) + beside * size) * size_of::<T>() + 2 * n;
        let at_once = gpu.thread_blocks(name, threads, bytes)?;
        Ok(at_once.map(|at_once| Self { threads, bytes, name, at_once }))
    }

    /// Thread blocks for so many rows: as many as there is room for, each with as many rows as the others.
    fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(rows.div_ceil(self.at_once).max(1)).max(1)
    }
}

impl<T: CudaReal> Cuda<T> {
    /// The backward pass, with what comes `before` it; adds to `counts`.
    ///
    /// # Safety
    /// As for [`Cuda::backward_pass`].
    #[expect(clippy::too_many_arguments, reason = "one kernel")]
    pub(super) unsafe fn back_in_shared_memory(
        &self,
        small: &Small,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        before: usize,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        let entries = shape.total * shape.total;
        let blocks = small.blocks(rows + usize::from(look.prior.is_some()));
        if blocks * entries > MOST_SUMS {
            // Many states: derivatives first, then sums of those.
            // SAFETY: the caller's promise; sums are there where they are asked for.
            unsafe {
                self.rows_in_shared_memory(small, shape, look, rows, space, before | BACKWARD, weights)
            }?;
            // SAFETY: the caller's promise; the derivatives have just been written.
            return unsafe { self.tally(shape, look, rows, space, weights, counts) };
        }
        space.sums.clear(&self.stream, blocks * entries * size_of::<T>())?;
        // SAFETY: the caller's promise; sums are there where they are asked for.
        unsafe {
            self.rows_in_shared_memory(small, shape, look, rows, space, before | BACKWARD | SUM, weights)
        }?;
        // SAFETY: the caller's promise; a table of sums was cleared for every thread block.
        unsafe { self.add_chunks(shape, look, space, blocks, counts) }
    }

    /// Does to all rows what `stage` says.
    ///
    /// # Safety
    /// As for [`Cuda::backward_pass`].
    #[expect(clippy::too_many_arguments, reason = "one kernel")]
    pub(super) unsafe fn rows_in_shared_memory(
        &self,
        small: &Small,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        stage: usize,
        weights: u64,
    ) -> Result<(), CudaError> {
        let stream = &self.stream;
        let all = rows + usize::from(look.prior.is_some());
        let matrices = all * shape.size * shape.size * size_of::<T>();
        let kept = space.kept[0].reserve(stream, if stage & KEEP != 0 { matrices } else { 0 })?;
        let written = stage & (BACKWARD | SUM) == BACKWARD;
        let derivatives = space.kept[1].reserve(stream, if written { matrices } else { 0 })?;
        let logs = space.logs.reserve(stream, all * 8)?;
        let trusted = space.trusted.reserve(stream, all)?;
        let sums = space.sums.reserve(stream, 0)?;
        let prior = look.prior.unwrap_or(Prior { weights: 0, marginals: 0 });
        let prior_row = if look.prior.is_some() { rows } else { usize::MAX };
        // SAFETY: the caller's promise; matrices, logarithms and marks of all rows are reserved above.
        unsafe {
            self.launch(
                launch::RowsKernel {
                    name: small.name,
                    kept,
                    derivatives,
                    logs,
                    trusted,
                    sums,
                    weights,
                    rates: look.rates,
                    states: look.states,
                    places: look.places,
                    prior: prior.weights,
                    marginals: prior.marginals,
                    prior_row,
                    n: shape.n,
                    s: shape.total,
                    rows: all,
                    stage,
                },
                LaunchConfig {
                    shared_mem_bytes: small.bytes as u32,
                    ..threads([small.blocks(all), 1, 1], [small.threads, 1])
                },
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thread blocks have as many rows as each other, as far as that goes, and there is room for all of them.
    #[test]
    fn rows_are_shared_out_evenly() {
        let small = Small { threads: 256, bytes: 0, name: "undirected_4", at_once: 660 };
        for (rows, blocks) in [(1, 1), (5, 5), (660, 660), (661, 331), (1024, 512), (1025, 513), (5000, 625)]
        {
            assert_eq!(small.blocks(rows), blocks, "{rows}");
            assert!(blocks <= small.at_once && blocks * rows.div_ceil(blocks) < rows + blocks);
        }
    }
}
