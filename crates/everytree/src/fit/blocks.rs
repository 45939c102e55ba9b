//! Which columns are modelled jointly: those that were asked for, and ways to group the others.

use super::options::{ColumnGroup, FitOptions};
use crate::evidence::{column, yes_or_no};
use crate::words::plural;
use crate::{Dataset, Error, Result};
use everytree_core::blocks::{Limits, exclusive, informative};
use everytree_core::data::{Schema, Table, Unique, fits};
use std::collections::HashSet;

/// Most combinations of blocks that are tried.
const BLOCK_STATES: [usize; 3] = [6, 12, 24];
/// Complete rows without which nothing is looked for.
const LEAST_ROWS: usize = 100;
/// Most columns of a block that is found by itself.
const MOST_COLUMNS: usize = 8;
/// Least mutual information of what is merged, in nats.
const LEAST_INFORMATION: f64 = 0.02;

/// Ways to group the columns; if there are several, the best is to be found.
pub(super) fn groupings(
    options: &FitOptions,
    auto: bool,
    data: &Dataset,
    note: &dyn Fn(String),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Vec<Vec<usize>>>> {
    let schema = data.schema();
    let (table, missing) = (data.table(), data.missing());
    let asked: Result<Vec<Vec<usize>>> =
        options.blocks.groups.iter().map(|group| columns_of(schema, group)).collect();
    let asked = asked?;
    if !auto && !options.block_states.is_empty() {
        return Err(Error::unwanted("block_states", "goes with `blocks = auto`"));
    }
    once(&asked, schema)?;
    // Columns that nobody has asked about, in complete rows: what is missing together does not belong together.
    let free: Vec<usize> = {
        let taken: HashSet<usize> = asked.iter().flatten().copied().collect();
        (0..schema.variables.len()).filter(|v| !taken.contains(v)).collect()
    };
    let whole: Vec<usize> = (0..table.rows()).filter(|&row| missing.of(row).is_empty()).collect();
    if free.is_empty() || whole.len() < LEAST_ROWS.min(table.rows()) {
        if auto {
            note("too few complete rows to look for columns that belong together".to_owned());
        }
        return Ok(vec![asked]);
    }
    let (states, data) = of_columns(data, &free, &whole);
    let named = |groups: Vec<Vec<usize>>| -> Vec<Vec<usize>> {
        groups.into_iter().map(|group| group.into_iter().map(|place| free[place]).collect()).collect()
    };
    let mut one_hot = named(exclusive(&states, &data));
    one_hot.retain(|group| group.iter().all(|&v| yes_or_no(&schema.variables[v])));
    if !auto {
        if let Some(group) = one_hot.first() {
            note(format!(
                "{} never meet{}: they look like one column taken apart (one-hot); `blocks = auto` \
                     takes such columns as one variable",
                words(schema, group),
                if one_hot.len() > 1 {
                    format!(", nor do {} more groups", one_hot.len() - 1)
                } else {
                    String::new()
                }
            ));
        }
        return Ok(vec![asked]);
    }
    let mut groupings = vec![asked.clone()];
    if !one_hot.is_empty() {
        note(format!(
            "{} never meet (one-hot){}; tried as one variable",
            words(schema, &one_hot[0]),
            if one_hot.len() > 1 {
                format!(", and {} more groups", one_hot.len() - 1)
            } else {
                String::new()
            }
        ));
        groupings.push([asked.clone(), one_hot].concat());
    }
    let limits = if options.block_states.is_empty() { &BLOCK_STATES[..] } else { &options.block_states };
    for &most in limits {
        if stop() {
            break;
        }
        let limits = Limits { states: most, columns: MOST_COLUMNS, information: LEAST_INFORMATION };
        let found = named(informative(&states, &data, limits, stop));
        if !found.is_empty() {
            groupings.push([asked.clone(), found].concat());
        }
    }
    groupings.dedup();
    Ok(groupings)
}

/// The columns of a group.
fn columns_of(schema: &Schema, group: &ColumnGroup) -> Result<Vec<usize>> {
    match group {
        ColumnGroup::Pattern(pattern) => matching(schema, pattern),
        ColumnGroup::Columns(names) => {
            let columns: Result<Vec<usize>> = names.iter().map(|name| column(schema, name)).collect();
            columns.map_err(|error| error.at(format!("`blocks`: block {}", names.join(", "))))
        }
    }
}

/// Some columns of some rows.
fn of_columns(data: &Dataset, columns: &[usize], rows: &[usize]) -> (Vec<usize>, Unique) {
    let (all, table) = (data.schema().states(), data.table());
    let states: Vec<usize> = columns.iter().map(|&v| all[v]).collect();
    let mut some = Table::new(&states);
    for &row in rows {
        some.push(&columns.iter().map(|&v| table.get(row, v) as u16).collect::<Vec<_>>());
    }
    let weights: Vec<f64> = rows.iter().filter_map(|&row| data.weights().get(row).copied()).collect();
    (states, some.unique_weighted(&weights))
}

/// A way to group columns, in words.
///
/// ```
/// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"); 4]), ("b", vec![Some("1"); 4])])?;
/// assert_eq!(everytree::grouping_in_words(data.schema(), &[]), "single columns");
/// # Ok::<(), everytree::Error>(())
/// ```
pub fn grouping_in_words(schema: &Schema, groups: &[Vec<usize>]) -> String {
    match groups {
        [] => "single columns".to_owned(),
        [first, rest @ ..] => {
            let name = |&v: &usize| schema.variables[v].name.as_str();
            let more = if rest.is_empty() { "" } else { ", …" };
            let first = first.iter().map(name).collect::<Vec<_>>().join(" + ");
            format!("{} of columns together ({first}{more})", plural(groups.len(), "group"))
        }
    }
}

/// The first columns of a group, by name.
fn words(schema: &Schema, group: &[usize]) -> String {
    const MOST: usize = 6;
    let names: Vec<&str> = group.iter().take(MOST).map(|&v| schema.variables[v].name.as_str()).collect();
    let more = if group.len() > MOST { ", …" } else { "" };
    format!("columns {}{more}", names.join(", "))
}

/// No column may be in two groups.
fn once(groups: &[Vec<usize>], schema: &Schema) -> Result<()> {
    let mut seen = HashSet::new();
    match groups.iter().flatten().find(|&&column| !seen.insert(column)) {
        Some(&column) => {
            let name = &schema.variables[column].name;
            Err(Error::unwanted("blocks", format!("column {name:?} is in two blocks")))
        }
        None => Ok(()),
    }
}

/// The columns whose names fit a pattern in which * stands for anything; at least two.
fn matching(schema: &Schema, pattern: &str) -> Result<Vec<usize>> {
    let columns: Vec<usize> =
        (0..schema.variables.len()).filter(|&v| fits(pattern, &schema.variables[v].name)).collect();
    if columns.len() < 2 {
        let problem = format!("{} of that name; at least two are needed", plural(columns.len(), "column"));
        return Err(Error::option("group", pattern, problem));
    }
    Ok(columns)
}
