//! Backends that may do more than sum forests: whole steps of learning, and whole evaluations, without a return to the CPU in
//! between.

use super::adam::Adam;
use crate::data::{Table, Unique};
use crate::forest::{Backend, Cpu, Precision};
use crate::model::{ModelError, Settings, UnseenStates};

/// A backend that may take over what is done with a whole model. What it leaves alone is done by the model, with the
/// backend's forests.
pub trait Engine<M>: Backend {
    /// The natural logarithm of the probability of every row, if this backend computes it; NaN where it cannot vouch for it.
    fn log_likelihoods(&self, model: &M, table: &Table) -> Result<Option<Vec<f64>>, ModelError> {
        let _ = (model, table);
        Ok(None)
    }

    /// Someone who makes the steps of learning such a model, if this backend does.
    fn steps<'a>(
        &'a self,
        model: &M,
        unseen: &[UnseenStates],
        settings: &Settings,
    ) -> Result<Option<Box<dyn Steps<M> + 'a>>, ModelError> {
        let _ = (model, unseen, settings);
        Ok(None)
    }
}

/// The CPU leaves everything to the model.
impl<M, T: Precision> Engine<M> for Cpu<T> {}

/// Someone who makes steps: parameters and the optimiser's memory are with him until they are given back.
pub trait Steps<M> {
    /// Takes the rows to learn from.
    fn rows(&mut self, data: &Unique) -> Result<(), ModelError>;

    /// Takes parameters and the optimiser's memory.
    fn take(&mut self, model: &M, adam: &Adam, average: Option<&[f64]>) -> Result<(), ModelError>;

    /// Begins a step. Whoever asks for it may do something else until he wants to know how it went.
    fn begin(&mut self, step: &Step<'_>) -> Result<(), ModelError>;

    /// Waits for the step: the sum of weighted log-likelihoods before it. Nothing: it cannot be vouched for, and has not been made.
    fn end(&mut self) -> Result<Option<f64>, ModelError>;

    /// Gives back what was taken.
    fn give(
        &mut self,
        model: &mut M,
        adam: &mut Adam,
        average: &mut Option<Vec<f64>>,
    ) -> Result<(), ModelError>;
}

/// One step of learning.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Distinct rows of a batch, by their places among all.
    pub places: &'a [u32],
    /// What each weighs in it.
    pub weights: &'a [f64],
    /// All of them together.
    pub total: f64,
    /// That, as a share of what all rows weigh.
    pub share: f64,
    /// The learning rate.
    pub rate: f64,
}
