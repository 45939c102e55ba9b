//! Ending early, but not for nothing.

use super::Stop;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Work that is done so soon is not ended early.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);

/// Asks whether to end, but not in the first moment, and remembers whether work was cut short.
pub struct Hurry<'a> {
    begin: Instant,
    stop: Stop<'a>,
    cut: Cell<bool>,
}

impl<'a> Hurry<'a> {
    /// Work begins.
    pub fn new(stop: Stop<'a>) -> Self {
        Self { begin: Instant::now(), stop, cut: Cell::new(false) }
    }

    /// Is it to end?
    pub fn asked(&self) -> bool {
        let asked = self.begin.elapsed() >= MOMENT && (self.stop)();
        self.cut.set(self.cut.get() || asked);
        asked
    }

    /// Was it ever told to end?
    pub fn was_cut(&self) -> bool {
        self.cut.get()
    }
}
