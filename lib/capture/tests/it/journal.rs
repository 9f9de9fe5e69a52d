//! A journal cut anywhere gives a prefix of what was recorded.

use crate::sections::{Event, Plan, recorded};
use proptest::prelude::*;
use st_capture::journal::{self, CallTimes, LogWriter, RecoverError, recover};
use st_capture::record::RankRecorder;
use st_model::calls::CallId;
use st_model::columns::{Chunk, Column};
use st_model::header::Header;
use st_model::objects::Op;
use st_model::section::{NO_SYM, Section};
use st_model::sites::Frame;
use st_model::steps::Budget;
use st_stream::{ReadOptions, WriteOptions, Writer};

const HOST: &str = "node";

/// A journal in memory, written as a recorder does.
struct Journal {
    bytes: Vec<u8>,
    /// The written part of the rank's stream.
    times: Vec<u8>,
    chunks: Vec<(usize, Chunk)>,
    generation: u64,
    log: LogWriter,
    /// Where the log begins, how long it is and may become.
    at: usize,
    length: usize,
    capacity: usize,
}

impl Journal {
    fn new(r: &mut RankRecorder, capacity: usize) -> Self {
        let mut bytes = vec![0; journal::PAGE];
        bytes[..16].copy_from_slice(&journal::opening());
        let (times, chunks) = (Vec::new(), Vec::new());
        let log = LogWriter::default();
        let mut j = Self { bytes, times, chunks, generation: 0, log, at: 0, length: 0, capacity };
        j.snapshot(r);
        j
    }

    fn snapshot(&mut self, r: &mut RankRecorder) {
        let open = r.flush_columns();
        self.chunks.extend(open.into_iter().map(|(t, c)| (usize::try_from(t).unwrap(), c)));
        let mut writer = Writer::new(Vec::new(), &Header::default(), WriteOptions { level: 0 }).unwrap();
        for (thread, chunk) in &self.chunks {
            writer.column_chunk(r.rank(), u32::try_from(*thread).unwrap(), chunk).unwrap();
        }
        // Without an end frame: the stream of a rank that goes on.
        self.times = writer.finish().unwrap();
        self.times.truncate(self.times.len() - 8);
        let snapshot = journal::snapshot(r, &Header::default(), &[], HOST).unwrap();
        self.generation += 1;
        let offset = self.bytes.len().next_multiple_of(journal::PAGE);
        self.bytes.resize(offset, 0);
        self.bytes.extend_from_slice(&snapshot);
        self.at = self.bytes.len();
        self.length = 0;
        self.bytes.resize(self.at + self.capacity, 0);
        let at = self.descriptor_at();
        let capacity = u64::try_from(self.capacity).unwrap();
        let fields =
            journal::descriptor(self.generation, u64::try_from(offset).unwrap(), &snapshot, capacity);
        for (i, f) in fields.into_iter().chain([0]).enumerate() {
            self.bytes[at + 8 * i..][..8].copy_from_slice(&f.to_le_bytes());
        }
        self.log = LogWriter::after(r);
    }

    fn descriptor_at(&self) -> usize {
        journal::REGIONS[usize::try_from(self.generation % 2).unwrap()]
    }

    fn event(&mut self, r: &mut RankRecorder, thread: usize, (sym, words, times, chunk): &Event) {
        self.chunks.extend(chunk.clone().map(|c| (thread, c)));
        let mut definitions = Vec::new();
        if !self.log.knows(r) {
            self.log.define(r, &mut definitions);
        }
        let from = self.at + self.length;
        let room = &mut self.bytes[from..self.at + self.capacity];
        let written = (definitions.len() <= room.len()).then(|| {
            let (first, rest) = room.split_at_mut(definitions.len());
            first.copy_from_slice(&definitions);
            let times = CallTimes { enter: times.0, exit: times.1 };
            self.log.call(rest, r, thread, *sym, words, times)
        });
        match written.flatten() {
            Some(n) => self.length += definitions.len() + n,
            None => self.snapshot(r),
        }
        let at = self.descriptor_at() + journal::LOG_LENGTH;
        self.bytes[at..at + 8].copy_from_slice(&u64::try_from(self.length).unwrap().to_le_bytes());
    }
}

/// Calls of a thread as they are read back, and their times.
type Calls = (Vec<(CallId, u128, u32, Vec<i64>)>, Vec<(i64, i64)>);

fn calls(s: &Section, thread: usize) -> Calls {
    let rank = s.ranks.lowest().unwrap();
    let mut out = Vec::new();
    for c in s.project(thread, rank).unwrap() {
        let c = c.unwrap();
        let symbol = s.symbols[c.sym as usize];
        out.push((symbol.call, s.sites.get(symbol.site).unwrap().id, symbol.error, c.words));
    }
    let none = Column::default();
    let column = s.threads[thread].columns.first().map_or(&none, |(_, c)| c);
    (out, column.times().collect())
}

/// Records a plan with a journal; also makes objects and sites on the way.
fn journalled(plan: &Plan, capacity: usize) -> (Journal, Section) {
    let mut n = 0u32;
    let (mut r, journal) = plan.record(
        3,
        |r| {
            // Words name objects at random; whether an object is there must not change while recording.
            for i in 0..20u32 {
                r.objects.ops.create(CallId(9), i.into(), Op { kind: format!("early {i}"), commutes: true });
            }
            Journal::new(r, capacity)
        },
        |j, r, thread, event| {
            j.event(r, thread, &event);
            n += 1;
            if n.is_multiple_of(3) {
                r.objects.ops.create(CallId(9), n.into(), Op { kind: format!("late {n}"), commutes: false });
                r.sites.label(&format!("late {n}"));
            }
        },
    );
    let mut chunks = journal.chunks.clone();
    chunks.extend(r.flush_columns().into_iter().map(|(t, c)| (usize::try_from(t).unwrap(), c)));
    let mut whole = r.finish(HOST);
    for (thread, chunk) in chunks {
        let columns = &mut whole.threads[thread].columns;
        if columns.is_empty() {
            columns.push((3, Column::default()));
        }
        columns[0].1.chunks.push(chunk);
    }
    (journal, whole)
}

/// Everything of the journal gives everything that was recorded.
fn all_comes_back(journal: &Journal, whole: &Section) {
    let trace = recover(&journal.bytes, &journal.times[..], &Budget::default()).unwrap();
    assert_eq!(trace.sections.len(), 1);
    let back = &trace.sections[0];
    assert_eq!(back.threads.len(), whole.threads.len());
    for t in 0..whole.threads.len() {
        assert_eq!(calls(back, t), calls(whole, t));
        let (a, b) = (&back.threads[t], &whole.threads[t]);
        assert_eq!((&a.tree, &a.counts, &a.params), (&b.tree, &b.counts, &b.params));
        assert_eq!((&a.lanes, &a.sketches), (&b.lanes, &b.sketches));
        assert_eq!((back.ended[t].calls, back.ended[t].inside), (b.lanes.calls, NO_SYM));
    }
    assert!(st_model::check::check(back).unwrap().iter().all(st_model::check::ThreadCheck::passed));
}

/// Whatever is left of it gives a prefix, or nothing.
fn cut_gives_a_prefix(bytes: &[u8], times: &[u8], whole: &Section) -> bool {
    let Ok(trace) = recover(bytes, times, &Budget::default()) else { return false };
    let back = &trace.sections[0];
    for t in 0..back.threads.len() {
        let ((some, at), (all, when)) = (calls(back, t), calls(whole, t));
        assert!(all.starts_with(&some), "thread {t}: not a prefix");
        assert!(when.starts_with(&at) && at.len() <= some.len(), "thread {t}: other times");
    }
    assert!(st_model::check::check(back).unwrap().iter().all(st_model::check::ThreadCheck::passed));
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_journal_holds_what_was_recorded(plan in recorded(), capacity in 200usize..4000) {
        let (journal, whole) = journalled(&plan, capacity);
        all_comes_back(&journal, &whole);
    }

    #[test]
    fn a_cut_journal_holds_a_prefix(
        plan in recorded(),
        capacity in 200usize..4000,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 8),
    ) {
        let (journal, whole) = journalled(&plan, capacity);
        for cut in cuts {
            let cut = cut.index(journal.bytes.len());
            cut_gives_a_prefix(&journal.bytes[..cut], &journal.times, &whole);
            // The log's end lost, as if the process had been killed there.
            let mut bytes = journal.bytes.clone();
            let at = journal.descriptor_at() + journal::LOG_LENGTH;
            let length = u64::try_from(cut.min(journal.length)).unwrap();
            bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
            prop_assert!(cut_gives_a_prefix(&bytes, &journal.times, &whole));
            // Killed while a snapshot was being written: the one before is whole.
            if journal.generation > 1 {
                let at = journal.descriptor_at();
                bytes[at] ^= 0x40;
                prop_assert!(cut_gives_a_prefix(&bytes, &journal.times, &whole));
            }
            // Exact times cut.
            let times = &journal.times[..cut.min(journal.times.len())];
            prop_assert!(cut_gives_a_prefix(&journal.bytes, times, &whole));
        }
    }

    #[test]
    fn damage_is_never_worse_than_an_error(
        plan in recorded(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let (mut journal, _) = journalled(&plan, 1000);
        for (at, flip) in flips {
            let at = at.index(journal.bytes.len());
            journal.bytes[at] ^= flip;
        }
        if let Ok(trace) = recover(&journal.bytes, &journal.times[..], &Budget::default()) {
            // What comes back is a stream, whatever it is.
            let mut bytes = Vec::new();
            st_stream::write(&trace, &mut bytes, WriteOptions { level: 0 }).unwrap();
            let back = st_stream::read(&bytes[..], ReadOptions::default()).unwrap();
            prop_assert_eq!(back.sections, trace.sections);
        }
    }
}

#[test]
fn who_reads_twice_sees_that_a_region_has_taken_the_place_of_another() {
    let mut r = RankRecorder::new(0, st_capture::record::Options::default());
    r.open_thread(0);
    let mut j = Journal::new(&mut r, 1 << 10);
    let first = journal::generations(&j.bytes).unwrap();
    assert_eq!(journal::generations(&j.bytes[..journal::PAGE]), Some(first));
    j.snapshot(&mut r);
    let second = journal::generations(&j.bytes).unwrap();
    assert_ne!(first, second);
    assert_eq!(first.into_iter().max().unwrap() + 1, second.into_iter().max().unwrap());
    assert_eq!(journal::generations(&j.bytes[..journal::REGIONS[1]]), None);
}

#[test]
fn a_snapshot_of_more_calls_than_anybody_waits_for_is_refused_before_these_are_made() {
    let mut r = RankRecorder::new(0, st_capture::record::Options::default());
    let thread = r.open_thread(0);
    let site = r.sites.label("here");
    let sym = r.symbol(CallId(9), site, 0);
    for _ in 0..5 {
        r.record(thread, sym, &[0; 8], 0, 0);
    }
    let mut j = Journal::new(&mut r, 1 << 10);
    r.record(thread, sym, &[0; 8], 0, 0);
    j.snapshot(&mut r);
    let of = |budget: u64| recover(&j.bytes, std::io::empty(), &Budget::new(budget));
    assert!(of(100).is_ok());
    // Nor is the older snapshot taken, which is less.
    assert!(of(6).is_err_and(|e| format!("{e:?}").contains("Exceeded")));
}

#[test]
fn exact_times_of_another_run_are_not_taken() {
    let mut r = RankRecorder::new(0, st_capture::record::Options::default());
    r.open_thread(0);
    let j = Journal::new(&mut r, 1 << 10);
    let of = |run: &str, started| {
        let header = Header { run: run.into(), started, ..Header::default() };
        let times = Writer::new(Vec::new(), &header, WriteOptions { level: 0 }).unwrap().finish().unwrap();
        recover(&j.bytes, &times[..], &Budget::default())
    };
    assert!(of("", 0).is_ok());
    for other in [of("another", 0), of("", 1)] {
        assert!(matches!(other, Err(RecoverError::OtherTimes)));
    }
}

#[test]
fn a_site_takes_what_it_does_not_share_with_the_one_before() {
    let mut r = RankRecorder::new(0, st_capture::record::Options::default());
    let module = r.sites.module(st_model::sites::Module::default());
    let mut define = |log: &mut LogWriter, inner: u64| {
        let outer = (1..40).map(|i| i << 20);
        let frames = std::iter::once(inner).chain(outer).map(|offset| Frame { module, offset }).collect();
        r.site(CallId(20), frames);
        let mut out = Vec::new();
        log.define(&r, &mut out);
        out.len()
    };
    let mut log = LogWriter::default();
    assert!(define(&mut log, 1) > 39 * 3);
    assert!(define(&mut log, 2) < 8);
}
