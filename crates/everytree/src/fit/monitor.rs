//! What happens beside learning: the observer hears of it, the clock is looked at, checkpoints are saved.

use super::Observer;
use everytree_core::file::{Checkpoint, FileError};
use everytree_core::learn::{Choosing, Progress, Search, SearchObserver, Trial};
use everytree_core::model::Settings;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where checkpoints go, and what is in them.
pub struct Keep {
    pub path: PathBuf,
    pub checkpoint: Checkpoint,
    /// When it was saved last; nothing where something has changed since.
    saved: Option<Instant>,
    pending: bool,
    /// What a choice knows as its next fit begins, and how that learns: part of the checkpoint once there is something of that fit
    /// in it, because one without the other is of no use.
    begun: Option<(Box<Choosing>, Settings)>,
}

/// A choice among families has many short epochs: it is saved this often.
const OFTEN: Duration = Duration::from_secs(1);

impl Keep {
    pub fn new(path: PathBuf, checkpoint: Checkpoint) -> Self {
        Self { path, checkpoint, saved: None, pending: false, begun: None }
    }

    /// A fit of a choice begins.
    pub fn begin(&mut self, choosing: Choosing, settings: Settings) {
        self.begun = Some((Box::new(choosing), settings));
    }

    /// Takes note of where a search stands, and saves it, unless that was done a moment ago.
    fn note(&mut self, search: &Search) -> Result<(), FileError> {
        if let Some((choosing, settings)) = self.begun.take() {
            (self.checkpoint.choosing, self.checkpoint.settings) = (Some(choosing), settings);
        }
        self.checkpoint.search = search.clone();
        self.pending = true;
        let is_new = self.saved.is_some_and(|saved| saved.elapsed() < OFTEN);
        if self.checkpoint.choosing.is_some() && is_new {
            return Ok(());
        }
        self.save()
    }

    /// Saves what has not been saved yet.
    pub fn save(&mut self) -> Result<(), FileError> {
        if self.pending && self.checkpoint.search.running.is_some() {
            self.checkpoint.save(&self.path)?;
            (self.saved, self.pending) = (Some(Instant::now()), false);
        }
        Ok(())
    }
}

/// Tells the observer, looks at the clock, and saves checkpoints.
pub struct Monitor<'a, 'o> {
    pub observer: &'a RefCell<&'o mut dyn Observer>,
    pub deadline: Option<Instant>,
    pub keep: Option<&'a mut Keep>,
    pub timed_out: Cell<bool>,
    pub failed: Option<FileError>,
}

impl Monitor<'_, '_> {
    /// Is the time up?
    fn is_late(&self) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.timed_out.set(self.timed_out.get() || late);
        self.timed_out.get()
    }

    fn go_on(&self, asked: ControlFlow<()>) -> ControlFlow<()> {
        if self.is_late() { ControlFlow::Break(()) } else { asked }
    }
}

impl SearchObserver for Monitor<'_, '_> {
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        let asked = self.observer.borrow_mut().batch(trial, progress);
        self.go_on(asked)
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        if let Some(keep) = &mut self.keep
            && let Err(error) = keep.note(search)
        {
            self.failed = Some(error);
            return ControlFlow::Break(());
        }
        let asked = match &search.running {
            Some(running) => match running.state.history.last() {
                Some(epoch) => self.observer.borrow_mut().epoch(&running.trial, epoch),
                None => ControlFlow::Continue(()),
            },
            None => ControlFlow::Continue(()),
        };
        self.go_on(asked)
    }

    fn stop(&self) -> bool {
        self.observer.borrow().stop() || self.is_late()
    }
}
