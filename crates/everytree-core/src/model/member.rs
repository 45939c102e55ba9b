//! What is learned as one: columns in blocks, and a mixture over them.

use super::{Component, ComponentShape, Family, Learnable, Mixture, ModelError, Trees};
use crate::blocks::Blocks;
use crate::spanning::Kind;

/// A mixture over blocks of columns: a model alone, or a member of an ensemble.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    blocks: Blocks,
    mixture: Mixture<Component>,
}

impl Member {
    /// A mixture over these blocks.
    pub fn new(blocks: Blocks, mixture: Mixture<Component>) -> Result<Self, ModelError> {
        if blocks.states() != mixture.states() {
            return Err(ModelError::OtherVariables);
        }
        let kind_of = |component: &Component| (component.family(), component.shape());
        let first = kind_of(&mixture.components()[0]);
        if mixture.components().iter().any(|component| kind_of(component) != first) {
            return Err(ModelError::OtherFamilies);
        }
        Ok(Self { blocks, mixture: mixture.normalised() })
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

    /// The family of its components.
    pub fn family(&self) -> Family {
        self.mixture.components()[0].family()
    }

    /// The name of the family, or of mixtures of it.
    pub fn family_name(&self) -> &'static str {
        self.family().name(self.mixture.components().len())
    }

    /// What describes its components besides their numbers.
    pub fn shape(&self) -> ComponentShape {
        self.mixture.components()[0].shape()
    }

    /// States of latent variables, in families that have some.
    pub fn hidden(&self) -> Option<usize> {
        self.shape().hidden
    }

    /// Is every component one tree, so that all posteriors are exact and nothing is left to do for a GPU?
    pub fn is_of_trees(&self) -> bool {
        self.family().spec().trees != Trees::All
    }

    /// What it is called in full.
    pub fn title(&self) -> &'static str {
        self.family().title(self.mixture.components().len())
    }

    /// What it answers exactly.
    pub fn exact_answers(&self) -> &'static [&'static str] {
        self.family().spec().trees.exact_answers(self.mixture.components().len())
    }

    /// How many numbers say it all.
    pub fn degrees_of_freedom(&self) -> usize {
        let components = self.mixture.components();
        components.iter().map(Component::degrees_of_freedom).sum::<usize>() + components.len() - 1
    }
}
