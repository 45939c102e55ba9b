//! Rows of codes, as they are handed in.

use super::ForestError;

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
    pub fn new<C: Code>(codes: &'a [C], variables: usize) -> Result<Self, ForestError> {
        if variables == 0 || !codes.len().is_multiple_of(variables) {
            let expected = codes.len().div_ceil(variables.max(1)) * variables;
            return Err(ForestError::Length { what: "codes", found: codes.len(), expected });
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
    pub fn check(&self, offsets: &[usize]) -> Result<(), ForestError> {
        let expected = offsets.len() - 1;
        if self.variables != expected {
            return Err(ForestError::Length { what: "a row of codes", found: self.variables, expected });
        }
        for row in 0..self.rows() {
            for variable in 0..self.variables {
                let states = offsets[variable + 1] - offsets[variable];
                let code = self.get(row, variable);
                if code >= states {
                    return Err(ForestError::BadCode { row, variable, code, states });
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
