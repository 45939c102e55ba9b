//! The edges of a model by the names of its columns, and what each is worth.

use crate::columns::names;
use anyhow::Result;
use everytree_core::file::ModelFile;
use everytree_core::forest::Cpu;
use everytree_core::infer::{EdgePosterior, Estimate};
use everytree_core::model::{Component, Learnable};
use everytree_core::spanning::Kind;

/// An edge and what it is worth.
#[derive(Clone, Debug)]
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

/// What each component says about edges: matrices in the layout of its kind, adding up to probabilities.
pub fn edge_probabilities(file: &ModelFile) -> Result<Vec<Vec<f64>>> {
    if let Some(posteriors) = &file.edge_posteriors {
        return Ok(posteriors.clone());
    }
    // Not learned: as probable as before any data.
    let (mixture, cpu) = (file.model.mixture(), Cpu::<f64>::new().keeping(0));
    let n = mixture.states().len();
    let both = mixture.components().iter().zip(mixture.shares());
    both.map(|(component, share)| {
        let prior = component.ready(&cpu)?.prior(n);
        Ok(prior.into_iter().map(|p| share * p).collect())
    })
    .collect()
}

/// All edges, the most probable first.
pub fn ranked(file: &ModelFile) -> Result<Vec<Edge>> {
    let posteriors = edge_probabilities(file)?;
    let mixture = file.model.mixture();
    let weights: Vec<Vec<f64>> = mixture.components().iter().map(Component::weights).collect();
    let mean: Vec<f64> = (0..weights[0].len())
        .map(|place| {
            weights.iter().zip(mixture.shares()).map(|(weights, share)| share * weights[place]).sum()
        })
        .collect();
    let sum: Vec<f64> =
        (0..mean.len()).map(|place| posteriors.iter().map(|component| component[place]).sum()).collect();
    Ok(edges_of(file, &sum, &mean))
}

/// The edges of a matrix, the most probable first.
pub fn edges_of(file: &ModelFile, probabilities: &[f64], weights: &[f64]) -> Vec<Edge> {
    let names = names(file);
    let n = names.len();
    let directed = file.model.kind() == Kind::Directed;
    let pairs = (0..n).flat_map(|v| (0..if directed { n } else { v }).map(move |u| (u, v)));
    let mut edges: Vec<Edge> = pairs
        .filter(|(u, v)| u != v)
        // One tree has the edges it has.
        .filter(|(u, v)| file.model.structure().is_none() || probabilities[v * n + u] > 0.0)
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
#[derive(Clone, Debug)]
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
pub fn tree_edges(names: &[String], kind: Kind, found: &EdgePosterior) -> Vec<TreeEdge> {
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
