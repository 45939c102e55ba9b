//! Posteriors by the method that is asked for, or the one that fits.

use super::chains::CHAINS;
use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::importance::draw;
use super::measure::{Functions, Measure};
use super::proposal::Proposal;
use super::{InferError, block_gibbs, bridge, exact, gibbs};
use crate::model::{Density, EdgeTables};
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
    /// One variable at a time given all others, in several chains (the paper's yardstick).
    Gibbs,
    /// A tree given a row, a row given the tree, and so on, in several chains.
    BlockGibbs,
}

impl Method {
    /// As text, such as `block-gibbs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Importance => "importance",
            Self::Collapsed => "collapsed",
            Self::Tilted => "tilted",
            Self::Gibbs => "gibbs",
            Self::BlockGibbs => "block-gibbs",
        }
    }

    /// Enumeration where it takes no more than so many operations, else random trees that lean towards the evidence.
    pub fn within<D: Density + ?Sized>(_: &D, evidence: &Evidence, operations: f64) -> Method {
        Self::affordable(evidence, operations)
    }

    /// The same, of any model.
    pub(crate) fn affordable(evidence: &Evidence, operations: f64) -> Method {
        const MOST_ROWS: u64 = 1 << 20;
        let cost = (evidence.variables() as f64).powi(3) + 100.0;
        match exact::rows(evidence) {
            Some(rows) if rows <= MOST_ROWS && rows as f64 * cost <= operations => Method::Exact,
            _ => Method::Tilted,
        }
    }
}

/// Operations of about a second.
pub(crate) const A_SECOND: f64 = 1e11;

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort<'a> {
    /// Most trees (steps, of chains).
    pub trees: usize,
    /// Standard error that is good enough; none: all trees are drawn.
    pub tolerance: Option<f64>,
    /// Of the random trees.
    pub seed: u64,
    /// The variables whose errors matter; none: all.
    pub targets: &'a [usize],
    /// Everything hidden is enumerated where that takes no more operations than this.
    pub operations: f64,
}

impl Default for Effort<'_> {
    fn default() -> Self {
        Self { trees: 200_000, tolerance: Some(0.005), seed: 0, targets: &[], operations: A_SECOND }
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

/// Rows that are enumerated when that is asked for.
const MOST_ROWS: u64 = 1 << 26;

/// Trees of the first round of the tilted proposal, and of the first look at the error.
const FIRST: usize = 256;
/// Steps of a chain at first.
const STEPS: usize = 64;

/// Of the trees, so many must count: a step of a chain costs more, but all of them count to a tenth or so.
const LEAST_SHARE: f64 = 0.05;
/// So many where their mean weight alone is to be trusted: means of few large weights among many small ones come out low,
/// and do not know it.
const LEAST_SHARE_ALONE: f64 = 0.2;
/// Trees after which that is looked at.
const LOOK: usize = 16 * FIRST;

/// Means of what is measured, whatever that is.
pub(crate) struct Found {
    pub method: Method,
    pub means: Vec<Estimate>,
    pub log_evidence: Estimate,
    pub effective: f64,
    pub trees: usize,
    pub r_hat: Option<f64>,
}

/// The posterior of every state of every variable given the evidence.
pub fn posterior<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    method: Method,
    effort: Effort<'_>,
) -> Result<Posterior, InferError> {
    let measure = if method == Method::Importance { Measure::Row } else { Measure::Posterior };
    let question = Question::new(density, evidence, measure.into(), effort)?;
    Ok(by_variable(density.tables().offsets(), question.answer(method)?))
}

/// The method that fits: enumeration where it is cheap; else trees that lean towards the evidence; and where hardly one of
/// those counts, chains.
pub fn posterior_by_what_fits<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<Posterior, InferError> {
    let question = Question::new(density, evidence, Measure::Posterior.into(), effort)?;
    Ok(by_variable(density.tables().offsets(), question.answer_by_what_fits()?))
}

/// The probability of every edge of the tree given the evidence: exact for a complete row and where enumeration is cheap.
pub fn edges<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<EdgePosterior, InferError> {
    let effort = Effort { targets: &[], ..effort };
    let found = Question::new(density, evidence, Measure::Edges.into(), effort)?.answer_by_what_fits()?;
    Ok(found.into_edges())
}

/// The logarithm of the probability of the evidence, to a tolerance on this logarithm.
pub fn log_evidence<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<Estimate, InferError> {
    let question = Question::new(density, evidence, Measure::Nothing.into(), effort)?;
    if Method::within(density, evidence, effort.operations) == Method::Exact {
        return Ok(question.answer(Method::Exact)?.log_evidence);
    }
    let (proposal, _) = question.lean()?;
    let look = question.go_on(&proposal, LOOK.min(effort.trees));
    if look.effective() >= LEAST_SHARE_ALONE * look.draws() as f64 {
        return Ok(question.carry_on(look, &proposal, effort.trees).log_mean_weight());
    }
    question.bridge(&proposal)
}

/// Means of functions that begin at these places for each variable.
pub(crate) fn by_variable(offsets: &[usize], found: Found) -> Posterior {
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

impl Found {
    pub fn into_edges(self) -> EdgePosterior {
        EdgePosterior {
            method: self.method,
            edges: self.means,
            effective_sample_size: self.effective,
            trees: self.trees,
        }
    }
}

/// Means of functions by a method, or by what fits.
pub(crate) fn means<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    functions: Functions<'_>,
    method: Option<Method>,
    effort: Effort<'_>,
) -> Result<Found, InferError> {
    let question = Question::new(density, evidence, functions, effort)?;
    match method {
        Some(method) => question.answer(method),
        None => question.answer_by_what_fits(),
    }
}

/// What is asked, of whom, and how exactly.
struct Question<'a, D: ?Sized> {
    density: &'a D,
    evidence: &'a Evidence,
    functions: Functions<'a>,
    effort: Effort<'a>,
    /// Places of the functions whose errors matter.
    wanted: Vec<std::ops::Range<usize>>,
}

impl<'a, D: Density + ?Sized> Question<'a, D> {
    fn new(
        density: &'a D,
        evidence: &'a Evidence,
        functions: Functions<'a>,
        effort: Effort<'a>,
    ) -> Result<Self, InferError> {
        let n = density.states().len();
        if evidence.variables() != n {
            return Err(InferError::Variables { found: evidence.variables(), expected: n });
        }
        let offsets = match functions.projection {
            Some(projection) => &projection.offsets,
            None => density.tables().offsets(),
        };
        let wanted = if effort.targets.is_empty() {
            std::iter::once(0..functions.count(density)).collect()
        } else {
            effort.targets.iter().map(|&v| offsets[v]..offsets[v + 1]).collect()
        };
        Ok(Self { density, evidence, functions, effort, wanted })
    }

    fn answer(&self, method: Method) -> Result<Found, InferError> {
        let Self { density, evidence, functions, effort, .. } = self;
        let sums = match method {
            Method::Exact => {
                let rows = exact::rows(evidence);
                if rows.is_none_or(|rows| rows > MOST_ROWS) {
                    return Err(InferError::TooManyRows { rows, most: MOST_ROWS });
                }
                let (means, log_evidence) = match functions.measure {
                    Measure::Edges => exact::edges(*density, evidence)?,
                    Measure::Nothing => (Vec::new(), exact::log_evidence(*density, evidence)?),
                    Measure::Row | Measure::Posterior => {
                        let (means, log) = exact::posterior(*density, evidence)?;
                        (functions.projection.map_or(means.clone(), |projection| projection.of(&means)), log)
                    }
                };
                if log_evidence == f64::NEG_INFINITY {
                    return Err(InferError::Impossible);
                }
                let sure = |value: f64| Estimate { value, standard_error: 0.0 };
                return Ok(Found {
                    method,
                    means: means.into_iter().map(sure).collect(),
                    log_evidence: sure(log_evidence),
                    effective: f64::INFINITY,
                    trees: 0,
                    r_hat: None,
                });
            }
            Method::Importance | Method::Collapsed => self.go_on(&Proposal::prior(*density)?, effort.trees),
            Method::Tilted => {
                let (proposal, look) = self.lean()?;
                match look {
                    Some(look) => look,
                    None => self.go_on(&proposal, effort.trees),
                }
            }
            Method::Gibbs | Method::BlockGibbs => return self.chains(method),
        };
        self.found(method, sums)
    }

    fn found(&self, method: Method, sums: Sums) -> Result<Found, InferError> {
        if sums.effective() == 0.0 {
            return Err(InferError::Unexplained { trees: sums.draws() });
        }
        Ok(Found {
            method,
            means: (0..sums.functions()).map(|i| self.at_least(sums.mean(i), sums.effective())).collect(),
            log_evidence: sums.log_mean_weight(),
            effective: sums.effective(),
            trees: sums.draws(),
            r_hat: None,
        })
    }

    /// Trees as long as enough of them count; else chains, if they do better.
    fn answer_by_what_fits(&self) -> Result<Found, InferError> {
        // Edges are computed row by row.
        let most = self.effort.operations * if self.functions.measure == Measure::Edges { 0.1 } else { 1.0 };
        if Method::within(self.density, self.evidence, most) == Method::Exact {
            return self.answer(Method::Exact);
        }
        let (proposal, look) = self.lean()?;
        let look = match look {
            Some(look) => look,
            None => self.go_on(&proposal, LOOK.min(self.effort.trees)),
        };
        // Of few trees that count, not even their error can be believed. Some evidence shows only late how few they are.
        let few = |sums: &Sums| sums.effective() < LEAST_SHARE * sums.draws() as f64;
        if few(&look) {
            return self.chains(Method::BlockGibbs);
        }
        let sums = self.carry_on(look, &proposal, self.effort.trees);
        if few(&sums) {
            return self.chains(Method::BlockGibbs);
        }
        let alone = sums.effective() >= LEAST_SHARE_ALONE * sums.draws() as f64;
        let mut found = self.found(Method::Tilted, sums)?;
        if !alone {
            found.log_evidence = self.short_bridge(&proposal)?;
        }
        Ok(found)
    }

    /// A first round with the edges between observed variables tilted; then half of the trees with all edges tilted by what
    /// the first found. Gives back the proposal, and the first round where it is enough.
    fn lean(&self) -> Result<(Proposal, Option<Sums>), InferError> {
        let Self { density, evidence, functions, effort, .. } = *self;
        let first = Proposal::tilted(density, evidence)?;
        let trees = (effort.seed, "first trees");
        let look = draw(density, evidence, &first, Measure::Posterior.into(), trees, 0..FIRST);
        if look.effective() == 0.0 {
            return Err(InferError::Unexplained { trees: FIRST });
        }
        let alike = look.effective() >= LEAST_SHARE_ALONE * look.draws() as f64;
        let the_same = functions.measure == Measure::Posterior && functions.projection.is_none();
        if the_same && alike && self.good_enough(&look) {
            return Ok((first, Some(look)));
        }
        let offsets = density.tables().offsets();
        let belief = |v: usize| Some((offsets[v]..offsets[v + 1]).map(|i| look.mean(i).value).collect());
        let beliefs: Vec<Option<Vec<f64>>> = (0..density.states().len()).map(belief).collect();
        Ok((first.and(Proposal::towards(density, &beliefs)?), None))
    }

    /// Draws until so many trees are drawn or the error is small enough, twice as many each time.
    fn go_on(&self, proposal: &Proposal, trees: usize) -> Sums {
        let first = self.trees(proposal, 0..FIRST.min(trees.max(1)));
        self.carry_on(first, proposal, trees)
    }

    fn carry_on(&self, mut sums: Sums, proposal: &Proposal, trees: usize) -> Sums {
        while sums.draws() < trees && !self.good_enough(&sums) {
            let done = sums.draws();
            sums.merge(&self.trees(proposal, done..(2 * done).min(trees)));
        }
        sums
    }

    fn trees(&self, proposal: &Proposal, trees: std::ops::Range<usize>) -> Sums {
        draw(self.density, self.evidence, proposal, self.functions, (self.effort.seed, "trees"), trees)
    }

    fn good_enough(&self, sums: &Sums) -> bool {
        // A handful of heavy draws knows nothing of its own error.
        const LEAST_EFFECTIVE: f64 = 100.0;
        let error = || match self.functions.measure {
            Measure::Nothing => sums.log_mean_weight().standard_error,
            _ => {
                let errors = self.wanted.iter().cloned().flatten().map(|i| sums.mean(i).standard_error);
                errors.fold(0.0, f64::max)
            }
        };
        self.effort
            .tolerance
            .is_some_and(|tolerance| sums.effective() >= LEAST_EFFECTIVE && error() <= tolerance)
    }

    /// The largest error that matters.
    fn worst(&self, means: &[Estimate]) -> f64 {
        let errors = self.wanted.iter().cloned().flatten().map(|i| means[i].standard_error);
        errors.fold(0.0, f64::max)
    }

    /// The probability of the evidence from longer and longer chains, until its error is small enough.
    fn bridge(&self, proposal: &Proposal) -> Result<Estimate, InferError> {
        let mut length = Longer::new(self.effort);
        loop {
            let found =
                bridge::log_evidence(self.density, self.evidence, proposal, length.steps, self.effort.seed)?;
            if !length.grow(found.standard_error, true) {
                return Ok(found);
            }
        }
    }

    /// The probability of the evidence as a side remark: it is not what the tolerance is about.
    fn short_bridge(&self, proposal: &Proposal) -> Result<Estimate, InferError> {
        let steps = Longer::new(self.effort).most.min(2 * STEPS);
        bridge::log_evidence(self.density, self.evidence, proposal, steps, self.effort.seed)
    }

    /// Of what is drawn, not computed, a thing that never (or always) came is not certain for it.
    fn at_least(&self, mean: Estimate, effective: f64) -> Estimate {
        match self.functions.measure {
            Measure::Row | Measure::Edges => floored(mean, effective),
            Measure::Posterior | Measure::Nothing => mean,
        }
    }

    /// Chains, longer and longer until the error is small enough; the probability of the evidence, which chains do not
    /// tell, comes from a bridge to them.
    fn chains(&self, method: Method) -> Result<Found, InferError> {
        /// Chains whose halves differ by more than this have not mixed.
        const MOST_R_HAT: f64 = 1.1;
        let Self { density, evidence, functions, effort, .. } = *self;
        let mut length = Longer::new(effort);
        let found = loop {
            let found = match method {
                Method::Gibbs => gibbs::run(density, evidence, functions, length.steps, effort.seed)?,
                _ => block_gibbs::run(density, evidence, functions, length.steps, effort.seed)?,
            };
            length.allow_for(found.long, density.states().len());
            if !length.grow(self.worst(&found.estimates), found.r_hat <= MOST_R_HAT) {
                break found;
            }
        };
        let log_evidence = self.short_bridge(&Proposal::tilted(density, evidence)?)?;
        let drawn_one_by_one = method == Method::Gibbs;
        let floor = |mean: Estimate| match drawn_one_by_one {
            true => floored(mean, found.effective),
            false => self.at_least(mean, found.effective),
        };
        Ok(Found {
            method,
            means: found.estimates.iter().map(|mean| floor(*mean)).collect(),
            log_evidence,
            effective: found.effective,
            trees: found.steps,
            r_hat: Some(found.r_hat),
        })
    }
}

/// An error of no less than one draw among so many.
fn floored(mean: Estimate, effective: f64) -> Estimate {
    Estimate { standard_error: mean.standard_error.max(1.0 / (effective + 1.0)), ..mean }
}

/// How long chains are, and how much longer they must be.
struct Longer {
    steps: usize,
    most: usize,
    /// Of steps that cost what they should.
    allowed: usize,
    tolerance: Option<f64>,
}

impl Longer {
    fn new(effort: Effort<'_>) -> Self {
        // Halves need some steps to tell anything.
        let most = (effort.trees / CHAINS).max(16);
        let steps = if effort.tolerance.is_some() { STEPS.min(most) } else { most };
        Self { steps, most, allowed: most, tolerance: effort.tolerance }
    }

    /// Steps that take an elimination cost as much as n/8 others; where there are many of them, fewer steps must do.
    fn allow_for(&mut self, long: f64, n: usize) {
        let most = self.allowed as f64 / (1.0 + long * n as f64 / 8.0);
        self.most = (most as usize).max(self.steps);
    }

    /// Goes on to a length at which the error should be small enough, if there is one to go on to.
    fn grow(&mut self, error: f64, mixed: bool) -> bool {
        let Some(tolerance) = self.tolerance else { return false };
        if (error <= tolerance && mixed) || self.steps >= self.most {
            return false;
        }
        let wanted = self.steps as f64 * 1.2 * (error / tolerance).powi(2);
        self.steps = (wanted as usize).max(2 * self.steps).min(self.most);
        true
    }
}
