//! Work beside Python: the interpreter is let go, threads are as many as were asked for, and Ctrl-C is heard.

use crate::errors::{Interrupted, exception};
use anyhow::Result;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often Python is asked whether someone has interrupted.
const EVERY: Duration = Duration::from_millis(50);

/// Does the work on another thread and waits for it, listening to Ctrl-C; `stop` tells the work of it.
pub fn work<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    job: impl FnOnce(&AtomicBool) -> Result<T> + Send,
) -> PyResult<T> {
    let done = watched::<T, ()>(py, threads, |stop, _| job(stop), |_, ()| Ok(true))?;
    match done {
        (Ok(value), false) => Ok(value),
        // Signals are answered here, not lost.
        (_, true) => Err(exception(Interrupted.into())),
        (Err(error), false) => Err(exception(error)),
    }
}

/// The same for work that tells how it goes: `on_news` hears it, on the thread of Python, and says whether to go on. The second
/// value says whether someone has interrupted.
pub fn watched<T: Send, N: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    job: impl FnOnce(&AtomicBool, Sender<N>) -> Result<T> + Send,
    mut on_news: impl FnMut(Python<'_>, N) -> PyResult<bool>,
) -> PyResult<(Result<T>, bool)> {
    let stop = AtomicBool::new(false);
    let (sender, mut news) = channel();
    let mut interrupted = false;
    let mut failed = None;
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| in_pool(threads, || job(&stop, sender)));
        loop {
            match py.detach(|| wait(&mut news)) {
                Ok(Some(some)) => match on_news(py, some) {
                    Ok(true) => {}
                    Ok(false) => stop.store(true, Ordering::SeqCst),
                    Err(error) => {
                        stop.store(true, Ordering::SeqCst);
                        failed.get_or_insert(error);
                    }
                },
                Ok(None) => {}
                Err(()) => break,
            }
            if py.check_signals().is_err() {
                interrupted = true;
                stop.store(true, Ordering::SeqCst);
            }
        }
        py.detach(|| worker.join())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    match result {
        Ok(result) => Ok((result, interrupted)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// News, nothing for a while, or the end.
fn wait<N: Send>(news: &mut Receiver<N>) -> std::result::Result<Option<N>, ()> {
    match news.recv_timeout(EVERY) {
        Ok(some) => Ok(Some(some)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(()),
    }
}

fn in_pool<T: Send>(threads: Option<usize>, job: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match threads {
        None => job(),
        Some(threads) => {
            const MOST: usize = 1024;
            if threads == 0 || threads > MOST {
                anyhow::bail!("--threads {threads}: between 1 and {MOST}");
            }
            rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(job)
        }
    }
}

/// Has someone asked to stop?
pub fn check(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Interrupted.into()) } else { Ok(()) }
}
