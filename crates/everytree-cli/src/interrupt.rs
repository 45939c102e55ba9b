//! Signals that ask a command to end: Ctrl-C, and on Unix SIGTERM and SIGHUP.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Hears signals: the first asks for an orderly end, the second does not wait for it.
#[derive(Clone)]
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    /// Listens from now on. Once in a run of the program.
    pub fn listen() -> Result<Self> {
        let count = Arc::new(AtomicUsize::new(0));
        let heard = Arc::clone(&count);
        ctrlc::set_handler(move || {
            if heard.fetch_add(1, Ordering::SeqCst) > 0 {
                std::process::exit(130);
            }
        })?;
        Ok(Self(count))
    }

    /// The same, of work that leaves nothing behind: after so long it is ended where it stands.
    pub fn listen_and_end(after: Duration) -> Result<Self> {
        let interrupts = Self::listen()?;
        let heard = interrupts.clone();
        std::thread::spawn(move || {
            while !heard.any() {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(after);
            std::process::exit(130);
        });
        Ok(interrupts)
    }

    /// Was there one?
    pub fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}
