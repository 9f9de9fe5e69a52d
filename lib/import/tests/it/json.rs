//! JSON lines as others may write them: the least that suffices, and what is refused.

use crate::lines::{Known, calls, calls_of, read};
use st_model::calls::CallTable;
use st_model::check::check;
use st_model::section::Section;

const LEAST: &str = r#"
{"rank":0,"call":"MPI_Isend","dest":1,"tag":7,"bytes":800,"request":"0x55d0","enter":1000,"exit":1500,"site":"solver.c:12"}
{"rank":1,"call":"MPI_Recv","source":0,"tag":7,"bytes":800,"enter":900,"exit":5000}
{"rank":0,"call":"MPI_Wait","request":"0x55d0","enter":1600,"exit":1700}
{"comm":"row","members":[1,0]}
{"rank":0,"call":"MPI_Barrier","comm":"row","enter":9000,"exit":9100,"colour":3}
{"rank":1,"call":"MPI_Allreduce","count":2,"type":"MPI_DOUBLE","op":"MPI_MAX","enter":9000,"exit":9200}
"#;

#[test]
fn a_rank_a_function_parameters_and_times_suffice() {
    let (sections, left) = read(LEAST).unwrap();
    let words = |call: &Known| (call.0.clone(), call.1.clone());
    let first: Vec<_> = calls(&sections[0]).iter().map(words).collect();
    let want: [(&str, &[i64]); 5] = [
        ("MPI_Init", &[]),
        ("MPI_Isend", &[800, 0, 1, 7, 0, 0]),
        ("MPI_Wait", &[1, 0, 1, 0, 1, -9, 1, -9, 1, -9]),
        ("MPI_Barrier", &[2]),
        ("MPI_Finalize", &[]),
    ];
    assert_eq!(first, want.map(|(name, words)| (name.to_owned(), words.to_vec())));
    let second = calls(&sections[1]);
    assert_eq!(second[1].1, [800, 0, 0, 7, 0, -9, -9, 800]);
    assert_eq!(
        second.iter().map(|c| c.2.unwrap()).collect::<Vec<_>>(),
        [(900, 900), (900, 5000), (9000, 9200), (9200, 9200)]
    );
    let types: Vec<_> = sections[1].tables.types.iter().map(|t| &t.of[0].1.content).collect();
    assert_eq!(
        types.iter().map(|t| (t.kind.as_str(), t.size)).collect::<Vec<_>>(),
        [("MPI_BYTE", 1), ("MPI_DOUBLE", 8)]
    );
    assert_eq!(sections[0].tables.comms[2].of[0].1.content.members.iter().collect::<Vec<_>>(), [1, 0]);
    assert_eq!(sections[0].sites.sites().iter().filter(|s| s.label == "solver.c:12").count(), 1);
    let left: Vec<_> = left.iter().collect();
    assert_eq!(
        left,
        [
            (
                "MPI_Init and MPI_Finalize of ranks (they stand before the first call that needs them and at the last time)",
                2
            ),
            ("field colour of MPI_Barrier, which has none", 1)
        ]
    );
    assert!(sections.iter().all(|s| check(s).unwrap().iter().all(|c| c.passed())));
}

#[test]
fn threads_are_numbered_as_their_source_does_whichever_line_comes_first() {
    let line = |thread: u32, call: &str, from: u32| {
        let to = from + 10;
        format!(r#"{{"rank":0,"thread":{thread},"call":"{call}","enter":{from},"exit":{to}}}"#) + "\n"
    };
    let names = |text: &str| -> Vec<Vec<String>> {
        let (sections, _) = read(text).unwrap();
        let of = |thread| calls_of(&sections[0], thread).into_iter().map(|call| call.0).collect();
        (0..sections[0].threads.len()).map(of).collect()
    };
    let [init, end] = [line(7, "MPI_Init", 0), line(7, "MPI_Finalize", 900)];
    let barrier = |thread, from| line(thread, "MPI_Comm_rank", from);
    let mixed = names(&[init, barrier(9, 200), barrier(2, 100), line(2, "MPI_Comm_size", 120), end].concat());
    // The thread that begins MPI is the first.
    let want = [&["MPI_Init", "MPI_Finalize"][..], &["MPI_Comm_rank", "MPI_Comm_size"], &["MPI_Comm_rank"]];
    assert_eq!(mixed, want);
}

#[test]
fn a_name_may_stand_for_another_thing_on_other_ranks() {
    let text = r#"
{"comm":"between","ranks":[0],"members":[0],"remote":[1]}
{"comm":"between","ranks":[1],"members":[1],"remote":[0]}
{"rank":0,"call":"MPI_Barrier","comm":"between"}
{"rank":1,"call":"MPI_Barrier","comm":"between"}
"#;
    let (sections, _) = read(text).unwrap();
    let groups = |s: &Section| {
        let comm = s.tables.comms[2].of[0].1.clone();
        (comm.name, comm.content.members.get(0), comm.content.remote.get(0))
    };
    let (first, second) = (groups(&sections[0]), groups(&sections[1]));
    assert_eq!((first.0, first.1, first.2), (second.0, second.2, second.1));
}

#[test]
fn names_of_requests_become_the_lowest_free_numbers() {
    let mut text = String::new();
    for i in 0..50 {
        text += &format!(
            "{{\"rank\":0,\"call\":\"MPI_Irecv\",\"source\":0,\"bytes\":8,\"request\":\"r{i}\"}}\n\
             {{\"rank\":0,\"call\":\"MPI_Isend\",\"dest\":0,\"bytes\":8,\"request\":\"s{i}\"}}\n\
             {{\"rank\":0,\"call\":\"MPI_Waitall\",\"requests\":[\"r{i}\",\"s{i}\"]}}\n"
        );
    }
    let (sections, left) = read(&text).unwrap();
    let all = calls(&sections[0]);
    assert_eq!(all.len(), 152);
    assert_eq!(all[148].1.last(), Some(&0));
    assert_eq!(all[150].1, [2, 2, 0, 1, 2, 0, 1, 2, -9, -9, 2, -9, -9, 2, -9, -9]);
    // Fifty rounds are a loop.
    assert!(sections[0].threads[0].tree.items().len() < 8, "{:?}", sections[0].threads[0].tree);
    assert_eq!(left.iter().map(|(_, n)| n).collect::<Vec<_>>(), [1, 150]);
    assert!(!sections[0].has_times());
}

#[test]
fn what_cannot_be_is_said_with_its_line() {
    let call = |rest: &str| format!("{{\"rank\":0,\"call\":\"MPI_Barrier\"}}\n{{\"rank\":0,{rest}}}");
    let cases = [
        (String::new(), "there is no call"),
        ("[1]".into(), "line 1: column 0: invalid type"),
        ("{\"rank\":0".into(), "line 1: column 9: EOF"),
        ("{\"rank\":0}".into(), "there is no call"),
        (call("\"call\":7"), "line 2: call: no name"),
        (call("\"call\":\"main\""), "line 2: call: main is no function of MPI"),
        (call("\"call\":\"MPI_Send\""), "line 2: MPI_Send: dest: is missing"),
        (call("\"call\":\"MPI_Send\",\"dest\":\"x\""), "line 2: MPI_Send: dest: \"x\" cannot be one"),
        (call("\"call\":\"MPI_Send\",\"dest\":1.5"), "dest: 1.5 cannot be one"),
        (call("\"call\":\"MPI_Send\",\"dest\":0,\"type\":\"T\""), "type: T is not described"),
        (call("\"call\":\"MPI_Barrier\",\"site\":3"), "MPI_Barrier: site: 3 is not described"),
        (call("\"call\":\"MPI_Barrier\",\"enter\":5"), "line 2: exit is missing"),
        (call("\"call\":\"MPI_Barrier\",\"error\":\"MPI_ERR_X\""), "error: no class"),
        (
            call("\"call\":\"MPI_Waitall\",\"requests\":[1],\"completed\":[{\"request\":2}]"),
            "does not wait for",
        ),
        (call("\"call\":\"MPI_Waitall\",\"requests\":7"), "requests: no list"),
        (call("\"call\":\"MPI_Test\",\"request\":1,\"times\":0"), "times: 0 cannot be one"),
        (call("\"rank\":1"), "line 2: neither a call"),
        ("{\"rank\":4294967294,\"call\":\"MPI_Barrier\"}".into(), "must say so before"),
        ("{\"rank\":4294967296,\"call\":\"MPI_Barrier\"}".into(), "line 1: rank: 4294967296 is none"),
        ("{\"header\":{\"world\":2}}\n{\"rank\":2,\"call\":\"MPI_Barrier\"}".into(), "rank: 2 is none of 2"),
        (
            "{\"rank\":0,\"call\":\"MPI_Barrier\"}\n{\"header\":{\"world\":1}}".into(),
            "line 2: header: behind",
        ),
        ("{\"comm\":\"c\"}\n{\"rank\":0,\"call\":\"MPI_Barrier\"}".into(), "line 1: members: no list"),
        (
            "{\"type\":\"t\",\"size\":true}\n{\"rank\":0,\"call\":\"MPI_Barrier\"}".into(),
            "line 1: size: no whole",
        ),
    ];
    for (text, part) in cases {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}\n{part}");
    }
    let late = |enter: i64, exit: i64| {
        let first = "{\"rank\":0,\"call\":\"MPI_Barrier\",\"enter\":10,\"exit\":20}";
        read(&format!("{first}\n{{\"rank\":0,\"call\":\"MPI_Barrier\",\"enter\":{enter},\"exit\":{exit}}}"))
    };
    assert!(late(20, 21).is_ok());
    assert!(late(15, 16).unwrap_err().contains("line 2: MPI_Barrier: enter: 15 is before 20"));
    assert!(late(5, 30).unwrap_err().contains("line 2: MPI_Barrier: enter: 5 is before 10"));
    assert!(late(30, 29).unwrap_err().contains("exit: 29 is before enter, 30"));
    assert!(late(30, i64::MAX).unwrap_err().contains("73 years"));
}

#[test]
fn too_many_unknown_functions_are_refused_and_other_fields_counted_together() {
    let lines =
        |n: usize| (0..n).map(|i| format!("{{\"rank\":0,\"call\":\"MPIX_F{i}\"}}\n")).collect::<String>();
    assert!(read(&lines(4000)).is_ok());
    assert!(read(&lines(4001)).unwrap_err().contains("more than 4000 functions"));
    let many: String =
        (0..1000).map(|i| format!("{{\"rank\":0,\"call\":\"MPI_Barrier\",\"x{i}\":1}}\n")).collect();
    let (_, left) = read(&many).unwrap();
    assert!(left.iter().count() < 50);
    assert_eq!(left.iter().map(|(_, n)| n).sum::<u64>(), 1000 + 1000 + 1);
}

#[test]
fn what_is_waited_for_once_is_so_in_every_row() {
    // Rows whose fields are all named: no name is there twice.
    for row in CallTable::builtin().rows() {
        let mut keys = st_stream::json::read::keys(row);
        let all = keys.len();
        keys.sort();
        keys.dedup();
        // A completion's four lists are one field.
        let lists =
            row.slots.iter().filter(|s| s.list && ["source", "tag", "bytes"].contains(&s.name.as_str()));
        assert!(keys.len() == all || lists.count() == 3, "{}: {keys:?}", row.name);
    }
}
