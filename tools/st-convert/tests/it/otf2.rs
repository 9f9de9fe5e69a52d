//! Archives of OTF2, read back by otf2-print. Without the library the program must say what is missing; with it, but without
//! otf2-print, an archive's files must be there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{At, KERNELS, Made, kernel};
use crate::tables::{csv, number};
use st_kernels::Kernel;

/// An event: kind, location, time, attributes.
struct Event {
    kind: String,
    location: u64,
    time: i64,
    rest: String,
}

impl Event {
    /// The first number behind a word.
    fn number(&self, word: &str) -> u64 {
        let behind = self.rest.split_once(word).unwrap().1;
        behind.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }
}

/// Converts a trace; `None` where the library is not there, after a look at what is said then.
fn archive(made: &Made, words: &[&str]) -> Option<std::path::PathBuf> {
    let output = made.run(words);
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("libopen-trace-format2-dev") {
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(made.directory.path().read_dir().unwrap().count(), 1, "only the trace is there");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let at = words.iter().position(|word| *word == "-o").unwrap();
    Some(made.path(words[at + 1]))
}

/// All events; `None` without otf2-print.
fn events(archive: &Path) -> Option<Vec<Event>> {
    let anchor = archive.join("traces.otf2");
    assert!(anchor.is_file());
    let output = Command::new("otf2-print").arg("-Werror").arg("-A").arg(&anchor).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let event = |line: &str| {
        let mut words = line.split_whitespace();
        let kind = words.next()?.to_owned();
        let (location, time) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Event { kind, location, time, rest: words.collect::<Vec<_>>().join(" ") })
    };
    Some(text.lines().filter_map(event).collect())
}

/// Rank and thread of a location.
fn place(location: u64) -> (u32, u32) {
    (u32::try_from(location & 0xffff_ffff).unwrap(), u32::try_from(location >> 32).unwrap())
}

#[test]
fn an_archive_has_all_calls_messages_and_operations() {
    for which in KERNELS {
        let made = kernel(which);
        let Some(events) = archive(&made, &["-o", "app.otf2"]).as_deref().and_then(events) else { return };
        let calls = made.calls();
        // Calls in the order of each thread.
        let mut found: BTreeMap<At, (String, i64, i64)> = BTreeMap::new();
        let mut next: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let (mut begun, mut ended) = (0, 0);
        for event in &events {
            let (rank, thread) = place(event.location);
            let at = next.entry((rank, thread)).or_default();
            let of_mpi = event.rest.starts_with("Region: \"MPI_");
            let message = |peer: u64| (rank, peer, event.number("Tag: "), event.number("Length: "));
            match event.kind.as_str() {
                "ENTER" if of_mpi => {
                    let name = event.rest.split('"').nth(1).unwrap().to_owned();
                    found.insert((rank, thread, *at), (name, event.time, event.time));
                }
                "LEAVE" if of_mpi => {
                    found.get_mut(&(rank, thread, *at)).unwrap().2 = event.time;
                    *at += 1;
                }
                "MPI_SEND" | "MPI_ISEND" => sent.push(message(event.number("Receiver: "))),
                "MPI_RECV" | "MPI_IRECV" => received.push(message(event.number("Sender: "))),
                "MPI_COLLECTIVE_BEGIN" | "NON_BLOCKING_COLLECTIVE_REQUEST" => begun += 1,
                "MPI_COLLECTIVE_END" | "NON_BLOCKING_COLLECTIVE_COMPLETE" => ended += 1,
                _ => {}
            }
        }
        assert_eq!(found, calls, "{which:?}");
        let messages = made.messages();
        assert_eq!((sent.len(), received.len()), (messages.len(), messages.len()), "{which:?}");
        assert_eq!(sent.iter().map(|m| m.3).sum::<u64>(), made.message_bytes(), "{which:?}");
        assert_eq!(received.iter().map(|m| m.3).sum::<u64>(), made.message_bytes(), "{which:?}");
        if which == Kernel::Stencil2d {
            // Positions in the world are ranks, and each message sent is received.
            let mut turned: Vec<_> = received
                .iter()
                .map(|(to, from, tag, bytes)| (u32::try_from(*from).unwrap(), u64::from(*to), *tag, *bytes))
                .collect();
            turned.sort_unstable();
            sent.sort_unstable();
            assert_eq!(sent, turned);
        }
        assert_eq!(begun, ended, "{which:?}");
        assert!(begun > 0, "{which:?}");
    }
}

#[test]
fn an_archive_of_some_ranks_is_whole_in_itself() {
    let made = kernel(Kernel::Stencil2d);
    let words = ["--ranks", "1,3", "-o", "app.otf2"];
    let Some(events) = archive(&made, &words).as_deref().and_then(events) else { return };
    let of_both = |kind: &str, word: &str| {
        let all = events.iter().filter(|event| event.kind == kind);
        all.map(|event| (place(event.location).0, event.number(word))).collect::<Vec<_>>()
    };
    // Rank 3 is the second of the two that are there, and of its two neighbours one is.
    let (sent, received) = (of_both("MPI_ISEND", "Receiver: "), of_both("MPI_IRECV", "Sender: "));
    assert!(sent.iter().all(|m| [(1, 1), (3, 0)].contains(m)), "{sent:?}");
    assert_eq!(sent.len(), received.len());
    assert_eq!(sent.len(), made.messages().iter().filter(|(f, t, _)| f.0 % 2 == 1 && t.0 % 2 == 1).count());
    assert!(!sent.is_empty());
}

#[test]
fn phases_are_regions_with_their_times() {
    let made = kernel(Kernel::Stencil2d);
    let level = ["--level", "phases", "--waits", "-o"];
    let rows = csv(&made.convert(&[&level[..], &["app.csv"]].concat()).0, "phases");
    let Some(events) = archive(&made, &[&level[..], &["app.otf2"]].concat()).as_deref().and_then(events)
    else {
        return;
    };
    assert_eq!(events.len(), 3 * rows.len());
    let mut by_rank: Vec<&[Event]> = events.chunks(1).collect();
    by_rank.sort_by_key(|event| event[0].location);
    for (row, event) in rows.iter().zip(by_rank.chunks(3)) {
        let [enter, metric, leave] = [&event[0][0], &event[1][0], &event[2][0]];
        assert_eq!([&*enter.kind, &*metric.kind, &*leave.kind], ["ENTER", "METRIC", "LEAVE"]);
        assert_eq!(enter.location, number::<u64>(row, "rank"));
        assert_eq!((enter.time, leave.time), (number(row, "begin_ns"), number(row, "end_ns")));
        let name = if row["loop"].is_empty() { "between" } else { "loop of " };
        assert!(enter.rest.starts_with(&format!("Region: \"{name}")), "{}", enter.rest);
        for column in ["compute_ns", "mpi_ns", "wait_ns"] {
            assert!(metric.rest.contains(&row[column]), "{column} {}", metric.rest);
        }
    }
}

/// An operation of one rank alone, a message in parts, and what two groups do with each other.
const OTHERS: &str = r#"{"comm":"own","ranks":[0],"members":[0]}
{"comm":"own","ranks":[1],"members":[1]}
{"comm":"both","ranks":[0],"members":[0],"remote":[1,2]}
{"comm":"both","ranks":[1,2],"members":[1,2],"remote":[0]}
{"rank":0,"call":"MPI_Reduce","count":5,"type":"MPI_INT","op":"MPI_SUM","root":0,"comm":"own","enter":10,"exit":20}
{"rank":0,"call":"MPI_Psend_init","partitions":4,"count":8,"type":"MPI_INT","dest":1,"tag":3,"request":"s","enter":30,"exit":40}
{"rank":0,"call":"MPI_Start","request":"s","enter":40,"exit":50}
{"rank":0,"call":"MPI_Wait","request":"s","enter":50,"exit":60}
{"rank":0,"call":"MPI_Send","count":1,"type":"MPI_INT","dest":1,"tag":1,"comm":"both","enter":70,"exit":80}
{"rank":0,"call":"MPI_Bcast","count":1,"type":"MPI_INT","root":"MPI_ROOT","comm":"both","enter":80,"exit":90}
{"rank":0,"call":"MPI_Gather","sendcount":1,"sendtype":"MPI_INT","root":1,"comm":"both","enter":90,"exit":99}
{"rank":1,"call":"MPI_Reduce","count":5,"type":"MPI_INT","op":"MPI_SUM","root":0,"comm":"own","enter":10,"exit":20}
{"rank":1,"call":"MPI_Precv_init","partitions":2,"count":16,"type":"MPI_INT","source":0,"tag":3,"request":"r","enter":30,"exit":40}
{"rank":1,"call":"MPI_Start","request":"r","enter":40,"exit":50}
{"rank":1,"call":"MPI_Wait","request":"r","enter":50,"exit":60}
{"rank":1,"call":"MPI_Bcast","count":1,"type":"MPI_INT","root":0,"comm":"both","enter":80,"exit":90}
{"rank":1,"call":"MPI_Gather","root":"MPI_PROC_NULL","comm":"both","enter":90,"exit":99}
{"rank":1,"call":"MPI_Send","count":2,"type":"MPI_INT","dest":2,"tag":5,"enter":100,"exit":110}
{"rank":2,"call":"MPI_Recv","count":1,"type":"MPI_INT","source":0,"tag":1,"comm":"both","enter":70,"exit":80}
{"rank":2,"call":"MPI_Bcast","count":1,"type":"MPI_INT","root":0,"comm":"both","enter":80,"exit":90}
{"rank":2,"call":"MPI_Gather","recvcount":1,"recvtype":"MPI_INT","root":"MPI_ROOT","comm":"both","enter":90,"exit":99}
{"rank":2,"call":"MPI_Mprobe","source":1,"tag":5,"request":"m","enter":100,"exit":110}
{"rank":2,"call":"MPI_Mrecv","count":2,"type":"MPI_INT","request":"m","bytes":8,"enter":110,"exit":120}
"#;

#[test]
fn what_one_rank_or_two_groups_do_is_there_in_plain_communicators() {
    let made = Made::of_lines(OTHERS);
    // By records alone, which a part of the run has, if of all its calls.
    let Some(path) = archive(&made, &["--until", "1000", "-o", "app.otf2"]) else { return };
    // Back again, the sides of the communicator are apart.
    let mut back = Command::new(env!("CARGO_BIN_EXE_st-convert"));
    back.current_dir(made.directory.path()).args(["-q", "app.otf2", "-o", "back.st"]);
    assert!(back.status().unwrap().success());
    let file = std::fs::File::open(made.path("back.st")).unwrap();
    let sections = st_stream::read(file, st_stream::ReadOptions::default()).unwrap().sections;
    let comms = sections.iter().flat_map(|s| &s.tables.comms).flat_map(|entry| &entry.of);
    let sizes = comms.map(|(_, comm)| (comm.content.members.len(), comm.content.remote.len()));
    let both: Vec<_> = sizes.filter(|(_, remote)| *remote > 0).collect();
    assert_eq!(both, [(1, 2), (2, 1), (2, 1)]);
    let words = |sections: &[st_model::section::Section], name: &str, word: &str| {
        let mut all = Vec::new();
        for section in sections {
            for rank in section.ranks.iter() {
                let mut events = section.events(0, rank).unwrap();
                while let Some(event) = events.next_event().unwrap() {
                    if event.name() == Some(name)
                        && let Some(st_model::event::Arg::One(value)) = event.arg(word)
                    {
                        all.push(value);
                    }
                }
            }
        }
        all
    };
    for (name, word) in [("MPI_Send", "dest"), ("MPI_Bcast", "root"), ("MPI_Gather", "root")] {
        assert_eq!(words(&sections, name, word), words(&made.sections, name, word), "{name}");
    }

    // What a probe has found is received by a plain call.
    assert_eq!(
        (words(&sections, "MPI_Mrecv", "bytes"), words(&sections, "MPI_Recv", "source")),
        (vec![], vec![0, 1])
    );

    let Some(events) = events(&path) else { return };
    let lengths: Vec<_> = events
        .iter()
        .filter(|e| e.kind.starts_with("MPI_ISEND") && e.rest.contains("Length"))
        .map(|e| e.number("Length: "))
        .collect();
    assert_eq!(lengths, [128]);
    assert_eq!(events.iter().filter(|e| e.kind == "MPI_COLLECTIVE_END").count(), 8);
    let definitions = Command::new("otf2-print").arg("-G").arg(path.join("traces.otf2")).output().unwrap();
    assert!(
        !String::from_utf8_lossy(&definitions.stdout).contains("INTER_COMM"),
        "Python's module cannot read such"
    );
}

/// Sums of what accesses to windows and files have, by kind of record.
fn accessed(events: &[Event]) -> BTreeMap<&str, (usize, u64)> {
    let mut all: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind.starts_with("RMA_") || event.kind.starts_with("IO_"))
    {
        let words = ["Bytes: ", "Sent: ", "Received: ", "Bytes Result: "];
        let bytes = words
            .iter()
            .filter(|word| event.rest.contains(*word))
            .map(|word| event.number(word))
            .sum::<u64>();
        let of = all.entry(event.kind.as_str()).or_default();
        *of = (of.0 + 1, of.1 + bytes);
    }
    all
}

#[test]
fn accesses_to_windows_have_the_bytes_of_their_calls() {
    let made = kernel(Kernel::Rma);
    let Some(events) = archive(&made, &["-o", "app.otf2"]).as_deref().and_then(events) else { return };
    let (found, calls, volumes) = (accessed(&events), made.calls(), made.volumes());
    let of = |names: &[&str]| {
        let all = calls.iter().filter(|(_, call)| names.contains(&call.0.as_str()));
        all.fold((0, 0), |(n, bytes), (at, _)| (n + 1, bytes + volumes[at].0 + volumes[at].1))
    };
    let accesses = [
        ("RMA_PUT", &["MPI_Put", "MPI_Rput"][..]),
        ("RMA_GET", &["MPI_Get", "MPI_Rget"]),
        ("RMA_ATOMIC", &["MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Get_accumulate", "MPI_Compare_and_swap"]),
    ];
    let mut begun = 0;
    for (kind, names) in accesses {
        let (n, bytes) = found.get(kind).copied().unwrap_or_default();
        assert_eq!((n, bytes), of(names), "{kind}");
        begun += n;
    }
    assert!(begun > 0);
    assert_eq!(found["RMA_OP_COMPLETE_BLOCKING"].0, begun, "all are complete: {found:?}");
    assert_eq!(found["RMA_WIN_CREATE"].0, found["RMA_WIN_DESTROY"].0);
}

const LOCKS: &str = r#"
{"header":{"world":1,"program":"app"}}
{"win":"w","members":[0]}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"call":"MPI_Win_create","size":8,"dispunit":8,"comm":"MPI_COMM_WORLD","newwin":"w","enter":2,"exit":3}
{"rank":0,"call":"MPI_Win_lock","locktype":"MPI_LOCK_SHARED","target":0,"win":"w","enter":4,"exit":5}
{"rank":0,"call":"MPI_Win_unlock","target":0,"win":"w","enter":6,"exit":7}
{"rank":0,"call":"MPI_Win_lock_all","win":"w","enter":8,"exit":9}
{"rank":0,"call":"MPI_Win_unlock_all","win":"w","enter":10,"exit":11}
{"rank":0,"call":"MPI_Finalize","enter":18,"exit":19}
"#;

#[test]
fn locks_are_requested_and_released_and_when_they_are_granted_is_not_said() {
    let made = Made::of_lines(LOCKS);
    let Some(events) = archive(&made, &["-o", "app.otf2"]).as_deref().and_then(events) else { return };
    let locks = events.iter().filter(|event| event.kind.ends_with("_LOCK"));
    let locks: Vec<_> = locks.map(|event| (event.kind.as_str(), event.time)).collect();
    let (request, release) = ("RMA_REQUEST_LOCK", "RMA_RELEASE_LOCK");
    assert_eq!(locks, [(request, 4), (release, 7), (request, 8), (release, 11)]);
}

const FILES: &str = r#"
{"header":{"world":1,"program":"app"}}
{"file":"out","members":[0]}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"call":"MPI_File_open","comm":"MPI_COMM_WORLD","filename":"data/out.bin","amode":"MPI_MODE_CREATE|MPI_MODE_RDWR","newfile":"out","enter":2,"exit":3}
{"rank":0,"call":"MPI_File_write_at","file":"out","offset":0,"count":3,"type":"MPI_INT","bytes":12,"enter":4,"exit":5}
{"rank":0,"call":"MPI_File_iwrite_at","file":"out","offset":12,"count":5,"type":"MPI_INT","request":"w","enter":6,"exit":7}
{"rank":0,"call":"MPI_File_write_all_begin","file":"out","count":7,"type":"MPI_INT","enter":8,"exit":9}
{"rank":0,"call":"MPI_File_write_all_end","file":"out","bytes":28,"enter":10,"exit":11}
{"rank":0,"call":"MPI_Wait","request":"w","enter":12,"exit":13}
{"rank":0,"call":"MPI_File_read_at","file":"out","offset":0,"count":9,"type":"MPI_INT","bytes":8,"enter":14,"exit":15}
{"rank":0,"call":"MPI_File_close","freefile":"out","enter":16,"exit":17}
{"rank":0,"call":"MPI_Finalize","enter":18,"exit":19}
"#;

#[test]
fn files_and_what_is_written_and_read_are_records() {
    let made = Made::of_lines(FILES);
    let Some(events) = archive(&made, &["-o", "app.otf2"]).as_deref().and_then(events) else { return };
    let found = accessed(&events);
    let wanted = BTreeMap::from([
        ("IO_CREATE_HANDLE", (1, 0)),
        ("IO_OPERATION_BEGIN", (4, 0)),
        ("IO_OPERATION_ISSUED", (2, 0)),
        ("IO_OPERATION_COMPLETE", (4, 12 + 20 + 28 + 8)),
        ("IO_DESTROY_HANDLE", (1, 0)),
    ]);
    assert_eq!(found, wanted);
    let time = |kind: &str| -> Vec<i64> {
        events.iter().filter(|event| event.kind == kind).map(|event| event.time).collect()
    };
    assert_eq!(
        (time("IO_OPERATION_BEGIN"), time("IO_OPERATION_COMPLETE")),
        (vec![4, 6, 8, 14], vec![5, 11, 13, 15])
    );
    assert!(
        events.iter().any(|event| event.kind == "IO_CREATE_HANDLE" && event.rest.contains("data/out.bin"))
    );
}

/// Lines of the definitions that `otf2-print` prints.
fn definitions(archive: &Path, kind: &str) -> Option<Vec<String>> {
    let output = Command::new("otf2-print").arg("-G").arg(archive.join("traces.otf2")).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(text.lines().filter(|line| line.starts_with(&format!("{kind} "))).map(plain).collect())
}

#[test]
fn files_that_are_open_when_a_window_begins_are_said_to_be() {
    let made = Made::of_lines(FILES);
    let Some(whole) = archive(&made, &["-o", "app.otf2"]) else { return };
    let Some(handles) = definitions(&whole, "IO_HANDLE") else { return };
    assert!(!handles[0].contains("PRE_CREATED"), "{handles:?}");
    assert!(definitions(&whole, "IO_PRE_CREATED_HANDLE_STATE").unwrap().is_empty());
    let part = archive(&made, &["--from", "0.0000000035", "-o", "part.otf2"]).unwrap();
    let handles = definitions(&part, "IO_HANDLE").unwrap();
    assert_eq!(handles.len(), 1, "{handles:?}");
    assert!(handles[0].contains("PRE_CREATED") && handles[0].contains("data/out.bin"), "{handles:?}");
    let states = definitions(&part, "IO_PRE_CREATED_HANDLE_STATE").unwrap();
    assert!(states.len() == 1 && states[0].contains("READ_WRITE"), "{states:?}");
    let found = events(&part).unwrap();
    let found = accessed(&found);
    assert!(!found.contains_key("IO_CREATE_HANDLE"), "{found:?}");
    assert_eq!(found["IO_OPERATION_COMPLETE"], (4, 12 + 20 + 28 + 8));
    assert_eq!(found["IO_DESTROY_HANDLE"].0, 1);
    // It is closed before this window begins.
    let late = archive(&made, &["--from", "0.0000000175", "-o", "late.otf2"]).unwrap();
    assert!(definitions(&late, "IO_HANDLE").unwrap().is_empty());
}

/// Thread 1 waits for what thread 0 has begun, thread 0 uses the file that thread 1 has opened.
pub(crate) const THREADS: &str = r#"
{"header":{"world":2,"program":"app"}}
{"file":"out","members":[0]}
{"win":"w","members":[0,1]}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"thread":1,"call":"MPI_File_open","comm":"MPI_COMM_SELF","filename":"out.bin","amode":"MPI_MODE_WRONLY","newfile":"out","enter":2,"exit":3}
{"rank":0,"call":"MPI_Isend","comm":"MPI_COMM_WORLD","dest":1,"tag":5,"count":3,"type":"MPI_INT","request":0,"enter":4,"exit":5}
{"rank":0,"call":"MPI_Ibarrier","comm":"MPI_COMM_WORLD","request":1,"enter":6,"exit":7}
{"rank":0,"call":"MPI_File_iwrite_at","file":"out","offset":0,"count":5,"type":"MPI_INT","request":2,"enter":8,"exit":9}
{"rank":0,"thread":1,"call":"MPI_Waitall","n":3,"requests":[0,1,2],"completed":[{"request":0},{"request":1},{"request":2,"bytes":20}],"enter":10,"exit":15}
{"rank":0,"call":"MPI_Isend","comm":"MPI_COMM_WORLD","dest":1,"tag":6,"count":1,"type":"MPI_INT","request":0,"enter":20,"exit":21}
{"rank":0,"thread":1,"call":"MPI_Wait","requests":[0],"completed":[{"request":0}],"enter":22,"exit":23}
{"rank":0,"thread":1,"call":"MPI_File_close","freefile":"out","enter":24,"exit":25}
{"rank":0,"call":"MPI_Finalize","enter":28,"exit":29}
{"rank":1,"call":"MPI_Init","enter":0,"exit":1}
{"rank":1,"call":"MPI_Irecv","comm":"MPI_COMM_WORLD","source":0,"tag":5,"count":3,"type":"MPI_INT","request":0,"enter":2,"exit":3}
{"rank":1,"call":"MPI_Ibarrier","comm":"MPI_COMM_WORLD","request":1,"enter":6,"exit":7}
{"rank":1,"thread":1,"call":"MPI_Waitall","n":2,"requests":[0,1],"completed":[{"request":0,"source":0,"tag":5,"bytes":12},{"request":1}],"enter":8,"exit":16}
{"rank":1,"call":"MPI_Recv","comm":"MPI_COMM_WORLD","source":0,"tag":6,"count":1,"type":"MPI_INT","rsource":0,"bytes":4,"enter":20,"exit":22}
{"rank":1,"call":"MPI_Finalize","enter":28,"exit":29}
"#;

#[test]
fn what_one_thread_begins_another_completes() {
    let made = Made::of_lines(THREADS);
    let (rows, said) = made.convert(&["--to", "csv", "-o", "rows"]);
    let messages = csv(&rows, "messages");
    let times: Vec<_> = messages.iter().map(|row| number::<i64>(row, "received_ns")).collect();
    assert_eq!((messages.len(), times), (2, vec![16, 22]), "{said}");
    assert!(!said.contains("nothing has made"), "{said}");
    let Some(archive) = archive(&made, &["-o", "app.otf2"]) else { return };
    let Some(events) = events(&archive) else { return };
    let of = |kind: &str| -> Vec<_> {
        let all = events.iter().filter(|event| event.kind == kind);
        all.map(|event| (place(event.location), event.time)).collect()
    };
    assert_eq!(of("MPI_ISEND"), [((0, 0), 4), ((0, 0), 20)]);
    assert_eq!(of("MPI_ISEND_COMPLETE"), [((0, 1), 15), ((0, 1), 23)]);
    assert_eq!((of("MPI_IRECV_REQUEST"), of("MPI_IRECV")), (vec![((1, 0), 2)], vec![((1, 1), 16)]));
    assert_eq!(of("NON_BLOCKING_COLLECTIVE_COMPLETE"), [((0, 1), 15), ((1, 1), 16)]);
    assert_eq!(
        (of("IO_OPERATION_BEGIN"), of("IO_OPERATION_COMPLETE")),
        (vec![((0, 0), 8)], vec![((0, 1), 15)])
    );
    // It is open before thread 0 writes to it.
    assert!(definitions(&archive, "IO_HANDLE").unwrap().iter().all(|line| !line.contains("PRE_CREATED")));
    assert_eq!(definitions(&archive, "IO_HANDLE").unwrap().len(), 1);
}

#[test]
fn more_files_than_are_agreed_to_are_refused_and_threads_without_calls_have_none() {
    let made = kernel(Kernel::Stencil2d);
    for (to, most, part) in [
        ("a.otf2", "11", "otf2 would be some 12 files for 4 threads: --ranks 0-2 would"),
        ("a.ti", "5", "--ranks 0-0 would"),
    ] {
        let refused = made.run(&["--max-files", most, "-o", to]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            refused.status.code() == Some(2) && said.contains(part) && said.contains("--max-files"),
            "{said}"
        );
        assert!(!made.path(to).exists());
    }
    assert!(made.run(&["--max-files", "8", "-o", "a.ti"]).status.success());
    let threads = kernel(Kernel::Threads);
    let output = threads.run(&["--sites", "MPI_Finalize", "-o", "few.otf2"]);
    if String::from_utf8(output.stderr).unwrap().contains("libopen-trace-format2-dev") {
        return;
    }
    let files = |archive: &str| {
        let all = threads.path(archive).join("traces").read_dir().unwrap();
        all.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "evt")).count()
    };
    assert!(threads.run(&["-o", "all.otf2"]).status.success());
    let lanes: usize = threads.sections.iter().map(|section| section.threads.len()).sum();
    assert!(
        files("few.otf2") == 4 && files("all.otf2") == lanes && lanes > 4,
        "{} {lanes}",
        files("few.otf2")
    );
}

/// The library goes on where it cannot write, and returns success: an archive without its events.
#[test]
fn what_cannot_be_written_is_said_and_leaves_no_archive() {
    let made = kernel(Kernel::Stencil2d);
    if archive(&made, &["--to", "otf2", "-o", "whole"]).is_none() {
        return;
    }
    // Files of at most 512 bytes, as on a full disk.
    let program = env!("CARGO_BIN_EXE_st-convert");
    let line = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' app.st -q --to otf2 -o full");
    let output = Command::new("sh").arg("-c").arg(&line).current_dir(made.directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("too large") && said.lines().count() == 1, "{said}");
    assert!(!made.path("full").exists());
}
