//! The hidden Chow–Liu tree: every variable hangs at a latent one of its own, and the latent ones form the tree.

use super::parameters::{Layout, TreeParameters};
use super::{OneTree, TableCounts, TreeModel, best_tree};
use crate::data::Codes;
use crate::model::family::{ComponentShape, FamilySpec, Initialisation, Preset, Trees};
use crate::model::settings::{AUTO, HowMany};
use crate::model::{Grows, ModelError, Optimiser, Regularisation, Series, Settings, clusters};
use crate::util::{Stop, stream};
use rand::RngExt;
use rayon::prelude::*;
use std::borrow::Cow;

/// Most states of a latent variable.
pub const MAX_HIDDEN: usize = 1024;

/// So much of every table is left to chance, so that learning can leave where it begins.
const CHANCE: f64 = 0.2;

/// A hidden Chow–Liu tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Hclt(TreeParameters);

impl Hclt {
    /// States of every latent variable.
    pub fn hidden(&self) -> usize {
        self.0.layout.states[self.0.layout.observed]
    }

    /// The parent of every latent variable among them; a root is its own.
    pub fn latent_parents(&self) -> Vec<usize> {
        let n = self.0.layout.observed;
        self.0.parents[n..].iter().map(|parent| parent - n).collect()
    }
}

/// Expectation–maximisation of small batches.
fn counting(usual: Settings) -> Settings {
    Settings {
        epochs: 100,
        batch_size: 64,
        patience: Some(6),
        cosine: false,
        optimiser: Optimiser::Em,
        ..usual
    }
}

impl OneTree for Hclt {
    const SPEC: FamilySpec = FamilySpec {
        name: "hclt",
        title: "hidden Chow–Liu tree",
        presets: &[Preset {
            aliases: &["hidden-chow-liu"],
            hidden: HowMany::UpTo(AUTO),
            ..Preset::one("hclt", "one tree of latent variables, one for each column (hidden Chow–Liu tree)")
        }],
        trees: Trees::OneLatent,
        optimisers: &[Optimiser::Adam, Optimiser::Em],
        // Latent states of different components have nothing in common.
        shrinkage: false,
        // Gradients are quicker where there are many rows, expectation–maximisation gets further where there are few.
        series: &[
            Series::new(3, Grows::Hidden(4)),
            Series { settings: counting, ..Series::new(8, Grows::HiddenFrom(0)) },
            Series { settings: counting, ..Series::new(7, Grows::HiddenOfBlocks(8)) },
        ],
        ..FamilySpec::USUAL
    };
    type Stats = TableCounts;

    /// Gradients, like the directed family: they get further than expectation–maximisation in the same time (jester in
    /// experiments/results/table1.csv).
    fn settings(_: usize) -> Settings {
        Settings { epochs: 30, batch_size: 256, patience: Some(6), cosine: true, ..Settings::paper(0) }
    }

    fn layout(states: &[usize], shape: &ComponentShape) -> Result<(Layout, Vec<usize>), ModelError> {
        let hidden = shape.hidden.unwrap_or(0);
        if !(1..=MAX_HIDDEN).contains(&hidden) {
            return Err(ModelError::Hidden(hidden));
        }
        let n = states.len();
        let layout = Layout::new(states, &vec![hidden; n], hidden)?;
        let parent = |v: usize| if v < n { n + v } else { (v - 1).max(n) };
        Ok((layout, (0..2 * n).map(parent).collect()))
    }

    fn may_have(n: usize, variable: usize, parent: usize) -> bool {
        if variable < n { parent == n + variable } else { parent >= n }
    }

    fn from_parameters(parameters: TreeParameters) -> Self {
        Self(parameters)
    }

    /// A hidden tree along the tree of the highest mutual information.
    ///
    /// It begins as a mixture of trees: a state of a latent variable stands for the state of the variable that hangs at it
    /// together with a cluster of rows. Within a cluster latent variables follow each other as the rows have it, and the
    /// cluster is kept, but for chance. Latent variables with fewer states than the others begin as clusters alone.
    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        let &Initialisation { data, states, weights, ref counts, pseudocount, seed, .. } = from;
        let mut tree = Self::blank(states, &from.shape)?;
        let hidden = from.shape.hidden.unwrap_or(0);
        let n = states.len();
        let overall = counts;
        let parents = best_tree::best_tree(overall, pseudocount);
        let most = states.iter().copied().max().unwrap_or(1);
        // Without room for the states of every variable, only clusters are left.
        let told = hidden >= most;
        let groups = if told { hidden / most } else { hidden }.max(1);
        let responsibilities = clusters(data, states, groups, seed, from.stop);
        let rows: Vec<f64> = {
            let weights = weights.iter().flat_map(|weight| std::iter::repeat_n(*weight, groups));
            responsibilities.iter().zip(weights).map(|(part, weight)| part * weight).collect()
        };
        let counts = EdgeCounts::until(states, &parents, data.table.codes(), (&rows, groups), from.stop);
        // What a state of the hidden variable of v stands for: a cluster, and a state of v.
        let meaning = |v: usize, a: usize| match told {
            true if a < groups * states[v] => Some((a / states[v], Some(a % states[v]))),
            false => Some((a, None)),
            true => None,
        };
        let smooth = pseudocount.max(1.0);
        let of_groups = |table: &dyn Fn(usize, usize) -> Vec<f64>| -> Vec<Vec<Vec<f64>>> {
            (0..groups).map(|group| (0..n).map(|v| table(group, v)).collect()).collect()
        };
        let margins = of_groups(&|group, v| counts.margin(group, v, smooth));
        let conditionals = of_groups(&|group, v| counts.conditional(group, v, smooth));
        // How probable such a state is, given what its parent stands for.
        let follows = |v: usize, parent: Option<(usize, Option<usize>)>, b: usize| {
            let Some((group, own)) = meaning(v, b) else { return 0.0 };
            match (parent, own) {
                (Some((other, _)), _) if other != group => 0.0,
                (Some((_, Some(a))), Some(b)) => conditionals[group][v][a * states[v] + b],
                (Some(_), _) => 1.0,
                (None, own) => {
                    let share = (counts.totals[group] + 1.0) / (overall.total() + groups as f64);
                    share * own.map_or(1.0, |b| margins[group][v][b])
                }
            }
        };
        let mut rng = stream(seed, "hidden tree", 0);
        let mut by_chance = |count: usize| -> Vec<f64> {
            normalised((0..count).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect())
        };
        let mut lines: Vec<Vec<Vec<f64>>> = Vec::new();
        for v in 0..n {
            let line = |a: usize, chance: Vec<f64>| {
                let known: Vec<f64> = match meaning(v, a) {
                    Some((_, Some(own))) => (0..states[v]).map(|b| f64::from(u8::from(b == own))).collect(),
                    Some((group, None)) => margins[group][v].clone(),
                    None => chance,
                };
                blend(&known, &best_tree::margin(overall, v, smooth))
            };
            lines.push((0..hidden).map(|a| line(a, by_chance(states[v]))).collect());
        }
        for v in 0..n {
            let root = parents[v] == v;
            let line = |a: usize, chance: Vec<f64>| {
                let parent = if root { None } else { meaning(parents[v], a) };
                if !root && parent.is_none() {
                    return chance;
                }
                let known: Vec<f64> = (0..hidden).map(|b| follows(v, parent, b)).collect();
                blend(&normalised(known), &chance)
            };
            lines.push((0..hidden).map(|a| line(a, by_chance(hidden))).collect());
        }
        for (v, &parent) in parents.iter().enumerate() {
            tree.parents[n + v] = n + parent;
        }
        for (v, lines) in lines.iter().enumerate() {
            lines.iter().enumerate().for_each(|(a, line)| tree.set_table(v, a, line));
        }
        Ok(Self(tree))
    }

    fn parameters(&self) -> &TreeParameters {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut TreeParameters {
        &mut self.0
    }

    fn shape(&self) -> ComponentShape {
        ComponentShape { hidden: Some(self.hidden()), ..ComponentShape::default() }
    }

    fn no_stats(&self) -> TableCounts {
        TableCounts::none(&self.0)
    }

    fn add(
        tree: &mut TreeModel,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut TableCounts,
    ) -> Result<(), ModelError> {
        stats.add(tree, codes, weights)
    }

    fn total(stats: &TableCounts) -> f64 {
        stats.total
    }

    fn table_counts<'a>(&self, stats: &'a TableCounts) -> Cow<'a, [f64]> {
        Cow::Borrowed(&stats.tables)
    }

    fn fit_counts(&mut self, stats: &TableCounts, _: Option<&TableCounts>, by: &Regularisation) {
        self.0.maximise(&stats.tables, None, by);
    }
}

/// How often states of variables and of their parents in a tree come together, in groups of rows.
struct EdgeCounts {
    /// `[v][group][a][b]`, a the state of the parent; of a root there is one line.
    tables: Vec<Vec<f64>>,
    /// Weight of each group.
    totals: Vec<f64>,
    states: Vec<usize>,
}

/// Cells that are counted between two looks at the clock.
const CELLS_AT_ONCE: usize = 1 << 24;

impl EdgeCounts {
    /// Of rows with a weight for every group, group by group; of some of them where `stop` asks for an end.
    fn until(
        states: &[usize],
        parents: &[usize],
        codes: Codes<'_>,
        (weights, groups): (&[f64], usize),
        stop: Stop<'_>,
    ) -> Self {
        let lines = |v: usize| if parents[v] == v { 1 } else { states[parents[v]] };
        let mut tables: Vec<Vec<f64>> =
            (0..states.len()).map(|v| vec![0.0; groups * lines(v) * states[v]]).collect();
        let mut totals = vec![0.0; groups];
        let some = (CELLS_AT_ONCE / (groups * states.len()).max(1)).max(1);
        for start in (0..codes.rows()).step_by(some) {
            if start > 0 && stop() {
                break;
            }
            let rows = start..(start + some).min(codes.rows());
            tables.par_iter_mut().enumerate().for_each(|(v, table)| {
                let (lines, count) = (lines(v), states[v]);
                for row in rows.clone() {
                    let line = if parents[v] == v { 0 } else { codes.get(row, parents[v]) };
                    let places = (line * count + codes.get(row, v)..).step_by(lines * count);
                    let weights = &weights[row * groups..][..groups];
                    weights.iter().zip(places).for_each(|(weight, place)| table[place] += weight);
                }
            });
            for row in rows {
                totals.iter_mut().zip(&weights[row * groups..]).for_each(|(total, weight)| *total += weight);
            }
        }
        Self { tables, totals, states: states.to_vec() }
    }

    fn of(&self, group: usize, v: usize) -> &[f64] {
        let size = self.tables[v].len() / self.totals.len();
        &self.tables[v][group * size..][..size]
    }

    /// The distribution of v, smoothed by a pseudocount.
    fn margin(&self, group: usize, v: usize, pseudocount: f64) -> Vec<f64> {
        let mut counts = vec![pseudocount / self.states[v] as f64; self.states[v]];
        for line in self.of(group, v).chunks_exact(self.states[v]) {
            counts.iter_mut().zip(line).for_each(|(sum, count)| *sum += count);
        }
        normalised(counts)
    }

    /// `P(x_v = b | x_u = a)` for the parent u, a line for every a, smoothed by a pseudocount for the pair.
    fn conditional(&self, group: usize, v: usize, pseudocount: f64) -> Vec<f64> {
        let table = self.of(group, v);
        let even = pseudocount / table.len() as f64;
        let lines = table.chunks_exact(self.states[v]);
        lines.flat_map(|line| normalised(line.iter().map(|count| count + even).collect())).collect()
    }
}

/// Mostly the one, a little of the other.
fn blend(known: &[f64], other: &[f64]) -> Vec<f64> {
    known.iter().zip(other).map(|(known, other)| (1.0 - CHANCE) * known + CHANCE * other).collect()
}

fn normalised(mut line: Vec<f64>) -> Vec<f64> {
    let sum: f64 = line.iter().sum();
    line.iter_mut().for_each(|p| *p /= sum);
    line
}
