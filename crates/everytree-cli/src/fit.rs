//! `everytree fit`: learn a model from a table.

mod outcome;

use crate::Outcome;
use crate::data::use_threads;
use crate::progress::{Keep, Stop, Watcher, parse_duration};
use crate::tables::Sources;
use crate::together::TogetherArguments;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use everytree::{
    DeviceChoice, FamilyName, Fitted, HowToLearn, MOST_BY_ITSELF, Machine, Precision, Recipe, Tables,
    best_epoch, plural, refit, run,
};
use everytree_core::file::{Checkpoint, TableFacts};
use everytree_core::learn::{Ended, HowMany, LearnError, MAX_COMPONENTS, Optimiser, Search, Settings};
use everytree_core::model::{MAX_HIDDEN, Pairs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FamilyChoice {
    /// The mixture of all trees of the paper: spanning trees, shared margins.
    Moat,
    /// Rooted forests with free tables.
    Directed,
    /// Columns that have nothing to do with each other; several components: latent classes.
    Independent,
    /// One tree, of the highest mutual information.
    ChowLiu,
    /// Several of them (Meilă and Jordan).
    MixtureOfTrees,
    /// One tree of hidden variables, one for each column.
    Hclt,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OptimiserChoice {
    /// Gradients.
    Adam,
    /// Expectation–maximisation.
    Em,
}

impl FamilyChoice {
    fn name(self) -> FamilyName {
        match self {
            Self::Moat => FamilyName::Moat,
            Self::Directed => FamilyName::Directed,
            Self::Independent => FamilyName::Independent,
            Self::ChowLiu => FamilyName::ChowLiu,
            Self::MixtureOfTrees => FamilyName::MixtureOfTrees,
            Self::Hclt => FamilyName::Hclt,
        }
    }
}

/// A number, or as many as pay.
fn how_many(text: &str, most: usize) -> Result<HowMany, String> {
    match text {
        "auto" => Ok(HowMany::UpTo(MOST_BY_ITSELF)),
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairChoice {
    /// The paper's intervals.
    Lambda,
    /// Free matrices scaled to the margins.
    Sinkhorn,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PrecisionChoice {
    F32,
    F64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Initialisation {
    /// Counts and mutual information.
    Counts,
    /// Normal numbers, by seed.
    Random,
}

/// Learn a model from a table: a mixture of all trees, or one of its neighbours.
///
/// Every column is taken as discrete; see `--max-states`, `--bins` and `--missing`. The epoch that is best on the
/// validation rows is what is saved. Log-likelihoods are means over rows, in nats, evaluated in f64.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree fit data.csv\n  everytree fit train.csv --valid valid.csv --test test.csv --out model.everytree\n  everytree fit data.csv --checkpoint half.way --timeout 10m\n  everytree fit data.csv --resume half.way\n  everytree fit data.csv --family directed --components auto --blocks auto"
)]
pub struct Fit {
    #[command(flatten)]
    sources: Sources,
    /// Learn once more, from the held-out rows too, for as many epochs as were best.
    #[arg(long, conflicts_with_all = ["valid", "resume", "checkpoint"])]
    refit: bool,
    /// Where the model goes. Default: the stem of TRAIN plus .everytree, in the current folder.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// Family of models.
    #[arg(long, default_value = "moat", value_name = "FAMILY")]
    family: FamilyChoice,
    /// How many models are mixed; auto: 1, 2, 4 … as long as validation gets better. Default: 1; mixture-of-trees auto.
    #[arg(long, value_name = "K|auto", value_parser = parse_components)]
    components: Option<HowMany>,
    /// States of the hidden variables of hclt; auto: 2, 4, 8 … as long as validation gets better. Default: auto.
    #[arg(long, value_name = "H|auto", value_parser = parse_hidden)]
    hidden: Option<HowMany>,
    #[command(flatten)]
    together: TogetherArguments,
    /// Parameterisation of pair tables: the paper's intervals, or free matrices scaled to the margins.
    #[arg(long, default_value = "lambda", value_name = "lambda|sinkhorn", hide_possible_values = true)]
    pairs: PairChoice,
    /// Start from counts and mutual information, or at random.
    #[arg(long, default_value = "counts", value_name = "counts|random", hide_possible_values = true)]
    init: Initialisation,
    /// Rows of even chance added to the counts at the start; of independent, chow-liu and mixture-of-trees, --prior says it.
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    smoothing: f64,
    /// Rows of even chance that every line of a free table is smoothed with, throughout. Not for moat. Default: 0;
    /// independent, chow-liu and mixture-of-trees 1 a table.
    #[arg(long, value_name = "X")]
    prior: Option<f64>,
    /// How much components of a mixture are pulled towards what they have in common. Default: 0; directed 2;
    /// independent and mixture-of-trees 5 rows. Not for hclt.
    #[arg(long, value_name = "X")]
    shrinkage: Option<f64>,
    /// Gradients (`adam`; not for chow-liu and mixture-of-trees), or expectation–maximisation (`em`; not for moat). Default:
    /// `adam`; independent `em`.
    #[arg(long, value_name = "adam|em", hide_possible_values = true)]
    optimiser: Option<OptimiserChoice>,
    /// Times through the data. Default: 50; directed and hclt 30; other trees 100.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Stop after N epochs without a better validation. Default: never; directed and hclt 6; other trees 5.
    #[arg(long, value_name = "N")]
    patience: Option<usize>,
    /// Rows of a mini-batch. Default: 1024 (directed 256), from 500 columns on 64; hclt
    /// 256; other trees all.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Step length of Adam. Default: 0.05; from 500 columns on moat 0.01, directed 0.02.
    #[arg(long, value_name = "X")]
    lr: Option<f64>,
    /// Let the step length fall to zero along a cosine. Always so with directed and hclt.
    #[arg(long)]
    cosine: bool,
    /// Keep an exponential average of the parameters with this decay per step.
    #[arg(long, value_name = "X")]
    average: Option<f64>,
    /// Seed of everything that is left to chance.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Precision of the arithmetic of learning.
    #[arg(long, default_value = "f32", value_name = "f32|f64", hide_possible_values = true)]
    precision: PrecisionChoice,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Where the work is done: auto (a GPU where there is one, from 128 columns on), cpu, cuda or cuda:N. Trees are learned on
    /// the processor.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|cuda[:N]", hide_default_value = true)]
    device: DeviceChoice,
    /// Stop after this long (90s, 10m, 2h) and save the best model so far.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Save the state of learning here after every epoch.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint, to the very same result; its settings count. It is kept up to date, or --checkpoint is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["family", "components", "hidden", "blocks", "block_states", "group", "batch", "lr", "cosine", "average", "init", "smoothing", "prior", "shrinkage", "optimiser", "pairs", "precision", "seed", "holdout", "max_states", "bins", "missing", "na"])]
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
        let tables = self.sources.read(self.seed, self.quiet, resumed.as_ref())?;
        let out = self.out.clone().unwrap_or_else(|| default_name(&self.sources.train));
        check_place("--out", &out, &self.sources)?;
        let note = |text: String| {
            if !self.quiet {
                note!("{text}");
            }
        };
        let seed = resumed.as_ref().map_or(self.seed, |checkpoint| checkpoint.settings.seed);
        tables.introduce(seed, &note);
        let machine = Machine::find(self.device, tables.states.len(), &note)?;
        let begin = Instant::now();
        let facts = tables.facts();
        let holdout =
            tables.held_out.then(|| resumed.as_ref().and_then(|c| c.holdout).unwrap_or(self.sources.holdout));
        let (mut search, settings, precision) = self.start(&tables, resumed, &facts, &note)?;
        let keep = self.checkpoint.as_ref().or(self.resume.as_ref()).map(|path| Keep {
            path: path.clone(),
            settings: settings.clone(),
            precision: precision.name().to_owned(),
            schema: tables.schema.clone(),
            train: facts[0].clone(),
            valid: facts[1].clone(),
            holdout,
        });
        let mut watcher = Watcher::new(self.quiet, self.timeout, keep)?;
        let how = HowToLearn { settings: &settings, precision, machine: &machine, note: &note };
        let ended = run(&mut search, tables.rows(), how, &mut watcher);
        watcher.finish();
        let Some(found) = search.found()? else {
            return match ended {
                Err(LearnError::Blocks(error)) => {
                    let name = &tables.schema.variables[error.column()].name;
                    Err(error).with_context(|| format!("the block of column {name:?}"))
                }
                Err(error) => Err(error.into()),
                Ok(_) => bail!("stopped before there was a model to save"),
            };
        };
        match (&ended, &watcher.stop) {
            (Ok(Ended::Patience), _) if search.tried.len() == 1 => {
                note(format!("no better validation for {}", plural(settings.patience.unwrap_or(0), "epoch")))
            }
            (_, Some(Stop::TimeOut)) => {
                note(format!("the time is up after {}", plural(found.history.len() - 1, "epoch")))
            }
            (_, Some(Stop::Interrupted)) => note("interrupted; saving the best model so far".to_owned()),
            _ => {}
        }
        let mut fitted = Fitted { model: found.model.clone(), settings, facts, all: None };
        let mut not_again = None;
        if self.refit && matches!(ended, Ok(Ended::Done | Ended::Patience)) {
            note(format!("learning again from all rows, {}", plural(best_epoch(&found), "epoch")));
            watcher.keep_nothing();
            let how = HowToLearn { settings: &fitted.settings, precision, machine: &machine, note: &note };
            let again = refit(&tables, how, &search.plan, &found, &mut watcher);
            watcher.finish();
            match again {
                Ok(Some(again)) => fitted = again,
                Ok(None) => note("stopped: the model without the rows held out is what is saved".to_owned()),
                // What was learned before is not lost for that.
                Err(error) => not_again = Some(error),
            }
        } else if self.refit {
            note("not learned again from all rows: there was no time for it".to_owned());
        }
        let warn = |text: String| note!("everytree: warning: {text}");
        let report = fitted.results(&tables, &found, precision, &machine, &warn)?;
        fitted.file(&tables, &search.tried, &report, precision, &machine, &warn)?.save(&out)?;
        self.print(&tables, &search, &found, &fitted, &report, (begin, &machine), &out)?;
        if let Some(error) = watcher.failed {
            return Err(error)
                .context(format!("saving the checkpoint; the best model so far is in {}", out.display()));
        }
        if let Some(error) = not_again {
            let saved = format!("the model without the rows held out is in {}", out.display());
            return Err(error.context("learning again from all rows").context(saved));
        }
        match ended {
            Err(error) => Err(error).context(format!("the best model so far is in {}", out.display())),
            Ok(_) if watcher.stop == Some(Stop::Interrupted) => Ok(Outcome::Interrupted),
            Ok(_) => Ok(Outcome::Done),
        }
    }

    /// A search to begin with, or the one that was put aside.
    fn start(
        &self,
        tables: &Tables,
        resumed: Option<Checkpoint>,
        facts: &[TableFacts; 2],
        note: &impl Fn(String),
    ) -> Result<(Search, Settings, Precision)> {
        if let Some(checkpoint) = resumed {
            for (what, found, expected) in [
                ("learn from", &facts[0], &checkpoint.train),
                ("validate with", &facts[1], &checkpoint.valid),
            ] {
                if found != expected {
                    bail!(
                        "{}: the checkpoint was made with other rows to {what} ({} rows, fingerprint {}; now {} rows, {})",
                        self.resume.as_deref().unwrap_or(Path::new("")).display(),
                        expected.rows,
                        expected.fingerprint,
                        found.rows,
                        found.fingerprint
                    );
                }
            }
            let mut settings = checkpoint.settings;
            let steps_are_planned = settings.cosine && settings.optimiser == Optimiser::Adam;
            if steps_are_planned && self.epochs.is_some_and(|epochs| epochs != settings.epochs) {
                bail!(
                    "--epochs: the length of steps was planned for {}; leave it out",
                    plural(settings.epochs, "epoch")
                );
            }
            settings.epochs = self.epochs.unwrap_or(settings.epochs);
            settings.patience = self.patience.or(settings.patience);
            let precision = if checkpoint.precision == "f64" { Precision::F64 } else { Precision::F32 };
            return Ok((checkpoint.search, settings, precision));
        }
        let recipe = self.recipe();
        let settings = recipe.settings(tables)?;
        let together = self.together.of(&tables.schema)?;
        let groupings = together.groupings(&tables.schema, &tables.train, &tables.holes[0], note)?;
        Ok((recipe.search(groupings, &settings)?, settings, recipe.precision))
    }

    /// What was said about the fit.
    fn recipe(&self) -> Recipe {
        Recipe {
            family: self.family.name(),
            components: self.components,
            hidden: self.hidden,
            pairs: match self.pairs {
                PairChoice::Lambda => Pairs::Lambda,
                PairChoice::Sinkhorn => Pairs::Sinkhorn,
            },
            random: self.init == Initialisation::Random,
            smoothing: self.smoothing,
            prior: self.prior,
            shrinkage: self.shrinkage,
            optimiser: self.optimiser.map(|optimiser| match optimiser {
                OptimiserChoice::Adam => Optimiser::Adam,
                OptimiserChoice::Em => Optimiser::Em,
            }),
            epochs: self.epochs,
            patience: self.patience,
            batch: self.batch,
            lr: self.lr,
            cosine: self.cosine,
            average: self.average,
            seed: self.seed,
            precision: match self.precision {
                PrecisionChoice::F32 => Precision::F32,
                PrecisionChoice::F64 => Precision::F64,
            },
        }
    }
}

/// Can a file be put here? Better to know before hours of learning than after.
pub fn check_place(option: &str, out: &Path, sources: &Sources) -> Result<()> {
    let place = |path: &Path| std::fs::canonicalize(path).ok();
    let inputs = [Some(&sources.train), sources.valid.as_ref(), sources.test.as_ref()];
    if let Some(input) =
        inputs.into_iter().flatten().find(|input| place(input).is_some() && place(input) == place(out))
    {
        bail!("{option} {}: this is the table {}; it would be lost", out.display(), input.display());
    }
    if out.is_dir() {
        bail!("{option} {}: this is a folder, not a file", out.display());
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!("{option} {}: there is no folder {}", out.display(), folder.display());
    }
    Ok(())
}

/// `data/nltcs.train.data.gz` → `nltcs.train.everytree`
fn default_name(train: &Path) -> PathBuf {
    let name = train.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    PathBuf::from(format!("{}.everytree", if stem.is_empty() { "model" } else { stem }))
}
