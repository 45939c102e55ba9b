//! Mixtures of all trees: exactly normalised density models of tables.
//!
//! From a table to a model, and to everything that can be asked of it:
//!
//! ```standalone_crate
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! # let rows = ["yes,yes", "no,no", "yes,no", "no,no", "yes,yes"].repeat(20).join("\n");
//! # std::fs::write("survey.csv", format!("smoker,cancer\n{rows}\n"))?;
//! use everytree::{Dataset, Fit, Model};
//!
//! let survey = Dataset::open("survey.csv")?;                 // CSV, TSV, Parquet, Arrow; labels kept
//! let (train, test) = survey.split(0.2, 0);
//! let model = Fit::new().run(&train)?;
//! println!("{}", model.score(&test)?);                       // mean log-likelihood ± standard error
//!
//! let answer = model.query().given("smoker", "yes")?.target("cancer")?.run()?;
//! println!("{answer}");                                      // the table that the command prints
//! let p = answer.probability("cancer", "yes");
//!
//! let rows = model.sample(100).given("smoker", "yes")?.seed(1).run()?;   // a Dataset again
//! let whole = model.impute(&survey)?;                        // a Dataset again
//! model.save("survey.everytree")?;
//! let again = Model::load("survey.everytree")?;
//! # assert!(p.unwrap() > 0.5 && rows.rows() == 100 && whole.is_complete() && again == model);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Dataset`]: tables with labels, missing cells and row weights; [`ReadOptions`] say how cells become states.
//! - [`Fit`]: learning; [`FitOptions`] is everything that can be said about it, an [`Observer`] hears how it goes.
//! - [`Model`]: posteriors ([`Query`]), samples ([`Sample`]), imputation ([`Imputation`]), most probable rows
//!   ([`MostProbable`]), scores and surprisal ([`Scoring`]), figures ([`Figures`]), edges ([`Edge`]).
//! - [`Error`]: codes and fields.
//!
//! Features: `csv` (on by default), `parquet` (Parquet and Arrow), `cuda` (NVIDIA GPUs, found at run time). The engine underneath is
//! the crate `everytree-core`: spanning trees, forests, families, inference and learning, free of labels.

mod columns;
mod compare;
mod condition;
mod conditional;
mod dataset;
mod device;
mod edges;
mod ensemble;
mod error;
mod evidence;
mod fit;
mod impute;
mod input;
mod memory;
mod model;
mod most_probable;
mod query;
mod sample;
mod score;
mod spelling;
mod words;
mod write;

pub use compare::{Compare, CompareObserver, ComparedFamily, Comparison, Difference, HowEnded, LeftOut};
pub use condition::{Condition, Range};
pub use conditional::Surprisal;
pub use dataset::{Dataset, MissingValues, Opened, ReadOptions};
pub use device::DeviceChoice;
pub use edges::{Edge, TreeEdge};
pub use ensemble::Member;
pub use error::{Error, ErrorCode};
pub use everytree_core::data::{Schema, Variable};
pub use everytree_core::file::Checkpoint;
pub use everytree_core::infer::{Drawn, Estimate, Method};
pub use everytree_core::learn::{Epoch, Progress, Trial, TrialResult};
pub use everytree_core::model::{HowMany, Optimiser, Pairs};
pub use evidence::Evidence;
#[doc(hidden)]
pub use evidence::yes_or_no;
pub use fit::{
    BlockOptions, CandidateReport, ColumnGroup, Effort, Fit, FitOptions, FitReport, FitRows, Fitted, Init,
    Observer, Precision, Stopped, Trying, grouping_in_words, hold_out,
};
pub use impute::{Imputation, ImputeMethod, ImputedCell, ImputedCells};
pub use input::Input;
pub use memory::{Work, memory_limit, set_memory_limit};
pub use model::{Figures, Model};
pub use most_probable::{MostProbable, ProbableRow};
pub use query::{Answer, EdgeAnswer, Matching, Query, ValueAnswer};
pub use sample::Sample;
pub use score::{Score, Scoring, Streamed, Unknown};
pub use spelling::{Spelling, in_shell, spelled};
#[doc(hidden)]
pub use words::{column_width, count, plural, say};

// The layers below, for the types that signatures name.
pub use {everytree_core, everytree_read};

/// What can go wrong is an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The families that [`Fit::family`] knows: name and summary.
///
/// ```
/// assert!(everytree::families().any(|(name, _)| name == "chow-liu"));
/// ```
pub fn families() -> impl Iterator<Item = (&'static str, &'static str)> {
    everytree_core::model::Family::listed().map(|(_, preset)| (preset.name, preset.summary))
}

/// The README's examples, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the book's page, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;
