//! Work spaces that outlive a task: taken, used, put back.

use std::sync::Mutex;

/// Spare work spaces: as many as were ever in use at once.
pub(crate) struct Pool<W> {
    spare: Mutex<Vec<W>>,
}

impl<W> Pool<W> {
    pub fn new() -> Self {
        Self { spare: Mutex::new(Vec::new()) }
    }

    /// A spare one, if there is any.
    pub fn take(&self) -> Option<W> {
        self.spare.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
    }

    /// Puts one back.
    pub fn give(&self, space: W) {
        self.spare.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(space);
    }

    /// Runs `work` with a spare work space, or a new one made by `make`.
    pub fn with<R>(&self, make: impl FnOnce() -> W, work: impl FnOnce(&mut W) -> R) -> R {
        let mut space = self.take().unwrap_or_else(make);
        let result = work(&mut space);
        self.give(space);
        result
    }
}

impl<W> std::fmt::Debug for Pool<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}
