//! Archives of OTF2 as traces: what st-convert itself has written has the same messages, bytes and times, what EZTrace has written what
//! it tells, and damaged ones are refused. Without OTF2's library the program must say what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{At, KERNELS, Made, kernel};
use crate::import::lines_of;
use crate::otf2::THREADS;
use st_kernels::Kernel;
use st_stream::ReadOptions;

/// Writes an archive of all calls as a part of the run, which has records alone: what they tell must suffice, as of other tools.
const PLAIN: [&str; 4] = ["--until", "1000000", "-o", "app.otf2"];

fn convert(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_st-convert")).current_dir(place).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Whether OTF2's library is there; if not, after a look at what is said.
pub(crate) fn is_there(output: &Output) -> bool {
    let missing = said(output).contains("libopen-trace-format2-dev");
    assert!(!missing || output.status.code() == Some(1), "{}", said(output));
    !missing
}

/// Imports an archive.
fn imported(place: &Path, archive: &str) -> Option<(Made, String)> {
    let output = convert(place, &[archive, "-o", "back.st"]);
    if !is_there(&output) {
        return None;
    }
    assert!(output.status.success(), "{}", said(&output));
    let file = fs::File::open(place.join("back.st")).unwrap();
    let trace = st_stream::read(file, ReadOptions::default()).unwrap();
    Some((Made::of(trace.sections), said(&output)))
}

/// What functions send and receive that have messages.
fn volumes(made: &Made) -> BTreeMap<At, (u64, u64)> {
    let calls = made.calls();
    let messages = |at: &At| ["end", "ecv", "Wait"].iter().any(|part| calls[at].0.contains(part));
    made.volumes().into_iter().filter(|(at, _)| messages(at)).collect()
}

#[test]
fn an_archive_has_the_trace_s_messages_bytes_and_times() {
    for which in KERNELS {
        let made = kernel(which);
        if !is_there(&made.run(&PLAIN)) {
            return;
        }
        let Some((back, told)) = imported(made.directory.path(), "app.otf2") else { return };
        let (first, second) = (made.messages(), back.messages());
        assert!(!first.is_empty() || which == Kernel::Fft || which == Kernel::Rma, "{which:?}");
        assert_eq!(first, second, "{which:?}");
        assert_eq!(volumes(&made), volumes(&back), "{which:?}");
        assert_eq!(made.calls(), back.calls(), "{which:?}");
        let sum = |made: &Made| made.volumes().values().fold((0, 0), |s, v| (s.0 + v.0, s.1 + v.1));
        assert_eq!(sum(&made), sum(&back), "{which:?}");
        assert!(which != Kernel::Rma || !told.contains("partners, communicators"), "{told}");
        assert!(told.contains("datatypes of messages and operations (MPI_BYTE stands for them)"), "{told}");
        let lines = lines_of(&made.path("back.st"), &made.path("back.jsonl"), &[]);
        let window = lines.lines().find(|line| line.contains(r#""call":"MPI_Win_create""#));
        assert_eq!(window.is_some(), which == Kernel::Rma);
        assert!(window.is_none_or(|line| line.contains(r#""comm":"MPI_COMM_WORLD""#)), "{window:?}");
        let passed = |s| st_model::check::check(s).unwrap().iter().all(|thread| thread.passed());
        assert!(back.sections.iter().all(passed));
    }
}

/// Each rank's block stays where it is: what the others send makes the rest.
pub(crate) const IN_PLACE: &str = r#"
{"header":{"world":4,"program":"app"}}
{"rank":@,"call":"MPI_Init","enter":0,"exit":1}
{"rank":@,"call":"MPI_Allgather","inplace":true,"recvcount":10,"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD","enter":2,"exit":3}
{"rank":@,"call":"MPI_Allgatherv","inplace":true,"recvcounts":[5,5,5,5],"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD","enter":4,"exit":5}
{"rank":@,"call":"MPI_Allgather","inplace":false,"sendcount":3,"sendtype":"MPI_INT","recvcount":3,"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD","enter":6,"exit":7}
{"rank":@,"call":"MPI_Allgatherv","inplace":true,"recvcounts":[1,2,3,4],"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD","enter":7,"exit":8}
{"rank":@,"call":"MPI_Finalize","enter":8,"exit":9}
"#;

/// The lines of so many ranks, made of those of one, whose number stands as `@`.
pub(crate) fn of_ranks(lines: &str, ranks: u32) -> String {
    let (head, calls) = lines.trim().split_once('\n').unwrap();
    let ranks: String = (0..ranks).map(|rank| calls.replace('@', &rank.to_string()) + "\n").collect();
    format!("{head}\n{ranks}")
}

#[test]
fn operations_in_place_keep_their_bytes() {
    let made = Made::of_lines(&of_ranks(IN_PLACE, 4));
    if !is_there(&made.run(&PLAIN)) {
        return;
    }
    let Some((back, _)) = imported(made.directory.path(), "app.otf2") else { return };
    let of = |made: &Made| made.volumes().into_values().filter(|of| *of != (0, 0)).collect::<Vec<_>>();
    assert_eq!(of(&made)[..4], [(40, 120), (20, 60), (12, 48), (4, 36)]);
    assert_eq!(of(&made), of(&back));
}

/// Windows and files in every way that records tell.
pub(crate) const SHARED: &str = r#"
{"header":{"world":2,"program":"app"}}
{"win":"w","members":[0,1]}
{"file":"out","members":[0]}
{"group":"other","members":[1]}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"call":"MPI_Win_create","size":800,"dispunit":8,"comm":"MPI_COMM_WORLD","newwin":"w","enter":2,"exit":3}
{"rank":0,"call":"MPI_Win_lock","locktype":"MPI_LOCK_SHARED","target":1,"win":"w","enter":4,"exit":5}
{"rank":0,"call":"MPI_Put","origincount":3,"origintype":"MPI_INT","target":1,"targetcount":3,"targettype":"MPI_INT","win":"w","enter":6,"exit":7}
{"rank":0,"call":"MPI_Rget","origincount":5,"origintype":"MPI_INT","target":1,"targetcount":5,"targettype":"MPI_INT","win":"w","request":"g","enter":8,"exit":9}
{"rank":0,"call":"MPI_Wait","request":"g","enter":10,"exit":11}
{"rank":0,"call":"MPI_Win_flush","target":1,"win":"w","enter":12,"exit":13}
{"rank":0,"call":"MPI_Fetch_and_op","type":"MPI_LONG","target":1,"op":"MPI_SUM","win":"w","enter":14,"exit":15}
{"rank":0,"call":"MPI_Compare_and_swap","type":"MPI_INT","target":1,"win":"w","enter":16,"exit":17}
{"rank":0,"call":"MPI_Get_accumulate","origincount":2,"origintype":"MPI_INT","resultcount":2,"resulttype":"MPI_INT","target":1,"targetcount":2,"targettype":"MPI_INT","op":"MPI_SUM","win":"w","enter":18,"exit":19}
{"rank":0,"call":"MPI_Accumulate","origincount":4,"origintype":"MPI_INT","target":1,"targetcount":4,"targettype":"MPI_INT","op":"MPI_SUM","win":"w","enter":20,"exit":21}
{"rank":0,"call":"MPI_Rput","origincount":6,"origintype":"MPI_INT","target":1,"targetcount":6,"targettype":"MPI_INT","win":"w","request":"p","enter":21,"exit":21}
{"rank":0,"call":"MPI_Win_flush","target":1,"win":"w","enter":21,"exit":21}
{"rank":0,"call":"MPI_Wait","request":"p","enter":21,"exit":22}
{"rank":0,"call":"MPI_Win_unlock","target":1,"win":"w","enter":22,"exit":23}
{"rank":0,"call":"MPI_Win_lock_all","win":"w","enter":24,"exit":25}
{"rank":0,"call":"MPI_Win_unlock_all","win":"w","enter":26,"exit":27}
{"rank":0,"call":"MPI_Win_start","group":"other","win":"w","enter":28,"exit":29}
{"rank":0,"call":"MPI_Put","origincount":1,"origintype":"MPI_INT","target":1,"targetcount":1,"targettype":"MPI_INT","win":"w","enter":30,"exit":31}
{"rank":0,"call":"MPI_Win_complete","win":"w","enter":32,"exit":33}
{"rank":0,"call":"MPI_Win_fence","win":"w","enter":34,"exit":35}
{"rank":0,"call":"MPI_Win_free","freewin":"w","enter":36,"exit":37}
{"rank":0,"call":"MPI_File_open","comm":"MPI_COMM_SELF","filename":"data/out.bin","amode":"MPI_MODE_CREATE|MPI_MODE_RDWR","newfile":"out","enter":40,"exit":41}
{"rank":0,"call":"MPI_File_write_at","file":"out","count":3,"type":"MPI_INT","bytes":12,"enter":42,"exit":43}
{"rank":0,"call":"MPI_File_iwrite_at","file":"out","count":5,"type":"MPI_INT","request":"w","enter":44,"exit":45}
{"rank":0,"call":"MPI_File_write_all_begin","file":"out","count":7,"type":"MPI_INT","enter":46,"exit":47}
{"rank":0,"call":"MPI_File_write_all_end","file":"out","bytes":28,"enter":48,"exit":49}
{"rank":0,"call":"MPI_Wait","requests":["w"],"completed":[{"request":"w","bytes":20}],"enter":50,"exit":51}
{"rank":0,"call":"MPI_File_read_at","file":"out","count":9,"type":"MPI_INT","bytes":8,"enter":52,"exit":53}
{"rank":0,"call":"MPI_File_close","freefile":"out","enter":54,"exit":55}
{"rank":0,"call":"MPI_Finalize","enter":58,"exit":59}
{"rank":1,"call":"MPI_Init","enter":0,"exit":1}
{"rank":1,"call":"MPI_Win_create","size":800,"dispunit":8,"comm":"MPI_COMM_WORLD","newwin":"w","enter":2,"exit":3}
{"rank":1,"call":"MPI_Win_fence","win":"w","enter":34,"exit":35}
{"rank":1,"call":"MPI_Win_free","freewin":"w","enter":36,"exit":37}
{"rank":1,"call":"MPI_Finalize","enter":58,"exit":59}
"#;

/// What is told of the calls with windows and files, and those that wait. Of an object it only counts whether there is one.
fn told_of_shared(trace: &Path) -> Vec<String> {
    let lines = trace.with_extension("lines");
    let mut all = Vec::new();
    for line in lines_of(trace, &lines, &[]).lines() {
        let line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let Some(name) = line.get("call").and_then(|name| name.as_str()) else { continue };
        let told =
            ["rank", "target", "locktype", "amode", "filename", "bytes", "requests", "completed", "request"];
        let values = told.iter().filter_map(|key| Some(format!("{key}={}", line.get(*key)?)));
        let objects = ["win", "newwin", "freewin", "file", "newfile", "freefile", "group", "comm"];
        let there = objects.iter().filter_map(|key| Some(format!("{key}={}", !line.get(*key)?.is_null())));
        all.push(format!("{name} {}", values.chain(there).collect::<Vec<_>>().join(" ")));
    }
    all
}

#[test]
fn accesses_to_windows_and_files_are_calls_again() {
    let made = Made::of_lines(SHARED);
    if !is_there(&made.run(&PLAIN)) {
        return;
    }
    let Some((back, told)) = imported(made.directory.path(), "app.otf2") else { return };
    assert_eq!(made.calls(), back.calls());
    assert_eq!(made.volumes(), back.volumes(), "{told}");
    assert_eq!(made.messages(), back.messages());
    let [first, second] = ["app.st", "back.st"].map(|name| told_of_shared(&made.path(name)));
    assert_eq!(first, second, "{told}");
    assert!(second.iter().any(|call| call.contains("MPI_File_open") && call.contains("data/out.bin")));
    assert!(!told.contains("partners, communicators") && !told.contains("not complete"), "{told}");
}

#[test]
fn requests_are_found_that_another_thread_completes() {
    let made = Made::of_lines(THREADS);
    if !is_there(&made.run(&PLAIN)) {
        return;
    }
    let Some((back, told)) = imported(made.directory.path(), "app.otf2") else { return };
    assert_eq!(made.calls(), back.calls());
    assert_eq!(made.volumes(), back.volumes(), "{told}");
    let [first, second] = ["app.st", "back.st"].map(|name| told_of_shared(&made.path(name)));
    assert_eq!(first, second, "{told}");
    assert!(
        second.iter().any(|call| call.contains("MPI_Waitall") && call.contains(r#""tag":5"#)),
        "{second:?}"
    );
    assert!(!told.contains("requests"), "{told}");
}

/// A rank whose threads make so many calls each, and of which one completes what another has begun: back from an archive where so many
/// files can be open at once.
fn imported_with(files: u32, calls: &[u32]) -> Option<[Made; 2]> {
    let thread = |number: usize, call: &str| format!("{{\"rank\":0,\"thread\":{number},\"call\":{call}}}\n");
    let mut lines = thread(0, r#""MPI_Init","enter":0,"exit":1"#)
        + &thread(0, r#""MPI_Ibarrier","request":"a","enter":2,"exit":3"#)
        + &thread(1, r#""MPI_Wait","requests":[0],"completed":[{"request":0}],"enter":4,"exit":5"#);
    for (number, calls) in (2..).zip(calls) {
        let call = |n: u32| {
            let enter = 6 + 10 * n;
            thread(number, &format!(r#""MPI_Wtick","enter":{enter},"exit":{}"#, enter + 1))
        };
        lines.extend((0..*calls).map(call));
    }
    let made = Made::of_lines(&lines);
    if !is_there(&made.run(&PLAIN)) {
        return None;
    }
    let few = format!("ulimit -n {files}; exec \"$0\" -q app.otf2 -o back.st");
    let mut shell = Command::new("sh");
    let output = shell
        .current_dir(made.directory.path())
        .args(["-c", &few, env!("CARGO_BIN_EXE_st-convert")])
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let file = fs::File::open(made.path("back.st")).unwrap();
    let back = Made::of(st_stream::read(file, ReadOptions::default()).unwrap().sections);
    Some([made, back])
}

#[test]
fn a_rank_may_have_more_threads_than_files_can_be_open() {
    let Some([made, back]) = imported_with(32, &[1; 38]) else { return };
    assert_eq!(made.calls(), back.calls());
    // Long ones, of which some are read in parts.
    let calls: Vec<u32> = (0..160).map(|n| if n < 130 { 200 } else { 1100 }).collect();
    let Some([made, back]) = imported_with(160, &calls) else { return };
    assert_eq!(made.calls(), back.calls());
}

/// What no record tells of, and operations that are made once and started later, or have a type for each partner.
pub(crate) const LITTLE: &str = r#"
{"header":{"world":1,"program":"app"}}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"call":"MPI_Cart_coords","comm":"MPI_COMM_WORLD","rank2":0,"maxdims":1,"coords":[0],"enter":2,"exit":3}
{"rank":0,"call":"MPI_Bcast_init","count":12,"type":"MPI_BYTE","root":0,"comm":"MPI_COMM_WORLD","request":"b","enter":4,"exit":5}
{"rank":0,"call":"MPI_Start","request":"b","enter":6,"exit":7}
{"rank":0,"call":"MPI_Wait","request":"b","enter":8,"exit":9}
{"rank":0,"call":"MPI_Alltoallw","sendcounts":[5],"sdispls":[0],"sendtypes":["MPI_INT"],"recvcounts":[5],"rdispls":[0],"recvtypes":["MPI_INT"],"comm":"MPI_COMM_WORLD","enter":10,"exit":11}
{"rank":0,"call":"MPI_Finalize","enter":18,"exit":19}
"#;

#[test]
fn what_no_record_tells_is_stood_in_for() {
    let made = Made::of_lines(LITTLE);
    if !is_there(&made.run(&PLAIN)) {
        return;
    }
    let Some((back, told)) = imported(made.directory.path(), "app.otf2") else { return };
    let names: Vec<_> = back.calls().into_values().map(|call| call.0).collect();
    assert_eq!(names[3..6], ["MPI_Ibcast", "MPI_Wait", "MPI_Alltoallw"], "{told}");
    assert!(told.contains("1 starts of persistent requests (MPI_Ibcast stands for them)"), "{told}");
    let volumes = [&made, &back].map(|made| *made.volumes().get(&(0, 0, 5)).unwrap());
    assert_eq!(volumes, [(20, 20); 2]);
}

/// Words of the communicators that calls have, by function.
fn communicators(made: &Made) -> BTreeMap<String, BTreeSet<i64>> {
    let mut all = BTreeMap::<String, BTreeSet<i64>>::new();
    for section in &made.sections {
        for rank in section.ranks.iter() {
            let mut events = section.events(0, rank).unwrap();
            while let Some(event) = events.next_event().unwrap() {
                let slot = event.row.and_then(|row| row.slot("comm"));
                let word = slot.and_then(|slot| event.words().get(u8::try_from(slot).unwrap()));
                let name = event.name().unwrap().to_owned();
                all.entry(name).or_default().extend(word);
            }
        }
    }
    all
}

#[test]
fn calls_whose_communicator_no_record_tells_have_one() {
    let made = kernel(Kernel::Stencil2d);
    if !is_there(&made.run(&PLAIN)) {
        return;
    }
    let Some((back, told)) = imported(made.directory.path(), "app.otf2") else { return };
    let (first, second) = (communicators(&made), communicators(&back));
    assert!(second.values().flatten().all(|comm| *comm >= 0), "{second:?}");
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, comms) in &second {
        let is_guess = told.contains(&format!("communicators of {name} (MPI_COMM_WORLD stands for them)"));
        assert!(first[name].len() == comms.len() || is_guess, "{name}: {comms:?}, {told}");
    }
    let back = fs::File::open(made.path("back.st")).unwrap();
    let header = st_stream::read(back, ReadOptions::default()).unwrap().header;
    assert_eq!(header.program, "app");
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eztrace")
}

#[test]
fn an_archive_of_eztrace_has_what_it_tells() {
    let place = tempfile::tempdir().unwrap();
    for archive in [fixture(), fixture().join("eztrace_log.otf2")] {
        let Some((made, told)) = imported(place.path(), archive.to_str().unwrap()) else { return };
        let calls = made.calls();
        let count = |name: &str| calls.values().filter(|call| call.0 == name).count();
        let names = [
            "MPI_Init",
            "MPI_Isend",
            "MPI_Irecv",
            "MPI_Waitall",
            "MPI_Wait",
            "MPI_Allreduce",
            "MPI_Finalize",
        ];
        assert_eq!(names.map(count), [2, 7, 7, 6, 2, 6, 2], "{calls:?}");
        let sent: u64 =
            made.volumes().iter().filter(|(at, _)| calls[at].0.contains("end")).map(|(_, v)| v.0).sum();
        assert_eq!(sent, 6 * 400 + 24 + 80);
        // Its archives do not have what non-blocking receives got.
        assert_eq!(made.messages().iter().map(|m| m.2).collect::<BTreeSet<_>>(), BTreeSet::from([9]));
        for part in [
            "7 receives of which it is not told what came",
            "14 ends of requests",
            "2 MPI_Init and MPI_Finalize of ranks",
        ] {
            assert!(told.contains(part), "{told}");
        }
    }
}

#[test]
fn damaged_archives_are_refused_or_read_and_leave_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let files = ["eztrace_log.def", "eztrace_log.otf2", "eztrace_log/0.evt", "eztrace_log/1073741823.evt"];
    let mut refused = 0;
    for seed in 0..24usize {
        let archive = place.path().join("bad");
        fs::create_dir_all(archive.join("eztrace_log")).unwrap();
        for name in [
            "eztrace_log.def",
            "eztrace_log.otf2",
            "eztrace_log/0.def",
            "eztrace_log/0.evt",
            "eztrace_log/1073741823.def",
            "eztrace_log/1073741823.evt",
        ] {
            fs::copy(fixture().join(name), archive.join(name)).unwrap();
        }
        let file = archive.join(files[seed % files.len()]);
        let mut bytes = fs::read(&file).unwrap();
        let at = seed * 7919 % bytes.len();
        if seed % 3 == 0 {
            bytes.truncate(at)
        } else {
            bytes[at] ^= 0x55
        }
        fs::write(&file, bytes).unwrap();
        let output = convert(place.path(), &["bad", "--read-as", "otf2", "-o", "bad.st"]);
        if !is_there(&output) {
            return;
        }
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 3)), "{seed}: {code:?} {}", said(&output));
        refused += usize::from(code == Some(3));
        assert_eq!(place.path().join("bad.st").exists(), code == Some(0), "{}", said(&output));
        let _ = fs::remove_file(place.path().join("bad.st"));
    }
    assert!(refused > 6, "{refused}");
    let output = convert(place.path(), &[".", "--read-as", "otf2", "-o", "bad.st"]);
    assert!(said(&output).contains("has no file NAME.otf2"), "{}", said(&output));
}
