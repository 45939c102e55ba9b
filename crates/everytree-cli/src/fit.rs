//! `everytree fit`: learn a model from a table.

mod outcome;

use crate::Outcome;
use crate::blocks::BlockArguments;
use crate::data::use_threads;
use crate::families::{FamilyParser, defaults};
use crate::outputs::{self, is_same};
use crate::progress::{Progress, parse_duration};
use crate::tables::Sources;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use everytree::{
    Checkpoint, DeviceChoice, Effort, FitOptions, HowMany, Init, Optimiser, Pairs, Precision, Stopped,
};
use everytree_core::model::{AUTO, MAX_COMPONENTS, MAX_HIDDEN};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A number, or as many as pay.
fn how_many(text: &str, most: usize) -> Result<HowMany, String> {
    match text {
        "auto" => Ok(HowMany::UpTo(AUTO)),
        _ => match text.parse() {
            Ok(count) if (1..=most).contains(&count) => Ok(HowMany::Just(count)),
            _ => Err(format!("a number from 1 to {most}, or auto")),
        },
    }
}

fn parse_components(text: &str) -> Result<HowMany, String> {
    how_many(text, MAX_COMPONENTS)
}

fn parse_hidden(text: &str) -> Result<HowMany, String> {
    how_many(text, MAX_HIDDEN)
}

/// Choices of the library, as clap wants them.
macro_rules! choices {
    ($($(#[doc = $about:literal])* $choice:ident of $library:ident { $($name:ident),* })*) => {$(
        #[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
        enum $choice { $($name),* }

        impl From<$choice> for $library {
            fn from(choice: $choice) -> Self {
                match choice { $($choice::$name => Self::$name),* }
            }
        }
    )*};
}

choices! {
    OptimiserChoice of Optimiser { Adam, Em }
    PairChoice of Pairs { Lambda, Sinkhorn }
    PrecisionChoice of Precision { F32, F64 }
    InitChoice of Init { Counts, Random }
    EffortChoice of Effort { Quick, Normal, Thorough }
}

const EXAMPLES: &str = "Examples:\n\
\x20 everytree fit data.csv\n\
\x20 everytree fit data.csv --effort thorough\n\
\x20 everytree fit train.csv --valid valid.csv --test test.csv --out model.everytree\n\
\x20 everytree fit data.csv --checkpoint half.way --timeout 10m\n\
\x20 everytree fit data.csv --resume half.way\n\
\x20 everytree fit data.csv --family directed --components auto --blocks auto";

/// Learn a model from a table: the best of several families that was found, or an average, or the family you ask for.
///
/// Every column is taken as discrete; see `--max-states`, `--bins` and `--missing`. Candidates, sizes and epochs are judged by rows
/// that were not learned from. Log-likelihoods are means over rows, in nats, evaluated in f64.
#[derive(Args)]
#[command(
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", defaults())
)]
pub struct Fit {
    #[command(flatten)]
    sources: Sources,
    /// Learn once more, from the held-out rows too, for as many epochs as were best.
    /// So it is anyway where rows were held out, and never with --valid.
    #[arg(long, conflicts_with_all = ["valid", "no_refit"])]
    refit: bool,
    /// Do not learn once more from the held-out rows too.
    #[arg(long)]
    no_refit: bool,
    /// How much work `--family auto` may be: normal is about a minute on two cores for 20,000 rows of 100 columns, and a few
    /// seconds for small tables; quick is a sixth of it, thorough twenty times as much.
    #[arg(long, default_value = "normal", value_name = "quick|normal|thorough", hide_possible_values = true)]
    effort: EffortChoice,
    /// With `--family auto`: in how many folds all rows are held out, one after the other; 1: a fraction of them, once. Default: 5
    /// below 5,000 rows, else 1.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    folds: Option<u64>,
    /// With `--family auto`: let a kernel over stored rows take part, the last of all. The model then contains the training rows,
    /// and whoever has its file can read them; never without this flag.
    #[arg(long)]
    kernel: bool,
    /// Where the model goes. Default: the stem of TRAIN plus .everytree, in the current folder.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// Family of models. Options of learning, such as --components and --epochs, go with one.
    #[arg(long, default_value = "auto", value_name = "FAMILY", value_parser = FamilyParser { auto: true })]
    family: String,
    /// How many models are mixed; auto: 1, 2, 4 … as long as validation gets better. Default: as the family has it, below.
    #[arg(long, value_name = "K|auto", value_parser = parse_components)]
    components: Option<HowMany>,
    /// States of latent variables, in a family that has some; auto: 2, 4, 8 … as long as validation gets better.
    #[arg(long, value_name = "H|auto", value_parser = parse_hidden)]
    hidden: Option<HowMany>,
    #[command(flatten)]
    blocks: BlockArguments,
    /// Parameterisation of pair tables: the paper's intervals, or free matrices scaled to the margins. Default: intervals where no
    /// column has more than two values, so that they have every table, or where columns have thousands of values, which would take
    /// too long to scale; else matrices.
    #[arg(long, value_name = "lambda|sinkhorn", hide_possible_values = true)]
    pairs: Option<PairChoice>,
    /// Start from counts and mutual information, or at random.
    #[arg(long, default_value = "counts", value_name = "counts|random", hide_possible_values = true)]
    init: InitChoice,
    /// Pseudocount: rows spread evenly over all states that are added to the counts at the start. Families that are
    /// nothing but counts have --laplace for it.
    #[arg(long, alias = "smoothing", default_value_t = 1.0, value_name = "X")]
    pseudocount: f64,
    /// Laplace smoothing of every line of a free table, throughout.
    #[arg(long, alias = "prior", value_name = "X")]
    laplace: Option<f64>,
    /// How much components of a mixture are shrunk towards what they have in common.
    #[arg(long, value_name = "X")]
    shrinkage: Option<f64>,
    /// Gradients (`adam`), or expectation–maximisation (`em`); not every family has both.
    #[arg(long, value_name = "adam|em", hide_possible_values = true)]
    optimiser: Option<OptimiserChoice>,
    /// Epochs: times through the data.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Early stopping: epochs without a better validation.
    #[arg(long, value_name = "N")]
    patience: Option<usize>,
    /// Rows of a mini-batch. With 500 columns and more, families that learn by gradients take fewer.
    #[arg(long, alias = "batch", value_name = "N")]
    batch_size: Option<usize>,
    /// Learning rate of Adam. With 500 columns and more it is smaller.
    #[arg(long, alias = "lr", value_name = "X")]
    learning_rate: Option<f64>,
    /// Let the learning rate fall to zero along a cosine. Some families always do.
    #[arg(long)]
    cosine: bool,
    /// Validate and keep an exponential moving average of the parameters with this decay per step.
    #[arg(long, alias = "average", value_name = "X")]
    ema: Option<f64>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Precision of gradients; whatever is shown is evaluated in f64.
    #[arg(long, default_value = "f32", value_name = "f32|f64", hide_possible_values = true)]
    precision: PrecisionChoice,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Where the work is done: auto (a GPU where there is one, from 128 columns on), cpu, cuda or cuda:N. Trees
    /// without latent variables are learned on the CPU.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|cuda[:N]", hide_default_value = true)]
    device: DeviceChoice,
    /// Stop after this long (90s, 10m, 2h) and save the best model so far.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Save a checkpoint of learning here after every epoch.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint, to the very same result; its settings count. It is kept up to date, or --checkpoint is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["family", "components", "hidden", "blocks", "block_states", "group", "batch_size", "learning_rate", "cosine", "ema", "init", "pseudocount", "laplace", "shrinkage", "optimiser", "pairs", "precision", "seed", "kernel", "holdout", "max_states", "bins", "missing", "na"])]
    resume: Option<PathBuf>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
    /// No progress, no notices.
    #[arg(long)]
    quiet: bool,
}

impl Fit {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        let resumed = self.resume.as_deref().map(Checkpoint::load).transpose()?;
        let out = self.out.clone().unwrap_or_else(|| default_name(&self.sources.train));
        let kept_up_to_date = self.checkpoint.as_ref().filter(|path| {
            // A checkpoint that is gone on from is replaced by the next one.
            !self.resume.as_ref().is_some_and(|resume| is_same(resume, path))
        });
        self.sources
            .files()
            .input("the file of blocks", self.blocks.file())
            .input("the checkpoint", self.resume.as_ref())
            .output("--out", Some(&out))
            .output("--checkpoint", kept_up_to_date)
            .check()?;
        let tables = self.sources.read(self.quiet, resumed.as_ref())?;
        let mut fit = everytree::Fit::with(self.options()?);
        if let Some(valid) = tables.valid {
            fit = fit.valid(valid);
        }
        if let Some(test) = tables.test {
            fit = fit.test(test);
        }
        if let Some(path) = self.checkpoint.as_ref().or(self.resume.as_ref()) {
            fit = fit.checkpoint(path);
        }
        if let Some(checkpoint) = resumed {
            fit = fit.resume(checkpoint);
        }
        let mut progress = Progress::new(self.quiet, tables.train.schema(), &tables.notices)?;
        let fitted = fit.run_with(&tables.train, &mut progress);
        progress.finish();
        let fitted = fitted?;
        if progress.is_interrupted() && !self.quiet {
            note!("interrupted; saving the best model so far");
        }
        outputs::save(&fitted.model, &out)?;
        self.print(tables.train.schema(), &fitted, &out)?;
        if let Some(error) = fitted.failure {
            return Err(error).context(format!("the best model so far is in {}", out.display()));
        }
        match fitted.report.stopped {
            Stopped::Observer => Ok(Outcome::Interrupted),
            _ => Ok(Outcome::Done),
        }
    }

    /// What was said about the fit.
    fn options(&self) -> Result<FitOptions> {
        let mut options = FitOptions::default();
        options.family = self.family.clone();
        options.components = self.components;
        options.hidden = self.hidden;
        options.blocks = self.blocks.options()?;
        options.block_states = self.blocks.block_states.clone();
        options.pairs = self.pairs.map(Into::into);
        options.init = self.init.into();
        options.pseudocount = self.pseudocount;
        options.laplace = self.laplace;
        options.shrinkage = self.shrinkage;
        options.optimiser = self.optimiser.map(Into::into);
        options.epochs = self.epochs;
        options.patience = self.patience;
        options.batch_size = self.batch_size;
        options.learning_rate = self.learning_rate;
        options.cosine = self.cosine;
        options.ema = self.ema;
        options.seed = self.seed;
        options.precision = self.precision.into();
        options.holdout = self.sources.holdout;
        options.refit = match (self.refit, self.no_refit) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        options.effort = self.effort.into();
        options.kernel = self.kernel;
        options.folds = self.folds.map(|folds| folds as usize);
        options.timeout = self.timeout.map(|timeout| timeout.as_secs_f64());
        options.device = self.device;
        Ok(options)
    }
}

/// `data/nltcs.train.data.gz` → `nltcs.train.everytree`
fn default_name(train: &Path) -> PathBuf {
    let name = train.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    PathBuf::from(format!("{}.everytree", if stem.is_empty() { "model" } else { stem }))
}
