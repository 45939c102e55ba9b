//! The chest-clinic network "Asia" of Lauritzen and Spiegelhalter (1988), with their probabilities.

use everytree_core::data::Table;
use everytree_core::data::{Schema, States, Variable};
use rand::RngExt;
use rand_pcg::Pcg64;

/// In the order of the codes of a row; 1 is yes.
pub const NAMES: [&str; 8] =
    ["asia", "tuberculosis", "smoker", "cancer", "bronchitis", "either", "xray", "dyspnoea"];

/// A row of the network.
pub type Row = [bool; 8];

/// The probability of each variable being yes, given those before it.
fn chance(variable: usize, row: &Row) -> f64 {
    let [asia, tuberculosis, smoker, cancer, bronchitis, either, ..] = *row;
    let pick = |condition: bool, yes: f64, no: f64| if condition { yes } else { no };
    match variable {
        0 => 0.01,
        1 => pick(asia, 0.05, 0.01),
        2 => 0.5,
        3 => pick(smoker, 0.1, 0.01),
        4 => pick(smoker, 0.6, 0.3),
        5 => pick(tuberculosis || cancer, 1.0, 0.0),
        6 => pick(either, 0.98, 0.05),
        _ => match (bronchitis, either) {
            (true, true) => 0.9,
            (true, false) => 0.8,
            (false, true) => 0.7,
            (false, false) => 0.1,
        },
    }
}

/// Every row there is.
pub fn all_rows() -> impl Iterator<Item = Row> {
    (0..256u32).map(|bits| std::array::from_fn(|v| bits >> v & 1 == 1))
}

/// The exact probability of a row.
pub fn probability(row: &Row) -> f64 {
    (0..8).map(|v| if row[v] { chance(v, row) } else { 1.0 - chance(v, row) }).product()
}

/// A row by chance.
pub fn draw(rng: &mut Pcg64) -> Row {
    let mut row = [false; 8];
    for v in 0..8 {
        row[v] = rng.random_bool(chance(v, &row));
    }
    row
}

/// Rows as a table.
pub fn table(rows: impl Iterator<Item = Row>) -> Table {
    let mut table = Table::new(&[2; 8]);
    rows.for_each(|row| table.push(&row.map(u16::from)));
    table
}

pub fn schema() -> Schema {
    let states = || States::Texts(vec!["no".to_owned(), "yes".to_owned()]);
    let variable = |name: &str| Variable::new(name, states(), false);
    Schema {
        variables: NAMES.map(variable).to_vec(),
        header: true,
        missing: vec![String::new()],
        left_out: Vec::new(),
        ids: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_a_distribution_with_the_published_marginals() {
        let total: f64 = all_rows().map(|row| probability(&row)).sum();
        assert!((total - 1.0).abs() < 1e-12);
        let marginal = |v: usize| all_rows().filter(|row| row[v]).map(|row| probability(&row)).sum::<f64>();
        for (v, expected) in [(1, 0.0104), (3, 0.055), (4, 0.45), (5, 0.064828), (6, 0.11029), (7, 0.435971)]
        {
            assert!((marginal(v) - expected).abs() < 1e-6, "{}: {}", NAMES[v], marginal(v));
        }
    }
}
