//! Two-dimensional process grids.

/// Ranks in rows: rank = y · width + x.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grid {
    /// Number of columns.
    pub(crate) width: i32,
    /// Number of rows, at most the number of columns.
    pub(crate) height: i32,
}

impl Grid {
    /// The grid nearest to a square.
    pub(crate) fn nearly_square(ranks: i32) -> Self {
        let height = (1..=ranks).take_while(|h| i64::from(*h) * i64::from(*h) <= i64::from(ranks));
        let height = height.filter(|h| ranks % h == 0).last().unwrap_or(1);
        Self { width: ranks / height, height }
    }
    /// Column and row of a rank.
    pub(crate) fn coordinates(self, rank: i32) -> (i32, i32) {
        (rank % self.width, rank / self.width)
    }
    /// The rank at a column and row, both taken modulo the grid's size.
    pub(crate) fn wrapped(self, x: i32, y: i32) -> i32 {
        y.rem_euclid(self.height) * self.width + x.rem_euclid(self.width)
    }
    /// The rank at a column and row, if they are in the grid.
    pub(crate) fn bounded(self, x: i32, y: i32) -> Option<i32> {
        let inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        inside.then(|| y * self.width + x)
    }
}

/// Size of the `i`-th of `parts` parts of `total`, as equal as they can be; larger ones first.
pub(crate) fn share(total: i32, parts: i32, i: i32) -> i32 {
    total / parts + i32::from(i < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_nearly_square() {
        let shape = |n| {
            let g = Grid::nearly_square(n);
            (g.width, g.height)
        };
        assert_eq!(
            [1, 2, 4, 6, 7, 12, 16, 1_000_000].map(shape),
            [(1, 1), (2, 1), (2, 2), (3, 2), (7, 1), (4, 3), (4, 4), (1000, 1000)]
        );
        let g = Grid::nearly_square(12);
        assert_eq!(
            (g.coordinates(7), g.wrapped(-1, 3), g.bounded(3, 2), g.bounded(4, 0)),
            ((3, 1), 3, Some(11), None)
        );
    }

    #[test]
    fn shares_add_up() {
        assert_eq!((0..4).map(|i| share(26, 4, i)).collect::<Vec<_>>(), [7, 7, 6, 6]);
    }
}
