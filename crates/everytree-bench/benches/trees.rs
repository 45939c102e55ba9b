//! Random spanning trees per second and core, on weights as uneven as mutual information gives.
//!
//! Prints CSV: `value_us` is the time of one tree from a sampler that is ready, `both_us` with preparing the sampler for
//! that one tree.

use everytree_bench::{COLUMNS, best};
use everytree_core::spanning::{Kind, SpanningTrees};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Mutual informations of a noisy random tree: strong along its edges, falling off with the distance, and a floor of
/// sampling noise between the rest.
fn mutual_information(n: usize) -> Vec<f64> {
    let mut rng = Pcg64::seed_from_u64(3);
    let mut correlation = vec![0.0f64; n * n];
    for v in 1..n {
        let parent = rng.random_range(0..v);
        let strength: f64 = rng.random_range(0.2..0.95);
        for u in 0..v {
            let through = if u == parent { 1.0 } else { correlation[parent.max(u) * n + parent.min(u)] };
            correlation[v * n + u] = strength * through;
        }
    }
    // Two binary variables of correlation c share −½ ln(1 − c²) nats, as Gaussians would; the noise is 10⁻⁶ and more.
    let nats = |c: f64, noise: f64| -0.5 * (-c * c).ln_1p() + 1e-5 * noise;
    correlation.iter().map(|&c| nats(c, rng.random::<f64>().powi(2) + 0.1)).collect()
}

/// Directed: the same both ways, and root rates of 0.02/n.
fn rates(kind: Kind, n: usize) -> Vec<f64> {
    let lower = mutual_information(n);
    let mut rates = vec![0.0; n * n];
    for v in 0..n {
        for u in 0..n {
            rates[v * n + u] = if u == v { 0.02 / n as f64 } else { lower[u.max(v) * n + u.min(v)] };
        }
    }
    if kind == Kind::Undirected {
        (0..n).for_each(|v| rates[v * n + v] = 0.0);
    }
    rates
}

fn main() {
    println!("{COLUMNS}");
    for (n, goal) in [(16, 300_000.0), (100, 20_000.0), (500, 1_000.0)] {
        for kind in [Kind::Undirected, Kind::Directed] {
            let rates = rates(kind, n);
            let name = everytree_bench::names::<f64>(kind).0;
            let draws = 200_000 / n;
            let mut parents = vec![0; n];
            for (what, walking) in [
                ("trees", None),
                ("trees by walking", Some(Some(usize::MAX / 2))),
                ("trees by undoing", Some(None)),
            ] {
                if what == "trees by walking" && kind == Kind::Directed {
                    continue; // Millions of steps a tree.
                }
                let make = || {
                    let trees = SpanningTrees::new(kind, n, &rates).expect("rates");
                    match walking {
                        Some(most) => trees.walking(most),
                        None => trees,
                    }
                };
                let trees = make();
                let mut rng = Pcg64::seed_from_u64(5);
                let one = best(|| {
                    for _ in 0..draws {
                        trees.draw_into(&mut rng, &mut parents);
                    }
                }) / draws as f64;
                let fresh = best(|| {
                    make().draw_into(&mut rng, &mut parents);
                });
                let (goal, met) = match what {
                    "trees" => (format!("{goal} trees/s"), if 1.0 / one >= goal { "yes" } else { "no" }),
                    _ => (String::new(), ""),
                };
                println!("{what},{name},f64,1,{n},{:.3},{:.3},,,,,,{goal},{met}", one * 1e6, fresh * 1e6);
            }
        }
    }
}
