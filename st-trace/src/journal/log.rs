//! The log: calls, and what they refer to that is newer than the snapshot.
//!
//! An entry begins with a number: below [`CALL`] a definition, from there on a call of symbol number minus [`CALL`].

use crate::calls::{CallId, CallTable, FIRST_UNKNOWN, Slot};
use crate::objects::Registered;
use crate::project::LONGEST_LIST;
use crate::record::{Change, Extent, RankRecorder};
use crate::section::Sym;
use crate::stream::DecodeError;
use crate::stream::bytes::{
    get_i64, get_index, get_len, get_str, get_u16, get_u32, put_i64, put_str, put_u64,
};
use crate::stream::objects::{Codec, get_object, put_object};
use crate::stream::sites::{get_site, put_site};

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
/// Calls.
pub(super) const CALL: u64 = 18;

/// Writes the log of a region.
#[derive(Debug, Default)]
pub struct LogWriter {
    known: Extent,
    stamp: usize,
    stopped: bool,
    thread: usize,
    exits: Vec<i64>,
}

/// Bytes of a varint at most.
const LONGEST: usize = 10;
/// Bytes of an entry [`AGAIN`]: the tag, and three numbers of 32 bits, little-endian.
const AGAIN_BYTES: usize = 13;

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
        for s in &r.sites.sites()[from.sites..] {
            put_u64(out, SITE);
            put_site(out, &r.sites, s, &[]);
        }
        let rank = r.rank();
        put_objects(out, COMM, &r.comms.entries()[from.comms..], rank);
        put_objects(out, GROUP, &r.groups.entries()[from.groups..], rank);
        put_objects(out, TYPE, &r.types.entries()[from.types..], rank);
        put_objects(out, OP, &r.ops.entries()[from.ops..], rank);
        put_objects(out, WIN, &r.wins.entries()[from.wins..], rank);
        put_objects(out, FILE, &r.files.entries()[from.files..], rank);
        put_objects(out, TEXT, &r.texts.entries()[from.texts..], rank);
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
        times: (i64, i64),
    ) -> Option<usize> {
        let n = match self.repeat(room, recorder, thread, sym, words, times) {
            Some(n) => n,
            None => self.entry(room, thread, None, sym, words, times)?,
        };
        if let Some(last) = self.exits.get_mut(thread) {
            *last = times.1;
        }
        Some(n)
    }

    /// Most calls repeat their symbol's last words a moment later, all or all but a few: two stores, and the few.
    #[inline]
    fn repeat(
        &self,
        room: &mut [u8],
        recorder: &RankRecorder,
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: (i64, i64),
    ) -> Option<usize> {
        let change = recorder.change();
        if self.thread != thread || change == Change::New {
            return None;
        }
        let tag = if change == Change::None { AGAIN } else { EDIT };
        let entry = again(tag, sym, *self.exits.get(thread)?, times)?;
        // The rest of the 16 bytes is where the next entry goes.
        *room.first_chunk_mut()? = entry.to_le_bytes();
        if change == Change::None {
            return Some(AGAIN_BYTES);
        }
        let changed = recorder.changed();
        let mut at = AGAIN_BYTES;
        // A position takes three bytes at most.
        if room.len() < at + LONGEST + changed.len() * (3 + LONGEST) {
            return None;
        }
        put(room, &mut at, u64::try_from(changed.len()).unwrap_or(u64::MAX));
        for &i in changed {
            put(room, &mut at, i.into());
            put(room, &mut at, zigzag(words.get(usize::from(i)).copied().unwrap_or(0)));
        }
        Some(at)
    }

    /// Writes a call with its symbol's last words at the beginning of `room`; returns its number of bytes, `None` if it
    /// takes an entry of another kind, or there may be too little room.
    #[inline]
    pub fn again(&mut self, room: &mut [u8], thread: usize, sym: Sym, times: (i64, i64)) -> Option<usize> {
        let last = self.exits.get_mut(thread).filter(|_| self.thread == thread)?;
        let entry = again(AGAIN, sym, *last, times)?;
        // The rest of the 16 bytes is where the next entry goes.
        *room.first_chunk_mut()? = entry.to_le_bytes();
        *last = times.1;
        Some(AGAIN_BYTES)
    }

    /// Writes a call that may become a series: its slot says how many calls it stands for, and when the last one ended. It
    /// holds until the thread's next call is written.
    pub fn series(
        &mut self,
        room: &mut [u8],
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: (i64, i64),
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
        (enter, exit): (i64, i64),
    ) -> Option<usize> {
        // Two numbers for a change of thread, tag, symbol, gap, duration, number of words.
        if room.len() < (words.len() + 7) * LONGEST {
            return None;
        }
        let mut at = 0;
        if self.thread != thread {
            self.thread = thread;
            put(room, &mut at, THREAD);
            put(room, &mut at, u64::try_from(thread).unwrap_or(u64::MAX));
        }
        if let Some(tag) = tag {
            put(room, &mut at, tag);
        }
        put(room, &mut at, CALL + u64::from(sym));
        let last = self.exits.get(thread).copied().unwrap_or(0);
        put(room, &mut at, zigzag(enter.wrapping_sub(last)));
        put(room, &mut at, zigzag(exit.wrapping_sub(enter)));
        put(room, &mut at, u64::try_from(words.len()).unwrap_or(u64::MAX));
        for &w in words {
            put(room, &mut at, zigzag(w));
        }
        Some(at)
    }
}

/// The beginning of an entry [`AGAIN`] or [`EDIT`] after a call that ended at `last`, if the times fit.
#[inline]
fn again(tag: u64, sym: Sym, last: i64, (enter, exit): (i64, i64)) -> Option<u128> {
    let gap = u32::try_from(enter.wrapping_sub(last)).ok()?;
    let duration = u32::try_from(exit.wrapping_sub(enter)).ok()?;
    Some(u128::from(tag) | u128::from(sym) << 8 | u128::from(gap) << 40 | u128::from(duration) << 72)
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
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

/// A call as the log has it; its times are relative to the exit before it.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) sym: Sym,
    pub(super) gap: i64,
    pub(super) duration: i64,
    pub(super) words: Vec<i64>,
}

/// Reads a call with the words of the thread's last one of its symbol, or all but some, after its tag.
pub(super) fn get_again(
    tag: u64,
    src: &mut &[u8],
    r: &RankRecorder,
    thread: usize,
) -> Result<Logged, DecodeError> {
    let (entry, rest) = src.split_first_chunk::<{ AGAIN_BYTES - 1 }>().ok_or(DecodeError::End)?;
    *src = rest;
    let mut bytes = [0; 16];
    bytes[..entry.len()].copy_from_slice(entry);
    let entry = u128::from_le_bytes(bytes);
    let number = |at: u32| u32::try_from(entry >> at & u128::from(u32::MAX)).unwrap_or(0);
    let sym = number(0);
    let words = r.last_words(thread, sym).ok_or(DecodeError::Invalid("a first call that is a repetition"))?;
    let mut words = words.to_vec();
    if tag == EDIT {
        for _ in 0..get_len(src)? {
            let i = get_index(src, words.len())?;
            words[i as usize] = get_i64(src)?;
        }
        if !r
            .symbols()
            .get(sym as usize)
            .is_some_and(|s| readable(CallTable::builtin().slots(s.call), &words))
        {
            return Err(DecodeError::Invalid("words that are none of its function"));
        }
    }
    Ok(Logged { sym, gap: number(32).into(), duration: number(64).into(), words })
}

/// Reads a call after its first number.
pub(super) fn get_call(first: u64, src: &mut &[u8], r: &RankRecorder) -> Result<Logged, DecodeError> {
    let index = first.checked_sub(CALL).ok_or(DecodeError::Invalid("no call"))?;
    let len = r.symbols().len();
    let found = usize::try_from(index).ok().and_then(|i| r.symbols().get(i));
    let symbol = found.ok_or(DecodeError::Index { index, len: u64::try_from(len).unwrap_or(u64::MAX) })?;
    let sym = Sym::try_from(index).map_err(|_| DecodeError::Integer)?;
    let (gap, duration) = (get_i64(src)?, get_i64(src)?);
    let n = get_len(src)?;
    let mut words = Vec::with_capacity(n);
    for _ in 0..n {
        words.push(get_i64(src)?);
    }
    if !readable(CallTable::builtin().slots(symbol.call), &words) {
        return Err(DecodeError::Invalid("words that are none of its function"));
    }
    Ok(Logged { sym, gap, duration, words })
}

/// Whether a recorder takes these words in a way that they can be read back.
fn readable(slots: &[Slot], words: &[i64]) -> bool {
    let mut rest = words;
    for s in slots {
        let first = rest.first().copied().unwrap_or(0);
        rest = rest.get(1..).unwrap_or(&[]);
        if s.list {
            match usize::try_from(first) {
                Ok(n) if first <= LONGEST_LIST && n <= rest.len() => rest = &rest[n..],
                _ => return false,
            }
        }
    }
    true
}

fn put_objects<T: Codec>(out: &mut Vec<u8>, tag: u64, objects: &[Registered<T>], rank: u32) {
    for o in objects {
        put_u64(out, tag);
        put_object(out, o, rank);
    }
}

/// Reads a definition into the recorder's tables; `false` if `tag` is none.
pub(super) fn get_definition(tag: u64, src: &mut &[u8], r: &mut RankRecorder) -> Result<bool, DecodeError> {
    let before = r.extent();
    let rank = r.rank();
    match tag {
        MODULE => {
            let (path, build_id) = (get_str(src)?, get_str(src)?);
            r.sites.module(crate::sites::Module { path, build_id });
        }
        SITE => {
            let site = get_site(src, &r.sites, &mut Vec::new())?;
            r.sites.insert(site);
        }
        SYMBOL => {
            let (call, site) = (CallId(get_u16(src)?), get_index(src, before.sites)?);
            if CallTable::builtin().get(call).is_none() && !r.names().any(|n| n.0 == call) {
                return Err(DecodeError::Invalid("a function that has no name"));
            }
            r.symbol(call, site, get_u32(src)?);
        }
        COMM => drop(get_object(src, rank).map(|(family, o)| r.comms.adopt(family, o))?),
        GROUP => drop(get_object(src, rank).map(|(family, o)| r.groups.adopt(family, o))?),
        TYPE => drop(get_object(src, rank).map(|(family, o)| r.types.adopt(family, o))?),
        OP => drop(get_object(src, rank).map(|(family, o)| r.ops.adopt(family, o))?),
        WIN => drop(get_object(src, rank).map(|(family, o)| r.wins.adopt(family, o))?),
        FILE => drop(get_object(src, rank).map(|(family, o)| r.files.adopt(family, o))?),
        TEXT => drop(get_object(src, rank).map(|(family, o)| r.texts.adopt(family, o))?),
        NAME => {
            r.unknown_call(&get_str(src)?);
        }
        _ => return Ok(false),
    }
    if r.extent() == before { Err(DecodeError::Invalid("defined twice")) } else { Ok(true) }
}
