//! Where the work is done: on the CPU, or on a GPU where there is one.

#[cfg_attr(feature = "cuda", path = "device/gpu.rs")]
#[cfg_attr(not(feature = "cuda"), path = "device/none.rs")]
mod gpu;

pub(crate) use gpu::{Device, Scorer};

use everytree_core::forest::{Cpu, ForestError};
use everytree_core::learn::{Engine, LearnError, SourceError};
use everytree_core::model::{Component, Mixture, ModelError};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

/// Where the work is to be done.
///
/// ```
/// use everytree::DeviceChoice;
///
/// assert_eq!("cuda:1".parse(), Ok(DeviceChoice::Cuda(1)));
/// assert!("gpu".parse::<DeviceChoice>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// On a GPU where there is one and the model is large enough for it, else on the CPU.
    #[default]
    Auto,
    /// On the CPU.
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

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl<'de> Deserialize<'de> for DeviceChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Evaluates on the CPU, in f64.
pub(crate) fn evaluator() -> Cpu<f64> {
    Cpu::<f64>::new().keeping(0)
}

/// Something that can be computed on any backend.
pub(crate) trait Compute {
    type Output;

    fn on<E: Engine<Mixture<Component>>>(&self, backend: &E) -> Result<Self::Output, SourceError>;

    /// The backend on the CPU.
    fn cpu(&self) -> Cpu<f64> {
        evaluator()
    }
}

/// What a device says that has failed, if that is why learning stopped.
#[cfg_attr(all(not(feature = "cuda"), not(test)), expect(dead_code, reason = "the CPU does not fail"))]
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
            ("cuda:0", DeviceChoice::Cuda(0)),
            ("cuda:3", DeviceChoice::Cuda(3)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for text in ["gpu", "cuda:", "cuda:x", ""] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn a_gpu_that_is_not_there_is_named() {
        // One more than there are, on any machine.
        let count = everytree_cuda::device_count();
        let error = Device::find(DeviceChoice::Cuda(count), 2, &|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`device = cuda:{count}`: there is no")), "{error}");
        // Few columns are not worth a GPU, and without one there is the CPU.
        assert_eq!(Device::find(DeviceChoice::Auto, 2, &|_| ()).unwrap().to_string(), "cpu");
        if count == 0 {
            assert_eq!(Device::find(DeviceChoice::Auto, 500, &|_| ()).unwrap().to_string(), "cpu");
        }
    }

    #[test]
    fn a_failing_device_is_told_from_other_mistakes() {
        let device = LearnError::Model(ModelError::Forest(ForestError::Device("out of memory".into())));
        assert_eq!(failed_device(&device), Some("out of memory"));
        assert_eq!(failed_device(&LearnError::NoClosedForm), None);
    }
}
