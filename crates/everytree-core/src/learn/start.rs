//! Where learning begins.

use crate::data::Unique;
use crate::model::{
    Component, Directed, Mixture, Moat, ModelError, OneTree, PairCounts, Pairs, Structure, clusters,
};
use crate::util::seed_of;
use serde::{Deserialize, Serialize};

/// A family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The paper's: spanning trees, shared margins.
    Moat,
    /// Rooted forests, free tables.
    Directed,
    /// Columns that have nothing to do with each other.
    Independent,
    /// One tree, of the highest mutual information; several of them: the mixture of trees.
    ChowLiu,
    /// One tree of hidden variables, one for each column.
    Hclt,
}

impl Family {
    /// Is one model of it what the counts say?
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Independent | Self::ChowLiu)
    }
}

/// How a model is made before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Of which family.
    pub family: Family,
    /// How the pair tables of the paper's family are parameterised.
    pub pairs: Pairs,
    /// Rows of even chance added to the counts.
    pub pseudo_rows: f64,
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
        self.family.is_counted() && !self.random
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
        if self.random {
            let one = |k: usize| self.random(states, hidden, seed_of(self.seed, k as u64));
            let made: Result<Vec<_>, _> = (0..components).map(one).collect();
            return Mixture::new(made?, &vec![1.0; components]);
        }
        if components == 1 {
            return Ok(Mixture::one(self.counted(states, data, &data.weights, (hidden, self.seed))?));
        }
        let belonging = clusters(data, states, components, self.seed);
        let total: f64 = data.weights.iter().sum();
        let mut shares = Vec::new();
        let mut made = Vec::new();
        for k in 0..components {
            let own = belonging.iter().skip(k).step_by(components);
            let share =
                own.clone().zip(&data.weights).map(|(part, weight)| part * weight).sum::<f64>() / total;
            let weights: Vec<f64> = own
                .zip(&data.weights)
                .map(|(part, weight)| weight * ((1.0 - IN_COMMON) * part + IN_COMMON * share))
                .collect();
            made.push(self.counted(states, data, &weights, (hidden, seed_of(self.seed, k as u64)))?);
            shares.push(share * total + 1.0);
        }
        Mixture::new(made, &shares)
    }

    fn counted(
        &self,
        states: &[usize],
        data: &Unique,
        weights: &[f64],
        (hidden, seed): (usize, u64),
    ) -> Result<Component, ModelError> {
        let counts = PairCounts::new(states, &data.table, weights);
        Ok(match self.family {
            Family::Moat => Component::Moat(Moat::from_counts(&counts, self.pairs, self.pseudo_rows)?),
            Family::Directed => Component::Directed(Directed::from_counts(&counts, self.pseudo_rows)?),
            Family::Independent => Component::Tree(OneTree::independent(&counts, self.pseudo_rows)?),
            Family::ChowLiu => Component::Tree(OneTree::chow_liu(&counts, self.pseudo_rows)?),
            Family::Hclt => {
                let tree = OneTree::hclt(data, states, weights, hidden, self.pseudo_rows, seed)?;
                Component::Tree(tree)
            }
        })
    }

    fn random(&self, states: &[usize], hidden: usize, seed: u64) -> Result<Component, ModelError> {
        let states = states.to_vec();
        let structure = match self.family {
            Family::Moat => return Ok(Component::Moat(Moat::random(states, self.pairs, seed)?)),
            Family::Directed => return Ok(Component::Directed(Directed::random(states, seed)?)),
            Family::Independent => Structure::Independent,
            Family::ChowLiu => Structure::ChowLiu,
            Family::Hclt => Structure::Hidden(hidden),
        };
        Ok(Component::Tree(OneTree::random(states, structure, seed)?))
    }
}
