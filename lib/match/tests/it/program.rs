//! Little parallel programs, written down call by call, with the edges that their messages must give.

use st_capture::record::{Options, RankRecorder};
use st_match::graph::{Graph, GraphStep, Shape};
use st_model::calls::{CallId, CallTable};
use st_model::columns::Column;
use st_model::objects::{Comm, Group, Op, SharedObject, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;

/// A word or a list of them.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    One(i64),
    List(Vec<i64>),
}

impl From<i64> for Word {
    fn from(v: i64) -> Self {
        Self::One(v)
    }
}
impl From<Vec<i64>> for Word {
    fn from(v: Vec<i64>) -> Self {
        Self::List(v)
    }
}

/// A point: rank and number.
pub(crate) type Point = (usize, u32);

struct Rank {
    recorder: RankRecorder,
    /// Per thread: times, and number of calls.
    threads: Vec<(Column, u32)>,
    requests: Vec<bool>,
    host: String,
}

/// Ranks as members of a communicator.
fn members(ranks: &[u32]) -> RankSeq {
    RankSeq::from_iter(ranks.iter().copied())
}

/// A program being written down.
pub(crate) struct Program {
    ranks: Vec<Rank>,
    /// What must come before what.
    pub(crate) edges: Vec<(Point, Point)>,
}

impl Program {
    pub(crate) fn new(nodes: &[usize]) -> Self {
        Self::with(nodes, Options::default())
    }

    /// Of so many ranks on these nodes, recorded in some way.
    pub(crate) fn with(nodes: &[usize], options: Options) -> Self {
        let world = u32::try_from(nodes.len()).unwrap();
        let rank = |(i, node): (u32, &usize)| {
            let mut recorder = RankRecorder::new(i, options);
            for (kind, members) in
                [("MPI_COMM_WORLD", RankSeq::first(world)), ("MPI_COMM_SELF", RankSeq::from_iter([i]))]
            {
                let remote = RankSeq::default();
                recorder.objects.comms.predefined(Comm { kind: kind.into(), parent: 0, members, remote });
            }
            let int =
                Type { kind: "MPI_INT".into(), words: vec![], parts: vec![], size: 4, lb: 0, extent: 4 };
            recorder.objects.types.predefined(int);
            recorder.objects.ops.predefined(Op { kind: "MPI_SUM".into(), commutes: true });
            recorder.sites.label("program");
            recorder.open_thread(0);
            let threads = vec![(Column::default(), 0)];
            Rank { recorder, threads, requests: vec![], host: format!("n{node}") }
        };
        Self { ranks: (0..).zip(nodes).map(rank).collect(), edges: Vec::new() }
    }

    /// Makes a communicator in a rank's table; `remote` is empty for an intracommunicator.
    pub(crate) fn comm(&mut self, rank: usize, local: &[u32], remote: &[u32]) -> i64 {
        let id = CallTable::builtin().by_name("MPI_Comm_dup").unwrap().id;
        let content =
            Comm { kind: "made".into(), parent: 0, members: members(local), remote: members(remote) };
        self.ranks[rank].recorder.objects.comms.create(id, 0, content)
    }

    /// Makes a group in a rank's table.
    pub(crate) fn group(&mut self, rank: usize, ranks: &[u32]) -> i64 {
        let id = CallTable::builtin().by_name("MPI_Comm_group").unwrap().id;
        self.ranks[rank].recorder.objects.groups.create(id, 0, Group { members: members(ranks) })
    }

    /// Makes a window in a rank's table.
    pub(crate) fn window(&mut self, rank: usize, ranks: &[u32]) -> i64 {
        let id = CallTable::builtin().by_name("MPI_Win_create").unwrap().id;
        let content = SharedObject { kind: "MPI_Win_create".into(), comm: 0, members: members(ranks) };
        self.ranks[rank].recorder.objects.wins.create(id, 0, content)
    }

    /// Opens a file in a rank's table.
    pub(crate) fn file(&mut self, rank: usize, ranks: &[u32]) -> i64 {
        let id = CallTable::builtin().by_name("MPI_File_open").unwrap().id;
        let content = SharedObject { kind: "MPI_File_open".into(), comm: 0, members: members(ranks) };
        self.ranks[rank].recorder.objects.files.create(id, 0, content)
    }

    /// Makes another thread of a rank.
    pub(crate) fn thread(&mut self, rank: usize) -> usize {
        let r = &mut self.ranks[rank];
        let n = r.threads.len();
        r.recorder.open_thread(0);
        r.threads.push((Column::default(), 0));
        n
    }

    /// Records a call on a rank's first thread; returns its enter point. Slots that are not named are 0, -9 for resolved ones, or empty.
    pub(crate) fn call(
        &mut self,
        rank: usize,
        name: &str,
        words: &[(&str, Word)],
        times: (i64, i64),
    ) -> Point {
        self.call_on((rank, 0), name, words, times)
    }

    /// Records a call on a thread of a rank.
    pub(crate) fn call_on(
        &mut self,
        (rank, thread): (usize, usize),
        name: &str,
        words: &[(&str, Word)],
        times: (i64, i64),
    ) -> Point {
        self.record_call((rank, thread), name, words, 0, times)
    }

    /// Records a call that returned an error of this class, or none.
    pub(crate) fn record_call(
        &mut self,
        (rank, thread): (usize, usize),
        name: &str,
        words: &[(&str, Word)],
        error: u32,
        times: (i64, i64),
    ) -> Point {
        let row = CallTable::builtin().by_name(name).unwrap();
        let mut flat = Vec::new();
        for slot in &row.slots {
            let named = words.iter().find(|(n, _)| *n == slot.name).map(|(_, w)| w.clone());
            let usual = match slot.name.as_str() {
                "rsource" | "rtag" => -9,
                "times" => 1,
                _ => 0,
            };
            match named.unwrap_or(if slot.list { Word::List(vec![]) } else { Word::One(usual) }) {
                Word::One(v) => flat.push(v),
                Word::List(v) => {
                    flat.push(i64::try_from(v.len()).unwrap());
                    flat.extend(v);
                }
            }
        }
        self.record((rank, thread), (row.id, error), &flat, times)
    }

    /// A call whose words are `words` from the first on, over and over; lists have up to three.
    pub(crate) fn senseless(&mut self, rank: usize, name: &str, words: &[i64], times: (i64, i64)) {
        let row = CallTable::builtin().by_name(name).unwrap();
        let mut next = words.iter().copied().cycle();
        let mut flat = Vec::new();
        for slot in &row.slots {
            let word = next.next().unwrap();
            if slot.list {
                flat.push(word.rem_euclid(4));
                flat.extend(next.by_ref().take(usize::try_from(word.rem_euclid(4)).unwrap()));
            } else {
                flat.push(if slot.name == "times" { 1 } else { word });
            }
        }
        self.record((rank, 0), (row.id, 0), &flat, times);
    }

    fn record(
        &mut self,
        (rank, thread): (usize, usize),
        (id, error): (CallId, u32),
        flat: &[i64],
        times: (i64, i64),
    ) -> Point {
        let r = &mut self.ranks[rank];
        let sym = r.recorder.symbol(id, 0, error);
        let chunk = r.recorder.record(thread, sym, flat, times.0, times.1);
        let (column, calls) = &mut r.threads[thread];
        column.chunks.extend(chunk.map(|c| *c));
        *calls += 1;
        (rank, 2 * (*calls - 1))
    }

    pub(crate) fn take_request(&mut self, rank: usize) -> i64 {
        let r = &mut self.ranks[rank].requests;
        let n = r.iter().position(|used| !used).unwrap_or(r.len());
        if n == r.len() {
            r.push(true);
        }
        r[n] = true;
        i64::try_from(n).unwrap()
    }

    pub(crate) fn give_request(&mut self, rank: usize, n: i64) {
        self.ranks[rank].requests[usize::try_from(n).unwrap()] = false;
    }

    /// Says that an edge must come out.
    pub(crate) fn edge(&mut self, from: Point, to: Point) {
        if from.0 != to.0 {
            self.edges.push((from, to));
        }
    }

    pub(crate) fn sections(self) -> Vec<Section> {
        let finish = |(i, mut r): (usize, Rank)| {
            let mut columns: Vec<Column> = r.threads.into_iter().map(|(c, _)| c).collect();
            for (thread, chunk) in r.recorder.flush_columns() {
                columns[thread as usize].chunks.push(chunk);
            }
            let mut section = r.recorder.finish(&r.host);
            for (thread, column) in section.threads.iter_mut().zip(columns) {
                thread.columns = vec![(u32::try_from(i).unwrap(), column)];
            }
            section
        };
        self.ranks.into_iter().enumerate().map(finish).collect()
    }
}

/// The exit of the call that is entered at a point.
pub(crate) fn exit(p: Point) -> Point {
    (p.0, p.1 + 1)
}

/// All edges of a graph, by stream: sender, receiver, whether they are on different nodes.
pub(crate) fn edges(graph: &Graph) -> Vec<(Point, Point, bool)> {
    let mut sent = vec![None; graph.senders.len()];
    let mut got = vec![None; graph.senders.len()];
    let mut enters = vec![Vec::new(); graph.instances.len()];
    let mut leaves = vec![Vec::new(); graph.instances.len()];
    for (s, ops) in graph.ops.iter().enumerate() {
        for op in ops {
            match op.step() {
                GraphStep::Send { message, far } => sent[message] = Some(((s, op.at), far)),
                GraphStep::Receive(message) => got[message] = Some((s, op.at)),
                GraphStep::Enter(i) => enters[i].push((s, op.at)),
                GraphStep::Leave(i) => leaves[i].push((s, op.at)),
                GraphStep::Tell(_) => unreachable!("there is one process"),
            }
        }
    }
    let far = |a: Point, b: Point| graph.streams[a.0].node != graph.streams[b.0].node;
    let message = |(sent, got): (Option<(Point, bool)>, Option<Point>)| {
        let (from, far) = sent.unwrap();
        (from, got.unwrap(), far)
    };
    let mut all: Vec<_> = sent.into_iter().zip(got).map(message).collect();
    for (i, instance) in graph.instances.iter().enumerate() {
        let members = &graph.groups[instance.group as usize].sides[usize::from(instance.side)];
        let position = |p: Point| members.position(graph.streams[p.0].rank.into());
        for &a in &enters[i] {
            for &b in &leaves[i] {
                let before = instance.shape == Shape::Full || position(a) < position(b);
                if graph.streams[a.0].rank != graph.streams[b.0].rank && before {
                    all.push((a, b, far(a, b)));
                }
            }
        }
    }
    all
}
