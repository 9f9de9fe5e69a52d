//! JSON lines that contradict themselves, and what is counted where they do not tell enough.

use crate::lines::{calls, read};
use st_model::section::NO_SYM;

/// What is counted, but for what stands in for the beginning and end.
fn counted(text: &str) -> Vec<(String, u64)> {
    let (_, left) = read(text).unwrap();
    let own =
        |what: &&(&str, u64)| !what.0.starts_with("MPI_Init") && !what.0.starts_with("calls without times");
    left.iter().filter(|what| own(&what)).map(|(what, n)| (what.to_owned(), n)).collect()
}

/// The words of the call behind what stands in.
fn words(text: &str) -> Vec<i64> {
    calls(&read(text).unwrap().0[0])[1].1.clone()
}

fn call(name: &str, rest: &str) -> String {
    format!("{{\"rank\":0,\"call\":\"{name}\",{rest}}}")
}

fn send(rest: &str) -> String {
    call("MPI_Send", &format!("\"dest\":0,{rest}"))
}

#[test]
fn a_probe_that_has_found_nothing_is_read_as_it_is_written() {
    let probe = |flag: bool| call("MPI_Iprobe", &format!("\"source\":0,\"flag\":{flag},\"bytes\":-1"));
    assert!(words(&probe(false)).contains(&-1));
    for bytes in [",\"bytes\":null", ""] {
        let probe = call("MPI_Iprobe", &format!("\"source\":0,\"flag\":false{bytes}"));
        assert!(words(&probe).contains(&-1), "{probe}");
    }
    let none = "\"requests\":[null],\"completed\":[],\"outcount\":\"MPI_UNDEFINED\"";
    assert!(read(&call("MPI_Waitsome", none)).unwrap().1.iter().all(|(what, _)| !what.contains("outcount")));
    assert!(read(&probe(true)).unwrap_err().contains("bytes: -1 is no whole number"));
}

#[test]
fn amounts_that_cannot_be_are_refused() {
    let pairs = "\"sendcounts\":[8],\"recvcounts\":[8],\"bytes\":8";
    let cases = [
        (send("\"bytes\":\"800\""), "bytes: \"800\" is no whole number"),
        (send("\"bytes\":800.0"), "bytes: 800.0 is no whole number"),
        (send("\"bytes\":1e30"), "bytes: 1e+30 is no whole number"),
        (send("\"bytes\":18446744073709551615"), "bytes: 18446744073709551615 is no whole number"),
        (send("\"bytes\":-8"), "bytes: -8 is no whole number"),
        (send("\"count\":-8"), "count: -8 is below 0"),
        (
            send("\"bytes\":801,\"type\":\"MPI_DOUBLE\""),
            "bytes: 801 are no whole number of elements of 8 bytes",
        ),
        (
            send("\"bytes\":800,\"count\":10,\"type\":\"MPI_DOUBLE\""),
            "bytes: 800, but count is 10 elements of 8 bytes",
        ),
        (
            call("MPI_Recv", "\"source\":0,\"bytes\":88,\"count\":10,\"type\":\"MPI_DOUBLE\""),
            "bytes: 88, but count is 10",
        ),
        (
            call("MPI_Alltoallv", "\"bytes\":800"),
            "bytes: each partner has a count of its own: sendcounts, recvcounts",
        ),
        (
            call("MPI_Allreduce", "\"bytes\":12,\"type\":\"MPI_DOUBLE\",\"op\":\"MPI_SUM\""),
            "bytes: 12 are no whole",
        ),
    ];
    for (text, part) in cases {
        let error = read(&text).unwrap_err();
        assert!(error.starts_with("line 1: MPI_") && error.contains(part), "{text}\n{error}\n{part}");
    }
    let kind = "{\"type\":\"x\",\"size\":-1}\n".to_owned();
    let least = send("\"type\":\"x\",\"error\":\"MPI_ERR_OTHER\",\"bytes\":-9223372036854775808");
    assert!(read(&(kind + &least)).unwrap_err().contains("line 1: size: -1 is below 0"));
    assert_eq!(words(&send("\"bytes\":800,\"type\":\"MPI_DOUBLE\""))[0], 100);
    assert_eq!(words(&send("\"bytes\":800,\"count\":100,\"type\":\"MPI_DOUBLE\""))[0], 100);
    assert_eq!(words(&send("\"bytes\":801"))[0], 801);
    // Bytes are those of all parts of a message, and what is sent where calls receive, too.
    let parts = "\"dest\":0,\"partitions\":12,\"count\":5,\"type\":\"MPI_INT\",\"request\":0,\"bytes\":";
    assert_eq!(words(&call("MPI_Psend_init", &format!("{parts}240")))[..2], [12, 5]);
    assert!(
        read(&call("MPI_Psend_init", &format!("{parts}20")))
            .unwrap_err()
            .contains("20, but count is 5 elements of 48 bytes")
    );
    let both = "\"dest\":0,\"source\":0,\"sendcount\":9,\"recvcount\":10,\"request\":0,\"bytes\":";
    assert_eq!(words(&call("MPI_Isendrecv", &format!("{both}9")))[0], 9);
    assert!(
        read(&call("MPI_Isendrecv", &format!("{both}10"))).unwrap_err().contains("10, but sendcount is 9")
    );
    // Room may be for more than what comes, and what has failed may be wrong.
    assert_eq!(words(&call("MPI_Recv", "\"source\":0,\"bytes\":8,\"count\":10"))[0], 10);
    assert_eq!(words(&send("\"count\":-8,\"error\":\"MPI_ERR_COUNT\""))[0], -8);
    assert_eq!(
        counted(&call("MPI_Alltoallv", pairs)),
        [("field bytes of MPI_Alltoallv, which has none".into(), 1)]
    );
    assert_eq!(
        counted(&call("MPI_Barrier", "\"bytes\":8")),
        [("field bytes of MPI_Barrier, which has none".into(), 1)]
    );
    assert_eq!(counted(&send("\"tag\":1")), [("amounts of MPI_Send (0 stands for them)".into(), 1)]);
    assert_eq!(
        counted(&call("MPI_Alltoallv", "\"enter\":1,\"exit\":2")),
        [("amounts of MPI_Alltoallv (0 stands for them)".into(), 1)]
    );
}

#[test]
fn ranks_outside_of_the_communicator_are_refused() {
    let to = |name: &str, partner: &str, rank: &str| call(name, &format!("\"bytes\":8,\"{partner}\":{rank}"));
    let comm = |members: &str| {
        format!("{{\"comm\":\"row\",\"members\":{members}}}\n{}", call("MPI_Barrier", "\"comm\":\"row\""))
    };
    let first = "{\"header\":{\"world\":2}}\n";
    let cases = [
        (to("MPI_Send", "dest", "9"), "line 1: MPI_Send: dest: 9 is none of 1 ranks of the communicator"),
        (to("MPI_Send", "dest", "-5"), "dest: -5 is none"),
        (to("MPI_Send", "dest", "null"), "dest: null is none"),
        (to("MPI_Send", "dest", "\"MPI_ANY_SOURCE\""), "dest: \"MPI_ANY_SOURCE\" is none"),
        (to("MPI_Recv", "source", "1"), "source: 1 is none"),
        (to("MPI_Bcast", "root", "7"), "root: 7 is none"),
        (comm("[0,9]"), "line 1: members: 9 is none of 1 ranks"),
        (comm("[0,0]"), "line 1: members: 0 is there twice"),
        (
            format!("{first}{}", comm("[1]")),
            "line 3: MPI_Barrier: comm: row has not rank 0 among its members",
        ),
        (
            format!("{first}{}", comm("[0]").replace("MPI_Barrier\"", "MPI_Send\",\"bytes\":1,\"dest\":1")),
            "line 3: MPI_Send: dest: 1 is none of 1 ranks of the communicator",
        ),
        (
            "{\"win\":\"w\",\"members\":[0]}\n".to_owned()
                + &call("MPI_Put", "\"win\":\"w\",\"target\":1,\"bytes\":8"),
            "line 2: MPI_Put: target: 1 is none of 1 ranks of the window",
        ),
    ];
    for (text, part) in cases {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}\n{part}");
    }
    for fine in [
        to("MPI_Send", "dest", "\"MPI_PROC_NULL\""),
        to("MPI_Recv", "source", "\"MPI_ANY_SOURCE\""),
        to("MPI_Bcast", "root", "\"MPI_ROOT\""),
        // A process of another job, as st-record numbers them.
        comm("[0,1],\"kind\":\"MPI_Intercomm_merge\""),
        call("MPI_Send", "\"dest\":9,\"count\":1,\"error\":\"MPI_ERR_RANK\""),
    ] {
        assert!(read(&fine).is_ok(), "{fine}");
    }
}

#[test]
fn numbers_of_ranks_and_tags_are_no_codes() {
    let receive =
        |source: &str, tag: &str| call("MPI_Recv", &format!("\"bytes\":8,\"source\":{source},\"tag\":{tag}"));
    let untagged = |tag: &str| send(&format!("\"bytes\":8,\"tag\":{tag}"));
    let wait = |tag: &str| {
        let told = format!("\"completed\":[{{\"request\":1,\"source\":0,\"tag\":{tag},\"bytes\":8}}]");
        call("MPI_Wait", &format!("\"request\":1,{told}"))
    };
    for (text, part) in [
        (receive("-1", "7"), "line 1: MPI_Recv: source: -1 is none: what is no number has a name"),
        (receive("-2", "7"), "source: -2 is none"),
        (receive("0", "-1"), "tag: -1 is none"),
        (receive("0", "-5"), "tag: -5 is below 0"),
        (untagged("-1"), "tag: -1 is none"),
        (untagged("\"MPI_ANY_TAG\""), "tag: nothing is sent with MPI_ANY_TAG"),
        (untagged("4294967301"), "tag: 4294967301 is above 2147483647"),
        (wait("-1"), "completed: tag: -1 is none"),
        (wait("4294967301"), "completed: tag: 4294967301 is above"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}\n{part}");
    }
    for fine in [
        receive("\"MPI_ANY_SOURCE\"", "\"MPI_ANY_TAG\""),
        untagged("2147483647"),
        wait("\"MPI_ANY_TAG\""),
        // What a recorder prints of a tag that cannot be.
        send("\"bytes\":8,\"tag\":-5,\"error\":\"MPI_ERR_TAG\""),
    ] {
        assert!(read(&fine).is_ok(), "{fine}");
    }
}

#[test]
fn requests_are_under_way_once_and_one_is_completed_where_one_can_be() {
    let receive = |request: &str, source: &str| {
        call("MPI_Irecv", &format!("\"source\":{source},\"bytes\":8,\"request\":\"{request}\"")) + "\n"
    };
    let twice = receive("a", "0") + &receive("a", "0");
    assert!(read(&twice).unwrap_err().contains("line 2: MPI_Irecv: request: a is under way"));
    let both = receive("a", "0") + &receive("b", "0");
    for name in ["MPI_Waitany", "MPI_Testany"] {
        let text = both.clone() + &call(name, "\"requests\":[\"a\",\"b\"]");
        let all = calls(&read(&text).unwrap().0[0]);
        let first = [1, 0, 1, -9, 1, -9, 1, -9];
        assert!(all[3].1.windows(8).any(|part| part == first), "{name}: {all:?}");
        assert_eq!(
            counted(&text),
            [(format!("which request {name} completed (the first that is pending)"), 1)]
        );
        assert!(read(&(text + "\n" + &receive("a", "0"))).is_ok(), "{name}: the first is free");
    }
    let any = receive("a", "\"MPI_ANY_SOURCE\"") + &call("MPI_Wait", "\"request\":\"a\"");
    let untold = ("sources of what was received from any rank".to_owned(), 1);
    assert_eq!(counted(&any), std::slice::from_ref(&untold));
    let told = "\"request\":\"a\",\"completed\":[{\"request\":\"a\",\"source\":0,\"tag\":0,\"bytes\":8}]";
    assert!(counted(&(receive("a", "\"MPI_ANY_SOURCE\"") + &call("MPI_Wait", told))).is_empty());
    assert_eq!(counted(&call("MPI_Recv", "\"source\":\"MPI_ANY_SOURCE\",\"bytes\":8")), [untold]);
    assert!(counted(&call("MPI_Recv", "\"source\":\"MPI_ANY_SOURCE\",\"bytes\":8,\"rsource\":0")).is_empty());
    let field = |key: &str| (format!("field {key} of MPI_Sendd, which st does not know"), 1);
    assert_eq!(counted(&call("MPI_Sendd", "\"dest\":0,\"bytes\":8")), [field("bytes"), field("dest")]);
    let wait = receive("a", "0") + &call("MPI_Wait", "\"request\":\"a\",\"source\":0");
    assert_eq!(counted(&wait), [("field source of MPI_Wait, which has none".to_owned(), 1)]);
}

#[test]
fn numbers_of_requests_are_those_under_way() {
    let send =
        |request: &str| call("MPI_Isend", &format!("\"dest\":0,\"bytes\":8,\"request\":{request}")) + "\n";
    let twice = send("0") + &send("0");
    for (text, part) in [
        (twice.clone(), "line 2: MPI_Isend: request: 0 is under way"),
        (send("\"a\"") + &send("0"), "line 2: MPI_Isend: request: 0 is under way"),
        (send("5000000000"), "request: 5000000000 is no number of a request"),
        (call("MPI_Wait", "\"request\":-5"), "requests: -5 is no number"),
        (send("0") + &call("MPI_Waitall", "\"n\":5,\"requests\":[0]"), "n: 5, but requests has 1"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}\n{part}");
    }
    assert!(read(&(send("0") + &call("MPI_Wait", "\"request\":0") + "\n" + &send("0"))).is_ok());
    // A name gets another number.
    let named = calls(&read(&(send("0") + &send("\"a\""))).unwrap().0[0]);
    assert_eq!((named[1].1.last(), named[2].1.last()), (Some(&0), Some(&1)));
    // So does what is received of a message that was probed, or the same.
    let probed = call("MPI_Mprobe", "\"source\":0,\"request\":0,\"bytes\":8") + "\n";
    let received = probed + &call("MPI_Imrecv", "\"request\":0,\"request2\":0,\"bytes\":8") + "\n";
    assert!(read(&received).is_ok(), "{:?}", read(&received));
    assert!(
        read(&(received + &send("0"))).unwrap_err().contains("line 3: MPI_Isend: request: 0 is under way")
    );
    // A recorder that was paused has no completion, and another thread may complete it.
    let header = "{\"header\":{\"world\":1}}\n".to_owned();
    let end = "\n".to_owned() + &call("MPI_Finalize", "\"thread\":0");
    let again = ("ends of requests whose numbers are those of later ones".to_owned(), 1);
    assert_eq!(counted(&(header.clone() + &twice + &end)), [again]);
    let other = call("MPI_Wait", "\"thread\":1,\"request\":0");
    assert!(counted(&(header + &twice + &other + &end)).is_empty());
}

#[test]
fn control_characters_are_refused_and_a_mark_before_the_text_is_skipped() {
    for (text, part) in [
        (
            call("MPI_Barrier", r#""site":"a\u001b[31m""#),
            "line 1: MPI_Barrier: site: \"a\\u{1b}[31m\" has a control",
        ),
        (call("MPI_Barrier", r#""site":"a\u0000""#), "has a control character"),
        (
            "{\"comm\":\"a\\u001b\",\"members\":[0]}\n".to_owned() + &call("MPI_Init", "\"thread\":0"),
            "line 1: \"a\\u{1b}\" has a control character",
        ),
        (
            "{\"host\":\"a\\nX\",\"ranks\":[0]}\n".to_owned() + &call("MPI_Init", "\"thread\":0"),
            "line 1: \"a\\nX\" has a control character",
        ),
        (call("MPI_Barrier", r#""comm":"a\u001b""#), "MPI_Barrier: comm: a\\u{1b} is not described"),
        (call(r"MPIX_a\nb", "\"thread\":0"), "call: MPIX_a\\nb is no function"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}\n{part}");
    }
    for (name, why) in [("MPI_Barrier", "which has none"), ("MPIX_A", "which st does not know")] {
        let field = format!("field \\u{{1b}}x of {name}, {why}");
        assert_eq!(counted(&call(name, r#""\u001bx":1"#)), [(field, 1)]);
    }
    assert!(read(&("\u{feff}".to_owned() + &call("MPI_Barrier", "\"thread\":0"))).is_ok());
}

#[test]
fn a_header_keeps_what_is_described_and_may_be_repeated() {
    let header = |program: &str| format!("{{\"header\":{{\"world\":1,\"program\":\"{program}\"}}}}\n");
    let row = "{\"comm\":\"row\",\"members\":[0]}\n".to_owned();
    let all = row + &header("app") + &call("MPI_Barrier", "\"comm\":\"row\"") + "\n";
    assert!(read(&all).is_ok(), "{:?}", read(&all));
    assert!(read(&(all.clone() + &header("app"))).is_ok());
    assert!(read(&(all + &header("other"))).unwrap_err().contains("line 4: header: behind calls"));
}

#[test]
fn calls_of_a_thread_that_overlap_are_refused() {
    let pair = |thread: u64, enter: i64| {
        let first = call("MPI_Barrier", r#""thread":0,"enter":1000,"exit":2000"#);
        first + "\n" + &call("MPI_Barrier", &format!(r#""thread":{thread},"enter":{enter},"exit":3000"#))
    };
    let error = read(&pair(0, 1500)).unwrap_err();
    assert!(
        error.contains("line 2: MPI_Barrier: enter: 1500 is before 2000, when the call before"),
        "{error}"
    );
    assert!(error.contains("calls of a thread come one after the other"), "{error}");
    for (thread, enter) in [(0, 2000), (1, 1500)] {
        assert!(read(&pair(thread, enter)).is_ok(), "{thread} {enter}");
    }
}

#[test]
fn ranks_that_ended_early_are_counted() {
    let header = "{\"header\":{\"world\":1}}\n";
    let all = header.to_owned() + &call("MPI_Init", "\"thread\":0") + "\n";
    let early = ("ends of ranks that did not come to MPI_Finalize (as if they had)".to_owned(), 1);
    assert_eq!(counted(&all), [early]);
    assert!(counted(&(all + &call("MPI_Finalize", "\"thread\":0"))).is_empty());
}

#[test]
fn where_a_rank_stopped_is_told_and_kept() {
    let header = "{\"header\":{\"world\":2}}\n";
    let all = header.to_owned() + &call("MPI_Init", r#""thread":0,"enter":0,"exit":10"#) + "\n";
    assert!(counted(&(all.clone() + "{\"ended\":0}")).is_empty());
    let inside = "{\"ended\":0,\"thread\":0,\"inside\":\"MPI_Barrier\",\"site\":\"a.c:1\",\"entered\":10}";
    assert!(counted(&(all.clone() + inside)).is_empty());
    let unknown = counted(&(all.clone() + "{\"ended\":0}\n{\"ended\":1}\n{\"ended\":0,\"thread\":3}"));
    assert_eq!(unknown, [("ends of threads that have made no call before".to_owned(), 2)]);
    for (line, part) in [
        ("{\"ended\":2}", "line 3: ended: 2 is none of 2 ranks"),
        ("{\"ended\":\"a\"}", "ended: \"a\" is no rank"),
        ("{\"ended\":0,\"inside\":\"MPI_Barrier\"}", "entered is missing"),
        ("{\"ended\":0,\"inside\":\"exit\",\"entered\":10}", "inside: exit is no function of MPI"),
        ("{\"ended\":0,\"inside\":\"MPI_Barrier\",\"entered\":9}", "entered: 9 is before 10"),
        ("{\"ended\":0,\"inside\":\"MPI_Barrier\",\"site\":7,\"entered\":10}", "site: 7 is not described"),
        ("{\"ended\":0,\"inside\":\"MPI_Barrier\",\"entered\":4611686018427387904}", "73 years"),
        ("{\"ended\":0,\"thread\":-1}", "thread: no number"),
        (
            "{\"ended\":0,\"inside\":\"MPI_Init\",\"entered\":10}",
            "line 3: inside: MPI is initialised in a line before",
        ),
        (
            "{\"ended\":0,\"thread\":3,\"inside\":\"MPI_Init_thread\",\"entered\":10}",
            "inside: MPI is initialised",
        ),
        ("{\"ended\":1,\"inside\":\"MPI_Barrier\",\"site\":7,\"entered\":10}", "site: 7 is not described"),
        ("{\"ended\":0,\"entered\":10}", "entered: of no call: inside is missing"),
        ("{\"ended\":0,\"inside\":null,\"site\":\"a.c:1\"}", "site: of no call: inside is missing"),
    ] {
        let error = read(&(all.clone() + line)).unwrap_err();
        assert!(error.contains(part), "{line}\n{error}\n{part}");
    }
    let end = call("MPI_Finalize", r#""thread":0,"enter":20,"exit":30"#);
    for line in ["{\"ended\":0}", "{\"ended\":0,\"thread\":1}"] {
        let error = read(&(all.clone() + &end + "\n" + line)).unwrap_err();
        assert!(error.contains("line 4: ended: the rank has come back from MPI_Finalize"), "{error}");
    }
    // What a recorder knows of one that was killed in it.
    for times in [r#","enter":20,"exit":20"#, ""] {
        let inside =
            all.clone() + &call("MPI_Finalize", &format!(r#""thread":0{times}"#)) + "\n{\"ended\":0}";
        let (sections, left) = read(&inside).unwrap();
        assert!(left.iter().all(|(what, _)| what.starts_with("calls without times")), "{left:?}");
        let ended: Vec<_> = sections[0].ended.iter().map(|e| (e.calls, e.inside)).collect();
        assert_eq!((calls(&sections[0]).len(), ended), (2, vec![(2, NO_SYM)]));
    }
    // It was not killed in it if it has made a call behind.
    let lines =
        [call("MPI_Finalize", r#""enter":20,"exit":20"#), call("MPI_Finalized", r#""enter":20,"exit":20"#)];
    let error = read(&(all.clone() + &lines.join("\n") + "\n{\"ended\":0}")).unwrap_err();
    assert!(error.contains("line 5: ended: the rank has come back from MPI_Finalize"), "{error}");
    let behind = all + "{\"ended\":0}\n" + &call("MPI_Finalize", r#""enter":20,"exit":30"#);
    assert!(read(&behind).unwrap_err().contains("has ended in a line before"));
}
