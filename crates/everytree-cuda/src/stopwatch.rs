//! How long every kernel and every matrix product takes on the device: where there is something to gain.
//!
//! Nothing is recorded meanwhile ([`crate::forest`]), so that the device sees one piece of work after the other. What runs beside
//! other work takes longer than it would by itself.

use crate::engine::{Cuda, CudaError, failed};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaStream, DriverError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The time of everything that was started while it ran.
#[derive(Default)]
pub(crate) struct Stopwatch {
    marks: Mutex<Option<Vec<Mark>>>,
}

/// A piece of work, from one moment on a stream to another.
struct Mark {
    name: Cow<'static, str>,
    from: CudaEvent,
    to: CudaEvent,
}

/// What one kind of work took in all.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// The kernel, or the sizes of a matrix product.
    pub name: String,
    /// How often it was started.
    pub times: usize,
    /// In all of them together.
    pub seconds: f64,
}

impl Stopwatch {
    pub fn runs(&self) -> bool {
        self.marks().is_some()
    }

    /// Does some work on a stream, and remembers when it began and ended, if anybody wants to know.
    pub fn during(
        &self,
        stream: &CudaStream,
        name: impl FnOnce() -> Cow<'static, str>,
        work: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        if !self.runs() {
            return work();
        }
        let now = || stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(timing);
        let from = now()?;
        work()?;
        let to = now()?;
        if let Some(marks) = &mut *self.marks() {
            marks.push(Mark { name: name(), from, to });
        }
        Ok(())
    }

    fn marks(&self) -> MutexGuard<'_, Option<Vec<Mark>>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn timing(error: DriverError) -> CudaError {
    failed("taking the time on the GPU", error)
}

/// Which matrix products are alike: of the vertices of a block, of a band, of more.
pub(crate) fn product_name([rows, _, along]: [usize; 3]) -> Cow<'static, str> {
    let size = |count: usize| match count {
        0..=32 => "block",
        33..=128 => "band",
        _ => "matrix",
    };
    Cow::Owned(format!("product: rows of a {}, along a {}", size(rows), size(along)))
}

impl<T> Cuda<T> {
    /// Takes the time of all that is started on the device meanwhile, what took longest first.
    pub fn timed<X>(&self, work: impl FnOnce() -> X) -> Result<(X, Vec<Timed>), CudaError> {
        *self.stopwatch.marks() = Some(Vec::new());
        let done = work();
        let marks = self.stopwatch.marks().take().unwrap_or_default();
        let mut found: BTreeMap<Cow<'static, str>, (usize, f64)> = BTreeMap::new();
        for Mark { name, from, to } in marks {
            let seconds = f64::from(from.elapsed_ms(&to).map_err(timing)?) / 1e3;
            let (times, all) = found.entry(name).or_default();
            *times += 1;
            *all += seconds;
        }
        let mut found: Vec<Timed> = found
            .into_iter()
            .map(|(name, (times, seconds))| Timed { name: name.into_owned(), times, seconds })
            .collect();
        found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Ok((done, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_told_apart_by_their_sizes() {
        assert_eq!(product_name([32, 500, 32]), "product: rows of a block, along a block");
        assert_eq!(product_name([128, 500, 416]), "product: rows of a band, along a matrix");
    }
}
