//! Exact answers on one tree: two passes of messages.
//!
//! Upwards, every variable tells its parent how likely the evidence below is for each state of the parent; downwards,
//! posteriors come back. Every message is scaled, so that thousands of variables do not underflow; what was scaled away is
//! the probability of the evidence.

use super::evidence::Evidence;
use crate::model::{EdgeTables, TreeTables};
use crate::spanning::RootedForest;
use rand::{Rng, RngExt};

/// The messages of one tree, and room for the next: nothing is allocated from tree to tree.
pub struct Messages<'a, T = TreeTables> {
    tables: &'a T,
    /// `up[v:b]`: likelihood of the evidence at and below v, up to scale.
    up: Vec<f64>,
    /// `passed[v · most + a]`: what v told its parent about the parent's state a.
    passed: Vec<f64>,
    most: usize,
    /// `posterior[v:b]`, after the way down.
    posterior: Vec<f64>,
    log_evidence: f64,
}

/// Numbers below this are scaled up before they are multiplied any further.
const SMALL: f64 = 1e-100;

/// Divides by the largest, and gives it back; nothing if all are zero.
fn rescale(numbers: &mut [f64]) -> Option<f64> {
    let largest = numbers.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return None;
    }
    if largest >= SMALL {
        let inverse = 1.0 / largest;
        numbers.iter_mut().for_each(|number| *number *= inverse);
    } else {
        // The inverse of the smallest numbers is infinite.
        numbers.iter_mut().for_each(|number| *number /= largest);
    }
    Some(largest)
}

impl<'a, T: EdgeTables> Messages<'a, T> {
    /// For trees with these tables.
    pub fn new(tables: &'a T) -> Self {
        let total = tables.offsets()[tables.variables()];
        let most = (0..tables.variables()).map(|v| tables.states(v)).max().unwrap_or(0);
        Self {
            tables,
            up: vec![0.0; total],
            passed: vec![0.0; tables.variables() * most],
            most,
            posterior: vec![0.0; total],
            log_evidence: f64::NEG_INFINITY,
        }
    }

    pub(crate) fn offsets(&self) -> &'a [usize] {
        self.tables.offsets()
    }

    /// The way up: the natural logarithm of the probability of the evidence under this tree; `-inf` if it is impossible.
    ///
    /// # Panics
    /// When the tree or the evidence has other variables than the tables.
    pub fn collect(&mut self, tree: &RootedForest, evidence: &Evidence) -> f64 {
        let (tables, offsets) = (self.tables, self.tables.offsets());
        assert_eq!(tree.len(), tables.variables(), "a tree over the variables of the tables");
        self.up.copy_from_slice(evidence.all());
        // Products of scales, whose logarithm is taken before they leave the range of f64.
        let (mut log, mut scale) = (0.0, 1.0f64);
        for &v in tree.order().iter().rev() {
            let own = offsets[v]..offsets[v + 1];
            let Some(largest) = rescale(&mut self.up[own.clone()]) else {
                self.log_evidence = f64::NEG_INFINITY;
                return self.log_evidence;
            };
            if largest < SMALL {
                log += largest.ln();
            } else {
                scale *= largest;
            }
            match tree.parent(v) {
                None => scale *= dot(tables.root(v), &self.up[own]),
                Some(u) => {
                    // Most cells are observed: of those there is one state to look at, in the child and in the parent.
                    let only = only(&self.up[own.clone()]);
                    let mut most = 0.0f64;
                    for a in 0..tables.states(u) {
                        if self.up[offsets[u] + a] == 0.0 {
                            continue;
                        }
                        let given = tables.given(u, a, v);
                        let told = match only {
                            Some(b) => given[b] * self.up[own.start + b],
                            None => dot(given, &self.up[own.clone()]),
                        };
                        self.passed[v * self.most + a] = told;
                        self.up[offsets[u] + a] *= told;
                        most = most.max(self.up[offsets[u] + a]);
                    }
                    // A vertex with hundreds of children would underflow before its own turn comes.
                    if most < SMALL {
                        let Some(largest) = rescale(&mut self.up[offsets[u]..offsets[u + 1]]) else {
                            self.log_evidence = f64::NEG_INFINITY;
                            return self.log_evidence;
                        };
                        log += largest.ln();
                    }
                }
            }
            if !(1e-100..1e100).contains(&scale) {
                log += scale.ln();
                scale = 1.0;
            }
        }
        self.log_evidence = log + scale.ln();
        self.log_evidence
    }

    /// The way down, after [`Messages::collect`] with the same tree: the posterior of every state of every variable.
    /// Of impossible evidence there is none: all are zero.
    pub fn distribute(&mut self, tree: &RootedForest) -> &[f64] {
        let offsets = self.tables.offsets();
        if self.log_evidence == f64::NEG_INFINITY {
            self.posterior.fill(0.0);
            return &self.posterior;
        }
        for &v in tree.order() {
            let own = offsets[v]..offsets[v + 1];
            match tree.parent(v) {
                None => {
                    let parts = self.tables.root(v).iter().zip(&self.up[own.clone()]);
                    let products: f64 = parts.map(|(p, up)| p * up).sum();
                    for (b, place) in own.enumerate() {
                        self.posterior[place] = self.tables.root(v)[b] * self.up[place] / products;
                    }
                }
                Some(u) => {
                    self.posterior[own.clone()].fill(0.0);
                    for a in 0..self.tables.states(u) {
                        let share = self.share(u, a, v);
                        if share > 0.0 {
                            let given = self.tables.given(u, a, v);
                            let parts = given.iter().zip(&self.up[own.clone()]);
                            let to = self.posterior[own.clone()].iter_mut().zip(parts);
                            to.for_each(|(to, (p, up))| *to += share * p * up);
                        }
                    }
                }
            }
        }
        &self.posterior
    }

    /// The posterior of a parent's state over what its child v told about it; of impossible states nothing was told.
    fn share(&self, u: usize, a: usize, v: usize) -> f64 {
        let (posterior, told) =
            (self.posterior[self.tables.offsets()[u] + a], self.passed[v * self.most + a]);
        if posterior > 0.0 { posterior / told } else { 0.0 }
    }

    /// The joint posterior of v and its parent, `joint[a][b]` row by row for the parent's states a, after
    /// [`Messages::distribute`]; nothing for a root.
    pub fn pair(&self, tree: &RootedForest, v: usize) -> Option<Vec<f64>> {
        let u = tree.parent(v)?;
        let own = self.tables.offsets()[v]..self.tables.offsets()[v + 1];
        let mut joint = Vec::with_capacity(self.tables.states(u) * own.len());
        for a in 0..self.tables.states(u) {
            let share = self.share(u, a, v);
            joint.extend(
                self.tables.given(u, a, v).iter().zip(&self.up[own.clone()]).map(|(p, up)| share * p * up),
            );
        }
        Some(joint)
    }

    /// A row at random, given the evidence, after [`Messages::collect`] with the same tree. Nothing if the evidence is
    /// impossible.
    pub fn draw(&self, tree: &RootedForest, rng: &mut (impl Rng + ?Sized)) -> Option<Vec<u16>> {
        if self.log_evidence == f64::NEG_INFINITY {
            return None;
        }
        let offsets = self.tables.offsets();
        let mut row = vec![0u16; tree.len()];
        for &v in tree.order() {
            let before = match tree.parent(v) {
                None => self.tables.root(v),
                Some(u) => self.tables.given(u, usize::from(row[u]), v),
            };
            let up = &self.up[offsets[v]..offsets[v + 1]];
            let mut left = rng.random::<f64>() * dot(before, up);
            let mut state = 0;
            // The last state with any chance catches what rounding leaves over.
            for (b, (p, up)) in before.iter().zip(up).enumerate() {
                if p * up > 0.0 {
                    state = b;
                    left -= p * up;
                    if left < 0.0 {
                        break;
                    }
                }
            }
            row[v] = state as u16;
        }
        Some(row)
    }

    /// The most probable row given the evidence under this tree, and the logarithm of its probability times the likelihood of
    /// its states; the first of several. Nothing if the evidence is impossible.
    pub fn most_probable(&mut self, tree: &RootedForest, evidence: &Evidence) -> Option<(Vec<u16>, f64)> {
        let (tables, offsets) = (self.tables, self.tables.offsets());
        // best[v:b]: the logarithm of the best that can be at and below v.
        let mut best: Vec<f64> = evidence.all().iter().map(|likelihood| likelihood.ln()).collect();
        let mut choice = vec![0u16; tree.len() * self.most];
        let mut total = 0.0;
        let mut row = vec![0u16; tree.len()];
        let top = |before: &[f64], best: &[f64]| {
            let mut top = (0, f64::NEG_INFINITY);
            for (b, (p, best)) in before.iter().zip(best).enumerate() {
                let log = p.ln() + best;
                if log > top.1 {
                    top = (b, log);
                }
            }
            top
        };
        for &v in tree.order().iter().rev() {
            let own = offsets[v]..offsets[v + 1];
            match tree.parent(v) {
                None => {
                    let (state, log) = top(tables.root(v), &best[own]);
                    row[v] = state as u16;
                    total += log;
                }
                Some(u) => {
                    for a in 0..tables.states(u) {
                        let (state, log) = top(tables.given(u, a, v), &best[own.clone()]);
                        choice[v * self.most + a] = state as u16;
                        best[offsets[u] + a] += log;
                    }
                }
            }
        }
        if total == f64::NEG_INFINITY {
            return None;
        }
        for &v in tree.order() {
            if let Some(u) = tree.parent(v) {
                row[v] = choice[v * self.most + usize::from(row[u])];
            }
        }
        Some((row, total))
    }
}

/// The only number that is not zero, if there is one.
fn only(numbers: &[f64]) -> Option<usize> {
    let mut others = numbers.iter().enumerate().filter(|(_, number)| **number != 0.0);
    match (others.next(), others.next()) {
        (Some((place, _)), None) => Some(place),
        _ => None,
    }
}

/// In several sums, so that one need not wait for the other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const SUMS: usize = 8;
    let mut sums = [0.0; SUMS];
    let (a, b) = (a.chunks_exact(SUMS), b.chunks_exact(SUMS));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        (0..SUMS).for_each(|i| sums[i] += a[i] * b[i]);
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    /// Random tables: any conditional distributions make a tree model.
    fn tables(states: &[usize], rng: &mut Pcg64) -> TreeTables {
        let mut draw = |count: usize| -> Vec<f64> {
            let raw: Vec<f64> = (0..count).map(|_| -rng.random::<f64>().ln()).collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter().map(|p| p / sum).collect()
        };
        let n = states.len();
        let roots: Vec<Vec<f64>> = states.iter().map(|&k| draw(k)).collect();
        let given: Vec<Vec<f64>> =
            (0..n * n).map(|i| (0..states[i / n]).flat_map(|_| draw(states[i % n])).collect()).collect();
        TreeTables::build(states, |u, a, v, b| given[u * n + v][a * states[v] + b], |v, b| roots[v][b])
    }

    fn forest(n: usize, rng: &mut Pcg64) -> RootedForest {
        let parents =
            (0..n).map(|v| if v == 0 || rng.random_bool(0.15) { v } else { rng.random_range(0..v) });
        RootedForest::from_parents(parents.collect()).unwrap()
    }

    fn rows(states: &[usize]) -> Vec<Vec<u16>> {
        let mut all = vec![vec![]];
        for &count in states {
            all = all
                .into_iter()
                .flat_map(|row: Vec<u16>| (0..count as u16).map(move |state| [&row[..], &[state]].concat()))
                .collect();
        }
        all
    }

    fn probability(tables: &TreeTables, tree: &RootedForest, row: &[u16]) -> f64 {
        (0..row.len())
            .map(|v| match tree.parent(v) {
                None => tables.root(v)[usize::from(row[v])],
                Some(u) => tables.given(u, usize::from(row[u]), v)[usize::from(row[v])],
            })
            .product()
    }

    const STATES: [usize; 6] = [2, 3, 2, 4, 1, 3];

    fn some_evidence(round: usize, rng: &mut Pcg64) -> Evidence {
        let mut evidence = Evidence::none(&STATES);
        match round % 4 {
            0 => {}
            1 => evidence.set(1, &[2]).unwrap(),
            2 => {
                evidence.set(3, &[0, 3]).unwrap();
                evidence.soft(5, &[0.2, rng.random(), 0.7]).unwrap();
            }
            _ => {
                evidence.set(0, &[1]).unwrap();
                evidence.set(2, &[0]).unwrap();
                evidence.set(5, &[1, 2]).unwrap();
            }
        }
        evidence
    }

    #[test]
    fn evidence_posteriors_and_pairs_agree_with_enumeration() {
        let mut rng = Pcg64::seed_from_u64(1);
        let all = rows(&STATES);
        for round in 0..40 {
            let (tables, tree) = (tables(&STATES, &mut rng), forest(6, &mut rng));
            let evidence = some_evidence(round, &mut rng);
            let weight = |row: &[u16]| -> f64 {
                let likelihood: f64 = (0..6).map(|v| evidence.of(v)[usize::from(row[v])]).product();
                likelihood * probability(&tables, &tree, row)
            };
            let total: f64 = all.iter().map(|row| weight(row)).sum();
            let mut messages = Messages::new(&tables);
            assert!((messages.collect(&tree, &evidence) - total.ln()).abs() < 1e-12);
            let posterior = messages.distribute(&tree).to_vec();
            let mut place = 0;
            for v in 0..6 {
                for b in 0..STATES[v] {
                    let sum: f64 =
                        all.iter().filter(|row| usize::from(row[v]) == b).map(|row| weight(row)).sum();
                    assert!((posterior[place] - sum / total).abs() < 1e-12);
                    place += 1;
                }
                let Some(joint) = messages.pair(&tree, v) else { continue };
                let u = tree.parent(v).unwrap();
                for a in 0..STATES[u] {
                    for b in 0..STATES[v] {
                        let both = |row: &&Vec<u16>| usize::from(row[u]) == a && usize::from(row[v]) == b;
                        let sum: f64 = all.iter().filter(both).map(|row| weight(row)).sum();
                        assert!((joint[a * STATES[v] + b] - sum / total).abs() < 1e-12);
                    }
                }
            }
            let (row, log) = messages.most_probable(&tree, &evidence).unwrap();
            let best = all.iter().map(|row| weight(row)).fold(0.0, f64::max);
            assert!((log - best.ln()).abs() < 1e-12 && (weight(&row) - best).abs() < 1e-12);
        }
    }

    /// Chi-square of conditional draws against enumeration.
    #[test]
    fn draws_follow_the_posterior() {
        let mut rng = Pcg64::seed_from_u64(2);
        let (tables, tree) = (tables(&STATES, &mut rng), forest(6, &mut rng));
        let evidence = some_evidence(3, &mut rng);
        let mut messages = Messages::new(&tables);
        let total = messages.collect(&tree, &evidence).exp();
        let all = rows(&STATES);
        const DRAWS: usize = 40_000;
        let mut seen = std::collections::HashMap::new();
        for _ in 0..DRAWS {
            *seen.entry(messages.draw(&tree, &mut rng).unwrap()).or_insert(0usize) += 1;
        }
        let (mut chi_square, mut cells) = (0.0, 0usize);
        for row in &all {
            let likelihood: f64 = (0..6).map(|v| evidence.of(v)[usize::from(row[v])]).product();
            let expected = DRAWS as f64 * likelihood * probability(&tables, &tree, row) / total;
            let found = seen.get(row).copied().unwrap_or(0) as f64;
            if expected == 0.0 {
                assert_eq!(found, 0.0);
            } else if expected >= 5.0 {
                chi_square += (found - expected).powi(2) / expected;
                cells += 1;
            }
        }
        // Wilson and Hilferty: the 1 − 10⁻⁶ quantile.
        let freedom = (cells - 1) as f64;
        let limit = freedom * (1.0 - 2.0 / (9.0 * freedom) + 4.75 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
        assert!(chi_square < limit, "{chi_square} {limit} {cells}");
    }

    #[test]
    fn two_thousand_variables_do_not_underflow() {
        let mut rng = Pcg64::seed_from_u64(3);
        let n = 2000;
        let states = vec![2; n];
        let tables = TreeTables::build(&states, |_, a, _, b| if a == b { 0.999 } else { 0.001 }, |_, _| 0.5);
        let tree = RootedForest::from_parents((0..n).map(|v: usize| v.saturating_sub(1)).collect()).unwrap();
        let mut evidence = Evidence::none(&states);
        (0..n).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
        let mut messages = Messages::new(&tables);
        let expected = 0.5f64.ln() + (n - 1) as f64 * 0.001f64.ln();
        assert!((messages.collect(&tree, &evidence) - expected).abs() < 1e-8);
        let (row, log) = messages.most_probable(&tree, &evidence).unwrap();
        assert!((log - expected).abs() < 1e-8);
        assert!((0..n).all(|v| usize::from(row[v]) == v % 2));
        assert_eq!(messages.draw(&tree, &mut rng).unwrap(), row);
    }

    /// A star: the centre hears from a thousand leaves before its own turn comes. And likelihoods near the end of the range.
    #[test]
    fn a_thousand_leaves_do_not_underflow() {
        let n = 1001;
        let states = vec![2; n];
        let tables = TreeTables::build(&states, |_, a, _, b| if a == b { 0.999 } else { 0.001 }, |_, _| 0.5);
        let tree = RootedForest::from_parents(vec![0; n]).unwrap();
        let mut evidence = Evidence::none(&states);
        evidence.set(0, &[0]).unwrap();
        (1..n).for_each(|v| evidence.set(v, &[1]).unwrap());
        let mut messages = Messages::new(&tables);
        let expected = 0.5f64.ln() + 1000.0 * 0.001f64.ln();
        assert!((messages.collect(&tree, &evidence) - expected).abs() < 1e-8);
        let mut soft = Evidence::none(&states);
        (0..n).for_each(|v| soft.soft(v, &[1e-310, 2e-310]).unwrap());
        let found = messages.collect(&tree, &soft);
        let at_least = n as f64 * 1e-310f64.ln();
        assert!(found > at_least && found < at_least + n as f64 * 2f64.ln(), "{found}");
        assert!(messages.distribute(&tree).iter().all(|p| p.is_finite()));
    }

    #[test]
    fn impossible_evidence_is_said_to_be() {
        let tables = TreeTables::build(&[2, 2], |_, a, _, b| f64::from(u8::from(a == b)), |_, _| 0.5);
        let tree = RootedForest::from_parents(vec![0, 0]).unwrap();
        let mut evidence = Evidence::none(&[2, 2]);
        evidence.set(0, &[0]).unwrap();
        evidence.set(1, &[1]).unwrap();
        let mut messages = Messages::new(&tables);
        assert_eq!(messages.collect(&tree, &evidence), f64::NEG_INFINITY);
        assert!(messages.distribute(&tree).iter().all(|p| *p == 0.0));
        assert_eq!(messages.draw(&tree, &mut Pcg64::seed_from_u64(1)), None);
        assert_eq!(messages.most_probable(&tree, &evidence), None);
    }
}
