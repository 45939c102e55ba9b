//! The edges of a model by the names of its columns, and what each is worth.

use crate::{Model, Result};
use everytree_core::forest::Cpu;
use everytree_core::infer::{EdgePosterior, Estimate};
use everytree_core::model::Learnable;
use everytree_core::spanning::Kind;

/// An edge and what it is worth.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let edge = &model.edges()?[0];
/// assert!(edge.probability > 0.9 && !edge.directed);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Edge {
    /// The ends, as variables of the model. Directed: the parent and the child.
    pub ends: (usize, usize),
    /// The name of the one.
    pub from: String,
    /// The name of the other.
    pub to: String,
    /// How probable it is, given a row of the training data, on average over the rows.
    pub probability: f64,
    /// Relative to the largest.
    pub weight: f64,
    /// Has it a direction?
    pub directed: bool,
}

/// The names of the variables of a model: of its columns, several of a block with plus signs between.
pub(crate) fn names(model: &Model) -> Vec<String> {
    let name = |&column: &usize| model.schema().variables[column].name.as_str();
    let variables = model.core().edge_variables();
    variables.iter().map(|columns| columns.iter().map(name).collect::<Vec<_>>().join(" + ")).collect()
}

impl Model {
    /// The names of the variables between which edges are: columns, or blocks of columns with plus signs between. Of an ensemble
    /// whose members have different blocks, columns.
    pub fn variables(&self) -> Vec<String> {
        names(self)
    }

    /// What each component says about edges: matrices over [`Model::variables`] that add up to probabilities. Row: what is
    /// explained; column: what explains; the diagonal of directed families has the probability of being a root. Of
    /// families without directions only the half below the diagonal is filled.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let (names, matrices) = (model.variables(), model.edge_matrices()?);
    /// assert_eq!((names, matrices.len()), (vec!["smoker".to_owned(), "cough".to_owned()], model.components()));
    /// let p = model.edge_probabilities()?; // of all components together
    /// assert!((p[1] - 1.0).abs() < 1e-9 && p[1] == p[2]); // two columns: one tree
    /// assert_eq!(model.edges_of(&p, &p)[0].probability, p[1]);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn edge_matrices(&self) -> Result<Vec<Vec<f64>>> {
        let cpu = Cpu::<f64>::new().keeping(0);
        let mut matrices = Vec::new();
        for (number, member) in self.core().members().iter().enumerate() {
            let mixture = member.mixture();
            let weights = mixture.mixing_weights();
            let own: Vec<Vec<f64>> = match self.file().edge_posteriors.get(number) {
                Some(Some(posteriors)) => posteriors.clone(),
                // Not learned: as probable as before any data.
                _ => mixture
                    .components()
                    .iter()
                    .zip(&weights)
                    .map(|(component, weight)| {
                        let prior = component.prior_edges(&component.ready(&cpu)?);
                        Ok(prior.into_iter().map(|p| weight * p).collect())
                    })
                    .collect::<Result<_>>()?,
            };
            matrices.extend(self.of_member(number, own, &weights));
        }
        Ok(matrices)
    }

    /// Matrices of the components of a member as matrices over the variables of the model, by the weight of the member.
    fn of_member(&self, number: usize, matrices: Vec<Vec<f64>>, shares: &[f64]) -> Vec<Vec<f64>> {
        let core = self.core();
        if core.single().is_some() {
            return matrices;
        }
        let weight = core.weights()[number];
        let all = |(matrix, share): (Vec<f64>, &f64)| {
            let edges = core.edges_of_member(number, &matrix, *share);
            edges.into_iter().map(|p| weight * p).collect()
        };
        matrices.into_iter().zip(shares).map(all).collect()
    }

    /// The same of all components together, symmetric where edges have no direction.
    pub fn edge_probabilities(&self) -> Result<Vec<f64>> {
        let n = self.core().edge_variables().len();
        let mut sum = vec![0.0; n * n];
        for matrix in self.edge_matrices()? {
            sum.iter_mut().zip(matrix).for_each(|(sum, p)| *sum += p);
        }
        if !self.is_directed() {
            for v in 0..n {
                for u in 0..v {
                    let p = sum[v * n + u].max(sum[u * n + v]);
                    (sum[v * n + u], sum[u * n + v]) = (p, p);
                }
                sum[v * n + v] = 0.0;
            }
        }
        Ok(sum)
    }

    /// All edges, the most probable first.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("a", cells("x", "y")), ("b", cells("1", "2"))])?;
    /// # let model = Fit::new().family("moat").run(&data)?;
    /// let edges = model.edges()?;
    /// assert_eq!((edges[0].from.as_str(), edges[0].to.as_str()), ("a", "b"));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn edges(&self) -> Result<Vec<Edge>> {
        let posteriors = self.edge_matrices()?;
        let mut mean = vec![0.0; posteriors[0].len()];
        for (number, member) in self.core().members().iter().enumerate() {
            let mixture = member.mixture();
            let shares = mixture.mixing_weights();
            let both = mixture.components().iter().zip(&shares);
            let own = both.map(|(component, share)| {
                component.weights().into_iter().map(|weight| share * weight).collect::<Vec<_>>()
            });
            for weights in self.of_member(number, own.collect(), &shares) {
                mean.iter_mut().zip(weights).for_each(|(mean, weight)| *mean += weight);
            }
        }
        let sum: Vec<f64> =
            (0..mean.len()).map(|place| posteriors.iter().map(|component| component[place]).sum()).collect();
        Ok(self.edges_of(&sum, &mean))
    }

    /// The edges of a matrix of probabilities and one of weights, the most probable first.
    pub fn edges_of(&self, probabilities: &[f64], weights: &[f64]) -> Vec<Edge> {
        edges_of(self, probabilities, weights)
    }
}

/// The edges of a matrix, the most probable first.
fn edges_of(model: &Model, probabilities: &[f64], weights: &[f64]) -> Vec<Edge> {
    let names = names(model);
    let n = names.len();
    let directed = model.core().edge_kind() == Kind::Directed;
    let pairs = (0..n).flat_map(|v| (0..if directed { n } else { v }).map(move |u| (u, v)));
    let mut edges: Vec<Edge> = pairs
        .filter(|(u, v)| u != v)
        // One tree has the edges it has.
        .filter(|(u, v)| !model.core().is_of_trees() || probabilities[v * n + u] > 0.0)
        .map(|(u, v)| Edge {
            ends: (u, v),
            from: names[u].clone(),
            to: names[v].clone(),
            probability: probabilities[v * n + u],
            weight: weights[v * n + u],
            directed,
        })
        .collect();
    edges.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    edges
}

/// An edge that a tree may have, by the names of its columns; a root has no parent.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let answer = model.query().no_targets().edges(true).run()?;
/// assert_eq!(answer.edges.unwrap().edges[0].to, "cough");
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TreeEdge {
    /// Where it comes from.
    pub from: Option<String>,
    /// Where it goes.
    pub to: String,
    /// How probable it is.
    pub probability: Estimate,
    /// Has it a direction?
    pub directed: bool,
}

/// The edges of a tree given the evidence, the most probable first.
pub(crate) fn tree_edges(names: &[String], kind: Kind, found: &EdgePosterior) -> Vec<TreeEdge> {
    let n = names.len();
    let name = |v: usize| names[v].clone();
    let mut edges = Vec::new();
    for v in 0..n {
        for u in 0..if kind == Kind::Directed { n } else { v } {
            let probability = found.edges[v * n + u];
            if probability.value > 0.0 {
                // Undirected: in the order of the columns.
                let (from, to) = if kind == Kind::Directed { (u, v) } else { (u.min(v), u.max(v)) };
                let from = (u != v).then(|| name(from));
                edges.push(TreeEdge { from, to: name(to), probability, directed: kind == Kind::Directed });
            }
        }
    }
    edges.sort_by(|a, b| b.probability.value.total_cmp(&a.probability.value));
    edges
}
