//! A hidden tree on the device: likelihoods of rows on the way up, expected counts on the way down; and steps of learning.
//!
//! Latent variables lie in slots, level after level from the roots on, so that the messages of a level are one batch of matrix
//! products.

use crate::engine::{Cuda, CudaError, threads};
use crate::forest::MOST_STATES;
use crate::launch;
use crate::mixture::{Rows, states_of};
use crate::optimiser::{Optimiser, SAID};
use crate::real::{CudaReal, Products};
use crate::space::Memory;
use everytree_core::data::{Table, Unique};
use everytree_core::learn::{Adam, Step, Steps};
use everytree_core::model::{Component, Learnable, Mixture, ModelError, ParamsView, Settings, UnseenStates};

/// Latent states below which the CPU is faster: what is computed then takes less time than to start it.
const LEAST_HIDDEN: usize = 16;
/// Share of the free memory that messages may take: one part of so many.
const PART_OF_MEMORY: usize = 4;
/// Rows of a thread block.
const LINES: usize = 8;
/// The same where states are counted, as in `hidden.cu`.
const LEAF_ROWS: usize = 8;

/// Where everything lies.
struct Slots {
    /// The latent variable of each.
    variables: Vec<i32>,
    /// The slot of each latent variable.
    of: Vec<i32>,
    /// The slot of the parent; of roots their own.
    parents: Vec<i32>,
    /// Where the children of each slot begin, and where those of the last end.
    children: Vec<i32>,
    /// Where levels begin, and where the last ends.
    levels: Vec<usize>,
}

impl Slots {
    /// Of a forest with these parents; roots are their own.
    fn new(tree: &[usize]) -> Self {
        let n = tree.len();
        let mut below = vec![Vec::new(); n];
        let mut level: Vec<usize> = Vec::new();
        for (v, &parent) in tree.iter().enumerate() {
            if parent == v { level.push(v) } else { below[parent].push(v) }
        }
        let (mut variables, mut levels) = (Vec::with_capacity(n), vec![0]);
        while !level.is_empty() {
            variables.extend(level.iter().map(|&v| v as i32));
            levels.push(variables.len());
            level = level.iter().flat_map(|&v| below[v].iter().copied()).collect();
        }
        let mut of = vec![0; n];
        variables.iter().enumerate().for_each(|(slot, &v)| of[v as usize] = slot as i32);
        let parents = variables.iter().map(|&v| of[tree[v as usize]]).collect();
        // Level after level, so the children of one slot begin where those of the slot before end.
        let mut children = vec![levels[1] as i32];
        for &v in &variables {
            children.push(children[children.len() - 1] + below[v as usize].len() as i32);
        }
        Self { variables, of, parents, children, levels }
    }

    fn roots(&self) -> usize {
        self.levels[1]
    }
}

/// A hidden tree, its tables, and the messages of some rows.
pub(crate) struct HiddenTree {
    slots: Slots,
    n: usize,
    hidden: usize,
    /// States of all observed variables.
    total: usize,
    /// How many parameters there are.
    size: usize,
    offsets_here: Vec<usize>,
    pub parameters: Memory,
    /// Of all variables, the latent ones last.
    offsets: Memory,
    owners: Memory,
    variables: Memory,
    slot_of: Memory,
    parents: Memory,
    children: Memory,
    norms: Memory,
    leaves: Memory,
    leaf_logs: Memory,
    tables: Memory,
    up: Memory,
    told: Memory,
    above: Memory,
    scales: Memory,
    shares: Memory,
    logs: Memory,
}

impl HiddenTree {
    /// Room for such a model, if it is one hidden tree that is worth it.
    pub fn new<T: CudaReal>(gpu: &Cuda<T>, mixture: &Mixture<Component>) -> Result<Option<Self>, CudaError> {
        let [Component::Hclt(tree)] = mixture.components() else { return Ok(None) };
        let (states, hidden) = (mixture.states(), tree.hidden());
        let n = states.len();
        let total: usize = states.iter().sum();
        let size = mixture.size();
        // Kernels count in 32 bits, and somewhat beyond the end.
        if hidden < LEAST_HIDDEN || total > MOST_STATES || size > i32::MAX as usize - (1 << 12) {
            return Ok(None);
        }
        let slots = Slots::new(&tree.latent_parents());
        let mut offsets_here = vec![0];
        for count in states.iter().copied().chain(std::iter::repeat_n(hidden, n)) {
            offsets_here.push(offsets_here[offsets_here.len() - 1] + count);
        }
        let owners: Vec<i32> =
            states.iter().enumerate().flat_map(|(v, &count)| std::iter::repeat_n(v as i32, count)).collect();
        let offsets: Vec<i32> = offsets_here.iter().map(|&offset| offset as i32).collect();
        let stream = &gpu.stream;
        let real = size_of::<T>();
        let mut made = Self {
            n,
            hidden,
            total,
            size,
            offsets_here,
            parameters: Memory::default(),
            offsets: Memory::default(),
            owners: Memory::default(),
            variables: Memory::default(),
            slot_of: Memory::default(),
            parents: Memory::default(),
            children: Memory::default(),
            norms: Memory::default(),
            leaves: Memory::default(),
            leaf_logs: Memory::default(),
            tables: Memory::default(),
            up: Memory::default(),
            told: Memory::default(),
            above: Memory::default(),
            scales: Memory::default(),
            shares: Memory::default(),
            logs: Memory::default(),
            slots,
        };
        made.parameters.reserve(stream, size * 8)?;
        made.offsets.put(stream, &offsets)?;
        made.owners.put(stream, &owners)?;
        made.variables.put(stream, &made.slots.variables)?;
        made.slot_of.put(stream, &made.slots.of)?;
        made.parents.put(stream, &made.slots.parents)?;
        made.children.put(stream, &made.slots.children)?;
        made.norms.reserve(stream, 2 * n * hidden * 8)?;
        made.leaves.reserve(stream, total * hidden * real)?;
        made.leaf_logs.reserve(stream, total * 8)?;
        made.tables.reserve(stream, n * hidden * hidden * real)?;
        Ok(Some(made))
    }

    /// Where the states of each variable begin, as the host knows it.
    fn offsets_here(&self) -> &[usize] {
        &self.offsets_here
    }

    /// Rows whose messages fit beside everything else: three matrices a latent variable.
    fn rows_at_once<T: CudaReal>(&self, gpu: &Cuda<T>) -> usize {
        let of_row = self.n * (3 * self.hidden * size_of::<T>() + 16);
        // Kernels count numbers of a matrix in 32 bits.
        let counted = i32::MAX as usize / (self.n * self.hidden).max(1);
        gpu.most_rows().min(gpu.free() / PART_OF_MEMORY / of_row).min(counted).max(1)
    }

    /// Tables from the parameters.
    ///
    /// # Safety
    /// The parameters have been put on the device.
    unsafe fn make_tables<T: CudaReal>(&mut self, gpu: &Cuda<T>) -> Result<(), CudaError> {
        let &mut Self { n, hidden, total, .. } = self;
        let logits = self.parameters.place(gpu);
        let (offsets, norms) = (self.offsets.place(gpu), self.norms.place(gpu));
        let lines = |count: usize| threads([count.div_ceil(LINES), 1, 1], [32, LINES]);
        // SAFETY: room for all tables is reserved in `new`, parameters by whoever calls.
        unsafe {
            gpu.launch(launch::HiddenNorms { norms, logits, offsets, n, hidden }, lines(2 * n * hidden))?;
            let owners = self.owners.place(gpu);
            let (leaves, leaf_logs) = (self.leaves.place(gpu), self.leaf_logs.place(gpu));
            let kernel =
                launch::HiddenLeaves { leaves, leaf_logs, logits, norms, offsets, owners, total, hidden };
            gpu.launch(kernel, lines(total))?;
            let (tables, variables) = (self.tables.place(gpu), self.variables.place(gpu));
            gpu.launch(
                launch::HiddenTables { tables, logits, norms, offsets, variables, n, hidden },
                threads([(hidden * hidden).div_ceil(256), n, 1], [256, 1]),
            )
        }
    }

    /// Messages up the tree, and the log-likelihood of every row: where it lies. With weights, and a place for doubt, also each row's
    /// share at the roots.
    ///
    /// # Safety
    /// Tables have been made; rows are on the device, weights too unless they are 0.
    unsafe fn up<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        rows: &Rows,
        weights: u64,
        doubt: u64,
    ) -> Result<u64, CudaError> {
        let &mut Self { n, hidden, .. } = self;
        let stream = &gpu.stream;
        let count = rows.count;
        let (real, matrix) = (size_of::<T>(), count * hidden);
        let up = self.up.reserve(stream, n * matrix * real)?;
        let told = self.told.reserve(stream, n * matrix * real)?;
        let scales = self.scales.reserve(stream, n * count * 8)?;
        let shares = self.shares.reserve(stream, self.slots.roots() * count * real)?;
        let logs = self.logs.reserve(stream, count * 8)?;
        let tables = self.tables.place(gpu);
        let each_row = |slots: usize| threads([count.div_ceil(LINES), slots, 1], [32, LINES]);
        let Rows { states, places, .. } = *rows;
        let begin = launch::HiddenBegin {
            up,
            scales,
            leaves: self.leaves.place(gpu),
            leaf_logs: self.leaf_logs.place(gpu),
            states,
            places,
            variables: self.variables.place(gpu),
            n,
            hidden,
            rows: count,
        };
        // SAFETY: messages of all slots and rows are reserved above, tables in `new`, rows by whoever calls.
        unsafe { gpu.launch(begin, each_row(n)) }?;
        for level in (1..self.slots.levels.len() - 1).rev() {
            let [above, first, end] = [level - 1, level, level + 1].map(|level| self.slots.levels[level]);
            let at = |base: u64, size: usize| base + (first * size * real) as u64;
            let messages = Products {
                transposed: [false, true],
                shape: [count, hidden, hidden],
                a: (at(up, matrix), hidden, matrix),
                b: (at(tables, hidden * hidden), hidden, hidden * hidden),
                c: (at(told, matrix), hidden, matrix),
                add: false,
                rows: end - first,
            };
            // SAFETY: as above; slots of a level are among all slots.
            unsafe { gpu.products(&gpu.lanes[0], messages) }?;
            let children = self.children.place(gpu);
            let absorb =
                launch::HiddenAbsorb { up, scales, told, children, first: above, hidden, rows: count };
            // SAFETY: as above.
            unsafe { gpu.launch(absorb, each_row(first - above)) }?;
        }
        let roots = launch::HiddenRoots {
            logs,
            shares: if weights == 0 { 0 } else { shares },
            doubt,
            up,
            scales,
            tables,
            weights,
            roots: self.slots.roots(),
            n,
            hidden,
            rows: count,
        };
        // SAFETY: as above.
        unsafe { gpu.launch(roots, each_row(1)) }?;
        Ok(logs)
    }

    /// Messages down the tree, and expected counts of all tables: of observed variables in `leaf_sums`, of latent ones in `sums`, there
    /// without their tables, which they are to be multiplied with.
    ///
    /// # Safety
    /// The rows have just gone up, with weights; both sums have room, and are zero or to be added to.
    unsafe fn down<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        rows: &Rows,
        leaf_sums: u64,
        sums: u64,
    ) -> Result<(), CudaError> {
        let &mut Self { n, hidden, .. } = self;
        let count = rows.count;
        let (real, matrix, square) = (size_of::<T>(), count * hidden, hidden * hidden);
        let above = self.above.reserve(&gpu.stream, n * matrix * real)?;
        let (up, told) = (self.up.place(gpu), self.told.place(gpu));
        let (tables, shares) = (self.tables.place(gpu), self.shares.place(gpu));
        let (parents, variables) = (self.parents.place(gpu), self.variables.place(gpu));
        let each_row = |slots: usize| threads([count.div_ceil(LINES), slots, 1], [32, LINES]);
        let begin = launch::HiddenRootShares { above, told, tables, shares, hidden, rows: count };
        // SAFETY: messages of all slots and rows are reserved here and in `up`, tables in `new`, rows and sums by whoever calls.
        unsafe { gpu.launch(begin, each_row(self.slots.roots())) }?;
        for level in 1..self.slots.levels.len() - 1 {
            let [first, end] = [level, level + 1].map(|level| self.slots.levels[level]);
            let over = launch::HiddenShares { told, above, up, parents, first, hidden, rows: count };
            // SAFETY: as above; slots of a level are among all slots.
            unsafe { gpu.launch(over, each_row(end - first)) }?;
            let at = |base: u64, size: usize| base + (first * size * real) as u64;
            let messages = Products {
                transposed: [false, false],
                shape: [count, hidden, hidden],
                a: (at(told, matrix), hidden, matrix),
                b: (at(tables, square), hidden, square),
                c: (at(above, matrix), hidden, matrix),
                add: false,
                rows: end - first,
            };
            // SAFETY: as above.
            unsafe { gpu.products(&gpu.lanes[0], messages) }?;
        }
        let counts = Products {
            transposed: [true, false],
            shape: [hidden, hidden, count],
            a: (told, hidden, matrix),
            b: (up, hidden, matrix),
            c: (sums, hidden, square),
            add: true,
            rows: n,
        };
        let Rows { states, places, .. } = *rows;
        let leaf_counts = launch::HiddenLeafCounts {
            sums: leaf_sums,
            above,
            up,
            states,
            places,
            offsets: self.offsets.place(gpu),
            variables,
            n,
            hidden,
            rows: count,
        };
        // SAFETY: as above.
        unsafe {
            gpu.products(&gpu.lanes[0], counts)?;
            gpu.launch(leaf_counts, threads([hidden.div_ceil(32), n, 1], [32, LEAF_ROWS]))
        }
    }
}

/// A hidden tree that stays on the device for as long as rows are asked about.
pub(crate) struct ResidentTree {
    tree: HiddenTree,
    states: Memory,
    at_once: Option<usize>,
}

impl ResidentTree {
    /// Takes a model to the device, if it is one hidden tree.
    pub fn new<T: CudaReal>(gpu: &Cuda<T>, mixture: &Mixture<Component>) -> Result<Option<Self>, CudaError> {
        let Some(mut tree) = HiddenTree::new(gpu, mixture)? else { return Ok(None) };
        tree.parameters.put(&gpu.stream, &mixture.to_vec())?;
        // SAFETY: the parameters have just been put there.
        unsafe { tree.make_tables(gpu) }?;
        Ok(Some(Self { tree, states: Memory::default(), at_once: None }))
    }

    /// The log-likelihood of every row of a table; not a number where the device cannot vouch for it.
    pub fn log_likelihoods<T: CudaReal>(
        &mut self,
        gpu: &Cuda<T>,
        table: &Table,
    ) -> Result<Vec<f64>, CudaError> {
        let Self { tree, states, at_once } = self;
        let stream = &gpu.stream;
        let at_once = at_once.get_or_insert_with(|| tree.rows_at_once(gpu));
        let mut found = vec![0.0f64; table.rows()];
        let mut first = 0;
        while first < table.rows() {
            let some = first..(first + *at_once).min(table.rows());
            let here = states_of(table.some(some.clone()), tree.offsets_here());
            let rows = Rows { states: states.put(stream, &here)?, places: 0, count: some.len() };
            // SAFETY: tables were made in `new`, the rows have just been put there, and there are no weights.
            match unsafe { tree.up(gpu, &rows, 0, 0) } {
                // Half of them may fit.
                Err(CudaError::OutOfMemory { .. }) if *at_once > 1 => {
                    *at_once /= 2;
                    continue;
                }
                done => done?,
            };
            first = some.end;
            tree.logs.get(stream, &mut found[some])?;
        }
        Ok(found)
    }
}

/// Who makes the steps of a hidden tree.
pub(crate) struct TreeLearner<'a, T: CudaReal> {
    gpu: &'a Cuda<T>,
    tree: HiddenTree,
    optimiser: Optimiser,
    at_once: Option<usize>,
    states: Memory,
    leaf_sums: Memory,
    sums: Memory,
    /// Odds of what was not seen, variable by variable, and which states those are.
    unseen: Option<[Memory; 2]>,
}

impl<'a, T: CudaReal> TreeLearner<'a, T> {
    pub fn new(
        gpu: &'a Cuda<T>,
        model: &Mixture<Component>,
        unseen: &[UnseenStates],
        settings: &Settings,
    ) -> Result<Option<Self>, CudaError> {
        let Some(tree) = HiddenTree::new(gpu, model)? else { return Ok(None) };
        let optimiser = Optimiser::new(gpu, tree.size, settings)?;
        let unseen = crate::optimiser::unseen(gpu, unseen, &tree.offsets_here[..=tree.n])?;
        Ok(Some(Self {
            gpu,
            tree,
            optimiser,
            at_once: None,
            states: Memory::default(),
            leaf_sums: Memory::default(),
            sums: Memory::default(),
            unseen,
        }))
    }

    /// Has the device begin a step.
    fn start(&mut self, step: &Step<'_>) -> Result<(), CudaError> {
        let gpu = self.gpu;
        let stream = &gpu.stream;
        let HiddenTree { n, hidden, total, .. } = self.tree;
        let rows = step.places.len();
        let said = self.optimiser.say(gpu, step, 0)?;
        let weights = said + SAID as u64 * 8;
        let places = weights + rows as u64 * 8;
        let told = self.optimiser.told.clear(stream, crate::optimiser::TOLD * 8)?;
        let states = self.states.place(gpu);
        let leaf_sums = self.leaf_sums.clear(stream, total * hidden * 8)?;
        let sums = self.sums.clear(stream, n * hidden * hidden * size_of::<T>())?;
        // SAFETY: `take` has put the parameters there; nobody learns before.
        unsafe { self.tree.make_tables(gpu) }?;
        let at_once = match self.at_once {
            Some(at_once) => at_once,
            None => *self.at_once.insert(self.tree.rows_at_once(gpu)),
        };
        for first in (0..rows).step_by(at_once) {
            let some = Rows { states, places: places + first as u64 * 4, count: at_once.min(rows - first) };
            let weights = weights + first as u64 * 8;
            // SAFETY: tables have just been made; places and weights lie in what was said; sums are cleared above.
            unsafe {
                let likelihoods = self.tree.up(gpu, &some, weights, told)?;
                let rows = some.count;
                let sum = launch::AddRows {
                    told,
                    likelihoods,
                    weights,
                    parts: 0,
                    components: 0,
                    rows,
                    stride: rows,
                };
                gpu.launch(sum, threads([1, 1, 1], [256, 1]))?;
                self.tree.down(gpu, &some, leaf_sums, sums)?;
            }
        }
        let tree = &self.tree;
        let (logits, offsets) = (tree.parameters.place(gpu), tree.offsets.place(gpu));
        let derivatives = launch::HiddenGradient {
            gradient: self.optimiser.gradient.place(gpu),
            logits,
            norms: tree.norms.place(gpu),
            leaf_sums,
            sums,
            tables: tree.tables.place(gpu),
            even: said + 5 * 8,
            offsets,
            slots: tree.slot_of.place(gpu),
            n,
            roots: tree.slots.roots(),
            hidden,
        };
        // SAFETY: counts are those of all rows; lists of all parameters are reserved in `new`.
        unsafe {
            gpu.launch(derivatives, threads([(2 * n * hidden).div_ceil(LINES), 1, 1], [32, LINES]))?;
            self.optimiser.ascend(gpu, logits, said)?;
        }
        if let Some([odds, which]) = &self.unseen {
            let smooth = launch::HiddenSmoothUnseen {
                logits,
                odds: odds.place(gpu),
                unseen: which.place(gpu),
                offsets,
                doubt: told,
                n,
                hidden,
            };
            // SAFETY: as above.
            unsafe { gpu.launch(smooth, threads([(n * hidden).div_ceil(128), 1, 1], [128, 1])) }?;
        }
        // SAFETY: as above.
        unsafe { self.optimiser.follow(gpu, &self.tree.parameters, said) }
    }
}

impl<T: CudaReal> Steps<Mixture<Component>> for TreeLearner<'_, T> {
    fn rows(&mut self, data: &Unique) -> Result<(), ModelError> {
        let states = states_of(data.table.codes(), self.tree.offsets_here());
        Ok(self.states.put(&self.gpu.stream, &states).map(drop)?)
    }

    fn take(
        &mut self,
        model: &Mixture<Component>,
        adam: &Adam,
        average: Option<&[f64]>,
    ) -> Result<(), ModelError> {
        self.tree.parameters.put(&self.gpu.stream, &model.to_vec())?;
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
        let mut parameters = vec![0.0f64; self.tree.size];
        self.tree.parameters.get(&self.gpu.stream, &mut parameters)?;
        model.set(&parameters)?;
        Ok(self.optimiser.give(self.gpu, adam, average)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_lie_one_after_the_other() {
        // Two roots, 4 and 1; of 4: 0, 3; of 0: 2, 5; of 1: 6.
        let slots = Slots::new(&[4, 1, 0, 4, 4, 0, 1]);
        assert_eq!(slots.variables, [1, 4, 6, 0, 3, 2, 5]);
        assert_eq!(slots.levels, [0, 2, 5, 7]);
        assert_eq!(slots.children, [2, 3, 5, 5, 7, 7, 7, 7]);
        assert_eq!(slots.parents, [0, 1, 0, 1, 1, 3, 3]);
        for (slot, &v) in slots.variables.iter().enumerate() {
            assert_eq!(slots.of[v as usize] as usize, slot);
            for child in slots.children[slot]..slots.children[slot + 1] {
                assert_eq!(slots.parents[child as usize] as usize, slot);
            }
        }
    }
}
