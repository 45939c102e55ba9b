//! The directed family and mixtures: they normalise, their gradients are gradients, and nothing depends on threads or precision.

mod every;
mod oracle;

use everytree_core::data::Codes;
use everytree_core::data::{Table, Unique};
use everytree_core::forest::{Backend, Cpu};
use everytree_core::model::{
    Component, Directed, Family, Learnable, Mixture, Moat, PairCounts, Pairs, ParamsView, Regularisation,
    Start, clusters,
};
use everytree_core::spanning::Kind;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const STATES: [usize; 5] = [2, 3, 1, 4, 2];

fn mixture(components: usize, seed: u64) -> Mixture<Directed> {
    let one = |k: usize| Directed::random(STATES.to_vec(), seed + 100 * k as u64).unwrap();
    let shares: Vec<f64> = (1..=components).map(|k| k as f64).collect();
    Mixture::new((0..components).map(one).collect(), &shares).unwrap()
}

fn log_p<M: Learnable, B: Backend>(model: &M, backend: &B, rows: &[Vec<u16>]) -> Vec<f64> {
    let codes = rows.concat();
    let mut out = vec![0.0; rows.len()];
    let mut ready = model.ready(backend).unwrap();
    model
        .log_likelihood(backend, &mut ready, Codes::new(&codes, model.states().len()).unwrap(), &mut out)
        .unwrap();
    out
}

/// Rows with two kinds among them.
fn rows(count: usize, seed: u64) -> Unique {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(&STATES);
    for _ in 0..count {
        let kind = usize::from(rng.random_bool(0.4));
        let row: Vec<u16> = STATES
            .iter()
            .enumerate()
            .map(|(v, &states)| match rng.random_bool(0.7) {
                true => ((v * kind + 1) % states) as u16,
                false => rng.random_range(0..states) as u16,
            })
            .collect();
        table.push(&row);
    }
    table.unique()
}

#[test]
fn probabilities_sum_to_one() {
    let all = every::row(&STATES);
    for seed in 0..10 {
        for components in [1, 3] {
            let mut model = mixture(components, seed);
            if seed >= 5 {
                // Weights and tables over many decades.
                model.slices_mut().into_iter().flatten().for_each(|parameter| *parameter *= 12.0);
            }
            let sum = |logs: Vec<f64>| logs.into_iter().map(f64::exp).sum::<f64>();
            let (double, single) =
                (sum(log_p(&model, &Cpu::<f64>::new(), &all)), sum(log_p(&model, &Cpu::<f32>::new(), &all)));
            assert!((double - 1.0).abs() < 1e-11, "{seed} {components}: {double}");
            assert!((single - 1.0).abs() < 2e-5, "{seed} {components}: {single}");
        }
    }
}

/// The definition, forest by forest.
#[test]
fn the_likelihood_is_the_sum_over_all_forests() {
    let n = STATES.len();
    for seed in 0..5 {
        let model = Directed::random(STATES.to_vec(), seed).unwrap();
        let (weights, tables) = (model.weights(), model.tables());
        let forests = oracle::all_forests(Kind::Directed, n);
        let prior: f64 = forests.iter().map(|f| oracle::weight(Kind::Directed, n, &weights, f)).sum();
        for row in every::row(&STATES).into_iter().step_by(7) {
            let p: f64 = forests
                .iter()
                .map(|parents| {
                    let cell = |v: usize| tables.get(v, row[v].into(), parents[v], row[parents[v]].into());
                    oracle::weight(Kind::Directed, n, &weights, parents) * (0..n).map(cell).product::<f64>()
                })
                .sum();
            let found = log_p(&model, &Cpu::<f64>::new(), std::slice::from_ref(&row))[0];
            assert!((found - (p / prior).ln()).abs() < 1e-10, "{found} {}", (p / prior).ln());
        }
    }
}

fn weighted_log_likelihood<M: Learnable>(model: &M, data: &Unique) -> f64 {
    let rows: Vec<Vec<u16>> = (0..data.table.rows())
        .map(|row| (0..data.table.variables()).map(|v| data.table.get(row, v) as u16).collect())
        .collect();
    log_p(model, &Cpu::<f64>::new(), &rows).iter().zip(&data.weights).map(|(log, weight)| log * weight).sum()
}

fn check_gradient<M: Learnable>(model: &M, data: &Unique, by: &Regularisation) {
    let cpu = Cpu::<f64>::new();
    let mut ready = model.ready(&cpu).unwrap();
    let mut out = vec![0.0; data.table.rows()];
    model.log_likelihood(&cpu, &mut ready, data.table.codes(), &mut out).unwrap();
    let mut stats = model.stats(&ready);
    model.accumulate(&cpu, &mut ready, data.table.codes(), &data.weights, &mut stats).unwrap();
    let mut gradient = vec![0.0; model.size()];
    model.gradient(&ready, &stats, &mut gradient);
    model.regularise(by, 1.0, &mut gradient);
    let start = model.to_vec();
    let step = 1e-5;
    for place in 0..start.len() {
        let at = |by_much: f64| {
            let mut moved = start.clone();
            moved[place] += by_much;
            let mut model = model.clone();
            model.set(&moved).unwrap();
            weighted_log_likelihood(&model, data) + model.log_prior(by)
        };
        let expected = (at(step) - at(-step)) / (2.0 * step);
        // Responsibilities below 1e-5 are left out.
        let room = 1e-5 * (1.0 + expected.abs()) + 1e-5 * data.rows() as f64;
        assert!((gradient[place] - expected).abs() < room, "{place}: {} {expected}", gradient[place]);
    }
}

#[test]
fn gradients_match_finite_differences() {
    let data = rows(60, 1);
    let nothing = Regularisation::default();
    let both = Regularisation { shrinkage: 0.7, laplace: 0.4 };
    for by in [nothing, both] {
        check_gradient(&Directed::random(STATES.to_vec(), 3).unwrap(), &data, &by);
        check_gradient(&mixture(3, 4), &data, &by);
        let moat = |seed| Component::Moat(Moat::random(STATES.to_vec(), Pairs::Lambda, seed).unwrap());
        check_gradient(&Mixture::new(vec![moat(1), moat(2)], &[1.0, 2.0]).unwrap(), &data, &by);
    }
}

/// A paper's model written as a directed one: symmetric weights, tables with its margins, hardly any roots but one each.
#[test]
fn the_papers_family_is_a_limit() {
    let states = vec![2, 3, 2, 2];
    let n = states.len();
    let moat = Moat::random(states.clone(), Pairs::Sinkhorn, 5).unwrap();
    let asked = moat.density().unwrap();
    let tables = everytree_core::model::Density::tables(&asked);
    let weights = everytree_core::model::Density::rates(&asked);
    let offsets: Vec<usize> = (0..n).map(|v| states[..v].iter().sum()).collect();
    let size: usize = states.iter().sum();
    let all = every::row(&states);
    let expected = log_p(&moat, &Cpu::<f64>::new(), &all);
    let off = |log_root: f64| {
        let mut parameters = vec![0.0; n * n + size * size];
        for v in 0..n {
            for u in 0..n {
                let weight = if u == v { log_root } else { weights[v * n + u].ln() };
                parameters[v * n + u] = weight;
                for b in 0..states[v] {
                    for a in 0..states[u] {
                        let place = n * n + (offsets[v] + b) * size + offsets[u] + a;
                        match u == v {
                            true if a == b => parameters[place] = tables.root(v)[b].ln(),
                            true => {}
                            false => parameters[place] = tables.given(u, a, v)[b].ln(),
                        }
                    }
                }
            }
        }
        let directed = Directed::from_parameters(states.clone(), parameters).unwrap();
        let found = log_p(&directed, &Cpu::<f64>::new(), &all);
        found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(off(-12.0) < 1e-3, "{}", off(-12.0));
    assert!(off(-25.0) < 1e-8, "{}", off(-25.0));
}

/// With everything counted, expectation–maximisation goes uphill: tables exactly, weights by one step of scaling.
#[test]
fn expectation_maximisation_goes_uphill() {
    let data = rows(400, 2);
    let cpu = Cpu::<f64>::new();
    let start =
        Start { family: Family::Directed, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 1 };
    for components in [1, 3] {
        let mut model = start.model(&STATES, &data, components, 1).unwrap();
        let mut before = weighted_log_likelihood(&model, &data);
        let first = before;
        for round in 0..40 {
            let mut ready = model.ready(&cpu).unwrap();
            let mut out = vec![0.0; data.table.rows()];
            model.log_likelihood(&cpu, &mut ready, data.table.codes(), &mut out).unwrap();
            let mut stats = model.stats(&ready);
            model.accumulate(&cpu, &mut ready, data.table.codes(), &data.weights, &mut stats).unwrap();
            assert!(model.maximise(&ready, &stats, None, &Regularisation::default()));
            let after = weighted_log_likelihood(&model, &data);
            assert!(after > before - 1e-3, "{components}, round {round}: {before} {after}");
            before = after;
        }
        assert!(before > first + 3.0, "{first} {before}");
        let sum: f64 = log_p(&model, &cpu, &every::row(&STATES)).into_iter().map(f64::exp).sum();
        assert!((sum - 1.0).abs() < 1e-10);
    }
    let mut moat = Moat::random(STATES.to_vec(), Pairs::Lambda, 1).unwrap();
    let ready = moat.ready(&cpu).unwrap();
    let stats = moat.stats(&ready);
    assert!(!moat.maximise(&ready, &stats, None, &Regularisation::default()), "no closed form");
}

/// What smoothing and shrinkage ask for, with nothing counted: even tables, and those of the parent.
#[test]
fn empty_counts_give_what_the_prior_says() {
    let cpu = Cpu::<f64>::new();
    let mut model = Directed::random(STATES.to_vec(), 8).unwrap();
    let ready = model.ready(&cpu).unwrap();
    let stats = model.stats(&ready);
    model.maximise(&ready, &stats, None, &Regularisation { shrinkage: 0.0, laplace: 1.0 });
    let tables = model.tables();
    for (v, &states) in STATES.iter().enumerate() {
        for b in 0..states {
            assert!((tables.get(v, b, (v + 1) % 5, 0) - 1.0 / states as f64).abs() < 1e-12);
            assert!((tables.get(v, b, v, b) - 1.0 / states as f64).abs() < 1e-12);
        }
    }
}

/// Components that share no rows take the short way, with the same result.
#[test]
fn components_with_few_rows_add_up_the_same() {
    let data = rows(300, 5);
    let cpu = Cpu::<f64>::new();
    let mut model = mixture(3, 1);
    // Sharp tables, so that responsibilities are.
    model.slices_mut().into_iter().flatten().for_each(|parameter| *parameter *= 25.0);
    let mut ready = model.ready(&cpu).unwrap();
    let mut out = vec![0.0; data.table.rows()];
    model.log_likelihood(&cpu, &mut ready, data.table.codes(), &mut out).unwrap();
    let mut stats = model.stats(&ready);
    model.accumulate(&cpu, &mut ready, data.table.codes(), &data.weights, &mut stats).unwrap();
    let log: Vec<Vec<f64>> = model
        .components()
        .iter()
        .map(|component| {
            let mut out = vec![0.0; data.table.rows()];
            let mut ready = component.ready(&cpu).unwrap();
            component.log_likelihood(&cpu, &mut ready, data.table.codes(), &mut out).unwrap();
            out
        })
        .collect();
    let shares = model.mixing_weights();
    let mut short = 0;
    for (k, component) in model.components().iter().enumerate() {
        let weights: Vec<f64> = (0..data.table.rows())
            .map(|row| data.weights[row] * (shares[k].ln() + log[k][row] - out[row]).exp())
            .collect();
        let few = weights.iter().zip(&data.weights).filter(|(part, weight)| **part > 1e-5 * **weight).count();
        short += usize::from((few as f64) < 0.5 * weights.len() as f64);
        let mut ready = component.ready(&cpu).unwrap();
        component
            .log_likelihood(&cpu, &mut ready, data.table.codes(), &mut vec![0.0; weights.len()])
            .unwrap();
        let mut expected = component.stats(&ready);
        component.accumulate(&cpu, &mut ready, data.table.codes(), &weights, &mut expected).unwrap();
        for (a, b) in stats.components()[k].slices().concat().iter().zip(expected.slices().concat()) {
            assert!((a - b).abs() < 1e-5 * data.rows() as f64, "{a} {b}");
        }
    }
    assert!((1..3).contains(&short), "{short}: either way is to be taken");
}

#[test]
fn impossible_rows_say_nothing() {
    // Two components over one variable, tables as hard as logits allow.
    let one = |logit: f64| Directed::from_parameters(vec![2], vec![0.0, logit, 0.0, 0.0, -logit]).unwrap();
    let model = Mixture::new(vec![one(2000.0), one(2000.0)], &[1.0, 1.0]).unwrap();
    let cpu = Cpu::<f64>::new();
    let found = log_p(&model, &cpu, &[vec![0], vec![1]]);
    assert_eq!(found, [0.0, f64::NEG_INFINITY]);
    let mut ready = model.ready(&cpu).unwrap();
    let mut out = [0.0];
    model.log_likelihood(&cpu, &mut ready, Codes::new(&[1u8], 1).unwrap(), &mut out).unwrap();
    let mut stats = model.stats(&ready);
    model.accumulate(&cpu, &mut ready, Codes::new(&[1u8], 1).unwrap(), &[1.0], &mut stats).unwrap();
    assert!(stats.slices().into_iter().flatten().all(|sum| *sum == 0.0));
}

#[test]
fn counts_start_where_the_data_are() {
    let data = rows(500, 6);
    let counts = PairCounts::new(&STATES, &data.table, &data.weights);
    let model = Directed::from_counts(&counts, 1.0).unwrap();
    let tables = model.tables();
    // Root tables are smoothed margins, and tables of pairs smoothed with them.
    let margin = |v: usize, b: usize| (counts.single(v, b) + 1.0 / STATES[v] as f64) / 501.0;
    for b in 0..STATES[3] {
        assert!((tables.get(3, b, 3, b) - margin(3, b)).abs() < 1e-12);
        for a in 0..STATES[1] {
            let expected = (counts.pair(3, b, 1, a) + margin(3, b)) / (counts.single(1, a) + 1.0);
            assert!((tables.get(3, b, 1, a) - expected).abs() < 1e-12);
        }
        // The other way round: the smaller number is the child.
        for a in 0..STATES[1] {
            let expected = (counts.pair(3, b, 1, a) + margin(1, a)) / (counts.single(3, b) + 1.0);
            assert!((tables.get(1, a, 3, b) - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn clusters_find_what_is_there() {
    // Two kinds of rows that agree in nothing, with a little noise.
    let states = [2; 8];
    let mut rng = Pcg64::seed_from_u64(3);
    let mut table = Table::new(&states);
    let mut kinds = Vec::new();
    for _ in 0..300 {
        let kind = rng.random_bool(0.3);
        kinds.push(kind);
        let row: Vec<u16> = (0..8).map(|_| u16::from(kind != rng.random_bool(0.1))).collect();
        table.push(&row);
    }
    let data = table.unique();
    let responsibilities = clusters(&data, &states, 2, 5, &|| false);
    responsibilities.chunks_exact(2).for_each(|line| assert!((line[0] + line[1] - 1.0).abs() < 1e-12));
    let first = data.of_row.iter().map(|&place| responsibilities[2 * place as usize] > 0.5);
    let agree = first.zip(&kinds).filter(|(first, kind)| first == *kind).count();
    assert!(!(15..=285).contains(&agree), "{agree} of 300");
    assert_eq!(responsibilities, clusters(&data, &states, 2, 5, &|| false));
}
