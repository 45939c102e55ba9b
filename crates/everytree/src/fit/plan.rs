//! From options to settings and a search, after a look at what the family can do.

use super::options::{FitOptions, Init};
use crate::{Error, Result};
use everytree_core::learn::{LearnError, Plan, Search};
use everytree_core::model::{
    Family, FamilySpec, HowMany, MAX_COMPONENTS, MAX_HIDDEN, Optimiser, Pairs, Preset, Regularisation,
    Settings, Start, Trees,
};

/// Epochs of the pilot fits by which ways to group columns are compared.
const PILOT_EPOCHS: usize = 8;

/// A family, and options that go with it.
pub(super) struct Checked<'a> {
    pub family: Family,
    pub preset: &'static Preset,
    options: &'a FitOptions,
    components: HowMany,
    hidden: HowMany,
}

impl<'a> Checked<'a> {
    /// Do the options go together, and with the family?
    pub fn new(options: &'a FitOptions) -> Result<Self> {
        let (family, preset) = Family::preset(&options.family)?;
        let spec = family.spec();
        for (option, count, most) in
            [("components", options.components, MAX_COMPONENTS), ("hidden", options.hidden, MAX_HIDDEN)]
        {
            if let Some(count) = count.filter(|count| !(1..=most).contains(&count.most())) {
                let problem = format!("a number from 1 to {most}, or auto");
                return Err(Error::option(option, count.most(), problem));
            }
        }
        if !(options.pseudocount > 0.0 && options.pseudocount.is_finite()) {
            return Err(Error::option("pseudocount", options.pseudocount, "must be positive and finite"));
        }
        if options.timeout.is_some_and(|seconds| seconds.is_nan() || seconds < 0.0) {
            return Err(Error::unwanted("timeout", "not negative"));
        }
        let checked = Self {
            family,
            preset,
            options,
            components: options.components.unwrap_or(preset.components),
            hidden: options.hidden.unwrap_or(preset.hidden),
        };
        checked.check_sizes()?;
        checked.check_family(spec)?;
        Ok(checked)
    }

    fn check_sizes(&self) -> Result<()> {
        if let (Some(several), true) = (self.preset.several, self.components != HowMany::Just(1)) {
            let problem = format!("is one tree; several of them are `family = {several}`");
            return Err(Error::option("family", self.preset.name, problem));
        }
        if matches!((self.components, self.hidden), (HowMany::UpTo(_), HowMany::UpTo(_))) {
            let problem = "give `hidden` a number; one of the two can be looked for at a time";
            return Err(Error::option("components", "auto", problem));
        }
        Ok(())
    }

    /// What the family does not have.
    fn check_family(&self, spec: &FamilySpec) -> Result<()> {
        let options = self.options;
        if options.kernel {
            let problem = "goes with `family = auto`; alone it is `family = kernel`";
            return Err(Error::unwanted("kernel", problem));
        }
        if spec.trees == Trees::Stored && self.components != HowMany::Just(1) {
            return Err(Error::unwanted("components", "a kernel has one; leave it out"));
        }
        if let Some(laplace) = options
            .laplace
            .filter(|laplace| spec.trees == Trees::Stored && (laplace.is_nan() || *laplace <= 0.0))
        {
            return Err(Error::option("laplace", laplace, "must be positive where rows are stored"));
        }
        if options.hidden.is_some() && spec.trees != Trees::OneLatent {
            return Err(Error::unwanted("hidden", goes_with(|spec| spec.trees == Trees::OneLatent)));
        }
        if options.pairs == Some(Pairs::Sinkhorn) && !spec.pair_tables {
            return Err(Error::unwanted("pairs", goes_with(|spec| spec.pair_tables)));
        }
        if options.laplace.is_some() && !spec.laplace {
            let problem = format!("the tables of {} are not free; goes with the other families", spec.name);
            return Err(Error::unwanted("laplace", problem));
        }
        if options.shrinkage.is_some() && !spec.shrinkage {
            let problem = "latent states of different components have nothing in common; leave it out";
            return Err(Error::unwanted("shrinkage", problem));
        }
        if options.ema.is_some() && !spec.ema {
            return Err(Error::unwanted("ema", "trees have no average; leave it out"));
        }
        match options.optimiser {
            Some(Optimiser::Em) if !spec.optimisers.contains(&Optimiser::Em) => {
                Err(LearnError::NoClosedForm.into())
            }
            Some(Optimiser::Adam) if !spec.optimisers.contains(&Optimiser::Adam) => {
                let problem = "trees are not found along a gradient; use em";
                Err(Error::option("optimiser", "adam", problem))
            }
            _ => Ok(()),
        }
    }

    /// Is it looked for which columns belong together?
    pub fn looks_for_blocks(&self) -> bool {
        self.options.blocks.auto || self.preset.blocks
    }

    /// How to learn a model of so many columns from so many rows.
    pub fn settings(&self, columns: usize, rows: usize) -> Result<Settings> {
        let (options, usual) = (self.options, self.family.settings(columns));
        let batch_size = options.batch_size.unwrap_or(usual.batch_size);
        let optimiser = options.optimiser.unwrap_or(usual.optimiser);
        let usual = Settings { batch_size, optimiser, ..usual }.lasting(rows);
        let settings = Settings {
            epochs: options.epochs.unwrap_or(usual.epochs),
            batch_size,
            learning_rate: options.learning_rate.unwrap_or(usual.learning_rate),
            seed: options.seed,
            patience: options.patience.or(usual.patience),
            cosine: options.cosine || usual.cosine,
            ema: options.ema,
            optimiser,
            regularisation: Regularisation {
                shrinkage: options.shrinkage.unwrap_or(usual.regularisation.shrinkage),
                laplace: options.laplace.unwrap_or(usual.regularisation.laplace),
            },
        };
        settings.check()?;
        if settings.optimiser == Optimiser::Em && (options.learning_rate.is_some() || options.cosine) {
            let problem = "has no learning rate; leave out `learning_rate` and `cosine`";
            return Err(Error::option("optimiser", "em", problem));
        }
        Ok(settings)
    }

    /// A search to begin with, of these ways to group columns with so many states each.
    pub fn search(&self, groupings: Vec<Vec<Vec<usize>>>, states: &[usize], settings: &Settings) -> Search {
        let is_grouped = !groupings.iter().all(Vec::is_empty);
        let start = Start {
            family: self.family,
            pairs: self.options.pairs.unwrap_or_else(|| usual_pairs(states, is_grouped)),
            // What is counted once is smoothed like what is counted again and again.
            pseudocount: match self.family.spec().counted {
                true => settings.regularisation.laplace,
                false => self.options.pseudocount,
            },
            random: self.options.init == Init::Random,
            seed: self.options.seed,
        };
        let (components, hidden) = (self.components, self.hidden);
        Search::new(Plan { groupings, components, hidden, pilot_epochs: PILOT_EPOCHS, start })
    }
}

/// Operations that scaling all pair tables to their margins may take in one step.
const MOST_SCALING: f64 = 4e9;

/// Pair tables of variables of two states, or of more: the paper's intervals have every table of two states, and not of more. Free
/// tables are scaled to their margins in every step, which takes too long where columns have thousands of states.
pub(super) fn usual_pairs(states: &[usize], is_grouped: bool) -> Pairs {
    if !is_grouped && states.iter().all(|&count| count <= 2) {
        return Pairs::Lambda;
    }
    let mut counts: Vec<f64> = states.iter().map(|&count| count as f64).collect();
    counts.sort_unstable_by(f64::total_cmp);
    // Of two variables the one with fewer states counts twice.
    let mut squares = 0.0;
    let mut operations = 0.0;
    for count in counts {
        operations += squares * count;
        squares += count * count;
    }
    if operations <= MOST_SCALING { Pairs::Sinkhorn } else { Pairs::Lambda }
}

/// Which families an option is for.
fn goes_with(fits: impl Fn(&FamilySpec) -> bool) -> String {
    let names: Vec<String> = Family::ALL
        .iter()
        .map(|family| family.spec())
        .filter(|spec| fits(spec) && !spec.unlisted)
        .map(|spec| format!("`family = {}`", spec.name))
        .collect();
    format!("goes with {}", names.join(" or "))
}
