//! Distributions that are one tree: the neighbours of the mixtures of all trees, to compare them with.
//!
//! [`Structure::Independent`] has no edges. [`Structure::ChowLiu`] is the tree of the highest mutual information; mixed, it is
//! the mixture of trees of Meilă and Jordan, and expectation–maximisation finds a new tree in every step.
//! [`Structure::Hidden`] is the hidden Chow–Liu tree: every variable hangs at a hidden one of its own, and the hidden
//! ones form the tree.
//!
//! Parameters, in one vector: the parent of every variable, a root being its own (hidden variables come after the others);
//! then the logits of the tables, variable by variable, a line for every state of the parent. There is room for as many
//! lines as any parent has states; a root has its table in the first line.

mod hidden;

use super::chow_liu;
use super::{Learnable, ModelError, Numbers, PairCounts, Regularisation, Unseen};
use crate::data::{Codes, CodesError};
use crate::forest::{Backend, Tables};
use crate::spanning::RootedForest;
use crate::util::log_sum;
use crate::util::offsets;
use hidden::Chunks;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

/// What hangs where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Nothing at anything.
    Independent,
    /// As the mutual information of the rows has it, learned along with the tables.
    ChowLiu,
    /// Every variable at a hidden one with so many states; between those as mutual information had it at the start.
    Hidden(usize),
}

/// Most states of a hidden variable.
pub const MAX_HIDDEN: usize = 1024;

/// No probability comes out of counts below this.
const LEAST_PROBABILITY: f64 = 1e-12;
/// Rows of one task.
const CHUNK: usize = 1024;

/// A distribution that is one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct OneTree {
    structure: Structure,
    /// Of the variables that are observed.
    states: Vec<usize>,
    layout: Layout,
    parameters: Vec<f64>,
}

/// Where things lie.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    /// States of all variables, the hidden ones last.
    states: Vec<usize>,
    /// Of the states of each variable among all states, and where they end.
    offsets: Vec<usize>,
    /// Lines of every table.
    lines: usize,
    /// Of the table of each variable, and where they end.
    tables: Vec<usize>,
}

impl Layout {
    fn new(states: &[usize], structure: Structure) -> Self {
        let mut all = states.to_vec();
        let lines = match structure {
            Structure::Independent => 1,
            Structure::ChowLiu => states.iter().copied().max().unwrap_or(1),
            Structure::Hidden(count) => {
                all.extend(std::iter::repeat_n(count, states.len()));
                count
            }
        };
        let offsets = offsets(&all);
        let tables = offsets.iter().map(|offset| lines * offset).collect();
        Self { states: all, offsets, lines, tables }
    }

    fn variables(&self) -> usize {
        self.states.len()
    }

    /// Numbers of all tables.
    fn size(&self) -> usize {
        self.tables[self.variables()]
    }
}

/// A [`OneTree`] made ready: its tree, and probabilities where the logits lie.
#[derive(Clone, Debug)]
pub struct OneTreeReady {
    layout: Layout,
    /// Does every variable hang at a hidden one?
    hidden: bool,
    tree: RootedForest,
    p: Vec<f64>,
    /// Logarithms of them, where nothing is hidden.
    log_p: Vec<f64>,
}

impl OneTreeReady {
    /// The tree, hidden variables after the others.
    pub fn tree(&self) -> &RootedForest {
        &self.tree
    }

    /// States of all variables, the hidden ones last.
    pub fn states(&self) -> &[usize] {
        &self.layout.states
    }

    /// How many variables are observed.
    pub fn observed(&self) -> usize {
        if self.hidden { self.tree.len() / 2 } else { self.tree.len() }
    }

    /// Where the states of each variable begin among all states, and how many there are in all.
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.layout.offsets
    }

    /// `P(x_v = · | x_u = a)` for the parent u of v; a root has its distribution in line 0.
    pub(crate) fn line(&self, v: usize, a: usize) -> &[f64] {
        &self.p[self.layout.tables[v] + a * self.layout.states[v]..][..self.layout.states[v]]
    }

    /// 1 for the parent of every variable, at `v · n + u`; of hidden variables, among those that hang at them.
    pub(crate) fn edges(&self, n: usize) -> Vec<f64> {
        edges(self.tree.parents(), n, 1.0)
    }

    /// Lines of the table of v that are used.
    fn lines(&self, v: usize) -> usize {
        self.tree.parent(v).map_or(1, |u| self.layout.states[u])
    }
}

/// What a [`OneTree`] adds up over rows.
pub struct OneTreeStats {
    /// Of every two states, where the tree is learned from them.
    pairs: Option<PairCounts>,
    /// Where the logits lie, else.
    tables: Vec<f64>,
    total: f64,
    parents: Vec<usize>,
}

impl OneTreeStats {
    /// The weight of rows whose tree has each edge, v with its parent u at `v · n + u`; a root with itself. Of hidden
    /// variables, the edges between the variables that hang at them.
    pub fn edges(&self, n: usize) -> Vec<f64> {
        edges(&self.parents, n, self.total)
    }
}

/// A weight for the parent of every variable that is observed: its own, or that among the hidden ones at which they hang.
fn edges(parents: &[usize], n: usize, weight: f64) -> Vec<f64> {
    let mut edges = vec![0.0; n * n];
    let first = parents.len() - n;
    parents[first..].iter().enumerate().for_each(|(v, u)| edges[v * n + u - first] = weight);
    edges
}

impl OneTree {
    /// From parameters in the order of the module's description.
    pub fn from_parameters(
        states: Vec<usize>,
        structure: Structure,
        parameters: Vec<f64>,
    ) -> Result<Self, ModelError> {
        let mut tree = Self::blank(states, structure)?;
        let (found, expected) = (parameters.len(), tree.parameters.len());
        if found != expected {
            return Err(ModelError::Length { what: "the list of parameters".to_owned(), found, expected });
        }
        tree.parameters = parameters;
        tree.check()?;
        Ok(tree)
    }

    fn blank(states: Vec<usize>, structure: Structure) -> Result<Self, ModelError> {
        if states.is_empty() {
            return Err(ModelError::NoVariables);
        }
        Tables::check(&states)?;
        if let Structure::Hidden(count) = structure
            && !(1..=MAX_HIDDEN).contains(&count)
        {
            return Err(ModelError::Hidden(count));
        }
        let layout = Layout::new(&states, structure);
        let parents = (0..layout.variables()).map(|v| v as f64);
        let parameters = parents.chain(std::iter::repeat_n(0.0, layout.size())).collect();
        Ok(Self { structure, states, layout, parameters })
    }

    /// Columns that have nothing to do with each other, with the margins of the rows, smoothed by so many rows of even chance.
    pub fn independent(counts: &PairCounts, pseudo_rows: f64) -> Result<Self, ModelError> {
        let mut tree = Self::blank(counts.states().to_vec(), Structure::Independent)?;
        let n = tree.states.len();
        for v in 0..n {
            let margin = chow_liu::margin(counts, v, pseudo_rows);
            let place = n + tree.layout.tables[v];
            tree.parameters[place..place + margin.len()]
                .iter_mut()
                .zip(&margin)
                .for_each(|(logit, p)| *logit = p.max(LEAST_PROBABILITY).ln());
        }
        Ok(tree)
    }

    /// The tree of the highest mutual information, its tables smoothed by so many rows of even chance for every pair.
    pub fn chow_liu(counts: &PairCounts, pseudo_rows: f64) -> Result<Self, ModelError> {
        let mut tree = Self::blank(counts.states().to_vec(), Structure::ChowLiu)?;
        tree.learn_tree(counts, pseudo_rows);
        Ok(tree)
    }

    /// Takes tree and tables from counts.
    fn learn_tree(&mut self, counts: &PairCounts, pseudo_rows: f64) {
        let n = self.states.len();
        let parents = chow_liu::best_tree(counts, pseudo_rows);
        let (own, tables) = self.parameters.split_at_mut(n);
        tables.fill(0.0);
        for (v, &u) in parents.iter().enumerate() {
            own[v] = u as f64;
            let lines = match u == v {
                true => chow_liu::margin(counts, v, pseudo_rows),
                false => chow_liu::conditional(counts, v, u, pseudo_rows),
            };
            let table = &mut tables[self.layout.tables[v]..][..lines.len()];
            table.iter_mut().zip(lines).for_each(|(logit, p)| *logit = p.max(LEAST_PROBABILITY).ln());
        }
    }

    /// A hidden tree with these parents among the hidden variables (a root is its own), and tables as they come:
    /// `line(v, a)` is the distribution of v given state a of its parent, hidden variables after the others.
    pub fn hidden(
        states: &[usize],
        count: usize,
        parents: &[usize],
        line: impl Fn(usize, usize) -> Vec<f64>,
    ) -> Result<Self, ModelError> {
        let mut tree = Self::blank(states.to_vec(), Structure::Hidden(count))?;
        let n = states.len();
        if parents.len() != n {
            let what = "the list of parents".to_owned();
            return Err(ModelError::Length { what, found: parents.len(), expected: n });
        }
        for v in 0..n {
            tree.parameters[v] = (n + v) as f64;
            tree.parameters[n + v] = (n + parents[v]) as f64;
        }
        for v in 0..2 * n {
            for a in 0..count {
                let line = line(v, a);
                let place = 2 * n + tree.layout.tables[v] + a * tree.layout.states[v];
                tree.parameters[place..place + line.len()]
                    .iter_mut()
                    .zip(&line)
                    .for_each(|(logit, p)| *logit = p.max(LEAST_PROBABILITY).ln());
            }
        }
        tree.check()?;
        Ok(tree)
    }

    /// A chain of all variables in order (of independent ones: none), every table by chance, by seed.
    pub fn random(states: Vec<usize>, structure: Structure, seed: u64) -> Result<Self, ModelError> {
        let mut tree = Self::blank(states, structure)?;
        let (n, all) = (tree.states.len(), tree.layout.variables());
        for v in 0..all {
            tree.parameters[v] = match structure {
                Structure::Independent => v,
                Structure::ChowLiu => v.saturating_sub(1),
                Structure::Hidden(_) if v < n => n + v,
                Structure::Hidden(_) => (v - 1).max(n),
            } as f64;
        }
        let mut rng = Pcg64::seed_from_u64(seed);
        for logit in &mut tree.parameters[all..] {
            // Box and Muller.
            let (radius, angle): (f64, f64) = (rng.random(), rng.random());
            *logit = (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        }
        Ok(tree)
    }

    /// Are the parents those of a forest that this structure can have, and all numbers finite?
    fn check(&self) -> Result<(), ModelError> {
        if let Some(place) = self.parameters.iter().position(|value| !value.is_finite()) {
            return Err(ModelError::NotANumber { place, value: self.parameters[place] });
        }
        let (n, all) = (self.states.len(), self.layout.variables());
        for v in 0..all {
            let parent = self.parameters[v];
            let fits = match self.structure {
                Structure::Independent => parent == v as f64,
                Structure::ChowLiu => parent >= 0.0,
                Structure::Hidden(_) if v < n => parent == (n + v) as f64,
                Structure::Hidden(_) => parent >= n as f64,
            };
            if !fits || parent.fract() != 0.0 || parent >= all as f64 {
                return Err(ModelError::Parent { variable: v, parent });
            }
        }
        self.forest().map(drop)
    }

    fn parents(&self) -> Vec<usize> {
        self.parameters[..self.layout.variables()].iter().map(|&parent| parent as usize).collect()
    }

    fn forest(&self) -> Result<RootedForest, ModelError> {
        Ok(RootedForest::from_parents(self.parents())?)
    }

    /// What hangs where.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// All parameters, in the order of the module's description.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// How many of the parameters are parents.
    pub fn section(&self) -> usize {
        self.layout.variables()
    }

    /// 1 for the parent of every variable, at `v · n + u`; a root is its own. Of hidden variables, among those that hang at
    /// them.
    pub fn weights(&self) -> Vec<f64> {
        edges(&self.parents(), self.states.len(), 1.0)
    }

    /// How many numbers the tables are made of, the tree being given.
    pub fn degrees_of_freedom(&self) -> usize {
        let states = &self.layout.states;
        let one = |(v, u): (usize, usize)| (states[v] - 1) * if u == v { 1 } else { states[u] };
        self.parents().into_iter().enumerate().map(one).sum()
    }

    /// Every line of every table that is used: its variable, and its place among the logits.
    fn for_used_lines(&self, mut each: impl FnMut(usize, std::ops::Range<usize>)) {
        let Layout { states, tables, .. } = &self.layout;
        for (v, u) in self.parents().into_iter().enumerate() {
            for line in 0..if u == v { 1 } else { states[u] } {
                let first = tables[v] + line * states[v];
                each(v, first..first + states[v]);
            }
        }
    }

    /// Tree and probabilities.
    pub fn made_ready(&self) -> Result<OneTreeReady, ModelError> {
        self.check()?;
        let layout = self.layout.clone();
        let mut p = self.parameters[layout.variables()..].to_vec();
        for v in 0..layout.variables() {
            for line in p[layout.tables[v]..layout.tables[v + 1]].chunks_exact_mut(layout.states[v]) {
                let sum = log_sum(line.iter().copied());
                line.iter_mut().for_each(|logit| *logit = (*logit - sum).exp());
            }
        }
        let hidden = matches!(self.structure, Structure::Hidden(_));
        let log_p = if hidden { Vec::new() } else { p.iter().map(|p| p.ln()).collect() };
        Ok(OneTreeReady { hidden, tree: self.forest()?, layout, p, log_p })
    }
}

impl OneTreeReady {
    /// The natural logarithm of the probability of every row, after a look at the codes.
    pub(crate) fn checked_log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), CodesError> {
        codes.check(&self.layout.offsets[..=self.observed()])?;
        self.log_p(codes, out);
        Ok(())
    }

    /// The same of codes that are states.
    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) {
        let layout = &self.layout;
        if self.hidden {
            return Chunks::new(self).log_p(codes, out);
        }
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
            for (row, log) in out.iter_mut().enumerate() {
                let state = |v: usize| codes.get(chunk * CHUNK + row, v);
                let of = |(v, &u): (usize, &usize)| {
                    let line = if u == v { 0 } else { state(u) };
                    self.log_p[layout.tables[v] + line * layout.states[v] + state(v)]
                };
                *log = self.tree.parents().iter().enumerate().map(of).sum();
            }
        });
    }

    /// Adds the expected counts of every table, each row with its weight.
    fn count(&self, codes: Codes<'_>, weights: &[f64], counts: &mut [f64]) {
        let layout = &self.layout;
        if self.hidden {
            return Chunks::new(self).count(codes, weights, counts);
        }
        for (v, &u) in self.tree.parents().iter().enumerate() {
            let counts = &mut counts[layout.tables[v]..layout.tables[v + 1]];
            for (row, weight) in weights.iter().enumerate() {
                let line = if u == v { 0 } else { codes.get(row, u) };
                counts[line * layout.states[v] + codes.get(row, v)] += weight;
            }
        }
    }

    /// Expected counts of every table out of what was added up.
    fn table_counts(&self, stats: &OneTreeStats) -> Vec<f64> {
        let Some(pairs) = &stats.pairs else { return stats.tables.clone() };
        let layout = &self.layout;
        let mut counts = vec![0.0; layout.size()];
        for (v, &u) in self.tree.parents().iter().enumerate() {
            for b in 0..layout.states[v] {
                for a in 0..self.lines(v) {
                    counts[layout.tables[v] + a * layout.states[v] + b] = match u.cmp(&v) {
                        std::cmp::Ordering::Equal => pairs.single(v, b),
                        std::cmp::Ordering::Less => pairs.pair(v, b, u, a),
                        std::cmp::Ordering::Greater => pairs.pair(u, a, v, b),
                    };
                }
            }
        }
        counts
    }
}

impl Numbers for OneTree {
    fn pieces(&self) -> Vec<&[f64]> {
        vec![&self.parameters]
    }

    fn pieces_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.parameters]
    }
}

impl Numbers for OneTreeStats {
    fn pieces(&self) -> Vec<&[f64]> {
        let mut pieces = self.pairs.as_ref().map_or_else(Vec::new, Numbers::pieces);
        pieces.extend([&self.tables[..], std::slice::from_ref(&self.total)]);
        pieces
    }

    fn pieces_mut(&mut self) -> Vec<&mut [f64]> {
        let mut pieces = self.pairs.as_mut().map_or_else(Vec::new, Numbers::pieces_mut);
        pieces.extend([&mut self.tables[..], std::slice::from_mut(&mut self.total)]);
        pieces
    }
}

impl Learnable for OneTree {
    type Ready<B: Backend> = OneTreeReady;
    type Stats = OneTreeStats;

    fn states(&self) -> &[usize] {
        &self.states
    }

    fn ready<B: Backend>(&self, _: &B) -> Result<OneTreeReady, ModelError> {
        self.made_ready()
    }

    fn refresh<B: Backend>(&self, _: &B, ready: &mut OneTreeReady) -> Result<(), ModelError> {
        *ready = self.made_ready()?;
        Ok(())
    }

    fn log_likelihood<B: Backend>(
        &self,
        _: &B,
        ready: &mut OneTreeReady,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        Ok(ready.checked_log_p(codes, out)?)
    }

    fn stats<B: Backend>(&self, ready: &OneTreeReady) -> OneTreeStats {
        let (pairs, tables) = match self.structure {
            Structure::ChowLiu => (Some(PairCounts::none(&self.states)), Vec::new()),
            _ => (None, vec![0.0; self.layout.size()]),
        };
        OneTreeStats { pairs, tables, total: 0.0, parents: ready.tree.parents().to_vec() }
    }

    fn accumulate<B: Backend>(
        &self,
        _: &B,
        ready: &mut OneTreeReady,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut OneTreeStats,
    ) -> Result<(), ModelError> {
        match &mut stats.pairs {
            Some(pairs) => pairs.add(codes, weights),
            None => ready.count(codes, weights, &mut stats.tables),
        }
        stats.total += weights.iter().sum::<f64>();
        stats.parents = ready.tree.parents().to_vec();
        Ok(())
    }

    fn gradient<B: Backend>(&self, ready: &OneTreeReady, stats: &OneTreeStats, gradient: &mut [f64]) {
        let (parents, logits) = gradient.split_at_mut(self.layout.variables());
        parents.fill(0.0);
        let layout = &self.layout;
        let counts = ready.table_counts(stats);
        for v in 0..layout.variables() {
            let place = layout.tables[v]..layout.tables[v + 1];
            let lines = logits[place.clone()].chunks_exact_mut(layout.states[v]);
            let known = counts[place.clone()].chunks_exact(layout.states[v]);
            for ((to, counts), p) in lines.zip(known).zip(ready.p[place].chunks_exact(layout.states[v])) {
                let sum: f64 = counts.iter().sum();
                to.iter_mut().zip(counts).zip(p).for_each(|((to, count), p)| *to = count - sum * p);
            }
        }
    }

    fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        if by.smoothing == 0.0 {
            return;
        }
        let all = self.layout.variables();
        self.for_used_lines(|v, place| {
            let logits = &self.parameters[all + place.start..all + place.end];
            let sum = log_sum(logits.iter().copied());
            let even = 1.0 / self.layout.states[v] as f64;
            for (slope, logit) in gradient[all + place.start..all + place.end].iter_mut().zip(logits) {
                *slope += share * by.smoothing * (even - (logit - sum).exp());
            }
        });
    }

    fn log_prior(&self, by: &Regularisation) -> f64 {
        let all = self.layout.variables();
        let mut log = 0.0;
        self.for_used_lines(|v, place| {
            let logits = &self.parameters[all + place.start..all + place.end];
            let sum = log_sum(logits.iter().copied());
            let mean = logits.iter().map(|logit| logit - sum).sum::<f64>() / self.layout.states[v] as f64;
            log += by.smoothing * mean;
        });
        log
    }

    /// Trees differ, and so does what hidden states stand for.
    fn has_a_mean(&self) -> bool {
        false
    }

    fn maximise<B: Backend>(
        &mut self,
        ready: &OneTreeReady,
        stats: &OneTreeStats,
        parent: Option<&OneTreeStats>,
        by: &Regularisation,
    ) -> bool {
        if let Some(pairs) = &stats.pairs {
            let mut pairs = pairs.clone();
            // So many rows of the whole data belong to every component.
            if let Some((all, total)) = parent.and_then(|parent| Some((parent.pairs.as_ref()?, parent.total)))
                && total > 0.0
            {
                pairs.blend(all, 1.0, by.shrinkage / total);
            }
            self.learn_tree(&pairs, by.smoothing);
            return true;
        }
        let counts = ready.table_counts(stats);
        // Hidden states of one component have nothing to do with those of another.
        let parent = parent.filter(|_| self.structure == Structure::Independent);
        let above = parent.map(|parent| ready.table_counts(parent));
        let Self { layout, parameters, .. } = self;
        let logits = &mut parameters[layout.states.len()..];
        for v in 0..layout.states.len() {
            let states = layout.states[v];
            for line in 0..ready.lines(v) {
                let place = layout.tables[v] + line * states..layout.tables[v] + (line + 1) * states;
                let counts = &counts[place.clone()];
                let above = above.as_ref().map(|above| &above[place.clone()]);
                let above = above.map(|above| (above, above.iter().sum::<f64>()));
                let smooth = |b: usize| {
                    let even = by.smoothing / states as f64;
                    let of_all = match above {
                        Some((above, sum)) if sum > 0.0 => by.shrinkage * above[b] / sum,
                        _ => 0.0,
                    };
                    counts[b] + even + of_all
                };
                let smoothed: Vec<f64> = (0..states).map(smooth).collect();
                let sum: f64 = smoothed.iter().sum();
                if sum > 0.0 {
                    logits[place]
                        .iter_mut()
                        .zip(smoothed)
                        .for_each(|(logit, count)| *logit = (count / sum).max(LEAST_PROBABILITY).ln());
                }
            }
        }
        true
    }

    fn hold(&mut self, unseen: &[Unseen]) {
        let Self { layout, parameters, .. } = self;
        let logits = &mut parameters[layout.states.len()..];
        for unseen in unseen {
            let v = unseen.variable;
            let log_odds = unseen.odds().ln();
            for line in logits[layout.tables[v]..layout.tables[v + 1]].chunks_exact_mut(layout.states[v]) {
                let seen = (0..line.len()).filter(|b| !unseen.states.contains(b)).map(|b| line[b]);
                let held = log_sum(seen.collect::<Vec<_>>().into_iter()) + log_odds;
                unseen.states.iter().for_each(|&b| line[b] = held);
            }
        }
    }
}
