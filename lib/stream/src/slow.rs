//! Payload of SLOW: in which order ranks of a section were slow.

use super::blocks::{self, Blocks};
use super::bytes::{finish, get_i64, get_index, get_len, get_u64, put_i64, put_u64, put_usize};
use super::error::{DecodeError, Field as _};
use super::numbers::Budget;
use st_model::ints::Sealed;
use st_model::num::saturate;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::slow::{How, MOST, Slow, Steps};

/// Classes but the first that a writer makes at most, and a reader takes.
const CLASSES: usize = 8;

/// Columns: numbers (per thread how many events; per event its symbol, the number of limits; where that is 0 the share, else their
/// distances, steps, how many durations are not of the first class), heads and values of the streams.
pub(crate) fn encode(section: &Section) -> Vec<u8> {
    let mut b = Blocks::<3>::new();
    for t in &section.threads {
        put_usize(&mut b.0[0], t.slow.len());
        for slow in &t.slow {
            put_u64(&mut b.0[0], slow.sym.into());
            put_how(&mut b, &slow.how);
        }
    }
    let mut out = Vec::new();
    b.put(&mut out);
    out
}

fn put_how(b: &mut Blocks<3>, how: &How) {
    let [numbers, heads, values] = &mut b.0;
    let of = match how {
        How::Chance(share) => {
            put_u64(numbers, 0);
            return put_i64(numbers, i64::from(*share));
        }
        How::Steps(of) => of,
    };
    put_usize(numbers, of.limits.len());
    let mut before = 0;
    for limit in &of.limits {
        put_u64(numbers, limit.wrapping_sub(before));
        before = *limit;
    }
    put_u64(numbers, of.steps);
    put_u64(numbers, of.number);
    of.slow.encode(heads, values);
}

/// Events per thread, whose ranks are given.
pub(crate) fn decode(
    mut src: &[u8],
    threads: &[RankList],
    symbols: usize,
) -> Result<Vec<Vec<Slow>>, DecodeError> {
    let mut b: [&[u8]; 3] = blocks::get(&mut src)?;
    finish(src)?;
    let (mut out, mut room) = (Vec::new(), Budget::new(most()));
    for (i, ranks) in threads.iter().enumerate() {
        let n = get_len(&mut b[0]).nth("thread", i)?;
        let mut all = Vec::with_capacity(n);
        for k in 0..n {
            let sym = get_index(&mut b[0], symbols).field("symbol").nth("event", k)?;
            let how = get_how(&mut b, ranks, &mut room).nth("event", k).nth("thread", i)?;
            all.push(Slow { sym, how });
        }
        out.push(all);
    }
    blocks::finish(&b)?;
    Ok(out)
}

/// Steps and durations of all events of a section.
fn most() -> usize {
    saturate(MOST)
}

fn get_how(b: &mut [&[u8]; 3], ranks: &RankList, room: &mut Budget) -> Result<How, DecodeError> {
    let [numbers, heads, values] = b;
    let classes = get_len(numbers).field("limits")?;
    if classes == 0 {
        let share = get_i64(numbers).field("share")?;
        return i8::try_from(share).map(How::Chance).map_err(|_| DecodeError::Integer);
    }
    if classes > CLASSES {
        return Err(DecodeError::Invalid("too many classes of durations"));
    }
    let (mut limits, mut before) = (Vec::new(), 0_u64);
    for i in 0..classes {
        let limit = before.checked_add(get_u64(numbers)?);
        before = limit.ok_or(DecodeError::Integer).nth("limit", i)?;
        limits.push(before);
    }
    let (steps, number) = (get_u64(numbers).field("steps")?, get_u64(numbers).field("durations")?);
    room.take(saturate(steps.saturating_add(number)))?;
    let slow = Sealed::decode(heads, values).map_err(DecodeError::from)?;
    let steps = Steps { limits, steps, number, slow };
    if !ranks.is_empty() && steps.of_rank(0, ranks.len()).is_none() {
        return Err(DecodeError::Invalid("no order of steps"));
    }
    Ok(How::Steps(steps))
}
