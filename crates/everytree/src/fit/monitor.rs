//! What happens beside learning: the observer hears of it, the clock is looked at, checkpoints are saved.

use super::Observer;
use everytree_core::file::{Checkpoint, FileError};
use everytree_core::learn::{Progress, Search, SearchObserver, Trial};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

/// Where checkpoints go, and what is in them.
pub struct Keep {
    pub path: PathBuf,
    pub checkpoint: Checkpoint,
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
        if let Some(Keep { path, checkpoint }) = &mut self.keep {
            checkpoint.search = search.clone();
            if let Err(error) = checkpoint.save(path) {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
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
