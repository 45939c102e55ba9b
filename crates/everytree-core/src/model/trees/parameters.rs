//! A tree and its tables as a model learns them: the parent of every variable, and logits.
//!
//! Latent variables come after the observed ones. The logits lie variable by variable, a line for every state of the
//! parent. There is room for as many lines as any parent has states; a root has its table in the first line.

use crate::forest::Tables;
use crate::model::{ModelError, ParamsView, Regularisation, UnseenStates};
use crate::spanning::RootedForest;
use crate::util::{first_not_finite, log_sum, offsets};
use rayon::prelude::*;
use std::ops::Range;

/// No probability comes out of counts below this.
pub(super) const LEAST_PROBABILITY: f64 = 1e-12;

/// Where things lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// States of all variables, the latent ones last.
    pub states: Vec<usize>,
    /// How many of them are observed.
    pub observed: usize,
    /// Of the states of each variable among all states, and where they end.
    pub offsets: Vec<usize>,
    /// Of the table of each variable, and where they end.
    pub tables: Vec<usize>,
}

impl Layout {
    /// Tables with this many lines, of observed variables and latent ones with so many states each.
    pub fn new(observed: &[usize], latent: &[usize], lines: usize) -> Result<Self, ModelError> {
        if observed.is_empty() {
            return Err(ModelError::NoVariables);
        }
        Tables::check(observed)?;
        let states = [observed, latent].concat();
        let offsets = offsets(&states);
        let tables = offsets.iter().map(|offset| lines * offset).collect();
        Ok(Self { states, observed: observed.len(), offsets, tables })
    }

    pub fn variables(&self) -> usize {
        self.states.len()
    }

    /// Numbers of all tables.
    pub fn size(&self) -> usize {
        self.tables[self.variables()]
    }

    /// Numbers of all tables, table by table.
    pub fn split<'n>(&self, numbers: &'n mut [f64]) -> Vec<&'n mut [f64]> {
        let mut rest = numbers;
        let mut tables = Vec::with_capacity(self.variables());
        for ends in self.tables.windows(2) {
            let (own, others) = rest.split_at_mut(ends[1] - ends[0]);
            tables.push(own);
            rest = others;
        }
        tables
    }

    /// The logits of one line of the table of a variable.
    pub fn line(&self, v: usize, line: usize) -> Range<usize> {
        let first = self.tables[v] + line * self.states[v];
        first..first + self.states[v]
    }
}

/// A tree with tables, as parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeParameters {
    pub layout: Layout,
    /// Of every variable; a root is its own.
    pub parents: Vec<usize>,
    pub logits: Vec<f64>,
}

impl TreeParameters {
    /// All logits zero.
    pub fn new(layout: Layout, parents: Vec<usize>) -> Self {
        let logits = vec![0.0; layout.size()];
        Self { layout, parents, logits }
    }

    /// From the numbers of a model file: a parent for every variable, then the logits. `fits` says which parent a variable
    /// may have.
    pub fn from_numbers(
        layout: Layout,
        mut numbers: Vec<f64>,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, ModelError> {
        let variables = layout.variables();
        let (found, expected) = (numbers.len(), variables + layout.size());
        if found != expected {
            return Err(ModelError::Length { what: "the list of parameters".to_owned(), found, expected });
        }
        // Logits stay where they are; they may be many.
        let mut parents = Vec::with_capacity(variables);
        for (variable, parent) in numbers.drain(..variables).enumerate() {
            let whole = parent >= 0.0 && parent.fract() == 0.0 && parent < variables as f64;
            if !whole || !fits(variable, parent as usize) {
                return Err(ModelError::Parent { variable, parent });
            }
            parents.push(parent as usize);
        }
        let tree = Self { layout, parents, logits: numbers };
        tree.forest()?;
        tree.check()?;
        Ok(tree)
    }

    /// Are all logits finite?
    pub fn check(&self) -> Result<(), ModelError> {
        match first_not_finite(&self.logits) {
            Some(place) => Err(ModelError::NotANumber { place, value: self.logits[place] }),
            None => Ok(()),
        }
    }

    pub fn forest(&self) -> Result<RootedForest, ModelError> {
        Ok(RootedForest::from_parents(self.parents.clone())?)
    }

    /// Puts probabilities into a table, from its first line on.
    pub fn set_table(&mut self, v: usize, first_line: usize, p: &[f64]) {
        let first = self.layout.line(v, first_line).start;
        let to = self.logits[first..first + p.len()].par_iter_mut().with_min_len(1 << 14);
        to.zip(p).for_each(|(logit, p)| *logit = p.max(LEAST_PROBABILITY).ln());
    }

    /// Lines of the table of v that are used.
    pub fn lines(&self, v: usize) -> usize {
        let parent = self.parents[v];
        if parent == v { 1 } else { self.layout.states[parent] }
    }

    /// How many numbers the tables are made of, the tree being given.
    pub fn degrees_of_freedom(&self) -> usize {
        (0..self.layout.variables()).map(|v| (self.layout.states[v] - 1) * self.lines(v)).sum()
    }

    /// Every line of every table that is used: its variable, and its place among the logits.
    fn for_used_lines(&self, mut each: impl FnMut(usize, Range<usize>)) {
        for v in 0..self.layout.variables() {
            (0..self.lines(v)).for_each(|line| each(v, self.layout.line(v, line)));
        }
    }

    /// The derivatives of `Σ weight · log p(row)` by the logits, from expected counts and the probabilities of the tables.
    pub fn gradient(&self, counts: &[f64], p: &[f64], gradient: &mut [f64]) {
        let tables = self.layout.split(gradient).into_par_iter();
        tables.zip(&self.layout.states).zip(&self.layout.tables).for_each(|((gradient, &states), &first)| {
            let lines = gradient.chunks_exact_mut(states);
            let known = counts[first..].chunks_exact(states);
            for ((to, counts), p) in lines.zip(known).zip(p[first..].chunks_exact(states)) {
                let sum: f64 = counts.iter().sum();
                to.iter_mut().zip(counts).zip(p).for_each(|((to, count), p)| *to = count - sum * p);
            }
        });
    }

    pub fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        if by.laplace == 0.0 {
            return;
        }
        self.for_used_lines(|v, place| {
            let logits = &self.logits[place.clone()];
            let sum = log_sum(logits.iter().copied());
            let even = 1.0 / self.layout.states[v] as f64;
            for (slope, logit) in gradient[place].iter_mut().zip(logits) {
                *slope += share * by.laplace * (even - (logit - sum).exp());
            }
        });
    }

    pub fn log_prior(&self, by: &Regularisation) -> f64 {
        let mut log = 0.0;
        self.for_used_lines(|v, place| {
            let logits = &self.logits[place];
            let sum = log_sum(logits.iter().copied());
            let mean = logits.iter().map(|logit| logit - sum).sum::<f64>() / self.layout.states[v] as f64;
            log += by.laplace * mean;
        });
        log
    }

    /// Tables as the counts have them, smoothed; `above` are the counts of all components together.
    pub fn maximise(&mut self, counts: &[f64], above: Option<&[f64]>, by: &Regularisation) {
        for v in 0..self.layout.variables() {
            let states = self.layout.states[v];
            for line in 0..self.lines(v) {
                let place = self.layout.line(v, line);
                let counts = &counts[place.clone()];
                let above = above.map(|above| &above[place.clone()]);
                let above = above.map(|above| (above, above.iter().sum::<f64>()));
                let smooth = |b: usize| {
                    let even = by.laplace / states as f64;
                    let of_all = match above {
                        Some((above, sum)) if sum > 0.0 => by.shrinkage * above[b] / sum,
                        _ => 0.0,
                    };
                    counts[b] + even + of_all
                };
                let smoothed: Vec<f64> = (0..states).map(smooth).collect();
                let sum: f64 = smoothed.iter().sum();
                if sum > 0.0 {
                    self.set_table(v, line, &smoothed.iter().map(|count| count / sum).collect::<Vec<_>>());
                }
            }
        }
    }

    pub fn smooth_unseen(&mut self, unseen: &[UnseenStates]) {
        let Self { layout, logits, .. } = self;
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

impl ParamsView for TreeParameters {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.logits]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.logits]
    }
}

/// A weight for the parent of every observed variable at `v · n + u`, a root being its own; of latent variables, between the
/// observed ones that hang at them.
pub(super) fn edges(parents: &[usize], n: usize, weight: f64) -> Vec<f64> {
    let mut edges = vec![0.0; n * n];
    let first = parents.len() - n;
    parents[first..].iter().enumerate().for_each(|(v, u)| edges[v * n + u - first] = weight);
    edges
}
