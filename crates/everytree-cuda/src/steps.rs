//! Steps of learning on the device: from a batch to new parameters without a return to the CPU.
//!
//! Rows and parameters stay there for an epoch. Of every step the host hears one number, the log-likelihood, and whether anything was
//! in doubt: then nothing has been changed, and the host makes that step itself.

use crate::engine::{Cuda, CudaError, threads};
use crate::forest::FEW_ROWS;
use crate::hidden::TreeLearner;
use crate::launch;
use crate::mixture::{Family, Rows, Whole, states_of};
use crate::optimiser::{self, Optimiser, SAID, TOLD};
use crate::real::CudaReal;
use crate::space::Memory;
use everytree_core::data::{Table, Unique};
use everytree_core::learn::{Adam, Engine, Step, Steps};
use everytree_core::model::{Component, Learnable, Mixture, ModelError, ParamsView, Settings, UnseenStates};

impl<T: CudaReal> Engine<Mixture<Component>> for Cuda<T> {
    fn log_likelihoods(
        &self,
        model: &Mixture<Component>,
        table: &Table,
    ) -> Result<Option<Vec<f64>>, ModelError> {
        let Some(mut resident) = self.resident(model)? else { return Ok(None) };
        Ok(Some(resident.log_likelihoods(table)?))
    }

    fn steps<'a>(
        &'a self,
        model: &Mixture<Component>,
        unseen: &[UnseenStates],
        settings: &Settings,
    ) -> Result<Option<Box<dyn Steps<Mixture<Component>> + 'a>>, ModelError> {
        if let Some(learner) = TreeLearner::new(self, model, unseen, settings)? {
            return Ok(Some(Box::new(learner)));
        }
        let learner = Learner::new(self, model, unseen, settings)?;
        Ok(learner.map(|learner| Box::new(learner) as Box<dyn Steps<Mixture<Component>> + 'a>))
    }
}

/// Who makes the steps.
struct Learner<'a, T: CudaReal> {
    gpu: &'a Cuda<T>,
    whole: Whole,
    optimiser: Optimiser,
    /// Rows whose memory fits into the device; found at the first step.
    at_once: Option<usize>,
    /// Batches have a multiple of so many rows.
    rounded: usize,
    states: Memory,
    /// What of every row's weight belongs to each component.
    parts: Memory,
    /// Of each component: expected counts, and weights of single states.
    counts: Vec<[Memory; 2]>,
    /// What pairs say about margins, twice, and what all of them say together.
    passed: [Memory; 3],
    /// Odds of what was not seen, variable by variable, and which states those are.
    unseen: Option<[Memory; 2]>,
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
        let (n, total) = (whole.shape.n, whole.shape.total);
        let is_small = whole.shape.is_small();
        let unseen = optimiser::unseen(gpu, unseen, whole.offsets_here())?;
        let counts = (0..whole.components()).map(|_| Default::default()).collect();
        // Steps are made one after the other, by nobody else.
        whole.parts.iter_mut().for_each(|part| part.space.may_record = true);
        let mut learner = Self {
            gpu,
            whole,
            optimiser: Optimiser::new(gpu, model.size(), settings)?,
            at_once: None,
            // Where the work is recorded.
            rounded: match settings.batch_size <= FEW_ROWS && !is_small {
                true => settings.batch_size.div_ceil(8).max(1),
                false => 1,
            },
            states: Memory::default(),
            parts: Memory::default(),
            counts,
            passed: Default::default(),
            unseen,
        };
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
        let said = self.optimiser.say(gpu, step, more)?;
        let weights = said + SAID as u64 * 8;
        let places = weights + rows as u64 * 8;
        self.optimiser.told.clear(stream, (TOLD + components) * 8)?;
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
        let told = self.optimiser.told.place(gpu);
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
        let gradient = self.optimiser.gradient.place(gpu) + (number * self.whole.size * 8) as u64;
        let share = self.optimiser.told.place(gpu) + ((TOLD + number) * 8) as u64;
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
        let gradient = self.optimiser.gradient.place(gpu);
        let parameters = self.whole.of_component(gpu, 0)?;
        let told = self.optimiser.told.place(gpu);
        let each = |count: usize| threads([count.div_ceil(256), 1, 1], [256, 1]);
        if components > 1 {
            let log_weights = self.whole.log_weights_at(gpu)?;
            let to = gradient + (components * size * 8) as u64;
            let one = threads([1, 1, 1], [1, 1]);
            // SAFETY: lists of all parameters are reserved from the first step on, tables for this shape in `new`, rows by whoever calls.
            unsafe {
                gpu.launch(launch::WeightsGradient { gradient: to, told, log_weights, components }, one)
            }?;
            if self.optimiser.regularisation.shrinkage > 0.0 {
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
        // SAFETY: parameters are put there before the first step; `said` is the caller's promise.
        unsafe { self.optimiser.ascend(gpu, parameters, said) }?;
        if let Some([odds, which]) = &mut self.unseen {
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
        // SAFETY: as above.
        unsafe { self.optimiser.follow(gpu, &self.whole.parameters, said) }
    }
}

impl<T: CudaReal> Steps<Mixture<Component>> for Learner<'_, T> {
    fn rows(&mut self, data: &Unique) -> Result<(), ModelError> {
        let states = states_of(data.table.codes(), self.whole.offsets_here());
        Ok(self.states.put(&self.gpu.stream, &states).map(drop)?)
    }

    fn take(
        &mut self,
        model: &Mixture<Component>,
        adam: &Adam,
        average: Option<&[f64]>,
    ) -> Result<(), ModelError> {
        self.whole.parameters.put(&self.gpu.stream, &model.to_vec())?;
        Ok(self.optimiser.take(self.gpu, adam, average)?)
    }

    fn begin(&mut self, step: &Step<'_>) -> Result<(), ModelError> {
        loop {
            match (self.start(step), self.at_once) {
                // Nothing has been changed yet, and half of the rows at once may fit.
                (Err(CudaError::OutOfMemory { .. }), Some(rows)) if rows.min(step.places.len()) > 1 => {
                    self.at_once = Some(rows.min(step.places.len()) / 2);
                }
                (done, _) => return Ok(done?),
            }
        }
    }

    fn end(&mut self) -> Result<Option<f64>, ModelError> {
        Ok(self.optimiser.hear(self.gpu)?)
    }

    fn give(
        &mut self,
        model: &mut Mixture<Component>,
        adam: &mut Adam,
        average: &mut Option<Vec<f64>>,
    ) -> Result<(), ModelError> {
        let mut parameters = vec![0.0f64; self.optimiser.size()];
        self.whole.parameters.get(&self.gpu.stream, &mut parameters)?;
        model.set(&parameters)?;
        Ok(self.optimiser.give(self.gpu, adam, average)?)
    }
}
