//! The door on the GPU: tables and codes to the device, log F and counts back.

use crate::engine::{Cuda, CudaError, failed};
use crate::forest::{Look, Shape, Space};
use crate::real::CudaReal;
use crate::space::Memory;
use everytree_core::data::Codes;
use everytree_core::forest::{
    Backend, Counts, ForestError, Summary, Tables, check_length, check_weights, one_row,
};
use everytree_core::spanning::Kind;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Tables on the device.
pub struct Prepared<T> {
    /// The rates as they were given, for rows that the device cannot vouch for.
    tables: Kept,
    device: Result<OnDevice, CudaError>,
    /// What scaling the rates takes from every log F.
    log_scale: f64,
    number: u64,
    precision: std::marker::PhantomData<T>,
}

/// Tables as the device has them.
struct OnDevice {
    /// Rates, and where the states of each variable begin.
    places: [u64; 2],
    /// Whose those places are.
    _held: [Memory; 2],
    /// Decided once: backward goes where forward went.
    shape: Shape,
}

/// A copy of tables that goes back where it came from.
struct Kept {
    tables: Option<Tables>,
    spare: Arc<Mutex<Vec<Tables>>>,
}

impl Kept {
    fn copy(tables: &Tables, spare: &Arc<Mutex<Vec<Tables>>>) -> Self {
        // Nobody waits for others with a lock in his hands: copying is shared among threads, and those take up other work meanwhile.
        let same = {
            let mut kept = lock(spare);
            // Other models, other tables.
            kept.truncate(MOST_SPARE);
            let same = kept.iter().position(|other| other.is_like(tables));
            same.map(|place| kept.swap_remove(place))
        };
        let copy = match same {
            Some(mut other) => {
                other.copy_from(tables);
                other
            }
            None => tables.clone(),
        };
        Self { tables: Some(copy), spare: Arc::clone(spare) }
    }
}

impl std::ops::Deref for Kept {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        self.tables.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.take() {
            lock(&self.spare).push(tables);
        }
    }
}

/// Bytes that the rows of one trace may take: there may be as many traces as a mixture has components.
const AT_THE_DOOR: usize = 4 << 30;
/// Spare copies that are kept.
const MOST_SPARE: usize = 8;

fn lock<X>(mutex: &Mutex<X>) -> std::sync::MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What is remembered of a batch between forward and backward.
pub struct Trace<T> {
    number: Option<u64>,
    rows: usize,
    /// States of all rows, as places in the tables.
    states: Vec<u16>,
    logs: Vec<f64>,
    doubtful: Vec<usize>,
    /// Rows whose factors are still on the device.
    kept: std::ops::Range<usize>,
    /// Rows that are worked on together.
    at_once: usize,
    on_device: [Memory; 3],
    space: Space,
    precision: std::marker::PhantomData<T>,
}

static PREPARED: AtomicU64 = AtomicU64::new(0);

impl<T: CudaReal> Cuda<T> {
    /// Rows that fit into some of the memory that is free, and into so many bytes, at least one.
    pub(crate) fn rows_at_once(&self, shape: &Shape, most_bytes: usize) -> usize {
        // Others may want some, too. Kernels count rows in 16 bits.
        let bytes = (self.free() / 2).min(most_bytes);
        (bytes / shape.bytes::<T>()).min(65_000).min(self.most_rows.load(Ordering::Relaxed)).max(1)
    }

    /// Factors of these rows, and their log F without the scale.
    fn sweep_forward(
        &self,
        tables: &OnDevice,
        rows: std::ops::Range<usize>,
        trace: &mut Trace<T>,
    ) -> Result<(), CudaError> {
        let Trace { space, states, logs, on_device, .. } = trace;
        let shape = &tables.shape;
        let states = on_device[0].put(&self.stream, &states[rows.start * shape.n..rows.end * shape.n])?;
        // SAFETY: tables are those of the shape, and the states of these rows, all checked, were just put there.
        unsafe { self.eliminate(shape, &tables.look(states), rows.len(), space, true) }?;
        space.logs.get(&self.stream, &mut logs[rows.clone()])?;
        trace.kept = rows;
        Ok(())
    }

    /// Hands on the counts of the rows whose factors are on the device, each times its weight; whether each row may be vouched for.
    fn sweep_backward(
        &self,
        tables: &OnDevice,
        weights: &[T],
        trace: &mut Trace<T>,
        add: impl FnOnce(&[f64]),
    ) -> Result<Vec<u8>, CudaError> {
        let (stream, shape) = (&self.stream, &tables.shape);
        let entries = shape.total * shape.total;
        let [states, on_weights, on_counts] = &mut trace.on_device;
        let look = tables.look(states.reserve(stream, 0)?);
        let on_weights = on_weights.put(stream, weights)?;
        let place = on_counts.clear(stream, entries * 8)?;
        // SAFETY: the rows were eliminated into that space; weights are as many, counts as large as the tables.
        unsafe { self.backward_pass(shape, &look, weights.len(), &mut trace.space, on_weights, place) }?;
        // Not with a lock in hand; see `Kept::copy`.
        let mut staging = std::mem::take(&mut *lock(&self.staging[1]));
        let found = staging.numbers::<f64>(stream, entries)?;
        on_counts.get(stream, found)?;
        add(found);
        *lock(&self.staging[1]) = staging;
        let mut trusted = vec![0u8; weights.len()];
        trace.space.trusted.get(stream, &mut trusted)?;
        Ok(trusted)
    }
}

impl OnDevice {
    fn look(&self, states: u64) -> Look {
        let [rates, offsets] = self.places;
        Look { rates, offsets, states, places: 0, prior: None }
    }
}

fn device(error: CudaError) -> ForestError {
    ForestError::Device(error.to_string())
}

impl<T: CudaReal> Backend for Cuda<T> {
    const SINGLE: bool = size_of::<T>() == size_of::<f32>();
    type Prepared = Prepared<T>;
    type Trace = Trace<T>;

    fn prepare(&self, tables: &Tables) -> Prepared<T> {
        let (exponent, scale) = tables.scale();
        let n = tables.variables();
        let on_device = || {
            let shape = Shape::new(self, tables.kind(), n, tables.offsets()[n])?;
            let offsets: Vec<i32> = tables.offsets().iter().map(|&offset| offset as i32).collect();
            let mut held = [Memory::default(), Memory::default()];
            // Not with a lock in hand; see `Kept::copy`.
            let mut staging = std::mem::take(&mut *lock(&self.staging[0]));
            let rates = staging.numbers::<T>(&self.stream, tables.rates().len())?;
            const SOME: usize = 1 << 14;
            rates.par_chunks_mut(SOME).zip(tables.rates().par_chunks(SOME)).for_each(|(to, from)| {
                to.iter_mut().zip(from).for_each(|(to, &rate)| *to = T::from_f64(rate * scale.0 * scale.1));
            });
            let places = [held[0].put(&self.stream, rates)?, held[1].put(&self.stream, &offsets)?];
            self.stream.synchronize().map_err(|error| failed("copying to the GPU", error))?;
            *lock(&self.staging[0]) = staging;
            Ok(OnDevice { places, _held: held, shape })
        };
        let size = tables.kind().indices(n);
        Prepared {
            tables: Kept::copy(tables, &self.spare),
            device: on_device(),
            log_scale: (size - 1) as f64 * f64::from(exponent) * std::f64::consts::LN_2,
            number: PREPARED.fetch_add(1, Ordering::Relaxed),
            precision: std::marker::PhantomData,
        }
    }

    fn trace(&self) -> Trace<T> {
        Trace {
            number: None,
            rows: 0,
            states: Vec::new(),
            logs: Vec::new(),
            doubtful: Vec::new(),
            kept: 0..0,
            at_once: 0,
            on_device: Default::default(),
            space: Space::default(),
            precision: std::marker::PhantomData,
        }
    }

    fn forward(
        &self,
        tables: &Prepared<T>,
        codes: Codes<'_>,
        trace: &mut Trace<T>,
        log_forest: &mut [f64],
    ) -> Result<Summary, ForestError> {
        trace.number = None;
        let on_device = tables.device.as_ref().map_err(|error| device(error.clone()))?;
        let offsets = tables.tables.offsets();
        codes.check(offsets)?;
        let rows = codes.rows();
        check_length("log_forest", log_forest.len(), rows)?;
        let n = tables.tables.variables();
        trace.rows = rows;
        trace.states.resize(rows * n, 0);
        trace.states.par_chunks_mut(n).enumerate().for_each(|(row, states)| {
            states
                .iter_mut()
                .enumerate()
                .for_each(|(v, state)| *state = (offsets[v] + codes.get(row, v)) as u16);
        });
        trace.logs.resize(rows, 0.0);
        trace.kept = 0..0;
        trace.at_once = trace.at_once.max(self.rows_at_once(&on_device.shape, AT_THE_DOOR)).min(rows.max(1));
        let mut first = 0;
        while first < rows {
            let some = first..(first + trace.at_once).min(rows);
            match self.sweep_forward(on_device, some.clone(), trace) {
                // Half of them may fit.
                Err(CudaError::OutOfMemory { .. }) if trace.at_once > 1 => trace.at_once /= 2,
                Err(error) => return Err(device(error)),
                Ok(()) => first = some.end,
            }
        }
        trace.doubtful = (0..rows).filter(|&row| trace.logs[row].is_nan()).collect();
        for (out, log) in log_forest.iter_mut().zip(&trace.logs) {
            *out = log + tables.log_scale;
        }
        let surely: Vec<f64> = trace
            .doubtful
            .par_iter()
            .map(|&row| one_row(&tables.tables, |v| codes.get(row, v), false).0)
            .collect();
        trace.doubtful.iter().zip(surely).for_each(|(&row, log)| log_forest[row] = log);
        let impossible = (0..rows).filter(|&row| log_forest[row] == f64::NEG_INFINITY).collect();
        trace.number = Some(tables.number);
        Ok(Summary { impossible, recomputed: trace.doubtful.len() })
    }

    fn backward(
        &self,
        tables: &Prepared<T>,
        trace: &mut Trace<T>,
        weights: &[f64],
        counts: &mut Counts,
    ) -> Result<(), ForestError> {
        if trace.number != Some(tables.number) {
            return Err(ForestError::OtherTables { what: "the trace" });
        }
        if !counts.fits(&tables.tables) {
            return Err(ForestError::OtherTables { what: "the accumulator of counts" });
        }
        check_weights(weights, trace.rows)?;
        let on_device = tables.device.as_ref().map_err(|error| device(error.clone()))?;
        let heaviest = weights.iter().fold(0.0f64, |most, weight| most.max(weight.abs()));
        if heaviest == 0.0 {
            return Ok(());
        }
        let mut first = 0;
        while first < trace.rows {
            // Those that are still there, if there were no more: they need not be gone through again.
            let some = first..(first + trace.at_once).min(trace.rows);
            first = some.end;
            if trace.kept != some {
                self.sweep_forward(on_device, some.clone(), trace).map_err(device)?;
            }
            let scaled: Vec<T> =
                weights[some.clone()].iter().map(|weight| T::from_f64(weight / heaviest)).collect();
            let add = |found: &[f64]| counts.add_all(&tables.tables, |place| found[place] * heaviest);
            let trusted = self.sweep_backward(on_device, &scaled, trace, add).map_err(device)?;
            for (row, _) in some.clone().zip(trusted).filter(|(row, fine)| *fine == 0 && weights[*row] != 0.0)
            {
                singly(&tables.tables, &trace.states, row, weights[row], counts);
            }
        }
        Ok(())
    }
}

/// Counts of a row that the device could not vouch for.
fn singly(tables: &Tables, states: &[u16], row: usize, weight: f64, counts: &mut Counts) {
    let (n, offsets) = (tables.variables(), tables.offsets());
    let own = &states[row * n..(row + 1) * n];
    let (_, marginals) = one_row(tables, |v| usize::from(own[v]) - offsets[v], true);
    for v in 0..n {
        let others = if tables.kind() == Kind::Directed { 0..n } else { 0..v };
        for u in others {
            let place = usize::from(own[v]) * offsets[n] + usize::from(own[u]);
            counts.add(place, weight * marginals[v * n + u]);
        }
    }
}
