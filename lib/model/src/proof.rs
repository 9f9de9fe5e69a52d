//! How a call enters the proof lanes: the same words whether it is being recorded or read back.

use crate::calls::{CallId, FIRST_UNKNOWN, LANES, Lane, Meaning, Object, Slot};
use crate::lanes::{Digest, Lanes};
use crate::num::saturate;

/// A call as the lanes see it.
#[derive(Clone, Copy, Debug)]
pub struct Proof<'a> {
    /// See [`call_word`].
    pub call: u64,
    /// MPI error class.
    pub error: u32,
    /// Identity of the call site.
    pub site: u128,
    /// The row's slots.
    pub slots: &'a [Slot],
    /// The words, as recorded: peers absolute, objects by this rank's index.
    pub words: &'a [i64],
}

/// What the call lane hashes for a function: its number, or the hash of its name if it has none of its own.
#[must_use]
pub fn call_word(call: CallId, name: Option<&str>) -> u64 {
    match name {
        Some(n) if call.0 >= FIRST_UNKNOWN => xxhash_rust::xxh3::xxh3_64(n.as_bytes()),
        _ => u64::from(call.0),
    }
}

impl Proof<'_> {
    /// Enters the call into the lanes; `object` gives the lane word of an object by its index.
    pub fn enter(&self, lanes: &mut Lanes, object: impl Fn(Object, i64) -> u64) {
        let mut digests = Digests::new(self.call, self.error, self.site, self.slots);
        digests.read(self.slots, by_slot(self.slots, self.words), u8::MAX, object);
        digests.enter(lanes);
    }
}

/// The words of each slot of a call: one, or a list's without its length; fewer where words are missing.
pub fn by_slot<'a>(slots: &'a [Slot], words: &'a [i64]) -> impl Iterator<Item = &'a [i64]> {
    let mut rest = words;
    slots.iter().map(move |slot| cut(slot.list, &mut rest))
}

/// Takes one slot's words: one, or as many as a list's length says, as far as they are there.
fn cut<'a>(list: bool, words: &mut &'a [i64]) -> &'a [i64] {
    let mut n = 1;
    if list && let Some((&length, rest)) = words.split_first() {
        (n, *words) = (length, rest);
    }
    let (mine, rest) = words.split_at(saturate::<usize>(n).min(words.len()));
    *words = rest;
    mine
}

/// Enters the words of a slot into the digest of its lane.
#[inline]
fn enter_slot(digest: &mut Digest, slot: &Slot, words: &[i64], object: &impl Fn(Object, i64) -> u64) {
    if slot.list {
        digest.word(words.len() as u64);
    }
    // A scalar that is not there reads as 0.
    let words = if words.is_empty() && !slot.list { &[0] } else { words };
    for &w in words {
        digest.word(hashed(slot, w, object));
    }
}

/// A word of a slot as it is hashed.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "hash input, reinterpreted")]
pub fn hashed(slot: &Slot, word: i64, object: &impl Fn(Object, i64) -> u64) -> u64 {
    match slot.meaning {
        Meaning::Ref(o) => object(o, word),
        _ => word as u64,
    }
}

/// What one call adds to each lane. A recorder keeps it from one execution of a symbol to the next, and reads again only
/// the lanes whose words have changed.
#[derive(Clone, Copy, Debug)]
pub struct Digests {
    lanes: [u128; LANES],
    /// Bit `1 << lane` is set for the lanes that slots' words are in.
    used: u8,
    times: u64,
}

impl Digests {
    /// For a symbol (see [`Proof`] for the parameters): lanes of words are not read yet.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "takes a hash in halves")]
    pub fn new(call: u64, error: u32, site: u128, slots: &[Slot]) -> Self {
        let words = slots.iter().filter(|s| s.meaning != Meaning::Times);
        let used = words.fold(0, |bits, s| bits | 1 << s.lane as u8);
        let mut d = Self { lanes: [0; LANES], used, times: 1 };
        let digest = |words: [u64; 2]| {
            let mut d = Digest::new();
            words.into_iter().for_each(|w| d.word(w));
            d.value()
        };
        d.lanes[Lane::Call as usize] = digest([call, u64::from(error)]);
        d.lanes[Lane::Site as usize] = digest([site as u64, (site >> 64) as u64]);
        d
    }

    /// Reads the words of the lanes whose bits are set in `which`, and the number of calls. `words` are each slot's; a
    /// list's without its length.
    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "a number that is positive")]
    pub fn read<'a>(
        &mut self,
        slots: &[Slot],
        words: impl Iterator<Item = &'a [i64]>,
        which: u8,
        object: impl Fn(Object, i64) -> u64,
    ) {
        let mut digests = [Digest::new(); LANES];
        for (slot, mine) in slots.iter().zip(words) {
            if slot.meaning == Meaning::Times {
                self.times = mine.first().map_or(1, |&n| n.max(1) as u64);
                continue;
            }
            if which >> (slot.lane as u8) & 1 == 0 {
                continue;
            }
            enter_slot(&mut digests[slot.lane as usize], slot, mine, &object);
        }
        for (lane, digest) in digests.into_iter().enumerate() {
            if which & self.used & 1 << lane != 0 {
                self.lanes[lane] = digest.value();
            }
        }
    }

    /// Takes the words of a lane, as they are hashed: those that `digest` has been given, and the `rest`. Returns what its digest
    /// was and is.
    #[inline]
    pub fn set(&mut self, lane: usize, mut digest: Digest, rest: &[u64]) -> (u128, u128) {
        rest.iter().for_each(|w| digest.word(*w));
        let new = digest.value();
        (std::mem::replace(&mut self.lanes[lane], new), new)
    }

    /// What the call adds to each lane.
    #[inline]
    pub fn lanes(&self) -> &[u128; LANES] {
        &self.lanes
    }

    /// Whether it is one call, not a series.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.times == 1
    }

    /// Enters the call into the lanes.
    #[inline]
    pub fn enter(&self, lanes: &mut Lanes) {
        lanes.enter(&self.lanes, self.times);
    }
}
