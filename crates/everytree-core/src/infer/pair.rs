//! The joint distribution of two columns: under one tree from the tables along the path between them, under a kernel from its
//! stored rows, and from blocks to columns.

use super::columns::given_state;
use super::evidence::Evidence;
use super::stored::{self, KernelPosterior};
use crate::blocks::Blocks;
use crate::model::{EdgeTables, Kernel};
use crate::spanning::RootedForest;

/// Two columns, and how their joint distribution comes from that of their blocks.
pub(super) struct Pair {
    /// The blocks; one where both columns are in the same.
    blocks: (usize, usize),
    /// States of the blocks; of one block, and 1.
    states: (usize, usize),
    codes: CodesOfStates,
    /// States of the other column.
    k_v: usize,
}

/// What states of blocks say about codes of columns: for every state, what is possible, with its probability.
enum CodesOfStates {
    /// Places `a · k_v + b` of pairs of codes, by the states of the one block of both columns.
    Together(Vec<Vec<(usize, f64)>>),
    /// Codes of the one and of the other column.
    Apart(Vec<Vec<(usize, f64)>>, Vec<Vec<(usize, f64)>>),
    /// The states are the codes: no block has more than one of the columns.
    Same,
}

impl Pair {
    pub fn new(of: &Blocks, u: usize, v: usize) -> Self {
        let (places, columns) = (of.places(), of.column_states());
        let block = |column: usize| &of.blocks()[places[column].0];
        let (k_u, k_v) = (columns[u], columns[v]);
        let blocks = (places[u].0, places[v].0);
        if blocks.0 != blocks.1 {
            let states = (block(u).states(), block(v).states());
            let codes = match [u, v].iter().all(|&column| block(column).columns().len() == 1) {
                true => CodesOfStates::Same,
                false => {
                    let given = |column: usize, count: usize| {
                        let lines = given_state(block(column), places[column].1, count);
                        lines.into_iter().map(|line| possible(line.into_iter().enumerate())).collect()
                    };
                    CodesOfStates::Apart(given(u, k_u), given(v, k_v))
                }
            };
            return Self { blocks, states, codes, k_v };
        }
        let one = block(u);
        let place = |codes: &[u16]| usize::from(codes[places[u].1]) * k_v + usize::from(codes[places[v].1]);
        let of_state = |state: usize| match one.combination(state) {
            Some(codes) => vec![(place(&codes), 1.0)],
            None => {
                let mut pairs = vec![0.0; k_u * k_v];
                one.others().for_each(|codes| pairs[place(&codes)] += 1.0 / one.unseen() as f64);
                possible(pairs.into_iter().enumerate())
            }
        };
        let codes = CodesOfStates::Together((0..one.states()).map(of_state).collect());
        Self { blocks, states: (one.states(), 1), codes, k_v }
    }

    /// How many numbers the joint distribution of the blocks has.
    pub fn size(&self) -> usize {
        self.states.0 * self.states.1
    }

    /// The joint distribution of the blocks under one tree.
    pub fn joint_of_tree<T: EdgeTables + ?Sized>(&self, tables: &T, tree: &RootedForest) -> Vec<f64> {
        match self.codes {
            CodesOfStates::Together(_) => margin(tables, tree, self.blocks.0),
            _ => joint(tables, tree, self.blocks.0, self.blocks.1),
        }
    }

    /// The same under a kernel.
    pub fn joint_of_kernel(&self, kernel: &Kernel) -> Vec<f64> {
        if let CodesOfStates::Together(_) = self.codes {
            let nothing = Evidence::none(kernel.rows().states());
            let place = kernel.rows().states()[..self.blocks.0].iter().sum::<usize>();
            return KernelPosterior::new(kernel, &nothing).posterior()[place..][..self.states.0].to_vec();
        }
        stored::joint(kernel, self.blocks.0, self.blocks.1)
    }

    /// The place of a row of blocks in their joint distribution.
    pub fn place(&self, row: &[u16]) -> usize {
        let first = usize::from(row[self.blocks.0]);
        match self.codes {
            CodesOfStates::Together(_) => first,
            _ => first * self.states.1 + usize::from(row[self.blocks.1]),
        }
    }

    /// Adds the joint distribution of the columns, from that of the blocks, so many times to another.
    pub fn add_columns(&self, of_blocks: &[f64], weight: f64, to: &mut [f64]) {
        match &self.codes {
            CodesOfStates::Same => to.iter_mut().zip(of_blocks).for_each(|(sum, p)| *sum += weight * p),
            CodesOfStates::Together(pairs) => {
                for (p, pairs) in of_blocks.iter().zip(pairs) {
                    pairs.iter().for_each(|(place, share)| to[*place] += weight * p * share);
                }
            }
            CodesOfStates::Apart(left, right) => {
                for (line, left) in of_blocks.chunks_exact(self.states.1).zip(left) {
                    for (p, right) in line.iter().zip(right) {
                        for (a, l) in left {
                            right.iter().for_each(|(b, r)| to[a * self.k_v + b] += weight * p * l * r);
                        }
                    }
                }
            }
        }
    }
}

/// Those that are not zero.
fn possible(line: impl Iterator<Item = (usize, f64)>) -> Vec<(usize, f64)> {
    line.filter(|(_, p)| *p > 0.0).collect()
}

/// The distribution of one variable under one tree.
fn margin<T: EdgeTables + ?Sized>(tables: &T, tree: &RootedForest, v: usize) -> Vec<f64> {
    let mut line = vec![v];
    while let Some(u) = tree.parent(line[line.len() - 1]) {
        line.push(u);
    }
    let root = line.pop().unwrap_or(v);
    let first = (root, tables.root(root).to_vec());
    line.into_iter().rev().fold(first, |(u, p), child| (child, times(tables, u, &p, child))).1
}

/// Rows over the states of u times the table of a child of it.
fn times<T: EdgeTables + ?Sized>(tables: &T, u: usize, rows: &[f64], child: usize) -> Vec<f64> {
    let (from, to) = (tables.states(u), tables.states(child));
    let mut out = vec![0.0; rows.len() / from * to];
    for (row, out) in rows.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
        for (a, p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            out.iter_mut().zip(tables.given(u, a, child)).for_each(|(sum, q)| *sum += p * q);
        }
    }
    out
}

/// The joint distribution of two variables under one tree, `[a][b]`: `Σ P(l) P(a | l) P(b | l)` over the states of the vertex where
/// their ways to the root meet. Two that hang under different roots are independent.
fn joint<T: EdgeTables + ?Sized>(tables: &T, tree: &RootedForest, u: usize, v: usize) -> Vec<f64> {
    let k_v = tables.states(v);
    let Some(path) = tree.path(u, v) else {
        let (p, q) = (margin(tables, tree, u), margin(tables, tree, v));
        return p.iter().flat_map(|p| q.iter().map(move |q| p * q)).collect();
    };
    // Where they meet: the only vertex of the path whose parent is not the next on either side.
    let climbs = |pair: &[usize]| tree.parent(pair[0]) == Some(pair[1]);
    let top = path.windows(2).take_while(|pair| climbs(pair)).count();
    let meeting = path[top];
    let of_meeting = margin(tables, tree, meeting);
    // From each state of the meeting vertex down to the one end: a line for each.
    let down = |way: &mut dyn Iterator<Item = usize>| -> Option<Vec<f64>> {
        let first = way.next()?;
        let lines = (0..of_meeting.len()).flat_map(|a| tables.given(meeting, a, first));
        let lines: Vec<f64> = lines.copied().collect();
        Some(way.fold((first, lines), |(at, rows), child| (child, times(tables, at, &rows, child))).1)
    };
    let left = down(&mut path[..top].iter().rev().copied());
    let right = down(&mut path[top + 1..].iter().copied());
    let scaled = |mut lines: Vec<f64>, width: usize| {
        let rows = lines.chunks_exact_mut(width).zip(&of_meeting);
        rows.for_each(|(row, p)| row.iter_mut().for_each(|q| *q *= p));
        lines
    };
    match (left, right) {
        // u is above v, v above u, or both are below.
        (None, Some(right)) => scaled(right, k_v),
        (Some(left), None) => {
            let k_u = tables.states(u);
            let left = scaled(left, k_u);
            (0..k_u).flat_map(|a| left.iter().skip(a).step_by(k_u).copied()).collect()
        }
        (Some(left), Some(right)) => {
            let k_u = tables.states(u);
            let mut joint = vec![0.0; k_u * k_v];
            for ((p, left), right) in
                of_meeting.iter().zip(left.chunks_exact(k_u)).zip(right.chunks_exact(k_v))
            {
                for (line, q) in joint.chunks_exact_mut(k_v).zip(left) {
                    let weight = p * q;
                    line.iter_mut().zip(right).for_each(|(sum, r)| *sum += weight * r);
                }
            }
            joint
        }
        // The same variable twice: its distribution on the diagonal.
        (None, None) => {
            let mut joint = vec![0.0; k_v * k_v];
            of_meeting.iter().enumerate().for_each(|(a, p)| joint[a * k_v + a] = *p);
            joint
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::one_tree::TreePosterior;
    use crate::model::TreeModel;

    /// Along paths up, down, and over a vertex in between, and between two trees: as messages with one variable observed say.
    #[test]
    fn joints_are_those_of_messages() {
        let states = [2, 3, 4, 2, 3, 2];
        // 3 – 1 – 0 – 2 – 4, and 5 by itself.
        let parents = vec![0, 0, 0, 1, 2, 5];
        let line = |v: usize, a: usize| {
            let line: Vec<f64> =
                (0..states[v]).map(|b| 1.0 + ((3 * v + 5 * a + 7 * b) % 11) as f64).collect();
            let sum: f64 = line.iter().sum();
            line.into_iter().map(|p| p / sum).collect()
        };
        let tree = TreeModel::from_tables(&states, parents, line).unwrap();
        for u in 0..states.len() {
            for v in (0..states.len()).filter(|&v| v != u) {
                let found = joint(&tree, tree.tree(), u, v);
                let own = tree.offsets()[v]..tree.offsets()[v + 1];
                for a in 0..states[u] {
                    let mut evidence = Evidence::none(&states);
                    evidence.set(u, &[a]).unwrap();
                    let mut told = TreePosterior::new(&tree, &evidence);
                    let p = told.log_evidence().exp();
                    for (b, q) in told.posterior()[own.clone()].iter().enumerate() {
                        let off = (found[a * states[v] + b] - p * q).abs();
                        assert!(off < 1e-14, "{u}={a} {v}={b}: {off}");
                    }
                }
            }
        }
    }
}
