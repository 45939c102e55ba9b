//! What is made of every tree that is drawn.

use super::messages::Messages;
use crate::model::Density;
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

impl Measure {
    /// How many functions there are.
    pub fn functions<D: Density + ?Sized>(self, density: &D) -> usize {
        let n = density.states().len();
        match self {
            Measure::Row | Measure::Posterior => density.tables().offsets()[n],
            Measure::Edges => n * n,
            Measure::Nothing => 0,
        }
    }

    /// The functions of a tree whose evidence `messages` has collected. `ones` is work space.
    pub fn values<'a>(
        self,
        kind: Kind,
        tree: &RootedForest,
        messages: &'a mut Messages<'_>,
        rng: &mut (impl Rng + ?Sized),
        ones: &'a mut Vec<usize>,
    ) -> Values<'a> {
        ones.clear();
        match self {
            Measure::Posterior => return Values::Dense(messages.distribute(tree)),
            Measure::Row => {
                if let Some(row) = messages.draw(tree, rng) {
                    ones.extend(places(messages.offsets(), &row));
                }
            }
            Measure::Edges => ones.extend(edges(kind, tree)),
            Measure::Nothing => {}
        }
        Values::Ones(ones)
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
