//! Questions to a distribution that is one tree: two passes of messages answer them, exactly.

use super::InferError;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::measure::{Functions, Measure};
use super::messages::Messages;
use super::method::Method;
use super::posterior::Expectation;
use crate::model::{EdgeTables, TreeModel};
use crate::util::stream;
use rayon::prelude::*;

/// Rows of one stream of random numbers.
const CHUNK: usize = 64;

/// One tree with evidence.
pub(crate) struct TreePosterior<'a> {
    tree: &'a TreeModel,
    messages: Messages<'a, TreeModel>,
    /// Of all variables: of hidden ones nothing is known.
    evidence: Evidence,
    log_evidence: f64,
    observed: usize,
}

impl<'a> TreePosterior<'a> {
    pub fn new(tree: &'a TreeModel, evidence: &Evidence) -> Self {
        let evidence = evidence.with_more(tree.states());
        let mut messages = Messages::new(tree);
        let log_evidence = messages.collect(tree.tree(), &evidence);
        let observed = tree.observed();
        Self { tree, messages, evidence, log_evidence, observed }
    }

    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// The posterior of every state of every variable that can be observed.
    pub fn posterior(&mut self) -> &[f64] {
        let states = self.tree.offsets()[self.observed];
        &self.messages.distribute(self.tree.tree())[..states]
    }

    /// A row at random; none of evidence that is impossible.
    pub fn draw(&self, rng: &mut (impl rand::Rng + ?Sized)) -> Option<Vec<u16>> {
        let mut row = self.messages.draw(self.tree.tree(), rng)?;
        row.truncate(self.observed);
        Some(row)
    }

    /// The most probable row together with the hidden variables: where none are hidden, the most probable row.
    pub fn most_probable(&mut self) -> Option<Vec<u16>> {
        let (mut row, _) = self.messages.most_probable(self.tree.tree(), &self.evidence)?;
        row.truncate(self.observed);
        Some(row)
    }
}

/// Means of functions, as of random trees, but exact.
pub(super) fn means(
    tree: &TreeModel,
    evidence: &Evidence,
    functions: Functions<'_>,
) -> Result<Expectation, InferError> {
    let mut told = TreePosterior::new(tree, evidence);
    let log_evidence = told.log_evidence();
    if log_evidence == f64::NEG_INFINITY {
        return Err(InferError::Impossible);
    }
    let values = match (functions.measure, functions.projection) {
        (Measure::Posterior | Measure::Row, None) => told.posterior().to_vec(),
        (Measure::Posterior | Measure::Row, Some(projection)) => projection.of(told.posterior()),
        (Measure::Edges, _) => tree.edges(),
        (Measure::Nothing, _) => Vec::new(),
    };
    let exact = |value: f64| Estimate { value, standard_error: 0.0 };
    Ok(Expectation {
        method: Method::Exact,
        means: values.into_iter().map(exact).collect(),
        covariances: Vec::new(),
        log_evidence: exact(log_evidence),
        effective: f64::INFINITY,
        trees: 0,
        r_hat: None,
    })
}

/// Logarithms of how much more probable a row would be with another state in one place, where every variable hangs at a latent
/// one: `Σ_h P(h | x) P(b | h) / P(x_v | h)`.
pub(super) fn changes_with_latent(tree: &TreeModel, row: &[u16]) -> Vec<f64> {
    let offsets = tree.offsets();
    let evidence = Evidence::of_row(&tree.states()[..row.len()], row);
    let mut told = TreePosterior::new(tree, &evidence);
    let posterior = told.messages.distribute(tree.tree());
    let mut changes = vec![0.0; offsets[row.len()]];
    for (v, &now) in row.iter().enumerate() {
        let Some(u) = tree.tree().parent(v) else { continue };
        let own = &mut changes[offsets[v]..offsets[v + 1]];
        for (h, p) in posterior[offsets[u]..offsets[u + 1]].iter().enumerate() {
            let given = tree.given(u, h, v);
            let scale = p / given[usize::from(now)].max(f64::MIN_POSITIVE);
            own.iter_mut().zip(given).for_each(|(change, p)| *change += scale * p);
        }
        own.iter_mut().for_each(|change| *change = change.ln());
    }
    changes
}

/// Rows at random, independent and exact.
pub(super) fn sample(
    tree: &TreeModel,
    evidence: &Evidence,
    count: usize,
    seed: u64,
) -> Result<Vec<Vec<u16>>, InferError> {
    let told = TreePosterior::new(tree, evidence);
    let chunks: Option<Vec<Vec<Vec<u16>>>> = (0..count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, "samples of one tree", chunk as u64);
            (chunk * CHUNK..count.min((chunk + 1) * CHUNK)).map(|_| told.draw(&mut rng)).collect()
        })
        .collect();
    Ok(chunks.ok_or(InferError::Impossible)?.into_iter().flatten().collect())
}
