//! Readers of other crates, kept apart: a damaged file that makes one panic is a damaged file, not the end of the program.

use crate::error::Problem;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Is this thread inside a reader?
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls a reader; a panic inside is an error of the file.
pub(super) fn isolated<T>(read: impl FnOnce() -> T) -> Result<T, Problem> {
    static HOOK: Once = Once::new();
    // Nothing is printed for a panic that becomes an error. All others are told as before.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                before(info);
            }
        }));
    });
    let outside = INSIDE.replace(true);
    // What a panic has left half-done is never looked at again: the file is given up.
    let done = catch_unwind(AssertUnwindSafe(read));
    INSIDE.set(outside);
    done.map_err(|panic| Problem::Format(format!("the file is damaged: {}", words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(isolated(|| 7).unwrap(), 7);
        let error = isolated(|| -> u8 { panic!("index out of range") }).unwrap_err().to_string();
        assert_eq!(error, "the file is damaged: index out of range");
        assert!(!INSIDE.get());
    }
}
