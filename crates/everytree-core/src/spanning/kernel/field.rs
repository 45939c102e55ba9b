//! One statement of the algorithm, two ways to fill a SIMD register.
//!
//! The eliminations ([`super::undirected`], [`super::directed`]) are written once, over matrices of *elements*:
//!
//! - [`Lanes`]: an element is a whole register, one row of data in each lane. Nothing ever crosses lanes, so even
//!   n = 3 runs at full width; but as many matrices as there are lanes must fit the cache.
//! - [`Rows`]: an element is one number, and a register holds neighbouring columns of one matrix.

use super::real::Real;
use pulp::{Simd, WithSimd};

/// How elements are held and worked on.
pub(crate) trait Field: Copy {
    /// An entry of a matrix.
    type Element: Copy;
    /// What one instruction works on: [`Field::STEP`] neighbouring elements of a matrix row.
    type Vector: Copy;
    /// Elements in a vector.
    const STEP: usize;
    /// Enough registers (32) for wide tiles?
    const MANY_REGISTERS: bool;

    /// Runs an operation as a function of its own, with the instructions of this field.
    fn call<Op: WithSimd>(self, operation: Op) -> Op::Output;

    /// Loads `STEP` elements.
    ///
    /// # Safety
    /// `from` must be valid for reading them.
    unsafe fn load(self, from: *const Self::Element) -> Self::Vector;
    /// Stores `STEP` elements.
    ///
    /// # Safety
    /// `to` must be valid for writing them.
    unsafe fn store(self, to: *mut Self::Element, value: Self::Vector);
    /// The same element in every place of a vector.
    fn spread(self, element: Self::Element) -> Self::Vector;
    /// `a · b + c`.
    fn vector_mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    fn vector_add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The sum over the elements of a vector.
    fn collapse(self, vector: Self::Vector) -> Self::Element;

    /// The constant `value`.
    fn constant(self, value: f64) -> Self::Element;
    fn add(self, a: Self::Element, b: Self::Element) -> Self::Element;
    fn sub(self, a: Self::Element, b: Self::Element) -> Self::Element;
    fn mul(self, a: Self::Element, b: Self::Element) -> Self::Element;
    /// `a · b + c`.
    fn mul_add(self, a: Self::Element, b: Self::Element, c: Self::Element) -> Self::Element;
    /// `1 / p`, or 0 where `p` is too small to be trusted, so that no infinity ever starts.
    fn reciprocal(self, p: Self::Element) -> Self::Element;
}

/// Sixteen (or eight, or four) rows of data side by side.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<S, T> {
    pub simd: S,
    pub precision: std::marker::PhantomData<T>,
}

impl<S: Simd, T: Real> Field for Lanes<S, T> {
    type Element = T::Vector<S>;
    type Vector = T::Vector<S>;
    const STEP: usize = 1;
    const MANY_REGISTERS: bool = S::REGISTER_COUNT >= 32;

    #[inline(always)]
    fn call<Op: WithSimd>(self, operation: Op) -> Op::Output {
        self.simd.vectorize(operation)
    }
    #[inline(always)]
    unsafe fn load(self, from: *const Self::Element) -> Self::Vector {
        // SAFETY: the caller's promise; buffers are aligned to whole registers.
        unsafe { *from }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut Self::Element, value: Self::Vector) {
        // SAFETY: the caller's promise.
        unsafe { *to = value }
    }
    #[inline(always)]
    fn spread(self, element: Self::Element) -> Self::Vector {
        element
    }
    #[inline(always)]
    fn vector_mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        T::mul_add(self.simd, a, b, c)
    }
    #[inline(always)]
    fn vector_add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        T::add(self.simd, a, b)
    }
    #[inline(always)]
    fn collapse(self, vector: Self::Vector) -> Self::Element {
        vector
    }
    #[inline(always)]
    fn constant(self, value: f64) -> Self::Element {
        T::splat(self.simd, T::from_f64(value))
    }
    #[inline(always)]
    fn add(self, a: Self::Element, b: Self::Element) -> Self::Element {
        T::add(self.simd, a, b)
    }
    #[inline(always)]
    fn sub(self, a: Self::Element, b: Self::Element) -> Self::Element {
        T::sub(self.simd, a, b)
    }
    #[inline(always)]
    fn mul(self, a: Self::Element, b: Self::Element) -> Self::Element {
        T::mul(self.simd, a, b)
    }
    #[inline(always)]
    fn mul_add(self, a: Self::Element, b: Self::Element, c: Self::Element) -> Self::Element {
        T::mul_add(self.simd, a, b, c)
    }
    #[inline(always)]
    fn reciprocal(self, p: Self::Element) -> Self::Element {
        let tiny = T::splat(self.simd, T::TINY);
        let trusted = T::at_least(self.simd, p, tiny);
        let inverse = T::div(self.simd, self.constant(1.0), T::max(self.simd, p, tiny));
        T::select(self.simd, trusted, inverse, self.constant(0.0))
    }
}

/// One row of data, its matrix in row-major order.
#[derive(Clone, Copy)]
pub(crate) struct Rows<S, T> {
    pub simd: S,
    pub precision: std::marker::PhantomData<T>,
}

impl<S: Simd, T: Real> Field for Rows<S, T> {
    type Element = T;
    type Vector = T::Vector<S>;
    const STEP: usize = size_of::<T::Vector<S>>() / size_of::<T>();
    const MANY_REGISTERS: bool = S::REGISTER_COUNT >= 32;

    #[inline(always)]
    fn call<Op: WithSimd>(self, operation: Op) -> Op::Output {
        self.simd.vectorize(operation)
    }
    #[inline(always)]
    unsafe fn load(self, from: *const T) -> Self::Vector {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::read_unaligned(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T, value: Self::Vector) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::write_unaligned(to.cast(), value) }
    }
    #[inline(always)]
    fn spread(self, element: T) -> Self::Vector {
        T::splat(self.simd, element)
    }
    #[inline(always)]
    fn vector_mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        T::mul_add(self.simd, a, b, c)
    }
    #[inline(always)]
    fn vector_add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        T::add(self.simd, a, b)
    }
    #[inline(always)]
    fn collapse(self, vector: Self::Vector) -> T {
        T::sum(self.simd, vector)
    }
    #[inline(always)]
    fn constant(self, value: f64) -> T {
        T::from_f64(value)
    }
    #[inline(always)]
    fn add(self, a: T, b: T) -> T {
        a.plus(b)
    }
    #[inline(always)]
    fn sub(self, a: T, b: T) -> T {
        a.minus(b)
    }
    #[inline(always)]
    fn mul(self, a: T, b: T) -> T {
        a.times(b)
    }
    #[inline(always)]
    fn mul_add(self, a: T, b: T, c: T) -> T {
        a.times(b).plus(c)
    }
    #[inline(always)]
    fn reciprocal(self, p: T) -> T {
        if p >= T::TINY { T::from_f64(1.0).over(p) } else { T::from_f64(0.0) }
    }
}
