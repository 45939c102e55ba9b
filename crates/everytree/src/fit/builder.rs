//! The options of a fit, one by one.

use super::{BlockOptions, Effort, Fit, Init, Precision};
use crate::Dataset;
use everytree_core::file::Checkpoint;
use everytree_core::model::{AUTO, HowMany, Optimiser, Pairs};
use std::path::PathBuf;
use std::time::Duration;

/// What is said of a [`Fit`], option by option.
macro_rules! options {
    ($($(#[doc = $about:literal])* $name:ident($($argument:ident: $kind:ty)?) $(=> $value:expr)?;)*) => {
        impl Fit {$(
            $(#[doc = $about])*
            pub fn $name(mut self, $($argument: $kind)?) -> Self {
                self.options.$name = options!(@value $name $($argument)? $(=> $value)?);
                self
            }
        )*}
    };
    (@value $name:ident $argument:ident => $value:expr) => { $value };
    (@value $name:ident => $value:expr) => { $value };
    (@value $name:ident $argument:ident) => { $argument };
}

options! {
    /// How many components are mixed.
    components(components: usize) => Some(HowMany::Just(components));
    /// How many states latent variables have.
    hidden(states: usize) => Some(HowMany::Just(states));
    /// Which columns are modelled jointly.
    blocks(blocks: BlockOptions);
    /// Limits on the combinations of a block, tried one by one, where blocks are looked for.
    block_states(limits: Vec<usize>);
    /// Parameterisation of pair tables, in families with a choice.
    pairs(pairs: Pairs) => Some(pairs);
    /// What parameters are at the start.
    init(init: Init);
    /// Rows spread evenly over all states that are added to the counts at the start.
    pseudocount(rows: f64);
    /// Times through the data.
    epochs(epochs: usize) => Some(epochs);
    /// Early stopping: epochs without a better validation.
    patience(epochs: usize) => Some(epochs);
    /// Rows of a mini-batch.
    batch_size(rows: usize) => Some(rows);
    /// Learning rate of Adam.
    learning_rate(rate: f64) => Some(rate);
    /// Lets the learning rate fall to zero along a cosine.
    cosine(cosine: bool);
    /// Decay of an exponential moving average of the parameters.
    ema(decay: f64) => Some(decay);
    /// Laplace smoothing of free tables.
    laplace(pseudocount: f64) => Some(pseudocount);
    /// How much components are shrunk towards what they have in common.
    shrinkage(strength: f64) => Some(strength);
    /// How parameters are updated.
    optimiser(optimiser: Optimiser) => Some(optimiser);
    /// Seed of everything random: the same seed, the same model, on any number of threads.
    seed(seed: u64);
    /// Precision of gradients.
    precision(precision: Precision);
    /// Fraction of the rows held out for validation.
    holdout(fraction: f64);
    /// In how many folds all rows are held out, where the family is chosen; 1: a fraction of them, once.
    folds(folds: usize) => Some(folds);
    /// How much work the choice of a family may be.
    effort(effort: Effort);
    /// Lets the choice of a family take a kernel over stored rows, too. Such a model contains the training rows, as does its file.
    kernel(kernel: bool);
    /// Learn once more, from the validation rows too, for as many epochs as were best.
    refit(refit: bool) => Some(refit);
    /// Where the work is done.
    device(device: crate::DeviceChoice);
}

impl Fit {
    /// Family of models, by name: `moat`, `directed`, `chow-liu` … ([`families`](crate::families) lists them).
    pub fn family(mut self, name: impl Into<String>) -> Self {
        self.options.family = name.into();
        self
    }

    /// As many components as validation prefers.
    pub fn components_auto(mut self) -> Self {
        self.options.components = Some(HowMany::UpTo(AUTO));
        self
    }

    /// As many states of latent variables as validation prefers.
    pub fn hidden_auto(mut self) -> Self {
        self.options.hidden = Some(HowMany::UpTo(AUTO));
        self
    }

    /// Keeps the best model so far after this long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout.as_secs_f64());
        self
    }

    /// Validates with these rows instead of rows that are held out. Their labels must be known to the rows to learn from.
    pub fn valid(mut self, valid: Dataset) -> Self {
        self.valid = Some(valid);
        self
    }

    /// Reports how likely these rows are at the end. Their labels must be known to the rows to learn from.
    pub fn test(mut self, test: Dataset) -> Self {
        self.test = Some(test);
        self
    }

    /// Saves the state of learning to this file after every epoch.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(path.into());
        self
    }

    /// Goes on from a checkpoint, to the very same result. Its settings count; epochs and patience may be given anew.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.resume = Some(Box::new(checkpoint));
        self
    }

    /// Leaves out what the training rows say about edges: less to compute, for whoever does not look at them.
    pub fn without_edges(mut self) -> Self {
        self.without_edges = true;
        self
    }
}
