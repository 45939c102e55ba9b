//! A mixture of either family of all trees, wholly on the device: from parameters to the likelihoods of rows.

use crate::engine::{Cuda, CudaError, threads};
use crate::forest::{Look, MOST_STATES, Prior, Shape, Space};
use crate::hidden::ResidentTree;
use crate::launch;
use crate::real::CudaReal;
use crate::space::Memory;
use everytree_core::data::Codes;
use everytree_core::data::Table;
use everytree_core::model::{Component, Learnable, Mixture, Pairs, ParamsView};
use everytree_core::spanning::Kind;
use rayon::prelude::*;

/// Numbers that the maximum of all weights is found from.
const MAXIMA: usize = 32;
/// Bytes that the rows of an evaluation may take at once.
const EVALUATION: usize = 2 << 30;

/// Which kernels make tables of parameters.
pub(crate) enum Family {
    /// The paper's.
    Moat {
        /// Where the logits of each variable begin among the parameters of a component.
        logits_at: Memory,
        /// Where the parameters of each pair begin.
        pairs_at: Memory,
    },
    /// The directed one.
    Directed,
}

/// A mixture on the device.
pub(crate) struct Whole {
    pub shape: Shape,
    pub family: Family,
    /// Parameters of a component.
    pub size: usize,
    /// Of all components, one after the other, and of the shares where there are several.
    pub parameters: Memory,
    /// Where the states of each variable begin.
    pub offsets: Memory,
    offsets_here: Vec<usize>,
    log_weights: Memory,
    pub parts: Vec<Part>,
    /// `log π_k p_k(x)` of rows, component by component.
    joint: Memory,
    /// Log-likelihoods of rows.
    pub likelihoods: Memory,
}

/// A component on the device.
#[derive(Default)]
pub(crate) struct Part {
    pub rates: Memory,
    /// The weights of edges.
    pub prior: Memory,
    pub marginals: Memory,
    log_prior: Memory,
    maxima: Memory,
    /// Probabilities: of states, or of tables.
    pub p: Memory,
    /// Of states: logarithms, sums up to a state, logits against all before.
    pub margins: [Memory; 3],
    pub space: Space,
}

/// Rows on the device.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// Their states, as places in the tables.
    pub states: u64,
    /// Which of them; 0: one after the other.
    pub places: u64,
    /// How many.
    pub count: usize,
}

/// States of rows as places in the tables.
pub(crate) fn states_of(codes: Codes<'_>, offsets: &[usize]) -> Vec<u16> {
    let n = codes.variables();
    let mut states = vec![0u16; codes.rows() * n];
    states.par_chunks_mut(n).enumerate().for_each(|(row, states)| {
        states.iter_mut().enumerate().for_each(|(v, state)| *state = (offsets[v] + codes.get(row, v)) as u16);
    });
    states
}

impl Whole {
    /// Room for such a mixture, if it is of a family that the device knows.
    pub fn new<T: CudaReal>(gpu: &Cuda<T>, mixture: &Mixture<Component>) -> Result<Option<Self>, CudaError> {
        let components = mixture.components();
        let n = mixture.states().len();
        let offsets: Vec<usize> = std::iter::once(0)
            .chain(mixture.states().iter().scan(0, |end, count| {
                *end += count;
                Some(*end)
            }))
            .collect();
        let total = offsets[n];
        let numbers = |places: &[usize]| -> Vec<i32> { places.iter().map(|&place| place as i32).collect() };
        // Kernels count in 32 bits, and somewhat beyond the end.
        if mixture.size() > i32::MAX as usize - (1 << 12) || total > MOST_STATES || n < 2 {
            return Ok(None);
        }
        let stream = &gpu.stream;
        let (family, kind) = match &components[0] {
            Component::Moat(moat) if moat.pairs() == Pairs::Lambda => {
                let [logits, pairs] = moat.places();
                let (mut logits_at, mut pairs_at) = (Memory::default(), Memory::default());
                logits_at.put(stream, &numbers(logits))?;
                pairs_at.put(stream, &numbers(pairs))?;
                (Family::Moat { logits_at, pairs_at }, Kind::Undirected)
            }
            Component::Directed(_) => (Family::Directed, Kind::Directed),
            _ => return Ok(None),
        };
        let mut whole = Self {
            shape: Shape::new(gpu, kind, n, total)?,
            family,
            size: components[0].size(),
            parameters: Memory::default(),
            offsets: Memory::default(),
            offsets_here: offsets,
            log_weights: Memory::default(),
            parts: components.iter().map(|_| Part::default()).collect(),
            joint: Memory::default(),
            likelihoods: Memory::default(),
        };
        whole.offsets.put(stream, &numbers(&whole.offsets_here))?;
        whole.log_weights.clear(stream, components.len() * 8)?;
        let real = size_of::<T>();
        for part in &mut whole.parts {
            part.rates.clear(stream, total * total * real)?;
            part.prior.clear(stream, n * n * real)?;
            part.marginals.clear(stream, n * n * real)?;
            part.log_prior.clear(stream, 8)?;
            part.maxima.clear(stream, n.max(MAXIMA) * 8)?;
            let probabilities = if kind == Kind::Directed { total * total } else { total };
            part.p.clear(stream, probabilities * 8)?;
            for margins in &mut part.margins {
                margins.clear(stream, total * 8)?;
            }
        }
        Ok(Some(whole))
    }

    /// Where the states of each variable begin, as the host knows it.
    pub fn offsets_here(&self) -> &[usize] {
        &self.offsets_here
    }

    /// Components.
    pub fn components(&self) -> usize {
        self.parts.len()
    }

    /// Where the parameters of a component begin.
    pub fn of_component<T: CudaReal>(&mut self, gpu: &Cuda<T>, number: usize) -> Result<u64, CudaError> {
        Ok(self.parameters.reserve(&gpu.stream, 0)? + (number * self.size * 8) as u64)
    }

    /// Rates and weights of all components from the parameters.
    ///
    /// # Safety
    /// The parameters have been put on the device.
    pub unsafe fn make_tables<T: CudaReal>(&mut self, gpu: &Cuda<T>) -> Result<(), CudaError> {
        let stream = &gpu.stream;
        let Shape { n, total, .. } = self.shape;
        let offsets = self.offsets.reserve(stream, 0)?;
        let squares = threads([n.div_ceil(32), n.div_ceil(8), 1], [32, 8]);
        for number in 0..self.parts.len() {
            let own = self.of_component(gpu, number)?;
            let part = &mut self.parts[number];
            let rates = part.rates.reserve(stream, 0)?;
            let prior = part.prior.reserve(stream, 0)?;
            let maxima = part.maxima.reserve(stream, 0)?;
            let p = part.p.reserve(stream, 0)?;
            match &mut self.family {
                Family::Moat { logits_at, pairs_at } => {
                    let (logits_at, pairs_at) = (logits_at.reserve(stream, 0)?, pairs_at.reserve(stream, 0)?);
                    let [log_p, prefix, alpha] = part.margins_at(gpu)?;
                    // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
                    unsafe {
                        gpu.launch(
                            launch::MoatMargins {
                                p,
                                log_p,
                                prefix,
                                alpha,
                                parameters: own,
                                offsets,
                                logits_at,
                                n,
                            },
                            threads([n.div_ceil(128), 1, 1], [128, 1]),
                        )
                    }?;
                    let edges = n * (n - 1) / 2;
                    let some = threads([MAXIMA, 1, 1], [1024, 1]);
                    // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
                    unsafe { gpu.launch(launch::Maxima { out: maxima, numbers: own, count: edges }, some) }?;
                    // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
                    unsafe {
                        gpu.launch(
                            launch::MoatTables {
                                rates,
                                prior,
                                parameters: own,
                                maxima,
                                p,
                                prefix,
                                alpha,
                                offsets,
                                pairs_at,
                                n,
                                s: total,
                                parts: MAXIMA,
                            },
                            squares,
                        )
                    }?;
                }
                Family::Directed => {
                    let lines = threads([n.div_ceil(8), 1, 1], [32, 8]);
                    // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
                    unsafe { gpu.launch(launch::LineMaxima { most: maxima, parameters: own, n }, lines) }?;
                    // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
                    unsafe {
                        gpu.launch(
                            launch::DirectedTables {
                                rates,
                                prior,
                                p,
                                parameters: own,
                                maxima,
                                offsets,
                                n,
                                s: total,
                            },
                            squares,
                        )
                    }?;
                }
            }
        }
        if self.parts.len() > 1 {
            let shares = self.of_component(gpu, self.parts.len())?;
            let to = self.log_weights.reserve(stream, 0)?;
            let one = threads([1, 1, 1], [1, 1]);
            // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
            unsafe {
                gpu.launch(
                    launch::NormaliseWeights {
                        log_weights: to,
                        parameters: shares,
                        components: self.parts.len(),
                    },
                    one,
                )
            }?;
        }
        Ok(())
    }

    /// The logarithms of the shares, which add up to 1.
    pub fn log_weights_at<T: CudaReal>(&mut self, gpu: &Cuda<T>) -> Result<u64, CudaError> {
        self.log_weights.reserve(&gpu.stream, 0)
    }

    /// Where the device finds the rates of rows of a component; with the weights behind them or not.
    pub fn look<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        number: usize,
        rows: &Rows,
        prior: bool,
    ) -> Result<Look, CudaError> {
        let stream = &gpu.stream;
        let part = &mut self.parts[number];
        let prior = match prior {
            true => Some(Prior {
                weights: part.prior.reserve(stream, 0)?,
                marginals: part.marginals.reserve(stream, 0)?,
            }),
            false => None,
        };
        Ok(Look {
            rates: part.rates.reserve(stream, 0)?,
            offsets: self.offsets.reserve(stream, 0)?,
            states: rows.states,
            places: rows.places,
            prior,
        })
    }

    /// From log F of rows (in the space of `whose`) to `log π p` of a component.
    ///
    /// # Safety
    /// Rows and what is told are on the device; log F of these rows is in the space of `whose`.
    pub unsafe fn join<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        number: usize,
        whose: usize,
        rows: &Rows,
        prior: bool,
        told: u64,
    ) -> Result<(), CudaError> {
        let stream = &gpu.stream;
        let n = self.shape.n;
        let joint =
            self.joint.reserve(stream, self.parts.len() * rows.count * 8)? + (number * rows.count * 8) as u64;
        let share = self.log_weights.reserve(stream, 0)? + (number * 8) as u64;
        let logs = self.parts[whose].space.logs.reserve(stream, 0)?;
        let part = &mut self.parts[number];
        let log_prior = part.log_prior.reserve(stream, 0)?;
        if prior {
            let one = threads([1, 1, 1], [1, 1]);
            // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
            unsafe { gpu.launch(launch::KeepPrior { log_prior, logs, told, row: rows.count }, one) }?;
        }
        let log_p = match self.family {
            Family::Moat { .. } => part.margins[0].reserve(stream, 0)?,
            Family::Directed => 0,
        };
        // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
        unsafe {
            gpu.launch(
                launch::RowLikelihoods {
                    joint,
                    logs,
                    log_prior,
                    log_p,
                    log_weight: share,
                    states: rows.states,
                    places: rows.places,
                    n,
                    rows: rows.count,
                },
                threads([rows.count.div_ceil(8), 1, 1], [32, 8]),
            )
        }
    }

    /// Log-likelihoods of rows from those of all components, and the parts of each row's weight, if there is a place for them.
    ///
    /// # Safety
    /// Weights and parts, where they are not 0, have room for so many rows; all components have been joined for them.
    pub unsafe fn mix<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        rows: usize,
        weights: u64,
        parts: u64,
    ) -> Result<u64, CudaError> {
        let stream = &gpu.stream;
        let joint = self.joint.reserve(stream, 0)?;
        let likelihoods = self.likelihoods.reserve(stream, rows * 8)?;
        // SAFETY: tables are reserved for this shape in `new`, parameters by whoever calls.
        unsafe {
            gpu.launch(
                launch::Responsibilities {
                    likelihoods,
                    parts,
                    joint,
                    weights,
                    components: self.parts.len(),
                    rows,
                    stride: rows,
                },
                threads([rows.div_ceil(128), 1, 1], [128, 1]),
            )
        }?;
        Ok(likelihoods)
    }
}

impl Part {
    /// Logarithms of probabilities, sums up to a state, logits against all before.
    pub fn margins_at<T: CudaReal>(&mut self, gpu: &Cuda<T>) -> Result<[u64; 3], CudaError> {
        let [log_p, prefix, alpha] = &mut self.margins;
        let stream = &gpu.stream;
        Ok([log_p.reserve(stream, 0)?, prefix.reserve(stream, 0)?, alpha.reserve(stream, 0)?])
    }
}

/// A model that stays on the device for as long as rows are asked about.
pub struct Resident<'a, T: CudaReal> {
    gpu: &'a Cuda<T>,
    model: Held,
}

/// What is on the device.
enum Held {
    /// Either family of all trees.
    Forests(Box<ResidentForests>),
    /// One hidden tree.
    Tree(Box<ResidentTree>),
}

/// A mixture of forests there.
struct ResidentForests {
    whole: Whole,
    /// What steps of learning would hear.
    told: Memory,
    states: Memory,
    /// Rows that are worked on together; known from the first rows on.
    at_once: Option<usize>,
    /// Is the normaliser known?
    normalised: bool,
}

impl<T: CudaReal> Cuda<T> {
    /// Takes a mixture to the device, if it is of a family that the device knows.
    pub fn resident(&self, mixture: &Mixture<Component>) -> Result<Option<Resident<'_, T>>, CudaError> {
        if let Some(tree) = ResidentTree::new(self, mixture)? {
            return Ok(Some(Resident { gpu: self, model: Held::Tree(Box::new(tree)) }));
        }
        let Some(mut whole) = Whole::new(self, mixture)? else { return Ok(None) };
        whole.parameters.put(&self.stream, &mixture.to_vec())?;
        // SAFETY: the parameters have just been put there.
        unsafe { whole.make_tables(self) }?;
        let (mut told, states) = (Memory::default(), Memory::default());
        told.clear(&self.stream, 8)?;
        let forests = ResidentForests { whole, told, states, at_once: None, normalised: false };
        Ok(Some(Resident { gpu: self, model: Held::Forests(Box::new(forests)) }))
    }
}

impl<T: CudaReal> Resident<'_, T> {
    /// The log-likelihood of every row of a table; NaN where the device cannot vouch for it.
    pub fn log_likelihoods(&mut self, table: &Table) -> Result<Vec<f64>, CudaError> {
        match &mut self.model {
            Held::Forests(forests) => forests.log_likelihoods(self.gpu, table),
            Held::Tree(tree) => tree.log_likelihoods(self.gpu, table),
        }
    }
}

impl ResidentForests {
    fn log_likelihoods<T: CudaReal>(&mut self, gpu: &Cuda<T>, table: &Table) -> Result<Vec<f64>, CudaError> {
        let Self { whole, told, states, at_once, normalised } = self;
        let stream = &gpu.stream;
        let shape = whole.shape;
        let at_once = at_once.get_or_insert_with(|| gpu.rows_at_once(&shape, EVALUATION));
        let told = told.reserve(stream, 0)?;
        let mut found = vec![0.0f64; table.rows()];
        let mut first = 0;
        while first < table.rows() {
            let some = first..(first + *at_once).min(table.rows());
            let here = states_of(table.some(some.clone()), whole.offsets_here());
            let rows = Rows { states: states.put(stream, &here)?, places: 0, count: some.len() };
            let mut all_components = || {
                for number in 0..whole.components() {
                    let look = whole.look(gpu, number, &rows, !*normalised)?;
                    // One space for all: nothing has to be kept.
                    // SAFETY: the states of these rows have just been put there; tables are those of the shape.
                    unsafe { gpu.eliminate(&shape, &look, rows.count, &mut whole.parts[0].space, false) }?;
                    // SAFETY: log F of these rows has just been computed into that space.
                    unsafe { whole.join(gpu, number, 0, &rows, !*normalised, told) }?;
                }
                Ok(())
            };
            match all_components() {
                // Half of them may fit.
                Err(CudaError::OutOfMemory { .. }) if *at_once > 1 => {
                    *at_once /= 2;
                    continue;
                }
                done => done?,
            }
            first = some.end;
            *normalised = true;
            // SAFETY: all components have been joined for these rows; no weights and no parts are asked for.
            unsafe { whole.mix(gpu, rows.count, 0, 0) }?;
            whole.likelihoods.get(stream, &mut found[some])?;
        }
        Ok(found)
    }
}
