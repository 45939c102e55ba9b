//! Parameters as slices of numbers, for optimisers, averages and files.

use super::ModelError;
use crate::util::clear;

/// No parameter is further from zero than this: learning keeps them so, and files with others are refused. Logits and
/// logarithms of weights mean nothing more beyond it, and sums of them lose the digits that normalisation needs.
pub const MOST_PARAMETER: f64 = 1e5;

/// A parameter within [`MOST_PARAMETER`]. What is no number stays so, and is an error elsewhere.
#[inline(always)]
pub(crate) fn within_range(parameter: f64) -> f64 {
    if parameter.is_finite() { parameter.clamp(-MOST_PARAMETER, MOST_PARAMETER) } else { parameter }
}

/// Something that is nothing but numbers, lying in a few slices: the parameters of a model, or sums over rows.
pub trait ParamsView {
    /// All of them, slice by slice.
    fn slices(&self) -> Vec<&[f64]>;
    /// All of them, to be changed.
    fn slices_mut(&mut self) -> Vec<&mut [f64]>;

    /// How many there are.
    fn size(&self) -> usize {
        self.slices().iter().map(|slice| slice.len()).sum()
    }

    /// All of them in one vector.
    fn to_vec(&self) -> Vec<f64> {
        self.slices().concat()
    }

    /// Takes all of them from one vector, which must have as many.
    fn set(&mut self, numbers: &[f64]) -> Result<(), ModelError> {
        let (found, expected) = (numbers.len(), self.size());
        if found != expected {
            return Err(ModelError::Length { what: "a list of numbers".to_owned(), found, expected });
        }
        let mut rest = numbers;
        for slice in self.slices_mut() {
            let (own, tail) = rest.split_at(slice.len());
            slice.copy_from_slice(own);
            rest = tail;
        }
        Ok(())
    }

    /// All zero.
    fn clear(&mut self) {
        self.slices_mut().into_iter().for_each(clear);
    }

    /// `keep` times these and `take` times others.
    ///
    /// # Panics
    /// When there are not as many others.
    fn blend(&mut self, others: &Self, keep: f64, take: f64) {
        for (slice, other) in self.slices_mut().into_iter().zip(others.slices()) {
            assert_eq!(slice.len(), other.len(), "as many numbers");
            slice.iter_mut().zip(other).for_each(|(own, other)| *own = keep * *own + take * other);
        }
    }
}
