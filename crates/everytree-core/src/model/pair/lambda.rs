//! The paper's inductive parameterisation, without cancellation.
//!
//! Let `K = min(k_u, k_v)`. Level 0 of a variable is its first `k − K + 1` states (one, for the shorter variable),
//! levels 1 … K − 1 are single states. At level l, "some level before l" against "level l" is a pair of binary
//! variables with margins `P(before)/P(up to l)`; λ_l of the paper is the probability that both are "before". So
//!
//! ```text
//! P(i, j) = Π_{l > m} T_l[0][0] · T_m[i at m][j at m] · (shares of states that are before m)
//! ```
//!
//! with m the larger of the two levels and T_l the binary table of level l. A state before m has its share
//! `P(i)/P(before)` of the margin. Only products, sums and quotients of positive numbers.

use super::Margin;
use crate::forest::frechet::Frechet;

/// How many parameters a pair has.
pub(crate) fn parameters(k_u: usize, k_v: usize) -> usize {
    k_u.min(k_v) - 1
}

/// The levels of a pair: what the table and its gradient are made of.
struct Levels<'a> {
    u: &'a Margin,
    v: &'a Margin,
    /// States of level 0 beyond the first.
    more_u: usize,
    more_v: usize,
    /// `tables[l - 1]` is that of level l.
    tables: Vec<Frechet>,
}

impl<'a> Levels<'a> {
    fn new(u: &'a Margin, v: &'a Margin, betas: &[f64]) -> Self {
        let least = u.states().min(v.states());
        let (more_u, more_v) = (u.states() - least, v.states() - least);
        let table = |l: usize| Frechet::new(u.steps[more_u + l], v.steps[more_v + l], betas[l - 1]);
        Self { u, v, more_u, more_v, tables: (1..least).map(table).collect() }
    }

    /// Calls `entry(i, j, m, at_u, at_v)` for every entry: m its level, and whether each state is at it.
    fn entries(&self, mut entry: impl FnMut(usize, usize, usize, usize, usize)) {
        for i in 0..self.u.states() {
            let level_u = i.saturating_sub(self.more_u);
            for j in 0..self.v.states() {
                let level_v = j.saturating_sub(self.more_v);
                let m = level_u.max(level_v);
                entry(i, j, m, usize::from(m > 0 && level_u == m), usize::from(m > 0 && level_v == m));
            }
        }
    }

    /// Where the states before level m end: for level 0, all of it.
    fn end_u(&self, m: usize) -> usize {
        self.more_u + m.max(1)
    }

    fn end_v(&self, m: usize) -> usize {
        self.more_v + m.max(1)
    }
}

/// `z[i][j] = P(i, j) / (P_u(i) P_v(j))` into `z`, row by row.
pub(crate) fn ratios(u: &Margin, v: &Margin, betas: &[f64], z: &mut [f64]) {
    let levels = Levels::new(u, v, betas);
    // inside[m]: the product of T_l[0][0] over l > m.
    let mut inside = vec![1.0; levels.tables.len() + 1];
    for m in (0..levels.tables.len()).rev() {
        inside[m] = inside[m + 1] * levels.tables[m].joint[0][0];
    }
    levels.entries(|i, j, m, at_u, at_v| {
        let mut ratio = inside[m];
        if m > 0 {
            ratio *= levels.tables[m - 1].joint[at_u][at_v];
        }
        ratio /= if at_u == 1 { u.p[i] } else { u.prefix[levels.end_u(m)] };
        ratio /= if at_v == 1 { v.p[j] } else { v.prefix[levels.end_v(m)] };
        z[i * v.states() + j] = ratio;
    });
}

/// Adds the derivatives of `Σ counts[i][j] log P(i, j)` by betas and by the logarithms of both margins.
pub(crate) fn gradient(
    u: &Margin,
    v: &Margin,
    betas: &[f64],
    counts: &[f64],
    [by_u, by_v, by_betas]: [&mut [f64]; 3],
) {
    let levels = Levels::new(u, v, betas);
    let deepest = levels.tables.len();
    let mut at_level = vec![[[0.0; 2]; 2]; deepest + 1];
    // What is divided by each prefix.
    let mut over_u = vec![0.0; u.states() + 1];
    let mut over_v = vec![0.0; v.states() + 1];
    levels.entries(|i, j, m, at_u, at_v| {
        let count = counts[i * v.states() + j];
        at_level[m][at_u][at_v] += count;
        if at_u == 0 {
            by_u[i] += count;
            over_u[levels.end_u(m)] += count;
        }
        if at_v == 0 {
            by_v[j] += count;
            over_v[levels.end_v(m)] += count;
        }
    });
    let mut before = at_level[0][0][0];
    for l in 1..=deepest {
        let mut counts = at_level[l];
        counts[0][0] = before;
        before += counts[0][1] + counts[1][0] + counts[1][1];
        let [alpha_u, alpha_v, beta] = levels.tables[l - 1].gradient(&counts);
        by_betas[l - 1] += beta;
        // alpha = log P(state) − log P(before)
        let (state_u, state_v) = (levels.more_u + l, levels.more_v + l);
        by_u[state_u] += alpha_u;
        over_u[state_u] += alpha_u;
        by_v[state_v] += alpha_v;
        over_v[state_v] += alpha_v;
    }
    spread(u, &over_u, by_u);
    spread(v, &over_v, by_v);
}

/// `− Σ over[end] · log prefix[end]`, by the logarithm of each probability.
fn spread(margin: &Margin, over: &[f64], by_log_p: &mut [f64]) {
    let mut sum = 0.0;
    for i in (0..margin.states()).rev() {
        if over[i + 1] != 0.0 {
            sum += over[i + 1] / margin.prefix[i + 1];
        }
        by_log_p[i] -= margin.p[i] * sum;
    }
}

/// The parameters that come nearest to a table: at every level the λ of that table, kept inside its interval.
pub(crate) fn from_joint(u: &Margin, v: &Margin, joint: &[f64], betas: &mut [f64]) {
    let zeros = vec![0.0; betas.len()];
    let levels = Levels::new(u, v, &zeros);
    let mut at_level = vec![[[0.0; 2]; 2]; betas.len() + 1];
    levels.entries(|i, j, m, at_u, at_v| at_level[m][at_u][at_v] += joint[i * v.states() + j]);
    let mut before = at_level[0][0][0];
    for l in 1..=betas.len() {
        let mut table = at_level[l];
        table[0][0] = before;
        let mass = before + table[0][1] + table[1][0] + table[1][1];
        before = mass;
        table.iter_mut().flatten().for_each(|entry| *entry /= mass);
        betas[l - 1] = Frechet::beta(u.steps[levels.more_u + l], v.steps[levels.more_v + l], &table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn margin(states: usize, seed: u64) -> Margin {
        let logits: Vec<f64> = (0..Margin::parameters(states))
            .map(|i| ((seed + 3) as f64 * 1.7 * (i + 1) as f64).sin())
            .collect();
        Margin::from_logits(states, &logits)
    }

    fn betas(k_u: usize, k_v: usize) -> Vec<f64> {
        (0..parameters(k_u, k_v)).map(|l| (2.3 * (l + 1) as f64).cos() * 2.0).collect()
    }

    /// The construction as the appendix of the paper writes it, for square tables.
    fn as_printed(u: &Margin, v: &Margin, lambdas: &[f64]) -> Vec<Vec<f64>> {
        let k = u.states();
        let (s_u, s_v) = (&u.prefix, &v.prefix);
        let mut table = vec![vec![1.0]];
        for l in 2..=k {
            let lambda = lambdas[l - 2];
            let mut next = vec![vec![0.0; l]; l];
            for i in 0..l - 1 {
                for j in 0..l - 1 {
                    next[i][j] = lambda * table[i][j];
                }
                next[i][l - 1] = u.p[i] / s_u[l] - lambda * u.p[i] / s_u[l - 1];
                next[l - 1][i] = v.p[i] / s_v[l] - lambda * v.p[i] / s_v[l - 1];
            }
            next[l - 1][l - 1] = 1.0 - s_u[l - 1] / s_u[l] - s_v[l - 1] / s_v[l] + lambda;
            table = next;
        }
        table
    }

    #[test]
    fn square_tables_are_the_papers() {
        for k in 2..6 {
            let (u, v) = (margin(k, 1), margin(k, 2));
            let betas = betas(k, k);
            let lambdas: Vec<f64> = (1..k)
                .map(|l| {
                    let (a, b) = (u.prefix[l] / u.prefix[l + 1], v.prefix[l] / v.prefix[l + 1]);
                    let (low, high) = ((a + b - 1.0).max(0.0), a.min(b));
                    low + (high - low) / (1.0 + (-betas[l - 1]).exp())
                })
                .collect();
            let expected = as_printed(&u, &v, &lambdas);
            let mut z = vec![0.0; k * k];
            ratios(&u, &v, &betas, &mut z);
            for i in 0..k {
                for j in 0..k {
                    let found = z[i * k + j] * u.p[i] * v.p[j];
                    assert!(
                        (found - expected[i][j]).abs() < 1e-14,
                        "{k}: {i} {j}: {found} {}",
                        expected[i][j]
                    );
                }
            }
        }
    }

    #[test]
    fn margins_are_kept_whatever_the_sizes() {
        for k_u in 1..7 {
            for k_v in 1..7 {
                let (u, v) = (margin(k_u, 4), margin(k_v, 5));
                let mut z = vec![0.0; k_u * k_v];
                ratios(&u, &v, &betas(k_u, k_v), &mut z);
                for i in 0..k_u {
                    let sum: f64 = (0..k_v).map(|j| z[i * k_v + j] * v.p[j]).sum();
                    assert!((sum - 1.0).abs() < 1e-13, "{k_u} {k_v} row {i}: {sum}");
                }
                for j in 0..k_v {
                    let sum: f64 = (0..k_u).map(|i| z[i * k_v + j] * u.p[i]).sum();
                    assert!((sum - 1.0).abs() < 1e-13, "{k_u} {k_v} column {j}: {sum}");
                }
            }
        }
    }

    #[test]
    fn a_table_of_this_form_is_found_again() {
        for (k_u, k_v) in [(2, 2), (3, 3), (2, 5), (4, 3), (5, 5)] {
            let (u, v) = (margin(k_u, 6), margin(k_v, 7));
            let betas = betas(k_u, k_v);
            let mut z = vec![0.0; k_u * k_v];
            ratios(&u, &v, &betas, &mut z);
            for i in 0..k_u {
                for j in 0..k_v {
                    z[i * k_v + j] *= u.p[i] * v.p[j];
                }
            }
            let mut found = vec![0.0; betas.len()];
            from_joint(&u, &v, &z, &mut found);
            for (found, expected) in found.iter().zip(&betas) {
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            }
        }
    }
}
