//! Where the work is done: on the processor, or on a GPU where there is one.

use crate::fit::judge;
use crate::score::CompleteRows;
use anyhow::{Result, bail};
use everytree_core::data::Table;
use everytree_core::forest::{Cpu, ForestError};
use everytree_core::learn::{LearnError, SourceError};
use everytree_core::model::{Model, ModelError};
use everytree_cuda::{Cuda, CudaError, Device, Resident, device_count};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where the work is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On a GPU where there is one and the model is large enough for it, else on the processor.
    #[default]
    Auto,
    /// On the processor.
    Cpu,
    /// On this GPU, or not at all.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| format!("{text:?} is no device: auto, cpu, cuda, or cuda:N")),
        }
    }
}

/// Columns below which `auto` stays on the processor: rows are then small, and getting them to a GPU takes longer than they do.
const WORTH_A_GPU: usize = 128;

/// Where the work is done.
#[derive(Clone, Debug)]
pub enum Machine {
    /// On the processor.
    Cpu,
    /// On a GPU.
    Cuda(Gpu),
}

/// A GPU; its kernels are compiled when they are needed for the first time.
#[derive(Clone)]
pub struct Gpu {
    ordinal: usize,
    device: Device,
    /// May the processor take over if it fails?
    pub(crate) fall_back: bool,
    /// Has it failed, so that the processor has taken over?
    failed: Arc<AtomicBool>,
    single: Opened<f32>,
    double: Opened<f64>,
    /// For whoever asks and does not learn: the same for all, since compiling takes longer than many a table.
    common: Opened<f64>,
}

/// A device whose kernels are compiled when they are needed.
type Opened<T> = Arc<OnceLock<Result<Cuda<T>, CudaError>>>;

/// The devices of [`Gpu::common`], by their numbers.
static COMMON: Mutex<BTreeMap<usize, Opened<f64>>> = Mutex::new(BTreeMap::new());

impl Gpu {
    /// It, in f32.
    pub(crate) fn single(&self) -> Result<&Cuda<f32>, CudaError> {
        self.single.get_or_init(|| Cuda::on(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// It, in f64.
    pub(crate) fn double(&self) -> Result<&Cuda<f64>, CudaError> {
        self.double.get_or_init(|| Cuda::on(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// It, in f64, for questions.
    fn common(&self) -> Result<&Cuda<f64>, CudaError> {
        self.common.get_or_init(|| Cuda::on(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// The processor has taken over.
    pub(crate) fn give_up(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.device.name())
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(gpu) if !gpu.has_failed() => write!(f, "cuda:{}", gpu.ordinal),
            _ => f.write_str("cpu"),
        }
    }
}

impl Machine {
    /// Looks for the device, for a model of so many columns. What `auto` has found is told, unless there is nothing to tell:
    /// no driver, no GPU, or too few columns for one.
    pub fn find(choice: DeviceChoice, columns: usize, note: &dyn Fn(String)) -> Result<Self> {
        let open = |ordinal: usize, fall_back: bool| -> Result<Gpu, CudaError> {
            let device = Device::find(ordinal)?;
            let common = Arc::clone(lock(&COMMON).entry(ordinal).or_default());
            let (failed, single, double) = Default::default();
            Ok(Gpu { ordinal, device, fall_back, failed, single, double, common })
        };
        match choice {
            DeviceChoice::Cpu => Ok(Self::Cpu),
            DeviceChoice::Auto if columns < WORTH_A_GPU || device_count() == 0 => Ok(Self::Cpu),
            DeviceChoice::Auto => match open(0, true) {
                Ok(found) => {
                    note(format!("device: {found:?}"));
                    Ok(Self::Cuda(found))
                }
                Err(error) => {
                    note(format!("device: cpu; {error}"));
                    Ok(Self::Cpu)
                }
            },
            DeviceChoice::Cuda(ordinal) => match open(ordinal, false) {
                Ok(found) => Ok(Self::Cuda(found)),
                Err(error) => bail!("--device cuda:{ordinal}: {error}"),
            },
        }
    }

    /// Computes something in f64, on the device if the model has all trees. If the device fails the processor takes over: what has been
    /// learned is not lost.
    pub(crate) fn in_f64<R>(
        &self,
        model: &Model,
        note: &dyn Fn(String),
        on_gpu: impl FnOnce(&Cuda<f64>) -> Result<R, SourceError>,
        on_cpu: impl FnOnce(&Cpu<f64>) -> Result<R, SourceError>,
    ) -> Result<R, SourceError> {
        if let (Machine::Cuda(gpu), None) = (self, model.structure())
            && !gpu.has_failed()
        {
            let found = match gpu.double() {
                Ok(machine) => on_gpu(machine),
                Err(error) => Err(SourceError::Model(ForestError::Device(error.to_string()).into())),
            };
            match found {
                Err(SourceError::Model(ModelError::Forest(ForestError::Device(why)))) => {
                    note(format!("{why}; the processor goes on"));
                    gpu.give_up();
                }
                found => return found,
            }
        }
        on_cpu(&judge())
    }
}

/// Log-likelihoods of complete rows under a model: on the device that was found, in f64.
pub struct Scorer<'a> {
    model: &'a Model,
    /// The model on the device; nothing once that has failed and the processor has taken over.
    resident: Mutex<Option<Resident<'a, f64>>>,
    fall_back: bool,
    note: &'a (dyn Fn(String) + Sync),
}

impl<'a> Scorer<'a> {
    /// Takes the model to the device, if it has all trees.
    pub fn new(machine: &'a Machine, model: &'a Model, note: &'a (dyn Fn(String) + Sync)) -> Result<Self> {
        let Machine::Cuda(gpu) = machine else {
            return Ok(Self { model, resident: Mutex::new(None), fall_back: true, note });
        };
        let found = match model.structure() {
            Some(_) => Ok(None),
            None => gpu.common().and_then(|gpu| gpu.resident(model.mixture())),
        };
        let resident = match found {
            Ok(Some(resident)) => Some(resident),
            Ok(None) => {
                note(format!("the GPU does not know such models ({}); the processor scores", model.family()));
                None
            }
            Err(error) if gpu.fall_back => {
                note(format!("{error}; the processor goes on"));
                None
            }
            Err(error) => bail!("--device {machine}: {error}"),
        };
        Ok(Self { model, resident: Mutex::new(resident), fall_back: gpu.fall_back, note })
    }

    fn resident(&self) -> MutexGuard<'_, Option<Resident<'a, f64>>> {
        lock(&self.resident)
    }
}

impl CompleteRows for Scorer<'_> {
    fn is_on_device(&self) -> bool {
        self.resident().is_some()
    }

    fn log_p(&self, table: &Table) -> Result<Option<Vec<f64>>> {
        let mut held = self.resident();
        let Some(resident) = held.as_mut() else { return Ok(None) };
        let blocks = self.model.blocks();
        let encoded = blocks.encode(table);
        match resident.log_likelihoods(&encoded) {
            Ok(mut log_p) => {
                for (row, log) in log_p.iter_mut().enumerate() {
                    *log += blocks.log_share(|block| encoded.get(row, block));
                }
                Ok(Some(log_p))
            }
            Err(error) if self.fall_back => {
                (self.note)(format!("{error}; the processor goes on"));
                *held = None;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn lock<X>(mutex: &Mutex<X>) -> MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a device says that has failed, if that is why learning stopped.
pub(crate) fn failed_device(error: &LearnError) -> Option<&str> {
    match error {
        LearnError::Model(ModelError::Forest(ForestError::Device(why)))
        | LearnError::Source(SourceError::Model(ModelError::Forest(ForestError::Device(why)))) => Some(why),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for (text, choice) in [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:3", DeviceChoice::Cuda(3)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
        }
        for text in ["gpu", "cuda:", "cuda:x", ""] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_is_named() {
        if device_count() > 0 {
            return;
        }
        assert!(matches!(Machine::find(DeviceChoice::Auto, 500, &|_| ()).unwrap(), Machine::Cpu));
        let error = Machine::find(DeviceChoice::Cuda(1), 2, &|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("--device cuda:1: there is no"), "{error}");
    }

    #[test]
    fn a_failing_device_is_told_from_other_mistakes() {
        let device = LearnError::Model(ModelError::Forest(ForestError::Device("out of memory".into())));
        assert_eq!(failed_device(&device), Some("out of memory"));
        assert_eq!(failed_device(&LearnError::NoClosedForm), None);
    }
}
