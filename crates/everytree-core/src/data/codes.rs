//! Rows of codes, as they are handed in.

use thiserror::Error;

/// A chunk of rows: one code per variable, rows one after the other. Code `a` is the a-th state of its variable.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    codes: Store<'a>,
    variables: usize,
}

#[derive(Clone, Copy, Debug)]
enum Store<'a> {
    Narrow(&'a [u8]),
    Wide(&'a [u16]),
}

/// Codes of one or two bytes.
pub trait Code: Copy {
    #[doc(hidden)]
    fn hold(codes: &[Self]) -> CodesOf<'_>;
}

/// Which width it was.
#[doc(hidden)]
pub struct CodesOf<'a>(Store<'a>);

impl Code for u8 {
    fn hold(codes: &[Self]) -> CodesOf<'_> {
        CodesOf(Store::Narrow(codes))
    }
}

impl Code for u16 {
    fn hold(codes: &[Self]) -> CodesOf<'_> {
        CodesOf(Store::Wide(codes))
    }
}

impl<'a> Codes<'a> {
    /// Rows of `variables` codes each, of one byte (`u8`) or two (`u16`).
    pub fn new<C: Code>(codes: &'a [C], variables: usize) -> Result<Self, CodesError> {
        if variables == 0 || !codes.len().is_multiple_of(variables) {
            let expected = codes.len().div_ceil(variables.max(1)) * variables;
            return Err(CodesError::Length { what: "codes", found: codes.len(), expected });
        }
        Ok(Self { codes: C::hold(codes).0, variables })
    }

    /// Rows in the chunk.
    pub fn rows(&self) -> usize {
        let length = match self.codes {
            Store::Narrow(codes) => codes.len(),
            Store::Wide(codes) => codes.len(),
        };
        length / self.variables
    }

    /// Variables of a row.
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// Is every code a state? The states of each variable begin at these places, and end where the next begin.
    pub fn check(&self, offsets: &[usize]) -> Result<(), CodesError> {
        let expected = offsets.len() - 1;
        if self.variables != expected {
            return Err(CodesError::Length { what: "a row of codes", found: self.variables, expected });
        }
        for row in 0..self.rows() {
            for variable in 0..self.variables {
                let states = offsets[variable + 1] - offsets[variable];
                let code = self.get(row, variable);
                if code >= states {
                    return Err(CodesError::BadCode { row, variable, code, states });
                }
            }
        }
        Ok(())
    }

    /// The code of one cell.
    ///
    /// # Panics
    /// When there is no such row or variable.
    #[inline]
    pub fn get(&self, row: usize, variable: usize) -> usize {
        let place = row * self.variables + variable;
        match self.codes {
            Store::Narrow(codes) => codes[place] as usize,
            Store::Wide(codes) => codes[place] as usize,
        }
    }
}

/// What codes can have wrong with them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodesError {
    /// Rows that are not whole, or of another number of variables.
    #[error("{what} has {found} entries where {expected} are needed")]
    Length {
        /// Which list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
    /// A code that is not a state of its variable.
    #[error("row {row}: code {code} of variable {variable} is not one of its {states} states")]
    BadCode {
        /// Row of the chunk.
        row: usize,
        /// The variable.
        variable: usize,
        /// The offending code.
        code: usize,
        /// How many states the variable has.
        states: usize,
    },
}
