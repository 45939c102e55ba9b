//! Work beside Python: the interpreter is let go, threads are as many as were asked for, and Ctrl-C is heard.

use crate::errors::{exception, exception_of, internal};
use everytree::Result;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often Python is asked whether someone has interrupted.
const EVERY: Duration = Duration::from_millis(50);

/// What is raised when Ctrl-C was pressed and there is nothing to return.
pub const INTERRUPTED: fn() -> PyErr = || PyKeyboardInterrupt::new_err(());

/// Does the work on another thread and waits for it, listening to Ctrl-C; `stop` tells the work of it.
pub fn work<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    job: impl FnOnce(&AtomicBool) -> Result<T> + Send,
) -> PyResult<T> {
    let done = watched::<T, ()>(py, threads, |stop, _| job(stop), |_, ()| Ok(()))?;
    match done {
        (Ok(value), false) => Ok(value),
        // Signals are answered here, not lost.
        (_, true) => Err(INTERRUPTED()),
        (Err(error), false) => Err(exception(error)),
    }
}

/// The same for work on rows, which tells how many are done; `on_rows` hears it, with how many there are, now and then.
pub fn work_on_rows<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    (on_rows, of): (Option<Py<PyAny>>, u64),
    job: impl FnOnce(&AtomicBool, &(dyn Fn(u64) + Sync)) -> Result<T> + Send,
) -> PyResult<T> {
    let done = watched::<T, u64>(
        py,
        threads,
        |stop, news| {
            let last = AtomicU64::new(0);
            let begin = Instant::now();
            let heard = on_rows.is_some();
            let tell = move |rows: u64| {
                let now = begin.elapsed().as_millis() as u64;
                // Ten times a second, and nobody waits for it.
                if heard && now >= last.load(Ordering::Relaxed) + 100 {
                    last.store(now, Ordering::Relaxed);
                    let _ = news.send(rows);
                }
            };
            job(stop, &tell)
        },
        |py, rows| match &on_rows {
            Some(on_rows) => on_rows.call1(py, (rows, of)).map(drop),
            None => Ok(()),
        },
    )?;
    match done {
        (Ok(value), false) => Ok(value),
        (_, true) => Err(INTERRUPTED()),
        (Err(error), false) => Err(exception(error)),
    }
}

/// The same for work that tells how it goes: `on_news` hears it, on the thread of Python. The second value says whether someone
/// has interrupted, here or while news were heard; whatever else a handler of signals or a listener raises is raised.
pub fn watched<T: Send, N: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    job: impl FnOnce(&AtomicBool, Sender<N>) -> Result<T> + Send,
    mut on_news: impl FnMut(Python<'_>, N) -> PyResult<()>,
) -> PyResult<(Result<T>, bool)> {
    let pool = threads_of(threads)?;
    let stop = AtomicBool::new(false);
    let (sender, mut news) = channel();
    let mut raised = Raised::default();
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| pool.install(|| job(&stop, sender)));
        loop {
            match py.detach(|| wait(&mut news)) {
                // Nobody is told anything any more once something was raised.
                Ok(Some(some)) if raised.nothing() => raised.take(py, on_news(py, some), &stop),
                Ok(_) => {}
                Err(()) => break,
            }
            raised.take(py, py.check_signals(), &stop);
        }
        py.detach(|| worker.join())
    });
    if let Some(error) = raised.failed {
        return Err(error);
    }
    match result {
        Ok(result) => Ok((result, raised.interrupted)),
        Err(panic) => Err(internal(&*panic)),
    }
}

/// What Python has raised meanwhile.
#[derive(Default)]
struct Raised {
    interrupted: bool,
    failed: Option<PyErr>,
}

impl Raised {
    fn nothing(&self) -> bool {
        !self.interrupted && self.failed.is_none()
    }

    /// An interrupt asks for an orderly end, anything else for an exception.
    fn take(&mut self, py: Python<'_>, result: PyResult<()>, stop: &AtomicBool) {
        if let Err(error) = result {
            stop.store(true, Ordering::SeqCst);
            match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                true => self.interrupted = true,
                false => drop(self.failed.get_or_insert(error)),
            }
        }
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

/// As many threads as were asked for, or those of this process.
fn threads_of(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    const MOST: usize = 1024;
    match threads {
        None => all_threads(),
        Some(threads) if (1..=MOST).contains(&threads) => pool(threads),
        Some(threads) => Err(exception_of(&format!("`threads = {threads}`: between 1 and {MOST}"))),
    }
}

/// The threads of this process. Those of a parent do not come along when a process forks, and waiting for them would never end.
fn all_threads() -> PyResult<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let mut kept = POOL.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((process, pool)) = &*kept
        && *process == std::process::id()
    {
        return Ok(Arc::clone(pool));
    }
    let pool = pool(0)?;
    // The parent's is left alone: dropping it would wait for its threads.
    std::mem::forget(kept.replace((std::process::id(), Arc::clone(&pool))));
    Ok(pool)
}

/// So many threads; 0: one for each core.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Arc::new).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
