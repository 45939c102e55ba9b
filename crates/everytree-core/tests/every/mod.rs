//! Every row there is.
#![allow(dead_code, missing_docs)]

/// All combinations of states, the first variable fastest.
pub fn row(states: &[usize]) -> Vec<Vec<u16>> {
    let decode = |mut number: usize| -> Vec<u16> {
        let digit = |&count: &usize| {
            let state = number % count;
            number /= count;
            state as u16
        };
        states.iter().map(digit).collect()
    };
    (0..states.iter().product::<usize>()).map(decode).collect()
}
