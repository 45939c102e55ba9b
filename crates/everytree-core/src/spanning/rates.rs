//! Rate matrices: the two kinds, their layout, and what is wrong with a bad one.

use super::kernel::real::Real;
use thiserror::Error;

/// Which forests are summed over.
///
/// Both kinds take a row-major `n × n` matrix of non-negative rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// All spanning trees of the complete graph. Entry `(u, v)` is the weight of the edge {u, v}. Only the entries
    /// below the diagonal are read: the matrix is taken to be symmetric.
    Undirected,
    /// All rooted forests. Entry `(v, u)`, `u ≠ v`, is the rate of "u is the parent of v"; the diagonal entry `(v, v)`
    /// is the rate of "v is a root".
    Directed,
}

impl Kind {
    /// Indices of an elimination: the vertices, one of them the root, or the vertices and a root above them.
    pub fn indices(self, vertices: usize) -> usize {
        match self {
            Kind::Undirected => vertices,
            Kind::Directed => vertices + 1,
        }
    }
}

/// Why a matrix of rates was refused. Rows are matrices of a batch, counted from 0.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RateError {
    /// A rate that is NaN, infinite or negative.
    #[error(
        "row {row}: the rate from vertex {vertex} to vertex {other} is {value}; rates must be finite and not negative"
    )]
    BadRate {
        /// Row of the batch.
        row: usize,
        /// Vertex whose rate it is (the child, in the directed kind).
        vertex: usize,
        /// The other vertex (the parent; the vertex itself for a root rate).
        other: usize,
        /// The offending value.
        value: f64,
    },
    /// A buffer of the wrong length.
    #[error("{what} has {found} numbers where {expected} are needed")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
    /// There are no forests over no vertices.
    #[error("a forest needs at least one vertex")]
    NoVertices,
    /// More vertices than the square of them can be addressed for.
    #[error("{vertices} vertices are too many: at most {limit}")]
    TooManyVertices {
        /// How many were asked for.
        vertices: usize,
        /// How many are possible.
        limit: usize,
    },
    /// No forest has a positive weight, so none can be drawn.
    #[error("no forest: vertex {vertex} has no path of positive rates to a root")]
    NoForest {
        /// A vertex that cannot reach a root.
        vertex: usize,
    },
}

/// Most vertices of any elimination: its matrix has 2³² entries.
pub(crate) const MAX_VERTICES: usize = 1 << 16;

/// Refuses sizes that cannot be worked on.
pub(crate) fn check_vertices(vertices: usize) -> Result<(), RateError> {
    match vertices {
        0 => Err(RateError::NoVertices),
        _ if vertices > MAX_VERTICES => Err(RateError::TooManyVertices { vertices, limit: MAX_VERTICES }),
        _ => Ok(()),
    }
}

/// The first rate of one matrix, among those that the kind reads, that is NaN, infinite or negative.
pub(crate) fn find_bad<T: Real>(kind: Kind, n: usize, rates: &[T], row: usize) -> Result<(), RateError> {
    for v in 0..n {
        let read = if kind == Kind::Undirected { 0..v } else { 0..n };
        // Whole lines at a time; only a line with something bad is looked at one by one.
        let good = |rate: &T| *rate >= T::from_f64(0.0) && *rate < T::from_f64(f64::INFINITY);
        if rates[v * n..][read.clone()].iter().fold(true, |all, rate| all & good(rate)) {
            continue;
        }
        for other in read {
            let value: f64 = rates[v * n + other].into();
            if !(value >= 0.0 && value.is_finite()) {
                return Err(RateError::BadRate { row, vertex: v, other, value });
            }
        }
    }
    Ok(())
}

/// The largest rate of a matrix of which all are fine.
pub(crate) fn largest<T: Real>(kind: Kind, n: usize, rates: &[T]) -> f64 {
    let mut largest = 0.0f64;
    for v in 0..n {
        let read = if kind == Kind::Undirected { 0..v } else { 0..n };
        largest = read.fold(largest, |most, other| most.max(rates[v * n + other].into()));
    }
    largest
}

/// The exponent `e` for which `2^-e` brings a largest rate near 1: 0 for rates that need no scaling.
pub(crate) fn exponent_of(largest: f64) -> i32 {
    let fine = 2f64.powi(-20)..2f64.powi(20);
    if largest == 0.0 || fine.contains(&largest) { 0 } else { largest.log2().ceil() as i32 }
}

/// Two powers of two that together are `2^-exponent`, also where one alone would overflow.
pub(crate) fn scales(exponent: i32) -> (f64, f64) {
    let half = exponent / 2;
    (2f64.powi(-half), 2f64.powi(half - exponent))
}
