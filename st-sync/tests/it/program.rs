//! Little parallel programs, written down call by call, with the edges that their messages must give.

use st_trace::calls::CallTable;
use st_trace::columns::Column;
use st_trace::objects::{Comm, Op, Type};
use st_trace::ranks::RankSeq;
use st_trace::record::{Options, RankRecorder};
use st_trace::section::Section;

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
    column: Column,
    calls: u32,
    requests: Vec<bool>,
    host: String,
}

/// A program being written down.
pub(crate) struct Program {
    ranks: Vec<Rank>,
    /// What must come before what.
    pub(crate) edges: Vec<(Point, Point)>,
}

impl Program {
    pub(crate) fn new(nodes: &[usize]) -> Self {
        let world = u32::try_from(nodes.len()).unwrap();
        let rank = |(i, node): (u32, &usize)| {
            let mut recorder = RankRecorder::new(i, Options::default());
            for (kind, members) in
                [("MPI_COMM_WORLD", RankSeq::first(world)), ("MPI_COMM_SELF", RankSeq::from_iter([i]))]
            {
                let remote = RankSeq::default();
                recorder.comms.predefined(Comm { kind: kind.into(), parent: 0, members, remote });
            }
            let int =
                Type { kind: "MPI_INT".into(), words: vec![], parts: vec![], size: 4, lb: 0, extent: 4 };
            recorder.types.predefined(int);
            recorder.ops.predefined(Op { kind: "MPI_SUM".into(), commutes: true });
            recorder.sites.label("program");
            recorder.open_thread(0);
            Rank { recorder, column: Column::default(), calls: 0, requests: vec![], host: format!("n{node}") }
        };
        Self { ranks: (0..).zip(nodes).map(rank).collect(), edges: Vec::new() }
    }

    /// Records a call; returns its enter point. Slots that are not named are 0, -9 for resolved ones, or empty.
    pub(crate) fn call(
        &mut self,
        rank: usize,
        name: &str,
        words: &[(&str, Word)],
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
        let r = &mut self.ranks[rank];
        let sym = r.recorder.symbol(row.id, 0, 0);
        r.column.chunks.extend(r.recorder.record(0, sym, &flat, times.0, times.1));
        r.calls += 1;
        (rank, 2 * (r.calls - 1))
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
            let mut column = r.column;
            column.chunks.extend(r.recorder.flush_columns().into_iter().map(|(_, c)| c));
            let mut section = r.recorder.finish(&r.host);
            section.threads[0].columns = vec![(u32::try_from(i).unwrap(), column)];
            section
        };
        self.ranks.into_iter().enumerate().map(finish).collect()
    }
}

/// The exit of the call that is entered at a point.
pub(crate) fn exit(p: Point) -> Point {
    (p.0, p.1 + 1)
}
