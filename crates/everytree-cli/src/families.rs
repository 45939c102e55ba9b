//! Families by the names of the registry.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
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
        // In the words of any other list of values.
        let listed = PossibleValuesParser::new(Family::listed().map(|(_, preset)| preset.name));
        listed.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |(name, summary): (&'static str, &'static str)| PossibleValue::new(name).help(summary);
        Some(Box::new(everytree::families().map(value)))
    }
}
