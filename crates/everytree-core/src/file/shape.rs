//! What a file says about a model besides its numbers, and how the numbers are named.

use super::ContentError;
use super::container::Unpacked;
use crate::blocks::Blocks;
use crate::forest::Tables;
use crate::model::{
    Component, ComponentShape, Family, MAX_COMPONENTS, MOST_PARAMETER, Mixture, Model, Trees,
};
use crate::spanning::Kind;
use serde::{Deserialize, Serialize};

/// Family, number of components, and blocks of columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    family: String,
    #[serde(flatten)]
    pub component: ComponentShape,
    #[serde(default = "one")]
    components: usize,
    /// Of several columns; all others are alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<Together>,
}

/// A block of columns, and the combinations of codes that have a state of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Together {
    columns: Vec<usize>,
    combinations: Vec<Vec<u16>>,
}

fn one() -> usize {
    1
}

/// The weights of components.
const MIXING_WEIGHTS: &str = "components.log_share";

fn fit(what: impl ToString) -> ContentError {
    ContentError::Model(what.to_string())
}

impl Shape {
    pub fn of(model: &Model) -> Self {
        let blocks = model.blocks().combinations();
        Self {
            family: model.family_name().to_owned(),
            component: model.shape(),
            components: model.mixture().components().len(),
            blocks: blocks
                .into_iter()
                .map(|(columns, combinations)| Together { columns, combinations })
                .collect(),
        }
    }

    /// Is there such a model at all?
    pub fn check(&self) -> Result<(), ContentError> {
        let sense = |what: String| Err(ContentError::Description(what));
        let spec = self.family()?.spec();
        if (spec.trees == Trees::OneLatent) != self.component.hidden.is_some() {
            return sense("hidden states belong to families with latent variables".to_owned());
        }
        if spec.pair_tables != self.component.pairs.is_some() {
            return sense("pair tables belong to families with a choice of them".to_owned());
        }
        if !(1..=MAX_COMPONENTS).contains(&self.components) {
            let found = self.components;
            return sense(format!("{found} components; from 1 to {MAX_COMPONENTS} are possible"));
        }
        Ok(())
    }

    fn family(&self) -> Result<Family, ContentError> {
        let unknown = || ContentError::Description(format!("unknown family {:?}", self.family));
        Family::in_file(&self.family).ok_or_else(unknown)
    }

    /// The blocks, of columns with so many states each.
    pub fn blocks(&self, states: &[usize]) -> Result<Blocks, ContentError> {
        Tables::check(states).map_err(fit)?;
        let groups: Vec<_> =
            self.blocks.iter().map(|block| (block.columns.clone(), block.combinations.clone())).collect();
        Blocks::from_combinations(states, &groups).map_err(fit)
    }

    /// A mixture over blocks with so many states each, from all its parameters in one list.
    pub fn mixture(&self, states: &[usize], parameters: &[f64]) -> Result<Mixture<Component>, ContentError> {
        let weights = if self.components > 1 { self.components } else { 0 };
        let (size, rest) = (parameters.len().saturating_sub(weights), parameters.len().min(weights));
        if !size.is_multiple_of(self.components) || rest != weights {
            let (found, components) = (parameters.len(), self.components);
            return Err(fit(format!("{found} parameters cannot be those of {components} components")));
        }
        if let Some(place) =
            parameters.iter().position(|value| value.is_nan() || value.abs() > MOST_PARAMETER)
        {
            let value = parameters[place];
            return Err(fit(format!(
                "parameter {place} is {value}; learning keeps within ±{MOST_PARAMETER:e}"
            )));
        }
        let one = size / self.components;
        let family = self.family()?;
        let components: Result<Vec<Component>, _> = (0..self.components)
            .map(|k| family.from_numbers(states, &self.component, &parameters[k * one..(k + 1) * one]))
            .collect();
        let log_weights = if weights > 0 { parameters[size..].to_vec() } else { vec![0.0] };
        Mixture::with_log_mixing_weights(components.map_err(fit)?, log_weights).map_err(fit)
    }

    /// The name of what rows say about edges.
    pub fn posterior_name(mixture: &Mixture<Component>) -> &'static str {
        match mixture.components()[0].kind() {
            Kind::Undirected => "edges.posterior",
            Kind::Directed => "parents.posterior",
        }
    }

    /// All parameters as named lists: component after component in each.
    pub fn lists(&self, mixture: &Mixture<Component>) -> Vec<(&'static str, Vec<f64>)> {
        let names = mixture.components()[0].family().list_names(&self.component);
        let mut lists: Vec<(&'static str, Vec<f64>)> = names.iter().map(|name| (*name, Vec::new())).collect();
        for component in mixture.components() {
            for ((_, list), part) in lists.iter_mut().zip(component.lists()) {
                list.extend_from_slice(&part);
            }
        }
        if self.components > 1 {
            lists.push((MIXING_WEIGHTS, mixture.log_mixing_weights().to_vec()));
        }
        lists
    }

    /// A mixture from named lists.
    pub fn mixture_of_lists(
        &self,
        unpacked: &Unpacked<'_>,
        states: &[usize],
    ) -> Result<Mixture<Component>, ContentError> {
        let names = self.family()?.list_names(&self.component);
        let lists: Result<Vec<Vec<f64>>, _> = names.iter().map(|name| unpacked.numbers(name)).collect();
        let lists = lists?;
        if let Some(list) = lists.iter().find(|list| !list.len().is_multiple_of(self.components)) {
            let (found, components) = (list.len(), self.components);
            return Err(fit(format!("{found} numbers cannot be those of {components} components")));
        }
        let mut parameters = Vec::new();
        for k in 0..self.components {
            for list in &lists {
                let size = list.len() / self.components;
                parameters.extend_from_slice(&list[k * size..(k + 1) * size]);
            }
        }
        if self.components > 1 {
            let weights = unpacked.numbers(MIXING_WEIGHTS)?;
            if weights.len() != self.components {
                return Err(fit(format!("{} weights of {} components", weights.len(), self.components)));
            }
            parameters.extend(weights);
        }
        self.mixture(states, &parameters)
    }
}
