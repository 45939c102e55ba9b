//! Posteriors by the method that is asked for, or the one that fits.

use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::importance::{PerTree, draw};
use super::proposal::Proposal;
use super::{InferError, exact};
use crate::model::Density;
use serde::Serialize;

/// How posteriors are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Every hidden row is looked at.
    Exact,
    /// Trees from the prior, a row from each (the paper).
    Importance,
    /// Trees from the prior, posteriors from each (the paper).
    Collapsed,
    /// Trees that lean towards the evidence, posteriors from each.
    Tilted,
}

impl Method {
    /// Enumeration where it is cheap, else random trees that lean towards the evidence.
    pub fn that_fits<D: Density + ?Sized>(density: &D, evidence: &Evidence) -> Method {
        const MOST_ROWS: u64 = 1 << 20;
        /// A second or so.
        const MOST_OPERATIONS: f64 = 2e10;
        let cost = (density.states().len() as f64).powi(3) + 100.0;
        match exact::rows(evidence) {
            Some(rows) if rows <= MOST_ROWS && rows as f64 * cost <= MOST_OPERATIONS => Method::Exact,
            _ => Method::Tilted,
        }
    }
}

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Most trees.
    pub trees: usize,
    /// Standard error of probabilities that is good enough; none: all trees are drawn.
    pub tolerance: Option<f64>,
    /// Of the random trees.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { trees: 200_000, tolerance: Some(0.005), seed: 0 }
    }
}

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
    /// Trees drawn.
    pub trees: usize,
}

/// Trees of the first round of the tilted proposal, and of the first look at the error.
const FIRST: usize = 256;

/// The posterior of every state of every variable given the evidence.
pub fn posterior<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    method: Method,
    effort: Effort,
) -> Result<Posterior, InferError> {
    if evidence.variables() != density.states().len() {
        return Err(InferError::Variables { found: evidence.variables(), expected: density.states().len() });
    }
    let sums = match method {
        Method::Exact => {
            let (states, log_evidence) = exact::posterior(density, evidence)?;
            if log_evidence == f64::NEG_INFINITY {
                return Err(InferError::Impossible);
            }
            let sure = |value: f64| Estimate { value, standard_error: 0.0 };
            return Ok(Posterior {
                method,
                states: by_variable(density, |i| sure(states[i])),
                log_evidence: sure(log_evidence),
                effective_sample_size: f64::INFINITY,
                trees: 0,
            });
        }
        Method::Importance | Method::Collapsed => {
            let per_tree = if method == Method::Importance { PerTree::Row } else { PerTree::Posterior };
            go_on(density, evidence, &Proposal::prior(density)?, per_tree, effort, "trees")
        }
        Method::Tilted => tilted(density, evidence, effort)?,
    };
    if sums.effective() == 0.0 {
        return Err(InferError::Impossible);
    }
    Ok(Posterior {
        method,
        states: by_variable(density, |i| sums.mean(i)),
        log_evidence: sums.log_mean_weight(),
        effective_sample_size: sums.effective(),
        trees: sums.draws(),
    })
}

/// A first round with the edges between observed variables tilted; a second with all edges tilted by what the first found,
/// where that promises more per tree.
fn tilted<D: Density + ?Sized>(density: &D, evidence: &Evidence, effort: Effort) -> Result<Sums, InferError> {
    let first = Proposal::tilted(density, evidence)?;
    let look = draw(density, evidence, &first, PerTree::Posterior, (effort.seed, "first trees"), 0..FIRST);
    if good_enough(&look, effort) || look.effective() == 0.0 {
        return Ok(look);
    }
    let offsets = density.tables().offsets();
    let belief = |v: usize| Some((offsets[v]..offsets[v + 1]).map(|i| look.mean(i).value).collect());
    let beliefs: Vec<Option<Vec<f64>>> = (0..density.states().len()).map(belief).collect();
    let second = Proposal::towards(density, &beliefs)?;
    let again = draw(density, evidence, &second, PerTree::Posterior, (effort.seed, "second trees"), 0..FIRST);
    let better = again.effective() > look.effective();
    let proposal = if better { second } else { first };
    Ok(go_on(density, evidence, &proposal, PerTree::Posterior, effort, "trees"))
}

/// Draws until the effort is spent or the error is small enough, twice as many each time.
fn go_on<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    proposal: &Proposal,
    per_tree: PerTree,
    effort: Effort,
    purpose: &str,
) -> Sums {
    let mut done = FIRST.min(effort.trees.max(1));
    let mut sums = draw(density, evidence, proposal, per_tree, (effort.seed, purpose), 0..done);
    while done < effort.trees && !good_enough(&sums, effort) {
        let next = (2 * done).min(effort.trees);
        sums.merge(&draw(density, evidence, proposal, per_tree, (effort.seed, purpose), done..next));
        done = next;
    }
    sums
}

fn good_enough(sums: &Sums, effort: Effort) -> bool {
    // A handful of heavy draws knows nothing of its own error.
    const LEAST_EFFECTIVE: f64 = 50.0;
    let worst = || (0..sums.functions()).map(|i| sums.mean(i).standard_error).fold(0.0, f64::max);
    effort.tolerance.is_some_and(|tolerance| sums.effective() >= LEAST_EFFECTIVE && worst() <= tolerance)
}

fn by_variable<D: Density + ?Sized>(density: &D, estimate: impl Fn(usize) -> Estimate) -> Vec<Vec<Estimate>> {
    let offsets = density.tables().offsets();
    (0..density.states().len()).map(|v| (offsets[v]..offsets[v + 1]).map(&estimate).collect()).collect()
}
