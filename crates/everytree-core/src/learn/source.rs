//! Where the rows of an epoch come from, and what validates it.

use super::engine::Engine;
use super::evaluate::{Evaluator, MeanSoFar};
use super::state::Data;
use crate::data::{Dataset, Unique};
use crate::infer::InferError;
use crate::model::{Learnable, ModelError, UnseenStates};
use crate::util::Stop;
use thiserror::Error;

/// Why there are no rows to learn from.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SourceError {
    /// The model cannot be computed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Cells that were not observed cannot be filled.
    #[error("filling cells that were not observed: {0}")]
    Filling(#[from] InferError),
}

/// A dataset to learn from, and one to choose by; of the same columns.
#[derive(Clone, Copy, Debug)]
pub struct Datasets<'a> {
    /// For gradients.
    pub train: &'a Dataset,
    /// For validation.
    pub valid: &'a Dataset,
}

/// Rows to learn from and an evaluator of what was learned.
pub trait Source<M: Learnable> {
    /// How many rows to learn from, and to validate with.
    fn rows(&self) -> (usize, usize);

    /// The rows of an epoch (from 1; 0 is the initialisation), given the model at its beginning. Where `stop` asks for an end
    /// they may not be what they should be: nobody is to learn from them.
    fn train(&mut self, model: &M, epoch: usize, stop: Stop<'_>) -> Result<&Unique, SourceError>;

    /// The mean log-likelihood of the validation rows, or of some of them where `stop` asks for an end.
    fn validate<J: Engine<M>>(
        &mut self,
        evaluator: &mut Evaluator<'_, M, J>,
        stop: Stop<'_>,
    ) -> Result<MeanSoFar, SourceError>;

    /// States that the rows to learn from do not show.
    fn unseen(&self, model: &M) -> Vec<UnseenStates>;

    /// What is to be put aside between two epochs, if anything.
    fn memory(&self) -> Option<Vec<f64>> {
        None
    }

    /// Takes up what was put aside.
    fn recall(&mut self, memory: &[f64]) -> Result<(), SourceError> {
        let _ = memory;
        Ok(())
    }
}

/// The same rows in every epoch.
impl<M: Learnable> Source<M> for Data<'_> {
    fn rows(&self) -> (usize, usize) {
        (self.train.rows(), self.valid.rows())
    }

    fn train(&mut self, _: &M, _: usize, _: Stop<'_>) -> Result<&Unique, SourceError> {
        Ok(self.train)
    }

    fn unseen(&self, model: &M) -> Vec<UnseenStates> {
        let scale = self.train.row_scale();
        let rows: Vec<f64> = self.train.weights.iter().map(|weight| scale * weight).collect();
        UnseenStates::find(model.states(), &self.train.table, &rows, |_, _| true)
    }

    fn validate<J: Engine<M>>(
        &mut self,
        evaluator: &mut Evaluator<'_, M, J>,
        stop: Stop<'_>,
    ) -> Result<MeanSoFar, SourceError> {
        Ok(evaluator.mean_until(self.valid, stop)?)
    }
}
