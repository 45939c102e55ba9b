//! One column as its cells go by: labels and how often each was seen, up to a limit; beyond it, a sample of its numbers.

use super::ScanSettings;
use crate::data::{Cell, Decimal, NumberFormat, exact_number};
use crate::util::mix;
use std::collections::HashMap;
use std::fmt::Write;

/// Distinct labels of a column that are told apart, or as many as may be states; beyond these they are only known to be many.
pub(super) const MOST_LABELS: usize = 1 << 12;
/// The same where the most frequent of them are to be found.
const MOST_COUNTED: usize = 1 << 18;
/// Numbers of a column that are kept to find quantiles: all up to so many, beyond that a random sample.
pub(super) const MOST_NUMBERS: usize = 1 << 17;

/// One column, seen cell by cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    /// Distinct labels and how often each was seen, up to [`MOST_LABELS`].
    pub labels: HashMap<Box<str>, usize>,
    pub overflow: bool,
    /// The two labels of most columns, outside the map.
    pub zeros: usize,
    pub ones: usize,
    pub missing: usize,
    /// Cells that were not missing.
    pub observed: usize,
    /// Some cell was an infinite number by its type.
    pub infinite: bool,
    /// Some cell was text by its type, so digits are not numbers.
    pub typed_text: bool,
    /// Some cell was a number by its type, so a point in it stands before a fraction.
    pub typed_number: bool,
    /// Once there are too many labels for the map: numbers, or a sample of them, and how many there were.
    pub sample: Vec<f64>,
    pub numbers: u64,
    pub not_a_number: Option<Box<str>>,
    /// How its numbers are written, as far as that was looked at: where there are too many labels for the map.
    format: Option<NumberFormat>,
}

impl Column {
    fn label(&mut self, text: &str, settings: &ScanSettings) {
        let most_labels = match settings.wants_others() {
            true => MOST_COUNTED,
            false => MOST_LABELS.max(settings.max_states + 1),
        };
        self.observed += 1;
        match text {
            "0" => self.zeros += 1,
            "1" => self.ones += 1,
            _ if self.overflow => self.many(text, settings),
            _ => {
                if let Some(count) = self.labels.get_mut(text) {
                    *count += 1;
                } else if self.labels.len() < most_labels {
                    self.labels.insert(text.into(), 1);
                } else {
                    self.many(text, settings);
                }
            }
        }
    }

    /// How its numbers are written; none if its labels are not all numbers.
    pub fn format(&self, settings: &ScanSettings) -> Option<NumberFormat> {
        self.format_by(settings.decimal)
    }

    /// The same, if this is what stands before fractions.
    pub fn format_by(&self, decimal: Decimal) -> Option<NumberFormat> {
        let seen = |label: &str, count: usize| if count > 0 { Some(label.to_owned()) } else { None };
        let plain = [seen("0", self.zeros), seen("1", self.ones)];
        let labels =
            self.labels.keys().map(|label| &**label).chain(plain.iter().flatten().map(String::as_str));
        match self.format {
            _ if self.typed_text => None,
            Some(format) => Some(format),
            None => {
                // The first label decides about signs: the same one every time.
                let mut labels: Vec<&str> = labels.collect();
                labels.sort_unstable();
                let signed = |label: &&str| label.bytes().all(|byte| byte.is_ascii_digit());
                labels.sort_by_key(signed);
                NumberFormat::detect(labels.into_iter(), decimal)
            }
        }
    }

    /// A label beyond those told apart: of interest only if it is a number.
    fn many(&mut self, text: &str, settings: &ScanSettings) {
        if !self.overflow {
            self.overflow = true;
            let format = self.format(settings).unwrap_or_default();
            let mut labels: Vec<_> = self.labels.iter().collect();
            labels.sort();
            let counted: Vec<(f64, usize)> =
                labels.iter().filter_map(|(text, count)| Some((format.parse(text)?, **count))).collect();
            for (value, count) in counted {
                (0..count).for_each(|_| self.keep(value));
            }
            self.format = Some(format);
        }
        match self.format.unwrap_or_default().parse(text) {
            Some(value) => self.keep(value),
            None => drop(self.not_a_number.get_or_insert_with(|| text.into())),
        }
    }

    /// Vitter's reservoir, with chance that is the same every time.
    fn keep(&mut self, value: f64) {
        self.numbers += 1;
        if self.sample.len() < MOST_NUMBERS {
            self.sample.push(value);
            return;
        }
        let place = (u128::from(mix(self.numbers)) * u128::from(self.numbers)) >> 64;
        if let Some(kept) = self.sample.get_mut(place as usize) {
            *kept = value;
        }
    }

    pub fn observe(&mut self, cell: Cell<'_>, settings: &ScanSettings, buffer: &mut String) {
        match cell {
            Cell::Field("0") => {
                self.zeros += 1;
                self.observed += 1;
            }
            Cell::Field("1") => {
                self.ones += 1;
                self.observed += 1;
            }
            Cell::Missing => self.missing += 1,
            Cell::Real(value) if value.is_nan() => self.missing += 1,
            Cell::Real(value) if value.is_infinite() => self.infinite = true,
            Cell::Field(text) | Cell::Text(text) => {
                // As where cells are looked up: blanks around a label are not part of it.
                let text = text.trim();
                if settings.missing.iter().any(|missing| missing == text) {
                    self.missing += 1;
                } else {
                    self.typed_text |= matches!(cell, Cell::Text(_));
                    self.label(text, settings);
                }
            }
            typed => {
                self.typed_number = true;
                buffer.clear();
                write!(buffer, "{typed}").expect("memory");
                self.label(buffer, settings);
            }
        }
    }

    pub fn counted(&self) -> Vec<(&str, usize)> {
        let mut all: Vec<(&str, usize)> = self.labels.iter().map(|(text, &count)| (&**text, count)).collect();
        all.extend([("0", self.zeros), ("1", self.ones)].into_iter().filter(|&(_, count)| count > 0));
        all.sort();
        all
    }

    /// Is every number the only one that f64 takes for it?
    pub fn is_exact(&self) -> bool {
        self.counted().iter().all(|(text, _)| exact_number(text).is_some())
    }

    /// Distinct numbers with how often each was seen, rising; or a label that is not a number.
    pub fn numbers(&self, format: &NumberFormat) -> Result<Vec<(f64, usize)>, String> {
        let mut numbers = Vec::new();
        for (text, count) in self.counted() {
            match format.parse(text).filter(|_| !self.typed_text) {
                // No negative zero.
                Some(value) => numbers.push((value + 0.0, count)),
                None => return Err(text.to_owned()),
            }
        }
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        numbers.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        Ok(numbers)
    }

    /// Every number as often as it was seen (or a sample of them), rising.
    pub fn all_numbers(&self, format: &NumberFormat) -> Vec<f64> {
        let mut all = if self.overflow {
            let mut all = self.sample.clone();
            // As many as the sample would have of them.
            let share = all.len() as f64 / self.numbers.max(1) as f64;
            let sampled = |count: usize| (count as f64 * share).round() as usize;
            all.extend(std::iter::repeat_n(0.0, sampled(self.zeros)));
            all.extend(std::iter::repeat_n(1.0, sampled(self.ones)));
            all
        } else {
            let numbers = self.numbers(format).unwrap_or_default();
            numbers.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect()
        };
        all.sort_by(f64::total_cmp);
        all
    }
}

/// Edges at the quantiles, without repetition. Where the smallest number fills the first bins, it gets one of its own.
pub(super) fn quantiles(rising: &[f64], bins: usize) -> Vec<f64> {
    let above_smallest = rising.partition_point(|&value| value <= rising[0]);
    let edge = |i: usize| rising.get((i * rising.len() / bins).max(above_smallest));
    let mut edges: Vec<f64> = (1..bins).filter_map(edge).copied().collect();
    edges.dedup();
    edges
}
