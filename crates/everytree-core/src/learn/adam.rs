//! Kingma and Ba's optimiser.

use crate::model::within_range;
use rayon::prelude::*;

const MEAN_DECAY: f64 = 0.9;
const SQUARE_DECAY: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// Parameters worth a thread of their own.
const CHUNK: usize = 1 << 14;

/// What Adam remembers: running means of every derivative and of its square.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Steps made.
    pub steps: u64,
    /// Running means of derivatives.
    pub means: Vec<f64>,
    /// Running means of their squares.
    pub squares: Vec<f64>,
}

impl Adam {
    /// Nothing seen yet of so many parameters.
    pub fn new(parameters: usize) -> Self {
        Self { steps: 0, means: vec![0.0; parameters], squares: vec![0.0; parameters] }
    }

    /// A step uphill.
    pub(crate) fn ascend(&mut self, pieces: &mut [&mut [f64]], gradient: &[f64], scale: f64, rate: f64) {
        self.steps += 1;
        // Both corrections once, and not a division for each parameter.
        let rate = rate / (1.0 - MEAN_DECAY.powf(self.steps as f64));
        let correction = (1.0 - SQUARE_DECAY.powf(self.steps as f64)).sqrt().recip();
        let step = |((parameter, &slope), (mean, square)): ((&mut f64, &f64), (&mut f64, &mut f64))| {
            let slope = slope * scale;
            *mean = MEAN_DECAY * *mean + (1.0 - MEAN_DECAY) * slope;
            *square = SQUARE_DECAY * *square + (1.0 - SQUARE_DECAY) * slope * slope;
            *parameter += rate * *mean / (square.sqrt() * correction + EPSILON);
            *parameter = within_range(*parameter);
        };
        let (mut gradient, mut means, mut squares) = (gradient, &mut self.means[..], &mut self.squares[..]);
        for piece in pieces {
            let (own_gradient, rest) = gradient.split_at(piece.len());
            gradient = rest;
            let (own_means, rest) = std::mem::take(&mut means).split_at_mut(piece.len());
            means = rest;
            let (own_squares, rest) = std::mem::take(&mut squares).split_at_mut(piece.len());
            squares = rest;
            piece
                .par_chunks_mut(CHUNK)
                .zip(own_gradient.par_chunks(CHUNK))
                .zip(own_means.par_chunks_mut(CHUNK).zip(own_squares.par_chunks_mut(CHUNK)))
                .for_each(|((parameters, gradient), (means, squares))| {
                    // With the widest registers there are; the numbers are the same.
                    pulp::Arch::new().dispatch(
                        #[inline(always)]
                        || {
                            parameters
                                .iter_mut()
                                .zip(gradient)
                                .zip(means.iter_mut().zip(squares))
                                .for_each(step)
                        },
                    );
                });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published recursion, written down for one parameter.
    #[test]
    fn steps_are_those_of_the_paper() {
        let mut adam = Adam::new(1);
        let mut x = [1.0];
        let (mut y, mut m, mut v) = (1.0, 0.0, 0.0);
        for t in 1..=20 {
            let slope = |x: f64| -2.0 * (x - 3.0);
            let uphill = [2.0 * slope(x[0])];
            adam.ascend(&mut [&mut x[..]], &uphill, 0.5, 0.1);
            m = 0.9 * m + 0.1 * slope(y);
            v = 0.999 * v + 0.001 * slope(y) * slope(y);
            let (m_hat, v_hat): (f64, f64) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
            y += 0.1 * m_hat / (v_hat.sqrt() + 1e-8);
            assert!((x[0] - y).abs() < 1e-12);
        }
        assert!((x[0] - 3.0).abs() < 1.0);
    }
}
