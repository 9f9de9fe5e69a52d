//! Stored streams of values, and of the values of others.

use super::{Ints, Sealed};

impl Sealed {
    /// The stream of the first `len` values under any map, encoded afresh. *Cost:* O(`len`).
    #[must_use]
    pub fn rebuild(&self, len: u64, f: impl Fn(i64) -> i64) -> Self {
        let mut ints = Ints::new();
        self.append_to(len, &mut ints, f);
        ints.seal()
    }

    /// The first `len` values as a stream that can grow.
    #[must_use]
    pub fn to_ints(&self, len: u64) -> Ints {
        let mut ints = Ints::new();
        self.append_to(len, &mut ints, |value| value);
        ints
    }

    fn append_to(&self, len: u64, ints: &mut Ints, f: impl Fn(i64) -> i64) {
        let mut cursor = self.cursor();
        let mut left = len;
        while left > 0 {
            let (value, n) = cursor.next_run(left);
            ints.push_run(f(value), n);
            left -= n;
        }
    }
}

impl From<Vec<i64>> for Sealed {
    fn from(values: Vec<i64>) -> Self {
        Ints::from(values).seal()
    }
}

impl FromIterator<i64> for Sealed {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        values.into_iter().collect::<Ints>().seal()
    }
}
