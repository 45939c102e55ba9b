//! Posteriors: probabilities of values given evidence.

use crate::edges::{TreeEdge, names, tree_edges};
use crate::evidence::{Evidence, column, state_of, with_evidence};
use crate::input::Input;
use crate::model::AnswerEffort;
use crate::words::{column_width, count, plural};
use crate::{Error, Model, Result};
use everytree_core::data::{Schema, States};
use everytree_core::infer::{Estimate, Method, Posterior};
use everytree_read::{CellRules, ReadSettings};
use std::fmt;
use std::sync::Arc;

/// A question to a model: which values are how probable, given evidence.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").run(&data)?;
/// let answer = model.query().given("smoker", "yes")?.target("cough")?.run()?;
/// assert!(answer.probability("cough", "yes").unwrap() > 0.8);
/// println!("{answer}");
/// # Ok::<(), everytree::Error>(())
/// ```
///
/// Everything that can be said about it:
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// use everytree::Method;
///
/// let answer = model
///     .query()
///     .given("smoker", "yes")?
///     .target_value("cough", Some("yes"))?
///     .edges(true)
///     .missing_as_state(true)
///     .method(Method::Exact)
///     .tolerance(0.01) // of answers that are estimates
///     .trees(1000)
///     .seed(1)
///     .run()?;
/// assert_eq!(answer.estimate("cough", "yes").unwrap().standard_error, 0.0);
/// assert!(model.query().given("smoker", "no")?.no_targets().run()?.values.is_empty());
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Query<'m> {
    model: &'m Model,
    evidence: Evidence<'m>,
    /// None: every column that is not known.
    targets: Option<Vec<Target>>,
    missing_as_state: bool,
    edges: bool,
    method: Option<Method>,
    effort: AnswerEffort,
}

with_evidence!(Query);

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Target {
    Column(usize),
    Value(usize, usize),
}

/// A value that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TargetState {
    variable: usize,
    state: usize,
    /// Among the values that can be observed?
    observed: bool,
}

impl<'m> Query<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        Self {
            model,
            evidence: model.evidence(),
            targets: None,
            missing_as_state: false,
            edges: false,
            method: None,
            effort: AnswerEffort { tolerance: 0.005, ..AnswerEffort::default() },
        }
    }

    /// Asks for all values of a column. Without any target: for every column that is not known.
    pub fn target(mut self, name: &str) -> Result<Self> {
        self.targets.get_or_insert_default().push(Target::Column(column(self.model.schema(), name)?));
        Ok(self)
    }

    /// Asks for one value of a column; `None` is a missing cell.
    pub fn target_value(mut self, name: &str, value: Option<&str>) -> Result<Self> {
        let variable = column(self.model.schema(), name)?;
        let state = state_of(self.model.schema(), variable, value)?;
        self.targets.get_or_insert_default().push(Target::Value(variable, state));
        Ok(self)
    }

    /// Asks for no column at all, only for the probability of the evidence or for edges.
    pub fn no_targets(mut self) -> Self {
        self.targets = Some(Vec::new());
        self
    }

    /// Reports "missing" as a value like others, where training had missing cells in a column.
    pub fn missing_as_state(mut self, missing_as_state: bool) -> Self {
        self.missing_as_state = missing_as_state;
        self
    }

    /// Asks for the edges of the tree too.
    pub fn edges(mut self, edges: bool) -> Self {
        self.edges = edges;
        self
    }

    /// Answers by this method instead of the one that fits.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// The standard error of probabilities that is good enough.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.effort.tolerance = tolerance;
        self
    }

    /// Most trees to draw.
    pub fn trees(mut self, trees: usize) -> Self {
        self.effort.trees = trees;
        self
    }

    /// Seed of the random trees.
    pub fn seed(mut self, seed: u64) -> Self {
        self.effort.seed = seed;
        self
    }

    fn targets(&self) -> Vec<TargetState> {
        let schema = self.model.schema();
        let all = |variable: usize| all_values(schema, &self.evidence, variable, self.missing_as_state);
        let Some(targets) = &self.targets else {
            let known = self.evidence.likelihoods();
            let hidden = (0..schema.variables.len()).filter(|&variable| known.state(variable).is_none());
            return hidden.flat_map(all).collect();
        };
        let one = |target: &Target| match *target {
            Target::Column(variable) => all(variable).collect(),
            Target::Value(variable, state) => {
                let missing = state == schema.variables[variable].states.len();
                vec![TargetState { variable, state, observed: !missing && !self.missing_as_state }]
            }
        };
        targets.iter().flat_map(one).collect()
    }

    /// Answers.
    pub fn run(&self) -> Result<Answer> {
        let model = self.model;
        if model.core().is_of_trees() && !matches!(self.method, None | Some(Method::Exact)) {
            return Err(Error::unwanted("method", "one tree answers exactly; leave it out"));
        }
        let targets = self.targets();
        let mut variables: Vec<usize> = targets.iter().map(|target| target.variable).collect();
        variables.dedup();
        let effort = self.effort.of(&variables)?;
        let inference = model.inference()?;
        let found = inference.posterior(self.evidence.likelihoods(), self.method, effort)?;
        let edges = match self.edges {
            true => {
                let found = inference.edges(self.evidence.likelihoods(), effort)?;
                Some(EdgeAnswer {
                    edges: tree_edges(&names(model), model.core().edge_kind(), &found),
                    method: found.method,
                    trees: found.trees,
                    effective_sample_size: found.effective_sample_size,
                })
            }
            false => None,
        };
        Ok(Answer {
            values: answers(model.schema(), &found, &targets),
            method: found.method,
            trees: found.trees,
            effective_sample_size: found.effective_sample_size,
            log_evidence: found.log_evidence,
            r_hat: found.r_hat,
            chosen: self.method.is_none(),
            edges,
            matching: None,
        })
    }

    /// Adds to an answer what the rows of a table say that agree with the evidence.
    pub fn beside<'t>(
        &self,
        answer: &mut Answer,
        table: impl Into<Input<'t>>,
        read: &ReadSettings,
    ) -> Result<()> {
        let schema = self.model.schema();
        let table = table.into();
        let whole = || Cut { schema: Arc::clone(schema), columns: Vec::new() };
        // Of a file the numbers are known, so that a range cuts a bin exactly; a dataset has nothing but bins.
        let cut = match &table {
            Input::Source(_) => Cut::of(schema, &self.evidence),
            Input::Dataset(_) => whole(),
        };
        let mut found = self.count(&table, &cut, read)?;
        if found.unknown > 0 && !cut.columns.is_empty() && table.can_be_read_again() {
            // A bin by its name, as in rows that were drawn, is none of those that it was cut into.
            let of_bins = self.count(&table, &whole(), read)?;
            if of_bins.unknown < found.unknown {
                found = of_bins;
            }
        }
        let Counted { rows, of, unknown, seen } = found;
        for (value, target) in answer.values.iter_mut().zip(self.targets()) {
            let TargetState { variable, state, observed } = target;
            let among = if observed { schema.variables[variable].states.len() } else { seen[variable].len() };
            let all: f64 = seen[variable][..among].iter().sum();
            value.observed = Some(seen[variable][state] / all).filter(|share| share.is_finite());
        }
        answer.matching = Some(Matching { rows, of, unknown });
        Ok(())
    }

    /// The rows of a table that agree with the evidence.
    fn count(&self, table: &Input<'_>, cut: &Cut, read: &ReadSettings) -> Result<Counted> {
        let schema = self.model.schema();
        let rules =
            CellRules { missing_is_a_state: true, unknown_is_unobserved: true, incomplete_rows: true };
        let known = self.evidence.likelihoods();
        let given: Vec<usize> = (0..schema.variables.len()).filter(|&v| known.is_given(v)).collect();
        let mut seen: Vec<Vec<f64>> =
            schema.variables.iter().map(|variable| vec![0.0; variable.len()]).collect();
        let (mut rows, mut of, mut unknown) = (0.0, 0, 0);
        table.for_each_row(&cut.schema, read, rules, &mut |row| {
            of += 1;
            unknown += u64::from(row.unknown.iter().any(|v| given.contains(v)));
            let state = |v: usize| cut.state(v, usize::from(row.codes[v]));
            let likelihood = |&v: &usize| match (row.unobserved.contains(&v), state(v)) {
                (true, _) => 0.0,
                (false, (state, Some(inside))) => f64::from(u8::from(inside && known.of(v)[state] > 0.0)),
                (false, (state, None)) => known.of(v)[state],
            };
            let weight: f64 = given.iter().map(likelihood).product();
            if weight > 0.0 {
                rows += weight;
                for (v, seen) in seen.iter_mut().enumerate().filter(|(v, _)| !row.unobserved.contains(v)) {
                    seen[state(v).0] += weight;
                }
            }
            Ok(())
        })?;
        Ok(Counted { rows, of, unknown, seen })
    }
}

/// Rows that agree with the evidence.
struct Counted {
    /// How many, by weight.
    rows: f64,
    /// Of so many.
    of: u64,
    /// Rows whose given cells are not known.
    unknown: u64,
    /// What they have in every column, by state.
    seen: Vec<Vec<f64>>,
}

/// A schema whose bins are cut where ranges of the evidence begin and end.
struct Cut {
    schema: Arc<Schema>,
    /// Of every column that was cut: of each of its states now, which one it was, and is it inside the range?
    columns: Vec<(usize, Vec<(usize, bool)>)>,
}

impl Cut {
    fn of(schema: &Arc<Schema>, evidence: &Evidence<'_>) -> Self {
        let mut cut = (**schema).clone();
        let mut columns = Vec::new();
        for (v, variable) in cut.variables.iter_mut().enumerate() {
            let (Some(range), States::Bins(edges)) = (evidence.range(v), &mut variable.states) else {
                continue;
            };
            let before = edges.clone();
            edges.extend(range.cuts());
            edges.sort_by(f64::total_cmp);
            edges.dedup();
            // A bin begins at its lower edge.
            let of_bin = |bin: usize| {
                let low = bin.checked_sub(1).map_or(f64::NEG_INFINITY, |below| edges[below]);
                let inside = match edges.get(bin) {
                    _ if low.is_finite() => range.contains(low),
                    Some(high) => range.contains(high.next_down()),
                    None => true,
                };
                (before.partition_point(|edge| *edge <= low), inside)
            };
            let mut states: Vec<(usize, bool)> = (0..=edges.len()).map(of_bin).collect();
            if variable.missing {
                states.push((before.len() + 1, false));
            }
            columns.push((v, states));
        }
        Self { schema: Arc::new(cut), columns }
    }

    /// The state that a column has in the model, and is it in the range, if there is one?
    fn state(&self, variable: usize, state: usize) -> (usize, Option<bool>) {
        match self.columns.iter().find(|(v, _)| *v == variable) {
            Some((_, states)) => (states[state].0, Some(states[state].1)),
            None => (state, None),
        }
    }
}

/// All values of a column. "Missing" is one of them where it is asked for, known, or all there is.
fn all_values(
    schema: &Schema,
    known: &Evidence<'_>,
    variable: usize,
    missing_as_state: bool,
) -> impl Iterator<Item = TargetState> + use<> {
    let column = &schema.variables[variable];
    let known_missing = known.likelihoods().state(variable) == Some(column.states.len());
    let with_missing = missing_as_state || column.states.is_empty() || known_missing;
    let states = if with_missing { column.len() } else { column.states.len() };
    (0..states).map(move |state| TargetState { variable, state, observed: !with_missing })
}

/// What a posterior says of the values that are asked for.
fn answers(schema: &Schema, found: &Posterior, targets: &[TargetState]) -> Vec<ValueAnswer> {
    let answer = |target: &TargetState| {
        let variable = &schema.variables[target.variable];
        let states = &found.states[target.variable];
        let observed = match target.observed {
            true => variable.states.len(),
            false => states.len(),
        };
        ValueAnswer {
            variable: variable.name.clone(),
            value: variable.label(target.state),
            state: target.state,
            probability: among(states, observed, target.state),
            observed: None,
        }
    };
    targets.iter().map(answer).collect()
}

/// The probability of a state among the first so many. These are added up: 1 less what the others have would be 0 where they have
/// nearly all. The error is at most this large, however the probabilities depend on each other.
fn among(states: &[Estimate], first: usize, state: usize) -> Estimate {
    let value = states[state];
    let others: f64 = states[first..].iter().map(|other| other.value).sum();
    let sum: f64 = states[..first].iter().map(|state| state.value).sum();
    if others == 0.0 || sum == 0.0 {
        return value;
    }
    let p = value.value / sum;
    let of_others: f64 = states[first..].iter().map(|other| other.standard_error).sum();
    Estimate { value: p.min(1.0), standard_error: (value.standard_error + p * of_others) / sum }
}

/// The answer to a [`Query`]. It prints as a table.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let answer = model.query().given("smoker", "no")?.run()?;
/// assert_eq!(answer.values.len(), 2); // both values of "cough"
/// assert!(answer.log_evidence.value < 0.0);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The values that were asked for, column by column.
    pub values: Vec<ValueAnswer>,
    /// How they were found.
    pub method: Method,
    /// Trees that were drawn, or steps of chains.
    pub trees: usize,
    /// How many independent draws they are worth.
    pub effective_sample_size: f64,
    /// The logarithm of the probability of the evidence.
    pub log_evidence: Estimate,
    /// How well chains agree, if there were some.
    pub r_hat: Option<f64>,
    /// Was the method chosen here?
    pub chosen: bool,
    /// The edges of the tree, if they were asked for.
    pub edges: Option<EdgeAnswer>,
    /// The rows of a table that agree with the evidence, if there was one.
    pub matching: Option<Matching>,
}

/// The probability of one value of a column.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let answer = model.query().target("cough")?.run()?;
/// assert_eq!((answer.values[0].variable.as_str(), answer.values[0].value.as_str()), ("cough", "no"));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValueAnswer {
    /// The column.
    pub variable: String,
    /// The label of the value; empty for missing.
    pub value: String,
    /// Its place among the values of the column.
    pub state: usize,
    /// How probable it is.
    pub probability: Estimate,
    /// Its share among the rows of a table that agree with the evidence, if there was one and there are any.
    pub observed: Option<f64>,
}

/// The rows of a table that agree with the evidence of a [`Query`].
///
/// ```
/// # use everytree::{Dataset, Fit, ReadOptions};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let query = model.query().given("smoker", "no")?;
/// let mut answer = query.run()?;
/// query.beside(&mut answer, &data, &ReadOptions::default().text()?)?;
/// assert_eq!(answer.matching.unwrap().rows, 20.0);
/// assert_eq!(answer.values[0].observed, Some(1.0)); // cough = no
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Matching {
    /// How many there are; where evidence is soft, or cuts a bin, by their likelihoods.
    pub rows: f64,
    /// Rows of the table.
    pub of: u64,
    /// Rows with a value of a given column that the model does not know: they are not counted.
    pub unknown: u64,
}

/// The edges of the tree, given the evidence.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let answer = model.query().no_targets().edges(true).run()?;
/// println!("{}", answer.edges.unwrap()); // a table
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EdgeAnswer {
    /// The most probable first.
    pub edges: Vec<TreeEdge>,
    /// How they were found.
    pub method: Method,
    /// Trees that were drawn, or steps of chains.
    pub trees: usize,
    /// How many independent draws they are worth.
    pub effective_sample_size: f64,
}

impl Answer {
    /// How probable a value is, if it was asked for.
    pub fn probability(&self, column: &str, value: &str) -> Option<f64> {
        self.estimate(column, value).map(|estimate| estimate.value)
    }

    /// The same with its standard error.
    pub fn estimate(&self, column: &str, value: &str) -> Option<Estimate> {
        let wanted = |answer: &&ValueAnswer| answer.variable == column && answer.value == value;
        self.values.iter().find(wanted).map(|answer| answer.probability)
    }
}

/// Edges that a table shows.
const SHOWN: usize = 20;
/// Values of a column that a table shows.
const SHOWN_VALUES: usize = 12;

/// A table: the most probable values of every column (`{:#}`: all of them).
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.values.chunk_by(|one, next| one.variable == next.variable);
        let lines: Vec<Shown> = columns.flat_map(|values| shown(values, f.alternate())).collect();
        let width = column_width(lines.iter().map(|line| line.variable.chars().count()));
        let values = column_width(lines.iter().map(|line| line.value.chars().count()));
        // Errors that round to nothing are nothing.
        let error = |error: f64| if error < 0.00005 { String::new() } else { format!("  ± {error:.4}") };
        let errors = column_width(lines.iter().map(|line| error(line.error).chars().count()));
        if self.matching.is_some() {
            let heads = format!("{:width$}  {:values$}  {:>6}{:errors$}  {:>6}", "", "", "model", "", "data");
            writeln!(f, "{heads}")?;
        }
        for line in &lines {
            let data = match (self.matching, line.observed) {
                (None, _) => String::new(),
                (Some(_), Some(share)) => format!("  {share:.4}"),
                (Some(_), None) => format!("  {:>6}", "–"),
            };
            let bar = "█".repeat((line.p * 30.0).round() as usize);
            let Shown { variable, value, p, .. } = line;
            let error = error(line.error);
            let text = format!("{variable:<width$}  {value:<values$}  {p:.4}{error:<errors$}{data}  {bar}");
            writeln!(f, "{}", text.trim_end())?;
        }
        writeln!(f, "\n{}", self.how())?;
        if let Some(Matching { rows, of, unknown }) = self.matching {
            let rows = match rows.fract() == 0.0 {
                true => count(rows as usize),
                false => format!("about {rows:.1}"),
            };
            let agree = if rows == "1" { "agrees" } else { "agree" };
            writeln!(f, "{rows} of {} in the data {agree} with the evidence", plural(of as usize, "row"))?;
            if unknown > 0 {
                let (rows, have) =
                    (plural(unknown as usize, "row"), if unknown == 1 { "has" } else { "have" });
                writeln!(
                    f,
                    "{rows} {have} a value of a given column that the model does not know: not counted"
                )?;
            }
        }
        if let Some(edges) = &self.edges {
            write!(f, "\n{edges}")?;
        }
        Ok(())
    }
}

/// A line of the table.
struct Shown {
    /// Empty but for the first of a column.
    variable: String,
    value: String,
    p: f64,
    error: f64,
    observed: Option<f64>,
}

/// The values of one column: in their order, the most probable of them, and all others together.
fn shown(values: &[ValueAnswer], all: bool) -> Vec<Shown> {
    let mut by_p: Vec<usize> = (0..values.len()).collect();
    by_p.sort_by(|&a, &b| values[b].probability.value.total_cmp(&values[a].probability.value));
    // One more is as short as a line about it.
    let most = if all || values.len() <= SHOWN_VALUES + 1 { values.len() } else { SHOWN_VALUES };
    let (first, rest) = by_p.split_at(most);
    let mut first = first.to_vec();
    first.sort_unstable();
    let mut lines: Vec<Shown> = first
        .iter()
        .map(|&place| {
            let ValueAnswer { value, probability, observed, .. } = &values[place];
            let value = if value.is_empty() { "(missing)".to_owned() } else { value.clone() };
            let (p, error) = (probability.value, probability.standard_error);
            Shown { variable: String::new(), value, p, error, observed: *observed }
        })
        .collect();
    if !rest.is_empty() {
        let sum = |of: fn(&ValueAnswer) -> f64| rest.iter().map(|&place| of(&values[place])).sum::<f64>();
        let seen = rest.iter().any(|&place| values[place].observed.is_some());
        lines.push(Shown {
            variable: String::new(),
            value: format!("({} others)", rest.len()),
            p: sum(|value| value.probability.value),
            // At most this large, however they depend on each other.
            error: sum(|value| value.probability.standard_error),
            observed: seen.then(|| sum(|value| value.observed.unwrap_or(0.0))),
        });
    }
    if let (Some(line), Some(value)) = (lines.first_mut(), values.first()) {
        line.variable.clone_from(&value.variable);
    }
    lines
}

impl Answer {
    /// How it was found, in words.
    fn how(&self) -> String {
        let Estimate { value: evidence, standard_error } = self.log_evidence;
        // Not "-0.0000" of what is certain, but for rounding.
        let evidence = if evidence.abs() < 5e-5 { 0.0 } else { evidence };
        let effective = count(self.effective_sample_size as usize);
        let error = if standard_error < 5e-5 { String::new() } else { format!(" ± {standard_error:.4}") };
        match self.method {
            Method::Exact => format!("exact under the model; log P(evidence) {evidence:.4}"),
            Method::Gibbs | Method::BlockGibbs => format!(
                "{} of {} steps in all, effective sample size {effective}, R-hat {:.3}; log P(evidence) {evidence:.4}{error}",
                if self.method == Method::Gibbs { "Gibbs chains" } else { "block Gibbs chains" },
                count(self.trees),
                self.r_hat.unwrap_or(f64::NAN),
            ),
            method => format!(
                "{} random trees ({}), effective sample size {effective}; log P(evidence) {evidence:.4}{error}",
                count(self.trees),
                method.as_str(),
            ),
        }
    }
}

impl fmt::Display for EdgeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "edges of the tree, given the evidence:")?;
        for edge in self.edges.iter().take(SHOWN) {
            let words = match (&edge.from, edge.directed) {
                (None, _) => format!("{} is a root", edge.to),
                (Some(from), true) => format!("{from} → {}", edge.to),
                (Some(from), false) => format!("{from} - {}", edge.to),
            };
            let error = match edge.probability.standard_error {
                error if error < 0.00005 => String::new(),
                error => format!(" ± {error:.4}"),
            };
            writeln!(f, "  {:.4}{error}  {words}", edge.probability.value)?;
        }
        if self.edges.len() > SHOWN {
            writeln!(f, "  … and {} more", count(self.edges.len() - SHOWN))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_show_the_most_probable_values_and_the_rest_as_one() {
        let value = |state: usize| ValueAnswer {
            variable: "job".into(),
            value: format!("j{state:02}"),
            state,
            probability: Estimate { value: (state + 1) as f64 / 210.0, standard_error: 1e-6 },
            observed: None,
        };
        let mut answer = Answer {
            values: (0..20).map(value).collect(),
            method: Method::Exact,
            trees: 0,
            effective_sample_size: 0.0,
            log_evidence: Estimate { value: -1.0, standard_error: 0.0 },
            r_hat: None,
            chosen: true,
            edges: None,
            matching: None,
        };
        let text = answer.to_string();
        assert_eq!(
            text.lines().filter(|line| line.contains("j0") || line.contains("j1")).count(),
            12,
            "{text}"
        );
        assert!(text.contains("(8 others)  0.1714") && !text.contains('±'), "{text}");
        assert!(text.contains("exact under the model"));
        assert!(format!("{answer:#}").contains("j00"));
        answer.values.truncate(13);
        assert!(!answer.to_string().contains("others"));
    }

    #[test]
    fn values_are_compared_among_those_observed_however_rare_they_are() {
        let exact = |value: f64| Estimate { value, standard_error: 0.0 };
        let states = [exact(1e-30), exact(3e-30), exact(1.0)];
        let found = [0, 1].map(|state| among(&states, 2, state).value);
        assert!((found[0] - 0.25).abs() < 1e-15 && (found[1] - 0.75).abs() < 1e-15, "{found:?}");
        assert_eq!(among(&states, 3, 2), exact(1.0));
        let halves = [Estimate { value: 0.25, standard_error: 0.01 }, exact(0.25), exact(0.5)];
        let found = among(&halves, 2, 0);
        assert!((found.value - 0.5).abs() < 1e-15 && (found.standard_error - 0.02).abs() < 1e-15);
    }
}
