//! By how much the points of a stream are moved, in little space.

use st_model::varint;

/// Distances from the measured points to the corrected ones, in order.
///
/// What is stored is how the distance changes from point to point: nothing where clocks agree, and the same small step
/// again and again where a rank drifts back. A single change is an even number, its zigzag form shifted; a run of equal
/// ones an odd number, its length shifted, and the change.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    bytes: Vec<u8>,
    last: i64,
    /// The run that is open: change, number of points.
    run: (i64, u64),
}

impl Moves {
    /// The moves from measured points to corrected ones.
    pub fn between(measured: impl IntoIterator<Item = i64>, corrected: &[i64]) -> Self {
        let mut all = Self::default();
        measured.into_iter().zip(corrected).for_each(|(t, c)| all.push(c.wrapping_sub(t)));
        all.close();
        all
    }

    /// The next point's.
    #[inline]
    pub(super) fn push(&mut self, by: i64) {
        let change = by.wrapping_sub(self.last);
        self.last = by;
        if change != self.run.0 {
            self.close();
            self.run.0 = change;
        }
        self.run.1 += 1;
    }

    /// So many points that are moved as far as the one before.
    #[inline]
    pub(super) fn stay(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        if self.run.0 != 0 {
            self.close();
            self.run.0 = 0;
        }
        self.run.1 += n as u64;
    }

    /// Writes the open run.
    pub(super) fn close(&mut self) {
        let (change, n) = self.run;
        self.run.1 = 0;
        // Beyond 63 bits a change is written as a run of one.
        let single = change.unsigned_abs() < 1 << 61;
        if n > 2 || (n > 0 && !single) {
            varint::put_u64(&mut self.bytes, n << 1 | 1);
            varint::put_i64(&mut self.bytes, change);
            return;
        }
        for _ in 0..n {
            let zigzag = (change << 1 ^ change >> 63).cast_unsigned();
            varint::put_u64(&mut self.bytes, zigzag << 1);
        }
    }

    /// The distances, without end: after the last point it stays.
    pub fn iter(&self) -> Iter<'_> {
        Iter { bytes: &self.bytes, by: 0, change: 0, left: 0 }
    }

    /// Measured points, moved.
    pub fn apply<'a>(
        &'a self,
        measured: impl IntoIterator<Item = i64> + 'a,
    ) -> impl Iterator<Item = i64> + 'a {
        measured.into_iter().zip(self.iter()).map(|(t, by)| t.wrapping_add(by))
    }
}

impl<'a> IntoIterator for &'a Moves {
    type Item = i64;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Distances of points, one after the other.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    by: i64,
    change: i64,
    left: u64,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            let token = varint::get_u64(&mut self.bytes);
            (self.change, self.left) = match token {
                Ok(n) if n & 1 == 1 => (varint::get_i64(&mut self.bytes).unwrap_or(0), n >> 1),
                Ok(zigzag) => {
                    let zigzag = zigzag >> 1;
                    ((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed(), 1)
                }
                Err(_) => (0, u64::MAX),
            };
        }
        self.left -= 1;
        self.by = self.by.wrapping_add(self.change);
        Some(self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn moves_come_back(
            runs in proptest::collection::vec((prop_oneof![-3i64..3, any::<i64>()], 1usize..9, 0usize..5), 0..40),
        ) {
            let (mut moves, mut expected, mut by) = (Moves::default(), Vec::new(), 0i64);
            for (change, n, stay) in runs {
                for _ in 0..n {
                    by = by.wrapping_add(change);
                    moves.push(by);
                    expected.push(by);
                }
                moves.stay(stay);
                expected.extend(std::iter::repeat_n(by, stay));
            }
            moves.close();
            prop_assert_eq!(moves.iter().take(expected.len()).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(Moves::between(vec![0; expected.len()], &expected).iter().take(expected.len()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_rank_that_drifts_back_takes_no_space() {
        let mut moves = Moves::default();
        moves.stay(1_000_000);
        (0..1_000_000).for_each(|n| moves.push(5_000_000 - n));
        moves.close();
        assert!(moves.bytes.len() < 20, "{}", moves.bytes.len());
    }
}
