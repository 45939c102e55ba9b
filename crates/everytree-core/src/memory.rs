//! How much memory may be taken, and whether something will fit: asked before it is allocated.
//!
//! The limit is one for the whole process, like the memory itself. What a model takes is in `model/footprint.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};
use thiserror::Error;

/// Of what the machine or its container has.
const SHARE: f64 = 0.8;
/// Nothing said yet.
const UNSET: u64 = 0;

static LIMIT: AtomicU64 = AtomicU64::new(UNSET);

/// Something that would not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{what} would take about {}; at most {} may be used (`memory`)",
    in_words(*need),
    in_words(*limit)
)]
pub struct TooMuchMemory {
    /// What it is for.
    pub what: String,
    /// Bytes that it would take.
    pub need: u64,
    /// Bytes that may be used.
    pub limit: u64,
}

/// Bytes that may be used: what was said, or 80 % of what the machine or its container has.
pub fn limit() -> u64 {
    match LIMIT.load(Ordering::Relaxed) {
        UNSET => {
            let found = (SHARE * of_the_machine() as f64) as u64;
            // Where nobody knows, nothing is refused.
            let limit = if found == 0 { u64::MAX } else { found };
            LIMIT.store(limit, Ordering::Relaxed);
            limit
        }
        limit => limit,
    }
}

/// Says how many bytes may be used.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes.max(1), Ordering::Relaxed);
}

/// May something take so many bytes?
pub fn check(what: impl Into<String>, need: u64) -> Result<(), TooMuchMemory> {
    let limit = limit();
    if need <= limit { Ok(()) } else { Err(TooMuchMemory { what: what.into(), need, limit }) }
}

fn of_the_machine() -> u64 {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let container = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    system.total_memory().min(container).min(of_this_process())
}

/// What `ulimit -v` allows, where there is such a thing.
fn of_this_process() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    let soft = line.and_then(|line| line.split_whitespace().next()).and_then(|soft| soft.parse().ok());
    soft.unwrap_or(u64::MAX)
}

/// A number of bytes.
///
/// ```
/// assert_eq!(everytree_core::memory::in_words(1_500_000_000), "1.5 GB");
/// ```
pub fn in_words(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.0} MB", (bytes / 1e6).ceil()),
    }
}

/// `500MB`, `2GB`, `1.5GiB`, or bytes.
///
/// ```
/// use everytree_core::memory::parse;
///
/// assert_eq!(parse("2GB"), Ok(2_000_000_000));
/// assert_eq!(parse("1.5 GiB"), Ok(1_610_612_736));
/// assert!(parse("much").is_err());
/// ```
pub fn parse(text: &str) -> Result<u64, String> {
    let problem = || "a number of bytes, such as 500MB, 2GB or 1.5GiB".to_owned();
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(problem()),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * factor) as u64),
        _ => Err(problem()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_some_memory() {
        assert!(of_the_machine() > 1 << 24);
    }

    #[test]
    fn what_does_not_fit_names_what_it_would_take() {
        let error = TooMuchMemory { what: "learning".into(), need: 20_000_000_000, limit: 5_000_000_000 };
        let words = "learning would take about 20.0 GB; at most 5.0 GB may be used (`memory`)";
        assert_eq!(error.to_string(), words);
    }
}
