//! A distribution that is one tree, ready to be computed: the tree and the probabilities of its tables.

use super::latent::Latent;
use super::parameters::{Layout, TreeParameters, edges};
use crate::data::{Codes, CodesError};
use crate::model::{EdgeTables, ModelError};
use crate::spanning::RootedForest;
use rayon::prelude::*;

/// Rows of one task.
const CHUNK: usize = 1024;

/// One rooted forest with a conditional table for every variable; variables after the observed ones are latent, one for each.
///
/// What inference asks of families whose distribution is one tree, and what these compute with.
#[derive(Clone, Debug)]
pub struct TreeModel {
    pub(super) layout: Layout,
    pub(super) tree: RootedForest,
    pub(super) p: Vec<f64>,
    /// Logarithms of them, where nothing is latent.
    log_p: Vec<f64>,
    /// The tables as products need them, where something is.
    latent: Option<Latent>,
}

impl TreeModel {
    pub(super) fn new(parameters: &TreeParameters) -> Result<Self, ModelError> {
        Self::after(parameters, None)
    }

    /// The same, working in the room of one before it.
    pub(super) fn after(parameters: &TreeParameters, before: Option<&Self>) -> Result<Self, ModelError> {
        parameters.check()?;
        let layout = parameters.layout.clone();
        let mut p = parameters.logits.clone();
        let mut rest = &mut p[..];
        let mut tables = Vec::with_capacity(layout.variables());
        for v in 0..layout.variables() {
            let (own, others) = rest.split_at_mut(layout.tables[v + 1] - layout.tables[v]);
            tables.push((own, layout.states[v]));
            rest = others;
        }
        tables.into_par_iter().for_each(|(table, states)| {
            table.chunks_exact_mut(states).for_each(normalise);
        });
        let tree = parameters.forest()?;
        let latent = (layout.observed < layout.variables()).then(|| {
            let spaces = before.and_then(|before| before.latent.as_ref()).map(Latent::spaces);
            Latent::new(&layout, &tree, &p, spaces)
        });
        let log_p = if latent.is_some() { Vec::new() } else { p.iter().map(|p| p.ln()).collect() };
        Ok(Self { tree, layout, p, log_p, latent })
    }

    /// A tree of observed variables with these parents (a root is its own); `line(v, a)` is the distribution of v given state
    /// a of its parent, of a root that of v.
    pub fn from_tables(
        states: &[usize],
        parents: Vec<usize>,
        line: impl Fn(usize, usize) -> Vec<f64>,
    ) -> Result<Self, ModelError> {
        if parents.len() != states.len() {
            let (found, expected) = (parents.len(), states.len());
            return Err(ModelError::Length { what: "the list of parents".to_owned(), found, expected });
        }
        let lines = states.iter().copied().max().unwrap_or(1);
        let mut tree = TreeParameters::new(Layout::new(states, &[], lines)?, parents);
        tree.forest()?;
        for v in 0..states.len() {
            (0..tree.lines(v)).for_each(|a| tree.set_table(v, a, &line(v, a)));
        }
        Self::new(&tree)
    }

    /// The tree, latent variables after the others.
    pub fn tree(&self) -> &RootedForest {
        &self.tree
    }

    /// States of all variables, the latent ones last.
    pub fn states(&self) -> &[usize] {
        &self.layout.states
    }

    /// How many variables are observed.
    pub fn observed(&self) -> usize {
        self.layout.observed
    }

    /// How many numbers its tables have.
    pub(crate) fn numbers(&self) -> usize {
        self.p.len()
    }

    /// Are there latent variables?
    pub fn has_latent(&self) -> bool {
        self.layout.observed < self.layout.variables()
    }

    /// 1 for the parent of every variable, at `v · n + u`; of latent variables, among those that hang at them.
    pub(crate) fn edges(&self) -> Vec<f64> {
        edges(self.tree.parents(), self.layout.observed, 1.0)
    }

    /// The natural logarithm of the probability of every row.
    pub(crate) fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), CodesError> {
        let layout = &self.layout;
        codes.check(&layout.offsets[..=layout.observed])?;
        if let Some(latent) = &self.latent {
            latent.log_p(layout, codes, out);
            return Ok(());
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
        Ok(())
    }

    /// Adds the expected counts of every table, each row with its weight.
    pub(super) fn count(&self, codes: Codes<'_>, weights: &[f64], counts: &mut [f64]) {
        let layout = &self.layout;
        if let Some(latent) = &self.latent {
            return latent.count(layout, codes, weights, counts);
        }
        for (v, &u) in self.tree.parents().iter().enumerate() {
            let counts = &mut counts[layout.tables[v]..layout.tables[v + 1]];
            for (row, weight) in weights.iter().enumerate() {
                let line = if u == v { 0 } else { codes.get(row, u) };
                counts[line * layout.states[v] + codes.get(row, v)] += weight;
            }
        }
    }
}

/// Logits to probabilities.
fn normalise(line: &mut [f64]) {
    let most = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    line.iter_mut().for_each(|logit| *logit = (*logit - most).exp());
    let inverse = 1.0 / line.iter().sum::<f64>();
    line.iter_mut().for_each(|p| *p *= inverse);
}

impl EdgeTables for TreeModel {
    fn offsets(&self) -> &[usize] {
        &self.layout.offsets
    }

    fn given(&self, _: usize, a: usize, v: usize) -> &[f64] {
        &self.p[self.layout.line(v, a)]
    }

    fn root(&self, v: usize) -> &[f64] {
        &self.p[self.layout.line(v, 0)]
    }
}
