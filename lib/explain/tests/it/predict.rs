//! What programs would take, against a machine that is as the model has it and on which they are run again.

use proptest::prelude::*;
use st_explain::{Analysis, Link, Network, Prediction, Scenario, analyse};
use st_model::calls::names;
use st_model::section::Section;

use crate::simulator::{Machine, programs, run, site};

/// A machine whose messages take what the LogGP model says.
struct Cluster {
    machine: Machine,
    network: Network,
}

fn ns(time: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a test's times are short")]
    let whole = time.round() as i64;
    whole
}

fn float(n: impl TryInto<u32>) -> f64 {
    f64::from(n.try_into().ok().unwrap())
}

fn near(a: f64, b: f64, percent: f64) -> bool {
    (a - b).abs() * 100.0 <= b.abs() * percent
}

/// A network of one node.
fn network(latency: f64, overhead: f64, per_byte: f64, eager: u64) -> Network {
    Network { links: [Link { latency, per_byte }; 2], overhead, eager, collective: 1.0 }
}

impl Cluster {
    fn new(ranks: usize, network: Network) -> Self {
        Self { machine: Machine::new(ranks), network }
    }

    /// When a message has left its sender, and when it reaches its receiver.
    fn travels(&self, sent: i64, posted: i64, bytes: i64) -> (i64, i64) {
        let Network { links: [Link { latency, per_byte }, _], overhead, eager, .. } = self.network;
        let long = u64::try_from(bytes).unwrap() > eager;
        let from = if long { sent.max(posted) } else { sent };
        let left = if long { from + ns(overhead + float(bytes) * per_byte) } else { sent + ns(overhead) };
        (left, from + ns(overhead + latency + float(bytes) * per_byte))
    }

    /// A blocking message.
    fn message(&mut self, (from, to): (usize, usize), bytes: i64, sites: [u32; 2]) {
        let [sent, posted] = [from, to].map(|me| self.machine.now(me));
        let (left, there) = self.travels(sent, posted, bytes);
        let count = ("count", vec![bytes / 4]);
        let words = |slot, peer: usize| vec![(slot, vec![i64::try_from(peer).unwrap()]), count.clone()];
        let got = posted.max(there) + ns(self.network.overhead);
        self.machine.record(from, names::MPI_Send, sites[0], words("dest", to), sent, left);
        self.machine.record(to, names::MPI_Recv, sites[1], words("source", from), posted, got);
    }

    /// Each rank sends to the next and receives from the one before, computes, and waits for both.
    fn ring(&mut self, bytes: i64, computes: i64, site: u32) {
        let (n, o) = (self.machine.ranks(), ns(self.network.overhead));
        let start: Vec<i64> = (0..n).map(|me| self.machine.now(me)).collect();
        for (me, now) in start.iter().copied().enumerate() {
            let peer = |slot, peer: usize, request| {
                let peer = (slot, vec![i64::try_from(peer % n).unwrap()]);
                vec![peer, ("count", vec![bytes / 4]), ("request", vec![request])]
            };
            self.machine.record(me, names::MPI_Irecv, site, peer("source", me + n - 1, 0), now, now);
            self.machine.record(me, names::MPI_Isend, site, peer("dest", me + 1, 1), now, now + o);
            self.machine.compute(me, computes);
        }
        for me in 0..n {
            let (before, after) = ((me + n - 1) % n, (me + 1) % n);
            let enter = self.machine.now(me);
            let (_, there) = self.travels(start[before], start[me], bytes);
            let (left, _) = self.travels(start[me], start[after], bytes);
            let words = vec![
                ("n", vec![2]),
                ("requests", vec![0, 1]),
                ("completed", vec![0, 1]),
                ("source", vec![i64::try_from(before).unwrap(), st_model::values::NONE]),
                ("tag", vec![0, st_model::values::NONE]),
                ("bytes", vec![bytes, st_model::values::NONE]),
            ];
            let long = u64::try_from(bytes).unwrap() > self.network.eager;
            let ready = enter.max(there).max(if long { left } else { enter });
            self.machine.record(me, names::MPI_Waitall, site, words, enter, ready + o);
        }
    }

    /// All ranks reduce so many bytes: ⌈log₂ ranks⌉ rounds, and what is given and taken.
    fn allreduce(&mut self, bytes: i64, site: u32) {
        let n = self.machine.ranks();
        let Network { links: [Link { latency, per_byte }, _], overhead, .. } = self.network;
        let rounds = (0..).find(|r| 1 << r >= n).unwrap();
        let last = (0..n).map(|me| self.machine.now(me)).max().unwrap();
        let exit = last + ns(f64::from(rounds) * (latency + 2.0 * overhead) + float(2 * bytes) * per_byte);
        for me in 0..n {
            let enter = self.machine.now(me);
            self.machine.record(
                me,
                names::MPI_Allreduce,
                site,
                vec![("count", vec![bytes / 4])],
                enter,
                exit,
            );
        }
    }
}

/// What is done next: an operation, ranks, bytes, and time to compute before.
type Step = (u8, usize, usize, i64, i64);

fn steps() -> impl Strategy<Value = (usize, Vec<Step>)> {
    let bytes = prop_oneof![Just(4i64), Just(64), Just(1024), Just(4096), Just(20_000), Just(200_000)];
    let step = (0..8_u8, 0..60_usize, 0..60_usize, bytes, 0..60_000_i64);
    (2..9_usize, proptest::collection::vec(step, 150..300))
}

fn networks() -> impl Strategy<Value = Network> {
    let eager = prop_oneof![Just(2048), Just(8192), Just(100_000)];
    (2_000..40_000_u32, 200..900_u32, 200..2_000_u32, eager)
        .prop_map(|(l, o, g, eager)| network(l.into(), o.into(), f64::from(g) / 1000.0, eager))
}

/// Runs a program on a machine.
fn on(network: Network, (ranks, steps): &(usize, Vec<Step>)) -> Vec<Section> {
    let mut cluster = Cluster::new(*ranks, network);
    for (what, a, b, bytes, computes) in steps.iter().copied() {
        let (me, other) = (a % ranks, (a + 1 + b % (ranks - 1)) % ranks);
        cluster.machine.compute(me, computes);
        match what {
            0..=4 => cluster.message((me, other), bytes, [1, 2]),
            5 => cluster.ring(bytes, computes, 3),
            6 => cluster.allreduce(bytes, 4),
            _ => cluster.machine.compute(other, computes),
        }
    }
    // What a fit needs: receivers that wait, and senders whose receivers are late.
    for bytes in [4, 64, 1024, 4096, 20_000, 200_000] {
        for _ in 0..10 {
            for late in [0, 1] {
                cluster.machine.compute(late, 3_000_000);
                cluster.message((0, 1), bytes, [1, 2]);
                cluster.allreduce(4, 4);
            }
        }
    }
    cluster.machine.finish().0
}

fn told(sections: &[Section], scenarios: &[Scenario]) -> Vec<f64> {
    let (_, prediction) = Prediction::of(sections, &|_| ()).unwrap();
    prediction.times(scenarios).into_iter().map(float).collect()
}

/// The network that a trace is found to be of.
fn fitted(sections: &[Section]) -> Network {
    Prediction::of(sections, &|_| ()).unwrap().1.model().network
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_network_is_found(program in steps(), network in networks()) {
        let sections = on(network, &program);
        let (analysis, prediction) = Prediction::of(&sections, &|_| ()).unwrap();
        let found = prediction.model().network;
        let ([link, _], [was, _]) = (found.links, network.links);
        prop_assert!(near(link.latency, was.latency, 5.0), "{found:?}, not {network:?}");
        prop_assert!(near(link.per_byte, was.per_byte, 5.0), "{found:?}, not {network:?}");
        prop_assert!(near(found.overhead, network.overhead, 5.0), "{found:?}, not {network:?}");
        // Sizes that are sent are on the same side of the limit.
        for bytes in [4, 64, 1024, 4096, 20_000, 200_000] {
            prop_assert_eq!(bytes > found.eager, bytes > network.eager, "{}: {:?}", bytes, found);
        }
        let base = prediction.times(&[Scenario::on(found)])[0];
        prop_assert!(near(float(base), float(analysis.run()), 1.0), "{base} of {}", analysis.run());
    }

    #[test]
    fn what_another_network_takes_is_what_is_said(
        program in steps(),
        network in networks(),
        (latency, faster, overhead) in (0.0..6.0_f64, 0.2..5.0_f64, 0.0..5.0_f64),
    ) {
        let sections = on(network, &program);
        let found = fitted(&sections);
        let change = |n: Network| {
            let [Link { latency: l, per_byte }, _] = n.links;
            let link = Link { latency: l * latency, per_byte: per_byte / faster };
            Network { links: [link; 2], overhead: n.overhead * overhead, ..n }
        };
        let said = told(&sections, &[Scenario::on(change(found))])[0];
        let takes = float(analyse(&on(change(network), &program), &|_| ()).unwrap().run());
        prop_assert!(near(said, takes, 2.0), "{said}, not {takes}: {found:?} of {network:?}");
    }

    #[test]
    fn worse_networks_never_make_it_shorter(program in steps(), network in networks(), by in 1.0..9.0_f64) {
        let sections = on(network, &program);
        let found = fitted(&sections);
        let [link, _] = found.links;
        let slower = |links: Link| Scenario::on(Network { links: [links; 2], ..found });
        let scenarios = [
            Scenario::ideal(),
            Scenario::on(found),
            slower(Link { latency: link.latency * by, ..link }),
            slower(Link { per_byte: link.per_byte * by, ..link }),
            Scenario::on(Network { overhead: found.overhead * by, ..found }),
        ];
        let times = told(&sections, &scenarios);
        prop_assert!(times[0] <= times[1]);
        prop_assert!(times[2..].iter().all(|time| *time >= times[1]), "{times:?}");
    }

    #[test]
    fn an_ideal_network_takes_what_efficiencies_say(program in programs()) {
        let (sections, ..) = run(program).finish();
        let (analysis, prediction) = Prediction::of(&sections, &|_| ()).unwrap();
        prop_assert_eq!(prediction.times(&[Scenario::ideal()]), [analysis.efficiency().ideal]);
        prop_assert_eq!(analysis.ideal, analyse(&sections, &|_| ()).unwrap().ideal);
        // More scenarios than are walked through at a time, each by itself.
        let base = Scenario::on(prediction.model().network);
        let many: Vec<Scenario> = (0..19).map(|i| if i % 3 == 0 { Scenario::ideal() } else { base.clone() }).collect();
        let times = prediction.times(&many);
        let one = prediction.times(&[base])[0];
        // Each call may begin 64 ns later than it could on this machine, and a network of which hardly a message tells is a usual one.
        let run = analysis.run();
        prop_assert!(near(float(one), float(run), 1.0) || one.abs_diff(run) < 20_000, "{one} of {run}");
        for (i, time) in times.into_iter().enumerate() {
            prop_assert_eq!(time, if i % 3 == 0 { analysis.ideal } else { one });
        }
    }

    #[test]
    fn what_is_faster_or_balanced_takes_what_it_says(
        computes in proptest::collection::vec(proptest::collection::vec(1_000..400_000_i64, 5), 1..40),
        faster in 0.5..4.0_f64,
    ) {
        // Nothing but computation before a barrier, and some before another: the longest of each counts.
        let program = |change: &dyn Fn(&[i64]) -> Vec<i64>| {
            let mut cluster = Cluster::new(5, network(5_000.0, 500.0, 0.5, 8192));
            for all in &computes {
                change(all).iter().enumerate().for_each(|(me, ns)| cluster.machine.compute(me, *ns));
                cluster.allreduce(4, 7);
                all.iter().rev().enumerate().for_each(|(me, ns)| cluster.machine.compute(me, *ns));
                cluster.allreduce(4, 8);
            }
            cluster.machine.finish().0
        };
        let sections = program(&<[i64]>::to_vec);
        let (analysis, prediction) = Prediction::of(&sections, &|_| ()).unwrap();
        let place = place_of(&analysis, 7);
        let base = Scenario::on(prediction.model().network);
        let quick = Scenario { faster: [(place, faster)].into(), ..base.clone() };
        let even = Scenario { balanced: [place].into(), ..base };
        let said = prediction.times(&[quick, even]);
        let whole = |change: &dyn Fn(&[i64]) -> Vec<i64>| float(analyse(&program(change), &|_| ()).unwrap().run());
        let quicker = whole(&|all| all.iter().map(|n| ns(float(*n) / faster)).collect());
        let evened = whole(&|all| vec![all.iter().sum::<i64>() / 5; 5]);
        prop_assert!(near(float(said[0]), quicker, 0.5), "{said:?}, not {quicker}");
        prop_assert!(near(float(said[1]), evened, 0.5), "{said:?}, not {evened}");
    }
}

/// The number of the place at a site.
fn place_of(analysis: &Analysis, at: u32) -> u32 {
    (0..).find(|place| site(analysis, *place) == at).unwrap()
}

#[test]
fn what_is_not_on_the_critical_path_does_not_matter() {
    let mut cluster = Cluster::new(3, network(5_000.0, 500.0, 0.5, 8192));
    for _ in 0..20 {
        (0..3).for_each(|me| cluster.machine.compute(me, 400_000));
        // Ranks 0 and 1 have nothing to do but this; rank 2 computes for long.
        cluster.machine.compute(2, 5_000_000);
        cluster.message((0, 1), 64, [1, 2]);
        cluster.allreduce(4, 7);
    }
    let (analysis, prediction) = Prediction::of(&cluster.machine.finish().0, &|_| ()).unwrap();
    let base = Scenario::on(prediction.model().network);
    let twice = |at| Scenario { faster: [(place_of(&analysis, at), 2.0)].into(), ..base.clone() };
    let times = prediction.times(&[base.clone(), twice(1), twice(2), twice(7)]);
    assert!(times[1] == times[0] && times[2] == times[0] && times[3] < times[0] / 10 * 6, "{times:?}");
}

#[test]
fn operations_that_others_complete_wait_where_they_are_completed() {
    // Rank 0 computes 9 ms beside a barrier that rank 1 comes to after 8: nobody waits.
    let mut cluster = Cluster::new(2, network(0.0, 0.0, 0.0, 8192));
    let machine = &mut cluster.machine;
    let begin = machine.now(0);
    machine.record(0, names::MPI_Ibarrier, 1, vec![("request", vec![0])], begin, begin);
    machine.compute(1, 8_000_000);
    machine.record(1, names::MPI_Barrier, 1, vec![], begin + 8_000_000, begin + 8_000_000);
    let none = || vec![st_model::values::NONE];
    let words = vec![
        ("request", vec![0]),
        ("requests", vec![0]),
        ("completed", vec![0]),
        ("source", none()),
        ("tag", none()),
        ("bytes", none()),
    ];
    machine.record(0, names::MPI_Wait, 2, words, begin + 9_000_000, begin + 9_000_000);
    let sections = cluster.machine.finish().0;
    let ideal = analyse(&sections, &|_| ()).unwrap().ideal;
    assert!((9_000_000..9_001_000).contains(&ideal), "{ideal}");
}

#[test]
fn messages_that_all_wait_for_late_receivers_do_so_in_what_is_predicted() {
    // No message is shorter than those that wait: all that is known of the limit is that it is below these.
    let mut cluster = Cluster::new(3, network(5_000.0, 500.0, 0.5, 4096));
    for _ in 0..20 {
        cluster.machine.compute(1, 4_000_000);
        cluster.message((0, 1), 8192, [1, 2]);
        // Who waits makes others wait.
        cluster.message((0, 2), 8192, [1, 3]);
    }
    let (analysis, prediction) = Prediction::of(&cluster.machine.finish().0, &|_| ()).unwrap();
    let base = Scenario::on(prediction.model().network);
    assert!((4096..8192).contains(&base.network.eager), "{base:?}");
    let quick = Scenario { faster: [(place_of(&analysis, 2), 4.0)].into(), ..base.clone() };
    let times = prediction.times(&[base, quick]);
    assert!(near(float(times[0]), float(analysis.run()), 1.0), "{times:?}");
    assert!(near(float(times[1]), float(times[0]) / 4.0, 2.0), "{times:?}");
}

/// What two ranks do side by side in each turn: time to compute before something begins and before it is completed, ns.
type Turn = [[i64; 2]; 2];

/// What they do together.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// Messages of so many elements to each other, which move while both are where they wait for them: long ones, or short ones of a
    /// library that does not keep them.
    Messages(i64),
    /// A non-blocking operation of which that is true.
    Operation,
    /// A long broadcast, which its root leaves when the other one has it.
    Broadcast,
}

/// Both are in calls until the later one is in its call, and a while longer.
const MOVES: i64 = 60_000;

fn held(held: Held, turns: impl IntoIterator<Item = Turn>) -> Vec<Section> {
    let mut machine = Machine::new(2);
    let elements = if let Held::Messages(elements) = held { elements } else { 200_000 };
    let none = || vec![st_model::values::NONE; 2];
    for turn in turns {
        for (me, [before, beside]) in turn.into_iter().enumerate() {
            machine.compute(me, before);
            let (now, peer) = (machine.now(me), vec![i64::try_from(1 - me).unwrap()]);
            let words = |slot, request| {
                vec![(slot, peer.clone()), ("count", vec![elements]), ("request", vec![request])]
            };
            match held {
                Held::Messages(_) => {
                    machine.record(me, names::MPI_Irecv, 1, words("source", 0), now, now);
                    machine.record(me, names::MPI_Isend, 2, words("dest", 1), now, now);
                }
                Held::Operation => {
                    let words = vec![("count", vec![200_000]), ("request", vec![0])];
                    machine.record(me, names::MPI_Iallreduce, 1, words, now, now);
                }
                Held::Broadcast => {}
            }
            machine.compute(me, beside);
        }
        let exit = machine.now(0).max(machine.now(1)) + MOVES;
        for me in 0..2 {
            let now = machine.now(me);
            match held {
                Held::Messages(_) => {
                    let words = vec![
                        ("n", vec![2]),
                        ("requests", vec![0, 1]),
                        ("completed", vec![0, 1]),
                        ("source", vec![i64::try_from(1 - me).unwrap(), st_model::values::NONE]),
                        ("tag", vec![0, st_model::values::NONE]),
                        ("bytes", vec![4 * elements, st_model::values::NONE]),
                    ];
                    machine.record(me, names::MPI_Waitall, 3, words, now, exit);
                }
                Held::Operation => {
                    let request = || vec![0];
                    let mut words =
                        vec![("request", request()), ("requests", request()), ("completed", request())];
                    words.extend(["source", "tag", "bytes"].map(|slot| (slot, none()[..1].to_vec())));
                    machine.record(me, names::MPI_Wait, 3, words, now, exit);
                }
                Held::Broadcast => {
                    let words = vec![("count", vec![200_000]), ("root", vec![0])];
                    machine.record(me, names::MPI_Bcast, 3, words, now, exit);
                }
            }
        }
    }
    machine.finish().0
}

#[test]
fn what_moves_only_while_both_are_in_mpi_does_so_in_what_is_predicted() {
    // Rank 1 is late; where computation before the beginning is balanced, rank 0 is; what is faster may be neither's.
    let turn = [[2_000_000, 7_000_000], [8_000_000, 2_000_000]];
    let each = |change: &dyn Fn(&mut Turn)| {
        let mut turn = turn;
        change(&mut turn);
        vec![turn; 20]
    };
    for what in [Held::Messages(200_000), Held::Messages(1000), Held::Operation, Held::Broadcast] {
        let sections = held(what, each(&|_| ()));
        let (analysis, prediction) = Prediction::of(&sections, &|_| ()).unwrap();
        let base = Scenario::on(prediction.model().network);
        let mean = |turn: &mut Turn, n: usize| {
            let mean = i64::midpoint(turn[0][n], turn[1][n]);
            turn.iter_mut().for_each(|rank| rank[n] = mean);
        };
        let mut cases = vec![(base.clone(), held(what, each(&|_| ())))];
        if matches!(what, Held::Broadcast) {
            let even = Scenario { balanced: [place_of(&analysis, 3)].into(), ..base.clone() };
            cases.push((even, held(what, each(&|turn| [0, 1].into_iter().for_each(|n| mean(turn, n))))));
        } else {
            for (n, site) in [(0, 1), (1, 3)] {
                let place = place_of(&analysis, site);
                let even = Scenario { balanced: [place].into(), ..base.clone() };
                cases.push((even, held(what, each(&|turn| mean(turn, n)))));
                let quick = Scenario { faster: [(place, 2.0)].into(), ..base.clone() };
                let half = |turn: &mut Turn| turn.iter_mut().for_each(|rank| rank[n] /= 2);
                cases.push((quick, held(what, each(&half))));
            }
        }
        let (scenarios, truths): (Vec<Scenario>, Vec<Vec<Section>>) = cases.into_iter().unzip();
        let said = prediction.times(&scenarios);
        let takes: Vec<u64> = truths.iter().map(|truth| analyse(truth, &|_| ()).unwrap().run()).collect();
        let right = said.iter().zip(&takes).all(|(said, takes)| near(float(*said), float(*takes), 1.0));
        assert!(right, "{what:?}: {said:?}, not {takes:?}");
    }
}

#[test]
fn who_has_not_waited_for_the_other_one_to_be_in_mpi_does_not_in_what_is_predicted() {
    // Rank 1 leaves long before rank 0 is in its call, or long after: data move by themselves.
    for takes in [1_000_000, 9_000_000] {
        let mut cluster = Cluster::new(2, network(0.0, 0.0, float(takes) / 800_000.0, 4096));
        for _ in 0..20 {
            cluster.machine.compute(0, 100_000);
            cluster.ring(800_000, 2_000_000, 3);
            cluster.machine.compute(0, 2_000_000);
        }
        let sections = cluster.machine.finish().0;
        let (analysis, prediction) = Prediction::of(&sections, &|_| ()).unwrap();
        let base = Scenario::on(prediction.model().network);
        let said = prediction.times(&[base])[0];
        assert!(near(float(said), float(analysis.run()), 1.0), "{said}, not {}", analysis.run());
    }
}
