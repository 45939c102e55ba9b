//! What a person says about a fit, and what follows from it.

use crate::tables::Tables;
use anyhow::{Result, bail};
use everytree_core::learn::{
    Family, HowMany, LearnError, MAX_COMPONENTS, Optimiser, Plan, Search, Settings, Start,
};
use everytree_core::model::{MAX_HIDDEN, Pairs, Regularisation};
use serde::{Deserialize, Deserializer};

/// Epochs of the short fits by which ways to group columns are compared.
pub const LOOK: usize = 8;

/// More components, or hidden states, than this are not tried by themselves.
pub const MOST_BY_ITSELF: usize = 64;

/// A family by the name that people know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FamilyName {
    /// The mixture of all trees of the paper: spanning trees, shared margins.
    Moat,
    /// Rooted forests with free tables.
    Directed,
    /// Columns that have nothing to do with each other; several components: latent classes.
    Independent,
    /// One tree, of the highest mutual information.
    ChowLiu,
    /// Several of them (Meilă and Jordan).
    MixtureOfTrees,
    /// One tree of hidden variables, one for each column.
    Hclt,
}

impl FamilyName {
    /// The family of models.
    pub fn family(self) -> Family {
        match self {
            Self::Moat => Family::Moat,
            Self::Directed => Family::Directed,
            Self::Independent => Family::Independent,
            Self::ChowLiu | Self::MixtureOfTrees => Family::ChowLiu,
            Self::Hclt => Family::Hclt,
        }
    }
}

/// The precision of the arithmetic of learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single.
    F32,
    /// Double.
    F64,
}

impl Precision {
    /// As it is written in files.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        }
    }
}

/// What a person says about a fit. What is not said is what is usual for the family.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Family of models.
    pub family: FamilyName,
    /// How many are mixed.
    #[serde(default, deserialize_with = "components")]
    pub components: Option<HowMany>,
    /// States of hidden variables.
    #[serde(default, deserialize_with = "hidden")]
    pub hidden: Option<HowMany>,
    /// Parameterisation of pair tables.
    pub pairs: Pairs,
    /// Start at random instead of from counts.
    pub random: bool,
    /// Rows of even chance added to the counts at the start.
    pub smoothing: f64,
    /// Rows of even chance that free tables are smoothed with throughout.
    pub prior: Option<f64>,
    /// How much components are pulled towards what they have in common.
    pub shrinkage: Option<f64>,
    /// How steps are made.
    pub optimiser: Option<Optimiser>,
    /// Times through the data.
    pub epochs: Option<usize>,
    /// Epochs without a better validation before it stops.
    pub patience: Option<usize>,
    /// Rows of a mini-batch.
    pub batch: Option<usize>,
    /// Step length of Adam.
    pub lr: Option<f64>,
    /// Let it fall along a cosine.
    pub cosine: bool,
    /// Decay of an average of the parameters.
    pub average: Option<f64>,
    /// Seed of everything that is left to chance.
    pub seed: u64,
    /// Precision of learning.
    pub precision: Precision,
}

/// A number, or `"auto"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Many {
    Number(i64),
    Word(String),
}

fn many<'de, D: Deserializer<'de>>(from: D, what: &str, most: usize) -> Result<Option<HowMany>, D::Error> {
    use serde::de::Error;
    let bad =
        |said: String| Err(D::Error::custom(format!("--{what} {said}: a number from 1 to {most}, or auto")));
    match Option::<Many>::deserialize(from)? {
        None => Ok(None),
        Some(Many::Word(word)) if word == "auto" => Ok(Some(HowMany::UpTo(MOST_BY_ITSELF))),
        Some(Many::Number(count)) => match usize::try_from(count) {
            Ok(count) if (1..=most).contains(&count) => Ok(Some(HowMany::Just(count))),
            _ => bad(count.to_string()),
        },
        Some(Many::Word(word)) => bad(word),
    }
}

fn components<'de, D: Deserializer<'de>>(from: D) -> Result<Option<HowMany>, D::Error> {
    many(from, "components", MAX_COMPONENTS)
}

fn hidden<'de, D: Deserializer<'de>>(from: D) -> Result<Option<HowMany>, D::Error> {
    many(from, "hidden", MAX_HIDDEN)
}

impl Recipe {
    /// What is usual of a family.
    pub fn of(family: FamilyName) -> Self {
        Self {
            family,
            components: None,
            hidden: None,
            pairs: Pairs::Lambda,
            random: false,
            smoothing: 1.0,
            prior: None,
            shrinkage: None,
            optimiser: None,
            epochs: None,
            patience: None,
            batch: None,
            lr: None,
            cosine: false,
            average: None,
            seed: 0,
            precision: Precision::F32,
        }
    }

    /// A search to begin with, of these ways to group columns.
    pub fn search(&self, groupings: Vec<Vec<Vec<usize>>>, settings: &Settings) -> Result<Search> {
        if !(self.smoothing > 0.0 && self.smoothing.is_finite()) {
            bail!("--smoothing {}: must be positive", self.smoothing);
        }
        let start = Start {
            family: self.family.family(),
            pairs: self.pairs,
            // What is counted once is smoothed like what is counted again and again.
            pseudo_rows: match self.family.family().is_counted() {
                true => settings.regularisation.smoothing,
                false => self.smoothing,
            },
            random: self.random,
            seed: self.seed,
        };
        let (components, hidden) = self.sizes()?;
        Ok(Search::new(Plan { groupings, components, hidden, look: LOOK, start }))
    }

    /// How many components, and states of hidden variables.
    fn sizes(&self) -> Result<(HowMany, HowMany)> {
        let one = HowMany::Just(1);
        let hclt = self.family == FamilyName::Hclt;
        if self.hidden.is_some() && !hclt {
            bail!("--hidden: goes with --family hclt");
        }
        if self.family == FamilyName::ChowLiu && self.components.is_some_and(|count| count != one) {
            bail!("--family chow-liu: is one tree; several of them are --family mixture-of-trees");
        }
        let auto = HowMany::UpTo(MOST_BY_ITSELF);
        let components = match self.family {
            FamilyName::MixtureOfTrees => self.components.unwrap_or(auto),
            _ => self.components.unwrap_or(one),
        };
        let hidden = if hclt { self.hidden.unwrap_or(auto) } else { one };
        if matches!((components, hidden), (HowMany::UpTo(_), HowMany::UpTo(_))) {
            bail!("--components auto: give --hidden a number; one of the two can be looked for at a time");
        }
        Ok((components, hidden))
    }

    /// How to learn from these tables.
    pub fn settings(&self, tables: &Tables) -> Result<Settings> {
        let usual = Settings::usual(self.family.family(), tables.states.len());
        let settings = Settings {
            epochs: self.epochs.unwrap_or(usual.epochs),
            batch: self.batch.unwrap_or(usual.batch),
            learning_rate: self.lr.unwrap_or(usual.learning_rate),
            seed: self.seed,
            patience: self.patience.or(usual.patience),
            cosine: self.cosine || usual.cosine,
            averaging: self.average,
            optimiser: self.optimiser.unwrap_or(usual.optimiser),
            regularisation: Regularisation {
                shrinkage: self.shrinkage.unwrap_or(usual.regularisation.shrinkage),
                smoothing: self.prior.unwrap_or(usual.regularisation.smoothing),
            },
        };
        settings.check()?;
        if self.family == FamilyName::Moat {
            if settings.optimiser == Optimiser::Em {
                return Err(LearnError::NoClosedForm.into());
            }
            if self.prior.is_some() {
                bail!("--prior: the tables of moat are not free; goes with the other families");
            }
        }
        if self.family == FamilyName::Hclt && self.shrinkage.is_some() {
            bail!("--shrinkage: hidden states of different components have nothing in common; leave it out");
        }
        if self.pairs == Pairs::Sinkhorn && self.family != FamilyName::Moat {
            bail!("--pairs: goes with --family moat");
        }
        if self.family.family() == Family::ChowLiu {
            if settings.optimiser == Optimiser::Adam {
                bail!("--optimiser adam: trees are not found along a gradient; use em");
            }
            if self.average.is_some() {
                bail!("--average: trees have no average; leave it out");
            }
        }
        if settings.optimiser == Optimiser::Em && (self.lr.is_some() || self.cosine) {
            bail!("--optimiser em: has no step length; leave out --lr and --cosine");
        }
        Ok(settings)
    }
}
