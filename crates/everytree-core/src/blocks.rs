//! Columns that are modelled together: a block of columns is one variable, whose states are their combinations.
//!
//! A block of several columns has a state for every combination that was seen, and one more for all others together, if
//! there are any, each of which is as probable as the next. The map is a bijection up to that one state, so
//! likelihoods stay exact over all rows there can be.

mod search;

pub use search::{Limits, exclusive, informative};

use crate::data::{Dataset, Table, Unique};
use std::collections::HashMap;
use thiserror::Error;

/// Most combinations of the columns of a block, seen or not.
pub const MAX_COMBINATIONS: usize = 1 << 20;

/// Most combinations with a state of their own.
pub const MAX_SEEN: usize = 1 << 10;

/// A partition of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    blocks: Vec<Block>,
    /// Number of columns.
    columns: usize,
}

/// One or more columns as one variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    columns: Vec<usize>,
    /// States of each column.
    states: Vec<usize>,
    /// Combinations with a state of their own, in order, as one number each; of a single column all.
    seen: Vec<u32>,
    /// How many have none.
    unseen: usize,
}

/// Why columns cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlocksError {
    /// A column that is not there.
    #[error("there is no column {0}")]
    NoColumn(usize),
    /// A column in two blocks, or twice in one.
    #[error("column {0} is in two blocks")]
    Twice(usize),
    /// More combinations than can be told apart.
    #[error("the block that begins with column {0} has more than {MAX_COMBINATIONS} combinations of states")]
    TooMany(usize),
    /// More combinations in the data than can have a state of their own.
    #[error(
        "the block that begins with column {column} has {states} combinations in the data; at most {MAX_SEEN} are possible"
    )]
    TooManySeen {
        /// The first column.
        column: usize,
        /// How many.
        states: usize,
    },
    /// No combination at all.
    #[error(
        "no row has all columns of the block that begins with column {0}: there is no combination to learn from"
    )]
    NeverSeen(usize),
    /// A combination that is none, or not in its place.
    #[error(
        "the combinations of the block that begins with column {0} are not combinations of its states, each once, in order"
    )]
    Combinations(usize),
}

impl BlocksError {
    /// The first column of the block that it is about.
    pub fn column(&self) -> usize {
        match *self {
            Self::NoColumn(column)
            | Self::Twice(column)
            | Self::TooMany(column)
            | Self::TooManySeen { column, .. }
            | Self::NeverSeen(column)
            | Self::Combinations(column) => column,
        }
    }
}

impl Block {
    /// The columns, in order.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// States of the block: combinations with a state of their own, and one for all others if there are any.
    pub fn states(&self) -> usize {
        self.seen.len() + usize::from(self.unseen > 0)
    }

    /// How many combinations share the last state.
    pub fn unseen(&self) -> usize {
        self.unseen
    }

    /// The codes of the columns of a state that stands for one combination; none for the state of all others.
    ///
    /// # Panics
    /// When there is no such state.
    pub fn combination(&self, state: usize) -> Option<Vec<u16>> {
        assert!(state < self.states(), "no such state");
        self.seen.get(state).map(|&number| self.codes(number))
    }

    /// The codes of a combination by its number.
    fn codes(&self, number: u32) -> Vec<u16> {
        let mut rest = number;
        let mut codes: Vec<u16> = self
            .states
            .iter()
            .rev()
            .map(|&states| {
                let code = rest % states as u32;
                rest /= states as u32;
                code as u16
            })
            .collect();
        codes.reverse();
        codes
    }

    /// The combinations without a state of their own, in order.
    pub fn others(&self) -> impl Iterator<Item = Vec<u16>> + '_ {
        let all = (self.seen.len() + self.unseen) as u32;
        let mut seen = self.seen.iter().copied().peekable();
        (0..all).filter(move |number| seen.next_if_eq(number).is_none()).map(|number| self.codes(number))
    }

    fn number(&self, code: impl Fn(usize) -> usize) -> u32 {
        self.columns
            .iter()
            .zip(&self.states)
            .fold(0, |number, (&column, &states)| number * states as u32 + code(column) as u32)
    }
}

impl Blocks {
    /// Every column by itself.
    pub fn none(states: &[usize]) -> Self {
        let single = |(column, &count): (usize, &usize)| Block {
            columns: vec![column],
            states: vec![count],
            seen: (0..count as u32).collect(),
            unseen: 0,
        };
        Self { blocks: states.iter().enumerate().map(single).collect(), columns: states.len() }
    }

    /// These groups of columns as blocks, with the combinations seen in the data; all other columns alone.
    pub fn new(states: &[usize], groups: &[Vec<usize>], data: &Unique) -> Result<Self, BlocksError> {
        Self::seen_in(states, groups, |block| block.see((0..data.table.rows()).map(|row| (row, &data.table))))
    }

    /// The same with the combinations of rows in which all columns of the block were observed.
    pub fn observed(groups: &[Vec<usize>], data: &Dataset) -> Result<Self, BlocksError> {
        let (table, missing) = (data.table(), data.missing());
        Self::seen_in(&data.states(), groups, |block| {
            let whole = |row: &usize| !missing.of(*row).iter().any(|column| block.columns.contains(column));
            let rows: Vec<usize> = (0..table.rows()).filter(whole).collect();
            block.see(rows.into_iter().map(|row| (row, table)));
        })
    }

    fn seen_in(
        states: &[usize],
        groups: &[Vec<usize>],
        see: impl Fn(&mut Block),
    ) -> Result<Self, BlocksError> {
        let mut group_of: Vec<Option<usize>> = vec![None; states.len()];
        for (number, group) in groups.iter().enumerate() {
            for &column in group {
                let place = group_of.get_mut(column).ok_or(BlocksError::NoColumn(column))?;
                if place.replace(number).is_some() {
                    return Err(BlocksError::Twice(column));
                }
            }
        }
        let single = Self::none(states).blocks;
        let mut blocks = Vec::new();
        for (column, alone) in single.into_iter().enumerate() {
            match group_of[column].map(|group| &groups[group]) {
                Some(group) if group.len() > 1 => {
                    if group.iter().min() == Some(&column) {
                        let mut block = Self::empty(states, group.clone())?;
                        see(&mut block);
                        let states = block.seen.len();
                        if states == 0 {
                            return Err(BlocksError::NeverSeen(column));
                        }
                        if states > MAX_SEEN {
                            return Err(BlocksError::TooManySeen { column, states });
                        }
                        blocks.push(block);
                    }
                }
                _ => blocks.push(alone),
            }
        }
        Ok(Self { blocks, columns: states.len() })
    }

    /// From groups of columns and the combinations of each that have a state of their own, in order.
    pub fn from_combinations(
        states: &[usize],
        groups: &[(Vec<usize>, Vec<Vec<u16>>)],
    ) -> Result<Self, BlocksError> {
        let columns: Vec<Vec<usize>> = groups.iter().map(|(columns, _)| columns.clone()).collect();
        // With a first combination for each, so that none is empty; the right ones come next.
        let mut any = Table::new(states);
        any.push(&vec![0; states.len()]);
        let mut made = Self::new(states, &columns, &any.unique())?;
        for (columns, combinations) in groups {
            let found = made.blocks.iter_mut().find(|block| block.columns == *columns && columns.len() > 1);
            let bad = BlocksError::Combinations(columns.first().copied().unwrap_or(0));
            let block = found.ok_or(bad.clone())?;
            let fits = |codes: &Vec<u16>| {
                codes.len() == block.states.len()
                    && codes.iter().zip(&block.states).all(|(&code, &states)| usize::from(code) < states)
            };
            if !combinations.iter().all(fits) {
                return Err(bad);
            }
            let number = |codes: &Vec<u16>| {
                codes
                    .iter()
                    .zip(&block.states)
                    .fold(0, |number, (&code, &states)| number * states as u32 + u32::from(code))
            };
            let seen: Vec<u32> = combinations.iter().map(number).collect();
            if seen.is_empty() || seen.len() > MAX_SEEN || !seen.is_sorted_by(|a, b| a < b) {
                return Err(bad);
            }
            block.unseen += block.seen.len();
            block.unseen -= seen.len();
            block.seen = seen;
        }
        Ok(made)
    }

    fn empty(states: &[usize], mut columns: Vec<usize>) -> Result<Block, BlocksError> {
        columns.sort_unstable();
        let states: Vec<usize> = columns.iter().map(|&column| states[column]).collect();
        let all = states
            .iter()
            .try_fold(1usize, |all, &count| all.checked_mul(count).filter(|&all| all <= MAX_COMBINATIONS));
        let unseen = all.ok_or(BlocksError::TooMany(columns[0]))?;
        Ok(Block { columns, states, seen: Vec::new(), unseen })
    }

    /// The blocks, by their first columns.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Is every column by itself?
    pub fn is_none(&self) -> bool {
        self.blocks.len() == self.columns
    }

    /// The number of states of every block.
    pub fn states(&self) -> Vec<usize> {
        self.blocks.iter().map(Block::states).collect()
    }

    /// The number of states of every column.
    pub fn column_states(&self) -> Vec<usize> {
        let mut states = vec![0; self.columns];
        for block in &self.blocks {
            block.columns.iter().zip(&block.states).for_each(|(&column, &count)| states[column] = count);
        }
        states
    }

    /// Groups of columns and their combinations: what [`Blocks::from_combinations`] takes.
    pub fn combinations(&self) -> Vec<(Vec<usize>, Vec<Vec<u16>>)> {
        let several = self.blocks.iter().filter(|block| block.columns.len() > 1);
        several
            .map(|block| {
                let seen = block.seen.iter().map(|&number| block.codes(number)).collect();
                (block.columns.clone(), seen)
            })
            .collect()
    }

    /// For every column its block, and its place in it.
    pub fn places(&self) -> Vec<(usize, usize)> {
        let mut places = vec![(0, 0); self.columns];
        for (number, block) in self.blocks.iter().enumerate() {
            block.columns.iter().enumerate().for_each(|(place, &column)| places[column] = (number, place));
        }
        places
    }

    /// Probabilities of edges between blocks, below the diagonal, as those between columns; columns of one block are joined as probably as it is said.
    ///
    /// # Panics
    /// When the matrix is not over these blocks.
    pub fn over_columns(&self, matrix: &[f64], joined: f64) -> Vec<f64> {
        let (n, columns, places) = (self.blocks.len(), self.columns, self.places());
        assert_eq!(matrix.len(), n * n, "a matrix over these blocks");
        let mut edges = vec![0.0; columns * columns];
        for v in 0..columns {
            for u in 0..v {
                let (one, other) = (places[u].0, places[v].0);
                edges[v * columns + u] = match one == other {
                    true => joined,
                    false => matrix[one.max(other) * n + one.min(other)],
                };
            }
        }
        edges
    }

    /// Rows of columns as rows of blocks.
    ///
    /// # Panics
    /// When the table has other columns.
    pub fn encode(&self, table: &Table) -> Table {
        assert_eq!(table.variables(), self.columns, "a table of these columns");
        if self.is_none() {
            return table.clone();
        }
        let mut out = Table::new(&self.states());
        let places: Vec<HashMap<u32, u16>> = self
            .blocks
            .iter()
            .map(|block| block.seen.iter().zip(0..).map(|(&number, state)| (number, state)).collect())
            .collect();
        let codes = table.codes();
        let mut line = vec![0; self.blocks.len()];
        for row in 0..table.rows() {
            for ((to, block), places) in line.iter_mut().zip(&self.blocks).zip(&places) {
                let number = block.number(|column| codes.get(row, column));
                *to = places.get(&number).copied().unwrap_or(block.seen.len() as u16);
            }
            out.push(&line);
        }
        out
    }

    /// The logarithm of the share that one row of columns has in the probability of its row of blocks: what the
    /// combinations that are not told apart divide among them.
    pub fn log_share(&self, row: impl Fn(usize) -> usize) -> f64 {
        let shared = |(number, block): (usize, &Block)| {
            if row(number) == block.seen.len() { -(block.unseen as f64).ln() } else { 0.0 }
        };
        self.blocks.iter().enumerate().map(shared).sum()
    }

    /// Distinct rows of blocks with weights, and the share that rows of columns have in them; of complete rows.
    pub fn unique(&self, data: &Dataset) -> Unique {
        let mut unique = self.unique_of_blocks(&self.encode(data.table()), data.weights());
        if !data.numbers().is_empty() {
            unique.add_log_shares(|row| data.log_density(row));
        }
        unique
    }

    /// The same, of rows of blocks.
    pub(crate) fn unique_of_blocks(&self, encoded: &Table, weights: &[f64]) -> Unique {
        let mut unique = encoded.unique_weighted(weights);
        if !self.is_none() {
            let codes = unique.table.codes();
            let share = |row: usize| self.log_share(|block| codes.get(row, block));
            unique.log_shares = (0..unique.table.rows()).map(share).collect();
        }
        unique
    }
}

impl Block {
    /// Gives every combination of these rows a state of its own.
    fn see<'a>(&mut self, rows: impl Iterator<Item = (usize, &'a Table)>) {
        let mut seen: Vec<u32> =
            rows.map(|(row, table)| self.number(|column| table.get(row, column))).collect();
        seen.sort_unstable();
        seen.dedup();
        self.unseen += self.seen.len();
        self.unseen -= seen.len();
        self.seen = seen;
    }
}
