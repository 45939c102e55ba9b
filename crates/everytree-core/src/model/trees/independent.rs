//! Columns that have nothing to do with each other. Mixed, they are latent classes.

use super::parameters::{Layout, TreeParameters};
use super::{OneTree, TableCounts, TreeModel, all_rows_at_once, best_tree};
use crate::data::Codes;
use crate::model::family::{ComponentShape, FamilySpec, Initialisation, Preset, Trees};
use crate::model::{Grows, ModelError, Optimiser, Regularisation, Series, Settings};
use std::borrow::Cow;

/// A product of margins.
#[derive(Clone, Debug, PartialEq)]
pub struct Independent(TreeParameters);

impl OneTree for Independent {
    const SPEC: FamilySpec = FamilySpec {
        name: "independent",
        title: "independent columns",
        presets: &[Preset {
            aliases: &["fully-factorised"],
            ..Preset::one("independent", "independent columns; several components: latent classes")
        }],
        trees: Trees::One,
        optimisers: &[Optimiser::Em, Optimiser::Adam],
        counted: true,
        series: &[Series::new(0, Grows::Components(1))],
        ..FamilySpec::USUAL
    };
    type Stats = TableCounts;

    fn settings(_: usize) -> Settings {
        all_rows_at_once()
    }

    fn layout(states: &[usize], _: &ComponentShape) -> Result<(Layout, Vec<usize>), ModelError> {
        Ok((Layout::new(states, &[], 1)?, (0..states.len()).collect()))
    }

    fn may_have(_: usize, variable: usize, parent: usize) -> bool {
        variable == parent
    }

    fn from_parameters(parameters: TreeParameters) -> Self {
        Self(parameters)
    }

    /// The margins of the rows.
    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        let mut tree = Self::blank(from.states, &from.shape)?;
        for v in 0..from.states.len() {
            tree.set_table(v, 0, &best_tree::margin(&from.counts, v, from.pseudocount));
        }
        Ok(Self(tree))
    }

    fn parameters(&self) -> &TreeParameters {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut TreeParameters {
        &mut self.0
    }

    fn no_stats(&self) -> TableCounts {
        TableCounts::none(&self.0)
    }

    fn add(
        tree: &mut TreeModel,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut TableCounts,
    ) -> Result<(), ModelError> {
        stats.add(tree, codes, weights)
    }

    fn total(stats: &TableCounts) -> f64 {
        stats.total
    }

    fn table_counts<'a>(&self, stats: &'a TableCounts) -> Cow<'a, [f64]> {
        Cow::Borrowed(&stats.tables)
    }

    fn fit_counts(&mut self, stats: &TableCounts, parent: Option<&TableCounts>, by: &Regularisation) {
        self.0.maximise(&stats.tables, parent.map(|parent| &parent.tables[..]), by);
    }
}
