//! Columns and values as people write them, and back.

use anyhow::{Result, anyhow, bail};
use everytree::infer::Evidence;
use everytree::schema::{Cell, Encoded, Encoder, Schema};

/// The place of a column.
pub fn column(schema: &Schema, name: &str) -> Result<usize> {
    schema.position(name).ok_or_else(|| {
        let names: Vec<&str> =
            schema.variables.iter().take(20).map(|variable| variable.name.as_str()).collect();
        let more = if schema.variables.len() > 20 { ", …" } else { "" };
        anyhow!("there is no column {name:?}; the columns are {}{more}", names.join(", "))
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

fn unknown(schema: &Schema, variable: usize, value: &str) -> anyhow::Error {
    let labels = schema.variables[variable].labels();
    let known: Vec<String> = labels.iter().take(10).map(|label| format!("{label:?}")).collect();
    let more = if labels.len() > 10 { format!(", … ({} in all)", labels.len()) } else { String::new() };
    anyhow!(
        "column {:?}: unknown value {value:?}; known: {}{more}",
        schema.variables[variable].name,
        known.join(", ")
    )
}

/// `COLUMN=VALUE` or `COLUMN=VALUE,VALUE`, each column once.
pub fn evidence(schema: &Schema, given: &[String]) -> Result<Evidence> {
    let encoder = Encoder::new(schema);
    let mut evidence = Evidence::none(&schema.states());
    for text in given {
        let (name, value) =
            split(schema, text).ok_or_else(|| anyhow!("--given {text}: COLUMN=VALUE is needed"))?;
        let variable = column(schema, name)?;
        if evidence.is_given(variable) {
            bail!("--given {text}: column {name:?} is given twice");
        }
        // A label may have commas of its own.
        let states = match state(schema, &encoder, variable, value) {
            Some(state) => vec![state],
            None => value
                .split(',')
                .map(|value| {
                    state(schema, &encoder, variable, value.trim())
                        .ok_or_else(|| unknown(schema, variable, value))
                })
                .collect::<Result<Vec<usize>>>()?,
        };
        evidence.set(variable, &states)?;
    }
    Ok(evidence)
}

/// Cuts at the equals sign after which the name of a column ends; names may have such signs of their own.
pub fn split<'a>(schema: &Schema, text: &'a str) -> Option<(&'a str, &'a str)> {
    let mut cuts = text.match_indices('=').map(|(place, _)| (&text[..place], &text[place + 1..]));
    cuts.clone().find(|(name, _)| schema.position(name).is_some()).or_else(|| cuts.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use everytree::schema::{States, Variable};

    fn schema() -> Schema {
        let variable = |name: &str, states, missing| Variable { name: name.to_owned(), states, missing };
        Schema {
            variables: vec![
                variable("a=b", States::Texts(vec!["x".into(), "x,y".into(), "z".into()]), false),
                variable("age", States::Integers(vec![20, 30]), true),
            ],
            header: true,
            missing: vec![String::new()],
        }
    }

    #[test]
    fn evidence_is_read_as_it_is_written() {
        let read =
            |given: &[&str]| evidence(&schema(), &given.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["a=b=x,y"]).unwrap().of(0), [0.0, 1.0, 0.0]);
        assert_eq!(read(&["a=b=x,z"]).unwrap().of(0), [1.0, 0.0, 1.0]);
        assert_eq!(read(&["age=030"]).unwrap().of(1), [0.0, 1.0, 0.0]);
        assert_eq!(read(&["age="]).unwrap().of(1), [0.0, 0.0, 1.0]);
        for (given, words) in [
            (&["age=40"][..], "unknown value \"40\"; known: \"20\", \"30\", \"\""),
            (&["height=1"], "no column \"height\"; the columns are a=b, age"),
            (&["age=20", "age=30"], "given twice"),
            (&["age"], "COLUMN=VALUE is needed"),
        ] {
            let error = read(given).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
