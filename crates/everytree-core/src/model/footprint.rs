//! How much memory a model takes, before it takes it.
//!
//! The largest terms are matrices over all states of all variables: `8 S²` bytes each, for S states in all. How many of them there
//! are at once is what this file knows; `everytree-experiments memory` puts it beside what it measures.

use super::family::{ComponentShape, Trees};
use super::{Family, MANY_VARIABLES, Pairs};

/// Bytes at most, beside the rows of tables; each is with the model itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The model, with what rows say about edges.
    pub model: u64,
    /// A look at its edges and tables.
    pub looking: u64,
    /// The same where the file does not say how probable edges are.
    pub finding: u64,
    /// Answers to questions, and rows drawn.
    pub answers: u64,
    /// Likelihoods of many rows.
    pub scoring: u64,
    /// Cells filled in.
    pub imputing: u64,
    /// A search for the most probable rows.
    pub searching: u64,
    /// Learning, with all copies of the parameters.
    pub learning: u64,
    /// What is in each of these, and once only where several models answer together; and the same of scoring.
    pub shared: u64,
    /// As `shared`, of `scoring`.
    pub shared_scoring: u64,
}

/// What a program has without any model, and what it knows of each column: names, labels, cells of rows that come or go.
const BASE: f64 = 10e6;
const OF_COLUMN: f64 = 1200.0;
/// Of each column, cells of rows that are drawn.
const DRAWN: f64 = 1300.0;
/// Of each column, cells of rows that a search begins with; of one tree the best rows are known.
const SEARCHED: f64 = 6000.0;
const BEST: f64 = 500.0;
/// Of each column, cells of rows that are read to be scored or filled.
const SCORED: f64 = 2000.0;
/// Bandwidths of a kernel at most.
const BANDWIDTHS: f64 = 7.0;
/// What the allocator and small things add.
const SLACK: f64 = 1.1;

impl Footprint {
    /// Of a mixture of so many components over variables with so many states each, learned in f32 from batches of so many rows.
    pub fn of(
        family: Family,
        shape: &ComponentShape,
        states: &[usize],
        components: usize,
        batch: usize,
    ) -> Self {
        let n = states.len() as f64;
        let total: f64 = states.iter().map(|&count| count as f64).sum();
        let (components, threads) = (components as f64, rayon::current_num_threads() as f64);
        let square = 8.0 * total * total;
        let own = 8.0 * parameters(family, shape, states);
        let edges = 8.0 * n * n;
        // How often pairs of states of two columns were seen.
        let squares: f64 = states.iter().map(|&count| (count as f64).powi(2)).sum();
        let seen = 8.0 * (total * total - squares) / 2.0;
        // One tree has the edges it has.
        let of_edges = if family.spec().trees == Trees::All { edges } else { 0.0 };
        let model = components * (own + of_edges);
        // Of free matrices, the tables they are scaled to.
        let scaled = match shape.pairs {
            Some(Pairs::Sinkhorn | Pairs::Tables) if family.spec().pair_tables => seen,
            _ => 0.0,
        };
        // The list of all pairs of columns.
        let pairs = 3.3 * edges;
        // Model, best model and the optimiser's two lists, each as of now and as of the last epoch; the gradient, the average.
        let copies = 6.0 * own;
        let (looking, finding, answers, scoring, learning) = match family.spec().trees {
            Trees::All => {
                // Matrices over all states that are there at once: rates, prepared rates, factors and conditional tables, of which
                // those of spanning trees are filled below the diagonal only; of rooted forests, probabilities besides. Edges of
                // spanning trees are looked at without any, if they are in the file.
                let [looking, finding, answers, filled] = match family.spec().pair_tables {
                    true => [0.0, 1.3, 2.7, 0.56],
                    false => [5.4, 5.4, 4.8, 1.0],
                };
                let [looking, finding] = [looking, finding]
                    .map(|tables| (tables * square + (12.0 + 12.0 * filled) * edges) * components);
                let finding = finding + scaled * components;
                let answers = (answers * square + 6.0 * edges + scaled) * components;
                // What every thread works with: sixteen rows in f32, or eight in f64, and as much again; larger rows one by one.
                let spaces = threads * if states.len() <= 256 { 18.0 } else { 2.0 } * edges;
                // Rates, prepared rates in f32, counts; for validation rates and prepared rates in f64; sums of two chunks a
                // thread, in f32. What is prepared is filled everywhere.
                let ready = components * (3.0 * filled + 0.5 + 1.0) * square;
                let sums = components * threads * 1.1 * filled * square;
                // Eliminated matrices of a batch, in f32; for what rows say about edges, of some rows in f64.
                let some = if states.len() < MANY_VARIABLES { 512.0 } else { 64.0 };
                let of_edges = components * (some * edges).min((1u64 << 28) as f64);
                let kept = components * (batch as f64 * edges / 2.0).min((1u64 << 30) as f64 / components);
                let kept = kept.max(of_edges);
                let learning = (copies + scaled) * components + ready + sums + kept + spaces;
                (looking, finding, answers, answers + spaces, learning)
            }
            Trees::One => {
                let answers = 2.0 * own * components;
                let looking = 2.0 * answers;
                // In closed form: nothing that an optimiser would hold. Components are learned from counts of every pair of states
                // each: those of a step, those so far, and copies as of the last epoch.
                let counted = match family == Family::Independent || components < 2.0 {
                    true => 0.0,
                    false => (5.0 * components + 2.0) * square,
                };
                // And the edges of every component.
                let of_edges = (2.1 + 2.0 * components) * edges;
                (
                    looking + of_edges,
                    looking + of_edges,
                    answers,
                    answers,
                    3.1 * own * components + seen + counted,
                )
            }
            Trees::OneLatent => {
                let columns = shape.hidden.unwrap_or(1).next_multiple_of(16) as f64;
                // Tables as they are, and copies as products of matrices need them.
                let answers = (5.0 * own + 8.0 * total * columns) * components;
                // Messages of a panel of rows; and of the rows of a batch, three lists in f32.
                let panel = threads * 8.0 * 32.0 * n * columns;
                let most = (1u64 << 24) as f64;
                let kept =
                    (4.0 * n * columns * (batch as f64).min(512.0)).min(most.max(4.0 * 32.0 * n * columns));
                // And of rows that validate, two lists in f64.
                let validated = (8.0 * n * columns * 512.0).min(most);
                // Clusters of rows that the hidden states stand for at the beginning: counts along the edges of the tree.
                let widest = states.iter().copied().max().unwrap_or(1);
                let hidden = shape.hidden.unwrap_or(1);
                let clusters = if hidden >= widest { hidden / widest } else { hidden }.max(1) as f64;
                let of_edges = 8.0 * clusters * total * widest as f64;
                let at_once = (3.0 * kept + 2.0 * validated).max(panel);
                let learning = (copies + 5.0 * own + at_once) * components + seen + of_edges;
                // Latent cells of rows that are drawn or filled in.
                let cells = 1500.0 * n;
                (answers + pairs, answers + pairs, answers + cells, answers + panel + cells, learning)
            }
            Trees::Stored => {
                let rows = shape.rows.unwrap_or(0) as f64;
                // How probable every stored row is, for each bandwidth: as logarithms, as they are, added up.
                let answers = 3.0 * 8.0 * BANDWIDTHS * rows;
                // Questions of every thread, and a block of stored rows, as a product has them.
                let panels = threads * 8.0 * (32.0 * BANDWIDTHS * (total + 256.0) + 256.0 * total);
                (pairs + edges, pairs + edges, answers, answers + panels, own + answers + panels + seen)
            }
        };
        // What is known of rows that are scored together.
        let incomplete = (2048.0 * 8.0 * total).min((1u64 << 24) as f64);
        let shared = BASE + OF_COLUMN * n;
        let searching = match family.spec().trees {
            Trees::One => answers + BEST * n,
            _ => scoring + SEARCHED * n,
        };
        let bytes = |beside: f64| (SLACK * (model + beside) + shared) as u64;
        Self {
            model: bytes(0.0),
            looking: bytes(looking),
            finding: bytes(finding),
            answers: bytes(answers + DRAWN * n),
            scoring: bytes(scoring + incomplete + SCORED * n),
            imputing: bytes(scoring + SCORED * n),
            searching: bytes(searching),
            learning: bytes(learning),
            shared: shared as u64,
            shared_scoring: (shared + SLACK * (incomplete + SCORED * n)) as u64,
        }
    }
}

/// Bytes of the joint distribution of two columns with so many states each, beside the answers of the model: as the members have it,
/// added up, and the ratios that information is made of; where trees are random, every thread has some of its own.
pub fn footprint_of_pair(trees: Trees, states: (usize, usize)) -> u64 {
    let copies = match trees {
        Trees::All => 5 + 5 * rayon::current_num_threads() as u64,
        Trees::One | Trees::OneLatent | Trees::Stored => 2,
    };
    (states.0 as u64).saturating_mul(states.1 as u64).saturating_mul(8 * copies)
}

/// Bytes of a table of so many rows while it is learned from: as it was read, split, and each row once; and what finds equal
/// rows.
pub fn footprint_of_rows(states: &[usize], rows: usize) -> u64 {
    let cell = if states.iter().any(|&count| count > 256) { 2 } else { 1 };
    let row = 5 * cell * states.len() as u64 + 100;
    row.saturating_mul(rows as u64)
}

/// How many numbers one component has.
fn parameters(family: Family, shape: &ComponentShape, states: &[usize]) -> f64 {
    let n = states.len() as f64;
    let total: f64 = states.iter().map(|&count| count as f64).sum();
    let most = states.iter().copied().max().unwrap_or(1) as f64;
    match (family.spec().trees, shape.pairs) {
        (Trees::All, pairs) if family.spec().pair_tables => {
            let pairs = match pairs.unwrap_or(Pairs::Lambda) {
                // Of two variables the smaller number of states counts: in rising order it is that of the first.
                Pairs::Lambda => {
                    let mut rising = states.to_vec();
                    rising.sort_unstable();
                    let of =
                        |(place, &count): (usize, &usize)| (count as f64 - 1.0) * (n - 1.0 - place as f64);
                    rising.iter().enumerate().map(of).sum()
                }
                Pairs::Sinkhorn | Pairs::Tables => {
                    let squares: f64 = states.iter().map(|&count| (count as f64).powi(2)).sum();
                    (total * total - squares) / 2.0
                }
            };
            n * (n - 1.0) / 2.0 + total + pairs
        }
        (Trees::All, _) => n * n + total * total,
        (Trees::One, _) if family == Family::Independent => n + total,
        (Trees::One, _) => n + most * total,
        (Trees::OneLatent, _) => {
            let hidden = shape.hidden.unwrap_or(1) as f64;
            2.0 * n + hidden * (total + n * hidden)
        }
        // As in a file; in memory a cell has one byte, or two.
        (Trees::Stored, _) => shape.rows.unwrap_or(0) as f64 * (1.0 + n / 3.0) + total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as models have.
    #[test]
    fn parameters_are_counted() {
        let states = [2, 5, 3, 2];
        for (family, pairs, hidden) in [
            (Family::Moat, Some(Pairs::Lambda), None),
            (Family::Moat, Some(Pairs::Sinkhorn), None),
            (Family::Directed, None, None),
            (Family::Independent, None, None),
            (Family::ChowLiu, None, None),
            (Family::Hclt, None, Some(6)),
        ] {
            let shape = ComponentShape { pairs, hidden, rows: None };
            let model = family.random(&states, &shape, 1).unwrap();
            let found: usize = model.lists().iter().map(|list| list.len()).sum();
            let expected = parameters(family, &shape, &states);
            // Margins of two states have one parameter.
            assert!((expected - found as f64).abs() <= 2.0, "{family:?}: {found} {expected}");
        }
    }

    #[test]
    fn more_of_anything_takes_more() {
        let shape = ComponentShape { pairs: Some(Pairs::Lambda), hidden: Some(8), rows: None };
        for family in [Family::Moat, Family::Directed, Family::ChowLiu, Family::Hclt] {
            let of = |states: &[usize], components| Footprint::of(family, &shape, states, components, 256);
            let (little, more) = (of(&[50; 20], 1), of(&[50; 40], 1));
            assert!(little.model < more.model && little.learning < more.learning, "{family:?}");
            assert!(more.answers < of(&[50; 40], 2).answers, "{family:?}");
        }
    }
}
