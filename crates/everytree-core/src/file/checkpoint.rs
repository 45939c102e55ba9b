//! Learning put aside between two epochs.

use super::atomic::write_through;
use super::flat::{numbers, with_room, without_room};
use super::model::{FORMAT, TableFacts};
use super::pack::{self, List};
use super::shape::Shape;
use super::unpack::Unpacked;
use super::{ContentError, FileError};
use crate::data::Schema;
use crate::learn::{
    Adam, BestModel, CandidateResult, Choosing, Epoch, Next, Plan, Portfolio, Running, Search, State, Trial,
    TrialResult, UnderWay,
};
use crate::model::{Candidate, Family, HowMany, MAX_COMPONENTS, MAX_HIDDEN, Member, Pairs, Settings, Start};
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
    /// The choice among families that the search is a part of, if it is.
    pub choosing: Option<Box<Choosing>>,
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
    /// The choice among families that this is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choosing: Option<ChoosingStory>,
}

#[derive(Serialize, Deserialize)]
struct ChoosingStory {
    portfolio: Portfolio,
    tried: Vec<ResultStory>,
    failed: Vec<Next>,
    #[serde(default)]
    under_way: Option<UnderWayStory>,
    refitted: Vec<Shape>,
}

/// Its parameters, and what it says about rows, are lists of numbers.
#[derive(Serialize, Deserialize)]
struct ResultStory {
    #[serde(flatten)]
    next: Next,
    valid: f64,
    best_epochs: Vec<usize>,
    epochs: Vec<usize>,
    whole: bool,
    work: f64,
    model: Earlier,
}

#[derive(Serialize, Deserialize)]
struct UnderWayStory {
    #[serde(flatten)]
    next: Next,
    valid: Vec<f64>,
    best_epochs: Vec<usize>,
    epochs: Vec<usize>,
    work: f64,
    first: Option<Earlier>,
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
        let earlier = |found: &BestModel| Earlier::of(&found.model, &found.history);
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
            choosing: self.choosing.as_deref().map(ChoosingStory::of),
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
        let mut lists: Vec<List<'_>> =
            lists.into_iter().filter_map(|(name, list)| Some(List::whole(name, list?))).collect();
        lists.extend(self.choosing.as_deref().into_iter().flat_map(lists_of));
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
        let choosing = match description.choosing {
            Some(story) => Some(Box::new(story.unpack(&mut unpacked, &columns)?)),
            None => None,
        };
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
            let (model, history) = earlier.unpack(&mut unpacked, &columns, "earlier.parameters")?;
            Ok(BestModel { model, history })
        });
        let running = Running { trial: story.trial, blocks, state };
        let search = Search {
            plan: story.plan,
            results: story.results,
            best: earlier.transpose()?,
            running: Some(running),
        };
        Ok(Self { search, settings, precision, schema, train, valid, holdout, choosing })
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

/// The logarithm of nothing, which is no number of a file.
const IMPOSSIBLE: f64 = -1e300;

fn finite(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| log.max(IMPOSSIBLE)).collect()
}

fn infinite(mut logs: Vec<f64>) -> Vec<f64> {
    logs.iter_mut().filter(|log| **log <= IMPOSSIBLE).for_each(|log| *log = f64::NEG_INFINITY);
    logs
}

/// The lists of numbers of a choice under way.
fn lists_of(choosing: &Choosing) -> Vec<List<'_>> {
    let Choosing { tried, under_way, refitted, .. } = choosing;
    let mut lists = Vec::new();
    for (number, tried) in tried.iter().enumerate() {
        lists.push(List::whole(format!("tried.{number}.log_p"), finite(&tried.log_p)));
        lists.push(List::whole(format!("tried.{number}.parameters"), numbers(tried.model.mixture())));
    }
    if let Some(UnderWay { log_p, first, .. }) = under_way {
        lists.push(List::whole("under_way.log_p".to_owned(), finite(log_p)));
        if let Some((model, _)) = first {
            lists.push(List::whole("under_way.parameters".to_owned(), numbers(model.mixture())));
        }
    }
    for (number, member) in refitted.iter().enumerate() {
        lists.push(List::whole(format!("refitted.{number}.parameters"), numbers(member.mixture())));
    }
    lists
}

/// A model of a shape, from a list of numbers.
fn member(
    shape: &Shape,
    unpacked: &mut Unpacked<'_>,
    columns: &[usize],
    list: &str,
) -> Result<Member, ContentError> {
    shape.check()?;
    let blocks = shape.blocks(columns)?;
    let mixture = shape.mixture(&blocks.states(), &unpacked.numbers(list)?)?;
    Member::new(blocks, mixture).map_err(|error| ContentError::Model(error.to_string()))
}

impl Earlier {
    fn of(model: &Member, history: &[Epoch]) -> Self {
        Self { shape: Shape::of(model), history: history.to_vec() }
    }

    fn unpack(
        self,
        unpacked: &mut Unpacked<'_>,
        columns: &[usize],
        list: &str,
    ) -> Result<(Member, Vec<Epoch>), ContentError> {
        if self.history.is_empty() {
            return Err(ContentError::Description("its best fit so far has no epochs".to_owned()));
        }
        Ok((member(&self.shape, unpacked, columns, list)?, self.history))
    }
}

impl ChoosingStory {
    fn of(choosing: &Choosing) -> Self {
        let tried = |tried: &CandidateResult| ResultStory {
            next: Next { candidate: tried.candidate.clone(), series: tried.series },
            valid: tried.valid,
            best_epochs: tried.best_epochs.clone(),
            epochs: tried.epochs.clone(),
            whole: tried.whole,
            work: tried.work,
            model: Earlier::of(&tried.model, &tried.history),
        };
        let under_way = |under_way: &UnderWay| UnderWayStory {
            next: under_way.next.clone(),
            valid: under_way.valid.clone(),
            best_epochs: under_way.best_epochs.clone(),
            epochs: under_way.epochs.clone(),
            work: under_way.work,
            first: under_way.first.as_ref().map(|(model, history)| Earlier::of(model, history)),
        };
        Self {
            portfolio: choosing.portfolio.clone(),
            tried: choosing.tried.iter().map(tried).collect(),
            failed: choosing.failed.clone(),
            under_way: choosing.under_way.as_ref().map(under_way),
            refitted: choosing.refitted.iter().map(Shape::of).collect(),
        }
    }

    fn unpack(self, unpacked: &mut Unpacked<'_>, columns: &[usize]) -> Result<Choosing, ContentError> {
        let Self { portfolio, tried, failed, under_way, refitted } = self;
        let groupings = portfolio.groupings.len();
        let sense = |what: &str| ContentError::Description(what.to_owned());
        let fits = |next: &Next| {
            let Candidate { grouping, components, hidden, settings, .. } = &next.candidate;
            let is_possible = *grouping < groupings && (1..=MAX_COMPONENTS).contains(components);
            is_possible && *hidden <= MAX_HIDDEN && settings.check().is_ok()
        };
        let nexts =
            tried.iter().map(|tried| &tried.next).chain(under_way.iter().map(|under_way| &under_way.next));
        let has_sense = groupings > 0 && portfolio.states.len() == groupings && portfolio.folds > 0;
        if !nexts.chain(&failed).all(fits) || !has_sense {
            return Err(sense("it tries an impossible candidate"));
        }
        let mut all = Vec::new();
        for (number, tried) in tried.into_iter().enumerate() {
            let ResultStory { next, valid, best_epochs, epochs, whole, work, model } = tried;
            if best_epochs.is_empty() || best_epochs.len() != epochs.len() {
                return Err(sense("a candidate was learned on no fold"));
            }
            let log_p = infinite(unpacked.numbers(&format!("tried.{number}.log_p"))?);
            let (model, history) = model.unpack(unpacked, columns, &format!("tried.{number}.parameters"))?;
            let Next { candidate, series } = next;
            all.push(CandidateResult {
                candidate,
                series,
                valid,
                best_epochs,
                epochs,
                log_p,
                whole,
                model,
                history,
                work,
            });
        }
        let rows = |tried: &CandidateResult| tried.log_p.len();
        let known = all.iter().map(rows).filter(|rows| *rows > 0);
        let held_out = known.clone().max();
        if known.min() != held_out {
            return Err(sense("candidates speak of different rows"));
        }
        let under_way = match under_way {
            Some(UnderWayStory { next, valid, best_epochs, epochs, work, first }) => {
                if [epochs.len(), valid.len()] != [best_epochs.len(); 2]
                    || first.is_some() == best_epochs.is_empty()
                {
                    return Err(sense("the folds of a candidate do not fit together"));
                }
                let log_p = infinite(unpacked.numbers("under_way.log_p")?);
                if best_epochs.len() >= portfolio.folds || held_out.is_some_and(|rows| log_p.len() > rows) {
                    return Err(sense("a candidate was learned on more folds than there are"));
                }
                let first =
                    first.map(|first| first.unpack(unpacked, columns, "under_way.parameters")).transpose()?;
                Some(UnderWay { next, best_epochs, epochs, valid, log_p, first, work })
            }
            None => None,
        };
        let mut members = Vec::new();
        for (number, shape) in refitted.iter().enumerate() {
            members.push(member(shape, unpacked, columns, &format!("refitted.{number}.parameters"))?);
        }
        Ok(Choosing { portfolio, tried: all, failed, under_way, refitted: members })
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
