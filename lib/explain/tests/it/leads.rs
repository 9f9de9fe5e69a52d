//! Ranks that start MPI on one thread and end it on another.

use st_capture::record::{Options, RankRecorder};
use st_explain::{PhasesBy, analyse_causes, analyse_each, phases};
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::objects::Comm;
use st_model::rank_times::{RankTime, other_threads, rank_times};
use st_model::ranks::RankSeq;
use st_model::section::Section;

/// A call of a thread: from when to when, ns.
type Timed = (usize, &'static str, i64, i64);

/// One of two ranks, whose calls are recorded in this order.
fn rank(rank: u32, calls: &[Timed]) -> Section {
    let mut r = RankRecorder::new(rank, Options::default());
    let (members, remote) = (RankSeq::first(2), RankSeq::default());
    r.objects.comms.predefined(Comm { kind: "world".into(), parent: 0, members, remote });
    let mut threads = 0;
    for (thread, name, enter, exit) in calls {
        if *thread == threads {
            threads = r.open_thread(*enter) + 1;
        }
        let site = r.sites.label(if *thread == 0 { "start" } else { "work" });
        let symbol = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        let words: &[i64] = if *name == names::MPI_Barrier { &[0] } else { &[] };
        assert!(r.record(*thread, symbol, words, *enter, *exit).is_none());
    }
    let chunks = r.flush_columns();
    let mut section = r.finish("host");
    for (thread, chunk) in chunks {
        section.threads[usize::try_from(thread).unwrap()].columns =
            vec![(rank, Column { chunks: vec![chunk], ..Column::default() })];
    }
    section
}

/// MPI is started on a thread that ends soon; another one does the work, for which rank 0 computes and rank 1 waits.
fn started_elsewhere() -> Vec<Section> {
    let of = |me: u32| {
        let mut calls = vec![(0, names::MPI_Init, 0, 100), (0, names::MPI_Barrier, 110, 200)];
        for begin in [300, 1300, 2300] {
            calls.push((1, names::MPI_Barrier, begin + if me == 0 { 990 } else { 0 }, begin + 1000));
        }
        calls.push((1, names::MPI_Finalize, 3300, 3400));
        rank(me, &calls)
    };
    vec![of(0), of(1)]
}

#[test]
fn the_thread_that_works_stands_for_a_rank_whose_first_one_ends_soon() {
    let sections = started_elsewhere();
    let times = |mpi, rank| vec![RankTime { rank, whole: 3200, mpi, paused: 0 }];
    assert_eq!(sections.iter().map(rank_times).collect::<Vec<_>>(), [times(30, 0), times(3000, 1)]);
    assert_eq!((other_threads(&sections).threads, other_threads(&sections).mpi), (2, 180));
    let found = analyse_causes(&sections, &|_| ()).unwrap();
    let ranks: Vec<_> = found.ranks.iter().map(|r| (r.begin, r.end, r.mpi, r.wait.ns)).collect();
    assert_eq!(ranks, [(100, 3300, 30, 0), (100, 3300, 3000, 2970)]);
    let efficiency = found.efficiency();
    assert_eq!((efficiency.run, efficiency.longest, efficiency.mean), (3200, 3170, 1685));
    assert!(efficiency.ideal <= efficiency.run, "{efficiency:?}");
    assert_eq!(found.path().time(), 3200);
    assert_eq!(found.path().ranks, [(0, 3190), (1, 10)]);
    let delays = found.delays(&[]);
    assert!((delays.waits - 2970.0).abs() < 1e-6 && delays.unexplained().abs() < 1e-6, "{delays:?}");
    let each = analyse_each(&sections, &|_| ()).unwrap();
    let loops = phases(&sections, PhasesBy::Loop, &each.each, &each.lanes).unwrap();
    assert_eq!(loops.iter().map(|l| (l.turns.len(), l.whole().wait)).collect::<Vec<_>>(), [(3, 2970)]);
}

#[test]
fn a_rank_s_time_goes_on_to_its_end_on_another_thread() {
    let calls = [
        (0, names::MPI_Init, 0, 100),
        (0, names::MPI_Barrier, 2900, 3000),
        (1, names::MPI_Finalize, 3300, 3400),
    ];
    let sections = [rank(0, &calls), rank(1, &calls)];
    assert_eq!(rank_times(&sections[0]), [RankTime { rank: 0, whole: 3200, mpi: 100, paused: 0 }]);
    let found = analyse_causes(&sections, &|_| ()).unwrap();
    assert_eq!((found.run(), found.path().time(), found.ranks[1].computation()), (3200, 3200, 3100));
}
