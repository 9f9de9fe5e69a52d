//! Little parallel programs, a call a line.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::columns::Column;
use st_model::objects::{Comm, Op, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;

/// A rank on its way through the program.
struct Recording {
    recorder: RankRecorder,
    /// How many it has.
    threads: usize,
    /// Exact times of the first thread.
    column: Column,
    now: i64,
}

/// The ranks' sections of a program written as `RANK FUNCTION NAME=WORD,WORD…`, with `*` for all ranks and `RANK/THREAD` for a
/// further thread, which has no exact times. Words that are
/// not named are 0, -9 for resolved ones, or empty lists. Communicators 0 and 1 are world and self, 2 an
/// intercommunicator between the lower and the upper half; types 0 and 1 have 4 and 8 bytes. A call takes 5 ns and comes
/// 10 ns after the one before. The call site is `line N`; a line that is empty or begins with # is none.
pub(crate) fn sections(ranks: u32, program: &str) -> Vec<Section> {
    let half = ranks / 2;
    let recorder = |rank: u32| {
        let mut recorder = RankRecorder::new(rank, Options::default());
        let low = RankSeq::from_iter(0..half);
        let high = RankSeq::from_iter(half..ranks);
        let (members, remote) = if rank < half { (low, high) } else { (high, low) };
        for (kind, parent, members, remote) in [
            ("MPI_COMM_WORLD", 0, RankSeq::first(ranks), RankSeq::default()),
            ("MPI_COMM_SELF", 0, RankSeq::from_iter([rank]), RankSeq::default()),
            ("two sides", 1, members, remote),
        ] {
            recorder.objects.comms.predefined(Comm { kind: kind.into(), parent, members, remote });
        }
        for (kind, size) in [("MPI_INT", 4), ("MPI_DOUBLE", 8)] {
            let (words, parts) = (Vec::new(), Vec::new());
            recorder.objects.types.predefined(Type {
                kind: kind.into(),
                words,
                parts,
                size,
                lb: 0,
                extent: size,
            });
        }
        for kind in ["MPI_SUM", "MPI_MAX"] {
            recorder.objects.ops.predefined(Op { kind: kind.into(), commutes: true });
        }
        recorder.open_thread(0);
        Recording { recorder, threads: 1, column: Column::default(), now: 0 }
    };
    let mut all: Vec<Recording> = (0..ranks).map(recorder).collect();
    for (n, line) in (1..).zip(program.lines()) {
        let mut fields = line.split_whitespace();
        let Some(rank) = fields.next().filter(|f| !f.starts_with('#')) else { continue };
        let (name, error) = fields.next().map(|f| f.split_once('!').unwrap_or((f, "0"))).unwrap();
        let words: Vec<(&str, &str)> = fields.map(|f| f.split_once('=').unwrap()).collect();
        let (rank, thread) = rank.split_once('/').unwrap_or((rank, "0"));
        let (only, thread) = (rank.parse::<usize>().ok(), thread.parse::<usize>().unwrap());
        for Recording { recorder, threads, column, now } in
            all.iter_mut().enumerate().filter(|(r, _)| only.is_none_or(|o| o == *r)).map(|(_, a)| a)
        {
            let site = recorder.sites.label(&format!("line {n}"));
            let row = CallTable::builtin().by_name(name).unwrap();
            let sym = recorder.symbol(row.id, site, error.parse().unwrap());
            if thread == *threads {
                recorder.open_thread(0);
                *threads += 1;
            }
            let chunk = recorder.record(thread, sym, &flat(row, &words), *now + 10, *now + 15);
            column.chunks.extend(chunk.map(|c| *c).filter(|_| thread == 0));
            *now += 15;
        }
    }
    let finish = |(rank, Recording { mut recorder, mut column, .. }): (u32, Recording)| {
        let chunks = recorder.flush_columns().into_iter().filter(|(thread, _)| *thread == 0);
        column.chunks.extend(chunks.map(|(_, chunk)| chunk));
        let mut section = recorder.finish("host");
        section.threads[0].columns = vec![(rank, column)];
        section
    };
    (0..).zip(all).map(finish).collect()
}

fn flat(row: &st_model::calls::Row, words: &[(&str, &str)]) -> Vec<i64> {
    let mut flat = Vec::new();
    let named = |name: &str| row.slots.iter().any(|s| s.name == name);
    assert!(words.iter().all(|(name, _)| named(name)), "{}: {words:?}", row.name);
    for slot in &row.slots {
        let given = words.iter().find(|(n, _)| *n == slot.name).map(|(_, w)| *w);
        let list = given.map(|g| g.split(',').map(|w| w.parse::<i64>().unwrap()).collect::<Vec<_>>());
        if slot.list {
            let list = list.unwrap_or_default();
            flat.push(i64::try_from(list.len()).unwrap());
            flat.extend(list);
        } else {
            let usual = match slot.name.as_str() {
                "rsource" | "rtag" => -9,
                "times" => 1,
                _ => 0,
            };
            flat.push(list.map_or(usual, |l| l[0]));
        }
    }
    flat
}
