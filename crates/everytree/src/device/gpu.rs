//! A GPU, found at run time; and who takes over when it fails.

use super::{Compute, DeviceChoice, failed_device};
use crate::error::Kind;
use crate::fit::Precision;
use crate::{Error, Result};
use everytree_core::data::Table;
use everytree_core::forest::ForestError;
use everytree_core::learn::{Datasets, Ended, LearnError, Search, SearchObserver, SourceError};
use everytree_core::model::{ENSEMBLE, Member, ModelError, Settings, Trees};
use everytree_cuda::{Cuda, CudaError, Resident, device_count};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Columns below which `auto` stays on the CPU: rows are then small, and getting them to a GPU takes longer than they do.
const WORTH_A_GPU: usize = 128;

/// Where the work is done.
#[derive(Clone, Debug)]
pub(crate) enum Device {
    /// On the CPU.
    Cpu,
    /// On a GPU.
    Cuda(Gpu),
}

/// A GPU; its kernels are compiled when they are needed for the first time.
#[derive(Clone)]
pub(crate) struct Gpu {
    ordinal: usize,
    device: everytree_cuda::Device,
    /// May the CPU take over if it fails?
    fall_back: bool,
    /// Has it failed, so that the CPU has taken over?
    failed: Arc<AtomicBool>,
    single: Opened<f32>,
    double: Opened<f64>,
    /// For whoever asks and does not learn: the same for all, since compiling takes longer than many a table.
    common: Opened<f64>,
}

/// A device whose kernels are compiled when they are needed.
type Opened<T> = Arc<OnceLock<std::result::Result<Cuda<T>, CudaError>>>;

/// The devices of [`Gpu::common`], by their numbers.
static COMMON: Mutex<BTreeMap<usize, Opened<f64>>> = Mutex::new(BTreeMap::new());

impl Gpu {
    /// It, in f32.
    fn single(&self) -> std::result::Result<&Cuda<f32>, CudaError> {
        self.single.get_or_init(|| Cuda::on(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// It, in f64.
    fn double(&self) -> std::result::Result<&Cuda<f64>, CudaError> {
        self.double.get_or_init(|| Cuda::on(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// It, in f64, for questions.
    fn common(&self) -> std::result::Result<&Cuda<f64>, CudaError> {
        self.common.get_or_init(|| Cuda::on(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// The CPU has taken over.
    fn give_up(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.device.name())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(gpu) if !gpu.has_failed() => write!(f, "cuda:{}", gpu.ordinal),
            _ => f.write_str("cpu"),
        }
    }
}

/// Is there anything for a GPU to do: sums over all trees, messages of latent variables?
fn is_known(trees: Trees) -> bool {
    matches!(trees, Trees::All | Trees::OneLatent)
}

/// An error of a device, as the engine has it.
fn device_error(error: &CudaError) -> ModelError {
    ForestError::Device(error.to_string()).into()
}

impl Device {
    /// Looks for the device, for a model of so many columns. What `auto` has found is told, unless there is nothing to tell:
    /// no driver, no GPU, or too few columns for one.
    pub fn find(choice: DeviceChoice, columns: usize, note: &dyn Fn(String)) -> Result<Self> {
        let open = |ordinal: usize, fall_back: bool| -> std::result::Result<Gpu, CudaError> {
            let device = everytree_cuda::Device::find(ordinal)?;
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
                Err(error) => Err(Error::option("device", choice, error.to_string())),
            },
        }
    }

    /// The GPU, if there is one that has not failed, for families that have something to do for it.
    fn gpu(&self, trees: Trees) -> Option<&Gpu> {
        match self {
            Self::Cuda(gpu) if is_known(trees) && !gpu.has_failed() => Some(gpu),
            _ => None,
        }
    }

    /// Goes on with a search on the GPU, steps in a precision and validation in f64; nothing if the CPU is to do it, because there is
    /// no GPU for it, or because it failed and may be replaced.
    pub fn learn(
        &self,
        search: &mut Search,
        data: Datasets<'_>,
        (settings, precision): (&Settings, Precision),
        note: &dyn Fn(String),
        observer: &mut dyn SearchObserver,
    ) -> Option<std::result::Result<Ended, LearnError>> {
        let gpu = self.gpu(search.plan.start.family.spec().trees)?;
        let mut run = || {
            let failed = |error: CudaError| LearnError::Model(device_error(&error));
            let double = gpu.double().map_err(failed)?;
            match precision {
                Precision::F32 => search.run(data, settings, gpu.single().map_err(failed)?, double, observer),
                Precision::F64 => search.run(data, settings, double, double, observer),
            }
        };
        let ended = run();
        if let Err(error) = &ended
            && gpu.fall_back
            && let Some(why) = failed_device(error)
        {
            // What was learned until the last epoch is kept, and goes on from there.
            note(format!("{why}; going on on the CPU"));
            gpu.give_up();
            return None;
        }
        Some(ended)
    }

    /// Computes something in f64, on the GPU if it knows such models. If the GPU fails the CPU takes over: what has been
    /// learned is not lost.
    pub fn compute<C: Compute>(
        &self,
        model: &Member,
        note: &dyn Fn(String),
        what: &C,
    ) -> std::result::Result<C::Output, SourceError> {
        if let Some(gpu) = self.gpu(model.family().spec().trees) {
            let found = match gpu.double() {
                Ok(backend) => what.on(backend),
                Err(error) => Err(device_error(&error).into()),
            };
            match found {
                Err(SourceError::Model(ModelError::Forest(ForestError::Device(why)))) => {
                    note(format!("{why}; the CPU goes on"));
                    gpu.give_up();
                }
                found => return found,
            }
        }
        what.on(&what.cpu())
    }

    /// The same in f32, if the GPU does it.
    pub fn compute_single<C: Compute>(&self, model: &Member, what: &C) -> Option<C::Output> {
        let gpu = self.gpu(model.family().spec().trees)?;
        gpu.single().ok().and_then(|backend| what.on(backend).ok())
    }
}

/// Log-likelihoods of complete rows under a model: on the device that was found, in f64.
pub(crate) struct Scorer<'a> {
    member: Option<&'a Member>,
    /// The model on the device; nothing once that has failed and the CPU has taken over.
    resident: Mutex<Option<Resident<'a, f64>>>,
    fall_back: bool,
    note: &'a (dyn Fn(String) + Sync),
}

impl<'a> Scorer<'a> {
    /// Takes the one member of a model to the device, if that knows its family.
    pub fn new(
        device: &'a Device,
        member: Option<&'a Member>,
        note: &'a (dyn Fn(String) + Sync),
    ) -> Result<Self> {
        let Device::Cuda(gpu) = device else {
            return Ok(Self { member, resident: Mutex::new(None), fall_back: true, note });
        };
        let found = match member {
            Some(member) if is_known(member.family().spec().trees) => {
                gpu.common().and_then(|gpu| gpu.resident(member.mixture()))
            }
            _ => Ok(None),
        };
        let resident = match found {
            Ok(Some(resident)) => Some(resident),
            Ok(None) => {
                let what = member.map_or(ENSEMBLE, Member::family_name);
                note(format!("the GPU does not know such models ({what}); the CPU scores"));
                None
            }
            Err(error) if gpu.fall_back => {
                note(format!("{error}; the CPU goes on"));
                None
            }
            Err(error) => return Err(Error::option("device", device, error.to_string())),
        };
        Ok(Self { member, resident: Mutex::new(resident), fall_back: gpu.fall_back, note })
    }

    fn resident(&self) -> MutexGuard<'_, Option<Resident<'a, f64>>> {
        lock(&self.resident)
    }
}

impl Scorer<'_> {
    /// Is there a GPU at work?
    pub fn is_on_device(&self) -> bool {
        self.resident().is_some()
    }

    /// The log-likelihood of every row, NaN where it is in doubt; nothing if all is left to the CPU.
    pub fn log_p(&self, table: &Table) -> Result<Option<Vec<f64>>> {
        let mut held = self.resident();
        let (Some(resident), Some(member)) = (held.as_mut(), self.member) else { return Ok(None) };
        let blocks = member.blocks();
        let encoded = blocks.encode(table);
        match resident.log_likelihoods(&encoded) {
            Ok(mut log_p) => {
                for (row, log) in log_p.iter_mut().enumerate() {
                    *log += blocks.log_share(|block| encoded.get(row, block));
                }
                Ok(Some(log_p))
            }
            Err(error) if self.fall_back => {
                (self.note)(format!("{error}; the CPU goes on"));
                *held = None;
                Ok(None)
            }
            Err(error) => Err(Kind::Device(error.to_string()).into()),
        }
    }
}

fn lock<X>(mutex: &Mutex<X>) -> MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
