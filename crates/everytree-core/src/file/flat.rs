//! The numbers of a mixture in one list, as checkpoints have them: structure and parameters of every component, one after the
//! other; then mixing weights.

use crate::model::{Component, Mixture, ParamsView};

/// All numbers of a mixture.
pub(super) fn numbers(mixture: &Mixture<Component>) -> Vec<f64> {
    let components = mixture.components().iter();
    let mut numbers: Vec<f64> =
        components.flat_map(|component| component.lists()).flat_map(|list| list.into_owned()).collect();
    if mixture.components().len() > 1 {
        numbers.extend_from_slice(mixture.log_mixing_weights());
    }
    numbers
}

/// A list with a number for every parameter, such as the memory of an optimiser, with zeros where [`numbers`] has structure.
pub(super) fn with_room(mixture: &Mixture<Component>, list: &[f64]) -> Vec<f64> {
    let (mut spread, mut rest) = (Vec::new(), list);
    for component in mixture.components() {
        let (own, tail) = rest.split_at(component.size());
        spread.resize(spread.len() + component.structure_length(), 0.0);
        spread.extend_from_slice(own);
        rest = tail;
    }
    spread.extend_from_slice(rest);
    spread
}

/// The list again; none if it has another length.
pub(super) fn without_room(mixture: &Mixture<Component>, spread: &[f64]) -> Option<Vec<f64>> {
    let (mut list, mut rest) = (Vec::new(), spread);
    for component in mixture.components() {
        rest = rest.get(component.structure_length()..)?;
        list.extend_from_slice(rest.get(..component.size())?);
        rest = &rest[component.size()..];
    }
    list.extend_from_slice(rest);
    (list.len() == mixture.size()).then_some(list)
}
