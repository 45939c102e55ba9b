//! The `everytree` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    everytree_cli::keep_lists();
    ExitCode::from(everytree_cli::main(std::env::args_os()))
}
