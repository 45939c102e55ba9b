//! Blocks of columns: every row of columns is in one row of blocks and its share of it, and what belongs together is found.

mod every;

use everytree_core::blocks::{Blocks, BlocksError, Limits, exclusive, informative};
use everytree_core::data::{Dataset, Missing, Table};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::HashMap;

const STATES: [usize; 5] = [2, 3, 2, 2, 4];

fn table(rows: &[[u16; 5]]) -> Table {
    let mut table = Table::new(&STATES);
    rows.iter().for_each(|row| table.push(row));
    table
}

fn blocks() -> Blocks {
    let seen = table(&[[0, 0, 0, 0, 0], [1, 2, 0, 0, 3], [0, 0, 1, 1, 1], [0, 1, 1, 1, 1]]);
    Blocks::new(&STATES, &[vec![4, 1], vec![2, 3]], &seen.unique()).unwrap()
}

#[test]
fn the_shares_of_a_state_add_up_to_one() {
    let blocks = blocks();
    let columns: Vec<&[usize]> = blocks.blocks().iter().map(|block| block.columns()).collect();
    assert_eq!(columns, [&[0][..], &[1, 4], &[2, 3]]);
    // Four of twelve combinations seen, and two of four.
    assert_eq!(blocks.states(), [2, 5, 3]);
    assert_eq!(blocks.blocks().iter().map(|block| block.unseen()).collect::<Vec<_>>(), [0, 8, 2]);
    let mut all = Table::new(&STATES);
    every::row(&STATES).iter().for_each(|row| all.push(row));
    let encoded = blocks.encode(&all);
    let mut shares: HashMap<Vec<usize>, f64> = HashMap::new();
    for row in 0..all.rows() {
        let state: Vec<usize> = (0..3).map(|block| encoded.get(row, block)).collect();
        *shares.entry(state).or_default() += blocks.log_share(|block| encoded.get(row, block)).exp();
    }
    assert_eq!(shares.len(), 2 * 5 * 3);
    shares.values().for_each(|share| assert!((share - 1.0).abs() < 1e-12));
    let unique = blocks.unique(&Dataset::anonymous(&STATES, all.clone()).unwrap());
    assert_eq!(unique.log_shares.len(), unique.table.rows());
}

#[test]
fn combinations_are_told_apart_and_counted() {
    let blocks = blocks();
    let block = &blocks.blocks()[1];
    let seen: Vec<Vec<u16>> = (0..4).map(|state| block.combination(state).unwrap()).collect();
    assert_eq!(seen, [vec![0, 0], vec![0, 1], vec![1, 1], vec![2, 3]]);
    assert_eq!(block.combination(4), None);
    let others: Vec<Vec<u16>> = block.others().collect();
    assert_eq!(others.len(), 8);
    assert!(others.iter().all(|other| !seen.contains(other)));
    assert_eq!(Blocks::from_combinations(&STATES, &blocks.combinations()).unwrap(), blocks);
    // With everything seen there is no state for the rest.
    let all = Blocks::new(&STATES, &[vec![0, 2]], &{
        let mut all = Table::new(&STATES);
        every::row(&STATES).iter().for_each(|row| all.push(row));
        all.unique()
    });
    assert_eq!(all.unwrap().blocks()[0].states(), 4);
    assert_eq!(blocks.places(), [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1)]);
    assert_eq!(blocks.column_states(), STATES);
}

#[test]
fn groups_that_are_none_are_refused() {
    let data = table(&[[0; 5]]).unique();
    let refused = |groups: &[Vec<usize>]| Blocks::new(&STATES, groups, &data).unwrap_err();
    assert_eq!(refused(&[vec![0, 5]]), BlocksError::NoColumn(5));
    assert_eq!(refused(&[vec![0, 1], vec![1, 2]]), BlocksError::Twice(1));
    assert_eq!(refused(&[vec![3, 3]]), BlocksError::Twice(3));
    let wide = vec![64; 4];
    let mut table = Table::new(&wide);
    table.push(&[0; 4]);
    assert_eq!(
        Blocks::new(&wide, &[vec![0, 1, 2, 3]], &table.unique()).unwrap_err(),
        BlocksError::TooMany(0)
    );
    // More combinations than can have a state each, and none at all.
    let mut many = Table::new(&[64, 64]);
    (0..2000u16).for_each(|i| many.push(&[i % 64, i / 64]));
    let refused = Blocks::new(&[64, 64], &[vec![0, 1]], &many.unique()).unwrap_err();
    assert_eq!(refused, BlocksError::TooManySeen { column: 0, states: 2000 });
    let mut holes = Missing::default();
    holes.push(0, vec![3]);
    let incomplete = Dataset::anonymous(&STATES, data.table.clone()).unwrap().with_missing(holes).unwrap();
    let refused = Blocks::observed(&[vec![2, 3]], &incomplete).unwrap_err();
    assert_eq!((refused.clone(), refused.column()), (BlocksError::NeverSeen(2), 2));
    // One column alone is no block.
    assert!(Blocks::new(&STATES, &[vec![2]], &data).unwrap().is_none());
}

#[test]
fn what_belongs_together_is_found() {
    // Three categorical columns of three states, one-hot without the first state; then two columns of noise.
    let mut rng = Pcg64::seed_from_u64(4);
    let states = vec![2; 8];
    let mut table = Table::new(&states);
    for _ in 0..600 {
        let mut row = [0u16; 8];
        for color in 0..3 {
            match rng.random_range(0..3) {
                0 => {}
                which => row[2 * color + which - 1] = 1,
            }
        }
        row[6] = u16::from(rng.random_bool(0.3));
        row[7] = u16::from(rng.random_bool(0.6));
        table.push(&row);
    }
    let data = table.unique();
    let pairs = vec![vec![0, 1], vec![2, 3], vec![4, 5]];
    assert_eq!(exclusive(&states, &data), pairs);
    let limits = Limits { states: 8, columns: 4, information: 0.02 };
    assert_eq!(informative(&states, &data, limits, &|| false), pairs);
    assert!(informative(&states, &data, Limits { states: 2, ..limits }, &|| false).is_empty());
    assert!(informative(&states, &data, Limits { columns: 1, ..limits }, &|| false).is_empty());
    // Whatever scale weights have.
    let weighted = table.unique_weighted(&[1.0 / 600.0; 600]);
    assert_eq!(exclusive(&states, &weighted), pairs);
    assert_eq!(informative(&states, &weighted, limits, &|| false), pairs);
    // Columns that tell of each other in rows that weigh much, and not in others.
    let mut some = Table::new(&[2, 2]);
    let mut weights = Vec::new();
    for row in 0..400u16 {
        let heavy = row < 200;
        some.push(&[row % 2, if heavy { row % 2 } else { row / 2 % 2 }]);
        weights.push(if heavy { 1.0 } else { 1e-3 });
    }
    let strong = Limits { information: 0.5, ..limits };
    assert!(informative(&[2, 2], &some.unique(), strong, &|| false).is_empty());
    assert_eq!(informative(&[2, 2], &some.unique_weighted(&weights), strong, &|| false), [vec![0, 1]]);
    // Rare columns that happen never to meet are not one column.
    let mut rare = Table::new(&[2, 2]);
    (0..100u16).for_each(|row| rare.push(&[u16::from(row == 3), u16::from(row == 50)]));
    assert!(exclusive(&[2, 2], &rare.unique()).is_empty());
}
