//! Two models of the same columns.

use crate::columns::column;
use anyhow::{Result, bail};
use everytree_core::data::Schema;

/// From rows of one schema to rows of another with the same columns and labels, perhaps in another order.
pub struct Translation {
    /// Where each variable of the other schema is in this one.
    places: Vec<usize>,
}

impl Translation {
    /// Where the same columns are.
    pub fn new(from: &Schema, to: &Schema) -> Result<Self> {
        if from.variables.len() != to.variables.len() {
            bail!("the models have {} and {} columns", from.variables.len(), to.variables.len());
        }
        let mut places = Vec::new();
        for other in &to.variables {
            let place = column(from, &other.name)?;
            // Labels are in natural order: the same labels have the same codes.
            if from.variables[place].labels() != other.labels() {
                bail!("column {:?} does not have the same values in both models", other.name);
            }
            places.push(place);
        }
        Ok(Self { places })
    }

    /// A row of the other schema.
    pub fn row(&self, row: &[u16]) -> Vec<u16> {
        self.places.iter().map(|&place| row[place]).collect()
    }
}
