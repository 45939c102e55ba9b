//! Matrix products of elements: where nearly all the time goes.
//!
//! Every product of the eliminations has the same form: rows of `b` lie contiguous and fill registers, entries of
//! `a` are spread over a register, a tile of `c` stays in registers over the whole inner dimension. The operands
//! are panels that fit the second-level cache, so nothing is packed.

use super::field::Field;
use pulp::{Simd, WithSimd};

/// A matrix whose rows are contiguous, `stride` elements apart.
pub(crate) struct Contiguous<'a, E> {
    pub data: &'a [E],
    pub stride: usize,
}

/// A matrix entry by entry: `(i, j)` at `i · row + j · column`.
pub(crate) struct Strided<'a, E> {
    pub data: &'a [E],
    pub row: usize,
    pub column: usize,
}

/// Where a product goes.
pub(crate) struct Target<'a, E> {
    pub data: &'a mut [E],
    pub stride: usize,
}

/// What happens to what was in the target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// `c = a · b`
    Set,
    /// `c += a · b`
    Add,
    /// `c += a · b` below the diagonal; above it, entries may be left alone or overwritten with nonsense.
    AddLower,
}

struct Operands<E> {
    c: *mut E,
    c_stride: usize,
    a: *const E,
    a_row: usize,
    a_column: usize,
    b: *const E,
    b_stride: usize,
    rows: usize,
    inner: usize,
    write: Write,
}

/// `c (rows × columns) = or += a (rows × inner) · b (inner × columns)`; `columns` is a multiple of `F::STEP`.
#[inline(always)]
pub(crate) fn product<F: Field>(
    f: F,
    c: Target<'_, F::Element>,
    write: Write,
    a: Strided<'_, F::Element>,
    b: Contiguous<'_, F::Element>,
    [rows, columns, inner]: [usize; 3],
) {
    if rows == 0 || columns == 0 || inner == 0 {
        debug_assert!(write != Write::Set || rows * columns == 0);
        return;
    }
    assert!(columns % F::STEP == 0);
    assert!((rows - 1) * c.stride + columns <= c.data.len());
    assert!((rows - 1) * a.row + (inner - 1) * a.column < a.data.len());
    assert!((inner - 1) * b.stride + columns <= b.data.len());
    let operands = Operands {
        c: c.data.as_mut_ptr(),
        c_stride: c.stride,
        a: a.data.as_ptr(),
        a_row: a.row,
        a_column: a.column,
        b: b.data.as_ptr(),
        b_stride: b.stride,
        rows,
        inner,
        write,
    };
    // A function of its own: compiled once a field, not once a call.
    f.call(Strips { f, operands, columns });
}

struct Strips<F: Field> {
    f: F,
    operands: Operands<F::Element>,
    columns: usize,
}

impl<F: Field> WithSimd for Strips<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { f, operands, columns } = self;
        let mut j = 0;
        // SAFETY: the assertions of `product` bound every access of every tile.
        unsafe {
            if F::MANY_REGISTERS {
                // Tiles of 6 × 4, or of 8 × 3 where that leaves no rows over: 24 sums in registers either way.
                if operands.rows % 8 == 0 && operands.rows % 6 != 0 && operands.rows <= 64 {
                    while j + 3 * F::STEP <= columns {
                        strip::<F, 3>(f, &operands, j);
                        j += 3 * F::STEP;
                    }
                }
                while j + 4 * F::STEP <= columns {
                    strip::<F, 4>(f, &operands, j);
                    j += 4 * F::STEP;
                }
            }
            while j + 2 * F::STEP <= columns {
                strip::<F, 2>(f, &operands, j);
                j += 2 * F::STEP;
            }
            if j < columns {
                strip::<F, 1>(f, &operands, j);
            }
        }
    }
}

/// `J` vectors of columns from column `j` on, all rows that are wanted.
///
/// # Safety
/// As for [`product`]: all accesses within bounds.
#[inline(always)]
unsafe fn strip<F: Field, const J: usize>(f: F, o: &Operands<F::Element>, j: usize) {
    // SAFETY: no row beyond o.rows.
    unsafe {
        if o.write != Write::AddLower {
            return rows::<F, J>(f, o, j, 0, o.rows);
        }
        // Where the strip crosses the diagonal, rows need only the vectors up to it.
        let below = |vectors: usize| (j + vectors * F::STEP).min(o.rows);
        if J > 1 {
            rows::<F, 1>(f, o, j, below(0), below(1));
        }
        if J > 2 {
            rows::<F, 2>(f, o, j, below(1), below(2));
        }
        if J > 3 {
            rows::<F, 3>(f, o, j, below(2), below(3));
        }
        rows::<F, J>(f, o, j, below(J - 1), o.rows);
    }
}

/// Rows `i .. end` of a strip.
///
/// # Safety
/// As for [`product`]: all accesses within bounds.
#[inline(always)]
unsafe fn rows<F: Field, const J: usize>(f: F, o: &Operands<F::Element>, j: usize, i: usize, end: usize) {
    let mut i = i;
    // SAFETY: rows i .. i + I stay below `end`.
    unsafe {
        if J == 1 && F::MANY_REGISTERS {
            while i + 12 <= end {
                tile::<F, 12, J>(f, o, i, j);
                i += 12;
            }
        }
        if J == 3 {
            while i + 8 <= end {
                tile::<F, 8, J>(f, o, i, j);
                i += 8;
            }
        } else {
            while i + 6 <= end {
                tile::<F, 6, J>(f, o, i, j);
                i += 6;
            }
        }
        while i + 2 <= end {
            tile::<F, 2, J>(f, o, i, j);
            i += 2;
        }
        if i < end {
            tile::<F, 1, J>(f, o, i, j);
        }
    }
}

/// One tile of `I` rows and `J` vectors, held in registers.
///
/// # Safety
/// As for [`product`]: all accesses within bounds.
#[inline(always)]
unsafe fn tile<F: Field, const I: usize, const J: usize>(f: F, o: &Operands<F::Element>, i: usize, j: usize) {
    // SAFETY: bounds were asserted in `product`.
    unsafe {
        let c = o.c.add(i * o.c_stride + j);
        let mut sums = [[f.spread(f.constant(0.0)); J]; I];
        let mut a = o.a.add(i * o.a_row);
        let mut b = o.b.add(j);
        for _ in 0..o.inner {
            let mut row = [f.load(b); J];
            for (y, vector) in row.iter_mut().enumerate().skip(1) {
                *vector = f.load(b.add(y * F::STEP));
            }
            for (x, sum) in sums.iter_mut().enumerate() {
                let factor = f.spread(*a.add(x * o.a_row));
                for y in 0..J {
                    sum[y] = f.vector_mul_add(factor, row[y], sum[y]);
                }
            }
            a = a.wrapping_add(o.a_column);
            b = b.wrapping_add(o.b_stride);
        }
        for (x, sum) in sums.iter().enumerate() {
            for (y, &value) in sum.iter().enumerate() {
                let to = c.add(x * o.c_stride + y * F::STEP);
                let value = if o.write == Write::Set { value } else { f.vector_add(f.load(to), value) };
                f.store(to, value);
            }
        }
    }
}

/// `y += a · x`, from element `from` on (rounded down to a whole vector).
#[inline(always)]
pub(crate) fn add_multiple<F: Field>(
    f: F,
    y: &mut [F::Element],
    a: F::Element,
    x: &[F::Element],
    from: usize,
) {
    let length = y.len();
    assert!(length % F::STEP == 0 && x.len() == length);
    let factor = f.spread(a);
    let mut j = from / F::STEP * F::STEP;
    while j < length {
        // SAFETY: j + STEP <= length for both slices.
        unsafe {
            let to = y.as_mut_ptr().add(j);
            f.store(to, f.vector_mul_add(factor, f.load(x.as_ptr().add(j)), f.load(to)));
        }
        j += F::STEP;
    }
}

/// `y += a` for every element.
#[inline(always)]
pub(crate) fn add_constant<F: Field>(f: F, y: &mut [F::Element], a: F::Element) {
    let factor = f.spread(a);
    assert!(y.len() % F::STEP == 0);
    for j in (0..y.len()).step_by(F::STEP) {
        // SAFETY: the length is a multiple of STEP.
        unsafe {
            let to = y.as_mut_ptr().add(j);
            f.store(to, f.vector_add(f.load(to), factor));
        }
    }
}

/// The sum of a whole number of vectors.
#[inline(always)]
pub(crate) fn sum<F: Field>(f: F, x: &[F::Element]) -> F::Element {
    assert!(x.len() % F::STEP == 0);
    let zero = f.spread(f.constant(0.0));
    let mut parts = [zero; 4];
    let mut j = 0;
    // SAFETY: the length is a multiple of STEP.
    unsafe {
        while j + 4 * F::STEP <= x.len() {
            for (y, part) in parts.iter_mut().enumerate() {
                *part = f.vector_add(*part, f.load(x.as_ptr().add(j + y * F::STEP)));
            }
            j += 4 * F::STEP;
        }
        while j < x.len() {
            parts[0] = f.vector_add(parts[0], f.load(x.as_ptr().add(j)));
            j += F::STEP;
        }
    }
    let [a, b, c, d] = parts;
    f.collapse(f.vector_add(f.vector_add(a, b), f.vector_add(c, d)))
}

/// `to[j][i] = from[i][j]` for a `rows × columns` matrix, in tiles of 4 × 4.
#[inline(always)]
pub(crate) fn transpose<E: Copy>(to: Target<'_, E>, from: Contiguous<'_, E>, [rows, columns]: [usize; 2]) {
    let whole = rows / 4 * 4;
    for j in 0..columns / 4 {
        for i in (0..whole).step_by(4) {
            let line = |k: usize| &from.data[(i + k) * from.stride + 4 * j..][..4];
            let tile = [line(0), line(1), line(2), line(3)];
            for x in 0..4 {
                let column = [tile[0][x], tile[1][x], tile[2][x], tile[3][x]];
                to.data[(4 * j + x) * to.stride + i..][..4].copy_from_slice(&column);
            }
        }
    }
    for i in 0..rows {
        let rest = if i < whole { columns / 4 * 4..columns } else { 0..columns };
        for j in rest {
            to.data[j * to.stride + i] = from.data[i * from.stride + j];
        }
    }
}
