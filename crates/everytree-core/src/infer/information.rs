//! Entropy, divergence and mutual information of a model: exact where everything can be enumerated, else from random rows or
//! random trees, with an error.

use super::InferError;
use super::columns::given_state;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::exact;
use super::messages::Messages;
use super::method::{Effort, Method};
use super::one_tree::TreePosterior;
use super::proposal::Proposal;
use super::sample::Sampling;
use super::stored::{self, KernelPosterior};
use super::whole::{Group, Inference};
use crate::blocks::Blocks;
use crate::data::Table;
use crate::model::{ComponentInference, Density, EdgeTables, Kernel, ModelError, TreeModel};
use crate::util::choose;
use crate::util::{seed_of, stream};
use rand::RngExt;
use rayon::prelude::*;

/// Rows or trees at first.
const FIRST: usize = 1024;
/// Cells of random rows that are held at once.
const CELLS: usize = 2_000_000;
/// Trees of one stream of random numbers.
const CHUNK: usize = 32;

impl Inference<'_> {
    /// The entropy of the model in nats. Of the effort, `trees` bounds the random rows.
    pub fn entropy(&self, effort: Effort<'_>) -> Result<Estimate, InferError> {
        let mut value = 0.0;
        if let Some(Group { blocks, mixed }) = self.enumerable(effort) {
            exact::each(mixed, &Evidence::none(&blocks.states()), &mut |row, log| {
                if log > f64::NEG_INFINITY {
                    let share = blocks.log_share(|block| usize::from(row[block]));
                    value -= log.exp() * (log + share);
                }
            })?;
            return Ok(Estimate { value, standard_error: 0.0 });
        }
        let nothing = Evidence::none(&self.columns);
        if self.enumerable_given(&nothing, effort.operations) {
            exact::each(self, &nothing, &mut |_, log| {
                if log > f64::NEG_INFINITY {
                    value -= log.exp() * log;
                }
            })?;
            return Ok(Estimate { value, standard_error: 0.0 });
        }
        self.mean(effort, &|_, log_p| Ok(log_p.iter().map(|log| -log).collect()))
    }

    /// The Kullback–Leibler divergence `E[log p − log q]` over rows of this model, in nats: infinite where the other
    /// rules out what this does not. A row of this is one of the other after `translate`.
    pub fn divergence(
        &self,
        other: &Inference<'_>,
        translate: &dyn Fn(&[u16]) -> Vec<u16>,
        effort: Effort<'_>,
    ) -> Result<Estimate, InferError> {
        let differences = |rows: &[Vec<u16>], log_p: &[f64]| -> Result<Vec<f64>, ModelError> {
            let log_q = other.log_p_of(&rows.iter().map(|row| translate(row)).collect::<Vec<_>>())?;
            Ok(log_p.iter().zip(log_q).map(|(p, q)| p - q).collect())
        };
        let nothing = Evidence::none(&self.columns);
        if self.enumerable_given(&nothing, effort.operations) {
            let (mut rows, mut log_p) = (Vec::new(), Vec::new());
            exact::each(self, &nothing, &mut |row, log| {
                if log > f64::NEG_INFINITY {
                    rows.push(row.to_vec());
                    log_p.push(log);
                }
            })?;
            let values = differences(&rows, &log_p)?;
            let value = values.iter().zip(&log_p).map(|(value, log)| value * log.exp()).sum();
            return Ok(Estimate { value, standard_error: 0.0 });
        }
        self.mean(effort, &differences)
    }

    /// The one group of components, where there is one and all of its rows can be looked at.
    fn enumerable(&self, effort: Effort<'_>) -> Option<&Group<'_>> {
        self.single().filter(|group| {
            let nothing = Evidence::none(&group.blocks.states());
            let operations = effort.operations / group.mixed.parts.len() as f64;
            Method::affordable(&nothing, operations) == Method::Exact
        })
    }

    fn log_p_of(&self, rows: &[Vec<u16>]) -> Result<Vec<f64>, ModelError> {
        let mut table = Table::new(&self.columns);
        rows.iter().for_each(|row| table.push(row));
        self.log_p(&table)
    }

    /// The mean of a function over random rows of the model.
    fn mean(&self, effort: Effort<'_>, of: &OfRows<'_>) -> Result<Estimate, InferError> {
        let nothing = Evidence::none(&self.columns);
        let mut values: Vec<f64> = Vec::new();
        let mut round = 0;
        loop {
            let more = if values.is_empty() { FIRST } else { values.len() };
            // Rows are held until they are scored.
            let more = more.min((CELLS / self.columns.len()).max(FIRST));
            let more = more.min(effort.trees.saturating_sub(values.len())).max(1);
            let sampling = Sampling { seed: seed_of(effort.seed, round), operations: effort.operations };
            let (rows, _) = self.sample(&nothing, more, sampling)?;
            values.extend(of(&rows, &self.log_p_of(&rows)?)?);
            let estimate = mean_of(&values);
            let enough = effort.tolerance.is_some_and(|tolerance| estimate.standard_error <= tolerance);
            if enough || values.len() >= effort.trees || !estimate.value.is_finite() {
                return Ok(estimate);
            }
            round += 1;
        }
    }
}

/// What a function makes of rows and their log-probabilities.
type OfRows<'a> = dyn Fn(&[Vec<u16>], &[f64]) -> Result<Vec<f64>, ModelError> + 'a;

/// The mean of independent values.
fn mean_of(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    if !value.is_finite() {
        return Estimate { value, standard_error: 0.0 };
    }
    let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
    Estimate { value, standard_error: (squares / (count - 1.0).max(1.0) / count).sqrt() }
}

impl Inference<'_> {
    /// The mutual information of two columns under the model, in nats.
    ///
    /// # Panics
    /// When there are no such columns.
    pub fn mutual_information(&self, u: usize, v: usize, effort: Effort<'_>) -> Result<Estimate, InferError> {
        let k_v = self.columns[v];
        // Never below zero, whatever rounding says.
        let of_joint =
            |joint: &[f64]| Estimate { value: dot(joint, &ratios(joint, k_v)).max(0.0), standard_error: 0.0 };
        if let Some(Group { blocks, mixed }) = self.enumerable(effort) {
            let pair = Pair::new(blocks, u, v);
            let mut joint = vec![0.0; pair.size()];
            exact::each(mixed, &Evidence::none(&blocks.states()), &mut |row, log| {
                joint[pair.place(row)] += log.exp();
            })?;
            return Ok(of_joint(&pair.of_columns(&joint)));
        }
        // What single trees say is exact; of all trees, random ones tell.
        let mut exactly = vec![0.0; self.columns[u] * k_v];
        let mut sources = Vec::new();
        for (group, part, weight) in self.parts() {
            let pair = Pair::new(&group.blocks, u, v);
            match part {
                ComponentInference::OneTree(tree) => {
                    let joint = pair.of_columns(&pair.joint_of_tree(tree, &group.blocks.states()));
                    exactly.iter_mut().zip(joint).for_each(|(sum, p)| *sum += weight.exp() * p);
                }
                ComponentInference::Stored(kernel) => {
                    let joint = pair.of_columns(&pair.joint_of_kernel(kernel));
                    exactly.iter_mut().zip(joint).for_each(|(sum, p)| *sum += weight.exp() * p);
                }
                ComponentInference::AllTrees(density) => {
                    let density = &**density;
                    let given = pair.in_turn(&group.blocks.states());
                    let (weight, proposal) = (weight.exp(), Proposal::prior(density)?);
                    sources.push(Source { weight, density, proposal, pair, given });
                }
            }
        }
        if sources.is_empty() {
            return Ok(of_joint(&exactly));
        }
        let joints = Joints { exactly, sources, seed: effort.seed };
        let mut trees = FIRST.min(effort.trees.max(1));
        loop {
            let mean = joints.mean_of(trees, &|joint| joint.to_vec());
            // How much one tree more changes the figure: its derivative, and the tree's part in it.
            let slopes = ratios(&mean, k_v);
            let value = dot(&mean, &slopes);
            let moments = joints.mean_of(trees, &|joint| {
                let part = dot(joint, &slopes);
                vec![part, part * part]
            });
            let variance = (moments[1] - moments[0] * moments[0]).max(0.0);
            let standard_error = (variance / (trees as f64 - 1.0).max(1.0)).sqrt();
            let enough = effort.tolerance.is_some_and(|tolerance| standard_error <= tolerance);
            if enough || trees >= effort.trees {
                return Ok(Estimate { value, standard_error });
            }
            trees = (2 * trees).min(effort.trees);
        }
    }
}

/// Two columns, and how their joint distribution comes from that of their blocks.
struct Pair {
    /// The blocks; one where both columns are in the same.
    blocks: (usize, usize),
    /// States of the blocks.
    states: (usize, usize),
    /// How probable each code of the one and of the other column is given each state; in one block: each pair of codes.
    given: (Vec<Vec<f64>>, Vec<Vec<f64>>),
    /// States of the other column.
    k_v: usize,
}

impl Pair {
    fn new(of: &Blocks, u: usize, v: usize) -> Self {
        let (places, columns) = (of.places(), of.column_states());
        let block = |column: usize| &of.blocks()[places[column].0];
        let (k_u, k_v) = (columns[u], columns[v]);
        let given = |column: usize, states: usize| given_state(block(column), places[column].1, states);
        let blocks = (places[u].0, places[v].0);
        if blocks.0 != blocks.1 {
            let given = (given(u, k_u), given(v, k_v));
            let states = (given.0.len(), given.1.len());
            return Self { blocks, states, given, k_v };
        }
        let one = block(u);
        let mut pairs = vec![vec![0.0; k_u * k_v]; one.states()];
        let mut add = |state: usize, codes: &[u16], weight: f64| {
            let (a, b) = (usize::from(codes[places[u].1]), usize::from(codes[places[v].1]));
            pairs[state][a * k_v + b] += weight;
        };
        for state in 0..one.states() {
            match one.combination(state) {
                Some(codes) => add(state, &codes, 1.0),
                None => one.others().for_each(|codes| add(state, &codes, 1.0 / one.unseen() as f64)),
            }
        }
        Self { blocks, states: (one.states(), 1), given: (pairs, Vec::new()), k_v }
    }

    fn size(&self) -> usize {
        self.states.0 * self.states.1
    }

    /// The joint distribution of the blocks, which have so many states, under one tree.
    fn joint_of_tree(&self, tree: &TreeModel, states: &[usize]) -> Vec<f64> {
        let mut joint = vec![0.0; self.size()];
        let asked_for = self.asked_for();
        let own = tree.offsets()[asked_for]..tree.offsets()[asked_for + 1];
        for (evidence, line) in self.in_turn(states).iter().zip(joint.chunks_exact_mut(own.len())) {
            let mut told = TreePosterior::new(tree, evidence);
            let p = told.log_evidence().exp();
            let posterior = &told.posterior()[own.clone()];
            line.iter_mut().zip(posterior).for_each(|(entry, q)| *entry = p * q);
        }
        joint
    }

    /// The same under a kernel.
    fn joint_of_kernel(&self, kernel: &Kernel) -> Vec<f64> {
        if self.one_block() {
            let nothing = Evidence::none(kernel.rows().states());
            let place = kernel.rows().states()[..self.blocks.0].iter().sum::<usize>();
            return KernelPosterior::new(kernel, &nothing).posterior()[place..][..self.states.0].to_vec();
        }
        stored::joint(kernel, self.blocks.0, self.blocks.1)
    }

    /// Are both columns in one block?
    fn one_block(&self) -> bool {
        self.given.1.is_empty()
    }

    /// Every state of the first block in turn, as evidence; nothing where there is no other block.
    fn in_turn(&self, states: &[usize]) -> Vec<Evidence> {
        if self.one_block() {
            return vec![Evidence::none(states)];
        }
        let one = |state: usize| {
            let mut evidence = Evidence::none(states);
            let set = evidence.set(self.blocks.0, &[state]);
            debug_assert!(set.is_ok());
            evidence
        };
        (0..self.states.0).map(one).collect()
    }

    /// The block whose posterior is then asked for.
    fn asked_for(&self) -> usize {
        if self.one_block() { self.blocks.0 } else { self.blocks.1 }
    }

    /// The place of a row of blocks in their joint distribution.
    fn place(&self, row: &[u16]) -> usize {
        let first = usize::from(row[self.blocks.0]);
        if self.states.1 == 1 && self.given.1.is_empty() {
            return first;
        }
        first * self.states.1 + usize::from(row[self.blocks.1])
    }

    /// The joint distribution of the columns from that of the blocks.
    fn of_columns(&self, of_blocks: &[f64]) -> Vec<f64> {
        let (first, second) = &self.given;
        if second.is_empty() {
            let mut joint = vec![0.0; first[0].len()];
            for (p, pairs) in of_blocks.iter().zip(first) {
                joint.iter_mut().zip(pairs).for_each(|(entry, pair)| *entry += p * pair);
            }
            return joint;
        }
        let mut joint = vec![0.0; first[0].len() * self.k_v];
        for (s, left) in first.iter().enumerate() {
            for (t, right) in second.iter().enumerate() {
                let p = of_blocks[s * self.states.1 + t];
                for (a, l) in left.iter().enumerate().filter(|(_, l)| **l > 0.0) {
                    let line = &mut joint[a * self.k_v..(a + 1) * self.k_v];
                    line.iter_mut().zip(right).for_each(|(entry, r)| *entry += p * l * r);
                }
            }
        }
        joint
    }
}

/// `log P(a, b) / (P(a) P(b))`, 0 where there is nothing.
fn ratios(joint: &[f64], k_v: usize) -> Vec<f64> {
    let rows: Vec<f64> = joint.chunks_exact(k_v).map(|row| row.iter().sum()).collect();
    let columns: Vec<f64> = (0..k_v).map(|b| joint.iter().skip(b).step_by(k_v).sum()).collect();
    let ratio = |(place, &p): (usize, &f64)| {
        if p > 0.0 { (p / (rows[place / k_v] * columns[place % k_v])).ln() } else { 0.0 }
    };
    joint.iter().enumerate().map(ratio).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The joint distributions of two columns under random trees.
struct Joints<'a> {
    /// What is known without them, times its weight.
    exactly: Vec<f64>,
    /// Components of all trees.
    sources: Vec<Source<'a>>,
    seed: u64,
}

/// A component of all trees.
struct Source<'a> {
    weight: f64,
    density: &'a dyn Density,
    /// Its prior over trees.
    proposal: Proposal,
    pair: Pair,
    /// Every state of the first block in turn.
    given: Vec<Evidence>,
}

impl Joints<'_> {
    /// The mean over the first `trees` trees of a function of the joint distribution: the same trees every time.
    fn mean_of(&self, trees: usize, of: &(dyn Fn(&[f64]) -> Vec<f64> + Sync)) -> Vec<f64> {
        let shares: Vec<f64> = self.sources.iter().map(|source| source.weight).collect();
        let all: f64 = shares.iter().sum();
        let parts: Vec<Vec<f64>> = (0..trees.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut rng = stream(self.seed, "trees of pairs", chunk as u64);
                let mut messages: Vec<Messages<'_>> =
                    self.sources.iter().map(|source| Messages::new(source.density.tables())).collect();
                let mut sum: Vec<f64> = Vec::new();
                for _ in chunk * CHUNK..trees.min((chunk + 1) * CHUNK) {
                    let number = if shares.len() > 1 { choose(&shares, rng.random()) } else { 0 };
                    let Source { density, proposal, pair, given, .. } = &self.sources[number];
                    let offsets = density.tables().offsets();
                    let own = offsets[pair.asked_for()]..offsets[pair.asked_for() + 1];
                    let mut joint = vec![0.0; pair.size()];
                    let (tree, _) = proposal.draw(&mut rng);
                    for (evidence, row) in given.iter().zip(joint.chunks_exact_mut(own.len())) {
                        let p = messages[number].collect(&tree, evidence).exp();
                        let posterior = &messages[number].distribute(&tree)[own.clone()];
                        row.iter_mut().zip(posterior).for_each(|(entry, q)| *entry = p * q);
                    }
                    let mut joint = pair.of_columns(&joint);
                    joint.iter_mut().zip(&self.exactly).for_each(|(p, exactly)| *p = all * *p + exactly);
                    let values = of(&joint);
                    sum.resize(values.len(), 0.0);
                    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                }
                sum
            })
            .collect();
        let mut mean = vec![0.0; parts[0].len()];
        for part in parts {
            mean.iter_mut().zip(part).for_each(|(mean, sum)| *mean += sum / trees as f64);
        }
        mean
    }
}
