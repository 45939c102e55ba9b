//! What people do with the library, whichever door they come through: learn from a table, score its rows, ask in the
//! words of its columns, fill its cells. The command line and the Python package are two doors into this room; what they
//! print and how they are told is their own.

mod answers;
mod columns;
mod conditional;
mod device;
mod edges;
mod fit;
mod impute;
mod recipe;
mod score;
mod tables;
mod together;
mod translation;
mod words;

pub use answers::{Answer, Target, all_unknown, all_values, answers};
pub use columns::{
    Labels, NoColumn, column, evidence, names, observed_only, state, state_of, unknown, yes_or_no,
};
pub use device::{DeviceChoice, Machine, Scorer};
pub use edges::{Edge, TreeEdge, edge_probabilities, edges_of, ranked, tree_edges};
pub use fit::{Fitted, How as HowToLearn, best_epoch, judge, refit, run};
pub use impute::{Filled, How, Imputation, IncompleteRow, IncompleteRows};
pub use recipe::{FamilyName, LOOK, MOST_BY_ITSELF, Precision, Recipe};
pub use score::{CompleteRows, Interrupted, Scored, Scoring};
pub use tables::{Inputs, Tables, facts_of};
pub use together::{Together, grouping_in_words, matching};
pub use translation::Translation;
pub use words::{count, plural, say};

/// The README's examples, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the book's page, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;
