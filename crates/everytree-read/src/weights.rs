//! A square matrix of weights from a CSV file.

use crate::small::small_text;
use everytree_core::memory;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A square matrix with a name for every row.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// From the header, or `x0`, `x1`, … without one.
    pub names: Vec<String>,
    /// Row after row.
    pub values: Vec<f64>,
}

/// Why a file is not a square matrix of weights. Rows and columns are counted from 1, as editors do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be opened or read.
    #[error("{}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system or the CSV reader says.
        problem: String,
    },
    /// There is nothing in it.
    #[error("{}: no rows; expected a square matrix of weights, one row a line", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A row of another length than the first.
    #[error("{}: line {line} has {found} cells where the matrix needs {expected}", path.display())]
    Ragged {
        /// The file.
        path: PathBuf,
        /// Line of the file.
        line: u64,
        /// Cells found.
        found: usize,
        /// Cells needed.
        expected: usize,
    },
    /// Not as many rows as columns.
    #[error("{}: {rows} rows of {columns} cells; a matrix of weights is square", path.display())]
    NotSquare {
        /// The file.
        path: PathBuf,
        /// Rows found, without a header.
        rows: usize,
        /// Cells of each.
        columns: usize,
    },
    /// A cell that is not a number.
    #[error("{}: line {line}, column {column}: '{cell}' is not a number", path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// Line of the file.
        line: u64,
        /// Column.
        column: usize,
        /// What is there.
        cell: String,
    },
}

/// Reads a square matrix of comma-separated numbers. A first line in which no cell is a number is a header of names.
pub fn read_weights(path: &Path) -> Result<Weights, WeightsError> {
    let unreadable = |problem: String| WeightsError::Unreadable { path: path.to_owned(), problem };
    // A cell has two bytes at least, and takes many times as much.
    let file = small_text(path, memory::limit() / 16).map_err(|error| unreadable(error.to_string()))?;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(file);
    let mut names: Option<Vec<String>> = None;
    let mut values = Vec::new();
    let (mut rows, mut columns) = (0, 0);
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(plain(&error)))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells: Vec<Option<f64>> = record.iter().map(|cell| cell.parse().ok()).collect();
        if columns == 0 {
            columns = cells.len();
            if cells.iter().all(Option::is_none) {
                names = Some(record.iter().map(str::to_owned).collect());
                continue;
            }
        }
        if cells.len() != columns {
            return Err(WeightsError::Ragged {
                path: path.to_owned(),
                line,
                found: cells.len(),
                expected: columns,
            });
        }
        for (column, cell) in cells.into_iter().enumerate() {
            let cell = cell.ok_or_else(|| WeightsError::NotANumber {
                path: path.to_owned(),
                line,
                column: column + 1,
                cell: record[column].to_owned(),
            })?;
            values.push(cell);
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(WeightsError::Empty { path: path.to_owned() });
    }
    if rows != columns {
        return Err(WeightsError::NotSquare { path: path.to_owned(), rows, columns });
    }
    let names = names.unwrap_or_else(|| (0..columns).map(|v| format!("x{v}")).collect());
    Ok(Weights { names, values })
}

/// What went wrong, without the place, which the message names anyway.
fn plain(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Io(error) => error.to_string(),
        csv::ErrorKind::Utf8 { pos, .. } => {
            format!("line {} is not UTF-8 text", pos.as_ref().map_or(0, csv::Position::line))
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Weights, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.csv");
        std::fs::write(&path, bytes).unwrap();
        let shown = path.display().to_string();
        read_weights(&path).map_err(|error| error.to_string().replace(&shown, "w.csv"))
    }

    #[test]
    fn reads_with_and_without_names() {
        let weights = read(b"a, b\n0, 1.5\n1.5, 0\n").unwrap();
        assert_eq!(weights.names, ["a", "b"]);
        assert_eq!(weights.values, [0.0, 1.5, 1.5, 0.0]);
        assert_eq!(read(b"0,1\r\n1e-3,0").unwrap().names, ["x0", "x1"]);
        assert_eq!(read(b"7").unwrap().values, [7.0]);
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err();
        assert_eq!(message(b""), "w.csv: no rows; expected a square matrix of weights, one row a line");
        assert_eq!(message(b"a,b\n"), "w.csv: no rows; expected a square matrix of weights, one row a line");
        assert_eq!(message(b"0,1\n1,0,3\n"), "w.csv: line 2 has 3 cells where the matrix needs 2");
        assert_eq!(message(b"0,1,2\n1,0,3\n"), "w.csv: 2 rows of 3 cells; a matrix of weights is square");
        assert_eq!(message(b"a,b\n0,1\n1,zero\n"), "w.csv: line 3, column 2: 'zero' is not a number");
        assert_eq!(message(b"0,\n,0\n"), "w.csv: line 1, column 2: '' is not a number");
        assert_eq!(message(b"0,1\n\xff,0\n"), "w.csv: line 2 is not UTF-8 text");
        let missing = read_weights(Path::new("no/such/file.csv")).unwrap_err().to_string();
        assert!(missing.starts_with("no/such/file.csv: No such file"), "{missing}");
        assert!(read_weights(Path::new(".")).is_err());
    }
}
