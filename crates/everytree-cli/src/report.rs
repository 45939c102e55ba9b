//! The answer about one matrix of weights, for people and for machines.

use crate::Outcome;
use anyhow::Result;
use everytree_core::spanning::{Elimination, Kind, SpanningTrees};
use rand::SeedableRng;
use serde_json::json;
use std::io::Write;

/// A question about a matrix of weights.
pub struct Question<'a> {
    pub title: &'a str,
    pub kind: Kind,
    pub names: &'a [String],
    pub rates: &'a [f64],
    /// How many edges to show.
    pub top: usize,
    pub seed: u64,
    pub json: bool,
}

/// An edge, and the probability that a random tree has it. A root has no parent.
struct Edge<'a> {
    child: &'a str,
    parent: Option<&'a str>,
    probability: f64,
}

impl Question<'_> {
    /// Computes and prints.
    pub fn answer(&self) -> Result<Outcome> {
        let n = self.names.len();
        let (log_weight, marginals) = Elimination::<f64>::new(self.kind, n)?.one(self.rates)?;
        let possible = log_weight > f64::NEG_INFINITY;
        let edges = self.edges(&marginals);
        let tree = if possible { self.random_tree()? } else { Vec::new() };
        let mut out = crate::shown::out();
        if self.json {
            let edges: Vec<_> = edges
                .iter()
                .map(|edge| json!({"from": edge.parent, "to": edge.child, "probability": edge.probability}))
                .collect();
            let answer = json!({
                "vertices": n,
                "log_weight": possible.then_some(log_weight),
                "impossible": !possible,
                "edges": edges,
                "random_tree": tree.iter().map(|(to, from)| json!({"from": from, "to": to})).collect::<Vec<_>>(),
                "seed": self.seed,
            });
            writeln!(out, "{answer}")?;
        } else {
            self.print(&mut out, log_weight, &edges, &tree)?;
        }
        Ok(if possible { Outcome::Done } else { Outcome::No })
    }

    fn what(&self) -> &'static str {
        if self.kind == Kind::Directed { "rooted forest" } else { "spanning tree" }
    }

    fn print(
        &self,
        out: &mut impl Write,
        log_weight: f64,
        edges: &[Edge<'_>],
        tree: &[(&str, Option<&str>)],
    ) -> Result<()> {
        writeln!(out, "{}: {} vertices", self.title, self.names.len())?;
        if log_weight == f64::NEG_INFINITY {
            writeln!(out, "No {} has a positive weight.", self.what())?;
            if self.kind == Kind::Directed
                && (0..self.names.len()).all(|v| self.rates[v * (self.names.len() + 1)] == 0.0)
            {
                writeln!(out, "The diagonal holds the rates of being a root, and it is all zero.")?;
            }
            return Ok(());
        }
        writeln!(out, "log of the total weight of all {}s: {log_weight:.12}", self.what())?;
        if log_weight.abs() < 30.0 {
            let weight = log_weight.exp();
            match weight >= 1e-3 {
                true => writeln!(out, "total weight: {weight:.9}")?,
                false => writeln!(out, "total weight: {weight:.9e}")?,
            }
        }
        writeln!(out)?;
        writeln!(out, "Most probable edges of a random {}:", self.what())?;
        let show = |parent: Option<&str>, child: &str| match (parent, self.kind) {
            (None, _) => format!("{child} is a root"),
            (Some(parent), Kind::Directed) => format!("{parent} -> {child}"),
            (Some(parent), Kind::Undirected) => format!("{parent} - {child}"),
        };
        for edge in edges {
            writeln!(out, "  {:.6}  {}", edge.probability, show(edge.parent, edge.child))?;
        }
        writeln!(out)?;
        let tree: Vec<String> = tree.iter().map(|(child, parent)| show(*parent, child)).collect();
        writeln!(out, "One at random (seed {}): {}", self.seed, tree.join(", "))?;
        Ok(())
    }

    /// The most probable edges first; ties in the order of the vertices.
    fn edges(&self, marginals: &[f64]) -> Vec<Edge<'_>> {
        let n = self.names.len();
        let mut edges = Vec::new();
        for v in 0..n {
            let others = if self.kind == Kind::Undirected { 0..v } else { 0..n };
            for u in others {
                let probability = marginals[v * n + u];
                if probability > 0.0 {
                    let parent = (u != v).then_some(self.names[u].as_str());
                    edges.push(Edge { child: &self.names[v], parent, probability });
                }
            }
        }
        // Compared as they are printed, so that ties do not depend on rounding.
        let shown = |edge: &Edge<'_>| (edge.probability * 1e6).round() as i64;
        edges.sort_by_key(|edge| std::cmp::Reverse(shown(edge)));
        edges.truncate(self.top);
        edges
    }

    fn random_tree(&self) -> Result<Vec<(&str, Option<&str>)>> {
        let n = self.names.len();
        let trees = SpanningTrees::new(self.kind, n, self.rates)?;
        let tree = trees.draw(&mut rand_pcg::Pcg64::seed_from_u64(self.seed));
        let named = |v: usize| (self.names[v].as_str(), tree.parent(v).map(|u| self.names[u].as_str()));
        let wanted = |&v: &usize| self.kind == Kind::Directed || tree.parent(v).is_some();
        Ok((0..n).filter(wanted).map(named).collect())
    }
}
