//! K models mixed: `p(x) = Σ_k π_k p_k(x)`.
//!
//! Parameters: those of each component, one after the other, and the logarithms of the mixing weights up to a common factor.

use super::{Learnable, ModelError, ParamsView, Regularisation, UnseenStates};
use crate::data::Codes;
use crate::forest::Backend;
use crate::util::{log_sum, softmax};
use rayon::prelude::*;

/// Responsibilities below this count as none: most rows then work for a few components only in the backward pass.
const LEAST_RESPONSIBILITY: f64 = 1e-5;
/// A component with less than this share of the rows goes through them once more, alone, instead of through all of them:
/// forwards is a third of the work.
const FEW_ROWS: f64 = 0.6;

/// A mixture of models over the same variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture<M> {
    components: Vec<M>,
    log_weights: Vec<f64>,
}

/// A [`Mixture`] ready for a backend.
pub struct MixtureReady<R> {
    components: Vec<R>,
    /// Logarithms of the mixing weights, which add up to 1.
    log_weights: Vec<f64>,
    /// `log π_k p_k(x)` of the last rows, component by component.
    joint: Vec<f64>,
}

/// What the components add up, each from its share of every row.
pub struct MixtureStats<S> {
    components: Vec<S>,
    /// The weight of each component.
    responsibilities: Vec<f64>,
    /// Responsibilities times weights of the last rows, component by component.
    weights: Vec<f64>,
}

impl<S> MixtureStats<S> {
    /// Of each component.
    pub fn components(&self) -> &[S] {
        &self.components
    }

    /// The weight of the rows of each component.
    pub fn responsibilities(&self) -> &[f64] {
        &self.responsibilities
    }
}

impl<M: Learnable> Mixture<M> {
    /// Of these components, with mixing weights in these proportions.
    pub fn new(components: Vec<M>, weights: &[f64]) -> Result<Self, ModelError> {
        if let Some(&weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(ModelError::MixingWeight(weight));
        }
        Self::with_log_mixing_weights(components, weights.iter().map(|weight| weight.ln()).collect())
    }

    /// The same, with mixing weights as logarithms up to a common factor.
    pub fn with_log_mixing_weights(components: Vec<M>, log_weights: Vec<f64>) -> Result<Self, ModelError> {
        let Some(first) = components.first() else {
            return Err(ModelError::NoComponents);
        };
        let (found, expected) = (log_weights.len(), components.len());
        if found != expected {
            return Err(ModelError::Length {
                what: "the list of mixing weights".to_owned(),
                found,
                expected,
            });
        }
        if let Some(place) = log_weights.iter().position(|log| !log.is_finite()) {
            return Err(ModelError::NotANumber { place, value: log_weights[place] });
        }
        if components.iter().any(|component| component.states() != first.states()) {
            return Err(ModelError::OtherVariables);
        }
        Ok(Self { components, log_weights })
    }

    /// One model alone.
    pub fn one(model: M) -> Self {
        Self { components: vec![model], log_weights: vec![0.0] }
    }

    /// The same, with mixing weights that add up to 1; learning lets them drift.
    pub fn normalised(mut self) -> Self {
        let log_total = log_sum(self.log_weights.iter().copied());
        // Once is enough: what is normalised stays as it is, to the last bit.
        if log_total.abs() > 1e-12 {
            self.log_weights.iter_mut().for_each(|log| *log -= log_total);
        }
        self
    }

    /// The mean of the parameters of all components.
    fn means(&self) -> Vec<f64> {
        let mut means = vec![0.0; self.components[0].size()];
        for component in &self.components {
            let own = component.slices().into_iter().flatten();
            means.iter_mut().zip(own).for_each(|(mean, own)| *mean += own / self.components.len() as f64);
        }
        means
    }

    /// What is mixed.
    pub fn components(&self) -> &[M] {
        &self.components
    }

    /// The logarithms of the mixing weights, up to a common factor.
    pub fn log_mixing_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// The mixing weight of every component; they add up to 1.
    pub fn mixing_weights(&self) -> Vec<f64> {
        softmax(&self.log_weights)
    }
}

impl<M: Learnable> ParamsView for Mixture<M> {
    fn slices(&self) -> Vec<&[f64]> {
        let mut pieces: Vec<&[f64]> = self.components.iter().flat_map(ParamsView::slices).collect();
        if self.components.len() > 1 {
            pieces.push(&self.log_weights);
        }
        pieces
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        let several = self.components.len() > 1;
        let mut pieces: Vec<&mut [f64]> =
            self.components.iter_mut().flat_map(ParamsView::slices_mut).collect();
        if several {
            pieces.push(&mut self.log_weights);
        }
        pieces
    }
}

impl<S: ParamsView> ParamsView for MixtureStats<S> {
    fn slices(&self) -> Vec<&[f64]> {
        let components = self.components.iter().flat_map(ParamsView::slices);
        components.chain(std::iter::once(&self.responsibilities[..])).collect()
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        let components = self.components.iter_mut().flat_map(ParamsView::slices_mut);
        components.chain(std::iter::once(&mut self.responsibilities[..])).collect()
    }
}

impl<M: Learnable> Learnable for Mixture<M> {
    type Ready<B: Backend> = MixtureReady<M::Ready<B>>;
    type Stats = MixtureStats<M::Stats>;

    fn states(&self) -> &[usize] {
        self.components[0].states()
    }

    fn ready<B: Backend>(&self, backend: &B) -> Result<Self::Ready<B>, ModelError> {
        let components: Result<_, _> =
            self.components.par_iter().map(|component| component.ready(backend)).collect();
        let mut ready = MixtureReady { components: components?, log_weights: Vec::new(), joint: Vec::new() };
        self.refresh_weights(&mut ready.log_weights);
        Ok(ready)
    }

    fn refresh<B: Backend>(&self, backend: &B, ready: &mut Self::Ready<B>) -> Result<(), ModelError> {
        self.refresh_weights(&mut ready.log_weights);
        self.components
            .par_iter()
            .zip(&mut ready.components)
            .try_for_each(|(component, ready)| component.refresh(backend, ready))
    }

    fn log_likelihood<B: Backend>(
        &self,
        backend: &B,
        ready: &mut Self::Ready<B>,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        let rows = out.len();
        let MixtureReady { components, log_weights, joint } = ready;
        joint.resize(rows * components.len(), 0.0);
        self.components
            .par_iter()
            .zip(components)
            .zip(joint.par_chunks_mut(rows.max(1)).zip(&*log_weights))
            .try_for_each(|((component, ready), (joint, share))| {
                component.log_likelihood(backend, ready, codes, joint)?;
                joint.iter_mut().for_each(|log| *log += share);
                Ok::<(), ModelError>(())
            })?;
        for (row, log) in out.iter_mut().enumerate() {
            *log = log_sum(joint.iter().skip(row).step_by(rows).copied());
        }
        Ok(())
    }

    fn stats<B: Backend>(&self, ready: &Self::Ready<B>) -> Self::Stats {
        let both = self.components.iter().zip(&ready.components);
        MixtureStats {
            components: both.map(|(component, ready)| component.stats(ready)).collect(),
            responsibilities: vec![0.0; self.components.len()],
            weights: Vec::new(),
        }
    }

    fn accumulate<B: Backend>(
        &self,
        backend: &B,
        ready: &mut Self::Ready<B>,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut Self::Stats,
    ) -> Result<(), ModelError> {
        let rows = weights.len();
        let MixtureReady { components, joint, .. } = ready;
        let MixtureStats { components: sums, responsibilities, weights: parts } = stats;
        parts.resize(joint.len(), 0.0);
        for (row, weight) in weights.iter().enumerate() {
            let log = log_sum(joint.iter().skip(row).step_by(rows).copied());
            for place in (row..joint.len()).step_by(rows) {
                // A row that is impossible says nothing about anything.
                let responsibility = if log == f64::NEG_INFINITY { 0.0 } else { (joint[place] - log).exp() };
                parts[place] =
                    if responsibility < LEAST_RESPONSIBILITY { 0.0 } else { weight * responsibility };
            }
        }
        for (share, parts) in responsibilities.iter_mut().zip(parts.chunks_exact(rows.max(1))) {
            *share += parts.iter().sum::<f64>();
        }
        self.components.par_iter().zip(components).zip(parts.par_chunks(rows.max(1)).zip(sums)).try_for_each(
            |((component, ready), (parts, sums))| {
                let own: Vec<usize> = (0..rows).filter(|&row| parts[row] != 0.0).collect();
                if own.len() as f64 >= FEW_ROWS * rows as f64 {
                    return component.accumulate(backend, ready, codes, parts, sums);
                }
                if own.is_empty() {
                    return Ok(());
                }
                let n = codes.variables();
                let some: Vec<u16> =
                    own.iter().flat_map(|&row| (0..n).map(move |v| codes.get(row, v) as u16)).collect();
                let weights: Vec<f64> = own.iter().map(|&row| parts[row]).collect();
                let some = Codes::new(&some, n)?;
                component.log_likelihood(backend, ready, some, &mut vec![0.0; own.len()])?;
                component.accumulate(backend, ready, some, &weights, sums)
            },
        )
    }

    fn gradient<B: Backend>(&self, ready: &Self::Ready<B>, stats: &Self::Stats, gradient: &mut [f64]) {
        let mut rest = gradient;
        let mut work = Vec::new();
        for component in &self.components {
            let (own, tail) = std::mem::take(&mut rest).split_at_mut(component.size());
            work.push(own);
            rest = tail;
        }
        work.into_par_iter()
            .zip(&self.components)
            .zip(ready.components.par_iter().zip(&stats.components))
            .for_each(|((gradient, component), (ready, stats))| component.gradient(ready, stats, gradient));
        let total: f64 = stats.responsibilities.iter().sum();
        for ((slope, share), log) in rest.iter_mut().zip(&stats.responsibilities).zip(&ready.log_weights) {
            *slope = share - total * log.exp();
        }
    }

    fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        let mut rest = &mut *gradient;
        for component in &self.components {
            let (own, tail) = rest.split_at_mut(component.size());
            component.regularise(by, share, own);
            rest = tail;
        }
        if self.components.len() > 1 && by.shrinkage > 0.0 && self.has_a_mean() {
            let strength = share * by.shrinkage;
            let size = self.components[0].size();
            let means = self.means();
            for (component, slopes) in self.components.iter().zip(gradient.chunks_exact_mut(size)) {
                let own = component.slices().into_iter().flatten();
                slopes
                    .iter_mut()
                    .zip(own.zip(&means))
                    .for_each(|(slope, (own, mean))| *slope -= strength * (own - mean));
            }
        }
    }

    fn log_prior(&self, by: &Regularisation) -> f64 {
        let means = self.means();
        let far = |component: &M| -> f64 {
            component.slices().into_iter().flatten().zip(&means).map(|(own, mean)| (own - mean).powi(2)).sum()
        };
        let shrinkage = if self.has_a_mean() { by.shrinkage } else { 0.0 };
        let own = |component: &M| component.log_prior(by) - 0.5 * shrinkage * far(component);
        self.components.iter().map(own).sum()
    }

    fn has_a_mean(&self) -> bool {
        self.components[0].has_a_mean()
    }

    fn maximise<B: Backend>(
        &mut self,
        ready: &Self::Ready<B>,
        stats: &Self::Stats,
        _: Option<&Self::Stats>,
        by: &Regularisation,
    ) -> bool {
        let several = self.components.len() > 1;
        let parent = several.then(|| {
            let mut all = self.components[0].stats(&ready.components[0]);
            stats.components.iter().for_each(|stats| all.blend(stats, 1.0, 1.0));
            all
        });
        for ((component, ready), stats) in
            self.components.iter_mut().zip(&ready.components).zip(&stats.components)
        {
            if !component.maximise(ready, stats, parent.as_ref(), by) {
                return false;
            }
        }
        if several {
            // One row more for each, so that none is lost for good.
            self.log_weights
                .iter_mut()
                .zip(&stats.responsibilities)
                .for_each(|(log, share)| *log = (share + 1.0).ln());
        }
        true
    }

    fn smooth_unseen(&mut self, unseen: &[UnseenStates]) {
        self.components.iter_mut().for_each(|component| component.smooth_unseen(unseen));
    }
}

impl<M> Mixture<M> {
    fn refresh_weights(&self, log_weights: &mut Vec<f64>) {
        let sum = log_sum(self.log_weights.iter().copied());
        log_weights.clear();
        log_weights.extend(self.log_weights.iter().map(|log| log - sum));
    }
}
