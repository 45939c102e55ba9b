//! The device: found, named, and given its kernels.

use crate::launch::{self, Kernel};
use crate::real::{CudaReal, Products, ProductsArgument};
use crate::space::{Memory, Staging};
use crate::stopwatch::{Stopwatch, product_name};
use cudarc::cublas::CudaBlas;
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use everytree_core::forest::Tables;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Why there is no device to work on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no driver.
    #[error("there is no NVIDIA driver on this gpu")]
    NoDriver,
    /// A library is missing.
    #[error("{0} is not installed: the CUDA toolkit of the driver has it")]
    NoLibrary(&'static str),
    /// There is no such device.
    #[error("there is no GPU number {ordinal}: the driver knows {count}")]
    NoDevice {
        /// Which was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The device cannot run the kernels.
    #[error("{name} is too old (compute capability {major}.{minor}): at least 6.0 is needed")]
    TooOld {
        /// Its name.
        name: String,
        /// Its generation.
        major: i32,
        /// And version.
        minor: i32,
    },
    /// There is not enough memory.
    #[error("the GPU has no {megabytes} MB more of memory; try a smaller `batch_size`, or `device = cpu`")]
    OutOfMemory {
        /// How much was asked for.
        megabytes: usize,
    },
    /// More states than kernels can count pairs of.
    #[error("all variables together have {states} states: the GPU takes at most {most}; try `device = cpu`")]
    TooManyStates {
        /// How many there are.
        states: usize,
        /// How many there may be.
        most: usize,
    },
    /// Something else.
    #[error("{what}: {why}")]
    Failed {
        /// What was being done.
        what: &'static str,
        /// What the system says.
        why: String,
    },
}

pub(crate) fn failed(what: &'static str, why: impl Display) -> CudaError {
    CudaError::Failed { what, why: why.to_string() }
}

/// How many devices there are; none without a driver.
pub fn device_count() -> usize {
    // SAFETY: only looks for a library.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return 0;
    }
    CudaContext::device_count().map_or(0, |count| count.max(0) as usize)
}

/// The kernels, in the order in which they build upon each other.
pub(crate) const SOURCE: &str = concat!(
    include_str!("kernels/common.cu"),
    include_str!("kernels/rows.cu"),
    include_str!("kernels/blocks.cu"),
    include_str!("kernels/eliminate.cu"),
    include_str!("kernels/backward.cu"),
    include_str!("kernels/counts.cu"),
    include_str!("kernels/moat.cu"),
    include_str!("kernels/directed.cu"),
    include_str!("kernels/hidden.cu"),
    include_str!("kernels/step.cu"),
);

/// Streams of work: large products of some rows hide the small steps of others.
pub(crate) const LANES: usize = 3;

/// A stream of work, and matrix products on it.
pub(crate) struct Lane {
    pub stream: Arc<CudaStream>,
    blas: CudaBlas,
}

/// A GPU, as a gpu that sums forests.
pub struct Cuda<T> {
    /// Where everything happens in order.
    pub(crate) stream: Arc<CudaStream>,
    /// The same stream, and others beside it for what need not wait.
    pub(crate) lanes: Vec<Lane>,
    kernels: BTreeMap<&'static str, CudaFunction>,
    name: String,
    /// Multiprocessors.
    pub(crate) processors: usize,
    /// On the way to the device, and back.
    pub(crate) staging: [Mutex<Staging>; 2],
    /// Copies of tables that nobody needs any more: memory that has been touched is worth keeping.
    pub(crate) spare: Arc<Mutex<Vec<Tables>>>,
    pub(crate) most_rows: AtomicUsize,
    pub(crate) stopwatch: Stopwatch,
    precision: PhantomData<T>,
}

/// Memory that nobody else can have: see [`Cuda::crowd`].
#[doc(hidden)]
pub struct Crowd {
    _taken: Vec<Memory>,
}

/// A GPU that has been found, and can do what is needed; nothing is compiled for it yet.
#[derive(Clone, Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    name: String,
    generation: (i32, i32),
}

impl Device {
    /// Looks for a device by its number, and for the libraries that it needs.
    pub fn find(ordinal: usize) -> Result<Self, CudaError> {
        // SAFETY: these only look for libraries.
        unsafe {
            if !cudarc::driver::sys::is_culib_present() {
                return Err(CudaError::NoDriver);
            }
            if !cudarc::nvrtc::sys::is_culib_present() {
                return Err(CudaError::NoLibrary("NVRTC"));
            }
            if !cudarc::cublas::sys::is_culib_present() {
                return Err(CudaError::NoLibrary("cuBLAS"));
            }
        }
        let count =
            CudaContext::device_count().map_err(|error| failed("starting the NVIDIA driver", error))?;
        let count = count.max(0) as usize;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let driver = |error: DriverError| failed("opening the GPU", error);
        let context = CudaContext::new(ordinal).map_err(driver)?;
        let name = context.name().map_err(driver)?;
        let (major, minor) = context.compute_capability().map_err(driver)?;
        if major < 6 {
            return Err(CudaError::TooOld { name, major, minor });
        }
        // SAFETY: what streams do beside each other is ordered by `fork` and `join`.
        unsafe { context.disable_event_tracking() };
        Ok(Self { context, name, generation: (major, minor) })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T: CudaReal> Cuda<T> {
    /// Finds a device by its number, and compiles the kernels for it.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        Self::on(&Device::find(ordinal)?)
    }

    /// Compiles the kernels for a device.
    pub fn on(device: &Device) -> Result<Self, CudaError> {
        let driver = |error: DriverError| failed("opening the GPU", error);
        let Device { context, name, generation: (major, minor) } = device;
        let stream = context.new_stream().map_err(driver)?;
        let mut lanes = Vec::with_capacity(LANES);
        for number in 0..LANES {
            let stream = match number {
                0 => Arc::clone(&stream),
                _ => context.new_stream().map_err(driver)?,
            };
            let blas = CudaBlas::new(Arc::clone(&stream)).map_err(|error| failed("opening cuBLAS", error))?;
            lanes.push(Lane { stream, blas });
        }
        let [real, tiny, huge] = T::NAMES;
        let options = CompileOptions {
            options: vec![
                format!("--gpu-architecture=compute_{major}{minor}"),
                format!("-DREAL={real}"),
                format!("-DTINY={tiny}"),
                format!("-DHUGE_={huge}"),
            ],
            ..CompileOptions::default()
        };
        let code = compile_ptx_with_opts(SOURCE, options)
            .map_err(|error| failed("compiling the kernels", format!("{error:?}")))?;
        let module = context.load_module(code).map_err(driver)?;
        let kernels: Result<_, _> =
            launch::names().map(|name| Ok((name, module.load_function(name).map_err(driver)?))).collect();
        let (staging, spare) = (Default::default(), Default::default());
        let name = name.clone();
        let most_rows = AtomicUsize::new(usize::MAX);
        let stopwatch = Stopwatch::default();
        let kernels = kernels?;
        let precision = PhantomData;
        let processors = context
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(driver)? as usize;
        Ok(Self { stream, lanes, kernels, name, processors, staging, spare, most_rows, stopwatch, precision })
    }

    fn kernel(&self, name: &str) -> Result<&CudaFunction, CudaError> {
        self.kernels.get(name).ok_or_else(|| failed("looking for a kernel", name))
    }

    /// How many thread blocks of a kernel the device has room for at once, with so many threads and so much shared memory each;
    /// none if one takes more shared memory than there is.
    pub(crate) fn thread_blocks(
        &self,
        name: &str,
        threads: usize,
        bytes: usize,
    ) -> Result<Option<usize>, CudaError> {
        let asking = |error: DriverError| failed("asking the GPU what it has room for", error);
        let context = self.stream.context();
        // Functions are asked in the context of the thread that asks, and this may be the first that it does.
        context.bind_to_thread().map_err(asking)?;
        let most = context
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
            .map_err(asking)?;
        if bytes > most as usize {
            return Ok(None);
        }
        let kernel = self.kernel(name)?;
        let allowed = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        kernel.set_attribute(allowed, most).map_err(asking)?;
        let together = kernel
            .occupancy_max_active_blocks_per_multiprocessor(threads as u32, bytes, None)
            .map_err(asking)?;
        Ok(Some(together as usize * self.processors).filter(|&blocks| blocks > 0))
    }

    /// What the device is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of its memory that are free; some, where nobody knows.
    pub(crate) fn free(&self) -> usize {
        self.stream.context().mem_get_info().map_or(1 << 28, |(free, _)| free)
    }

    /// Lets so many rows be worked on together at most: for tests of what happens when memory is short.
    #[doc(hidden)]
    pub fn at_most(&self, rows: usize) {
        self.most_rows.store(rows.max(1), Ordering::Relaxed);
    }

    /// How many may be worked on together: see [`Cuda::at_most`].
    pub(crate) fn most_rows(&self) -> usize {
        self.most_rows.load(Ordering::Relaxed)
    }

    /// Takes all memory of the device but so many bytes, for as long as what comes back is kept: for tests of what happens when memory is
    /// short.
    #[doc(hidden)]
    pub fn crowd(&self, leave: usize) -> Result<Crowd, CudaError> {
        let mut taken = Vec::new();
        // What has been given back is free when all work is done.
        let waiting = |error: DriverError| failed("waiting for the GPU", error);
        self.stream.context().synchronize().map_err(waiting)?;
        // In pieces: what is free need not lie together.
        let mut piece = 1 << 30;
        while piece >= 1 << 20 {
            while self.free() >= leave + piece {
                let mut memory = Memory::default();
                match memory.reserve(&self.stream, piece) {
                    Ok(_) => taken.push(memory),
                    Err(CudaError::OutOfMemory { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
            piece /= 2;
        }
        match self.free() {
            free if free > leave + (64 << 20) => {
                Err(failed("taking the memory of the GPU", format!("{} MB are left", free >> 20)))
            }
            _ => Ok(Crowd { _taken: taken }),
        }
    }

    /// # Safety
    /// From the three addresses on, so many matrices of these shapes and strides are reserved, and stay so until the lane is done.
    pub(crate) unsafe fn products(&self, lane: &Lane, products: Products) -> Result<(), CudaError> {
        if products.shape.contains(&0) {
            return Ok(());
        }
        let binding = |error: DriverError| failed("a matrix product", error);
        lane.stream.context().bind_to_thread().map_err(binding)?;
        let shape = products.shape;
        let work = || {
            // SAFETY: the caller's promise.
            unsafe { T::products(&lane.blas, &ProductsArgument(products)) }
                .map_err(|error| failed("a matrix product", error))
        };
        self.stopwatch.during(&lane.stream, || product_name(shape), work)
    }

    /// Lets all lanes go on from here.
    pub(crate) fn fork(&self) -> Result<(), CudaError> {
        let forking = |error: DriverError| failed("starting work beside work", error);
        self.lanes[1..].iter().try_for_each(|lane| lane.stream.join(&self.stream)).map_err(forking)
    }

    /// Waits for all lanes.
    pub(crate) fn join(&self) -> Result<(), CudaError> {
        let joining = |error: DriverError| failed("waiting for work beside work", error);
        self.lanes[1..].iter().try_for_each(|lane| self.stream.join(&lane.stream)).map_err(joining)
    }

    /// Starts a kernel.
    ///
    /// # Safety
    /// As for [`Cuda::launch_on`].
    pub(crate) unsafe fn launch(&self, kernel: impl Kernel, threads: LaunchConfig) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_on(&self.stream, kernel, threads) }
    }

    /// Starts a kernel on one of the streams.
    ///
    /// # Safety
    /// Every address is 0 where the kernel allows it, or begins as much reserved memory of this device as the kernel reads and
    /// writes there, which stays reserved until the stream is done.
    pub(crate) unsafe fn launch_on(
        &self,
        stream: &Arc<CudaStream>,
        kernel: impl Kernel,
        threads: LaunchConfig,
    ) -> Result<(), CudaError> {
        let arguments = kernel.arguments();
        let mut builder = stream.launch_builder(self.kernel(kernel.name())?);
        for address in arguments.addresses() {
            builder.arg(address);
        }
        for number in arguments.numbers() {
            builder.arg(number);
        }
        // SAFETY: the arguments are those that the source declares (a test of `launch.rs` compares them); memory is the caller's promise.
        let work = || match unsafe { builder.launch(threads) } {
            Ok(_) => Ok(()),
            Err(error) => Err(failed("starting a kernel", error)),
        };
        self.stopwatch.during(stream, || kernel.name().into(), work)
    }

    /// The time of a matrix product of these sizes, for comparison: operations a second.
    pub fn gemm_rate(&self, n: usize, times: usize) -> Result<f64, CudaError> {
        let driver = |error: DriverError| failed("measuring a matrix product", error);
        let a = self.stream.alloc_zeros::<u8>(3 * n * n * size_of::<T>()).map_err(driver)?;
        let base = crate::space::address(&a, &self.stream);
        let bytes = (n * n * size_of::<T>()) as u64;
        let once = || {
            // SAFETY: three matrices of n × n numbers are reserved above.
            unsafe {
                self.products(
                    &self.lanes[0],
                    Products {
                        transposed: [false; 2],
                        shape: [n; 3],
                        a: (base, n, 0),
                        b: (base + bytes, n, 0),
                        c: (base + 2 * bytes, n, 0),
                        add: false,
                        rows: 1,
                    },
                )
            }
        };
        once()?;
        self.stream.synchronize().map_err(driver)?;
        let begin = std::time::Instant::now();
        for _ in 0..times {
            once()?;
        }
        self.stream.synchronize().map_err(driver)?;
        Ok(2.0 * (n as f64).powi(3) * times as f64 / begin.elapsed().as_secs_f64())
    }
}

/// Threads of a kernel.
pub(crate) fn threads(grid: [usize; 3], block: [usize; 2]) -> LaunchConfig {
    let [x, y, z] = grid.map(|size| size as u32);
    LaunchConfig {
        grid_dim: (x, y, z),
        block_dim: (block[0] as u32, block[1] as u32, 1),
        shared_mem_bytes: 0,
    }
}
