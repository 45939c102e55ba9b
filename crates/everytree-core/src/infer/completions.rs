//! The probability of evidence from rows that complete it, each with its exact probability.
//!
//! A few random trees that explain the evidence say what the hidden cells may be. Their conditional distributions together are
//! a proposal `q`, rows `x` are drawn from it, and
//!
//! ```text
//! P(e) = E_q[ P(x) e(x) / q(x) ]
//! ```
//!
//! where `P(x)` is that of the whole model: all trees of all components. So trees only have to say where to look, and what they
//! leave out is made up for by the weights. Of rows with few hidden cells a few hundred completions are worth many thousand
//! trees.

use super::InferError;
use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::measure::places;
use super::messages::Messages;
use super::mixed::{Mixed, total};
use super::one_tree::TreePosterior;
use super::proposal::Proposal;
use crate::data::Table;
use crate::model::{ComponentInference, Likelihood, TreeModel, TreeTables};
use crate::spanning::{FreshTrees, RootedForest};
use crate::util::{choose, log_sum, offsets, softmax, stream};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::HashMap;

/// Random trees of all components together: at first, and in the last round; twice as many in every round.
const FIRST_TREES: usize = 32;
const MOST_TREES: usize = 128;
/// Completions for each tree.
const EACH: usize = 4;
/// Of the completions, one in so many is of the posteriors of single cells, as if they were independent: where all trees agree
/// on something that the model allows otherwise, weights stay bounded.
const ONE_IN: usize = 8;
/// Of the weight of a tree, so much does not depend on how well it explains the evidence.
const EVEN: f64 = 0.1;
/// Of the trees of later rounds, one in so many knows nothing of the completions before.
const FRESH: usize = 4;
/// Of the completions, so many must count.
const LEAST_SHARE: f64 = 0.25;
/// So much of the probability may lie where only one of the trees leads, in units of the error that is wanted: of trees that
/// have seen no completions, and of others.
const MOST_ALONE: [f64; 2] = [0.1, 0.4];
/// The last round may be off by so much more than is wanted: whatever goes on from there takes many times as long.
const LENIENCE: f64 = 2.0;
/// Where trees alone are as exact as this, in units of the error that is wanted, there is nothing to do for completions.
const TREES_ARE_ENOUGH: f64 = 0.1;
/// Smaller errors than this take more completions than there are.
pub(super) const LEAST_TOLERANCE: f64 = 0.01;

/// The logarithm of the probability of the evidence; nothing where a few rounds do not get near the tolerance, or trees alone
/// would do.
pub(super) fn log_evidence(
    mixed: &Mixed<'_>,
    evidence: &Evidence,
    tolerance: f64,
    seed: u64,
) -> Result<Option<Estimate>, InferError> {
    let mut rng = stream(seed, "completions", 0);
    let mut trees = FIRST_TREES;
    let mut before = None;
    while trees <= MOST_TREES {
        let Some(proposal) = Completions::new(mixed, evidence, trees, before.as_ref(), &mut rng)? else {
            return Ok(None);
        };
        if before.is_none() && proposal.by_trees.standard_error <= TREES_ARE_ENOUGH * tolerance {
            return Ok(None);
        }
        let drawn = proposal.draw(EACH * trees, &mut rng)?;
        let mut sums = Sums::new(0);
        drawn.log_weights.iter().for_each(|log_weight| sums.push(*log_weight, &[]));
        if sums.effective() == 0.0 {
            return Ok(None);
        }
        let Estimate { value, standard_error } = sums.log_mean_weight();
        let alone = drawn.alone();
        let most_alone = MOST_ALONE[usize::from(before.is_some())] * tolerance;
        let good = alone <= most_alone && standard_error <= tolerance;
        let will_do = trees == MOST_TREES && standard_error.hypot(alone) <= LENIENCE * tolerance;
        let enough = sums.effective() >= LEAST_SHARE * sums.draws() as f64;
        if enough && (good || will_do) {
            // The logarithm of a mean comes out low by half its squared error. What no tree leads to is about as much as what
            // one tree alone leads to (Good and Turing).
            let value = value + standard_error * standard_error / 2.0;
            return Ok(Some(Estimate { value, standard_error: standard_error.hypot(alone) }));
        }
        (before, trees) = (Some(drawn), 2 * trees);
    }
    Ok(None)
}

/// A distribution of completions of one row.
struct Completions<'a> {
    mixed: &'a Mixed<'a>,
    evidence: &'a Evidence,
    /// Where they come from, and how often.
    sources: Vec<(f64, Source<'a>)>,
    /// What single cells may be: `[v:b]`.
    single: Vec<f64>,
    offsets: Vec<usize>,
    /// The states of cells that are known.
    known: Vec<Option<usize>>,
    /// The logarithm of the probability of the evidence, from trees that know of no completions alone.
    by_trees: Estimate,
}

/// Completions.
struct Drawn {
    rows: Vec<Vec<u16>>,
    /// The logarithm of the probability of each under every component, one component after the other.
    by_components: Vec<f64>,
    log_weights: Vec<f64>,
    /// Where one tree leads and hardly any other.
    alone: Vec<bool>,
}

impl Drawn {
    /// How much of the probability lies where one tree leads alone.
    fn alone(&self) -> f64 {
        let weights = softmax(&self.log_weights);
        weights.iter().zip(&self.alone).filter(|(_, alone)| **alone).map(|(weight, _)| weight).sum()
    }

    fn of_components(&self, row: usize) -> impl Iterator<Item = f64> {
        self.by_components.iter().skip(row).step_by(self.rows.len()).copied()
    }
}

/// Where completions come from.
enum Source<'a> {
    /// A component that is one tree, by its number.
    Component(usize, TreePosterior<'a>),
    /// A tree at random.
    Tree(ATree<'a>),
}

/// A tree at random, and what it says of free cells.
struct ATree<'a> {
    tables: &'a TreeTables,
    tree: RootedForest,
    /// Cells whose conditional probability depends on what is free, with their parents; and roots that are free.
    edges: Vec<(usize, usize)>,
    roots: Vec<usize>,
    /// The logarithm of the probability of all other cells over that of the evidence.
    log_rest: f64,
}

impl<'a> ATree<'a> {
    fn new(tables: &'a TreeTables, tree: RootedForest, known: &[Option<usize>], log_evidence: f64) -> Self {
        let (mut edges, mut roots) = (Vec::new(), Vec::new());
        let mut log_rest = -log_evidence;
        for v in 0..tree.len() {
            match (known[v], tree.parent(v).map(|u| (u, known[u]))) {
                (Some(b), None) => log_rest += tables.root(v)[b].ln(),
                (None, None) => roots.push(v),
                (Some(b), Some((u, Some(a)))) => log_rest += tables.given(u, a, v)[b].ln(),
                (_, Some((u, _))) => edges.push((v, u)),
            }
        }
        Self { tables, tree, edges, roots, log_rest }
    }

    /// The probability of what depends on free cells, by the places of the states of a row.
    fn p(&self, places: &[usize]) -> f64 {
        let roots: f64 = self.roots.iter().map(|&v| self.tables.root_at(places[v])).product();
        let given = |&(v, u): &(usize, usize)| self.tables.given_at(places[u], places[v]);
        roots * self.edges.iter().map(given).product::<f64>()
    }

    /// Its logarithm, however small it is.
    fn log_p(&self, places: &[usize]) -> f64 {
        let roots: f64 = self.roots.iter().map(|&v| self.tables.root_at(places[v]).ln()).sum();
        let given = |&(v, u): &(usize, usize)| self.tables.given_at(places[u], places[v]).ln();
        roots + self.edges.iter().map(given).sum::<f64>()
    }
}

impl<'a> Completions<'a> {
    /// From so many random trees: of the first round, those that lean towards the evidence; of later rounds most are trees given
    /// completions of the round before, drawn by weight. Again and again that would be block Gibbs sampling, whose trees come as
    /// often as the evidence says. Nothing where no tree explains the evidence.
    fn new(
        mixed: &'a Mixed<'a>,
        evidence: &'a Evidence,
        trees: usize,
        before: Option<&Drawn>,
        rng: &mut Pcg64,
    ) -> Result<Option<Self>, InferError> {
        let states = mixed.states();
        let offsets = offsets(states);
        let known: Vec<Option<usize>> = (0..states.len()).map(|v| evidence.state(v)).collect();
        let of_completions = if before.is_some() { trees - trees / FRESH } else { 0 };
        let mut found = Found { evidence, known: &known, sources: Vec::new(), singles: Vec::new() };
        let mut by_trees = Vec::with_capacity(mixed.parts.len());
        let of_each = (trees - of_completions).div_ceil(mixed.parts.len()).max(4);
        for (number, (component, share)) in mixed.parts.iter().zip(&mixed.log_weights).enumerate() {
            match component {
                ComponentInference::OneTree(tree) => {
                    let value = found.component(number, tree, |log| share + log) + share;
                    by_trees.push(Estimate { value, standard_error: 0.0 });
                }
                ComponentInference::Stored(_) => return Ok(None),
                ComponentInference::AllTrees(density) => {
                    let density = &**density;
                    let proposal = Proposal::tilted(density, evidence)?;
                    let mut messages = Messages::new(density.tables());
                    let mut weights = Sums::new(0);
                    for _ in 0..of_each {
                        let (tree, correction) = proposal.draw(rng);
                        let log = found.tree(&mut messages, density.tables(), tree, |log| {
                            share + log + correction - (of_each as f64).ln()
                        });
                        weights.push(log + correction, &[]);
                    }
                    let own = weights.log_mean_weight();
                    by_trees.push(Estimate { value: own.value + share, ..own });
                }
            }
        }
        if found.sources.is_empty() {
            return Ok(None);
        }
        let logs: Vec<f64> = found.sources.iter().map(|(log, _)| *log).collect();
        let even = EVEN / logs.len() as f64;
        let part = 1.0 - of_completions as f64 / trees as f64;
        let weights = softmax(&logs).into_iter().map(|own| part * ((1.0 - EVEN) * own + even));
        found.sources.iter_mut().zip(weights).for_each(|((log, _), weight)| *log = weight);
        if let Some(before) = before {
            let weight = 1.0 / trees as f64;
            let by_weight = softmax(&before.log_weights);
            let mut rates = vec![0.0; states.len().pow(2)];
            let mut space: HashMap<usize, (FreshTrees, Messages<'a>)> = HashMap::new();
            for _ in 0..of_completions {
                let place = choose(&by_weight, rng.random());
                let number = choose(&mixed.responsibilities_of(before.of_components(place)), rng.random());
                match &mixed.parts[number] {
                    ComponentInference::OneTree(tree) => {
                        found.component(number, tree, |_| weight);
                    }
                    ComponentInference::Stored(_) => return Ok(None),
                    ComponentInference::AllTrees(density) => {
                        let (trees, messages) = space.entry(number).or_insert_with(|| {
                            (FreshTrees::new(density.kind(), states.len()), Messages::new(density.tables()))
                        });
                        density.rates_at(&before.rows[place], &mut rates);
                        let tree = trees.draw(&rates, rng)?;
                        found.tree(messages, density.tables(), tree, |_| weight);
                    }
                }
            }
        }
        let Found { sources, singles, .. } = found;
        let mut single = vec![0.0; offsets[states.len()]];
        for ((weight, _), own) in sources.iter().zip(&singles) {
            single.iter_mut().zip(own).for_each(|(sum, p)| *sum += weight * p);
        }
        let by_trees = total(&by_trees);
        Ok(Some(Self { mixed, evidence, sources, single, offsets, known, by_trees }))
    }

    /// So many completions.
    fn draw(&self, count: usize, rng: &mut Pcg64) -> Result<Drawn, InferError> {
        let of_cells = count / ONE_IN;
        let mut rows: Vec<(Option<usize>, Vec<u16>)> =
            (0..of_cells).map(|_| (None, self.by_cells(rng))).collect();
        self.by_sources(count - of_cells, rng, &mut rows);
        debug_assert_eq!(rows.len(), count, "what explains the evidence has rows");
        let mut table = Table::new(self.mixed.states());
        rows.iter().for_each(|(_, row)| table.push(row));
        let by_components = self.mixed.log_p_of_parts(table.codes(), rows.len())?;
        let share = of_cells as f64 / count as f64;
        // What comes before the cells that are free, and the same in units of the largest.
        let before: Vec<f64> = self
            .sources
            .iter()
            .map(|(weight, source)| {
                let log_share = (weight * (1.0 - share)).ln();
                match source {
                    Source::Tree(tree) => log_share + tree.log_rest,
                    Source::Component(_, told) => log_share - told.log_evidence(),
                }
            })
            .collect();
        let scale = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scaled: Vec<f64> = before.iter().map(|log| (log - scale).exp()).collect();
        let mut drawn = Drawn { log_weights: Vec::new(), alone: Vec::new(), rows: Vec::new(), by_components };
        for (number, (from, row)) in rows.into_iter().enumerate() {
            let row_places: Vec<usize> = places(&self.offsets, &row).collect();
            let of_component = |component: usize| drawn.by_components[component * count + number];
            let of_cells = share.ln() + self.log_p_by_cells(&row);
            let p = |(source, before): (&(f64, Source<'_>), &f64)| match &source.1 {
                Source::Tree(tree) => before * tree.p(&row_places),
                Source::Component(component, _) => before * of_component(*component).exp(),
            };
            let log_p = |(source, before): (&(f64, Source<'_>), &f64)| match &source.1 {
                Source::Tree(tree) => before + tree.log_p(&row_places),
                Source::Component(component, _) => before + of_component(*component),
            };
            let mut sum: f64 = self.sources.iter().zip(&scaled).map(p).sum();
            let log_sum_of_sources = match sum > 1e-200 && sum.is_finite() {
                true => sum.ln() + scale,
                false => {
                    let logs: Vec<f64> = self.sources.iter().zip(&before).map(log_p).collect();
                    log_sum(logs.into_iter())
                }
            };
            sum = log_sum([log_sum_of_sources, of_cells].into_iter());
            // More than half of it is of the one tree that it was drawn from.
            let alone = from.is_some_and(|from| {
                let source = &self.sources[from];
                let own = log_p((source, &before[from]));
                matches!(source.1, Source::Tree(_)) && own - sum > -std::f64::consts::LN_2
            });
            let of_components = drawn.by_components.iter().skip(number).step_by(count);
            let log_p = log_sum(of_components.zip(&self.mixed.log_weights).map(|(log, share)| log + share));
            drawn.log_weights.push(log_p - sum);
            drawn.alone.push(alone);
            drawn.rows.push(row);
        }
        Ok(drawn)
    }

    /// A row whose free cells are independent.
    fn by_cells(&self, rng: &mut Pcg64) -> Vec<u16> {
        let cell = |(v, known): (usize, &Option<usize>)| match known {
            Some(state) => *state as u16,
            None => choose(&self.single[self.offsets[v]..self.offsets[v + 1]], rng.random()) as u16,
        };
        self.known.iter().enumerate().map(cell).collect()
    }

    /// The logarithm of its probability over its likelihood.
    fn log_p_by_cells(&self, row: &[u16]) -> f64 {
        let of = |v: usize| {
            let (state, likelihood) = (usize::from(row[v]), self.evidence.of(v));
            let p = if self.known[v].is_none() { self.single[self.offsets[v] + state] } else { 1.0 };
            p.ln() - likelihood[state].ln()
        };
        (0..row.len()).map(of).sum()
    }

    /// Rows of the sources, as many of each as its weight says, give or take one.
    fn by_sources(&self, count: usize, rng: &mut Pcg64, rows: &mut Vec<(Option<usize>, Vec<u16>)>) {
        let (start, mut before, mut done): (f64, f64, usize) = (rng.random(), 0.0, 0);
        for (place, (weight, source)) in self.sources.iter().enumerate() {
            before += weight;
            // The places `start + i` of all rows that lie before the end of this source.
            let until = match place + 1 == self.sources.len() {
                true => count,
                false => ((before * count as f64 - start).ceil().max(0.0) as usize).min(count),
            };
            let own = done..until;
            done = until.max(done);
            if own.is_empty() {
                continue;
            }
            match source {
                Source::Component(_, told) => {
                    rows.extend(own.filter_map(|_| Some((Some(place), told.draw(rng)?))));
                }
                Source::Tree(tree) => {
                    let mut messages = Messages::new(tree.tables);
                    messages.collect(&tree.tree, self.evidence);
                    rows.extend(own.filter_map(|_| Some((Some(place), messages.draw(&tree.tree, rng)?))));
                }
            }
        }
    }
}

/// Sources as they are found, with the posteriors of single cells; of those that explain the evidence.
struct Found<'a, 'b> {
    evidence: &'a Evidence,
    known: &'b [Option<usize>],
    sources: Vec<(f64, Source<'a>)>,
    singles: Vec<Vec<f64>>,
}

impl<'a> Found<'a, '_> {
    /// Gives back the logarithm of the probability of the evidence, as does the next.
    fn component(&mut self, number: usize, tree: &'a TreeModel, weight: impl Fn(f64) -> f64) -> f64 {
        let mut told = TreePosterior::new(tree, self.evidence);
        let log = told.log_evidence();
        if log > f64::NEG_INFINITY {
            self.singles.push(told.posterior().to_vec());
            self.sources.push((weight(log), Source::Component(number, told)));
        }
        log
    }

    fn tree(
        &mut self,
        messages: &mut Messages<'a>,
        tables: &'a TreeTables,
        tree: RootedForest,
        weight: impl Fn(f64) -> f64,
    ) -> f64 {
        let log = messages.collect(&tree, self.evidence);
        if log > f64::NEG_INFINITY {
            self.singles.push(messages.distribute(&tree).to_vec());
            self.sources.push((weight(log), Source::Tree(ATree::new(tables, tree, self.known, log))));
        }
        log
    }
}
