//! The k most probable rows of one tree, exactly.
//!
//! One pass upwards says what is best below every variable for every state of its parent. The best row follows from it; and
//! every other row differs from one that is at least as probable at a first place, in an order in which parents come before
//! children: what comes before that place is the same, what comes after is the best that can follow. So the next best rows
//! stand in a queue: of a row that is taken out, its neighbours at every later place are put in (Lawler 1972; Nilsson 1998).

use super::evidence::Evidence;
use crate::model::EdgeTables;
use crate::spanning::RootedForest;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Rows between two questions whether to go on.
const BETWEEN: usize = 64;

/// The `count` rows of the highest probability times likelihood, the best first; fewer where no more are possible, or where `go_on`,
/// which hears what part is done, asks for an end.
pub(super) fn k_best<T: EdgeTables>(
    tables: &T,
    tree: &RootedForest,
    evidence: &Evidence,
    count: usize,
    go_on: &dyn Fn(f64) -> bool,
) -> Vec<Vec<u16>> {
    let mut below = Below::new(tables, tree, evidence);
    let Some(first) = below.first() else { return Vec::new() };
    let mut rows = vec![first];
    let mut values = vec![0.0];
    let mut queue = Queue::default();
    let mut begin = 0;
    while rows.len() < count {
        if rows.len().is_multiple_of(BETWEEN) && !go_on(rows.len() as f64 / count as f64) {
            break;
        }
        // Of the newest row: another state at one place, the best that can follow behind it.
        let (base, value) = (rows.len() - 1, values[rows.len() - 1]);
        for place in begin..tree.len() {
            if let Some(loss) = below.loss(&rows[base], tree.order()[place], 1) {
                queue.push(Next { value: value - loss, number: 0, base, place, rank: 1 }, count - rows.len());
            }
        }
        let Some(next) = queue.best.pop() else { break };
        let v = tree.order()[next.place];
        // The same place once more, with the state after that.
        if let Some(loss) = below.loss(&rows[next.base], v, next.rank + 1) {
            let value = values[next.base] - loss;
            queue.push(Next { value, rank: next.rank + 1, ..next }, count - rows.len());
        }
        rows.push(below.row(&rows[next.base], next.place, next.rank));
        values.push(next.value);
        begin = next.place + 1;
    }
    rows
}

/// A row to come: like row `base` before `place`, there the state of this rank, then the best that can follow.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// Logarithm of its probability times likelihood, over that of the best.
    value: f64,
    /// Of equals the first to come stays first.
    number: u64,
    base: usize,
    place: usize,
    rank: usize,
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Next {}

/// Rows to come, no more than are of use.
#[derive(Default)]
struct Queue {
    best: BinaryHeap<Next>,
    pushed: u64,
    /// What is below this will never be taken.
    floor: Option<f64>,
}

impl Queue {
    /// More than twice of what is needed is cut back to it.
    const SPARE: usize = 1024;

    fn push(&mut self, next: Next, needed: usize) {
        if self.floor.is_some_and(|floor| next.value < floor) {
            return;
        }
        self.pushed += 1;
        self.best.push(Next { number: self.pushed, ..next });
        if self.best.len() > 2 * needed + Self::SPARE {
            let mut all = std::mem::take(&mut self.best).into_vec();
            all.select_nth_unstable_by(needed - 1, |a, b| b.cmp(a));
            all.truncate(needed);
            self.floor = Some(all[needed - 1].value);
            self.best = all.into();
        }
    }
}

/// What is best at and below every variable.
struct Below<'a, T> {
    tables: &'a T,
    tree: &'a RootedForest,
    /// `best[v:b]`: logarithm of the best that can be at and below v in state b, without v's own table.
    best: Vec<f64>,
    most: usize,
    /// `first[v · most + a]`: the best state of v under state a of its parent.
    first: Vec<u16>,
    /// What the second best state there loses against it; NaN: not looked for yet.
    second: Vec<f64>,
}

impl<'a, T: EdgeTables> Below<'a, T> {
    fn new(tables: &'a T, tree: &'a RootedForest, evidence: &Evidence) -> Self {
        let offsets = tables.offsets();
        let most = (0..tree.len()).map(|v| tables.states(v)).max().unwrap_or(0);
        let best = evidence.all().iter().map(|likelihood| likelihood.ln()).collect();
        let room = tree.len() * most;
        let mut below = Self { tables, tree, best, most, first: vec![0; room], second: vec![f64::NAN; room] };
        for &v in tree.order().iter().rev() {
            let lines = tree.parent(v).map_or(1, |u| tables.states(u));
            for a in 0..lines {
                let (state, log) = below.top(v, a);
                below.first[v * most + a] = state;
                if let Some(u) = tree.parent(v) {
                    below.best[offsets[u] + a] += log;
                }
            }
        }
        below
    }

    /// Logarithms of how good the states of v are under state a of its parent.
    fn line(&self, v: usize, a: usize) -> impl Iterator<Item = f64> {
        let p = self.tree.parent(v).map_or_else(|| self.tables.root(v), |u| self.tables.given(u, a, v));
        let offsets = self.tables.offsets();
        p.iter().zip(&self.best[offsets[v]..offsets[v + 1]]).map(|(p, best)| p.ln() + best)
    }

    /// The best state; the first of several.
    fn top(&self, v: usize, a: usize) -> (u16, f64) {
        let mut top = (0, f64::NEG_INFINITY);
        for (b, log) in self.line(v, a).enumerate() {
            if log > top.1 {
                top = (b as u16, log);
            }
        }
        top
    }

    /// The best row, if any is possible.
    fn first(&self) -> Option<Vec<u16>> {
        let possible = |v: &usize| self.tree.parent(*v).is_some() || self.top(*v, 0).1 > f64::NEG_INFINITY;
        if !self.tree.order().iter().all(possible) {
            return None;
        }
        let mut row = vec![0; self.tree.len()];
        self.follow(&mut row, 0);
        Some(row)
    }

    /// The best that can follow from a place on.
    fn follow(&self, row: &mut [u16], place: usize) {
        for &v in &self.tree.order()[place..] {
            row[v] = self.first[v * self.most + self.line_of(row, v)];
        }
    }

    fn line_of(&self, row: &[u16], v: usize) -> usize {
        self.tree.parent(v).map_or(0, |u| usize::from(row[u]))
    }

    /// What the state of a rank loses against the best of v in a row; nothing where it is impossible.
    fn loss(&mut self, row: &[u16], v: usize, rank: usize) -> Option<f64> {
        let a = self.line_of(row, v);
        let place = v * self.most + a;
        if rank == 1 && self.second[place].is_nan() {
            let first = usize::from(self.first[place]);
            let top = self.line(v, a).nth(first).unwrap_or(f64::NEG_INFINITY);
            let others = self.line(v, a).enumerate().filter(|(b, _)| *b != first);
            let next = others.map(|(_, log)| log).fold(f64::NEG_INFINITY, f64::max);
            self.second[place] = top - next;
        }
        let loss = if rank == 1 {
            self.second[place]
        } else {
            let ranked = self.ranked(v, a);
            ranked.first()?.1 - ranked.get(rank)?.1
        };
        loss.is_finite().then_some(loss)
    }

    /// States of v under a, the best first.
    fn ranked(&self, v: usize, a: usize) -> Vec<(u16, f64)> {
        let mut ranked: Vec<(u16, f64)> =
            self.line(v, a).enumerate().map(|(b, log)| (b as u16, log)).collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
        ranked
    }

    /// A row as `base` before a place, with the state of this rank there.
    fn row(&self, base: &[u16], place: usize, rank: usize) -> Vec<u16> {
        let mut row = base.to_vec();
        let v = self.tree.order()[place];
        row[v] = self.ranked(v, self.line_of(base, v))[rank].0;
        self.follow(&mut row, place + 1);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TreeTables;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    const STATES: [usize; 5] = [2, 3, 1, 4, 2];

    /// Tables with ties, zeros and random numbers.
    fn tables(rng: &mut Pcg64) -> TreeTables {
        let mut line = |count: usize| -> Vec<f64> {
            let raw: Vec<f64> =
                (0..count).map(|_| [0.0, 1.0, 1.0, 2.0, rng.random()][rng.random_range(0..5)]).collect();
            let sum: f64 = raw.iter().sum();
            raw.iter().map(|p| if sum > 0.0 { p / sum } else { 1.0 / count as f64 }).collect()
        };
        let roots: Vec<Vec<f64>> = STATES.iter().map(|&count| line(count)).collect();
        let mut given = std::collections::HashMap::new();
        for u in 0..STATES.len() {
            for a in 0..STATES[u] {
                for v in 0..STATES.len() {
                    given.insert((u, a, v), line(STATES[v]));
                }
            }
        }
        TreeTables::build(&STATES, |u, a, v, b| given[&(u, a, v)][b], |v, b| roots[v][b])
    }

    fn all_rows() -> Vec<Vec<u16>> {
        let mut rows = vec![Vec::new()];
        for &count in &STATES {
            let longer = |row: Vec<u16>| (0..count).map(move |state| [&row[..], &[state as u16]].concat());
            rows = rows.into_iter().flat_map(longer).collect();
        }
        rows
    }

    /// Against all rows, in order of their weight: the same weights at the same places, no row twice, every count.
    #[test]
    fn the_best_rows_are_those_of_enumeration() {
        let mut rng = Pcg64::seed_from_u64(4);
        for _ in 0..200 {
            let tables = tables(&mut rng);
            let parents = (0..STATES.len()).map(|v| rng.random_range(0..=v)).collect();
            let tree = RootedForest::from_parents(parents).unwrap();
            let mut evidence = Evidence::none(&STATES);
            evidence.soft(3, &[0.5, 0.0, 1.0, 0.25]).unwrap();
            let weight = |row: &Vec<u16>| -> f64 {
                let of = |v: usize| {
                    let b = usize::from(row[v]);
                    let p = tree
                        .parent(v)
                        .map_or_else(|| tables.root(v)[b], |u| tables.given(u, usize::from(row[u]), v)[b]);
                    p * evidence.of(v)[b]
                };
                (0..STATES.len()).map(of).product()
            };
            let mut expected: Vec<f64> =
                all_rows().iter().map(weight).filter(|weight| *weight > 0.0).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            for count in [1, 2, 7, 1000] {
                let found = k_best(&tables, &tree, &evidence, count, &|_| true);
                assert_eq!(found.len(), count.min(expected.len()));
                for (row, expected) in found.iter().zip(&expected) {
                    assert!((weight(row) / expected - 1.0).abs() < 1e-12, "{row:?}");
                }
                let distinct: std::collections::HashSet<_> = found.iter().collect();
                assert_eq!(distinct.len(), found.len());
            }
        }
    }

    /// Coin flips: all rows are as good as each other, and the queue stays short.
    #[test]
    fn a_thousand_coin_flips() {
        let states = vec![2; 1000];
        let tables = TreeTables::build(&states, |_, _, _, _| 0.5, |_, _| 0.5);
        let tree = RootedForest::from_parents((0..1000).collect()).unwrap();
        let found = k_best(&tables, &tree, &Evidence::none(&states), 3000, &|_| true);
        let distinct: std::collections::HashSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), 3000);
        // Whoever asks for an end has the best of them.
        let asked = std::cell::Cell::new(0);
        let some = k_best(&tables, &tree, &Evidence::none(&states), 3000, &|part| {
            asked.set(asked.get() + 1);
            part < 0.1
        });
        assert_eq!((some.len(), asked.get()), (320, 5));
        assert_eq!(some[..], found[..320]);
    }

    #[test]
    fn nothing_is_found_where_nothing_is_possible() {
        let tables = TreeTables::build(&[2, 2], |_, a, _, b| f64::from(u8::from(a == b)), |_, _| 0.5);
        let tree = RootedForest::from_parents(vec![0, 0]).unwrap();
        let mut evidence = Evidence::none(&[2, 2]);
        evidence.set(0, &[0]).unwrap();
        evidence.set(1, &[1]).unwrap();
        assert!(k_best(&tables, &tree, &evidence, 3, &|_| true).is_empty());
    }
}
