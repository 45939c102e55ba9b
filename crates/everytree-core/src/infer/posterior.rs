//! What comes out of a question.

use super::estimate::Estimate;
use super::method::Method;
use crate::blocks::Blocks;
use crate::model::without_directions;

/// Posteriors of all states of all variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// How they were found.
    pub method: Method,
    /// `posterior[v][state]`
    pub states: Vec<Vec<Estimate>>,
    /// The natural logarithm of the probability of the evidence.
    pub log_evidence: Estimate,
    /// How many draws of equal weight would be worth as much; infinite where exact.
    pub effective_sample_size: f64,
    /// Trees drawn; of [`Method::Gibbs`], sweeps.
    pub trees: usize,
    /// Of chains: 1 where all of them tell the same, more where they have not mixed.
    pub r_hat: Option<f64>,
}

/// Posteriors of the edges of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgePosterior {
    /// How they were found.
    pub method: Method,
    /// An `n × n` matrix in the layout of [`Kind`](crate::spanning::Kind): below the diagonal, or the parents of v (v itself: it is a root) in row v.
    pub edges: Vec<Estimate>,
    /// How many draws of equal weight would be worth as much; infinite where exact.
    pub effective_sample_size: f64,
    /// Trees drawn.
    pub trees: usize,
}

/// Means of what is measured, whatever that is.
pub(crate) struct Expectation {
    pub method: Method,
    pub means: Vec<Estimate>,
    /// Of each mean with the logarithm of the evidence: the same trees say both. None: they have nothing to do with each other.
    pub covariances: Vec<f64>,
    pub log_evidence: Estimate,
    pub effective: f64,
    pub trees: usize,
    pub r_hat: Option<f64>,
}

/// Means of functions that begin at these places for each variable.
pub(crate) fn by_variable(offsets: &[usize], found: Expectation) -> Posterior {
    let states = offsets.windows(2).map(|place| found.means[place[0]..place[1]].to_vec()).collect();
    Posterior {
        method: found.method,
        states,
        log_evidence: found.log_evidence,
        effective_sample_size: found.effective,
        trees: found.trees,
        r_hat: found.r_hat,
    }
}

impl Expectation {
    /// Of parents of n variables, what they say about edges: below the diagonal, one is the parent of the other.
    pub fn forget_directions(&mut self, n: usize) {
        let errors = |parents: &[Estimate]| -> Vec<f64> {
            parents.iter().map(|parent| parent.standard_error.powi(2)).collect()
        };
        let values: Vec<f64> = self.means.iter().map(|parent| parent.value).collect();
        let (values, squares) = (without_directions(&values, n), without_directions(&errors(&self.means), n));
        if !self.covariances.is_empty() {
            self.covariances = without_directions(&self.covariances, n);
        }
        self.set(&values, &squares);
    }

    /// Of edges between blocks, what they say about edges between columns.
    pub fn over_columns(&mut self, blocks: &Blocks) {
        let values: Vec<f64> = self.means.iter().map(|edge| edge.value).collect();
        let errors: Vec<f64> = self.means.iter().map(|edge| edge.standard_error.powi(2)).collect();
        if !self.covariances.is_empty() {
            self.covariances = blocks.over_columns(&self.covariances, 0.0);
        }
        self.set(&blocks.over_columns(&values, 1.0), &blocks.over_columns(&errors, 0.0));
    }

    fn set(&mut self, values: &[f64], squares: &[f64]) {
        let both = values.iter().zip(squares);
        self.means = both.map(|(&value, square)| Estimate { value, standard_error: square.sqrt() }).collect();
    }

    pub fn into_edges(self) -> EdgePosterior {
        EdgePosterior {
            method: self.method,
            edges: self.means,
            effective_sample_size: self.effective,
            trees: self.trees,
        }
    }
}
