//! Products of factors, of which each is a function of one coordinate, as expressions.

/// Most pieces of a factor.
pub(crate) const PIECES: usize = 4;

/// Longest period whose places may have factors of their own.
pub(crate) const PLACES: usize = 12;

/// A rational number, not below 0, in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ratio(i64, i64);

impl Ratio {
    pub(crate) const ZERO: Self = Self(0, 1);
    pub(crate) const ONE: Self = Self(1, 1);

    pub(crate) fn new(over: i128, under: i128) -> Option<Self> {
        (over >= 0 && under > 0).then_some(())?;
        let g = gcd(over, under);
        Some(Self(i64::try_from(over / g).ok()?, i64::try_from(under / g).ok()?))
    }
    pub(crate) fn times(self, other: Self) -> Option<Self> {
        Self::new(i128::from(self.0) * i128::from(other.0), i128::from(self.1) * i128::from(other.1))
    }
    pub(crate) fn over(self, other: Self) -> Option<Self> {
        self.times(Self(other.1, other.0))
    }
    pub(crate) fn of(value: i64) -> Option<Self> {
        Self::new(value.into(), 1)
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A factor: where its pieces begin, ascending, the first at 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Factor(Vec<(i64, Ratio)>);

impl Factor {
    /// From known places in ascending order.
    pub(crate) fn new(known: impl IntoIterator<Item = (i64, Ratio)>) -> Option<Self> {
        let mut pieces: Vec<(i64, Ratio)> = Vec::new();
        for (at, value) in known {
            match pieces.last() {
                None => pieces.push((0, value)),
                Some((_, last)) if *last != value => pieces.push((at, value)),
                Some(_) => {}
            }
        }
        (1..=PIECES).contains(&pieces.len()).then_some(Self(pieces))
    }
    pub(crate) fn at(&self, place: i64) -> Ratio {
        self.0.iter().rev().find(|(from, _)| *from <= place).map_or(Ratio::ONE, |(_, v)| *v)
    }
    /// In whole numbers without a common divisor, and what they must be multiplied by.
    fn whole(&self) -> Option<(Vec<(i64, i64)>, Ratio)> {
        let mut under = 1i128;
        for (_, v) in &self.0 {
            under = under / gcd(under, v.1.into()) * i128::from(v.1);
            // So that what follows cannot overflow.
            i64::try_from(under).ok()?;
        }
        let scaled = |v: Ratio| i128::from(v.0) * (under / i128::from(v.1));
        let common = self.0.iter().fold(0, |g, (_, v)| gcd(scaled(*v), g)).max(1);
        let whole = self.0.iter().map(|(at, v)| Some((*at, i64::try_from(scaled(*v) / common).ok()?)));
        Some((whole.collect::<Option<_>>()?, Ratio::new(common, under)?))
    }
}

/// A product of factors: text and all.
pub(crate) struct Product {
    pub(crate) scale: Ratio,
    pub(crate) factors: Vec<(String, Factor)>,
}

impl Product {
    /// As an expression; `None` if it is not one of whole numbers.
    pub(crate) fn text(&self) -> Option<String> {
        let mut scale = self.scale;
        let mut text = String::new();
        for (coordinate, factor) in &self.factors {
            let (pieces, times) = factor.whole()?;
            scale = scale.times(times)?;
            if let [(_, v)] = pieces[..] {
                scale = scale.times(Ratio::of(v)?)?;
                continue;
            }
            text.push_str("*(");
            for w in pieces.windows(2) {
                text.push_str(&format!("{coordinate}<{}?{}:", w[1].0, w[0].1));
            }
            text.push_str(&format!("{})", pieces.last()?.1));
        }
        (scale.1 == 1).then(|| format!("{}{text}", scale.0))
    }
}

/// The expression that has a value of its own at each place of a period.
pub(crate) fn chosen(period: usize, text: impl Fn(usize) -> Option<String>) -> Option<String> {
    let mut texts: Vec<(usize, String)> = Vec::new();
    for place in 0..period {
        let text = text(place)?;
        if texts.last().is_none_or(|(_, last)| *last != text) {
            texts.push((place, text));
        }
    }
    let mut out = String::new();
    for w in texts.windows(2) {
        out.push_str(&format!("n%{period}<{}?{}:", w[1].0, w[0].1));
    }
    Some(out + &texts.last()?.1)
}
