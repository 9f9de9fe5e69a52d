//! What a comparison sees, and what it does not.

use std::process::Command;

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::names::{Location, Names};
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::sites::{CallSites, Frame, Module};
use st_model::values::{ANY_SOURCE, ANY_TAG, NONE};
use st_stat::diff::{Report, diff, unlike};
use st_stream::{Trace, WriteOptions};

use crate::common::{kernel, with_slow};
use st_kernels::{Kernel, Slow};
use st_reduce::merge::merge;

/// A rank of four that makes these calls: (function, site, words).
fn rank(calls: &[(&str, &str, &[i64])]) -> Vec<Section> {
    rank_of(4, calls)
}

fn rank_of(world: u32, calls: &[(&str, &str, &[i64])]) -> Vec<Section> {
    let mut r = RankRecorder::new(0, Options::default());
    let kind = "MPI_COMM_WORLD".into();
    let members = RankSeq::first(world);
    r.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
    let (words, parts) = (Vec::new(), Vec::new());
    r.objects.types.predefined(Type { kind: "MPI_INT".into(), words, parts, size: 4, lb: 0, extent: 4 });
    r.open_thread(0);
    for (name, site, words) in calls {
        let site = r.sites.label(site);
        let sym = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        r.record(0, sym, words, 0, 0);
    }
    vec![r.finish("host")]
}

fn compare(a: &[(&str, &str, &[i64])], b: &[(&str, &str, &[i64])], sites: bool) -> Report {
    let (a, b) = (rank(a), rank(b));
    let named = [&a, &b].map(|s| CallSites::of(s.iter().map(|s| &s.sites)));
    diff(&a, &b, sites.then_some(&named), &|_| ()).unwrap()
}

// count type dest tag comm; count type source tag comm rsource rtag bytes
const SEND: &[i64] = &[3, 0, 1, 7, 0];

#[test]
fn sites_count_only_on_request() {
    let (a, b) = ([("MPI_Send", "here", SEND)], [("MPI_Send", "there", SEND)]);
    assert!(compare(&a, &b, false).same());
    assert!(!compare(&a, &b, true).same());
}

#[test]
fn of_jobs_of_other_sizes_it_is_compared_what_is_called_from_where() {
    let four = [("MPI_Send", "here", SEND), ("MPI_Send", "there", SEND)];
    let other = [("MPI_Send", "here", &[9, 0, 3, 7, 0][..]), ("MPI_Send", "there", SEND)];
    let report = |world, calls: &[_]| {
        let (a, b) = (rank(&four), rank_of(world, calls));
        let named = [&a, &b].map(|s| CallSites::of(s.iter().map(|s| &s.sites)));
        diff(&a, &b, Some(&named), &|_| ()).unwrap()
    };
    let found = [report(4, &other), report(5, &other), report(5, &other[..1])];
    assert_eq!(
        found.each_ref().map(|r| (r.worlds, r.equal, r.different)),
        [(None, 1, 1), (Some([4, 5]), 2, 0), (Some([4, 5]), 1, 1)]
    );
}

#[test]
fn a_wildcard_equals_what_it_received() {
    let wild = [("MPI_Recv", "r", &[3, 0, ANY_SOURCE, ANY_TAG, 0, 2, 9, 12][..])];
    let named = [("MPI_Recv", "r", &[3, 0, 2, 9, 0, NONE, NONE, 12][..])];
    let other = [("MPI_Recv", "r", &[3, 0, 1, 9, 0, NONE, NONE, 12][..])];
    assert!(compare(&wild, &named, false).same());
    assert!(!compare(&wild, &other, false).same());
}

#[test]
fn a_non_blocking_wildcard_is_resolved_by_its_completion() {
    // requests, completed, source, tag, bytes
    let wait = ("MPI_Wait", "w", &[1, 0, 1, 0, 1, 2, 1, 9, 1, 12][..]);
    let wild = [("MPI_Irecv", "r", &[3, 0, ANY_SOURCE, 9, 0, 0][..]), wait];
    let named = [("MPI_Irecv", "r", &[3, 0, 2, 9, 0, 0][..]), wait];
    let other = [("MPI_Irecv", "r", &[3, 0, 3, 9, 0, 0][..]), wait];
    assert!(compare(&wild, &named, false).same());
    assert!(!compare(&wild, &other, false).same());
}

#[test]
fn a_persistent_wildcard_is_what_all_its_messages_were() {
    let (start, free) = (("MPI_Start", "s", &[0][..]), ("MPI_Request_free", "f", &[0][..]));
    let wait = ("MPI_Wait", "w", &[1, 0, 1, 0, 1, 2, 1, 9, 1, 12][..]);
    let from_three = ("MPI_Wait", "w", &[1, 0, 1, 0, 1, 3, 1, 9, 1, 12][..]);
    let wild = ("MPI_Recv_init", "r", &[3, 0, ANY_SOURCE, 9, 0, 0][..]);
    let named = ("MPI_Recv_init", "r", &[3, 0, 2, 9, 0, 0][..]);
    let twice = |init| [init, start, wait, start, wait, free];
    assert!(compare(&twice(wild), &twice(named), false).same());
    let mixed = |init| [init, start, wait, start, from_three, free];
    assert!(!compare(&mixed(wild), &mixed(named), false).same());
}

#[test]
fn failed_polls_and_split_clock_reads_do_not_count() {
    let yes = ("MPI_Test", "t", &[1, 0, 1, 1, 0, 1, 2, 1, 9, 1, 12, 1][..]);
    let no = ("MPI_Test", "t", &[1, 0, 0, 0, 0, 0, 0, 17][..]);
    assert!(compare(&[no, yes], &[yes], false).same());
    let clock = |site, n: &'static [i64]| ("MPI_Wtime", site, n);
    assert!(compare(&[clock("a", &[2]), clock("b", &[3])], &[clock("a", &[5])], false).same());
    assert!(!compare(&[clock("a", &[2])], &[clock("a", &[5])], false).same());
}

#[test]
fn a_missing_call_is_one_difference() {
    let call = |tag| ("MPI_Send", "s", [3, 0, 1, tag, 0]);
    let list = |tags: &[i64]| tags.iter().map(|&t| call(t)).collect::<Vec<_>>();
    let run = |a: &[i64], b: &[i64]| {
        let (a, b) = (list(a), list(b));
        let view = |l: &[(&'static str, &'static str, [i64; 5])]| {
            rank(&l.iter().map(|(n, s, w)| (*n, *s, &w[..])).collect::<Vec<_>>())
        };
        diff(&view(&a), &view(&b), None, &|_| ()).unwrap()
    };
    let r = run(&[1, 2, 3, 4, 5, 6], &[1, 2, 4, 5, 6]);
    assert_eq!((r.equal, r.different), (5, 1));
    assert_eq!(r.first[0].0.a.as_ref().unwrap().index, 2);
    assert!(r.first[0].0.b.is_none());
    let r = run(&[1, 2, 3], &[1, 9, 3]);
    assert_eq!((r.equal, r.different), (2, 1));
    assert!(run(&[], &[]).same());
}

#[test]
fn equal_calls_between_changed_ones_are_equal() {
    let run = |count: i64, more: usize| -> Vec<(&str, &str, [i64; 5])> {
        let steps = (0..60).flat_map(|i| {
            let extra = (more > 0 && i % 10 == 9).then_some(("MPI_Send", "extra", [1, 0, 2, 5, 0]));
            [("MPI_Send", "halo", [count, 0, 1, 7, 0]), ("MPI_Send", "sum", [1, 0, 2, 7, 0])]
                .into_iter()
                .chain(extra)
        });
        steps.collect()
    };
    let against = |b: &[(&str, &str, [i64; 5])]| {
        let a = run(3, 0);
        let [a, b] = [&a[..], b].map(|all| all.iter().map(|(n, s, w)| (*n, *s, &w[..])).collect::<Vec<_>>());
        let r = compare(&a, &b, true);
        (r.equal, r.different, r.first.len())
    };
    assert_eq!(against(&run(4, 0)), (60, 60, 1));
    // And others are missing in one of them: each of these by itself, too.
    assert_eq!(against(&run(4, 1)), (60, 66, 2));
}

/// A rank that makes a call from each of these addresses of a build of a program, called by these functions and lines.
fn built(build_id: &str, calls: &[(u64, &str, u32)]) -> Vec<Section> {
    let mut r = RankRecorder::new(0, Options::default());
    let program = Module { path: "/bin/app".into(), build_id: build_id.into() };
    let (key, module) = (program.key(), r.sites.module(program));
    let mut names = Names::default();
    r.open_thread(0);
    for (offset, function, line) in calls {
        let site = r.sites.stack(vec![Frame { module, offset: *offset }]);
        let sym = r.symbol(CallTable::builtin().by_name("MPI_Barrier").unwrap().id, site, 0);
        r.record(0, sym, &[0], 0, 0);
        let (function, file) = (Some((*function).into()), Some("/src/app.c".into()));
        names
            .insert((key, *offset), vec![Location { function, file, line: Some(*line), displacement: None }]);
    }
    r.sites.add_names(&names);
    vec![r.finish("host")]
}

#[test]
fn call_sites_of_two_builds_are_joined_by_their_names() {
    let (a, b) = (built("01", &[(16, "f", 3), (32, "g", 5)]), built("02", &[(64, "f", 3), (96, "g", 6)]));
    let named = [&a, &b].map(|s| CallSites::of(s.iter().map(|s| &s.sites)));
    let report = diff(&a, &b, Some(&named), &|_| ()).unwrap();
    assert_eq!((report.equal, report.different), (1, 1));
    assert_eq!(diff(&a, &b, None, &|_| ()).unwrap().equal, 2);
    // Of one build, whatever is known of names.
    let mut unnamed = a.clone();
    unnamed[0].sites.set_names(Names::default());
    let named = [&a, &unnamed].map(|s| CallSites::of(s.iter().map(|s| &s.sites)));
    assert_eq!(diff(&a, &unnamed, Some(&named), &|_| ()).unwrap().equal, 2);
}

#[test]
fn what_is_not_compared_is_counted() {
    // requests flag completed source tag bytes times; times
    let (failed, found) = (&[1, 0, 0, 0, 0, 0, 0, 40][..], &[1, 0, 1, 1, 0, 1, 1, 1, 9, 1, 12, 1][..]);
    let test = |words| ("MPI_Test", "t", words);
    let clock = ("MPI_Wtime", "c", &[7][..]);
    let irecv = ("MPI_Irecv", "r", &[3, 0, 1, 9, 0, 0][..]);
    let report = compare(&[irecv, test(failed), test(found), clock], &[irecv, test(found), clock], false);
    assert!(report.same(), "{report:?}");
    assert_eq!((report.equal, report.polls, report.failed), (9, (40, 0), (0, 0)));
}

#[test]
fn of_calls_that_look_alike_it_is_said_which_object_is_another() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [4, 2].map(|ranks| {
        let mut sections = rank(&[("MPI_Comm_rank", "main", &[0, 0]), ("MPI_Barrier", "main", &[0])]);
        let mut r = RankRecorder::new(0, Options::default());
        let (kind, members) = ("MPI_COMM_SELF".into(), RankSeq::first(ranks));
        r.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
        sections[0].tables.comms = r.finish("host").tables.comms;
        let path = dir.path().join(format!("{ranks}.st"));
        let trace = Trace { sections, ..Trace::default() };
        st_stream::write(&trace, std::fs::File::create(&path).unwrap(), WriteOptions::FILE).unwrap();
        path
    });
    let out = Command::new(env!("CARGO_BIN_EXE_st-stat")).arg("diff").args(&paths).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let reason = "MPI_COMM_SELF is another object: of 4 ranks in the first trace and of 2 in the\n  second\n";
    assert!(said.starts_with(reason) && said.matches("is another").count() == 1, "{said}");
    assert_eq!(said.matches("  + (the same of the other MPI_COMM_SELF)\n").count(), 2, "{said}");
    assert_eq!(out.status.code(), Some(4), "{said}");
    let out = Command::new(env!("CARGO_BIN_EXE_st-stat"))
        .args(["diff", "--format", "csv", "--limit", "0"])
        .args(&paths)
        .output()
        .unwrap();
    let rows = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    let object = "object,,,,MPI_COMM_SELF,of 4 ranks in the first trace and of 2 in the second";
    let head = ["what,calls,rank,thread,first,second", "equal,0,,,,", "different,2,,,,", object];
    assert_eq!(lines[..4], head, "{rows}");
    assert!(lines[4].starts_with("call site,1,0,0,") && lines.len() == 6, "{rows}");
    assert_eq!(lines[4].matches("MPI_Comm_rank").count(), 2, "{rows}");
    assert_eq!(out.status.code(), Some(4), "{rows}");
}

/// What is told of ranks whose structure is the same is what their calls tell, however they are compared.
#[test]
fn equal_structures_are_compared_as_their_calls_are() {
    let kernels = [Kernel::Stencil2d, Kernel::Workers, Kernel::Halo, Kernel::Amr, Kernel::Fft];
    for which in kernels {
        let slow = [Slow { rank: 1, factor: 2.0 }];
        let a = vec![merge(kernel(which, 4, 6), false).unwrap()];
        let b = vec![merge(with_slow(which, 4, 6, &slow), false).unwrap()];
        let other = vec![merge(kernel(which, 4, 7), false).unwrap()];
        // A symbol that nobody calls: what is stored is not the same any more.
        let walked = |sections: &[Section]| {
            let mut sections = sections.to_vec();
            for section in &mut sections {
                section.symbols.push(section.symbols[0]);
                section.threads.iter_mut().for_each(|thread| thread.params.push(Vec::new()));
            }
            sections
        };
        let told = |b: &[Section]| {
            let named = [&a[..], b].map(|s| CallSites::of(s.iter().map(|s| &s.sites)));
            let r = diff(&a, b, Some(&named), &|_| ()).unwrap();
            (
                unlike(&a, b, Some(&named)).unwrap().len(),
                (r.equal, r.different, r.failed, r.polls, r.unmatched),
            )
        };
        for b in [&a, &b, &other] {
            let (found, looked) = (told(b), told(&walked(b)));
            assert_eq!(found.1, looked.1, "{which:?}");
            assert_eq!(looked.0, 4, "{which:?}");
        }
        assert_eq!(told(&a).0, 0, "{which:?}");
        assert_ne!(told(&other).0, 0, "{which:?}");
    }
}
