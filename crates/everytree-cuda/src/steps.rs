//! Steps of learning on the device: from a batch to new parameters without a return to the CPU.
//!
//! Rows and parameters stay there for an epoch. Of every step the host hears one number, the log-likelihood, and whether anything was
//! in doubt: then nothing has been changed, and the host makes that step itself.

use crate::engine::{Cuda, CudaError, threads};
use crate::forest::FEW_ROWS;
use crate::launch;
use crate::mixture::{Family, Rows, Whole, states_of};
use crate::real::CudaReal;
use crate::space::Memory;
use everytree_core::data::{Table, Unique};
use everytree_core::forest::ForestError;
use everytree_core::learn::{Adam, Engine, Step, Steps};
use everytree_core::model::{
    Component, Learnable, Mixture, ModelError, ParamsView, Regularisation, Settings, UnseenStates,
};

/// What the host hears: doubt, the log-likelihood, and then the weights of all components.
const TOLD: usize = 2;
/// What the host says: scale, rate, both corrections of Adam, the decay of the average, smoothing, shrinkage.
const SAID: usize = 7;

fn device(error: CudaError) -> ModelError {
    ForestError::Device(error.to_string()).into()
}

impl<T: CudaReal> Engine<Mixture<Component>> for Cuda<T> {
    fn log_likelihoods(
        &self,
        model: &Mixture<Component>,
        table: &Table,
    ) -> Result<Option<Vec<f64>>, ModelError> {
        let Some(mut resident) = self.resident(model).map_err(device)? else { return Ok(None) };
        resident.log_likelihoods(table).map(Some).map_err(device)
    }

    fn steps<'a>(
        &'a self,
        model: &Mixture<Component>,
        unseen: &[UnseenStates],
        settings: &Settings,
    ) -> Result<Option<Box<dyn Steps<Mixture<Component>> + 'a>>, ModelError> {
        let learner = Learner::new(self, model, unseen, settings).map_err(device)?;
        Ok(learner.map(|learner| Box::new(learner) as Box<dyn Steps<Mixture<Component>> + 'a>))
    }
}

/// Who makes the steps.
struct Learner<'a, T: CudaReal> {
    gpu: &'a Cuda<T>,
    whole: Whole,
    ema: Option<f64>,
    regularisation: Regularisation,
    /// Rows whose memory fits into the device; found at the first step.
    at_once: Option<usize>,
    /// Batches have a multiple of so many rows.
    rounded: usize,
    /// Parameters in all.
    all: usize,
    /// Steps that Adam has made.
    made: u64,
    has_average: bool,
    states: Memory,
    said: Memory,
    told: Memory,
    means: Memory,
    squares: Memory,
    average: Memory,
    gradient: Memory,
    /// What of every row's weight belongs to each component.
    parts: Memory,
    /// Of each component: expected counts, and weights of single states.
    counts: Vec<[Memory; 2]>,
    /// What pairs say about margins, twice, and what all of them say together.
    passed: [Memory; 3],
    /// Odds of what was not seen, variable by variable, and which states those are.
    held: Option<[Memory; 2]>,
}

impl<'a, T: CudaReal> Learner<'a, T> {
    fn new(
        gpu: &'a Cuda<T>,
        model: &Mixture<Component>,
        unseen: &[UnseenStates],
        settings: &Settings,
    ) -> Result<Option<Self>, CudaError> {
        let Some(mut whole) = Whole::new(gpu, model)? else { return Ok(None) };
        let stream = &gpu.stream;
        let (n, total, all) = (whole.shape.n, whole.shape.total, model.size());
        let is_small = whole.shape.is_small();
        let offsets = whole.offsets_here().to_vec();
        let held = match unseen.is_empty() {
            true => None,
            false => {
                let (mut odds, mut which) = (vec![0.0f64; n], vec![0u8; total]);
                for unseen in unseen {
                    odds[unseen.variable] = unseen.odds();
                    unseen.states.iter().for_each(|&a| which[offsets[unseen.variable] + a] = 1);
                }
                let mut held = [Memory::default(), Memory::default()];
                held[0].put(stream, &odds)?;
                held[1].put(stream, &which)?;
                Some(held)
            }
        };
        let counts = (0..whole.components()).map(|_| Default::default()).collect();
        // Steps are made one after the other, by nobody else.
        whole.parts.iter_mut().for_each(|part| part.space.may_record = true);
        let mut learner = Self {
            gpu,
            whole,
            ema: settings.ema,
            regularisation: settings.regularisation,
            at_once: None,
            // Where the work is recorded.
            rounded: match settings.batch_size <= FEW_ROWS && !is_small {
                true => settings.batch_size.div_ceil(8).max(1),
                false => 1,
            },
            all,
            made: 0,
            has_average: false,
            states: Memory::default(),
            said: Memory::default(),
            told: Memory::default(),
            means: Memory::default(),
            squares: Memory::default(),
            average: Memory::default(),
            gradient: Memory::default(),
            parts: Memory::default(),
            counts,
            passed: Default::default(),
            held,
        };
        // Places that are no parameters of anything have no derivatives.
        learner.gradient.clear(stream, all * 8)?;
        if matches!(learner.whole.family, Family::Moat { .. }) {
            let [passed, over, sums] = &mut learner.passed;
            passed.clear(stream, total * n * 8)?;
            let others = model.states().iter().any(|&count| count != 2);
            over.clear(stream, if others { total * n * 8 } else { 8 })?;
            sums.clear(stream, total * 8)?;
        }
        Ok(Some(learner))
    }

    /// Has the device begin a step.
    fn start(&mut self, step: &Step<'_>) -> Result<(), CudaError> {
        let gpu = self.gpu;
        let stream = &gpu.stream;
        let components = self.whole.components();
        let shape = self.whole.shape;
        let entries = shape.total * shape.total;
        // Work of the same size is the same work: some more rows, that weigh nothing, make it so more often.
        let more = step.places.len().next_multiple_of(self.rounded) - step.places.len();
        let rows = step.places.len() + more;
        let t = (self.made + 1) as f64;
        // 0.9 and 0.999 as in adam.rs.
        let Regularisation { shrinkage, laplace: smoothing } = self.regularisation;
        let said = [
            1.0 / step.total,
            step.rate,
            1.0 - 0.9f64.powf(t),
            1.0 - 0.999f64.powf(t),
            self.ema.unwrap_or(0.0),
            step.share * smoothing,
            step.share * shrinkage,
        ];
        let mut bytes = Vec::with_capacity((SAID + rows) * 8 + rows * 4);
        let nothing = std::iter::repeat_n(&0.0, more);
        said.iter()
            .chain(step.weights)
            .chain(nothing)
            .for_each(|number| bytes.extend_from_slice(&number.to_ne_bytes()));
        let again = std::iter::repeat_n(&step.places[0], more);
        step.places.iter().chain(again).for_each(|place| bytes.extend_from_slice(&place.to_ne_bytes()));
        let said = self.said.put(stream, &bytes)?;
        let weights = said + SAID as u64 * 8;
        let places = weights + rows as u64 * 8;
        self.told.clear(stream, (TOLD + components) * 8)?;
        let states = self.states.reserve(stream, 0)?;
        let parts = self.parts.reserve(stream, components * rows * size_of::<T>())?;
        let mut counts_at = Vec::with_capacity(components);
        for [counts, singles] in &mut self.counts {
            counts_at.push([counts.clear(stream, entries * 8)?, singles.clear(stream, shape.total * 8)?]);
        }
        // SAFETY: `take` has put the parameters there; nobody learns before.
        unsafe { self.whole.make_tables(gpu) }?;
        let at_once = match self.at_once {
            Some(at_once) => at_once,
            None => {
                let at_once = (gpu.rows_at_once(&shape, usize::MAX) / components).max(1);
                *self.at_once.insert(at_once)
            }
        };
        for first in (0..rows).step_by(at_once) {
            let some = Rows { states, places: places + first as u64 * 4, count: at_once.min(rows - first) };
            let prior = first == 0;
            let weights = weights + first as u64 * 8;
            let parts = parts + (first * components * size_of::<T>()) as u64;
            // SAFETY: weights, places, parts and counts of these rows are reserved above.
            unsafe { self.chunk(&some, prior, weights, parts, &counts_at) }?;
        }
        for (number, counts) in counts_at.iter().enumerate() {
            // SAFETY: counts are those of this component; `said` is what was put there above.
            unsafe { self.derive(number, *counts, said) }?;
        }
        // SAFETY: `said` is what was put there above.
        unsafe { self.ascend(said) }
    }

    /// Waits for the device, and hears how it went.
    fn hear(&mut self) -> Result<Option<f64>, CudaError> {
        let mut heard = [0.0; TOLD];
        self.told.get(&self.gpu.stream, &mut heard)?;
        let [doubt, log_likelihood] = heard;
        if doubt != 0.0 {
            return Ok(None);
        }
        self.made += 1;
        self.has_average = self.ema.is_some();
        Ok(Some(log_likelihood))
    }

    /// Some of the rows: likelihoods, responsibilities, and expected counts.
    ///
    /// # Safety
    /// Weights, parts and counts have room for these rows and this shape.
    unsafe fn chunk(
        &mut self,
        rows: &Rows,
        prior: bool,
        weights: u64,
        parts: u64,
        counts: &[[u64; 2]],
    ) -> Result<(), CudaError> {
        let gpu = self.gpu;
        let stream = &gpu.stream;
        let components = self.whole.components();
        let shape = self.whole.shape;
        let (count, n) = (rows.count, shape.n);
        let told = self.told.reserve(stream, 0)?;
        let part_of = |number: usize| parts + (number * count * size_of::<T>()) as u64;
        if components == 1 {
            let all = threads([count.div_ceil(256), 1, 1], [256, 1]);
            // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
            unsafe { gpu.launch(launch::WholeParts { parts, weights, rows: count }, all) }?;
        }
        for number in 0..components {
            let look = self.whole.look(gpu, number, rows, prior)?;
            let space = &mut self.whole.parts[number].space;
            match components {
                // SAFETY: the caller's promise; tables are those of the shape.
                1 => unsafe { gpu.forward_and_backward(&shape, &look, count, space, parts, counts[0][0]) }?,
                // SAFETY: the caller's promise; tables are those of the shape.
                _ => unsafe { gpu.eliminate(&shape, &look, count, space, true) }?,
            }
            // SAFETY: the caller's promise; log F of these rows has just been computed into that space.
            unsafe { self.whole.join(gpu, number, number, rows, prior, told) }?;
        }
        // SAFETY: the caller's promise; all components have been joined for these rows.
        let likelihoods =
            unsafe { self.whole.mix(gpu, count, weights, if components == 1 { 0 } else { parts }) }?;
        // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
        unsafe {
            gpu.launch(
                launch::AddRows { told, likelihoods, weights, parts, components, rows: count, stride: count },
                threads([1, 1, 1], [256, 1]),
            )
        }?;
        for (number, [sums, singles]) in counts.iter().enumerate() {
            if components > 1 {
                let look = self.whole.look(gpu, number, rows, prior)?;
                let space = &mut self.whole.parts[number].space;
                // SAFETY: the caller's promise; the rows were eliminated into that space.
                unsafe { gpu.backward_pass(&shape, &look, count, space, part_of(number), *sums) }?;
            }
            let trusted = self.whole.parts[number].space.trusted.reserve(stream, 0)?;
            let all = threads([(count + 1).div_ceil(256), 1, 1], [256, 1]);
            // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
            unsafe {
                gpu.launch(
                    launch::DoubtRows {
                        told,
                        trusted,
                        parts: part_of(number),
                        rows: count,
                        prior: usize::from(prior),
                    },
                    all,
                )
            }?;
            if matches!(self.whole.family, Family::Moat { .. }) {
                let offsets = self.whole.offsets.reserve(stream, 0)?;
                // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                unsafe {
                    gpu.launch(
                        launch::CountStates {
                            singles: *singles,
                            weights: part_of(number),
                            states: rows.states,
                            places: rows.places,
                            offsets,
                            n,
                            rows: count,
                        },
                        threads([n.div_ceil(8), 1, 1], [32, 8]),
                    )
                }?;
            }
        }
        Ok(())
    }

    /// Derivatives by the parameters of a component, from its counts.
    ///
    /// # Safety
    /// Counts have room for this shape; `said` is what [`Self::start`] put there.
    unsafe fn derive(
        &mut self,
        number: usize,
        [counts, singles]: [u64; 2],
        said: u64,
    ) -> Result<(), CudaError> {
        let gpu = self.gpu;
        let stream = &gpu.stream;
        let (n, total) = (self.whole.shape.n, self.whole.shape.total);
        let own = self.whole.of_component(gpu, number)?;
        let gradient = self.gradient.reserve(stream, 0)? + (number * self.whole.size * 8) as u64;
        let share = self.told.reserve(stream, 0)? + ((TOLD + number) * 8) as u64;
        let offsets = self.whole.offsets.reserve(stream, 0)?;
        let squares = threads([n.div_ceil(32), n.div_ceil(8), 1], [32, 8]);
        let part = &mut self.whole.parts[number];
        let (p, marginals) = (part.p.reserve(stream, 0)?, part.marginals.reserve(stream, 0)?);
        match &mut self.whole.family {
            Family::Moat { logits_at, pairs_at } => {
                let (logits_at, pairs_at) = (logits_at.reserve(stream, 0)?, pairs_at.reserve(stream, 0)?);
                let [_, prefix, alpha] = part.margins_at(gpu)?;
                let [passed, over, sums] = &mut self.passed;
                let passed = passed.reserve(stream, 0)?;
                let (over, sums) = (over.reserve(stream, 0)?, sums.reserve(stream, 0)?);
                // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                unsafe {
                    gpu.launch(
                        launch::MoatGradient {
                            gradient,
                            passed,
                            over,
                            counts,
                            parameters: own,
                            marginals,
                            total: share,
                            p,
                            prefix,
                            alpha,
                            offsets,
                            pairs_at,
                            n,
                            s: total,
                        },
                        squares,
                    )
                }?;
                // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                unsafe {
                    gpu.launch(
                        launch::MoatLogits {
                            gradient,
                            by_log_p: sums,
                            passed,
                            singles,
                            p,
                            offsets,
                            logits_at,
                            n,
                        },
                        threads([n, 1, 1], [128, 1]),
                    )
                }
            }
            Family::Directed => {
                let even = said + 5 * 8;
                // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                unsafe {
                    gpu.launch(
                        launch::DirectedGradient {
                            gradient,
                            counts,
                            p,
                            marginals,
                            total: share,
                            even,
                            offsets,
                            n,
                            s: total,
                        },
                        squares,
                    )
                }
            }
        }
    }

    /// Adam, where nothing is in doubt.
    ///
    /// # Safety
    /// `said` is what [`Self::start`] put there.
    unsafe fn ascend(&mut self, said: u64) -> Result<(), CudaError> {
        let gpu = self.gpu;
        let stream = &gpu.stream;
        let (components, size) = (self.whole.components(), self.whole.size);
        let (n, total) = (self.whole.shape.n, self.whole.shape.total);
        let gradient = self.gradient.reserve(stream, 0)?;
        let parameters = self.whole.of_component(gpu, 0)?;
        let told = self.told.reserve(stream, 0)?;
        let each = |count: usize| threads([count.div_ceil(256), 1, 1], [256, 1]);
        if components > 1 {
            let log_weights = self.whole.log_weights_at(gpu)?;
            let to = gradient + (components * size * 8) as u64;
            let one = threads([1, 1, 1], [1, 1]);
            // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
            unsafe {
                gpu.launch(launch::WeightsGradient { gradient: to, told, log_weights, components }, one)
            }?;
            if self.regularisation.shrinkage > 0.0 {
                let strength = said + 6 * 8;
                // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                unsafe {
                    gpu.launch(
                        launch::Shrink { gradient, parameters, strength, size, components },
                        each(size),
                    )
                }?;
            }
        }
        // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
        unsafe { gpu.launch(launch::DoubtGradient { told, gradient, size: self.all }, each(self.all)) }?;
        let means = self.means.reserve(stream, 0)?;
        let squares = self.squares.reserve(stream, 0)?;
        // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
        unsafe {
            gpu.launch(
                launch::Adam { parameters, means, squares, gradient, how: said, told, size: self.all },
                each(self.all),
            )
        }?;
        if let Some([odds, which]) = &mut self.held {
            let (odds, which) = (odds.reserve(stream, 0)?, which.reserve(stream, 0)?);
            let offsets = self.whole.offsets.reserve(stream, 0)?;
            for number in 0..components {
                let own = self.whole.of_component(gpu, number)?;
                match &mut self.whole.family {
                    Family::Moat { logits_at, .. } => {
                        let logits_at = logits_at.reserve(stream, 0)?;
                        // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                        unsafe {
                            gpu.launch(
                                launch::MoatSmoothUnseen {
                                    parameters: own,
                                    odds,
                                    unseen: which,
                                    offsets,
                                    logits_at,
                                    doubt: told,
                                    n,
                                },
                                each(n),
                            )
                        }?;
                    }
                    Family::Directed => {
                        let all = threads([total.div_ceil(128), n, 1], [128, 1]);
                        // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
                        unsafe {
                            gpu.launch(
                                launch::DirectedSmoothUnseen {
                                    parameters: own,
                                    odds,
                                    unseen: which,
                                    offsets,
                                    doubt: told,
                                    n,
                                    s: total,
                                },
                                all,
                            )
                        }?;
                    }
                }
            }
        }
        if self.ema.is_some() {
            if !self.has_average {
                self.average.copy(stream, &self.whole.parameters, self.all * 8)?;
            }
            let average = self.average.reserve(stream, 0)?;
            // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
            unsafe {
                gpu.launch(
                    launch::Follow { average, parameters, how: said, told, size: self.all },
                    each(self.all),
                )
            }?;
        }
        Ok(())
    }
}

impl<T: CudaReal> Steps<Mixture<Component>> for Learner<'_, T> {
    fn rows(&mut self, data: &Unique) -> Result<(), ModelError> {
        let states = states_of(data.table.codes(), self.whole.offsets_here());
        self.states.put(&self.gpu.stream, &states).map(drop).map_err(device)
    }

    fn take(
        &mut self,
        model: &Mixture<Component>,
        adam: &Adam,
        average: Option<&[f64]>,
    ) -> Result<(), ModelError> {
        let stream = &self.gpu.stream;
        self.whole.parameters.put(stream, &model.to_vec()).map_err(device)?;
        self.means.put(stream, &adam.means).map_err(device)?;
        self.squares.put(stream, &adam.squares).map_err(device)?;
        if let Some(average) = average {
            self.average.put(stream, average).map_err(device)?;
        }
        self.made = adam.steps;
        self.has_average = average.is_some();
        Ok(())
    }

    fn begin(&mut self, step: &Step<'_>) -> Result<(), ModelError> {
        loop {
            match (self.start(step), self.at_once) {
                // Nothing has been changed yet, and half of the rows at once may fit.
                (Err(CudaError::OutOfMemory { .. }), Some(rows)) if rows.min(step.places.len()) > 1 => {
                    self.at_once = Some(rows.min(step.places.len()) / 2);
                }
                (done, _) => return done.map_err(device),
            }
        }
    }

    fn end(&mut self) -> Result<Option<f64>, ModelError> {
        self.hear().map_err(device)
    }

    fn give(
        &mut self,
        model: &mut Mixture<Component>,
        adam: &mut Adam,
        average: &mut Option<Vec<f64>>,
    ) -> Result<(), ModelError> {
        let stream = &self.gpu.stream;
        let mut parameters = vec![0.0f64; self.all];
        self.whole.parameters.get(stream, &mut parameters).map_err(device)?;
        model.set(&parameters)?;
        self.means.get(stream, &mut adam.means).map_err(device)?;
        self.squares.get(stream, &mut adam.squares).map_err(device)?;
        adam.steps = self.made;
        if self.has_average {
            self.average.get(stream, average.get_or_insert_with(|| vec![0.0; self.all])).map_err(device)?;
        }
        Ok(())
    }
}
