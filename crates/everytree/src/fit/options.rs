//! What can be said about a fit.

use super::auto::AUTO_FAMILY;
use crate::device::DeviceChoice;
use everytree_core::model::{AUTO, HowMany, Optimiser, Pairs};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Everything that can be said about a fit. What is `None` is what is usual for the family.
///
/// The command line, the Python package and [`Fit`](crate::Fit) all fill in this one struct; read from JSON or similar, it
/// refuses fields that it does not know.
///
/// ```
/// use everytree::{Dataset, Fit, FitOptions};
///
/// let mut options = FitOptions::default();
/// options.family = "chow-liu".to_owned();
/// # let data = Dataset::from_columns([("a", vec![Some("x"), Some("y"), Some("x")]), ("b", vec![Some("1"), Some("2"), Some("1")])])?;
/// let model = Fit::with(options).run(&data)?;
/// assert_eq!(model.family(), "chow-liu");
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FitOptions {
    /// Family of models, by the name of a preset; `auto`: the best of all, or an average of several.
    pub family: String,
    /// How many components are mixed.
    #[serde(deserialize_with = "how_many")]
    pub components: Option<HowMany>,
    /// States of latent variables.
    #[serde(deserialize_with = "how_many")]
    pub hidden: Option<HowMany>,
    /// Which columns are modelled jointly.
    pub blocks: BlockOptions,
    /// With blocks that are looked for: most combinations of a block; several limits are tried one by one.
    pub block_states: Vec<usize>,
    /// Parameterisation of pair tables, in families with a choice. `None`: the paper's intervals where no variable has more than two
    /// states, and every table can be had; else free matrices.
    pub pairs: Option<Pairs>,
    /// Where learning begins.
    pub init: Init,
    /// Rows spread evenly over all states that are added to the counts at the start.
    pub pseudocount: f64,
    /// Laplace smoothing of free tables, throughout.
    pub laplace: Option<f64>,
    /// How much components are shrunk towards what they have in common.
    pub shrinkage: Option<f64>,
    /// How parameters are updated.
    pub optimiser: Option<Optimiser>,
    /// Times through the data.
    pub epochs: Option<usize>,
    /// Early stopping: epochs without a better validation.
    pub patience: Option<usize>,
    /// Rows of a mini-batch.
    pub batch_size: Option<usize>,
    /// Learning rate of Adam.
    pub learning_rate: Option<f64>,
    /// Let the learning rate fall along a cosine.
    pub cosine: bool,
    /// Decay of an exponential moving average of the parameters.
    pub ema: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Precision of gradients.
    pub precision: Precision,
    /// Fraction of the rows held out for validation, where there is no dataset for it.
    pub holdout: f64,
    /// How many folds all rows are held out in, one after the other, where the family is chosen; 1: a fraction once. `None`: five
    /// where rows are few.
    pub folds: Option<usize>,
    /// How much work a choice of the family may be.
    pub effort: Effort,
    /// May the choice of a family take a kernel over stored rows? Its models keep training rows.
    pub kernel: bool,
    /// Learn once more, from the held-out rows too, for as many epochs as were best. `None`: where the fit itself holds
    /// rows out.
    pub refit: Option<bool>,
    /// Seconds after which the best model so far is kept.
    pub timeout: Option<f64>,
    /// Where the work is done.
    pub device: DeviceChoice,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            family: AUTO_FAMILY.to_owned(),
            components: None,
            hidden: None,
            blocks: BlockOptions::default(),
            block_states: Vec::new(),
            pairs: None,
            init: Init::Counts,
            pseudocount: 1.0,
            laplace: None,
            shrinkage: None,
            optimiser: None,
            epochs: None,
            patience: None,
            batch_size: None,
            learning_rate: None,
            cosine: false,
            ema: None,
            seed: 0,
            precision: Precision::F32,
            holdout: 0.1,
            folds: None,
            effort: Effort::Normal,
            kernel: false,
            refit: None,
            timeout: None,
            device: DeviceChoice::Auto,
        }
    }
}

/// Where learning begins.
///
/// ```
/// use everytree::{FitOptions, Init};
///
/// let mut options = FitOptions::default();
/// options.init = Init::Random;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Init {
    /// From counts and mutual information.
    #[default]
    Counts,
    /// From normal numbers, by seed.
    Random,
}

/// How much work the choice of a model may be.
///
/// ```
/// use everytree::{Effort, Fit};
///
/// assert_eq!(Fit::new().effort(Effort::Quick).options().effort, Effort::Quick);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effort {
    /// A sixth of what is usual.
    Quick,
    /// On two cores about a minute for 20,000 rows of 100 columns, and a few seconds for small tables.
    #[default]
    Normal,
    /// Twenty times as much.
    Thorough,
}

/// The precision of gradients; whatever is shown is evaluated in `f64`.
///
/// ```
/// use everytree::{Fit, Precision};
///
/// assert_eq!(Fit::new().precision(Precision::F64).options().precision.name(), "f64");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Precision {
    /// Single.
    #[default]
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

/// Which columns are modelled jointly, exact over all their combinations.
///
/// In JSON: `"none"`, `"auto"`, a pattern, or a list of patterns and of lists of names.
///
/// ```
/// use everytree::{BlockOptions, Fit};
///
/// let fit = Fit::new().blocks(BlockOptions::auto());
/// assert!(fit.options().blocks.auto);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockOptions {
    /// Is it looked for which columns belong together?
    pub auto: bool,
    /// Columns that are together by request.
    pub groups: Vec<ColumnGroup>,
}

/// Columns of one block.
///
/// ```
/// use everytree::{BlockOptions, ColumnGroup, Fit};
///
/// let mut blocks = BlockOptions::default();
/// blocks.groups.push(ColumnGroup::Pattern("colour_*".to_owned()));
/// assert_eq!(Fit::new().blocks(blocks).options().blocks.groups.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ColumnGroup {
    /// All whose names fit a pattern in which `*` stands for anything.
    Pattern(String),
    /// By name.
    Columns(Vec<String>),
}

impl BlockOptions {
    /// Blocks that validation prefers.
    pub fn auto() -> Self {
        Self { auto: true, groups: Vec::new() }
    }
}

impl<'de> Deserialize<'de> for BlockOptions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Said {
            Word(String),
            Groups(Vec<ColumnGroup>),
        }
        let bad = || D::Error::custom("`blocks`: none, auto, a pattern, or a list of lists of names");
        Ok(match Option::<Said>::deserialize(from).map_err(|_| bad())? {
            None => Self::default(),
            Some(Said::Word(word)) if word == "none" => Self::default(),
            Some(Said::Word(word)) if word == "auto" => Self::auto(),
            Some(Said::Word(pattern)) => Self { auto: false, groups: vec![ColumnGroup::Pattern(pattern)] },
            Some(Said::Groups(groups)) => Self { auto: false, groups },
        })
    }
}

/// A number, or `"auto"`. Whether there can be so many is checked where everything else is.
fn how_many<'de, D: Deserializer<'de>>(from: D) -> Result<Option<HowMany>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Number(i64),
        Word(String),
    }
    match Option::<Said>::deserialize(from).map_err(|_| D::Error::custom("a number, or auto"))? {
        None => Ok(None),
        Some(Said::Word(word)) if word == "auto" => Ok(Some(HowMany::UpTo(AUTO))),
        // Below zero there are as few as at zero, and zero is refused.
        Some(Said::Number(count)) => Ok(Some(HowMany::Just(usize::try_from(count).unwrap_or(0)))),
        Some(Said::Word(word)) => Err(D::Error::custom(format!("{word:?}: a number, or auto"))),
    }
}
