//! A file of rows, whatever its format.

#[cfg(feature = "parquet")]
use crate::columnar::Columnar;
use crate::error::{Place, Problem, ReadError};
use crate::filled::Fills;
use crate::frame::Source;
use crate::selection::Selection;
#[cfg(feature = "csv")]
use crate::text::Text;
use everytree_core::data::Cell;
use everytree_core::file::{ENOUGH, is_ours};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The longest label, in any format.
pub(crate) const LONGEST_FIELD: usize = 1 << 16;

/// Does a text file begin with the names of its columns?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// See what the training file looks like; later files are like it.
    #[default]
    Auto,
}

/// How text files are to be read, and which columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSettings {
    /// Between fields; else by the name of the file, or by its looks.
    pub delimiter: Option<u8>,
    /// Names in the first line?
    pub header: Header,
    /// Which columns; the others are passed over.
    pub selection: Selection,
}

/// What a column is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Not at all.
    Nothing,
    /// Its values are states.
    States,
    /// Its values tell rows apart, whatever they are.
    Names,
}

impl Use {
    pub fn states_if(wanted: bool) -> Self {
        if wanted { Self::States } else { Self::Nothing }
    }
}

/// A format of files: how its rows are visited, and copied with cells filled in.
pub(crate) trait Format {
    /// The names of the columns, where the format has them.
    fn names(&self) -> Option<&[String]> {
        None
    }

    /// The first line, of text that may or may not be names.
    fn first_line(&self) -> &[String] {
        &[]
    }

    fn columns(&self) -> usize;

    /// Something to try for a file that has only one column.
    fn hint(&self) -> String {
        String::new()
    }

    /// Is a comma in a number more likely to be a decimal comma?
    fn has_decimal_commas(&self) -> bool {
        false
    }

    /// Looks at columns as it is said; those that are not looked at may come as missing cells.
    fn only(&mut self, uses: Vec<Use>) -> Result<(), Problem> {
        let _ = uses;
        Ok(())
    }

    /// Every cell, row by row; of text, those below the first line, rows counted from `first_row`.
    fn visit(
        &mut self,
        first_row: u64,
        on_cell: &mut dyn FnMut(Place, usize, Cell<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem>;

    /// A copy with cells filled in.
    fn copy_filled(
        self: Box<Self>,
        header: bool,
        fills: &mut Fills<'_>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), Problem>;
}

/// An open file.
pub(crate) struct Sheet {
    path: PathBuf,
    body: Box<dyn Format>,
    compressed: bool,
}

impl Sheet {
    pub fn open(source: Source<'_>, settings: &ReadSettings) -> Result<Self, ReadError> {
        #[cfg_attr(
            not(feature = "parquet"),
            expect(clippy::infallible_destructuring_match, reason = "one of two")
        )]
        let path = match source {
            Source::File(path) => path,
            #[cfg(feature = "parquet")]
            Source::Frame(frame) => {
                let path = PathBuf::from(&frame.name);
                let error = |problem| ReadError { file: path.clone(), problem };
                let body = Box::new(Columnar::frame(frame).map_err(error)?);
                return Ok(Self { path, body, compressed: false });
            }
        };
        let mut compressed = false;
        let body = Self::body(path, settings, &mut compressed).map_err(|problem| ReadError {
            file: path.to_owned(),
            problem: if compressed { in_gzip(problem) } else { problem },
        })?;
        Ok(Self { path: path.to_owned(), body, compressed })
    }

    fn body(path: &Path, settings: &ReadSettings, compressed: &mut bool) -> Result<Box<dyn Format>, Problem> {
        let mut file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(Problem::Directory);
        }
        // What a file is, its first bytes say better than its name. A pipe cannot be wound back: it is text.
        let mut magic = Vec::new();
        let seekable = file.stream_position().is_ok();
        if seekable {
            (&mut file).take(ENOUGH as u64).read_to_end(&mut magic)?;
            file.seek(SeekFrom::Start(0))?;
        }
        if is_ours(&magic) {
            return Err(Problem::Model);
        }
        match &magic[..] {
            #[cfg(feature = "parquet")]
            [b'P', b'A', b'R', b'1', ..] => Ok(Box::new(Columnar::parquet(file)?)),
            #[cfg(feature = "parquet")]
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Ok(Box::new(Columnar::arrow(file)?)),
            #[cfg(feature = "parquet")]
            [0xff, 0xff, 0xff, 0xff, ..] => Ok(Box::new(Columnar::arrow_stream(file)?)),
            #[cfg(not(feature = "parquet"))]
            [b'P', b'A', b'R', b'1', ..]
            | [b'A', b'R', b'R', b'O', b'W', b'1', ..]
            | [0xff, 0xff, 0xff, 0xff, ..] => Err(Problem::NotInThisBuild { feature: "parquet" }),
            #[cfg(feature = "csv")]
            [0x1f, 0x8b, ..] => {
                *compressed = true;
                let input = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file));
                Ok(Box::new(Text::open(path, Box::new(input), settings.delimiter)?))
            }
            #[cfg(feature = "csv")]
            _ => Ok(Box::new(Text::open(path, Box::new(file), settings.delimiter)?)),
            #[cfg(not(feature = "csv"))]
            _ => {
                let _ = (settings, compressed);
                Err(Problem::NotInThisBuild { feature: "csv" })
            }
        }
    }

    pub fn into_format(self) -> Box<dyn Format> {
        self.body
    }

    pub fn error(&self, problem: Problem) -> ReadError {
        ReadError { file: self.path.clone(), problem }
    }

    /// The names of the columns, where the format has them.
    pub fn typed_names(&self) -> Option<&[String]> {
        self.body.names()
    }

    /// The first line of a text file.
    pub fn first_line(&self) -> &[String] {
        self.body.first_line()
    }

    /// Can it have no header, whatever it looks like?
    pub fn never_has_a_header(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
        name.strip_suffix(".gz").unwrap_or(&name).ends_with(".data")
    }

    pub fn columns(&self) -> usize {
        self.body.columns()
    }

    /// Something to try for a file that has only one column.
    pub fn hint(&self) -> String {
        self.body.hint()
    }

    /// Is a comma in a number more likely to be a decimal comma?
    pub fn has_decimal_commas(&self) -> bool {
        self.body.has_decimal_commas()
    }

    /// Looks at columns as it is said.
    pub fn only(&mut self, uses: impl Iterator<Item = Use>) -> Result<(), ReadError> {
        self.body.only(uses.collect()).map_err(|problem| self.error(problem))
    }

    /// Every cell, row by row; of a text file, those below the first line, rows counted from `first_row`.
    pub fn visit(
        &mut self,
        first_row: u64,
        on_cell: &mut dyn FnMut(Place, usize, Cell<'_>) -> Result<(), Problem>,
    ) -> Result<(), ReadError> {
        let result = self.body.visit(first_row, on_cell);
        result.map_err(|problem| self.error(if self.compressed { in_gzip(problem) } else { problem }))
    }
}

/// What the system says about a compressed file is about its compression.
fn in_gzip(problem: Problem) -> Problem {
    match problem {
        Problem::Io(error) => Problem::Format(format!("damaged gzip data: {error}")),
        other => other,
    }
}
