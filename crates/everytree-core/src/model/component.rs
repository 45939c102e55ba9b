//! A model of any family, as one type: what files hold and what mixtures are made of.

use super::directed::{DirectedReady, DirectedStats};
use super::moat::{MoatStats, Ready};
use super::one_tree::{OneTreeReady, OneTreeStats};
use super::{Directed, Learnable, Moat, ModelError, Numbers, OneTree, Regularisation, Unseen};
use crate::data::Codes;
use crate::forest::Backend;
use crate::spanning::Kind;

/// One mixture of all trees, or one tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Component {
    /// The paper's family: spanning trees, shared margins.
    Moat(Moat),
    /// Rooted forests, free tables.
    Directed(Directed),
    /// One tree alone.
    Tree(OneTree),
}

/// A [`Component`] made ready for a machine.
pub enum ComponentReady<B: Backend> {
    /// Of the paper's family.
    Moat(Ready<B>),
    /// Of the directed one.
    Directed(DirectedReady<B>),
    /// One tree.
    Tree(OneTreeReady),
}

/// What a [`Component`] adds up over rows.
pub enum ComponentStats {
    /// Of the paper's family.
    Moat(MoatStats),
    /// Of the directed one.
    Directed(DirectedStats),
    /// One tree.
    Tree(OneTreeStats),
}

/// Does the same for any family; model, what is ready and what is added up are of one family.
macro_rules! any {
    ($component:expr, $model:pat => $body:expr) => {
        match $component {
            Component::Moat($model) => $body,
            Component::Directed($model) => $body,
            Component::Tree($model) => $body,
        }
    };
    ($component:expr, $ready:expr, ($model:pat, $own:pat) => $body:expr) => {
        match ($component, $ready) {
            (Component::Moat($model), ComponentReady::Moat($own)) => $body,
            (Component::Directed($model), ComponentReady::Directed($own)) => $body,
            (Component::Tree($model), ComponentReady::Tree($own)) => $body,
            _ => unreachable!("made ready by another family"),
        }
    };
    ($component:expr, $ready:expr, $stats:expr, ($model:pat, $own:pat, $sums:pat) => $body:expr) => {
        match ($component, $ready, $stats) {
            (Component::Moat($model), ComponentReady::Moat($own), ComponentStats::Moat($sums)) => $body,
            (
                Component::Directed($model),
                ComponentReady::Directed($own),
                ComponentStats::Directed($sums),
            ) => $body,
            (Component::Tree($model), ComponentReady::Tree($own), ComponentStats::Tree($sums)) => $body,
            _ => unreachable!("made ready by another family"),
        }
    };
}

impl Component {
    /// Which trees are mixed.
    pub fn kind(&self) -> Kind {
        match self {
            Component::Moat(_) => Kind::Undirected,
            Component::Directed(_) | Component::Tree(_) => Kind::Directed,
        }
    }

    /// The weights of edges, as an `n × n` matrix in the layout of [`Kind`]; the largest (directed: of every variable) is 1.
    pub fn weights(&self) -> Vec<f64> {
        match self {
            Component::Moat(moat) => square(moat.states().len(), &moat.weights()),
            Component::Directed(directed) => directed.weights(),
            Component::Tree(tree) => tree.weights(),
        }
    }

    /// How many numbers say it all.
    pub fn degrees_of_freedom(&self) -> usize {
        match self {
            Component::Moat(moat) => moat.parameters().len(),
            Component::Directed(directed) => directed.degrees_of_freedom(),
            Component::Tree(tree) => tree.degrees_of_freedom(),
        }
    }
}

impl<B: Backend> ComponentReady<B> {
    /// How probable every edge is before any data, as an `n × n` matrix in the layout of [`Kind`].
    pub fn prior(&self, n: usize) -> Vec<f64> {
        match self {
            ComponentReady::Moat(ready) => square(n, ready.prior()),
            ComponentReady::Directed(ready) => ready.prior().to_vec(),
            ComponentReady::Tree(ready) => ready.edges(n),
        }
    }
}

impl ComponentStats {
    /// The weight of the rows whose tree has each edge, as an `n × n` matrix in the layout of [`Kind`].
    pub fn edges(&self, n: usize) -> Vec<f64> {
        if let ComponentStats::Tree(stats) = self {
            return stats.edges(n);
        }
        let mut edges = vec![0.0; n * n];
        for v in 0..n {
            match self {
                ComponentStats::Tree(_) => unreachable!("done above"),
                ComponentStats::Moat(stats) => (0..v).for_each(|u| edges[v * n + u] = stats.edge(u, v)),
                ComponentStats::Directed(stats) => {
                    (0..n).for_each(|u| edges[v * n + u] = stats.parent(v, u));
                }
            }
        }
        edges
    }
}

/// A list of edges {0,1}, {0,2}, {1,2} … as the lower half of a matrix.
fn square(n: usize, edges: &[f64]) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    for v in 0..n {
        (0..v).for_each(|u| matrix[v * n + u] = edges[v * (v - 1) / 2 + u]);
    }
    matrix
}

impl Numbers for Component {
    fn pieces(&self) -> Vec<&[f64]> {
        any!(self, model => model.pieces())
    }

    fn pieces_mut(&mut self) -> Vec<&mut [f64]> {
        any!(self, model => model.pieces_mut())
    }
}

impl Numbers for ComponentStats {
    fn pieces(&self) -> Vec<&[f64]> {
        match self {
            ComponentStats::Moat(stats) => stats.pieces(),
            ComponentStats::Directed(stats) => stats.pieces(),
            ComponentStats::Tree(stats) => stats.pieces(),
        }
    }

    fn pieces_mut(&mut self) -> Vec<&mut [f64]> {
        match self {
            ComponentStats::Moat(stats) => stats.pieces_mut(),
            ComponentStats::Directed(stats) => stats.pieces_mut(),
            ComponentStats::Tree(stats) => stats.pieces_mut(),
        }
    }
}

impl Learnable for Component {
    type Ready<B: Backend> = ComponentReady<B>;
    type Stats = ComponentStats;

    fn states(&self) -> &[usize] {
        any!(self, model => model.states())
    }

    fn ready<B: Backend>(&self, backend: &B) -> Result<ComponentReady<B>, ModelError> {
        Ok(match self {
            Component::Moat(model) => ComponentReady::Moat(model.ready(backend)?),
            Component::Directed(model) => ComponentReady::Directed(model.ready(backend)?),
            Component::Tree(model) => ComponentReady::Tree(model.ready(backend)?),
        })
    }

    fn refresh<B: Backend>(&self, backend: &B, ready: &mut ComponentReady<B>) -> Result<(), ModelError> {
        any!(self, ready, (model, ready) => model.refresh(backend, ready))
    }

    fn log_likelihood<B: Backend>(
        &self,
        backend: &B,
        ready: &mut ComponentReady<B>,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        any!(self, ready, (model, ready) => model.log_likelihood(backend, ready, codes, out))
    }

    fn stats<B: Backend>(&self, ready: &ComponentReady<B>) -> ComponentStats {
        match (self, ready) {
            (Component::Moat(model), ComponentReady::Moat(ready)) => ComponentStats::Moat(model.stats(ready)),
            (Component::Directed(model), ComponentReady::Directed(ready)) => {
                ComponentStats::Directed(model.stats(ready))
            }
            (Component::Tree(model), ComponentReady::Tree(ready)) => {
                ComponentStats::Tree(model.stats::<B>(ready))
            }
            _ => unreachable!("made ready by another family"),
        }
    }

    fn accumulate<B: Backend>(
        &self,
        backend: &B,
        ready: &mut ComponentReady<B>,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut ComponentStats,
    ) -> Result<(), ModelError> {
        any!(self, ready, stats, (model, ready, stats) => {
            model.accumulate(backend, ready, codes, weights, stats)
        })
    }

    fn gradient<B: Backend>(&self, ready: &ComponentReady<B>, stats: &ComponentStats, gradient: &mut [f64]) {
        any!(self, ready, stats, (model, ready, stats) => model.gradient::<B>(ready, stats, gradient))
    }

    fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        any!(self, model => model.regularise(by, share, gradient))
    }

    fn log_prior(&self, by: &Regularisation) -> f64 {
        any!(self, model => model.log_prior(by))
    }

    fn has_a_mean(&self) -> bool {
        any!(self, model => model.has_a_mean())
    }

    fn maximise<B: Backend>(
        &mut self,
        ready: &ComponentReady<B>,
        stats: &ComponentStats,
        parent: Option<&ComponentStats>,
        by: &Regularisation,
    ) -> bool {
        match (self, ready, stats, parent) {
            (
                Component::Directed(model),
                ComponentReady::Directed(ready),
                ComponentStats::Directed(stats),
                parent,
            ) => {
                let parent = parent.map(|parent| match parent {
                    ComponentStats::Directed(parent) => parent,
                    _ => unreachable!("added up by another family"),
                });
                model.maximise(ready, stats, parent, by)
            }
            (Component::Tree(model), ComponentReady::Tree(ready), ComponentStats::Tree(stats), parent) => {
                let parent = parent.map(|parent| match parent {
                    ComponentStats::Tree(parent) => parent,
                    _ => unreachable!("added up by another family"),
                });
                model.maximise::<B>(ready, stats, parent, by)
            }
            _ => false,
        }
    }

    fn hold(&mut self, unseen: &[Unseen]) {
        any!(self, model => model.hold(unseen));
    }
}
