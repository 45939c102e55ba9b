//! The `everytree` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(everytree_cli::main(std::env::args_os()))
}
