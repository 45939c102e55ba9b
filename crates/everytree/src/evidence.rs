//! Columns and values as people write them, and back: evidence in labels.

use crate::condition::{Condition, Range};
use crate::error::Kind;
use crate::{Error, Result};
use everytree_core::data::{Cell, Encoded, Encoder, OTHER, Schema, States, Variable};
use everytree_core::infer;

/// The place of a column.
pub(crate) fn column(schema: &Schema, name: &str) -> Result<usize> {
    // In double quotes, as in a condition.
    let bare = || name.trim().strip_prefix('"')?.strip_suffix('"').map(|name| name.replace("\"\"", "\""));
    let quoted = || schema.position(&bare()?);
    schema.position(name).or_else(quoted).ok_or_else(|| no_column(schema, name))
}

/// What is said of a column that a model does not have.
pub(crate) fn no_column(schema: &Schema, name: &str) -> Error {
    let column = name.to_owned();
    if schema.left_out.contains(&column) {
        return Kind::LeftOut { column }.into();
    }
    let known = schema.variables.iter().map(|variable| variable.name.clone()).collect();
    Kind::UnknownColumn { column, known }.into()
}

/// The state that a value stands for; nothing between the quotes is the missing cell.
fn state(schema: &Schema, encoder: &Encoder<'_>, variable: usize, value: &str) -> Option<usize> {
    match encoder.encode(variable, Cell::Field(value)) {
        Encoded::State(state) => Some(state.into()),
        Encoded::Unobserved => encoder.missing(variable).map(usize::from),
        // A bin by its name.
        Encoded::Unknown => schema.variables[variable].labels().iter().position(|label| label == value),
    }
}

/// What is said of a value that a column does not have.
fn unknown(schema: &Schema, variable: usize, value: &str) -> Error {
    let Variable { name, .. } = &schema.variables[variable];
    let known = schema.variables[variable].labels();
    let hint = schema.variables[variable].hint_about(value);
    // Of a question, not of a table.
    let hint =
        hint.split(", or say").next().filter(|hint| hint.contains("bins")).unwrap_or_default().to_owned();
    Kind::UnknownValue { row: None, column: name.clone(), value: value.to_owned(), known, hint }.into()
}

/// The state of a value, or of a missing cell.
pub(crate) fn state_of(schema: &Schema, variable: usize, value: Option<&str>) -> Result<usize> {
    let encoder = Encoder::new(schema);
    let found = match value {
        Some(value) => state(schema, &encoder, variable, value),
        None => encoder.missing(variable).map(usize::from),
    };
    let never_missing = || Kind::NeverMissing { column: schema.variables[variable].name.clone() }.into();
    found.ok_or_else(|| value.map_or_else(never_missing, |value| unknown(schema, variable, value)))
}

/// Evidence about a row, in labels.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("age", cells("20", "30"))])?;
/// # let model = Fit::new().family("moat").epochs(1).run(&data)?;
/// let evidence = model.evidence().given("smoker", "yes")?.given_any("age", ["20", "30"])?;
/// assert_eq!(model.log_evidence(&evidence)?.standard_error, 0.0);
/// # Ok::<(), everytree::Error>(())
/// ```
///
/// Missing cells, several values of which one is missing, and likelihoods (soft evidence):
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.csv");
/// # std::fs::write(&path, format!("smoker,age\n{}", "yes,20\n,30\n".repeat(20)))?;
/// # let model = Fit::new().family("moat").epochs(1).run(&Dataset::open(&path)?)?;
/// let unknown = model.evidence().given_missing("smoker")?;
/// assert!(unknown.is_given("smoker") && !unknown.is_given("age"));
/// let either = model.evidence().given_values("smoker", [Some("yes"), None])?;
/// assert!(model.log_evidence(&either)?.value.abs() < 1e-9);
/// let soft = model.evidence().given_likelihoods("age", [("20", 0.9), ("30", 0.1)])?;
/// let answer = model.query().evidence(soft).missing_as_state(true).target("smoker")?.run()?;
/// assert!(answer.probability("smoker", "yes").unwrap() > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evidence<'m> {
    schema: &'m Schema,
    likelihoods: infer::Evidence,
    given: Vec<bool>,
    /// What is said of a column, but for values that it does not have.
    said: Vec<Option<Vec<f64>>>,
    /// States that a column is said not to have.
    excluded: Vec<Vec<usize>>,
    /// Ranges of numbers: several of one column are their intersection.
    ranges: Vec<Option<Range>>,
}

impl<'m> Evidence<'m> {
    /// Nothing is known.
    pub(crate) fn none(schema: &'m Schema) -> Self {
        let likelihoods = infer::Evidence::none(&schema.states());
        let columns = schema.variables.len();
        let (said, excluded) = (vec![None; columns], vec![Vec::new(); columns]);
        Self { schema, likelihoods, given: vec![false; columns], said, excluded, ranges: vec![None; columns] }
    }

    /// A column has this value.
    pub fn given(self, column: &str, value: &str) -> Result<Self> {
        self.given_any(column, [value])
    }

    /// A column has one of these values.
    pub fn given_any<'a>(self, column: &str, values: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        self.given_values(column, values.into_iter().map(Some))
    }

    /// A column has one of these values, of which none is a missing cell.
    pub fn given_values<'a>(
        self,
        column: &str,
        values: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<Self> {
        let variable = crate::evidence::column(self.schema, column)?;
        let states: Result<Vec<usize>> =
            values.into_iter().map(|value| state_of(self.schema, variable, value)).collect();
        self.one_of(variable, &states?)
    }

    /// The cell of a column is missing; of columns in which cells were missing in training.
    pub fn given_missing(self, column: &str) -> Result<Self> {
        self.given_values(column, [None])
    }

    /// What was seen speaks for the values of a column in these proportions; values that are not named have none.
    pub fn given_likelihoods<'a>(
        self,
        column: &str,
        likelihoods: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Self> {
        let variable = crate::evidence::column(self.schema, column)?;
        let mut list = vec![0.0; self.schema.variables[variable].len()];
        for (value, likelihood) in likelihoods {
            list[state_of(self.schema, variable, Some(value))?] = likelihood;
        }
        self.once(variable)?;
        self.say(variable, list)
    }

    /// What is known of a column, whatever it is. Ranges of one column are cut with each other; values that it does not have are
    /// left out of whatever else is said of it.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("age", cells("20", "30"))])?;
    /// # let model = Fit::new().family("moat").epochs(1).run(&data)?;
    /// use everytree::Condition;
    /// let evidence = model.evidence().given_that("age", Condition::between(10.0, 25.0))?;
    /// let evidence = evidence.given_that("smoker", Condition::is_not("no"))?;
    /// assert!(model.log_evidence(&evidence)?.value < -0.1);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn given_that(mut self, column: &str, condition: Condition) -> Result<Self> {
        let variable = crate::evidence::column(self.schema, column)?;
        let states_of = |values: &[Option<String>]| -> Result<Vec<usize>> {
            values.iter().map(|value| state_of(self.schema, variable, value.as_deref())).collect()
        };
        match condition {
            Condition::In(values) => {
                let states = states_of(&values)?;
                self.one_of(variable, &states)
            }
            Condition::NotIn(values) => {
                let not = match &values[..] {
                    // "Not missing" can be said of a column that never is.
                    [None] => Vec::new(),
                    values => states_of(values)?,
                };
                let known = &self.schema.variables[variable];
                // Of the labels that are not told apart there are others besides.
                let named_other = values.iter().flatten().any(|value| value == OTHER);
                let other = match &known.states {
                    States::Others(labels) if !named_other => Some(labels.len()),
                    _ => None,
                };
                let not = not.into_iter().filter(|&state| Some(state) != other);
                // Whatever has another value has a value.
                let missing = known.states.len()..known.len();
                self.excluded[variable].extend(not.chain(missing));
                self.narrow(variable)
            }
            Condition::Range(range) => {
                let range = match self.ranges[variable] {
                    Some(before) => before.and(range),
                    None => {
                        self.once(variable)?;
                        range
                    }
                };
                self.ranges[variable] = Some(range);
                let list = range.likelihoods(&self.schema.variables[variable])?;
                self.say(variable, list)
            }
            Condition::Likelihoods(values) => {
                // Only their proportions matter; the largest as 1, so that the evidence has a probability.
                let most = values.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
                let scale = if most > 0.0 && most.is_finite() { most } else { 1.0 };
                self.given_likelihoods(
                    column,
                    values.iter().map(|(value, weight)| (value.as_str(), weight / scale)),
                )
            }
        }
    }

    /// A column and what is known of it, as [`Condition::parse`] reads it: `age in 30..40`.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("age", cells("20", "30"))])?;
    /// # let model = Fit::new().family("moat").epochs(1).run(&data)?;
    /// assert!(model.evidence().given_text("age>25")?.is_given("age"));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn given_text(self, text: &str) -> Result<Self> {
        let (column, condition) = Condition::parse(self.schema, text)?;
        self.given_that(&column, condition)
    }

    fn one_of(self, variable: usize, states: &[usize]) -> Result<Self> {
        self.once(variable)?;
        let mut list = vec![0.0; self.schema.variables[variable].len()];
        states.iter().for_each(|&state| list[state] = 1.0);
        self.say(variable, list)
    }

    fn say(mut self, variable: usize, list: Vec<f64>) -> Result<Self> {
        self.said[variable] = Some(list);
        self.narrow(variable)
    }

    /// What is said of a column, less the values that it does not have.
    fn narrow(mut self, variable: usize) -> Result<Self> {
        let states = self.schema.variables[variable].len();
        let mut list = self.said[variable].clone().unwrap_or_else(|| vec![1.0; states]);
        let before = list.iter().any(|&likelihood| likelihood > 0.0);
        self.excluded[variable].iter().for_each(|&state| list[state] = 0.0);
        if before && list.iter().all(|&likelihood| likelihood == 0.0) {
            let Variable { name: column, .. } = self.schema.variables[variable].clone();
            let known = self.schema.variables[variable].labels();
            return Err(Kind::NoValueLeft { column, known }.into());
        }
        self.given[variable] = true;
        self.likelihoods.forget(variable);
        self.likelihoods.soft(variable, &list)?;
        Ok(self)
    }

    fn once(&self, variable: usize) -> Result<()> {
        if self.said[variable].is_some() {
            return Err(Kind::GivenTwice { column: self.schema.variables[variable].name.clone() }.into());
        }
        Ok(())
    }

    /// Is anything known of this column?
    pub fn is_given(&self, column: &str) -> bool {
        self.schema.position(column).is_some_and(|variable| self.given[variable])
    }

    /// Is there one value alone that this column can have?
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("age", cells("20", "30"))])?;
    /// # let model = Fit::new().family("moat").epochs(1).run(&data)?;
    /// let evidence = model.evidence().given_text("smoker=yes")?.given_text("age<40")?;
    /// assert!(evidence.is_settled("smoker") && !evidence.is_settled("age"));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn is_settled(&self, column: &str) -> bool {
        let possible = |variable: usize| self.likelihoods.of(variable).iter().filter(|p| **p > 0.0).count();
        self.schema.position(column).is_some_and(|variable| possible(variable) == 1)
    }

    /// A cell that has this state, as one would write it: the label; of a bin, a number in it, and in the range that is known of the
    /// column.
    ///
    /// ```
    /// # use everytree::{Fit, ReadOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("ages.csv");
    /// # let rows: String = (0..40).map(|i| format!("{i},{}\n", if i < 20 { "young" } else { "old" })).collect();
    /// # std::fs::write(&path, format!("age,group\n{rows}"))?;
    /// let ages = ReadOptions::default().all_bins(4).open(&path)?;
    /// let model = Fit::new().family("chow-liu").run(&ages)?;
    /// assert_eq!(model.evidence().cell(0, 1), "15");
    /// assert_eq!(model.evidence().given_text("age in 12..13")?.cell(0, 1), "13");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// When there is no such column or state.
    pub fn cell(&self, variable: usize, state: usize) -> String {
        cell(&self.schema.variables[variable], state, self.ranges[variable])
    }

    /// The range of numbers that is known of a column, if one is.
    pub(crate) fn range(&self, variable: usize) -> Option<Range> {
        self.ranges[variable]
    }

    /// The likelihoods, as the engine has them.
    pub(crate) fn likelihoods(&self) -> &infer::Evidence {
        &self.likelihoods
    }

    /// The same, and what is not known is not missing either.
    pub(crate) fn observed_only(&self) -> Result<infer::Evidence> {
        let mut known = self.likelihoods.clone();
        for (v, variable) in self.schema.variables.iter().enumerate() {
            if variable.missing && !variable.states.is_empty() && !self.given[v] {
                known.set(v, &(0..variable.states.len()).collect::<Vec<usize>>())?;
            }
        }
        Ok(known)
    }
}

/// A cell that has this state: of a bin, a number in it, and in this range.
pub(crate) fn cell(variable: &Variable, state: usize, range: Option<Range>) -> String {
    let usual = variable.cell(state);
    let number = || variable.format.parse(&usual);
    match (&variable.states, range) {
        (States::Bins(_), Some(range)) if !number().is_some_and(|number| range.contains(number)) => {
            range.number_in_bin(variable, state).map_or(usual, |number| variable.format.write(number))
        }
        _ => usual,
    }
}

/// Evidence, given to whatever has a field for it.
macro_rules! with_evidence {
    ($type:ident) => {
        impl<'m> $type<'m> {
            /// A column has this value.
            pub fn given(mut self, column: &str, value: &str) -> Result<Self> {
                self.evidence = self.evidence.given(column, value)?;
                Ok(self)
            }

            /// A column has one of these values.
            pub fn given_any<'a>(
                mut self,
                column: &str,
                values: impl IntoIterator<Item = &'a str>,
            ) -> Result<Self> {
                self.evidence = self.evidence.given_any(column, values)?;
                Ok(self)
            }

            /// The cell of a column is missing; of columns in which cells were missing in training.
            pub fn given_missing(mut self, column: &str) -> Result<Self> {
                self.evidence = self.evidence.given_missing(column)?;
                Ok(self)
            }

            /// What is known of a column, whatever it is.
            pub fn given_that(mut self, column: &str, condition: $crate::Condition) -> Result<Self> {
                self.evidence = self.evidence.given_that(column, condition)?;
                Ok(self)
            }

            /// Everything that is known, at once.
            pub fn evidence(mut self, evidence: $crate::Evidence<'m>) -> Self {
                self.evidence = evidence;
                self
            }
        }
    };
}
pub(crate) use with_evidence;

/// Are the values of a column 0 and 1, or false and true?
///
/// ```
/// let data = everytree::Dataset::from_columns([("a", vec![Some("0"), Some("1")]), ("b", vec![Some("x"), Some("y")])])?;
/// assert!(everytree::yes_or_no(&data.schema().variables[0]));
/// assert!(!everytree::yes_or_no(&data.schema().variables[1]));
/// # Ok::<(), everytree::Error>(())
/// ```
pub fn yes_or_no(variable: &Variable) -> bool {
    match &variable.states {
        States::Booleans(_) => true,
        States::Integers(values) => values[..] == [0, 1],
        _ => false,
    }
}
