//! Families by the names of the registry.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use everytree_core::model::Family;
use std::ffi::OsStr;

/// A family by name; help and errors list those of the registry.
#[derive(Clone, Copy)]
pub struct FamilyParser;

impl TypedValueParser for FamilyParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let name = value.to_string_lossy().into_owned();
        if Family::preset(&name).is_ok() {
            return Ok(name);
        }
        let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
        if let Some(argument) = argument {
            error.insert(ContextKind::InvalidArg, ContextValue::String(argument.to_string()));
        }
        error.insert(ContextKind::InvalidValue, ContextValue::String(name));
        let names = Family::listed().map(|(_, preset)| preset.name.to_owned()).collect();
        error.insert(ContextKind::ValidValue, ContextValue::Strings(names));
        Err(error)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |(name, summary): (&'static str, &'static str)| PossibleValue::new(name).help(summary);
        Some(Box::new(everytree::families().map(value)))
    }
}
