//! Whether work fits in memory: asked before it begins.

use crate::error::Kind;
use crate::{Model, Result};
use everytree_core::file::EdgePosteriors;
use everytree_core::infer::Inference;
use everytree_core::memory;
use everytree_core::model::{Footprint, Member, footprint_of_pair};

/// Bytes that may be used: what was said, or 80 % of what the machine or its container has. One limit for the whole process.
///
/// ```
/// assert!(everytree::memory_limit() > 0);
/// ```
pub fn memory_limit() -> u64 {
    memory::limit()
}

/// Says how many bytes may be used. What would take more is refused before it is begun, with what it needs; nothing is done
/// differently for it.
///
/// ```
/// everytree::set_memory_limit(8_000_000_000);
/// assert_eq!(everytree::memory_limit(), 8_000_000_000);
/// ```
pub fn set_memory_limit(bytes: u64) {
    memory::set_limit(bytes);
}

/// What to do about it.
pub(crate) const REMEDY: &str = "; fewer states (`max_states`, `bins`) or fewer components take less";

/// What is done with a model.
///
/// ```
/// assert_ne!(everytree::Work::Look, everytree::Work::Score);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// A look at its edges and tables.
    Look,
    /// Answers to questions, and rows drawn.
    Answer,
    /// Likelihoods of many rows.
    Score,
    /// Missing cells of many rows filled in.
    Impute,
    /// A search for the most probable rows.
    Search,
    /// Figures of the model, from rows that are drawn and scored.
    Measure,
}

impl Model {
    /// Bytes that work takes at most, about, with the model itself.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit, Work};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// assert!(model.memory_needed(Work::Answer) < 1_000_000_000);
    /// model.check_memory(Work::Answer)?;
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn memory_needed(&self, work: Work) -> u64 {
        let members = self.core().members().iter().zip(&self.file().edge_posteriors);
        let of = |(member, posteriors): (&Member, &Option<EdgePosteriors>)| {
            let components = member.mixture().components().len();
            let states = member.blocks().states();
            let footprint = Footprint::of(member.family(), &member.shape(), &states, components, 0);
            let needed = match work {
                Work::Look if posteriors.is_some() => footprint.looking,
                Work::Look => footprint.finding,
                Work::Answer => footprint.answers,
                Work::Score => footprint.scoring,
                Work::Impute => footprint.imputing,
                Work::Search => footprint.searching,
                Work::Measure => footprint.answers.saturating_add(footprint.scoring),
            };
            let shared = match work {
                Work::Score => footprint.shared_scoring,
                _ => footprint.shared,
            };
            (needed, shared)
        };
        // What members share is there once.
        let together = |(sum, counted): (u64, u64), (needed, shared): (u64, u64)| {
            (sum.saturating_sub(counted).saturating_add(needed), shared)
        };
        members.map(of).fold((0, 0), together).0
    }

    /// Is there room for answers about two columns together?
    pub(crate) fn check_memory_of_pair(&self, u: usize, v: usize) -> Result<()> {
        let states = self.schema().states();
        let members = self.core().members().iter();
        let pair =
            members.map(|member| footprint_of_pair(member.family().spec().trees, (states[u], states[v])));
        let need = self.memory_needed(Work::Answer).saturating_add(pair.max().unwrap_or(0));
        let fits = memory::check("the joint distribution of these columns", need);
        Ok(fits.map_err(|error| Kind::Memory(error, REMEDY))?)
    }

    /// Is there room for it?
    pub fn check_memory(&self, work: Work) -> Result<()> {
        let what = match work {
            Work::Look => "a look into this model",
            Work::Answer => "answers of this model",
            Work::Score => "scores by this model",
            Work::Impute => "imputation by this model",
            Work::Search => "a search in this model",
            Work::Measure => "figures of this model",
        };
        let fits = memory::check(what, self.memory_needed(work));
        Ok(fits.map_err(|error| Kind::Memory(error, REMEDY))?)
    }

    /// The model ready for questions, if there is room for it.
    pub(crate) fn inference(&self) -> Result<Inference<'_>> {
        self.inference_for(Work::Answer)
    }

    /// The model ready for work, if there is room for it.
    pub(crate) fn inference_for(&self, work: Work) -> Result<Inference<'_>> {
        self.check_memory(work)?;
        Ok(self.core().inference()?)
    }
}
