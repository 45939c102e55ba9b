//! The theorems of section 4 of the paper, in exact arithmetic and against brute force.

mod every;
mod oracle;

use everytree_core::data::Table;
use everytree_core::infer::{Evidence, FieldModel, Search, most_probable};
use everytree_core::model::{Density, Moat, Pairs};
use everytree_core::spanning::Kind;
use num_rational::BigRational;
use num_traits::{FromPrimitive, One, Signed, ToPrimitive, Zero};
use rand::{RngExt, SeedableRng};

fn integer(x: i64) -> BigRational {
    BigRational::from_i64(x).unwrap()
}

/// Edges {u, v}, u < v, in the order of the library.
fn edges(n: usize) -> Vec<(usize, usize)> {
    (1..n).flat_map(|v| (0..v).map(move |u| (u, v))).collect()
}

/// A random connected graph: a path, and every other edge with probability ½.
fn graph(n: usize, seed: u64) -> Vec<bool> {
    let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
    edges(n).into_iter().map(|(u, v)| v == u + 1 || rng.random_bool(0.5)).collect()
}

/// The spanning trees of a graph, as sets of leaves.
fn leaves_of_trees(n: usize, graph: &[bool]) -> Vec<Vec<bool>> {
    let place = |u: usize, v: usize| u.max(v) * (u.max(v) - 1) / 2 + u.min(v);
    let inside =
        |parents: &Vec<usize>| (0..n).filter(|&v| parents[v] != v).all(|v| graph[place(v, parents[v])]);
    let leaves = |parents: Vec<usize>| {
        let mut degree = vec![0; n];
        for v in (0..n).filter(|&v| parents[v] != v) {
            degree[v] += 1;
            degree[parents[v]] += 1;
        }
        degree.into_iter().map(|degree| degree == 1).collect()
    };
    oracle::all_forests(Kind::Undirected, n).into_iter().filter(inside).map(leaves).collect()
}

/// The construction of the paper: `P_v(0) = ε`, `P_v(1) = −1`, `P_uv = ε, −ε, −ε, 0`.
fn construction(n: usize, graph: &[bool], epsilon: &BigRational) -> FieldModel<BigRational> {
    let weights = graph.iter().map(|&edge| integer(edge.into())).collect();
    let single = vec![epsilon.clone(), integer(-1)];
    let pair = vec![epsilon.clone(), -epsilon.clone(), -epsilon.clone(), integer(0)];
    FieldModel::new(weights, vec![single; n], vec![pair; graph.len()])
}

/// `ε < 1 / (2^{n+1} n^{n−2})`
fn epsilon(n: usize) -> BigRational {
    let bound = (1i64 << (n + 1)) * (n as i64).pow(n as u32 - 2);
    integer(1) / integer(bound + 1)
}

/// The nearest integer, without its sign.
fn rounded(x: BigRational) -> i64 {
    x.abs().round().to_integer().to_i64().unwrap()
}

fn subset(n: usize, number: usize) -> Vec<bool> {
    (0..n).map(|v| number >> v & 1 == 1).collect()
}

/// Lemma: `|Z p(x)|` is between `k ε` and `k ε + n^{n−2} ε²`, where k trees have all ones of x among their leaves, and its sign
/// is the parity of the ones. Corollary: rounding `Z p(x) / ε` gives k. Theorem: summing over what K leaves open gives the
/// number of trees whose leaves are exactly K. (The exponents are ours: see the documentation.)
#[test]
fn leaves_are_counted() {
    let mut off_as_printed = 0;
    for (n, seeds) in [(3, 2), (4, 4), (5, 6), (6, 2)] {
        for seed in 0..seeds {
            let graph = graph(n, seed);
            let epsilon = epsilon(n);
            let model = construction(n, &graph, &epsilon);
            let trees = leaves_of_trees(n, &graph);
            assert_eq!(model.total(), integer(trees.len() as i64));
            for number in 0..1usize << n {
                let ones = subset(n, number);
                let among = |leaves: &&Vec<bool>| ones.iter().zip(*leaves).all(|(one, leaf)| !one || *leaf);
                let k = trees.iter().filter(among).count() as i64;
                let row: Vec<Option<usize>> = ones.iter().map(|&one| Some(one.into())).collect();
                let weighted = model.query(&row).unwrap();
                let parity = if number.count_ones() % 2 == 0 { integer(1) } else { integer(-1) };
                let size = weighted.clone() * parity;
                let slack = integer((n as i64).pow(n as u32 - 2)) * epsilon.clone() * epsilon.clone();
                let least = integer(k) * epsilon.clone();
                assert!(size >= least && size <= least + slack, "lemma: n {n}, {ones:?}");
                assert_eq!(rounded(weighted / epsilon.clone()), k, "corollary: n {n}, {ones:?}");

                let exactly = trees.iter().filter(|leaves| **leaves == ones).count() as i64;
                let open: Vec<Option<usize>> = ones.iter().map(|&one| one.then_some(1)).collect();
                let sum = model.query(&open).unwrap();
                assert_eq!(rounded(sum.clone() / epsilon.clone()), exactly, "theorem: n {n}, {ones:?}");
                // As printed, the exponent is n − 2 on the other side.
                let printed = sum * num_traits::pow(epsilon.clone(), n - 2);
                off_as_printed += usize::from(rounded(printed) != exactly);
            }
        }
    }
    assert!(off_as_printed > 0, "the printed exponent would do as well");
}

/// The same model in floating point and in rational numbers.
#[test]
fn rational_and_floating_point_models_agree() {
    let states = [2, 3, 2, 2];
    let moat = Moat::random(states.to_vec(), Pairs::Lambda, 8).unwrap();
    let asked = moat.density().unwrap();
    let exact = |x: f64| BigRational::from_f64(x).unwrap();
    let tables = asked.tables();
    let singles: Vec<Vec<BigRational>> =
        (0..4).map(|v| tables.root(v).iter().map(|&p| exact(p)).collect()).collect();
    let pair = |(u, v): (usize, usize)| -> Vec<BigRational> {
        let row = |a: usize| tables.given(u, a, v).iter().map(move |&p| exact(p * tables.root(u)[a]));
        (0..states[u]).flat_map(row).collect()
    };
    let weights = edges(4).into_iter().map(|(u, v)| exact(asked.rates()[v * 4 + u])).collect();
    let model = FieldModel::new(weights, singles, edges(4).into_iter().map(pair).collect());
    let total = model.total();
    let mut sum = BigRational::zero();
    for row in every::row(&states) {
        let mut table = Table::new(&states);
        table.push(&row);
        let mut log_p = [0.0];
        asked.log_p(table.codes(), &mut log_p).unwrap();
        let evidence: Vec<Option<usize>> = row.iter().map(|&state| Some(state.into())).collect();
        let p = model.query(&evidence).unwrap() / total.clone();
        assert!((p.to_f64().unwrap().ln() - log_p[0]).abs() < 1e-12);
        sum += p;
    }
    let everything = model.query(&[None; 4]).unwrap() / total;
    assert_eq!(everything, sum);
    assert!((sum - BigRational::one()).to_f64().unwrap().abs() < 1e-12);
}

/// A zero that a tree would divide by has no answer; one that it need not divide by does.
#[test]
fn zeros_are_not_divided_by() {
    let single = vec![integer(0), integer(1)];
    let model =
        |pair: Vec<BigRational>| FieldModel::new(vec![integer(1)], vec![single.clone(); 2], vec![pair]);
    let ones = vec![integer(1); 4];
    assert_eq!(model(ones).query(&[Some(0), Some(1)]), None);
    let zero = vec![integer(0), integer(0), integer(0), integer(1)];
    assert_eq!(model(zero).query(&[None, None]), Some(integer(1)));
}

/// The most probable row of the three-colouring construction has probability `1 / (3 · 2^{n−1})` exactly when the graph has
/// a colouring.
#[test]
fn the_most_probable_row_colours_a_graph() {
    let complete = |n: usize| vec![true; n * (n - 1) / 2];
    let without = |n: usize, out: &[(usize, usize)]| -> Vec<bool> {
        edges(n).into_iter().map(|edge| !out.contains(&edge)).collect()
    };
    let only = |n: usize, inside: &[(usize, usize)]| -> Vec<bool> {
        edges(n).into_iter().map(|edge| inside.contains(&edge)).collect()
    };
    let mut wheel: Vec<(usize, usize)> = (1..5).map(|v| (v, v + 1)).collect();
    wheel.push((1, 5));
    wheel.extend((1..6).map(|v| (0, v)));
    let cases = [
        (3, complete(3), true),
        (4, complete(4), false),
        (4, without(4, &[(0, 1)]), true),
        (5, without(5, &[(0, 1)]), false),
        (5, without(5, &[(0, 1), (2, 3)]), true),
        // A cycle of five, and a wheel around it: a hub and an odd cycle need four colours.
        (5, only(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]), true),
        (6, only(6, &wheel), false),
        (7, graph(7, 3), colourable(7, &graph(7, 3))),
        (7, graph(7, 4), colourable(7, &graph(7, 4))),
    ];
    for (n, graph, expected) in cases {
        assert_eq!(colourable(n, &graph), expected);
        let weights = graph.iter().map(|&edge| f64::from(u8::from(edge))).collect();
        let pair: Vec<f64> = (0..9).map(|place| if place % 4 == 0 { 0.0 } else { 1.0 / 6.0 }).collect();
        let moat = Moat::from_tables(weights, vec![vec![1.0 / 3.0; 3]; n], vec![pair; graph.len()]).unwrap();
        let asked = moat.density().unwrap();
        let found = most_probable(&asked, &Evidence::none(&vec![3; n]), 1, Search::default()).unwrap();
        assert!(found[0].proven);
        let colouring = -(3.0f64 * 2f64.powi(n as i32 - 1)).ln();
        assert_eq!((found[0].log_p - colouring).abs() < 1e-9, expected, "{n} {graph:?}: {found:?}");
        assert!(found[0].log_p <= colouring + 1e-9);
        let proper = edges(n)
            .into_iter()
            .zip(&graph)
            .all(|((u, v), &edge)| !edge || found[0].row[u] != found[0].row[v]);
        assert_eq!(proper, expected);
    }
}

/// By trying all colourings.
fn colourable(n: usize, graph: &[bool]) -> bool {
    let proper =
        |row: &Vec<u16>| edges(n).into_iter().zip(graph).all(|((u, v), &edge)| !edge || row[u] != row[v]);
    every::row(&vec![3; n]).iter().any(proper)
}
