//! A family for tests: all columns are independent, and the states of a column equally probable but for the first, whose log
//! odds are learned. It shows what a family needs: this file, and an entry in the list of `families.rs`.

use super::family::{ComponentShape, FamilyModel, FamilySpec, Initialisation, Preset, Trees};
use super::{ComponentInference, Learnable, ModelError, ParamsView, Settings, TreeModel, UnseenStates};
use crate::data::Codes;
use crate::forest::Backend;
use crate::spanning::Kind;
use crate::util::{offsets, standard_normals};
use std::borrow::Cow;

/// One log odds a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Toy {
    states: Vec<usize>,
    log_odds: Vec<f64>,
}

/// How often every column was in its first state, and all rows.
pub struct ToyStats {
    firsts: Vec<f64>,
    total: f64,
}

impl Toy {
    /// `P(first)`, `P(each other)` of a column.
    fn probabilities(&self, v: usize) -> (f64, f64) {
        let others = (self.states[v] - 1) as f64;
        let first = 1.0 / (1.0 + others * (-self.log_odds[v]).exp());
        (first, if others > 0.0 { (1.0 - first) / others } else { 0.0 })
    }

    fn line(&self, v: usize) -> Vec<f64> {
        let (first, other) = self.probabilities(v);
        (0..self.states[v]).map(|a| if a == 0 { first } else { other }).collect()
    }
}

impl ParamsView for Toy {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.log_odds]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.log_odds]
    }
}

impl ParamsView for ToyStats {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.firsts, std::slice::from_ref(&self.total)]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.firsts, std::slice::from_mut(&mut self.total)]
    }
}

impl Learnable for Toy {
    type Ready<B: Backend> = ();
    type Stats = ToyStats;

    fn states(&self) -> &[usize] {
        &self.states
    }

    fn ready<B: Backend>(&self, _: &B) -> Result<(), ModelError> {
        Ok(())
    }

    fn refresh<B: Backend>(&self, _: &B, (): &mut ()) -> Result<(), ModelError> {
        Ok(())
    }

    fn log_likelihood<B: Backend>(
        &self,
        _: &B,
        (): &mut (),
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        codes.check(&offsets(&self.states))?;
        let lines: Vec<Vec<f64>> = (0..self.states.len()).map(|v| self.line(v)).collect();
        for (row, log) in out.iter_mut().enumerate() {
            *log = lines.iter().enumerate().map(|(v, line)| line[codes.get(row, v)].ln()).sum();
        }
        Ok(())
    }

    fn stats<B: Backend>(&self, (): &()) -> ToyStats {
        ToyStats { firsts: vec![0.0; self.states.len()], total: 0.0 }
    }

    fn accumulate<B: Backend>(
        &self,
        _: &B,
        (): &mut (),
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut ToyStats,
    ) -> Result<(), ModelError> {
        for (row, weight) in weights.iter().enumerate() {
            for (v, first) in stats.firsts.iter_mut().enumerate() {
                *first += if codes.get(row, v) == 0 { *weight } else { 0.0 };
            }
            stats.total += weight;
        }
        Ok(())
    }

    fn gradient<B: Backend>(&self, (): &(), stats: &ToyStats, gradient: &mut [f64]) {
        for (v, slope) in gradient.iter_mut().enumerate() {
            *slope = stats.firsts[v] - stats.total * self.probabilities(v).0;
        }
    }

    /// Every state has a probability anyway.
    fn smooth_unseen(&mut self, _: &[UnseenStates]) {}
}

impl FamilyModel for Toy {
    const SPEC: FamilySpec = FamilySpec {
        name: "toy",
        title: "toy",
        presets: &[Preset::one("toy", "one log odds a column, for tests")],
        trees: Trees::One,
        unlisted: true,
        ..FamilySpec::USUAL
    };

    fn settings(variables: usize) -> Settings {
        Settings::paper(variables)
    }

    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        let log_odds = |v: usize| {
            let first = from.counts.single(v, 0) + from.pseudocount;
            let others = from.counts.total() - from.counts.single(v, 0) + from.pseudocount;
            (first * (from.states[v] as f64 - 1.0).max(1.0) / others).ln()
        };
        Ok(Self { states: from.states.to_vec(), log_odds: (0..from.states.len()).map(log_odds).collect() })
    }

    fn random(states: &[usize], _: &ComponentShape, seed: u64) -> Result<Self, ModelError> {
        let mut log_odds = vec![0.0; states.len()];
        standard_normals(seed, &mut log_odds);
        Ok(Self { states: states.to_vec(), log_odds })
    }

    fn list_names(_: &ComponentShape) -> &'static [&'static str] {
        &["toy.log_odds"]
    }

    fn lists(&self) -> Vec<Cow<'_, [f64]>> {
        vec![(&self.log_odds).into()]
    }

    fn from_numbers(states: &[usize], _: &ComponentShape, numbers: Vec<f64>) -> Result<Self, ModelError> {
        let (found, expected) = (numbers.len(), states.len());
        if found != expected {
            return Err(ModelError::Length { what: "the list of log odds".to_owned(), found, expected });
        }
        Ok(Self { states: states.to_vec(), log_odds: numbers })
    }

    fn kind(&self) -> Kind {
        Kind::Directed
    }

    fn weights(&self) -> Vec<f64> {
        let n = self.states.len();
        (0..n * n).map(|place| f64::from(u8::from(place / n == place % n))).collect()
    }

    fn degrees_of_freedom(&self) -> usize {
        self.states.len()
    }

    fn prior_edges<B: Backend>(&self, (): &()) -> Vec<f64> {
        self.weights()
    }

    fn edge_counts(&self, stats: &ToyStats) -> Vec<f64> {
        self.weights().iter().map(|weight| weight * stats.total).collect()
    }

    fn inference(&self) -> Result<ComponentInference<'_>, ModelError> {
        let roots = (0..self.states.len()).collect();
        let tree = TreeModel::from_tables(&self.states, roots, |v, _| self.line(v))?;
        Ok(ComponentInference::OneTree(Box::new(tree)))
    }
}
