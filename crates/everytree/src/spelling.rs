//! How options are spelled: in Rust as fields, on the command line as flags, in Python as keywords.

use everytree_core::data::in_list;

/// The language of whoever reads a message.
///
/// ```
/// use everytree::{Spelling, spelled};
///
/// assert_eq!(spelled("raise `max_states`", Spelling::Keywords), "raise max_states");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spelling {
    /// `` `max_states` ``, as the messages of this library have it.
    Fields,
    /// `--max-states`
    Flags,
    /// `max_states`
    Keywords,
}

/// A message with every option that it names in backticks, alone (`` `max_states` ``) or with a value
/// (`` `missing = category` ``), spelled as its reader would write it.
///
/// ```
/// use everytree::{Spelling, spelled};
///
/// let message = "take missing cells as a state: `missing = category`";
/// assert_eq!(spelled(message, Spelling::Flags), "take missing cells as a state: --missing category");
/// assert_eq!(spelled(message, Spelling::Keywords), "take missing cells as a state: missing=\"category\"");
/// ```
pub fn spelled(message: &str, spelling: Spelling) -> String {
    let mut words = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((inside, tail)) = after.split_once('`') else { break };
        words += before;
        match option(inside) {
            Some((name, value)) => words += &one(name, value, spelling),
            None => words += &format!("`{inside}`"),
        }
        rest = tail;
    }
    words + rest
}

/// A word of a command line, in quotes where a shell would read it otherwise.
///
/// ```
/// assert_eq!(everytree::in_shell("age"), "age");
/// assert_eq!(everytree::in_shell("free text"), "'free text'");
/// ```
pub fn in_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=,:+@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// An option and the value that it is given, if that is what stands between backticks.
fn option(inside: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = match inside.split_once(" = ") {
        Some((name, value)) => (name, Some(value)),
        None => (inside, None),
    };
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then_some((name, value))
}

fn one(name: &str, value: Option<&str>, spelling: Spelling) -> String {
    // Patterns of columns have a flag of their own; elsewhere they are one kind of blocks.
    let name = if name == "group" && spelling != Spelling::Flags { "blocks" } else { name };
    let flag = || format!("--{}", name.replace('_', "-"));
    // Names of columns are lists for the shell, in which a comma is something else.
    let word = |value: &str| match name {
        "drop" | "columns" | "id" => in_shell(&in_list(value)),
        _ => in_shell(value),
    };
    let of_column = || value?.rsplit_once('=').filter(|(_, count)| count.parse::<u32>().is_ok());
    match (spelling, value) {
        (Spelling::Fields, None) => format!("`{name}`"),
        (Spelling::Fields, Some(value)) => format!("`{name} = {value}`"),
        (Spelling::Flags, None) => flag(),
        (Spelling::Flags, Some(value)) => format!("{} {}", flag(), word(value)),
        (Spelling::Keywords, None) => name.to_owned(),
        (Spelling::Keywords, Some(_)) if let Some((column, count)) = of_column() => {
            format!("{name}={{{column:?}: {count}}}")
        }
        (Spelling::Keywords, Some(value)) if value.parse::<f64>().is_ok() => format!("{name}={value}"),
        (Spelling::Keywords, Some(value)) => format!("{name}={value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_are_spelled() {
        let text = "`a` and `b_c = 3`, but not `This` nor a lone ` mark";
        assert_eq!(spelled(text, Spelling::Flags), "--a and --b-c 3, but not `This` nor a lone ` mark");
        assert_eq!(spelled(text, Spelling::Keywords), "a and b_c=3, but not `This` nor a lone ` mark");
        assert_eq!(spelled(text, Spelling::Fields), text);
        for (text, flags, keywords) in [
            ("`drop = free, text`", "--drop '\"free, text\"'", r#"drop="free, text""#),
            ("`drop = my id`", "--drop 'my id'", r#"drop="my id""#),
            ("`bins = len, mm=8`", "--bins 'len, mm=8'", r#"bins={"len, mm": 8}"#),
            ("`other = 63`", "--other 63", "other=63"),
        ] {
            assert_eq!(spelled(text, Spelling::Flags), flags);
            assert_eq!(spelled(text, Spelling::Keywords), keywords);
        }
    }
}
