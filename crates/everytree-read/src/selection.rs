//! Which columns of a table a model has, by names and patterns.

use everytree_core::data::fits;
use everytree_core::data::scan::ScanError;

/// Columns that are looked at, and columns that tell rows apart. Names may have `*` for anything and `?` for one character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these; none: all.
    pub columns: Vec<String>,
    /// Not these.
    pub drop: Vec<String>,
    /// Not these either, but they go with the rows into scores, samples and imputed files.
    pub ids: Vec<String>,
}

impl Selection {
    /// Is every column looked at?
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Is a column looked at?
    pub fn takes(&self, name: &str) -> bool {
        let among = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        (self.columns.is_empty() || among(&self.columns)) && !among(&self.drop) && !self.is_id(name)
    }

    /// Does a column tell rows apart?
    pub fn is_id(&self, name: &str) -> bool {
        self.ids.iter().any(|pattern| fits(pattern, name))
    }

    /// Is there a column for every name and pattern?
    pub(crate) fn check(&self, names: &[String]) -> Result<(), ScanError> {
        let lists = [("columns", &self.columns), ("drop", &self.drop), ("id", &self.ids)];
        for (option, patterns) in lists {
            let fitting = |pattern: &String| names.iter().any(|name| fits(pattern, name));
            if let Some(column) = patterns.iter().find(|pattern| !fitting(pattern)) {
                // Names of a model and of a file, of which most are the same.
                let mut known: Vec<String> = Vec::new();
                names.iter().filter(|name| !name.is_empty()).for_each(|name| {
                    if !known.contains(name) {
                        known.push(name.clone());
                    }
                });
                return Err(ScanError::NoSuchColumn { option, column: column.clone(), known });
            }
        }
        Ok(())
    }
}
