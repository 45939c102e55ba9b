//! Evidence about a row.

use crate::util::offsets;
use thiserror::Error;

/// One likelihood per state of every variable: 1 where nothing is known, 0 and 1 for a label or a set of labels, anything
/// between for soft evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    offsets: Vec<usize>,
    likelihood: Vec<f64>,
}

/// Why something cannot be evidence.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// No such variable, or no such state of it.
    #[error("there is no state {state} of variable {variable}")]
    NoSuchState {
        /// The variable.
        variable: usize,
        /// The state.
        state: usize,
    },
    /// Not one number per state.
    #[error("variable {variable} has {states} states, but {found} likelihoods were given")]
    Length {
        /// The variable.
        variable: usize,
        /// How many states it has.
        states: usize,
        /// How many numbers were given.
        found: usize,
    },
    /// A likelihood that is negative, infinite or not a number.
    #[error(
        "variable {variable}, state {state}: a likelihood of {value}; it must be finite and not negative"
    )]
    BadLikelihood {
        /// The variable.
        variable: usize,
        /// The state.
        state: usize,
        /// The offending value.
        value: f64,
    },
    /// The same variable twice.
    #[error("variable {variable} is given twice")]
    Twice {
        /// The variable.
        variable: usize,
    },
}

impl Evidence {
    /// Nothing is known of variables with so many states.
    pub fn none(states: &[usize]) -> Self {
        let offsets = offsets(states);
        Self { likelihood: vec![1.0; offsets[states.len()]], offsets }
    }

    /// All of a row is known.
    pub(crate) fn of_row(states: &[usize], row: &[u16]) -> Self {
        let mut evidence = Self::none(states);
        evidence.likelihood.fill(0.0);
        row.iter()
            .zip(&evidence.offsets)
            .for_each(|(state, offset)| evidence.likelihood[offset + usize::from(*state)] = 1.0);
        evidence
    }

    /// The same about the first of variables with so many states; of the others nothing is known.
    pub(crate) fn with_more(&self, states: &[usize]) -> Self {
        let mut more = Self::none(states);
        more.likelihood[..self.likelihood.len()].copy_from_slice(&self.likelihood);
        more
    }

    /// How many variables.
    pub fn variables(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The likelihoods of the states of one variable.
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn of(&self, variable: usize) -> &[f64] {
        &self.likelihood[self.offsets[variable]..self.offsets[variable + 1]]
    }

    /// The likelihoods of all states of all variables.
    pub(crate) fn all(&self) -> &[f64] {
        &self.likelihood
    }

    /// Is anything known of this variable?
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn is_given(&self, variable: usize) -> bool {
        self.of(variable).iter().any(|&likelihood| likelihood != 1.0)
    }

    /// The one state that this variable can have, if there is only one.
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn state(&self, variable: usize) -> Option<usize> {
        let mut possible = self.of(variable).iter().enumerate().filter(|(_, likelihood)| **likelihood > 0.0);
        match (possible.next(), possible.next()) {
            (Some((state, _)), None) => Some(state),
            _ => None,
        }
    }

    /// This variable has one of these states.
    pub fn set(&mut self, variable: usize, states: &[usize]) -> Result<(), EvidenceError> {
        let count = self.count(variable, 0)?;
        let mut likelihood = vec![0.0; count];
        for &state in states {
            *likelihood.get_mut(state).ok_or(EvidenceError::NoSuchState { variable, state })? = 1.0;
        }
        self.soft(variable, &likelihood)
    }

    /// What was seen speaks for the states of this variable in these proportions.
    pub fn soft(&mut self, variable: usize, likelihood: &[f64]) -> Result<(), EvidenceError> {
        let states = self.count(variable, 0)?;
        if likelihood.len() != states {
            return Err(EvidenceError::Length { variable, states, found: likelihood.len() });
        }
        if let Some(state) = likelihood.iter().position(|value| !(*value >= 0.0 && value.is_finite())) {
            return Err(EvidenceError::BadLikelihood { variable, state, value: likelihood[state] });
        }
        if self.is_given(variable) {
            return Err(EvidenceError::Twice { variable });
        }
        self.likelihood[self.offsets[variable]..self.offsets[variable + 1]].copy_from_slice(likelihood);
        Ok(())
    }

    /// Nothing is known of this variable any more.
    pub fn forget(&mut self, variable: usize) {
        if let Some(&end) = self.offsets.get(variable + 1) {
            self.likelihood[self.offsets[variable]..end].fill(1.0);
        }
    }

    fn count(&self, variable: usize, state: usize) -> Result<usize, EvidenceError> {
        match self.offsets.get(variable + 1) {
            Some(end) => Ok(end - self.offsets[variable]),
            None => Err(EvidenceError::NoSuchState { variable, state }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_what_was_given_once() {
        let mut evidence = Evidence::none(&[2, 3]);
        assert_eq!((evidence.is_given(1), evidence.state(1)), (false, None));
        evidence.set(1, &[2]).unwrap();
        assert_eq!(
            (evidence.is_given(1), evidence.state(1), evidence.of(1)),
            (true, Some(2), &[0.0, 0.0, 1.0][..])
        );
        assert_eq!(evidence.set(1, &[0]), Err(EvidenceError::Twice { variable: 1 }));
        assert_eq!(evidence.set(0, &[2]), Err(EvidenceError::NoSuchState { variable: 0, state: 2 }));
        assert_eq!(evidence.set(2, &[0]), Err(EvidenceError::NoSuchState { variable: 2, state: 0 }));
        assert!(matches!(evidence.soft(0, &[1.0]), Err(EvidenceError::Length { .. })));
        assert!(matches!(evidence.soft(0, &[0.5, -1.0]), Err(EvidenceError::BadLikelihood { state: 1, .. })));
        evidence.soft(0, &[0.5, 0.25]).unwrap();
        assert_eq!(evidence.state(0), None);
    }
}
