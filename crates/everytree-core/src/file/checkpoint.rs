//! Learning put aside between two epochs.

use super::atomic::write_through;
use super::flat::{numbers, with_room, without_room};
use super::model::{FORMAT, TableFacts};
use super::pack::{self, List};
use super::shape::Shape;
use super::unpack::Unpacked;
use super::{ContentError, FileError};
use crate::data::Schema;
use crate::learn::{Adam, BestModel, Epoch, Plan, Running, Search, State, Trial, TrialResult};
use crate::model::{Family, HowMany, MAX_COMPONENTS, MAX_HIDDEN, Member, Pairs, Settings, Start};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Everything that is needed to go on as if nothing had happened.
///
/// ```
/// use everytree_core::file::Checkpoint;
///
/// assert!(Checkpoint::from_bytes(b"not a checkpoint").is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Of the learning; something is under way.
    pub search: Search,
    /// How it learns.
    pub settings: Settings,
    /// Of the arithmetic: `f32` or `f64`.
    pub precision: String,
    /// Names and labels.
    pub schema: Schema,
    /// The rows it learns from: others are refused.
    pub train: TableFacts,
    /// The rows it validates with.
    pub valid: TableFacts,
    /// The fraction of rows held out for validation, where there is no file for it.
    pub holdout: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    format: u64,
    kind: String,
    version: String,
    #[serde(flatten)]
    shape: Shape,
    precision: String,
    steps: u64,
    settings: Settings,
    history: Vec<Epoch>,
    train: TableFacts,
    valid: TableFacts,
    holdout: Option<f64>,
    schema: Schema,
    /// What is tried and what came of it; absent from the first format, which knew one fit.
    search: Option<Story>,
}

#[derive(Serialize, Deserialize)]
struct Story {
    plan: Plan,
    trial: Trial,
    #[serde(rename = "tried")]
    results: Vec<TrialResult>,
    best: Option<Earlier>,
}

/// The best of earlier fits; its parameters are a list of numbers.
#[derive(Serialize, Deserialize)]
struct Earlier {
    #[serde(flatten)]
    shape: Shape,
    history: Vec<Epoch>,
}

impl Checkpoint {
    /// Does it learn from rows with missing cells that are summed out?
    pub fn has_missing_values(&self) -> bool {
        self.search.running.as_ref().is_some_and(|running| running.state.memory.is_some())
    }

    /// The bytes of the file; none where nothing is under way.
    pub fn to_bytes(&self) -> Option<io::Result<Vec<u8>>> {
        let (description, lists) = self.parts()?;
        Some(pack::to_bytes(description, lists))
    }

    /// The description, and lists of numbers; none where nothing is under way.
    fn parts(&self) -> Option<(String, Vec<List<'_>>)> {
        let Running { trial, blocks, state } = self.search.running.as_ref()?;
        let best = self.search.best.as_ref();
        let model = Member::new(blocks.clone(), (*state.model).clone()).ok()?;
        let earlier =
            |found: &BestModel| Earlier { shape: Shape::of(&found.model), history: found.history.clone() };
        let description = Description {
            format: FORMAT,
            kind: "checkpoint".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            shape: Shape::of(&model),
            precision: self.precision.clone(),
            steps: state.adam.steps,
            settings: self.settings.clone(),
            history: state.history.clone(),
            train: self.train.clone(),
            valid: self.valid.clone(),
            holdout: self.holdout,
            schema: self.schema.clone(),
            search: Some(Story {
                plan: self.search.plan.clone(),
                trial: *trial,
                results: self.search.results.clone(),
                best: best.map(earlier),
            }),
        };
        let lists = [
            ("adam.means", Some(with_room(&state.model, &state.adam.means))),
            ("adam.squares", Some(with_room(&state.model, &state.adam.squares))),
            ("parameters", Some(numbers(&state.model))),
            ("best.parameters", Some(numbers(&state.best))),
            ("average", state.average.as_ref().as_ref().map(|average| with_room(&state.model, average))),
            ("expected", state.expected.clone()),
            ("filled", state.memory.clone()),
            ("earlier.parameters", best.map(|found| numbers(found.model.mixture()))),
        ];
        let lists = lists.into_iter().filter_map(|(name, list)| Some(List::whole(name, list?))).collect();
        Some((serde_json::to_string(&description).expect("plain data"), lists))
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        Self::unpack(Unpacked::of_bytes(bytes, "checkpoint", FORMAT)?)
    }

    fn unpack(mut unpacked: Unpacked<'_>) -> Result<Self, ContentError> {
        let description: Description = unpacked.description()?;
        let Description { shape, settings, precision, schema, train, valid, holdout, history, .. } =
            description;
        let fit = |what: String| ContentError::Model(what);
        let sense = |what: &str| ContentError::Description(what.to_owned());
        shape.check()?;
        if !["f32", "f64"].contains(&precision.as_str()) {
            return Err(ContentError::Description(format!("unknown precision {precision:?}")));
        }
        if history.iter().enumerate().any(|(place, epoch)| epoch.epoch != place) {
            return Err(sense("the epochs of its history are not in order"));
        }
        if shape.component.pairs == Some(Pairs::Tables) {
            return Err(sense("known tables are not learned"));
        }
        settings.check().map_err(|error| fit(error.to_string()))?;
        schema.check().map_err(fit)?;
        let columns = schema.states();
        let blocks = shape.blocks(&columns)?;
        let states = blocks.states();
        let model = shape.mixture(&states, &unpacked.numbers("parameters")?)?;
        let best = shape.mixture(&states, &unpacked.numbers("best.parameters")?)?;
        let has_average = unpacked.has("average");
        let mut list = |name: &str| {
            let values = unpacked.numbers(name)?;
            without_room(&model, &values).ok_or_else(|| fit(format!("{} entries in {name}", values.len())))
        };
        let adam =
            Adam { steps: description.steps, means: list("adam.means")?, squares: list("adam.squares")? };
        let average = if has_average { Some(list("average")?) } else { None };
        let (expected, memory) = (unpacked.maybe("expected")?, unpacked.maybe("filled")?);
        let (model, best) = (Arc::new(model), Arc::new(best));
        let (adam, average) = (Arc::new(adam), Arc::new(average));
        let state = State { model, best, adam, average, expected, memory, history };
        let story = match description.search {
            Some(story) => story,
            None => Story::of_one_fit(shape.component.pairs.unwrap_or(Pairs::Lambda), settings.seed),
        };
        let trials = story.results.iter().map(|tried| tried.trial).chain([story.trial]);
        if trials.clone().any(|trial| story.plan.groupings.get(trial.grouping).is_none()) {
            return Err(sense("it tries a grouping of columns that is not in its plan"));
        }
        let most = story.plan.components.most();
        if trials
            .map(|trial| trial.components)
            .chain([most])
            .any(|count| !(1..=MAX_COMPONENTS).contains(&count))
        {
            return Err(sense("it tries an impossible number of components"));
        }
        let hidden = story.results.iter().map(|tried| tried.trial.hidden).chain([story.trial.hidden]);
        if hidden.chain([story.plan.hidden.most()]).any(|count| count > MAX_HIDDEN) {
            return Err(sense("it tries an impossible number of hidden states"));
        }
        let earlier = story.best.map(|earlier| -> Result<BestModel, ContentError> {
            earlier.shape.check()?;
            if earlier.history.is_empty() {
                return Err(sense("its best fit so far has no epochs"));
            }
            let blocks = earlier.shape.blocks(&columns)?;
            let mixture =
                earlier.shape.mixture(&blocks.states(), &unpacked.numbers("earlier.parameters")?)?;
            let model = Member::new(blocks, mixture).map_err(|error| fit(error.to_string()))?;
            Ok(BestModel { model, history: earlier.history })
        });
        let running = Running { trial: story.trial, blocks, state };
        let search = Search {
            plan: story.plan,
            results: story.results,
            best: earlier.transpose()?,
            running: Some(running),
        };
        Ok(Self { search, settings, precision, schema, train, valid, holdout })
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let failed = |cause| FileError::Io { path: path.to_owned(), cause };
        let (description, lists) =
            self.parts().ok_or_else(|| failed(io::Error::other("nothing is under way")))?;
        write_through(path, |file| pack::write(description, lists, file)).flatten().map_err(failed)
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let unpacked = Unpacked::of_file(path, "checkpoint", FORMAT)?;
        Self::unpack(unpacked).map_err(|what| FileError::Content { path: path.to_owned(), what })
    }
}

impl Story {
    /// What the first format meant: one fit of the paper's family.
    fn of_one_fit(pairs: Pairs, seed: u64) -> Self {
        let start = Start { family: Family::Moat, pairs, pseudocount: 1.0, random: false, seed };
        Self {
            plan: Plan {
                groupings: vec![Vec::new()],
                components: HowMany::Just(1),
                hidden: HowMany::Just(1),
                pilot_epochs: 1,
                start,
            },
            trial: Trial { grouping: 0, components: 1, hidden: 0, pilot: false },
            results: Vec::new(),
            best: None,
        }
    }
}
