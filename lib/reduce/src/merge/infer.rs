//! Which symbolic form explains a slot: the one that leaves the fewest and shortest distinct streams of codes.
//!
//! Candidates are fixed forms, wrapped shifts in all grids of two and three dimensions that the communicator divides
//! into, and affine forms whose factors are fitted to neighbours in each of these grids. They are judged on a sample of
//! ranks and the first values of each; what wins is then applied to all ranks, exactly or not at all.

use st_model::num::narrow;
use std::collections::HashSet;

use st_model::calls::Meaning;
use st_model::form::{Form, Grid, Own};

/// First values of a stream that are looked at.
pub(crate) const HEAD: usize = 16;
/// Ranks that a sample has.
pub(crate) const SAMPLE: usize = 192;
/// Ranks of a sample, and values of each, that candidates must survive first; and how many do.
const FIRST: (usize, usize) = (24, 6);
const SURVIVORS: usize = 16;

/// A rank of a sample.
#[derive(Debug, Clone)]
pub(crate) struct Sampled {
    pub(crate) own: Own,
    /// Its first values.
    pub(crate) head: Vec<i64>,
}

/// The best form for a sample, those given among the candidates. `at` gives the first values of the rank of that
/// number in the communicator, if all ranks share one.
pub(crate) fn best(
    sample: &[Sampled],
    meaning: Meaning,
    given: [Option<Form>; 2],
    at: &dyn Fn(i64) -> Option<Vec<i64>>,
) -> Form {
    let mut candidates = candidates(sample, meaning, at);
    candidates.extend(given.into_iter().flatten());
    let step = sample.len().div_ceil(FIRST.0).max(1);
    let few: Vec<Sampled> = sample
        .iter()
        .step_by(step)
        .map(|s| Sampled { own: s.own, head: s.head.iter().copied().take(FIRST.1).collect() })
        .collect();
    let mut ranked: Vec<_> = candidates.into_iter().map(|f| (cost(f, &few), simplicity(f), f)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.truncate(SURVIVORS);
    let all =
        ranked.into_iter().map(|(_, _, f)| f).chain([Form::Absolute]).chain(given.into_iter().flatten());
    let best = all.map(|f| (cost(f, sample), simplicity(f), f)).min();
    match best {
        // A form that leaves most ranks different explains nothing; their values as such compress better.
        Some((c, _, form))
            if classes(form, sample) * 2 <= sample.len() || c * 2 <= cost(Form::Absolute, sample) =>
        {
            form
        }
        _ => Form::Absolute,
    }
}

/// Distinct streams of codes and their changes of value.
fn cost(form: Form, sample: &[Sampled]) -> usize {
    let mut seen = HashSet::new();
    let mut cost = 0;
    for s in sample {
        let codes = codes(form, s);
        let changes = codes.windows(2).filter(|w| w[0] != w[1]).count();
        if seen.insert(codes) {
            cost += 3 + changes;
        }
    }
    // A stream costs 3 and takes some 8 bytes; what a user says is stored as text.
    if let Form::User(_) = form { cost + form.to_string().len() / 3 } else { cost }
}

fn codes(form: Form, s: &Sampled) -> Vec<i64> {
    s.head.iter().zip(0..).map(|(&v, n)| form.code_at(v, s.own, n)).collect()
}

fn classes(form: Form, sample: &[Sampled]) -> usize {
    sample.iter().map(|s| codes(form, s)).collect::<HashSet<_>>().len()
}

/// The simpler form wins a tie: fewer dimensions, then fewer that wrap or count.
fn simplicity(form: Form) -> u8 {
    let dimensions = |g: Grid| match g.extents() {
        (1, 1) => 0,
        (1, _) => 1,
        _ => 2,
    };
    match form {
        Form::Absolute => 0,
        // All others take fewer bytes.
        Form::User(_) => u8::MAX - 1,
        f if f == Form::RELATIVE => 1,
        f if f == Form::MODULO => 2,
        f if f == Form::MIRRORED => 3,
        Form::Xor => 4,
        // Never candidates.
        Form::Histogram(_) | Form::Predicted => u8::MAX,
        Form::Shift { grid, .. } => 5 + 10 * dimensions(grid),
        Form::Affine { grid, factors } => {
            let terms = factors.iter().filter(|f| **f != 0).count();
            6 + 10 * dimensions(grid) + narrow::<u8>(terms)
        }
    }
}

fn candidates(sample: &[Sampled], meaning: Meaning, at: &dyn Fn(i64) -> Option<Vec<i64>>) -> Vec<Form> {
    let mut out = vec![Form::Absolute, Form::RELATIVE, Form::MIRRORED];
    let peers = meaning == Meaning::Rank;
    if peers {
        out.extend([Form::MODULO, Form::Xor]);
    }
    let sizes: HashSet<i64> = sample.iter().map(|s| s.own.size).collect();
    let size = match sizes.into_iter().collect::<Vec<_>>()[..] {
        [size] => size,
        _ => return out,
    };
    fitted(Grid::LINE, size, at, &mut out);
    for grid in Grid::all(size) {
        if peers {
            out.extend(grid.shifts());
        }
        fitted(grid, size, at, &mut out);
    }
    out
}

/// Affine forms through a rank and its neighbours along each dimension.
fn fitted(grid: Grid, size: i64, at: &dyn Fn(i64) -> Option<Vec<i64>>, out: &mut Vec<Form>) {
    let strides = grid.strides();
    let (middle, inner) = grid.extents();
    let extents = [size / strides[0], middle.into(), inner.into()];
    // The corner, and a place within, which borders do not touch.
    let within: i64 = strides.iter().zip(extents).map(|(s, n)| s * ((n - 1) / 2)).sum();
    for base in [0, within] {
        let Some(values) = at(base) else { continue };
        let place = grid.place(base);
        let next: Vec<Option<Vec<i64>>> =
            (0..3).map(|d| (place[d] + 1 < extents[d]).then(|| at(base + strides[d])).flatten()).collect();
        // Different values of a stream may differ in what they depend on; the first few are tried.
        for (k, &v) in values.iter().enumerate().take(3) {
            let mut factors = [0; 3];
            let mut sound = v >= 0;
            for d in 0..3 {
                if extents[d] > 1 {
                    let w = next[d].as_ref().and_then(|w| w.get(k)).filter(|w| **w >= 0);
                    sound &= w.is_some();
                    factors[d] = w.map_or(0, |w| w - v);
                }
            }
            if sound && factors != [0; 3] {
                out.push(Form::Affine { grid, factors });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(size: i64, meaning: Meaning, value: impl Fn(i64) -> i64) -> Form {
        let sample: Vec<Sampled> =
            (0..size).map(|me| Sampled { own: Own { me, size }, head: vec![value(me)] }).collect();
        let at = |me: i64| (me < size).then(|| vec![value(me)]);
        best(&sample, meaning, [None, None], &at)
    }

    fn explains(form: Form, size: i64, value: impl Fn(i64) -> i64) -> bool {
        let codes = (0..size).map(|me| form.code(value(me), Own { me, size }));
        codes.collect::<HashSet<_>>().len() == 1
    }

    #[test]
    fn partners_of_known_programs_are_found() {
        let peer = Meaning::Rank;
        assert_eq!(found(16, peer, |_| 3), Form::Absolute);
        assert_eq!(found(16, peer, |me| (me + 1) % 16), Form::MODULO);
        assert_eq!(found(16, peer, |me| me ^ 2), Form::Xor);
        assert_eq!(found(16, peer, |me| 15 - me), Form::MIRRORED);
        type Partner = fn(i64) -> i64;
        let partners: [(i64, Partner); 4] = [
            (64, |me| me / 8 * 8 + (me + 1) % 8),
            (64, |me| me % 8 * 8 + me / 8),
            (32, |me| 2 * ((me / 2 % 4) * 4 + me / 2 / 4) + me % 2),
            (60, |me| me / 20 * 20 + (me / 5 % 4 + 3) % 4 * 5 + me % 5),
        ];
        for (size, partner) in partners {
            let form = found(size, peer, partner);
            assert!(explains(form, size, partner), "{size}: {form}");
        }
    }

    #[test]
    fn tags_and_colours_are_found() {
        for (meaning, value) in [
            (Meaning::Tag, (|me| 100 + me / 6 * 7 + me % 6 * 2) as fn(i64) -> i64),
            (Meaning::Int, |me| me / 6),
            (Meaning::Int, |me| me % 6),
        ] {
            let form = found(24, meaning, value);
            assert!(explains(form, 24, value), "{form}");
        }
    }

    #[test]
    fn what_follows_no_rule_stays_as_it_is() {
        assert_eq!(found(31, Meaning::Rank, |me| me * me * 7 % 31), Form::Absolute);
    }
}
