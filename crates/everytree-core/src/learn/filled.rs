//! Rows with cells that were not observed: summed out by filling them in, again and again.
//!
//! The derivative of `log p(observed)` is the mean derivative of `log p(row)` over the ways to fill the row, given what was
//! observed. So every epoch fills the cells anew at random, from the model as it is then, and learns from rows
//! that are complete. The filling goes on from that of the epoch before: a tree given the row, the row given the tree and what
//! was observed, a few times.

use super::engine::Engine;
use super::evaluate::{Evaluator, MeanSoFar};
use super::pieces::Pieces;
use super::source::{Datasets, Source, SourceError};
use crate::blocks::Blocks;
use crate::data::{Dataset, Missing, Table, Unique};
use crate::infer::{Evidence, InferError, Walk, columns_to_blocks};
use crate::model::{Component, ComponentInference, Learnable, Likelihood, Mixture, ModelError, UnseenStates};
use crate::util::{Stop, choose, log_sum, seed_of, softmax, stream};
use rand::{Rng, RngExt};
use rayon::prelude::*;

/// Trees and rows in turn, in every epoch; in the first, more of them.
const STEPS: usize = 3;
const FIRST_STEPS: usize = 12;
/// Rows of one task.
const CHUNK: usize = 64;
/// Rows that are not complete of which a validation estimates the likelihood, and trees for each.
const MOST_VALIDATED: usize = 200;
const TREES: usize = 64;

/// A dataset with missing cells, as blocks.
struct Incomplete {
    /// Rows of blocks; of incomplete ones, as filled so far.
    table: Table,
    /// Rows that are not complete, and what was observed of them.
    evidence: Vec<(usize, Evidence)>,
}

impl Incomplete {
    /// Missing cells filled from the values of the same column, at random.
    fn new(blocks: &Blocks, data: &Dataset, seed: u64) -> Result<Self, SourceError> {
        let (columns, missing) = (data.table(), data.missing());
        let states = blocks.column_states();
        let mut filled = columns.clone();
        let mut evidence = Vec::new();
        // The name is part of the seed: another would fill other values.
        let mut rng = stream(seed, "holes", 0);
        let mut row = vec![0u16; states.len()];
        for (place, hidden) in missing.rows() {
            let mut known = Evidence::none(&states);
            for v in 0..states.len() {
                row[v] = columns.get(*place, v) as u16;
                if !hidden.contains(&v) {
                    let set = known.set(v, &[row[v].into()]);
                    debug_assert!(set.is_ok(), "a state, once");
                }
            }
            hidden.iter().for_each(|&v| row[v] = observed(columns, missing, v, &mut rng));
            filled.replace(*place, &row);
            evidence.push((*place, columns_to_blocks(blocks, &known)));
        }
        Ok(Self { table: blocks.encode(&filled), evidence })
    }

    fn unique(&self, blocks: &Blocks) -> Unique {
        blocks.unique_of_blocks(&self.table, &[])
    }
}

/// The value of a column in a row at random in which it was observed.
fn observed(columns: &Table, missing: &Missing, v: usize, rng: &mut impl Rng) -> u16 {
    const TRIES: usize = 100;
    let known = |row: &usize| !missing.of(*row).contains(&v);
    let rows = columns.rows();
    let by_chance = (0..TRIES).map(|_| rng.random_range(0..rows)).find(known);
    // Of a column that is hardly ever observed, whatever comes first.
    let row = by_chance.or_else(|| (0..rows).find(known));
    row.map_or(0, |row| columns.get(row, v) as u16)
}

/// Rows with missing cells to learn from and to validate with.
pub(super) struct Filled<'a> {
    blocks: &'a Blocks,
    train: Incomplete,
    unique: Unique,
    valid: Incomplete,
    /// Validation rows that are complete.
    complete: Unique,
    seed: u64,
}

impl<'a> Filled<'a> {
    pub fn new(blocks: &'a Blocks, data: Datasets<'_>, seed: u64) -> Result<Self, SourceError> {
        let train = Incomplete::new(blocks, data.train, seed)?;
        let unique = train.unique(blocks);
        let complete = blocks.unique(&data.valid.complete_rows());
        let valid = Incomplete::new(blocks, data.valid, seed)?;
        Ok(Self { blocks, unique, train, valid, complete, seed })
    }

    /// The rows to learn from as they are filled now.
    pub fn now(&self) -> &Unique {
        &self.unique
    }
}

impl Source<Mixture<Component>> for Filled<'_> {
    fn rows(&self) -> (usize, usize) {
        (self.train.table.rows(), self.valid.table.rows())
    }

    fn train(
        &mut self,
        model: &Mixture<Component>,
        epoch: usize,
        stop: Stop<'_>,
    ) -> Result<&Unique, SourceError> {
        if epoch > 0 {
            let steps = if epoch == 1 { FIRST_STEPS } else { STEPS };
            fill(&mut self.train, model, steps, seed_of(self.seed, epoch as u64), stop)?;
            self.unique = self.train.unique(self.blocks);
        }
        Ok(&self.unique)
    }

    fn validate<J: Engine<Mixture<Component>>>(
        &mut self,
        evaluator: &mut Evaluator<'_, Mixture<Component>, J>,
        stop: Stop<'_>,
    ) -> Result<MeanSoFar, SourceError> {
        estimate(evaluator, &self.complete, &self.valid.evidence, self.seed, stop)
    }

    fn unseen(&self, model: &Mixture<Component>) -> Vec<UnseenStates> {
        let Incomplete { table, evidence } = &self.train;
        let known = |row: usize, block: usize| {
            let place = evidence.binary_search_by_key(&row, |(row, _)| *row);
            place.is_err() || place.is_ok_and(|place| evidence[place].1.state(block).is_some())
        };
        UnseenStates::find(model.states(), table, &vec![1.0; table.rows()], known)
    }

    fn memory(&self) -> Option<Vec<f64>> {
        let n = self.train.table.variables();
        let rows = self.train.evidence.iter().map(|(row, _)| *row);
        Some(rows.flat_map(|row| (0..n).map(move |v| self.train.table.get(row, v) as f64)).collect())
    }

    fn recall(&mut self, memory: &[f64]) -> Result<(), SourceError> {
        let n = self.train.table.variables();
        let states = self.blocks.states();
        let (found, expected) = (memory.len(), self.train.evidence.len() * n);
        if found != expected {
            let what = "the list of filled cells".to_owned();
            return Err(ModelError::Length { what, found, expected }.into());
        }
        for ((row, _), codes) in self.train.evidence.iter().zip(memory.chunks_exact(n)) {
            if let Some(v) = (0..n).find(|&v| !(0.0..states[v] as f64).contains(&codes[v])) {
                return Err(ModelError::NotANumber { place: v, value: codes[v] }.into());
            }
            self.train.table.replace(*row, &codes.iter().map(|&code| code as u16).collect::<Vec<_>>());
        }
        self.unique = self.train.unique(self.blocks);
        Ok(())
    }
}

/// Fills what was not observed anew, from the model; where `stop` asks for an end, some rows stay as they are.
fn fill(
    data: &mut Incomplete,
    model: &Mixture<Component>,
    steps: usize,
    seed: u64,
    stop: Stop<'_>,
) -> Result<(), SourceError> {
    let parts: Result<Vec<ComponentInference<'_>>, _> =
        model.components().iter().map(|component| component.inference()).collect();
    let (parts, log_weights) = (parts?, model.mixing_weights().into_iter().map(f64::ln).collect::<Vec<_>>());
    let n = data.table.variables();
    let Incomplete { table, evidence } = data;
    let table_now = &*table;
    let fill_chunk = |(number, chunk): (usize, &[(usize, Evidence)])| {
        let mut rng = stream(seed, "filling", number as u64);
        let rows = table_now.select(chunk.iter().map(|(row, _)| *row));
        let mut logs = vec![vec![0.0; chunk.len()]; parts.len()];
        if parts.len() > 1 {
            for ((part, share), logs) in parts.iter().zip(&log_weights).zip(&mut logs) {
                part.log_p(rows.codes(), logs)?;
                logs.iter_mut().for_each(|log| *log += share);
            }
        }
        let mut walks: Vec<Walk<'_>> = parts.iter().map(Walk::new).collect();
        let mut filled = Vec::new();
        for (place, (_, known)) in chunk.iter().enumerate() {
            let own: Vec<f64> = logs.iter().map(|logs| logs[place]).collect();
            let part = choose(&softmax(&own), rng.random());
            let row: Vec<u16> = (0..n).map(|v| rows.get(place, v) as u16).collect();
            filled.push(walks[part].go(row, known, steps, &mut rng)?);
        }
        Ok(filled)
    };
    let numbered: Vec<(usize, &[(usize, Evidence)])> = evidence.chunks(CHUNK).enumerate().collect();
    let mut filled: Vec<Vec<u16>> = Vec::new();
    for wave in numbered.chunks(rayon::current_num_threads()) {
        if stop() {
            break;
        }
        let chunks: Result<Vec<Vec<Vec<u16>>>, SourceError> =
            wave.par_iter().map(|&chunk| fill_chunk(chunk)).collect();
        filled.extend(chunks?.into_iter().flatten());
    }
    for ((row, _), codes) in evidence.iter().zip(filled) {
        table.replace(*row, &codes);
    }
    Ok(())
}

/// The mean log-likelihood of what was observed: exact of complete rows, estimated of some of the others, the same ones and
/// with the same random numbers every time. Where `stop` asks for an end, of fewer rows.
fn estimate<J: Engine<Mixture<Component>>>(
    evaluator: &mut Evaluator<'_, Mixture<Component>, J>,
    complete: &Unique,
    incomplete: &[(usize, Evidence)],
    seed: u64,
    stop: Stop<'_>,
) -> Result<MeanSoFar, SourceError> {
    let (model, whole) = (evaluator.model(), complete.rows() as f64);
    let exact = match complete.rows() {
        0 => MeanSoFar { mean: 0.0, share: 1.0 },
        _ => evaluator.mean_until(complete, stop)?,
    };
    if incomplete.is_empty() {
        return Ok(exact);
    }
    let parts: Result<Vec<ComponentInference<'_>>, _> =
        model.components().iter().map(|component| component.inference()).collect();
    let (parts, log_weights) = (parts?, model.mixing_weights().into_iter().map(f64::ln).collect::<Vec<_>>());
    // One tree answers exactly, and at once.
    let exact_too = parts.iter().all(|part| !matches!(part, ComponentInference::AllTrees(_)));
    let every = if exact_too { 1 } else { incomplete.len().div_ceil(MOST_VALIDATED) };
    let one_row = |&(row, known): &(usize, &Evidence)| {
        let of_part = |(part, share): (&ComponentInference<'_>, &f64)| {
            Ok(part.log_mean_weight(known, TREES, seed_of(seed, row as u64))? + share)
        };
        let logs: Result<Vec<f64>, InferError> = parts.iter().zip(&log_weights).map(of_part).collect();
        Ok(log_sum(logs?.into_iter()))
    };
    let chosen: Vec<(usize, &Evidence)> =
        incomplete.iter().step_by(every).map(|(row, known)| (*row, known)).collect();
    let mut pieces = Pieces::new(chosen.len(), stop);
    let mut logs = vec![None; chosen.len()];
    while let Some(places) = pieces.next() {
        let found: Result<Vec<f64>, InferError> =
            places.par_iter().map(|&place| one_row(&chosen[place])).collect();
        places.into_iter().zip(found?).for_each(|(place, log)| logs[place] = Some(log));
    }
    let found: Vec<f64> = logs.into_iter().flatten().collect();
    let estimated = found.iter().sum::<f64>() / found.len() as f64;
    let others = incomplete.len() as f64;
    let done = found.len() as f64 / chosen.len() as f64;
    Ok(MeanSoFar {
        mean: (whole * exact.mean + others * estimated) / (whole + others),
        share: if exact.is_partial() || done < 1.0 {
            (whole * exact.share + others * done) / (whole + others)
        } else {
            1.0
        },
    })
}

/// A dataset with its missing cells filled at random from a model, as distinct rows of blocks.
pub fn completed(
    blocks: &Blocks,
    model: &Mixture<Component>,
    data: &Dataset,
    seed: u64,
    stop: Stop<'_>,
) -> Result<Unique, SourceError> {
    let mut incomplete = Incomplete::new(blocks, data, seed)?;
    fill(&mut incomplete, model, FIRST_STEPS, seed, stop)?;
    Ok(incomplete.unique(blocks))
}

/// The mean log-likelihood of what was observed of a dataset, under a model over blocks of its columns.
pub fn evaluate_observed<J: Engine<Mixture<Component>>>(
    blocks: &Blocks,
    evaluator: &mut Evaluator<'_, Mixture<Component>, J>,
    data: &Dataset,
    stop: Stop<'_>,
) -> Result<MeanSoFar, SourceError> {
    let complete = blocks.unique(&data.complete_rows());
    let incomplete = Incomplete::new(blocks, data, 0)?;
    estimate(evaluator, &complete, &incomplete.evidence, 0, stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Directed;
    use std::collections::HashMap;

    /// Many copies of one row, filled often: as often in each way as the model says, components and all.
    #[test]
    fn filling_follows_the_model() {
        const ROWS: usize = 20_000;
        let states = [2, 3, 2, 2];
        let one = |seed: u64| Component::Directed(Directed::random(states.to_vec(), seed).unwrap());
        let model = Mixture::new(vec![one(1), one(2)], &[1.0, 2.0]).unwrap();
        let blocks = Blocks::none(&states);
        let (mut table, mut missing) = (Table::new(&states), Missing::default());
        for row in 0..ROWS {
            table.push(&[1, 0, 0, 1]);
            missing.push(row, vec![1, 2]);
        }
        let data = Dataset::anonymous(&states, table).unwrap().with_missing(missing).unwrap();
        let mut data = Incomplete::new(&blocks, &data, 3).unwrap();
        // The component is drawn once a filling: several fillings, so that it is forgotten.
        for round in 0..12 {
            fill(&mut data, &model, 4, round, &|| false).unwrap();
        }
        let mut counts: HashMap<(usize, usize), f64> = HashMap::new();
        for row in 0..ROWS {
            assert_eq!((data.table.get(row, 0), data.table.get(row, 3)), (1, 1), "what was observed stays");
            *counts.entry((data.table.get(row, 1), data.table.get(row, 2))).or_default() += 1.0;
        }
        let mut all = Table::new(&states);
        (0..6u16).for_each(|way| all.push(&[1, way / 2, way % 2, 1]));
        let p: Vec<f64> = crate::learn::evaluate(&model, &all.unique(), &crate::forest::Cpu::<f64>::new())
            .unwrap()
            .log_likelihood
            .iter()
            .map(|log| log.exp())
            .collect();
        let total: f64 = p.iter().sum();
        let square: f64 = (0..6)
            .map(|way| {
                let expected = ROWS as f64 * p[way] / total;
                (counts.get(&(way / 2, way % 2)).copied().unwrap_or(0.0) - expected).powi(2) / expected
            })
            .sum();
        // Five degrees of freedom; beyond 30 once in 70,000.
        assert!(square < 30.0, "{square}: {counts:?}");
    }
}
