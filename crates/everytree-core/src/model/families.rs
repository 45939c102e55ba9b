//! The registry: the list of all families, and a component of any of them as one type.

use super::dispatch::families;
use super::family::{Preset, Trees};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

families! {
    /// The paper's: spanning trees, shared margins.
    Moat(super::Moat),
    /// Rooted forests, free tables.
    Directed(super::Directed),
    /// Independent columns.
    Independent(super::Independent),
    /// One tree, of the highest mutual information; several of them: the mixture of trees.
    ChowLiu(super::ChowLiu),
    /// One tree of latent variables, one for each column.
    Hclt(super::Hclt),
    /// Every stored row spread out a little.
    Kernel(super::Kernel),
    /// For tests of this list.
    #[cfg(feature = "toy-family")]
    Toy(super::toy::Toy),
}

/// A name that no preset has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no family {name:?}; there are auto, {}", Family::listed().map(|(_, preset)| preset.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownFamily {
    /// The name.
    pub name: String,
}

impl Family {
    /// Every preset that is shown to people, in the order of the list.
    pub fn listed() -> impl Iterator<Item = (Family, &'static Preset)> {
        Self::presets().filter(|(family, _)| !family.spec().unlisted)
    }

    /// Every preset.
    fn presets() -> impl Iterator<Item = (Family, &'static Preset)> {
        Self::ALL.iter().flat_map(|&family| family.spec().presets.iter().map(move |preset| (family, preset)))
    }

    /// The family and the preset of this name or alias.
    pub fn preset(name: &str) -> Result<(Family, &'static Preset), UnknownFamily> {
        let unknown = || UnknownFamily { name: name.to_owned() };
        Self::presets()
            .find(|(_, preset)| preset.name == name || preset.aliases.contains(&name))
            .ok_or_else(unknown)
    }

    /// The family that a model file names.
    pub fn in_file(name: &str) -> Option<Family> {
        let named = |family: &&Family| {
            let spec = family.spec();
            spec.name == name || spec.mixture_name == Some(name)
        };
        Self::ALL.iter().find(named).copied()
    }

    /// What so many components of it are called.
    pub fn name(self, components: usize) -> &'static str {
        let spec = self.spec();
        if components > 1 { spec.mixture_name.unwrap_or(spec.name) } else { spec.name }
    }
}

impl Family {
    /// Are rows that were learned from a part of its models?
    pub fn stores_rows(self) -> bool {
        self.spec().trees == Trees::Stored
    }

    /// What so many components of it are called in full.
    pub fn title(self, components: usize) -> &'static str {
        let spec = self.spec();
        if components > 1 { spec.mixture_title.unwrap_or(spec.title) } else { spec.title }
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.spec().name)
    }
}

impl<'de> Deserialize<'de> for Family {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'_, str>::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format!("unknown family {name:?}"));
        Self::in_file(&name).ok_or_else(unknown)
    }
}
