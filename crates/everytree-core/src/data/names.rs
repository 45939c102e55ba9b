//! Names as people write them: patterns with stars, and names that nearly fit.

use super::number;

/// Does a name fit a pattern in which `*` stands for anything, and `?` for one character?
///
/// ```
/// use everytree_core::data::fits;
///
/// assert!(fits("color_*", "color_red") && fits("x?", "x1") && fits("age", "age"));
/// assert!(!fits("color_*", "colour_red") && !fits("x?", "x12"));
/// ```
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match &mut star {
                Some((place, taken)) => {
                    *taken += 1;
                    (p, n) = (*place + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The one of the names that are known which another resembles, as a question in brackets; or nothing.
///
/// ```
/// use everytree_core::data::did_you_mean;
///
/// let known = ["smoker".to_owned(), "age".to_owned()];
/// assert_eq!(did_you_mean("smoke", &known), " (did you mean \"smoker\"?)");
/// assert_eq!(did_you_mean("height", &known), "");
/// ```
pub fn did_you_mean(name: &str, known: &[String]) -> String {
    // Long lists of long names are compared for a moment only.
    const MOST: usize = 10_000;
    let plain = name.to_lowercase();
    let alike = |other: &String| strsim::normalized_damerau_levenshtein(&plain, &other.to_lowercase());
    // One number is as far from another as from any.
    if number(name).is_some() {
        return String::new();
    }
    let short = |text: &str| text.len() <= 256;
    let scored = known.iter().take(MOST).filter(|other| short(other) && short(name));
    let best =
        scored.map(|other| (alike(other), other)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)));
    match best {
        Some((alike, other)) if alike >= 0.6 && other != name => format!(" (did you mean {other:?}?)"),
        _ => String::new(),
    }
}

/// A name as it is said in a list with commas: in quotes, in which a quote is doubled, where it needs them.
///
/// ```
/// use everytree_core::data::in_list;
///
/// assert_eq!(in_list("body mass"), "body mass");
/// assert_eq!(in_list("free, text"), "\"free, text\"");
/// ```
pub fn in_list(name: &str) -> String {
    match name.trim() == name && !name.is_empty() && !name.contains([',', '"']) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Names, with commas between.
pub fn listed(names: &[String]) -> String {
    names.iter().map(|name| in_list(name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("**x", "yyx", true),
            ("?", "", false),
            ("", "", true),
            ("größe*", "größe_cm", true),
            ("plain", "plainer", false),
            ("color_*", "color_", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn typing_mistakes_are_recognised() {
        let known: Vec<String> = ["flipper_length_mm", "body_mass_g", "yes"].map(str::to_owned).to_vec();
        assert!(did_you_mean("flipper_lenght_mm", &known).contains("flipper_length_mm"));
        assert!(did_you_mean("Yes", &known).contains("\"yes\""));
        assert_eq!(did_you_mean("no", &known), "");
        assert_eq!(did_you_mean("x", &[]), "");
        assert_eq!(did_you_mean("231", &["210".to_owned()]), "");
    }
}
