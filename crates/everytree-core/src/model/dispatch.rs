//! From the list of families to one type for a component of any of them: what each can do, any component can do.
//!
//! An enumeration and not a trait object, because what a component prepares depends on the backend.

/// Makes the enumerations over the families of a list, and passes every call on.
macro_rules! families {
    ($($(#[doc = $about:literal])* $(#[cfg($condition:meta)])? $name:ident($model:ty),)*) => {
        use $crate::data::Codes;
        use $crate::forest::Backend;
        use $crate::model::family::{ComponentShape, FamilyModel, FamilySpec, Initialisation};
        use $crate::model::{
            ComponentInference, Learnable, ModelError, ParamsView, Regularisation, Settings, UnseenStates,
        };
        use $crate::spanning::Kind;

        /// A family of models.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Family {
            $($(#[doc = $about])* $(#[cfg($condition)])? $name,)*
        }

        /// A model of any family: what mixtures are made of.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Component {
            $($(#[doc = $about])* $(#[cfg($condition)])? $name($model),)*
        }

        /// A [`Component`] ready for a backend.
        #[non_exhaustive]
        pub enum ComponentReady<B: Backend> {
            $($(#[doc = $about])* $(#[cfg($condition)])? $name(<$model as Learnable>::Ready<B>),)*
        }

        /// What a [`Component`] adds up over rows.
        #[non_exhaustive]
        pub enum ComponentStats {
            $($(#[doc = $about])* $(#[cfg($condition)])? $name(<$model as Learnable>::Stats),)*
        }

        impl Family {
            /// All families.
            pub const ALL: &'static [Family] = &[$($(#[cfg($condition)])? Self::$name,)*];

            /// The facts about it.
            pub fn spec(self) -> &'static FamilySpec {
                match self {
                    $($(#[cfg($condition)])? Self::$name => {
                        const SPEC: &FamilySpec = &<$model as FamilyModel>::SPEC;
                        SPEC
                    },)*
                }
            }

            /// The usual settings, for so many variables.
            pub fn settings(self, variables: usize) -> Settings {
                match self {
                    $($(#[cfg($condition)])? Self::$name => <$model as FamilyModel>::settings(variables),)*
                }
            }

            /// One component as the counts have it.
            pub fn from_counts(self, from: &Initialisation<'_>) -> Result<Component, ModelError> {
                Ok(match self {
                    $($(#[cfg($condition)])? Self::$name => Component::$name(<$model as FamilyModel>::from_counts(from)?),)*
                })
            }

            /// One component at random.
            pub fn random(
                self,
                states: &[usize],
                shape: &ComponentShape,
                seed: u64,
            ) -> Result<Component, ModelError> {
                Ok(match self {
                    $($(#[cfg($condition)])? Self::$name => Component::$name(<$model as FamilyModel>::random(states, shape, seed)?),)*
                })
            }

            /// The names of the lists of numbers of a component in a file.
            pub fn list_names(self, shape: &ComponentShape) -> &'static [&'static str] {
                match self {
                    $($(#[cfg($condition)])? Self::$name => <$model as FamilyModel>::list_names(shape),)*
                }
            }

            /// One component from these lists, one after the other.
            pub fn from_numbers(
                self,
                states: &[usize],
                shape: &ComponentShape,
                numbers: Vec<f64>,
            ) -> Result<Component, ModelError> {
                Ok(match self {
                    $($(#[cfg($condition)])? Self::$name => Component::$name(<$model as FamilyModel>::from_numbers(states, shape, numbers)?),)*
                })
            }
        }

        $($(#[cfg($condition)])? impl From<$model> for Component {
            fn from(model: $model) -> Self {
                Self::$name(model)
            }
        })*

        impl Component {
            /// Its family.
            pub fn family(&self) -> Family {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => {
                        let _ = model;
                        Family::$name
                    },)*
                }
            }

            /// What describes it besides its numbers.
            pub fn shape(&self) -> ComponentShape {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::shape(model),)*
                }
            }

            /// Its lists of numbers, as in a file.
            pub fn lists(&self) -> Vec<std::borrow::Cow<'_, [f64]>> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::lists(model),)*
                }
            }

            /// How many of these numbers come first and are not parameters but structure.
            pub fn structure_length(&self) -> usize {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::structure_length(model),)*
                }
            }

            /// Which trees are mixed.
            pub fn kind(&self) -> Kind {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::kind(model),)*
                }
            }

            /// The weights of edges, as an `n × n` matrix in the layout of [`Kind`]; the largest (directed: of every
            /// variable) is 1.
            pub fn weights(&self) -> Vec<f64> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::weights(model),)*
                }
            }

            /// How many numbers say it all.
            pub fn degrees_of_freedom(&self) -> usize {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::degrees_of_freedom(model),)*
                }
            }

            /// How probable every edge is before any data, as an `n × n` matrix in the layout of [`Kind`].
            pub fn prior_edges<B: Backend>(&self, ready: &ComponentReady<B>) -> Vec<f64> {
                match (self, ready) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready)) => FamilyModel::prior_edges::<B>(model, ready),)*
                    _ => unreachable!("of another family"),
                }
            }

            /// The weight of the rows whose tree has each edge, as an `n × n` matrix in the layout of [`Kind`].
            pub fn edge_counts(&self, stats: &ComponentStats) -> Vec<f64> {
                match (self, stats) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentStats::$name(stats)) => FamilyModel::edge_counts(model, stats),)*
                    _ => unreachable!("of another family"),
                }
            }

            /// What questions need of it, computed once.
            pub fn inference(&self) -> Result<ComponentInference<'_>, ModelError> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => FamilyModel::inference(model),)*
                }
            }
        }

        impl ParamsView for Component {
            fn slices(&self) -> Vec<&[f64]> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(own) => own.slices(),)*
                }
            }

            fn slices_mut(&mut self) -> Vec<&mut [f64]> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(own) => own.slices_mut(),)*
                }
            }
        }

        impl ParamsView for ComponentStats {
            fn slices(&self) -> Vec<&[f64]> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(own) => own.slices(),)*
                }
            }

            fn slices_mut(&mut self) -> Vec<&mut [f64]> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(own) => own.slices_mut(),)*
                }
            }
        }

        impl Learnable for Component {
            type Ready<B: Backend> = ComponentReady<B>;
            type Stats = ComponentStats;

            fn states(&self) -> &[usize] {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => model.states(),)*
                }
            }

            fn ready<B: Backend>(&self, backend: &B) -> Result<ComponentReady<B>, ModelError> {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => Ok(ComponentReady::$name(model.ready(backend)?)),)*
                }
            }

            fn refresh<B: Backend>(&self, backend: &B, ready: &mut ComponentReady<B>) -> Result<(), ModelError> {
                match (self, ready) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready)) => {
                        model.refresh(backend, ready)
                    },)*
                    _ => unreachable!("of another family"),
                }
            }

            fn log_likelihood<B: Backend>(
                &self,
                backend: &B,
                ready: &mut ComponentReady<B>,
                codes: Codes<'_>,
                out: &mut [f64],
            ) -> Result<(), ModelError> {
                match (self, ready) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready)) => {
                        model.log_likelihood(backend, ready, codes, out)
                    },)*
                    _ => unreachable!("of another family"),
                }
            }

            fn stats<B: Backend>(&self, ready: &ComponentReady<B>) -> ComponentStats {
                match (self, ready) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready)) => {
                        ComponentStats::$name(model.stats::<B>(ready))
                    },)*
                    _ => unreachable!("of another family"),
                }
            }

            fn accumulate<B: Backend>(
                &self,
                backend: &B,
                ready: &mut ComponentReady<B>,
                codes: Codes<'_>,
                weights: &[f64],
                stats: &mut ComponentStats,
            ) -> Result<(), ModelError> {
                match (self, ready, stats) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready), ComponentStats::$name(stats)) => {
                        model.accumulate(backend, ready, codes, weights, stats)
                    },)*
                    _ => unreachable!("of another family"),
                }
            }

            fn gradient<B: Backend>(
                &self,
                ready: &ComponentReady<B>,
                stats: &ComponentStats,
                gradient: &mut [f64],
            ) {
                match (self, ready, stats) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready), ComponentStats::$name(stats)) => {
                        model.gradient::<B>(ready, stats, gradient)
                    },)*
                    _ => unreachable!("of another family"),
                }
            }

            fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => model.regularise(by, share, gradient),)*
                }
            }

            fn log_prior(&self, by: &Regularisation) -> f64 {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => model.log_prior(by),)*
                }
            }

            fn has_a_mean(&self) -> bool {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => model.has_a_mean(),)*
                }
            }

            fn maximise<B: Backend>(
                &mut self,
                ready: &ComponentReady<B>,
                stats: &ComponentStats,
                parent: Option<&ComponentStats>,
                by: &Regularisation,
            ) -> bool {
                match (self, ready, stats) {
                    $($(#[cfg($condition)])? (Self::$name(model), ComponentReady::$name(ready), ComponentStats::$name(stats)) => {
                        let parent = parent.map(|parent| match parent {
                            ComponentStats::$name(parent) => parent,
                            _ => unreachable!("of another family"),
                        });
                        model.maximise::<B>(ready, stats, parent, by)
                    },)*
                    _ => unreachable!("of another family"),
                }
            }

            fn smooth_unseen(&mut self, unseen: &[UnseenStates]) {
                match self {
                    $($(#[cfg($condition)])? Self::$name(model) => model.smooth_unseen(unseen),)*
                }
            }
        }
    };
}

pub(super) use families;
