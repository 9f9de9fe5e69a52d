//! Which symbolic form makes the ranks of a cluster equal: the first, in a fixed order, that leads from one rank's values to
//! those of every other.
//!
//! The order: as recorded, relative, relative modulo the number of ranks, mirrored, exclusive-or; an affine function of the
//! rank; and in every grid that the ranks divide into, first those of two dimensions, displacements with and without wrap and
//! affine functions of the coordinates. Factors of affine functions follow from ranks that differ.
//!
//! A form is tried on *witnesses* first, the ranks that have ruled out others, and then on all ranks; so each is looked at
//! once, however many ranks there are.

use st_trace::calls::Meaning;
use st_trace::form::{Form, Grid, Own};

/// A form to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Candidate {
    Fixed(Form),
    /// Affine in a grid, with factors to be found.
    Fitted(Grid),
}

/// What a rank has in the place of each of the first one's values.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) own: Own,
    pub(crate) pairs: Vec<(i64, i64)>,
}

/// Whether values of a meaning may be functions of the rank.
pub(crate) fn symbolic(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Rank | Meaning::Tag | Meaning::Count | Meaning::Int)
}

/// The forms to try after that as recorded, in order.
pub(crate) fn candidates(meaning: Meaning, size: i64) -> Vec<Candidate> {
    let peers = meaning == Meaning::Rank;
    let mut out: Vec<Candidate> = match meaning {
        Meaning::Rank => {
            [Form::RELATIVE, Form::MODULO, Form::MIRRORED, Form::Xor].map(Candidate::Fixed).into()
        }
        Meaning::Tag | Meaning::Int => [Form::RELATIVE, Form::MIRRORED].map(Candidate::Fixed).into(),
        _ => Vec::new(),
    };
    out.push(Candidate::Fitted(Grid::LINE));
    for grid in grids(size) {
        if peers {
            let flat = grid.extents().0 == 1;
            let wraps = (0u8..8).map(|w| [w & 4 != 0, w & 2 != 0, w & 1 != 0]);
            let shifts = wraps.filter(|w| !(flat && w[1])).map(|wrap| Form::Shift { grid, wrap });
            out.extend(shifts.map(Candidate::Fixed));
        }
        out.push(Candidate::Fitted(grid));
    }
    out
}

/// All grids of two dimensions, and then of three, that divide so many ranks.
fn grids(size: i64) -> Vec<Grid> {
    let divisors = |n: i64| {
        let small: Vec<i64> = (1..).take_while(move |d| d * d <= n).filter(|d| n % d == 0).collect();
        let large: Vec<i64> = small.iter().rev().map(|d| n / d).filter(|d| d * d > n).collect();
        small.into_iter().chain(large)
    };
    let mut out = Vec::new();
    for inner in divisors(size.max(1)).filter(|d| (2..size).contains(d)) {
        for middle in divisors(size / inner).filter(|m| m * inner < size) {
            let extents = u32::try_from(middle).ok().zip(u32::try_from(inner).ok());
            out.extend(extents.and_then(|(m, i)| Grid::new(m, i)));
        }
    }
    out.sort_by_key(|g| g.extents().0 > 1);
    out
}

/// Whether a form leads from a rank's values to another's.
pub(crate) fn leads(form: Form, from: Own, to: Own, pairs: &[(i64, i64)]) -> bool {
    pairs.iter().all(|(a, b)| form.value(form.code(*a, from), to) == *b)
}

impl Candidate {
    /// The form, if it leads from the first rank's values to those of all witnesses; and how many ranks it takes to fit it.
    pub(crate) fn form(self, first: Own, witnesses: &[Witness]) -> Option<(Form, u64)> {
        let (form, fitted) = match self {
            Self::Fixed(form) => (form, 0),
            Self::Fitted(grid) => fit(grid, first, witnesses)?,
        };
        let all = witnesses.iter().all(|w| leads(form, first, w.own, &w.pairs));
        all.then_some((form, fitted))
    }
}

/// The affine form in a grid that the witnesses' differences from the first rank allow, and the number of independent
/// differences it took; what they leave open does not depend on the coordinate.
fn fit(grid: Grid, first: Own, witnesses: &[Witness]) -> Option<(Form, u64)> {
    let from = grid.place(first.me);
    // Rows of differences of coordinates and of values, in echelon form.
    let mut rows: Vec<[i128; 4]> = Vec::new();
    for w in witnesses {
        let to = grid.place(w.own.me);
        let (a, b) = w.pairs.iter().find(|(a, _)| *a >= 0)?;
        let mut row = [0i128; 4];
        for d in 0..3 {
            row[d] = i128::from(to[d]) - i128::from(from[d]);
        }
        row[3] = i128::from(*b) - i128::from(*a);
        for known in &rows {
            let lead = known.iter().position(|x| *x != 0)?;
            let (x, y) = (known[lead], row[lead]);
            for k in 0..4 {
                row[k] = row[k].checked_mul(x)?.checked_sub(known[k].checked_mul(y)?)?;
            }
            let common = row.iter().fold(0, |g, v| gcd(g, v.unsigned_abs()));
            if let Ok(common @ 1..) = i128::try_from(common) {
                row.iter_mut().for_each(|v| *v /= common);
            }
        }
        match row.iter().position(|x| *x != 0) {
            None => {}
            Some(3) => return None,
            Some(_) => rows.push(row),
        }
    }
    let mut factors = [0i128; 3];
    for row in rows.iter().rev() {
        let lead = row.iter().position(|x| *x != 0)?;
        let mut rest = row[3];
        for d in (0..3).filter(|d| *d != lead) {
            rest = rest.checked_sub(row[d].checked_mul(factors[d])?)?;
        }
        if rest.checked_rem(row[lead])? != 0 {
            return None;
        }
        factors[lead] = rest.checked_div(row[lead])?;
    }
    let mut whole = [0i64; 3];
    for d in 0..3 {
        whole[d] = i64::try_from(factors[d]).ok()?;
    }
    let taken = u64::try_from(rows.len()).ok()?;
    (whole != [0; 3]).then_some((Form::Affine { grid, factors: whole }, taken))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first candidate that leads from rank 0's value to all.
    fn found(meaning: Meaning, size: i64, value: impl Fn(i64) -> i64) -> Option<Form> {
        let own = |me| Own { me, size };
        let witnesses: Vec<Witness> =
            (1..size).map(|me| Witness { own: own(me), pairs: vec![(value(0), value(me))] }).collect();
        candidates(meaning, size).into_iter().find_map(|c| Some(c.form(own(0), &witnesses)?.0))
    }

    #[test]
    fn partners_of_known_programs_are_found_in_order() {
        let peer = Meaning::Rank;
        let grid = |m, i| Grid::new(m, i).unwrap_or(Grid::LINE);
        assert_eq!(found(peer, 16, |me| me + 1), Some(Form::RELATIVE));
        assert_eq!(found(peer, 16, |me| (me + 1) % 16), Some(Form::MODULO));
        assert_eq!(found(peer, 16, |me| 15 - me), Some(Form::MIRRORED));
        assert_eq!(found(peer, 16, |me| me ^ 2), Some(Form::Xor));
        let torus = found(peer, 64, |me| me / 8 * 8 + (me + 1) % 8);
        assert_eq!(torus, Some(Form::Shift { grid: grid(1, 8), wrap: [false, false, true] }));
        let transposed = found(peer, 64, |me| me % 8 * 8 + me / 8);
        assert_eq!(transposed, Some(Form::Affine { grid: grid(1, 8), factors: [1, 0, 8] }));
        assert_eq!(found(peer, 31, |me| me * me * 7 % 31), None);
    }

    #[test]
    fn colours_and_counts_are_found() {
        let grid = Grid::new(1, 6).unwrap_or(Grid::LINE);
        let row = Some(Form::Affine { grid, factors: [1, 0, 0] });
        assert_eq!(found(Meaning::Int, 24, |me| me / 6), row);
        assert_eq!(
            found(Meaning::Count, 24, |me| 7 * me + 1),
            Some(Form::Affine { grid: Grid::LINE, factors: [7, 0, 0] })
        );
    }
}
