//! What a family of distributions is: to learning, to inference, to files and to people.
//!
//! A family is one file that implements [`FamilyModel`] and one entry in the list of `families.rs`. Everything else reads
//! [`FamilySpec`]: help texts, checks of options, `compare`, the Python package and the model file.

use super::series::Series;
use super::settings::{HowMany, Optimiser, Settings};
use super::{ComponentInference, Learnable, ModelError, PairCounts, Pairs};
use crate::data::Unique;
use crate::forest::Backend;
use crate::spanning::Kind;
use crate::util::Stop;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The facts about a family that do not depend on a model.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FamilySpec {
    /// What it is called in files.
    pub name: &'static str,
    /// What a mixture of several is called, if it has a name of its own.
    pub mixture_name: Option<&'static str>,
    /// What one is called in full.
    pub title: &'static str,
    /// What a mixture of several is called in full, if it has a name of its own.
    pub mixture_title: Option<&'static str>,
    /// What people can ask for.
    pub presets: &'static [Preset],
    /// Which trees one component has.
    pub trees: Trees,
    /// How it can learn.
    pub optimisers: &'static [Optimiser],
    /// Is one component what the counts say, with nothing left to learn?
    pub counted: bool,
    /// Is there a choice of pair tables ([`Pairs`])?
    pub pair_tables: bool,
    /// Are tables free, so that Laplace smoothing means something?
    pub laplace: bool,
    /// Do components have something in common that they can be shrunk towards?
    pub shrinkage: bool,
    /// Does an exponential moving average of the parameters mean something?
    pub ema: bool,
    /// Is it left out of lists that are shown to people?
    pub unlisted: bool,
    /// What a search for the best model tries of it.
    pub series: &'static [Series],
}

impl FamilySpec {
    /// What most families are; a name and presets are to be added.
    pub const USUAL: Self = Self {
        name: "",
        mixture_name: None,
        title: "",
        mixture_title: None,
        presets: &[],
        trees: Trees::All,
        optimisers: &[Optimiser::Adam],
        counted: false,
        pair_tables: false,
        laplace: true,
        shrinkage: true,
        ema: true,
        unlisted: false,
        series: &[],
    };
}

/// Which trees one component of a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trees {
    /// All of them, weighted: likelihoods are exact, posteriors estimated where they cannot be enumerated.
    All,
    /// One: everything is exact.
    One,
    /// One, with latent variables: everything but the most probable row is exact.
    OneLatent,
    /// None: rows are stored, and each answers for itself. Everything but the most probable row is exact.
    Stored,
}

impl Trees {
    /// What a mixture of so many components answers exactly.
    pub fn exact_answers(self, components: usize) -> &'static [&'static str] {
        match (self, components) {
            (Self::One, 1) => &["likelihoods", "conditionals", "samples", "most probable row"],
            (Self::One | Self::OneLatent | Self::Stored, _) => &["likelihoods", "conditionals", "samples"],
            (Self::All, _) => &["likelihoods", "one column given the rest", "samples"],
        }
    }
}

/// A family under a name that people ask for, with sizes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// In a few words.
    pub summary: &'static str,
    /// How many components, if nothing else is asked for.
    pub components: HowMany,
    /// How many states latent variables have, if nothing else is asked for.
    pub hidden: HowMany,
    /// Is it looked for which columns belong together?
    pub blocks: bool,
    /// The preset for those who ask for several components, where this one has no more than one.
    pub several: Option<&'static str>,
}

impl Preset {
    /// One component over columns as they are.
    pub const fn one(name: &'static str, summary: &'static str) -> Self {
        let one = HowMany::Just(1);
        Self { name, aliases: &[], summary, components: one, hidden: one, blocks: false, several: None }
    }
}

/// What describes one component besides its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentShape {
    /// How pair tables are parameterised, in families with a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// States of latent variables, in families that have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// Rows that are stored, in families that store some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

/// What a component is initialised from.
pub struct Initialisation<'a> {
    /// Distinct rows.
    pub data: &'a Unique,
    /// The number of states of every variable.
    pub states: &'a [usize],
    /// What every distinct row weighs for this component.
    pub weights: &'a [f64],
    /// Counts of all pairs of states, by these weights.
    pub counts: PairCounts,
    /// What it is to be.
    pub shape: ComponentShape,
    /// Rows spread evenly over all states that are added to the counts.
    pub pseudocount: f64,
    /// Of everything random.
    pub seed: u64,
    /// Asks whether to make do with fewer rows.
    pub stop: Stop<'a>,
}

/// A family of distributions over rows.
pub trait FamilyModel: Learnable {
    /// The facts about it.
    const SPEC: FamilySpec;

    /// The usual settings, for so many variables.
    fn settings(variables: usize) -> Settings;

    /// One component as the counts have it.
    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError>;

    /// One component at random.
    fn random(states: &[usize], shape: &ComponentShape, seed: u64) -> Result<Self, ModelError>;

    /// What describes it besides its numbers.
    fn shape(&self) -> ComponentShape {
        ComponentShape::default()
    }

    /// The names of its lists of numbers in a file.
    fn list_names(shape: &ComponentShape) -> &'static [&'static str];

    /// Its lists of numbers.
    fn lists(&self) -> Vec<Cow<'_, [f64]>>;

    /// From these lists, one after the other.
    fn from_numbers(states: &[usize], shape: &ComponentShape, numbers: Vec<f64>) -> Result<Self, ModelError>;

    /// How many of the numbers of its lists come first and are not parameters but structure.
    fn structure_length(&self) -> usize {
        0
    }

    /// Which trees are mixed.
    fn kind(&self) -> Kind;

    /// The weights of edges, as an `n × n` matrix in the layout of [`Kind`]; the largest (directed: of every variable) is 1.
    fn weights(&self) -> Vec<f64>;

    /// How many numbers say it all.
    fn degrees_of_freedom(&self) -> usize;

    /// How probable every edge is before any data, as an `n × n` matrix in the layout of [`Kind`].
    fn prior_edges<B: Backend>(&self, ready: &Self::Ready<B>) -> Vec<f64>;

    /// The weight of the rows whose tree has each edge, as an `n × n` matrix in the layout of [`Kind`].
    fn edge_counts(&self, stats: &Self::Stats) -> Vec<f64>;

    /// What questions need of it, computed once.
    fn inference(&self) -> Result<ComponentInference<'_>, ModelError>;
}
