//! What formats have no place for: it is named with how often it is there, `--strict` refuses it, and what an archive of OTF2 does not
//! tell when it is read was named when it was written.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::{KERNELS, Made, kernel};

/// Calls with datatypes, operations, windows, files, persistent requests, neighbours, probes and wildcards.
const ALL: &str = r#"
{"header":{"world":2,"program":"app"}}
{"win":"w","members":[0,1]}
{"file":"out","members":[0]}
{"comm":"grid","members":[0,1]}
{"type":"cell","size":24}
{"rank":0,"call":"MPI_Init"}
{"rank":0,"call":"MPI_Comm_rank","comm":"MPI_COMM_WORLD"}
{"rank":0,"call":"MPI_Type_vector","count":3,"blocklength":1,"stride":2,"type":"MPI_DOUBLE","newtype":"cell"}
{"rank":0,"call":"MPI_Cart_create","comm":"MPI_COMM_WORLD","ndims":1,"dims":[2],"periods":[true],"reorder":0,"newcomm":"grid"}
{"rank":0,"call":"MPI_Send","count":2,"type":"cell","dest":1,"tag":5,"comm":"MPI_COMM_WORLD"}
{"rank":0,"call":"MPI_Send_init","count":3,"type":"MPI_INT","dest":1,"tag":6,"comm":"MPI_COMM_WORLD","request":"p"}
{"rank":0,"call":"MPI_Start","request":"p"}
{"rank":0,"call":"MPI_Wait","request":"p"}
{"rank":0,"call":"MPI_Request_free","request":"p"}
{"rank":0,"call":"MPI_Isend","count":1,"type":"MPI_INT","dest":1,"tag":7,"comm":"MPI_COMM_WORLD","request":"a"}
{"rank":0,"call":"MPI_Waitany","requests":["a"],"completed":[{"request":"a"}]}
{"rank":0,"call":"MPI_Allreduce","inplace":true,"count":4,"type":"MPI_DOUBLE","op":"MPI_SUM","comm":"MPI_COMM_WORLD"}
{"rank":0,"call":"MPI_Bcast","count":4,"type":"MPI_DOUBLE","root":0,"comm":"MPI_COMM_WORLD"}
{"rank":0,"call":"MPI_Allgatherv","inplace":true,"recvcounts":[2,2],"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD"}
{"rank":0,"call":"MPI_Allgather","inplace":true,"recvcount":5,"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD"}
{"rank":0,"call":"MPI_Neighbor_allgather","sendcount":1,"sendtype":"MPI_INT","recvcount":1,"recvtype":"MPI_INT","comm":"grid"}
{"rank":0,"call":"MPI_Win_create","size":800,"dispunit":8,"comm":"MPI_COMM_WORLD","newwin":"w"}
{"rank":0,"call":"MPI_Win_fence","win":"w"}
{"rank":0,"call":"MPI_Accumulate","origincount":4,"origintype":"MPI_INT","target":1,"targetdisp":2,"targetcount":4,"targettype":"MPI_INT","op":"MPI_SUM","win":"w"}
{"rank":0,"call":"MPI_Win_fence","win":"w"}
{"rank":0,"call":"MPI_Win_free","freewin":"w"}
{"rank":0,"call":"MPI_File_open","comm":"MPI_COMM_SELF","filename":"out.bin","amode":"MPI_MODE_CREATE|MPI_MODE_RDWR","newfile":"out"}
{"rank":0,"call":"MPI_File_write_at","file":"out","offset":80,"count":3,"type":"MPI_INT","bytes":12}
{"rank":0,"call":"MPI_File_close","freefile":"out"}
{"rank":0,"call":"MPI_Finalize"}
{"rank":1,"call":"MPI_Init"}
{"rank":1,"call":"MPI_Cart_create","comm":"MPI_COMM_WORLD","ndims":1,"dims":[2],"periods":[true],"reorder":0,"newcomm":"grid"}
{"rank":1,"call":"MPI_Probe","source":0,"tag":5,"comm":"MPI_COMM_WORLD","bytes":48}
{"rank":1,"call":"MPI_Recv","count":6,"type":"MPI_DOUBLE","source":"MPI_ANY_SOURCE","tag":5,"comm":"MPI_COMM_WORLD","rsource":0,"rtag":5,"bytes":48}
{"rank":1,"call":"MPI_Mprobe","source":0,"tag":6,"comm":"MPI_COMM_WORLD","request":"m","bytes":12}
{"rank":1,"call":"MPI_Mrecv","count":3,"type":"MPI_INT","request":"m","bytes":12}
{"rank":1,"call":"MPI_Recv","count":1,"type":"MPI_INT","source":0,"tag":7,"comm":"MPI_COMM_WORLD","bytes":4}
{"rank":1,"call":"MPI_Allreduce","inplace":true,"count":4,"type":"MPI_DOUBLE","op":"MPI_SUM","comm":"MPI_COMM_WORLD"}
{"rank":1,"call":"MPI_Bcast","count":4,"type":"MPI_DOUBLE","root":0,"comm":"MPI_COMM_WORLD"}
{"rank":1,"call":"MPI_Allgatherv","inplace":true,"recvcounts":[2,2],"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD"}
{"rank":1,"call":"MPI_Allgather","inplace":true,"recvcount":5,"recvtype":"MPI_INT","comm":"MPI_COMM_WORLD"}
{"rank":1,"call":"MPI_Neighbor_allgather","sendcount":1,"sendtype":"MPI_INT","recvcount":1,"recvtype":"MPI_INT","comm":"grid"}
{"rank":1,"call":"MPI_Win_create","size":800,"dispunit":8,"comm":"MPI_COMM_WORLD","newwin":"w"}
{"rank":1,"call":"MPI_Win_fence","win":"w"}
{"rank":1,"call":"MPI_Win_fence","win":"w"}
{"rank":1,"call":"MPI_Win_free","freewin":"w"}
{"rank":1,"call":"MPI_Finalize"}
"#;

/// The trace of these calls, one after the other.
pub(crate) fn all() -> Made {
    let timed = |(i, line): (usize, &str)| match line.strip_suffix('}') {
        Some(call) if line.contains("\"call\"") => {
            format!("{call},\"enter\":{},\"exit\":{}}}\n", 2 * i, 2 * i + 1)
        }
        _ => format!("{line}\n"),
    };
    Made::of_lines(&ALL.trim().lines().enumerate().map(timed).collect::<String>())
}

/// What a program says is lost, or not told, without what stands for it, and which functions it names of it.
fn listed(said: &str, begins: &str) -> BTreeMap<String, u64> {
    let Some(line) = said.lines().find_map(|line| Some(line.split_once(begins)?.1)) else {
        return BTreeMap::new();
    };
    // Names may have commas, but no number behind one.
    let mut parts: Vec<String> = Vec::new();
    for part in line.split("; nothing is written").next().unwrap().split(", ") {
        match parts.last_mut().filter(|_| !part.starts_with(|c: char| c.is_ascii_digit())) {
            Some(last) => *last += &format!(", {part}"),
            None => parts.push(part.to_owned()),
        }
    }
    let one = |part: &String| {
        let (number, what) = part.trim().split_once(' ').unwrap();
        (what.to_owned(), number.parse().unwrap())
    };
    parts.iter().map(one).collect()
}

fn text(of: &[u8]) -> String {
    String::from_utf8_lossy(of).into_owned()
}

#[test]
fn every_format_names_what_it_has_no_place_for_and_strict_refuses_it() {
    let made = all();
    let types = "datatypes of messages and operations";
    let (reductions, counts) = ("operations of reductions", "counts of each partner in operations");
    let (in_place, any) = ("operations whose buffers are in place", "receives from any rank or with any tag");
    let (windows, files) = ("windows of accesses and synchronisations", "files of calls");
    let (displacements, offsets) = ("displacements in windows", "offsets in files");
    let members = "members of communicators, groups, windows and files that calls make";
    let (roots, requests, comms) = ("roots of operations", "requests of calls", "communicators of messages");
    let rows =
        [(types, 18), (reductions, 3), (in_place, 6), (counts, 2), (roots, 2), (any, 1), (requests, 8)];
    let tables = [&rows[..], &[(windows, 9), (displacements, 1), (files, 3), (offsets, 1)]].concat();
    let others = [("probed messages", 1), ("starts of persistent requests", 1), ("and do not complete", 1)];
    let paraver = [&tables[..], &[(comms, 5), (members, 5)]].concat();
    let otf2 =
        [&rows[..4], &others, &[(any, 1), (displacements, 1), (offsets, 1), ("(they are regions)", 2)]];
    let script =
        [(types, 18), (reductions, 3), ("collective operations", 10), (comms, 5), (any, 1), (files, 3)];
    let script = [&script[..], &[("functions and call sites", 42), ("accesses to windows", 1)]].concat();
    let [shown, chrome] = [&[(members, 5)][..], &[(members, 5), ("parts in collective operations", 10)]];
    let formats = [
        ("csv", &tables[..]),
        ("parquet", &tables),
        ("arrow", &tables),
        ("prv", &paraver),
        ("otf2", &otf2.concat()),
        ("ti", &script),
        ("goal", &script),
        ("pftrace", shown),
        ("json", chrome),
    ];
    for (ending, expected) in formats {
        let to = format!("app.{ending}");
        // All calls, but as a part of the run: of the whole archives have what no record has a place for.
        let part: &[&str] = if ending == "otf2" { &["--until", "1000"] } else { &[] };
        let refused = made.run(&[&["--strict", "-o", &to], part].concat());
        let said = text(&refused.stderr);
        if said.contains("libopen-trace-format2-dev") {
            continue;
        }
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(!made.path(&to).exists(), "{ending}");
        let refused = listed(&said, "has no place for ");
        let written = made.run(&[&["-o", &to], part].concat());
        assert!(written.status.success());
        let lost = listed(&text(&written.stderr), "has no place for: ");
        assert_eq!(refused, lost, "{ending}");
        for (what, times) in expected {
            let found = lost.iter().find(|(name, _)| name.contains(what)).map(|(_, times)| *times);
            assert_eq!(found, Some(*times), "{ending}: {what} of {lost:#?}");
        }
        let other = lost.keys().find(|name| name.starts_with("other parameters of calls ("));
        let named = |function: &str| other.is_some_and(|name| name.contains(function));
        let is_shown = ["pftrace", "json"].contains(&ending);
        assert!(is_shown || named("MPI_Cart_create") && named("MPI_Win_create"), "{ending}: {other:?}");
    }
}

#[test]
fn what_an_archive_does_not_tell_was_named_when_it_was_written() {
    for made in KERNELS.into_iter().map(kernel).chain([all()]) {
        let written = made.run(&["--until", "1000000", "-o", "app.otf2"]);
        if text(&written.stderr).contains("libopen-trace-format2-dev") {
            return;
        }
        let lost = listed(&text(&written.stderr), "has no place for: ");
        let mut command = Command::new(env!("CARGO_BIN_EXE_st-convert"));
        command.current_dir(made.directory.path()).args(["app.otf2", "-o", "back.st"]);
        let untold = listed(&text(&command.output().unwrap().stderr), "does not tell: ");
        assert!(untold.keys().any(|what| what.contains("datatypes")), "{untold:#?}");
        for (what, times) in &untold {
            let what = what.split(" (").next().unwrap();
            let of_function = what.split(' ').find(|word| word.starts_with("MPI_"));
            let is_named = match of_function {
                Some(function) => lost.keys().any(|name| name.contains(function)),
                None => lost.get(what).is_some_and(|lost| lost >= times),
            };
            assert!(is_named, "{times} {what} of {lost:#?}");
        }
    }
}
