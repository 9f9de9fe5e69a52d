//! Sections to test with, built as a recorder builds them.

use proptest::prelude::*;
use st_trace::calls::{CallId, CallTable, Slot};
use st_trace::columns::{Chunk, Column};
use st_trace::ints::Sealed;
use st_trace::objects::{Comm, Joint, Op, Type};
use st_trace::ranklist::RankList;
use st_trace::ranks::RankSeq;
use st_trace::record::{Options, RankRecorder};
use st_trace::section::{Elastic, Ended, Form, NO_SYM, Partition, RankSums, Section, Sym};
use st_trace::sites::{Frame, Module};

/// A call to record: row of the call table, site, error class, words by slot, thread, gap and duration.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    row: usize,
    site: u8,
    error: u8,
    words: Vec<i64>,
    thread: bool,
    times: (u32, u32),
}

/// What a rank does.
#[derive(Clone, Debug)]
pub(crate) struct Plan(Vec<Planned>);

/// A recorder with the objects and sites that all samples refer to.
fn recorder(rank: u32) -> RankRecorder {
    let mut r = RankRecorder::new(rank, Options::default());
    let world = Comm {
        kind: "MPI_COMM_WORLD".into(),
        parent: 0,
        members: RankSeq::first(8),
        remote: RankSeq::default(),
    };
    let own: RankSeq = [rank].into_iter().collect();
    let this = Comm { kind: "MPI_COMM_SELF".into(), parent: 0, members: own, remote: RankSeq::default() };
    r.comms.predefined(world);
    r.comms.predefined(this);
    let int = Type { kind: "MPI_INT".into(), words: vec![], parts: vec![], size: 4, lb: 0, extent: 4 };
    r.types.predefined(int.clone());
    let name = r.types.get(0).unwrap().name;
    let words = vec![3, -1, i64::MAX];
    let vector =
        Type { kind: "MPI_Type_vector".into(), words, parts: vec![name], size: 12, lb: -4, extent: 16 };
    r.types.create(st_trace::calls::CallId(220), 5, vector.clone());
    r.types.create(st_trace::calls::CallId(220), 5, vector);
    r.ops.predefined(Op { kind: "MPI_SUM".into(), commutes: true });
    let joint = |kind: &str| Joint { kind: kind.into(), comm: 7, members: RankSeq::first(3) };
    r.wins.create(CallId(793), 6, joint("MPI_Win_create"));
    let comm = r.comms.get(0).unwrap().name;
    r.files.create(CallId(540), 6, Joint { comm, ..joint("MPI_File_open") });
    r.text(CallId(540), 6, "a file named \"é\"".into());
    let program = r.sites.module(Module { path: "/bin/a \"b\"".into(), build_id: "ab12".into() });
    let library = r.sites.module(Module { path: "/lib/libé.so".into(), build_id: String::new() });
    for offset in 0..4 {
        let outer = Frame { module: program, offset: 0x1000 };
        r.sites.stack(vec![Frame { module: library, offset }, outer]);
    }
    r.sites.label("a label");
    r
}

fn finish(r: RankRecorder, rank: u32, chunks: Vec<(usize, Chunk)>) -> Section {
    let mut columns = [Column::default(), Column::default()];
    chunks.into_iter().for_each(|(thread, c)| columns[thread].chunks.push(c));
    let mut s = r.finish("node \"1\"");
    for (t, c) in s.threads.iter_mut().zip(columns) {
        if !c.chunks.is_empty() {
            t.columns.push((rank, c));
        }
    }
    s
}

impl Plan {
    /// The trace of a rank that does it.
    pub(crate) fn section(&self, rank: u32) -> Section {
        let (mut r, mut chunks) = self.record(
            rank,
            |_| Vec::new(),
            |chunks, _, thread, event| chunks.extend(event.chunk.map(|c| (thread, c))),
        );
        let open = r.flush_columns();
        chunks.extend(open.into_iter().map(|(t, c)| (usize::try_from(t).unwrap(), c)));
        finish(r, rank, chunks)
    }

    /// Records it; `begin` sees the recorder before the first event, `each` after each event of a thread.
    pub(crate) fn record<T>(
        &self,
        rank: u32,
        begin: impl FnOnce(&mut RankRecorder) -> T,
        mut each: impl FnMut(&mut T, &mut RankRecorder, usize, Event),
    ) -> (RankRecorder, T) {
        let mut r = recorder(rank);
        let threads = [r.open_thread(100), r.open_thread(200)];
        let mut now = [100i64, 200];
        let mut with = begin(&mut r);
        let rows = CallTable::builtin().rows();
        for c in &self.0 {
            let row = &rows[c.row % rows.len()];
            let id = if c.row % 17 == 0 { r.unknown_call("MPIX_Stranger") } else { row.id };
            let slots = if id == row.id { &row.slots[..] } else { &[] };
            let sym = r.symbol(id, u32::from(c.site % 5), u32::from(c.error / 200));
            let thread = threads[usize::from(c.thread)];
            let enter = now[thread] + i64::from(c.times.0);
            now[thread] = enter + i64::from(c.times.1);
            let words = fill(slots, &c.words);
            let chunk = r.record(thread, sym, &words, enter, now[thread]);
            each(&mut with, &mut r, thread, Event { sym, words, times: (enter, now[thread]), chunk });
        }
        (r, with)
    }
}

/// What was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) sym: Sym,
    pub(crate) words: Vec<i64>,
    pub(crate) times: (i64, i64),
    pub(crate) chunk: Option<Chunk>,
}

/// Words of the row's shape out of any words.
fn fill(slots: &[Slot], from: &[i64]) -> Vec<i64> {
    let mut from = from.iter().copied().cycle();
    let mut word = || from.next().unwrap_or(0);
    let mut words = Vec::new();
    for s in slots {
        if s.list {
            let n = word().rem_euclid(4);
            words.push(n);
            (0..n).for_each(|_| words.push(word()));
        } else if s.meaning == st_trace::calls::Meaning::Times {
            words.push(1 + word().rem_euclid(5));
        } else {
            words.push(word());
        }
    }
    words
}

/// Any calls with any parameters.
pub(crate) fn recorded() -> impl Strategy<Value = Plan> {
    let word = prop_oneof![4 => -3i64..20, 1 => any::<i64>()];
    let call = (
        0usize..300,
        0u8..5,
        any::<u8>(),
        prop::collection::vec(word, 1..12),
        any::<bool>(),
        (any::<u32>(), 0u32..5000),
    );
    let call = call.prop_map(|(row, site, error, words, thread, times)| Planned {
        row,
        site,
        error,
        words,
        thread,
        times,
    });
    // A few kinds of calls in some order, so that loops occur.
    (prop::collection::vec(call, 1..8), prop::collection::vec(any::<prop::sample::Index>(), 0..60))
        .prop_map(|(kinds, order)| Plan(order.iter().map(|i| kinds[i.index(kinds.len())].clone()).collect()))
}

/// A small trace of a rank: a loop of sends and a reduction, equal but for what depends on the rank.
pub(crate) fn sample(rank: u32) -> Section {
    let mut r = recorder(rank);
    r.open_thread(1_000);
    let table = CallTable::builtin();
    let mut now = 1_000;
    let mut chunks = Vec::new();
    for i in 0..10 {
        let peer = i64::from((rank + 1) % 8);
        for (name, site, words) in [
            ("MPI_Send", 0, vec![10, 0, peer, 7 + i % 2, 0]),
            ("MPI_Recv", 1, vec![10, 0, -2, -1, 0, i64::from((rank + 7) % 8), 7, 40]),
            ("MPI_Allreduce", 4, vec![0, 1, 0, 0, 0]),
        ] {
            let sym = r.symbol(table.by_name(name).unwrap().id, site, 0);
            chunks.extend(r.record(0, sym, &words, now + 50, now + 60 + i).map(|c| (0, c)));
            now += 60 + i;
        }
    }
    chunks.extend(r.flush_columns().into_iter().map(|(_, c)| (0, c)));
    let s = finish(r, rank, chunks);
    assert_eq!(s.ranks, RankList::single(rank));
    s
}

/// Two ranks in one section, as merging makes it: counts in common, parameters in classes, an endpoint relative.
pub(crate) fn pair() -> Section {
    let (mut s, other) = (sample(0), sample(1));
    let both: RankList = [0, 1].into_iter().collect();
    s.ranks = both.clone();
    s.hosts = vec![("a".into(), RankList::single(0)), ("b".into(), RankList::single(1))];
    s.partitions = vec![
        Partition { classes: vec![both.clone()] },
        Partition { classes: vec![RankList::single(0), RankList::single(1)] },
    ];
    for (e, o) in s.tables.comms.iter_mut().zip(&other.tables.comms) {
        e.of.extend(o.of.clone());
    }
    let (thread, second) = (&mut s.threads[0], &other.threads[0]);
    thread.ranks = both;
    thread.lanes.merge(&second.lanes);
    thread.columns.extend(second.columns.clone());
    for (streams, others) in thread.params.iter_mut().flatten().zip(second.params.iter().flatten()) {
        if streams.values != others.values {
            streams.values.partition = 1;
            streams.values.streams.extend(others.values.streams.clone());
        }
    }
    thread.params[0][2].values =
        Elastic { form: Form::RELATIVE, partition: 0, streams: vec![Sealed::from_constant(1)] };
    let quantised = |v: Vec<i64>| Sealed::from(v);
    let ended = Ended { rank: 0, thread: 0, calls: 30, last: 2, inside: 1, entered: 9000 };
    s.ended = vec![ended, Ended { rank: 1, last: NO_SYM, inside: NO_SYM, entered: 0, ..ended }];
    thread.sums.push(RankSums { sym: 1, compute: quantised(vec![30, 31]), comm: quantised(vec![40, 40]) });
    s
}
