//! How the numbers of a column are written: `1234.5`, `1,234.50`, `1.234,5`, `12 %`, `$5`, `CHF 5`, `(5)` for −5.

use super::number;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// What stands between digits, before and after them. The default is a plain number.
///
/// ```
/// use everytree_core::data::{Decimal, NumberFormat};
///
/// let detect = |labels: &[&'static str]| NumberFormat::detect(labels.iter().copied(), Decimal::default());
/// let german = detect(&["1.234,5", "12,25"]).unwrap();
/// assert_eq!(german.parse("1.234,5"), Some(1234.5));
/// assert_eq!(german.write(12.25), "12,25");
/// let share = detect(&["10 %", "25%"]).unwrap();
/// assert_eq!((share.parse("25 %"), share.write(10.0)), (Some(25.0), "10%".to_owned()));
/// assert_eq!(detect(&["1", "2.5"]), Some(NumberFormat::default()));
/// assert_eq!(detect(&["1", "two"]), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NumberFormat {
    /// Is a comma between the whole part and the rest?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    decimal_comma: bool,
    /// What is between groups of three digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<char>,
    /// A sign before the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Sign>,
    /// A sign after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Sign>,
}

/// What stands between the whole part of a number and the rest, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decimal {
    /// A comma that could be either stands between groups of three.
    #[default]
    LikelyPoint,
    /// A comma that could be either is a decimal comma.
    LikelyComma,
    /// A point, and nothing else.
    Point,
    /// A comma, and nothing else.
    Comma,
}

/// What may stand before a number or after it: one of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Sign(&'static str);

/// Shares, which stand after numbers only; signs of currencies; and their letters.
const SIGNS: [&str; 32] = [
    "%", "€", "$", "£", "¥", "₹", "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD",
    "HUF", "ILS", "INR", "JPY", "KRW", "MXN", "NOK", "NZD", "PLN", "SEK", "SGD", "THB", "TRY", "TWD", "USD",
    "ZAR",
];

impl Sign {
    fn before(text: &str) -> Option<Self> {
        SIGNS[1..].iter().find(|sign| text.starts_with(**sign)).map(|sign| Self(sign))
    }

    fn after(text: &str) -> Option<Self> {
        SIGNS.iter().find(|sign| text.ends_with(**sign)).map(|sign| Self(sign))
    }

    /// Letters are set apart from digits.
    fn gap(self) -> &'static str {
        if self.0.len() == 3 && self.0.is_ascii() { " " } else { "" }
    }
}

impl<'de> Deserialize<'de> for Sign {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let found = SIGNS.iter().find(|sign| **sign == text).map(|sign| Self(sign));
        found.ok_or_else(|| D::Error::custom(format!("{text:?} is no sign of a number")))
    }
}

/// A number in parentheses, as accountants write one below zero.
fn in_parentheses(text: &str) -> Option<&str> {
    text.strip_prefix('(')?.strip_suffix(')').map(str::trim)
}

impl NumberFormat {
    /// The format of all these labels, if they have one.
    pub fn detect<'a>(labels: impl Iterator<Item = &'a str> + Clone, decimal: Decimal) -> Option<Self> {
        // Where all are in parentheses these say nothing of zero: (1), (2) are names.
        let first = labels.clone().find(|label| in_parentheses(label.trim()).is_none())?;
        let bare = first.trim().trim_start_matches(['-', '+']).trim_start();
        let before = Sign::before(bare);
        let after = Sign::after(bare).filter(|_| before.is_none());
        let point = [None, Some(',')].map(|group| (false, group));
        let comma = [None, Some('.'), Some(' ')].map(|group| (true, group));
        let rest = [Some(' '), Some('\'')].map(|group| (false, group));
        let mut ways: Vec<(bool, Option<char>)> = point.into_iter().chain(comma).chain(rest).collect();
        match decimal {
            Decimal::LikelyPoint => {}
            // Plain numbers first all the same.
            Decimal::LikelyComma => {
                ways.sort_by_key(|&(decimal_comma, group)| {
                    (group.is_some() || decimal_comma, !decimal_comma)
                });
            }
            Decimal::Point => ways.retain(|(decimal_comma, _)| !decimal_comma),
            Decimal::Comma if labels.clone().any(|label| label.contains(['.', ','])) => {
                ways.retain(|(decimal_comma, _)| *decimal_comma);
            }
            // Whole numbers are plain.
            Decimal::Comma => {}
        }
        let formats =
            ways.into_iter().map(|(decimal_comma, group)| Self { decimal_comma, group, before, after });
        formats.into_iter().find(|format| labels.clone().all(|label| format.parse(label).is_some()))
    }

    /// Does a comma stand before the fraction?
    pub fn has_decimal_comma(&self) -> bool {
        self.decimal_comma
    }

    /// Is it a number as programs write them?
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The number that a text is in this format.
    pub fn parse(&self, text: &str) -> Option<f64> {
        if self.is_plain() {
            return number(text);
        }
        let text = text.trim();
        let minus = text.strip_prefix('-').or_else(|| text.strip_prefix('\u{2212}'));
        let (minus, mut body) = match minus.map(str::trim_start).or_else(|| in_parentheses(text)) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').map_or(text, str::trim_start)),
        };
        if let Some(sign) = self.before {
            body = body.strip_prefix(sign.0)?.trim_start();
        }
        if let Some(sign) = self.after {
            body = body.strip_suffix(sign.0)?.trim_end();
        }
        let (minus, body) = match body.strip_prefix('-') {
            Some(rest) if !minus => (true, rest),
            _ => (minus, body),
        };
        let point = if self.decimal_comma { ',' } else { '.' };
        let (whole, fraction) = match body.split_once(point) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (body, None),
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut plain = String::with_capacity(body.len() + 1);
        if minus {
            plain.push('-');
        }
        let is_space = |c: char| matches!(c, ' ' | '\u{a0}' | '\u{202f}');
        let grouped = |c: char| Some(c) == self.group || (self.group == Some(' ') && is_space(c));
        let groups: Vec<&str> = whole.split(grouped).collect();
        let right = match &groups[..] {
            [whole] => digits(whole) || (whole.is_empty() && fraction.is_some()),
            // Groups of three, and none of them leads with a zero: 0,123 is a fraction.
            [first, others @ ..] => {
                digits(first)
                    && first.len() <= 3
                    && !first.starts_with('0')
                    && others.iter().all(|group| group.len() == 3 && digits(group))
            }
            [] => false,
        };
        if !right {
            return None;
        }
        groups.iter().for_each(|group| plain.push_str(group));
        if let Some(fraction) = fraction {
            // 1,5e3 is written by programs that know better, but it is a number.
            let (mantissa, exponent) = fraction.split_at(fraction.find(['e', 'E']).unwrap_or(fraction.len()));
            if !digits(mantissa) {
                return None;
            }
            plain.push('.');
            plain.push_str(mantissa);
            plain.push_str(exponent);
        }
        number(&plain)
    }

    /// The number of a cell of a later table, or of a question: signs before and after it may be left out, and plain numbers are read too.
    pub fn parse_cell(&self, text: &str) -> Option<f64> {
        let bare = || Self { before: None, after: None, ..*self };
        self.parse(text).or_else(|| bare().parse(text)).or_else(|| number(text))
    }

    /// A number in this format, without groups.
    pub fn write(&self, value: f64) -> String {
        let plain = value.to_string();
        if self.is_plain() {
            return plain;
        }
        let (sign, digits) = match plain.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", &*plain),
        };
        let digits = if self.decimal_comma { digits.replace('.', ",") } else { digits.to_owned() };
        let before = self.before.map_or(String::new(), |before| format!("{}{}", before.0, before.gap()));
        let after = self.after.map_or(String::new(), |after| format!("{}{}", after.gap(), after.0));
        format!("{sign}{before}{digits}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(labels: &[&str], comma: bool) -> Option<NumberFormat> {
        let decimal = if comma { Decimal::LikelyComma } else { Decimal::LikelyPoint };
        NumberFormat::detect(labels.iter().copied(), decimal)
    }

    /// What is said decides, where labels could be either.
    #[test]
    fn what_is_said_decides() {
        let first = |label: &str, decimal: Decimal| {
            let format = NumberFormat::detect(std::iter::once(label), decimal)?;
            format.parse(label)
        };
        assert_eq!(first("8,995", Decimal::LikelyComma), Some(8.995));
        assert_eq!(first("8,995", Decimal::Point), Some(8995.0));
        assert_eq!(first("1.234", Decimal::LikelyPoint), Some(1.234));
        assert_eq!(first("1.234", Decimal::Comma), Some(1234.0));
        assert_eq!(first("1234", Decimal::Comma), Some(1234.0));
        assert_eq!(first("1.5", Decimal::Comma), None);
        assert_eq!(first("+12.5%", Decimal::LikelyPoint), Some(12.5));
    }

    /// As people ask about a column.
    #[test]
    fn signs_may_be_left_out() {
        let format = detect(&["39.938,3 €", "5 €"], false).unwrap();
        for (text, value) in [
            ("39.938,3 €", 39938.3),
            ("10.000", 1e4),
            ("1234,5", 1234.5),
            ("1.234,5", 1234.5),
            ("10.5", 10.5),
        ] {
            assert_eq!(format.parse_cell(text), Some(value), "{text}");
        }
        // Where no number has groups, a point is that of a plain number.
        assert_eq!(detect(&["0,5", "3,435"], true).unwrap().parse_cell("3.435"), Some(3.435));
    }

    #[test]
    fn formats_are_told_apart() {
        let parsed = |labels: &[&str], comma: bool| -> Option<Vec<f64>> {
            let format = detect(labels, comma)?;
            labels.iter().map(|label| format.parse(label)).collect()
        };
        for (labels, comma, values) in [
            (&["1,234", "12,345,678"][..], false, Some(vec![1234.0, 12_345_678.0])),
            (&["1,234", "1,5"], false, Some(vec![1.234, 1.5])),
            (&["0,123"], false, Some(vec![0.123])),
            (&["1,234"], true, Some(vec![1.234])),
            (&["1.234,50", "-3,5"], false, Some(vec![1234.5, -3.5])),
            (&["1 234,5", "7"], false, Some(vec![1234.5, 7.0])),
            (&["1\u{202f}234", "7"], false, Some(vec![1234.0, 7.0])),
            (&["1'234.5"], false, Some(vec![1234.5])),
            (&["$1,234.50", "-$7", "$ 0.5"], false, Some(vec![1234.5, -7.0, 0.5])),
            (&["12,5 €", "3 €"], false, Some(vec![12.5, 3.0])),
            (&["CHF 1'234.50", "CHF 7", "-CHF 2"], false, Some(vec![1234.5, 7.0, -2.0])),
            (&["12,5 EUR", "3EUR"], false, Some(vec![12.5, 3.0])),
            (&["(12)", "5", "(1,234.5)"], false, Some(vec![-12.0, 5.0, -1234.5])),
            (&["$12", "($5)"], false, Some(vec![12.0, -5.0])),
            (&["12%", "(5%)"], false, Some(vec![12.0, -5.0])),
            (&["(1)", "(2)"], false, None),
            (&["5", "(-1)"], false, None),
            (&["5", "()"], false, None),
            (&["CHF 1", "EUR 2"], false, None),
            (&["CHF"], false, None),
            (&["1.5", "2"], true, Some(vec![1.5, 2.0])),
            (&["1,2,3"], false, None),
            (&["12%", "0.5"], false, None),
            (&["a,b"], false, None),
            (&["1,23,456"], false, None),
            (&["€"], false, None),
            (&[","], false, None),
            (&[""], false, None),
        ] {
            assert_eq!(parsed(labels, comma), values, "{labels:?}");
        }
    }

    /// What is written is read again.
    #[test]
    fn there_and_back() {
        for labels in [&["1.234,5"][..], &["$1,000"], &["7 %"], &["1,5"], &["1'000"], &["CHF 1"], &["3 EUR"]]
        {
            let format = detect(labels, false).unwrap();
            for value in [0.0, -1.5, 1234.5, 1e6, 0.001] {
                assert_eq!(format.parse(&format.write(value)), Some(value), "{labels:?} {value}");
            }
        }
    }
}
