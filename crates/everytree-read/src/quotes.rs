//! Watches quotes in a stream of delimited text: one that nothing closes would swallow the rest of the file.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The longest row.
pub(crate) const LONGEST_ROW: u64 = 1 << 24;

/// What was seen, for whoever reads through a [`Watched`].
#[derive(Default)]
pub(crate) struct Seen {
    /// The line in which a quote opened that the end of the file found open.
    pub unclosed: Cell<Option<u64>>,
    /// The line in which a row began that became too long.
    pub long: Cell<Option<u64>>,
    /// Did the file end in the middle of a line? Then the row that was read last is that line.
    pub open_end: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: the end, or one half of a doubled one.
    Quote,
}

/// A reader that hands everything on and keeps its eyes open.
pub(crate) struct Watched<R> {
    inner: R,
    delimiter: u8,
    state: State,
    line: u64,
    opened: u64,
    row_line: u64,
    row_bytes: u64,
    seen: Rc<Seen>,
}

impl<R: Read> Watched<R> {
    pub fn new(inner: R, delimiter: u8) -> (Self, Rc<Seen>) {
        let seen = Rc::new(Seen::default());
        let (state, copy) = (State::FieldStart, Rc::clone(&seen));
        (Self { inner, delimiter, state, line: 1, opened: 1, row_line: 1, row_bytes: 0, seen: copy }, seen)
    }

    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        for &byte in bytes {
            self.row_bytes += 1;
            let line_ends = byte == b'\n';
            self.line += u64::from(line_ends);
            self.state = match (self.state, byte) {
                (State::FieldStart, b'"') => {
                    self.opened = self.line;
                    State::Quoted
                }
                (State::Quoted, b'"') => State::Quote,
                (State::Quoted, _) => State::Quoted,
                (State::Quote, b'"') => State::Quoted,
                (_, _) if byte == self.delimiter || line_ends || byte == b'\r' => State::FieldStart,
                _ => State::Plain,
            };
            if line_ends && self.state == State::FieldStart {
                (self.row_line, self.row_bytes) = (self.line, 0);
            } else if self.row_bytes > LONGEST_ROW {
                self.seen.long.set(Some(self.row_line));
                return Err(io::Error::other("a row without end"));
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        // A read into nothing is no end.
        self.seen.open_end.set(count == 0 && !buffer.is_empty() && self.row_bytes > 0);
        self.look(&buffer[..count])?;
        if count == 0 && !buffer.is_empty() && self.state == State::Quoted {
            self.seen.unclosed.set(Some(self.opened));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unclosed(text: &str) -> Option<u64> {
        let (mut watched, seen) = Watched::new(text.as_bytes(), b',');
        watched.read_to_end(&mut Vec::new()).unwrap();
        seen.unclosed.get()
    }

    #[test]
    fn only_open_quotes_are_seen() {
        assert_eq!(unclosed("a,b\n\"x\",\"y \"\" z\"\n"), None);
        assert_eq!(unclosed("a,b\n5\" pipe,2\n"), None, "a quote inside a plain field is a character");
        assert_eq!(unclosed("a,b\n1,\"two\nlines\"\n"), None);
        assert_eq!(unclosed("a,b\n1,2\n0,\"x\n1,2\n"), Some(3));
    }

    #[test]
    fn a_row_without_end_stops_early() {
        let text = format!("a,b\n1,\"{}", "x".repeat(LONGEST_ROW as usize + 10));
        let (mut watched, seen) = Watched::new(text.as_bytes(), b',');
        assert!(watched.read_to_end(&mut Vec::new()).is_err());
        assert_eq!(seen.long.get(), Some(2));
    }
}
