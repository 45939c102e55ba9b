//! The tree of the highest mutual information (Chow and Liu). Mixed, it is the mixture of trees of Meilă and Jordan.

use super::parameters::{Layout, TreeParameters};
use super::{OneTree, TreeModel, all_rows_at_once, best_tree};
use crate::data::Codes;
use crate::model::family::{ComponentShape, FamilySpec, Initialisation, Preset, Trees};
use crate::model::settings::{AUTO, HowMany};
use crate::model::{Grows, ModelError, Optimiser, PairCounts, ParamsView, Regularisation, Series, Settings};
use std::borrow::Cow;
use std::cmp::Ordering;

/// One tree, learned along with its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ChowLiu(TreeParameters);

/// Counts of every two states: the tree is learned from them.
pub struct TreeCounts {
    pairs: PairCounts,
    total: f64,
}

impl ChowLiu {
    /// Takes tree and tables from counts.
    fn learn(&mut self, counts: &PairCounts, pseudocount: f64) {
        let tree = &mut self.0;
        tree.parents = best_tree::best_tree(counts, pseudocount);
        tree.logits.fill(0.0);
        for v in 0..tree.parents.len() {
            let parent = tree.parents[v];
            let table = match parent == v {
                true => best_tree::margin(counts, v, pseudocount),
                false => best_tree::conditional(counts, v, parent, pseudocount),
            };
            tree.set_table(v, 0, &table);
        }
    }
}

impl OneTree for ChowLiu {
    const SPEC: FamilySpec = FamilySpec {
        name: "chow-liu",
        mixture_name: Some("mixture-of-trees"),
        title: "Chow–Liu tree",
        mixture_title: Some("mixture of trees"),
        presets: &[
            Preset {
                aliases: &["chow-liu-tree"],
                several: Some("mixture-of-trees"),
                ..Preset::one("chow-liu", "one tree, of the highest mutual information")
            },
            Preset {
                components: HowMany::UpTo(AUTO),
                ..Preset::one("mixture-of-trees", "several of them (Meilă and Jordan)")
            },
        ],
        trees: Trees::One,
        optimisers: &[Optimiser::Em],
        counted: true,
        ema: false,
        series: &[
            Series::new(1, Grows::Prior(&[1.0, 5.0, 20.0, 80.0])),
            Series::new(4, Grows::Components(2)),
            Series::new(4, Grows::ComponentsWithPrior(2, 1.0)),
        ],
        ..FamilySpec::USUAL
    };
    type Stats = TreeCounts;

    fn settings(_: usize) -> Settings {
        all_rows_at_once()
    }

    fn layout(states: &[usize], _: &ComponentShape) -> Result<(Layout, Vec<usize>), ModelError> {
        let lines = states.iter().copied().max().unwrap_or(1);
        let chain = (0..states.len()).map(|v: usize| v.saturating_sub(1)).collect();
        Ok((Layout::new(states, &[], lines)?, chain))
    }

    fn may_have(_: usize, _: usize, _: usize) -> bool {
        true
    }

    fn from_parameters(parameters: TreeParameters) -> Self {
        Self(parameters)
    }

    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        let mut tree = Self(Self::blank(from.states, &from.shape)?);
        tree.learn(&from.counts, from.pseudocount);
        Ok(tree)
    }

    fn parameters(&self) -> &TreeParameters {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut TreeParameters {
        &mut self.0
    }

    fn no_stats(&self) -> TreeCounts {
        TreeCounts { pairs: PairCounts::none(&self.0.layout.states), total: 0.0 }
    }

    fn add(
        _: &mut TreeModel,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut TreeCounts,
    ) -> Result<(), ModelError> {
        stats.pairs.add(codes, weights);
        stats.total += weights.iter().sum::<f64>();
        Ok(())
    }

    fn total(stats: &TreeCounts) -> f64 {
        stats.total
    }

    fn table_counts<'a>(&self, stats: &'a TreeCounts) -> Cow<'a, [f64]> {
        let (tree, pairs) = (&self.0, &stats.pairs);
        let mut counts = vec![0.0; tree.layout.size()];
        for (v, &u) in tree.parents.iter().enumerate() {
            for b in 0..tree.layout.states[v] {
                for a in 0..tree.lines(v) {
                    counts[tree.layout.line(v, a).start + b] = match u.cmp(&v) {
                        Ordering::Equal => pairs.single(v, b),
                        Ordering::Less => pairs.pair(v, b, u, a),
                        Ordering::Greater => pairs.pair(u, a, v, b),
                    };
                }
            }
        }
        counts.into()
    }

    fn fit_counts(&mut self, stats: &TreeCounts, parent: Option<&TreeCounts>, by: &Regularisation) {
        let mut pairs = stats.pairs.clone();
        // So many rows of the whole data belong to every component.
        if let Some(parent) = parent.filter(|parent| parent.total > 0.0) {
            pairs.blend(&parent.pairs, 1.0, by.shrinkage / parent.total);
        }
        self.learn(&pairs, by.laplace);
    }
}

impl ParamsView for TreeCounts {
    fn slices(&self) -> Vec<&[f64]> {
        let mut slices = self.pairs.slices();
        slices.push(std::slice::from_ref(&self.total));
        slices
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        let mut slices = self.pairs.slices_mut();
        slices.push(std::slice::from_mut(&mut self.total));
        slices
    }
}
