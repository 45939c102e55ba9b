//! A model as it is saved and asked: columns in blocks, and a mixture over them.

use super::{Component, Learnable, Mixture, ModelError, Pairs, Structure};
use crate::blocks::Blocks;
use crate::spanning::Kind;

/// A mixture over blocks of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    blocks: Blocks,
    mixture: Mixture<Component>,
}

impl Model {
    /// A mixture over these blocks.
    pub fn new(blocks: Blocks, mixture: Mixture<Component>) -> Result<Self, ModelError> {
        if blocks.states() != mixture.states() {
            return Err(ModelError::OtherVariables);
        }
        let family = |component: &Component| match component {
            Component::Moat(_) => (0, None),
            Component::Directed(_) => (1, None),
            Component::Tree(tree) => (2, Some(tree.structure())),
        };
        let first = family(&mixture.components()[0]);
        if mixture.components().iter().any(|component| family(component) != first) {
            return Err(ModelError::OtherFamilies);
        }
        Ok(Self { blocks, mixture })
    }

    /// One component over columns as they are.
    pub fn plain(component: Component) -> Self {
        let blocks = Blocks::none(component.states());
        Self { blocks, mixture: Mixture::one(component) }
    }

    /// Which columns are taken together.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The distribution over blocks.
    pub fn mixture(&self) -> &Mixture<Component> {
        &self.mixture
    }

    /// Which trees are mixed.
    pub fn kind(&self) -> Kind {
        self.mixture.components()[0].kind()
    }

    /// The name of the family.
    pub fn family(&self) -> &'static str {
        match self.structure() {
            None if self.pairs().is_some() => "moat",
            None => "directed",
            Some(Structure::Independent) => "independent",
            Some(Structure::ChowLiu) if self.mixture.components().len() == 1 => "chow-liu",
            Some(Structure::ChowLiu) => "mixture-of-trees",
            Some(Structure::Hidden(_)) => "hclt",
        }
    }

    /// What hangs where, in families of one tree.
    pub fn structure(&self) -> Option<Structure> {
        match &self.mixture.components()[0] {
            Component::Tree(tree) => Some(tree.structure()),
            _ => None,
        }
    }

    /// How pair tables are parameterised, in the paper's family.
    pub fn pairs(&self) -> Option<Pairs> {
        match &self.mixture.components()[0] {
            Component::Moat(moat) => Some(moat.pairs()),
            _ => None,
        }
    }

    /// How many numbers say it all.
    pub fn degrees_of_freedom(&self) -> usize {
        let components = self.mixture.components();
        components.iter().map(Component::degrees_of_freedom).sum::<usize>() + components.len() - 1
    }
}
