//! A parallel machine in memory: programs are run op by op, and leave sections with exact times, and what a slow and
//! obvious look at all of them says of their waits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use st_capture::record::{Options, RankRecorder};
use st_explain::{Analysis, KEPT, WaitKind};
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::objects::{Comm, Op, SharedObject, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::sites::SiteTable;
use st_model::values::{ANY_SOURCE, NONE};

/// Words of a call by the names of their slots.
pub(crate) type Words = Vec<(&'static str, Vec<i64>)>;

struct Rank {
    recorder: RankRecorder,
    column: Column,
    now: i64,
    calls: usize,
    /// Requests in use: message, and whether it sends.
    requests: Vec<Option<(usize, bool)>>,
    /// Calls that send or take part in what all do.
    told: Vec<usize>,
}

/// A message, all of whose ends are known.
#[derive(Clone, Debug)]
struct Message {
    from: usize,
    to: usize,
    /// Enters of the calls that send it and post its receive, with their functions and sites.
    sent: (i64, &'static str, u32),
    posted: (i64, &'static str, u32),
    sync: bool,
    /// The library keeps it until it is received.
    kept: bool,
    /// The how-many-th call of the receiver completes it.
    received: usize,
}

/// A call that completes messages or is a part in a collective operation.
#[derive(Clone, Debug)]
struct Completion {
    rank: usize,
    number: usize,
    site: u32,
    enter: i64,
    exit: i64,
    /// Message, and whether its send is completed.
    ends: Vec<(usize, bool)>,
    /// It completes all that it names.
    orders: bool,
}

/// A wait: kind, who, at which site, for whom, at which site.
pub(crate) type Key = (WaitKind, u32, u32, u32, u32);

/// A call that has been made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) rank: u32,
    pub(crate) place: (&'static str, u32),
    pub(crate) enter: i64,
    pub(crate) exit: i64,
}

/// When a rank waits for which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) rank: u32,
    pub(crate) by: u32,
    pub(crate) enter: i64,
    pub(crate) until: i64,
}

/// All that happens on the machine.
#[derive(Clone, Default, Debug)]
pub(crate) struct History {
    pub(crate) calls: Vec<Made>,
    pub(crate) waits: Vec<Interval>,
    /// When all ranks have waited for all.
    pub(crate) meetings: Vec<i64>,
}

/// The machine.
pub(crate) struct Machine {
    ranks: Vec<Rank>,
    messages: Vec<Message>,
    completions: Vec<Completion>,
    pub(crate) waits: BTreeMap<Key, i64>,
    pub(crate) history: History,
    /// Elements of four bytes that a message has.
    pub(crate) elements: i64,
}

/// No message.
const LOST: usize = usize::MAX;
/// What a call costs beyond waiting, ns.
pub(crate) const OWN: i64 = 640;

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap()
}

impl Machine {
    pub(crate) fn new(ranks: usize) -> Self {
        let rank = |i: usize| {
            let mut recorder = RankRecorder::new(number(i), Options::default());
            let members = RankSeq::first(number(ranks));
            let remote = RankSeq::default();
            let file = SharedObject { kind: "MPI_File_open".into(), comm: 0, members: members.clone() };
            recorder.objects.files.predefined(file);
            recorder.objects.comms.predefined(Comm { kind: "world".into(), parent: 0, members, remote });
            let int = Type { kind: "int".into(), words: vec![], parts: vec![], size: 4, lb: 0, extent: 4 };
            recorder.objects.types.predefined(int);
            recorder.objects.ops.predefined(Op { kind: "sum".into(), commutes: true });
            recorder.open_thread(0);
            Rank { recorder, column: Column::default(), now: 0, calls: 0, requests: vec![], told: vec![] }
        };
        let ranks = (0..ranks).map(rank).collect();
        let mut machine = Self {
            ranks,
            messages: vec![],
            completions: vec![],
            waits: BTreeMap::new(),
            history: History::default(),
            elements: 1,
        };
        for me in 0..machine.ranks.len() {
            machine.record(me, names::MPI_Init, 0, vec![], 640, 640);
        }
        machine
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// When a rank is at the end of its last call, or of computing after it.
    pub(crate) fn now(&self, me: usize) -> i64 {
        self.ranks[me].now
    }

    /// A rank computes for so many ns.
    pub(crate) fn compute(&mut self, me: usize, ns: i64) {
        self.ranks[me].now += ns;
    }

    /// When the next call of a rank is entered: at no time at which another rank enters one.
    fn enter(&mut self, me: usize) -> i64 {
        let now = &mut self.ranks[me].now;
        *now = (*now / 64 + 1) * 64 + int(me);
        *now
    }

    pub(crate) fn record(
        &mut self,
        me: usize,
        name: &'static str,
        site: u32,
        words: Words,
        enter: i64,
        exit: i64,
    ) {
        self.history.calls.push(Made { rank: number(me), place: (name, site), enter, exit });
        let row = CallTable::builtin().by_name(name).unwrap();
        let rank = &mut self.ranks[me];
        let mut flat = Vec::new();
        for slot in &row.slots {
            let named = words.iter().find(|(n, _)| *n == slot.name).map(|(_, w)| w.clone());
            let usual = match slot.name.as_str() {
                "rsource" | "rtag" => NONE,
                "times" | "count" | "sendcount" | "recvcount" => 1,
                _ => 0,
            };
            let words = named.unwrap_or(if slot.list { vec![] } else { vec![usual] });
            flat.extend(slot.list.then(|| int(words.len())));
            flat.extend(words);
        }
        let site = rank.recorder.sites.label(&format!("site {site}"));
        let symbol = rank.recorder.symbol(row.id, site, 0);
        rank.column.chunks.extend(rank.recorder.record(0, symbol, &flat, enter, exit).map(|c| *c));
        (rank.now, rank.calls) = (exit, rank.calls + 1);
    }

    fn request(&mut self, me: usize, message: usize, sends: bool) -> i64 {
        let all = &mut self.ranks[me].requests;
        let free = all.iter().position(Option::is_none).unwrap_or(all.len());
        all.resize_with(all.len().max(free + 1), || None);
        all[free] = Some((message, sends));
        int(free)
    }

    fn complete(&mut self, me: usize, site: u32, times: (i64, i64), ends: Vec<(usize, bool)>) {
        let number = self.ranks[me].calls;
        for (message, _) in ends.iter().filter(|(_, sends)| !sends) {
            self.messages[*message].received = number;
        }
        self.completions.push(Completion {
            rank: me,
            number,
            site,
            enter: times.0,
            exit: times.1,
            ends,
            orders: true,
        });
    }

    /// A message from one rank to another; either end may only be started, and the receive may have a wildcard.
    pub(crate) fn message(
        &mut self,
        (from, to): (usize, usize),
        (sync, started): (bool, [bool; 2]),
        wild: bool,
        sites: [u32; 2],
    ) {
        let (sent, posted) = (self.enter(from), self.enter(to));
        self.tells(from);
        let send = match (sync, started[0]) {
            (false, false) => names::MPI_Send,
            (true, false) => names::MPI_Ssend,
            (false, true) => names::MPI_Isend,
            (true, true) => names::MPI_Issend,
        };
        let receive = if started[1] { names::MPI_Irecv } else { names::MPI_Recv };
        let id = self.messages.len();
        let (sent, posted) = ((sent, send, sites[0]), (posted, receive, sites[1]));
        let kept = !sync && self.elements * 4 <= i64::try_from(KEPT).unwrap();
        self.messages.push(Message { from, to, sent, posted, sync, kept, received: usize::MAX });
        let mut words = vec![("dest", vec![int(to)]), ("count", vec![self.elements])];
        if started[0] {
            words.push(("request", vec![self.request(from, id, true)]));
        }
        let exit = if sync && !started[0] { sent.0.max(posted.0) } else { sent.0 } + OWN;
        if !started[0] {
            self.complete(from, sites[0], (sent.0, exit), vec![(id, true)]);
        }
        self.record(from, send, sites[0], words, sent.0, exit);
        let mut words = vec![("source", vec![if wild { ANY_SOURCE } else { int(from) }])];
        let mut exit = posted.0 + OWN;
        if started[1] {
            words.push(("request", vec![self.request(to, id, false)]));
        } else {
            exit = posted.0.max(sent.0) + OWN;
            words.extend(wild.then(|| ("rsource", vec![int(from)])));
            self.complete(to, sites[1], (posted.0, exit), vec![(id, false)]);
        }
        self.record(to, receive, sites[1], words, posted.0, exit);
    }

    /// A rank waits for those of its requests that are chosen.
    pub(crate) fn wait(&mut self, me: usize, site: u32, choose: impl Fn(usize) -> bool) {
        self.wait_by(names::MPI_Waitall, (me, site), choose, |_| true);
    }

    /// A rank waits for one of its requests, whichever comes: it is the one that is chosen.
    pub(crate) fn wait_any(&mut self, me: usize, site: u32, comes: usize) {
        self.wait_by(names::MPI_Waitany, (me, site), |_| true, |request| request == comes);
    }

    /// A rank tests its first request, which is complete.
    pub(crate) fn test_finds(&mut self, me: usize, site: u32) {
        let first = self.ranks[me].requests.iter().position(Option::is_some);
        self.wait_by(names::MPI_Test, (me, site), |request| Some(request) == first, |_| true);
    }

    /// A rank waits for those of its requests that are chosen, and completes those of them that come.
    fn wait_by(
        &mut self,
        function: &'static str,
        (me, site): (usize, u32),
        choose: impl Fn(usize) -> bool,
        comes: impl Fn(usize) -> bool,
    ) {
        let all = &self.ranks[me].requests;
        let chosen: Vec<usize> =
            (0..all.len()).filter(|i| all[*i].is_some_and(|r| r.0 != LOST) && choose(*i)).collect();
        if chosen.is_empty() {
            return;
        }
        let enter = self.enter(me);
        let (mut ready, mut ends, mut words) = (enter, Vec::new(), [vec![], vec![], vec![], vec![]]);
        for (position, request) in chosen.iter().enumerate().filter(|(_, request)| comes(**request)) {
            let (message, sends) = self.ranks[me].requests[*request].take().unwrap();
            let m = &self.messages[message];
            if !sends || m.sync {
                ready = ready.max(if sends { m.posted.0 } else { m.sent.0 });
            }
            ends.push((message, sends));
            let got = if sends { [NONE; 3] } else { [int(m.from), 0, 4] };
            words[0].push(int(position));
            (1..4).for_each(|i| words[i].push(got[i - 1]));
        }
        let [completed, source, tag, bytes] = words;
        let requests: Vec<i64> = chosen.iter().map(|r| int(*r)).collect();
        let words = vec![
            ("n", vec![int(requests.len())]),
            ("flag", vec![1]),
            ("requests", requests),
            ("completed", completed),
            ("source", source),
            ("tag", tag),
            ("bytes", bytes),
        ];
        let orders = ends.len() == chosen.len();
        self.complete(me, site, (enter, ready + OWN), ends);
        self.completions.last_mut().unwrap().orders = orders;
        self.record(me, function, site, words, enter, ready + OWN);
    }

    /// A rank tests its first request so many times without success, for so many ns.
    pub(crate) fn test(&mut self, me: usize, site: u32, (times, ns): (i64, i64)) {
        let first = self.ranks[me].requests.iter().position(Option::is_some).unwrap();
        let enter = self.enter(me);
        let words = vec![("requests", vec![int(first)]), ("times", vec![times])];
        self.record(me, names::MPI_Test, site, words, enter, enter + ns);
    }

    /// A rank loses its requests: it never waits for them, and their numbers stay in use.
    pub(crate) fn lose(&mut self, me: usize) {
        self.ranks[me].requests.iter_mut().flatten().for_each(|(message, _)| *message = LOST);
    }

    /// All ranks call a collective operation.
    pub(crate) fn collective(&mut self, name: &'static str, root: usize, site: u32) {
        let enters: Vec<i64> = (0..self.ranks()).map(|me| self.enter(me)).collect();
        let last = |of: &[i64]| (0..of.len()).max_by_key(|i| of[*i]).unwrap();
        let all = [names::MPI_Barrier, names::MPI_Allreduce, names::MPI_Alltoall].contains(&name);
        let last_of_all = last(&enters);
        self.history.meetings.extend(all.then(|| enters[last_of_all]));
        for (me, enter) in enters.clone().into_iter().enumerate() {
            let others = || (0..enters.len()).filter(|i| *i != root).min_by_key(|i| enters[*i]);
            let waits_for = match name {
                names::MPI_Barrier => Some((WaitKind::Barrier, last_of_all)),
                names::MPI_Allreduce | names::MPI_Alltoall => Some((WaitKind::AllToAll, last_of_all)),
                names::MPI_Bcast if me != root => Some((WaitKind::LateBroadcast, root)),
                names::MPI_Reduce if me == root => others().map(|first| (WaitKind::EarlyReduce, first)),
                names::MPI_Scan => Some((WaitKind::EarlyScan, last(&enters[..=me]))),
                _ => None,
            };
            let mut exit = enter + OWN;
            if let Some((kind, who)) = waits_for.filter(|(_, who)| enters[*who] > enter) {
                self.add((kind, number(me), site, number(who), site), (enter, enters[who]));
                exit = enters[who] + OWN;
            }
            if let (names::MPI_Reduce, true, Some(first)) = (name, me == root, others()) {
                let latest = (0..enters.len()).filter(|i| *i != root).max_by_key(|i| enters[*i]).unwrap();
                let (from, until) = (enter.max(enters[first]), enters[latest]);
                if until > from {
                    let key = (WaitKind::LateContribution, number(me), site, number(latest), site);
                    self.add(key, (from, until));
                    exit = until + OWN;
                }
            }
            self.tells(me);
            self.record(me, name, site, vec![("root", vec![int(root)])], enter, exit);
        }
    }

    fn tells(&mut self, me: usize) {
        let rank = &mut self.ranks[me];
        rank.told.push(rank.calls);
    }

    fn add(&mut self, key: Key, (enter, until): (i64, i64)) {
        *self.waits.entry(key).or_default() += until - enter;
        self.history.waits.push(Interval { rank: key.1, by: key.3, enter, until });
    }

    /// Looks at each completion beside all messages.
    fn look(&mut self) {
        for c in std::mem::take(&mut self.completions) {
            let candidate = |(id, sends): &(usize, bool)| {
                let m = &self.messages[*id];
                let (kind, end, who) = match sends {
                    true => (WaitKind::LateReceiver, m.posted, m.to),
                    false => (WaitKind::LateSender, m.sent, m.from),
                };
                let sure = end.0 > c.enter && !(*sends && m.kept);
                (!sends || end.0 < c.exit).then_some(((sure, end.0, !sends), kind, who, end.2))
            };
            let Some(((_, until, _), kind, who, site)) =
                c.ends.iter().filter_map(candidate).max_by_key(|c| c.0)
            else {
                continue;
            };
            let older = |m: &&Message| m.to == c.rank && m.sent.0 < until && m.received > c.number;
            let oldest = self.messages.iter().filter(older).min_by_key(|m| m.sent.0);
            let quiet = |m: &&Message| {
                !self.ranks[c.rank].told.iter().any(|told| (c.number + 1..=m.received).contains(told))
            };
            let one = c.ends.iter().filter(|(_, sends)| !sends).count() < 2;
            let there = |m: &&Message| until - m.sent.0 >= (until - c.enter) / 2;
            let asks = kind == WaitKind::LateSender && c.orders && one;
            let kind = match oldest.filter(|_| asks).filter(there).filter(quiet) {
                Some(m) if m.from == who => WaitKind::WrongOrderSame,
                Some(_) => WaitKind::WrongOrderOther,
                None => kind,
            };
            if until > c.enter {
                self.add((kind, number(c.rank), c.site, number(who), site), (c.enter, until));
            }
        }
    }

    /// The end of the program: its sections, and its waits.
    pub(crate) fn finish(self) -> (Vec<Section>, BTreeMap<Key, i64>, History) {
        self.finish_on(|_| "host")
    }

    /// The same, where ranks run on several hosts.
    pub(crate) fn finish_on(
        mut self,
        host: impl Fn(usize) -> &'static str,
    ) -> (Vec<Section>, BTreeMap<Key, i64>, History) {
        (0..self.ranks()).for_each(|me| self.wait(me, 99, |_| true));
        for me in 0..self.ranks() {
            let enter = self.enter(me);
            self.record(me, names::MPI_Finalize, 0, vec![], enter, enter + OWN);
        }
        self.look();
        let finish = |(i, mut r): (usize, Rank)| {
            r.column.chunks.extend(r.recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
            let mut section = r.recorder.finish(host(i));
            section.threads[0].columns = vec![(number(i), r.column)];
            section
        };
        (self.ranks.into_iter().enumerate().map(finish).collect(), self.waits, self.history)
    }
}

/// What a rank does next: an op, numbers that say with whom and how, time to compute before, and a site.
pub(crate) type Step = (u8, usize, usize, i64, u32);

/// Programs by chance: so many ranks, and what they do.
pub(crate) fn programs() -> impl Strategy<Value = (usize, Vec<Step>)> {
    let step = (0..8_u8, 0..60_usize, 0..60_usize, 0..20_000_i64, 1..4_u32);
    (2..6_usize, proptest::collection::vec(step, 0..120))
}

const COLLECTIVES: [&str; 6] = [
    names::MPI_Barrier,
    names::MPI_Allreduce,
    names::MPI_Alltoall,
    names::MPI_Bcast,
    names::MPI_Reduce,
    names::MPI_Scan,
];

/// Runs a program.
pub(crate) fn run((ranks, steps): (usize, Vec<Step>)) -> Machine {
    let mut machine = Machine::new(ranks);
    for (what, a, b, ns, at) in steps {
        let (me, other) = (a % ranks, (a + 1 + b % (ranks - 1)) % ranks);
        machine.compute(me, ns);
        match what {
            0..=3 => {
                let started = [b & 8 != 0, b & 16 != 0];
                let wild = b & 4 != 0;
                machine.message((me, other), (b & 32 != 0, started), wild, [at, at + 3]);
                if wild {
                    // What the receive gets is known when it completes.
                    machine.wait(other, 8, |_| true);
                }
            }
            4 | 5 => machine.wait(me, 9, |r| (r + b) % 3 != 0),
            6 => machine.compute(other, 3 * ns),
            _ => machine.collective(COLLECTIVES[b % 6], a % ranks, 10 + at),
        }
    }
    machine
}

/// A program of so many ranks, twenty steps, in which one thing is wrong.
pub(crate) fn planted(ranks: usize, fault: impl Fn(&mut Machine)) -> Machine {
    let mut machine = Machine::new(ranks);
    for _ in 0..20 {
        (0..ranks).for_each(|me| machine.compute(me, 1_000_000));
        fault(&mut machine);
    }
    machine
}

/// Number of the site of a place.
pub(crate) fn site(analysis: &Analysis, place: u32) -> u32 {
    let id = analysis.places.get(place).unwrap().site.unwrap();
    (0..100).find(|n| SiteTable::label_id(&format!("site {n}")) == id).unwrap()
}
