//! Probabilities of values, out of posteriors of states.

use everytree_core::data::Schema;
use everytree_core::infer::{Estimate, Evidence, Posterior};

/// A value that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its column.
    pub variable: usize,
    /// Its state.
    pub state: usize,
    /// Among the values that can be observed?
    pub observed: bool,
}

/// One number of an answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The column.
    pub variable: String,
    /// The label of the value; empty for missing.
    pub value: String,
    /// The state of the value.
    pub target: Target,
    /// How probable it is.
    pub estimate: Estimate,
}

/// All values of a column. "Missing" is one of them where it is asked for, known, or all there is.
pub fn all_values(
    schema: &Schema,
    known: &Evidence,
    variable: usize,
    missing_as_state: bool,
) -> impl Iterator<Item = Target> + use<> {
    let column = &schema.variables[variable];
    let known_missing = known.state(variable) == Some(column.states.len());
    let with_missing = missing_as_state || column.states.is_empty() || known_missing;
    let states = if with_missing { column.len() } else { column.states.len() };
    (0..states).map(move |state| Target { variable, state, observed: !with_missing })
}

/// All values of all columns that are not known.
pub fn all_unknown(schema: &Schema, known: &Evidence, missing_as_state: bool) -> Vec<Target> {
    let hidden = (0..schema.variables.len()).filter(|&variable| known.state(variable).is_none());
    hidden.flat_map(|variable| all_values(schema, known, variable, missing_as_state)).collect()
}

/// What a posterior says of the values that are asked for.
pub fn answers(schema: &Schema, found: &Posterior, targets: &[Target]) -> Vec<Answer> {
    let answer = |&target: &Target| {
        let variable = &schema.variables[target.variable];
        let states = &found.states[target.variable];
        let missing = states.get(variable.states.len()).filter(|_| target.observed);
        Answer {
            variable: variable.name.clone(),
            value: variable.label(target.state),
            target,
            estimate: among_observed(states[target.state], missing),
        }
    };
    targets.iter().map(answer).collect()
}

/// The probability of a value among those that can be observed. The error is at most this large, however the two depend on
/// each other.
fn among_observed(value: Estimate, missing: Option<&Estimate>) -> Estimate {
    match missing {
        Some(missing) if missing.value > 0.0 && missing.value < 1.0 => {
            let observed = 1.0 - missing.value;
            let p = value.value / observed;
            let standard_error = (value.standard_error + p * missing.standard_error) / observed;
            Estimate { value: p.min(1.0), standard_error }
        }
        _ => value,
    }
}
