//! Unordered pairs {u, v}, u < v, in one list: {0,1}, {0,2}, {1,2}, {0,3} …; and symmetric matrices.

/// How many pairs n things have.
pub(crate) fn pairs(n: usize) -> usize {
    n * n.saturating_sub(1) / 2
}

/// The place of {u, v}, u < v, in the list.
#[inline]
pub(crate) fn pair(u: usize, v: usize) -> usize {
    pairs(v) + u
}

/// A list of pairs as the lower half of an `n × n` matrix.
pub(crate) fn below_diagonal(n: usize, list: &[f64]) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    for v in 0..n {
        matrix[v * n..v * n + v].copy_from_slice(&list[pairs(v)..pairs(v) + v]);
    }
    matrix
}

/// Copies what is below the diagonal to above it, in tiles of 4 × 4, so that what is written is near what was
/// read.
pub(crate) fn mirror<T: Copy + Default>(n: usize, matrix: &mut [T]) {
    let whole = n / 4 * 4;
    for top in (0..whole).step_by(4) {
        for left in (0..=top).step_by(4) {
            let mut tile = [[T::default(); 4]; 4];
            for (x, row) in tile.iter_mut().enumerate() {
                row.copy_from_slice(&matrix[(top + x) * n + left..][..4]);
            }
            if left < top {
                for x in 0..4 {
                    let column = [tile[0][x], tile[1][x], tile[2][x], tile[3][x]];
                    matrix[(left + x) * n + top..][..4].copy_from_slice(&column);
                }
            } else {
                for x in 0..4 {
                    (0..x).for_each(|y| matrix[(left + y) * n + top + x] = tile[x][y]);
                }
            }
        }
    }
    for v in whole..n {
        (0..v).for_each(|u| matrix[u * n + v] = matrix[v * n + u]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_as_they_come() {
        let listed = (0..40).flat_map(|v| (0..v).map(move |u| (u, v)));
        for (place, (u, v)) in listed.enumerate() {
            assert_eq!(pair(u, v), place);
        }
        assert_eq!(pairs(0), 0);
    }

    #[test]
    fn a_list_becomes_a_symmetric_matrix() {
        let n = 37;
        let list: Vec<f64> = (0..pairs(n)).map(|place| place as f64).collect();
        let mut matrix = below_diagonal(n, &list);
        mirror(n, &mut matrix);
        for v in 0..n {
            assert_eq!(matrix[v * n + v], 0.0);
            for u in 0..v {
                assert_eq!(matrix[v * n + u], list[pair(u, v)]);
                assert_eq!(matrix[u * n + v], list[pair(u, v)]);
            }
        }
    }
}
