//! Which symbolic form makes the ranks of a cluster equal: the first, in a fixed order, that leads from one rank's values to
//! those of every other.
//!
//! The order: as recorded, relative, relative modulo the number of ranks, mirrored, exclusive-or; an affine function of the
//! rank; and in the grids that the ranks divide into, first those of two dimensions, displacements with wrap and then affine
//! functions of the coordinates. An expression that a user gave comes last. Factors of affine functions follow
//! from ranks that differ. st-merge prefers forms in the same order.
//!
//! A form is tried on *witnesses* first, the ranks that have ruled out others, and then on all ranks; so each is looked at
//! once, however many ranks there are.

use st_model::calls::Meaning;
use st_model::form::{Form, Grid, Own};
use st_model::num::Exact;

/// A form to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Candidate {
    Fixed(Form),
    /// Affine in a grid, with factors to be found.
    Fitted(Grid),
    /// The one that a user gave.
    User,
}

/// What a rank has in the place of each of the first one's values.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) own: Own,
    pub(crate) pairs: Vec<(i64, i64)>,
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
    let mut all = Grid::all(size);
    all.sort_unstable();
    let (flat, deep): (Vec<Grid>, Vec<Grid>) = all.into_iter().partition(|g| g.extents().0 == 1);
    for grids in [flat, deep] {
        for &grid in grids.iter().filter(|_| peers) {
            out.extend(grid.shifts().map(Candidate::Fixed));
        }
        out.extend(grids.into_iter().map(Candidate::Fitted));
    }
    out
}

/// Whether a form leads from a rank's values to another's.
pub(crate) fn leads(form: Form, from: Own, to: Own, pairs: &[(i64, i64)]) -> bool {
    pairs.iter().all(|(a, b)| value(form, form.code(*a, from), to) == *b)
}

/// The value of a code on a rank. Where that value has another code, as a special value has that a sum happens to hit, it is
/// one that nobody has: the other way round the form would not lead to it.
pub(crate) fn value(form: Form, code: i64, own: Own) -> i64 {
    let value = form.value(code, own);
    if form.code(value, own) == code { value } else { i64::MIN }
}

impl Candidate {
    /// The form, if it leads from the first rank's values to those of all witnesses.
    pub(crate) fn form(self, first: Own, witnesses: &[Witness]) -> Option<Form> {
        let form = match self {
            Self::Fixed(form) => form,
            Self::Fitted(grid) => fit(grid, first, witnesses)?,
            // It is looked at on every rank.
            Self::User => return None,
        };
        witnesses.iter().all(|w| leads(form, first, w.own, &w.pairs)).then_some(form)
    }

    /// Whether it is one of a communicator of any size.
    pub(crate) fn of_any_size(self) -> bool {
        let fixed = [Form::RELATIVE, Form::MODULO, Form::MIRRORED, Form::Xor].map(Self::Fixed);
        self == Self::User || fixed.contains(&self)
    }
}

/// An affine form in a grid that the witnesses' differences from the first rank allow.
fn fit(grid: Grid, first: Own, witnesses: &[Witness]) -> Option<Form> {
    let from = grid.place(first.me);
    let mut all = Solutions::new();
    for w in witnesses {
        let (a, b) = w.pairs.iter().find(|(a, _)| *a >= 0)?;
        all.restrict(difference(grid, from, w.own), i128::from(*b) - i128::from(*a))?;
    }
    let mut factors = [0i64; 3];
    for (factor, found) in factors.iter_mut().zip(all.one) {
        *factor = i64::try_from(found).ok()?;
    }
    (factors != [0; 3]).then_some(Form::Affine { grid, factors })
}

/// Number of ranks beside the first that it takes to fit an affine form in a grid to ranks: that of their independent
/// differences.
pub(crate) fn independent(grid: Grid, first: Own, others: impl Iterator<Item = Own>) -> u64 {
    let from = grid.place(first.me);
    let mut all = Solutions::new();
    for own in others {
        // Values of 0 have a solution whatever the differences.
        if all.restrict(difference(grid, from, own), 0).is_none() || all.free.is_empty() {
            break;
        }
    }
    (3 - all.free.len()).to_u64()
}

fn difference(grid: Grid, from: [i64; 3], to: Own) -> [i128; 3] {
    let to = grid.place(to.me);
    std::array::from_fn(|d| i128::from(to[d]) - i128::from(from[d]))
}

/// All whole solutions of linear equations: one, and what may be added to it.
struct Solutions {
    one: [i128; 3],
    free: Vec<[i128; 3]>,
}

impl Solutions {
    fn new() -> Self {
        Self { one: [0; 3], free: vec![[1, 0, 0], [0, 1, 0], [0, 0, 1]] }
    }

    /// Leaves those for which the sum of `factors` times unknowns is a value; `None` if there are none.
    fn restrict(&mut self, factors: [i128; 3], value: i128) -> Option<()> {
        let of = |x: &[i128; 3]| -> Option<i128> {
            (0..3).try_fold(0i128, |sum, d| sum.checked_add(factors[d].checked_mul(x[d])?))
        };
        let missing = value.checked_sub(of(&self.one)?)?;
        // Euclid's algorithm on what the free parts add, until one of them alone adds anything.
        loop {
            let parts: Vec<i128> = self.free.iter().map(of).collect::<Option<_>>()?;
            let mut moving = (0..parts.len()).filter(|i| parts[*i] != 0);
            let Some(mut low) = moving.next() else { return (missing == 0).then_some(()) };
            let rest: Vec<usize> = moving.collect();
            if rest.is_empty() {
                if missing.checked_rem(parts[low])? != 0 {
                    return None;
                }
                let part = self.free.remove(low);
                return add(&mut self.one, &part, missing.checked_div(parts[low])?);
            }
            low = rest.iter().copied().fold(low, |l, i| if parts[i].abs() < parts[l].abs() { i } else { l });
            let lowest = self.free[low];
            for i in (0..parts.len()).filter(|i| *i != low) {
                add(&mut self.free[i], &lowest, parts[i].checked_div(parts[low])?.checked_neg()?)?;
            }
        }
    }
}

fn add(x: &mut [i128; 3], y: &[i128; 3], times: i128) -> Option<()> {
    for d in 0..3 {
        x[d] = x[d].checked_add(y[d].checked_mul(times)?)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first candidate that leads from rank 0's value to all.
    fn found(meaning: Meaning, size: i64, value: impl Fn(i64) -> i64) -> Option<Form> {
        let own = |me| Own { me, size };
        let witnesses: Vec<Witness> =
            (1..size).map(|me| Witness { own: own(me), pairs: vec![(value(0), value(me))] }).collect();
        candidates(meaning, size).into_iter().find_map(|c| c.form(own(0), &witnesses))
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
