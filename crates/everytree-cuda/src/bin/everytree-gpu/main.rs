//! Tests and measures the GPU, wherever there is one: `everytree-gpu test`, `everytree-gpu bench`, `everytree-gpu score`,
//! `everytree-gpu hidden`, and `everytree-gpu profile` for where the time of a step goes. Without a GPU it says so and exits with 4.

mod parity;
mod speed;

use everytree_core::data::Table;
use everytree_core::model::Settings;
use everytree_cuda::Cuda;
use std::process::ExitCode;

/// There is no GPU.
const NO_GPU: u8 = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (single, double) = match (Cuda::<f32>::open(0), Cuda::<f64>::open(0)) {
        (Ok(single), Ok(double)) => (single, double),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("no GPU to work on: {error}");
            return ExitCode::from(NO_GPU);
        }
    };
    eprintln!("{}", single.name());
    let number = |place: usize| arguments.get(place).and_then(|size| size.parse().ok());
    let done = match arguments.first().map(String::as_str) {
        Some("test") => parity::test(&single, &double),
        Some("hidden") => speed::hidden(&single, &double),
        Some("score") => speed::score(&single, &double),
        Some("bench") => speed::bench(&single, number(1)),
        Some("profile") => {
            let n = number(1).unwrap_or(500);
            speed::profile(&single, n, number(2).unwrap_or(Settings::paper(n).batch_size))
        }
        _ => Err("everytree-gpu test | bench [N] | score | hidden | profile [N [ROWS]]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Numbers by chance, the same every time (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Rows in which variables depend on each other: each follows the one before, or chance. The last state of the fourth variable is
/// never seen.
fn table(states: &[usize], rows: usize, seed: u64) -> Table {
    table_along(states, rows, seed, 1)
}

/// The same, where variable v follows variable (v − 1) / parts: in a chain, or in a tree of so many branches.
fn table_along(states: &[usize], rows: usize, seed: u64, parts: usize) -> Table {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut table = Table::new(states);
    for _ in 0..rows {
        let mut row = vec![0u16; states.len()];
        for v in 0..states.len() {
            let count = if v == 3 && states[v] > 1 { states[v] - 1 } else { states[v] };
            let follows = v > 0 && chance.next() < 0.6;
            let wish =
                if follows { row[(v - 1) / parts] as usize } else { (chance.next() * count as f64) as usize };
            row[v] = wish.min(count - 1) as u16;
        }
        table.push(&row);
    }
    table
}
