//! The log: calls, and what they refer to that is newer than the snapshot.
//!
//! An entry begins with a number: below [`CALL`] a definition, from there on a call of symbol number minus [`CALL`].

use crate::record::{Change, Extent, RankRecorder};
use st_model::calls::{CallId, FIRST_UNKNOWN};
use st_model::num::Exact;
use st_model::objects::Registered;
use st_model::section::Sym;
use st_model::varint::zigzag;
use st_stream::bytes::{put_i64, put_str, put_u64};
use st_stream::objects::{Codec, put_object};
use st_stream::sites::put_site;

/// The calls that follow are of this thread.
pub(super) const THREAD: u64 = 1;
/// A thread begins.
pub(super) const OPENED: u64 = 2;
/// A module of call sites.
pub(super) const MODULE: u64 = 3;
/// A call site.
pub(super) const SITE: u64 = 4;
/// A symbol.
pub(super) const SYMBOL: u64 = 5;
/// A communicator.
pub(super) const COMM: u64 = 6;
/// A group.
pub(super) const GROUP: u64 = 7;
/// A datatype.
pub(super) const TYPE: u64 = 8;
/// An operation.
pub(super) const OP: u64 = 9;
/// The name of a function outside the call table.
pub(super) const NAME: u64 = 10;
/// Exact times are no longer kept.
pub(super) const STOPPED: u64 = 11;
/// A call that may still turn out to be the first of a poll series.
pub(super) const SERIES: u64 = 12;
/// A window.
pub(super) const WIN: u64 = 13;
/// A file.
pub(super) const FILE: u64 = 14;
/// A text.
pub(super) const TEXT: u64 = 15;
/// A call with the words of its symbol's last one on the thread, and times that fit 32 bits.
pub(super) const AGAIN: u64 = 16;
/// As [`AGAIN`], but for some words: their number, and for each its position and value.
pub(super) const EDIT: u64 = 17;
/// A loop: how many places its round has, which of them comes next, and each one's symbol and the words that it had last.
pub(super) const ROUND: u64 = 18;
/// The call at the loop's next place with the words that it had last, and times that fit 32 bits.
pub(super) const NEXT: u64 = 19;
/// As [`NEXT`], but for some words: their number, and for each its position and value.
pub(super) const NEXT_EDIT: u64 = 20;
/// As [`NEXT_EDIT`], with any times.
pub(super) const NEXT_SLOW: u64 = 21;
/// As [`NEXT`] and [`NEXT_EDIT`], with times that fit 16 bits.
pub(super) const NEXT_SHORT: u64 = 22;
pub(super) const NEXT_SHORT_EDIT: u64 = 23;
/// As [`AGAIN`] and [`EDIT`], with a symbol and times that fit 16 bits.
pub(super) const AGAIN_SHORT: u64 = 24;
pub(super) const EDIT_SHORT: u64 = 25;
/// Calls.
pub(super) const CALL: u64 = 26;

/// When a call was entered and left, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallTimes {
    /// When it was entered.
    pub enter: i64,
    /// When it was left.
    pub exit: i64,
}

/// The tags of an entry with numbers of 16 bits, and of the same with numbers of 32 bits.
#[derive(Clone, Copy)]
struct Tags {
    short: u64,
    long: u64,
}

/// Writes the log of a region.
#[derive(Debug, Default)]
pub struct LogWriter {
    known: Extent,
    stamp: usize,
    stopped: bool,
    thread: usize,
    exits: Vec<i64>,
    /// Which round of each thread the log has said the places of.
    rounds: Vec<u64>,
}

/// Bytes of a varint at most.
const LONGEST: usize = 10;
/// Bytes of an entry [`AGAIN`]: the tag, and three numbers of 32 bits, little-endian; and of an entry [`AGAIN_SHORT`].
const AGAIN_BYTES: usize = 13;
const AGAIN_SHORT_BYTES: usize = 7;
/// Bytes of an entry [`NEXT`]: the tag, and two numbers of 32 bits, little-endian; and of an entry [`NEXT_SHORT`].
const NEXT_BYTES: usize = 9;
const NEXT_SHORT_BYTES: usize = 5;
/// A round that takes more bytes is not written down: its calls are written with their words.
const LONGEST_ROUND: usize = 64 << 10;

impl LogWriter {
    /// A log that follows a snapshot of the recorder.
    #[must_use]
    pub fn after(recorder: &RankRecorder) -> Self {
        let known = recorder.extent();
        Self {
            known,
            stamp: recorder.stamp(),
            stopped: !recorder.keeps_columns(),
            thread: usize::MAX,
            exits: (0..known.threads).map(|t| recorder.last_exit(t)).collect(),
            rounds: vec![0; known.threads],
        }
    }

    /// Whether nothing has to be defined before the next call.
    #[must_use]
    #[inline]
    pub fn knows(&self, recorder: &RankRecorder) -> bool {
        self.stamp == recorder.stamp()
    }

    /// Whether exact times have ended, and the log does not say so.
    #[must_use]
    #[inline]
    pub fn has_to_stop(&self, recorder: &RankRecorder) -> bool {
        !self.stopped && !recorder.keeps_columns()
    }

    /// Whether a call of this function from this site could be read.
    #[must_use]
    #[inline]
    pub fn knows_site(&self, call: CallId, site: u32) -> bool {
        usize::try_from(site).is_ok_and(|s| s < self.known.sites) && call.0 < FIRST_UNKNOWN
    }

    /// Entries for everything that the recorder's tables hold beyond what the log and its snapshot do.
    pub fn define(&mut self, r: &RankRecorder, out: &mut Vec<u8>) {
        let (from, to) = (self.known, r.extent());
        for m in &r.sites.modules()[from.modules..] {
            put_u64(out, MODULE);
            put_str(out, &m.path);
            put_str(out, &m.build_id);
        }
        for site in from.sites..r.sites.sites().len() {
            put_u64(out, SITE);
            // Sites that come after each other mostly share their outer frames.
            let before = site.checked_sub(1).and_then(|before| r.sites.sites().get(before));
            put_site(out, &r.sites, site, before.map_or(&[], |s| &s.frames));
        }
        let rank = r.rank();
        put_objects(out, COMM, &r.objects.comms.entries()[from.comms..], rank);
        put_objects(out, GROUP, &r.objects.groups.entries()[from.groups..], rank);
        put_objects(out, TYPE, &r.objects.types.entries()[from.types..], rank);
        put_objects(out, OP, &r.objects.ops.entries()[from.ops..], rank);
        put_objects(out, WIN, &r.objects.wins.entries()[from.wins..], rank);
        put_objects(out, FILE, &r.objects.files.entries()[from.files..], rank);
        put_objects(out, TEXT, &r.objects.texts.entries()[from.texts..], rank);
        let mut names: Vec<_> = r.names().collect();
        names.sort_unstable();
        for (_, name) in &names[from.names..] {
            put_u64(out, NAME);
            put_str(out, name);
        }
        for s in &r.symbols()[from.symbols..] {
            put_u64(out, SYMBOL);
            put_u64(out, s.call.0.into());
            put_u64(out, s.site.into());
            put_u64(out, s.error.into());
        }
        for t in from.threads..to.threads {
            put_u64(out, OPENED);
            put_i64(out, r.last_exit(t));
            self.exits.push(r.last_exit(t));
            self.rounds.push(0);
        }
        if !r.keeps_columns() && !self.stopped {
            put_u64(out, STOPPED);
            self.stopped = true;
        }
        (self.known, self.stamp) = (to, r.stamp());
    }

    /// Writes the call that the recorder has just recorded at the beginning of `room`; returns its number of bytes, `None`
    /// if there may be too little room.
    #[inline]
    pub fn call(
        &mut self,
        room: &mut [u8],
        recorder: &RankRecorder,
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: CallTimes,
    ) -> Option<usize> {
        let short = match recorder.change() {
            Change::New => None,
            Change::Next => match self.next(room, recorder, thread, words, times) {
                Some(n) => return Some(n),
                None => self.next_slow(room, recorder, thread, words, times)?,
            },
            Change::None => self.again(room, Tags { short: AGAIN_SHORT, long: AGAIN }, thread, sym, times),
            Change::Some => self.edit(room, recorder, thread, sym, words, times),
        };
        let n = match short {
            Some(n) => n,
            None => self.entry(room, thread, None, sym, words, times)?,
        };
        if let Some(last) = self.exits.get_mut(thread) {
            *last = times.exit;
        }
        Some(n)
    }

    /// Writes the next call of the round in progress, which the recorder has just recorded, at the beginning of `room`, as most
    /// are; `None` if it takes an entry of another kind, or there may be too little room.
    #[inline]
    pub fn next(
        &mut self,
        room: &mut [u8],
        recorder: &RankRecorder,
        thread: usize,
        words: &[i64],
        times: CallTimes,
    ) -> Option<usize> {
        let last = self.exits.get_mut(thread)?;
        if self.thread != thread || self.rounds.get(thread) != Some(&recorder.round_number(thread)) {
            return None;
        }
        let (gap, duration) = times.short(*last)?;
        let changed = recorder.changed();
        let again = changed.is_empty();
        let (tag, bits) = match (gap | duration < 1 << 16, again) {
            (true, true) => (NEXT_SHORT, 16),
            (true, false) => (NEXT_SHORT_EDIT, 16),
            (false, true) => (NEXT, 32),
            (false, false) => (NEXT_EDIT, 32),
        };
        let entry = u128::from(tag) | u128::from(gap) << 8 | u128::from(duration) << (8 + bits);
        // The rest of the 16 bytes is where the next entry goes.
        *room.first_chunk_mut()? = entry.to_le_bytes();
        let mut at = if bits == 16 { NEXT_SHORT_BYTES } else { NEXT_BYTES };
        if !changed.is_empty() {
            put_changes(room, &mut at, words, changed)?;
        }
        *last = times.exit;
        Some(at)
    }

    /// As [`LogWriter::next`], after what has to be said before. `Some(None)` if the round is too long to be written down.
    #[cold]
    fn next_slow(
        &mut self,
        room: &mut [u8],
        recorder: &RankRecorder,
        thread: usize,
        words: &[i64],
        times: CallTimes,
    ) -> Option<Option<usize>> {
        let Some(described) = self.rounds.get_mut(thread) else { return Some(None) };
        let mut entry = Vec::new();
        if self.thread != thread {
            put_u64(&mut entry, THREAD);
            put_u64(&mut entry, thread.to_u64());
        }
        let number = recorder.round_number(thread);
        let mut changed = recorder.changed();
        if *described != number && *described != !number {
            let Some(round) = put_round(recorder, thread) else {
                *described = !number;
                return Some(None);
            };
            entry.extend(round);
            // It says what the call's words are.
            changed = &[];
        } else if *described == !number {
            return Some(None);
        }
        put_u64(&mut entry, NEXT_SLOW);
        put_i64(&mut entry, times.since(self.exits.get(thread).copied().unwrap_or(0)));
        put_i64(&mut entry, times.duration());
        let mut at = entry.len();
        room.get_mut(..at)?.copy_from_slice(&entry);
        put_changes(room, &mut at, words, changed)?;
        (*described, self.thread) = (number, thread);
        Some(Some(at))
    }

    /// Writes a call with its symbol's last words, or what comes before those that differ.
    #[inline]
    fn again(&self, room: &mut [u8], tags: Tags, thread: usize, sym: Sym, times: CallTimes) -> Option<usize> {
        if self.thread != thread {
            return None;
        }
        let (gap, duration) = times.short(*self.exits.get(thread)?)?;
        let is_short = sym | gap | duration < 1 << 16;
        let (tag, bits) = if is_short { (tags.short, 16) } else { (tags.long, 32) };
        let entry = u128::from(tag)
            | u128::from(sym) << 8
            | u128::from(gap) << (8 + bits)
            | u128::from(duration) << (8 + 2 * bits);
        // The rest of the 16 bytes is where the next entry goes.
        *room.first_chunk_mut()? = entry.to_le_bytes();
        Some(if is_short { AGAIN_SHORT_BYTES } else { AGAIN_BYTES })
    }

    /// Writes a call some of whose words differ from its symbol's last ones.
    fn edit(
        &self,
        room: &mut [u8],
        recorder: &RankRecorder,
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: CallTimes,
    ) -> Option<usize> {
        let mut at = self.again(room, Tags { short: EDIT_SHORT, long: EDIT }, thread, sym, times)?;
        put_changes(room, &mut at, words, recorder.changed())?;
        Some(at)
    }

    /// Writes a call that may become a series: its slot says how many calls it stands for, and when the last one ended. It
    /// holds until the thread's next call is written.
    pub fn series(
        &mut self,
        room: &mut [u8],
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: CallTimes,
    ) -> Option<usize> {
        self.entry(room, thread, Some(SERIES), sym, words, times)
    }

    #[inline]
    fn entry(
        &mut self,
        room: &mut [u8],
        thread: usize,
        tag: Option<u64>,
        sym: Sym,
        words: &[i64],
        times: CallTimes,
    ) -> Option<usize> {
        // Two numbers for a change of thread, tag, symbol, gap, duration, number of words.
        if room.len() < (words.len() + 7) * LONGEST {
            return None;
        }
        let mut at = 0;
        if self.thread != thread {
            self.thread = thread;
            put(room, &mut at, THREAD);
            put(room, &mut at, thread.to_u64());
        }
        if let Some(tag) = tag {
            put(room, &mut at, tag);
        }
        put(room, &mut at, CALL + u64::from(sym));
        let last = self.exits.get(thread).copied().unwrap_or(0);
        put(room, &mut at, zigzag(times.since(last)));
        put(room, &mut at, zigzag(times.duration()));
        put(room, &mut at, words.len().to_u64());
        for &w in words {
            put(room, &mut at, zigzag(w));
        }
        Some(at)
    }
}

impl CallTimes {
    /// ns from an exit to it.
    #[inline]
    fn since(self, exit: i64) -> i64 {
        self.enter.wrapping_sub(exit)
    }

    /// ns that it takes.
    #[inline]
    fn duration(self) -> i64 {
        self.exit.wrapping_sub(self.enter)
    }

    /// ns from the last exit, and of the call itself, if they are short.
    #[inline]
    fn short(self, last: i64) -> Option<(u32, u32)> {
        Some((u32::try_from(self.since(last)).ok()?, u32::try_from(self.duration()).ok()?))
    }
}

/// Writes how many words differ, and for each its position and value; `None` if there may be too little room.
#[inline]
fn put_changes(room: &mut [u8], at: &mut usize, words: &[i64], changed: &[u16]) -> Option<()> {
    // A position takes three bytes at most.
    if room.len() < *at + LONGEST + changed.len() * (3 + LONGEST) {
        return None;
    }
    if let [i @ ..0x80] = *changed
        && let Some(word @ 0..0x40) = words.get(usize::from(i)).copied()
        && let Some(room) = room.get_mut(*at..*at + 3)
    {
        // Three numbers of one byte each.
        room.copy_from_slice(&[1, i.to_le_bytes()[0], zigzag(word).to_le_bytes()[0]]);
        *at += 3;
        return Some(());
    }
    put(room, at, changed.len().to_u64());
    for &i in changed {
        put(room, at, i.into());
        put(room, at, zigzag(words.get(usize::from(i)).copied().unwrap_or(0)));
    }
    Some(())
}

/// The places of a thread's round, after whose last call it is written down; `None` if that takes too much.
fn put_round(recorder: &RankRecorder, thread: usize) -> Option<Vec<u8>> {
    let (length, next) = recorder.round(thread)?;
    let mut out = Vec::new();
    put_u64(&mut out, ROUND);
    put_u64(&mut out, u64::try_from(length).ok()?);
    // The place of the call that is written next, which the recorder has recorded already.
    put_u64(&mut out, u64::try_from((next + length - 1) % length).ok()?);
    for (sym, words) in recorder.places(thread) {
        put_u64(&mut out, sym.into());
        put_u64(&mut out, u64::try_from(words.len()).ok()?);
        words.iter().for_each(|w| put_i64(&mut out, *w));
        if out.len() > LONGEST_ROUND {
            return None;
        }
    }
    Some(out)
}

#[inline]
fn put(room: &mut [u8], at: &mut usize, mut value: u64) {
    while value >= 0x80 {
        room[*at] = value.to_le_bytes()[0] | 0x80;
        *at += 1;
        value >>= 7;
    }
    room[*at] = value.to_le_bytes()[0];
    *at += 1;
}

fn put_objects<T: Codec>(out: &mut Vec<u8>, tag: u64, objects: &[Registered<T>], rank: u32) {
    for o in objects {
        put_u64(out, tag);
        put_object(out, o, rank);
    }
}
