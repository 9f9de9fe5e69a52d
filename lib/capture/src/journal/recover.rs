//! From the bytes of a journal to the rank's trace.

use st_model::num::{Exact, narrow};
use std::io::Read;

use super::log::{AGAIN, AGAIN_SHORT, CALL, EDIT, EDIT_SHORT, OPENED, ROUND, SERIES, STOPPED, THREAD};
use super::logged::{LoggedRound, get_again, get_call, get_definition};
use super::{
    COLUMNS, LOG_LENGTH, PAGE, REGIONS, SLOT, SLOTS, SLOTTED, VERSION, descriptor, inside_of, shape_of,
};
use crate::fold::Packed;
use crate::record::{RankRecorder, RestoreError};
use st_model::calls::{CallId, CallTable};
use st_model::columns::{Chunk, Column, ColumnWriter};
use st_model::header::Header;
use st_model::section::{Elastic, Ended, NO_SYM, Section, Sym};
use st_model::steps::Budget;
use st_stream::bytes::{get_i64, get_len, get_u64};
use st_stream::{DecodeError, ReadOptions, Reader, Trace};

/// Why a journal holds no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// It does not begin as one.
    #[error("not a journal")]
    NotAJournal,
    /// It is of another release.
    #[error("a journal of version {0}: this release reads {VERSION}")]
    Version(u64),
    /// Neither of its snapshots is whole.
    #[error("a journal without a whole snapshot")]
    NoSnapshot,
    /// The file of exact times beside it is none of its own.
    #[error("the exact times beside it (.times) are of another run")]
    OtherTimes,
    /// The snapshot's preface is damaged.
    #[error("snapshot")]
    Preface(#[source] DecodeError),
    /// The snapshot's stream is damaged.
    #[error("snapshot")]
    Stream(#[from] st_stream::Error),
    /// The snapshot is none that a recorder can have made.
    #[error("snapshot")]
    Restore(#[from] RestoreError),
}

/// The trace of a rank from its journal, with where its threads ended. `times` is what was written of the rank's stream, which
/// holds exact times older than the snapshot: without it only sketches tell of those. *Cost:* O(calls), of which those of the
/// snapshot are taken from `budget` before.
///
/// # Errors
///
/// If neither region is whole, the newer one is more than `budget` allows, or `times` is of another run.
pub fn recover(journal: &[u8], times: impl Read, budget: &Budget) -> Result<Trace, RecoverError> {
    if !super::is_journal(journal) {
        return Err(RecoverError::NotAJournal);
    }
    let version = number(journal, 8).unwrap_or(0);
    if !(VERSION - 1..=VERSION).contains(&version) {
        return Err(RecoverError::Version(version));
    }
    let mut regions: Vec<_> = REGIONS.iter().filter_map(|&at| Region::read(journal, at)).collect();
    regions.sort_by_key(|r| std::cmp::Reverse(r.generation));
    let mut times = Reader::new(times, ReadOptions { partial: true }).ok();
    let mut failure = RecoverError::NoSnapshot;
    for r in &regions {
        match Replay::of(r, budget) {
            Ok(replay) => {
                let run = |header: &Header| (header.run.clone(), header.started);
                if times.as_ref().is_some_and(|times| run(times.header()) != run(&replay.trace.header)) {
                    return Err(RecoverError::OtherTimes);
                }
                return Ok(replay.finish(journal, times.take()));
            }
            // What an older region holds is not all that there is.
            Err(e @ RecoverError::Restore(RestoreError::Exceeded(_))) => return Err(e),
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?))
}

struct Region<'a> {
    generation: u64,
    snapshot: &'a [u8],
    log: &'a [u8],
}

impl<'a> Region<'a> {
    /// The region with this descriptor; `None` if it is not whole.
    fn read(journal: &'a [u8], at: usize) -> Option<Self> {
        let field = |i: usize| number(journal, at + 8 * i);
        let (generation, offset, capacity) = (field(0)?, field(1)?, field(3)?);
        let start = usize::try_from(offset).ok().filter(|s| *s >= PAGE)?;
        let end = start.checked_add(usize::try_from(field(2)?).ok()?)?;
        let snapshot = journal.get(start..end)?;
        let stated = [generation, offset, field(2)?, capacity, field(4)?];
        if generation == 0 || stated != descriptor(generation, offset, snapshot, capacity) {
            return None;
        }
        let log = &journal[end..];
        let length = number(journal, at + LOG_LENGTH)?.min(capacity);
        let log = &log[..length.to_usize().min(log.len())];
        Some(Self { generation, snapshot, log })
    }
}

/// A thread while the log is read.
#[derive(Default)]
struct Threaded {
    events: u64,
    last: Sym,
    exit: i64,
    /// The loop that the log has described last.
    round: LoggedRound,
    /// A call that may stand for a series: symbol, words, times.
    pending: Option<(Sym, Vec<i64>, i64, i64)>,
    /// (enter, exit) of the events in the log, from event `logged` on, before which the last exit was `base`; up to where
    /// exact times stopped.
    logged: u64,
    base: i64,
    times: Vec<(i64, i64)>,
}

struct Replay {
    trace: Trace,
    host: String,
    recorder: RankRecorder,
    columns: bool,
    thread: usize,
    threads: Vec<Threaded>,
}

impl Replay {
    fn of(region: &Region<'_>, budget: &Budget) -> Result<Self, RecoverError> {
        let mut src = region.snapshot;
        let Preface { flags, exits, trees } = Preface::read(&mut src).map_err(RecoverError::Preface)?;
        let mut trace = st_stream::read(src, ReadOptions::default())?;
        let section = match &mut trace.sections[..] {
            [one] => one,
            _ => return Err(RestoreError::NotOneRank.into()),
        };
        plant(&trees, section).map_err(RecoverError::Preface)?;
        let host = section.hosts.first().map(|(h, _)| h.clone()).unwrap_or_default();
        let mut threads: Vec<Threaded> = Vec::new();
        let recorder = RankRecorder::restore(section, shape_of(flags), &exits, budget, |thread, sym| {
            if threads.len() <= thread {
                threads.resize_with(thread + 1, Threaded::new);
            }
            threads[thread].events += 1;
            threads[thread].last = sym;
        })?;
        threads.resize_with(recorder.extent().threads, Threaded::new);
        for (t, exit) in threads.iter_mut().zip(exits) {
            (t.exit, t.base, t.logged) = (exit, exit, t.events);
        }
        trace.sections.clear();
        let columns = flags & COLUMNS != 0;
        let mut replay = Self { trace, host, recorder, columns, thread: usize::MAX, threads };
        let mut src = region.log;
        // The first entry that is none is where the process stopped.
        while replay.entry(&mut src).is_ok() {}
        Ok(replay)
    }

    fn entry(&mut self, src: &mut &[u8]) -> Result<(), DecodeError> {
        let tag = get_u64(src)?;
        match tag {
            THREAD => {
                let thread = get_u64(src)?.to_usize();
                self.thread = thread;
            }
            OPENED => {
                let start = get_i64(src)?;
                self.recorder.open_thread(start);
                self.threads.push(Threaded { exit: start, base: start, ..Threaded::new() });
            }
            STOPPED => self.columns = false,
            SERIES => {
                let call = get_call(get_u64(src)?, src, &self.recorder)?;
                let t = self.threads.get_mut(self.thread).ok_or(DecodeError::Invalid("no thread"))?;
                let enter = t.exit.wrapping_add(call.gap);
                t.pending = Some((call.sym, call.words, enter, enter.wrapping_add(call.duration)));
            }
            ROUND => {
                let round = LoggedRound::get(src, &self.recorder)?;
                let t = self.threads.get_mut(self.thread).ok_or(DecodeError::Invalid("no thread"))?;
                t.round = round;
            }
            AGAIN.. => {
                let t = self.threads.get_mut(self.thread).ok_or(DecodeError::Invalid("no thread"))?;
                let call = match tag {
                    AGAIN | EDIT | AGAIN_SHORT | EDIT_SHORT => {
                        get_again(tag, src, &self.recorder, self.thread)?
                    }
                    CALL.. => get_call(tag, src, &self.recorder)?,
                    _ => t.round.call(tag, src, &self.recorder)?,
                };
                let enter = t.exit.wrapping_add(call.gap);
                self.call(self.thread, call.sym, &call.words, enter, enter.wrapping_add(call.duration));
            }
            _ => {
                if !get_definition(tag, src, &mut self.recorder)? {
                    return Err(DecodeError::Invalid("no entry"));
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, thread: usize, sym: Sym, words: &[i64], enter: i64, exit: i64) {
        self.recorder.record(thread, sym, words, enter, exit);
        let t = &mut self.threads[thread];
        (t.pending, t.exit, t.last) = (None, exit, sym);
        t.events += 1;
        if self.columns {
            t.times.push((enter, exit));
        }
    }

    /// Ends the series that were open, and says where each thread was.
    fn finish(mut self, journal: &[u8], times: Option<Reader<impl Read>>) -> Trace {
        let mut inside = Vec::new();
        for thread in 0..self.threads.len() {
            let slot = Slot::read(journal, thread);
            if let Some((sym, mut words, enter, exit)) = self.threads[thread].pending.take() {
                let grown = slot.times > 1;
                if let Some(n) = words.last_mut().filter(|_| grown) {
                    *n = slot.times;
                }
                self.call(thread, sym, &words, enter, if grown { slot.exit } else { exit });
            }
            inside.push(self.symbol_of(&slot));
        }
        let rank = self.recorder.rank();
        let ended = self.threads.iter().zip(inside).enumerate().map(|(i, (t, (inside, entered)))| Ended {
            rank,
            thread: narrow(i),
            calls: self.recorder.calls_of(i),
            last: t.last,
            inside,
            entered,
        });
        let ended = ended.collect();
        let mut columns = times.map(Reader::begun).unwrap_or_default();
        let mut section: Section = self.recorder.finish(&self.host);
        for ((i, thread), t) in (0u32..).zip(&mut section.threads).zip(self.threads) {
            let mut column = columns.remove(&(rank, i)).unwrap_or_default();
            complete(&mut column, &t);
            if column != Column::default() {
                thread.columns.push((rank, column));
            }
        }
        section.ended = ended;
        self.trace.sections.push(section);
        self.trace
    }

    /// The symbol of the call that a slot names, and when it was entered.
    fn symbol_of(&mut self, slot: &Slot) -> (Sym, i64) {
        let known = slot.inside.filter(|(call, site)| {
            let named =
                CallTable::builtin().get(*call).is_some() || self.recorder.names().any(|n| n.0 == *call);
            named && self.recorder.sites.get(*site).is_some()
        });
        known.map_or((NO_SYM, 0), |(call, site)| (self.recorder.symbol(call, site, 0), slot.entered))
    }
}

impl Threaded {
    fn new() -> Self {
        Self { last: NO_SYM, ..Self::default() }
    }
}

/// What precedes the stream of a snapshot.
struct Preface {
    flags: u64,
    /// Of each thread.
    exits: Vec<i64>,
    trees: Vec<Packed>,
}

impl Preface {
    fn read(src: &mut &[u8]) -> Result<Self, DecodeError> {
        let flags = get_u64(src)?;
        let n = get_len(src)?;
        let exits = (0..n).map(|_| get_i64(src)).collect::<Result<_, _>>()?;
        let mut tree = || {
            let length = get_len(src)?;
            let (codes, rest) = src.split_at(length);
            *src = rest;
            Ok(Packed::from_bytes(codes.to_vec()))
        };
        let trees = (0..n).map(|_| tree()).collect::<Result<_, DecodeError>>()?;
        Ok(Self { flags, exits, trees })
    }
}

/// Gives the threads of a section their trees.
fn plant(trees: &[Packed], section: &mut Section) -> Result<(), DecodeError> {
    if trees.len() != section.threads.len() {
        return Err(DecodeError::Invalid("not one tree for each thread"));
    }
    for (packed, thread) in trees.iter().zip(&mut section.threads) {
        let (tree, counts) = packed.unpack(section.symbols.len())?;
        st_stream::check_params(&tree, &thread.params, &section.symbols)?;
        (thread.tree, thread.counts) = (tree, counts.into_iter().map(Elastic::only).collect());
    }
    Ok(())
}

/// What the head says of a thread.
#[derive(Default)]
struct Slot {
    inside: Option<(CallId, u32)>,
    entered: i64,
    times: i64,
    exit: i64,
}

impl Slot {
    fn read(journal: &[u8], thread: usize) -> Self {
        let field = |i: usize| number(journal, SLOTS + thread * SLOT + 8 * i).map_or(0, u64::cast_signed);
        if thread >= SLOTTED {
            return Self::default();
        }
        let inside = inside_of(field(0).cast_unsigned());
        Self { inside, entered: field(1), times: field(2), exit: field(3) }
    }
}

/// Takes from the file what precedes the log or lies in it, and the rest from the log.
fn complete(column: &mut Column, t: &Threaded) {
    while column.events() > t.events {
        column.chunks.pop();
    }
    let held = column.events();
    let Some(skip) = held.checked_sub(t.logged).and_then(|n| usize::try_from(n).ok()) else { return };
    let Some(rest) = t.times.get(skip..).filter(|r| !r.is_empty()) else { return };
    let base = skip.checked_sub(1).map_or(t.base, |i| t.times[i].1);
    let mut writer = ColumnWriter::resume(held, base);
    let mut chunks: Vec<Chunk> = rest.iter().filter_map(|&(a, b)| writer.push(a, b)).collect();
    chunks.extend(writer.flush());
    column.chunks.extend(chunks);
}
