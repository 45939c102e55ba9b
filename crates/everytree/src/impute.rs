//! Missing cells, and what fills them.

use anyhow::Result;
use everytree_core::data::{Schema, States, Variable};
use everytree_core::infer::{AskedModel, Effort, Estimate, Evidence, InferError, Sampling, Search, seed_of};
use everytree_read::{CellRules, FileFacts, ReadSettings, Row, Source, for_each_row};

/// Operations of enumeration for one row: a few milliseconds. Trees are faster than more of it.
const OPERATIONS: f64 = 3e8;

/// How cells are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The most probable way to complete the row.
    Map,
    /// One way by chance, as probable as the model says.
    Sample,
    /// Each cell by itself: its most probable value; of columns of numbers, the value nearest to the mean.
    MeanState,
}

/// What is to be filled, and how.
#[derive(Clone, Copy, Debug)]
pub struct Imputation {
    /// How.
    pub how: How,
    /// Is the probability of what fills a cell wanted too?
    pub probabilities: bool,
    /// Is a label that the model does not know passed over?
    pub unknown_is_unobserved: bool,
    /// Of everything random.
    pub seed: u64,
}

/// A row with missing cells.
pub struct IncompleteRow {
    /// Its number.
    pub row: u64,
    codes: Vec<u16>,
    /// Variables whose cells were not observed.
    unobserved: Vec<usize>,
    /// Those of them that are to be filled.
    missing: Vec<usize>,
}

/// One filled cell.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Its row.
    pub row: u64,
    /// Its column.
    pub variable: usize,
    /// What fills it.
    pub state: usize,
    /// How probable that is, if that was wanted.
    pub probability: Option<Estimate>,
}

/// The holes of a table.
pub struct IncompleteRows {
    /// Rows with cells to fill.
    pub rows: Vec<IncompleteRow>,
    /// What there was in the table.
    pub facts: FileFacts,
    /// Of every column the missing cells that nothing can fill, because training had no value of it.
    pub never_seen: Vec<usize>,
}

impl IncompleteRow {
    /// What is known; of what is to be filled, that it is one of the values seen in training.
    fn evidence(&self, schema: &Schema) -> Result<Evidence> {
        let mut evidence = Evidence::none(&schema.states());
        for (v, variable) in schema.variables.iter().enumerate() {
            if self.missing.contains(&v) {
                evidence.set(v, &(0..variable.states.len()).collect::<Vec<usize>>())?;
            } else if !self.unobserved.contains(&v) {
                evidence.set(v, &[self.codes[v].into()])?;
            }
        }
        Ok(evidence)
    }
}

impl Imputation {
    /// Rows with cells to fill.
    pub fn incomplete_rows(
        &self,
        source: Source<'_>,
        schema: &Schema,
        read: &ReadSettings,
    ) -> Result<IncompleteRows> {
        let rules = CellRules {
            missing_is_a_state: false,
            unknown_is_unobserved: self.unknown_is_unobserved,
            incomplete_rows: true,
        };
        let mut rows = Vec::new();
        let mut never_seen = vec![0usize; schema.variables.len()];
        let mut number = 0;
        let mut take = |row: Row<'_>| {
            let fillable = |v: &usize| !schema.variables[*v].states.is_empty();
            let (missing, lost): (Vec<usize>, Vec<usize>) =
                row.unobserved.iter().copied().filter(|v| !row.unknown.contains(v)).partition(fillable);
            lost.iter().for_each(|&v| never_seen[v] += 1);
            if !missing.is_empty() {
                let (codes, unobserved) = (row.codes.to_vec(), row.unobserved.to_vec());
                rows.push(IncompleteRow { row: number, codes, unobserved, missing });
            }
            number += 1;
            Ok(())
        };
        let facts = for_each_row(source, schema, read, rules, &mut take)?;
        Ok(IncompleteRows { rows, facts, never_seen })
    }

    /// What fills the cells of a row.
    pub fn fill(&self, schema: &Schema, asked: &AskedModel<'_>, hole: &IncompleteRow) -> Result<Vec<Filled>> {
        // Numbers of its own for every row.
        let seed = seed_of(self.seed, hole.row);
        let evidence = &hole.evidence(schema)?;
        let effort = Effort {
            trees: 20_000,
            tolerance: Some(0.02),
            seed,
            targets: &hole.missing,
            operations: OPERATIONS,
        };
        let posterior = if self.probabilities || self.how == How::MeanState {
            Some(asked.posterior(evidence, None, effort).map_err(explain)?)
        } else {
            None
        };
        let row: Vec<u16> = match self.how {
            How::Map => {
                let search = Search { trees: 64, climbs: 2, seed, operations: OPERATIONS };
                let found = asked.most_probable(evidence, 1, search).map_err(explain)?;
                found.into_iter().next().map(|best| best.row).unwrap_or_default()
            }
            How::Sample => {
                let sampling = Sampling { seed, operations: OPERATIONS };
                asked.sample(evidence, 1, sampling).map_err(explain)?.0.swap_remove(0)
            }
            How::MeanState => {
                let mut row = vec![0; asked.states().len()];
                if let Some(posterior) = &posterior {
                    for &v in &hole.missing {
                        row[v] = by_itself(&schema.variables[v], &posterior.states[v]);
                    }
                }
                row
            }
        };
        let filled = |&variable: &usize| {
            let state = usize::from(row[variable]);
            let probability =
                posterior.as_ref().filter(|_| self.probabilities).map(|found| found.states[variable][state]);
            Filled { row: hole.row, variable, state, probability }
        };
        Ok(hole.missing.iter().map(filled).collect())
    }
}

fn explain(error: InferError) -> anyhow::Error {
    match error {
        InferError::Impossible | InferError::Unexplained { .. } => {
            anyhow::anyhow!(
                "its observed cells are impossible under this model: nothing can be said of the others"
            )
        }
        other => other.into(),
    }
}

/// The value of a cell by itself: of numbers the one nearest to the mean, else the most probable.
fn by_itself(variable: &Variable, posterior: &[Estimate]) -> u16 {
    let numbers: Option<Vec<f64>> = match &variable.states {
        States::Integers(values) => Some(values.iter().map(|&value| value as f64).collect()),
        States::Reals(values) => Some(values.clone()),
        States::Booleans(_) | States::Texts(_) | States::Bins(_) => None,
    };
    let seen = &posterior[..variable.states.len()];
    let best = match numbers {
        Some(numbers) => {
            let mean: f64 = numbers.iter().zip(seen).map(|(x, p)| x * p.value).sum();
            let off = |i: &usize| (numbers[*i] - mean).abs();
            (0..numbers.len()).min_by(|a, b| off(a).total_cmp(&off(b)))
        }
        // Of equals the first.
        None => (0..seen.len()).rev().max_by(|a, b| seen[*a].value.total_cmp(&seen[*b].value)),
    };
    best.unwrap_or(0) as u16
}
