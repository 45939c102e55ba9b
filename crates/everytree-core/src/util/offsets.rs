//! Where things of different sizes lie, one after the other.

/// Where the states of each variable begin among all states, and how many there are in all.
pub(crate) fn offsets(states: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    states.iter().for_each(|count| offsets.push(offsets[offsets.len() - 1] + count));
    offsets
}
