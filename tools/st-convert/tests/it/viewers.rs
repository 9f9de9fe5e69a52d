//! What viewers are given, read back: Chrome's JSON and Perfetto's protobuf.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{At, KERNELS, Known, Made, kernel};
use crate::wire::{Field, Message, fields};
use serde_json::Value;
use st_kernels::Kernel;

/// ns of a time in µs.
pub(crate) fn ns(value: &Value) -> i64 {
    let text = value.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, "0"));
    let sign = if whole.starts_with('-') { -1 } else { 1 };
    whole.parse::<i64>().unwrap() * 1000 + sign * format!("{part:0<3}").parse::<i64>().unwrap()
}

/// Messages: the calls that send them and that complete their receives, and tags.
type Messages = BTreeSet<(At, At, i64)>;

/// Calls, messages, and bytes of all messages.
fn chrome(made: &Made) -> (BTreeMap<At, Known>, Messages, u64) {
    let (path, _) = made.convert(&["-o", "app.json"]);
    let text = std::fs::read_to_string(path).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let number = |e: &Value, key: &str| e[key].as_u64().unwrap();
    let (mut calls, mut ends, mut bytes) =
        (BTreeMap::new(), BTreeMap::<u64, [Option<(u32, u32, i64, i64)>; 2]>::new(), 0);
    for e in json["traceEvents"].as_array().unwrap() {
        let id = |key: &str| u32::try_from(number(e, key)).unwrap();
        match e["ph"].as_str().unwrap() {
            "X" => {
                let at = (id("pid"), id("tid"), number(&e["args"], "call"));
                let (enter, name) = (ns(&e["ts"]), e["name"].as_str().unwrap().to_owned());
                assert!(calls.insert(at, (name, enter, enter + ns(&e["dur"]))).is_none(), "twice {at:?}");
            }
            phase @ ("s" | "f") => {
                let end = usize::from(phase == "f");
                let tag = e["args"]["tag"].as_i64().unwrap();
                let of = (id("pid"), id("tid"), ns(&e["ts"]), tag);
                assert!(ends.entry(number(e, "id")).or_default()[end].replace(of).is_none());
                bytes += if end == 0 { number(&e["args"], "bytes") } else { 0 };
            }
            _ => {}
        }
    }
    // The call that a message is sent with, and the one that it arrives at the end of.
    let around = |(rank, thread, at, _): (u32, u32, i64, i64), sends: bool| {
        let mut found = calls.range((rank, thread, 0)..=(rank, thread, u64::MAX));
        let there = |call: &Known| if sends { call.1 == at } else { (call.2 - 1..=call.2).contains(&at) };
        *found.find(|(_, call)| there(call)).unwrap().0
    };
    let messages = ends.values().map(|[from, to]| {
        let (from, to) = (from.unwrap(), to.unwrap());
        (around(from, true), around(to, false), from.3)
    });
    let messages = messages.collect();
    (calls, messages, bytes)
}

#[test]
fn chrome_has_all_calls_and_messages() {
    for which in KERNELS {
        let made = kernel(which);
        let (calls, messages, bytes) = chrome(&made);
        assert_eq!(calls, made.calls(), "{which:?}");
        let plain = |all: Messages| all.into_iter().map(|(f, t, _)| (f, t)).collect::<BTreeSet<_>>();
        assert_eq!(plain(messages), plain(made.messages()), "{which:?}");
        assert_eq!(bytes, made.message_bytes(), "{which:?}");
    }
}

#[test]
fn chrome_says_what_it_leaves_out() {
    let made = kernel(Kernel::Fft);
    let (_, said) = made.convert(&["-o", "app.json"]);
    let collective = ["MPI_Alltoallv", "MPI_Reduce", "MPI_Bcast"];
    let parts = made.calls().values().filter(|call| collective.contains(&call.0.as_str())).count();
    assert!(
        parts > 0
            && said.contains("chrome has no place for: ")
            && said.contains(&format!(" {parts} parts in collective")),
        "{said}"
    );
    let refused = made.run(&["-o", "b.json", "--strict"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(!made.path("b.json").exists());
}

/// What stands in a trace of Perfetto.
#[derive(Default)]
struct Read {
    calls: BTreeMap<At, Known>,
    messages: BTreeSet<(At, At)>,
    operations: BTreeMap<u64, Vec<At>>,
    counters: BTreeMap<u64, Vec<(i64, i64)>>,
    sites: BTreeSet<String>,
}

/// Texts that a packet gives numbers to, by kind and number.
fn interned(packet: &Message<'_>) -> impl Iterator<Item = ((u64, u64), String)> {
    packet.of(12).flat_map(|data| data.message().all).map(|(kind, interned)| {
        let entry = interned.message();
        ((kind, entry.number(1)), entry.text(2))
    })
}

/// Reads packets by the numbers of their fields.
fn perfetto(bytes: &[u8]) -> Read {
    let mut texts: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let (mut tracks, mut open) = (BTreeMap::new(), BTreeMap::<u64, Vec<(i64, bool, Field<'_>)>>::new());
    let mut out = Read::default();
    for (_, packet) in fields(bytes) {
        let packet = packet.message();
        texts.extend(interned(&packet));
        for track in packet.of(60).map(|track| track.message()) {
            tracks.insert(track.number(1), track);
        }
        for event in packet.of(11) {
            let (at, e) = (i64::try_from(packet.number(8)).unwrap(), event.message());
            match e.number(9) {
                4 => out.counters.entry(e.number(11)).or_default().push((at, e.signed(30))),
                kind => open.entry(e.number(11)).or_default().push((at, kind == 2, event)),
            }
        }
    }
    let (mut flows, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for (track, events) in open {
        let lane = &tracks[&track].of(4).next().unwrap().message();
        let (rank, thread) = (lane.number(1) - 1, lane.text(5).replace("thread ", ""));
        let (rank, thread) = (u32::try_from(rank).unwrap(), thread.parse::<u32>().unwrap());
        let (begins, done): (Vec<_>, Vec<_>) = events.into_iter().partition(|(_, ends, _)| !ends);
        // The n-th slice to begin is the n-th to end: none are nested.
        let mut done: Vec<_> = done.into_iter().map(|(at, _, e)| (at, e.message())).collect();
        done.sort_by_key(|(at, _)| *at);
        for ((begin, _, event), (end, last)) in begins.into_iter().zip(&done) {
            let event = event.message();
            let name = texts[&(2, event.number(10))].clone();
            let notes = event.of(4).map(|note| note.message());
            let notes: BTreeMap<String, _> = notes.map(|n| (texts[&(3, n.number(1))].clone(), n)).collect();
            let at = (rank, thread, u64::try_from(notes["call"].signed(4)).unwrap());
            out.sites.insert(texts[&(29, notes["site"].number(17))].clone());
            assert!(out.calls.insert(at, (name, begin, *end)).is_none(), "twice {at:?}");
            for flow in event.of(47).map(|f| f.fixed()) {
                if flow % 2 == 1 {
                    assert!(flows.insert(flow, at).is_none());
                } else {
                    out.operations.entry(flow).or_default().push(at);
                }
            }
            ends.extend(last.of(47).map(|f| (f.fixed(), at)));
        }
    }
    out.messages = ends.into_iter().map(|(flow, to)| (flows[&flow], to)).collect();
    out
}

/// Slices of phases: rank, begin, end and time in MPI, and name. The packets of one follow each other.
pub(crate) fn slices(bytes: &[u8]) -> Vec<(u32, (i64, i64, i64), String)> {
    let mut texts: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let (mut tracks, mut all, mut open) = (BTreeMap::new(), Vec::new(), None);
    for (_, packet) in fields(bytes) {
        let packet = packet.message();
        texts.extend(interned(&packet));
        for track in packet.of(60).map(|track| track.message()) {
            let pid = track.of(4).next().map(|thread| thread.message().number(1));
            tracks.extend(pid.map(|pid| (track.number(1), u32::try_from(pid - 1).unwrap())));
        }
        for event in packet.of(11).map(|event| event.message()) {
            let at = i64::try_from(packet.number(8)).unwrap();
            if event.number(9) == 1 {
                let notes = event.of(4).map(|note| note.message());
                let mut mpi = notes.filter(|note| texts[&(3, note.number(1))] == "mpi_ns");
                let mpi = mpi.next().unwrap().signed(4);
                open = Some((tracks[&event.number(11)], at, mpi, texts[&(2, event.number(10))].clone()));
            } else {
                let (rank, begin, mpi, name) = open.take().unwrap();
                assert_eq!((event.number(9), tracks[&event.number(11)]), (2, rank));
                all.push((rank, (begin, at, mpi), name));
            }
        }
    }
    all
}

#[test]
fn perfetto_has_all_calls_messages_and_operations() {
    for which in KERNELS {
        let made = kernel(which);
        let (path, _) = made.convert(&["-o", "app.pftrace"]);
        let read = perfetto(&std::fs::read(path).unwrap());
        assert_eq!(read.calls, made.calls(), "{which:?}");
        let messages: BTreeSet<_> = made.messages().into_iter().map(|(from, to, _)| (from, to)).collect();
        assert_eq!(read.messages, messages, "{which:?}");
        // All ranks take part in the same operation.
        for (id, parts) in &read.operations {
            let names: BTreeSet<_> = parts.iter().map(|at| read.calls[at].0.clone()).collect();
            assert_eq!(names.len(), 1, "{which:?} {id} {names:?}");
            assert!(parts.len() > 1, "{which:?} {id} {names:?}");
        }
        let all = read.operations.values().filter(|parts| parts.len() == 4).count();
        assert!(all > 0 || which == Kernel::Rma, "{which:?}: no operation of all ranks");
        assert!(read.sites.iter().all(|site| site.starts_with("site ")), "{:?}", read.sites);
        // Nothing is in flight in the end, and something was before.
        if let Some(in_flight) = read.counters.get(&1) {
            assert_eq!(in_flight.last().unwrap().1, 0, "{which:?}");
            assert!(in_flight.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 >= 0), "{which:?}");
        } else {
            assert_eq!(read.messages.len(), 0, "{which:?}");
        }
    }
}

#[test]
fn waiting_ranks_are_those_of_the_wait_states() {
    let made = kernel(Kernel::Stencil2d);
    let (path, _) = made.convert(&["-o", "app.pftrace"]);
    let read = perfetto(&std::fs::read(path).unwrap());
    let steps = &read.counters[&2];
    let waited: i64 = steps.windows(2).map(|w| (w[1].0 - w[0].0) * w[0].1).sum();
    let found = st_explain::analyse_each(&made.sections, &|_| ()).unwrap();
    let wanted: u64 = found.each.iter().map(|w| w.ns).sum();
    assert_eq!(u64::try_from(waited).unwrap(), wanted);
    assert!(wanted > 0);
}

#[test]
fn a_window_and_ranks_are_what_is_asked_for() {
    let made = kernel(Kernel::Stencil2d);
    let all = made.calls();
    let (from, until) = (all[&(1, 0, 5)].2, all[&(1, 0, 30)].1);
    let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let words =
        ["--ranks", "1-2", "--from", &seconds(from), "--until", &seconds(until), "-o", "part.pftrace"];
    let (path, _) = made.convert(&words);
    let read = perfetto(&std::fs::read(path).unwrap());
    let mut wanted = all.clone();
    wanted.retain(|at, call| (1..3).contains(&at.0) && call.1 < until && call.2 > from);
    assert_eq!(read.calls, wanted);
    assert!(read.calls.contains_key(&(1, 0, 6)) && !read.calls.contains_key(&(1, 0, 30)));
}

#[test]
fn a_backslash_at_the_end_of_a_name_does_not_hide_that() {
    let line = r#"{"rank":0,"call":"MPI_Comm_set_name","name":"a\"b\\","enter":10,"exit":20}"#;
    let text = std::fs::read_to_string(Made::of_lines(line).convert(&["-o", "app.json"]).0).unwrap();
    assert!(!text.contains(r"\\"), "trace_processor takes the quote behind it as part of the name");
    let read: Value = serde_json::from_str(&text).unwrap();
    let named = |event: &Value| event["args"]["name"] == "a\"b\\";
    assert!(read["traceEvents"].as_array().unwrap().iter().any(named), "{text}");
}

/// Slices of calls as who reads a trace has them: packets in the order of time, those of a time in that of the file. Rank, name, begin and
/// end; an instant has but one time.
fn stacked(bytes: &[u8]) -> Vec<(u64, String, i64, i64)> {
    let mut texts: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut events = Vec::new();
    let mut of = BTreeMap::new();
    for (_, packet) in fields(bytes) {
        let packet = packet.message();
        texts.extend(interned(&packet));
        for track in packet.of(60).map(|track| track.message()) {
            of.extend(track.of(4).next().map(|thread| (track.number(1), thread.message().number(1) - 1)));
        }
        for event in packet.of(11).map(|event| event.message()).filter(|event| event.number(9) != 4) {
            let name = texts.get(&(2, event.number(10))).cloned().unwrap_or_default();
            events.push((i64::try_from(packet.number(8)).unwrap(), event.number(9), event.number(11), name));
        }
    }
    events.sort_by_key(|event| event.0);
    let (mut open, mut all) = (BTreeMap::<u64, Vec<(i64, String)>>::new(), Vec::new());
    for (at, kind, track, name) in events {
        match kind {
            1 => open.entry(track).or_default().push((at, name)),
            2 => {
                let (begin, name) = open.get_mut(&track).unwrap().pop().unwrap();
                all.push((of[&track], name, begin, at));
            }
            _ => all.push((of[&track], name, at, at)),
        }
    }
    all
}

#[test]
fn a_slice_ends_before_the_next_begins_also_where_its_message_is_known_late() {
    let made = Made::of_lines(
        r#"{"rank":1,"call":"MPI_Init","enter":0,"exit":0}
{"rank":0,"call":"MPI_Send","dest":1,"tag":7,"bytes":800,"enter":600,"exit":700}
{"rank":1,"call":"MPI_Recv","source":0,"tag":7,"bytes":800,"enter":100,"exit":500}
{"rank":1,"call":"MPI_Barrier","comm":"MPI_COMM_SELF","enter":500,"exit":900}
"#,
    );
    let (path, _) = made.convert(&["-o", "app.pftrace"]);
    let slices = stacked(&std::fs::read(path).unwrap());
    for (name, begin, end) in [("MPI_Recv", 100, 500), ("MPI_Barrier", 500, 900), ("message", 500, 500)] {
        let found: Vec<_> = slices.iter().filter(|slice| slice.1 == name).collect();
        let times: Vec<_> = found.iter().map(|slice| (slice.0, slice.2, slice.3)).collect();
        assert_eq!(times, [(1, begin, end)], "{name}: {slices:?}");
    }
}

#[test]
fn bytes_in_flight_are_those_of_messages_that_are_written() {
    let made = kernel(Kernel::Stencil2d);
    let (path, _) = made.convert(&["--sites", "MPI_Isend", "-o", "sends.pftrace"]);
    assert_eq!(perfetto(&std::fs::read(path).unwrap()).counters.get(&1), None);
    // What a wildcard holds back is known late.
    let made = Made::of_lines(
        r#"{"rank":1,"call":"MPI_Init","enter":0,"exit":0}
{"rank":0,"call":"MPI_Send","dest":1,"tag":7,"bytes":100,"enter":100,"exit":110}
{"rank":0,"call":"MPI_Send","dest":1,"tag":9,"bytes":50,"enter":800,"exit":810}
{"rank":1,"call":"MPI_Irecv","source":"MPI_ANY_SOURCE","tag":"MPI_ANY_TAG","bytes":2000,"request":"w","enter":20,"exit":30}
{"rank":1,"call":"MPI_Recv","source":0,"tag":9,"bytes":50,"enter":750,"exit":820}
{"rank":1,"call":"MPI_Wait","request":"w","completed":[{"request":"w","source":0,"tag":7,"bytes":100}],"enter":900,"exit":910}
"#,
    );
    let (path, _) = made.convert(&["-o", "app.pftrace"]);
    let read = perfetto(&std::fs::read(path).unwrap());
    assert_eq!(read.counters[&1], [(100, 100), (800, 150), (820, 100), (910, 0)]);
}
