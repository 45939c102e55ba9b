//! What inference sees of a component.

use super::moat::ratios_of;
use super::pair::Margin;
use super::{Density, Directed, Kernel, Learnable, Moat, ModelError, TreeModel, TreeTables};
use crate::data::Codes;
use crate::forest::{Backend, Cpu, ForestError, Tables};
use crate::spanning::Kind;
use crate::util::triangle::{mirror, pair as edge};
use std::sync::{Arc, Mutex};

/// A mixture of all trees ready for inference.
pub struct AllTrees<'a, M: Learnable> {
    model: &'a M,
    backend: Cpu<f64>,
    /// Tables, shared by all who ask at the same time.
    ready: M::Ready<Cpu<f64>>,
    /// What they work with.
    forks: Mutex<Vec<M::Ready<Cpu<f64>>>>,
    tables: TreeTables,
    weights: Vec<f64>,
    /// Rates given a row are weights times these.
    factors: Tables,
}

/// Something ready for a backend that another thread can use too: tables are shared, places to work in are not.
pub(super) trait Fork<B: Backend> {
    fn fork(&self, backend: &B) -> Self;
}

/// Tables that are prepared.
pub(super) fn prepared<P>(prepared: &Option<Arc<P>>) -> Result<&P, ModelError> {
    let unready = ForestError::OtherTables { what: "a model that has not been made ready" };
    Ok(prepared.as_deref().ok_or(unready)?)
}

fn backend() -> Cpu<f64> {
    Cpu::new().keeping(0)
}

impl Moat {
    /// Everything that questions need, computed once.
    pub fn density(&self) -> Result<AllTrees<'_, Moat>, ModelError> {
        let backend = backend();
        let ready = self.ready(&backend)?;
        let n = self.states.len();
        let weights = self.weight_matrix();
        let rates = &ready.tables;
        let factors = Tables::build(Kind::Undirected, &self.states, |v, a, u, b| {
            let weight = weights[v * n + u];
            if weight > 0.0 { rates.get(v, a, u, b) / weight } else { self.ratio(&ready.margins, v, a, u, b) }
        })?;
        let p: Vec<&[f64]> = ready.margins.iter().map(|margin| &margin.p[..]).collect();
        // P(b | a) = P(b) z(a, b)
        let tables =
            TreeTables::build(&self.states, |u, a, v, b| p[v][b] * factors.get(v, b, u, a), |v, b| p[v][b]);
        Ok(AllTrees { model: self, backend, ready, forks: Mutex::default(), tables, weights, factors })
    }

    /// The ratio of one pair of states where the weight of the edge is zero.
    fn ratio(&self, margins: &[Margin], v: usize, a: usize, u: usize, b: usize) -> f64 {
        let joint = self.pair(edge(u, v));
        let mut z = vec![0.0; joint.len()];
        ratios_of(joint, &margins[u], &margins[v], &mut z);
        z[b * self.states[v] + a]
    }
}

impl Directed {
    /// Everything that questions need, computed once.
    pub fn density(&self) -> Result<AllTrees<'_, Directed>, ModelError> {
        let backend = backend();
        let ready = self.ready(&backend)?;
        let factors = self.tables();
        let given = |u: usize, a: usize, v: usize, b: usize| factors.get(v, b, u, a);
        let tables = TreeTables::build(self.states(), given, |v, b| factors.get(v, b, v, b));
        let weights = self.weights();
        Ok(AllTrees { model: self, backend, ready, forks: Mutex::default(), tables, weights, factors })
    }
}

/// A component ready for inference.
pub enum ComponentInference<'a> {
    /// All trees, weighted.
    AllTrees(Box<dyn Density + 'a>),
    /// One tree.
    OneTree(Box<TreeModel>),
    /// Stored rows.
    Stored(&'a Kernel),
}

impl<M: Learnable> Density for AllTrees<'_, M>
where
    M::Ready<Cpu<f64>>: Fork<Cpu<f64>>,
{
    fn states(&self) -> &[usize] {
        self.model.states()
    }

    fn tables(&self) -> &TreeTables {
        &self.tables
    }

    fn kind(&self) -> Kind {
        self.factors.kind()
    }

    fn rates(&self) -> &[f64] {
        &self.weights
    }

    fn factor(&self, v: usize, a: usize, u: usize, b: usize) -> f64 {
        self.factors.get(v, a, u, b)
    }

    fn rates_at(&self, row: &[u16], rates: &mut [f64]) {
        let n = row.len();
        let undirected = self.kind() == Kind::Undirected;
        let (offsets, factors) = (self.factors.offsets(), self.factors.rates());
        let total = offsets[n];
        let places: Vec<usize> =
            row.iter().zip(offsets).map(|(&state, first)| first + usize::from(state)).collect();
        for v in 0..n {
            let factors = &factors[places[v] * total..][..total];
            let others = v * n..v * n + if undirected { v } else { n };
            let line = rates[others.clone()].iter_mut().zip(&self.weights[others]).zip(&places);
            line.for_each(|((rate, weight), &place)| *rate = weight * factors[place]);
            if undirected {
                rates[v * n + v] = 0.0;
            }
        }
        if undirected {
            mirror(n, rates);
        }
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        // Whoever asks at the same time has a place of their own to work in.
        let spare = self.forks.lock().expect("nobody fails while holding it").pop();
        let mut ready = spare.unwrap_or_else(|| self.ready.fork(&self.backend));
        let done = self.model.log_likelihood(&self.backend, &mut ready, codes, out);
        self.forks.lock().expect("nobody fails while holding it").push(ready);
        done
    }
}
