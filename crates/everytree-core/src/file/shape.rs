//! What a file says about a model besides its numbers, and how the numbers are named.

use super::ContentError;
use super::pack::List;
use super::unpack::Unpacked;
use crate::blocks::Blocks;
use crate::forest::Tables;
use crate::model::{
    Component, ComponentShape, Family, MAX_COMPONENTS, MOST_PARAMETER, Member, Mixture, Trees,
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

/// How the lists of a model are named, which is what formats differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Formats 1 and 2: there is one model, and its lists have plain names.
    Plain,
    /// Of this member.
    Member(usize),
}

impl Names {
    /// A list of this name.
    pub fn list(self, name: &str) -> String {
        match self {
            Self::Plain => name.to_owned(),
            Self::Member(member) => format!("member.{member}.{name}"),
        }
    }

    /// The logarithms of the mixing weights of components.
    fn mixing_weights(self) -> String {
        match self {
            Self::Plain => "components.log_share".to_owned(),
            Self::Member(_) => self.list("components.log_weight"),
        }
    }
}

fn fit(what: impl ToString) -> ContentError {
    ContentError::Model(what.to_string())
}

impl Shape {
    pub fn of(member: &Member) -> Self {
        let blocks = member.blocks().combinations();
        Self {
            family: member.family_name().to_owned(),
            component: member.shape(),
            components: member.mixture().components().len(),
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
        if (spec.trees == Trees::Stored) != self.component.rows.is_some() {
            return sense("stored rows belong to families that store some".to_owned());
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
        check_range(parameters)?;
        let one = size / self.components;
        let family = self.family()?;
        let components: Result<Vec<Component>, _> = (0..self.components)
            .map(|k| {
                family.from_numbers(states, &self.component, parameters[k * one..(k + 1) * one].to_vec())
            })
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
    pub fn lists<'m>(&self, mixture: &'m Mixture<Component>, names: Names) -> Vec<List<'m>> {
        let list_names = mixture.components()[0].family().list_names(&self.component);
        let list = |name: &&str| List { name: names.list(name), pieces: Vec::new() };
        let mut lists: Vec<List<'_>> = list_names.iter().map(list).collect();
        for component in mixture.components() {
            lists.iter_mut().zip(component.lists()).for_each(|(list, part)| list.pieces.push(part));
        }
        if self.components > 1 {
            lists.push(List::whole(names.mixing_weights(), mixture.log_mixing_weights()));
        }
        lists
    }

    /// A mixture from named lists. Numbers are read once, into the component that keeps them.
    pub fn mixture_of_lists(
        &self,
        unpacked: &mut Unpacked<'_>,
        states: &[usize],
        names: Names,
    ) -> Result<Mixture<Component>, ContentError> {
        let family = self.family()?;
        let mut lists = Vec::new();
        for name in family.list_names(&self.component) {
            let name = names.list(name);
            let length = unpacked.length(&name)?;
            if !length.is_multiple_of(self.components) {
                let components = self.components;
                return Err(fit(format!("{length} numbers cannot be those of {components} components")));
            }
            lists.push((name, length / self.components));
        }
        let component = |k: usize| {
            let mut numbers = Vec::new();
            let length: usize = lists.iter().map(|(_, length)| length).sum();
            let room = numbers.try_reserve_exact(length);
            room.map_err(|_| ContentError::Memory { bytes: length * size_of::<f64>() })?;
            for (name, length) in &lists {
                unpacked.append(name, k * length..(k + 1) * length, &mut numbers)?;
            }
            check_range(&numbers)?;
            family.from_numbers(states, &self.component, numbers).map_err(fit)
        };
        let components: Vec<Component> = (0..self.components).map(component).collect::<Result<_, _>>()?;
        let log_weights = match self.components {
            1 => vec![0.0],
            _ => unpacked.numbers(&names.mixing_weights())?,
        };
        check_range(&log_weights)?;
        // Formats 1 and 2 have them up to a common constant.
        let sum: f64 = log_weights.iter().map(|log| log.exp()).sum();
        if names != Names::Plain && (sum - 1.0).abs() > 1e-9 {
            return Err(fit(format!("the mixing weights add up to {sum}")));
        }
        Mixture::with_log_mixing_weights(components, log_weights).map_err(fit)
    }
}

/// Learning keeps parameters within a range in which everything can be computed.
pub(super) fn check_range(parameters: &[f64]) -> Result<(), ContentError> {
    match parameters.iter().position(|value| value.is_nan() || value.abs() > MOST_PARAMETER) {
        None => Ok(()),
        Some(place) => {
            let value = parameters[place];
            Err(fit(format!("parameter {place} is {value}; learning keeps within ±{MOST_PARAMETER:e}")))
        }
    }
}
