//! Work that is recorded once and started at once from then on: a step of some rows is hundreds of small kernels, and starting them
//! takes longer than many of them run.

use crate::engine::{Cuda, CudaError};
use crate::real::CudaReal;
use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

/// Recordings that are kept.
const MOST_RECORDS: usize = 24;

/// Work as it was started once: with the same rows in the same places it is the same again.
pub(super) struct Record {
    places: Vec<u64>,
    graph: Option<Graph>,
}

/// A recording of what streams do.
struct Graph(CudaGraph);

// SAFETY: nobody but the owner of the space that it is part of touches it, and he needs all of it to himself.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl<T: CudaReal> Cuda<T> {
    /// Does some work, or has it done again as it was recorded. Work that is met for the second time is recorded; where that does not
    /// work, it is done as ever.
    pub(super) fn record(
        &self,
        records: Option<&mut Vec<Record>>,
        places: Vec<u64>,
        mut work: impl FnMut() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let Some(records) = records.filter(|_| !self.stopwatch.runs()) else { return work() };
        let Some(place) = records.iter().position(|record| record.places == places) else {
            if records.len() == MOST_RECORDS {
                records.remove(0);
            }
            records.push(Record { places, graph: None });
            return work();
        };
        if records[place].graph.is_none() {
            records[place].graph = self.recorded(&mut work);
        }
        let started = records[place].graph.as_ref().map(|graph| graph.0.launch());
        match started {
            Some(Ok(())) => Ok(()),
            _ => work(),
        }
    }

    /// Work as a recording, without doing it.
    fn recorded(&self, work: &mut dyn FnMut() -> Result<(), CudaError>) -> Option<Graph> {
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).ok()?;
        let done = work();
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        done.ok()?;
        graph.ok()?.map(Graph)
    }
}
