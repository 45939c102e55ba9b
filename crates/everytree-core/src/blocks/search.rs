//! Which columns belong together.

use super::MAX_COMBINATIONS;
use crate::data::Unique;
use crate::util::{Stop, mutual_information};
use rayon::prelude::*;

/// How large groups may become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most combinations in the data.
    pub states: usize,
    /// Most columns.
    pub columns: usize,
    /// Least mutual information of two groups that are merged, in nats.
    pub information: f64,
}

/// Columns that are taken as one so far.
struct Group {
    columns: Vec<usize>,
    /// Of every row.
    codes: Vec<u32>,
    /// Combinations that were seen.
    states: usize,
    /// Combinations that there are.
    all: usize,
}

/// Groups of columns that tell much about each other and have few combinations: again and again the two groups with the
/// highest mutual information become one, within the limits, or until `stop` asks for an end.
pub fn informative(states: &[usize], data: &Unique, limits: Limits, stop: Stop<'_>) -> Vec<Vec<usize>> {
    let (codes, rows) = (data.table.codes(), data.table.rows());
    let single = |v: usize| Group {
        columns: vec![v],
        codes: (0..rows).map(|row| codes.get(row, v) as u32).collect(),
        states: states[v],
        all: states[v],
    };
    let n = states.len();
    let mut groups: Vec<Option<Group>> = (0..n).map(|v| Some(single(v))).collect();
    // What two groups tell about each other, below the diagonal; none where they may not be merged.
    let mut told: Vec<Option<f64>> = vec![None; n * n];
    for i in 0..n {
        if stop() {
            break;
        }
        let line = told[i * n..i * n + i].par_iter_mut().enumerate();
        line.for_each(|(j, told)| *told = tell(&groups[i], &groups[j], data, limits));
    }
    while !stop() {
        let best = (0..n * n)
            .filter_map(|place| Some((told[place]?, place)))
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((_, place)) = best else { break };
        let (i, j) = (place / n, place % n);
        let merged = merge(groups[i].take(), groups[j].take());
        groups[j] = merged;
        let values: Vec<Option<f64>> =
            groups.par_iter().map(|other| tell(&groups[j], other, data, limits)).collect();
        for (other, value) in values.into_iter().enumerate() {
            told[i.max(other) * n + i.min(other)] = None;
            if other != j {
                told[j.max(other) * n + j.min(other)] = value;
            }
        }
    }
    groups.into_iter().flatten().map(|group| group.columns).filter(|columns| columns.len() > 1).collect()
}

/// The mutual information of two groups, where they may be merged.
fn tell(one: &Option<Group>, other: &Option<Group>, data: &Unique, limits: Limits) -> Option<f64> {
    let (one, other) = (one.as_ref()?, other.as_ref()?);
    let together = one.all.checked_mul(other.all).filter(|&all| all <= MAX_COMBINATIONS);
    if one.columns.len() + other.columns.len() > limits.columns || together.is_none() {
        return None;
    }
    let (k, l) = (one.states, other.states);
    let mut joint = vec![0.0; k * l];
    for ((a, b), weight) in one.codes.iter().zip(&other.codes).zip(&data.weights) {
        joint[*a as usize * l + *b as usize] += weight;
    }
    if joint.iter().filter(|&&count| count > 0.0).count() > limits.states {
        return None;
    }
    let total = data.total();
    joint.iter_mut().for_each(|count| *count /= total);
    let p: Vec<f64> = joint.chunks_exact(l).map(|line| line.iter().sum()).collect();
    let q: Vec<f64> = (0..l).map(|b| joint.iter().skip(b).step_by(l).sum()).collect();
    Some(mutual_information(&joint, &p, &q)).filter(|information| *information >= limits.information)
}

fn merge(one: Option<Group>, other: Option<Group>) -> Option<Group> {
    let (one, other) = (one?, other?);
    let mut columns = [one.columns, other.columns].concat();
    columns.sort_unstable();
    let pairs: Vec<u32> =
        one.codes.iter().zip(&other.codes).map(|(a, b)| a * other.states as u32 + b).collect();
    let mut seen = pairs.clone();
    seen.sort_unstable();
    seen.dedup();
    let place = |pair: &u32| seen.partition_point(|other| other < pair) as u32;
    let all = one.all * other.all;
    Some(Group { columns, codes: pairs.iter().map(place).collect(), states: seen.len(), all })
}

/// Two columns exclude each other if they would have met so often at random, and never do.
const MEETINGS: f64 = 10.0;
/// Most columns of a group of which at most one is 1.
const MOST_EXCLUSIVE: usize = 16;

/// Runs of neighbouring binary columns of which never two are 1 in the same row, though chance would have it so: one
/// categorical column in disguise.
pub fn exclusive(states: &[usize], data: &Unique) -> Vec<Vec<usize>> {
    let (codes, rows) = (data.table.codes(), data.table.rows());
    // Weights in units of a mean row, so that their scale does not matter.
    let scale = data.rows() as f64 / data.total();
    let ones = |v: usize| -> f64 {
        scale * (0..rows).map(|row| codes.get(row, v) as f64 * data.weights[row]).sum::<f64>()
    };
    let exclude = |u: usize, v: usize| {
        states[u] == 2
            && states[v] == 2
            && ones(u) * ones(v) >= MEETINGS * data.rows() as f64
            && (0..rows).all(|row| codes.get(row, u) + codes.get(row, v) < 2)
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for v in 0..states.len() {
        match groups.last_mut() {
            Some(group) if group.len() < MOST_EXCLUSIVE && group.iter().all(|&u| exclude(u, v)) => {
                group.push(v)
            }
            _ => groups.push(vec![v]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}
