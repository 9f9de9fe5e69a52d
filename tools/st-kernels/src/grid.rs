//! Process grids of two and three dimensions.

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

/// Ranks in planes of rows: rank = (z · height + y) · width + x.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cube {
    /// Extents along x, y and z, from the largest to the smallest.
    pub(crate) extents: [i32; 3],
}

impl Cube {
    /// The grid nearest to a cube.
    pub(crate) fn nearly_cubic(ranks: i32) -> Self {
        let depth = (1..=ranks).take_while(|d| i64::from(*d).pow(3) <= i64::from(ranks));
        let depth = depth.filter(|d| ranks % d == 0).last().unwrap_or(1);
        let plane = Grid::nearly_square(ranks / depth);
        Self { extents: [plane.width, plane.height, depth] }
    }
    /// Place of a rank along x, y and z.
    pub(crate) fn place(self, rank: i32) -> [i32; 3] {
        let [width, height, _] = self.extents;
        [rank % width, rank / width % height, rank / width / height]
    }
    /// The rank at a place, taken modulo the grid's extents, or `None` outside it if it is open.
    pub(crate) fn rank(self, place: [i32; 3], open: bool) -> Option<i32> {
        let inside = place.iter().zip(self.extents).all(|(at, n)| (0..n).contains(at));
        let [x, y, z] = [0, 1, 2].map(|d: usize| place[d].rem_euclid(self.extents[d]));
        (inside || !open).then(|| (z * self.extents[1] + y) * self.extents[0] + x)
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
    fn cubes_are_nearly_cubic() {
        let shapes = [1, 2, 8, 12, 64, 1_000_000].map(|n| Cube::nearly_cubic(n).extents);
        assert_eq!(shapes, [[1, 1, 1], [2, 1, 1], [2, 2, 2], [3, 2, 2], [4, 4, 4], [100, 100, 100]]);
        let c = Cube::nearly_cubic(12);
        assert_eq!((c.place(7), c.rank([1, 0, 1], true)), ([1, 0, 1], Some(7)));
        assert_eq!((c.rank([3, 0, 0], true), c.rank([3, 0, -1], false)), (None, Some(6)));
    }

    #[test]
    fn shares_add_up() {
        assert_eq!((0..4).map(|i| share(26, 4, i)).collect::<Vec<_>>(), [7, 7, 6, 6]);
    }
}
