//! The `everytree` command, as a function: the binary calls it, and so does whoever ships the command otherwise.

/// To the person who runs this; if nobody listens, that is no error.
macro_rules! note {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let words = format!($($words)*);
        let _ = writeln!(std::io::stderr(), "{}", $crate::shown::shown(&words));
    }};
}

mod allocator;
mod asia;
mod blocks;
mod compare;
mod data;
mod demo;
mod families;
mod fit;
mod given;
mod impute;
mod info;
mod inspect;
mod interrupt;
mod manual;
mod map;
mod members;
mod mix;
mod outputs;
mod progress;
mod query;
mod report;
mod sample;
mod score;
mod shown;
mod tables;
mod trees;

pub use allocator::keep_lists;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use everytree::{Spelling, spelled};
use std::ffi::OsString;

/// Mixtures of all trees: learn them from a table, ask them, look inside.
///
/// Exit codes: 0 done; 1 the answer is no; 2 bad usage or input; 3 a mistake of this program; 130 interrupted, after saving.
#[derive(Parser)]
#[command(name = "everytree", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Memory that may be used (500MB, 8GB). What would take more is refused before it begins. Default: 80 % of what the machine
    /// or its container has.
    #[arg(long, global = true, value_name = "SIZE", value_parser = everytree_core::memory::parse, help_heading = "Limits")]
    memory: Option<u64>,
}

#[derive(Subcommand)]
enum Command {
    Fit(Box<fit::Fit>),
    Compare(compare::Compare),
    Score(score::Score),
    Inspect(inspect::Inspect),
    Query(query::Query),
    Sample(sample::Sample),
    Impute(impute::Impute),
    Map(map::Map),
    Mix(mix::Mix),
    Info(info::Info),
    Demo(demo::Demo),
    Trees(trees::Trees),
    Man(manual::Man),
    Completions(manual::Completions),
}

/// What a command came to, when nothing went wrong.
enum Outcome {
    /// Done.
    Done,
    /// The answer is no.
    No,
    /// Stopped by Ctrl-C, after saving.
    Interrupted,
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Fit(command) => command.run(),
        Command::Compare(command) => command.run(),
        Command::Score(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Query(command) => command.run(),
        Command::Sample(command) => command.run(),
        Command::Impute(command) => command.run(),
        Command::Map(command) => command.run(),
        Command::Mix(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Trees(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::Completions(command) => command.run(),
    }
}

/// Runs the command with these arguments (the first is the name of the program), and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => {
            if let Some(bytes) = arguments.memory {
                everytree::set_memory_limit(bytes);
            }
            arguments.command
        }
        Err(error) => {
            // Help and version are no errors. If nobody listens, that is none either.
            let _ = error.print();
            if let Some(hint) = unquoted(&error) {
                note!("\n  tip: {hint}");
            }
            return error.exit_code() as u8;
        }
    };
    match std::panic::catch_unwind(move || run(command)) {
        Ok(Ok(Outcome::Done)) => 0,
        Ok(Ok(Outcome::No)) => 1,
        Ok(Ok(Outcome::Interrupted)) => 130,
        // Whoever reads our output has seen enough.
        Ok(Err(error)) if is_broken_pipe(&error) => 0,
        Ok(Err(error)) => {
            note!("everytree: {}", in_words(&error));
            2
        }
        Err(_) => {
            note!("everytree: this is a mistake of the program; please report it with the message above");
            3
        }
    }
}

/// A condition that the shell took apart, such as --given age in 30..40.
fn unquoted(error: &clap::Error) -> Option<&'static str> {
    let argument = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(argument) if error.kind() == ErrorKind::UnknownArgument => argument,
        _ => return None,
    };
    let signs = ["in", "=", "!=", ">", "<", ">=", "<=", "~"];
    signs.contains(&argument.as_str()).then_some("conditions stand in quotes, as in --given 'age in 30..40'")
}

/// An error and what led to it, with options spelled as flags.
fn in_words(error: &anyhow::Error) -> String {
    let words: Vec<String> =
        error.chain().map(|cause| spelled(&cause.to_string(), Spelling::Flags)).collect();
    words.join(": ")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    // An error of the system may be wrapped in another.
    let broken = |error: &std::io::Error| {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<std::io::Error>());
        is_pipe(error) || inner.is_some_and(is_pipe)
    };
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.or_else(|| cause.downcast_ref::<everytree::Error>()?.io()).is_some_and(broken)
    })
}
