//! Where learning begins.

use super::family::{ComponentShape, Initialisation};
use super::{Component, Family, Mixture, ModelError, PairCounts, Pairs, clusters};
use crate::data::Unique;
use crate::util::{Stop, seed_of};
use serde::{Deserialize, Serialize};

/// How a model is made before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Of which family.
    pub family: Family,
    /// How the pair tables of the paper's family are parameterised.
    pub pairs: Pairs,
    /// Rows spread evenly over all states that are added to the counts.
    #[serde(alias = "pseudo_rows")]
    pub pseudocount: f64,
    /// At random instead of from counts.
    pub random: bool,
    /// Of everything that is left to chance.
    pub seed: u64,
}

/// So much of every row belongs to all components alike at the start, so that none begins with few rows.
const IN_COMMON: f64 = 0.5;

impl Start {
    /// Does one model begin as what the counts say, with nothing left to learn?
    pub fn is_counted(&self) -> bool {
        self.family.spec().counted && !self.random
    }

    /// A mixture of so many components for variables with so many states (hidden ones, if there are any, with `hidden`
    /// states): from counts, each component from the rows of a cluster; or at random.
    pub fn model(
        &self,
        states: &[usize],
        data: &Unique,
        components: usize,
        hidden: usize,
    ) -> Result<Mixture<Component>, ModelError> {
        self.model_until(states, data, components, hidden, &|| false)
    }

    /// The same, from fewer rows where `stop` asks for an end.
    pub fn model_until(
        &self,
        states: &[usize],
        data: &Unique,
        components: usize,
        hidden: usize,
        stop: Stop<'_>,
    ) -> Result<Mixture<Component>, ModelError> {
        if self.random {
            let one =
                |k: usize| self.family.random(states, &self.shape(hidden), seed_of(self.seed, k as u64));
            let made: Result<Vec<_>, _> = (0..components).map(one).collect();
            return Mixture::new(made?, &vec![1.0; components]);
        }
        if components == 1 {
            return Ok(Mixture::one(self.counted(states, data, &data.weights, (hidden, self.seed), stop)?));
        }
        let responsibilities = clusters(data, states, components, self.seed, stop);
        let total: f64 = data.weights.iter().sum();
        let mut shares = Vec::new();
        let mut made: Vec<Component> = Vec::new();
        for k in 0..components {
            let own = responsibilities.iter().skip(k).step_by(components);
            let share =
                own.clone().zip(&data.weights).map(|(part, weight)| part * weight).sum::<f64>() / total;
            let weights: Vec<f64> = own
                .zip(&data.weights)
                .map(|(part, weight)| weight * ((1.0 - IN_COMMON) * part + IN_COMMON * share))
                .collect();
            // As many as were asked for, though there is no time to count what each begins with.
            let like_the_last = made.last().filter(|_| stop()).cloned();
            made.push(match like_the_last {
                Some(component) => component,
                None => self.counted(states, data, &weights, (hidden, seed_of(self.seed, k as u64)), stop)?,
            });
            shares.push(share * total + 1.0);
        }
        Mixture::new(made, &shares)
    }

    /// What one component is besides its numbers.
    pub(crate) fn shape(&self, hidden: usize) -> ComponentShape {
        ComponentShape { pairs: Some(self.pairs), hidden: Some(hidden), rows: None }
    }

    fn counted(
        &self,
        states: &[usize],
        data: &Unique,
        weights: &[f64],
        (hidden, seed): (usize, u64),
        stop: Stop<'_>,
    ) -> Result<Component, ModelError> {
        self.family.from_counts(&Initialisation {
            data,
            states,
            weights,
            counts: PairCounts::until(states, &data.table, weights, stop),
            shape: self.shape(hidden),
            pseudocount: self.pseudocount,
            seed,
            stop,
        })
    }
}
