//! A call as JSON, and as a line.

use serde_json::{Value, json};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallId;
use st_model::calls::CallTable;
use st_model::calls::words::Words;
use st_model::event::Event;
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::sites::CallSites;
use st_stream::json::{call, line};

fn object(name: &str, error: u32, words: &[i64]) -> Value {
    let mut r = RankRecorder::new(3, Options::default());
    let kind = "MPI_COMM_WORLD".into();
    r.objects.comms.predefined(Comm {
        kind,
        parent: 0,
        members: RankSeq::first(8),
        remote: RankSeq::default(),
    });
    let kind = "MPI_INT".into();
    r.objects.types.predefined(Type { kind, words: vec![], parts: vec![], size: 4, lb: 0, extent: 4 });
    r.open_thread(0);
    let id = CallTable::builtin().by_name(name).map_or(CallId(0), |row| row.id);
    let sym = r.symbol(id, 0, error);
    r.record(0, sym, words, 5, 17);
    let s = r.finish("h");
    let words = Words::of(words.to_vec(), CallTable::builtin().slots(id));
    let mut event = Event::apart(&s, 3, 0, &words).unwrap().at(0, 12);
    event.times = Some((5, 12_350));
    Value::Object(call(&event, 5))
}

#[test]
fn a_send_has_bytes_and_reads_well() {
    let send = object("MPI_Send", 0, &[10, 0, 4, 7, 0]);
    let want = json!({"rank": 3, "thread": 0, "i": 12, "call": "MPI_Send", "site": 5, "enter": 5, "exit": 12350,
        "count": 10, "type": "MPI_INT", "dest": 4, "tag": 7, "comm": "MPI_COMM_WORLD", "bytes": 40});
    assert_eq!(send, want);
    let text = "rank 3 #12 MPI_Send count=10 type=MPI_INT dest=4 tag=7 comm=MPI_COMM_WORLD bytes=40  [site 5] at 5 ns for 12.3 µs";
    assert_eq!(line(send.as_object().unwrap(), &CallSites::default()), text);
    // Four parts of ten elements are one message.
    assert_eq!(object("MPI_Psend_init", 0, &[4, 10, 0, 4, 7, 0, 3])["bytes"], 160);
}

#[test]
fn special_values_have_names() {
    let recv = object("MPI_Recv", 6, &[10, -1, -2, -1, 0, -9, -9, -9]);
    let want = [("type", Value::Null), ("source", "MPI_ANY_SOURCE".into()), ("tag", "MPI_ANY_TAG".into())];
    want.iter().for_each(|(key, v)| assert_eq!(&recv[key], v));
    assert_eq!((&recv["rsource"], &recv["bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(recv["error"], "MPI_ERR_RANK");
    assert_eq!(object("MPI_Cart_shift", 0, &[0, 0, 1, -1, 2])["source"], "MPI_PROC_NULL");
    assert_eq!(object("MPI_Comm_split", 0, &[0, -32766, 1, -1])["color"], "MPI_UNDEFINED");
    assert_eq!(object("MPI_Comm_compare", 0, &[0, 0, 2])["result"], "MPI_SIMILAR");
    assert_eq!(object("MPI_Initialized", 0, &[1])["flag"], true);
}

#[test]
fn a_name_is_a_key_once() {
    let rank = object("MPI_Comm_rank", 0, &[0, 7]);
    assert_eq!((&rank["rank"], &rank["rank2"]), (&json!(3), &json!(7)));
    let sites = CallSites::default();
    let recv = object("MPI_Recv", 0, &[10, 0, 4, 7, 0, -9, -9, 40]);
    let [rank, recv] = [rank, recv].map(|call| line(call.as_object().unwrap(), &sites));
    assert!(rank.starts_with("rank 3 ") && rank.contains(" rank=7 ") && !rank.contains("rank2"), "{rank}");
    assert!(!recv.contains("rsource") && !recv.contains("rtag"), "{recv}");
    let imrecv = object("MPI_Imrecv", 0, &[1, -1, 4, 5]);
    assert_eq!((&imrecv["request"], &imrecv["request2"]), (&json!(4), &json!(5)));
}

#[test]
fn completions_are_one_list() {
    let some = object("MPI_Waitsome", 0, &[3, 3, 7, -1, 9, 2, 2, 0, 2, 5, -9, 2, 8, -9, 2, 40, -10]);
    assert_eq!(some["requests"], json!([7, null, 9]));
    let want = json!([{"request": 9, "source": 5, "tag": 8, "bytes": 40},
        {"request": 7, "source": null, "tag": null, "bytes": "cancelled"}]);
    assert_eq!(some["completed"], want);
    assert!(some.get("source").is_none() && some.get("tag").is_none());
    assert!(some.get("outcount").is_none());
}

#[test]
fn what_is_undefined_or_not_known_has_no_number() {
    let probe = object("MPI_Iprobe", 0, &[4, 7, 0, 0, -9, -9, -1, 3]);
    assert_eq!((&probe["flag"], &probe["bytes"], &probe["times"]), (&json!(false), &Value::Null, &json!(3)));
    assert_eq!(object("MPI_Iprobe", 0, &[4, 7, 0, 1, -9, -9, 8, 1])["bytes"], 8);
    // No request was active.
    let undefined = json!("MPI_UNDEFINED");
    assert_eq!(object("MPI_Waitsome", 0, &[2, 2, 7, -1, 0, 0, 0, 0])["outcount"], undefined);
    assert_eq!(object("MPI_Waitany", 0, &[1, 1, -1, 0, 0, 0, 0])["index"], undefined);
    assert_eq!(object("MPI_Testsome", 0, &[1, 1, -1, 0, 0, 0, 0, 1])["outcount"], undefined);
    assert_eq!(object("MPI_Testany", 0, &[1, 1, 7, 1, 0, 0, 0, 0, 1])["index"], undefined);
    // One was, or perhaps.
    for (name, words) in [
        ("MPI_Testsome", &[1, 1, 7, 0, 0, 0, 0, 3][..]),
        ("MPI_Testany", &[1, 1, 7, 0, 0, 0, 0, 0, 3]),
        ("MPI_Waitany", &[1, 1, 7, 1, 0, 1, 5, 1, 8, 1, 40]),
        ("MPI_Waitall", &[1, 1, -1, 0, 0, 0, 0]),
    ] {
        assert!(!object(name, 0, words).to_string().contains("UNDEFINED"), "{name}");
    }
    assert!(object("MPI_Waitsome", 6, &[1, 1, 7, 0, 0, 0, 0]).get("outcount").is_none());
}
