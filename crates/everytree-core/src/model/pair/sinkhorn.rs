//! Any positive matrix, scaled to the margins.
//!
//! `P = diag(r) exp(B) diag(c)` with row sums `P_u` and column sums `P_v`. Every strictly positive table with these margins is
//! its own fixed point (B = log P), so nothing but hard zeros is out of reach.
//!
//! The scaling is found by alternating (Sinkhorn), and by Newton's method where that is slow; the gradient comes from the
//! implicit function theorem at the fixed point, not from the iterations. Both solve with the same matrix, the
//! Laplacian of a graph between rows, so Gaussian elimination needs no pivoting.

use super::Margin;

/// Rounds of alternate scaling before Newton's method takes over.
const ROUNDS: usize = 40;
const NEWTON_STEPS: usize = 200;
const TOLERANCE: f64 = 1e-13;
/// No row is multiplied by more than e to this in one step; a step is halved until it does what its slope promises, or is this short.
const LONGEST: f64 = 50.0;
const SHORTEST: f64 = 1e-6;
const ARMIJO: f64 = 1e-4;

/// The table with the margins of `u` and `v`, row by row, from the logarithms `b` of a positive matrix. Gives back by how
/// much its rows are still off, relative to the margin; a model must not take a table that is off by more than rounding,
/// because it would not normalise.
pub(crate) fn joint(u: &Margin, v: &Margin, b: &[f64], table: &mut [f64]) -> f64 {
    let k_v = v.states();
    let most = b.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (entry, &b) in table.iter_mut().zip(b) {
        *entry = (b - most).max(-600.0).exp();
    }
    for round in 0..ROUNDS {
        scale_rows(table, &u.p, k_v);
        let error = scale_columns(table, &v.p, &u.p);
        if error < TOLERANCE && round > 0 {
            return error;
        }
    }
    newton(u, v, table)
}

/// What a sum must be multiplied by to be `p`. Of a state that is impossible nothing is left.
fn factor(p: f64, sum: f64) -> f64 {
    if p == 0.0 { 0.0 } else { p / sum }
}

/// By how much a sum is off, relative to what it should be. NaN stays NaN: `f64::max` would pass it over.
fn off(sum: f64, p: f64) -> f64 {
    if sum == p { 0.0 } else { (sum / p - 1.0).abs() }
}

fn largest(one: f64, other: f64) -> f64 {
    if one.is_nan() || other.is_nan() { f64::NAN } else { one.max(other) }
}

fn scale_rows(table: &mut [f64], p: &[f64], k_v: usize) {
    for (row, &p) in table.chunks_exact_mut(k_v).zip(p) {
        let factor = factor(p, row.iter().sum());
        row.iter_mut().for_each(|entry| *entry *= factor);
    }
}

/// Scales columns to `q`; gives back by how much the rows are then off, relative to `p`. Row by row, as the table lies in memory.
fn scale_columns(table: &mut [f64], q: &[f64], p: &[f64]) -> f64 {
    let k_v = q.len();
    let mut factors = vec![0.0; k_v];
    for row in table.chunks_exact(k_v) {
        factors.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry);
    }
    factors.iter_mut().zip(q).for_each(|(sum, &q)| *sum = factor(q, *sum));
    let mut most = 0.0;
    for (row, &p) in table.chunks_exact_mut(k_v).zip(p) {
        row.iter_mut().zip(&factors).for_each(|(entry, factor)| *entry *= factor);
        most = largest(most, off(row.iter().sum(), p));
    }
    most
}

/// Minimises the convex `Σ_j q_j log Σ_i P_ij e^{x_i} − p·x`, with columns exact after every step.
fn newton(u: &Margin, v: &Margin, table: &mut [f64]) -> f64 {
    let (k_u, k_v) = (u.states(), v.states());
    let short = |table: &[f64]| -> Vec<f64> {
        table.chunks_exact(k_v).zip(&u.p).map(|(row, p)| p - row.iter().sum::<f64>()).collect()
    };
    let mut now =
        table.chunks_exact(k_v).zip(&u.p).map(|(row, p)| off(row.iter().sum(), *p)).fold(0.0, largest);
    let mut next = table.to_vec();
    for _ in 0..NEWTON_STEPS {
        if now < TOLERANCE || now.is_nan() {
            break;
        }
        // Columns are exact, so their part of the step is y = −diag(q)⁻¹ Pᵀ x.
        let right = short(table);
        let x = solve_laplacian(table, &v.p, k_u, k_v, right.clone());
        let slope: f64 = right.iter().zip(&x).map(|(right, x)| right * x).sum();
        let mut step = (LONGEST / x.iter().fold(0.0f64, |most, x| most.max(x.abs()))).min(1.0);
        let found = loop {
            next.copy_from_slice(table);
            for (row, &x) in next.chunks_exact_mut(k_v).zip(&x) {
                let factor = (step * x).exp();
                row.iter_mut().for_each(|entry| *entry *= factor);
            }
            // By how much the step lowers what is minimised: not by less than a part of what its slope promises. Where that is
            // lost in rounding, the rows tell.
            let mut columns = vec![0.0; k_v];
            next.chunks_exact(k_v).for_each(|row| columns.iter_mut().zip(row).for_each(|(sum, p)| *sum += p));
            let of_column = |(sum, q): (&f64, &f64)| if *q > 0.0 { q * (sum / q).ln() } else { 0.0 };
            let of_columns: f64 = columns.iter().zip(&v.p).map(of_column).sum();
            let of_rows: f64 = u.p.iter().zip(&x).map(|(p, x)| p * step * x).sum();
            let found = scale_columns(&mut next, &v.p, &u.p);
            if of_rows - of_columns > ARMIJO * step * slope || found < now {
                break Some(found);
            }
            step *= 0.5;
            if step < SHORTEST {
                break None;
            }
        };
        match found {
            Some(found) => {
                now = found;
                table.copy_from_slice(&next);
            }
            None => {
                // A round of alternate scaling always gets nearer.
                next.copy_from_slice(table);
                scale_rows(&mut next, &u.p, k_v);
                let found = scale_columns(&mut next, &v.p, &u.p);
                if found.is_nan() || found >= now {
                    break;
                }
                now = found;
                table.copy_from_slice(&next);
            }
        }
    }
    now
}

/// Solves `(diag(p) − P diag(q)⁻¹ Pᵀ) x = right` with `x[0] = 0`, p being the row sums of P. The matrix is a Laplacian:
/// off its diagonal nothing is positive, and rows add up to nothing.
fn solve_laplacian(table: &[f64], q: &[f64], k_u: usize, k_v: usize, mut right: Vec<f64>) -> Vec<f64> {
    // Rates between rows; the diagonal is their sum, by definition and without subtraction.
    let mut rate = vec![0.0; k_u * k_u];
    for i in 0..k_u {
        for l in 0..i {
            let sum: f64 = (0..k_v).map(|j| table[i * k_v + j] * table[l * k_v + j] / q[j]).sum();
            rate[i * k_u + l] = sum;
            rate[l * k_u + i] = sum;
        }
    }
    let mut pivots = vec![0.0; k_u];
    for k in (1..k_u).rev() {
        let pivot: f64 = (0..k).map(|l| rate[k * k_u + l]).sum();
        pivots[k] = pivot;
        for i in 0..k {
            let share = rate[i * k_u + k] / pivot;
            right[i] += share * right[k];
            for l in 0..k {
                if l != i {
                    rate[i * k_u + l] += share * rate[k * k_u + l];
                }
            }
        }
    }
    let mut x = vec![0.0; k_u];
    for k in 1..k_u {
        let sum: f64 = (0..k).map(|l| rate[k * k_u + l] * x[l]).sum();
        x[k] = (right[k] + sum) / pivots[k];
    }
    x
}

/// Adds the derivatives of `Σ counts[i][j] log P(i, j)` by B and by the logarithms of both margins. `table` is P.
pub(crate) fn gradient(
    u: &Margin,
    v: &Margin,
    table: &[f64],
    counts: &[f64],
    [by_u, by_v, by_b]: [&mut [f64]; 3],
) {
    let (k_u, k_v) = (u.states(), v.states());
    // [diag(p) P; Pᵀ diag(q)] [ξ; η] = [row sums; column sums of the counts]
    let columns: Vec<f64> = (0..k_v).map(|j| (0..k_u).map(|i| counts[i * k_v + j]).sum()).collect();
    let right = (0..k_u)
        .map(|i| (0..k_v).map(|j| counts[i * k_v + j] - table[i * k_v + j] * columns[j] / v.p[j]).sum())
        .collect();
    let xi = solve_laplacian(table, &v.p, k_u, k_v, right);
    for j in 0..k_v {
        let flow: f64 = (0..k_u).map(|i| table[i * k_v + j] * xi[i]).sum();
        let eta = (columns[j] - flow) / v.p[j];
        by_v[j] += v.p[j] * eta;
        for i in 0..k_u {
            by_b[i * k_v + j] += counts[i * k_v + j] - table[i * k_v + j] * (xi[i] + eta);
        }
    }
    for i in 0..k_u {
        by_u[i] += u.p[i] * xi[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn margin(states: usize, seed: f64, spread: f64) -> Margin {
        let logits: Vec<f64> =
            (0..Margin::parameters(states)).map(|i| spread * (seed * (i + 1) as f64).sin()).collect();
        Margin::from_logits(states, &logits)
    }

    fn off(u: &Margin, v: &Margin, table: &[f64]) -> f64 {
        let k_v = v.states();
        let rows =
            table.chunks_exact(k_v).zip(&u.p).map(|(row, p)| (row.iter().sum::<f64>() / p - 1.0).abs());
        let column = |j: usize| table.iter().skip(j).step_by(k_v).sum::<f64>();
        rows.chain((0..k_v).map(|j| (column(j) / v.p[j] - 1.0).abs())).fold(0.0, f64::max)
    }

    #[test]
    fn margins_are_met_even_where_alternate_scaling_crawls() {
        for (k_u, k_v) in [(1, 3), (2, 2), (3, 4), (5, 5), (12, 7)] {
            for spread in [1.0, 8.0, 30.0, 100.0] {
                let (u, v) = (margin(k_u, 1.3, 1.0), margin(k_v, 2.1, 2.0));
                let b: Vec<f64> = (0..k_u * k_v).map(|i| spread * (i as f64 * 1.9).sin()).collect();
                let mut table = vec![0.0; k_u * k_v];
                let told = joint(&u, &v, &b, &mut table);
                let off = off(&u, &v, &table);
                assert!(off < 1e-11 && told < 1e-11, "{k_u} × {k_v}, {spread}: {off}");
            }
        }
    }

    #[test]
    fn every_positive_table_is_its_own_fixed_point() {
        let table: Vec<f64> = [0.1, 0.02, 0.3, 0.08, 0.35, 0.15].to_vec();
        let p = [0.42, 0.58];
        let q = [0.18, 0.37, 0.45];
        let u = Margin::from_logits(2, &Margin::logits(&p));
        let v = Margin::from_logits(3, &Margin::logits(&q));
        let b: Vec<f64> = table.iter().map(|p| p.ln() + 3.0).collect();
        let mut found = vec![0.0; 6];
        joint(&u, &v, &b, &mut found);
        for (found, expected) in found.iter().zip(&table) {
            assert!((found - expected).abs() < 1e-12);
        }
    }
}
