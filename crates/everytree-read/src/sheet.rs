//! A file of rows, whatever its format.

use crate::columnar::Columnar;
use crate::error::{Place, Problem, ReadError};
use crate::frame::Source;
use crate::text::{Text, never_has_a_header};
use everytree_core::data::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

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

/// How text files are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSettings {
    /// Between fields; else by the name of the file, or by its looks.
    pub delimiter: Option<u8>,
    /// Names in the first line?
    pub header: Header,
}

/// An open file.
pub(crate) struct Sheet {
    path: PathBuf,
    body: Body,
    compressed: bool,
}

pub(crate) enum Body {
    Text(Box<Text>),
    Columnar(Box<Columnar>),
}

impl Sheet {
    pub fn open(source: Source<'_>, settings: &ReadSettings) -> Result<Self, ReadError> {
        let path = match source {
            Source::File(path) => path,
            Source::Frame(frame) => {
                let path = PathBuf::from(&frame.name);
                let error = |problem| ReadError { file: path.clone(), problem };
                let body = Body::Columnar(Box::new(Columnar::frame(frame).map_err(error)?));
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

    fn body(path: &Path, settings: &ReadSettings, compressed: &mut bool) -> Result<Body, Problem> {
        let mut file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(Problem::Directory);
        }
        // What a file is, its first bytes say better than its name. A pipe cannot be wound back: it is text.
        let mut magic = Vec::new();
        let seekable = file.stream_position().is_ok();
        if seekable {
            (&mut file).take(6).read_to_end(&mut magic)?;
            file.seek(SeekFrom::Start(0))?;
        }
        let input: Box<dyn Read> = match &magic[..] {
            [b'P', b'A', b'R', b'1', ..] => return Ok(Body::Columnar(Box::new(Columnar::parquet(file)?))),
            b"ARROW1" => return Ok(Body::Columnar(Box::new(Columnar::arrow(file)?))),
            [0x1f, 0x8b, ..] => {
                *compressed = true;
                Box::new(flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file)))
            }
            _ => Box::new(file),
        };
        Ok(Body::Text(Box::new(Text::open(path, input, settings.delimiter)?)))
    }

    pub fn into_body(self) -> Body {
        self.body
    }

    pub fn error(&self, problem: Problem) -> ReadError {
        ReadError { file: self.path.clone(), problem }
    }

    /// The names of the columns, where the format has them.
    pub fn typed_names(&self) -> Option<&[String]> {
        match &self.body {
            Body::Text(_) => None,
            Body::Columnar(columnar) => Some(&columnar.names),
        }
    }

    /// The first line of a text file.
    pub fn first_line(&self) -> &[String] {
        match &self.body {
            Body::Text(text) => &text.first,
            Body::Columnar(_) => &[],
        }
    }

    /// Can it have no header, whatever it looks like?
    pub fn never_has_a_header(&self) -> bool {
        never_has_a_header(&self.path)
    }

    pub fn columns(&self) -> usize {
        match &self.body {
            Body::Text(text) => text.columns,
            Body::Columnar(columnar) => columnar.names.len(),
        }
    }

    /// Something to try for a file that has only one column.
    pub fn hint(&self) -> String {
        match &self.body {
            Body::Text(text) => text.other.map_or(String::new(), |other| {
                let name = if other == '\t' { "$'\\t'".to_owned() } else { format!("'{other}'") };
                format!(
                    "; its first line has {other:?}, fields were cut at {:?}: try --delimiter {name}",
                    text.delimiter()
                )
            }),
            Body::Columnar(_) => String::new(),
        }
    }

    /// Looks at these columns only.
    pub fn only(&mut self, wanted: impl Iterator<Item = bool>) -> Result<(), ReadError> {
        match &mut self.body {
            Body::Text(_) => Ok(()),
            Body::Columnar(columnar) => columnar.only(wanted.collect()),
        }
        .map_err(|problem| self.error(problem))
    }

    /// Every cell, row by row; of a text file, those below the first line, rows counted from `first_row`.
    pub fn visit(
        &mut self,
        first_row: u64,
        on_cell: &mut dyn FnMut(Place, usize, Cell<'_>) -> Result<(), Problem>,
    ) -> Result<(), ReadError> {
        let result = match &mut self.body {
            Body::Text(text) => text.visit(first_row, on_cell),
            Body::Columnar(columnar) => columnar.visit(on_cell),
        };
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
