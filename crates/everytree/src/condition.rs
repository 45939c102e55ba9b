//! What can be said of one column, and how it is written.
//!
//! ```text
//! smoker=yes            has this value
//! smoker=               is missing
//! smoker!=yes           has another value
//! job in {nurse, cook}  has one of these values
//! age in 30..40         is a number between, both ends included; either end may be left out
//! age>30                and >=, <, <=
//! job~nurse:3,cook:1    likelihoods: what was seen speaks three times as much for a nurse; values not listed weigh 0
//! ```
//!
//! Names and values with signs of their own stand in double quotes, in which a quote is doubled.

use crate::error::Kind;
use crate::{Error, Result};
use everytree_core::data::{Interval, Schema, States, Variable};

/// What is known of one column.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("age", cells("20", "30"))])?;
/// # let model = Fit::new().family("moat").epochs(1).run(&data)?;
/// use everytree::Condition;
///
/// let (column, condition) = Condition::parse(model.schema(), "age in 15..25")?;
/// assert_eq!(condition, Condition::between(15.0, 25.0));
/// let evidence = model.evidence().given_that(&column, condition)?;
/// assert_eq!(model.query().evidence(evidence).target("smoker")?.run()?.values.len(), 2);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Condition {
    /// One of these values; `None` is a missing cell.
    In(Vec<Option<String>>),
    /// Observed, and none of these values; of `None` alone: observed.
    NotIn(Vec<Option<String>>),
    /// A number in a range.
    Range(Range),
    /// Likelihoods of values; those that are not listed have none.
    Likelihoods(Vec<(String, f64)>),
}

/// A range of numbers. Either end may be open, and may be part of it.
///
/// ```
/// use everytree::Range;
///
/// assert!(Range::from(1.0..=2.0).contains(2.0) && !Range::from(1.0..2.0).contains(2.0));
/// assert!(Range::from(..2.0).contains(-1e9) && Range::from(3.0..).contains(3.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end, and is it part of the range?
    low: (f64, bool),
    /// The upper end, and is it part of the range?
    high: (f64, bool),
}

const EVERYTHING: Range = Range { low: (f64::NEG_INFINITY, true), high: (f64::INFINITY, true) };

impl From<std::ops::RangeInclusive<f64>> for Range {
    fn from(range: std::ops::RangeInclusive<f64>) -> Self {
        Self { low: (*range.start(), true), high: (*range.end(), true) }
    }
}

impl From<std::ops::Range<f64>> for Range {
    fn from(range: std::ops::Range<f64>) -> Self {
        Self { low: (range.start, true), high: (range.end, false) }
    }
}

impl From<std::ops::RangeFrom<f64>> for Range {
    fn from(range: std::ops::RangeFrom<f64>) -> Self {
        Self { low: (range.start, true), ..EVERYTHING }
    }
}

impl From<std::ops::RangeTo<f64>> for Range {
    fn from(range: std::ops::RangeTo<f64>) -> Self {
        Self { high: (range.end, false), ..EVERYTHING }
    }
}

impl From<std::ops::RangeToInclusive<f64>> for Range {
    fn from(range: std::ops::RangeToInclusive<f64>) -> Self {
        Self { high: (range.end, true), ..EVERYTHING }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.low, self.high) {
            ((low, true), (high, true)) if low.is_finite() && high.is_finite() => write!(f, "{low}..{high}"),
            ((low, inside), (f64::INFINITY, _)) => write!(f, "{} {low}", if inside { ">=" } else { ">" }),
            ((f64::NEG_INFINITY, _), (high, inside)) => {
                write!(f, "{} {high}", if inside { "<=" } else { "<" })
            }
            ((low, from), (high, to)) => {
                write!(f, "{}{low}, {high}{}", if from { "[" } else { "(" }, if to { "]" } else { ")" })
            }
        }
    }
}

impl Range {
    /// From one end to the other, each with whether it is part of the range.
    ///
    /// ```
    /// assert!(everytree::Range::new((1.0, false), (2.0, true)).contains(2.0));
    /// ```
    pub fn new(low: (f64, bool), high: (f64, bool)) -> Self {
        Self { low, high }
    }

    /// All numbers above one.
    ///
    /// ```
    /// assert!(!everytree::Range::above(2.0).contains(2.0));
    /// ```
    pub fn above(low: f64) -> Self {
        Self { low: (low, false), ..EVERYTHING }
    }

    /// Is a number in it?
    pub fn contains(&self, x: f64) -> bool {
        let Self { low: (low, from), high: (high, to) } = *self;
        (low < x || (from && low == x)) && (x < high || (to && x == high))
    }

    pub(crate) fn interval(&self) -> Interval {
        Interval { low: self.low, high: self.high }
    }

    /// What is in both.
    pub(crate) fn and(self, other: Self) -> Self {
        let low = match self.low.0.total_cmp(&other.low.0) {
            std::cmp::Ordering::Less => other.low,
            std::cmp::Ordering::Greater => self.low,
            std::cmp::Ordering::Equal => (self.low.0, self.low.1 && other.low.1),
        };
        let high = match self.high.0.total_cmp(&other.high.0) {
            std::cmp::Ordering::Less => self.high,
            std::cmp::Ordering::Greater => other.high,
            std::cmp::Ordering::Equal => (self.high.0, self.high.1 && other.high.1),
        };
        Self { low, high }
    }

    /// The likelihood of every state of a column: 1 for numbers inside, and for a bin the share of its rows that lies inside.
    pub(crate) fn likelihoods(&self, variable: &Variable) -> Result<Vec<f64>> {
        let inside = |x: f64| if self.contains(x) { 1.0 } else { 0.0 };
        let mut likelihoods: Vec<f64> = match &variable.states {
            States::Integers(values) => values.iter().map(|&value| inside(value as f64)).collect(),
            States::Reals(values) => values.iter().map(|&value| inside(value)).collect(),
            States::Bins(edges) => {
                let (range, shift) = self.widened(variable, edges);
                (0..=edges.len()).map(|bin| range.share_of_bin(variable, edges, bin, shift)).collect()
            }
            States::Numbers(cells) => {
                (0..cells.len()).map(|state| cells.share(state, self.interval())).collect()
            }
            States::Booleans(_) | States::Texts(_) | States::Others(_) => {
                let column = variable.name.clone();
                return Err(Kind::NoNumbers { column, range: self.to_string() }.into());
            }
        };
        if likelihoods.iter().all(|&likelihood| likelihood == 0.0) {
            let (column, known) = (variable.name.clone(), variable.labels());
            let numbers = match (&variable.states, &variable.quantiles[..]) {
                (States::Bins(_), [least, .., most]) => {
                    let [least, most] = [least, most].map(|end| variable.format.write(*end));
                    format!("its numbers are from {least} to {most}")
                }
                _ => format!("known: {}", crate::error::quoted(&known)),
            };
            return Err(Kind::EmptyRange { column, range: self.to_string(), numbers, known }.into());
        }
        likelihoods.resize(variable.len(), 0.0);
        Ok(likelihoods)
    }

    /// Of a column of whole numbers: every number that is meant with half of the way to its neighbours, and how far edges of bins
    /// are to be shifted for it.
    fn widened(&self, variable: &Variable, edges: &[f64]) -> (Self, f64) {
        let mut known = variable.quantiles.iter().chain(edges);
        if variable.quantiles.len() < 2 || !known.all(|x| x.fract() == 0.0) {
            return (*self, 0.0);
        }
        // Between two whole numbers: those inside are meant.
        let low = match self.low {
            (x, true) => x.ceil() - 0.5,
            (x, false) => x.floor() + 0.5,
        };
        let high = match self.high {
            (x, true) => x.floor() + 0.5,
            (x, false) => x.ceil() - 0.5,
        };
        (Self { low: (low, true), high: (high, false) }, 0.5)
    }

    /// Numbers at which bins are to be cut so that each is inside as a whole, or not at all.
    pub(crate) fn cuts(&self) -> Vec<f64> {
        let after = |(x, inside): (f64, bool)| if inside { x } else { x.next_up() };
        let before = |(x, inside): (f64, bool)| if inside { x.next_up() } else { x };
        [after(self.low), before(self.high)].into_iter().filter(|x| x.is_finite()).collect()
    }

    /// A number of a bin that lies inside: a quantile of the column near the middle of both, else an end of the range.
    pub(crate) fn number_in_bin(&self, variable: &Variable, bin: usize) -> Option<f64> {
        let States::Bins(edges) = &variable.states else { return None };
        let low = bin.checked_sub(1).map_or(f64::NEG_INFINITY, |below| edges[below]);
        let high = edges.get(bin).copied().unwrap_or(f64::INFINITY);
        let both = self.and(Range { low: (low, true), high: (high, false) });
        let inside: Vec<f64> =
            variable.quantiles.iter().copied().filter(|number| both.contains(*number)).collect();
        let ends = [both.low.0, both.high.0];
        let end = ends.into_iter().find(|end| end.is_finite() && both.contains(*end));
        let between = Some((ends[0] + ends[1]) / 2.0).filter(|middle| both.contains(*middle));
        inside.get(inside.len() / 2).copied().or(end).or(between)
    }

    /// Which share of the rows of a bin lies inside, by the quantiles of the column.
    fn share_of_bin(&self, variable: &Variable, edges: &[f64], bin: usize, shift: f64) -> f64 {
        let below = bin.checked_sub(1).map_or(f64::NEG_INFINITY, |below| edges[below] - shift);
        let above = edges.get(bin).map_or(f64::INFINITY, |edge| edge - shift);
        let own = Range { low: (below, true), high: (above, false) };
        let both = self.and(own);
        if both == own {
            return 1.0;
        }
        if both.low.0 > both.high.0 || (both.low.0 == both.high.0 && !(both.low.1 && both.high.1)) {
            return 0.0;
        }
        let rows = |range: &Range| rows_in(range, &variable.quantiles, edges);
        let all = rows(&own);
        if all > 0.0 { (rows(&both) / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// The share of all rows in a range, between quantiles in proportion.
fn rows_in(range: &Range, quantiles: &[f64], edges: &[f64]) -> f64 {
    // A model of an earlier version has the edges only: bins have as many rows as each other.
    let known = if quantiles.len() > 1 { quantiles } else { edges };
    let Some(last) = known.len().checked_sub(1).filter(|&last| last > 0) else { return 0.0 };
    // How many of the quantiles are below a number (or not above it), and in between in proportion.
    let below = |x: f64, inclusive: bool| -> f64 {
        let before = known.partition_point(|&q| if inclusive { q <= x } else { q < x });
        match before {
            0 => 0.0,
            place if place > last => 1.0,
            place => {
                let (low, high) = (known[place - 1], known[place]);
                let part = if high > low { ((x - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
                ((place - 1) as f64 + part) / last as f64
            }
        }
    };
    let (low, high) = (below(range.low.0, !range.low.1), below(range.high.0, range.high.1));
    (high - low).max(0.0)
}

impl Condition {
    /// The column has this value.
    ///
    /// ```
    /// assert_eq!(everytree::Condition::is("yes"), everytree::Condition::In(vec![Some("yes".into())]));
    /// ```
    pub fn is(value: impl Into<String>) -> Self {
        Self::In(vec![Some(value.into())])
    }

    /// The column has another value.
    ///
    /// ```
    /// assert_eq!(everytree::Condition::is_not("yes"), everytree::Condition::NotIn(vec![Some("yes".into())]));
    /// ```
    pub fn is_not(value: impl Into<String>) -> Self {
        Self::NotIn(vec![Some(value.into())])
    }

    /// A number between two, both included.
    pub fn between(low: f64, high: f64) -> Self {
        Self::Range((low..=high).into())
    }

    /// A column and what is said of it, as people write it.
    pub fn parse(schema: &Schema, text: &str) -> Result<(String, Self)> {
        let problem =
            |problem: String| -> Error { Kind::Condition { text: text.to_owned(), problem }.into() };
        let (name, rest) = column(schema, text).map_err(&problem)?;
        let Some((operator, value)) = operator(rest) else {
            return Err(problem(no_operator(schema, &name, rest)));
        };
        let Some(place) = schema.position(&name) else {
            if let Some(turned) = turned(schema, &name, operator, value) {
                return Err(problem(format!("the column comes first: {turned}")));
            }
            if let Some(said) = not_in(schema, &name, operator, value) {
                return Err(problem(format!("\"not in\" is written !=, as in {said}")));
            }
            return Err(crate::evidence::no_column(schema, &name));
        };
        let variable = &schema.variables[place];
        let value = value.trim();
        let number = |text: &str| -> Result<f64> {
            let text = text.trim();
            let plain = || text.parse::<f64>().ok().filter(|x| !x.is_nan());
            variable
                .format
                .parse_cell(text)
                .or_else(plain)
                .ok_or_else(|| problem(format!("{text:?} is not a number")))
        };
        if let Some((low, high)) = value.split_once("..").filter(|_| operator == Operator::Is)
            && !variable.labels().iter().any(|label| label == value)
            && [low, high].iter().all(|end| end.trim().is_empty() || number(end).is_ok())
        {
            return Err(problem(format!("a range follows \"in\": {name} in {value}")));
        }
        let condition = match operator {
            Operator::Is => Self::In(values(variable, &schema.missing, value).map_err(&problem)?),
            Operator::IsNot => Self::NotIn(values(variable, &schema.missing, value).map_err(&problem)?),
            Operator::Above => Self::Range(Range::above(number(value)?)),
            Operator::AtLeast => Self::Range((number(value)?..).into()),
            Operator::Below => Self::Range((..number(value)?).into()),
            Operator::AtMost => Self::Range((..=number(value)?).into()),
            Operator::Likelihoods => Self::Likelihoods(weights(value).map_err(&problem)?),
            Operator::In => match value.strip_prefix('{') {
                Some(list) => {
                    let list = list
                        .strip_suffix('}')
                        .ok_or_else(|| problem("the brace is not closed".to_owned()))?;
                    if list.trim().is_empty() {
                        let words = "there is no value between the braces; a missing cell is COLUMN=";
                        return Err(problem(words.to_owned()));
                    }
                    Self::In(values(variable, &schema.missing, list).map_err(&problem)?)
                }
                None => {
                    let (low, high) = value
                        .split_once("..")
                        .ok_or_else(|| problem("{VALUE, VALUE} or A..B is needed after \"in\"".to_owned()))?;
                    let end = |text: &str, open: f64| match text.trim() {
                        "" => Ok(open),
                        text => number(text),
                    };
                    let (low, high) =
                        (end(low, f64::NEG_INFINITY)?, end(high.trim_start_matches('='), f64::INFINITY)?);
                    if low > high && value.contains("...") {
                        return Err(problem("two points are between the numbers: A..B".to_owned()));
                    }
                    if low > high {
                        return Err(problem(format!("the smaller number comes first: {high}..{low}")));
                    }
                    Self::between(low, high)
                }
            },
        };
        Ok((name, condition))
    }
}

/// What stands between a column and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    In,
    Above,
    AtLeast,
    Below,
    AtMost,
    Likelihoods,
}

/// The longer ones first.
const OPERATORS: [(&str, Operator); 9] = [
    ("!=", Operator::IsNot),
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("==", Operator::Is),
    ("=", Operator::Is),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("~", Operator::Likelihoods),
    (" in ", Operator::In),
];

/// The operator that a text begins with, and what follows it.
fn operator(text: &str) -> Option<(Operator, &str)> {
    let bare = text.trim_start();
    if let Some(rest) = bare.strip_prefix("in")
        && bare.len() < text.len()
        && rest.starts_with([' ', '{'])
    {
        return Some((Operator::In, rest));
    }
    OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, bare.strip_prefix(sign)?)))
}

/// The column that a text begins with, and what follows it: in quotes, or the longest name before an operator.
fn column<'a>(schema: &Schema, text: &'a str) -> Result<(String, &'a str), String> {
    let trimmed = text.trim_start();
    let names = schema.variables.iter().map(|variable| &variable.name);
    let fits =
        |name: &&String| trimmed.strip_prefix(name.as_str()).is_some_and(|rest| operator(rest).is_some());
    if let Some(name) = names.clone().filter(fits).max_by_key(|name| name.len()) {
        return Ok((name.clone(), &trimmed[name.len()..]));
    }
    if trimmed.starts_with('"') {
        let (name, rest) = quoted(trimmed)?;
        return Ok((name, rest));
    }
    // Whatever stands before the first operator is no column: it will be said so.
    let place = OPERATORS.iter().filter_map(|(sign, _)| trimmed.find(sign)).min();
    let place = place.unwrap_or(trimmed.len());
    Ok((trimmed[..place].trim_end().to_owned(), &trimmed[place..]))
}

/// What follows a word, however it is written.
fn word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_start();
    let begin = text.get(..word.len())?;
    begin.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// `vote not in {Y}`, as it is to be written.
fn not_in(schema: &Schema, name: &str, operator: Operator, value: &str) -> Option<String> {
    let column = name.get(..name.len().checked_sub(" not".len())?)?;
    let is_not = operator == Operator::In && word(&name[column.len()..], "not").is_some();
    let list = value.trim().trim_matches(['{', '}']).trim();
    let place = schema.position(column.trim_end()).filter(|_| is_not)?;
    Some(format!("{}!={list}", schema.variables[place].name))
}

/// `30<age`, as it is to be written.
fn turned(schema: &Schema, number: &str, operator: Operator, column: &str) -> Option<String> {
    let sign = match operator {
        Operator::Above => "<",
        Operator::AtLeast => "<=",
        Operator::Below => ">",
        Operator::AtMost => ">=",
        _ => return None,
    };
    number.parse::<f64>().ok()?;
    schema.position(column).map(|_| format!("{column}{sign}{number}"))
}

/// What is said where there is no operator.
fn no_operator(schema: &Schema, name: &str, rest: &str) -> String {
    let said = if rest.trim().is_empty() { name.to_owned() } else { format!("{name}{rest}") };
    let begins =
        schema.variables.iter().map(|variable| &variable.name).filter(|name| said.starts_with(*name));
    let hint = match begins.max_by_key(|name| name.len()) {
        Some(name) if word(&said[name.len()..], "in ").is_some() => {
            return format!(
                "\"in\" is written in small letters: {name} in {}",
                said[name.len() + 3..].trim_start()
            );
        }
        Some(name) => format!(
            ": {name}=VALUE, {name}!=VALUE, {name} in {{VALUE, VALUE}}, {name} in A..B, {name}>NUMBER"
        ),
        None => ", as in COLUMN=VALUE".to_owned(),
    };
    format!("an operator is needed{hint} (in quotes: > is a sign of the shell)")
}

/// A text in double quotes, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut found = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.find('"').ok_or("the quote is not closed")?;
        found.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                found.push('"');
                rest = more;
            }
            None => return Ok((found, rest)),
        }
    }
}

/// How answers name the state of a missing cell.
const MISSING: &str = "(missing)";

/// One value, or several with commas between; in quotes, or as they are. A label may have commas of its own: the longest that fits
/// is meant. Nothing is a missing cell.
fn values(variable: &Variable, missing: &[String], text: &str) -> Result<Vec<Option<String>>, String> {
    let known = variable.labels();
    // A number may have commas of its own too.
    let is_number = |text: &str| !variable.format.is_plain() && variable.format.parse(text).is_some();
    let is_known = |text: &str| {
        known.iter().any(|label| label == text) || missing.iter().any(|na| na == text) || is_number(text)
    };
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let bare = rest.trim_start();
        if bare.starts_with('"') && !is_known(bare.trim_end()) {
            let (value, after) = quoted(bare)?;
            found.push(Some(value));
            match after.trim_start() {
                "" => return Ok(found),
                after => {
                    rest = after.strip_prefix(',').ok_or(format!("a comma is needed before {after:?}"))?
                }
            }
            continue;
        }
        let ends = rest.match_indices(',').map(|(place, _)| place).chain([rest.len()]);
        let ends: Vec<usize> = ends.collect();
        // What is no label as it stands may be a number that is written otherwise: one part alone.
        let end = ends.iter().rev().find(|&&end| is_known(rest[..end].trim())).unwrap_or(&ends[0]);
        let value = rest[..*end].trim();
        let stands_for_missing = || value == MISSING || missing.iter().any(|na| na == value);
        let is_missing = value.is_empty() || (!known.iter().any(|l| l == value) && stands_for_missing());
        found.push(if is_missing { None } else { Some(value.to_owned()) });
        if *end == rest.len() {
            return Ok(found);
        }
        rest = &rest[end + 1..];
    }
}

/// Values with their likelihoods: `VALUE:WEIGHT, VALUE:WEIGHT`.
fn weights(text: &str) -> Result<Vec<(String, f64)>, String> {
    let needed = || {
        "VALUE:WEIGHT, VALUE:WEIGHT is needed; values with commas or colons stand in double quotes".to_owned()
    };
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (value, after) = match rest.starts_with('"') {
            true => quoted(rest)?,
            false => {
                let part = rest.split(',').next().unwrap_or_default();
                let place = part.rfind(':').ok_or_else(needed)?;
                (rest[..place].trim().to_owned(), &rest[place..])
            }
        };
        let after = after.trim_start().strip_prefix(':').ok_or_else(needed)?;
        let (weight, more) = after.split_once(',').unwrap_or((after, ""));
        let number = weight.trim().parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight >= 0.0);
        let number =
            number.ok_or_else(|| format!("{:?} is no weight: a number, not negative", weight.trim()))?;
        if found.iter().any(|(other, _)| *other == value) {
            return Err(format!("{value:?} has two weights"));
        }
        found.push((value, number));
        rest = more.trim_start();
    }
    match found.iter().any(|(_, weight)| *weight > 0.0) {
        true => Ok(found),
        false => Err("at least one weight above 0 is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everytree_core::data::Variable;

    fn schema() -> Schema {
        let mut schema = Schema::anonymous(&[]);
        let texts = |labels: &[&str]| States::Texts(labels.iter().map(|label| (*label).to_owned()).collect());
        let mut size = Variable::new("size", States::Bins(vec![10.0, 20.0, 30.0]), true);
        size.quantiles = (0..=80).map(|half| f64::from(half) / 2.0).collect();
        schema.variables = vec![
            Variable::new("smoker", texts(&["no", "yes"]), false),
            Variable::new("a=b", texts(&["\"q\"", "x", "x,y", "{z}"]), false),
            Variable::new("age", States::Integers(vec![20, 30, 40]), true),
            Variable::new("body mass", States::Reals(vec![1.5, 2.5]), false),
            size,
            Variable::new("in", texts(&["a", "b"]), false),
        ];
        schema.missing = vec![String::new(), "NA".to_owned()];
        schema
    }

    fn is(values: &[&str]) -> Condition {
        Condition::In(
            values.iter().map(|value| Some((*value).to_owned()).filter(|v| !v.is_empty())).collect(),
        )
    }

    #[test]
    fn conditions_are_read_as_they_are_written() {
        let schema = schema();
        for (text, column, expected) in [
            ("smoker=yes", "smoker", is(&["yes"])),
            (" smoker = yes ", "smoker", is(&["yes"])),
            ("smoker==yes", "smoker", is(&["yes"])),
            ("\"smoker\" = \"yes\"", "smoker", is(&["yes"])),
            ("a=b=x,y", "a=b", is(&["x,y"])),
            ("a=b=x, x,y", "a=b", is(&["x", "x,y"])),
            ("a=b in {x, \"x,y\", {z}}", "a=b", is(&["x", "x,y", "{z}"])),
            ("a=b=\"\"\"q\"\"\"", "a=b", is(&["\"q\""])),
            ("a=b=\"q\"", "a=b", is(&["\"q\""])),
            ("age=", "age", is(&[""])),
            ("age=NA", "age", is(&[""])),
            ("age=20,", "age", is(&["20", ""])),
            ("age!=20", "age", Condition::is_not("20")),
            ("age in 20..30", "age", Condition::between(20.0, 30.0)),
            ("age in ..30", "age", Condition::between(f64::NEG_INFINITY, 30.0)),
            ("age in -1e3 .. 3.5", "age", Condition::between(-1000.0, 3.5)),
            ("body mass>1.5", "body mass", Condition::Range(Range::above(1.5))),
            ("body mass >= 1.5", "body mass", Condition::Range((1.5..).into())),
            ("age<=30", "age", Condition::Range((..=30.0).into())),
            ("age < 30", "age", Condition::Range((..30.0).into())),
            (
                "smoker~yes:3,no:1",
                "smoker",
                Condition::Likelihoods(vec![("yes".into(), 3.0), ("no".into(), 1.0)]),
            ),
            ("a=b ~ \"x,y\":0.5", "a=b", Condition::Likelihoods(vec![("x,y".into(), 0.5)])),
            ("in=a", "in", is(&["a"])),
            ("in in {a}", "in", is(&["a"])),
            ("in in{a,b}", "in", is(&["a", "b"])),
        ] {
            assert_eq!(Condition::parse(&schema, text).unwrap(), (column.to_owned(), expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        let schema = schema();
        for (text, words) in [
            ("smoker", "an operator is needed: smoker=VALUE"),
            ("smoker yes", "an operator is needed: smoker=VALUE"),
            ("smoke=yes", "no column \"smoke\" (did you mean \"smoker\"?"),
            ("age in 20", "A..B is needed"),
            ("age in {20", "the brace is not closed"),
            ("age>old", "\"old\" is not a number"),
            ("smoker=\"yes", "the quote is not closed"),
            ("smoker~yes", "VALUE:WEIGHT"),
            ("smoker~yes:-1", "is no weight"),
            ("smoker~yes:0", "above 0"),
            ("smoker~yes:1,yes:2", "two weights"),
            ("", "an operator is needed"),
            ("=", "no column \"\""),
        ] {
            let error = Condition::parse(&schema, text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    /// Of bins that a range cuts, the share of their rows counts, as a count of uniform rows says.
    #[test]
    fn ranges_cut_bins_by_their_rows() {
        let schema = schema();
        let size = &schema.variables[4];
        for (range, expected) in [
            (Range::from(10.0..20.0), [0.0, 1.0, 0.0, 0.0, 0.0]),
            (Range::from(15.0..25.0), [0.0, 0.5, 0.5, 0.0, 0.0]),
            (Range::from(..5.0), [0.5, 0.0, 0.0, 0.0, 0.0]),
            (Range::from(35.0..), [0.0, 0.0, 0.0, 0.5, 0.0]),
            (Range::from(-100.0..=100.0), [1.0, 1.0, 1.0, 1.0, 0.0]),
        ] {
            let found = range.likelihoods(size).unwrap();
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-12, "{range}: {found:?}");
        }
        let age = Range::above(20.0).likelihoods(&schema.variables[2]).unwrap();
        assert_eq!(age, [0.0, 1.0, 1.0, 0.0]);
        let error = Range::from(50.0..60.0).likelihoods(&schema.variables[2]).unwrap_err().to_string();
        assert!(error.contains("no value"), "{error}");
        let error = Range::above(1.0).likelihoods(&schema.variables[0]).unwrap_err().to_string();
        assert!(error.contains("are not numbers"), "{error}");
    }

    /// Whole numbers: both ends of a range are numbers, against a count of rows.
    #[test]
    fn ranges_of_whole_numbers_have_their_ends() {
        let rows: Vec<f64> = (0..2000).map(|i| f64::from(18 + (i * i * 7 + i * 13) % 53)).collect();
        let mut rising = rows.clone();
        rising.sort_by(f64::total_cmp);
        let edges = vec![25.0, 32.0, 40.0, 55.0];
        let mut age = Variable::new("age", States::Bins(edges.clone()), false);
        age.quantiles = (0..=128).map(|i| rising[i * (rising.len() - 1) / 128]).collect();
        let bin = |x: f64| edges.partition_point(|edge| *edge <= x);
        for range in [
            Range::from(30.0..=30.0),
            Range::from(30.0..),
            Range::above(30.0),
            Range::from(..40.0),
            Range::from(..=40.0),
            Range::from(29.5..=40.2),
        ] {
            let found = range.likelihoods(&age).unwrap();
            for (own, found) in found.iter().enumerate() {
                let of_bin = rows.iter().filter(|x| bin(**x) == own);
                let (inside, all) = (of_bin.clone().filter(|x| range.contains(**x)).count(), of_bin.count());
                let expected = inside as f64 / all as f64;
                // Quantiles say where a number is to about one of them, of some two dozen in a bin.
                assert!((found - expected).abs() < 0.08, "{range}, bin {own}: {found} {expected}");
            }
        }
    }

    /// Whatever is written, it is read or refused.
    #[test]
    fn nothing_that_is_written_panics() {
        let schema = schema();
        let words = [
            "smoker", "a=b", "\"", "\"\"", "=", "!=", " in ", "{", "}", "..", "~", ":", ",", ">", "1", "-",
            "é", "in",
        ];
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..(state % 7) {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(words[(state >> 33) as usize % words.len()]);
            }
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            _ = Condition::parse(&schema, &text);
        }
    }
}
