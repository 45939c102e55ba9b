//! Trees to draw: from the prior, or from rates that lean towards the evidence, with the weight that corrects for it.
//!
//! Trees are drawn with rates `w_e · tilt_e` instead of `w_e`. Then, for any positive tilts,
//!
//! ```text
//! P(e) = (F_tilted / F_prior) · E[ P(e | T) / Π_{edges of T} tilt ]
//! ```
//!
//! Two such distributions can be mixed, half the trees from each; a tree then counts by what both together would draw it
//! with. Where one of them misleads, the other keeps the weights within twice its own.

use super::evidence::Evidence;
use crate::model::Density;
use crate::spanning::{Elimination, Kind, RateError, RootedForest, SpanningTrees};
use rand::RngExt;

/// A distribution over trees, and its weights.
pub(crate) struct Proposal {
    /// Drawn from equally often.
    parts: Vec<Part>,
    n: usize,
}

struct Part {
    trees: SpanningTrees,
    /// In the layout of [`Kind`]; empty where nothing is tilted.
    log_tilts: Vec<f64>,
    log_ratio: f64,
}

impl Part {
    /// The logarithm of how much more often than in the prior a tree comes.
    fn log_lean(&self, n: usize, tree: &RootedForest) -> f64 {
        if self.log_tilts.is_empty() {
            return 0.0;
        }
        let tilt = |(v, &u): (usize, &usize)| self.log_tilts[v * n + u];
        tree.parents().iter().enumerate().map(tilt).sum::<f64>() - self.log_ratio
    }
}

/// Tilts stay within this factor of 1 either way, so that no tree becomes unreachable.
const MOST_TILT: f64 = 1e12;

impl Proposal {
    /// The prior.
    pub fn prior<D: Density + ?Sized>(density: &D) -> Result<Self, RateError> {
        let n = density.states().len();
        let trees = SpanningTrees::new(density.kind(), n, density.rates())?;
        Ok(Self { parts: vec![Part { trees, log_tilts: Vec::new(), log_ratio: 0.0 }], n })
    }

    /// Edges between variables that something is known of carry what the evidence makes of them; the others stay as in the
    /// prior. Exact when everything is observed: all weights are then the same.
    pub fn tilted<D: Density + ?Sized>(density: &D, evidence: &Evidence) -> Result<Self, RateError> {
        let beliefs: Vec<Option<Vec<f64>>> = (0..density.states().len())
            .map(|v| evidence.is_given(v).then(|| normalised(evidence.of(v), density.tables().root(v))))
            .collect();
        Self::towards(density, evidence, &beliefs)
    }

    /// Every edge carries its mean factor under these beliefs about single variables, where there are any.
    pub fn towards<D: Density + ?Sized>(
        density: &D,
        evidence: &Evidence,
        beliefs: &[Option<Vec<f64>>],
    ) -> Result<Self, RateError> {
        let n = density.states().len();
        let log_tilts = match density.kind() {
            Kind::Undirected => undirected_tilts(density, beliefs),
            Kind::Directed => directed_tilts(density, evidence, beliefs),
        };
        let rates: Vec<f64> =
            density.rates().iter().zip(&log_tilts).map(|(q, tilt)| q * tilt.exp()).collect();
        let elimination = Elimination::<f64>::new(density.kind(), n)?;
        let (mut tilted, mut prior) = ([0.0], [0.0]);
        elimination.log_forests(&rates, &mut tilted)?;
        elimination.log_forests(density.rates(), &mut prior)?;
        let trees = SpanningTrees::new(density.kind(), n, &rates)?;
        Ok(Self { parts: vec![Part { trees, log_tilts, log_ratio: tilted[0] - prior[0] }], n })
    }

    /// Half from this, half from another.
    pub fn and(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// A tree, and the logarithm of what its weight is to be multiplied by.
    pub fn draw(&self, rng: &mut (impl rand::Rng + ?Sized)) -> (RootedForest, f64) {
        let part = match self.parts.len() {
            1 => 0,
            parts => rng.random_range(0..parts),
        };
        let tree = self.parts[part].trees.draw(rng);
        let correction = self.correction(&tree);
        (tree, correction)
    }

    /// The logarithm of what the weight of a tree is to be multiplied by.
    pub fn correction(&self, tree: &RootedForest) -> f64 {
        if let [part] = &self.parts[..] {
            return -part.log_lean(self.n, tree);
        }
        let leans: Vec<f64> = self.parts.iter().map(|part| part.log_lean(self.n, tree)).collect();
        let most = leans.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = leans.iter().map(|lean| (lean - most).exp()).sum::<f64>() / leans.len() as f64;
        -(most + mean.ln())
    }
}

/// The mean factor of every edge between variables with beliefs. Factors are ratios here, whose mean is 1 where nothing is known
/// of one end.
fn undirected_tilts<D: Density + ?Sized>(density: &D, beliefs: &[Option<Vec<f64>>]) -> Vec<f64> {
    let n = beliefs.len();
    let mut log_tilts = vec![0.0; n * n];
    for (v, of_v) in beliefs.iter().enumerate() {
        let Some(of_v) = of_v else { continue };
        for (u, of_u) in beliefs[..v].iter().enumerate() {
            let Some(of_u) = of_u else { continue };
            let mut mean = 0.0;
            for (a, &p) in of_v.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                for (b, &q) in of_u.iter().enumerate().filter(|(_, q)| **q > 0.0) {
                    mean += p * q * density.factor(v, a, u, b);
                }
            }
            let tilt = mean.clamp(1.0 / MOST_TILT, MOST_TILT).ln();
            log_tilts[v * n + u] = tilt;
            log_tilts[u * n + v] = tilt;
        }
    }
    log_tilts
}

/// The mean factor of every parent of a variable, and of it as a root, beside each other.
///
/// Factors are conditional probabilities here. A variable that is observed has a factor whatever its parent is, so parents of which
/// nothing is known count too, with the margin that they have as roots; else trees in which they are parents would seem too
/// probable. A variable of which neither something is observed nor believed has the factor 1 under every parent. Every tree has
/// one entry of every line, so that the scale of lines does not matter.
fn directed_tilts<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    beliefs: &[Option<Vec<f64>>],
) -> Vec<f64> {
    let n = beliefs.len();
    let mut log_tilts = vec![0.0; n * n];
    for v in 0..n {
        let of_v = match (evidence.is_given(v), &beliefs[v]) {
            (true, _) => evidence.of(v),
            (false, Some(belief)) => belief,
            (false, None) => continue,
        };
        let possible = || of_v.iter().enumerate().filter(|(_, p)| **p > 0.0);
        let means: Vec<f64> = (0..n)
            .map(|u| {
                if u == v {
                    return possible().map(|(a, p)| p * density.factor(v, a, v, a)).sum();
                }
                let of_u = beliefs[u].as_deref().unwrap_or(density.tables().root(u));
                let mut mean = 0.0;
                for (b, &q) in of_u.iter().enumerate().filter(|(_, q)| **q > 0.0) {
                    mean += q * possible().map(|(a, p)| p * density.factor(v, a, u, b)).sum::<f64>();
                }
                mean
            })
            .collect();
        let most = means.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (tilt, mean) in log_tilts[v * n..][..n].iter_mut().zip(means) {
            *tilt = (mean / most).max(1.0 / MOST_TILT).ln();
        }
    }
    log_tilts
}

/// Likelihood times margin, to add up to 1; the margin alone where the evidence rules everything out.
fn normalised(likelihood: &[f64], margin: &[f64]) -> Vec<f64> {
    let product: Vec<f64> = likelihood.iter().zip(margin).map(|(l, p)| l * p).collect();
    let sum: f64 = product.iter().sum();
    if sum > 0.0 { product.into_iter().map(|p| p / sum).collect() } else { margin.to_vec() }
}
