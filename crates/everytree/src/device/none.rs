//! A build without GPUs: everything is done on the CPU.

use super::{Compute, DeviceChoice};
use crate::fit::Precision;
use crate::{Error, Result};
use everytree_core::data::Table;
use everytree_core::learn::{Datasets, Ended, LearnError, Search, SearchObserver, SourceError};
use everytree_core::model::{Member, Settings};
use std::fmt;

/// The CPU.
#[derive(Clone, Debug)]
pub(crate) struct Device;

impl Device {
    pub fn find(choice: DeviceChoice, _: usize, _: &dyn Fn(String)) -> Result<Self> {
        match choice {
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(Self),
            DeviceChoice::Cuda(_) => {
                Err(Error::option("device", choice, "this build was made without the feature \"cuda\""))
            }
        }
    }

    /// Nothing: the CPU learns.
    pub fn learn(
        &self,
        _: &mut Search,
        _: Datasets<'_>,
        _: (&Settings, Precision),
        _: &dyn Fn(String),
        _: &mut dyn SearchObserver,
    ) -> Option<std::result::Result<Ended, LearnError>> {
        None
    }

    /// In f64.
    pub fn compute<C: Compute>(
        &self,
        _: &Member,
        _: &dyn Fn(String),
        what: &C,
    ) -> std::result::Result<C::Output, SourceError> {
        what.on(&what.cpu())
    }

    /// Nothing: the CPU computes.
    pub fn compute_single<C: Compute>(&self, _: &Member, _: &C) -> Option<C::Output> {
        None
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cpu")
    }
}

/// Nobody: the CPU scores.
pub(crate) struct Scorer;

impl Scorer {
    pub fn new<'a>(_: &'a Device, _: Option<&'a Member>, _: &'a (dyn Fn(String) + Sync)) -> Result<Self> {
        Ok(Self)
    }

    pub fn is_on_device(&self) -> bool {
        false
    }

    pub fn log_p(&self, _: &Table) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }
}
