//! Numbers and notices in words.

use everytree_core::data::scan::Notice;

/// How wide a column of a table is printed whose cells have so many letters: as wide as the longest, within bounds, because there
/// are names and labels of 65,536 bytes.
///
/// ```
/// assert_eq!(everytree::column_width([3, 7, 2].into_iter()), 7);
/// assert_eq!(everytree::column_width([3, 65_536].into_iter()), 200);
/// ```
pub fn column_width(letters: impl Iterator<Item = usize>) -> usize {
    const WIDEST: usize = 200;
    letters.max().unwrap_or(0).min(WIDEST)
}

/// A notice in words.
///
/// ```
/// use everytree_core::data::scan::Notice;
///
/// let notice = Notice::Missing { cells: 3, columns: 1 };
/// assert_eq!(everytree::say(&notice), "3 missing cells in 1 column: \"missing\" is one more state there");
/// ```
pub fn say(notice: &Notice) -> String {
    match notice {
        Notice::Binned { column, numbers, or_more, bins } => {
            let more = if *or_more { "more than " } else { "" };
            format!(
                "column {column:?}: {more}{} different numbers, cut into {bins} quantile bins",
                count(*numbers)
            )
        }
        Notice::Missing { cells, columns } => {
            let (cells, columns) = (plural(*cells, "missing cell"), plural(*columns, "column"));
            format!("{cells} in {columns}: \"missing\" is one more state there")
        }
        Notice::Unobserved { cells, columns } => {
            let (cells, columns) = (plural(*cells, "missing cell"), plural(*columns, "column"));
            format!("{cells} in {columns}: not observed, and summed out")
        }
        Notice::LeftOut { columns } => {
            format!("left out: {} ({})", plural(columns.len(), "column"), some_names(columns))
        }
        Notice::Formatted { columns, example, read_as } => {
            let columns = match &columns[..] {
                [one] => format!("column {one:?}"),
                several => format!("{} ({})", plural(several.len(), "column"), some_names(several)),
            };
            format!("{columns}: {example:?} is read as the number {read_as}")
        }
        Notice::MaybeThousands { columns, example, read_as } => {
            let columns = match &columns[..] {
                [one] => format!("column {one:?}"),
                several => format!("{} ({})", plural(several.len(), "column"), some_names(several)),
            };
            format!(
                "{columns}: {example:?} is read as the number {read_as}; if points stand between thousands, say `decimal = ,`"
            )
        }
        Notice::NoOther { column, labels } => {
            format!(
                "column {column:?}: all of its {} are told apart; there is no \"other\"",
                plural(*labels, "label")
            )
        }
        Notice::Other { column, kept, others, or_more, cells, named_so } => {
            let or_more = if *or_more { " or more" } else { "" };
            let named_so = if *named_so { "; a label \"other\" of its own is part of it" } else { "" };
            format!(
                "column {column:?}: the most frequent {}; {}{or_more}, in {}, {} one state, \"other\"{named_so}",
                plural(*kept, "label"),
                plural(*others, "other"),
                plural(*cells, "cell"),
                if *others == 1 { "is" } else { "are" }
            )
        }
        Notice::Constant { columns } => {
            format!("constant: {} ({})", plural(columns.len(), "column"), some_names(columns))
        }
    }
}

/// The first of some names.
fn some_names(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    format!("{}{}", shown.join(", "), if names.len() > SHOWN { ", …" } else { "" })
}

/// A number with its thousands apart.
///
/// ```
/// assert_eq!(everytree::count(291_326), "291,326");
/// ```
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of these.
///
/// ```
/// assert_eq!(everytree::plural(1, "row"), "1 row");
/// assert_eq!(everytree::plural(2000, "row"), "2,000 rows");
/// ```
pub fn plural(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (291_326, "291,326"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), text);
        }
    }
}
