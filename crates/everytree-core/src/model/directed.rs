//! The mixture of all rooted forests, with free conditional tables.
//!
//! ```text
//! p(x) = Σ_forests Π_v ( ρ_v P_v(x_v) if v is a root, else w_{u→v} P(x_v | x_u) with its parent u ) / F(w, ρ)
//! ```
//!
//! Every forest is a distribution whatever its tables are, so nothing has to agree with anything: any number of states, one
//! free table for every ordered pair, one for every root. The paper's family is the limit of symmetric weights, tables
//! with common margins and rare roots.
//!
//! Parameters, in one vector: the logarithms of the weights, a square matrix with a line for every variable (its parents in
//! order; itself: as a root); then the logits of the tables, a square matrix over all states of all variables: line
//! `v:b`, column `u:a` is the logit of `P(x_v = b | x_u = a)`, and `v:b`, `v:b` that of `P_v(b)`. (Other places within one
//! variable are nothing, and zero.)

use super::family::{ComponentShape, FamilyModel, FamilySpec, Initialisation, Preset, Trees};
use super::inference::{Fork, prepared};
use super::series::{Grows, Series};
use super::settings::{AUTO, HowMany, MANY_VARIABLES, Optimiser};
use super::{
    ComponentInference, Learnable, ModelError, PairCounts, ParamsView, Regularisation, Settings, UnseenStates,
};
use crate::data::Codes;
use crate::forest::{Backend, Counts, Tables};
use crate::spanning::{Elimination, Kind};
use crate::util::{exp_below, first_not_finite, log_sum, mutual_information, offsets, standard_normals};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Weights of pairs that tell nothing about each other at the start, as mutual information in nats.
const LEAST_INFORMATION: f64 = 1e-7;
/// The weight of all roots together at the start.
const ROOTS: f64 = 0.02;
/// No probability comes out of counts below this.
const LEAST_PROBABILITY: f64 = 1e-12;
/// Added to expected numbers of edges when they are compared with found ones.
const LEAST_COUNT: f64 = 1e-2;
/// Weights further than this below the largest of a variable (as logarithms) count as that far.
const LEAST_LOG_WEIGHT: f64 = -300.0;

/// A mixture of all rooted forests.
#[derive(Clone, Debug, PartialEq)]
pub struct Directed {
    states: Vec<usize>,
    offsets: Vec<usize>,
    parameters: Vec<f64>,
}

/// A [`Directed`] ready for a backend.
pub struct DirectedReady<B: Backend> {
    pub(super) tables: Tables,
    /// Nothing while tables are made anew.
    prepared: Option<Arc<B::Prepared>>,
    trace: B::Trace,
    log_prior: f64,
    /// How probable every parent is before any data; on the diagonal: to be a root.
    prior: Vec<f64>,
    /// Probabilities, where the logits lie.
    p: Arc<Vec<f64>>,
}

/// Expected counts of parents by states.
pub struct DirectedStats {
    counts: Counts,
    total: f64,
}

impl DirectedStats {
    /// The weight of all rows together.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The weight of rows in which u is the parent of v; `u = v`: in which v is a root.
    pub fn parent(&self, v: usize, u: usize) -> f64 {
        self.counts.edge(v, u)
    }
}

impl<B: Backend> Fork<B> for DirectedReady<B> {
    fn fork(&self, backend: &B) -> Self {
        Self {
            tables: self.tables.clone(),
            prepared: self.prepared.clone(),
            trace: backend.trace(),
            log_prior: self.log_prior,
            prior: self.prior.clone(),
            p: Arc::clone(&self.p),
        }
    }
}

impl<B: Backend> DirectedReady<B> {
    /// How probable u is as the parent of v before any data, at `v · n + u`; `v · n + v`: v as a root.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }
}

impl Directed {
    fn blank(states: Vec<usize>) -> Result<Self, ModelError> {
        let mut directed = Self::without_parameters(states)?;
        directed.parameters = vec![0.0; directed.expected()];
        Ok(directed)
    }

    fn without_parameters(states: Vec<usize>) -> Result<Self, ModelError> {
        if states.is_empty() {
            return Err(ModelError::NoVariables);
        }
        Tables::check(&states)?;
        let offsets = offsets(&states);
        Ok(Self { states, offsets, parameters: Vec::new() })
    }

    /// How many parameters there must be.
    fn expected(&self) -> usize {
        let n = self.states.len();
        n.pow(2) + self.offsets[n].pow(2)
    }

    /// From parameters in the order of the module's description.
    pub fn from_parameters(states: Vec<usize>, parameters: Vec<f64>) -> Result<Self, ModelError> {
        let mut directed = Self::without_parameters(states)?;
        let (found, expected) = (parameters.len(), directed.expected());
        if found != expected {
            return Err(ModelError::Length { what: "the list of parameters".to_owned(), found, expected });
        }
        directed.parameters = parameters;
        directed.check()?;
        Ok(directed)
    }

    fn check(&self) -> Result<(), ModelError> {
        match first_not_finite(&self.parameters) {
            Some(place) => Err(ModelError::NotANumber { place, value: self.parameters[place] }),
            None => Ok(()),
        }
    }

    /// From counts: margins smoothed by `pseudocount` rows spread evenly over all states, every line of every table by as many
    /// rows with these margins, mutual informations as weights either way, and rare roots.
    pub fn from_counts(counts: &PairCounts, pseudocount: f64) -> Result<Self, ModelError> {
        let mut directed = Self::blank(counts.states().to_vec())?;
        let Self { states, offsets, parameters } = &mut directed;
        let (n, size) = (states.len(), offsets[states.len()]);
        let total = counts.total() + pseudocount;
        let margins: Vec<Vec<f64>> = (0..n)
            .map(|v| {
                let even = pseudocount / states[v] as f64;
                (0..states[v]).map(|b| (counts.single(v, b) + even) / total).collect()
            })
            .collect();
        let (weights, logits) = parameters.split_at_mut(n * n);
        let (states, offsets, margins) = (&states[..], &offsets[..], &margins[..]);
        let lines = by_variable(offsets, logits).into_par_iter().zip(weights.par_chunks_exact_mut(n));
        lines.enumerate().for_each(|(v, (logits, weights))| {
            for u in 0..n {
                if u == v {
                    weights[v] = (ROOTS / n as f64).ln();
                    for b in 0..states[v] {
                        logits[b * size + offsets[v] + b] = margins[v][b].ln();
                    }
                    continue;
                }
                let mut joint = vec![0.0; states[u] * states[v]];
                for a in 0..states[u] {
                    let line = &mut joint[a * states[v]..(a + 1) * states[v]];
                    let mut sum = 0.0;
                    for (b, entry) in line.iter_mut().enumerate() {
                        let both = if u < v { counts.pair(v, b, u, a) } else { counts.pair(u, a, v, b) };
                        *entry = both + pseudocount * margins[v][b];
                        sum += *entry;
                    }
                    for (b, entry) in line.iter_mut().enumerate() {
                        logits[b * size + offsets[u] + a] = (*entry / sum).ln();
                        *entry *= margins[u][a] / sum;
                    }
                }
                let mut margin_v = vec![0.0; states[v]];
                joint.chunks_exact(states[v]).for_each(|line| {
                    margin_v.iter_mut().zip(line).for_each(|(sum, entry)| *sum += entry);
                });
                let information = mutual_information(&joint, &margins[u], &margin_v);
                weights[u] = information.max(LEAST_INFORMATION).ln();
            }
        });
        Ok(directed)
    }

    /// Every parameter from a normal distribution of deviation 1, by seed.
    pub fn random(states: Vec<usize>, seed: u64) -> Result<Self, ModelError> {
        let mut directed = Self::blank(states)?;
        let unused: Vec<bool> = directed.used().map(|used| !used).collect();
        standard_normals(seed, &mut directed.parameters);
        let logits = &mut directed.parameters[directed.states.len().pow(2)..];
        logits.iter_mut().zip(unused).filter(|(_, unused)| *unused).for_each(|(logit, _)| *logit = 0.0);
        Ok(directed)
    }

    /// All parameters, in the order of the module's description.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// All parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut [f64] {
        &mut self.parameters
    }

    /// Which places of the square over all states hold a logit.
    fn used(&self) -> impl Iterator<Item = bool> + '_ {
        let size = self.states_in_all();
        let variable = move |state: usize| self.offsets.partition_point(|&first| first <= state) - 1;
        let variables: Vec<usize> = (0..size).map(variable).collect();
        (0..size * size).map(move |place| {
            let (line, column) = (place / size, place % size);
            variables[line] != variables[column] || line == column
        })
    }

    /// One over the number of states of the variable of each line, where the logits lie.
    fn even(&self) -> impl Iterator<Item = f64> + '_ {
        let size = self.states_in_all();
        self.states.iter().flat_map(move |&count| std::iter::repeat_n(1.0 / count as f64, count * size))
    }

    /// States of all variables together.
    fn states_in_all(&self) -> usize {
        self.offsets[self.states.len()]
    }

    /// How many numbers say it all: weights up to one factor a variable, and tables whose lines add up to one.
    pub fn degrees_of_freedom(&self) -> usize {
        let (n, size) = (self.states.len(), self.states_in_all());
        let tables: usize = self.states.iter().map(|&count| (count - 1) * (size - count + 1)).sum();
        n * n - n + tables
    }

    /// The weight of every parent of every variable, the largest of each variable being 1; on the diagonal: of a root.
    pub fn weights(&self) -> Vec<f64> {
        let n = self.states.len();
        let mut weights = self.parameters[..n * n].to_vec();
        for line in weights.chunks_exact_mut(n) {
            let most = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            line.iter_mut().for_each(|log| *log = (*log - most).max(LEAST_LOG_WEIGHT).exp());
        }
        weights
    }

    /// The tables: `get(v, b, u, a)` is `P(x_v = b | x_u = a)`, and `get(v, b, v, b)` is `P_v(b)` of v as a root.
    pub fn tables(&self) -> Tables {
        let p = self.probabilities();
        let size = self.states_in_all();
        let place = |v: usize, a: usize| self.offsets[v] + a;
        Tables::build(Kind::Directed, &self.states, |v, b, u, a| p[place(v, b) * size + place(u, a)])
            .unwrap_or_else(|error| unreachable!("probabilities are rates: {error}"))
    }

    /// The tables, where the logits lie.
    fn probabilities(&self) -> Vec<f64> {
        let mut p = self.parameters[self.states.len().pow(2)..].to_vec();
        self.softmax(&mut p);
        p
    }

    /// Turns logits into probabilities.
    fn softmax(&self, p: &mut [f64]) {
        let size = self.states_in_all();
        by_variable(&self.offsets, p).into_par_iter().enumerate().for_each(|(v, lines)| {
            let (first, last) = (self.offsets[v], self.offsets[v + 1]);
            let mut most = vec![f64::NEG_INFINITY; size];
            for line in lines.chunks_exact(size) {
                most.iter_mut().zip(line).for_each(|(most, &logit)| *most = most.max(logit));
            }
            // Within the variable only the diagonal counts.
            let root =
                (0..last - first).map(|b| lines[b * size + first + b]).fold(f64::NEG_INFINITY, f64::max);
            most[first..last].fill(root);
            let mut sums = vec![0.0; size];
            let mut roots = 0.0;
            for (b, line) in lines.chunks_exact_mut(size).enumerate() {
                let root = line[first + b];
                line[first..last].copy_from_slice(&most[first..last]);
                line[first + b] = root;
                exp_below(line, &most);
                roots += line[first + b];
                let root = line[first + b];
                line[first..last].fill(0.0);
                line[first + b] = root;
                sums.iter_mut().zip(&*line).for_each(|(sum, p)| *sum += p);
            }
            sums[first..last].fill(roots);
            for line in lines.chunks_exact_mut(size) {
                line.iter_mut().zip(&sums).for_each(|(p, sum)| *p /= sum);
            }
        });
    }
}

/// Cuts a square matrix over all states into the lines of each variable.
fn by_variable<'a>(offsets: &[usize], matrix: &'a mut [f64]) -> Vec<&'a mut [f64]> {
    let size = offsets[offsets.len() - 1];
    let mut rest = matrix;
    offsets
        .windows(2)
        .map(|place| {
            let (lines, tail) = std::mem::take(&mut rest).split_at_mut((place[1] - place[0]) * size);
            rest = tail;
            lines
        })
        .collect()
}

impl ParamsView for Directed {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.parameters]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.parameters]
    }
}

impl ParamsView for DirectedStats {
    fn slices(&self) -> Vec<&[f64]> {
        vec![self.counts.sums(), std::slice::from_ref(&self.total)]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![self.counts.sums_mut(), std::slice::from_mut(&mut self.total)]
    }
}

impl Learnable for Directed {
    type Ready<B: Backend> = DirectedReady<B>;
    type Stats = DirectedStats;

    fn states(&self) -> &[usize] {
        &self.states
    }

    fn ready<B: Backend>(&self, backend: &B) -> Result<DirectedReady<B>, ModelError> {
        let tables = Tables::zeros(Kind::Directed, &self.states)?;
        let mut ready = DirectedReady {
            prepared: None,
            p: Arc::new(vec![0.0; tables.rates().len()]),
            tables,
            trace: backend.trace(),
            log_prior: 0.0,
            prior: Vec::new(),
        };
        self.refresh(backend, &mut ready)?;
        Ok(ready)
    }

    fn refresh<B: Backend>(&self, backend: &B, ready: &mut DirectedReady<B>) -> Result<(), ModelError> {
        self.check()?;
        let (n, size) = (self.states.len(), self.states_in_all());
        let weights = self.weights();
        let (log_prior, prior) = Elimination::<f64>::new(Kind::Directed, n)?.one(&weights)?;
        if log_prior == f64::NEG_INFINITY {
            return Err(ModelError::NoTree);
        }
        (ready.log_prior, ready.prior) = (log_prior, prior);
        // Not held twice.
        ready.prepared = None;
        let DirectedReady { tables, p, .. } = ready;
        let p = &mut Arc::make_mut(p)[..];
        p.copy_from_slice(&self.parameters[n * n..]);
        self.softmax(p);
        tables.fill(|v, line| {
            for b in 0..self.states[v] {
                let p = &p[(self.offsets[v] + b) * size..][..size];
                for u in 0..n {
                    let weight = weights[v * n + u];
                    if u == v {
                        line.set(b, v, b, weight * p[self.offsets[v] + b]);
                    } else {
                        (0..self.states[u]).for_each(|a| line.set(b, u, a, weight * p[self.offsets[u] + a]));
                    }
                }
            }
        })?;
        ready.prepared = Some(Arc::new(backend.prepare(&ready.tables)));
        Ok(())
    }

    fn log_likelihood<B: Backend>(
        &self,
        backend: &B,
        ready: &mut DirectedReady<B>,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        backend.forward(prepared(&ready.prepared)?, codes, &mut ready.trace, out)?;
        out.iter_mut().for_each(|log| *log -= ready.log_prior);
        Ok(())
    }

    fn stats<B: Backend>(&self, ready: &DirectedReady<B>) -> DirectedStats {
        DirectedStats { counts: Counts::new(&ready.tables), total: 0.0 }
    }

    fn accumulate<B: Backend>(
        &self,
        backend: &B,
        ready: &mut DirectedReady<B>,
        _: Codes<'_>,
        weights: &[f64],
        stats: &mut DirectedStats,
    ) -> Result<(), ModelError> {
        backend.backward(prepared(&ready.prepared)?, &mut ready.trace, weights, &mut stats.counts)?;
        stats.total += weights.iter().sum::<f64>();
        Ok(())
    }

    fn gradient<B: Backend>(&self, ready: &DirectedReady<B>, stats: &DirectedStats, gradient: &mut [f64]) {
        let (n, size) = (self.states.len(), self.states_in_all());
        let (weights, logits) = gradient.split_at_mut(n * n);
        let counts = stats.counts.sums();
        let lines = by_variable(&self.offsets, logits).into_par_iter().zip(weights.par_chunks_exact_mut(n));
        lines.enumerate().for_each(|(v, (logits, weights))| {
            let (first, last) = (self.offsets[v], self.offsets[v + 1]);
            let counts = &counts[first * size..last * size];
            let p = &ready.p[first * size..last * size];
            let mut sums = vec![0.0; size];
            for line in counts.chunks_exact(size) {
                sums.iter_mut().zip(line).for_each(|(sum, count)| *sum += count);
            }
            let roots: f64 = sums[first..last].iter().sum();
            sums[first..last].fill(roots);
            for ((to, &count), (&p, &sum)) in
                logits.iter_mut().zip(counts).zip(p.iter().zip(sums.iter().cycle()))
            {
                *to = count - p * sum;
            }
            for u in 0..n {
                let found =
                    if u == v { roots } else { sums[self.offsets[u]..self.offsets[u + 1]].iter().sum() };
                weights[u] = found - stats.total * ready.prior[v * n + u];
            }
        });
    }

    fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        if by.laplace == 0.0 {
            return;
        }
        let n = self.states.len();
        let strength = share * by.laplace;
        let p = self.probabilities();
        for (((slope, p), used), even) in
            gradient[n * n..].iter_mut().zip(p).zip(self.used()).zip(self.even())
        {
            if used {
                *slope += strength * (even - p);
            }
        }
    }

    fn log_prior(&self, by: &Regularisation) -> f64 {
        let p = self.probabilities();
        let used = p.iter().zip(self.used()).zip(self.even()).filter(|((_, used), _)| *used);
        by.laplace * used.map(|((p, _), even)| even * p.ln()).sum::<f64>()
    }

    fn maximise<B: Backend>(
        &mut self,
        ready: &DirectedReady<B>,
        stats: &DirectedStats,
        parent: Option<&DirectedStats>,
        by: &Regularisation,
    ) -> bool {
        let (n, size) = (self.states.len(), self.states_in_all());
        let Self { states, offsets, parameters } = self;
        let (weights, logits) = parameters.split_at_mut(n * n);
        let counts = stats.counts.sums();
        let above = parent.map(|parent| (parent.counts.sums(), parent.total));
        let lines = by_variable(offsets, logits).into_par_iter().zip(weights.par_chunks_exact_mut(n));
        lines.enumerate().for_each(|(v, (logits, weights))| {
            let (first, last) = (offsets[v], offsets[v + 1]);
            let column_sums = |counts: &[f64]| {
                let mut sums = vec![0.0; size];
                for line in counts[first * size..last * size].chunks_exact(size) {
                    sums.iter_mut().zip(line).for_each(|(sum, count)| *sum += count);
                }
                let roots: f64 = sums[first..last].iter().sum();
                sums[first..last].fill(roots);
                sums
            };
            let sums = column_sums(counts);
            let sums_above = above.map(|(counts, _)| column_sums(counts));
            let even = 1.0 / states[v] as f64;
            for b in 0..last - first {
                for column in 0..size {
                    if (first..last).contains(&column) && column != first + b {
                        continue;
                    }
                    let place = (first + b) * size + column;
                    let (mut count, mut sum) = (counts[place] + by.laplace * even, sums[column] + by.laplace);
                    if let (Some((above, _)), Some(sums)) = (above, &sums_above)
                        && sums[column] > 0.0
                    {
                        count += by.shrinkage * above[place] / sums[column];
                        sum += by.shrinkage;
                    }
                    if sum > 0.0 {
                        logits[b * size + column] = (count / sum).max(LEAST_PROBABILITY).ln();
                    }
                }
            }
            for u in 0..n {
                let whole = |sums: &[f64]| match u == v {
                    true => sums[first],
                    false => sums[offsets[u]..offsets[u + 1]].iter().sum(),
                };
                let (mut found, mut total) = (whole(&sums), stats.total);
                if let (Some((_, all)), Some(sums)) = (above, &sums_above) {
                    found += by.shrinkage * whole(sums) / all;
                    total += by.shrinkage;
                }
                let expected = total * ready.prior[v * n + u];
                weights[u] += ((found + LEAST_COUNT) / (expected + LEAST_COUNT)).ln();
            }
        });
        true
    }

    fn smooth_unseen(&mut self, unseen: &[UnseenStates]) {
        let (n, size) = (self.states.len(), self.states_in_all());
        let Self { offsets, parameters, .. } = self;
        let mut lines = by_variable(offsets, &mut parameters[n * n..]);
        // By variable, so that they can be worked on side by side.
        let mut of: Vec<Option<&UnseenStates>> = vec![None; n];
        unseen.iter().for_each(|unseen| of[unseen.variable] = Some(unseen));
        lines.par_iter_mut().zip(of).enumerate().for_each(|(v, (lines, unseen))| {
            let Some(unseen) = unseen else { return };
            let (first, last) = (offsets[v], offsets[v + 1]);
            let log_odds = unseen.odds().ln();
            let seen: Vec<usize> = (0..last - first).filter(|b| !unseen.states.contains(b)).collect();
            // Line by line, as they lie; within the variable, on the diagonal, its states as a root.
            let mut most = vec![f64::NEG_INFINITY; size];
            for b in &seen {
                let line = &lines[b * size..][..size];
                most.iter_mut().zip(line).for_each(|(most, &logit)| *most = most.max(logit));
            }
            let mut sums = vec![0.0; size];
            for b in &seen {
                let line = &lines[b * size..][..size];
                for ((sum, &logit), most) in sums.iter_mut().zip(line).zip(&most) {
                    *sum += (logit - most).exp();
                }
            }
            let held: Vec<f64> =
                most.iter().zip(&sums).map(|(most, sum)| most + sum.ln() + log_odds).collect();
            let root = log_sum(seen.iter().map(|b| lines[b * size + first + b])) + log_odds;
            for b in &unseen.states {
                let line = &mut lines[b * size..][..size];
                line[..first].copy_from_slice(&held[..first]);
                line[last..].copy_from_slice(&held[last..]);
                line[first + b] = root;
            }
        });
    }
}

/// Components that may differ more, found by smaller steps whose average counts: chosen on validation rows, as above.
fn averaged(usual: Settings) -> Settings {
    let regularisation = Regularisation { shrinkage: 0.5, ..usual.regularisation };
    Settings { learning_rate: 0.4 * usual.learning_rate, ema: Some(0.99), regularisation, ..usual }
}

impl FamilyModel for Directed {
    const SPEC: FamilySpec = FamilySpec {
        name: "directed",
        title: "mixture of all rooted forests",
        presets: &[
            Preset::one("directed", "rooted forests with free tables"),
            Preset {
                components: HowMany::UpTo(AUTO),
                ..Preset::one("directed-mixture", "as many of those as validation prefers")
            },
            Preset {
                components: HowMany::UpTo(AUTO),
                blocks: true,
                ..Preset::one(
                    "directed-blocks",
                    "the same over blocks of columns, where validation prefers them",
                )
            },
        ],
        trees: Trees::All,
        optimisers: &[Optimiser::Adam, Optimiser::Em],
        series: &[
            Series::new(2, Grows::Prior(&[1.0, 10.0])),
            Series { settings: averaged, ..Series::new(5, Grows::Components(2)) },
            Series::new(6, Grows::Blocks),
        ],
        ..FamilySpec::USUAL
    };

    /// Shorter epochs of smaller batches, steps that fall along a cosine, components of a mixture shrunk towards their mean.
    /// Chosen on validation rows of the datasets in experiments/results/table1-directed.csv.
    fn settings(variables: usize) -> Settings {
        let (batch_size, learning_rate) = if variables < MANY_VARIABLES { (256, 0.05) } else { (64, 0.02) };
        Settings {
            epochs: 30,
            batch_size,
            learning_rate,
            patience: Some(6),
            cosine: true,
            regularisation: Regularisation { shrinkage: 2.0, laplace: 0.0 },
            ..Settings::paper(variables)
        }
    }

    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        Directed::from_counts(&from.counts, from.pseudocount)
    }

    fn random(states: &[usize], _: &ComponentShape, seed: u64) -> Result<Self, ModelError> {
        Directed::random(states.to_vec(), seed)
    }

    fn list_names(_: &ComponentShape) -> &'static [&'static str] {
        &["parents.log_weight", "tables.logit"]
    }

    fn lists(&self) -> Vec<Cow<'_, [f64]>> {
        let (weights, logits) = self.parameters.split_at(self.states.len().pow(2));
        vec![weights.into(), logits.into()]
    }

    fn from_numbers(states: &[usize], _: &ComponentShape, numbers: Vec<f64>) -> Result<Self, ModelError> {
        Directed::from_parameters(states.to_vec(), numbers)
    }

    fn kind(&self) -> Kind {
        Kind::Directed
    }

    fn weights(&self) -> Vec<f64> {
        Directed::weights(self)
    }

    fn degrees_of_freedom(&self) -> usize {
        Directed::degrees_of_freedom(self)
    }

    fn prior_edges<B: Backend>(&self, ready: &DirectedReady<B>) -> Vec<f64> {
        ready.prior.clone()
    }

    fn edge_counts(&self, stats: &DirectedStats) -> Vec<f64> {
        let n = self.states.len();
        (0..n * n).map(|place| stats.counts.edge(place / n, place % n)).collect()
    }

    fn inference(&self) -> Result<ComponentInference<'_>, ModelError> {
        Ok(ComponentInference::AllTrees(Box::new(self.density()?)))
    }
}
