//! A column of numbers as cells with a distribution inside each, so that models of states are models of numbers.
//!
//! ```text
//! log p(x) = log P(state of x) + log f(x | its state)
//! ```
//!
//! P is any model over states; f is fixed when the column is cut, and integrates to 1 over its cell:
//!
//! - **Inner cells** are even.
//! - **Outer cells** have no end: exponential, with the mean that the training rows have there; and a small part, 1 of as many as
//!   there are rows and one more, falls like 1/x², so that no number is impossible and all are in order. Where all numbers are on
//!   one side of zero the exponential part ends there.
//! - **Atoms** are numbers that many rows share: states of their own, with probabilities and not densities.
//! - **Grids**: numbers with a fixed number of decimals. The mass of a cell is spread over its numbers, so that everything is a
//!   probability.

use serde::{Deserialize, Serialize};

/// What more rows than this share of all have is an atom, if their neighbours have much less.
const ATOM: f64 = 0.02;
/// So many times what a number would have if its neighbours were as frequent.
const PEAK: f64 = 4.0;
/// Neighbours on either side that a number is compared with.
const NEIGHBOURS: usize = 5;
/// Most decimals of a grid.
const MOST_DECIMALS: u8 = 12;
/// Numbers of a grid are whole multiples of its step up to this.
const MOST_STEPS: f64 = (1u64 << 52) as f64;

/// Numbers in cells.
///
/// ```
/// use everytree_core::data::Cells;
///
/// let rising: Vec<f64> = (0..1000).map(|i| f64::from(i / 10)).collect();
/// let cells = Cells::new(&rising, Some(0), 8).unwrap();
/// // A hundred whole numbers, each as probable as the other within its cell.
/// assert!((cells.log_density(50.0) - (1.0 / 12.0f64).ln()).abs() < 0.1);
/// assert!(cells.log_density(1e9) > -60.0); // far outside, but not impossible
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cells {
    /// Between the cells, rising: cell i begins at edge i − 1.
    edges: Vec<f64>,
    /// Rising. They are states after the cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    atoms: Vec<f64>,
    /// Decimals, of a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decimals: Option<u8>,
    low: Tail,
    high: Tail,
}

/// What is beyond the first or the last edge, by the distance from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    /// Of the exponential part; below zero it rises.
    rate: f64,
    /// Where that ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<f64>,
    /// Distance within which half of the heavy part lies.
    scale: f64,
    /// The share of the heavy part.
    heavy: f64,
}

/// Which of the outer cells.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Low,
    High,
}

impl Tail {
    /// From the distances of the rows that lie there, the step of a grid (or 0), and where it has to end.
    fn new(distances: &[f64], step: f64, end: Option<f64>, usual: f64) -> Self {
        let rows = distances.len() as f64;
        let heavy = 1.0 / (rows + 1.0);
        let mean = match rows {
            0.0 => usual,
            _ => distances.iter().sum::<f64>() / rows,
        };
        // A single row at the edge says little about how far others may be.
        let mean = (mean * rows + usual / 2.0) / (rows + 0.5);
        let scale = mean.max(f64::MIN_POSITIVE);
        let rate = match end {
            Some(end) => rate_of_mean(mean.clamp(0.001 * end, 0.999 * end), end),
            // The numbers of a grid are in the middles of their steps.
            None if step > 0.0 => ((mean / step + 0.5) / (mean / step - 0.5).max(0.05)).ln() / step,
            None => 1.0 / scale,
        };
        Self { rate, end, scale, heavy }
    }

    /// The share of the exponential part from one distance to another, which may be infinite.
    fn exponential(&self, from: f64, to: f64) -> f64 {
        let to = self.end.map_or(to, |end| to.min(end));
        if to <= from {
            return 0.0;
        }
        match self.end {
            None => (-self.rate * from).exp() * -(-self.rate * (to - from)).exp_m1(),
            Some(end) if (self.rate * end).abs() < 1e-9 => (to - from) / end,
            Some(end) => {
                (-self.rate * from).exp() * (-self.rate * (to - from)).exp_m1() / (-self.rate * end).exp_m1()
            }
        }
    }

    /// The share of all between two distances.
    fn share(&self, from: f64, to: f64) -> f64 {
        let s = self.scale;
        // Of the heavy part s / (t + s) lies beyond t; the difference without cancellation.
        let heavy = match to {
            f64::INFINITY => s / (from + s),
            _ => s * (to - from) / ((from + s) * (to + s)),
        };
        (1.0 - self.heavy) * self.exponential(from, to) + self.heavy * heavy
    }

    fn density(&self, t: f64) -> f64 {
        let own = match self.end {
            Some(end) if t > end => 0.0,
            Some(end) if (self.rate * end).abs() < 1e-9 => 1.0 / end,
            Some(end) => self.rate * (-self.rate * t).exp() / -(-self.rate * end).exp_m1(),
            None => self.rate * (-self.rate * t).exp(),
        };
        (1.0 - self.heavy) * own + self.heavy * self.scale / (t + self.scale).powi(2)
    }

    /// The distance within which this share of the exponential part lies: what is drawn comes from it alone where it must end.
    fn quantile_of_exponential(&self, q: f64) -> f64 {
        match self.end {
            Some(end) if (self.rate * end).abs() < 1e-9 => q * end,
            Some(end) => -(q * (-self.rate * end).exp_m1()).ln_1p() / self.rate,
            None => -(-q).ln_1p() / self.rate,
        }
    }

    /// Mean and mean square of the distance, of the exponential part: the other has none.
    fn moments(&self) -> (f64, f64) {
        match self.end {
            None => (1.0 / self.rate, 2.0 / self.rate.powi(2)),
            Some(end) if (self.rate * end).abs() < 1e-4 => (end / 2.0, end * end / 3.0),
            Some(end) => {
                // What an exponential that goes on for ever has, less what lies beyond the end.
                let (r, over) = (self.rate, end / (self.rate * end).exp_m1());
                let mean = 1.0 / r - over;
                (mean, 2.0 / (r * r) - over * (end + 2.0 / r))
            }
        }
    }

    fn check(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        self.rate.is_finite()
            && positive(self.scale)
            && (0.0..=1.0).contains(&self.heavy)
            && match self.end {
                Some(end) => positive(end) && (self.rate * end).abs() < 700.0,
                None => positive(self.rate),
            }
    }
}

/// The rate of an exponential between 0 and an end that has this mean.
fn rate_of_mean(mean: f64, end: f64) -> f64 {
    // In units of the end: 1/r − 1/(eʳ − 1), which falls from 1 to 0.
    let of = |r: f64| if r.abs() < 1e-4 { 0.5 - r / 12.0 } else { 1.0 / r - 1.0 / r.exp_m1() };
    let (mut low, mut high) = (-600.0, 600.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if of(middle) > mean / end { low = middle } else { high = middle }
    }
    low / end
}

/// Numbers from one to another. Either end may be part of it, which matters where numbers have probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end, and is it part of it?
    pub low: (f64, bool),
    /// The upper end, and is it part of it?
    pub high: (f64, bool),
}

impl Interval {
    /// Is a number in it?
    pub fn contains(&self, x: f64) -> bool {
        let Self { low: (low, from), high: (high, to) } = *self;
        (low < x || (from && low == x)) && (x < high || (to && x == high))
    }
}

/// From where to where a state goes; of numbers on a grid, from which to which.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bounds {
    /// One number.
    Atom(f64),
    /// All below an edge (on a grid: up to a number).
    Below(f64),
    /// All from here on.
    From(f64),
    /// From one to the other; on a grid both are in it.
    Between(f64, f64),
}

impl Cells {
    /// Cuts numbers, which come rising and as often as rows have them, into about so many cells with as many rows each; numbers
    /// with a fixed number of decimals are on a grid. None where hardly anything is left beside atoms.
    pub fn new(rising: &[f64], decimals: Option<u8>, cells: usize) -> Option<Self> {
        let decimals = decimals.filter(|&decimals| fits_grid(rising, decimals));
        let counted = counted(rising);
        let atoms = atoms(&counted, rising.len(), decimals.is_some());
        let is_atom = |x: f64| atoms.binary_search_by(|atom| atom.total_cmp(&x)).is_ok();
        let others: Vec<(f64, usize)> = counted.into_iter().filter(|(x, _)| !is_atom(*x)).collect();
        if others.len() < 2 {
            return None;
        }
        let edges = edges(&others, cells.max(2), decimals);
        if edges.is_empty() {
            return None;
        }
        let step = decimals.map_or(0.0, step_of);
        let (first, last) = (edges[0], edges[edges.len() - 1]);
        let rows = |inside: &dyn Fn(f64) -> bool, distance: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let some = others.iter().filter(|(x, _)| inside(*x));
            some.flat_map(|&(x, count)| std::iter::repeat_n(distance(x), count)).collect()
        };
        let below = rows(&|x| x < first, &|x| first - x);
        let above = rows(&|x| x >= last, &|x| x - last);
        // Everything that was seen is on one side of zero: so is what is drawn.
        let (least, most) =
            (others[0].0.min(rising[0]), others[others.len() - 1].0.max(rising[rising.len() - 1]));
        let end_below = (least >= 0.0).then_some(first + step / 2.0).filter(|end| *end > 0.0);
        let end_above = (most <= 0.0).then_some(-last + step / 2.0).filter(|end| *end > 0.0);
        // As far as the numbers lie from each other, where there is nothing else to go by.
        let usual = ((most - least) / others.len() as f64).max(step).max(f64::MIN_POSITIVE);
        let low = Tail::new(&below, step, end_below, usual);
        let high = Tail::new(&above, step, end_above, usual);
        let made = Self { edges, atoms, decimals, low, high };
        made.check().then_some(made)
    }

    /// Is everything as it must be for masses to add up to 1? For what comes from files.
    pub fn check(&self) -> bool {
        let rising = |all: &[f64]| all.iter().all(|x| x.is_finite()) && all.windows(2).all(|w| w[0] < w[1]);
        let sound = !self.edges.is_empty()
            && rising(&self.edges)
            && rising(&self.atoms)
            && self.low.check()
            && self.high.check();
        let on_grid = || match self.decimals {
            None => true,
            // Edges are halfway between two numbers, atoms are numbers, and every cell has some that are no atoms.
            Some(decimals) => {
                let tens = 10f64.powi(decimals.into());
                let is_number = |x: f64| number_of(index_of(x, decimals), decimals) == x;
                decimals <= MOST_DECIMALS
                    && self.edges.iter().chain(&self.atoms).all(|x| (x * tens).abs() < MOST_STEPS / 4.0)
                    && self.edges.iter().all(|edge| (edge * tens - (edge * tens).floor() - 0.5).abs() < 0.01)
                    && self.atoms.iter().all(|&atom| is_number(atom))
                    && (1..self.edges.len()).all(|cell| self.numbers_in(cell) > 0.0)
                    && [Side::Low, Side::High].into_iter().all(|side| self.left_in_tail(side) > 1e-6)
            }
        };
        sound && on_grid()
    }

    /// States: cells and atoms.
    pub fn len(&self) -> usize {
        self.edges.len() + 1 + self.atoms.len()
    }

    /// There are always some.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Between the cells.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Numbers that are states of their own.
    pub fn atoms(&self) -> &[f64] {
        &self.atoms
    }

    /// Decimals of numbers that are on a grid: then everything is a probability, and no density.
    pub fn decimals(&self) -> Option<u8> {
        self.decimals
    }

    /// From where to where a state goes.
    pub(super) fn bounds(&self, state: usize) -> Bounds {
        if let Some(&atom) = state.checked_sub(self.edges.len() + 1).map(|place| &self.atoms[place]) {
            return Bounds::Atom(atom);
        }
        let half = self.decimals.map_or(0.0, step_of) / 2.0;
        let low = state.checked_sub(1).map(|below| self.round(self.edges[below] + half));
        let high = self.edges.get(state).map(|edge| self.round(edge - half));
        match (low, high) {
            (None, Some(high)) => Bounds::Below(high),
            (Some(low), Some(high)) => Bounds::Between(low, high),
            (low, None) => Bounds::From(low.unwrap_or(f64::NEG_INFINITY)),
        }
    }

    /// The nearest number that the column can have.
    pub fn round(&self, x: f64) -> f64 {
        self.decimals.map_or(x, |decimals| number_of(index_of(x, decimals), decimals))
    }

    /// The state of a number.
    pub fn state(&self, x: f64) -> usize {
        let x = self.round(x) + 0.0;
        match self.atoms.binary_search_by(|atom| atom.total_cmp(&x)) {
            Ok(atom) => self.edges.len() + 1 + atom,
            Err(_) => self.edges.partition_point(|edge| *edge <= x),
        }
    }

    /// The logarithm of the density (on a grid, of the probability) of a number given its state.
    pub fn log_density(&self, x: f64) -> f64 {
        let x = self.round(x);
        let state = self.state(x);
        if state > self.edges.len() {
            return 0.0;
        }
        let step = self.decimals.map_or(0.0, step_of);
        let Some((side, tail)) = self.tail(state) else {
            return match self.decimals {
                Some(_) => -self.numbers_in(state).ln(),
                None => -(self.edges[state] - self.edges[state - 1]).ln(),
            };
        };
        let t = self.distance(side, x);
        match self.decimals {
            None => tail.density(t).ln(),
            Some(_) => (tail.share((t - step / 2.0).max(0.0), t + step / 2.0) / self.left_in_tail(side)).ln(),
        }
    }

    /// How much of a state lies in an interval.
    pub fn share(&self, state: usize, interval: Interval) -> f64 {
        if let Some(&atom) = state.checked_sub(self.edges.len() + 1).map(|place| &self.atoms[place]) {
            return f64::from(u8::from(interval.contains(atom)));
        }
        // On a grid whatever lies in the steps of the numbers inside.
        let (mut low, mut high) = (interval.low.0, interval.high.0);
        if let Some(decimals) = self.decimals {
            let step = step_of(decimals);
            if low.is_finite() {
                let number = self.round(low);
                low = if number > low || (number == low && interval.low.1) {
                    number - step / 2.0
                } else {
                    number + step / 2.0
                };
            }
            if high.is_finite() {
                let number = self.round(high);
                high = if number < high || (number == high && interval.high.1) {
                    number + step / 2.0
                } else {
                    number - step / 2.0
                };
            }
        }
        let begin = state.checked_sub(1).map_or(f64::NEG_INFINITY, |below| self.edges[below]);
        let end = self.edges.get(state).copied().unwrap_or(f64::INFINITY);
        if low <= begin && end <= high {
            return 1.0;
        }
        let (low, high) = (low.max(begin), high.min(end));
        if low >= high {
            return 0.0;
        }
        let excluded = |all: &dyn Fn(f64) -> f64| -> f64 {
            let inside = self.atoms.iter().filter(|atom| low < **atom && **atom < high);
            if self.decimals.is_some() { inside.map(|atom| all(*atom)).sum() } else { 0.0 }
        };
        let share = match self.tail(state) {
            None => {
                let numbers = match self.decimals {
                    Some(decimals) => ((high - low) * 10f64.powi(decimals.into())).round(),
                    None => high - low,
                };
                let all = if self.decimals.is_some() { self.numbers_in(state) } else { end - begin };
                (numbers - excluded(&|_| 1.0)) / all
            }
            Some((side, tail)) => {
                let (from, to) = match side {
                    Side::Low => (self.edges[0] - high, self.edges[0] - low),
                    Side::High => (low - begin, high - begin),
                };
                let all = if self.decimals.is_some() { self.left_in_tail(side) } else { 1.0 };
                (tail.share(from.max(0.0), to) - excluded(&|atom| self.of_number(side, atom))) / all
            }
        };
        share.clamp(0.0, 1.0)
    }

    /// Mean and mean square of the numbers of a state; of outer cells without the part that has neither.
    pub fn moments(&self, state: usize) -> (f64, f64) {
        if let Some(&atom) = state.checked_sub(self.edges.len() + 1).map(|place| &self.atoms[place]) {
            return (atom, atom * atom);
        }
        match self.tail(state) {
            None => {
                let (low, high) = (self.edges[state - 1], self.edges[state]);
                let mean = low + (high - low) / 2.0;
                let width = high - low;
                // Of a grid with N numbers at equal distances (N² − 1)/12 steps².
                let step = self.decimals.map_or(0.0, step_of);
                (mean, mean * mean + (width * width - step * step).max(0.0) / 12.0)
            }
            Some((side, tail)) => {
                let (mean, square) = tail.moments();
                match side {
                    Side::Low => {
                        let edge = self.edges[0];
                        (edge - mean, edge * edge - 2.0 * edge * mean + square)
                    }
                    Side::High => {
                        let edge = self.edges[self.edges.len() - 1];
                        (edge + mean, edge * edge + 2.0 * edge * mean + square)
                    }
                }
            }
        }
    }

    /// A number of a state from a number between 0 and 1: evenly distributed ones give the distribution of the state, without the
    /// part of outer cells that lies beyond all bounds.
    pub fn draw(&self, state: usize, u: f64) -> f64 {
        if let Some(&atom) = state.checked_sub(self.edges.len() + 1).map(|place| &self.atoms[place]) {
            return atom;
        }
        let x = match self.tail(state) {
            None => self.edges[state - 1] + u * (self.edges[state] - self.edges[state - 1]),
            Some((Side::Low, tail)) => self.edges[0] - tail.quantile_of_exponential(u),
            Some((Side::High, tail)) => self.edges[self.edges.len() - 1] + tail.quantile_of_exponential(u),
        };
        self.inside(state, x)
    }

    /// The number of the column in this state that is nearest, and no atom.
    fn inside(&self, state: usize, x: f64) -> f64 {
        let Some(decimals) = self.decimals else {
            let (low, high) = (state.checked_sub(1).map(|below| self.edges[below]), self.edges.get(state));
            let x = low.map_or(x, |low| x.max(low));
            return high.map_or(x, |high| if x < *high { x } else { high.next_down() });
        };
        let place = index_of(x, decimals);
        // The nearest on either side in turn.
        for apart in 0..=self.atoms.len() as i64 + 1 {
            for near in [place + apart, place - apart] {
                let number = number_of(near, decimals);
                if self.state(number) == state {
                    return number;
                }
            }
        }
        number_of(place, decimals)
    }

    /// The outer cell of this state, if it is one.
    fn tail(&self, state: usize) -> Option<(Side, &Tail)> {
        match state {
            0 => Some((Side::Low, &self.low)),
            _ if state == self.edges.len() => Some((Side::High, &self.high)),
            _ => None,
        }
    }

    fn distance(&self, side: Side, x: f64) -> f64 {
        match side {
            Side::Low => self.edges[0] - x,
            Side::High => x - self.edges[self.edges.len() - 1],
        }
    }

    /// The share of an outer cell that one number of a grid has, before atoms are taken out.
    fn of_number(&self, side: Side, x: f64) -> f64 {
        let half = self.decimals.map_or(0.0, step_of) / 2.0;
        let tail = if side == Side::Low { &self.low } else { &self.high };
        let t = self.distance(side, x);
        tail.share((t - half).max(0.0), t + half)
    }

    /// What is left of an outer cell of a grid without atoms.
    fn left_in_tail(&self, side: Side) -> f64 {
        let beyond = self.atoms.iter().filter(|atom| self.distance(side, **atom) > 0.0);
        1.0 - beyond.map(|atom| self.of_number(side, *atom)).sum::<f64>()
    }

    /// Numbers of an inner cell of a grid that are no atoms.
    fn numbers_in(&self, cell: usize) -> f64 {
        let Some(decimals) = self.decimals else { return f64::INFINITY };
        let (low, high) = (self.edges[cell - 1], self.edges[cell]);
        let all = ((high - low) * 10f64.powi(decimals.into())).round();
        all - self.atoms.iter().filter(|atom| low < **atom && **atom < high).count() as f64
    }
}

fn step_of(decimals: u8) -> f64 {
    1.0 / 10f64.powi(decimals.into())
}

/// Which multiple of the step a number is nearest to.
fn index_of(x: f64, decimals: u8) -> i64 {
    (x * 10f64.powi(decimals.into())).round_ties_even() as i64
}

/// The number that is written with so many decimals.
fn number_of(index: i64, decimals: u8) -> f64 {
    index as f64 / 10f64.powi(decimals.into())
}

/// Are all numbers on this grid, and can it be counted?
fn fits_grid(numbers: &[f64], decimals: u8) -> bool {
    let tens = 10f64.powi(decimals.into());
    let fits =
        |x: &f64| (x * tens).abs() < MOST_STEPS / 8.0 && number_of(index_of(*x, decimals), decimals) == *x;
    decimals <= MOST_DECIMALS && numbers.iter().all(fits)
}

/// Decimals of the numbers of a column as they are written shortest, if at most half of them are distinct.
pub fn decimals_of(rising: &[f64]) -> Option<u8> {
    let distinct = counted(rising).len();
    if 2 * distinct > rising.len() {
        return None;
    }
    let found = (0..=MOST_DECIMALS).find(|&decimals| fits_grid(rising, decimals))?;
    Some(found)
}

/// Every number once, with how many rows have it.
fn counted(rising: &[f64]) -> Vec<(f64, usize)> {
    let mut counted: Vec<(f64, usize)> = Vec::new();
    for &x in rising {
        match counted.last_mut() {
            Some((last, count)) if *last == x => *count += 1,
            _ => counted.push((x + 0.0, 1)),
        }
    }
    counted
}

/// Numbers that many rows have: a fiftieth of all, and much more than their neighbours.
fn atoms(counted: &[(f64, usize)], rows: usize, on_grid: bool) -> Vec<f64> {
    let is_atom = |place: usize| {
        let count = counted[place].1 as f64;
        if count < ATOM * rows as f64 || count < 3.0 {
            return false;
        }
        let near = place.saturating_sub(NEIGHBOURS)..(place + NEIGHBOURS + 1).min(counted.len());
        let others = near.clone().filter(|&other| other != place).map(|other| counted[other].1 as f64);
        let (many, number) = others.fold((0.0, 0.0), |(sum, number), count| (sum + count, number + 1.0));
        // Of numbers that are not on a grid each comes once.
        if on_grid { count > PEAK * many / f64::max(number, 1.0) } else { true }
    };
    (0..counted.len()).filter(|&place| is_atom(place)).map(|place| counted[place].0).collect()
}

/// Edges at the quantiles, halfway between two numbers.
fn edges(counted: &[(f64, usize)], cells: usize, decimals: Option<u8>) -> Vec<f64> {
    let rows: usize = counted.iter().map(|(_, count)| count).sum();
    let mut edges = Vec::new();
    let (mut below, mut next) = (0, 1);
    for pair in counted.windows(2) {
        below += pair[0].1;
        if below * cells < next * rows {
            continue;
        }
        let (low, high) = (pair[0].0, pair[1].0);
        let middle = match decimals {
            // Halfway between two numbers that may both be seen.
            Some(decimals) => {
                let between = (index_of(low, decimals) + index_of(high, decimals)).div_euclid(2);
                (between as f64 + 0.5) / 10f64.powi(decimals.into())
            }
            None => low + (high - low) / 2.0,
        };
        if low < middle && middle <= high {
            edges.push(middle);
        }
        next = below * cells / rows + 1;
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::stream;
    use rand::{Rng, RngExt};

    /// Columns of every sort: spread, skewed, on grids, with atoms, on one side of zero.
    fn columns() -> Vec<(&'static str, Vec<f64>, Option<u8>)> {
        let mut rng = stream(5, "columns", 0);
        let mut made = Vec::new();
        let normal = |rng: &mut dyn Rng| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let spread: Vec<f64> = (0..900).map(|_| 3.0 + 2.0 * normal(&mut rng)).collect();
        let skewed: Vec<f64> = (0..700).map(|_| (1.5 * normal(&mut rng)).exp()).collect();
        let ages: Vec<f64> = (0..1300).map(|_| (30.0 + 14.0 * normal(&mut rng)).round().max(0.0)).collect();
        let prices: Vec<f64> = (0..2000)
            .map(|row| if row % 5 == 0 { 1.99 } else { (normal(&mut rng).abs() * 200.0).round() / 100.0 })
            .collect();
        let debts: Vec<f64> = (0..400).map(|_| -(normal(&mut rng).abs() * 50.0).round()).collect();
        let with_zeros: Vec<f64> =
            (0..800).map(|row| if row % 3 == 0 { 0.0 } else { normal(&mut rng).abs() + 0.1 }).collect();
        let few: Vec<f64> = (0..30).map(|_| normal(&mut rng)).collect();
        for (name, mut numbers, decimals) in [
            ("spread", spread, None),
            ("skewed", skewed, None),
            ("ages", ages, Some(0)),
            ("prices", prices, Some(2)),
            ("debts", debts, Some(0)),
            ("with zeros", with_zeros, None),
            ("few", few, None),
        ] {
            numbers.sort_by(f64::total_cmp);
            made.push((name, numbers, decimals));
        }
        made
    }

    fn cut(name: &str, numbers: &[f64], decimals: Option<u8>, cells: usize) -> Cells {
        assert_eq!(decimals_of(numbers), decimals, "{name}");
        Cells::new(numbers, decimals, cells).unwrap()
    }

    /// The integral from one number to another, by the middles of many steps: a density may jump at either end.
    fn integral(f: &dyn Fn(f64) -> f64, from: f64, to: f64) -> f64 {
        const STEPS: usize = 40_000;
        let width = (to - from) / STEPS as f64;
        (0..STEPS).map(|i| f(from + (i as f64 + 0.5) * width)).sum::<f64>() * width
    }

    /// The integral of a function of the distance from an edge, to infinity: t = s u / (1 − u).
    fn integral_of_tail(f: &dyn Fn(f64) -> f64, scale: f64, ends: &[f64]) -> f64 {
        let place = |t: f64| t / (t + scale);
        let of = |u: f64| if u >= 1.0 { 0.0 } else { f(scale * u / (1.0 - u)) * scale / (1.0 - u).powi(2) };
        let mut cuts: Vec<f64> = ends.iter().map(|end| place(*end)).collect();
        cuts.extend([0.0, 0.5, 0.9, 0.99, 1.0 - 1e-9]);
        cuts.sort_by(f64::total_cmp);
        let pieces = cuts.windows(2).filter(|two| two[1] - two[0] > 1e-12);
        pieces.map(|two| integral(&of, two[0], two[1])).sum()
    }

    #[test]
    fn every_state_is_a_distribution() {
        for (name, numbers, decimals) in columns() {
            for count in [2, 8, 16] {
                let cells = cut(name, &numbers, decimals, count);
                assert!(cells.check(), "{name}");
                for state in 0..cells.len() {
                    let total = match decimals {
                        Some(decimals) => {
                            // All numbers within reach, and what the outer cells have beyond.
                            let reach = 40_000;
                            let inside = (-reach..=reach)
                                .map(|index| number_of(index, decimals))
                                .filter(|x| cells.state(*x) == state)
                                .map(|x| cells.log_density(x).exp())
                                .sum::<f64>();
                            let end = number_of(reach, decimals);
                            let beyond = |low, high| cells.share(state, Interval { low, high });
                            inside
                                + beyond((f64::NEG_INFINITY, true), (-end, false))
                                + beyond((end, false), (f64::INFINITY, true))
                        }
                        None if state > cells.edges.len() => 1.0,
                        None => match cells.tail(state) {
                            None => {
                                let (low, high) = (cells.edges[state - 1], cells.edges[state]);
                                integral(&|x| cells.log_density(x).exp(), low, high)
                            }
                            Some((side, tail)) => {
                                let edge = if side == Side::Low {
                                    cells.edges[0]
                                } else {
                                    cells.edges[cells.edges.len() - 1]
                                };
                                let at = |t: f64| if side == Side::Low { edge - t } else { edge + t };
                                let f = |t: f64| tail.density(t);
                                let t = 0.7 * tail.scale;
                                assert!((f(t).ln() - cells.log_density(at(t))).abs() < 1e-9, "{name}");
                                integral_of_tail(&f, tail.scale, tail.end.as_slice())
                            }
                        },
                    };
                    assert!((total - 1.0).abs() < 1e-6, "{name}, {count} cells, state {state}: {total}");
                }
            }
        }
    }

    #[test]
    fn shares_are_those_of_the_densities() {
        for (name, numbers, decimals) in columns() {
            let cells = cut(name, &numbers, decimals, 8);
            let (least, most) = (numbers[0] - 7.0, numbers[numbers.len() - 1] + 7.0);
            let mut rng = stream(6, "intervals", 0);
            for _ in 0..40 {
                let mut ends = [0, 1].map(|_| {
                    let x = least + (most - least) * rng.random::<f64>();
                    // Some at numbers that can be seen.
                    if rng.random_bool(0.5) { numbers[rng.random_range(0..numbers.len())] } else { x }
                });
                ends.sort_by(f64::total_cmp);
                let interval =
                    Interval { low: (ends[0], rng.random_bool(0.5)), high: (ends[1], rng.random_bool(0.5)) };
                for state in 0..cells.len() {
                    let expected = match decimals {
                        Some(decimals) => (index_of(ends[0], decimals) - 1..=index_of(ends[1], decimals) + 1)
                            .map(|index| number_of(index, decimals))
                            .filter(|x| interval.contains(*x) && cells.state(*x) == state)
                            .map(|x| cells.log_density(x).exp())
                            .sum::<f64>(),
                        None if state > cells.edges.len() => {
                            f64::from(u8::from(interval.contains(cells.atoms[state - cells.edges.len() - 1])))
                        }
                        None => {
                            let begin =
                                state.checked_sub(1).map_or(f64::NEG_INFINITY, |below| cells.edges[below]);
                            let end = cells.edges.get(state).copied().unwrap_or(f64::INFINITY);
                            let (low, high) = (ends[0].max(begin), ends[1].min(end));
                            // Where the exponential part ends.
                            let mut cuts = vec![low, high];
                            cuts.extend((low < 0.0 && 0.0 < high).then_some(0.0));
                            cuts.sort_by(f64::total_cmp);
                            let f = |x: f64| {
                                if cells.state(x) == state { cells.log_density(x).exp() } else { 0.0 }
                            };
                            let pieces = cuts.windows(2).filter(|two| two[0] < two[1]);
                            pieces.map(|two| integral(&f, two[0], two[1])).sum()
                        }
                    };
                    let found = cells.share(state, interval);
                    assert!(
                        (found - expected).abs() < 2e-5,
                        "{name}, {state}, {interval:?}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_drawn_is_of_the_state_and_has_its_moments() {
        for (name, numbers, decimals) in columns() {
            let cells = cut(name, &numbers, decimals, 8);
            let one_side = numbers[0] >= 0.0 || numbers[numbers.len() - 1] <= 0.0;
            for state in 0..cells.len() {
                const DRAWS: usize = 4000;
                // Evenly, so that there is no chance in it.
                let draws: Vec<f64> =
                    (0..DRAWS).map(|i| cells.draw(state, (i as f64 + 0.5) / DRAWS as f64)).collect();
                assert!(draws.iter().all(|x| cells.state(*x) == state), "{name}, {state}");
                assert!(
                    !one_side || draws.iter().all(|x| x * (numbers[0] + numbers[numbers.len() - 1]) >= 0.0)
                );
                let mean = draws.iter().sum::<f64>() / DRAWS as f64;
                let square = draws.iter().map(|x| x * x).sum::<f64>() / DRAWS as f64;
                let (found, found_square) = cells.moments(state);
                let spread = (square - mean * mean).max(0.0).sqrt();
                let step = decimals.map_or(0.0, step_of);
                // Atoms are passed over by their neighbours.
                let near = 0.02 * spread + 2.0 * step;
                assert!((found - mean).abs() <= near, "{name}, {state}: {found} {mean} ± {spread}");
                let found_spread = (found_square - found * found).max(0.0).sqrt();
                assert!((found_spread - spread).abs() <= 0.03 * spread + 2.0 * step, "{name}, {state}");
            }
        }
    }

    #[test]
    fn numbers_that_many_rows_share_are_states() {
        let made: Vec<Vec<f64>> = columns()
            .into_iter()
            .map(|(name, numbers, decimals)| cut(name, &numbers, decimals, 8).atoms().to_vec())
            .collect();
        assert_eq!(made, [vec![], vec![], vec![], vec![1.99], vec![], vec![0.0], vec![]]);
    }

    #[test]
    fn numbers_far_away_are_possible_and_in_order() {
        for (name, numbers, decimals) in columns() {
            let cells = cut(name, &numbers, decimals, 8);
            let far = [1e2, 1e3, 1e5, 1e7, 1e9].map(|x| cells.log_density(x));
            assert!(far.windows(2).all(|two| two[0] > two[1]), "{name}: {far:?}");
            assert!(far.iter().all(|log| *log > -80.0), "{name}: {far:?}");
        }
    }

    #[test]
    fn too_little_beside_atoms_is_not_cut() {
        assert!(Cells::new(&[1.0; 50], Some(0), 8).is_none());
        let mut two = vec![0.0; 50];
        two.extend([1.0; 50]);
        assert!(Cells::new(&two, None, 8).is_none());
        assert_eq!(decimals_of(&[0.25, 0.25, 0.5, 0.5]), Some(2));
        assert_eq!(decimals_of(&[0.1, 0.2, 0.3]), None);
        // Huge and tiny numbers are cut, or not, but never into something that is no distribution.
        for numbers in [
            vec![-1e308, -1e300, 0.0, 1e300, 1e308],
            vec![5e-324, 1e-320, 1e-310, 1e-300],
            (0..50).map(|i| 1e17 + f64::from(i) * 64.0).collect(),
        ] {
            if let Some(cells) = Cells::new(&numbers, None, 3) {
                assert!(
                    cells.check() && numbers.iter().all(|x| cells.log_density(*x).is_finite()),
                    "{cells:?}"
                );
            }
        }
    }
}
