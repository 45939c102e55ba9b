//! Sums over the forests of many rows at once, and their derivatives, on the device.
//!
//! Small rows live in shared memory ([`rows`]), larger ones are eliminated a block of vertices after the other ([`blocks`]); from
//! derivatives come counts.
//!
//! The weights of a model's edges are a row as well, behind all others: what normalises the rows is computed beside them.

mod blocks;
mod record;
mod rows;

use crate::engine::{Cuda, CudaError, LANES, threads};
use crate::launch;
use crate::real::CudaReal;
use crate::space::Memory;
use blocks::{B, Share};
use everytree_core::spanning::Kind;
use record::Record;
use rows::{ELIMINATE, KEEP, Small};

/// Rows up to which it takes longer to start the work than to do it.
pub(crate) const FEW_ROWS: usize = 256;
/// States of all variables together: kernels count the pairs of them in 32 bits.
pub(crate) const MOST_STATES: usize = 46_340;
/// Entries of all tables that thread blocks sum derivatives in.
const MOST_SUMS: usize = 1 << 26;

/// Sizes of the matrices of a row.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub n: usize,
    /// Indices: the root and every vertex that is eliminated.
    size: usize,
    /// Numbers of a row of a matrix.
    p: usize,
    /// States in all.
    pub total: usize,
    pub directed: bool,
    /// How rows are worked on in shared memory, if they fit.
    small: Option<Small>,
}

/// Where the device finds the rates of rows.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// The square matrix over all states.
    pub rates: u64,
    /// Where the states of each variable begin.
    pub offsets: u64,
    /// The states of rows, as places in the tables.
    pub states: u64,
    /// Which of these rows; 0: one after the other.
    pub places: u64,
    /// The row of weights, if it is computed beside them.
    pub prior: Option<Prior>,
}

/// The weights of a model's edges, a square matrix over all variables.
#[derive(Clone, Copy)]
pub(crate) struct Prior {
    /// The weights.
    pub weights: u64,
    /// Where to put how probable every edge is.
    pub marginals: u64,
}

/// Memory of the device for rows on their way.
#[derive(Default)]
pub(crate) struct Space {
    /// log F of every row without any scale; NaN where it cannot be vouched for.
    pub logs: Memory,
    /// May the derivatives of a row be handed on?
    pub trusted: Memory,
    /// Factors and derivatives of rows in shared memory, where they leave it.
    kept: [Memory; 2],
    sums: Memory,
    /// Larger rows, some on every lane.
    shares: [Share; LANES],
    /// Whoever has the gpu for himself may have work recorded, to start all of it at once the next time.
    pub may_record: bool,
    records: Vec<Record>,
}

impl Shape {
    pub fn new<T: CudaReal>(gpu: &Cuda<T>, kind: Kind, n: usize, total: usize) -> Result<Self, CudaError> {
        if total > MOST_STATES {
            return Err(CudaError::TooManyStates { states: total, most: MOST_STATES });
        }
        let size = kind.indices(n);
        let directed = kind == Kind::Directed;
        let p = size.div_ceil(B) * B;
        let small = Small::new(gpu, directed, n, size)?;
        Ok(Self { n, size, p, total, directed, small })
    }

    /// Are rows worked on in shared memory?
    pub fn is_small(&self) -> bool {
        self.small.is_some()
    }

    /// Bytes that a row takes on the device between forward and backward, and during backward.
    pub fn bytes<T>(&self) -> usize {
        let numbers = match self.small {
            Some(_) => 2 * self.size * self.size,
            None => self.in_blocks::<T>(),
        };
        numbers * size_of::<T>()
    }
}

impl<T: CudaReal> Cuda<T> {
    /// log F of rows. `keep`: so that [`Cuda::backward_pass`] can follow (blocks always can).
    ///
    /// # Safety
    /// [`Cuda::launch_on`]'s, for all addresses: those of `look` for this shape and so many rows, weights of as many, counts of all
    /// pairs of states.
    pub(crate) unsafe fn eliminate(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        keep: bool,
    ) -> Result<(), CudaError> {
        match &shape.small {
            Some(small) => {
                let stage = if keep { ELIMINATE | KEEP } else { ELIMINATE };
                // SAFETY: the caller's promise.
                unsafe { self.rows_in_shared_memory(small, shape, look, rows, space, stage, 0) }
            }
            // SAFETY: the caller's promise.
            None => unsafe { self.eliminate_blocks(shape, look, rows, space) },
        }
    }

    /// Adds to `counts` the expected counts of the rows of [`Cuda::eliminate`], each times its weight; both in memory of the device.
    ///
    /// # Safety
    /// [`Cuda::launch_on`]'s, for all addresses: those of `look` for this shape and so many rows, weights of as many, counts of all
    /// pairs of states.
    pub(crate) unsafe fn backward_pass(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        match &shape.small {
            // SAFETY: the caller's promise.
            Some(small) => unsafe {
                self.back_in_shared_memory(small, shape, look, rows, space, 0, weights, counts)
            },
            None => {
                // SAFETY: the caller's promise.
                unsafe { self.backward_blocks(shape, look, rows, space) }?;
                // SAFETY: the caller's promise; derivatives of these rows have just been made.
                unsafe { self.tally(shape, look, rows, space, weights, counts) }
            }
        }
    }

    /// [`Cuda::eliminate`] and [`Cuda::backward_pass`], for weights that are known before.
    ///
    /// # Safety
    /// [`Cuda::launch_on`]'s, for all addresses: those of `look` for this shape and so many rows, weights of as many, counts of all
    /// pairs of states.
    pub(crate) unsafe fn forward_and_backward(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        if let Some(small) = &shape.small {
            // SAFETY: the caller's promise.
            return unsafe {
                self.back_in_shared_memory(small, shape, look, rows, space, ELIMINATE, weights, counts)
            };
        }
        // SAFETY: the caller's promise.
        unsafe { self.eliminate(shape, look, rows, space, true) }?;
        // SAFETY: the caller's promise, and the rows have just been eliminated.
        unsafe { self.backward_pass(shape, look, rows, space, weights, counts) }
    }

    /// Adds the counts of rows whose derivatives are in memory.
    ///
    /// # Safety
    /// [`Cuda::launch_on`]'s, for all addresses: those of `look` for this shape and so many rows, weights of as many, counts of all
    /// pairs of states.
    unsafe fn tally(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        let Shape { n, size, p, total, directed, .. } = *shape;
        let (stream, entries) = (&self.stream, total * total);
        let stride = if shape.small.is_some() { size } else { p };
        let trusted = space.trusted.reserve(stream, 0)?;
        let kept = space.kept[1].reserve(stream, 0)?;
        // Where derivatives lie, those of which rows, and where their states do.
        let mut pieces = vec![(kept, 0, rows, *look)];
        if shape.small.is_none() {
            pieces.clear();
            let lanes = space.lanes(shape, rows);
            for part in self.parts(shape, look, rows, lanes, &mut space.shares) {
                let own = part.count - usize::from(part.look.prior.is_some());
                pieces.push((part.share.g.reserve(stream, 0)?, part.first, own, part.look));
            }
        }
        // Enough threads for the device, few enough tables.
        let most = (MOST_SUMS / entries).clamp(1, 16);
        let wanted = (1usize << 20).div_ceil(n * n).clamp(1, most).div_ceil(pieces.len());
        let chunks = |rows: usize| wanted.min(rows).max(1);
        let all = pieces.iter().map(|(_, _, rows, _)| chunks(*rows)).sum();
        let sums = space.sums.clear(stream, all * entries * size_of::<T>())?;
        let mut next = sums;
        for (g, first, rows, look) in pieces {
            let chunks = chunks(rows);
            let weights = weights + (first * size_of::<T>()) as u64;
            let trusted = trusted + first as u64;
            // SAFETY: the caller's promise; sums and derivatives are those of these rows, and `pieces` stay within them.
            unsafe {
                self.launch(
                    launch::Tally {
                        sums: next,
                        g,
                        states: look.states,
                        places: look.places,
                        weights,
                        trusted,
                        offsets: look.offsets,
                        n,
                        p: stride,
                        matrix: stride * stride,
                        s: total,
                        rows,
                        per_chunk: rows.div_ceil(chunks),
                        directed: usize::from(directed),
                    },
                    threads([n.div_ceil(B), n.div_ceil(B), chunks], [B, 8]),
                )
            }?;
            next += (chunks * entries * size_of::<T>()) as u64;
        }
        // SAFETY: the caller's promise; so many tables of sums have been cleared.
        unsafe { self.add_chunks(shape, look, space, all, counts) }
    }

    /// Adds the counts of so many tables of sums.
    ///
    /// # Safety
    /// [`Cuda::launch_on`]'s, for all addresses: those of `look` for this shape and so many rows, weights of as many, counts of all
    /// pairs of states.
    unsafe fn add_chunks(
        &self,
        shape: &Shape,
        look: &Look,
        space: &mut Space,
        chunks: usize,
        counts: u64,
    ) -> Result<(), CudaError> {
        let entries = shape.total * shape.total;
        let sums = space.sums.reserve(&self.stream, 0)?;
        let all = threads([entries.div_ceil(256), 1, 1], [256, 1]);
        // SAFETY: the caller's promise; sums and derivatives are those of these rows, and `pieces` stay within them.
        unsafe { self.launch(launch::AddChunks { counts, sums, rates: look.rates, entries, chunks }, all) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn shape(n: usize, directed: bool) -> Shape {
        let size = if directed { n + 1 } else { n };
        Shape { n, size, p: size.div_ceil(B) * B, total: 2 * n, directed, small: None }
    }

    #[test]
    fn pairs_of_states_are_counted_in_32_bits() {
        assert!(MOST_STATES.pow(2) <= i32::MAX as usize && (MOST_STATES + 1).pow(2) > i32::MAX as usize);
    }

    /// Two matrices a row at least, and a third for what the undirected kind keeps.
    #[test]
    fn memory_is_counted() {
        let (undirected, directed) = (shape(300, false), shape(300, true));
        assert!(undirected.bytes::<f32>() > 3 * 300 * 300 * 4);
        assert!(directed.bytes::<f32>() > 2 * 301 * 301 * 4);
        assert!(undirected.bytes::<f64>() >= 2 * undirected.bytes::<f32>());
    }
}
