//! Sketches that need not be stored, because they follow from exact times: these take more than half of what is recorded of a
//! program that does many things a few times.
//!
//! Who reads them goes through the calls of the thread. So that this takes no longer than it is worth, sketches are stored
//! where each tells of many calls; and whoever writes has made them again, and found them the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use st_model::anew::{self, Cuts, Wanted};
use st_model::num::Exact as _;
use st_model::section::{PathSketch, Predecessors, Section};
use st_model::sketch::Shape;
use st_model::steps::Budget;

use super::bytes::{finish, get_u8, get_u64, put_u64};
use super::error::{DecodeError, Field as _};
use super::expansion::Expansion;

/// Calls and sketches of a section at most.
const CALLS: u64 = 1 << 22;
const SKETCHES: u64 = 1 << 18;
/// Calls of a thread for each of its sketches at most.
const EACH: u64 = 1 << 10;
/// Calls of a thread for each of its sketches at most where its recorder leaves them out: then whoever reads them takes about as long
/// to make them as to decode them.
const RECORDED: u64 = 32;
/// Turns of loops and nodes passed over for each call at most.
const TURNS: u64 = 16;
/// Calls of a stream at most, of which a reader makes in a few seconds what they tell, or of one that others have been copied to so many
/// for each byte of its exact times; a sketch, which takes memory, counts as so many.
const STREAM: u64 = 1 << 25;
const EACH_BYTE: u64 = 32;
/// Times that were measured take as many bytes as a few calls or more: who claims that many more calls are in a byte pays for these in
/// steps.
const PAID: u64 = 4;
const SKETCH: u64 = 16;

/// What sketches keep beside their totals, by its number.
const SHAPES: [Shape; 3] = [Shape::Buckets, Shape::Totals, Shape::BINS];

const WRONG: DecodeError = DecodeError::Invalid("sketches that do not follow from exact times");

/// Up to how many calls so many sketches of a thread are not stored if they follow from exact times.
#[must_use]
pub fn most_calls(sketches: u64) -> u64 {
    sketches.saturating_mul(EACH).min(CALLS)
}

/// What stands for the sketches of a section.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    /// Per thread 0 if it has none, else 1 + the number of their shape, and how many they are.
    payload: Vec<u8>,
    calls: u64,
}

impl Derived {
    /// Its payload, if the stream can take it beside what it has.
    pub(crate) fn within(self, stream: &Made) -> Option<Vec<u8>> {
        stream.takes(self.calls, 0).is_ok().then_some(self.payload)
    }
}

/// What stands for the sketches of a section whose recorder has not made them: they follow from the exact times that it has written.
#[derive(Clone, Debug)]
pub struct LeftOut {
    payload: Vec<u8>,
}

/// What a recorder would sketch of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sketched {
    /// What sketches keep.
    pub shape: Shape,
    /// Number of sketches.
    pub sketches: u64,
    /// Number of events, all of which have exact times.
    pub events: u64,
}

impl LeftOut {
    /// What stands for the sketches of a rank's section, by thread, if these need not be made: they tell of few calls each, and are such
    /// as every reader makes.
    #[must_use]
    pub fn of(section: &Section, threads: &[Sketched]) -> Option<Self> {
        let (mut payload, mut sketches, mut events) = (Vec::new(), 0_u64, 0_u64);
        for (thread, told) in section.threads.iter().zip(threads) {
            if told.sketches == 0 {
                payload.push(0);
                continue;
            }
            let number = SHAPES.iter().position(|known| *known == told.shape)?;
            let rank = thread.ranks.iter().next().filter(|_| thread.ranks.len() == 1)?;
            (sketches, events) = (sketches.checked_add(told.sketches)?, events.checked_add(told.events)?);
            let few = told.events <= told.sketches.saturating_mul(RECORDED);
            if !few || events > CALLS || sketches > SKETCHES {
                return None;
            }
            if section.turns(thread, rank, told.events) > told.events.saturating_mul(TURNS) {
                return None;
            }
            put_u64(&mut payload, number.to_u64() + 1);
            put_u64(&mut payload, told.sketches);
        }
        (sketches > 0 && threads.len() == section.threads.len()).then_some(Self { payload })
    }

    /// The payload of DERIVED.
    pub(crate) fn payload(self) -> Vec<u8> {
        self.payload
    }
}

/// Of how many calls of a stream the sketches are left out or made.
#[derive(Debug, Default)]
pub(crate) struct Made {
    calls: AtomicU64,
    /// What making those takes that the bytes have not paid for.
    budget: Budget,
}

impl Made {
    pub(crate) fn within(budget: Budget) -> Self {
        Self { calls: AtomicU64::default(), budget }
    }

    /// Counts so many more, if they are within the limit of a stream whose exact times take so many bytes; how many of them these have not
    /// paid for.
    fn takes(&self, calls: u64, bytes: u64) -> Result<u64, DecodeError> {
        let most = |each: u64| STREAM.max(bytes.saturating_mul(each));
        let more = |all: u64| all.checked_add(calls).filter(|all| *all <= most(EACH_BYTE));
        let before =
            self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| WRONG)?;
        Ok((before + calls).saturating_sub(most(PAID)).min(calls))
    }
}

/// What a section's sketches take of what the stream may take: once, however often they are made.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    of: Arc<Made>,
    counted: Arc<AtomicBool>,
    /// What the stream's exact times take.
    times: Arc<Expansion>,
}

impl Share {
    pub(crate) fn of(stream: &Arc<Made>, times: &Arc<Expansion>) -> Self {
        Self { of: Arc::clone(stream), counted: Arc::default(), times: Arc::clone(times) }
    }

    /// Takes so many calls, of a thread which has so many turns.
    fn takes(&self, calls: u64, turns: u64) -> Result<(), DecodeError> {
        if self.counted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let unpaid = self.of.takes(calls, self.times.stored())?;
        if unpaid > 0 {
            self.of.budget.take(unpaid.saturating_add(turns))?;
        }
        Ok(())
    }
}

/// What stands for the sketches of a section, if they follow from its exact times and are worth it.
pub(crate) fn encode(section: &Section) -> Option<Derived> {
    let mut room = Room::default();
    let mut out = Vec::new();
    for (i, thread) in section.threads.iter().enumerate() {
        if thread.sketches.is_empty() {
            out.push(0);
            continue;
        }
        let shape = anew::shape(&thread.sketches)?;
        let number = SHAPES.iter().position(|known| *known == shape)?;
        let sketches = thread.sketches.len().to_u64();
        if Predecessors::of(&thread.sketches) == Predecessors::Any || !thread.sums.is_empty() {
            return None;
        }
        if room.made(section, i, shape, sketches).ok()? != thread.sketches {
            return None;
        }
        put_u64(&mut out, number.to_u64() + 1);
        put_u64(&mut out, sketches);
    }
    let calls = room.counted();
    out.iter().any(|byte| *byte != 0).then_some(Derived { payload: out, calls })
}

/// What stands in a stream for the sketches of a section that have been made of its exact times, by this payload.
pub(crate) fn again(section: &Section, payload: Vec<u8>) -> Derived {
    let mut room = Room::default();
    for thread in section.threads.iter().filter(|thread| !thread.sketches.is_empty()) {
        room.sketches += thread.sketches.len().to_u64();
        room.calls += thread.columns.iter().map(|(_, column)| column.events()).sum::<u64>();
    }
    Derived { payload, calls: room.counted() }
}

/// Makes the sketches of a section of its exact times.
pub(crate) fn decode(
    section: &Section,
    share: &Share,
    mut src: &[u8],
) -> Result<Vec<Vec<PathSketch>>, DecodeError> {
    let mut room = Room { share: Some(share), ..Room::default() };
    let mut all = Vec::with_capacity(section.threads.len());
    for i in 0..section.threads.len() {
        let code = get_u8(&mut src).nth("thread", i)?;
        let Some(number) = code.checked_sub(1) else {
            all.push(Vec::new());
            continue;
        };
        let shape = SHAPES.get(usize::from(number)).ok_or(DecodeError::Invalid("unknown shape of a sketch"));
        let shape = *shape.nth("thread", i)?;
        let sketches = get_u64(&mut src).nth("thread", i)?;
        all.push(room.made(section, i, shape, sketches).nth("thread", i)?);
    }
    finish(src)?;
    share.counted.store(true, Ordering::Relaxed);
    Ok(all)
}

/// What the threads of a section have taken so far.
#[derive(Default)]
struct Room<'a> {
    calls: u64,
    sketches: u64,
    /// What the stream has left, for who reads it.
    share: Option<&'a Share>,
}

impl Room<'_> {
    /// What counts of the stream.
    fn counted(&self) -> u64 {
        self.calls.saturating_add(self.sketches.saturating_mul(SKETCH))
    }

    /// So many sketches of a thread, in a shape, from its exact times; a fault where that would take too long, or there are others.
    fn made(
        &mut self,
        section: &Section,
        thread: usize,
        shape: Shape,
        sketches: u64,
    ) -> Result<Vec<PathSketch>, DecodeError> {
        let t = section.threads.get(thread).ok_or(WRONG)?;
        let [(rank, column)] = &t.columns[..] else { return Err(WRONG) };
        let (calls, before) = (column.events(), self.counted());
        self.calls = self.calls.checked_add(calls).ok_or(WRONG)?;
        self.sketches = self.sketches.checked_add(sketches).ok_or(WRONG)?;
        if t.ranks.len() != 1
            || self.calls > CALLS
            || self.sketches > SKETCHES
            || calls > most_calls(sketches)
        {
            return Err(WRONG);
        }
        let turns = section.turns(t, *rank, calls);
        if turns > calls.saturating_mul(TURNS) {
            return Err(WRONG);
        }
        if let Some(share) = self.share {
            share.takes(self.counted() - before, turns)?;
        }
        let wanted = Wanted { shape, most: sketches.to_usize(), cuts: &Cuts::default() };
        let made = anew::of_rank(section, thread, *rank, column, wanted).ok().flatten();
        made.filter(|made| made.len().to_u64() == sketches).ok_or(WRONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(share: &Share, calls: u64) -> bool {
        share.takes(calls, 0).is_ok()
    }

    #[test]
    fn a_stream_has_so_many_and_a_section_counts_once() {
        let stream = Arc::default();
        let times = Arc::default();
        let [one, other] = [Share::of(&stream, &times), Share::of(&stream, &times)];
        assert!(takes(&one, STREAM) && !takes(&other, 1) && !takes(&one, 1));
        one.counted.store(true, Ordering::Relaxed);
        assert!(takes(&one, STREAM) && !takes(&other, 1));
        // What several programs have written may be copied to one stream.
        times.read(STREAM / EACH_BYTE + 1);
        assert!(takes(&other, EACH_BYTE) && !takes(&other, 1));
    }

    #[test]
    fn what_bytes_have_not_paid_for_takes_steps() {
        let times = Arc::default();
        let share = |steps: u64| Share::of(&Arc::new(Made::within(Budget::new(steps))), &times);
        // As many calls as any stream may have, or as bytes pay for, are free.
        assert!(share(0).takes(STREAM, u64::MAX).is_ok());
        times.read(STREAM / PAID + 25);
        assert!(share(0).takes(STREAM + 100, u64::MAX).is_ok());
        let more = |steps: u64| share(steps).takes(STREAM + 107, 20);
        let refused = more(26).unwrap_err().to_string();
        assert!(more(27).is_ok() && refused.contains("--max-steps allows 26"), "{refused}");
    }

    #[test]
    fn what_a_stream_cannot_take_beside_what_it_has_is_stored() {
        let stream = Made::default();
        let of = |calls| Derived { payload: vec![1], calls };
        assert!(of(STREAM - 1).within(&stream).is_some());
        assert!(of(2).within(&stream).is_none());
        assert!(of(1).within(&stream).is_some());
    }
}
