//! What a file says about a model besides its numbers, and how the numbers are named.

use super::ContentError;
use super::container::Unpacked;
use crate::blocks::Blocks;
use crate::forest::Tables;
use crate::learn::MAX_COMPONENTS;
use crate::model::{
    Component, Directed, Learnable, Mixture, Moat, Model, Numbers, OneTree, Pairs, Structure,
};
use serde::{Deserialize, Serialize};

/// Family, number of components, and blocks of columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    family: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// States of hidden variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<usize>,
    #[serde(default = "one")]
    components: usize,
    /// Of several columns; all others are by themselves.
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

/// The shares of components.
const SHARES: &str = "components.log_share";

fn fit(what: impl ToString) -> ContentError {
    ContentError::Model(what.to_string())
}

impl Shape {
    pub fn of(model: &Model) -> Self {
        let blocks = model.blocks().combinations();
        Self {
            family: model.family().to_owned(),
            pairs: model.pairs(),
            hidden: match model.structure() {
                Some(Structure::Hidden(count)) => Some(count),
                _ => None,
            },
            components: model.mixture().components().len(),
            blocks: blocks
                .into_iter()
                .map(|(columns, combinations)| Together { columns, combinations })
                .collect(),
        }
    }

    /// Is there such a model at all?
    pub fn check(&self) -> Result<(), ContentError> {
        let known = ["moat", "directed", "independent", "chow-liu", "mixture-of-trees", "hclt"];
        if !known.contains(&self.family.as_str()) {
            return Err(ContentError::Description(format!("unknown family {:?}", self.family)));
        }
        if (self.family == "hclt") != self.hidden.is_some() {
            return Err(ContentError::Description("hidden states belong to the family hclt".to_owned()));
        }
        if (self.family == "moat") != self.pairs.is_some() {
            return Err(ContentError::Description("pair tables belong to the family moat".to_owned()));
        }
        if !(1..=MAX_COMPONENTS).contains(&self.components) {
            let found = self.components;
            let what = format!("{found} components; from 1 to {MAX_COMPONENTS} are possible");
            return Err(ContentError::Description(what));
        }
        Ok(())
    }

    /// The blocks, of columns with so many states each.
    pub fn blocks(&self, states: &[usize]) -> Result<Blocks, ContentError> {
        Tables::check(states).map_err(fit)?;
        let groups: Vec<_> =
            self.blocks.iter().map(|block| (block.columns.clone(), block.combinations.clone())).collect();
        Blocks::from_combinations(states, &groups).map_err(fit)
    }

    fn component(&self, states: Vec<usize>, parameters: Vec<f64>) -> Result<Component, ContentError> {
        match (self.pairs, self.structure()) {
            (Some(pairs), _) => Moat::from_parameters(states, pairs, parameters).map(Component::Moat),
            (_, Some(structure)) => {
                OneTree::from_parameters(states, structure, parameters).map(Component::Tree)
            }
            _ => Directed::from_parameters(states, parameters).map(Component::Directed),
        }
        .map_err(fit)
    }

    /// Of families of one tree.
    fn structure(&self) -> Option<Structure> {
        match (self.family.as_str(), self.hidden) {
            ("independent", _) => Some(Structure::Independent),
            ("chow-liu" | "mixture-of-trees", _) => Some(Structure::ChowLiu),
            (_, hidden) => hidden.map(Structure::Hidden),
        }
    }

    /// A mixture over blocks with so many states each, from all its parameters in one list.
    pub fn mixture(&self, states: &[usize], parameters: &[f64]) -> Result<Mixture<Component>, ContentError> {
        let shares = if self.components > 1 { self.components } else { 0 };
        let (size, rest) = (parameters.len().saturating_sub(shares), parameters.len().min(shares));
        if !size.is_multiple_of(self.components) || rest != shares {
            let (found, components) = (parameters.len(), self.components);
            return Err(fit(format!("{found} parameters cannot be those of {components} components")));
        }
        let one = size / self.components;
        let components: Result<Vec<_>, _> = (0..self.components)
            .map(|k| self.component(states.to_vec(), parameters[k * one..(k + 1) * one].to_vec()))
            .collect();
        let log_shares = if shares > 0 { parameters[size..].to_vec() } else { vec![0.0] };
        Mixture::with_log_shares(components?, log_shares).map_err(fit)
    }

    /// The names of the lists of parameters.
    fn names(&self) -> &'static [&'static str] {
        match self.pairs {
            Some(Pairs::Tables) => &["edges.weight", "margins.probability", "pairs.probability"],
            Some(Pairs::Lambda) => &["edges.log_weight", "margins.logit", "pairs.frechet_logit"],
            Some(Pairs::Sinkhorn) => &["edges.log_weight", "margins.logit", "pairs.log_matrix"],
            None if self.structure().is_some() => &["tree.parent", "tables.logit"],
            None => &["parents.log_weight", "tables.logit"],
        }
    }

    /// The name of what rows say about edges.
    pub fn posterior_name(&self) -> &'static str {
        if self.pairs.is_some() { "edges.posterior" } else { "parents.posterior" }
    }

    /// All parameters as named lists: component after component in each.
    pub fn lists(&self, mixture: &Mixture<Component>) -> Vec<(&'static str, Vec<f64>)> {
        let mut lists: Vec<(&'static str, Vec<f64>)> =
            self.names().iter().map(|name| (*name, Vec::new())).collect();
        for component in mixture.components() {
            for ((_, list), part) in lists.iter_mut().zip(parts(component)) {
                list.extend_from_slice(part);
            }
        }
        if self.components > 1 {
            lists.push((SHARES, mixture.log_shares().to_vec()));
        }
        lists
    }

    /// A mixture from named lists.
    pub fn mixture_of_lists(
        &self,
        unpacked: &Unpacked<'_>,
        states: &[usize],
    ) -> Result<Mixture<Component>, ContentError> {
        let lists: Result<Vec<Vec<f64>>, _> =
            self.names().iter().map(|name| unpacked.numbers(name)).collect();
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
            let shares = unpacked.numbers(SHARES)?;
            if shares.len() != self.components {
                return Err(fit(format!("{} shares of {} components", shares.len(), self.components)));
            }
            parameters.extend(shares);
        }
        self.mixture(states, &parameters)
    }
}

/// The parameters of a component, list by list.
fn parts(component: &Component) -> Vec<&[f64]> {
    let n = component.states().len();
    let all = component.pieces()[0];
    match component {
        Component::Moat(moat) => {
            let [margins, pairs] = moat.sections();
            vec![&all[..margins], &all[margins..pairs], &all[pairs..]]
        }
        Component::Directed(_) => vec![&all[..n * n], &all[n * n..]],
        Component::Tree(tree) => vec![&all[..tree.section()], &all[tree.section()..]],
    }
}
