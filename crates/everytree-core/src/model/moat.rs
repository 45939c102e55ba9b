//! The mixture of all trees of the paper: shared margins, a joint table for every pair, a weight for every edge.
//!
//! ```text
//! p(x) = Σ_trees Π_edges w_e / F(w) · Π_v P_v(x_v) · Π_{edges uv} P_uv(x_u, x_v) / (P_u(x_u) P_v(x_v))
//!      = F(w z(x)) / F(w) · Π_v P_v(x_v)
//! ```
//!
//! Parameters, in one vector: the logarithms of the weights, edge {0,1}, then {0,2}, {1,2}, then {0,3} …; the logits of the
//! margins, variable by variable (none for one state, one for two, else one a state); the parameters of the pair
//! tables, pair by pair in the order of the weights.

use super::family::{ComponentShape, FamilyModel, FamilySpec, Initialisation, Preset, Trees};
use super::inference::{Fork, prepared};
use super::pair::{Margin, lambda, sinkhorn};
use super::series::{Grows, Series};
use super::{ComponentInference, Learnable, ModelError, PairCounts, ParamsView, Settings, UnseenStates};
use crate::data::Codes;
use crate::forest::frechet::Frechet;
use crate::forest::{Backend, Counts, Tables};
use crate::spanning::{Elimination, Kind};
use crate::util::triangle::{self, pair as edge};
use crate::util::{first_not_finite, mutual_information, standard_normals};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// How the joint table of two variables is parameterised.
///
/// ```
/// use everytree_core::model::{Moat, Pairs};
///
/// let moat = Moat::random(vec![3, 3], Pairs::Sinkhorn, 0)?;
/// assert_eq!(moat.pairs(), Pairs::Sinkhorn);
/// # Ok::<(), everytree_core::model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pairs {
    /// The paper's: Fréchet intervals, one parameter for two binary variables, `min(k_u, k_v) − 1` in general. General for
    /// binary variables only.
    Lambda,
    /// A free positive matrix scaled to the margins: every positive table, `k_u · k_v` parameters.
    Sinkhorn,
    /// The tables themselves, and weights and margins as they are: for models that are known, not learned.
    Tables,
}

/// Edges with a mutual information below this have this weight at the start.
const LEAST_INFORMATION: f64 = 1e-7;
/// Margins of a table may be off by this much, relative to themselves.
const MOST_OFF: f64 = 1e-10;
/// Weights further than this below the largest (as logarithms) count as that far.
const LEAST_LOG_WEIGHT: f64 = -600.0;

/// A mixture of all trees.
///
/// ```
/// use everytree_core::model::{Learnable, Moat};
/// use everytree_core::data::Codes;
/// use everytree_core::forest::Cpu;
///
/// // Figure 1 of the paper: three binary variables.
/// let moat = Moat::from_tables(
///     vec![2.0, 6.0, 3.0], // edges ab, ac, bc
///     vec![vec![0.4, 0.6], vec![0.7, 0.3], vec![0.5, 0.5]],
///     vec![
///         vec![0.2, 0.2, 0.5, 0.1], // P(a, b): 00, 01, 10, 11
///         vec![0.1, 0.3, 0.4, 0.2],
///         vec![0.4, 0.3, 0.1, 0.2],
///     ],
/// )?;
/// let cpu = Cpu::<f64>::new();
/// let mut log_p = [0.0];
/// moat.log_likelihood(&cpu, &mut moat.ready(&cpu)?, Codes::new(&[1u8, 0, 1], 3)?, &mut log_p)?;
/// assert!((log_p[0].exp() - 0.15127).abs() < 5e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Moat {
    pub(super) states: Vec<usize>,
    pairs: Pairs,
    parameters: Vec<f64>,
    layout: Layout,
}

/// Where parameters lie.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    /// Of the logits of each variable, and where they end.
    margins: Vec<usize>,
    /// Of the parameters of each pair, and where they end.
    pairs: Vec<usize>,
}

impl Layout {
    fn new(states: &[usize], pairs: Pairs) -> Self {
        let n = states.len();
        let edges = triangle::pairs(n);
        let mut margins = vec![edges];
        for &count in states {
            let parameters = if pairs == Pairs::Tables { count } else { Margin::parameters(count) };
            margins.push(margins[margins.len() - 1] + parameters);
        }
        let mut places = Vec::with_capacity(edges + 1);
        places.push(margins[n]);
        for v in 0..n {
            for u in 0..v {
                let parameters = match pairs {
                    Pairs::Lambda => lambda::parameters(states[u], states[v]),
                    Pairs::Sinkhorn | Pairs::Tables => states[u] * states[v],
                };
                places.push(places[places.len() - 1] + parameters);
            }
        }
        Self { margins, pairs: places }
    }

    fn total(&self) -> usize {
        self.pairs[self.pairs.len() - 1]
    }
}

impl Moat {
    /// From parameters in the order of the module's description.
    pub fn from_parameters(
        states: Vec<usize>,
        pairs: Pairs,
        parameters: Vec<f64>,
    ) -> Result<Self, ModelError> {
        if states.is_empty() {
            return Err(ModelError::NoVariables);
        }
        // The backend's limits, before anything is laid out.
        Tables::check(&states)?;
        let edges = triangle::pairs(states.len());
        if parameters.len() < edges {
            let what = "the list of parameters".to_owned();
            return Err(ModelError::Length { what, found: parameters.len(), expected: edges });
        }
        let layout = Layout::new(&states, pairs);
        if parameters.len() != layout.total() {
            let what = "the list of parameters".to_owned();
            return Err(ModelError::Length { what, found: parameters.len(), expected: layout.total() });
        }
        if let Some(place) = first_not_finite(&parameters) {
            return Err(ModelError::NotANumber { place, value: parameters[place] });
        }
        let moat = Self { states, pairs, parameters, layout };
        if pairs == Pairs::Tables {
            moat.check_tables()?;
        }
        Ok(moat)
    }

    /// Are margins and tables probabilities that agree with each other?
    fn check_tables(&self) -> Result<(), ModelError> {
        let states = &self.states;
        let margins: Vec<Margin> = (0..states.len()).map(|v| self.margin(v)).collect();
        for (v, margin) in margins.iter().enumerate() {
            check_probabilities(&margin.p, 1.0, || format!("the margin of variable {v}"))?;
        }
        for v in 0..states.len() {
            for u in 0..v {
                let (joint, name) = (self.pair(edge(u, v)), joint_name(u, v));
                for (a, line) in joint.chunks_exact(states[v]).enumerate() {
                    let what = || format!("{name}, state {a} of variable {u},");
                    check_probabilities(line, margins[u].p[a], what)?;
                }
                for b in 0..states[v] {
                    let line: Vec<f64> = joint.iter().skip(b).step_by(states[v]).copied().collect();
                    check_probabilities(&line, margins[v].p[b], || {
                        format!("{name}, state {b} of variable {v},")
                    })?;
                }
            }
        }
        Ok(())
    }

    /// From weights, margins and joint tables that are known. Edges and their tables come in the order {0,1}, {0,2}, {1,2},
    /// {0,3} …; a joint table is given row by row, the states of the variable with the smaller number down.
    ///
    /// Refused when margins and tables disagree; the error names the pair.
    pub fn from_tables(
        weights: Vec<f64>,
        margins: Vec<Vec<f64>>,
        joints: Vec<Vec<f64>>,
    ) -> Result<Self, ModelError> {
        let states: Vec<usize> = margins.iter().map(Vec::len).collect();
        let n = states.len();
        if n == 0 || states.contains(&0) {
            return Err(ModelError::NoVariables);
        }
        let edges = triangle::pairs(n);
        for (what, found) in
            [("the list of edge weights", weights.len()), ("the list of joint tables", joints.len())]
        {
            if found != edges {
                return Err(ModelError::Length { what: what.to_owned(), found, expected: edges });
            }
        }
        for v in 0..n {
            for u in 0..v {
                let (found, expected) = (joints[edge(u, v)].len(), states[u] * states[v]);
                if found != expected {
                    return Err(ModelError::Length { what: joint_name(u, v), found, expected });
                }
            }
        }
        let parameters =
            weights.into_iter().chain(margins.into_iter().flatten()).chain(joints.into_iter().flatten());
        Self::from_parameters(states, Pairs::Tables, parameters.collect())
    }

    /// The initialisation of the paper: margins and pair tables from the counts, smoothed by `pseudocount` rows spread
    /// evenly over all states (so that tables keep their margins), and mutual informations as weights.
    pub fn from_counts(counts: &PairCounts, pairs: Pairs, pseudocount: f64) -> Result<Self, ModelError> {
        let states = counts.states().to_vec();
        let mut moat = Self::blank(states, pairs)?;
        let total = counts.total() + pseudocount;
        let margins: Vec<Vec<f64>> = (0..moat.states.len())
            .map(|v| {
                let count = moat.states[v];
                (0..count).map(|a| (counts.single(v, a) + pseudocount / count as f64) / total).collect()
            })
            .collect();
        let made: Vec<Margin> = margins
            .iter()
            .enumerate()
            .map(|(v, p)| {
                let logits = Margin::logits(p);
                let place = moat.layout.margins[v];
                if pairs == Pairs::Tables {
                    moat.parameters[place..place + p.len()].copy_from_slice(p);
                } else {
                    moat.parameters[place..place + logits.len()].copy_from_slice(&logits);
                }
                Margin::from_logits(p.len(), &logits)
            })
            .collect();
        let Self { states, layout, parameters, .. } = &mut moat;
        let (weights, rest) = parameters.split_at_mut(layout.margins[0]);
        let tables = &mut rest[layout.pairs[0] - layout.margins[0]..];
        let work = by_variable(layout, weights, tables);
        work.into_par_iter().for_each(|(v, weights, tables)| {
            let first = layout.pairs[triangle::pairs(v)];
            for u in 0..v {
                let cells = (states[u] * states[v]) as f64;
                let joint: Vec<f64> = (0..states[u])
                    .flat_map(|b| (0..states[v]).map(move |a| (a, b)))
                    .map(|(a, b)| (counts.pair(v, a, u, b) + pseudocount / cells) / total)
                    .collect();
                let information = mutual_information(&joint, &margins[u], &margins[v]).max(LEAST_INFORMATION);
                let e = edge(u, v);
                let table = &mut tables[layout.pairs[e] - first..layout.pairs[e + 1] - first];
                match pairs {
                    Pairs::Lambda => lambda::from_joint(&made[u], &made[v], &joint, table),
                    Pairs::Sinkhorn => table.iter_mut().zip(&joint).for_each(|(b, p)| *b = p.ln()),
                    Pairs::Tables => table.copy_from_slice(&joint),
                }
                weights[u] = if pairs == Pairs::Tables { information } else { information.ln() };
            }
        });
        Ok(moat)
    }

    /// Every parameter from a normal distribution of deviation 1, by seed.
    pub fn random(states: Vec<usize>, pairs: Pairs, seed: u64) -> Result<Self, ModelError> {
        let mut moat = Self::blank(states, pairs)?;
        standard_normals(seed, &mut moat.parameters);
        Ok(moat)
    }

    fn blank(states: Vec<usize>, pairs: Pairs) -> Result<Self, ModelError> {
        if states.is_empty() {
            return Err(ModelError::NoVariables);
        }
        Tables::check(&states)?;
        let layout = Layout::new(&states, pairs);
        let parameters = vec![0.0; layout.total()];
        Ok(Self { states, pairs, parameters, layout })
    }

    /// All parameters, in the order of the module's description.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// All parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut [f64] {
        &mut self.parameters
    }

    /// How pair tables are parameterised.
    pub fn pairs(&self) -> Pairs {
        self.pairs
    }

    /// Where in the vector of parameters the margins and the pair tables begin; weights begin at 0.
    pub fn sections(&self) -> [usize; 2] {
        [self.layout.margins[0], self.layout.pairs[0]]
    }

    /// Where in the vector of parameters the logits of every variable begin, and where the last end; then the same of the parameters
    /// of every pair.
    pub fn places(&self) -> [&[usize]; 2] {
        [&self.layout.margins, &self.layout.pairs]
    }

    /// The weight of every edge, the largest being 1, in the order of the parameters.
    pub fn edge_weights(&self) -> Vec<f64> {
        let weights = &self.parameters[..self.layout.margins[0]];
        let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.pairs {
            Pairs::Tables => weights.iter().map(|weight| weight / most).collect(),
            _ => weights.iter().map(|log| (log - most).max(LEAST_LOG_WEIGHT).exp()).collect(),
        }
    }

    fn margin(&self, v: usize) -> Margin {
        let logits = &self.parameters[self.layout.margins[v]..self.layout.margins[v + 1]];
        match self.pairs {
            Pairs::Tables => Margin::raw(logits.to_vec()),
            _ => Margin::from_logits(self.states[v], logits),
        }
    }

    pub(super) fn pair(&self, e: usize) -> &[f64] {
        &self.parameters[self.layout.pairs[e]..self.layout.pairs[e + 1]]
    }

    /// Weights as a symmetric matrix.
    pub(super) fn weight_matrix(&self) -> Vec<f64> {
        let n = self.states.len();
        let mut matrix = triangle::below_diagonal(n, &self.edge_weights());
        triangle::mirror(n, &mut matrix);
        matrix
    }

    /// The joint tables that scaling gives, where the parameters lie.
    fn scale_tables(&self, margins: &[Margin], joints: &mut [f64]) -> Result<(), ModelError> {
        let work = by_variable(&self.layout, &mut [], joints);
        work.into_par_iter().try_for_each(|(v, _, joints)| {
            let start = self.layout.pairs[triangle::pairs(v)];
            for u in 0..v {
                let e = edge(u, v);
                let joint = &mut joints[self.layout.pairs[e] - start..self.layout.pairs[e + 1] - start];
                let off = sinkhorn::joint(&margins[u], &margins[v], self.pair(e), joint);
                if off > MOST_OFF || off.is_nan() {
                    return Err(ModelError::Unbalanced { u, v, off });
                }
            }
            Ok(())
        })
    }
}

/// Cuts what belongs to pairs into one piece per variable v, for the pairs {u, v} with u < v. `weights` may be empty.
fn by_variable<'a>(
    layout: &Layout,
    weights: &'a mut [f64],
    tables: &'a mut [f64],
) -> Vec<(usize, &'a mut [f64], &'a mut [f64])> {
    let n = layout.margins.len() - 1;
    let has_weights = !weights.is_empty();
    let (mut weights, mut tables) = (weights, tables);
    (0..n)
        .map(|v| {
            let (first, last) = (triangle::pairs(v), triangle::pairs(v + 1));
            let (own, rest) =
                std::mem::take(&mut weights).split_at_mut(if has_weights { last - first } else { 0 });
            weights = rest;
            let (table, rest) =
                std::mem::take(&mut tables).split_at_mut(layout.pairs[last] - layout.pairs[first]);
            tables = rest;
            (v, own, table)
        })
        .collect()
}

fn joint_name(u: usize, v: usize) -> String {
    format!("the joint table of variables {u} and {v}")
}

fn check_probabilities(p: &[f64], expected: f64, what: impl Fn() -> String) -> Result<(), ModelError> {
    if let Some(&value) = p.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(ModelError::Probability { what: what(), value });
    }
    let sum: f64 = p.iter().sum();
    if (sum - expected).abs() > 1e-9 {
        return Err(ModelError::Sum { what: what(), sum, expected });
    }
    Ok(())
}

/// A [`Moat`] ready for a backend.
pub struct MoatReady<B: Backend> {
    pub(super) margins: Vec<Margin>,
    pub(super) tables: Tables,
    /// Nothing while tables are made anew.
    prepared: Option<Arc<B::Prepared>>,
    trace: B::Trace,
    /// Joint tables by scaling, where the parameters of pairs lie; else empty.
    joints: Arc<Vec<f64>>,
    log_prior: f64,
    /// The probability of every edge, before any data.
    prior: Vec<f64>,
}

impl<B: Backend> Fork<B> for MoatReady<B> {
    fn fork(&self, backend: &B) -> Self {
        Self {
            margins: self.margins.clone(),
            tables: self.tables.clone(),
            prepared: self.prepared.clone(),
            trace: backend.trace(),
            joints: Arc::clone(&self.joints),
            log_prior: self.log_prior,
            prior: self.prior.clone(),
        }
    }
}

impl<B: Backend> MoatReady<B> {
    /// The probability that the tree has edge {u, v}, before any data, in the order of the weights.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }
}

/// Expected counts of edges by states, and counts of single states.
pub struct MoatStats {
    counts: Counts,
    singles: Vec<f64>,
    total: f64,
}

impl MoatStats {
    /// The weight of all rows together.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The weight of rows whose tree has edge {u, v}, u < v.
    pub fn edge(&self, u: usize, v: usize) -> f64 {
        self.counts.edge(v, u)
    }
}

impl ParamsView for Moat {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.parameters]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.parameters]
    }
}

impl ParamsView for MoatStats {
    fn slices(&self) -> Vec<&[f64]> {
        vec![self.counts.sums(), &self.singles, std::slice::from_ref(&self.total)]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![self.counts.sums_mut(), &mut self.singles, std::slice::from_mut(&mut self.total)]
    }
}

impl Learnable for Moat {
    type Ready<B: Backend> = MoatReady<B>;
    type Stats = MoatStats;

    fn states(&self) -> &[usize] {
        &self.states
    }

    fn ready<B: Backend>(&self, backend: &B) -> Result<MoatReady<B>, ModelError> {
        let tables = Tables::zeros(Kind::Undirected, &self.states)?;
        let joints = match self.pairs {
            Pairs::Sinkhorn => vec![0.0; self.layout.total() - self.layout.pairs[0]],
            _ => Vec::new(),
        };
        let edges = self.layout.margins[0];
        let mut ready = MoatReady {
            margins: Vec::new(),
            prepared: None,
            tables,
            trace: backend.trace(),
            joints: Arc::new(joints),
            log_prior: 0.0,
            prior: vec![0.0; edges],
        };
        self.refresh(backend, &mut ready)?;
        Ok(ready)
    }

    fn refresh<B: Backend>(&self, backend: &B, ready: &mut MoatReady<B>) -> Result<(), ModelError> {
        if let Some(place) = first_not_finite(&self.parameters) {
            return Err(ModelError::NotANumber { place, value: self.parameters[place] });
        }
        let n = self.states.len();
        let weights = self.weight_matrix();
        let (log_prior, marginals) = Elimination::<f64>::new(Kind::Undirected, n)?.one(&weights)?;
        if log_prior == f64::NEG_INFINITY {
            return Err(ModelError::NoTree);
        }
        ready.log_prior = log_prior;
        for v in 0..n {
            for u in 0..v {
                ready.prior[edge(u, v)] = marginals[v * n + u];
            }
        }
        ready.margins = (0..n).map(|v| self.margin(v)).collect();
        // Not held twice.
        ready.prepared = None;
        let MoatReady { margins, tables, joints, .. } = ready;
        let joints = Arc::make_mut(joints);
        if self.pairs == Pairs::Sinkhorn {
            self.scale_tables(margins, joints)?;
        }
        let first = self.layout.pairs[0];
        tables.fill(|v, line| {
            let mut z = vec![0.0; self.states[v] * self.states[..v].iter().max().unwrap_or(&0)];
            for u in 0..v {
                let (e, weight) = (edge(u, v), weights[v * n + u]);
                let (left, right) = (&margins[u], &margins[v]);
                let columns = self.states[v];
                match self.pairs {
                    Pairs::Lambda if self.states[u] == 2 && columns == 2 => {
                        let ratios = Frechet::new(left.binary(), right.binary(), self.pair(e)[0]).ratios();
                        for (b, ratios) in ratios.iter().enumerate() {
                            (0..2).for_each(|a| line.set(a, u, b, weight * ratios[a]));
                        }
                        continue;
                    }
                    Pairs::Lambda => lambda::ratios(left, right, self.pair(e), &mut z),
                    Pairs::Sinkhorn => {
                        let joint = &joints[self.layout.pairs[e] - first..self.layout.pairs[e + 1] - first];
                        ratios_of(joint, left, right, &mut z);
                    }
                    Pairs::Tables => ratios_of(self.pair(e), left, right, &mut z),
                }
                for b in 0..self.states[u] {
                    (0..columns).for_each(|a| line.set(a, u, b, weight * z[b * columns + a]));
                }
            }
        })?;
        ready.prepared = Some(Arc::new(backend.prepare(&ready.tables)));
        Ok(())
    }

    fn log_likelihood<B: Backend>(
        &self,
        backend: &B,
        ready: &mut MoatReady<B>,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        backend.forward(prepared(&ready.prepared)?, codes, &mut ready.trace, out)?;
        let (margins, log_prior) = (&ready.margins, ready.log_prior);
        const SOME: usize = 128;
        out.par_chunks_mut(SOME).enumerate().for_each(|(chunk, out)| {
            for (i, log_p) in out.iter_mut().enumerate() {
                let row = chunk * SOME + i;
                let singles: f64 = margins.iter().enumerate().map(|(v, m)| m.log_p[codes.get(row, v)]).sum();
                *log_p += singles - log_prior;
            }
        });
        Ok(())
    }

    fn stats<B: Backend>(&self, ready: &MoatReady<B>) -> MoatStats {
        let singles = vec![0.0; self.states.iter().sum()];
        MoatStats { counts: Counts::new(&ready.tables), singles, total: 0.0 }
    }

    fn accumulate<B: Backend>(
        &self,
        backend: &B,
        ready: &mut MoatReady<B>,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut MoatStats,
    ) -> Result<(), ModelError> {
        backend.backward(prepared(&ready.prepared)?, &mut ready.trace, weights, &mut stats.counts)?;
        let offsets = stats.counts.offsets();
        for (row, &weight) in weights.iter().enumerate() {
            for v in 0..self.states.len() {
                stats.singles[offsets[v] + codes.get(row, v)] += weight;
            }
        }
        stats.total += weights.iter().sum::<f64>();
        Ok(())
    }

    fn gradient<B: Backend>(&self, ready: &MoatReady<B>, stats: &MoatStats, gradient: &mut [f64]) {
        assert_eq!(gradient.len(), self.parameters.len(), "one derivative per parameter");
        assert!(self.pairs != Pairs::Tables, "tables as they are have no gradient");
        gradient.fill(0.0);
        let MoatReady { margins, joints, prior, .. } = ready;
        let (states, layout) = (&self.states[..], &self.layout);
        let (offsets, sums) = (stats.counts.offsets(), stats.counts.sums());
        let total = offsets[states.len()];
        let (weights, rest) = gradient.split_at_mut(layout.margins[0]);
        let (logits, pairs) = rest.split_at_mut(layout.pairs[0] - layout.margins[0]);
        // By the logarithm of every probability: what variable v itself gets from its pairs with variables before it,
        // and what those get from it, one line per v, so that every sum has its order.
        let mut passed_on = vec![0.0; states.len() * total];
        let mut own = stats.singles.clone();
        let mut rest = &mut own[..];
        let work: Vec<_> = by_variable(layout, weights, pairs)
            .into_iter()
            .zip(passed_on.chunks_exact_mut(total))
            .map(|((v, weights, pairs), passed_on)| {
                let (own, tail) = std::mem::take(&mut rest).split_at_mut(states[v]);
                rest = tail;
                (v, weights, pairs, passed_on, own)
            })
            .collect();
        work.into_par_iter().for_each(|(v, weights, pairs, passed_on, own)| {
            let first = layout.pairs[triangle::pairs(v)];
            let mut counts = vec![0.0; states[v] * states[..v].iter().max().unwrap_or(&0)];
            for u in 0..v {
                let e = edge(u, v);
                let by_pair = &mut pairs[layout.pairs[e] - first..layout.pairs[e + 1] - first];
                let by_u = &mut passed_on[offsets[u]..offsets[u + 1]];
                let (left, right) = (&margins[u], &margins[v]);
                let counts = &mut counts[..states[u] * states[v]];
                let mut expected = 0.0;
                for a in 0..states[v] {
                    let line = &sums[(offsets[v] + a) * total + offsets[u]..][..states[u]];
                    for (b, &count) in line.iter().enumerate() {
                        counts[b * states[v] + a] = count;
                        // z has both margins below the line.
                        own[a] -= count;
                        by_u[b] -= count;
                        expected += count;
                    }
                }
                weights[u] = expected - stats.total * prior[e];
                match self.pairs {
                    Pairs::Lambda if states[u] == 2 && states[v] == 2 => {
                        let table = Frechet::new(left.binary(), right.binary(), self.pair(e)[0]);
                        let counts = [[counts[0], counts[1]], [counts[2], counts[3]]];
                        let [alpha_u, alpha_v, beta] = table.gradient(&counts);
                        by_pair[0] = beta;
                        left.push_logit(alpha_u, by_u);
                        right.push_logit(alpha_v, own);
                    }
                    Pairs::Lambda => {
                        lambda::gradient(left, right, self.pair(e), counts, [by_u, own, by_pair])
                    }
                    Pairs::Sinkhorn => {
                        let start = layout.pairs[0];
                        let joint = &joints[layout.pairs[e] - start..layout.pairs[e + 1] - start];
                        sinkhorn::gradient(left, right, joint, counts, [by_u, own, by_pair]);
                    }
                    Pairs::Tables => unreachable!("asked above"),
                }
            }
        });
        for v in 0..states.len() {
            let mut by_log_p = own[offsets[v]..offsets[v + 1]].to_vec();
            for line in passed_on.chunks_exact(total).skip(v + 1) {
                by_log_p
                    .iter_mut()
                    .zip(&line[offsets[v]..offsets[v + 1]])
                    .for_each(|(sum, &part)| *sum += part);
            }
            let place = layout.margins[v] - layout.margins[0]..layout.margins[v + 1] - layout.margins[0];
            margins[v].pull_back(&by_log_p, &mut logits[place]);
        }
    }

    fn smooth_unseen(&mut self, unseen: &[UnseenStates]) {
        if self.pairs == Pairs::Tables {
            return;
        }
        for unseen in unseen {
            let mut p = self.margin(unseen.variable).p;
            unseen.states.iter().for_each(|&a| p[a] = 0.0);
            let rest: f64 = p.iter().sum();
            unseen.states.iter().for_each(|&a| p[a] = rest * unseen.odds());
            let place = self.layout.margins[unseen.variable];
            let logits = Margin::logits(&p);
            self.parameters[place..place + logits.len()].copy_from_slice(&logits);
        }
    }
}

/// The paper's settings, with an end where validation does not get better.
fn shorter(usual: Settings) -> Settings {
    Settings { patience: Some(6), ..usual }
}

impl FamilyModel for Moat {
    const SPEC: FamilySpec = FamilySpec {
        name: "moat",
        title: "mixture of all trees",
        presets: &[Preset {
            aliases: &["mixture-of-all-trees"],
            ..Preset::one("moat", "the mixture of all trees of the paper: spanning trees, shared margins")
        }],
        trees: Trees::All,
        pair_tables: true,
        // Tables are bound to the margins.
        laplace: false,
        series: &[Series { settings: shorter, ..Series::new(9, Grows::Prior(&[1.0])) }],
        ..FamilySpec::USUAL
    };

    fn settings(variables: usize) -> Settings {
        Settings::paper(variables)
    }

    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        Moat::from_counts(&from.counts, from.shape.pairs.unwrap_or(Pairs::Lambda), from.pseudocount)
    }

    fn random(states: &[usize], shape: &ComponentShape, seed: u64) -> Result<Self, ModelError> {
        Moat::random(states.to_vec(), shape.pairs.unwrap_or(Pairs::Lambda), seed)
    }

    fn shape(&self) -> ComponentShape {
        ComponentShape { pairs: Some(self.pairs), ..ComponentShape::default() }
    }

    fn list_names(shape: &ComponentShape) -> &'static [&'static str] {
        match shape.pairs {
            Some(Pairs::Tables) => &["edges.weight", "margins.probability", "pairs.probability"],
            Some(Pairs::Sinkhorn) => &["edges.log_weight", "margins.logit", "pairs.log_matrix"],
            Some(Pairs::Lambda) | None => &["edges.log_weight", "margins.logit", "pairs.frechet_logit"],
        }
    }

    fn lists(&self) -> Vec<Cow<'_, [f64]>> {
        let [margins, pairs] = self.sections();
        let all = &self.parameters;
        vec![all[..margins].into(), all[margins..pairs].into(), all[pairs..].into()]
    }

    fn from_numbers(states: &[usize], shape: &ComponentShape, numbers: Vec<f64>) -> Result<Self, ModelError> {
        let pairs = shape.pairs.unwrap_or(Pairs::Lambda);
        Moat::from_parameters(states.to_vec(), pairs, numbers)
    }

    fn kind(&self) -> Kind {
        Kind::Undirected
    }

    fn weights(&self) -> Vec<f64> {
        triangle::below_diagonal(self.states.len(), &self.edge_weights())
    }

    fn degrees_of_freedom(&self) -> usize {
        self.parameters.len()
    }

    fn prior_edges<B: Backend>(&self, ready: &MoatReady<B>) -> Vec<f64> {
        triangle::below_diagonal(self.states.len(), &ready.prior)
    }

    fn edge_counts(&self, stats: &MoatStats) -> Vec<f64> {
        let n = self.states.len();
        let mut edges = vec![0.0; n * n];
        for v in 0..n {
            (0..v).for_each(|u| edges[v * n + u] = stats.counts.edge(v, u));
        }
        edges
    }

    fn inference(&self) -> Result<ComponentInference<'_>, ModelError> {
        Ok(ComponentInference::AllTrees(Box::new(self.density()?)))
    }
}

/// `P(b, a) / (P(b) P(a))`; nothing over nothing is nothing.
pub(super) fn ratios_of(joint: &[f64], u: &Margin, v: &Margin, z: &mut [f64]) {
    for (b, &left) in u.p.iter().enumerate() {
        for (a, &right) in v.p.iter().enumerate() {
            let place = b * v.states() + a;
            z[place] = if joint[place] > 0.0 { joint[place] / left / right } else { 0.0 };
        }
    }
}
