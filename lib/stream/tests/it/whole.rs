//! Whole sections.

use crate::sections::{Plan, recorder};
use st_capture::record::RankRecorder;
use st_model::calls::CallTable;
use st_model::columns::{Chunk, Column};
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Ended, Form, NO_SYM, Partition, RankSums, Section};
use st_model::sketch::Shape;
use st_model::slow::{How, Slow, Steps};

fn finish(r: RankRecorder, rank: u32, chunks: Vec<(usize, Chunk)>) -> Section {
    let mut columns = [Column::default(), Column::default()];
    chunks.into_iter().for_each(|(thread, c)| columns[thread].chunks.push(c));
    let mut s = r.finish("node \"1\"");
    for ((t, c), unit) in s.threads.iter_mut().zip(columns).zip([1, 100]) {
        if !c.chunks.is_empty() {
            t.columns.push((rank, c.rounded(unit)));
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
            |chunks, _, thread, event| chunks.extend(event.3.map(|c| (thread, c))),
        );
        let open = r.flush_columns();
        chunks.extend(open.into_iter().map(|(t, c)| (usize::try_from(t).unwrap(), c)));
        finish(r, rank, chunks)
    }
}

/// A small trace of a rank: a loop of sends and a reduction, equal but for what depends on the rank.
pub(crate) fn sample(rank: u32) -> Section {
    let mut r = recorder(rank, Shape::Buckets);
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
            chunks.extend(r.record(0, sym, &words, now + 50, now + 60 + i).map(|c| (0, *c)));
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
        Elastic { form: Form::RELATIVE, partition: 0, streams: [Sealed::from_constant(1)].into() };
    let quantised = |v: Vec<i64>| Sealed::from(v);
    let ended = Ended { rank: 0, thread: 0, calls: 30, last: 2, inside: 1, entered: 9000 };
    s.ended = vec![ended, Ended { rank: 1, last: NO_SYM, inside: NO_SYM, entered: 0, ..ended }];
    thread.sums.push(RankSums { sym: 1, compute: quantised(vec![30, 31]), comm: quantised(vec![40, 40]) });
    let steps = Steps::new(vec![70, 900], &[vec![0, 2, 1], vec![1, 0, 0]]);
    thread.slow = vec![Slow { sym: 1, how: How::Steps(steps) }, Slow { sym: 2, how: How::Chance(-64) }];
    s
}
