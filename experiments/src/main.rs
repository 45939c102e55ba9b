//! The paper's experiments as commands. Results are CSV files under `experiments/results`, with the command that made
//! them in their first lines.

mod table1;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The experiments of the paper.
#[derive(Parser)]
#[command(name = "everytree-experiments", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Table1(table1::Table1),
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Table1(command) => command.run(),
    }
}
