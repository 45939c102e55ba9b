//! Adam on the device: what every learner has beside its model.

use crate::engine::{Cuda, CudaError, threads};
use crate::launch;
use crate::real::CudaReal;
use crate::space::Memory;
use everytree_core::forest::ForestError;
use everytree_core::learn::{Adam, Step};
use everytree_core::model::{ModelError, Regularisation, Settings, UnseenStates};

/// What the host hears: doubt, the log-likelihood, and then the weights of all components.
pub(crate) const TOLD: usize = 2;
/// What the host says: scale, rate, both corrections of Adam, the decay of the average, smoothing, shrinkage.
pub(crate) const SAID: usize = 7;

impl From<CudaError> for ModelError {
    fn from(error: CudaError) -> Self {
        ForestError::Device(error.to_string()).into()
    }
}

/// The memory of the optimiser, and what host and device tell each other of a step.
pub(crate) struct Optimiser {
    ema: Option<f64>,
    pub regularisation: Regularisation,
    /// Parameters in all.
    size: usize,
    /// Steps that Adam has made.
    made: u64,
    has_average: bool,
    said: Memory,
    pub told: Memory,
    means: Memory,
    squares: Memory,
    average: Memory,
    pub gradient: Memory,
}

impl Optimiser {
    /// For so many parameters.
    pub fn new<T: CudaReal>(gpu: &Cuda<T>, size: usize, settings: &Settings) -> Result<Self, CudaError> {
        let mut gradient = Memory::default();
        // Places that are no parameters of anything have no derivatives.
        gradient.clear(&gpu.stream, size * 8)?;
        Ok(Self {
            ema: settings.ema,
            regularisation: settings.regularisation,
            size,
            made: 0,
            has_average: false,
            said: Memory::default(),
            told: Memory::default(),
            means: Memory::default(),
            squares: Memory::default(),
            average: Memory::default(),
            gradient,
        })
    }

    /// How many parameters there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Tells the device of a step: [`SAID`] numbers, then the weights of the rows and their places, with some `more` that weigh
    /// nothing. Where it lies.
    pub fn say<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        step: &Step<'_>,
        more: usize,
    ) -> Result<u64, CudaError> {
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
        let rows = step.places.len() + more;
        let mut bytes = Vec::with_capacity((SAID + rows) * 8 + rows * 4);
        let nothing = std::iter::repeat_n(&0.0, more);
        said.iter()
            .chain(step.weights)
            .chain(nothing)
            .for_each(|number| bytes.extend_from_slice(&number.to_ne_bytes()));
        let again = step.places.first().into_iter().cycle().take(more);
        step.places.iter().chain(again).for_each(|place| bytes.extend_from_slice(&place.to_ne_bytes()));
        self.said.put(&gpu.stream, &bytes)
    }

    /// A step along the gradient, where nothing is in doubt.
    ///
    /// # Safety
    /// `parameters` are as many as there are, and `said` is what [`Self::say`] put there.
    pub unsafe fn ascend<T: CudaReal>(
        &self,
        gpu: &Cuda<T>,
        parameters: u64,
        said: u64,
    ) -> Result<(), CudaError> {
        let (gradient, told, size) = (self.gradient.place(gpu), self.told.place(gpu), self.size);
        let each = threads([size.div_ceil(256), 1, 1], [256, 1]);
        let (means, squares) = (self.means.place(gpu), self.squares.place(gpu));
        // SAFETY: the gradient is reserved in `new`, the memory of Adam was put there by `take`, and the rest is the caller's promise.
        unsafe {
            gpu.launch(launch::DoubtGradient { told, gradient, size }, each)?;
            gpu.launch(launch::Adam { parameters, means, squares, gradient, how: said, told, size }, each)
        }
    }

    /// The average of the parameters goes after them, if there is to be one.
    ///
    /// # Safety
    /// As for [`Self::ascend`].
    pub unsafe fn follow<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        parameters: &Memory,
        said: u64,
    ) -> Result<(), CudaError> {
        if self.ema.is_none() {
            return Ok(());
        }
        if !self.has_average {
            self.average.copy(&gpu.stream, parameters, self.size * 8)?;
        }
        let (average, told, size) = (self.average.place(gpu), self.told.place(gpu), self.size);
        let parameters = parameters.place(gpu);
        let each = threads([size.div_ceil(256), 1, 1], [256, 1]);
        // SAFETY: the average is as long as the parameters; the rest is the caller's promise.
        unsafe { gpu.launch(launch::Follow { average, parameters, how: said, told, size }, each) }
    }

    /// Waits for the device, and hears how it went: the log-likelihood before the step, nothing if it was in doubt.
    pub fn hear<T: CudaReal>(&mut self, gpu: &Cuda<T>) -> Result<Option<f64>, CudaError> {
        let mut heard = [0.0; TOLD];
        self.told.get(&gpu.stream, &mut heard)?;
        let [doubt, log_likelihood] = heard;
        if doubt != 0.0 {
            return Ok(None);
        }
        self.made += 1;
        self.has_average = self.ema.is_some();
        Ok(Some(log_likelihood))
    }

    /// Takes the optimiser's memory.
    pub fn take<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        adam: &Adam,
        average: Option<&[f64]>,
    ) -> Result<(), CudaError> {
        let stream = &gpu.stream;
        self.means.put(stream, &adam.means)?;
        self.squares.put(stream, &adam.squares)?;
        if let Some(average) = average {
            self.average.put(stream, average)?;
        }
        self.made = adam.steps;
        self.has_average = average.is_some();
        Ok(())
    }

    /// Gives it back.
    pub fn give<T: CudaReal>(
        &self,
        gpu: &Cuda<T>,
        adam: &mut Adam,
        average: &mut Option<Vec<f64>>,
    ) -> Result<(), CudaError> {
        let stream = &gpu.stream;
        self.means.get(stream, &mut adam.means)?;
        self.squares.get(stream, &mut adam.squares)?;
        adam.steps = self.made;
        if self.has_average {
            self.average.get(stream, average.get_or_insert_with(|| vec![0.0; self.size]))?;
        }
        Ok(())
    }
}

/// On the device: the odds of what was not seen, variable by variable, and which states those are.
pub(crate) fn unseen<T: CudaReal>(
    gpu: &Cuda<T>,
    unseen: &[UnseenStates],
    offsets: &[usize],
) -> Result<Option<[Memory; 2]>, CudaError> {
    if unseen.is_empty() {
        return Ok(None);
    }
    let n = offsets.len() - 1;
    let (mut odds, mut which) = (vec![0.0f64; n], vec![0u8; offsets[n]]);
    for unseen in unseen {
        odds[unseen.variable] = unseen.odds();
        unseen.states.iter().for_each(|&a| which[offsets[unseen.variable] + a] = 1);
    }
    let mut both = [Memory::default(), Memory::default()];
    both[0].put(&gpu.stream, &odds)?;
    both[1].put(&gpu.stream, &which)?;
    Ok(Some(both))
}
