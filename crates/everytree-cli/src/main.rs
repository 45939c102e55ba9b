//! The `everytree` command.

mod data;
mod demo;
mod fit;
mod progress;
mod report;
mod trees;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Mixtures of all trees.
///
/// Exit codes: 0 done; 1 an honest "no" (there is no spanning tree); 2 bad usage or input.
#[derive(Parser)]
#[command(name = "everytree", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Fit(Box<fit::Fit>),
    Demo(demo::Demo),
    Trees(trees::Trees),
}

/// What a command came to, when nothing went wrong.
enum Outcome {
    /// Done.
    Done,
    /// The honest answer is no.
    No,
    /// Stopped by Ctrl-C, after saving.
    Interrupted,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Fit(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Trees(command) => command.run(),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        // Whoever reads our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everytree: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
