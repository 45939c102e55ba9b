//! What is made of every tree that is drawn.

use super::messages::Messages;
use crate::model::{Density, EdgeTables};
use crate::spanning::{Kind, RootedForest};
use rand::Rng;

/// Functions of a tree, given the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// The states of one row, drawn given tree and evidence: the paper's importance sampling.
    Row,
    /// The posterior of every state given tree and evidence: the paper's collapsed importance sampling.
    Posterior,
    /// Its edges, in the layout of [`Kind`].
    Edges,
    /// Nothing but its weight.
    Nothing,
}

/// The functions of one tree.
pub(crate) enum Values<'a> {
    /// All of them.
    Dense(&'a [f64]),
    /// Those that are 1; the others are 0.
    Ones(&'a [usize]),
}

/// What is measured, and what is made of it.
#[derive(Clone, Copy)]
pub(crate) struct Functions<'a> {
    pub measure: Measure,
    /// Of the states of variables, sums are wanted: the states of columns, where variables are blocks of them.
    pub projection: Option<&'a Projection>,
}

/// Sums of states that are wanted in place of the states.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    /// Where the wanted functions of each column begin, and how many there are in all.
    pub offsets: Vec<usize>,
    /// For every state, the functions to which it adds, and how much.
    pub parts: Vec<Vec<(usize, f64)>>,
}

impl Projection {
    fn take(&self, state: usize, value: f64, to: &mut [f64]) {
        self.parts[state].iter().for_each(|&(function, part)| to[function] += part * value);
    }

    /// The wanted functions of all states.
    pub fn of(&self, values: &[f64]) -> Vec<f64> {
        let mut wanted = vec![0.0; self.offsets[self.offsets.len() - 1]];
        values.iter().enumerate().for_each(|(state, &value)| self.take(state, value, &mut wanted));
        wanted
    }
}

/// Memory to measure in.
#[derive(Default)]
pub(crate) struct Space {
    ones: Vec<usize>,
    wanted: Vec<f64>,
}

impl From<Measure> for Functions<'_> {
    fn from(measure: Measure) -> Self {
        Self { measure, projection: None }
    }
}

impl Functions<'_> {
    /// How many functions there are.
    pub fn count<D: Density + ?Sized>(self, density: &D) -> usize {
        let n = density.states().len();
        match (self.measure, self.projection) {
            (Measure::Row | Measure::Posterior, Some(projection)) => {
                projection.offsets[projection.offsets.len() - 1]
            }
            (Measure::Row | Measure::Posterior, None) => density.tables().offsets()[n],
            (Measure::Edges, _) => n * n,
            (Measure::Nothing, _) => 0,
        }
    }

    /// The functions of a tree whose evidence `messages` has collected.
    pub fn values<'a>(
        self,
        kind: Kind,
        tree: &RootedForest,
        messages: &'a mut Messages<'_>,
        rng: &mut (impl Rng + ?Sized),
        space: &'a mut Space,
    ) -> Values<'a> {
        match self.measure {
            Measure::Posterior => {
                let values = messages.distribute(tree);
                match self.projection {
                    None => Values::Dense(values),
                    Some(projection) => {
                        space.wanted = projection.of(values);
                        Values::Dense(&space.wanted)
                    }
                }
            }
            Measure::Row => {
                let row = messages.draw(tree, rng);
                self.of_row(messages.offsets(), row.as_deref().unwrap_or(&[]), space)
            }
            Measure::Edges => {
                space.ones.clear();
                space.ones.extend(edges(kind, tree));
                Values::Ones(&space.ones)
            }
            Measure::Nothing => Values::Ones(&[]),
        }
    }

    /// The functions of one row.
    pub fn of_row<'a>(self, offsets: &[usize], row: &[u16], space: &'a mut Space) -> Values<'a> {
        match self.projection {
            None => {
                space.ones.clear();
                space.ones.extend(places(offsets, row));
                Values::Ones(&space.ones)
            }
            Some(projection) => {
                space.wanted.clear();
                space.wanted.resize(projection.offsets[projection.offsets.len() - 1], 0.0);
                places(offsets, row).for_each(|state| projection.take(state, 1.0, &mut space.wanted));
                Values::Dense(&space.wanted)
            }
        }
    }
}

/// Where the states of a row lie among all states.
pub(crate) fn places(offsets: &[usize], row: &[u16]) -> impl Iterator<Item = usize> {
    row.iter().zip(offsets).map(|(&state, first)| first + usize::from(state))
}

/// Where the edges of a tree lie in a matrix: below the diagonal, or those to the parent in the row of the child.
fn edges(kind: Kind, tree: &RootedForest) -> impl Iterator<Item = usize> {
    let n = tree.len();
    tree.parents().iter().enumerate().filter_map(move |(v, &u)| match kind {
        Kind::Directed => Some(v * n + u),
        Kind::Undirected => (u != v).then_some(v.max(u) * n + v.min(u)),
    })
}
