//! Posteriors by the method that is asked for, or the one that fits.

use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::importance::{PerTree, draw};
use super::proposal::Proposal;
use super::{InferError, block_gibbs, exact};
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
    /// A tree given a row, a row given the tree, and so on, in several chains.
    BlockGibbs,
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
    /// Of chains: 1 where all of them tell the same, more where they have not mixed.
    pub r_hat: Option<f64>,
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
                r_hat: None,
            });
        }
        Method::Importance | Method::Collapsed => {
            let per_tree = if method == Method::Importance { PerTree::Row } else { PerTree::Posterior };
            go_on(density, evidence, &Proposal::prior(density)?, per_tree, effort, "trees")
        }
        Method::Tilted => tilted(density, evidence, effort)?,
        Method::BlockGibbs => return chains(density, evidence, effort),
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
        r_hat: None,
    })
}

/// The method that fits: enumeration where it is cheap; else trees that lean towards the evidence; and where hardly one of
/// those counts, chains.
pub fn posterior_by_what_fits<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort,
) -> Result<Posterior, InferError> {
    /// Of the trees, so few may count.
    const LEAST_SHARE: f64 = 0.01;
    let method = Method::that_fits(density, evidence);
    let found = posterior(density, evidence, method, effort)?;
    let worst = found.states.iter().flatten().map(|state| state.standard_error).fold(0.0, f64::max);
    let missed = effort.tolerance.is_some_and(|tolerance| worst > tolerance);
    if method == Method::Exact || !missed || found.effective_sample_size > LEAST_SHARE * found.trees as f64 {
        return Ok(found);
    }
    let chains = posterior(density, evidence, Method::BlockGibbs, effort)?;
    let other = chains.states.iter().flatten().map(|state| state.standard_error).fold(0.0, f64::max);
    Ok(if other < worst { chains } else { found })
}

/// Chains, longer and longer until the error is small enough; the probability of the evidence, which chains do not tell,
/// comes from trees that lean towards it.
fn chains<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort,
) -> Result<Posterior, InferError> {
    /// Steps of a chain at first.
    const STEPS: usize = 64;
    /// Chains whose halves differ by more than this have not mixed.
    const MOST_R_HAT: f64 = 1.05;
    let first = Proposal::tilted(density, evidence)?;
    let look =
        draw(density, evidence, &first, PerTree::Posterior, (effort.seed, "first trees"), 0..4 * FIRST);
    let mut steps = STEPS;
    loop {
        let found = block_gibbs::run(density, evidence, steps, effort.seed)?;
        let worst = found.states.iter().map(|state| state.standard_error).fold(0.0, f64::max);
        let good = effort.tolerance.is_some_and(|tolerance| worst <= tolerance) && found.r_hat <= MOST_R_HAT;
        if good || 2 * found.trees > effort.trees {
            return Ok(Posterior {
                method: Method::BlockGibbs,
                states: by_variable(density, |i| found.states[i]),
                log_evidence: look.log_mean_weight(),
                effective_sample_size: found.effective,
                trees: found.trees,
                r_hat: Some(found.r_hat),
            });
        }
        steps *= 2;
    }
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
