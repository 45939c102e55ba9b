//! A distribution that is one tree, ready to be computed: the tree and the probabilities of its tables.

use super::latent::{Latent, Messages, Precise, SomeRows};
use super::parameters::{Layout, TreeParameters, edges};
use crate::data::{Codes, CodesError};
use crate::model::{EdgeTables, ModelError};
use crate::spanning::RootedForest;
use crate::util::softmax_lines;
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
    latent: Option<Precise>,
}

impl TreeModel {
    pub(super) fn new(parameters: &TreeParameters) -> Result<Self, ModelError> {
        Self::after(parameters, false, None)
    }

    /// The same, for messages in single precision if told so, in the room of one before it.
    pub(super) fn after(
        parameters: &TreeParameters,
        single: bool,
        before: Option<&mut Self>,
    ) -> Result<Self, ModelError> {
        parameters.check()?;
        let layout = parameters.layout.clone();
        let tree = parameters.forest()?;
        // Large lists are made once, and not anew with every step: the system would have to clear them first.
        let (mut p, before) = match before {
            Some(before) => (std::mem::take(&mut before.p), before.latent.take()),
            None => (Vec::new(), None),
        };
        p.resize(layout.size(), 0.0);
        let tables = layout.split(&mut p).into_par_iter().zip(&layout.states).zip(&layout.tables);
        tables
            .for_each(|((table, &states), &first)| softmax_lines(&parameters.logits[first..], states, table));
        let latent =
            (layout.observed < layout.variables()).then(|| Precise::new(&layout, &tree, &p, single, before));
        let log_p = if latent.is_some() {
            Vec::new()
        } else {
            p.par_iter().with_min_len(1 << 14).map(|p| p.ln()).collect()
        };
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
        match &self.latent {
            Some(Precise::Double(latent, _)) => {
                latent.log_p(layout, codes, out);
                return Ok(());
            }
            Some(Precise::Single(latent, _)) => {
                latent.log_p(layout, codes, out);
                return self.again(codes, out);
            }
            None => {}
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

    /// The same, and what [`TreeModel::count`] would compute again is kept.
    pub(super) fn log_p_kept(&mut self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), CodesError> {
        codes.check(&self.layout.offsets[..=self.layout.observed])?;
        match &mut self.latent {
            Some(Precise::Double(latent, messages)) => {
                latent.log_p_kept(&self.layout, codes, messages, out);
                Ok(())
            }
            Some(Precise::Single(latent, messages)) => {
                latent.log_p_kept(&self.layout, codes, messages, out);
                self.again(codes, out)
            }
            None => self.log_p(codes, out),
        }
    }

    fn in_double(&self) -> Latent<f64> {
        Latent::new(&self.layout, &self.tree, &self.p, None)
    }

    /// Rows that are impossible in single precision, in double.
    fn again(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), CodesError> {
        let lost: Vec<usize> = (0..out.len()).filter(|&row| out[row] == f64::NEG_INFINITY).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let rows = SomeRows::new(codes, &lost);
        let mut logs = vec![0.0; lost.len()];
        self.in_double().log_p(&self.layout, rows.codes()?, &mut logs);
        lost.into_iter().zip(logs).for_each(|(row, log)| out[row] = log);
        Ok(())
    }

    /// Adds the expected counts of every table, each row with its weight; of the rows of the last [`TreeModel::log_p_kept`].
    pub(super) fn count(
        &mut self,
        codes: Codes<'_>,
        weights: &[f64],
        counts: &mut [f64],
    ) -> Result<(), CodesError> {
        let layout = &self.layout;
        match &mut self.latent {
            Some(Precise::Double(latent, messages)) => {
                latent.count(layout, codes, weights, messages, counts);
                return Ok(());
            }
            Some(Precise::Single(latent, messages)) => {
                let lost = latent.count(layout, codes, weights, messages, counts);
                if !lost.is_empty() {
                    let rows = SomeRows::new(codes, &lost);
                    let weights: Vec<f64> = lost.iter().map(|&row| weights[row]).collect();
                    let messages = &mut Messages::default();
                    self.in_double().count(layout, rows.codes()?, &weights, messages, counts);
                }
                return Ok(());
            }
            None => {}
        }
        for (v, &u) in self.tree.parents().iter().enumerate() {
            let counts = &mut counts[layout.tables[v]..layout.tables[v + 1]];
            for (row, weight) in weights.iter().enumerate() {
                let line = if u == v { 0 } else { codes.get(row, u) };
                counts[line * layout.states[v] + codes.get(row, v)] += weight;
            }
        }
        Ok(())
    }
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
