//! Elastic streams of parameters: by role, each a partition, a form and a stream per class, or the one before again.

use super::blocks::Blocks;
use super::bytes::{get_index, get_u64, put_u64, put_usize};
use super::error::{DecodeError, Field as _};
use super::numbers::{Budget, MOST};
use super::struct_columns::{COLUMNS, LENGTHS, PRESENT, ROLES, SHAPE, STREAMS, role};
use st_model::calls::Slot;
use st_model::ints::Sealed;
use st_model::section::{Elastic, Form, Partition, SlotStreams, Streams};

/// Whether the symbol has streams; then per slot its lengths, if it is a list, and its values. One slot's may be left to be
/// made.
pub(super) fn put_params<'a>(
    b: &mut Blocks<COLUMNS>,
    streams: &'a [SlotStreams],
    slots: &[Slot],
    made: Option<usize>,
    written: &mut Written<'a, '_>,
) {
    if slots.is_empty() {
        return;
    }
    put_u64(&mut b.0[PRESENT], u64::from(!streams.is_empty()));
    for (i, (s, slot)) in streams.iter().zip(slots).enumerate() {
        if let Some(lens) = s.lens.as_ref().filter(|_| slot.list) {
            put_elastic(b, lens, LENGTHS, written);
        }
        if made == Some(i) {
            put_made(b, &s.values, written);
        } else {
            put_elastic(b, &s.values, role(slot), written);
        }
    }
}

pub(super) fn get_params<'a>(
    b: &mut [&'a [u8]; COLUMNS],
    known: &mut Stored<'a, '_>,
    slots: &[Slot],
) -> Result<(Vec<SlotStreams>, Option<usize>), DecodeError> {
    let (mut streams, mut made) = (Vec::new(), None);
    if slots.is_empty() || get_index(&mut b[PRESENT], 2)? == 0 {
        return Ok((streams, made));
    }
    for (i, slot) in slots.iter().enumerate() {
        let lens =
            if slot.list { Some(get_stored(b, known, LENGTHS).nth("lengths of slot", i)?) } else { None };
        if lens.iter().flat_map(|lens| &lens.streams).any(Sealed::any_negative) {
            return Err(DecodeError::Invalid("a length below zero")).nth("lengths of slot", i);
        }
        let (values, stored) = get_elastic(b, known, role(slot)).nth("slot", i)?;
        if !stored && made.replace(i).is_some() {
            return Err(DecodeError::Invalid("counts of no exchange")).nth("slot", i);
        }
        streams.push(SlotStreams { lens, values });
    }
    Ok((streams, made))
}

/// What elastic streams that are written refer to: forms, and by role the one before.
#[derive(Debug)]
pub(super) struct Written<'a, 'f> {
    forms: &'f [Form],
    before: [Option<&'a Elastic>; ROLES],
    /// Elements that may still be left out because they are those of the stream before: a reader is not to hold more than its bytes
    /// would show.
    repeats: Budget,
}

impl<'f> Written<'_, 'f> {
    pub(super) fn new(forms: &'f [Form]) -> Self {
        Self { forms, before: [None; ROLES], repeats: Budget::new(MOST) }
    }
}

/// What repeating an elastic stream takes from the budget.
fn elements(e: &Elastic) -> usize {
    e.streams.iter().map(|s| 1 + s.elements().count()).sum()
}

/// 0 if it is that before it of its role, else: the partition, doubled, plus 1, and 1 more and the number of the form if
/// there is one; then a stream per class of the partition.
pub(super) fn put_elastic<'a>(
    b: &mut Blocks<COLUMNS>,
    e: &'a Elastic,
    role: usize,
    written: &mut Written<'a, '_>,
) {
    let Written { forms, before, repeats } = written;
    if before[role] == Some(e) && repeats.take(elements(e)).is_ok() {
        return put_u64(&mut b.0[SHAPE], 0);
    }
    before[role] = Some(e);
    let form = forms.iter().position(|f| *f == e.form);
    put_u64(&mut b.0[SHAPE], 1 + (u64::from(e.partition) << 1 | u64::from(form.is_some())));
    if let Some(form) = form {
        put_usize(&mut b.0[SHAPE], form);
    }
    for s in &e.streams {
        let (heads, values) = b.0.split_at_mut(STREAMS + 2 * role + 1);
        s.encode(&mut heads[STREAMS + 2 * role], &mut values[0]);
    }
}

/// As [`put_elastic`], without the streams, which are made again: the number of the form is that after the last.
pub(super) fn put_made(b: &mut Blocks<COLUMNS>, e: &Elastic, written: &Written<'_, '_>) {
    put_u64(&mut b.0[SHAPE], 1 + (u64::from(e.partition) << 1 | 1));
    put_usize(&mut b.0[SHAPE], written.forms.len());
}

/// What elastic streams refer to: partitions, forms, and by role where that before begins: its shape, heads and values.
pub(super) struct Stored<'a, 'k> {
    partitions: &'k [Partition],
    forms: &'k [Form],
    before: [Option<[&'a [u8]; 3]>; ROLES],
    repeats: Budget,
}

impl<'k> Stored<'_, 'k> {
    pub(super) fn new(partitions: &'k [Partition], forms: &'k [Form]) -> Self {
        Self { partitions, forms, before: [None; ROLES], repeats: Budget::new(MOST) }
    }
}

/// An elastic stream whose streams are there.
pub(super) fn get_stored<'a>(
    b: &mut [&'a [u8]; COLUMNS],
    known: &mut Stored<'a, '_>,
    role: usize,
) -> Result<Elastic, DecodeError> {
    let (e, stored) = get_elastic(b, known, role)?;
    if stored { Ok(e) } else { Err(DecodeError::Invalid("counts of no exchange")) }
}

/// An elastic stream, and whether its streams are there or must be made.
fn get_elastic<'a>(
    b: &mut [&'a [u8]; COLUMNS],
    known: &mut Stored<'a, '_>,
    role: usize,
) -> Result<(Elastic, bool), DecodeError> {
    let heads = STREAMS + 2 * role;
    let here = [b[SHAPE], b[heads], b[heads + 1]];
    if get_u64(&mut b[SHAPE])? > 0 {
        let mut src = here;
        let (e, stored) = get_new(&mut src, known.partitions, known.forms)?;
        [b[SHAPE], b[heads], b[heads + 1]] = src;
        if stored {
            known.before[role] = Some(here);
        }
        return Ok((e, stored));
    }
    let mut src = known.before[role].ok_or(DecodeError::Invalid("nothing to repeat"))?;
    let repeated = get_new(&mut src, known.partitions, known.forms)?;
    known.repeats.take(elements(&repeated.0))?;
    Ok(repeated)
}

/// One that is not repeated, from its shape, heads and values.
fn get_new(
    [shape, heads, values]: &mut [&[u8]; 3],
    partitions: &[Partition],
    forms: &[Form],
) -> Result<(Elastic, bool), DecodeError> {
    let code = get_u64(shape)?.saturating_sub(1);
    let symbolic = code & 1 == 1;
    let at = if symbolic { get_index(shape, forms.len() + 1).field("form")? as usize } else { 0 };
    let stored = !symbolic || at < forms.len();
    let form = forms.get(at).copied().filter(|_| symbolic).unwrap_or_default();
    let (index, len) = (code >> 1, partitions.len() as u64);
    let classes = usize::try_from(index).ok().and_then(|p| partitions.get(p));
    let classes = classes.ok_or(DecodeError::Index { index, len }).field("partition")?.classes.len();
    let classes = if stored { classes } else { 0 };
    // Each takes a byte at least.
    let mut streams = Streams::with_capacity(classes.min(heads.len()));
    for i in 0..classes {
        streams.push(Sealed::decode(heads, values).map_err(DecodeError::from).nth("stream of class", i)?);
    }
    let partition = u32::try_from(index).map_err(|_| DecodeError::Integer)?;
    Ok((Elastic { form, partition, streams }, stored))
}
