//! Sections to test with, built as a recorder builds them.

use proptest::prelude::*;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::{CallId, CallTable, Slot};
use st_model::columns::Chunk;
use st_model::names::{Location, Names};
use st_model::objects::{Comm, Op, SharedObject, Type};
use st_model::proof::by_slot;
use st_model::ranks::RankSeq;
use st_model::section::Sym;
use st_model::sites::{Frame, Module};
use st_model::sketch::Shape;

/// A call to record: row of the call table, site, error class, words by slot, thread, gap and duration.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    row: usize,
    site: u8,
    error: u8,
    pub(crate) words: Vec<i64>,
    thread: bool,
    times: (u32, u32),
}

/// What a rank does.
#[derive(Clone, Debug)]
pub(crate) struct Plan(pub(crate) Vec<Planned>);

/// A recorder with the objects and sites that all samples refer to.
pub(crate) fn recorder(rank: u32, shape: Shape) -> RankRecorder {
    let mut r = RankRecorder::new(rank, Options { shape, ..Options::default() });
    let world = Comm {
        kind: "MPI_COMM_WORLD".into(),
        parent: 0,
        members: RankSeq::first(8),
        remote: RankSeq::default(),
    };
    let own: RankSeq = [rank].into_iter().collect();
    let this = Comm { kind: "MPI_COMM_SELF".into(), parent: 0, members: own, remote: RankSeq::default() };
    r.objects.comms.predefined(world);
    r.objects.comms.predefined(this);
    let int = Type { kind: "MPI_INT".into(), words: vec![], parts: vec![], size: 4, lb: 0, extent: 4 };
    r.objects.types.predefined(int.clone());
    let name = r.objects.types.get(0).unwrap().name;
    let words = vec![3, -1, i64::MAX];
    let vector =
        Type { kind: "MPI_Type_vector".into(), words, parts: vec![name], size: 12, lb: -4, extent: 16 };
    r.objects.types.create(st_model::calls::CallId(220), 5, vector.clone());
    r.objects.types.create(st_model::calls::CallId(220), 5, vector);
    r.objects.ops.predefined(Op { kind: "MPI_SUM".into(), commutes: true });
    let shared = |kind: &str| SharedObject { kind: kind.into(), comm: 7, members: RankSeq::first(3) };
    r.objects.wins.create(CallId(793), 6, shared("MPI_Win_create"));
    let comm = r.objects.comms.get(0).unwrap().name;
    r.objects.files.create(CallId(540), 6, SharedObject { comm, ..shared("MPI_File_open") });
    r.text(CallId(540), 6, "a file named \"é\"".into());
    let program = r.sites.module(Module { path: "/bin/a \"b\"".into(), build_id: "ab12".into() });
    let library = r.sites.module(Module { path: "/lib/libé.so".into(), build_id: String::new() });
    for offset in 0..4 {
        let outer = Frame { module: program, offset: 0x1000 };
        r.sites.stack(vec![Frame { module: library, offset }, outer]);
    }
    r.sites.label("a label");
    let mut names = Names::default();
    let location = |function: &str| Location { function: Some(function.into()), ..Location::default() };
    let place = Location { file: Some("/src/é \"b\".c".into()), line: Some(7), ..location("main") };
    let keys: Vec<u64> = r.sites.modules().iter().map(Module::key).collect();
    names.insert((keys[0], 0x1000), vec![location("inlined"), place]);
    names.insert((keys[1], 3), vec![Location { displacement: Some(0x2c), ..location("f(int)") }]);
    r.sites.add_names(&names);
    r
}

impl Plan {
    /// Records it; `begin` sees the recorder before the first event, `each` after each event of a thread.
    pub(crate) fn record<T>(
        &self,
        rank: u32,
        begin: impl FnOnce(&mut RankRecorder) -> T,
        mut each: impl FnMut(&mut T, &mut RankRecorder, usize, Event),
    ) -> (RankRecorder, T) {
        let shapes = [Shape::Buckets, Shape::BINS, Shape::Totals];
        let mut r = recorder(rank, shapes[self.0.len() % 3]);
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
            // Some calls are passed on by what differs from a round ago.
            let next = r.round(thread).and_then(|(_, next)| r.places(thread).nth(next));
            let next = next.filter(|next| next.0 == sym && c.times.0 % 2 == 0);
            let chunk = match next.and_then(|(_, last)| differ(slots, last, &words)) {
                Some(changed) => r.pass(thread, sym, &words, &changed, enter, now[thread]),
                None => r.record(thread, sym, &words, enter, now[thread]),
            };
            each(&mut with, &mut r, thread, (sym, words, (enter, now[thread]), chunk.map(|c| *c)));
        }
        (r, with)
    }
}

/// Places at which words differ from others, if all lists are as long.
fn differ(slots: &[Slot], last: &[i64], words: &[i64]) -> Option<Vec<u16>> {
    let lengths = |words| by_slot(slots, words).map(<[i64]>::len).collect::<Vec<_>>();
    let differ = (0..).zip(last.iter().zip(words)).filter(|(_, (a, b))| a != b);
    (lengths(last) == lengths(words)).then(|| differ.map(|(i, _)| i).collect())
}

/// What was recorded: symbol, words, times, and the chunk of times that it filled.
pub(crate) type Event = (Sym, Vec<i64>, (i64, i64), Option<Chunk>);

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
        } else if s.meaning == st_model::calls::Meaning::Times {
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
        // As many bytes of a journal as there can be.
        (prop_oneof![0u32..100_000, any::<u32>()], 0u32..100_000),
    );
    let call = call.prop_map(|(row, site, error, words, thread, times)| Planned {
        row,
        site,
        error,
        words,
        thread,
        times,
    });
    // A few kinds of calls in some order, of which some are loops, in which words change now and then.
    let loops = (
        prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        prop_oneof![20 => 1usize..12, 1 => 1usize..300],
        prop::collection::vec((any::<prop::sample::Index>(), 0usize..20, 0i64..23), 0..12),
    );
    (prop::collection::vec(call, 1..8), prop::collection::vec(loops, 0..12)).prop_map(|(kinds, loops)| {
        let mut plan = Vec::new();
        for (body, times, changes) in loops {
            let mut body: Vec<Planned> = body.iter().map(|i| kinds[i.index(kinds.len())].clone()).collect();
            let length = body.len();
            for round in 0..times {
                for (at, word, value) in changes.iter().filter(|c| round % (c.1 % 3 + 1) == 0) {
                    let words = &mut body[at.index(length)].words;
                    let n = words.len();
                    words[word % n] = (value + i64::try_from(round).unwrap()).rem_euclid(23) - 3;
                }
                plan.extend(body.iter().cloned());
            }
        }
        Plan(plan)
    })
}
