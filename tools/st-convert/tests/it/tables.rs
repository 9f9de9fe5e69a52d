//! Tables, read back: CSV compared with the trace, Parquet and Arrow IPC with CSV.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use crate::common::{At, KERNELS, Made, kernel};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use st_kernels::Kernel;
use st_model::rank_times::rank_times;
use st_reduce::merge::merge;

pub(crate) type Row = BTreeMap<String, String>;

const TABLES: [&str; 5] = ["events", "messages", "sites", "ranks", "comms"];

pub(crate) fn csv(directory: &Path, table: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(directory.join(format!("{table}.csv"))).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

pub(crate) fn parquet(directory: &Path, table: &str) -> Vec<Row> {
    let file = File::open(directory.join(format!("{table}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Long(n) => n.to_string(),
        Field::Str(text) => text.clone(),
        other => unreachable!("{other:?}"),
    };
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| row.get_column_iter().map(|(name, field)| (name.clone(), text(field))).collect()).collect()
}

pub(crate) fn number<T: std::str::FromStr>(row: &Row, column: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    row[column].parse().unwrap()
}

fn at(row: &Row, [rank, thread, call]: [&str; 3]) -> At {
    (number(row, rank), number(row, thread), number(row, call))
}

#[test]
fn without_times_some_calls_of_each_thread_come_together() {
    let mut sections = kernel(KERNELS[0]).sections.clone();
    sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|thread| thread.columns.clear());
    let made = Made::of(sections);
    let (path, said) = made.convert(&["-o", "app.csv"]);
    assert!(said.contains("some of each thread at a time"), "{said}");
    let events = csv(&path, "events");
    let changes = events.windows(2).filter(|rows| rows[0]["rank"] != rows[1]["rank"]).count();
    assert!(changes <= events.len() / 8, "{changes} of {}", events.len());
    let mut next = BTreeMap::<String, u64>::new();
    for row in &events {
        let expected = next.entry(format!("{}.{}", row["rank"], row["thread"])).or_default();
        assert_eq!(number::<u64>(row, "call"), *expected);
        *expected += 1;
    }
}

#[test]
fn csv_has_all_calls_messages_and_bytes() {
    for which in KERNELS {
        let made = kernel(which);
        let (path, _) = made.convert(&["-o", "app.csv"]);
        let (calls, volumes) = (made.calls(), made.volumes());
        let events = csv(&path, "events");
        assert_eq!(events.len(), calls.len(), "{which:?}");
        let sites: BTreeSet<String> = csv(&path, "sites").iter().map(|row| row["site"].clone()).collect();
        for row in &events {
            let at = at(row, ["rank", "thread", "call"]);
            let known = (row["function"].clone(), number(row, "enter_ns"), number(row, "exit_ns"));
            assert_eq!(known, calls[&at], "{which:?} {at:?}");
            assert_eq!((number(row, "sent_bytes"), number(row, "received_bytes")), volumes[&at]);
            assert!(sites.contains(&row["site"]), "{row:?}");
        }
        let messages = csv(&path, "messages");
        let ends = |row: &Row| {
            let from = at(row, ["from_rank", "from_thread", "sent_call"]);
            (from, at(row, ["to_rank", "to_thread", "received_call"]))
        };
        let found: BTreeSet<(At, At)> = messages.iter().map(ends).collect();
        let wanted: BTreeSet<(At, At)> =
            made.messages().into_iter().map(|(from, to, _)| (from, to)).collect();
        assert_eq!((found.len(), found), (messages.len(), wanted), "{which:?}");
        let bytes: u64 = messages.iter().map(|row| number::<u64>(row, "bytes")).sum();
        assert_eq!(bytes, made.message_bytes(), "{which:?}");
        for row in &messages {
            let (from, to) = ends(row);
            assert_eq!(number::<i64>(row, "sent_ns"), calls[&from].1);
            assert_eq!(number::<i64>(row, "received_ns"), calls[&to].2);
            let posted = (to.0, to.1, number(row, "posted_call"));
            assert_eq!(number::<i64>(row, "posted_ns"), calls[&posted].1);
        }
        let times: BTreeMap<u32, _> =
            made.sections.iter().flat_map(rank_times).map(|t| (t.rank, t)).collect();
        for row in csv(&path, "ranks") {
            let rank = number::<u32>(&row, "rank");
            let of = |at: &&At| at.0 == rank;
            let sums = volumes.iter().filter(|(at, _)| of(at)).map(|(_, bytes)| *bytes);
            let sums = sums.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert_eq!((number(&row, "sent_bytes"), number(&row, "received_bytes")), sums);
            // A series of polls is one event.
            let series = events.iter().filter(|row| number::<u32>(row, "rank") == rank);
            assert_eq!(
                number::<u64>(&row, "calls"),
                series.map(|row| number::<u64>(row, "calls")).sum::<u64>()
            );
            assert_eq!(number::<u128>(&row, "time_ns"), times[&rank].whole);
            assert_eq!(number::<u128>(&row, "mpi_ns"), times[&rank].mpi);
        }
    }
}

#[test]
fn parquet_has_what_csv_has() {
    for which in KERNELS {
        let made = kernel(which);
        let (rows, _) = made.convert(&["-o", "app.csv"]);
        let (columns, _) = made.convert(&["-o", "app.parquet"]);
        for table in TABLES {
            assert_eq!(parquet(&columns, table), csv(&rows, table), "{which:?} {table}");
        }
        assert_eq!(parquet(&columns, "messages").is_empty(), made.messages().is_empty(), "{which:?}");
    }
}

#[test]
fn dest_source_and_comm_are_those_of_the_message() {
    let made = kernel(Kernel::Workers);
    let (path, _) = made.convert(&["-o", "app.csv"]);
    let events: BTreeMap<At, Row> =
        csv(&path, "events").into_iter().map(|row| (at(&row, ["rank", "thread", "call"]), row)).collect();
    let comms = csv(&path, "comms");
    for row in csv(&path, "messages") {
        let sent = &events[&at(&row, ["from_rank", "from_thread", "sent_call"])];
        assert_eq!(
            (&sent["dest"], &sent["tag"], &sent["comm"]),
            (&row["to_rank"], &row["tag"], &row["comm"])
        );
        let comm = comms.iter().find(|comm| comm["comm"] == row["comm"]).unwrap();
        let members: Vec<&str> = comm["members"].split(' ').collect();
        assert!(members.contains(&row["from_rank"].as_str()) && members.contains(&row["to_rank"].as_str()));
    }
}

#[test]
fn a_trace_without_times_has_tables_and_nothing_that_needs_times() {
    let whole = kernel(Kernel::Workers);
    let merged = Made::of(vec![merge(whole.sections.clone(), false).unwrap()]);
    let (path, said) = merged.convert(&["-o", "app.csv"]);
    assert!(said.contains("no exact times"), "{said}");
    let events = csv(&path, "events");
    assert_eq!(events.len(), whole.calls().len());
    assert!(events.iter().all(|row| row["enter_ns"].is_empty()));
    let ends = |rows: Vec<Row>| -> BTreeSet<(At, At)> {
        let one = |row: &Row| {
            let from = at(row, ["from_rank", "from_thread", "sent_call"]);
            (from, at(row, ["to_rank", "to_thread", "received_call"]))
        };
        rows.iter().map(one).collect()
    };
    let wanted: BTreeSet<(At, At)> = whole.messages().into_iter().map(|(from, to, _)| (from, to)).collect();
    assert_eq!(ends(csv(&path, "messages")), wanted);
    let refused = merged.run(&["-o", "app.pftrace"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--keep-columns"));
    assert!(!merged.path("app.pftrace").exists());
    let refused = merged.run(&["-o", "b.csv", "--from", "1"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let made = kernel(Kernel::Stencil2d);
    let status = |words: &[&str]| {
        let output = made.run(words);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = status(&["-o", "app.what"]);
    assert!(code == 2 && said.contains("--to"), "{code} {said}");
    let (code, said) = status(&["--ranks", "7", "-o", "a.csv"]);
    assert!(code == 2 && said.contains("no rank 7"), "{code} {said}");
    let (code, said) = status(&["--from", "1e6", "-o", "a.csv"]);
    assert!(code == 2 && said.contains("the run ends after"), "{said}");
    let (code, _) = status(&["--from", "2", "--until", "1", "-o", "a.csv"]);
    assert_eq!(code, 2);
    made.convert(&["--to", "csv", "-o", "tables"]);
    let (code, said) = status(&["--to", "csv", "-o", "tables"]);
    assert!(code == 1 && said.contains("exists"), "{code} {said}");
    // Of half of the ranks some messages have one end only.
    let (code, said) = status(&["--ranks", "0-1", "--strict", "-o", "half.csv"]);
    assert!(code == 4 && said.contains("sends whose receive is not there"), "{code} {said}");
    let (code, said) = status(&["--strict", "-o", "all.csv"]);
    assert!(code == 4 && !said.contains("sends whose receive"), "{code} {said}");
    assert_eq!(status(&["--strict", "--level", "summary", "-o", "all.csv"]).0, 0);
    let mut left: Vec<_> =
        made.directory.path().read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["all.csv", "app.st", "tables"]);
}

#[test]
fn sites_and_functions_choose_calls_and_messages_of_both_ends() {
    let made = kernel(Kernel::Stencil2d);
    let whole = made.convert(&["-o", "whole.csv"]).0;
    let sends: Vec<Row> =
        csv(&whole, "events").into_iter().filter(|row| row["function"] == "MPI_Isend").collect();
    let (path, said) = made.convert(&["-o", "sends.csv", "--sites", "MPI_Isend"]);
    assert!(said.contains("at most"), "{said}");
    assert_eq!(csv(&path, "events"), sends);
    assert!(csv(&path, "messages").is_empty());
    assert!(said.contains(" messages with one end outside of what is chosen"), "{said}");
    let site = &sends[0]["site"];
    let by_number = made.convert(&["-o", "number.csv", "--sites", site]).0;
    assert_eq!(csv(&by_number, "events"), sends);
    let ends = ["--sites", "MPI_Isend", "--sites", "MPI_Waitall"];
    let both = made.convert(&[&["-o", "both.csv"], &ends[..]].concat()).0;
    assert_eq!(csv(&both, "messages"), csv(&whole, "messages"));
    for (words, why) in [
        (&["-o", "no.csv", "--sites", "nowhere"][..], "no such call site or function"),
        (&["-o", "no.goal", "--sites", "MPI_Isend"], "leave out --from"),
        (&["-o", "no.csv", "--phase", "1"], "does not call MPI_Pcontrol"),
    ] {
        let refused = made.run(words);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn numbers_of_communicators_do_not_depend_on_what_is_written() {
    let made = kernel(Kernel::Fft);
    let whole = made.convert(&["-o", "whole.csv"]).0;
    let known: BTreeMap<String, Row> =
        csv(&whole, "comms").into_iter().map(|row| (row["comm"].clone(), row)).collect();
    assert!(known.len() > 3 && known["0"]["name"] == "MPI_COMM_WORLD", "{known:?}");
    let some = made.convert(&["-o", "some.csv", "--ranks", "3"]).0;
    let part = csv(&some, "comms");
    assert!(!part.is_empty() && part.len() < known.len());
    part.iter().for_each(|row| assert_eq!(row, &known[&row["comm"]]));
}

#[test]
fn what_is_said_to_be_written_is_about_what_is() {
    let made = kernel(Kernel::Stencil2d);
    let (path, _) = made.convert(&["-o", "whole.csv"]);
    let all = csv(&path, "events");
    // Within the call in the middle of the run.
    let mut times: Vec<(i64, i64)> =
        all.iter().map(|row| (number(row, "enter_ns"), number(row, "exit_ns"))).collect();
    times.sort_unstable();
    let (enter, exit) = times[times.len() / 2];
    let middle = i64::midpoint(enter, exit);
    assert!(enter < middle && middle < exit);
    let time = format!("{}.{:09}", middle / 1_000_000_000, middle % 1_000_000_000);
    for (option, name) in [("--from", "late.csv"), ("--until", "early.csv")] {
        let (path, said) = made.convert(&["-o", name, option, &time]);
        let written = csv(&path, "events").len();
        assert!(written > 0 && written < all.len());
        assert!(said.starts_with(&format!("st-convert: {written} calls")), "{written}: {said}");
    }
}

#[test]
fn wait_states_come_to_the_sums_of_the_analysis() {
    let mut any = 0;
    for which in KERNELS {
        let made = kernel(which);
        let (path, _) = made.convert(&["-o", "app.csv", "--waits"]);
        let (columns, _) = made.convert(&["-o", "app.parquet", "--waits"]);
        let (rows, calls) = (csv(&path, "waits"), made.calls());
        assert_eq!(parquet(&columns, "waits"), rows, "{which:?}");
        let waits = st_explain::analyse(&made.sections, &|_| ()).unwrap().waits;
        let (mut kinds, mut pairs) = (BTreeMap::new(), BTreeMap::new());
        for row in &rows {
            let wait: u64 = number(row, "wait_ns");
            *kinds.entry(row["kind"].clone()).or_insert(0) += wait;
            *pairs.entry((number(row, "rank"), number(row, "for_rank"))).or_insert(0) += wait;
            let (function, enter, exit) = &calls[&at(row, ["rank", "thread", "call"])];
            assert_eq!(&row["function"], function);
            let begin: i64 = number(row, "begin_ns");
            assert!(*enter <= begin && begin + i64::try_from(wait).unwrap() <= *exit);
        }
        let of = |kind: &st_explain::WaitKind| (kind.name().to_owned(), waits.of(*kind).ns);
        let expected = st_explain::WaitKind::ALL.iter().map(of).filter(|(_, ns)| *ns > 0).collect();
        assert_eq!(kinds, expected, "{which:?}");
        assert_eq!(pairs, waits.pairs.iter().map(|(pair, sum)| (*pair, sum.ns)).collect(), "{which:?}");
        any += rows.len();
        let some = made.convert(&["-o", "some.csv", "--waits", "--ranks", "1"]).0;
        let own: Vec<Row> = rows.into_iter().filter(|row| row["rank"] == "1").collect();
        assert_eq!(csv(&some, "waits"), own, "{which:?}");
        assert!(!made.convert(&["-o", "without.csv"]).0.join("waits.csv").exists());
    }
    assert!(any > 50, "{any}");
    let refused = kernel(Kernel::Fft).run(&["-o", "a.pftrace", "--waits"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("perfetto has no waits; these have: csv, parquet, arrow, extrap, cube"), "{said}");
}

#[test]
fn what_is_refused_for_want_of_times_is_not_warned_of_before() {
    let merged = Made::of(vec![merge(kernel(Kernel::Stencil2d).sections, false).unwrap()]);
    let said = |words: &[&str]| {
        let out = merged.run(&[&["-o", "app.csv"], words].concat());
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, text) = said(&["--waits"]);
    assert_eq!((status, text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("which --waits needs"), "{text}");
    let (status, text) = said(&[]);
    assert!(status == Some(0) && text.contains("warning"), "{text}");
}

#[test]
fn ranks_take_as_long_merged_with_their_times_as_alone() {
    let apart = kernel(Kernel::Workers);
    let together = Made::of(vec![merge(apart.sections.clone(), true).unwrap()]);
    let ranks = |made: &Made| csv(&made.convert(&["-o", "app.csv"]).0, "ranks");
    assert_eq!(ranks(&apart), ranks(&together));
}

/// Rows of a table of Arrow IPC.
fn arrow(directory: &Path, table: &str) -> Vec<Row> {
    let file = File::open(directory.join(format!("{table}.arrow"))).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    let mut rows = Vec::new();
    for batch in reader.map(Result::unwrap) {
        for at in 0..batch.num_rows() {
            let columns = batch.schema_ref().fields().iter().zip(batch.columns());
            let cell = |column: &ArrayRef| match column.data_type() {
                _ if Array::is_null(column, at) => String::new(),
                DataType::UInt32 => column.as_primitive::<UInt32Type>().value(at).to_string(),
                DataType::Int64 => column.as_primitive::<Int64Type>().value(at).to_string(),
                _ => column.as_string::<i32>().value(at).to_owned(),
            };
            rows.push(columns.map(|(field, column)| (field.name().clone(), cell(column))).collect());
        }
    }
    rows
}

#[test]
fn arrow_has_what_csv_has() {
    for which in KERNELS {
        let made = kernel(which);
        let (rows, _) = made.convert(&["-o", "app.csv", "--waits"]);
        let (columns, _) = made.convert(&["-o", "app.arrow", "--waits"]);
        for table in ["events", "messages", "sites", "ranks", "comms", "waits"] {
            assert_eq!(arrow(&columns, table), csv(&rows, table), "{which:?} {table}");
        }
    }
}
