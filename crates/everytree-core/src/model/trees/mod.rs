//! Families whose distribution is one tree: the baselines of the mixtures of all trees.
//!
//! - [`Independent`]: no edges at all; mixed, latent class analysis.
//! - [`ChowLiu`]: the tree of the highest mutual information; mixed, the mixture of trees of Meilă and Jordan, where
//!   expectation–maximisation finds a new tree in every step.
//! - [`Hclt`]: the hidden Chow–Liu tree: every variable hangs at a latent one of its own, and the latent ones form the tree.
//!
//! They share how a tree is stored (`parameters`), computed ([`TreeModel`]), differentiated and saved (here); what each is, how
//! it begins and what it learns from its counts is in its own file.

mod best_tree;
mod chow_liu;
mod hclt;
mod independent;
mod latent;
mod parameters;
mod tree_model;

pub use chow_liu::ChowLiu;
pub use hclt::{Hclt, MAX_HIDDEN};
pub use independent::Independent;
pub use tree_model::TreeModel;

use super::family::{ComponentShape, FamilyModel, FamilySpec, Initialisation};
use super::settings::{ALL_ROWS, Optimiser};
use super::{ComponentInference, Learnable, ModelError, ParamsView, Regularisation, Settings, UnseenStates};
use crate::data::Codes;
use crate::forest::Backend;
use crate::spanning::Kind;
use crate::util::standard_normals;
use parameters::{Layout, TreeParameters, edges};
use std::borrow::Cow;

/// For families that are counted: all rows in every step, by expectation–maximisation.
fn all_rows_at_once() -> Settings {
    Settings {
        epochs: 100,
        batch_size: ALL_ROWS,
        patience: Some(5),
        optimiser: Optimiser::Em,
        regularisation: Regularisation { shrinkage: 5.0, laplace: 1.0 },
        ..Settings::paper(0)
    }
}

/// A family of single trees.
pub trait OneTree: Clone + Send + Sync {
    const SPEC: FamilySpec;
    /// What is added up over rows.
    type Stats: ParamsView + Send + Sync;

    fn settings(variables: usize) -> Settings;

    /// Where its numbers lie, and the parents of a tree that it can have.
    fn layout(states: &[usize], shape: &ComponentShape) -> Result<(Layout, Vec<usize>), ModelError>;

    /// That tree, all logits zero.
    fn blank(states: &[usize], shape: &ComponentShape) -> Result<TreeParameters, ModelError> {
        let (layout, parents) = Self::layout(states, shape)?;
        Ok(TreeParameters::new(layout, parents))
    }

    /// May a variable of n observed ones have this parent?
    fn may_have(n: usize, variable: usize, parent: usize) -> bool;

    fn from_parameters(parameters: TreeParameters) -> Self;
    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError>;

    fn parameters(&self) -> &TreeParameters;
    fn parameters_mut(&mut self) -> &mut TreeParameters;

    /// What its model file says besides its numbers.
    fn shape(&self) -> ComponentShape {
        ComponentShape::default()
    }

    /// Nothing added up yet.
    fn no_stats(&self) -> Self::Stats;

    /// Adds up what rows say, each with its weight.
    fn add(
        tree: &mut TreeModel,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut Self::Stats,
    ) -> Result<(), ModelError>;

    /// What all rows weigh.
    fn total(stats: &Self::Stats) -> f64;

    /// Expected counts of every table, where the logits lie.
    fn table_counts<'a>(&self, stats: &'a Self::Stats) -> Cow<'a, [f64]>;

    /// The parameters that fit what was added up; `parent`: by all components together.
    fn fit_counts(&mut self, stats: &Self::Stats, parent: Option<&Self::Stats>, by: &Regularisation);
}

impl<T: OneTree> ParamsView for T {
    fn slices(&self) -> Vec<&[f64]> {
        self.parameters().slices()
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        self.parameters_mut().slices_mut()
    }
}

impl<T: OneTree> Learnable for T {
    type Ready<B: Backend> = TreeModel;
    type Stats = T::Stats;

    fn states(&self) -> &[usize] {
        let layout = &self.parameters().layout;
        &layout.states[..layout.observed]
    }

    fn ready<B: Backend>(&self, _: &B) -> Result<TreeModel, ModelError> {
        TreeModel::after(self.parameters(), B::SINGLE, None)
    }

    fn refresh<B: Backend>(&self, _: &B, ready: &mut TreeModel) -> Result<(), ModelError> {
        *ready = TreeModel::after(self.parameters(), B::SINGLE, Some(ready))?;
        Ok(())
    }

    fn log_likelihood<B: Backend>(
        &self,
        _: &B,
        ready: &mut TreeModel,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        Ok(ready.log_p_kept(codes, out)?)
    }

    fn stats<B: Backend>(&self, _: &TreeModel) -> Self::Stats {
        self.no_stats()
    }

    fn accumulate<B: Backend>(
        &self,
        _: &B,
        ready: &mut TreeModel,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut Self::Stats,
    ) -> Result<(), ModelError> {
        T::add(ready, codes, weights, stats)
    }

    fn gradient<B: Backend>(&self, ready: &TreeModel, stats: &Self::Stats, gradient: &mut [f64]) {
        self.parameters().gradient(&self.table_counts(stats), &ready.p, gradient);
    }

    fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        self.parameters().regularise(by, share, gradient);
    }

    fn log_prior(&self, by: &Regularisation) -> f64 {
        self.parameters().log_prior(by)
    }

    /// Trees differ, and so does what latent states stand for.
    fn has_a_mean(&self) -> bool {
        false
    }

    fn maximise<B: Backend>(
        &mut self,
        _: &TreeModel,
        stats: &Self::Stats,
        parent: Option<&Self::Stats>,
        by: &Regularisation,
    ) -> bool {
        self.fit_counts(stats, parent, by);
        true
    }

    fn smooth_unseen(&mut self, unseen: &[UnseenStates]) {
        self.parameters_mut().smooth_unseen(unseen);
    }
}

impl<T: OneTree> FamilyModel for T {
    const SPEC: FamilySpec = T::SPEC;

    fn settings(variables: usize) -> Settings {
        T::settings(variables)
    }

    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        T::from_counts(from)
    }

    /// A chain of all variables in order (of independent ones: none), every logit from a normal distribution of deviation 1.
    fn random(states: &[usize], shape: &ComponentShape, seed: u64) -> Result<Self, ModelError> {
        let mut parameters = T::blank(states, shape)?;
        standard_normals(seed, &mut parameters.logits);
        Ok(T::from_parameters(parameters))
    }

    fn shape(&self) -> ComponentShape {
        T::shape(self)
    }

    fn list_names(_: &ComponentShape) -> &'static [&'static str] {
        &["tree.parent", "tables.logit"]
    }

    fn lists(&self) -> Vec<Cow<'_, [f64]>> {
        let TreeParameters { parents, logits, .. } = self.parameters();
        let parents: Vec<f64> = parents.iter().map(|&parent| parent as f64).collect();
        vec![parents.into(), logits.into()]
    }

    fn from_numbers(states: &[usize], shape: &ComponentShape, numbers: Vec<f64>) -> Result<Self, ModelError> {
        let fits = |variable, parent| T::may_have(states.len(), variable, parent);
        let (layout, _) = T::layout(states, shape)?;
        Ok(T::from_parameters(TreeParameters::from_numbers(layout, numbers, fits)?))
    }

    fn structure_length(&self) -> usize {
        self.parameters().parents.len()
    }

    fn kind(&self) -> Kind {
        Kind::Directed
    }

    fn weights(&self) -> Vec<f64> {
        let TreeParameters { parents, layout, .. } = self.parameters();
        edges(parents, layout.observed, 1.0)
    }

    fn degrees_of_freedom(&self) -> usize {
        self.parameters().degrees_of_freedom()
    }

    fn prior_edges<B: Backend>(&self, _: &TreeModel) -> Vec<f64> {
        self.weights()
    }

    fn edge_counts(&self, stats: &Self::Stats) -> Vec<f64> {
        let TreeParameters { parents, layout, .. } = self.parameters();
        edges(parents, layout.observed, T::total(stats))
    }

    fn inference(&self) -> Result<ComponentInference<'_>, ModelError> {
        Ok(ComponentInference::OneTree(Box::new(TreeModel::new(self.parameters())?)))
    }
}

/// Expected counts of the tables of a tree, and what all rows weigh.
pub struct TableCounts {
    tables: Vec<f64>,
    total: f64,
}

impl TableCounts {
    fn none(parameters: &TreeParameters) -> Self {
        Self { tables: vec![0.0; parameters.layout.size()], total: 0.0 }
    }

    fn add(&mut self, tree: &mut TreeModel, codes: Codes<'_>, weights: &[f64]) -> Result<(), ModelError> {
        tree.count(codes, weights, &mut self.tables)?;
        self.total += weights.iter().sum::<f64>();
        Ok(())
    }
}

impl ParamsView for TableCounts {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.tables, std::slice::from_ref(&self.total)]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.tables, std::slice::from_mut(&mut self.total)]
    }
}
