//! Columns and values as people write them, and back.

use anyhow::{Result, anyhow, bail};
use everytree_core::data::{Cell, Encoded, Encoder, Schema, States, Variable};
use everytree_core::file::ModelFile;
use everytree_core::infer::Evidence;
use thiserror::Error;

/// A name that no column has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no column {name:?}; the columns are {known}")]
pub struct NoColumn {
    /// The name.
    pub name: String,
    /// The names that there are.
    pub known: String,
}

/// The place of a column.
pub fn column(schema: &Schema, name: &str) -> Result<usize, NoColumn> {
    schema.position(name).ok_or_else(|| {
        let names: Vec<&str> =
            schema.variables.iter().take(20).map(|variable| variable.name.as_str()).collect();
        let more = if schema.variables.len() > 20 { ", …" } else { "" };
        NoColumn { name: name.to_owned(), known: format!("{}{more}", names.join(", ")) }
    })
}

/// The state that a value stands for; nothing between the quotes is the missing cell.
pub fn state(schema: &Schema, encoder: &Encoder<'_>, variable: usize, value: &str) -> Option<usize> {
    match encoder.encode(variable, Cell::Field(value)) {
        Encoded::State(state) => Some(state.into()),
        Encoded::Unobserved => encoder.missing(variable).map(usize::from),
        // A bin by its name.
        Encoded::Unknown => schema.variables[variable].labels().iter().position(|label| label == value),
    }
}

/// What is said of a value that a column does not have.
pub fn unknown(schema: &Schema, variable: usize, value: &str) -> anyhow::Error {
    let labels = schema.variables[variable].labels();
    let known: Vec<String> = labels.iter().take(10).map(|label| format!("{label:?}")).collect();
    let more = if labels.len() > 10 { format!(", … ({} in all)", labels.len()) } else { String::new() };
    anyhow!(
        "column {:?}: unknown value {value:?}; known: {}{more}",
        schema.variables[variable].name,
        known.join(", ")
    )
}

/// The state of a value, or of a missing cell.
pub fn state_of(
    schema: &Schema,
    encoder: &Encoder<'_>,
    variable: usize,
    value: Option<&str>,
) -> Result<usize> {
    let found = match value {
        Some(value) => state(schema, encoder, variable, value),
        None => encoder.missing(variable).map(usize::from),
    };
    found.ok_or_else(|| unknown(schema, variable, value.unwrap_or_default()))
}

/// Evidence that columns have one of these values each; no value is a missing cell.
pub fn evidence(schema: &Schema, given: &[(String, Vec<Option<String>>)]) -> Result<Evidence> {
    let encoder = Encoder::new(schema);
    let mut evidence = Evidence::none(&schema.states());
    let mut seen = vec![false; schema.variables.len()];
    for (name, values) in given {
        let variable = column(schema, name)?;
        if std::mem::replace(&mut seen[variable], true) {
            bail!("column {name:?} is given twice");
        }
        let states: Result<Vec<usize>> =
            values.iter().map(|value| state_of(schema, &encoder, variable, value.as_deref())).collect();
        evidence.set(variable, &states?)?;
    }
    Ok(evidence)
}

/// What is not `given` is not a missing cell either.
pub fn observed_only(schema: &Schema, given: impl Fn(&str) -> bool, known: &mut Evidence) -> Result<()> {
    for (v, variable) in schema.variables.iter().enumerate() {
        if variable.missing && !variable.states.is_empty() && !given(&variable.name) {
            let states: Vec<usize> = (0..variable.states.len()).collect();
            known.set(v, &states)?;
        }
    }
    Ok(())
}

/// The names of the variables of a model: of its columns, several of a block with plus signs between.
pub fn names(file: &ModelFile) -> Vec<String> {
    let name = |&column: &usize| file.schema.variables[column].name.as_str();
    let blocks = file.model.blocks().blocks().iter();
    blocks.map(|block| block.columns().iter().map(name).collect::<Vec<_>>().join(" + ")).collect()
}

/// Labels of codes.
pub struct Labels<'a> {
    schema: &'a Schema,
    labels: Vec<Vec<String>>,
}

impl<'a> Labels<'a> {
    /// Of the columns of a schema.
    pub fn new(schema: &'a Schema) -> Self {
        Self { schema, labels: schema.variables.iter().map(|variable| variable.labels()).collect() }
    }

    /// The label of a state.
    pub fn of(&self, variable: usize, state: u16) -> &str {
        &self.labels[variable][usize::from(state)]
    }

    /// A row, as names and labels.
    pub fn row(&self, row: &[u16]) -> impl Iterator<Item = (&str, &str)> {
        let cell = |(v, &state): (usize, &u16)| (self.schema.variables[v].name.as_str(), self.of(v, state));
        row.iter().enumerate().map(cell)
    }
}

/// Are the values of a column 0 and 1, or false and true?
pub fn yes_or_no(variable: &Variable) -> bool {
    match &variable.states {
        States::Booleans(_) => true,
        States::Integers(values) => values[..] == [0, 1],
        _ => false,
    }
}
