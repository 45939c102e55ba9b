//! What is shown on a terminal: names and labels may hold anything, also what a terminal takes for commands.

use std::borrow::Cow;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// Would a terminal do something with it, instead of showing it? Also marks that turn the direction of what follows.
fn is_command(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// A text with every such character written out: `\u{1b}`.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_command(c) {
            true => safe.extend(c.escape_unicode()),
            false => safe.push(c),
        }
    }
    safe.into()
}

/// Standard output for words and tables that people read.
pub fn out() -> Shown<StdoutLock<'static>> {
    Shown { out: io::stdout().lock(), escapes: true }
}

/// Standard output for rows that programs read: as they are, unless it is a terminal.
pub fn rows_out() -> Shown<StdoutLock<'static>> {
    let out = io::stdout().lock();
    Shown { escapes: out.is_terminal(), out }
}

/// Writes texts as they are to be shown.
pub struct Shown<W> {
    out: W,
    escapes: bool,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.escapes => self.out.write_all(shown(text).as_bytes())?,
            _ => self.out.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(shown("größer\t1\n"), "größer\t1\n");
        assert_eq!(shown("\u{1b}[31mred\u{7}"), "\\u{1b}[31mred\\u{7}");
        assert_eq!(shown("a\u{202e}b\u{9b}"), "a\\u{202e}b\\u{9b}");
        let mut bytes = Vec::new();
        Shown { out: &mut bytes, escapes: true }.write_all(b"x\ry").unwrap();
        assert_eq!(bytes, b"x\\u{d}y");
    }
}
