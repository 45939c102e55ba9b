//! Families by the names of the registry.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use everytree::column_width;
use everytree_core::model::{ALL_ROWS, Family, HowMany, Optimiser, Trees};
use std::ffi::OsStr;

/// A family by name; help and errors list those of the registry.
#[derive(Clone, Copy)]
pub struct FamilyParser {
    /// May the choice be left to the program?
    pub auto: bool,
}

/// The best of all, and what is said about it.
const AUTO: &str = "auto";
const AUTO_SUMMARY: &str = "the best of all these by validation, or an average of several";

impl TypedValueParser for FamilyParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let name = value.to_string_lossy().into_owned();
        if self.auto && name == AUTO {
            return Ok(name);
        }
        if let Ok((_, preset)) = Family::preset(&name) {
            return Ok(preset.name.to_owned());
        }
        // In the words of any other list of values.
        let auto = self.auto.then_some(AUTO);
        let listed = PossibleValuesParser::new(
            auto.into_iter().chain(Family::listed().map(|(_, preset)| preset.name)),
        );
        listed.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |(name, summary): (&'static str, &'static str)| PossibleValue::new(name).help(summary);
        let auto = self.auto.then_some((AUTO, AUTO_SUMMARY));
        Some(Box::new(auto.into_iter().chain(everytree::families()).map(value)))
    }
}

/// What the families take where nothing is said, for the end of a help text.
pub fn defaults() -> String {
    let mut lines = String::from("Defaults of the families, for tables of less than 500 columns:\n");
    let heads = [
        "",
        "components",
        "hidden",
        "optimiser",
        "epochs",
        "patience",
        "batch",
        "rate",
        "laplace",
        "shrinkage",
    ];
    let mut table = vec![heads.map(str::to_owned)];
    for (family, preset) in Family::listed() {
        let settings = family.settings(0);
        let adam = settings.optimiser == Optimiser::Adam;
        let rate = format!("{}{}", settings.learning_rate, if settings.cosine { " cosine" } else { "" });
        let strength = |has: bool, value: f64| if has { value.to_string() } else { NONE.to_owned() };
        let spec = family.spec();
        table.push([
            preset.name.to_owned(),
            count(preset.components),
            if spec.trees == Trees::OneLatent { count(preset.hidden) } else { NONE.to_owned() },
            (if adam { "adam" } else { "em" }).to_owned(),
            settings.epochs.to_string(),
            settings.patience.map_or(NONE.to_owned(), |patience| patience.to_string()),
            if settings.batch_size == ALL_ROWS { "all".to_owned() } else { settings.batch_size.to_string() },
            if adam { rate } else { NONE.to_owned() },
            strength(spec.laplace, settings.regularisation.laplace),
            strength(spec.shrinkage, settings.regularisation.shrinkage),
        ]);
    }
    for row in &table {
        let mut line = String::from(" ");
        for (place, cell) in row.iter().enumerate() {
            let width = column_width(table.iter().map(|row| row[place].chars().count()));
            line += &format!(" {cell:<width$}");
        }
        lines += line.trim_end();
        lines.push('\n');
    }
    lines
}

const NONE: &str = "–";

fn count(how_many: HowMany) -> String {
    match how_many {
        HowMany::Just(count) => count.to_string(),
        HowMany::UpTo(_) => "auto".to_owned(),
    }
}
