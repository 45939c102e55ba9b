//! Variables and their states: what a column can hold, and how its cells become codes and labels again.

use super::cells::Bounds;
use super::{Cells, NumberFormat};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// A cell of a table before it has a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing there.
    Missing,
    /// Characters of a text file: perhaps a number, perhaps not.
    Field(&'a str),
    /// Text by its type.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A truth value.
    Boolean(bool),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Missing => Ok(()),
            Cell::Field(text) | Cell::Text(text) => f.write_str(text),
            Cell::Integer(number) => write!(f, "{number}"),
            // With an exponent where it is large: 1e17 is a number, its digits would be a name.
            Cell::Real(number) => write!(f, "{number:?}"),
            Cell::Boolean(value) => write!(f, "{value}"),
        }
    }
}

/// The values that a variable can take, in the order of their codes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum States {
    /// False and true, as they were spelled.
    Booleans([String; 2]),
    /// Whole numbers, rising.
    Integers(Vec<i64>),
    /// Numbers, rising.
    Reals(Vec<f64>),
    /// Texts, in the order of their bytes.
    Texts(Vec<String>),
    /// The most frequent texts, in the order of their bytes, and one state more for all others.
    Others(Vec<String>),
    /// Intervals of numbers: a number is in bin i when i of the edges are not above it.
    Bins(Vec<f64>),
    /// Numbers in cells, with a distribution inside each.
    Numbers(Cells),
}

impl States {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            States::Booleans(_) => 2,
            States::Integers(values) => values.len(),
            States::Reals(values) => values.len(),
            States::Texts(values) => values.len(),
            States::Others(values) => values.len() + 1,
            States::Bins(edges) => edges.len() + 1,
            States::Numbers(cells) => cells.len(),
        }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The label of all texts that are not among the most frequent.
pub const OTHER: &str = "other";

/// A column: its name, its states, and whether "missing" is one more of them (the last).
///
/// ```
/// use everytree_core::data::{States, Variable};
///
/// let smoker = Variable::new("smoker", States::Texts(vec!["no".into(), "yes".into()]), true);
/// assert_eq!(smoker.labels(), ["no", "yes", ""]); // the last one for missing cells
/// let job = Variable::new("job", States::Others(vec!["nurse".into()]), false);
/// assert_eq!(job.labels(), ["nurse", "other"]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "ColumnInFile", try_from = "ColumnInFile")]
#[non_exhaustive]
pub struct Variable {
    /// The name of the column.
    pub name: String,
    /// What was observed in it.
    pub states: States,
    /// Is a missing cell a state of its own?
    pub missing: bool,
    /// How its numbers are written.
    pub format: NumberFormat,
    /// Of a column that was cut into bins: its smallest number, quantiles at equal distances, its largest.
    pub quantiles: Vec<f64>,
}

/// A column as a file has it.
#[derive(Serialize, Deserialize)]
struct ColumnInFile {
    name: String,
    /// What its values are; labels, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    states: States,
    missing: bool,
    #[serde(default, skip_serializing_if = "NumberFormat::is_plain")]
    format: NumberFormat,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quantiles: Vec<f64>,
}

/// What the values of a column are.
fn kind_of(states: &States) -> &'static str {
    match states {
        States::Booleans(_) => "boolean",
        States::Numbers(cells) if cells.decimals() == Some(0) => "integer",
        States::Numbers(_) => "real",
        States::Integers(_) | States::Reals(_) | States::Texts(_) | States::Others(_) | States::Bins(_) => {
            "categorical"
        }
    }
}

impl From<Variable> for ColumnInFile {
    fn from(variable: Variable) -> Self {
        let Variable { name, states, missing, format, quantiles } = variable;
        Self { kind: Some(kind_of(&states).to_owned()), name, states, missing, format, quantiles }
    }
}

impl TryFrom<ColumnInFile> for Variable {
    type Error = String;

    fn try_from(column: ColumnInFile) -> Result<Self, String> {
        let ColumnInFile { name, kind, states, missing, format, quantiles } = column;
        match kind {
            Some(kind) if kind != kind_of(&states) => {
                Err(format!("column {name:?} is of kind {kind:?}, which this version does not know"))
            }
            _ => Ok(Self { name, states, missing, format, quantiles }),
        }
    }
}

impl Variable {
    /// A column with these states, and one more for missing cells or not.
    pub fn new(name: impl Into<String>, states: States, missing: bool) -> Self {
        Self { name: name.into(), states, missing, format: NumberFormat::default(), quantiles: Vec::new() }
    }

    /// How many states there are, with the one for missing cells.
    pub fn len(&self) -> usize {
        self.states.len() + usize::from(self.missing)
    }

    /// Is there no state at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label of a state; empty for missing.
    ///
    /// # Panics
    /// When there is no such state.
    pub fn label(&self, state: usize) -> String {
        if self.missing && state == self.states.len() {
            return String::new();
        }
        match &self.states {
            States::Booleans(labels) => labels[state].clone(),
            States::Integers(values) if self.format.is_plain() => values[state].to_string(),
            States::Integers(values) => self.format.write(values[state] as f64),
            States::Reals(values) => self.format.write(values[state]),
            States::Texts(values) => values[state].clone(),
            States::Others(values) => values.get(state).map_or_else(|| OTHER.to_owned(), String::clone),
            States::Bins(edges) => {
                // As the column writes numbers, so that an edge can be asked about as it is shown.
                let write = |edge: &f64| self.format.write(*edge);
                let below = state.checked_sub(1).map(|below| write(&edges[below]));
                let between = if self.format.has_decimal_comma() { "; " } else { ", " };
                match (below, edges.get(state).map(write)) {
                    (None, None) => "any".to_owned(),
                    (None, Some(above)) => format!("< {above}"),
                    (Some(below), None) => format!(">= {below}"),
                    (Some(below), Some(above)) => format!("[{below}{between}{above})"),
                }
            }
            States::Numbers(cells) => self.label_of_cell(cells, state),
        }
    }

    /// An atom as it is; of numbers on a grid the first and the last of the cell, of others where it begins and ends.
    fn label_of_cell(&self, cells: &Cells, state: usize) -> String {
        let write = |number: f64| self.format.write(number);
        let between = if self.format.has_decimal_comma() { "; " } else { ", " };
        match (cells.bounds(state), cells.decimals()) {
            (Bounds::Atom(number), _) => write(number),
            (Bounds::Below(high), None) => format!("< {}", write(high)),
            (Bounds::From(low), None) => format!(">= {}", write(low)),
            (Bounds::Between(low, high), None) => format!("[{}{between}{})", write(low), write(high)),
            (Bounds::Below(high), Some(_)) => format!("<= {}", write(high)),
            (Bounds::From(low), Some(_)) => format!(">= {}", write(low)),
            (Bounds::Between(low, high), Some(_)) if low == high => write(low),
            (Bounds::Between(low, high), Some(_)) => format!("{}..{}", write(low), write(high)),
        }
    }

    /// A cell that has this state, as one would write it: the label; of a bin, a number in it (its middle, or its edge where it
    /// has only one; below the first edge, as far below it as half the bin above is wide).
    ///
    /// # Panics
    /// When there is no such state.
    pub fn cell(&self, state: usize) -> String {
        let edges = match &self.states {
            States::Bins(edges) => edges,
            States::Numbers(cells) if state < cells.len() => {
                return self.format.write(cells.draw(state, 0.5));
            }
            _ => return self.label(state),
        };
        let number = match (state.checked_sub(1).and_then(|below| edges.get(below)), edges.get(state)) {
            (Some(below), Some(above)) => {
                let middle = below + (above - below) / 2.0;
                if middle < *above { middle } else { *below }
            }
            (Some(below), None) => *below,
            (None, Some(above)) => {
                let width = edges.get(1).map_or(1.0, |next| next - above);
                let under = above - width / 2.0;
                if under < *above { under } else { above.next_down() }
            }
            (None, None) => 0.0,
        };
        if self.missing && state == self.states.len() {
            return String::new();
        }
        let (below, above) = (state.checked_sub(1).map(|below| edges[below]), edges.get(state).copied());
        self.format.write(in_few_digits(number, below, above, edges))
    }

    /// What may help where a value is not known: a number among numbers that are labels.
    pub fn hint_about(&self, value: &str) -> String {
        let numbers = matches!(self.states, States::Integers(_) | States::Reals(_));
        match numbers && self.format.parse_cell(value).is_some() {
            true => format!(
                "; its numbers are labels: fit with `bins = {}=8` to know all numbers, or say `unknown = unobserved`",
                self.name
            ),
            false => "; `unknown = unobserved` takes such cells for not observed".to_owned(),
        }
    }

    /// The labels of all states, that of a missing cell (empty) last.
    pub fn labels(&self) -> Vec<String> {
        (0..self.len()).map(|state| self.label(state)).collect()
    }
}

/// The columns of a table.
///
/// ```
/// use everytree_core::data::Schema;
///
/// let schema = Schema::anonymous(&[2, 3]);
/// assert_eq!(schema.position("x1"), Some(1));
/// assert_eq!(schema.states(), [2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// In the order of the codes of a row.
    pub variables: Vec<Variable>,
    /// Did the training file begin with names? Later text files are read the same way.
    pub header: bool,
    /// What counts as a missing cell.
    pub missing: Vec<String>,
    /// Columns of the training table that are not in the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Those of them that tell rows apart, and go with rows wherever they go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
}

impl Schema {
    /// The number of states of every variable.
    pub fn states(&self) -> Vec<usize> {
        self.variables.iter().map(Variable::len).collect()
    }

    /// The places of columns whose numbers are more than labels.
    pub fn numeric(&self) -> Vec<usize> {
        let is_numeric = |place: &usize| matches!(self.variables[*place].states, States::Numbers(_));
        (0..self.variables.len()).filter(is_numeric).collect()
    }

    /// The place of a variable.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|variable| variable.name == name)
    }

    /// Is every list of states as it must be for codes to be found? For schemas that come from elsewhere.
    pub fn check(&self) -> Result<(), String> {
        let rising =
            |values: &[f64]| values.iter().all(|x| x.is_finite()) && values.windows(2).all(|w| w[0] < w[1]);
        let mut names = HashSet::new();
        for variable in &self.variables {
            let ordered = match &variable.states {
                States::Booleans(_) => true,
                States::Integers(values) => values.windows(2).all(|w| w[0] < w[1]),
                States::Reals(values) | States::Bins(values) => rising(values),
                States::Texts(values) | States::Others(values) => values.windows(2).all(|w| w[0] < w[1]),
                States::Numbers(cells) => cells.check(),
            };
            if !ordered {
                return Err(format!("the states of variable {:?} are not in order", variable.name));
            }
            if !variable.quantiles.iter().all(|x| x.is_finite())
                || variable.quantiles.windows(2).any(|w| w[0] > w[1])
            {
                return Err(format!("the quantiles of variable {:?} are not in order", variable.name));
            }
            if variable.len() > 1 << 16 {
                return Err(format!("variable {:?} has {} states", variable.name, variable.len()));
            }
            if !names.insert(&variable.name) {
                return Err(format!("two variables are named {:?}", variable.name));
            }
        }
        let left_out: HashSet<&String> = self.left_out.iter().collect();
        if let Some(name) = self.ids.iter().find(|name| !left_out.contains(name)) {
            return Err(format!("the identifier {name:?} is not said to be left out"));
        }
        if let Some(name) = self.left_out.iter().find(|name| names.contains(name)) {
            return Err(format!("variable {name:?} is said to be left out"));
        }
        Ok(())
    }

    /// Variables `x0`, `x1`, … of 0, 1, … for tables that come without names.
    pub fn anonymous(states: &[usize]) -> Self {
        let variable = |(place, &count): (usize, &usize)| {
            Variable::new(format!("x{place}"), States::Integers((0..count as i64).collect()), false)
        };
        Self {
            variables: states.iter().enumerate().map(variable).collect(),
            header: false,
            left_out: Vec::new(),
            ids: Vec::new(),
            missing: Vec::new(),
        }
    }
}

/// A number in a bin, with as many digits after the point as the edges have, or as few more as keep it inside.
fn in_few_digits(number: f64, below: Option<f64>, above: Option<f64>, edges: &[f64]) -> f64 {
    let digits = |x: f64| x.to_string().split_once('.').map_or(0, |(_, after)| after.len());
    let fewest = edges.iter().map(|&edge| digits(edge)).max().unwrap_or(0);
    let inside = |x: &f64| below.is_none_or(|below| below <= *x) && above.is_none_or(|above| *x < above);
    let rounded = |digits: usize| format!("{number:.digits$}").parse::<f64>().ok();
    // Of whole numbers the one below: 3 of [2, 5).
    let whole = Some(number.floor()).filter(|x| fewest == 0 && inside(x));
    whole.or_else(|| (fewest..fewest + 20).filter_map(rounded).find(inside)).unwrap_or(number)
}

/// A finite number.
pub(crate) fn number(text: &str) -> Option<f64> {
    let first = *text.as_bytes().first()?;
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A number that is not confused with another one: digits beyond 2⁵³ are names.
pub(crate) fn exact_number(text: &str) -> Option<f64> {
    let digits_only = text.bytes().skip(1).all(|byte| byte.is_ascii_digit());
    // As a float, 2⁵³ + 1 is 2⁵³.
    let is_exact = || text.parse::<i64>().is_ok_and(|value| value.unsigned_abs() <= 1 << 53);
    number(text).filter(|_| !digits_only || is_exact())
}

/// A whole number as a float, where that is the same number.
fn same_number(whole: i128) -> Option<f64> {
    Some(whole as f64).filter(|value| *value as i128 == whole)
}

/// `false` or `true`, in one of the usual spellings.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "false" | "False" | "FALSE" => Some(false),
        "true" | "True" | "TRUE" => Some(true),
        _ => None,
    }
}

/// How a cell would be written where it stands among texts: `True`, and 1 for 1.0.
fn otherwise(cell: Cell<'_>) -> Option<String> {
    match cell {
        Cell::Boolean(value) => Some(if value { "True" } else { "False" }.to_owned()),
        Cell::Real(value) if value.fract() == 0.0 && value.abs() < 1e15 => Some(format!("{value:.0}")),
        Cell::Integer(value) => Some(format!("{value}.0")),
        _ => None,
    }
}

/// Looks the code of a cell up.
pub struct Encoder<'a> {
    variables: Vec<Lookup<'a>>,
    schema: &'a Schema,
}

enum Lookup<'a> {
    Booleans,
    Numbers(Vec<f64>),
    Texts(HashMap<&'a str, u16>),
    /// And the state of all others.
    Others(HashMap<&'a str, u16>, u16),
    /// Edges, and bins by their names.
    Bins(&'a [f64], HashMap<String, u16>),
    /// The same of cells.
    Cells(&'a Cells, HashMap<String, u16>),
}

/// What a cell is to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// A state.
    State(u16),
    /// Nothing was observed.
    Unobserved,
    /// A label that the schema does not know.
    Unknown,
}

impl<'a> Encoder<'a> {
    /// For the columns of a schema.
    pub fn new(schema: &'a Schema) -> Self {
        let lookup = |variable: &'a Variable| match &variable.states {
            States::Booleans(_) => Lookup::Booleans,
            States::Integers(values) => Lookup::Numbers(values.iter().map(|&value| value as f64).collect()),
            States::Reals(values) => Lookup::Numbers(values.clone()),
            States::Texts(values) => {
                let mut codes: HashMap<&str, u16> = HashMap::new();
                // Files of earlier versions may have labels with blanks around them.
                let trimmed = values.iter().zip(0..).map(|(label, code)| (label.trim(), code));
                trimmed.for_each(|(label, code)| _ = codes.entry(label).or_insert(code));
                codes.extend(values.iter().zip(0..).map(|(label, code)| (label.as_str(), code)));
                Lookup::Texts(codes)
            }
            States::Others(values) => {
                let codes = values.iter().zip(0..).map(|(label, code)| (label.as_str(), code)).collect();
                Lookup::Others(codes, values.len() as u16)
            }
            States::Bins(edges) => {
                let name = |state: usize| (variable.label(state), state as u16);
                Lookup::Bins(edges, (0..variable.states.len()).map(name).collect())
            }
            States::Numbers(cells) => {
                let name = |state: usize| (variable.label(state), state as u16);
                Lookup::Cells(cells, (0..variable.states.len()).map(name).collect())
            }
        };
        Self { variables: schema.variables.iter().map(lookup).collect(), schema }
    }

    /// The number that a cell of this variable is, where numbers are more to it than labels.
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn number(&self, variable: usize, cell: Cell<'_>) -> Option<f64> {
        let Lookup::Cells(cells, _) = &self.variables[variable] else { return None };
        let number = number_of(&self.schema.variables[variable].format, cell)?;
        Some(cells.round(number)).filter(|x| x.is_finite())
    }

    /// The code of a missing cell of this variable, where it is a state.
    pub fn missing(&self, variable: usize) -> Option<u16> {
        let variable = &self.schema.variables[variable];
        variable.missing.then_some(variable.states.len() as u16)
    }

    /// The code of a cell of this variable. A missing cell is unobserved: whether that is a state, the caller decides.
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn encode(&self, variable: usize, cell: Cell<'_>) -> Encoded {
        // Blanks around a label are not part of it, wherever it comes from.
        let cell = match cell {
            Cell::Field(text) => Cell::Field(text.trim()),
            Cell::Text(text) => Cell::Text(text.trim()),
            typed => typed,
        };
        let format = &self.schema.variables[variable].format;
        let number = || number_of(format, cell);
        let exact = || match cell {
            Cell::Field(text) | Cell::Text(text) => match text.parse::<i128>() {
                Ok(whole) => same_number(whole),
                Err(_) => number(),
            },
            Cell::Integer(value) => same_number(value.into()),
            _ => number(),
        };
        if let Cell::Field(text) | Cell::Text(text) = cell
            && self.schema.missing.iter().any(|missing| missing == text)
        {
            return Encoded::Unobserved;
        }
        let code = match (&self.variables[variable], cell) {
            (_, Cell::Missing) => return Encoded::Unobserved,
            (_, Cell::Real(value)) if value.is_nan() => return Encoded::Unobserved,
            (Lookup::Booleans, Cell::Boolean(value)) => Some(u16::from(value)),
            (Lookup::Booleans, Cell::Field(text) | Cell::Text(text)) => boolean(text).map(u16::from),
            (Lookup::Booleans, _) => None,
            // Nine of ten tables are made of these.
            (Lookup::Numbers(values), Cell::Field("0")) if values.first() == Some(&0.0) => Some(0),
            (Lookup::Numbers(values), _) => exact()
                .and_then(|x| values.binary_search_by(|value| value.total_cmp(&(x + 0.0))).ok())
                .map(|i| i as u16),
            (Lookup::Bins(edges, names), _) => {
                let code = number().map(|x| edges.partition_point(|&edge| edge <= x) as u16);
                code.or_else(|| by_name(names, cell))
            }
            (Lookup::Cells(cells, names), _) => match number() {
                Some(x) if x.is_finite() => Some(cells.state(x) as u16),
                Some(_) => None,
                None => by_name(names, cell),
            },
            (Lookup::Texts(codes), Cell::Field(text) | Cell::Text(text)) => codes.get(text).copied(),
            // Nothing is nothing, not something else.
            (Lookup::Others(..), Cell::Field("")) => None,
            (Lookup::Others(codes, other), Cell::Field(text) | Cell::Text(text)) => {
                Some(codes.get(text).copied().unwrap_or(*other))
            }
            (Lookup::Others(codes, other), cell) => {
                let code = |text: String| codes.get(text.as_str()).copied();
                Some(code(cell.to_string()).or_else(|| code(otherwise(cell)?)).unwrap_or(*other))
            }
            (Lookup::Texts(codes), other) => {
                let code = |text: String| codes.get(text.as_str()).copied();
                code(other.to_string()).or_else(|| code(otherwise(other)?))
            }
        };
        match (code, cell) {
            (Some(code), _) => Encoded::State(code),
            // Nothing between two commas is nothing, whatever training took for missing.
            (None, Cell::Field("")) => Encoded::Unobserved,
            (None, _) => Encoded::Unknown,
        }
    }
}

/// A cell as a number.
fn number_of(format: &NumberFormat, cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Missing => None,
        // Whoever asks may write a plain number all the same.
        Cell::Field(text) | Cell::Text(text) => format.parse_cell(text.trim()),
        Cell::Integer(value) => Some(value as f64),
        Cell::Real(value) => Some(value),
        Cell::Boolean(value) => Some(f64::from(u8::from(value))),
    }
}

/// The state that has the name that a cell is.
fn by_name(names: &HashMap<String, u16>, cell: Cell<'_>) -> Option<u16> {
    match cell {
        Cell::Field(text) | Cell::Text(text) => names.get(text).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_cells_are_found_among_texts() {
        let texts = ["1", "2.0", "False", "x"].map(str::to_owned).to_vec();
        let variable = Variable::new("x", States::Texts(texts), false);
        let schema = Schema {
            variables: vec![variable],
            header: true,
            missing: vec![String::new()],
            left_out: Vec::new(),
            ids: Vec::new(),
        };
        let encoder = Encoder::new(&schema);
        for (cell, found) in [
            (Cell::Integer(1), Encoded::State(0)),
            (Cell::Real(1.0), Encoded::State(0)),
            (Cell::Integer(2), Encoded::State(1)),
            (Cell::Real(2.0), Encoded::State(1)),
            (Cell::Boolean(false), Encoded::State(2)),
            (Cell::Boolean(true), Encoded::Unknown),
            (Cell::Real(1.5), Encoded::Unknown),
            (Cell::Text("x"), Encoded::State(3)),
        ] {
            assert_eq!(encoder.encode(0, cell), found, "{cell:?}");
        }
    }

    #[test]
    fn blanks_around_labels_are_not_part_of_them() {
        let texts = ["x", "y z", " old"].map(str::to_owned).to_vec();
        let variable = Variable::new("x", States::Texts(texts), true);
        let schema = Schema {
            variables: vec![variable],
            header: true,
            missing: vec![String::new(), "NA".into()],
            left_out: Vec::new(),
            ids: Vec::new(),
        };
        let encoder = Encoder::new(&schema);
        for (text, found) in [
            (" x", Encoded::State(0)),
            ("y z\t", Encoded::State(1)),
            (" old", Encoded::State(2)),
            ("old", Encoded::State(2)),
            (" NA ", Encoded::Unobserved),
            ("  ", Encoded::Unobserved),
            ("yz", Encoded::Unknown),
        ] {
            assert_eq!(encoder.encode(0, Cell::Text(text)), found, "{text:?}");
            assert_eq!(encoder.encode(0, Cell::Field(text)), found, "{text:?}");
        }
    }

    #[test]
    fn whole_numbers_that_floats_confuse_are_told_apart() {
        assert_eq!(exact_number("9007199254740992"), Some(9_007_199_254_740_992.0));
        assert_eq!(exact_number("9007199254740993"), None);
        assert_eq!(exact_number("-9007199254740993"), None);
        assert_eq!(exact_number("99999999999999999999"), None);
        let variable = Variable::new("x", States::Integers(vec![0, 1 << 53]), false);
        let schema = Schema {
            variables: vec![variable],
            header: true,
            missing: Vec::new(),
            left_out: Vec::new(),
            ids: Vec::new(),
        };
        let encoder = Encoder::new(&schema);
        for cell in [Cell::Field("9007199254740993"), Cell::Integer((1 << 53) + 1)] {
            assert_eq!(encoder.encode(0, cell), Encoded::Unknown, "{cell:?}");
        }
        assert_eq!(encoder.encode(0, Cell::Integer(1 << 53)), Encoded::State(1));
    }

    #[test]
    fn a_cell_of_a_state_has_that_state() {
        let edges = [
            vec![],
            vec![1.5],
            vec![-1.0, 0.0, 7.0],
            vec![30.0, 31.0, 36.0],
            vec![0.5, 3.0],
            vec![1.0, 1.0f64.next_up()],
            vec![1e300, 1.1e300],
        ];
        for states in edges.into_iter().map(States::Bins).chain([
            States::Integers(vec![-3, 20]),
            States::Reals(vec![0.1, 1e17]),
            States::Texts(vec!["a,b".into(), "x".into()]),
            States::Booleans(["false".into(), "True".into()]),
        ]) {
            let variable = Variable::new("x", states, true);
            let schema = Schema {
                variables: vec![variable.clone()],
                header: true,
                missing: vec![String::new()],
                left_out: Vec::new(),
                ids: Vec::new(),
            };
            let encoder = Encoder::new(&schema);
            for state in 0..variable.states.len() {
                let found = encoder.encode(0, Cell::Field(&variable.cell(state)));
                assert_eq!(found, Encoded::State(state as u16), "{variable:?}");
                let by_name = encoder.encode(0, Cell::Field(&variable.label(state)));
                assert_eq!(by_name, Encoded::State(state as u16), "{variable:?}");
            }
            assert_eq!(
                encoder.encode(0, Cell::Field(&variable.cell(variable.states.len()))),
                Encoded::Unobserved
            );
        }
    }
}
