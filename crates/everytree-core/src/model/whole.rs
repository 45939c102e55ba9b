//! A model as it is saved and asked: one member, or an ensemble of several.
//!
//! ```text
//! p(x) = Σ_m w_m p_m(x)
//! ```
//!
//! Members are over the same columns. Everything else may differ: families, blocks, numbers of components.

use super::{Component, Member, ModelError, Trees};
use crate::spanning::Kind;
use crate::util::log_sum;

/// The most members of an ensemble.
pub const MAX_MEMBERS: usize = 256;
/// What the family of an ensemble is called.
pub const ENSEMBLE: &str = "ensemble";

/// A distribution over rows: members, and how much each of them counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    members: Vec<Member>,
    /// Logarithms of weights that add up to 1.
    log_weights: Vec<f64>,
}

impl From<Member> for Model {
    fn from(member: Member) -> Self {
        Self { members: vec![member], log_weights: vec![0.0] }
    }
}

impl Model {
    /// One component over columns as they are.
    pub fn plain(component: Component) -> Self {
        Member::plain(component).into()
    }

    /// Members over the same columns, with weights in these proportions.
    pub fn ensemble(members: Vec<Member>, weights: &[f64]) -> Result<Self, ModelError> {
        if let Some(&weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(ModelError::MixingWeight(weight));
        }
        Self::with_log_weights(members, weights.iter().map(|weight| weight.ln()).collect())
    }

    /// The same, with weights as logarithms up to a common constant.
    pub fn with_log_weights(members: Vec<Member>, mut log_weights: Vec<f64>) -> Result<Self, ModelError> {
        let Some(first) = members.first() else { return Err(ModelError::NoComponents) };
        let (found, expected) = (log_weights.len(), members.len());
        if found != expected {
            let what = "the list of the weights of members".to_owned();
            return Err(ModelError::Length { what, found, expected });
        }
        if let Some(place) = log_weights.iter().position(|log| !log.is_finite()) {
            return Err(ModelError::NotANumber { place, value: log_weights[place] });
        }
        let columns = first.blocks().column_states();
        if members.iter().any(|member| member.blocks().column_states() != columns) {
            return Err(ModelError::OtherVariables);
        }
        let total = log_sum(log_weights.iter().copied());
        // Once is enough: what is normalised stays as it is, to the last bit.
        if total.abs() > 1e-12 {
            log_weights.iter_mut().for_each(|log| *log -= total);
        }
        Ok(Self { members, log_weights })
    }

    /// What is averaged.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The one member, where there is one.
    pub fn single(&self) -> Option<&Member> {
        match &self.members[..] {
            [member] => Some(member),
            _ => None,
        }
    }

    /// Logarithms of the weights of members, which add up to 1.
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// How much every member counts; they add up to 1.
    pub fn weights(&self) -> Vec<f64> {
        self.log_weights.iter().map(|log| log.exp()).collect()
    }

    /// The name of the family, of mixtures of it, or of ensembles.
    pub fn family_name(&self) -> &'static str {
        self.single().map_or(ENSEMBLE, Member::family_name)
    }

    /// What it is called in full.
    pub fn title(&self) -> &'static str {
        self.single().map_or(ENSEMBLE, Member::title)
    }

    /// States of latent variables, of a single member that has some.
    pub fn hidden(&self) -> Option<usize> {
        self.single().and_then(Member::hidden)
    }

    /// The components of all members together.
    pub fn components(&self) -> usize {
        self.members.iter().map(|member| member.mixture().components().len()).sum()
    }

    /// How much every component of every member counts, one member after the other; they add up to 1.
    pub fn mixing_weights(&self) -> Vec<f64> {
        let of = |(member, weight): (&Member, f64)| {
            member.mixture().mixing_weights().into_iter().map(move |own| weight * own)
        };
        self.members.iter().zip(self.weights()).flat_map(of).collect()
    }

    /// Is every component of every member one tree, so that all posteriors are exact and nothing is left to do for a GPU?
    pub fn is_of_trees(&self) -> bool {
        self.members.iter().all(Member::is_of_trees)
    }

    /// What it answers exactly.
    pub fn exact_answers(&self) -> &'static [&'static str] {
        let all_trees = || Trees::All.exact_answers(self.components());
        match self.single() {
            Some(member) => member.exact_answers(),
            None if self.is_of_trees() => Trees::OneLatent.exact_answers(self.components()),
            None => all_trees(),
        }
    }

    /// How many numbers say it all.
    pub fn degrees_of_freedom(&self) -> usize {
        self.members.iter().map(Member::degrees_of_freedom).sum::<usize>() + self.members.len() - 1
    }

    /// Between what edges are: the columns of each variable. Blocks, where all members have the same; else single columns.
    pub fn edge_variables(&self) -> Vec<Vec<usize>> {
        let first = self.members[0].blocks();
        if self.same_blocks() {
            return first.blocks().iter().map(|block| block.columns().to_vec()).collect();
        }
        (0..first.column_states().len()).map(|column| vec![column]).collect()
    }

    /// In which layout edges of all members are said: with directions where all members have them, over the same blocks.
    pub fn edge_kind(&self) -> Kind {
        match self.same_blocks() && self.members.iter().all(|member| member.kind() == Kind::Directed) {
            true => Kind::Directed,
            false => Kind::Undirected,
        }
    }

    fn same_blocks(&self) -> bool {
        self.members.iter().all(|member| member.blocks() == self.members[0].blocks())
    }

    /// A matrix over the blocks of a member, as one over [`Self::edge_variables`] in the layout of [`Self::edge_kind`]. Columns of
    /// one block are joined as probably as it is said.
    ///
    /// # Panics
    /// When there is no such member, or the matrix is not over its blocks.
    pub fn edges_of_member(&self, member: usize, matrix: &[f64], joined: f64) -> Vec<f64> {
        let member = &self.members[member];
        let matrix = match (member.kind(), self.edge_kind()) {
            (Kind::Directed, Kind::Undirected) => without_directions(matrix, member.blocks().blocks().len()),
            _ => matrix.to_vec(),
        };
        match self.same_blocks() {
            true => matrix,
            false => member.blocks().over_columns(&matrix, joined),
        }
    }
}

/// Probabilities of parents as probabilities of edges, below the diagonal: one of two variables is the parent of the other, or
/// neither.
pub(crate) fn without_directions(parents: &[f64], n: usize) -> Vec<f64> {
    let mut edges = vec![0.0; n * n];
    for v in 0..n {
        for u in 0..v {
            edges[v * n + u] = parents[v * n + u] + parents[u * n + v];
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Blocks;
    use crate::model::{ComponentShape, Family, Mixture, Pairs};

    fn member(family: Family, groups: &[Vec<usize>], seed: u64) -> Member {
        let blocks = Blocks::from_combinations(
            &[2, 3, 2],
            &groups.iter().map(|group| (group.clone(), vec![vec![0; group.len()]])).collect::<Vec<_>>(),
        )
        .unwrap();
        let shape = ComponentShape {
            pairs: (family == Family::Moat).then_some(Pairs::Lambda),
            ..ComponentShape::default()
        };
        let component = family.random(&blocks.states(), &shape, seed).unwrap();
        Member::new(blocks, Mixture::one(component)).unwrap()
    }

    #[test]
    fn weights_add_up_to_one() {
        let members = vec![member(Family::Moat, &[], 1), member(Family::ChowLiu, &[], 2)];
        let model = Model::ensemble(members.clone(), &[3.0, 1.0]).unwrap();
        assert!((model.weights()[0] - 0.75).abs() < 1e-15);
        assert!((model.mixing_weights().iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert_eq!((model.family_name(), model.components()), (ENSEMBLE, 2));
        assert!(Model::ensemble(members.clone(), &[1.0]).is_err());
        assert!(Model::ensemble(members, &[1.0, 0.0]).is_err());
        assert!(Model::ensemble(Vec::new(), &[]).is_err());
    }

    /// Arrows only where all have them; blocks only where all have the same.
    #[test]
    fn edges_are_said_in_what_members_have_in_common() {
        let (moat, tree) = (member(Family::Moat, &[], 1), member(Family::ChowLiu, &[], 2));
        let blocks = member(Family::Directed, &[vec![0, 2]], 3);
        let directed =
            Model::ensemble(vec![tree.clone(), member(Family::Directed, &[], 4)], &[1.0, 1.0]).unwrap();
        assert_eq!(directed.edge_kind(), Kind::Directed);
        let mixed = Model::ensemble(vec![moat, tree], &[1.0, 1.0]).unwrap();
        assert_eq!(mixed.edge_kind(), Kind::Undirected);
        let parents = [0.5, 0.25, 0.25, 0.5, 0.25, 0.25, 0.0, 0.125, 0.875];
        assert_eq!(mixed.edges_of_member(1, &parents, 1.0)[3..], [0.75, 0.0, 0.0, 0.25, 0.375, 0.0]);
        let model = Model::ensemble(vec![mixed.members()[0].clone(), blocks.clone()], &[1.0, 1.0]).unwrap();
        assert_eq!(model.edge_variables(), [[0], [1], [2]]);
        // Variables of the second: columns 0 and 2 together, and column 1.
        let edges = model.edges_of_member(1, &[0.5, 0.5, 0.25, 0.75], 1.0);
        assert_eq!(edges, [0.0, 0.0, 0.0, 0.75, 0.0, 0.0, 1.0, 0.75, 0.0]);
        assert_eq!(Model::from(blocks).edge_variables(), [vec![0, 2], vec![1]]);
    }
}
