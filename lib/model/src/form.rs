//! Symbolic values: endpoints, tags, counts and colours as functions of the caller's own rank.
//!
//! A stream in symbolic form holds *codes*: what is left of each value once the caller's rank is taken out of it. Ranks
//! that do the same thing from different places then hold the same codes. Every form is invertible for a given caller,
//! so nothing is lost; which form a stream has is a matter of size alone.
//!
//! Ranks may be seen as places of a grid of up to three dimensions, the last one fastest, which covers the communicator:
//! only the two inner extents are kept, the outermost follows from the communicator's size.
//!
//! Source: Wu, Mueller 2013, section 3.1 (relative endpoints); the other forms are our own, after the partners that
//! the NAS Parallel Benchmarks have: exclusive-or and transposition in CG, wrapped shifts in BT, SP and MG.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::expr::Expr;
pub use crate::expr::Own;

/// In symbolic form, a value that the form does not apply to (a special, or none of the grid's ranks) is stored less
/// this.
pub const SPECIAL: i64 = 1 << 62;

/// Extents above this are no grids of ranks.
const LARGEST: u64 = 1 << 32;

/// A grid that ranks are places of: extents of its two inner dimensions, both at least 1; the outermost reaches as far
/// as there are ranks. A line is 1 by 1, a grid of two dimensions 1 by its columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Grid {
    middle: u32,
    inner: u32,
}

impl Grid {
    /// The grid of one dimension.
    pub const LINE: Self = Self { middle: 1, inner: 1 };

    /// A grid by its two inner extents; `None` if one is 0 or they are too large.
    #[must_use]
    pub fn new(middle: u32, inner: u32) -> Option<Self> {
        let cells = u64::from(middle) * u64::from(inner);
        (1..=LARGEST).contains(&cells).then_some(Self { middle, inner })
    }
    /// Extents of the middle and the innermost dimension.
    #[must_use]
    pub fn extents(self) -> (u32, u32) {
        (self.middle, self.inner)
    }
    /// Distance in rank of neighbours along each dimension.
    #[must_use]
    pub fn strides(self) -> [i64; 3] {
        let (middle, inner) = (i64::from(self.middle), i64::from(self.inner));
        [middle * inner, inner, 1]
    }
    /// Place of a rank, outermost coordinate first.
    #[must_use]
    pub fn place(self, rank: i64) -> [i64; 3] {
        let [plane, row, _] = self.strides();
        [
            rank.div_euclid(plane),
            rank.div_euclid(row).rem_euclid(i64::from(self.middle)),
            rank.rem_euclid(row),
        ]
    }
    /// Extents over so many ranks.
    fn over(self, size: i64) -> [i64; 3] {
        let plane = self.strides()[0];
        let outer = size.max(1).saturating_add(plane - 1) / plane;
        [outer, self.middle.into(), self.inner.into()]
    }

    /// All grids of two and three dimensions that divide so many ranks.
    #[must_use]
    pub fn all(size: i64) -> Vec<Self> {
        let divisors = |n: i64| {
            let small: Vec<i64> = (1..).take_while(move |d| d * d <= n).filter(|d| n % d == 0).collect();
            let large: Vec<i64> = small.iter().rev().map(|d| n / d).filter(|d| d * d > n).collect();
            small.into_iter().chain(large)
        };
        let mut out = Vec::new();
        for inner in divisors(size.max(1)).filter(|d| (2..size).contains(d)) {
            for middle in divisors(size / inner).filter(|m| m * inner < size) {
                let extents = u32::try_from(middle).ok().zip(u32::try_from(inner).ok());
                out.extend(extents.and_then(|(m, i)| Self::new(m, i)));
            }
        }
        out
    }

    /// Displacements in the grid, by the dimensions in which they wrap: at least in one, and in none that it does not have.
    pub fn shifts(self) -> impl Iterator<Item = Form> {
        let wraps = (1u8..8).map(|w| [w & 4 != 0, w & 2 != 0, w & 1 != 0]);
        let flat = self.extents().0 == 1;
        wraps.filter(move |w| !(flat && w[1])).map(move |wrap| Form::Shift { grid: self, wrap })
    }
}

/// How the values of a stream are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Form {
    /// As recorded.
    #[default]
    Absolute,
    /// Less a sum of own coordinates, each times a factor. On a line: relative (factor 1), mirrored (-1). In a grid: the
    /// transposed rank, a row or column as colour, tags that differ along rows and columns.
    Affine {
        /// The grid.
        grid: Grid,
        /// Factor per coordinate, outermost first.
        factors: [i64; 3],
    },
    /// As a displacement in a grid: per dimension the difference of coordinates, times the dimension's stride. Where the
    /// grid wraps the difference is the shorter way round. On a line with wrap: relative modulo the number of ranks.
    Shift {
        /// The grid.
        grid: Grid,
        /// Whether the grid wraps, per dimension, outermost first.
        wrap: [bool; 3],
    },
    /// The exclusive or of the value and the own rank: partners in a hypercube.
    Xor,
    /// Less the value of an expression, which a user gave or which was found; less 0 where that has none.
    User(Expr),
    /// Not each value, but how often each code was ([`crate::frequencies`]). What is read back is drawn.
    Histogram(Codes),
    /// Less what is expected from the calls before ([`crate::requests`]).
    Predicted,
}

/// What the codes of a histogram are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Codes {
    /// [`Form::Absolute`].
    Absolute,
    /// [`Form::RELATIVE`].
    Relative,
    /// [`Form::MODULO`].
    Modulo,
}

impl Codes {
    /// All, in the order of their numbers in a stream.
    pub const ALL: [Self; 3] = [Self::Absolute, Self::Relative, Self::Modulo];

    /// The form that makes these codes.
    #[must_use]
    pub fn form(self) -> Form {
        match self {
            Self::Absolute => Form::Absolute,
            Self::Relative => Form::RELATIVE,
            Self::Modulo => Form::MODULO,
        }
    }
    /// Its name, after `histogram:` in the text form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Absolute => "absolute",
            Self::Relative => "relative",
            Self::Modulo => "modulo",
        }
    }
}

impl Form {
    /// Value less own rank.
    pub const RELATIVE: Self = Self::Affine { grid: Grid::LINE, factors: [1, 0, 0] };
    /// Value less own rank, modulo the number of ranks.
    pub const MODULO: Self = Self::Shift { grid: Grid::LINE, wrap: [true, false, false] };
    /// Value plus own rank: partners mirrored about a middle.
    pub const MIRRORED: Self = Self::Affine { grid: Grid::LINE, factors: [-1, 0, 0] };

    /// Where a code lies from the caller in a grid, outermost coordinate first: the shortest ways that come to it.
    #[must_use]
    pub fn ways(grid: Grid, code: i64) -> [i64; 3] {
        // The nearest multiple of a stride, so that what is left is at most half of it.
        let split = |code: i64, n: i64| {
            let least = (code.wrapping_add((n - 1) / 2)).rem_euclid(n) - (n - 1) / 2;
            (code.wrapping_sub(least) / n, least)
        };
        let (rows, inner) = split(code, grid.inner.into());
        let (outer, middle) = split(rows, grid.middle.into());
        [outer, middle, inner]
    }

    /// Whether codes are differences: what the form makes of an arithmetic progression is one again.
    #[must_use]
    pub fn is_affine(self) -> bool {
        matches!(self, Self::Absolute | Self::Affine { .. })
    }

    /// Whether the code of a value depends on its place in the stream.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::User(e) if e.counts())
    }

    /// The code of a value, the first of its stream.
    #[must_use]
    pub fn code(self, value: i64, own: Own) -> i64 {
        self.code_at(value, own, 0)
    }

    /// The value of a code, the first of its stream.
    #[must_use]
    pub fn value(self, code: i64, own: Own) -> i64 {
        self.value_at(code, own, 0)
    }

    /// The code of the n-th value of a stream, from 0.
    #[must_use]
    pub fn code_at(self, value: i64, own: Own, n: u64) -> i64 {
        match self {
            Self::Absolute | Self::Predicted => value,
            Self::Histogram(codes) => codes.form().code_at(value, own, n),
            _ if value < 0 => value.wrapping_sub(SPECIAL),
            Self::Affine { grid, factors } => value.wrapping_sub(base(grid, factors, own)),
            Self::Shift { grid, wrap } => displacement(grid, wrap, value, own),
            Self::Xor if value >= SPECIAL => value.wrapping_sub(SPECIAL),
            Self::Xor => value ^ own.me.max(0),
            Self::User(e) => value.wrapping_sub(e.value(own, n).unwrap_or(0)),
        }
    }

    /// The n-th value of a stream of codes: inverse of [`Form::code_at`] for values that are not astronomical.
    #[must_use]
    pub fn value_at(self, code: i64, own: Own, n: u64) -> i64 {
        match self {
            Self::Absolute | Self::Predicted => code,
            Self::Histogram(codes) => codes.form().value_at(code, own, n),
            _ if code < -(SPECIAL / 2) => code.wrapping_add(SPECIAL),
            Self::Affine { grid, factors } => code.wrapping_add(base(grid, factors, own)),
            Self::Shift { grid, wrap } => destination(grid, wrap, code, own),
            Self::Xor => code ^ own.me.max(0),
            Self::User(e) => code.wrapping_add(e.value(own, n).unwrap_or(0)),
        }
    }
}

/// What an affine form takes away.
fn base(grid: Grid, factors: [i64; 3], own: Own) -> i64 {
    let terms = grid.place(own.me).into_iter().zip(factors).map(|(at, f)| at.wrapping_mul(f));
    terms.fold(0, i64::wrapping_add)
}

fn displacement(grid: Grid, wrap: [bool; 3], value: i64, own: Own) -> i64 {
    let (extents, strides) = (grid.over(own.size), grid.strides());
    let (from, to) = (grid.place(own.me), grid.place(value));
    if to[0] >= extents[0] {
        return value.wrapping_sub(SPECIAL);
    }
    let mut code = 0i64;
    for d in 0..3 {
        let mut way = to[d].wrapping_sub(from[d]);
        if wrap[d] {
            let n = extents[d];
            way = (way.wrapping_add((n - 1) / 2)).rem_euclid(n) - (n - 1) / 2;
        }
        code = code.wrapping_add(way.wrapping_mul(strides[d]));
    }
    code
}

fn destination(grid: Grid, wrap: [bool; 3], code: i64, own: Own) -> i64 {
    let (extents, strides) = (grid.over(own.size), grid.strides());
    let from = grid.place(own.me);
    // The lowest way along each dimension; the rest is a place by its number.
    let lowest: [i64; 3] =
        std::array::from_fn(|d| if wrap[d] { -((extents[d] - 1) / 2) } else { from[d].wrapping_neg() });
    let least = (0..3).fold(0i64, |sum, d| sum.wrapping_add(lowest[d].wrapping_mul(strides[d])));
    let ways = grid.place(code.wrapping_sub(least));
    let mut value = 0i64;
    for d in 0..3 {
        let mut at = from[d].wrapping_add(ways[d]).wrapping_add(lowest[d]);
        if wrap[d] {
            at = at.rem_euclid(extents[d]);
        }
        value = value.wrapping_add(at.wrapping_mul(strides[d]));
    }
    value
}

impl fmt::Display for Form {
    /// `absolute`, `relative`, `xor`, `affine:4x8:1,0,1`, `shift:1x8:wrap,-,wrap`, `expr:"(me%4)*4+me/4"`,
    /// `histogram:relative`, `predicted`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute => f.write_str("absolute"),
            Self::Predicted => f.write_str("predicted"),
            Self::Xor => f.write_str("xor"),
            Self::User(e) => write!(f, "expr:\"{e}\""),
            Self::Histogram(codes) => write!(f, "histogram:{}", codes.name()),
            form if *form == Self::RELATIVE => f.write_str("relative"),
            Self::Affine { grid, factors: [a, b, c] } => {
                write!(f, "affine:{}x{}:{a},{b},{c}", grid.middle, grid.inner)
            }
            Self::Shift { grid, wrap } => {
                let [a, b, c] = wrap.map(|w| if w { "wrap" } else { "-" });
                write!(f, "shift:{}x{}:{a},{b},{c}", grid.middle, grid.inner)
            }
        }
    }
}

/// A text is not that of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a form")]
pub struct NoForm;

impl FromStr for Form {
    type Err = NoForm;
    fn from_str(text: &str) -> Result<Self, NoForm> {
        if let Some(e) = text.strip_prefix("expr:\"").and_then(|e| e.strip_suffix('"')) {
            return Expr::parse(e, &HashMap::new()).map(Self::User).or(Err(NoForm));
        }
        let mut words = text.split(':');
        let form = match (words.next(), words.next(), words.next()) {
            (Some("absolute"), None, None) => Self::Absolute,
            (Some("predicted"), None, None) => Self::Predicted,
            (Some("relative"), None, None) => Self::RELATIVE,
            (Some("xor"), None, None) => Self::Xor,
            (Some("histogram"), Some(codes), None) => {
                Self::Histogram(Codes::ALL.into_iter().find(|c| c.name() == codes).ok_or(NoForm)?)
            }
            (Some("affine"), Some(g), Some(list)) => {
                Self::Affine { grid: grid(g)?, factors: three(list, |f| f.parse().ok())? }
            }
            (Some("shift"), Some(g), Some(list)) => {
                let wraps = |w: &str| [("wrap", true), ("-", false)].into_iter().find(|p| p.0 == w);
                Self::Shift { grid: grid(g)?, wrap: three(list, |w| wraps(w).map(|p| p.1))? }
            }
            _ => return Err(NoForm),
        };
        if words.next().is_some() { Err(NoForm) } else { Ok(form) }
    }
}

fn grid(text: &str) -> Result<Grid, NoForm> {
    let (middle, inner) = text.split_once('x').ok_or(NoForm)?;
    Grid::new(middle.parse().or(Err(NoForm))?, inner.parse().or(Err(NoForm))?).ok_or(NoForm)
}

fn three<T: Copy>(text: &str, one: impl Fn(&str) -> Option<T>) -> Result<[T; 3], NoForm> {
    let all: Vec<T> = text.split(',').map(one).collect::<Option<_>>().ok_or(NoForm)?;
    all.try_into().or(Err(NoForm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forms() -> impl Strategy<Value = Form> {
        let grid = (1u32..6, 1u32..6).prop_map(|(b, c)| Grid::new(b, c).unwrap_or(Grid::LINE));
        prop_oneof![
            Just(Form::Absolute),
            Just(Form::RELATIVE),
            Just(Form::Xor),
            Just(Form::Predicted),
            proptest::sample::select(&Codes::ALL[..]).prop_map(Form::Histogram),
            (grid.clone(), any::<[bool; 3]>()).prop_map(|(grid, wrap)| Form::Shift { grid, wrap }),
            Just(Form::User(Expr::parse("n%3==1?me*2+n:7-me", &HashMap::new()).unwrap())),
            (grid, [-9i64..9, -9i64..9, -9i64..9]).prop_map(|(grid, factors)| Form::Affine { grid, factors }),
        ]
    }

    proptest! {
        #[test]
        fn codes_lead_back(form in forms(), size in 1i64..40, me in 0i64..40, value in -12i64..60) {
            let own = Own { me: me % size, size };
            prop_assert_eq!(form.value(form.code(value, own), own), value);
            prop_assert_eq!(form.value_at(form.code_at(value, own, 4), own, 4), value);
        }

        #[test]
        fn anything_can_be_asked(form in forms(), me: i64, size: i64, value: i64) {
            let own = Own { me, size };
            let _ = form.code(form.value(value, own), own);
        }

        #[test]
        fn names_lead_back(form in forms()) {
            prop_assert_eq!(form.to_string().parse(), Ok(form));
        }
    }

    fn codes(form: Form, size: i64, value: impl Fn(i64) -> i64) -> Vec<i64> {
        let mut codes: Vec<i64> = (0..size).map(|me| form.code(value(me), Own { me, size })).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    #[test]
    fn partners_of_known_programs_have_one_code() {
        assert_eq!(codes(Form::MODULO, 16, |me| (me + 15) % 16), [-1]);
        assert_eq!(codes(Form::Xor, 16, |me| me ^ 4), [4]);
        assert_eq!(codes(Form::MIRRORED, 16, |me| 15 - me), [15]);
        let grid = Grid::new(1, 4).unwrap_or(Grid::LINE);
        let torus = Form::Shift { grid, wrap: [true, false, true] };
        assert_eq!(codes(torus, 12, |me| (me / 4 + 2) % 3 * 4 + (me + 1) % 4), [-3]);
        let transposed = Form::Affine { grid, factors: [1, 0, 4] };
        assert_eq!(codes(transposed, 16, |me| me % 4 * 4 + me / 4), [0]);
        // The transposition of CG on twice as many columns as rows: pairs of ranks are transposed.
        let grid = Grid::new(4, 2).unwrap_or(Grid::LINE);
        let pairs = Form::Affine { grid, factors: [2, 8, 1] };
        assert_eq!(codes(pairs, 32, |me| 2 * ((me / 2 % 4) * 4 + me / 2 / 4) + me % 2), [0]);
    }
}
