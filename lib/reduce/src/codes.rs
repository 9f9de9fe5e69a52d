//! Streams of values as streams of codes, and back.

use st_model::form::{Form, Own};
use st_model::ints::Sealed;
use st_model::num::saturate;

/// Streams of more values than this are not encoded afresh; only affine forms are used for them.
const LONG: u64 = 1 << 20;

/// The codes of a stream of values; `None` if they would not lead back to it.
pub(crate) fn code(values: &Sealed, form: Form, own: Own, len: u64) -> Option<Sealed> {
    if form.counts() {
        return counted(values, len, |v, n| {
            Some(form.code_at(v, own, n)).filter(|c| form.value_at(*c, own, n) == v)
        });
    }
    let leads_back = |v: i64| form.value(form.code(v, own), own) == v;
    let sound = values.elements().all(|e| {
        let more = saturate(e.more.unwrap_or(0));
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
