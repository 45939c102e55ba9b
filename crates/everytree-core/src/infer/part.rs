//! What a mixture is made of, as inference sees it: all trees at random, or one tree.

use super::estimate::Estimate;
use super::evidence::Evidence;
use super::importance::{draw, log_mean_weight};
use super::measure::{Functions, Measure};
use super::messages::Messages;
use super::method::{Effort, Method};
use super::one_tree::{self, TreePosterior};
use super::posterior::Expectation;
use super::proposal::Proposal;
use super::query;
use super::sample::{self, Drawn, Sampling};
use super::stored::{self, KernelPosterior};
use super::{InferError, exact};
use crate::data::Codes;
use crate::model::{ComponentInference, Density, Likelihood, ModelError};
use crate::spanning::{FreshTrees, Kind};
use rand::Rng;

/// Trees of a pilot.
const PILOT: usize = 256;

impl Likelihood for ComponentInference<'_> {
    fn states(&self) -> &[usize] {
        match self {
            Self::AllTrees(density) => Density::states(&**density),
            Self::OneTree(tree) => &tree.states()[..tree.observed()],
            Self::Stored(kernel) => kernel.rows().states(),
        }
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        match self {
            Self::AllTrees(density) => Density::log_p(&**density, codes, out),
            Self::OneTree(tree) => Ok(tree.log_p(codes, out)?),
            Self::Stored(kernel) => kernel.log_p(codes, out),
        }
    }

    fn operations(&self) -> f64 {
        match self {
            Self::AllTrees(density) => Likelihood::operations(&**density),
            Self::OneTree(tree) if tree.has_latent() => 2.0 * tree.numbers() as f64 + 100.0,
            Self::OneTree(tree) => 20.0 * tree.observed() as f64 + 100.0,
            Self::Stored(kernel) => kernel.operations(),
        }
    }
}

impl ComponentInference<'_> {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::AllTrees(density) => density.kind(),
            Self::OneTree(_) | Self::Stored(_) => Kind::Directed,
        }
    }

    /// The probability of the evidence as far as a pilot tells; `-inf` where nothing explains it.
    pub(super) fn pilot(&self, evidence: &Evidence, operations: f64, seed: u64) -> Result<f64, InferError> {
        match self {
            Self::OneTree(tree) => Ok(TreePosterior::new(tree, evidence).log_evidence()),
            Self::Stored(kernel) => Ok(stored::log_evidence(kernel, evidence)),
            Self::AllTrees(density) => {
                let density = &**density;
                if Method::affordable(evidence, operations) == Method::Exact {
                    return Ok(exact::log_evidence(density, evidence)?);
                }
                let proposal = Proposal::tilted(density, evidence)?;
                let trees = (seed, "first look");
                let sums = draw(density, evidence, &proposal, Measure::Nothing.into(), trees, 0..PILOT);
                Ok(sums.log_mean_weight().value)
            }
        }
    }

    /// The same from so many trees.
    pub(crate) fn log_mean_weight(
        &self,
        evidence: &Evidence,
        trees: usize,
        seed: u64,
    ) -> Result<f64, InferError> {
        match self {
            Self::AllTrees(density) => log_mean_weight(&**density, evidence, trees, seed),
            Self::OneTree(tree) => Ok(TreePosterior::new(tree, evidence).log_evidence()),
            Self::Stored(kernel) => Ok(stored::log_evidence(kernel, evidence)),
        }
    }

    pub(super) fn means(
        &self,
        evidence: &Evidence,
        functions: Functions<'_>,
        method: Option<Method>,
        effort: Effort<'_>,
    ) -> Result<Expectation, InferError> {
        match self {
            Self::AllTrees(density) => query::means(&**density, evidence, functions, method, effort),
            Self::OneTree(tree) => one_tree::means(tree, evidence, functions),
            Self::Stored(kernel) => stored::means(kernel, evidence, functions),
        }
    }

    /// The logarithm of the probability of the evidence; where trees alone do not find it, `otherwise` may.
    pub(super) fn log_evidence(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
        otherwise: &dyn Fn() -> Result<Option<Estimate>, InferError>,
    ) -> Result<Estimate, InferError> {
        match self {
            Self::AllTrees(density) => query::log_evidence_or(&**density, evidence, effort, otherwise),
            Self::OneTree(tree) => exactly(TreePosterior::new(tree, evidence).log_evidence()),
            Self::Stored(kernel) => exactly(stored::log_evidence(kernel, evidence)),
        }
    }

    pub(super) fn sample(
        &self,
        evidence: &Evidence,
        count: usize,
        sampling: Sampling,
    ) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
        match self {
            Self::AllTrees(density) => sample::sample(&**density, evidence, count, sampling),
            Self::OneTree(tree) => {
                Ok((one_tree::sample(tree, evidence, count, sampling.seed)?, Drawn::Exactly))
            }
            Self::Stored(kernel) => {
                Ok((stored::sample(kernel, evidence, count, sampling.seed)?, Drawn::Exactly))
            }
        }
    }
}

/// The probability of evidence as an estimate without error.
fn exactly(log_evidence: f64) -> Result<Estimate, InferError> {
    match log_evidence {
        f64::NEG_INFINITY => Err(InferError::Impossible),
        value => Ok(Estimate { value, standard_error: 0.0 }),
    }
}

/// Rows that go on from one to the next: given a tree that explains the row, a new row given the tree and the evidence.
pub(crate) struct Walk<'a> {
    part: &'a ComponentInference<'a>,
    /// Of all trees: messages, room for trees, and rates.
    trees: Option<(Messages<'a>, FreshTrees, Vec<f64>)>,
}

impl<'a> Walk<'a> {
    pub fn new(part: &'a ComponentInference<'a>) -> Self {
        let trees = match part {
            ComponentInference::AllTrees(density) => {
                let n = Density::states(&**density).len();
                let trees = FreshTrees::new(density.kind(), n);
                Some((Messages::new(density.tables()), trees, density.rates().to_vec()))
            }
            ComponentInference::OneTree(_) | ComponentInference::Stored(_) => None,
        };
        Self { part, trees }
    }

    /// A new row after so many steps; the row itself where the evidence is impossible.
    pub fn go(
        &mut self,
        mut row: Vec<u16>,
        known: &Evidence,
        steps: usize,
        rng: &mut impl Rng,
    ) -> Result<Vec<u16>, InferError> {
        match (self.part, &mut self.trees) {
            (ComponentInference::AllTrees(density), Some((messages, trees, rates))) => {
                for _ in 0..steps {
                    density.rates_at(&row, rates);
                    let tree = match trees.draw(rates, rng) {
                        Ok(tree) => tree,
                        // A first row may be impossible; then a tree of the prior shows a way out.
                        Err(_) => trees.draw(density.rates(), rng)?,
                    };
                    messages.collect(&tree, known);
                    if let Some(drawn) = messages.draw(&tree, rng) {
                        row = drawn;
                    }
                }
                Ok(row)
            }
            // One tree forgets the row at once.
            (ComponentInference::OneTree(tree), _) => {
                Ok(TreePosterior::new(tree, known).draw(rng).unwrap_or(row))
            }
            // So does a kernel.
            (ComponentInference::Stored(kernel), _) => {
                Ok(KernelPosterior::new(kernel, known).draw(rng).unwrap_or(row))
            }
            _ => unreachable!("made above"),
        }
    }
}
