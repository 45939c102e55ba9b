//! Running the program in a folder.
#![allow(dead_code)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everytree"));
    command.current_dir(folder).args(arguments);
    command
}

pub fn everytree(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// What it printed, after it went well.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

/// Numbers for made-up tables, the same on every machine.
pub struct Chance(pub u32);

impl Chance {
    /// A number below n.
    pub fn next(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % n
    }
}
