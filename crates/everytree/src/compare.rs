//! Families side by side on the same rows, within a time.

use crate::device::DeviceChoice;
use crate::error::Kind;
use crate::fit::{Fit, FitRows, Fitted, Observer, Stopped, hold_out};
use crate::memory::Work;
use crate::score::scores_as_read;
use crate::{Dataset, ErrorCode, Model, Result, Unknown};
use everytree_core::file::Checkpoint;
use everytree_core::learn::{Epoch, Hurry};
use everytree_core::model::{Family, Preset, Trees};
use std::time::{Duration, Instant};

/// Times that rows are scored; the fastest counts.
const PASSES: usize = 3;
/// Rows that are evaluated between two looks at whether to stop.
const PORTION: usize = 4096;
/// Going on is worth the while with this much time.
const LEAST_TIME: Duration = Duration::from_millis(500);
/// What all fits together may take, if nobody says.
const USUAL_TIME: Duration = Duration::from_secs(300);

/// Fits several families to one dataset, within a time, and lays them side by side.
///
/// Every family gets an equal part of the time that is left; what it does not need goes to the others. All of them learn from the
/// same rows and none learns once more from the rows held out, so that figures can be compared.
///
/// ```
/// use everytree::{Compare, Dataset};
///
/// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let (train, test) = data.split(0.25, 0);
/// let comparison = Compare::new().families(["independent", "chow-liu"]).test(test).run(&train)?;
/// let best = comparison.winner();
/// assert_eq!(best.family, "chow-liu");
/// assert!(comparison.families[0].difference.mean < 0.0, "independent columns are behind");
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(&folder)?;
/// best.model.save("best.everytree")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compare {
    families: Vec<String>,
    time: Duration,
    seed: u64,
    holdout: f64,
    valid: Option<Dataset>,
    test: Option<Dataset>,
}

impl Default for Compare {
    fn default() -> Self {
        Self {
            families: Vec::new(),
            time: USUAL_TIME,
            seed: 0,
            holdout: crate::FitOptions::default().holdout,
            valid: None,
            test: None,
        }
    }
}

/// What one family came to.
///
/// ```
/// # use everytree::{Compare, Dataset};
/// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let comparison = Compare::new().families(["chow-liu"]).run(&data)?;
/// let line = &comparison.families[0];
/// assert!(line.valid_ll < 0.0 && line.test_ll.is_none() && line.within_error());
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComparedFamily {
    /// Its name.
    pub family: String,
    /// The model.
    pub model: Model,
    /// Epoch by epoch.
    pub history: Vec<Epoch>,
    /// Mean log-likelihood of the rows it learned from, in nats.
    pub train_ll: f64,
    /// Of those by which epochs and sizes were chosen.
    pub valid_ll: f64,
    /// Of those to test with.
    pub test_ll: Option<f64>,
    /// How far it is behind the best, on the rows that are compared.
    pub difference: Difference,
    /// Is it the best, or the first of several that are?
    pub is_best: bool,
    /// Time that learning took.
    pub seconds: f64,
    /// Time that a row takes to be scored.
    pub microseconds_per_row: f64,
    /// How learning ended.
    pub ended: HowEnded,
    /// The log-likelihood of every row that is compared.
    log_p: Vec<f64>,
    /// Where it was stopped.
    unfinished: Option<Box<Checkpoint>>,
}

impl ComparedFamily {
    /// Behind by so little that other rows might say otherwise: by less than two standard errors?
    pub fn within_error(&self) -> bool {
        self.difference.mean == 0.0 || -self.difference.mean < 2.0 * self.difference.standard_error
    }
}

/// A mean difference over the same rows.
///
/// ```
/// # use everytree::{Compare, Dataset};
/// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let comparison = Compare::new().families(["chow-liu", "independent"]).run(&data)?;
/// assert_eq!(comparison.families[0].difference.mean, 0.0);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// In nats a row; 0 for the best, else below.
    pub mean: f64,
    /// Of the mean.
    pub standard_error: f64,
}

/// How the fit of one family among several ended.
///
/// ```
/// assert_eq!(everytree::HowEnded::Done.in_words(), "");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HowEnded {
    /// As it was meant to.
    Done,
    /// Its time was up.
    Clock,
    /// Someone stopped it.
    Interrupted,
}

impl HowEnded {
    /// After a sentence about it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::Clock => ", stopped by the clock",
            Self::Interrupted => ", interrupted",
        }
    }
}

/// A family that did not take part, and why.
///
/// ```
/// # use everytree::{Compare, Dataset};
/// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let comparison = Compare::new().families(["chow-liu"]).run(&data)?;
/// assert!(comparison.left_out.is_empty());
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeftOut {
    /// Its name.
    pub family: String,
    /// Why.
    pub why: String,
}

/// Families side by side.
///
/// ```
/// # use everytree::{Compare, Dataset};
/// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let comparison = Compare::new().families(["chow-liu", "independent"]).run(&data)?;
/// assert_eq!((comparison.families.len(), comparison.test_rows), (2, None));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// In the order in which they were asked for; one at least.
    pub families: Vec<ComparedFamily>,
    /// Who did not take part.
    pub left_out: Vec<LeftOut>,
    /// Rows that were learned from.
    pub train_rows: usize,
    /// Rows by which epochs and sizes were chosen.
    pub valid_rows: usize,
    /// Rows to test with: differences are over them. Without them they are over the others, and flatter.
    pub test_rows: Option<usize>,
    /// Did someone stop it?
    pub interrupted: bool,
}

impl Comparison {
    /// The best on the rows that are for choosing, whatever rows to test with say.
    pub fn winner(&self) -> &ComparedFamily {
        let mut best = &self.families[0];
        for line in &self.families {
            if line.valid_ll > best.valid_ll {
                best = line;
            }
        }
        best
    }

    /// Says how far each is behind the best on the rows that are compared.
    fn lay_side_by_side(&mut self) {
        let mean = |log_p: &[f64]| log_p.iter().sum::<f64>() / log_p.len().max(1) as f64;
        let all = self.families.iter().map(|line| &line.log_p);
        let best = all.reduce(|best, next| if mean(next) > mean(best) { next } else { best });
        let Some(best) = best.cloned() else { return };
        for line in &mut self.families {
            let differences: Vec<f64> = line.log_p.iter().zip(&best).map(|(own, best)| own - best).collect();
            let (rows, mean) = (differences.len() as f64, mean(&differences));
            let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
            // Of one row there is no telling.
            line.difference = Difference { mean, standard_error: (squares / (rows - 1.0) / rows).sqrt() };
        }
        if let Some(first) = self.families.iter_mut().find(|line| line.difference.mean == 0.0) {
            first.is_best = true;
        }
    }
}

/// Who hears how a comparison goes; of every fit, too.
///
/// ```
/// use everytree::{Compare, CompareObserver, ComparedFamily, Dataset, Observer};
///
/// struct Names(Vec<String>);
///
/// impl Observer for Names {}
///
/// impl CompareObserver for Names {
///     fn compared(&mut self, line: &ComparedFamily, _again: bool) {
///         self.0.push(line.family.clone());
///     }
/// }
///
/// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let mut names = Names(Vec::new());
/// Compare::new().families(["chow-liu", "independent"]).run_with(&data, &mut names)?;
/// assert_eq!(names.0, ["chow-liu", "independent"]);
/// # Ok::<(), everytree::Error>(())
/// ```
pub trait CompareObserver: Observer {
    /// The fit of this family begins.
    fn family(&mut self, family: &str) {
        let _ = family;
    }

    /// What a family came to; `again`: with more time than before.
    fn compared(&mut self, line: &ComparedFamily, again: bool) {
        let _ = (line, again);
    }

    /// A family does not take part.
    fn left_out(&mut self, left_out: &LeftOut) {
        let _ = left_out;
    }
}

impl CompareObserver for () {}

impl Compare {
    /// Every family but `auto`, within five minutes.
    pub fn new() -> Self {
        Self::default()
    }

    /// These families, by name; `auto`: what [`Fit`] chooses by itself. None: every family but that.
    pub fn families(mut self, families: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.families = families.into_iter().map(Into::into).collect();
        self
    }

    /// Time for all fits together.
    ///
    /// ```
    /// let compare = everytree::Compare::new().time(std::time::Duration::from_secs(60)).seed(1).holdout(0.2);
    /// # let _ = compare;
    /// ```
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Seed of everything random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The fraction of the rows that validates, where no rows are given for it.
    pub fn holdout(mut self, fraction: f64) -> Self {
        self.holdout = fraction;
        self
    }

    /// Rows by which epochs and sizes are chosen.
    ///
    /// ```
    /// # use everytree::{Compare, Dataset};
    /// # let cells = |a: &'static str, b| [a, b].repeat(40).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// let (train, valid) = data.split(0.25, 0);
    /// let comparison = Compare::new().families(["chow-liu"]).valid(valid).run(&train)?;
    /// assert_eq!(comparison.valid_rows, 20);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn valid(mut self, valid: Dataset) -> Self {
        self.valid = Some(valid);
        self
    }

    /// Rows on which families are compared, and which no fit looks at.
    pub fn test(mut self, test: Dataset) -> Self {
        self.test = Some(test);
        self
    }

    /// Fits them all.
    pub fn run(&self, train: &Dataset) -> Result<Comparison> {
        // On one of the threads that compute, as for a fit.
        rayon::scope(|_| self.run_with(train, &mut ()))
    }

    /// The same, telling an observer how it goes.
    pub fn run_with(&self, train: &Dataset, observer: &mut dyn CompareObserver) -> Result<Comparison> {
        // A name that is wrong is told before anything is learned.
        let unknown = |family: &&String| family.as_str() != crate::fit::AUTO_FAMILY;
        self.families.iter().filter(unknown).try_for_each(|family| Family::preset(family).map(drop))?;
        let rows = self.rows(train)?;
        observer.data(&FitRows::new(
            rows.train.rows(),
            rows.valid.rows(),
            rows.test.as_ref().map(|test| test.rows()),
            self.valid.is_none().then_some(self.seed),
        ));
        let families = if self.families.is_empty() { everyone() } else { self.families.clone() };
        let mut comparison = Comparison {
            families: Vec::new(),
            left_out: Vec::new(),
            train_rows: rows.train.rows(),
            valid_rows: rows.valid.rows(),
            test_rows: rows.test.as_ref().map(|test| test.rows()),
            interrupted: false,
        };
        let begin = Instant::now();
        for (place, family) in families.iter().enumerate() {
            let left = self.time.saturating_sub(begin.elapsed());
            let share = left / (families.len() - place) as u32;
            match self.one(family, share, &rows, comparison.families.is_empty(), observer) {
                Ok(line) => {
                    observer.compared(&line, false);
                    comparison.families.push(line);
                }
                Err(why) => {
                    let left_out = LeftOut { family: family.clone(), why };
                    observer.left_out(&left_out);
                    comparison.left_out.push(left_out);
                }
            }
        }
        self.go_on(&mut comparison, begin, &rows, observer);
        comparison.interrupted = observer.stop();
        if comparison.families.is_empty() {
            let why = comparison.left_out.iter().map(|out| format!("{}: {}", out.family, out.why));
            return Err(Kind::NobodyCompared(why.collect::<Vec<_>>().join("; ")).into());
        }
        comparison.lay_side_by_side();
        Ok(comparison)
    }

    /// The rows, the same for all.
    fn rows(&self, train: &Dataset) -> Result<Rows> {
        let (train, valid) = match &self.valid {
            Some(valid) => (train.clone(), crate::columns::like(valid, train, Unknown::Error)?),
            None => hold_out(train, self.holdout, self.seed)?,
        };
        let test = self.test.as_ref().map(|test| crate::columns::like(test, &train, Unknown::Error));
        Ok(Rows { train, valid, test: test.transpose()? })
    }

    /// The same fit as that of the family alone, on the CPU.
    fn fit(&self, family: &str, rows: &Rows) -> Fit {
        let fit = Fit::new().family(family).seed(self.seed).device(DeviceChoice::Cpu);
        fit.valid(rows.valid.clone()).without_edges()
    }

    /// Fits one family, or says why not; whatever the only one came to is kept.
    fn one(
        &self,
        family: &str,
        time: Duration,
        rows: &Rows,
        is_only: bool,
        observer: &mut dyn CompareObserver,
    ) -> Result<ComparedFamily, String> {
        const NO_TIME: &str = "there was no time left";
        if observer.stop() || time.is_zero() {
            return Err(NO_TIME.to_owned());
        }
        let begin = Instant::now();
        let fit = self.fit(family, rows);
        let looks_for_blocks = Family::preset(family).is_ok_and(|(_, preset)| preset.blocks);
        if looks_for_blocks {
            let stop = || observer.stop() || begin.elapsed() >= time;
            let groupings = fit.groupings_until(&rows.train, &stop).map_err(|error| error.to_string())?;
            if stop() {
                return Err(NO_TIME.to_owned());
            }
            if groupings.iter().all(Vec::is_empty) {
                return Err("no columns belong together".to_owned());
            }
        }
        let time = time.saturating_sub(begin.elapsed());
        if observer.stop() || time.is_zero() {
            return Err(NO_TIME.to_owned());
        }
        observer.family(family);
        match line(family, &fit.timeout(time), rows, is_only, observer) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(NO_TIME.to_owned()),
            // What the others came to is not lost.
            Err(error) => Err(error.to_string()),
        }
    }

    /// Time that others did not need is for those that had too little: they go on from where they were.
    fn go_on(
        &self,
        comparison: &mut Comparison,
        begin: Instant,
        rows: &Rows,
        observer: &mut dyn CompareObserver,
    ) {
        let lines = &mut comparison.families;
        let again: Vec<usize> =
            (0..lines.len()).filter(|&place| lines[place].ended == HowEnded::Clock).collect();
        for (done, &place) in again.iter().enumerate() {
            let share = self.time.saturating_sub(begin.elapsed()) / (again.len() - done) as u32;
            if observer.stop() || share < LEAST_TIME {
                continue;
            }
            let before = &mut lines[place];
            observer.family(&before.family);
            let mut fit = self.fit(&before.family, rows).timeout(share);
            if let Some(checkpoint) = before.unfinished.take() {
                fit = fit.resume(*checkpoint);
            }
            if let Ok(Some(mut longer)) = line(&before.family, &fit, rows, false, observer)
                && longer.valid_ll >= before.valid_ll
            {
                longer.seconds += before.seconds;
                observer.compared(&longer, true);
                *before = longer;
            }
        }
    }
}

/// The rows that families are compared on.
struct Rows {
    train: Dataset,
    valid: Dataset,
    test: Option<Dataset>,
}

/// Every family of the registry, the baselines first; but for those whose models contain rows, which one asks for by name.
fn everyone() -> Vec<String> {
    let mut presets: Vec<(Family, &'static Preset)> =
        Family::listed().filter(|(family, _)| !family.stores_rows()).collect();
    presets.sort_by_key(|(family, _)| family.spec().trees == Trees::All);
    presets.into_iter().map(|(_, preset)| preset.name.to_owned()).collect()
}

/// Fits one family; nothing if there was no time for a first validation, or for the rows that families are compared on; or for
/// learning, unless it is the only one.
fn line(
    family: &str,
    fit: &Fit,
    rows: &Rows,
    is_only: bool,
    observer: &mut dyn CompareObserver,
) -> Result<Option<ComparedFamily>> {
    let fitted = match fit.run_with(&rows.train, observer) {
        Err(error) if error.code() == ErrorCode::Stopped => return Ok(None),
        other => other?,
    };
    let Fitted { model, report, failure, unfinished, .. } = fitted;
    if let Some(error) = failure {
        return Err(error);
    }
    let ended = match report.stopped {
        Stopped::Observer => HowEnded::Interrupted,
        Stopped::Timeout => HowEnded::Clock,
        // Learned to the end, but there was no time to evaluate all rows.
        _ if report.evaluated.is_some() => HowEnded::Clock,
        _ => HowEnded::Done,
    };
    // What nothing was learned of is no comparison.
    if !is_only && ended != HowEnded::Done && report.epochs == 0 && report.trials.is_empty() {
        return Ok(None);
    }
    let compared = rows.test.as_ref().unwrap_or(&rows.valid);
    let Some((log_p, seconds)) = scored(&model, compared, observer)? else { return Ok(None) };
    let test_ll = rows.test.as_ref().map(|_| log_p.iter().sum::<f64>() / log_p.len() as f64);
    Ok(Some(ComparedFamily {
        family: family.to_owned(),
        train_ll: report.train_ll,
        valid_ll: report.valid_ll,
        test_ll,
        difference: Difference { mean: 0.0, standard_error: 0.0 },
        is_best: false,
        log_p,
        seconds: report.learning_seconds,
        microseconds_per_row: seconds * 1e6 / compared.rows().max(1) as f64,
        ended,
        unfinished,
        history: report.history,
        model,
    }))
}

/// The log-likelihood of every row, and how many seconds they took at best; nothing if that was stopped.
fn scored(
    model: &Model,
    data: &Dataset,
    observer: &mut dyn CompareObserver,
) -> Result<Option<(Vec<f64>, f64)>> {
    model.check_memory(Work::Score)?;
    // Whoever asks for an end waits a moment for what was learned.
    let stop = || observer.stop();
    let hurry = Hurry::new(&stop);
    if !data.is_complete() {
        let begin = Instant::now();
        let inference = model.inference_for(Work::Score)?;
        let rows: Vec<usize> = (0..data.rows()).collect();
        let mut log_p = Vec::with_capacity(rows.len());
        for some in rows.chunks(PORTION) {
            if hurry.asked() {
                return Ok(None);
            }
            log_p.extend(scores_as_read(model, &inference, data, some)?.iter().map(|score| score.value));
        }
        return Ok(Some((log_p, begin.elapsed().as_secs_f64())));
    }
    let inference = model.core().inference()?;
    let all: Vec<usize> = (0..data.rows()).collect();
    let (mut log_p, mut fastest) = (Vec::new(), f64::INFINITY);
    for _ in 0..PASSES {
        let begin = Instant::now();
        let mut found = Vec::with_capacity(all.len());
        for some in all.chunks(PORTION) {
            // Rows that are left out would make another comparison.
            if log_p.is_empty() && hurry.asked() {
                return Ok(None);
            }
            found.extend(inference.log_p(&data.table().select(some.iter().copied()))?);
        }
        log_p = found;
        fastest = fastest.min(begin.elapsed().as_secs_f64());
        if observer.stop() {
            break;
        }
    }
    Ok(Some((log_p, fastest)))
}
