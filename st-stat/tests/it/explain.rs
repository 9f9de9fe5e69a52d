//! Who waits for whom, from a file to what is printed.

use std::path::{Path, PathBuf};

use clap::Parser;
use st_capture::record::{Options, RankRecorder};
use st_cli::Status;
use st_explain::Folding;
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::header::{Header, Queued, TIME_BUDGET};
use st_model::objects::Comm;
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::steps::Budget;
use st_stat::args::Args;
use st_stream::{Trace, WriteOptions};

/// What there is of exact times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    All,
    /// They have been folded, and what they tell of waits has been kept.
    Kept,
    No,
}

/// A trace of ranks that compute for so many ms before each of ten barriers.
fn trace(path: &Path, computed: &[i64], times: Times) {
    let rank = |(rank, ms): (u32, &i64)| {
        let mut r = RankRecorder::new(rank, Options::default());
        let (members, remote) = (RankSeq::first(3), RankSeq::default());
        r.objects.comms.predefined(Comm { kind: "world".into(), parent: 0, members, remote });
        r.open_thread(0);
        let id = |name| CallTable::builtin().by_name(name).unwrap().id;
        let site = |r: &mut RankRecorder, label| r.sites.label(label);
        let (main, work) = (site(&mut r, "main"), site(&mut r, "work app.c:7"));
        let [init, barrier, end] =
            [(names::MPI_Init, main), (names::MPI_Barrier, work), (names::MPI_Finalize, main)]
                .map(|(name, site)| r.symbol(id(name), site, 0));
        let last = *computed.iter().max().unwrap() * 1_000_000;
        r.record(0, init, &[], 0, 1000);
        let mut now = 1000;
        for _ in 0..10 {
            r.record(0, barrier, &[0], now + ms * 1_000_000, now + last + 1000);
            now += last + 1000;
        }
        r.record(0, end, &[], now, now + 1000);
        let chunks = r.flush_columns().into_iter().map(|(_, chunk)| chunk).collect();
        let mut section = r.finish("host");
        if times != Times::No {
            section.threads[0].columns = vec![(rank, Column { chunks, ..Column::default() })];
        }
        section
    };
    let mut sections: Vec<_> = (0..).zip(computed).map(rank).collect();
    let mut explanation = None;
    if times == Times::Kept {
        assert_eq!(
            Folding::new(1000).keep(&mut explanation, &sections, 36, &Budget::default(), &|_| ()),
            None
        );
        sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|t| t.columns.clear());
    }
    let header = Header { world: 3, program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections, explanation, level: 0, ..Trace::default() };
    let mut file = std::fs::File::create(path).unwrap();
    st_stream::write(&trace, &mut file, WriteOptions { level: 0 }).unwrap();
}

/// What a command prints of such a trace.
fn printed(computed: &[i64], timed: bool, command: &[&str]) -> anyhow::Result<String> {
    printed_of(computed, if timed { Times::All } else { Times::No }, command)
}

fn printed_of(computed: &[i64], times: Times, command: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir().unwrap();
    let [stream, out]: [PathBuf; 2] = ["app.st", "out"].map(|n| dir.path().join(n));
    trace(&stream, computed, times);
    let paths = [stream.to_str().unwrap(), "-q", "-o", out.to_str().unwrap()];
    let words = ["st-stat"].iter().chain(command).chain(&paths);
    assert_eq!(st_stat::run(&Args::try_parse_from(words)?)?, Status::Ok);
    Ok(std::fs::read_to_string(&out)?)
}

#[test]
fn why_names_rank_place_and_cost() {
    let said = printed(&[10, 60, 10], true, &["why"]).unwrap();
    assert!(said.contains("55.6 %    1.00 s  imbalance: ranks 0, 2 wait for rank 1\n"), "{said}");
    assert!(said.contains("at MPI_Barrier (site "), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("100.0 % since rank 1 computes longer before it (measured)"), "{said}");
}

#[test]
fn why_is_silent_where_nothing_is_wrong() {
    let said = printed(&[10, 10, 10], true, &["why"]).unwrap();
    assert!(said.contains("all is well"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn waits_are_added_up_by_what_is_asked() {
    let by = |what| printed(&[10, 60, 10], true, &["waits", "--format", "csv", "--by", what]).unwrap();
    let total = "1000000000,55.6,20,50000000";
    assert_eq!(by("kind"), format!("kind,wait_ns,share_percent,waits,longest_ns\nwait at barrier,{total}\n"));
    assert_eq!(by("rank").lines().nth(1), Some("0,500000000,27.8,10,50000000"));
    assert_eq!(
        by("pair").lines().skip(1).collect::<Vec<_>>(),
        ["0,1,500000000,27.8,10,50000000", "2,1,500000000,27.8,10,50000000"]
    );
    assert!(by("site").contains(&format!("wait at barrier,MPI_Barrier,{total},")));
    assert!(by("culprit").contains(&format!("wait at barrier,1,MPI_Barrier,{total},")));
}

#[test]
fn delays_are_those_of_the_rank_that_computes_longer() {
    let of = |words: &[&str]| {
        printed(&[10, 60, 10], true, &[&["delays", "--format", "csv"], words].concat()).unwrap()
    };
    let head = "cost_ns,share_percent,short_term_ns,long_term_ns,direct_ns,indirect_ns";
    let by_site = of(&[]);
    let lines: Vec<&str> = by_site.lines().collect();
    assert_eq!(lines[0], format!("activity,function,rank,{head},site,place"));
    assert!(
        lines[1].starts_with("computation,MPI_Barrier,1,1000000000,100.0,1000000000,0,0,0,"),
        "{by_site}"
    );
    for (line, rank) in lines[2..].iter().zip([0, 2]) {
        assert!(line.starts_with(&format!("call,MPI_Barrier,{rank},0,0.0,0,0,500000000,0,")), "{by_site}");
    }
    assert_eq!(lines.len(), 4);
    let rows = "1,1000000000,100.0,1000000000,0,0,0\n0,0,0.0,0,0,500000000,0\n2,0,0.0,0,0,500000000,0\n";
    assert_eq!(of(&["--by", "rank"]), format!("rank,{head}\n{rows}"));
    let said = printed(&[10, 60, 10], true, &["delays"]).unwrap();
    assert!(said.lines().any(|l| l.starts_with("before  MPI_Barrier     1  1.00 s  100.0 %")), "{said}");
}

#[test]
fn the_critical_path_is_the_run() {
    let said = printed(&[10, 60, 10], true, &["path"]).unwrap();
    let head = "critical path: 600 ms on 2 of 3 ranks, moves once; 100.0 % of it on rank 1\n";
    assert!(said.starts_with(head), "{said}");
    let csv = printed(&[10, 60, 10], true, &["path", "--format", "csv"]).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    let columns =
        "activity,function,path_ns,share_percent,ranks,imbalance_ns,impact_ns,headroom_ns,site,place";
    assert_eq!(lines[0], columns);
    assert!(
        lines[1].starts_with("computation,MPI_Barrier,600000000,100.0,1,333333333,800000000,1000000000,"),
        "{csv}"
    );
    // The last call of the rank that ends last, and those of the other.
    assert!(lines[2].starts_with("call,MPI_Barrier,10000,0.0,2,0,30000,0,"), "{csv}");
    assert_eq!(lines.len(), 3);
    let refused = printed(&[10, 60, 10], false, &["path"]).unwrap_err();
    assert!(format!("{refused:#}").contains("--merge"), "{refused:#}");
}

#[test]
fn efficiencies_and_ranks() {
    let e = printed(&[10, 60, 10], true, &["efficiency", "--format", "csv"]).unwrap();
    assert!(e.contains("run time,600010000\n") && e.contains("on an ideal network,600000000\n"), "{e}");
    assert!(e.contains("\"computation, longest\",600000000\n"), "{e}");
    let ranks = printed(&[10, 60, 10], true, &["ranks", "--format", "csv"]).unwrap();
    let first = "rank,time_ns,computation_ns,mpi_ns,wait_ns,computation_percent\n0,600010000,100000000,500010000,500000000,37.5\n";
    assert!(ranks.starts_with(first), "{ranks}");
}

#[test]
fn without_exact_times_sums_tell_what_they_can() {
    let said = printed(&[10, 60, 10], false, &["why"]).unwrap();
    assert!(said.contains("no exact times") && said.contains("imbalance: rank 1 computes"), "{said}");
    let refused = printed(&[10, 60, 10], false, &["waits"]).unwrap_err();
    assert!(format!("{refused:#}").contains("--merge"), "{refused:#}");
    // Which trace it is stands before that.
    assert!(refused.to_string().ends_with(".st"), "{refused:#}");
    let ranks = printed(&[10, 60, 10], false, &["ranks", "--format", "csv"]).unwrap();
    assert!(ranks.contains("\n1,600010000,600000000,10000,,225.0\n"), "{ranks}");
}

#[test]
fn what_was_kept_of_exact_times_says_the_same() {
    let both =
        |words: &[&str]| [Times::All, Times::Kept].map(|t| printed_of(&[10, 60, 10], t, words).unwrap());
    let [live, kept] = both(&["why"]);
    let said = |text: &str| match text.split_once("(kept when") {
        Some((head, rest)) => head.to_owned() + rest.split_once(")\n").unwrap().1,
        None => text.to_owned(),
    };
    assert!(kept.contains("costs are exact") && !live.contains("costs are exact"), "{kept}");
    assert_eq!(said(&kept), said(&live));
    for words in [
        &["why", "--format", "csv"][..],
        &["why", "--format", "json"],
        &["waits", "--format", "csv"],
        &["waits", "--by", "site"],
        &["waits", "--by", "rank", "--format", "csv"],
        &["waits", "--by", "culprit", "--format", "json"],
        &["delays", "--format", "csv"],
        &["delays", "--by", "rank"],
        &["efficiency"],
        &["ranks", "--format", "csv"],
    ] {
        let [live, kept] = both(words);
        assert_eq!(kept, live, "{words:?}");
    }
}

#[test]
fn what_takes_exact_times_is_refused_without_these() {
    let refused =
        |words: &[&str]| format!("{:#}", printed_of(&[10, 60, 10], Times::Kept, words).unwrap_err());
    assert!(refused(&["path"]).contains("holds no exact times"));
    assert!(refused(&["waits", "--by", "pair"]).contains("--keep-columns"));
}

#[test]
fn what_is_kept_of_other_ranks_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let [part, out]: [PathBuf; 2] = ["part.st", "out"].map(|n| dir.path().join(n));
    trace(&part, &[10, 60, 10], Times::Kept);
    let mut read =
        st_stream::read(&std::fs::read(&part).unwrap()[..], st_stream::ReadOptions::default()).unwrap();
    read.sections.pop();
    st_stream::write(&read, std::fs::File::create(&part).unwrap(), WriteOptions { level: 0 }).unwrap();
    let words = ["st-stat", "why", "-q", "-o", out.to_str().unwrap(), part.to_str().unwrap()];
    assert_eq!(st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap(), Status::Ok);
    assert!(std::fs::read_to_string(&out).unwrap().contains("holds no exact times"));
}

#[test]
fn who_takes_back_the_buffer_waits_for_those_who_receive_what_was_in_it() {
    let ms = |from: i64, until: i64| (from * 1_000_000, until * 1_000_000);
    let [mut sender, mut receiver] = [0, 1].map(|rank| crate::common::Rank::new(rank, 2));
    sender.call(names::MPI_Init, "main", &[], ms(0, 1));
    sender.call(names::MPI_Bsend, "sends", &[100_000, 0, 1, 5, 0], ms(2, 3));
    sender.call(names::MPI_Buffer_detach, "detaches", &[1 << 20], ms(4, 101));
    sender.call(names::MPI_Finalize, "main", &[], ms(102, 103));
    receiver.call(names::MPI_Init, "main", &[], ms(0, 1));
    receiver.call(names::MPI_Recv, "receives", &[100_000, 0, 0, 5, 0, -9, -9, 100_000], ms(100, 101));
    receiver.call(names::MPI_Finalize, "main", &[], ms(102, 103));
    let sections = [sender, receiver].map(|rank| rank.finish("host")).to_vec();
    let text = crate::common::printed(sections, &["why"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("96.0 ms late receiver: ") && text.contains("at MPI_Buffer_detach ("), "{text}");
}

#[test]
fn that_few_of_many_calls_are_at_fault_is_said() {
    let why = |late: fn(i64) -> bool| {
        let rank = |rank: u32| {
            let (mut r, mut now) = (crate::common::Rank::new(rank, 2), 1_000_000);
            r.call(names::MPI_Init, "main", &[], (0, now));
            for step in 0..200 {
                let last = now + if late(step) { 100_000_000 } else { 1_000_000 };
                let enter = if rank == 1 { last } else { now + 1_000_000 };
                now = last + 1_000;
                r.call(names::MPI_Barrier, "work", &[0], (enter, now));
            }
            r.call(names::MPI_Finalize, "main", &[], (now, now + 1_000));
            r.finish("host")
        };
        let text = crate::common::printed((0..2).map(rank).collect(), &["why"]);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let few = why(|step| step % 100 == 50);
    assert!(
        few.contains("imbalance: rank 0 waits for rank 1") && few.contains("; 100.0 % in 2 of 200 calls; "),
        "{few}"
    );
    assert!(!why(|_| true).contains("of 200 calls"));
}

#[test]
fn that_the_time_budget_was_spent_is_said_where_exact_times_were_folded() {
    let dir = tempfile::tempdir().unwrap();
    let [path, out]: [PathBuf; 2] = ["app.st", "out"].map(|n| dir.path().join(n));
    trace(&path, &[10, 60, 10], Times::No);
    let mut read =
        st_stream::read(&std::fs::read(&path).unwrap()[..], st_stream::ReadOptions::default()).unwrap();
    read.header.options.insert(st_model::header::SPENT.into(), 2.into());
    read.header.options.insert(TIME_BUDGET.into(), 20_000.into());
    st_stream::write(&read, std::fs::File::create(&path).unwrap(), WriteOptions { level: 0 }).unwrap();
    let said = |command: &str| {
        let words = ["st-stat", command, "-q", "-o", out.to_str().unwrap(), path.to_str().unwrap()];
        match st_stat::run(&Args::try_parse_from(words).unwrap()) {
            Ok(_) => std::fs::read_to_string(&out).unwrap(),
            Err(e) => format!("{e:#}"),
        }
    };
    for command in ["why", "waits", "path", "predict", "phases"] {
        let said = said(command);
        assert!(
            said.contains("those of 2 threads ended early, since st-record's --time-budget of 20.0 kB"),
            "{command}: {said}"
        );
        assert!(!said.contains("--merge"), "{command}: {said}");
    }
}

/// What `st-stat why` says of three ranks on one processor, of which the kernel says that they had none for so many ns.
fn crowded(queued: Option<u64>, change: impl Fn(&mut Section)) -> String {
    crowded_as("text", queued, change)
}

fn crowded_as(format: &str, queued: Option<u64>, change: impl Fn(&mut Section)) -> String {
    lacking(format, ([10, 60, 10], 1), queued, change)
}

/// The same of ranks that compute for so many ms each time, on so many processors.
fn lacking(
    format: &str,
    (computed, processors): ([i64; 3], u32),
    queued: Option<u64>,
    change: impl Fn(&mut Section),
) -> String {
    let dir = tempfile::tempdir().unwrap();
    let [path, out]: [PathBuf; 2] = ["app.st", "out"].map(|n| dir.path().join(n));
    trace(&path, &computed, Times::All);
    let mut read =
        st_stream::read(&std::fs::read(&path).unwrap()[..], st_stream::ReadOptions::default()).unwrap();
    read.header.processors = [(processors, 1)].into();
    read.header.queued = queued.map(|ns| Queued { ns, ranks: 3, longest_ns: ns, longest_rank: 1 });
    read.sections.iter_mut().for_each(change);
    st_stream::write(&read, std::fs::File::create(&path).unwrap(), WriteOptions { level: 0 }).unwrap();
    let [to, from] = [&out, &path].map(|path| path.to_str().unwrap());
    let words = ["st-stat", "why", "-q", "--format", format, "-o", to, from];
    assert_eq!(st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap(), Status::Ok);
    let text = std::fs::read_to_string(&out).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn more_ranks_than_processors_weigh_what_they_cost() {
    let before = |text: &str| {
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        at("crowded: 3 ranks of a node run on 1 processor") < at("imbalance:")
    };
    // All ranks' time is 1.8 s, and 1 s of it is waiting: all of that may have been ready to run.
    let most = crowded(Some(2_600_000_000), |_| ());
    assert!(before(&most) && most.contains("88.9 % 1.60 s crowded"), "{most}");
    assert!(
        most.contains("on 1 processor;")
            && most.contains("for 2.60 s, at least 1.60 s of it outside of calls"),
        "{most}"
    );
    let waits = crowded(Some(900_000_000), |_| ());
    assert!(!before(&waits) && waits.contains("for 900 ms, all of which may be in calls"), "{waits}");
    // Without sketches exact times say how long ranks were in calls.
    let exact = |section: &mut Section| section.threads.iter_mut().for_each(|t| t.sketches.clear());
    assert_eq!(crowded(Some(2_600_000_000), exact), most);
    assert_eq!(crowded(Some(900_000_000), exact), waits);
    for (queued, said) in [
        (Some(2_000_000), "hardly ever were ready to run"),
        (Some(0), "is not known"),
        (None, "is not known"),
    ] {
        let text = crowded(queued, |_| ());
        assert!(!before(&text) && text.contains(said), "{queued:?} {text}");
    }
    // How sure that is, is the same in all forms.
    for (queued, sure) in
        [(Some(2_600_000_000), "measured"), (Some(900_000_000), "measured"), (None, "certain")]
    {
        let [text, json] = ["text", "json"].map(|format| crowded_as(format, queued, |_| ()));
        let row = json.split("{\"kind\":").find(|row| row.starts_with("\"crowded\"")).unwrap();
        assert!(row.contains(&format!("\"sure\":\"{sure}\"")), "{row}");
        let told = text.split_once(" crowded: ").unwrap().1;
        assert!(told.split(['(', ')']).nth(1) == Some(sure), "{text}");
    }
}

#[test]
fn ranks_that_hardly_lacked_a_processor_are_well() {
    // All ranks' time is 300 ms.
    let told = |queued| lacking("text", ([10; 3], 3), Some(queued), |_| ());
    let [little, much] = [2_000_000, 30_000_000].map(told);
    assert!(little.contains("all is well") && !little.contains("no processor"), "{little}");
    assert!(much.contains("no processor: ranks are ready to run"), "{much}");
}

#[test]
fn what_the_kernel_counts_is_a_share_of_the_whole_run() {
    // Exact times of a tenth of it.
    let early = |section: &mut Section| {
        let chunk = &mut section.threads[0].columns[0].1.chunks[0];
        chunk.events = 2;
        for bytes in [&mut chunk.gaps, &mut chunk.durations] {
            // Varints end with a byte below 128.
            let end = bytes.iter().enumerate().filter(|(_, b)| **b < 128).nth(1).unwrap().0;
            bytes.truncate(end + 1);
        }
    };
    let text = crowded(Some(2_600_000_000), early);
    assert!(text.contains("88.9 % 1.60 s crowded"), "{text}");
    // Of what is said beside each number that is of something else.
    assert!(text.contains("of their time that has exact times is waiting"), "{text}");
    assert!(
        text.contains("; its share is of the whole run; what else is found may come of that (measured)"),
        "{text}"
    );
    let whole = crowded(Some(2_600_000_000), |_| ());
    assert!(!whole.contains("share is of") && !whole.contains("exact times"), "{whole}");
}

#[test]
fn rows_about_too_many_ranks_are_refused() {
    for command in ["ranks", "why"] {
        assert!(printed(&[1, 2, 3], false, &[command]).is_ok());
        let refused =
            format!("{:#}", printed(&[1, 2, 3], false, &[command, "--max-steps", "100"]).unwrap_err());
        let (file, why) = refused.split_once(": ").unwrap();
        assert!(std::path::Path::new(file).is_absolute(), "{refused}");
        assert!(why.contains("--max-steps allows 100"), "{refused}");
    }
}
