//! The page: its numbers are those that other commands print, and its timeline adds up to them.

use std::io::Read as _;
use std::process::Command;

use crate::common::{Rank, kernel, printed, rows, run, tried, untimed, with_slow, write};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser as _;
use serde_json::{Map, Value};
use st_kernels::{Kernel, Slow};
use st_model::calls::names;
use st_model::header::Header;
use st_model::section::{Ended, NO_SYM, Section};
use st_reduce::merge::merge;
use st_stream::{ReadOptions, Trace, WriteOptions};

/// Bytes that a page may have.
const MOST: usize = 5_000_000;

/// What stands in a page.
fn held(page: &str) -> Value {
    assert!(
        page.len() <= MOST && page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>")
    );
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&STANDARD.decode(data).unwrap()[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn report(sections: Vec<Section>, options: &[&str]) -> Value {
    held(&printed(sections, &[&["report"], options].concat()))
}

/// Rows of a table of the page.
fn table(of: &Value) -> Vec<Map<String, Value>> {
    let columns = of["columns"].as_array().unwrap();
    let values = |c: &Value| c["values"].as_array().unwrap().clone();
    let n = values(&columns[0]).len();
    let row = |i: usize| {
        columns.iter().map(|c| (c["key"].as_str().unwrap().into(), values(c)[i].clone())).collect()
    };
    (0..n).map(row).collect()
}

/// Rows of a command's JSON.
fn json(sections: &[Section], command: &[&str]) -> Vec<Map<String, Value>> {
    let text = printed(sections.to_vec(), &[command, &["--format", "json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(of: &Value) -> Vec<u64> {
    of.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

#[test]
fn its_tables_are_what_commands_print() {
    let sections = with_slow(Kernel::Wavefront, 9, 5, &[Slow { rank: 1, factor: 2.0 }]);
    let page = report(sections.clone(), &[]);
    let commands: [(&str, &[&str]); 9] = [
        ("summary", &[]),
        ("findings", &["why"]),
        ("waits", &["waits"]),
        ("efficiency", &["efficiency"]),
        ("functions", &["calls"]),
        ("sites", &["calls", "--sites"]),
        ("spread", &["calls", "--spread"]),
        ("ranks", &["ranks"]),
        ("iterations", &["phases"]),
    ];
    for (name, command) in commands {
        let rows = table(&page[name]);
        assert!(!rows.is_empty(), "{name}");
        assert_eq!(rows, json(&sections, command), "{name}");
    }
    let sorted = |mut rows: Vec<Map<String, Value>>| {
        rows.sort_by_key(|row| (row["from_rank"].as_u64(), row["to_rank"].as_u64()));
        rows
    };
    let pairs: Vec<_> =
        json(&sections, &["matrix"]).into_iter().filter(|row| !row["to_rank"].is_null()).collect();
    assert_eq!(sorted(table(&page["matrix"]["pairs"])), sorted(pairs.clone()));
    let sent: u64 = pairs.iter().map(|row| row["sent_bytes"].as_u64().unwrap()).sum();
    assert_eq!(numbers(&page["matrix"]["bytes"]).iter().sum::<u64>(), sent);
    assert_eq!(page["lacks"], Value::Array(Vec::new()));
}

#[test]
fn each_number_of_the_words_of_a_finding_is_in_its_row() {
    let sections = with_slow(Kernel::Wavefront, 9, 5, &[Slow { rank: 1, factor: 2.0 }]);
    let text = printed(sections.clone(), &["why"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut sites, mut shares) = (0, 0);
    for row in json(&sections, &["why"]) {
        let told = row["told"].as_str().unwrap();
        assert!(text.contains(told), "{told} is in {text}");
        let numbers: Vec<f64> = row.values().filter_map(Value::as_f64).collect();
        for site in told.split("(site ").skip(1).map(|rest| rest.split(',').next().unwrap()) {
            assert!(numbers.contains(&site.parse().unwrap()), "site {site} in {row:?}");
            sites += 1;
        }
        for share in told.split(' ').zip(told.split(' ').skip(1)).filter(|(_, unit)| *unit == "%") {
            assert!(numbers.contains(&share.0.parse().unwrap()), "{share:?} in {row:?}");
            shares += 1;
        }
    }
    assert!(sites > 3 && shares > 3, "{text}");
}

#[test]
fn its_timeline_adds_up_to_the_ranks() {
    let sections = with_slow(Kernel::Transpose, 16, 3, &[Slow { rank: 1, factor: 2.0 }]);
    let page = report(sections.clone(), &[]);
    let ranks = json(&sections, &["ranks"]);
    let levels = &page["timeline"]["levels"];
    let columns = levels["columns"].as_u64().unwrap().try_into().unwrap();
    let sums = |of: &Value| -> Vec<u64> { numbers(of).chunks(columns).map(|row| row.iter().sum()).collect() };
    let column = |key: &str| -> Vec<u64> { ranks.iter().map(|row| row[key].as_u64().unwrap()).collect() };
    assert_eq!(sums(&levels["computation"]), column("computation_ns"));
    assert_eq!(sums(&levels["mpi"]), column("mpi_ns"));
    let mut waits = vec![0; ranks.len()];
    for kind in levels["waits"].as_array().unwrap() {
        waits.iter_mut().zip(sums(kind)).for_each(|(sum, ns)| *sum += ns);
    }
    assert_eq!(waits, column("wait_ns"));
    assert!(waits.iter().any(|ns| *ns > 0));
    // So few calls are all there, one by one.
    let windows = page["timeline"]["windows"].as_array().unwrap();
    assert!(windows.len() == 1 && windows[0]["whole"] == true);
    let lanes = windows[0]["lanes"].as_array().unwrap();
    let inside = |lane: &Value| numbers(&lane["calls"]).chunks(3).map(|call| call[2]).sum::<u64>();
    assert_eq!(lanes.iter().map(inside).collect::<Vec<_>>(), column("mpi_ns"));
    let before = |lane: &Value| numbers(&lane["calls"]).chunks(3).map(|call| call[1]).sum::<u64>();
    assert_eq!(lanes.iter().map(before).collect::<Vec<_>>(), column("computation_ns"));
    let waiting = |lane: &Value| numbers(&lane["waits"]).chunks(4).map(|wait| wait[1]).sum::<u64>();
    assert_eq!(lanes.iter().map(waiting).collect::<Vec<_>>(), column("wait_ns"));
}

#[test]
fn nodes_have_the_sums_of_their_ranks() {
    let sections = with_slow(Kernel::Transpose, 16, 3, &[Slow { rank: 1, factor: 2.0 }]);
    let page = report(sections.clone(), &[]);
    let nodes = &page["timeline"]["nodes"];
    let node = numbers(&nodes["of"]);
    let hosts = nodes["names"].as_array().unwrap();
    assert!(hosts.len() > 1 && node.len() == 16, "{hosts:?}");
    for (rank, number) in (0u32..).zip(&node) {
        let host = &hosts[usize::try_from(*number).unwrap()];
        let section = sections.iter().find(|s| s.ranks.contains(rank)).unwrap();
        assert!(section.hosts.iter().any(|(name, ranks)| host == name && ranks.contains(rank)), "{rank}");
    }
    assert!(page["timeline"]["clusters"].is_null(), "nobody has put these ranks into clusters");
    have_the_sums_of_their_ranks(nodes, &json(&sections, &["ranks"]));
}

/// Whether rows of nodes or clusters have the sums of their ranks.
fn have_the_sums_of_their_ranks(groups: &Value, ranks: &[Map<String, Value>]) {
    let of = numbers(&groups["of"]);
    assert_eq!(of.len(), ranks.len());
    let columns = groups["levels"]["columns"].as_u64().unwrap().try_into().unwrap();
    for (key, column) in [("computation", "computation_ns"), ("mpi", "mpi_ns")] {
        let cells = numbers(&groups["levels"][key]);
        let shown: Vec<u64> = cells.chunks(columns).map(|row| row.iter().sum()).collect();
        let mut sums = vec![0; groups["names"].as_array().unwrap().len()];
        for (row, number) in ranks.iter().zip(&of) {
            sums[usize::try_from(*number).unwrap()] += row[column].as_u64().unwrap();
        }
        assert_eq!(shown, sums, "{key}");
    }
}

#[test]
fn clusters_that_the_trace_has_have_the_sums_of_their_ranks() {
    let ranks = with_slow(Kernel::Wavefront, 9, 3, &[Slow { rank: 1, factor: 2.0 }]);
    let sections = vec![merge(ranks, true).unwrap()];
    let clusters = &report(sections.clone(), &[])["timeline"]["clusters"];
    let of = numbers(&clusters["of"]);
    let mut sizes = vec![0; clusters["names"].as_array().unwrap().len()];
    of.iter().for_each(|n| sizes[usize::try_from(*n).unwrap()] += 1);
    // Corners, sides and the middle of the grid make other calls.
    let mut printed = vec![0; sizes.len()];
    for row in json(&sections, &["clusters"]) {
        printed[usize::try_from(row["main"].as_u64().unwrap()).unwrap()] += row["ranks"].as_u64().unwrap();
    }
    assert_eq!(sizes, printed);
    assert!(sizes.len() > 2 && of.first() != of.get(4), "{of:?}");
    have_the_sums_of_their_ranks(clusters, &json(&sections, &["ranks"]));
    // Which ranks they are: the corner, the sides beside it and so on, as numbers that a list names.
    for (number, list) in (0u64..).zip(clusters["ranks"].as_array().unwrap()) {
        let list = st_model::ranklist_notation::parse_any(&list.as_str().unwrap().replace(' ', "")).unwrap();
        let members = (0u32..).zip(&of).filter(|(_, n)| **n == number).map(|(rank, _)| rank);
        assert!(list.iter().eq(members), "{number}: {list:?}");
    }
}

#[test]
fn each_message_between_single_ranks_is_a_line() {
    let sections = with_slow(Kernel::Stencil2d, 4, 10, &[Slow { rank: 1, factor: 2.0 }]);
    let page = report(sections.clone(), &[]);
    let window = &page["timeline"]["windows"][0];
    let messages: u64 = rows(&printed(sections, &["matrix", "--format", "csv"]))
        .iter()
        .filter(|row| !row["to_rank"].is_empty())
        .map(|row| row["messages"].parse::<u64>().unwrap())
        .sum();
    assert_eq!(u64::try_from(window["from"].as_array().unwrap().len()).unwrap(), messages);
    assert!(messages > 0 && window["more"] == 0);
    assert!(numbers(&window["took"]).iter().all(|ns| *ns > 0));
}

#[test]
fn a_planted_fault_is_shown_where_it_is() {
    let page = report(with_slow(Kernel::Stencil1d, 6, 10, &[Slow { rank: 2, factor: 4.0 }]), &[]);
    let spots = page["timeline"]["spots"].as_array().unwrap();
    assert!(spots.iter().any(|spot| spot["for_rank"] == 2), "{spots:?}");
    let run = page["timeline"]["run_ns"].as_i64().unwrap();
    for spot in spots {
        let [from, to] = ["from_ns", "to_ns"].map(|key| spot[key].as_i64().unwrap());
        assert!(0 <= from && from < to && to <= run && spot["ns"] == to - from, "{spot}");
    }
}

/// Two levels of phases, one of them slow once, and no loop that is known.
#[test]
fn iterations_and_phases_are_bands_above_the_timeline() {
    let sections = with_slow(Kernel::Stencil1d, 6, 40, &[Slow { rank: 2, factor: 4.0 }]);
    let page = report(sections.clone(), &[]);
    let printed = json(&sections, &["phases"]);
    let bands = page["bands"].as_array().unwrap();
    assert_eq!(bands[0]["turns"], 8, "an allreduce after five steps");
    // The page counts from when the run begins, and knows when that is.
    let origin = page["timeline"]["origin_ns"].as_u64().unwrap();
    assert!(origin > 0);
    for (key, of, since) in [
        ("time_ns", "time_ns", 0),
        ("begin_ns", "begin_ns", origin),
        ("end_ns", "end_ns", origin),
        ("number", "iteration", 0),
    ] {
        let loop_0 = printed.iter().filter(|row| row["loop"] == 0);
        let values: Vec<u64> = loop_0.map(|row| row[of].as_u64().unwrap() - since).collect();
        assert_eq!(numbers(&bands[0][key]), values, "{key}");
    }
    let program: Vec<Section> = (0..2)
        .map(|rank| {
            let mut r = Rank::new(rank, 2);
            let mut begin = 0;
            for turn in 0..12 {
                let long = if turn == 7 { 900 } else { 100 };
                r.call(names::MPI_Pcontrol, "phase", &[turn % 3], (begin, begin + 1));
                r.call(names::MPI_Barrier, "step", &[0], (begin + long, begin + long + 10));
                begin += long + 20;
            }
            r.finish("host")
        })
        .collect();
    let page = report(program.clone(), &[]);
    assert_eq!(table(&page["phases"]), json(&program, &["phases", "--by", "pcontrol"]));
    let levels: Vec<&Value> =
        page["bands"].as_array().unwrap().iter().filter(|b| !b["level"].is_null()).collect();
    assert_eq!(levels.len(), 3, "{}", page["bands"]);
    let slow = levels.iter().find(|b| b["level"] == 1).unwrap();
    assert_eq!((numbers(&slow["number"]), numbers(&slow["slow"])), (vec![0, 1, 2, 3], vec![2]));
    assert!(page["bands"].as_array().unwrap().iter().all(|b| b["turns"].as_u64().unwrap() > 0));
}

/// The terminal is one that util-linux makes.
#[test]
fn a_page_is_not_written_to_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.st");
    write(&path, kernel(Kernel::Stencil1d, 2, 5));
    let line = format!("{} report {}", env!("CARGO_BIN_EXE_st-stat"), path.display());
    let Ok(said) = Command::new("script").args(["-qec", &line, "/dev/null"]).output() else { return };
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("refusing to write a page to a terminal; name a file with -o"), "{text:.200}");
    assert!(!said.status.success() && !text.contains("<html"), "{text:.200}");
}

#[test]
fn against_another_run_it_shows_what_diff_finds() {
    let dir = tempfile::tempdir().unwrap();
    let [before, after, few] = ["before.st", "after.st", "few.st"].map(|name| dir.path().join(name));
    write(&before, with_slow(Kernel::Stencil2d, 16, 50, &[]));
    write(&after, with_slow(Kernel::Stencil2d, 16, 50, &[Slow { rank: 1, factor: 4.0 }]));
    write(&few, with_slow(Kernel::Stencil2d, 4, 5, &[]));
    let [before, after, few] = [&before, &after, &few].map(|path| path.to_str().unwrap());
    let page = held(&run(&["report", after, "--against", before]).unwrap());
    let diff = |more: &[&str]| run(&[&["diff", "--time", before, after], more].concat()).unwrap();
    let printed: Vec<Map<String, Value>> =
        diff(&["--format", "json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(table(&page["against"]["changes"]), printed);
    assert!(printed.iter().any(|row| row["verdict"] == "slower"), "{printed:?}");
    let heads: Vec<&str> = page["against"]["changes"]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["title"].as_str().unwrap())
        .collect();
    assert!(heads.iter().all(|head| heads.iter().filter(|other| *other == head).count() == 1), "{heads:?}");
    let text = diff(&[]).replace("\n  ", " ");
    for key in ["runs", "counts"] {
        assert!(text.contains(page["against"][key].as_str().unwrap()), "{key}: {text}");
    }
    assert!(report(with_slow(Kernel::Stencil2d, 4, 5, &[]), &[])["against"].is_null());
    assert!(run(&["report", after, "--base", before]).is_err(), "it is another run of what?");
    let error = run(&["report", after, "--against", before, "--base", few]).unwrap_err();
    assert!(error.to_string().contains("has other ranks than"), "{error}");
    let words = ["st-stat", "report", after, "-o", "page.st"];
    let error = st_stat::run(&st_stat::args::Args::try_parse_from(words).unwrap()).unwrap_err();
    assert!(error.to_string().contains("-o page.st: .st is the ending of traces"), "{error}");
    let error = run(&["report", after, "--against", "/nowhere.st"]).unwrap_err();
    assert!(error.to_string().contains("/nowhere.st"), "{error}");
}

#[test]
fn call_sites_have_the_paths_that_lead_to_them() {
    let sections = with_slow(Kernel::Wavefront, 9, 5, &[Slow { rank: 1, factor: 2.0 }]);
    let page = report(sections.clone(), &[]);
    let frames: Vec<&str> =
        page["stacks"]["frames"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
    let printed = json(&sections, &["calls", "--sites", "--stacks"]);
    let paths = page["stacks"]["of"].as_array().unwrap();
    assert_eq!(paths.len(), printed.len());
    for (path, row) in paths.iter().zip(&printed) {
        let names = numbers(path).into_iter().rev().map(|n| frames[usize::try_from(n).unwrap()]);
        assert_eq!(names.collect::<Vec<_>>().join(" < "), row["place"].as_str().unwrap());
    }
    assert!(paths.iter().any(|path| numbers(path).len() > 1), "{paths:?}");
}

/// A trace of clocks that disagree, and the same after st-sync.
#[test]
fn bytes_and_clocks_of_the_trace_are_shown() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/v1.4");
    let [raw, synced] = ["openmpi-clocks.st", "synced.st"].map(|name| data.join(name));
    let [raw, synced] = [&raw, &synced].map(|path| path.to_str().unwrap());
    let page = held(&run(&["report", raw]).unwrap());
    let printed = |words: &[&str]| -> Vec<Map<String, Value>> {
        let text = run(&[words, &["--format", "json"]].concat()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let kept = &page["kept"];
    assert_eq!(table(&kept["frames"]), printed(&["sizes", raw]));
    assert_eq!(table(&kept["sites"]), printed(&["sizes", "--by", "site", raw]));
    assert_eq!(table(&kept["parameters"]), printed(&["sizes", "--by", "parameter", raw]));
    let clocks = &kept["clocks"];
    assert_eq!(table(&clocks["violations"]), printed(&["violations", raw]));
    assert_eq!(table(&clocks["pairs"]), printed(&["violations", "--pairs", raw]));
    assert_eq!(clocks["corrected"], false);
    // Some ranks' clocks were compared, again and again.
    let offsets = table(&clocks["offsets"]);
    assert!(offsets.iter().filter(|row| row["rank"] == 3).count() > 1, "{offsets:?}");
    assert!(offsets.iter().all(|row| row["error_ns"].as_i64().unwrap() >= 0), "{offsets:?}");
    let page = held(&run(&["report", synced, "--against", raw]).unwrap());
    let clocks = &page["kept"]["clocks"];
    assert_eq!((&clocks["corrected"], &clocks["offsets"]), (&Value::Bool(true), &Value::Null));
    assert!(table(&clocks["violations"]).iter().all(|row| row["violated"] == 0), "{clocks}");
    assert_eq!(table(&page["against"]["violations"]), printed(&["violations", raw]), "both are of one run");
    let none = report(untimed(kernel(Kernel::Stencil2d, 4, 10)), &[]);
    assert!(none["kept"]["clocks"]["no_violations"].is_string(), "it says why");
}

#[test]
fn without_exact_times_it_says_so_and_shows_loops() {
    let page = report(untimed(kernel(Kernel::Stencil2d, 4, 10)), &[]);
    assert!(page["timeline"].is_null() && page["findings"].is_null());
    assert!(page["lacks"][0].as_str().unwrap().contains("no exact times"), "{}", page["lacks"]);
    let structure = page["structure"].as_array().unwrap();
    assert!(!structure.is_empty());
    for of in structure {
        let runs = numbers(&of["runs"]);
        let calls = of["call"].as_array().unwrap().iter().zip(&runs).filter(|(call, _)| !call.is_null());
        assert!(calls.map(|(_, n)| n).sum::<u64>() > 0);
    }
    let error =
        tried(untimed(kernel(Kernel::Stencil2d, 4, 10)), &["report", "--window", "0..1"]).unwrap_err();
    assert!(error.to_string().starts_with("--window: the trace holds no exact times"), "{error}");
}

/// What helps is said by what was recorded.
#[test]
fn without_exact_times_it_says_what_to_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.st");
    let recorded = |time: &str| {
        write(&path, untimed(kernel(Kernel::Stencil2d, 4, 10)));
        let mut read = st_stream::read(&std::fs::read(&path).unwrap()[..], ReadOptions::default()).unwrap();
        read.header.options.insert("time".into(), time.into());
        let file = std::fs::File::create(&path).unwrap();
        st_stream::write(&read, file, WriteOptions { level: 0 }).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let lacks = |time: &str| {
        held(&run(&["report", &recorded(time)]).unwrap())["lacks"][0].as_str().unwrap().to_owned()
    };
    let none = lacks("none");
    assert!(none.ends_with("(recorded with --time none: record with --time columns)"), "{none}");
    let sketch = lacks("sketch");
    assert!(sketch.ends_with("record with --time columns, without --reduce-every)"), "{sketch}");
    let merged = lacks("columns");
    assert!(merged.ends_with("(record without --merge)"), "{merged}");
    let advice = "recorded with --time none: record with --time columns";
    let why = run(&["why", &recorded("none")]).unwrap();
    assert!(why.contains(advice) && !why.contains("--merge"), "{why}");
    for command in ["waits", "predict", "violations"] {
        let refused = format!("{:#}", run(&[command, &recorded("none")]).unwrap_err());
        assert!(refused.ends_with(advice), "{command}: {refused}");
    }
    assert!(run(&["why", &recorded("columns")]).unwrap().contains("st-record without --merge keeps them"));
}

#[test]
fn ranks_that_ended_early_are_said_to_in_the_words_of_the_summary() {
    let mut sections = kernel(Kernel::Stencil2d, 4, 10);
    let rank = sections[0].ranks.lowest().unwrap();
    sections[0].ended.push(Ended { rank, thread: 0, calls: 11, last: 0, inside: NO_SYM, entered: 0 });
    let page = report(sections.clone(), &[]);
    let lacks = page["lacks"].as_array().unwrap();
    let said = lacks.iter().find_map(|lack| lack.as_str().unwrap().strip_prefix("ended early: ")).unwrap();
    assert!(said.starts_with(&format!("rank {rank} ends at call 11, MPI_")), "{said}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = words(&printed(sections, &[]));
    assert!(summary.contains(&format!("ended early {}", words(said))), "{said}: {summary}");
}

/// The page says so, and how many bytes collective operations have: all that are sent.
#[test]
fn collective_operations_alone_are_no_messages() {
    let program: Vec<Section> = (0..2)
        .map(|rank| {
            let mut r = Rank::new(rank, 2);
            r.call(names::MPI_Bcast, "step", &[8, 0, 0, 0], (0, 10));
            r.finish("host")
        })
        .collect();
    let page = report(program, &[]);
    assert_eq!(page["matrix"]["from"], Value::Array(Vec::new()));
    assert_eq!(table(&page["summary"])[0]["sent_bytes"], 8);
}

#[test]
fn loops_run_as_often_as_their_calls_are_made() {
    let sections = kernel(Kernel::Stencil2d, 4, 10);
    let page = report(sections.clone(), &[]);
    let rank: u64 =
        page["structure"].as_array().unwrap().iter().filter(|of| of["rank"] == 0).fold(0, |sum, of| {
            let calls = of["call"].as_array().unwrap();
            sum + calls
                .iter()
                .zip(numbers(&of["runs"]))
                .filter(|(call, _)| !call.is_null())
                .map(|(_, n)| n)
                .sum::<u64>()
        });
    let all = json(&sections, &[])[0]["calls"].as_u64().unwrap();
    assert_eq!(rank * 4, all);
}

#[test]
fn windows_that_the_run_does_not_have_are_refused() {
    for (window, said) in [
        ("5..6", "the run is from"),
        ("2..1", "must be before"),
        ("x..1", "a number of seconds"),
        ("1", "two times"),
    ] {
        let error = tried(kernel(Kernel::Stencil1d, 2, 2), &["report", "--window", window]).unwrap_err();
        assert!(error.to_string().contains(said), "{window}: {error}");
    }
}

#[test]
fn calls_that_take_too_many_steps_are_left_out_and_said_to_be() {
    let mut rank = Rank::new(0, 2);
    // What a persistent request moves is told by the calls in their order.
    rank.call("MPI_Send_init", "begin", &[3, 0, 1, 7, 0, 0], (0, 10));
    (0..60_000).for_each(|_| rank.call("MPI_Barrier", "step", &[0], (20, 30)));
    let page = report(untimed(vec![rank.finish("host")]), &["--max-steps", "6000"]);
    assert!(page["sites"].is_null(), "{}", page["sites"]);
    let lacks = page["lacks"].as_array().unwrap();
    assert!(
        lacks.iter().any(|l| l.as_str().unwrap().contains("calls and bytes per call site are not shown")),
        "{lacks:?}"
    );
}

/// Without exact times ranks are shown in the order of the program.
#[test]
fn a_page_without_exact_times_has_logical_time() {
    let ranks = || with_slow(Kernel::Wavefront, 9, 5, &[Slow { rank: 1, factor: 2.0 }]);
    let merged = vec![merge(ranks(), false).unwrap()];
    let page = report(merged.clone(), &[]);
    assert!(page["timeline"].is_null());
    assert_eq!(table(&page["logical"]["boxes"]), json(&merged, &["timeline", "--rows", "64"]));
    assert_eq!(page["logical"]["timed"], true);
    assert!(report(ranks(), &[])["logical"].is_null());
}

/// What the waits are looked for in, iterations are told of: each byte of the file has paid for it.
#[test]
fn iterations_are_paid_for_as_waits_are() {
    let page = report(kernel(Kernel::Workers, 5, 40), &["--max-steps", "2000"]);
    assert!(!page["findings"].is_null() && !page["iterations"].is_null(), "{}", page["lacks"]);
}

/// So few bytes stand for so many calls that waits are not looked for in them: all else is there, and the page says it.
#[test]
fn a_run_of_too_many_calls_has_a_page_of_its_sums() {
    let of = |me| {
        let mut rank = Rank::new(me, 2);
        rank.call(names::MPI_Init, "main", &[], (0, 1_000));
        for i in 1..200_000 {
            rank.call(names::MPI_Barrier, "work", &[0], (i * 10_000, i * 10_000 + 1_000));
        }
        rank.call(names::MPI_Finalize, "main", &[], (2_000_000_000, 2_000_001_000));
        rank.finish("host")
    };
    let dir = tempfile::tempdir().unwrap();
    let stream = dir.path().join("app.st");
    let header = Header { world: 2, ..Header::default() };
    let trace = Trace { header, sections: [0, 1].map(of).into(), ..Trace::default() };
    let file = std::fs::File::create(&stream).unwrap();
    st_stream::write(&trace, file, WriteOptions::FILE).unwrap();
    let of =
        |options: &[&str]| held(&run(&[&["report"], options, &[stream.to_str().unwrap()]].concat()).unwrap());
    let page = of(&["--max-steps", "1000000"]);
    let bytes = std::fs::metadata(&stream).unwrap().len();
    assert!(page["timeline"].is_null() && page["findings"].is_null(), "{bytes} bytes");
    assert!(!table(&page["sites"]).is_empty() && !table(&page["ranks"]).is_empty());
    let lacks = page["lacks"].as_array().unwrap();
    let said = |what: &str| lacks.iter().any(|l| l.as_str().unwrap().contains(what));
    assert!(
        said(
            "there are no findings, no waits and no timeline but in logical time, only sums of the whole run: "
        ),
        "{lacks:?}"
    );
    assert!(said("--max-steps"), "{lacks:?}");
    assert!(!of(&[])["timeline"].is_null());
    // Other commands refuse it, by what all ranks take, and say at once what is enough; each byte pays there as for a page.
    let why = |most: u64| run(&["why", "--max-steps", &most.to_string(), stream.to_str().unwrap()]);
    let refused = why(1).unwrap_err().chain().last().unwrap().to_string();
    let number = |after: &str| -> u64 {
        refused.split(after).nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    let takes = number("takes ");
    assert!(takes > 2 * 200_000 * 8, "{refused}");
    assert!(why(number("say --max-steps ")).is_ok(), "{refused}");
    assert!(why(takes - bytes * 60).is_ok() && why(takes - bytes * 68).is_err(), "{bytes} bytes");
}

/// Streams of all kinds that real programs left: none is too odd for a page.
#[test]
fn every_stored_stream_makes_a_page() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    let folders = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let files =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let (mut pages, dir) = (0, tempfile::tempdir().unwrap());
    for file in files.filter(|file| file.extension().is_some_and(|e| e == "st")) {
        let out = dir.path().join("page.html");
        let [from, to] = [&file, &out].map(|path| path.to_str().unwrap());
        let args = st_stat::args::Args::try_parse_from(["st-stat", "report", "-q", "-o", to, from]).unwrap();
        let status = st_stat::run(&args);
        assert!(status.is_ok(), "{from}: {status:?}");
        let page = held(&std::fs::read_to_string(&out).unwrap());
        assert!(!table(&page["summary"]).is_empty(), "{from}");
        let told = page["timeline"].is_object() || !page["lacks"].as_array().unwrap().is_empty();
        assert!(told, "{from}: what is missing is said");
        pages += 1;
    }
    assert!(pages > 20, "{pages}");
}

/// Times that no clock shows, as a damaged stream may hold them.
#[test]
fn times_beyond_all_measure_are_no_accident() {
    let program = |times: &[(i64, i64)]| -> Vec<Section> {
        let of = |rank: u32| {
            let mut r = Rank::new(rank, 2);
            let shift = if rank == 0 { 0 } else { 1 << 40 };
            for &(enter, exit) in times {
                let later = |t: i64| t.saturating_add(shift);
                r.call(names::MPI_Barrier, "step", &[0], (later(enter), later(exit)));
            }
            r.finish("host")
        };
        vec![of(0), of(1)]
    };
    let far = i64::MAX / 2;
    for times in [&[(-far, far), (far, far + 1)][..], &[(0, 1), (1 << 61, 1 << 62)], &[(5, 3), (-far, 0)]] {
        let page = report(program(times), &[]);
        assert_eq!(page["timeline"]["levels"]["count"], 2);
        printed(program(times), &["timeline"]);
    }
}
