//! The paper's family behind the door of inference.

use super::moat::{Moat, Ready, edge, ratios_of};
use super::pair::Margin;
use super::{Density, Learnable, ModelError, TreeTables};
use crate::forest::{Codes, Cpu, Tables};
use crate::spanning::Kind;
use std::sync::Mutex;

/// A [`Moat`] made ready to be asked.
pub struct Asked<'a> {
    moat: &'a Moat,
    backend: Cpu<f64>,
    ready: Mutex<Vec<Ready<Cpu<f64>>>>,
    tables: TreeTables,
    weights: Vec<f64>,
    /// `z`, where the rates of a tree are weights times this.
    ratios: Tables,
}

impl Moat {
    /// Everything that questions need, computed once.
    pub fn asked(&self) -> Result<Asked<'_>, ModelError> {
        let backend = Cpu::new().keeping(0);
        let ready = self.ready(&backend)?;
        let n = self.states.len();
        let weights = self.weight_matrix();
        let rates = &ready.tables;
        let ratios = Tables::build(Kind::Undirected, &self.states, |v, a, u, b| {
            let weight = weights[v * n + u];
            if weight > 0.0 { rates.get(v, a, u, b) / weight } else { self.ratio(&ready.margins, v, a, u, b) }
        })?;
        let p: Vec<&[f64]> = ready.margins.iter().map(|margin| &margin.p[..]).collect();
        // P(b | a) = P(b) z(a, b)
        let tables =
            TreeTables::build(&self.states, |u, a, v, b| p[v][b] * ratios.get(v, b, u, a), |v, b| p[v][b]);
        Ok(Asked { moat: self, backend, ready: Mutex::new(vec![ready]), tables, weights, ratios })
    }

    /// The ratio of one pair of states where the weight of the edge is zero.
    fn ratio(&self, margins: &[Margin], v: usize, a: usize, u: usize, b: usize) -> f64 {
        let joint = self.pair(edge(u, v));
        let mut z = vec![0.0; joint.len()];
        ratios_of(joint, &margins[u], &margins[v], &mut z);
        z[b * self.states[v] + a]
    }
}

impl Density for Asked<'_> {
    fn states(&self) -> &[usize] {
        &self.moat.states
    }

    fn tables(&self) -> &TreeTables {
        &self.tables
    }

    fn kind(&self) -> Kind {
        Kind::Undirected
    }

    fn rates(&self) -> &[f64] {
        &self.weights
    }

    fn factor(&self, v: usize, a: usize, u: usize, b: usize) -> f64 {
        self.ratios.get(v, a, u, b)
    }

    fn rates_at(&self, row: &[u16], rates: &mut [f64]) {
        let n = row.len();
        let (offsets, ratios) = (self.ratios.offsets(), self.ratios.rates());
        let total = offsets[n];
        let places: Vec<usize> =
            row.iter().zip(offsets).map(|(&state, first)| first + usize::from(state)).collect();
        for v in 0..n {
            let ratios = &ratios[places[v] * total..][..total];
            let weights = &self.weights[v * n..v * n + v];
            let below = rates[v * n..v * n + v].iter_mut().zip(weights).zip(&places);
            below.for_each(|((rate, weight), &place)| *rate = weight * ratios[place]);
            rates[v * n + v] = 0.0;
        }
        mirror(n, rates);
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        // Whoever asks at the same time gets a copy of their own.
        let spare = self.ready.lock().expect("nobody fails while holding it").pop();
        let mut ready = match spare {
            Some(ready) => ready,
            None => self.moat.ready(&self.backend)?,
        };
        let done = self.moat.log_likelihood(&self.backend, &mut ready, codes, out);
        self.ready.lock().expect("nobody fails while holding it").push(ready);
        done
    }
}

/// Copies what is below the diagonal above it: square by square, so that what is written is near what was read.
fn mirror(n: usize, rates: &mut [f64]) {
    const SQUARE: usize = 16;
    for corner in (0..n).step_by(SQUARE) {
        for v in corner..n {
            for u in corner..v.min(corner + SQUARE) {
                rates[u * n + v] = rates[v * n + u];
            }
        }
    }
}
