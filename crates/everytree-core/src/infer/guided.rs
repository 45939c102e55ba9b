//! The probability of evidence in an ensemble of which a part is single trees: they are exact, and know what the others may say.
//!
//! Say `T(x)` is what components of one tree give to a row, with their weights, and `F(x)` what all others give. `T(e)` is exact.
//! Rows that complete the evidence are drawn from `T( · | e)`, which is exact too, with a few rows of independent cells, so that
//! nothing that others allow is left out; call that `q`. Then
//!
//! ```text
//! P(e) = T(e) + E_q[ F(x) e(x) / q(x) ]
//! ```
//!
//! Components that were learned from the same rows say much the same of hidden cells, so a few hundred completions will do. Where
//! they do not, weights tell; or a few rows of random trees of the others do, which the trees would hardly ever have come to. Then
//! there is no answer here.

use super::InferError;
use super::columns::{a_row, of_blocks};
use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::messages::Messages;
use super::method::{Effort, Method};
use super::mixed::total;
use super::one_tree::TreePosterior;
use super::proposal::Proposal;
use super::whole::Inference;
use crate::blocks::Blocks;
use crate::data::Table;
use crate::model::{ComponentInference, Likelihood};
use crate::util::{choose, log_sum, offsets, softmax, stream};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Rows of a round, and of all rounds.
const ROUND: usize = 128;
const MOST: usize = 1024;
/// One in so many is of independent cells.
const ONE_IN: usize = 4;
/// Rows by which it is said what single cells may be.
const LOOKED_AT: usize = 64;
/// Rows of these of which the others are asked what each cell may be given all others.
const ASKED: usize = 4;
/// What a cell is does not depend on any of that in so much of the rows of independent cells.
const EVEN: f64 = 0.1;
/// Random trees of each of the others, and the most that the weight of a row of one of them may be, in mean weights.
const TREES_OF_OTHERS: usize = 4;
const MOST_WEIGHT: f64 = 10.0;
/// Of the weights, so many must count.
const LEAST_SHARE: f64 = 0.2;
/// Smaller errors than this take too many rows.
const LEAST_TOLERANCE: f64 = 0.01;

/// A component of one tree that explains the evidence.
struct Tree<'a> {
    blocks: &'a Blocks,
    told: TreePosterior<'a>,
    /// The logarithm of its weight times what it gives to the evidence.
    log_weight: f64,
}

/// The logarithm of the probability of the evidence; nothing where no component is one tree, or too many rows would be needed.
pub(super) fn log_evidence(
    inference: &Inference<'_>,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<Option<Estimate>, InferError> {
    let Some(tolerance) = effort.tolerance.filter(|tolerance| *tolerance >= LEAST_TOLERANCE) else {
        return Ok(None);
    };
    if Method::affordable(evidence, effort.operations) == Method::Exact {
        return Ok(None);
    }
    let Some(guide) = Guide::new(inference, evidence) else { return Ok(None) };
    let mut rng = stream(effort.seed, "guided completions", 0);
    let single = guide.single_cells(&mut rng)?;
    let mut sums = Sums::new(0);
    while sums.draws() < MOST {
        guide.round(&single, &mut rng, &mut sums)?;
        let enough = sums.effective() >= LEAST_SHARE * sums.draws() as f64;
        let others = sums.log_mean_weight();
        let both = [Estimate { value: guide.log_evidence, standard_error: 0.0 }, others];
        let found = total(&both);
        if enough && found.standard_error <= tolerance {
            if guide.is_misled(&single, others.value, &mut rng)? {
                break;
            }
            // The logarithm of a mean comes out low by half its squared error.
            let value = found.value + found.standard_error * found.standard_error / 2.0;
            return Ok(Some(Estimate { value, ..found }));
        }
        // Far from enough after the first round: it will not get better.
        if sums.effective() < LEAST_SHARE / 2.0 * sums.draws() as f64 {
            break;
        }
    }
    Ok(None)
}

/// Where completions come from.
struct Guide<'a, 'i> {
    inference: &'a Inference<'i>,
    evidence: &'a Evidence,
    trees: Vec<Tree<'a>>,
    /// How much each counts, given the evidence.
    responsibilities: Vec<f64>,
    /// The logarithm of what all of them together give to the evidence.
    log_evidence: f64,
    /// Columns of which more than one state is possible.
    free: Vec<usize>,
    offsets: Vec<usize>,
}

impl<'a, 'i> Guide<'a, 'i> {
    /// Nothing where there is no component of one tree that explains the evidence, or no other.
    fn new(inference: &'a Inference<'i>, evidence: &'a Evidence) -> Option<Self> {
        let is_tree = |part: &ComponentInference<'_>| matches!(part, ComponentInference::OneTree(_));
        let (trees, others) = inference.parts().fold((0, 0), |(trees, others), (_, part, _)| {
            if is_tree(part) { (trees + 1, others) } else { (trees, others + 1) }
        });
        if trees == 0 || others == 0 {
            return None;
        }
        let mut trees = Vec::new();
        let mut translated: Option<(&Blocks, Evidence)> = None;
        for (group, part, weight) in inference.parts() {
            let ComponentInference::OneTree(tree) = part else { continue };
            if !translated.as_ref().is_some_and(|(blocks, _)| std::ptr::eq(*blocks, &group.blocks)) {
                translated = Some((&group.blocks, of_blocks(&group.blocks, evidence)));
            }
            let (blocks, of_blocks) = translated.as_ref()?;
            let told = TreePosterior::new(tree, of_blocks);
            let log_weight = weight + told.log_evidence();
            if log_weight > f64::NEG_INFINITY {
                trees.push(Tree { blocks, told, log_weight });
            }
        }
        if trees.is_empty() {
            return None;
        }
        let logs: Vec<f64> = trees.iter().map(|tree| tree.log_weight).collect();
        let possible = |&v: &usize| evidence.of(v).iter().filter(|likelihood| **likelihood > 0.0).count() > 1;
        Some(Self {
            inference,
            evidence,
            trees,
            responsibilities: softmax(&logs),
            log_evidence: log_sum(logs.into_iter()),
            free: (0..evidence.variables()).filter(possible).collect(),
            offsets: offsets(inference.states()),
        })
    }

    /// A row of columns from the trees.
    fn draw(&self, rng: &mut Pcg64) -> Option<Vec<u16>> {
        let Tree { blocks, told, .. } = &self.trees[choose(&self.responsibilities, rng.random())];
        let row = told.draw(rng)?;
        Some(if blocks.is_none() { row } else { a_row(blocks, self.evidence, &row, rng) })
    }

    /// What single cells may be, `[v:b]`: as rows of the trees have it, and as others have it given all other cells of such rows.
    fn single_cells(&self, rng: &mut Pcg64) -> Result<Vec<f64>, InferError> {
        let states = self.inference.states();
        let mut single = vec![0.0; self.offsets[states.len()]];
        let rows: Vec<Vec<u16>> = (0..LOOKED_AT).filter_map(|_| self.draw(rng)).collect();
        for row in &rows {
            self.free.iter().for_each(|&v| single[self.offsets[v] + usize::from(row[v])] += 0.5);
        }
        let mut table = Table::new(states);
        let asked = &rows[..ASKED.min(rows.len())];
        for row in asked {
            for &v in &self.free {
                let mut changed = row.clone();
                (0..states[v] as u16).for_each(|state| {
                    changed[v] = state;
                    table.push(&changed);
                });
            }
        }
        let (_, others) = self.split(&table)?;
        let weight = 0.5 * rows.len() as f64 / asked.len().max(1) as f64;
        let mut place = 0;
        for _ in asked {
            for &v in &self.free {
                let likelihood = self.evidence.of(v).iter().map(|likelihood| likelihood.ln());
                let logs = &others[place..place + states[v]];
                place += states[v];
                let logs: Vec<f64> = logs.iter().zip(likelihood).map(|(log, own)| log + own).collect();
                if logs.iter().any(|log| *log > f64::NEG_INFINITY) {
                    let own = &mut single[self.offsets[v]..][..states[v]];
                    own.iter_mut().zip(softmax(&logs)).for_each(|(sum, p)| *sum += weight * p);
                }
            }
        }
        for v in 0..states.len() {
            let own = &mut single[self.offsets[v]..][..states[v]];
            let likelihood = self.evidence.of(v);
            let sum: f64 = own.iter().sum();
            let all: f64 = likelihood.iter().sum();
            for (p, likelihood) in own.iter_mut().zip(likelihood) {
                let even = likelihood / all;
                *p = if sum > 0.0 { (1.0 - EVEN) * *p / sum + EVEN * even } else { even };
            }
        }
        Ok(single)
    }

    /// The logarithms of what trees and others give to rows.
    fn split(&self, table: &Table) -> Result<(Vec<f64>, Vec<f64>), InferError> {
        let mut both = (vec![f64::NEG_INFINITY; table.rows()], vec![f64::NEG_INFINITY; table.rows()]);
        for (group, weight) in self.inference.groups.iter().zip(&self.inference.log_weights) {
            let encoded = group.blocks.encode(table);
            let shares: Vec<f64> = (0..table.rows())
                .map(|row| weight + group.blocks.log_share(|block| encoded.get(row, block)))
                .collect();
            let mut logs = vec![0.0; table.rows()];
            for (part, own) in group.mixed.parts.iter().zip(&group.mixed.log_weights) {
                Likelihood::log_p(part, encoded.codes(), &mut logs)?;
                let sums = match part {
                    ComponentInference::OneTree(_) => &mut both.0,
                    ComponentInference::AllTrees(_) => &mut both.1,
                };
                for ((sum, log), share) in sums.iter_mut().zip(&logs).zip(&shares) {
                    *sum = log_sum([*sum, log + own + share].into_iter());
                }
            }
        }
        Ok(both)
    }

    /// Some more completions, with their weights.
    fn round(&self, single: &[f64], rng: &mut Pcg64, sums: &mut Sums) -> Result<(), InferError> {
        let states = self.inference.states();
        let of_cells = ROUND / ONE_IN;
        let cell =
            |v: usize, rng: &mut Pcg64| choose(&single[self.offsets[v]..][..states[v]], rng.random()) as u16;
        let mut rows: Vec<Vec<u16>> =
            (0..of_cells).map(|_| (0..states.len()).map(|v| cell(v, rng)).collect()).collect();
        rows.extend((of_cells..ROUND).filter_map(|_| self.draw(rng)));
        for log_weight in self.log_weights(single, &rows)? {
            sums.push(log_weight, &[]);
        }
        Ok(())
    }

    /// `log F(x) e(x) / q(x)`
    fn log_weights(&self, single: &[f64], rows: &[Vec<u16>]) -> Result<Vec<f64>, InferError> {
        let mut table = Table::new(self.inference.states());
        rows.iter().for_each(|row| table.push(row));
        let (trees, others) = self.split(&table)?;
        let share = 1.0 / ONE_IN as f64;
        let one = |(row, (by_trees, by_others)): (&Vec<u16>, (f64, f64))| {
            let cells = || row.iter().map(|&state| usize::from(state)).enumerate();
            let likelihood: f64 = cells().map(|(v, state)| self.evidence.of(v)[state].ln()).sum();
            let by_cells: f64 = cells().map(|(v, state)| single[self.offsets[v] + state].ln()).sum();
            let of_trees = (1.0 - share).ln() + by_trees + likelihood - self.log_evidence;
            let q = log_sum([of_trees, share.ln() + by_cells].into_iter());
            by_others + likelihood - q
        };
        Ok(rows.iter().zip(trees.into_iter().zip(others)).map(one).collect())
    }

    /// Do rows of random trees of the others weigh far more than rows that came from here?
    fn is_misled(&self, single: &[f64], log_mean: f64, rng: &mut Pcg64) -> Result<bool, InferError> {
        let mut rows = Vec::new();
        for group in &self.inference.groups {
            let of_blocks = of_blocks(&group.blocks, self.evidence);
            for part in &group.mixed.parts {
                let ComponentInference::AllTrees(density) = part else { continue };
                let proposal = Proposal::tilted(&**density, &of_blocks)?;
                let mut messages = Messages::new(density.tables());
                for _ in 0..TREES_OF_OTHERS {
                    let (tree, _) = proposal.draw(rng);
                    if messages.collect(&tree, &of_blocks) > f64::NEG_INFINITY
                        && let Some(row) = messages.draw(&tree, rng)
                    {
                        rows.push(match group.blocks.is_none() {
                            true => row,
                            false => a_row(&group.blocks, self.evidence, &row, rng),
                        });
                    }
                }
            }
        }
        let log_weights = self.log_weights(single, &rows)?;
        Ok(log_weights.into_iter().any(|log| log > log_mean + MOST_WEIGHT.ln()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::exact;
    use crate::model::{ComponentShape, Family, Initialisation, Member, Model, PairCounts};

    const STATES: [usize; 6] = [2, 3, 2, 4, 2, 3];

    /// A tree and forests that know nothing of each other, or an average of the tree's own kind besides.
    fn ensemble(seed: u64) -> Model {
        let shape = ComponentShape { pairs: None, hidden: Some(3) };
        let member = |family: Family, seed: u64| {
            let component = family.random(&STATES, &shape, seed).unwrap();
            Model::plain(component).members()[0].clone()
        };
        let members: Vec<Member> = vec![
            member(Family::Hclt, seed),
            member(Family::Directed, seed + 1),
            member(Family::ChowLiu, seed + 2),
        ];
        Model::ensemble(members, &[1.0, 3.0, 1.0]).unwrap()
    }

    /// Against enumeration: unbiased, and as far off as it says; and mostly there is an answer.
    #[test]
    fn what_trees_guide_to_is_calibrated() {
        let (mut squares, mut sum, mut answers) = (0.0, 0.0, 0);
        const MODELS: u64 = 20;
        const SEEDS: u64 = 10;
        for seed in 0..MODELS {
            let model = ensemble(10 * seed);
            let inference = model.inference().unwrap();
            let mut evidence = Evidence::none(&STATES);
            evidence.set(1, &[0, 2]).unwrap();
            evidence.set(3, &[1]).unwrap();
            evidence.soft(5, &[0.5, 1.0, 0.1]).unwrap();
            let mut truth = 0.0;
            exact::each(&inference, &evidence, &mut |_, log| truth += log.exp()).unwrap();
            for seed in 0..SEEDS {
                let effort = Effort { operations: 0.0, tolerance: Some(0.02), seed, ..Effort::default() };
                let Some(found) = log_evidence(&inference, &evidence, effort).unwrap() else { continue };
                assert!(found.standard_error > 0.0 && found.standard_error <= 0.02, "{found:?}");
                let z = (found.value - truth.ln()) / found.standard_error;
                assert!(z.abs() < 5.0, "{found:?} {}", truth.ln());
                (squares, sum, answers) = (squares + z * z, sum + z, answers + 1);
            }
        }
        let count = f64::from(answers);
        assert!(answers > (MODELS * SEEDS / 2) as i32, "{answers} answers");
        // Four standard errors of the mean of squares of normal numbers, and of their mean.
        assert!(squares / count < 1.0 + 4.0 * (2.0 / count).sqrt(), "{} of {count}", squares / count);
        assert!((sum / count).abs() < 4.0 / count.sqrt(), "{} of {count}", sum / count);
    }

    /// What the others allow and the trees hardly do: no answer rather than a wrong one.
    #[test]
    fn trees_that_mislead_are_not_followed() {
        let shape = ComponentShape { pairs: None, hidden: None };
        let sure = |family: Family, state: u16| {
            let mut table = Table::new(&[2; 6]);
            (0..200).for_each(|row| table.push(&[if row == 0 { 1 - state } else { state }; 6]));
            let data = table.unique();
            let from = Initialisation {
                data: &data,
                states: &[2; 6],
                weights: &data.weights,
                counts: PairCounts::new(&[2; 6], &data.table, &data.weights),
                shape,
                pseudocount: 0.1,
                seed: 1,
                stop: &|| false,
            };
            Model::plain(family.from_counts(&from).unwrap()).members()[0].clone()
        };
        let members = vec![sure(Family::ChowLiu, 0), sure(Family::Directed, 1)];
        let model = Model::ensemble(members, &[1.0, 1.0]).unwrap();
        let inference = model.inference().unwrap();
        let evidence = Evidence::none(&[2; 6]);
        for seed in 0..20 {
            let effort = Effort { operations: 0.0, tolerance: Some(0.02), seed, ..Effort::default() };
            if let Some(found) = log_evidence(&inference, &evidence, effort).unwrap() {
                // All there is adds up to 1.
                assert!(found.value.abs() < 5.0 * found.standard_error, "{found:?}");
            }
        }
    }
}
