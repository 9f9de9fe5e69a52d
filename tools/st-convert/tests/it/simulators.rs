//! What simulators are given, read back and run: SimGrid's actions and GOAL's schedules.

use std::collections::BTreeMap;

use crate::common::{Made, kernel};
use st_kernels::Kernel;
use st_reduce::merge::merge;

const SINGLE_THREADED: [Kernel; 4] = [Kernel::Stencil2d, Kernel::Workers, Kernel::Fft, Kernel::Halo];

/// A channel between two ranks: from, to, tag.
type Channel = (usize, usize, u64);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Op {
    Compute(u64),
    Send(Channel, u64),
    Receive(Channel, u64),
    /// Of a receive that has begun.
    Wait(Channel),
    /// Begins a receive.
    Begin(Channel, u64),
    Nothing,
}

fn simgrid(made: &Made) -> Vec<Vec<Op>> {
    let (path, _) = made.convert(&["-o", "app.ti"]);
    let list = std::fs::read_to_string(path.join("trace.txt")).unwrap();
    let hosts = std::fs::read_to_string(path.join("hosts.txt")).unwrap();
    assert_eq!((list.lines().count(), hosts.lines().count()), (4, 4));
    let platform = std::fs::read_to_string(path.join("platform.xml")).unwrap();
    assert!(platform.contains("radical=\"0-3\"") && platform.ends_with("</platform>\n"));
    let rank = |(me, name): (usize, &str)| {
        let text = std::fs::read_to_string(path.join(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("{me} init"));
        assert_eq!(lines[lines.len() - 1], format!("{me} finalize"));
        let op = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[0], me.to_string());
            let n = |i: usize| words[i].parse::<u64>().unwrap();
            let place = |i: usize| words[i].parse::<usize>().unwrap();
            match words[1] {
                "compute" => Op::Compute(n(2)),
                "send" | "isend" => Op::Send((me, place(2), n(3)), n(4)),
                "recv" => Op::Receive((place(2), me, n(3)), n(4)),
                "irecv" => Op::Begin((place(2), me, n(3)), n(4)),
                "wait" if place(3) == me && place(2) != me => Op::Wait((place(2), me, n(4))),
                "wait" | "init" | "finalize" => Op::Nothing,
                other => unreachable!("{other}"),
            }
        };
        lines.iter().map(op).collect()
    };
    list.lines().enumerate().map(rank).collect()
}

/// Runs all ranks, a send never waiting; sizes that each channel carries, in order.
fn run(ranks: &[Vec<Op>]) -> BTreeMap<Channel, Vec<u64>> {
    let mut at = vec![0; ranks.len()];
    let (mut sent, mut taken) = (BTreeMap::<Channel, Vec<u64>>::new(), BTreeMap::<Channel, usize>::new());
    let (mut posted, mut waited) = (BTreeMap::<Channel, Vec<u64>>::new(), BTreeMap::<Channel, usize>::new());
    loop {
        let mut moved = false;
        for (me, ops) in ranks.iter().enumerate() {
            while let Some(op) = ops.get(at[me]) {
                match op {
                    Op::Send(channel, bytes) => sent.entry(*channel).or_default().push(*bytes),
                    Op::Begin(channel, bytes) => posted.entry(*channel).or_default().push(*bytes),
                    Op::Receive(channel, bytes) => {
                        let next = posted.get(channel).map_or(0, Vec::len);
                        if sent.get(channel).map_or(0, Vec::len) <= next {
                            break;
                        }
                        posted.entry(*channel).or_default().push(*bytes);
                        *taken.entry(*channel).or_default() += 1;
                    }
                    Op::Wait(channel) => {
                        let next = waited.get(channel).copied().unwrap_or(0)
                            + taken.get(channel).copied().unwrap_or(0);
                        if sent.get(channel).map_or(0, Vec::len) <= next {
                            break;
                        }
                        *waited.entry(*channel).or_default() += 1;
                    }
                    Op::Compute(_) | Op::Nothing => {}
                }
                at[me] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let left: Vec<_> = ranks.iter().zip(&at).filter_map(|(ops, at)| ops.get(*at)).collect();
    assert!(left.is_empty(), "these do not end: {left:?}");
    assert_eq!(sent, posted, "the n-th send of a channel is as large as its n-th receive");
    sent
}

#[test]
fn simgrid_runs_to_its_end_with_all_messages() {
    for which in SINGLE_THREADED {
        let made = kernel(which);
        let sent = run(&simgrid(&made));
        let pairs = |all: &mut dyn Iterator<Item = (usize, usize)>| {
            let mut sums = BTreeMap::<(usize, usize), usize>::new();
            all.for_each(|pair| *sums.entry(pair).or_default() += 1);
            sums
        };
        let found = pairs(&mut sent.iter().flat_map(|((from, to, _), all)| all.iter().map(|_| (*from, *to))));
        let place = |rank: u32| usize::try_from(rank).unwrap();
        let messages = made.messages();
        let wanted = pairs(&mut messages.iter().map(|(from, to, _)| (place(from.0), place(to.0))));
        // What there is beyond the program's own messages is of collective operations.
        assert!(wanted.iter().all(|(pair, n)| found.get(pair).is_some_and(|found| found >= n)), "{which:?}");
        let bytes: u64 = sent.values().flatten().sum();
        assert!(bytes >= made.message_bytes());
        if which == Kernel::Stencil2d {
            let calls = made.calls();
            let of = |name: &str| calls.values().filter(|call| call.0 == name).count() / 4;
            assert!(of("MPI_Allreduce") > 0 && of("MPI_Reduce") > 0);
            let all = of("MPI_Allreduce") * 6 + of("MPI_Reduce") * 3;
            assert_eq!(found.values().sum::<usize>(), messages.len() + all);
            assert_eq!(bytes, made.message_bytes() + u64::try_from(8 * all).unwrap());
        }
    }
}

#[test]
fn receives_stand_where_they_are_posted() {
    for ops in simgrid(&kernel(Kernel::Stencil2d)) {
        let first = |which: fn(&Op) -> bool| ops.iter().position(which).unwrap();
        let posted = first(|op| matches!(op, Op::Begin(..)));
        let (sent, waited) = (first(|op| matches!(op, Op::Send(..))), first(|op| matches!(op, Op::Wait(_))));
        assert!(posted < sent && sent < waited, "{posted} {sent} {waited}");
    }
}

#[test]
fn computation_is_what_lies_between_calls() {
    let made = kernel(Kernel::Stencil2d);
    let calls = made.calls();
    for (rank, ops) in (0u32..).zip(simgrid(&made)) {
        let computed: u64 = ops.iter().map(|op| if let Op::Compute(ns) = op { *ns } else { 0 }).sum();
        let of: Vec<_> = calls.range((rank, 0, 0)..(rank + 1, 0, 0)).map(|(_, call)| call).collect();
        let gaps: i64 = of.windows(2).map(|w| w[1].1 - w[0].2).sum();
        let own = of.iter().filter(|call| ["MPI_Comm_rank", "MPI_Comm_size"].contains(&call.0.as_str()));
        let own: i64 = own.map(|call| call.2 - call.1).sum();
        assert_eq!(computed, u64::try_from(gaps + own).unwrap());
    }
}

/// A rank of a schedule: operations by label, with what each requires.
type Schedule = BTreeMap<u64, (Op, Vec<u64>)>;

fn goal(made: &Made) -> Vec<Schedule> {
    let (path, _) = made.convert(&["-o", "app.goal"]);
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.is_empty());
    assert_eq!(lines.next(), Some("num_ranks 4"));
    let mut ranks: Vec<Schedule> = Vec::new();
    let label = |word: &str| word.trim_start_matches('l').trim_end_matches(':').parse::<u64>().unwrap();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "rank" {
            assert_eq!(words[1], ranks.len().to_string());
            ranks.push(Schedule::new());
            continue;
        }
        if words[0] == "}" {
            continue;
        }
        let me = ranks.len() - 1;
        if words[1] == "requires" {
            ranks[me].get_mut(&label(words[0])).unwrap().1.push(label(words[2]));
            continue;
        }
        let n = |i: usize| words[i].trim_end_matches('b').parse::<u64>().unwrap();
        let peer = |i: usize| words[i].parse::<usize>().unwrap();
        let op = match words[1] {
            "calc" => Op::Compute(n(2)),
            "send" => Op::Send((me, peer(4), n(6)), n(2)),
            "recv" => Op::Begin((peer(4), me, n(6)), n(2)),
            other => unreachable!("{other}"),
        };
        ranks[me].insert(label(words[0]), (op, Vec::new()));
    }
    assert!(text.ends_with("}\n"));
    ranks
}

#[test]
fn goal_has_what_simgrid_has_and_ends() {
    for which in SINGLE_THREADED {
        let made = kernel(which);
        let (schedules, actions) = (goal(&made), simgrid(&made));
        let wanted = run(&actions);
        let mut done: Vec<BTreeMap<u64, bool>> = vec![BTreeMap::new(); schedules.len()];
        let mut sent = BTreeMap::<Channel, Vec<u64>>::new();
        let mut received = BTreeMap::<Channel, Vec<u64>>::new();
        loop {
            let mut moved = false;
            for (me, schedule) in schedules.iter().enumerate() {
                for (label, (op, before)) in schedule {
                    let ready = before.iter().all(|b| b < label && done[me].contains_key(b));
                    if done[me].contains_key(label) || !ready {
                        continue;
                    }
                    match op {
                        Op::Send(channel, bytes) => sent.entry(*channel).or_default().push(*bytes),
                        Op::Begin(channel, bytes) => {
                            let of = received.entry(*channel).or_default();
                            if sent.get(channel).map_or(0, Vec::len) <= of.len() {
                                continue;
                            }
                            of.push(*bytes);
                        }
                        _ => {}
                    }
                    done[me].insert(*label, true);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for (schedule, done) in schedules.iter().zip(&done) {
            assert_eq!(schedule.len(), done.len(), "{which:?}: some operations never become ready");
        }
        let sorted = |mut all: BTreeMap<Channel, Vec<u64>>| {
            all.values_mut().for_each(|sizes| sizes.sort_unstable());
            all
        };
        assert_eq!(sorted(sent), sorted(wanted.clone()), "{which:?}");
        assert_eq!(sorted(received), sorted(wanted), "{which:?}");
    }
}

#[test]
fn without_times_there_is_no_computation_and_threads_are_refused() {
    let merged = Made::of(vec![merge(kernel(Kernel::Workers).sections, false).unwrap()]);
    let ranks = simgrid(&merged);
    assert!(!run(&ranks).is_empty());
    assert!(ranks.iter().flatten().all(|op| !matches!(op, Op::Compute(_))));
    let threads = kernel(Kernel::Threads);
    let output = threads.run(&["-o", "app.ti"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("several threads"));
}

/// Operations whose blocks have types of their own or one that they share, and a message in parts.
const SIZES: &str = r#"
{"rank":R,"call":"MPI_Gather","sendcount":2,"sendtype":"MPI_DOUBLE","recvcount":2,"recvtype":"MPI_DOUBLE","root":3}
{"rank":R,"call":"MPI_Gather","sendcount":2,"sendtype":"MPI_FLOAT","recvcount":2,"recvtype":"MPI_FLOAT","root":3}
{"rank":R,"call":"MPI_Alltoallw","sendcounts":[1,2,3,4],"sdispls":[0,0,0,0],"sendtypes":["MPI_DOUBLE","MPI_INT","MPI_DOUBLE","MPI_INT"],"recvcounts":[N,N,N,N],"rdispls":[0,0,0,0],"recvtypes":["T","T","T","T"]}
{"rank":R,"call":"MPI_Psend_init","partitions":4,"count":8,"type":"MPI_INT","dest":TO,"tag":3,"request":"s"}
{"rank":R,"call":"MPI_Precv_init","partitions":2,"count":16,"type":"MPI_INT","source":FROM,"tag":3,"request":"r"}
{"rank":R,"call":"MPI_Startall","requests":["s","r"]}
{"rank":R,"call":"MPI_Waitall","requests":["s","r"]}
"#;

#[test]
fn blocks_and_parts_have_their_sizes() {
    let of = |rank: usize| {
        let numbers = [("R", rank), ("N", rank + 1), ("TO", (rank + 1) % 4), ("FROM", (rank + 3) % 4)];
        let named = SIZES.replace("\"T\"", ["\"MPI_DOUBLE\"", "\"MPI_INT\""][rank % 2]);
        let set = |text: String, (name, n): &(&str, usize)| {
            text.replace(&format!(":{name},"), &format!(":{n},"))
                .replace("[N,N,N,N]", &format!("{:?}", [rank + 1; 4]))
        };
        numbers.iter().fold(named, set)
    };
    let made = Made::of_lines(&(0..4).map(of).collect::<String>());
    let sent = run(&simgrid(&made));
    let gathered = 3 * 2 * (8 + 4);
    let exchanged = 3 * (8 + 2 * 4 + 3 * 8 + 4 * 4);
    let in_parts = 4 * 4 * 8 * 4;
    assert_eq!(sent.values().flatten().sum::<u64>(), gathered + exchanged + in_parts);
}

#[test]
fn how_much_shorter_a_simulation_may_be_is_said() {
    let made = Made::of_lines(
        r#"{"rank":0,"call":"MPI_Init","enter":0,"exit":10}
{"rank":0,"call":"MPI_Recv","count":1,"source":1,"tag":1,"enter":20,"exit":30}
{"rank":0,"call":"MPI_Finalize","enter":40,"exit":50}
{"rank":1,"call":"MPI_Init","enter":0,"exit":10}
{"rank":1,"call":"MPI_Send","count":1,"dest":0,"tag":1,"enter":12,"exit":30}
{"rank":1,"call":"MPI_Finalize","enter":40,"exit":50}"#,
    );
    for to in ["app.goal", "app.ti"] {
        let (_, said) = made.convert(&["-o", to]);
        assert!(said.contains("a simulation may be up to 33.3 % shorter than the run"), "{said}");
    }
    let (_, said) = made.convert(&["-o", "app.json"]);
    assert!(!said.contains("simulation"), "{said}");
}

#[test]
fn ranks_that_stop_early_are_said() {
    let made = Made::of_lines(
        r#"{"rank":0,"call":"MPI_Init","enter":0,"exit":10}
{"rank":0,"call":"MPI_Recv","count":1,"source":1,"tag":1,"enter":20,"exit":30}
{"rank":1,"call":"MPI_Init","enter":0,"exit":10}
{"rank":1,"call":"MPI_Send","count":1,"dest":0,"tag":1,"enter":20,"exit":30}
{"ended":1,"thread":0}"#,
    );
    let (_, said) = made.convert(&["-o", "app.goal"]);
    assert!(said.contains("1 ends of ranks that stop early"), "{said}");
    assert_eq!(made.run(&["--strict", "-o", "other.goal"]).status.code(), Some(4));
}

/// A torus of 2 × 2, where both neighbours of a dimension are one rank; a graph whose edges each rank gives for others; and two groups.
const NEAR: &str = r#"
{"comm":"torus","members":[0,1,2,3]}
{"comm":"graph","members":[0,1,2,3]}
{"comm":"inter","members":[0,1,2],"remote":[3],"ranks":[0,1,2]}
{"comm":"inter","members":[3],"remote":[0,1,2],"ranks":[3]}
{"rank":R,"call":"MPI_Cart_create","comm":"MPI_COMM_WORLD","ndims":2,"dims":[2,2],"periods":[1,1],"reorder":0,"newcomm":"torus"}
{"rank":R,"call":"MPI_Neighbor_alltoallv","sendcounts":[1,2,3,4],"sdispls":[0,0,0,0],"sendtype":"MPI_INT","recvcounts":[2,1,4,3],"rdispls":[0,0,0,0],"recvtype":"MPI_INT","comm":"torus"}
{"rank":R,"call":"MPI_Neighbor_alltoall_init","sendcount":5,"sendtype":"MPI_INT","recvcount":5,"recvtype":"MPI_INT","comm":"torus","request":"n"}
{"rank":R,"call":"MPI_Start","request":"n"}
{"rank":R,"call":"MPI_Wait","request":"n"}
{"rank":R,"call":"MPI_Dist_graph_create","comm":"MPI_COMM_WORLD","sources":[FROM],"degrees":[1],"destinations":[R],"weights":[],"reorder":0,"newcomm":"graph"}
{"rank":R,"call":"MPI_Neighbor_allgather","sendcount":7,"sendtype":"MPI_INT","recvcount":7,"recvtype":"MPI_INT","comm":"graph"}
{"rank":R,"call":"MPI_Allgather","inplace":false,"sendcount":11,"sendtype":"MPI_INT","recvcount":11,"recvtype":"MPI_INT","comm":"inter"}
{"rank":R,"call":"MPI_Allreduce","inplace":false,"count":13,"type":"MPI_INT","op":"MPI_SUM","comm":"inter"}
"#;

#[test]
fn neighbours_and_two_groups_send_what_they_say() {
    let of = |rank: usize| {
        let calls = NEAR.replace(":R,", &format!(":{rank},")).replace("[R]", &format!("[{rank}]"));
        let text = calls.replace("FROM", &((rank + 3) % 4).to_string());
        // Objects are described once.
        text.lines()
            .filter(|line| rank == 0 || line.contains("\"call\""))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let made = Made::of_lines(&(0..4).map(of).collect::<Vec<String>>().concat());
    let (_, said) = made.convert(&["-o", "said.ti"]);
    let kinds = "2 synchronisations where communicators are made";
    assert!(!said.contains("neighbour") && !said.contains("parts in"), "{said} {kinds}");
    let sent = run(&simgrid(&made));
    let torus = 4 * 4 * (1 + 2 + 3 + 4) + 4 * 4 * 4 * 5;
    // Up a tree of three, between both groups, down again.
    let groups = 6 * 4 * 11 + (2 + 2 + 2) * 4 * 13;
    assert_eq!(sent.values().flatten().sum::<u64>(), torus + 4 * 4 * 7 + groups);
    // What the neighbours get is what they are said to receive.
    let received: u64 = made.volumes().values().map(|volume| volume.1).sum();
    assert_eq!(received, torus + 4 * 4 * 7 + 6 * 4 * 11 + 4 * 4 * 13);
}

#[test]
fn receives_that_are_under_way_together_cost_the_same_each() {
    let n = 40_000;
    let mut lines = String::new();
    let mut line = |text: String| lines.push_str(&(text + "\n"));
    let receive =
        |i: usize| format!(r#"{{"rank":0,"call":"MPI_Irecv","source":1,"bytes":8,"request":"{i}"}}"#);
    (0..n).for_each(|i| line(receive(i)));
    for some in (0..n).rev().collect::<Vec<_>>().chunks(100) {
        let names: Vec<String> = some.iter().map(|i| format!("\"{i}\"")).collect();
        line(format!(r#"{{"rank":0,"call":"MPI_Waitall","requests":[{}]}}"#, names.join(",")));
    }
    (0..n).for_each(|_| line(r#"{"rank":1,"call":"MPI_Send","dest":0,"bytes":8}"#.into()));
    let made = Made::of_lines(&lines);
    let begin = std::time::Instant::now();
    made.convert(&["-o", "app.ti"]);
    // A pass over all that are under way for each would take some ten times as long.
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}
