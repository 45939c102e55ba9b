//! Forests summed on an NVIDIA GPU, behind the door of [`everytree_core::forest::Backend`]; and whole steps of learning and whole
//! evaluations of both families of all trees and of hidden trees, behind that of [`everytree_core::learn::Engine`].
//!
//! Nothing of CUDA is needed to build this, and nothing is linked: the driver, the run-time compiler and cuBLAS are looked for
//! when [`Cuda::open`] is called, and the kernels are compiled for the device that is found.

mod backend;
mod engine;
mod forest;
mod hidden;
mod launch;
mod mixture;
mod optimiser;
mod real;
mod space;
mod steps;
mod stopwatch;

pub use backend::{Prepared, Trace};
pub use engine::{Crowd, Cuda, CudaError, Device, device_count};
pub use mixture::Resident;
pub use real::CudaReal;
pub use stopwatch::Timed;
