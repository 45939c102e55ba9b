//! Rows that are kept, and sums over all of them.
//!
//! Whatever is asked of a stored row is a product over variables of a factor that depends on the state of the row alone. So the
//! logarithms for many questions and many rows are a matrix product: questions by states, times states by rows. Where there are
//! many states for each variable, most of that matrix is zeros, and factors are looked up instead.

use super::ModelError;
use crate::data::Table;
use crate::spanning::Level;
use crate::spanning::kernel::field::Rows;
use crate::spanning::kernel::product::{Contiguous, Strided, Target, Write, product};
use crate::util::offsets;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::marker::PhantomData;

/// Questions that are answered at once, and stored rows.
const PANEL: usize = 32;
const BLOCK: usize = 256;
/// Products are made where there are at most so many states for each variable, beside the first.
const DENSE: usize = 4;
/// Several columns are one number in a file, as long as they have no more combinations.
const WORD: usize = 1 << 16;
/// What is so much smaller than the largest adds nothing to a sum.
const NOTHING: f64 = -45.0;

/// Distinct rows with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRows {
    states: Vec<usize>,
    offsets: Vec<usize>,
    table: Table,
    /// They add up to 1.
    log_weights: Vec<f64>,
}

/// A sum of which the logarithms come in portions.
#[derive(Clone, Copy)]
struct LogSum {
    most: f64,
    sum: f64,
}

impl LogSum {
    const NOTHING: Self = Self { most: f64::NEG_INFINITY, sum: 0.0 };

    fn add(&mut self, logs: &[f64]) {
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most > self.most {
            self.sum *= (self.most - most).exp();
            self.most = most;
        }
        for log in logs {
            let log = log - self.most;
            if log > NOTHING {
                self.sum += log.exp();
            }
        }
    }

    fn log(&self) -> f64 {
        if self.most == f64::NEG_INFINITY { self.most } else { self.most + self.sum.ln() }
    }
}

/// Which columns are one number in a file: consecutive ones, by the numbers of their states.
fn words(states: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut words = Vec::new();
    let (mut first, mut combinations) = (0, 1usize);
    for (v, &count) in states.iter().enumerate() {
        if v > first && combinations.saturating_mul(count) > WORD {
            words.push(first..v);
            (first, combinations) = (v, 1);
        }
        combinations = combinations.saturating_mul(count);
    }
    words.push(first..states.len());
    words
}

impl StoredRows {
    /// Rows of variables with so many states, whose weights add up to 1.
    pub fn new(states: &[usize], table: Table, log_weights: Vec<f64>) -> Result<Self, ModelError> {
        let (found, expected) = (log_weights.len(), table.rows());
        if found != expected || found == 0 {
            let what = "the list of the weights of stored rows".to_owned();
            return Err(ModelError::Length { what, found, expected: expected.max(1) });
        }
        let sum: f64 = log_weights.iter().map(|log| log.exp()).sum();
        if sum.is_nan() || (sum - 1.0).abs() > super::ROUNDING {
            let what = "the list of the weights of stored rows".to_owned();
            return Err(ModelError::Sum { what, sum, expected: 1.0 });
        }
        Ok(Self { states: states.to_vec(), offsets: offsets(states), table, log_weights })
    }

    /// How many distinct rows there are.
    pub fn count(&self) -> usize {
        self.table.rows()
    }

    /// The number of states of every variable.
    pub fn states(&self) -> &[usize] {
        &self.states
    }

    /// Where the states of each variable begin among all.
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The rows.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The logarithms of their weights, which add up to 1.
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// Numbers of a row in a file.
    pub(super) fn words_of_a_row(states: &[usize]) -> usize {
        words(states).len()
    }

    /// All rows as numbers of a file.
    pub(super) fn words(&self) -> Vec<f64> {
        let words = words(&self.states);
        let number = |row: usize, word: &std::ops::Range<usize>| {
            word.clone().fold(0usize, |number, v| number * self.states[v] + self.table.get(row, v)) as f64
        };
        let row = |row: usize| words.iter().map(move |word| number(row, word));
        (0..self.count()).flat_map(row).collect()
    }

    /// Rows from such numbers.
    pub(super) fn of_words(
        states: &[usize],
        count: usize,
        numbers: &[f64],
        log_weights: Vec<f64>,
    ) -> Result<Self, ModelError> {
        let words = words(states);
        let mut table = Table::new(states);
        let mut row = vec![0u16; states.len()];
        for (place, own) in numbers.chunks_exact(words.len()).take(count).enumerate() {
            for (&value, word) in own.iter().zip(&words) {
                let mut number = value as usize;
                for v in word.clone().rev() {
                    row[v] = (number % states[v]) as u16;
                    number /= states[v];
                }
                if number > 0 || value < 0.0 || value.fract() != 0.0 {
                    return Err(ModelError::NotANumber { place: place * words.len(), value });
                }
            }
            table.push(&row);
        }
        Self::new(states, table, log_weights)
    }

    /// The logarithms of `w_i Π_j factor_j(x_ij)` of every stored row i.
    pub(crate) fn joint(&self, factors: &[f64]) -> Vec<f64> {
        let logs: Vec<f64> = factors.iter().map(|factor| factor.ln()).collect();
        let mut joint = self.log_weights.clone();
        joint.par_chunks_mut(BLOCK).enumerate().for_each(|(block, joint)| {
            self.look_up(block * BLOCK, &logs, joint);
        });
        joint
    }

    /// Adds the logarithms of factors, row after row from `first` on.
    fn look_up(&self, first: usize, logs: &[f64], to: &mut [f64]) {
        let codes = self.table.codes();
        for (row, to) in (first..).zip(to) {
            let places = self.offsets[..self.states.len()].iter().enumerate();
            *to += places.map(|(v, offset)| logs[offset + codes.get(row, v)]).sum::<f64>();
        }
    }

    /// For every one of so many questions, and `ways` of each, the logarithm of `Σ_i w_i Π_j factor_j(x_ij)`.
    ///
    /// `factors` writes the logarithms of the factors of a question and a way of it; `without` names a stored row that has another
    /// weight for this question, as a logarithm; `finish` makes what is wanted of the sums of all ways.
    pub(super) fn log_sums<R: Send>(
        &self,
        questions: usize,
        ways: usize,
        factors: impl Fn(usize, usize, &mut [f64]) + Sync,
        without: impl Fn(usize) -> Option<(usize, f64)> + Sync,
        finish: impl Fn(usize, &[f64], &mut R) + Sync,
        out: &mut [R],
    ) {
        debug_assert_eq!(questions, out.len());
        let total = self.offsets[self.states.len()];
        let dense = total - self.states.len() <= DENSE * self.states.len();
        out.par_chunks_mut(PANEL).enumerate().for_each_init(
            || Panel { rows: self, dense, ways, logs: Vec::new(), of_first: Vec::new(), table: Vec::new() },
            |panel, (number, out)| {
                let first = number * PANEL;
                let asked = out.len() * ways;
                panel.logs.resize(asked * total, 0.0);
                for (place, logs) in panel.logs.chunks_exact_mut(total).enumerate() {
                    factors(first + place / ways, place % ways, logs);
                }
                let except: Vec<Option<(usize, f64)>> = (first..first + out.len()).map(&without).collect();
                let sums = panel.sums(asked, &except);
                for ((row, out), logs) in (first..).zip(out).zip(sums.chunks_exact(ways)) {
                    finish(row, logs, out);
                }
            },
        );
    }
}

/// Some questions, and what they are worked out in.
struct Panel<'a> {
    rows: &'a StoredRows,
    dense: bool,
    ways: usize,
    /// Logarithms of factors, question by question.
    logs: Vec<f64>,
    /// Of the first state of all variables together.
    of_first: Vec<f64>,
    /// States beside the first by stored rows: 1 where a row has the state.
    table: Vec<f64>,
}

impl Panel<'_> {
    fn sums(&mut self, asked: usize, without: &[Option<(usize, f64)>]) -> Vec<f64> {
        let rows = self.rows;
        let (n, total) = (rows.states.len(), rows.offsets[rows.states.len()]);
        let inner = total - n;
        self.of_first.clear();
        if self.dense {
            // How much more than the first state of its variable each other state is worth, in place.
            let mut kept = 0;
            for question in 0..asked {
                let mut of_first = 0.0;
                for place in rows.offsets.windows(2) {
                    let first = self.logs[question * total + place[0]];
                    of_first += first;
                    for state in place[0] + 1..place[1] {
                        self.logs[kept] = self.logs[question * total + state] - first;
                        kept += 1;
                    }
                }
                self.of_first.push(of_first);
            }
        }
        let mut sums = vec![LogSum::NOTHING; asked];
        let mut found = vec![0.0; asked * BLOCK];
        for first in (0..rows.count()).step_by(BLOCK) {
            let here = BLOCK.min(rows.count() - first);
            if self.dense {
                self.table.clear();
                self.table.resize(inner * BLOCK, 0.0);
                for row in 0..here {
                    for v in 0..n {
                        let state = rows.table.get(first + row, v);
                        if state > 0 {
                            self.table[(rows.offsets[v] - v + state - 1) * BLOCK + row] = 1.0;
                        }
                    }
                }
                found.fill(0.0);
                let shape = [asked, BLOCK, inner];
                Level::best().run(Product {
                    questions: &self.logs,
                    table: &self.table,
                    found: &mut found,
                    shape,
                });
            }
            for (question, found) in found.chunks_exact_mut(BLOCK).enumerate() {
                let found = &mut found[..here];
                let weights = &rows.log_weights[first..first + here];
                if self.dense {
                    let own = self.of_first[question];
                    found.iter_mut().zip(weights).for_each(|(log, weight)| *log += own + weight);
                } else {
                    found.copy_from_slice(weights);
                    rows.look_up(first, &self.logs[question * total..][..total], found);
                }
                if let Some((row, log_weight)) = without[question / self.ways]
                    && (first..first + here).contains(&row)
                {
                    found[row - first] += log_weight - rows.log_weights[row];
                }
                sums[question].add(found);
            }
        }
        sums.iter().map(LogSum::log).collect()
    }
}

/// Questions by states, times states by rows.
struct Product<'a> {
    questions: &'a [f64],
    table: &'a [f64],
    found: &'a mut [f64],
    shape: [usize; 3],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { questions, table, found, shape } = self;
        let f = Rows { simd, precision: PhantomData::<f64> };
        product(
            f,
            Target { data: found, stride: BLOCK },
            Write::Add,
            Strided { data: questions, row: shape[2], column: 1 },
            Contiguous { data: table, stride: BLOCK },
            shape,
        );
    }
}
