//! How to learn.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What can be set about learning. Every family has its usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Times through the data.
    pub epochs: usize,
    /// Rows of a mini-batch.
    #[serde(alias = "batch")]
    pub batch_size: usize,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Seed of the order of rows.
    pub seed: u64,
    /// Stop after so many epochs without a better validation.
    pub patience: Option<usize>,
    /// Let the learning rate fall to zero along a cosine.
    pub cosine: bool,
    /// Validate and keep an exponential moving average of the parameters with this decay per step.
    #[serde(alias = "averaging")]
    pub ema: Option<f64>,
    /// How a step is made.
    #[serde(default)]
    pub optimiser: Optimiser,
    /// How parameters are kept from following the data too closely.
    #[serde(default)]
    pub regularisation: Regularisation,
}

/// How a step is made from what the rows of a mini-batch say.
///
/// ```
/// use everytree_core::model::Optimiser;
///
/// assert_eq!(Optimiser::default(), Optimiser::Adam);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Optimiser {
    /// Along the gradient, with Adam.
    #[default]
    Adam,
    /// Expectation–maximisation: expected counts are averaged over mini-batches, the newest weighing most, and tables are
    /// what the counts say.
    Em,
}

/// Rows of a batch that is all there are.
pub const ALL_ROWS: usize = u32::MAX as usize;
/// Adam makes so many steps before early stopping may end it, and so many at least if nothing does.
const PATIENT_STEPS: usize = 400;
const LEAST_STEPS: usize = 3000;
/// From this many variables on, the paper took small batches and short steps.
pub(crate) const MANY_VARIABLES: usize = 500;

impl Settings {
    /// The paper's: 50 epochs; batches of 1,024 rows and steps of 0.05 below 500 variables, of 64 rows and 0.01 from there on.
    pub fn paper(variables: usize) -> Self {
        let (batch_size, learning_rate) = if variables < MANY_VARIABLES { (1024, 0.05) } else { (64, 0.01) };
        Self {
            epochs: 50,
            batch_size,
            learning_rate,
            seed: 0,
            patience: None,
            cosine: false,
            ema: None,
            optimiser: Optimiser::Adam,
            regularisation: Regularisation::default(),
        }
    }

    /// The same for a table of so many rows. What takes Adam to a good model are steps, and few rows make few steps an epoch: where
    /// early stopping ends learning, there are more epochs then, and more patience.
    ///
    /// ```
    /// use everytree_core::model::Family;
    ///
    /// let usual = Family::Directed.settings(10);
    /// assert_eq!(usual.clone().lasting(100_000), usual);
    /// assert_eq!(usual.lasting(1000).patience, Some(100));
    /// ```
    #[must_use]
    pub fn lasting(self, rows: usize) -> Self {
        let Some(patience) = self.patience.filter(|_| self.optimiser == Optimiser::Adam) else { return self };
        let steps = rows.div_ceil(self.batch_size.max(1)).max(1);
        Self {
            epochs: self.epochs.max(LEAST_STEPS.div_ceil(steps)),
            patience: Some(patience.max(PATIENT_STEPS.div_ceil(steps))),
            ..self
        }
    }

    /// Can one learn like this?
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.batch_size == 0 {
            return Err(SettingsError::NoBatch);
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(SettingsError::LearningRate(self.learning_rate));
        }
        if self.patience == Some(0) {
            return Err(SettingsError::NoPatience);
        }
        for (what, value) in
            [("shrinkage", self.regularisation.shrinkage), ("Laplace smoothing", self.regularisation.laplace)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(SettingsError::Regularisation { what, value });
            }
        }
        match self.ema {
            Some(decay) if !(0.0..1.0).contains(&decay) => Err(SettingsError::Ema(decay)),
            _ => Ok(()),
        }
    }

    /// The learning rate of step `step` of `steps`.
    pub(crate) fn rate(&self, step: usize, steps: usize) -> f64 {
        if !self.cosine {
            return self.learning_rate;
        }
        let done = step as f64 / steps.max(1) as f64;
        0.5 * self.learning_rate * (1.0 + (std::f64::consts::PI * done).cos())
    }
}

/// What is wrong with settings.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Batches without rows.
    #[error("a batch needs at least one row")]
    NoBatch,
    /// No patience at all.
    #[error("a patience of 0 epochs would end before it begins; at least 1")]
    NoPatience,
    /// A learning rate that leads nowhere.
    #[error("the learning rate is {0}; it must be positive and finite")]
    LearningRate(f64),
    /// A strength that is none.
    #[error("the {what} is {value}; it must be finite and not negative")]
    Regularisation {
        /// Which.
        what: &'static str,
        /// The offending value.
        value: f64,
    },
    /// A decay that is none.
    #[error("the decay of the moving average is {0}; it must be at least 0 and less than 1")]
    Ema(f64),
}

/// How many components a mixture has, or states a hidden variable.
///
/// ```
/// use everytree_core::model::HowMany;
///
/// assert_eq!(HowMany::UpTo(64).most(), 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HowMany {
    /// So many.
    Just(usize),
    /// Twice as many as before as long as validation gets better by [`LEAST_GAIN`], up to so many.
    UpTo(usize),
}

impl HowMany {
    /// The most there can be.
    pub fn most(self) -> usize {
        match self {
            Self::Just(count) | Self::UpTo(count) => count,
        }
    }

    /// What is tried first.
    pub(crate) fn first(self, least: usize) -> usize {
        match self {
            Self::Just(count) => count,
            Self::UpTo(most) => least.min(most),
        }
    }

    /// What is tried after so many, if anything.
    pub(crate) fn after(self, last: usize) -> Option<usize> {
        match self {
            Self::UpTo(most) if last < most => Some((2 * last).min(most)),
            _ => None,
        }
    }
}

/// Most components of a mixture.
pub const MAX_COMPONENTS: usize = 1024;

/// What twice as many must gain before there are more, in nats a row.
pub const LEAST_GAIN: f64 = 1e-3;

/// More components, or states of latent variables, than this are tried only if they are asked for.
pub const AUTO: usize = 64;

/// How parameters are kept from following the data too closely. Zero: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regularisation {
    /// Of the components of a mixture, towards their mean: as many times half the square of the distance counts as
    /// nats of the whole data.
    pub shrinkage: f64,
    /// Laplace smoothing: rows spread evenly over the states of every line of every free table.
    #[serde(alias = "smoothing")]
    pub laplace: f64,
}
