//! Distributions over rows, from one component of a family to a whole model.
//!
//! - A family is one file: [`Moat`] (the paper's), [`Directed`], [`Independent`], [`ChowLiu`], [`Hclt`], [`Kernel`]; `families.rs` lists
//!   them, and [`Component`] is a model of any of them. What a family must be able to do is [`FamilyModel`] and [`Learnable`].
//! - [`Mixture`] mixes components, [`Member`] puts a mixture on blocks of columns: that is what is learned.
//! - [`Model`] is a member, or an ensemble of several: that is what is saved and asked.
//! - [`ComponentInference`] is what inference sees of a component.

mod candidate;
mod clusters;
mod counts;
mod density;
mod directed;
mod dispatch;
mod error;
mod families;
mod family;
mod footprint;
mod inference;
mod kernel;
mod learnable;
mod member;
mod mixture;
mod moat;
mod pair;
mod params;
mod series;
mod settings;
mod start;
#[cfg(feature = "toy-family")]
mod toy;
mod tree_tables;
mod trees;
mod unseen;
mod whole;
mod work;

pub use candidate::Candidate;
pub use clusters::clusters;
pub use counts::PairCounts;
pub use density::Density;
pub(crate) use density::Likelihood;
pub use directed::Directed;
pub use error::ModelError;
pub(crate) use families::ComponentStats;
pub use families::{Component, Family, UnknownFamily};
pub use family::{ComponentShape, FamilyModel, FamilySpec, Initialisation, Preset, Trees};
pub use footprint::{Footprint, footprint_of_pair, footprint_of_rows};
pub use inference::{AllTrees, ComponentInference};
pub use kernel::{Kernel, StoredRows};
pub use learnable::Learnable;
pub use member::Member;
pub use mixture::Mixture;
pub use moat::{Moat, Pairs};
pub(crate) use params::within_range;
pub use params::{MOST_PARAMETER, ParamsView};
pub use series::{Grows, Series};
pub(crate) use settings::MANY_VARIABLES;
pub use settings::{
    ALL_ROWS, AUTO, HowMany, LEAST_GAIN, MAX_COMPONENTS, Optimiser, Regularisation, Settings, SettingsError,
};
pub use start::Start;
pub use tree_tables::{EdgeTables, TreeTables};
pub use trees::{ChowLiu, Hclt, Independent, MAX_HIDDEN, TreeModel};
pub use unseen::UnseenStates;
pub(crate) use whole::without_directions;
pub use whole::{ENSEMBLE, MAX_MEMBERS, Model};
pub use work::{A_SECOND, Met, Work};
