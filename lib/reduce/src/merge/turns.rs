//! Products over coordinates that turn: the cells of a multi-partitioned domain.
//!
//! On a square number of ranks a coordinate may be a sum of the row, the column and the place in the stream's period, each
//! with either sign, modulo the grid's extent: the cells that a rank works on one after the other. And a rank may
//! exchange the faces of all its cells but one at once: then the count is a function of one coordinate less a product.
//!
//! Source of the pattern: BT and SP of the NAS Parallel Benchmarks, `make_set` and `compute_buffer_size`.

use std::collections::{BTreeSet, HashMap};

use crate::merge::factor::{Factor, PLACES, Product, Ratio, chosen};
use crate::merge::infer::Sampled;

/// Most pieces of a function that is linear between a few places.
const PIECES: usize = 5;

/// A coordinate that turns: row and column in a square grid and place in the period, each 1, -1 or 0 times.
#[derive(Clone, Copy, Debug)]
struct Turn {
    column: i64,
    row: i64,
    step: i64,
}

impl Turn {
    /// One of each pair of opposites.
    fn all() -> Vec<Self> {
        let signs = || -1..=1;
        let all = signs().flat_map(|column| signs().map(move |row| (column, row)));
        let all = all.flat_map(|(column, row)| signs().map(move |step| Self { column, row, step }));
        all.filter(|t| (t.column, t.row, t.step) > (0, 0, 0)).collect()
    }
    fn place(self, side: i64, me: i64, step: i64) -> i64 {
        (self.column * (me % side) + self.row * (me / side) + self.step * step).rem_euclid(side)
    }
    /// Never below 0 before it is taken modulo the side.
    fn text(self, side: i64, period: i64) -> String {
        match (self.column, self.row, self.step) {
            (1, 0, 0) => return format!("me%{side}"),
            (0, 1, 0) => return format!("me/{side}"),
            (0, 0, 1) if period <= side => return format!("n%{period}"),
            _ => {}
        }
        let terms = [
            (self.column, format!("me%{side}"), side),
            (self.row, format!("me/{side}"), side),
            (self.step, format!("n%{period}"), (period + side - 1) / side * side),
        ];
        let offset: i64 = terms.iter().filter(|t| t.0 < 0).map(|t| t.2).sum();
        let plus = terms.iter().filter(|t| t.0 > 0).map(|t| t.1.clone());
        let plus: Vec<String> = plus.chain((offset > 0).then(|| offset.to_string())).collect();
        let minus: String = terms.iter().filter(|t| t.0 < 0).map(|t| format!("-{}", t.1)).collect();
        format!("({}{minus})%{side}", plus.join("+"))
    }
}

/// Side of a square number.
pub(crate) fn side(size: i64) -> Option<i64> {
    (1..).take_while(|q| q * q <= size).last().filter(|q| q * q == size)
}

/// As products over one or two coordinates that turn, on a square grid.
pub(crate) fn turning(sample: &[Sampled], size: i64, period: usize) -> Option<String> {
    let side = side(size).filter(|q| *q > 1)?;
    let turns = Turn::all();
    let period = i64::try_from(period).ok()?;
    let cells: Vec<(i64, i64, Ratio)> = sample
        .iter()
        .flat_map(|s| s.head.iter().zip(0i64..).map(|(v, n)| (s.own.me, n % period, *v)))
        .map(|(me, n, v)| Some((me, n, Ratio::of(v)?)))
        .collect::<Option<_>>()?;
    product_of_two(side, &cells, &turns, period)
}

/// A product over two of these coordinates, or twice the same.
fn product_of_two(side: i64, cells: &[(i64, i64, Ratio)], turns: &[Turn], period: i64) -> Option<String> {
    let mut pairs = turns.iter().enumerate().flat_map(|(i, a)| turns[i..].iter().map(move |b| (*a, *b)));
    pairs.find_map(|(a, b)| {
        let factors = separated(side, cells, a, b)?;
        let names = [a, b].map(|t| t.text(side, period));
        let factors: Vec<(String, Factor)> = names.into_iter().zip(factors).collect();
        Product { scale: Ratio::ONE, factors }.text()
    })
}

/// Place by place of a short period, each the same for all ranks, a product, or what is left of a sum by one. `all` has all
/// ranks.
pub(crate) fn place_by_place(all: &[Sampled], size: i64, period: usize) -> Option<String> {
    let side = side(size).filter(|q| *q > 1 && period <= PLACES)?;
    chosen(period, |place| {
        let cells: Vec<(i64, i64)> =
            all.iter().filter_map(|s| Some((s.own.me, *s.head.get(place)?))).collect();
        let first = cells.first()?.1;
        if cells.iter().all(|(_, v)| *v == first) {
            return Some(first.max(0).to_string());
        }
        let turns: Vec<Turn> = Turn::all().into_iter().filter(|t| t.step == 0).collect();
        let positive: Vec<(i64, i64, Ratio)> =
            cells.iter().map(|(me, v)| Some((*me, 0, Ratio::of(*v)?))).collect::<Option<_>>()?;
        product_of_two(side, &positive, &turns, 1).or_else(|| {
            turns
                .iter()
                .find_map(|t| [false, true].iter().find_map(|high| rest(side, &cells, &turns, *t, *high)))
        })
    })
}

/// A function of a coordinate less a product of two factors that each have two values, one above the other. In each line
/// of the coordinate some rank has the low value of both, or (`high`) some rank has the high one.
fn rest(side: i64, cells: &[(i64, i64)], turns: &[Turn], along: Turn, high: bool) -> Option<String> {
    let mut ends: HashMap<i64, i128> = HashMap::new();
    for (me, v) in cells {
        let v = i128::from(*v);
        let end = ends.entry(along.place(side, *me, 0)).or_insert(v);
        *end = if high { v.min(*end) } else { v.max(*end) };
    }
    let distance =
        |me: i64, v: i64| ends.get(&along.place(side, me, 0)).map(|end| (end - i128::from(v)).abs());
    let mut distances = BTreeSet::new();
    for (me, v) in cells {
        distances.insert(distance(*me, *v)?);
        if distances.len() > 3 {
            return None;
        }
    }
    let distances: Vec<i128> = distances.into_iter().collect();
    // Products of b and b + 1, k times: k b^2, k b (b + 1) and k (b + 1)^2; the first two are 0 if b is.
    let (one, k) = match distances[..] {
        [0, one, both] => (one, if high { 2 * one - both } else { both - 2 * one }),
        [0, k] => (if high { k } else { 0 }, k),
        _ => return None,
    };
    if k < 1 || one % k != 0 {
        return None;
    }
    // Either way the product at the end of a line, where distances are counted from.
    let at_end = one.checked_mul(one / k).filter(|v| i64::try_from(*v).is_ok())?;
    let product = |me: i64, v: i64| {
        let d = distance(me, v)?;
        Ratio::new(if high { at_end - d } else { at_end + d }, 1)
    };
    let products: Vec<(i64, i64, Ratio)> =
        cells.iter().map(|(me, v)| Some((*me, 0, product(*me, *v)?))).collect::<Option<_>>()?;
    let less = product_of_two(side, &products, turns, 1)?;
    let mut sums: Vec<(i64, i128)> = ends.iter().map(|(place, end)| (*place, end + at_end)).collect();
    sums.sort_unstable();
    Some(format!("({})-{less}", linear(&along.text(side, 1), &sums)?))
}

/// A function that is linear between a few places, from its values.
fn linear(coordinate: &str, values: &[(i64, i128)]) -> Option<String> {
    let mut out = String::new();
    let mut rest = values;
    for _ in 0..PIECES {
        let (x, v) = *rest.first()?;
        let x = i128::from(x);
        let slope = rest.get(1).map_or(0, |next| next.1 - v);
        let n = rest.iter().take_while(|(at, w)| *w == v + slope * (i128::from(*at) - x)).count();
        let line = match slope {
            0 => v.to_string(),
            _ => format!("{}+{slope}*({coordinate})", v - slope * x),
        };
        rest = &rest[n..];
        let Some((end, _)) = rest.first() else { return Some(out + &line) };
        out.push_str(&format!("{coordinate}<{end}?{line}:"));
    }
    None
}

/// Two factors whose product all cells are.
fn separated(side: i64, cells: &[(i64, i64, Ratio)], a: Turn, b: Turn) -> Option<[Factor; 2]> {
    let mut table: HashMap<(i64, i64), Ratio> = HashMap::new();
    for (me, n, v) in cells {
        if *table.entry((a.place(side, *me, *n), b.place(side, *me, *n))).or_insert(*v) != *v {
            return None;
        }
    }
    let mut table: Vec<_> = table.into_iter().collect();
    table.sort_unstable_by_key(|(place, _)| *place);
    let mut known: [HashMap<i64, Ratio>; 2] = [HashMap::new(), HashMap::new()];
    let some: Vec<_> = table.iter().filter(|(_, v)| *v != Ratio::ZERO).collect();
    known[0].insert(some.first()?.0.0, Ratio::ONE);
    loop {
        let before = known[0].len() + known[1].len();
        for ((x, y), v) in &some {
            match (known[0].get(x).copied(), known[1].get(y).copied()) {
                (Some(f), None) => drop(known[1].insert(*y, v.over(f)?)),
                (None, Some(g)) => drop(known[0].insert(*x, v.over(g)?)),
                _ => {}
            }
        }
        if known[0].len() + known[1].len() == before {
            break;
        }
    }
    // Where all products are 0, a factor is.
    let places = [0, 1].map(|d: usize| some.iter().map(|(p, _)| [p.0, p.1][d]).collect::<BTreeSet<i64>>());
    for ((x, y), _) in &table {
        for (d, at) in [(0, x), (1, y)] {
            if !places[d].contains(at) {
                known[d].insert(*at, Ratio::ZERO);
            }
        }
    }
    for ((x, y), v) in &table {
        if let (Some(f), Some(g)) = (known[0].get(x), known[1].get(y))
            && f.times(*g)? != *v
        {
            return None;
        }
    }
    let factors = known.map(|k| {
        let mut places: Vec<(i64, Ratio)> = k.into_iter().collect();
        places.sort_unstable_by_key(|(at, _)| *at);
        Factor::new(places)
    });
    let [f, g] = factors;
    Some([f?, g?])
}
