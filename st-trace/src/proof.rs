//! How a call enters the proof lanes: the same words whether it is being recorded or read back.

use crate::calls::{CallId, FIRST_UNKNOWN, LANES, Lane, Meaning, Object, Slot};
use crate::lanes::{Digest, Lanes};

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
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hash input, reinterpreted")]
    pub fn enter(&self, lanes: &mut Lanes, object: impl Fn(Object, i64) -> u64) {
        let mut digests = [Digest::new(); LANES];
        let mut used = [false; LANES];
        let mut times = 1;
        digests[Lane::Call as usize].word(self.call);
        digests[Lane::Call as usize].word(u64::from(self.error));
        digests[Lane::Site as usize].word(self.site as u64);
        digests[Lane::Site as usize].word((self.site >> 64) as u64);
        used[Lane::Call as usize] = true;
        used[Lane::Site as usize] = true;
        let mut words = self.words.iter().copied();
        for slot in self.slots {
            let lane = slot.lane as usize;
            let n = if slot.list { words.next().unwrap_or(0) } else { 1 };
            if slot.meaning == Meaning::Times {
                times = words.next().unwrap_or(1).max(1) as u64;
                continue;
            }
            used[lane] = true;
            if slot.list {
                digests[lane].word(n as u64);
            }
            for _ in 0..n {
                let Some(w) = words.next() else { break };
                let w = match slot.meaning {
                    Meaning::Ref(o) => object(o, w),
                    _ => w as u64,
                };
                digests[lane].word(w);
            }
        }
        lanes.calls = lanes.calls.wrapping_add(times);
        for lane in [Lane::Call, Lane::Site, Lane::Endpoint, Lane::Count, Lane::Tag, Lane::Rest] {
            if used[lane as usize] {
                lanes.enter(lane, digests[lane as usize], times);
            }
        }
    }
}
