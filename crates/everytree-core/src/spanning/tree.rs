//! Rooted trees and forests: who hangs under whom, and in which order to walk them.

use thiserror::Error;

/// A rooted forest on the vertices `0..n`: a spanning tree when it has one root.
///
/// ```
/// use everytree_core::spanning::RootedForest;
///
/// // 0 ─ 1 ─ 2 and 1 ─ 3, hung up at vertex 1.
/// let tree = RootedForest::from_edges(4, &[(0, 1), (2, 1), (1, 3)], 1)?;
/// assert_eq!(tree.parent(2), Some(1));
/// assert_eq!(tree.children(1), [0, 2, 3]);
/// assert_eq!(tree.path(0, 3), Some(vec![0, 1, 3]));
/// assert_eq!(tree.degree(1), 3);
/// # Ok::<(), everytree_core::spanning::TreeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootedForest {
    /// A root is its own parent.
    parents: Vec<usize>,
    /// Every vertex after its parent.
    order: Vec<usize>,
    /// Children of all vertices, one vertex after the other, each group in ascending order.
    children: Vec<usize>,
    /// Where the children of each vertex begin.
    begin: Vec<usize>,
}

/// Why a parent vector or a list of edges is not a rooted forest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// A vertex number that is too large.
    #[error("vertex {vertex} does not exist: there are {vertices} vertices")]
    NoSuchVertex {
        /// The offending number.
        vertex: usize,
        /// How many there are.
        vertices: usize,
    },
    /// Following the parents from a vertex leads back to it.
    #[error("vertex {vertex} is its own ancestor: not a forest")]
    Cycle {
        /// A vertex on the cycle.
        vertex: usize,
    },
    /// A tree on n vertices has n − 1 edges.
    #[error("{edges} edges cannot make a tree on {vertices} vertices: it takes {}", vertices.saturating_sub(1))]
    WrongNumberOfEdges {
        /// How many were given.
        edges: usize,
        /// How many vertices there are.
        vertices: usize,
    },
    /// A vertex that no path connects to the root.
    #[error("vertex {vertex} is not connected to the root {root}")]
    NotConnected {
        /// The vertex.
        vertex: usize,
        /// The root.
        root: usize,
    },
}

impl RootedForest {
    /// From the parent of every vertex; a root is its own parent. `O(n)`.
    pub fn from_parents(parents: Vec<usize>) -> Result<Self, TreeError> {
        let n = parents.len();
        let mut begin = vec![0; n + 1];
        for (v, &u) in parents.iter().enumerate() {
            if u >= n {
                return Err(TreeError::NoSuchVertex { vertex: u, vertices: n });
            }
            begin[u + 1] += usize::from(u != v);
        }
        for v in 0..n {
            begin[v + 1] += begin[v];
        }
        let mut children = vec![0; begin[n]];
        let mut next = begin.clone();
        for (v, &u) in parents.iter().enumerate() {
            if u != v {
                children[next[u]] = v;
                next[u] += 1;
            }
        }
        let mut order: Vec<usize> = (0..n).filter(|&v| parents[v] == v).collect();
        let mut done = 0;
        while done < order.len() {
            let u = order[done];
            order.extend_from_slice(&children[begin[u]..begin[u + 1]]);
            done += 1;
        }
        if order.len() < n {
            // Whatever no root reaches hangs below a cycle: n steps upwards end on it.
            let mut reached = vec![false; n];
            order.iter().for_each(|&v| reached[v] = true);
            let lost = reached.iter().position(|&yes| !yes).unwrap_or(0);
            let vertex = (0..n).fold(lost, |v, _| parents[v]);
            return Err(TreeError::Cycle { vertex });
        }
        Ok(Self { parents, order, children, begin })
    }

    /// A spanning tree from its `n − 1` undirected edges, hung up at `root`. `O(n)`.
    pub fn from_edges(n: usize, edges: &[(usize, usize)], root: usize) -> Result<Self, TreeError> {
        if edges.len() + 1 != n {
            return Err(TreeError::WrongNumberOfEdges { edges: edges.len(), vertices: n });
        }
        let ends = edges.iter().flat_map(|&(u, v)| [u, v]).chain([root]);
        if let Some(vertex) = ends.clone().find(|&v| v >= n) {
            return Err(TreeError::NoSuchVertex { vertex, vertices: n });
        }
        let mut neighbours = vec![Vec::new(); n];
        for &(u, v) in edges {
            neighbours[u].push(v);
            neighbours[v].push(u);
        }
        let mut parents = vec![usize::MAX; n];
        parents[root] = root;
        let mut frontier = vec![root];
        while let Some(u) = frontier.pop() {
            for &v in &neighbours[u] {
                if parents[v] == usize::MAX {
                    parents[v] = u;
                    frontier.push(v);
                }
            }
        }
        match parents.iter().position(|&u| u == usize::MAX) {
            Some(vertex) => Err(TreeError::NotConnected { vertex, root }),
            None => Self::from_parents(parents),
        }
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// No vertices at all?
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The roots, ascending.
    pub fn roots(&self) -> Vec<usize> {
        (0..self.len()).filter(|&v| self.parents[v] == v).collect()
    }

    /// The parent of `v`, or `None` for a root.
    pub fn parent(&self, v: usize) -> Option<usize> {
        let parent = self.parents[v];
        (parent != v).then_some(parent)
    }

    /// All parents; a root is its own.
    pub fn parents(&self) -> &[usize] {
        &self.parents
    }

    /// The children of `v`, ascending.
    pub fn children(&self, v: usize) -> &[usize] {
        &self.children[self.begin[v]..self.begin[v + 1]]
    }

    /// All vertices, every one after its parent: walk it forwards from the roots, backwards from the leaves.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Number of edges at `v`.
    pub fn degree(&self, v: usize) -> usize {
        self.children(v).len() + usize::from(self.parents[v] != v)
    }

    /// All edges as (child, parent), by child.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.parents.iter().enumerate().filter(|&(v, &u)| v != u).map(|(v, &u)| (v, u))
    }

    /// The vertices on the way from `from` to `to`, both included; `None` when they hang under different roots. `O(n)`.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let ancestry = |v: usize| {
            let mut line = vec![v];
            while let Some(u) = self.parent(line[line.len() - 1]) {
                line.push(u);
            }
            line
        };
        let (mut up, mut down) = (ancestry(from), ancestry(to));
        if up.last() != down.last() {
            return None;
        }
        // Drop what both share, but for the lowest common ancestor.
        while up.len() > 1 && down.len() > 1 && up[up.len() - 2] == down[down.len() - 2] {
            up.pop();
            down.pop();
        }
        down.pop();
        up.extend(down.into_iter().rev());
        Some(up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_puts_parents_first_and_children_are_complete() {
        let forest = RootedForest::from_parents(vec![2, 2, 2, 5, 3, 5, 0]).unwrap();
        assert_eq!(forest.roots(), [2, 5]);
        let place = |v| forest.order().iter().position(|&x| x == v).unwrap();
        for (v, u) in forest.edges() {
            assert!(place(u) < place(v));
            assert!(forest.children(u).contains(&v));
        }
        assert_eq!((0..7).map(|v| forest.degree(v)).sum::<usize>(), 2 * 5);
        assert_eq!(forest.path(6, 1), Some(vec![6, 0, 2, 1]));
        assert_eq!(forest.path(6, 6), Some(vec![6]));
        assert_eq!(forest.path(2, 6), Some(vec![2, 0, 6]));
        assert_eq!(forest.path(6, 4), None);
    }

    #[test]
    fn what_is_not_a_forest_is_refused() {
        let error = RootedForest::from_parents(vec![0, 2, 3, 1, 1]).unwrap_err();
        assert!(matches!(error, TreeError::Cycle { vertex: 1..=3 }), "{error}");
        let error = RootedForest::from_parents(vec![0, 7]).unwrap_err();
        assert_eq!(error.to_string(), "vertex 7 does not exist: there are 2 vertices");
        let error = RootedForest::from_edges(3, &[(0, 1)], 0).unwrap_err();
        assert_eq!(error.to_string(), "1 edges cannot make a tree on 3 vertices: it takes 2");
        let error = RootedForest::from_edges(4, &[(0, 1), (1, 0), (2, 3)], 0).unwrap_err();
        assert_eq!(error, TreeError::NotConnected { vertex: 2, root: 0 });
        let error = RootedForest::from_edges(2, &[(0, 1)], 9).unwrap_err();
        assert_eq!(error, TreeError::NoSuchVertex { vertex: 9, vertices: 2 });
        assert!(RootedForest::from_edges(1, &[], 0).is_ok());
        assert!(RootedForest::from_edges(0, &[], 0).is_err());
    }
}
