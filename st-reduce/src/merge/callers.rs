//! Who the ranks are in the calls of one symbol, and how often each makes them: what turning values into codes needs.

use std::collections::HashMap;

use st_trace::form::{Form, Own};
use st_trace::ints::Sealed;

/// Streams of more values than this are not encoded afresh; only affine forms are used for them.
const LONG: u64 = 1 << 20;

/// The ranks that execute a symbol. Ranks whose own rank is their rank in the world take no space.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    world: i64,
    others: HashMap<u32, Own>,
    /// Some rank calls on communicators in which its own rank differs.
    unknown: bool,
}

impl Callers {
    /// Notes who a rank is; `None` if that differs from call to call.
    pub(crate) fn add(&mut self, rank: u32, own: Option<Own>) {
        match own {
            None => self.unknown = true,
            Some(own) if own.me == i64::from(rank) && (self.world == 0 || own.size == self.world) => {
                self.world = own.size;
            }
            Some(own) => {
                self.others.insert(rank, own);
            }
        }
    }
    /// Whether every rank is somebody.
    pub(crate) fn known(&self) -> bool {
        !self.unknown
    }
    pub(crate) fn of(&self, rank: u32) -> Own {
        let world = Own { me: rank.into(), size: self.world };
        self.others.get(&rank).copied().unwrap_or(world)
    }
}

/// Number of values that each rank reads of a stream; most ranks read equally many.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    first: Option<u64>,
    others: HashMap<u32, u64>,
}

impl Lengths {
    pub(crate) fn add(&mut self, rank: u32, len: u64) {
        if *self.first.get_or_insert(len) != len {
            self.others.insert(rank, len);
        }
    }
    pub(crate) fn of(&self, rank: u32) -> u64 {
        self.others.get(&rank).copied().or(self.first).unwrap_or(0)
    }
}

/// The codes of a stream of values; `None` if they would not lead back to it.
pub(crate) fn code(values: &Sealed, form: Form, own: Own, len: u64) -> Option<Sealed> {
    if form.counts() {
        return counted(values, len, |v, n| {
            Some(form.code_at(v, own, n)).filter(|c| form.value_at(*c, own, n) == v)
        });
    }
    let leads_back = |v: i64| form.value(form.code(v, own), own) == v;
    let sound = values.elements().all(|e| {
        let more = i64::try_from(e.more.unwrap_or(0)).unwrap_or(i64::MAX);
        leads_back(e.first) && (e.step == 0 || leads_back(e.first.wrapping_add(e.step.wrapping_mul(more))))
    });
    if sound { mapped(values, form, len, |v| form.code(v, own)) } else { None }
}

/// The values of a stream of codes.
pub(crate) fn decode(codes: &Sealed, form: Form, own: Own, len: u64) -> Option<Sealed> {
    if form.counts() {
        return counted(codes, len, |c, n| Some(form.value_at(c, own, n)));
    }
    mapped(codes, form, len, |v| form.value(v, own))
}

/// The stream of so many values under a map that looks at their places.
fn counted(stream: &Sealed, len: u64, f: impl Fn(i64, u64) -> Option<i64>) -> Option<Sealed> {
    if !(1..=LONG).contains(&len) {
        return None;
    }
    let mut cursor = stream.cursor();
    (0..len).map(|n| f(cursor.next(), n)).collect()
}

fn mapped(stream: &Sealed, form: Form, len: u64, f: impl Fn(i64) -> i64) -> Option<Sealed> {
    if form == Form::Absolute {
        return Some(stream.clone());
    }
    if stream.constant().is_some() {
        return Some(stream.map(f));
    }
    // Which periods an encoder finds depends on the values, and runs of values need not be runs of codes: equal codes
    // have equal encodings only if they are encoded as such.
    if (1..=LONG).contains(&len) {
        return Some(stream.rebuild(len, f));
    }
    form.is_affine().then(|| stream.map(f))
}
