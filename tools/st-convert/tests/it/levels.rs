//! Phases and sums in the place of calls.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{At, KERNELS, Known, Made, kernel};
use crate::phases::rank;
use crate::tables::{Row, csv, number, parquet};
use crate::viewers::{ns, slices};
use st_explain::{PhasesBy, analyse_each, phases};
use st_kernels::Kernel;
use st_model::calls::names;
use st_model::columns::{Chunk, ColumnWriter};
use st_model::ints::Sealed;
use st_model::section::{Elastic, Section};
use st_model::tree::Item;
use st_reduce::merge::merge;

fn said(made: &Made, words: &[&str]) -> (Option<i32>, String) {
    let out = made.run(words);
    (out.status.code(), String::from_utf8(out.stderr).unwrap())
}

fn sum(rows: &[Row], column: &str) -> i64 {
    rows.iter().map(|row| number::<i64>(row, column)).sum()
}

/// Calls of a rank's first thread.
fn first(calls: &BTreeMap<At, Known>, rank: u32) -> impl Iterator<Item = &Known> {
    calls.range((rank, 0, 0)..(rank, 1, 0)).map(|(_, call)| call)
}

#[test]
fn phases_follow_each_other_and_come_to_the_sums_of_calls() {
    let mut iterations = 0;
    for which in KERNELS {
        let made = kernel(which);
        let calls = made.calls();
        let (path, text) = made.convert(&["-o", "app.csv", "--level", "phases", "--waits"]);
        assert!(!path.join("events.csv").exists() && path.join("sites.csv").exists());
        let rows = csv(&path, "phases");
        let found = analyse_each(&made.sections, &|_| ()).unwrap();
        for rank in 0..4 {
            let own: Vec<Row> =
                rows.iter().filter(|row| number::<u32>(row, "rank") == rank).cloned().collect();
            let begins = own.iter().skip(1).map(|row| row["begin_ns"].clone());
            assert!(own.iter().map(|row| row["end_ns"].clone()).zip(begins).all(|(end, begin)| end == begin));
            let begin: i64 = number(own.first().unwrap(), "begin_ns");
            assert_eq!(begin, first(&calls, rank).next().unwrap().1, "{which:?}");
            let time = number::<i64>(own.last().unwrap(), "end_ns") - begin;
            assert_eq!(time, sum(&own, "compute_ns") + sum(&own, "mpi_ns"), "{which:?} {rank}");
            let mpi: i64 = first(&calls, rank).map(|call| call.2 - call.1).sum();
            assert_eq!(sum(&own, "mpi_ns"), mpi, "{which:?} {rank}");
            let waits = found.each.iter().filter(|w| w.rank == rank);
            let of_first = waits.filter(|w| found.lanes[w.thread as usize].1 == 0).map(|w| w.ns).sum::<u64>();
            assert_eq!(sum(&own, "wait_ns"), i64::try_from(of_first).unwrap(), "{which:?} {rank}");
        }
        // Those of st-stat.
        let mut known = BTreeMap::new();
        for of in phases(&made.sections, PhasesBy::Loop, &found.each, &found.lanes).unwrap() {
            for turn in &of.turns {
                let sums = known.entry((of.turns.len(), turn.number)).or_insert((0, 0, 0));
                *sums = (sums.0 + turn.time, sums.1 + turn.mpi, sums.2 + turn.wait);
            }
        }
        let mut loops: BTreeMap<&str, u64> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row["loop"].is_empty()) {
            let last = loops.entry(&row["loop"]).or_default();
            *last = number::<u64>(row, "iteration").max(*last);
            iterations += 1;
        }
        let mut all = BTreeMap::new();
        for row in rows.iter().filter(|row| !row["loop"].is_empty()) {
            let turns = usize::try_from(loops[row["loop"].as_str()] + 1).unwrap();
            let sums = all.entry((turns, number::<u64>(row, "iteration"))).or_insert((0, 0, 0));
            let (mpi, wait) = (number::<u64>(row, "mpi_ns"), number::<u64>(row, "wait_ns"));
            let time = number::<u64>(row, "compute_ns") + mpi;
            *sums = (sums.0 + time, sums.1 + mpi, sums.2 + wait);
        }
        assert_eq!(all, known, "{which:?}");
        let others = calls.keys().filter(|at| at.1 > 0).count();
        let lost = format!("no place for: {others} calls of threads that are not the first");
        assert_eq!(text.contains(&lost), others > 0, "{text}");
    }
    assert!(iterations > 100, "{iterations}");
}

#[test]
fn slices_and_columns_have_what_rows_have() {
    let made = kernel(Kernel::Stencil2d);
    let level = ["--level", "phases", "--waits", "-o"];
    let convert = |name: &str| made.convert(&[&level[..], &[name]].concat()).0;
    let rows = csv(&convert("app.csv"), "phases");
    assert_eq!(parquet(&convert("app.parquet"), "phases"), rows);
    let said = |row: &Row| (number(row, "begin_ns"), number(row, "end_ns"), number(row, "mpi_ns"));
    let wanted: Vec<(i64, i64, i64)> = rows.iter().map(said).collect();
    let text = std::fs::read_to_string(convert("app.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let (mut found, mut names) = (Vec::new(), Vec::new());
    for (event, row) in events.zip(&rows) {
        let begin = ns(&event["ts"]);
        found.push((begin, begin + ns(&event["dur"]), event["args"]["mpi_ns"].as_i64().unwrap()));
        assert_eq!(event["args"]["wait_ns"].as_i64().unwrap(), number::<i64>(row, "wait_ns"));
        assert_eq!(event["pid"].as_u64().unwrap(), number::<u64>(row, "rank"));
        names.push(event["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(found, wanted);
    for (name, row) in names.iter().zip(&rows) {
        let turns = rows.iter().filter(|of| of["loop"] == row["loop"] && of["rank"] == row["rank"]).count();
        let of_loop = format!("loop of {turns} iterations from {}, ", row["function"]);
        assert!(
            if row["loop"].is_empty() { name == "between" } else { name.starts_with(&of_loop) },
            "{name}"
        );
    }
    let mut packets = slices(&std::fs::read(convert("app.pftrace")).unwrap());
    packets.sort();
    let mut wanted: Vec<_> = rows
        .iter()
        .zip(&names)
        .map(|(row, name)| (number::<u32>(row, "rank"), said(row), name.clone()))
        .collect();
    wanted.sort();
    assert_eq!(packets, wanted);
}

#[test]
fn phases_of_pcontrol_last_until_the_next() {
    let phase = |level: &'static [i64]| (names::MPI_Pcontrol, "phase", level);
    let made = Made::of(vec![rank(&[
        (names::MPI_Init, "main", &[]),
        phase(&[1]),
        (names::MPI_Barrier, "first", &[0]),
        phase(&[2]),
        phase(&[1]),
        (names::MPI_Barrier, "third", &[0]),
        (names::MPI_Finalize, "main", &[]),
    ])]);
    // Calls last 10 ns and begin each 100 ns.
    let rows = |words: &[&str]| -> Vec<[String; 7]> {
        let by = ["--level", "phases", "--by", "pcontrol"];
        let (path, _) = made.convert(&[&by[..], words].concat());
        let columns = ["loop", "level", "iteration", "begin_ns", "end_ns", "calls", "compute_ns"];
        csv(&path, "phases").iter().map(|row| columns.map(|column| row[column].clone())).collect()
    };
    let all = [
        ["", "", "", "0", "100", "1", "90"],
        ["0", "1", "0", "100", "300", "2", "180"],
        ["1", "2", "0", "300", "400", "1", "90"],
        ["0", "1", "1", "400", "600", "2", "180"],
        ["", "", "", "600", "610", "1", "0"],
    ];
    assert_eq!(rows(&["-o", "all.csv"]), all);
    assert_eq!(rows(&["-o", "one.csv", "--phase", "1"]), [all[1], all[3]]);
    assert_eq!(rows(&["-o", "part.csv", "--from", "0.00000035", "--until", "0.00000045"]), all[2..4]);
    let made = Made::of(vec![rank(&[(names::MPI_Init, "main", &[]), (names::MPI_Finalize, "main", &[])])]);
    let (status, text) = said(&made, &["-o", "none.json", "--level", "phases"]);
    assert!(status == Some(0) && text.contains("warning: no loop around calls is known"), "{text}");
}

#[test]
fn sums_of_each_rank_and_call_site_are_those_of_calls() {
    for which in KERNELS {
        let made = kernel(which);
        let summary = ["--level", "summary", "--waits", "-o"];
        let (path, _) = made.convert(&[&summary[..], &["app.csv"]].concat());
        let rows = csv(&path, "totals");
        let columns = made.convert(&[&summary[..], &["app.parquet"]].concat()).0;
        assert_eq!(parquet(&columns, "totals"), rows);
        let (events, _) = made.convert(&["-o", "events.csv", "--waits"]);
        let mut wanted: BTreeMap<[String; 3], [i64; 5]> = BTreeMap::new();
        let key = |row: &Row| ["rank", "function", "site"].map(|column| row[column].clone());
        for row in csv(&events, "events") {
            let sums = wanted.entry(key(&row)).or_default();
            let time = number::<i64>(&row, "exit_ns") - number::<i64>(&row, "enter_ns");
            let of = |column: &str| number::<i64>(&row, column);
            let more = [of("calls"), time, of("sent_bytes"), of("received_bytes"), 0];
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        for row in csv(&events, "waits") {
            wanted.get_mut(&key(&row)).unwrap()[4] += number::<i64>(&row, "wait_ns");
        }
        let names = ["calls", "time_ns", "sent_bytes", "received_bytes", "wait_ns"];
        let found: BTreeMap<_, _> =
            rows.iter().map(|row| (key(row), names.map(|column| number(row, column)))).collect();
        assert_eq!((found.len(), found), (rows.len(), wanted), "{which:?}");
        assert_eq!(csv(&path, "ranks"), csv(&events, "ranks"), "{which:?}");
        // Between the calls of a thread.
        let (mut last, mut between) = (BTreeMap::new(), 0);
        for (at, call) in made.calls() {
            between += last.insert((at.0, at.1), call.2).map_or(0, |last| call.1 - last);
        }
        let before = rows.iter().filter(|row| !row["before_ns"].is_empty()).cloned().collect::<Vec<_>>();
        assert_eq!(sum(&before, "before_ns"), between, "{which:?}");
        let (part, _) =
            made.convert(&["--level", "summary", "-o", "part.csv", "--sites", &rows[0]["function"]]);
        let part = csv(&part, "totals");
        assert!(part.iter().all(|row| row["before_ns"].is_empty() && row["wait_ns"].is_empty()), "{part:?}");
    }
}

#[test]
fn without_times_there_are_sums_of_calls_and_no_phases() {
    let merged = Made::of(vec![merge(kernel(Kernel::Stencil2d).sections, false).unwrap()]);
    let (status, text) = said(&merged, &["--level", "phases", "-o", "app.csv"]);
    assert!(
        status == Some(2) && text.contains("has no exact times of all ranks, which --level phases needs"),
        "{text}"
    );
    let (path, text) = merged.convert(&["--level", "summary", "-o", "app.csv"]);
    let rows = csv(&path, "totals");
    assert!(
        text.contains("warning") && text.contains("times are summed up only of ranks whose sums are exact"),
        "{text}"
    );
    assert!(sum(&rows, "calls") > 0 && rows.iter().all(|row| row["time_ns"].is_empty()), "{rows:?}");
}

#[test]
fn sums_are_those_of_sketches_where_times_end_early_or_are_not_kept() {
    let whole = kernel(Kernel::Stencil2d);
    let rows = |made: &Made| {
        let (path, text) = made.convert(&["--level", "summary", "-o", "app.csv"]);
        (csv(&path, "totals"), text)
    };
    let wanted = rows(&whole).0;
    let mut untimed = whole.sections.clone();
    untimed.iter_mut().flat_map(|s| &mut s.threads).for_each(|thread| thread.columns.clear());
    let (found, text) = rows(&Made::of(untimed));
    assert_eq!(found, wanted);
    assert!(!text.contains("warning") && !text.contains("no place for"), "{text}");
    let mut cut = cut_short(&whole);
    let (found, text) = rows(&Made::of(cut.clone()));
    assert_eq!(found, wanted);
    assert!(!text.contains("no place for"), "{text}");
    // Without sketches nothing is known of calls of which some have no times.
    cut[0].threads[0].sketches.clear();
    let (found, text) = rows(&Made::of(cut));
    let has_time = |rank: &str, function: &str| {
        let row = found.iter().find(|row| row["rank"] == rank && row["function"] == function).unwrap();
        assert_eq!(row["time_ns"].is_empty(), row["before_ns"].is_empty());
        !row["time_ns"].is_empty()
    };
    assert!(has_time("0", names::MPI_Comm_rank) && has_time("1", names::MPI_Waitall));
    assert!(!has_time("0", names::MPI_Waitall) && !has_time("0", names::MPI_Finalize));
    assert!(text.contains("calls whose times are not known"), "{text}");
}

/// Without exact times sums are told by what is stored, and are those of all calls.
#[test]
fn sums_by_what_is_stored_are_those_of_calls() {
    for which in [&KERNELS[..], &[Kernel::Amr, Kernel::Wavefront]].concat() {
        // With exact times calls are gone through.
        let [whole, merged] =
            [true, false].map(|times| Made::of(vec![merge(kernel(which).sections, times).unwrap()]));
        let rows = |made: &Made, words: &[&str]| {
            let name = format!("of{}.csv", words.concat());
            let (path, _) = made.convert(&[&["--level", "summary", "-o", &name], words].concat());
            let names = ["rank", "function", "site", "calls", "sent_bytes", "received_bytes"];
            let of = |rows: Vec<Row>, names: &[&str]| -> Vec<Vec<String>> {
                rows.iter().map(|row| names.iter().map(|name| row[*name].clone()).collect()).collect()
            };
            let ranks = ["rank", "threads", "calls", "sent_bytes", "received_bytes"];
            (of(csv(&path, "totals"), &names), of(csv(&path, "ranks"), &ranks))
        };
        for words in [&[][..], &["--ranks", "1,3"], &["--sites", names::MPI_Finalize]] {
            let wanted = rows(&whole, words);
            assert_eq!(rows(&merged, words), wanted, "{which:?} {words:?}");
            assert!(!wanted.0.is_empty());
        }
    }
}

/// A hundred million calls: what a sum costs is what is stored.
#[test]
fn a_long_run_is_summed_up_in_few_steps() {
    let mut section = merge(kernel(Kernel::Stencil2d).sections, false).unwrap();
    let thread = &mut section.threads[0];
    let node = thread.tree.items().iter().position(|item| matches!(item, Item::Body { .. })).unwrap();
    thread.counts[node] = Elastic::only(Sealed::from_constant(10_000_000));
    let made = Made::of(vec![section]);
    let (path, _) = made.convert(&["--level", "summary", "--max-steps", "100000", "-o", "app.csv"]);
    assert!(sum(&csv(&path, "totals"), "calls") > 100_000_000);
    let (status, text) = said(&made, &["--max-steps", "100000", "-o", "all.csv"]);
    assert!(status != Some(0) && text.contains("--max-steps"), "{text}");
}

/// The exact times of rank 0 end after twenty calls.
fn cut_short(made: &Made) -> Vec<Section> {
    let mut sections = made.sections.clone();
    let (_, column) = &mut sections[0].threads[0].columns[0];
    let mut writer = ColumnWriter::resume(0, 0);
    let mut chunks: Vec<Chunk> =
        column.times().take(20).filter_map(|(enter, exit)| writer.push(enter, exit)).collect();
    chunks.extend(writer.flush());
    column.chunks = chunks;
    sections
}

/// Who waits for a rank whose trace is not there is not known.
#[test]
fn waits_for_ranks_that_are_missing_are_left_empty() {
    let mut sections = kernel(Kernel::Stencil2d).sections;
    sections.pop();
    let made = Made::of(sections);
    let (path, _) = made.convert(&["--waits", "-o", "app.csv", "--level", "summary"]);
    let rows = csv(&path, "totals");
    let wait = |function: &str| {
        let row = rows.iter().find(|row| row["rank"] == "0" && row["function"] == function).unwrap();
        row["wait_ns"].clone()
    };
    assert_eq!((wait(names::MPI_Allreduce), wait(names::MPI_Comm_rank)), (String::new(), "0".to_owned()));
    let (path, _) = made.convert(&["--waits", "-o", "phases.csv", "--level", "phases"]);
    assert!(csv(&path, "phases").iter().all(|row| row["wait_ns"] != "0"));
    // A cube has a number everywhere.
    let (_, said) = made.convert(&["--waits", "-o", "app.cubex"]);
    assert!(said.contains("cube has no place for") && said.contains("since ranks are missing"), "{said}");
    let (_, said) = kernel(Kernel::Stencil2d).convert(&["--waits", "-o", "app.cubex"]);
    assert!(!said.contains("no place"), "{said}");
}

#[test]
fn a_format_without_the_level_names_those_that_have_it() {
    let made = kernel(Kernel::Stencil2d);
    let refused = |words: &[&str], why: &str| {
        let (status, text) = said(&made, words);
        assert!(status == Some(2) && text.contains(why) && text.lines().count() == 1, "{text}");
        assert!(!Path::new(&made.path(words[1])).exists());
    };
    let with = "goal has no phases; these have: perfetto, chrome, csv, parquet, arrow, otf2";
    refused(&["-o", "a.goal", "--level", "phases"], with);
    let with = "perfetto has no summary; these have: csv, parquet, arrow, extrap, cube";
    refused(&["-o", "a.pftrace", "--level", "summary"], with);
    refused(&["-o", "a.cubex", "--level", "calls"], "cube has no calls; these have: perfetto");
    refused(&["-o", "a.csv", "--by", "loop"], "--by: is for --level phases");
    refused(&["-o", "b.csv", "--level", "phases", "--sites", "MPI_Isend"], "phases are written as a whole");
    refused(&["-o", "a.st", "--level", "calls"], "--level: is for traces of st");
    let (cube, _) = made.convert(&["-o", "a.cubex", "--level", "summary"]);
    let (same, _) = made.convert(&["-o", "b.cubex"]);
    assert_eq!(std::fs::read(cube).unwrap(), std::fs::read(same).unwrap());
}

#[test]
fn numbers_of_loops_do_not_depend_on_the_ranks_that_are_written() {
    let of = |rank: usize, turns: usize| {
        let turn = ["MPI_Barrier", "MPI_Comm_size"].repeat(turns);
        let names = [&["MPI_Init"][..], &turn, &["MPI_Finalize"]].concat();
        let times = (0..).step_by(10);
        let line = |(name, t): (&&str, u32)| {
            format!(
                "{{\"rank\":{rank},\"call\":\"{name}\",\"site\":\"{name}\",\"enter\":{t},\"exit\":{}}}\n",
                t + 5
            )
        };
        names.iter().zip(times).map(line).collect::<String>()
    };
    let made = Made::of_lines(&[of(0, 2000), of(1, 30), of(2, 30)].concat());
    let loops = |ranks: &str| {
        // That does for the calls of rank 2: those of ranks that are not written take nothing.
        let steps = if ranks == "2" { "700" } else { "100000" };
        let of = ["--ranks", ranks, "--level", "phases", "--max-steps", steps];
        let (path, _) = made.convert(&[&of[..], &["-o", ranks, "--to", "csv"]].concat());
        let rows = csv(&path, "phases");
        let of_last = rows.iter().filter(|row| row["rank"] == "2");
        of_last.map(|row| row["loop"].clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let all = loops("0-2");
    assert!(all.contains("1"), "ranks differ in their loops");
    assert_eq!(loops("2"), all);
}
