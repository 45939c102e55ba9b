//! One typed wrapper a kernel: its arguments by name, as `kernels/*.cu` declare them.
//!
//! Addresses in the memory of the device come first, numbers after them; a test compares the declarations with the sources.

/// A kernel with its arguments.
pub(crate) trait Kernel {
    /// What it is called in the source.
    fn name(&self) -> &'static str;
    /// Addresses and numbers, in the order of the source.
    fn arguments(&self) -> Arguments;
}

/// More arguments of one sort than any kernel has.
const MOST: usize = 16;

/// The arguments of a kernel, where a launch can point at them: thousands are started a second, so nothing is allocated.
#[derive(Default)]
pub(crate) struct Arguments {
    addresses: ([u64; MOST], usize),
    numbers: ([i32; MOST], usize),
}

impl Arguments {
    fn of(addresses: &[u64], numbers: &[usize]) -> Self {
        let mut all = Self::default();
        all.addresses.0[..addresses.len()].copy_from_slice(addresses);
        all.numbers.0.iter_mut().zip(numbers).for_each(|(to, &number)| *to = number as i32);
        (all.addresses.1, all.numbers.1) = (addresses.len(), numbers.len());
        all
    }

    pub fn addresses(&self) -> &[u64] {
        &self.addresses.0[..self.addresses.1]
    }

    pub fn numbers(&self) -> &[i32] {
        &self.numbers.0[..self.numbers.1]
    }
}

/// Declares kernels by the names of their arguments: addresses; numbers.
macro_rules! kernels {
    ($($kernel:ident = $name:literal { $($address:ident),*; $($number:ident),* })*) => {
        /// The names of all kernels, but for those that [`Rows`] chooses among.
        const PLAIN: &[&str] = &[$($name),*];

        $(
            #[doc = concat!("`", $name, "`")]
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $kernel {
                $(pub $address: u64,)*
                $(pub $number: usize,)*
            }

            impl Kernel for $kernel {
                fn name(&self) -> &'static str {
                    $name
                }

                fn arguments(&self) -> Arguments {
                    Arguments::of(&[$(self.$address),*], &[$(self.$number),*])
                }
            }
        )*

        /// Name, addresses and numbers of every kernel that is declared here.
        #[cfg(test)]
        const DECLARED: &[(&str, &[&str], &[&str])] =
            &[$(($name, &[$(stringify!($address)),*], &[$(stringify!($number)),*])),*];
    };
}

kernels! {
    // blocks.cu
    FillRates = "fill_rates" { q, rates, states, places, prior; prior_row, n, size, p, s, directed }
    // eliminate.cu
    EliminateUndirected = "eliminate_undirected" { q, pivots, inverses, greens, down_inverses, exits; start, low, high, p }
    EliminateDirected = "eliminate_directed" { q, pivots, inverses, greens, up_inverses, down_inverses, exits; start, low, high, p }
    LeaveUndirected = "leave_undirected" { q, greens, exits; start, first, p, panel }
    LeaveDirected = "leave_directed" { q, greens, exits; start, first, p, panel }
    LogPivots = "log_pivots" { pivots, logs; size, p, rows }
    // backward.cu
    NarrowProducts = "narrow_products" { to, a, b; along, times, transposed, a_stride, a_matrix, b_stride, b_matrix, line, part, matrix, square }
    AddNarrow = "add_narrow" { to, parts; count, p }
    BackwardUndirected = "backward_undirected" { all_q, all_r, inverses, down_inverses, exits, z_parts, lifts; start, low, high, p, parts }
    SpreadUndirected = "spread_undirected" { all_r, lifts; start, p }
    BackwardDirected = "backward_directed" { all_q, all_g, inverses, up_inverses, down_inverses, exits, z_outs, z_ins, lifts; start, low, high, p, parts }
    SpreadDirected = "spread_directed" { all_g, lifts, columns; start, p, w }
    TrustDerivatives = "trust_derivatives" { g, logs, trusted; size, p, rows }
    PriorMarginals = "prior_marginals" { marginals, g, prior; n, p, directed }
    // counts.cu
    Tally = "tally" { sums, g, states, places, weights, trusted, offsets; n, p, matrix, s, rows, per_chunk, directed }
    AddChunks = "add_chunks" { counts, sums, rates; entries, chunks }
    // moat.cu
    MoatMargins = "moat_margins" { p, log_p, prefix, alpha, parameters, offsets, logits_at; n }
    Maxima = "maxima" { out, numbers; count }
    MoatTables = "moat_tables" { rates, prior, parameters, maxima, p, prefix, alpha, offsets, pairs_at; n, s, parts }
    MoatGradient = "moat_gradient" { gradient, passed, over, counts, parameters, marginals, total, p, prefix, alpha, offsets, pairs_at; n, s }
    MoatLogits = "moat_logits" { gradient, by_log_p, passed, singles, p, offsets, logits_at; n }
    CountStates = "count_states" { singles, weights, states, places, offsets; n, rows }
    MoatSmoothUnseen = "moat_smooth_unseen" { parameters, odds, unseen, offsets, logits_at, doubt; n }
    // directed.cu
    LineMaxima = "line_maxima" { most, parameters; n }
    DirectedTables = "directed_tables" { rates, prior, p, parameters, maxima, offsets; n, s }
    DirectedGradient = "directed_gradient" { gradient, counts, p, marginals, total, even, offsets; n, s }
    DirectedSmoothUnseen = "directed_smooth_unseen" { parameters, odds, unseen, offsets, doubt; n, s }
    // hidden.cu
    HiddenNorms = "hidden_norms" { norms, logits, offsets; n, hidden }
    HiddenLeaves = "hidden_leaves" { leaves, leaf_logs, logits, norms, offsets, owners; total, hidden }
    HiddenTables = "hidden_tables" { tables, logits, norms, offsets, variables; n, hidden }
    HiddenBegin = "hidden_begin" { up, scales, leaves, leaf_logs, states, places, variables; n, hidden, rows }
    HiddenAbsorb = "hidden_absorb" { up, scales, told, children; first, hidden, rows }
    HiddenRoots = "hidden_roots" { logs, shares, doubt, up, scales, tables, weights; roots, n, hidden, rows }
    HiddenRootShares = "hidden_root_shares" { above, told, tables, shares; hidden, rows }
    HiddenShares = "hidden_shares" { told, above, up, parents; first, hidden, rows }
    HiddenLeafCounts = "hidden_leaf_counts" { sums, above, up, states, places, offsets, variables; n, hidden, rows }
    HiddenGradient = "hidden_gradient" { gradient, logits, norms, leaf_sums, sums, tables, even, offsets, slots; n, roots, hidden }
    HiddenSmoothUnseen = "hidden_smooth_unseen" { logits, odds, unseen, offsets, doubt; n, hidden }
    // step.cu
    RowLikelihoods = "row_likelihoods" { joint, logs, log_prior, log_p, log_weight, states, places; n, rows }
    NormaliseWeights = "normalise_weights" { log_weights, parameters; components }
    Responsibilities = "responsibilities" { likelihoods, parts, joint, weights; components, rows, stride }
    WholeParts = "whole_parts" { parts, weights; rows }
    AddRows = "add_rows" { told, likelihoods, weights, parts; components, rows, stride }
    DoubtRows = "doubt_rows" { told, trusted, parts; rows, prior }
    KeepPrior = "keep_prior" { log_prior, logs, told; row }
    WeightsGradient = "weights_gradient" { gradient, told, log_weights; components }
    Shrink = "shrink" { gradient, parameters, strength; size, components }
    DoubtGradient = "doubt_gradient" { told, gradient; size }
    Adam = "adam" { parameters, means, squares, gradient, how, told; size }
    Follow = "follow" { average, parameters, how, told; size }
}

/// Rows in shared memory: the kernels that the macro of `rows.cu` makes, which differ in kind and width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsKernel {
    /// Which of [`ROWS`].
    pub name: &'static str,
    pub kept: u64,
    pub derivatives: u64,
    pub logs: u64,
    pub trusted: u64,
    pub sums: u64,
    pub weights: u64,
    pub rates: u64,
    pub states: u64,
    pub places: u64,
    pub prior: u64,
    pub marginals: u64,
    pub prior_row: usize,
    pub n: usize,
    pub s: usize,
    pub rows: usize,
    pub stage: usize,
}

/// The names that [`RowsKernel`] chooses among.
pub(crate) const ROWS: [&str; 4] = ["undirected_1", "undirected_4", "directed_1", "directed_4"];

impl Kernel for RowsKernel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn arguments(&self) -> Arguments {
        Arguments::of(
            &[
                self.kept,
                self.derivatives,
                self.logs,
                self.trusted,
                self.sums,
                self.weights,
                self.rates,
                self.states,
                self.places,
                self.prior,
                self.marginals,
            ],
            &[self.prior_row, self.n, self.s, self.rows, self.stage],
        )
    }
}

/// The names of all kernels.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PLAIN.iter().chain(&ROWS).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SOURCE;

    /// Every kernel of the sources: its name, its pointers and its numbers.
    fn in_sources() -> Vec<(String, Vec<String>, Vec<String>)> {
        let lines: Vec<&str> = SOURCE.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
        let text = lines.join("\n").replace('\\', " ");
        let starts = text.match_indices("extern \"C\" __global__ void ");
        starts
            .map(|(place, mark)| {
                let rest = &text[place + mark.len()..];
                let rest = match rest.strip_prefix("__launch_bounds__(") {
                    Some(bounds) => bounds.split_once(") ").unwrap().1,
                    None => rest,
                };
                let (name, rest) = rest.split_once('(').unwrap();
                let (mut pointers, mut numbers) = (Vec::new(), Vec::new());
                for argument in rest.split_once(')').unwrap().0.split(',') {
                    let word = argument.split_whitespace().last().unwrap().trim_start_matches('*');
                    let list = if argument.contains('*') { &mut pointers } else { &mut numbers };
                    list.push(word.to_lowercase());
                }
                (name.to_owned(), pointers, numbers)
            })
            .collect()
    }

    #[test]
    fn wrappers_are_what_the_sources_declare() {
        let sources = in_sources();
        // One of them is the macro that makes the kernels of rows.
        assert_eq!(sources.len(), PLAIN.len() + 1);
        for (name, pointers, numbers) in &sources {
            if name == "NAME" {
                let rows = RowsKernel {
                    name: "",
                    kept: 0,
                    derivatives: 1,
                    logs: 2,
                    trusted: 3,
                    sums: 4,
                    weights: 5,
                    rates: 6,
                    states: 7,
                    places: 8,
                    prior: 9,
                    marginals: 10,
                    prior_row: 0,
                    n: 1,
                    s: 2,
                    rows: 3,
                    stage: 4,
                };
                let arguments = rows.arguments();
                assert_eq!(arguments.addresses(), (0..pointers.len() as u64).collect::<Vec<_>>());
                assert_eq!(arguments.numbers(), (0..numbers.len() as i32).collect::<Vec<_>>());
                let words = format!("{rows:?}");
                let places: Vec<usize> = pointers
                    .iter()
                    .chain(numbers)
                    .map(|name| words.find(&format!(" {name}: ")).unwrap())
                    .collect();
                assert!(places.is_sorted(), "in the order of the source");
                continue;
            }
            let (_, addresses, sizes) = DECLARED.iter().find(|(own, ..)| own == name).expect(name);
            assert_eq!(
                (&pointers[..], &numbers[..]),
                (&addresses.map_names()[..], &sizes.map_names()[..]),
                "{name}"
            );
        }
        for name in ROWS {
            assert!(SOURCE.contains(&format!("\nROWS({name},")), "{name}");
        }
    }

    trait Names {
        fn map_names(&self) -> Vec<String>;
    }

    impl Names for &[&str] {
        fn map_names(&self) -> Vec<String> {
            self.iter().map(|name| (*name).to_owned()).collect()
        }
    }
}
