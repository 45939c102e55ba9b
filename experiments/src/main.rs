//! The paper's experiments as commands. Results are CSV files under `experiments/results`, with the command that made
//! them in their first lines.

#![forbid(unsafe_code)]

mod convergence;
mod datasets;
mod defaults;
mod fits;
mod fitted;
mod init;
mod memory;
mod questions;
mod scaling;
mod speedup;
mod table1;
mod weights;

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
    Fits(fits::Fits),
    Best(fits::Best),
    Convergence(convergence::Convergence),
    Weights(weights::Weights),
    Questions(questions::Questions),
    Init(init::Init),
    Scaling(scaling::Scaling),
    Defaults(defaults::Defaults),
    Memory(memory::Memory),
    Speedup(speedup::Speedup),
    #[command(hide = true)]
    Peak(memory::Peak),
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Table1(command) => command.run(),
        Command::Fits(command) => command.run(),
        Command::Best(command) => command.run(),
        Command::Convergence(command) => command.run(),
        Command::Weights(command) => command.run(),
        Command::Questions(command) => command.run(),
        Command::Init(command) => command.run(),
        Command::Scaling(command) => command.run(),
        Command::Defaults(command) => command.run(),
        Command::Memory(command) => command.run(),
        Command::Speedup(command) => command.run(),
        Command::Peak(command) => command.run(),
    }
}
