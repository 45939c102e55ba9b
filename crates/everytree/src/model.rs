//! A model: labels in, labels out.

use crate::error::Kind;
use crate::evidence::{Evidence, column};
use crate::impute::Imputation;
use crate::memory::Work;
use crate::most_probable::MostProbable;
use crate::query::Query;
use crate::sample::Sample;
use crate::score::{Score, Scoring};
use crate::{Dataset, Error, Result};
use everytree_core::data::Schema;
use everytree_core::file::{ContentError, Evaluated, FileError, ModelFile, Results};
use everytree_core::infer::{self, Estimate, InferError};
use everytree_core::spanning::Kind as TreeKind;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A learned distribution over the rows of a table.
///
/// ```
/// use everytree::{Dataset, Fit, Model};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.everytree");
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let survey = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let model = Fit::new().run(&survey)?;
/// model.save(&path)?;
/// assert_eq!(Model::load(&path)?, model);
/// println!("{model}"); // what it is, in a line
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What it is:
///
/// ```
/// # use everytree::{Dataset, Fit, Model};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let survey = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let model = Fit::new().family("chow-liu").run(&survey)?;
/// assert_eq!((model.family(), model.title()), ("chow-liu", "Chow–Liu tree"));
/// assert_eq!((model.components(), model.mixing_weights()), (1, vec![1.0]));
/// assert!(model.parameters() > 0 && model.is_directed());
/// assert!(model.exact_answers().contains(&"most probable row"));
/// assert_eq!(model.schema().variables[0].name, "smoker");
/// assert_eq!(model.file().provenance.train.as_ref().unwrap().rows, 40);
/// assert_eq!(Model::from_bytes(&model.to_bytes()?)?, model); // the bytes of its file
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    file: Arc<ModelFile>,
    schema: Arc<Schema>,
}

/// How much may be done for an answer that is not exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AnswerEffort {
    pub tolerance: f64,
    pub trees: usize,
    pub seed: u64,
}

impl Default for AnswerEffort {
    fn default() -> Self {
        Self { tolerance: 0.005, trees: 200_000, seed: 0 }
    }
}

impl AnswerEffort {
    pub fn check(&self) -> Result<()> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Error::option("tolerance", self.tolerance, "must be positive and finite"));
        }
        if self.trees == 0 {
            return Err(Error::option("trees", 0, "at least one"));
        }
        Ok(())
    }

    /// For answers about these variables.
    pub fn of(self, targets: &[usize]) -> Result<infer::Effort<'_>> {
        self.check()?;
        let (trees, tolerance, seed) = (self.trees, Some(self.tolerance), self.seed);
        Ok(infer::Effort { trees, tolerance, seed, targets, ..infer::Effort::default() })
    }
}

impl From<ModelFile> for Model {
    fn from(file: ModelFile) -> Self {
        let schema = Arc::new(file.schema.clone());
        Self { file: Arc::new(file), schema }
    }
}

impl Model {
    /// Reads a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Ok(ModelFile::load(path.as_ref())?.into())
    }

    /// Writes a model file, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        Ok(self.file.save(path.as_ref())?)
    }

    /// The bytes of the model file: the same for the same model, always.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let failed = |cause| FileError::Io { path: PathBuf::from("model"), cause };
        Ok(self.file.to_bytes().map_err(failed)?)
    }

    /// From the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let named =
            |what: ContentError| Error::from(FileError::Content { path: PathBuf::from("model"), what });
        Ok(ModelFile::from_bytes(bytes).map_err(named)?.into())
    }

    /// The columns, their states and labels.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The name of its family: `moat`, `directed`, `chow-liu` …, or `ensemble`.
    pub fn family(&self) -> &'static str {
        self.file.model.family_name()
    }

    /// The same in full: `mixture of all trees`, `Chow–Liu tree` …
    pub fn title(&self) -> &'static str {
        self.core().title()
    }

    /// How many components are mixed; of an ensemble, of all members together.
    pub fn components(&self) -> usize {
        self.file.model.components()
    }

    /// The mixing weight of every component, one member after the other.
    pub fn mixing_weights(&self) -> Vec<f64> {
        self.file.model.mixing_weights()
    }

    /// How many numbers say it all.
    pub fn parameters(&self) -> usize {
        self.file.model.degrees_of_freedom()
    }

    /// How many training rows it contains, which whoever has its file can read; none in most families.
    ///
    /// ```
    /// use everytree::{Dataset, Effort, Fit};
    ///
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// let kernel = Fit::new().family("kernel").run(&data)?;
    /// assert!(kernel.stored_rows().is_some());
    /// let perhaps = Fit::new().kernel(true).effort(Effort::Quick).run(&data)?;
    /// let trees = perhaps.members().iter().all(|member| member.family != "kernel");
    /// assert_eq!(perhaps.stored_rows().is_none(), trees);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn stored_rows(&self) -> Option<usize> {
        self.members().iter().filter_map(|member| member.rows).reduce(usize::max)
    }

    /// Have edges a direction?
    pub fn is_directed(&self) -> bool {
        self.file.model.edge_kind() == TreeKind::Directed
    }

    /// What it answers exactly, whatever the evidence.
    pub fn exact_answers(&self) -> &'static [&'static str] {
        self.file.model.exact_answers()
    }

    /// The engine's view of it: parameters, blocks, provenance.
    pub fn file(&self) -> &ModelFile {
        &self.file
    }

    /// What came out of test rows later than the rest.
    pub(crate) fn say_of_test(&mut self, test_ll: Option<f64>, evaluated: Option<Evaluated>) {
        if let Some(results) = &mut Arc::make_mut(&mut self.file).provenance.results {
            (results.test_ll, results.evaluated) = (test_ll, evaluated);
        }
    }

    /// What came out of learning.
    pub(crate) fn say_results(&mut self, results: Results, stopped: crate::Stopped) {
        let provenance = &mut Arc::make_mut(&mut self.file).provenance;
        provenance.results = Some(results);
        // By the clock or a signal: another run may come to another model.
        provenance.stopped = (stopped != crate::Stopped::Done).then(|| stopped.as_str().to_owned());
    }

    pub(crate) fn core(&self) -> &everytree_core::model::Model {
        &self.file.model
    }

    /// Reads a table with the columns and states of this model; cells may be missing.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Dataset> {
        crate::ReadOptions::default().open_like(path, &self.schema)
    }

    /// Nothing is known, to begin with.
    pub fn evidence(&self) -> Evidence<'_> {
        Evidence::none(&self.schema)
    }

    /// Asks how probable values are, given evidence.
    pub fn query(&self) -> Query<'_> {
        Query::new(self)
    }

    /// Draws rows, given evidence or none.
    pub fn sample(&self, rows: usize) -> Sample<'_> {
        Sample::new(self, rows)
    }

    /// Finds the most probable rows (MAP), given evidence or none.
    pub fn most_probable(&self, rows: usize) -> MostProbable<'_> {
        MostProbable::new(self, rows)
    }

    /// How likely the rows of a dataset are: the mean log-likelihood and its standard error.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").run(&data)?;
    /// let score = model.score(&data)?;
    /// assert!(score.mean > -2.0 * std::f64::consts::LN_2); // better than coins
    /// println!("{score}");
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn score(&self, data: &Dataset) -> Result<Score> {
        self.scoring().run(data)
    }

    /// How rows are scored, one by one; tables that do not fit in memory are streamed.
    pub fn scoring(&self) -> Scoring<'_> {
        Scoring::new(self)
    }

    /// Fills the missing cells of a dataset with the most probable way to complete each row.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").run(&data)?;
    /// let incomplete = Dataset::from_columns([("smoker", vec![Some("yes")]), ("cough", vec![None])])?;
    /// assert_eq!(model.impute(&incomplete)?.label(0, 1).as_deref(), Some("yes"));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn impute(&self, data: &Dataset) -> Result<Dataset> {
        self.imputation().run(data)
    }

    /// How missing cells are filled.
    pub fn imputation(&self) -> Imputation<'_> {
        Imputation::new(self)
    }

    /// The logarithm of the probability of evidence.
    pub fn log_evidence(&self, evidence: &Evidence<'_>) -> Result<Estimate> {
        let inference = self.inference()?;
        Ok(inference.log_evidence(evidence.likelihoods(), AnswerEffort::default().of(&[])?)?)
    }

    /// The entropy of the distribution, in nats.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("a", cells("x", "y")), ("b", cells("1", "2"))])?;
    /// # let model = Fit::new().family("moat").run(&data)?;
    /// assert!(model.entropy()?.value > 0.6);
    /// assert!(model.mutual_information("a", "b")?.value > 0.1);
    /// assert!(model.divergence(&model)?.value.abs() < 1e-9);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn entropy(&self) -> Result<Estimate> {
        self.figures().entropy()
    }

    /// The mutual information of two columns, in nats.
    pub fn mutual_information(&self, one: &str, other: &str) -> Result<Estimate> {
        self.figures().mutual_information(one, other)
    }

    /// The Kullback–Leibler divergence from this model to another with the same columns, in nats.
    pub fn divergence(&self, other: &Model) -> Result<Estimate> {
        self.figures().divergence(other)
    }

    /// Single figures, to a tolerance.
    pub fn figures(&self) -> Figures<'_> {
        Figures { model: self, effort: AnswerEffort::default() }
    }
}

/// Family, components, columns and parameters.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, columns) = (self.components(), self.schema.variables.len());
        write!(f, "{}", self.family())?;
        if components > 1 {
            write!(f, ", {components} components")?;
        }
        write!(f, ", {columns} columns, {} parameters", self.parameters())
    }
}

/// Single figures about a model: exact where all rows can be enumerated, else with a standard error.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let entropy = model.figures().tolerance(0.01).entropy()?;
/// assert!(entropy.value < 2.0 * std::f64::consts::LN_2);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Figures<'m> {
    model: &'m Model,
    effort: AnswerEffort,
}

impl Figures<'_> {
    /// The standard error that is good enough.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.effort.tolerance = tolerance;
        self
    }

    /// Most random rows or trees.
    pub fn trees(mut self, trees: usize) -> Self {
        self.effort.trees = trees;
        self
    }

    /// Seed of everything random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.effort.seed = seed;
        self
    }

    /// The entropy, in nats.
    pub fn entropy(&self) -> Result<Estimate> {
        Ok(self.model.inference_for(Work::Measure)?.entropy(self.effort.of(&[])?)?)
    }

    /// The mutual information of two columns, in nats.
    pub fn mutual_information(&self, one: &str, other: &str) -> Result<Estimate> {
        let schema = self.model.schema();
        let (u, v) = (column(schema, one)?, column(schema, other)?);
        if u == v {
            let problem =
                format!("mutual information of {one:?} with itself: two different columns are needed");
            return Err(Kind::Schemas(problem).into());
        }
        self.model.check_memory_of_pair(u, v)?;
        Ok(self.model.inference()?.mutual_information(u, v, self.effort.of(&[])?)?)
    }

    /// The Kullback–Leibler divergence to another model with the same columns, in nats.
    pub fn divergence(&self, other: &Model) -> Result<Estimate> {
        let places = same_columns(self.model.schema(), other.schema())?;
        let translate = |row: &[u16]| -> Vec<u16> { places.iter().map(|&place| row[place]).collect() };
        let inference = self.model.inference_for(Work::Measure)?;
        Ok(inference.divergence(&other.inference_for(Work::Score)?, &translate, self.effort.of(&[])?)?)
    }

    /// The probability of evidence.
    pub fn probability(&self, evidence: &Evidence<'_>) -> Result<Estimate> {
        let inference = self.model.inference()?;
        match inference.log_evidence(evidence.likelihoods(), self.effort.of(&[])?) {
            // The error of a probability is that of its logarithm times itself.
            Ok(log) => {
                let p = log.value.exp();
                Ok(Estimate { value: p, standard_error: p * log.standard_error })
            }
            Err(InferError::Impossible) => Ok(Estimate { value: 0.0, standard_error: 0.0 }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where each column of the other schema is in this one; both have the same columns and labels, perhaps in another order.
fn same_columns(from: &Schema, to: &Schema) -> Result<Vec<usize>> {
    if from.variables.len() != to.variables.len() {
        let (one, other) = (from.variables.len(), to.variables.len());
        return Err(Kind::Schemas(format!("the models have {one} and {other} columns")).into());
    }
    let place = |other: &everytree_core::data::Variable| {
        let place = column(from, &other.name)?;
        // Labels are in natural order: the same labels have the same codes.
        if from.variables[place].labels() != other.labels() {
            let problem = format!("column {:?} does not have the same values in both models", other.name);
            return Err(Kind::Schemas(problem).into());
        }
        Ok(place)
    };
    to.variables.iter().map(place).collect()
}
