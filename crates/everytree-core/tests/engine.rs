//! Machines that make steps by themselves: what they take and give back, steps that they cannot vouch for, and what is left when they
//! fail.

use everytree_core::data::Codes;
use everytree_core::data::{Dataset, Table, Unique};
use everytree_core::forest::{Backend, Counts, Cpu, ForestError, Summary, Tables};
use everytree_core::learn::{
    Adam, Datasets, Engine, LearnError, Plan, Search, SearchObserver, Step, Steps, log_likelihoods,
};
use everytree_core::model::{
    Component, Family, Mixture, ModelError, Optimiser, Pairs, Regularisation, Settings, Start, UnseenStates,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

type Model = Mixture<Component>;
type Cpu64 = Cpu<f64>;

const STATES: [usize; 4] = [2, 3, 2, 2];

fn rows(count: usize, seed: u64) -> Table {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(&STATES);
    for _ in 0..count {
        let first: u16 = rng.random_range(0..2);
        let second = if rng.random_bool(0.7) { first } else { rng.random_range(0..3) };
        table.push(&[first, second, u16::from(second > 0), rng.random_range(0..2)]);
    }
    table
}

fn settings() -> Settings {
    Settings {
        epochs: 4,
        batch_size: 32,
        ema: Some(0.9),
        optimiser: Optimiser::Adam,
        regularisation: Regularisation { shrinkage: 1.0, laplace: 0.5 },
        ..Family::Directed.settings(STATES.len())
    }
}

fn search(family: Family) -> Search {
    let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 1 };
    Search::new(Plan::simple(start, 2))
}

/// A processor that is less than one.
#[derive(Default)]
struct Machine {
    cpu: Cpu64,
    /// Takes over steps, and makes none: nothing that it does can be vouched for. How many rows each had.
    steps: Option<Mutex<Vec<usize>>>,
    /// Computes whole tables, all but these rows.
    doubtful: Option<Vec<usize>>,
    /// Batches after which it fails.
    left: Option<AtomicUsize>,
}

impl Backend for Machine {
    type Prepared = <Cpu64 as Backend>::Prepared;
    type Trace = <Cpu64 as Backend>::Trace;

    fn prepare(&self, tables: &Tables) -> Self::Prepared {
        self.cpu.prepare(tables)
    }

    fn trace(&self) -> Self::Trace {
        self.cpu.trace()
    }

    fn forward(
        &self,
        tables: &Self::Prepared,
        codes: Codes<'_>,
        trace: &mut Self::Trace,
        log_forest: &mut [f64],
    ) -> Result<Summary, ForestError> {
        if let Some(doubtful) = &self.doubtful {
            assert_eq!(codes.rows(), doubtful.len(), "nothing but what was in doubt");
        }
        if let Some(left) = &self.left {
            let fewer = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            fewer.map_err(|_| ForestError::Device("it has fallen off the bus".to_owned()))?;
        }
        self.cpu.forward(tables, codes, trace, log_forest)
    }

    fn backward(
        &self,
        tables: &Self::Prepared,
        trace: &mut Self::Trace,
        weights: &[f64],
        counts: &mut Counts,
    ) -> Result<(), ForestError> {
        self.cpu.backward(tables, trace, weights, counts)
    }
}

impl Engine<Model> for Machine {
    fn log_likelihoods(&self, model: &Model, table: &Table) -> Result<Option<Vec<f64>>, ModelError> {
        let Some(doubtful) = &self.doubtful else { return Ok(None) };
        let mut found = log_likelihoods(model, table, &self.cpu)?;
        doubtful.iter().for_each(|&row| found[row] = f64::NAN);
        Ok(Some(found))
    }

    fn steps<'a>(
        &'a self,
        _: &Model,
        _: &[UnseenStates],
        _: &Settings,
    ) -> Result<Option<Box<dyn Steps<Model> + 'a>>, ModelError> {
        let keeper = |asked| Box::new(Keeper { kept: None, rows: 0, asked }) as Box<dyn Steps<Model> + 'a>;
        Ok(self.steps.as_ref().map(keeper))
    }
}

/// What was handed over last.
struct Keeper<'a> {
    kept: Option<(Model, Adam, Option<Vec<f64>>)>,
    rows: usize,
    asked: &'a Mutex<Vec<usize>>,
}

impl Steps<Model> for Keeper<'_> {
    fn rows(&mut self, data: &Unique) -> Result<(), ModelError> {
        self.rows = data.table.rows();
        Ok(())
    }

    fn take(&mut self, model: &Model, adam: &Adam, average: Option<&[f64]>) -> Result<(), ModelError> {
        self.kept = Some((model.clone(), adam.clone(), average.map(<[f64]>::to_vec)));
        Ok(())
    }

    fn begin(&mut self, step: &Step<'_>) -> Result<(), ModelError> {
        assert_eq!(step.places.len(), step.weights.len());
        assert!(step.places.iter().all(|&place| (place as usize) < self.rows));
        assert!((step.weights.iter().sum::<f64>() - step.total).abs() < 1e-12);
        self.asked.lock().unwrap().push(step.places.len());
        Ok(())
    }

    fn end(&mut self) -> Result<Option<f64>, ModelError> {
        Ok(None)
    }

    fn give(
        &mut self,
        model: &mut Model,
        adam: &mut Adam,
        average: &mut Option<Vec<f64>>,
    ) -> Result<(), ModelError> {
        let (own_model, own_adam, own_average) = self.kept.clone().expect("taken before");
        (*model, *adam, *average) = (own_model, own_adam, own_average);
        Ok(())
    }
}

/// Steps that a machine cannot vouch for are made by the model, from what the machine gives back: learning comes out the same to the bit.
#[test]
fn a_step_in_doubt_is_made_by_the_model() {
    let (train, valid) = (rows(200, 1), rows(80, 2));
    let data = |table: &Table| Dataset::anonymous(&STATES, table.clone()).unwrap();
    let (train, valid) = (data(&train), data(&valid));
    let rows = Datasets { train: &train, valid: &valid };
    let cpu = Cpu64::new();
    for family in [Family::Moat, Family::Directed] {
        let mut plain = search(family);
        plain.run(rows, &settings(), &cpu, &cpu, &mut ()).unwrap();
        let doubtful = Machine { steps: Some(Mutex::default()), ..Machine::default() };
        let mut handed = search(family);
        handed.run(rows, &settings(), &doubtful, &cpu, &mut ()).unwrap();
        assert_eq!(plain.best, handed.best);
        // It was asked first, but not for ever: for 4 of 7 batches in each of 4 epochs.
        assert_eq!(doubtful.steps.unwrap().into_inner().unwrap().len(), 4 * 4);
    }
}

/// Remembers the search as it was after the last epoch, as a checkpoint does.
struct Checkpoints(Rc<RefCell<Option<Search>>>);

impl SearchObserver for Checkpoints {
    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        *self.0.borrow_mut() = Some(search.clone());
        ControlFlow::Continue(())
    }
}

/// Where a device fails in the middle of an epoch, the state after the one before is what is left, in memory and in the checkpoint, and
/// the processor comes to the same end from either.
#[test]
fn what_a_failing_device_leaves_is_taken_up_by_the_processor() {
    let (train, valid) = (rows(200, 3), rows(80, 4));
    let data = |table: &Table| Dataset::anonymous(&STATES, table.clone()).unwrap();
    let (train, valid) = (data(&train), data(&valid));
    let rows = Datasets { train: &train, valid: &valid };
    let cpu = Cpu64::new();
    let mut plain = search(Family::Directed);
    plain.run(rows, &settings(), &cpu, &cpu, &mut ()).unwrap();
    // Two components, seven batches an epoch: in the third epoch.
    let failing = Machine { left: Some(AtomicUsize::new(2 * (7 * 2 + 3))), ..Machine::default() };
    let kept = Rc::new(RefCell::new(None));
    let mut broken = search(Family::Directed);
    let error =
        broken.run(rows, &settings(), &failing, &cpu, &mut Checkpoints(Rc::clone(&kept))).unwrap_err();
    assert!(
        matches!(&error, LearnError::Model(ModelError::Forest(ForestError::Device(why))) if why.contains("bus")),
        "{error}"
    );
    let mut kept = kept.borrow().clone().expect("there were epochs");
    for search in [&mut broken, &mut kept] {
        let done = search.running.as_ref().map(|running| running.state.epochs());
        assert!(done.is_some_and(|done| (1..4).contains(&done)), "{done:?}");
        search.run(rows, &settings(), &cpu, &cpu, &mut ()).unwrap();
        assert_eq!(search.best, plain.best);
    }
}

/// Rows that a machine cannot vouch for are computed by the model, and no others.
#[test]
fn rows_in_doubt_are_computed_again() {
    let train = rows(200, 5);
    let start =
        Start { family: Family::Moat, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 1 };
    let model = start.model(&STATES, &train.unique(), 2, 1).unwrap();
    let plain = log_likelihoods(&model, &train, &Cpu64::new()).unwrap();
    let partial = Machine { doubtful: Some(vec![0, 17, 199]), ..Machine::default() };
    assert_eq!(log_likelihoods(&model, &train, &partial).unwrap(), plain);
}
