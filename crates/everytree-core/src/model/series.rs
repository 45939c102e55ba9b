//! How a search for the best model goes through a family: series of candidates, each larger than the one before.

use super::Settings;

/// Candidates of one family that are tried one after the other, as long as they get better.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Series {
    /// What makes the next one larger.
    pub grows: Grows,
    /// How it learns, where that is not as usual.
    pub settings: fn(Settings) -> Settings,
    /// Series are begun in this order.
    pub order: u32,
}

/// What grows along a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grows {
    /// The prior, in rows that say that columns are independent.
    Prior(&'static [f64]),
    /// The number of components: this many, and twice as many each time; with the prior that was best.
    Components(usize),
    /// The same with this prior, if another one was best without components.
    ComponentsWithPrior(usize, f64),
    /// The states of latent variables: this many, and twice as many each time.
    Hidden(usize),
    /// The same, from where the series of this number in the list of the family was best.
    HiddenFrom(usize),
    /// The same, over the columns that are best taken together, if any are.
    HiddenOfBlocks(usize),
    /// Columns are taken together, in one way after the other.
    Blocks,
}

impl Grows {
    /// Do latent variables get more states?
    pub fn is_hidden(self) -> bool {
        matches!(self, Self::Hidden(_) | Self::HiddenFrom(_) | Self::HiddenOfBlocks(_))
    }
}

impl Series {
    /// Learns as usual.
    pub const fn new(order: u32, grows: Grows) -> Self {
        Self { grows, settings: |usual| usual, order }
    }
}
