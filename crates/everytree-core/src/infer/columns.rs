//! Between columns, of which people speak, and blocks of columns, which are the variables of a model.

use super::evidence::Evidence;
use super::measure::Projection;
use crate::blocks::{Block, Blocks};
use crate::util::offsets;
use rand::{Rng, RngExt};

/// Up to so many, the combinations that share a state are listed; beyond, they are counted by subtraction.
const LISTED: usize = 4096;

/// What evidence about columns says about the states of a block.
struct OfBlock<'a> {
    block: &'a Block,
    /// Likelihoods of the states of each column.
    columns: Vec<&'a [f64]>,
}

impl<'a> OfBlock<'a> {
    fn new(block: &'a Block, evidence: &'a Evidence) -> Self {
        Self { block, columns: block.columns().iter().map(|&column| evidence.of(column)).collect() }
    }

    fn of(&self, combination: &[u16]) -> f64 {
        combination.iter().zip(&self.columns).map(|(&code, column)| column[usize::from(code)]).product()
    }

    /// The likelihood of each state that stands for one combination.
    fn seen(&self) -> impl Iterator<Item = (Vec<u16>, f64)> + '_ {
        (0..)
            .map_while(|state| match state < self.block.states() {
                true => self.block.combination(state),
                false => None,
            })
            .map(|combination| {
                let likelihood = self.of(&combination);
                (combination, likelihood)
            })
    }

    /// The likelihoods of all combinations that share the last state, added up.
    fn others(&self) -> f64 {
        match self.block.unseen() {
            0 => 0.0,
            1..=LISTED => self.block.others().map(|combination| self.of(&combination)).sum(),
            _ => {
                let all: f64 = self.columns.iter().map(|column| column.iter().sum::<f64>()).product();
                (all - self.seen().map(|(_, likelihood)| likelihood).sum::<f64>()).max(0.0)
            }
        }
    }

    /// For every column and code, the share of the combinations that share the last state, by likelihood.
    fn shares(&self) -> Vec<Vec<f64>> {
        let mut shares: Vec<Vec<f64>> = self.columns.iter().map(|column| vec![0.0; column.len()]).collect();
        if self.block.unseen() <= LISTED {
            for combination in self.block.others() {
                let likelihood = self.of(&combination);
                shares
                    .iter_mut()
                    .zip(&combination)
                    .for_each(|(share, &code)| share[usize::from(code)] += likelihood);
            }
        } else {
            for (place, share) in shares.iter_mut().enumerate() {
                let rest: f64 = (0..self.columns.len())
                    .filter(|&other| other != place)
                    .map(|other| self.columns[other].iter().sum::<f64>())
                    .product();
                share.iter_mut().zip(self.columns[place]).for_each(|(share, own)| *share = own * rest);
            }
            for (combination, likelihood) in self.seen() {
                shares.iter_mut().zip(&combination).for_each(|(share, &code)| {
                    let share = &mut share[usize::from(code)];
                    *share = (*share - likelihood).max(0.0);
                });
            }
        }
        for share in &mut shares {
            let sum: f64 = share.iter().sum();
            if sum > 0.0 {
                share.iter_mut().for_each(|part| *part /= sum);
            }
        }
        shares
    }
}

/// Evidence about columns as evidence about blocks. A state that stands for many combinations has their mean likelihood.
pub(crate) fn of_blocks(blocks: &Blocks, evidence: &Evidence) -> Evidence {
    translate(blocks, evidence, |of| of.others() / of.block.unseen() as f64)
}

/// The same for whoever looks for the best row: a state that stands for many combinations is as good as the best of them.
pub(crate) fn for_the_best(blocks: &Blocks, evidence: &Evidence) -> Evidence {
    translate(blocks, evidence, |of| {
        let best = best_other(of).map_or(0.0, |(_, likelihood)| likelihood);
        best / of.block.unseen() as f64
    })
}

fn translate(blocks: &Blocks, evidence: &Evidence, others: impl Fn(&OfBlock<'_>) -> f64) -> Evidence {
    if blocks.is_none() {
        return evidence.clone();
    }
    let mut translated = Evidence::none(&blocks.states());
    for (number, block) in blocks.blocks().iter().enumerate() {
        let of = OfBlock::new(block, evidence);
        let mut likelihood: Vec<f64> = of.seen().map(|(_, likelihood)| likelihood).collect();
        if block.unseen() > 0 {
            likelihood.push(others(&of));
        }
        let set = translated.soft(number, &likelihood);
        debug_assert!(set.is_ok(), "finite, and each block once");
    }
    translated
}

/// The most likely of the combinations that share the last state; of equals the first.
fn best_other(of: &OfBlock<'_>) -> Option<(Vec<u16>, f64)> {
    let others = of.block.others().map(|combination| {
        let likelihood = of.of(&combination);
        (combination, likelihood)
    });
    others.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// How the states of columns come from the states of blocks, given the evidence; none where they are the same.
pub(crate) fn projection(blocks: &Blocks, columns: &[usize], evidence: &Evidence) -> Option<Projection> {
    if blocks.is_none() {
        return None;
    }
    let offsets = offsets(columns);
    let mut parts = Vec::new();
    for block in blocks.blocks() {
        let of = OfBlock::new(block, evidence);
        for (combination, _) in of.seen() {
            let places = block.columns().iter().zip(&combination);
            parts.push(places.map(|(&column, &code)| (offsets[column] + usize::from(code), 1.0)).collect());
        }
        if block.unseen() > 0 {
            let shares = of.shares();
            let each = block.columns().iter().zip(&shares).flat_map(|(&column, shares)| {
                let first = offsets[column];
                shares.iter().enumerate().map(move |(code, &share)| (first + code, share))
            });
            parts.push(each.filter(|(_, share)| *share > 0.0).collect());
        }
    }
    Some(Projection { offsets, parts })
}

/// A row of columns that a row of blocks stands for, at random where it stands for several.
pub(crate) fn a_row(blocks: &Blocks, evidence: &Evidence, row: &[u16], rng: &mut impl Rng) -> Vec<u16> {
    expand(blocks, row, |block| {
        let of = OfBlock::new(block, evidence);
        let mut left = rng.random::<f64>() * of.others();
        let mut last = None;
        for combination in block.others() {
            let likelihood = of.of(&combination);
            if likelihood > 0.0 {
                left -= likelihood;
                last = Some(combination);
                if left < 0.0 {
                    break;
                }
            }
        }
        // The last with any chance catches what rounding leaves over.
        last.unwrap_or_else(|| vec![0; block.columns().len()])
    })
}

/// The best rows of columns that a row of blocks stands for, at most so many, the best first, with their likelihoods.
pub(crate) fn best_rows(blocks: &Blocks, evidence: &Evidence, row: &[u16], most: usize) -> Vec<Vec<u16>> {
    // One block after the other: the rows so far, each with every combination of the block.
    let mut rows: Vec<(Vec<(usize, u16)>, f64)> = vec![(Vec::new(), 1.0)];
    for (block, &state) in blocks.blocks().iter().zip(row) {
        let of = OfBlock::new(block, evidence);
        let combinations: Vec<(Vec<u16>, f64)> = match block.combination(usize::from(state)) {
            Some(combination) => vec![(combination, 1.0)],
            None => {
                let mut others: Vec<(Vec<u16>, f64)> = block
                    .others()
                    .map(|combination| {
                        let likelihood = of.of(&combination);
                        (combination, likelihood)
                    })
                    .filter(|(_, likelihood)| *likelihood > 0.0)
                    .collect();
                others.sort_by(|a, b| b.1.total_cmp(&a.1));
                others.truncate(most);
                others
            }
        };
        let mut next = Vec::new();
        for (cells, likelihood) in &rows {
            for (combination, own) in &combinations {
                let own_cells = block.columns().iter().copied().zip(combination.iter().copied());
                next.push((cells.iter().copied().chain(own_cells).collect(), likelihood * own));
            }
        }
        next.sort_by(|a: &(Vec<_>, f64), b| b.1.total_cmp(&a.1));
        next.truncate(most);
        rows = next;
    }
    rows.into_iter()
        .map(|(mut cells, _)| {
            cells.sort_unstable();
            cells.into_iter().map(|(_, code)| code).collect()
        })
        .collect()
}

fn expand(blocks: &Blocks, row: &[u16], mut other: impl FnMut(&Block) -> Vec<u16>) -> Vec<u16> {
    let columns: usize = blocks.blocks().iter().map(|block| block.columns().len()).sum();
    let mut out = vec![0; columns];
    for (block, &state) in blocks.blocks().iter().zip(row) {
        let combination = block.combination(usize::from(state)).unwrap_or_else(|| other(block));
        block.columns().iter().zip(combination).for_each(|(&column, code)| out[column] = code);
    }
    out
}

/// How probable every code of a column is given each state of its block, nothing else being known.
pub(crate) fn given_state(block: &Block, place: usize, states: usize) -> Vec<Vec<f64>> {
    let mut given: Vec<Vec<f64>> = Vec::new();
    let mut counts = vec![0.0; states];
    for state in 0..block.states() {
        let mut line = vec![0.0; states];
        match block.combination(state) {
            Some(combination) => {
                line[usize::from(combination[place])] = 1.0;
                counts[usize::from(combination[place])] += 1.0;
            }
            None => {
                let all = (block.states() - 1 + block.unseen()) as f64;
                let each = all / states as f64;
                line.iter_mut().zip(&counts).for_each(|(p, seen)| *p = (each - seen) / block.unseen() as f64);
            }
        }
        given.push(line);
    }
    given
}
