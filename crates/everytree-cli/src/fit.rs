//! `everytree fit`: learn a model from a table.

use crate::Outcome;
use crate::data::{StateArguments, TextArguments, count, facts, plural, say, say_ignored, use_threads};
use crate::progress::{Keep, Stop, Watcher, duration, parse_duration};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use everytree::file::{Checkpoint, ModelFile, Provenance, Results, TableFacts};
use everytree::forest::Cpu;
use everytree::learn::{Data, Ended, LearnError, Settings, State, edge_posteriors, evaluate, split};
use everytree::model::{Learnable, Moat, PairCounts, Pairs};
use everytree::scan::Notice;
use everytree::schema::Schema;
use everytree::table::{Table, Unique};
use everytree_read::{CellRules, Problem, ReadError, read_table, scan_files};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Family {
    /// The mixture of all trees of the paper.
    Moat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairChoice {
    /// The paper's intervals.
    Lambda,
    /// Free matrices scaled to the margins.
    Sinkhorn,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Precision {
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

/// Learn a mixture of all trees from a table.
///
/// Every column is taken as discrete; see `--max-states`, `--bins` and `--missing`. The epoch that is best on the
/// validation rows is what is saved. Log-likelihoods are means over rows, in nats, evaluated in f64.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree fit data.csv\n  everytree fit train.csv --valid valid.csv --test test.csv --out model.everytree\n  everytree fit data.csv --checkpoint half.way --timeout 10m\n  everytree fit data.csv --resume half.way"
)]
pub struct Fit {
    /// Table to learn from: CSV, TSV, .data (0/1 without header), each plain or gzip; Parquet; Arrow IPC.
    train: PathBuf,
    /// Table to validate with. Default: rows held out from TRAIN.
    #[arg(long, value_name = "FILE")]
    valid: Option<PathBuf>,
    /// Table to test with, at the end and for the report only.
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// Fraction of TRAIN held out for validation, where there is no --valid.
    #[arg(long, default_value_t = 0.1, value_name = "X")]
    holdout: f64,
    /// Learn once more, from the held-out rows too, for as many epochs as were best.
    #[arg(long, conflicts_with_all = ["valid", "resume", "checkpoint"])]
    refit: bool,
    /// Where the model goes. Default: the stem of TRAIN plus .everytree, in the current folder.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// Family of models.
    #[arg(long, default_value = "moat", value_name = "FAMILY")]
    family: Family,
    /// Parameterisation of pair tables: the paper's intervals, or free matrices scaled to the margins.
    #[arg(long, default_value = "lambda", value_name = "lambda|sinkhorn", hide_possible_values = true)]
    pairs: PairChoice,
    /// Start from counts and mutual information, or at random.
    #[arg(long, default_value = "counts", value_name = "counts|random", hide_possible_values = true)]
    init: Initialisation,
    /// Rows of even chance added to the counts at the start.
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    smoothing: f64,
    /// Times through the data. Default: 50.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Stop after N epochs without a better validation.
    #[arg(long, value_name = "N")]
    patience: Option<usize>,
    /// Rows of a mini-batch. Default: 1024, from 500 columns on 64.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Step length of Adam. Default: 0.05, from 500 columns on 0.01.
    #[arg(long, value_name = "X")]
    lr: Option<f64>,
    /// Let the step length fall to zero along a cosine.
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
    precision: Precision,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Stop after this long (90s, 10m, 2h) and save the best model so far.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Save the state of learning here after every epoch.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint, to the very same result; its settings count.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "lr", "cosine", "average", "init", "smoothing", "pairs", "precision", "seed"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    text: TextArguments,
    #[command(flatten)]
    states: StateArguments,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
    /// No progress, no notices.
    #[arg(long)]
    quiet: bool,
}

/// The tables of a fit.
struct Tables {
    schema: Schema,
    notices: Vec<Notice>,
    train: Table,
    valid: Table,
    test: Option<Table>,
    held_out: bool,
}

impl Fit {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        let Family::Moat = self.family;
        let resumed = self.resume.as_deref().map(Checkpoint::load).transpose()?;
        let tables = self.read(resumed.as_ref())?;
        let out = self.out.clone().unwrap_or_else(|| default_name(&self.train));
        let note = |text: String| {
            if !self.quiet {
                eprintln!("{text}");
            }
        };
        self.introduce(&tables, &note);
        let begin = Instant::now();
        let (train, valid) = (tables.train.unique(), tables.valid.unique());
        let facts = [facts(&train, tables.train.fingerprint()), facts(&valid, tables.valid.fingerprint())];
        let (mut state, settings, precision) = self.start(&tables.schema, &train, resumed, &facts)?;
        let name = if precision == Precision::F32 { "f32" } else { "f64" };
        let keep = self.checkpoint.as_ref().or(self.resume.as_ref()).map(|path| Keep {
            path: path.clone(),
            settings: settings.clone(),
            precision: name.to_owned(),
            schema: tables.schema.clone(),
            train: facts[0].clone(),
            valid: facts[1].clone(),
        });
        let mut watcher = Watcher::new(self.quiet, self.timeout, keep)?;
        let data = Data { train: &train, valid: &valid };
        let ended = run(&mut state, data, &settings, precision, &mut watcher);
        watcher.finish();
        if let Some(error) = watcher.failed {
            return Err(error).context("saving the checkpoint");
        }
        if let Err(error) = &ended
            && state.history.is_empty()
        {
            return Err(error.clone().into());
        }
        if self.refit && matches!(ended, Ok(Ended::Done | Ended::Patience)) {
            note(format!("learning again from all rows, {}", plural(best_epoch(&state), "epoch")));
            return self.refit(&tables, &settings, precision, &state, begin, &out);
        }
        let report = self.report(&tables, &state, data, &settings, name, &facts)?;
        let file = self.finish(&tables, &state.best, &train, &report, &settings, name, &facts)?;
        file.save(&out)?;
        self.print(&tables, &state, &report, begin, &out, [&train, &valid])?;
        match ended {
            Err(error) => Err(error).context(format!("the best model so far is in {}", out.display())),
            Ok(Ended::Stopped) if watcher.stop == Some(Stop::Interrupted) => Ok(Outcome::Interrupted),
            Ok(_) => Ok(Outcome::Done),
        }
    }

    fn read(&self, resumed: Option<&Checkpoint>) -> Result<Tables> {
        let read = self.text.settings();
        let others: Vec<&Path> = self.valid.as_deref().into_iter().collect();
        let (schema, notices) = match resumed {
            Some(checkpoint) => (checkpoint.schema.clone(), Vec::new()),
            None => {
                let scanned = scan_files(&self.train, &others, &read, &self.states.settings()?)?;
                (scanned.schema, scanned.notices)
            }
        };
        let rules = CellRules { missing_is_a_state: true, unknown_is_unobserved: false };
        let table = |path: &Path| -> Result<Table> {
            let (table, facts) = read_table(path, &schema, &read, rules)?;
            if !self.quiet {
                say_ignored(path, &facts);
            }
            Ok(table)
        };
        let all = table(&self.train)?;
        let (train, valid, held_out) = match &self.valid {
            Some(path) => (all, table(path)?, false),
            None => {
                if all.rows() < 2 {
                    return Err(ReadError { file: self.train.clone(), problem: Problem::OneRow }.into());
                }
                if !(self.holdout > 0.0 && self.holdout < 1.0) {
                    bail!("--holdout {}: between 0 and 1", self.holdout);
                }
                let seed = resumed.map_or(self.seed, |checkpoint| checkpoint.settings.seed);
                let split = split(all.rows(), self.holdout, seed);
                (all.select(split.train), all.select(split.valid), true)
            }
        };
        let test = self.test.as_deref().map(table).transpose()?;
        Ok(Tables { schema, notices, train, valid, test, held_out })
    }

    fn introduce(&self, tables: &Tables, note: &impl Fn(String)) {
        let states: usize = tables.schema.states().iter().sum();
        let test =
            tables.test.as_ref().map_or(String::new(), |test| format!(", {} to test", count(test.rows())));
        note(format!(
            "{} with {}; {} to learn from, {} to validate{}{test}",
            plural(tables.schema.variables.len(), "column"),
            plural(states, "state"),
            plural(tables.train.rows(), "row"),
            count(tables.valid.rows()),
            if tables.held_out { format!(" (held out by seed {})", self.seed) } else { String::new() },
        ));
        const MOST: usize = 8;
        tables.notices.iter().take(MOST).for_each(|notice| note(format!("note: {}", say(notice))));
        if tables.notices.len() > MOST {
            note(format!("note: and {} more columns like these", tables.notices.len() - MOST));
        }
    }

    /// A model to begin with, or the one that was put aside.
    fn start(
        &self,
        schema: &Schema,
        train: &Unique,
        resumed: Option<Checkpoint>,
        facts: &[TableFacts; 2],
    ) -> Result<(State<Moat>, Settings, Precision)> {
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
            settings.epochs = self.epochs.unwrap_or(settings.epochs);
            settings.patience = self.patience.or(settings.patience);
            let precision = if checkpoint.precision == "f64" { Precision::F64 } else { Precision::F32 };
            return Ok((checkpoint.state, settings, precision));
        }
        let states = schema.states();
        let paper = Settings::paper(states.len());
        let settings = Settings {
            epochs: self.epochs.unwrap_or(paper.epochs),
            batch: self.batch.unwrap_or(paper.batch),
            learning_rate: self.lr.unwrap_or(paper.learning_rate),
            seed: self.seed,
            patience: self.patience,
            cosine: self.cosine,
            averaging: self.average,
        };
        settings.check()?;
        if !(self.smoothing > 0.0 && self.smoothing.is_finite()) {
            bail!("--smoothing {}: must be positive", self.smoothing);
        }
        let model = self.initial(&states, train)?;
        Ok((State::new(model), settings, self.precision))
    }

    fn initial(&self, states: &[usize], train: &Unique) -> Result<Moat> {
        let pairs = match self.pairs {
            PairChoice::Lambda => Pairs::Lambda,
            PairChoice::Sinkhorn => Pairs::Sinkhorn,
        };
        Ok(match self.init {
            Initialisation::Counts => {
                let counts = PairCounts::new(states, &train.table, &train.weights);
                Moat::from_counts(&counts, pairs, self.smoothing)?
            }
            Initialisation::Random => Moat::random(states.to_vec(), pairs, self.seed)?,
        })
    }

    /// Evaluates the best model in f64, and says where f32 would have said something else.
    fn report(
        &self,
        tables: &Tables,
        state: &State<Moat>,
        data: Data<'_>,
        settings: &Settings,
        precision: &str,
        facts: &[TableFacts; 2],
    ) -> Result<Results> {
        let _ = (settings, facts);
        let judge = Cpu::<f64>::new().keeping(0);
        let train_ll = evaluate(&state.best, data.train, &judge)?.mean;
        let valid_ll = evaluate(&state.best, data.valid, &judge)?.mean;
        let test_ll = tables
            .test
            .as_ref()
            .map(|test| evaluate(&state.best, &test.unique(), &judge))
            .transpose()?
            .map(|e| e.mean);
        if precision == "f32" {
            let single = evaluate(&state.best, data.valid, &Cpu::<f32>::new().keeping(0))?.mean;
            if (single - valid_ll).abs() > 1e-3 {
                eprintln!(
                    "everytree: warning: in f32 the validation log-likelihood is {single:.6}, in f64 {valid_ll:.6}; \
                     learn with --precision f64"
                );
            }
        }
        Ok(Results {
            best_epoch: best_epoch(state),
            train_ll,
            valid_ll,
            test_ll,
            history: state.history.clone(),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a file tells")]
    fn finish(
        &self,
        tables: &Tables,
        model: &Moat,
        train: &Unique,
        results: &Results,
        settings: &Settings,
        precision: &str,
        facts: &[TableFacts; 2],
    ) -> Result<ModelFile> {
        let posteriors = edge_posteriors(model, train, &Cpu::<f64>::new())?;
        Ok(ModelFile {
            model: model.clone(),
            schema: tables.schema.clone(),
            provenance: Provenance {
                settings: Some(settings.clone()),
                precision: Some(precision.to_owned()),
                train: Some(facts[0].clone()),
                valid: Some(facts[1].clone()),
                results: Some(results.clone()),
            },
            edge_posteriors: Some(posteriors),
        })
    }

    /// Learns from all rows for as many epochs as were best on the rows held out.
    fn refit(
        &self,
        tables: &Tables,
        settings: &Settings,
        precision: Precision,
        found: &State<Moat>,
        begin: Instant,
        out: &Path,
    ) -> Result<Outcome> {
        let mut all = tables.train.clone();
        let mut row = vec![0u16; all.variables()];
        for place in 0..tables.valid.rows() {
            (0..row.len()).for_each(|v| row[v] = tables.valid.get(place, v) as u16);
            all.push(&row);
        }
        let (train, valid) = (all.unique(), tables.valid.unique());
        let settings = Settings { epochs: best_epoch(found), patience: None, ..settings.clone() };
        let mut state = State::new(self.initial(&tables.schema.states(), &train)?);
        let mut quiet = ();
        let data = Data { train: &train, valid: &valid };
        match precision {
            Precision::F32 => {
                state.run(data, &settings, &Cpu::<f32>::new(), &Cpu::<f64>::new().keeping(0), &mut quiet)?
            }
            Precision::F64 => {
                state.run(data, &settings, &Cpu::<f64>::new(), &Cpu::<f64>::new().keeping(0), &mut quiet)?
            }
        };
        // The last epoch, not the best: these rows cannot validate what has learned from them.
        state.best = state.model.clone();
        let name = if precision == Precision::F32 { "f32" } else { "f64" };
        let facts = [facts(&train, all.fingerprint()), facts(&valid, tables.valid.fingerprint())];
        let mut report = self.report(tables, &state, data, &settings, name, &facts)?;
        report.best_epoch = best_epoch(found);
        report.history = found.history.clone();
        report.valid_ll = found.best_epoch().map_or(f64::NAN, |epoch| epoch.valid);
        let file = self.finish(tables, &state.best, &train, &report, &settings, name, &facts)?;
        file.save(out)?;
        self.print(tables, found, &report, begin, out, [&train, &valid])?;
        Ok(Outcome::Done)
    }

    fn print(
        &self,
        tables: &Tables,
        state: &State<Moat>,
        report: &Results,
        begin: Instant,
        out: &Path,
        [train, valid]: [&Unique; 2],
    ) -> Result<()> {
        let seconds = begin.elapsed().as_secs_f64();
        let parameters = state.best.parameters().len();
        let mut stdout = std::io::stdout().lock();
        use std::io::Write;
        if self.json {
            let mut object = json!({
                "family": "moat",
                "components": 1,
                "rows": train.rows(),
                "unique_rows": train.table.rows(),
                "valid_rows": valid.rows(),
                "epochs": state.epochs(),
                "best_epoch": report.best_epoch,
                "train_ll": report.train_ll,
                "valid_ll": report.valid_ll,
                "seconds": seconds,
                "parameters": parameters,
                "model": out.display().to_string(),
                "seed": self.seed,
                "device": "cpu",
            });
            if let Some(test_ll) = report.test_ll {
                object["test_ll"] = json!(test_ll);
            }
            writeln!(stdout, "{object}")?;
            return Ok(());
        }
        writeln!(
            stdout,
            "log-likelihood per row, nats (best epoch {} of {}):",
            report.best_epoch,
            state.epochs()
        )?;
        writeln!(
            stdout,
            "  train {:>12.4}   {} rows, {} distinct",
            report.train_ll,
            count(train.rows()),
            count(train.table.rows())
        )?;
        let held = if tables.held_out { ", held out" } else { "" };
        writeln!(stdout, "  valid {:>12.4}   {} rows{held}", report.valid_ll, count(valid.rows()))?;
        if let (Some(test_ll), Some(test)) = (report.test_ll, &tables.test) {
            writeln!(stdout, "  test  {test_ll:>12.4}   {} rows", count(test.rows()))?;
        }
        writeln!(
            stdout,
            "{} in {}; saved {}",
            plural(parameters, "parameter"),
            duration(seconds),
            out.display()
        )?;
        Ok(())
    }
}

fn best_epoch(state: &State<Moat>) -> usize {
    state.best_epoch().map_or(0, |epoch| epoch.epoch)
}

fn run(
    state: &mut State<Moat>,
    data: Data<'_>,
    settings: &Settings,
    precision: Precision,
    watcher: &mut Watcher,
) -> Result<Ended, LearnError> {
    let judge = Cpu::<f64>::new().keeping(0);
    match precision {
        Precision::F32 => state.run(data, settings, &Cpu::<f32>::new(), &judge, watcher),
        Precision::F64 => state.run(data, settings, &Cpu::<f64>::new(), &judge, watcher),
    }
}

/// `data/nltcs.train.data.gz` → `nltcs.train.everytree`
fn default_name(train: &Path) -> PathBuf {
    let name = train.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    PathBuf::from(format!("{}.everytree", if stem.is_empty() { "model" } else { stem }))
}
