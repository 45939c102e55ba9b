//! The slow and certain versions: enumeration, and exact integers.
#![allow(dead_code, missing_docs)]

use everytree_core::spanning::Kind;
use num_bigint::{BigInt, Sign};

/// Every forest of the kind: the parent of each vertex, a root its own. Undirected trees hang at vertex 0.
pub fn all_forests(kind: Kind, n: usize) -> Vec<Vec<usize>> {
    match kind {
        Kind::Undirected => all_trees(n),
        Kind::Directed => {
            let mut forests = Vec::new();
            for number in 0..n.pow(n as u32) {
                let parents: Vec<usize> = (0..n).map(|v| number / n.pow(v as u32) % n).collect();
                // Acyclic when n steps upwards end in a root from everywhere.
                let top = |v: usize| (0..n).fold(v, |u, _| parents[u]);
                if (0..n).all(|v| parents[top(v)] == top(v)) {
                    forests.push(parents);
                }
            }
            forests
        }
    }
}

/// Every tree on n vertices by its Prüfer code.
fn all_trees(n: usize) -> Vec<Vec<usize>> {
    if n < 3 {
        return vec![vec![0; n]];
    }
    (0..n.pow(n as u32 - 2))
        .map(|number| {
            let code: Vec<usize> = (0..n - 2).map(|k| number / n.pow(k as u32) % n).collect();
            let mut degree = vec![1; n];
            code.iter().for_each(|&v| degree[v] += 1);
            let mut edges = Vec::new();
            for &v in &code {
                let leaf = (0..n).find(|&u| degree[u] == 1).unwrap();
                edges.push((leaf, v));
                degree[leaf] -= 1;
                degree[v] -= 1;
            }
            let mut last = (0..n).filter(|&u| degree[u] == 1);
            edges.push((last.next().unwrap(), last.next().unwrap()));
            everytree_core::spanning::RootedForest::from_edges(n, &edges, 0).unwrap().parents().to_vec()
        })
        .collect()
}

/// Weight of one forest. The root of an undirected tree counts nothing.
pub fn weight(kind: Kind, n: usize, rates: &[f64], parents: &[usize]) -> f64 {
    (0..n)
        .map(|v| match (kind, parents[v]) {
            (Kind::Undirected, u) if u == v => 1.0,
            (Kind::Undirected, u) => rates[u.max(v) * n + u.min(v)],
            (Kind::Directed, u) => rates[v * n + u],
        })
        .product()
}

/// Sum of all weights, and marginals in the layout of the library, by enumeration.
pub fn enumerate(kind: Kind, n: usize, rates: &[f64]) -> (f64, Vec<f64>) {
    let mut sum = 0.0;
    let mut marginals = vec![0.0; n * n];
    for parents in all_forests(kind, n) {
        let weight = weight(kind, n, rates, &parents);
        sum += weight;
        for (v, &u) in parents.iter().enumerate() {
            if kind == Kind::Directed {
                marginals[v * n + u] += weight;
            } else if u != v {
                marginals[v * n + u] += weight;
                marginals[u * n + v] += weight;
            }
        }
    }
    marginals.iter_mut().for_each(|mu| *mu = if sum > 0.0 { *mu / sum } else { 0.0 });
    (sum, marginals)
}

/// log F and marginals from the matrix–tree theorem in exact integers: floats are integers times a power of two, and
/// Gauss–Jordan elimination without fractions gives the determinant and the adjugate without any rounding.
pub fn exact(kind: Kind, n: usize, rates: &[f64]) -> (f64, Vec<f64>) {
    let lowest = rates.iter().filter(|&&x| x > 0.0).map(|x| split(*x).1).min().unwrap_or(0);
    let integer = |x: f64| {
        let (mantissa, exponent) = split(x);
        if x == 0.0 { BigInt::from(0) } else { BigInt::from(mantissa) << (exponent - lowest) as usize }
    };
    let edge = |v: usize, u: usize| match kind {
        Kind::Directed => integer(rates[v * n + u]),
        Kind::Undirected => integer(rates[u.max(v) * n + u.min(v)]),
    };
    // Undirected: vertex 0 is the root.
    let first = usize::from(kind == Kind::Undirected);
    let m = n - first;
    let root = |v: usize| edge(v, if kind == Kind::Directed { v } else { 0 });
    let mut a: Vec<Vec<BigInt>> = Vec::new();
    for v in first..n {
        let mut sum = root(v);
        let mut line: Vec<BigInt> = Vec::new();
        for u in first..n {
            let rate = if u == v { BigInt::from(0) } else { edge(v, u) };
            sum += &rate;
            line.push(-rate);
        }
        line[v - first] = sum;
        line.extend((0..m).map(|u| BigInt::from(u8::from(u + first == v))));
        a.push(line);
    }
    let mut previous = BigInt::from(1);
    for k in 0..m {
        let pivot_line = a[k].clone();
        let pivot = pivot_line[k].clone();
        assert_ne!(pivot.sign(), Sign::NoSign, "a leading minor of a connected Laplacian is positive");
        for (i, line) in a.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = line[k].clone();
            for j in 0..2 * m {
                // Columns that are still, or again, those of a unit matrix stay what they are.
                let value = &pivot * &line[j] - &factor * &pivot_line[j];
                line[j] = value / &previous;
            }
            let _ = i;
        }
        previous = pivot;
    }
    let determinant = previous;
    let adjugate = |v: usize, u: usize| &a[v - first][m + u - first];
    let log = ln(&determinant) + m as f64 * lowest as f64 * std::f64::consts::LN_2;
    let mut marginals = vec![0.0; n * n];
    for v in first..n {
        let mu = ratio(&(root(v) * adjugate(v, v)), &determinant);
        if kind == Kind::Directed {
            marginals[v * n + v] = mu;
        } else {
            marginals[v * n] = mu;
            marginals[v] = mu;
        }
        for u in (first..n).filter(|&u| u != v) {
            let derivative = match kind {
                Kind::Directed => adjugate(v, v) - adjugate(u, v),
                Kind::Undirected => adjugate(v, v) + adjugate(u, u) - adjugate(u, v) - adjugate(v, u),
            };
            marginals[v * n + u] = ratio(&(edge(v, u) * derivative), &determinant);
        }
    }
    (log, marginals)
}

/// `x = mantissa · 2^exponent`
fn split(x: f64) -> (u64, i64) {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// Leading 64 bits and the exponent.
fn leading(x: &BigInt) -> (f64, i64) {
    let shift = x.bits() as i64 - 64;
    let top = if shift > 0 { x >> shift as usize } else { x.clone() };
    let digits = top.to_u64_digits().1;
    (digits.first().copied().unwrap_or(0) as f64, shift.max(0))
}

fn ln(x: &BigInt) -> f64 {
    let (top, exponent) = leading(x);
    top.ln() + exponent as f64 * std::f64::consts::LN_2
}

fn ratio(a: &BigInt, b: &BigInt) -> f64 {
    let ((x, e), (y, f)) = (leading(a), leading(b));
    let scale = (e - f).clamp(-1000, 1000) as i32;
    x / y * 2f64.powi(scale) * if a.sign() == b.sign() { 1.0 } else { -1.0 }
}
