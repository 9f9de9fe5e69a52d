//! In which order ranks were slow outlives merging, where exact times say it.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use clap::Parser;
use st_capture::record::{Options, RankRecorder};
use st_cli::Status;
use st_merge::args::Args;
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::header::Header;
use st_model::objects::Comm;
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::slow::How;
use st_stream::{ReadOptions, Trace, WriteOptions};

const RANKS: u32 = 4;
const STEPS: i64 = 60;

/// A rank that computes ten times as long when it is its turn, and asks for its number then.
fn ranked(rank: u32) -> Section {
    let mut recorder = RankRecorder::new(rank, Options::default());
    let members = RankSeq::first(RANKS);
    let world = Comm { kind: "MPI_COMM_WORLD".into(), parent: 0, members, remote: RankSeq::default() };
    recorder.objects.comms.predefined(world);
    recorder.open_thread(0);
    let site = recorder.sites.label("line 1");
    let sym = recorder.symbol(CallTable::builtin().by_name(names::MPI_Comm_rank).unwrap().id, site, 0);
    let mut now = 0;
    let mut column = Column::default();
    for step in 0..=STEPS {
        now += if step % i64::from(RANKS) == i64::from(rank) { 10_000_000 } else { 1_000_000 } + step * 7;
        let full = recorder.record(0, sym, &[0, rank.into()], now, now + 500);
        column.chunks.extend(full.map(|chunk| *chunk));
        now += 500;
    }
    column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
    let mut section = recorder.finish("host");
    section.threads[0].columns.push((rank, column));
    section
}

fn merged(options: &[&str]) -> Section {
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["app.st", "merged.st"].map(|n| dir.path().join(n).to_str().unwrap().to_owned());
    let header = Header { world: RANKS, program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections: (0..RANKS).map(ranked).collect(), ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(&from).unwrap(), WriteOptions { level: 1 }).unwrap();
    let words = ["st-merge", "-q", "-o", &to, &from];
    let args = Args::try_parse_from(words.iter().chain(options)).unwrap();
    assert_eq!(st_merge::run(&args).unwrap(), Status::Ok);
    let read = st_stream::read(std::fs::File::open(to).unwrap(), ReadOptions::default()).unwrap();
    read.sections.into_iter().next().unwrap()
}

#[test]
fn in_which_order_ranks_were_slow_is_kept_where_exact_times_say_it() {
    let section = merged(&[]);
    let thread = &section.threads[0];
    assert!(thread.columns.is_empty());
    let [slow] = &thread.slow[..] else { panic!("{:?}", thread.slow) };
    let How::Steps(steps) = &slow.how else { panic!("{slow:?}") };
    let of = steps.of_rank(2, RANKS.into()).unwrap();
    // Before the first call nothing is known to be computed.
    let turns = (1..=STEPS).map(|step| u8::from(step % 4 == 2));
    assert_eq!(of[1..].to_vec(), turns.collect::<Vec<_>>());
    assert!(!st_model::unknown_order::is_unknown(&section));
    // Nobody has looked, or exact times say all.
    assert!(merged(&["--waits", "never"]).threads[0].slow.is_empty());
    let exact = merged(&["--keep-columns"]);
    assert!(exact.threads[0].slow.is_empty() && exact.threads[0].columns.len() == 4);
}
