//! Counts that are products of one factor per coordinate of a grid of ranks: sizes of blocks that a domain does not divide
//! into evenly. What is found is an expression, which is then applied to all ranks, exactly or not at all.
//!
//! A factor is constant between a few places of its coordinate: the first blocks of a row are one point larger than the
//! rest. A place of a stream's period may have factors of its own (faces across one axis after those across another).

use st_model::num::saturate;
use std::collections::HashMap;

use st_model::expr::Expr;
use st_model::form::{Form, Grid};

use crate::merge::factor::{Factor, PIECES, PLACES, Product, Ratio, chosen};
use crate::merge::infer::Sampled;
use crate::merge::turns::{place_by_place, side, turning};

/// Places along an axis that are looked at before the changes between them are searched for.
const ALONG: i64 = 64;

/// Most ranks that are all looked at.
const MOST: i64 = 1 << 17;

/// First values of the rank of a number in the communicator.
type At<'a> = &'a dyn Fn(i64) -> Option<Vec<i64>>;

/// Number of first values of a stream that are looked at, on so many ranks.
pub(crate) fn head(size: i64) -> usize {
    let side = side(size).unwrap_or(0);
    saturate::<usize>(4 * side).clamp(2 * PLACES, 1024)
}

/// The product that explains a sample and what else is looked at: `at` and, of all ranks, [`PLACES`] values.
pub(crate) fn product(sample: &[Sampled], at: At<'_>, all: &dyn Fn() -> Vec<Sampled>) -> Option<Form> {
    let size = sample.first()?.own.size;
    if sample.iter().any(|s| s.own.size != size) {
        return None;
    }
    let period = period(sample)?;
    let text =
        in_grids(sample, size, period, at).or_else(|| turning(sample, size, period)).or_else(|| {
            let few = size <= MOST && period <= PLACES && side(size).is_some();
            few.then(|| place_by_place(&all(), size, period)).flatten()
        })?;
    Expr::parse(&text, &HashMap::new()).ok().map(Form::User)
}

/// The shortest period that all heads have.
fn period(sample: &[Sampled]) -> Option<usize> {
    let longest = sample.iter().map(|s| s.head.len()).max()?;
    (1..=longest)
        .find(|t| sample.iter().all(|s| s.head.iter().zip(s.head.iter().skip(*t)).all(|(a, b)| a == b)))
}

/// As products over the coordinates of a grid, which may differ between the places of a short period.
fn in_grids(sample: &[Sampled], size: i64, period: usize, at: At<'_>) -> Option<String> {
    if period > PLACES {
        return None;
    }
    let origin = at(0)?;
    Grid::all(size)
        .into_iter()
        .find_map(|grid| chosen(period, |place| in_grid(sample, size, grid, (place, period), &origin, at)))
}

/// One place of the period in one grid: factors along the axes from rank 0, true for the whole sample.
fn in_grid(
    sample: &[Sampled],
    size: i64,
    grid: Grid,
    (place, period): (usize, usize),
    origin: &[i64],
    at: At<'_>,
) -> Option<String> {
    let values = |s: &Sampled| s.head.iter().copied().skip(place).step_by(period).next();
    let first = *origin.get(place)?;
    if first < 1 {
        // Specials are no counts, and nothing is a product with 0.
        return sample.iter().all(|s| values(s).is_none_or(|v| v == first)).then(|| "0".to_owned());
    }
    let (strides, (middle, inner)) = (grid.strides(), grid.extents());
    let extents = [size / strides[0], middle.into(), inner.into()];
    let scale = Ratio::of(first)?;
    let mut factors = Vec::new();
    for d in 0..3 {
        let value = |x: i64| Ratio::of(*at(x * strides[d])?.get(place)?)?.over(scale);
        factors.push(Factor::new(along(extents[d], &value)?)?);
    }
    let explained = |s: &Sampled| {
        let at = grid.place(s.own.me);
        let product = (0..3).try_fold(scale, |p, d| p.times(factors[d].at(at[d])));
        values(s).is_none_or(|v| product == Ratio::of(v))
    };
    if !sample.iter().all(explained) {
        return None;
    }
    let names = [format!("me/{}", strides[0]), format!("me/{inner}%{middle}"), format!("me%{inner}")];
    Product { scale, factors: names.into_iter().zip(factors).collect() }.text()
}

/// Values along an axis: some places, and those around each change between them.
fn along(extent: i64, value: &dyn Fn(i64) -> Option<Ratio>) -> Option<Vec<(i64, Ratio)>> {
    let last = extent - 1;
    let count = ALONG.min(last).max(1);
    let mut known: Vec<(i64, Ratio)> = vec![(0, value(0)?)];
    for k in 1..=count.min(last) {
        let (mut from, next) = (*known.last()?, last * k / count);
        let reached = (next, value(next)?);
        if from.1 != reached.1 {
            // Where it changes, if it does so once.
            let mut to = reached;
            while to.0 - from.0 > 1 {
                let middle = from.0 + (to.0 - from.0) / 2;
                let v = value(middle)?;
                *(if v == from.1 { &mut from } else { &mut to }) = (middle, v);
            }
            known.push(to);
        }
        known.push(reached);
        if known.windows(2).filter(|w| w[0].1 != w[1].1).count() >= PIECES {
            return None;
        }
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use st_model::form::Own;

    use super::*;

    /// Size of a part of 29 points.
    fn share(parts: i64, i: i64) -> i64 {
        29 / parts + i64::from(i < 29 % parts)
    }

    fn found_in(size: i64, value: &dyn Fn(i64, i64) -> i64) -> Option<Form> {
        let head = |me: i64| (0..40).map(|n| value(me, n)).collect::<Vec<_>>();
        let sampled = |me| Sampled { own: Own { me, size }, head: head(me) };
        let sample: Vec<Sampled> = (0..size).step_by(3).map(sampled).collect();
        product(&sample, &|me| (me < size).then(|| head(me)), &|| (0..size).map(sampled).collect())
    }

    /// The expression found for so many ranks, true for all of them.
    fn found(size: i64, value: impl Fn(i64, i64) -> i64) -> Option<String> {
        let form = found_in(size, &value)?;
        for me in 0..size {
            for n in 0..40 {
                let code = form.code_at(value(me, n), Own { me, size }, n.cast_unsigned());
                assert_eq!(code, 0, "{form}, rank {me}, {n}");
            }
        }
        Some(form.to_string())
    }

    #[test]
    fn faces_of_blocks_are_products() {
        // A block's faces across three axes, from one place, twice each.
        let face = |me: i64, n: i64| {
            let [z, y, x] = [share(4, me / 20), share(4, me / 5 % 4), share(5, me % 5)];
            10 * [y * z, x * z, x * y][usize::try_from(n % 6 / 2).unwrap_or(0)]
        };
        assert!(found(80, face).is_some());
        let of_one = |me: i64, _| 7 * share(4, me / 20) * share(4, me / 5 % 4);
        assert_eq!(found(80, of_one).as_deref(), Some("expr:\"7*(me/20<1?8:7)*(me/5%4<1?8:7)\""));
        let geometric = |me: i64, _| (3 << (me / 8 % 3)) * share(6, me / 24);
        assert!(found(144, geometric).is_some());
    }

    #[test]
    fn cells_of_multi_partitioned_domains_are_products() {
        // On 32 by 32 ranks some blocks are empty.
        for q in [4i64, 5, 8, 11, 32] {
            // The face across x of the cell that a rank works on at a stage, there and back.
            let there = |me: i64, n: i64| {
                let k = n % (q - 1) - me % q;
                5 * share(q, (me / q + k).rem_euclid(q)) * share(q, k.rem_euclid(q))
            };
            let back = |me: i64, n: i64| there(me, q - 2 - n % (q - 1));
            assert!(found(q * q, there).is_some(), "{q}");
            assert!(found(q * q, back).is_some(), "{q}");
        }
    }

    #[test]
    fn sums_over_all_cells_but_one_are_found() {
        for q in [4i64, 5, 8, 11, 16, 32] {
            let faces = |me: i64, n: i64| -> i64 {
                let (i, j) = (me % q, me / q);
                let cells = (0..q - 1).map(|s| match n % 3 {
                    0 => share(q, (j + s - i).rem_euclid(q)) * share(q, (s - i).rem_euclid(q)),
                    1 => share(q, (i + s - j).rem_euclid(q)) * share(q, (s - j).rem_euclid(q)),
                    _ => share(q, (i + s) % q) * share(q, (j + s) % q),
                });
                10 * cells.sum::<i64>()
            };
            assert!(found(q * q, faces).is_some(), "{q}");
        }
    }

    #[test]
    fn anything_can_be_asked() {
        let huge = [i64::MAX, i64::MAX - 1, i64::MIN, 0, 1, i64::MAX / 2 - 3, -1, (1 << 61) + 7];
        for size in [4i64, 9, 12, 16, 64] {
            for k in 1..60 {
                let value =
                    |me: i64, n: i64| huge[usize::try_from((me / 2 * k + me % 2 * n + k) % 8).unwrap_or(0)];
                let _ = found_in(size, &value);
                let _ = found_in(size, &|me, n| value(me, n).max(1));
                let _ = found_in(size, &|me, _| value(me / 4, 0).max(1));
            }
        }
    }

    #[test]
    fn what_is_no_product_has_none() {
        assert_eq!(found(64, |me, _| me * me % 7 + 1), None);
        assert_eq!(found(64, |me, n| (me * 5 + n * n) % 11), None);
        assert_eq!(found(48, |me, _| share(4, me / 12) + share(12, me % 12)), None);
    }
}
