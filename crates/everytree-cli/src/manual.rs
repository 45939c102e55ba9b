//! `everytree man` and `everytree completions`: made from the same definitions as the commands themselves.

use crate::{Arguments, Outcome};
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;

/// Print the manual page, or write one page a command into a folder.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree man | man -l -\n  everytree man --out ~/.local/share/man/man1"
)]
pub struct Man {
    /// Folder for all pages.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<Outcome> {
        let mut command = Arguments::command();
        command.build();
        match self.out {
            Some(folder) => {
                clap_mangen::generate_to(command, &folder).with_context(|| folder.display().to_string())?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                std::io::stdout().write_all(&page)?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Print completions for a shell.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree completions bash > ~/.local/share/bash-completion/completions/everytree"
)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "everytree", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(Outcome::Done)
    }
}
