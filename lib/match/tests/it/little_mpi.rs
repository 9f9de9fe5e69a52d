//! A little MPI: runs programs by chance, in memory and slowly, and delivers each message as the standard says. What it has
//! delivered is what must be found in the recording.

use crate::program::{Point, Program, Word, exit};
use st_model::values::{ANY_SOURCE, ANY_TAG, NONE};

/// Members of a communicator by side, as world ranks: the second side is empty for an intracommunicator.
type Sides = [Vec<usize>; 2];

struct Message {
    comm: usize,
    from: usize,
    to: usize,
    tag: i64,
    sent: Point,
    /// The enter of the call that posted its receive.
    posted: Option<Point>,
    sync: bool,
}

/// A receive that was posted.
struct Posted {
    comm: usize,
    me: usize,
    /// World rank and tag, if it names them.
    source: Option<usize>,
    tag: Option<i64>,
    at: Point,
    message: Option<usize>,
}

#[derive(Clone, Copy)]
enum Request {
    Send(usize),
    Receive(usize),
    /// Collective operation, and the how-many-th member this is.
    Part(usize, usize),
    /// A persistent one, by number, and what is running.
    Persistent(usize, Option<Running>),
}
type Running = (bool, usize);
/// A request that completes: its number, what it is, source and tag.
type Done = ((i64, Request), (i64, i64));

/// A persistent request: communicator, other end as a position, tag, and whether it sends.
#[derive(Clone, Copy)]
struct Template(usize, usize, i64, bool);

/// A collective operation: who waits for whom, and where each member entered and left it.
struct Operation {
    waits: fn(usize, usize, usize) -> bool,
    root: usize,
    enters: Vec<Point>,
    leaves: Vec<Option<Point>>,
}

pub(crate) struct LittleMpi {
    pub(crate) program: Program,
    comms: Vec<Sides>,
    /// Index of each communicator in each rank's table.
    handles: Vec<Vec<Option<i64>>>,
    now: Vec<i64>,
    /// Number of calls of each rank.
    calls: Vec<u32>,
    messages: Vec<Message>,
    /// Messages that no receive has taken, and receives that wait, in order.
    arrived: Vec<usize>,
    waiting: Vec<usize>,
    posted: Vec<Posted>,
    requests: Vec<Vec<(i64, Request)>>,
    templates: Vec<Template>,
    operations: Vec<Operation>,
    /// What senders and receivers of all collective operations take in a graph.
    slots: usize,
}

type Words = Vec<(&'static str, Word)>;

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

/// Collective operations: name, whether it has a root, and whether a member (first) must enter before another leaves (second).
type Collective = (&'static str, bool, fn(usize, usize, usize) -> bool);
const COLLECTIVES: [Collective; 10] = [
    ("MPI_Barrier", false, |_, _, _| true),
    ("MPI_Bcast", true, |from, _, root| from == root),
    ("MPI_Scatter", true, |from, _, root| from == root),
    ("MPI_Gather", true, |_, to, root| to == root),
    ("MPI_Reduce", true, |_, to, root| to == root),
    ("MPI_Allgather", false, |_, _, _| true),
    ("MPI_Alltoall", false, |_, _, _| true),
    ("MPI_Allreduce", false, |_, _, _| true),
    ("MPI_Scan", false, |from, to, _| from < to),
    ("MPI_Exscan", false, |from, to, _| from < to),
];

impl LittleMpi {
    /// Of so many ranks: the world, each alone, all backwards, the first and the last, and evens beside odds.
    pub(crate) fn new(ranks: usize) -> Self {
        let mut program = Program::new(&(0..ranks).map(|r| r / 2).collect::<Vec<_>>());
        let all: Vec<usize> = (0..ranks).collect();
        let some = |rest| all.iter().copied().filter(|r| r % 2 == rest).collect::<Vec<_>>();
        let made: [Sides; 3] =
            [[all.iter().rev().copied().collect(), vec![]], [vec![0, ranks - 1], vec![]], [some(1), some(0)]];
        let mut comms = vec![[all.clone(), vec![]]];
        let mut handles = vec![vec![Some(0); ranks]];
        for sides in made {
            let of = |side: &[usize]| side.iter().map(|r| u32::try_from(*r).unwrap()).collect::<Vec<_>>();
            let mut handle = |rank: usize| {
                let mine = sides.iter().position(|s| s.contains(&rank))?;
                Some(program.comm(rank, &of(&sides[mine]), &of(&sides[1 - mine])))
            };
            handles.push(all.iter().map(|r| handle(*r)).collect());
            comms.push(sides);
        }
        Self {
            program,
            comms,
            handles,
            now: (0..ranks).map(|r| [500, 0, 900, 250][r % 4]).collect(),
            calls: vec![0; ranks],
            messages: Vec::new(),
            arrived: Vec::new(),
            waiting: Vec::new(),
            posted: Vec::new(),
            requests: vec![Vec::new(); ranks],
            templates: Vec::new(),
            operations: Vec::new(),
            slots: 0,
        }
    }

    fn call(&mut self, me: usize, name: &str, words: Words) -> Point {
        self.now[me] += 11;
        self.calls[me] += 1;
        let enter = self.now[me];
        self.program.call(me, name, &words, (enter, enter + 4))
    }

    /// Those that ranks in calls of one rank refer to.
    fn peers(&self, comm: usize, me: usize) -> Option<&[usize]> {
        let mine = self.comms[comm].iter().position(|side| side.contains(&me))?;
        Some(if self.comms[comm][1].is_empty() { &self.comms[comm][0] } else { &self.comms[comm][1 - mine] })
    }

    fn position(&self, comm: usize, me: usize, of: usize) -> i64 {
        int(self.peers(comm, me).unwrap().iter().position(|r| *r == of).unwrap())
    }

    fn fits(posted: &Posted, m: &Message) -> bool {
        (posted.comm, posted.me) == (m.comm, m.to)
            && posted.source.is_none_or(|s| s == m.from)
            && posted.tag.is_none_or(|t| t == m.tag)
    }

    /// A message goes to the first receive that waits for such a one, or waits itself.
    fn arrive(&mut self, mut m: Message) -> usize {
        let id = self.messages.len();
        match self.waiting.iter().position(|p| Self::fits(&self.posted[*p], &m)) {
            Some(first) => {
                let posted = self.waiting.remove(first);
                self.posted[posted].message = Some(id);
                m.posted = Some(self.posted[posted].at);
            }
            None => self.arrived.push(id),
        }
        self.messages.push(m);
        id
    }

    /// A receive takes the first message that it is for, or waits.
    fn post(&mut self, mut posted: Posted) -> usize {
        let id = self.posted.len();
        match self.arrived.iter().position(|m| Self::fits(&posted, &self.messages[*m])) {
            Some(first) => {
                let m = self.arrived.remove(first);
                posted.message = Some(m);
                self.messages[m].posted = Some(posted.at);
            }
            None => self.waiting.push(id),
        }
        self.posted.push(posted);
        id
    }

    fn new_request(&mut self, me: usize, request: Request) -> i64 {
        let number = self.program.take_request(me);
        self.requests[me].push((number, request));
        number
    }

    /// Where the next call of a rank is entered.
    fn next(&self, me: usize) -> Point {
        (me, 2 * self.calls[me])
    }

    pub(crate) fn send(&mut self, me: usize, comm: usize, to: usize, tag: i64, how: usize) {
        let Some(&peer) = self.peers(comm, me).and_then(|p| p.get(to % p.len())) else { return };
        let sent = self.next(me);
        let sync = how % 3 == 2;
        let message = Message { comm, from: me, to: peer, tag, sent, posted: None, sync };
        let mut words: Words = vec![("count", 1.into()), ("tag", tag.into())];
        words.push(("dest", self.position(comm, me, peer).into()));
        words.push(("comm", self.handles[comm][me].unwrap().into()));
        if how.is_multiple_of(2) {
            let id = self.arrive(message);
            words.push(("request", self.new_request(me, Request::Send(id)).into()));
            self.call(me, if sync { "MPI_Issend" } else { "MPI_Isend" }, words);
        } else {
            // It waits for no receive: there must be one already.
            let posted =
                self.waiting.iter().map(|p| &self.posted[*p]).find(|p| Self::fits(p, &message)).map(|p| p.at);
            let sync = sync && posted.is_some();
            self.arrive(Message { sync, ..message });
            let at = self.call(me, if sync { "MPI_Ssend" } else { "MPI_Send" }, words);
            if let Some(posted) = posted.filter(|_| sync) {
                self.program.edge(posted, exit(at));
            }
        }
    }

    /// Receives, by `how` a message that is there, or any that will come; `wild` makes source and tag wildcards.
    pub(crate) fn receive(
        &mut self,
        me: usize,
        comm: usize,
        from: usize,
        tag: i64,
        (how, wild): (usize, usize),
    ) {
        let Some(&peer) = self.peers(comm, me).and_then(|p| p.get(from % p.len())) else { return };
        let (source, named) = ((wild & 1 == 0).then_some(peer), (wild & 2 == 0).then_some(tag));
        let posted = Posted { comm, me, source, tag: named, at: self.next(me), message: None };
        let position = self.position(comm, me, peer);
        let mut words: Words = vec![("count", 1.into()), ("comm", self.handles[comm][me].unwrap().into())];
        words.push(("source", source.map_or(ANY_SOURCE, |_| position).into()));
        words.push(("tag", named.unwrap_or(ANY_TAG).into()));
        if how % 4 == 0 {
            let id = self.post(posted);
            words.push(("request", self.new_request(me, Request::Receive(id)).into()));
            self.call(me, "MPI_Irecv", words);
            return;
        }
        let Some(&m) = self.arrived.iter().find(|m| Self::fits(&posted, &self.messages[**m])) else { return };
        let m = &self.messages[m];
        let resolved = |named: bool, word: i64| if named { NONE } else { word };
        words.push(("rsource", resolved(source.is_some(), self.position(comm, me, m.from)).into()));
        words.push(("rtag", resolved(named.is_some(), m.tag).into()));
        let sent = m.sent;
        match how % 4 {
            1 => drop(self.call(me, "MPI_Probe", words)),
            2 => {
                self.post(posted);
                let number = self.program.take_request(me);
                words.push(("request", number.into()));
                self.call(me, "MPI_Mprobe", words);
                let at = self.call(me, "MPI_Mrecv", vec![("count", 1.into()), ("request", number.into())]);
                self.program.give_request(me, number);
                self.program.edge(sent, exit(at));
            }
            _ => {
                self.post(posted);
                let at = self.call(me, "MPI_Recv", words);
                self.program.edge(sent, exit(at));
            }
        }
    }

    pub(crate) fn persistent(&mut self, me: usize, comm: usize, other: usize, tag: i64, sends: bool) {
        let Some(other) = self.peers(comm, me).map(|p| other % p.len()) else { return };
        self.templates.push(Template(comm, other, tag, sends));
        let number = self.new_request(me, Request::Persistent(self.templates.len() - 1, None));
        let peer = if sends { "dest" } else { "source" };
        let words = vec![("count", 1.into()), ("tag", tag.into()), (peer, int(other).into())];
        let more = vec![("comm", self.handles[comm][me].unwrap().into()), ("request", number.into())];
        self.call(me, if sends { "MPI_Send_init" } else { "MPI_Recv_init" }, [words, more].concat());
    }

    /// Starts a persistent request that is not running.
    pub(crate) fn start(&mut self, me: usize, which: usize) {
        let idle = |r: &&mut (i64, Request)| matches!(r.1, Request::Persistent(_, None));
        let mut all: Vec<_> = self.requests[me].iter_mut().filter(idle).map(|r| *r).collect();
        let n = all.len();
        let Some((number, Request::Persistent(template, _))) = all.get_mut(which % n.max(1)).copied() else {
            return;
        };
        let Template(comm, other, tag, sends) = self.templates[template];
        let (peer, at) = (self.peers(comm, me).unwrap()[other], self.next(me));
        let id = if sends {
            self.arrive(Message { comm, from: me, to: peer, tag, sent: at, posted: None, sync: false })
        } else {
            self.post(Posted { comm, me, source: Some(peer), tag: Some(tag), at, message: None })
        };
        let request = self.requests[me].iter_mut().find(|r| r.0 == number).unwrap();
        request.1 = Request::Persistent(template, Some((sends, id)));
        self.call(me, "MPI_Start", vec![("request", number.into())]);
    }

    /// All members of a communicator call a collective operation, those that `started` has a bit for only begin it.
    pub(crate) fn collective(&mut self, comm: usize, which: usize, root: usize, started: usize) {
        let sides = self.comms[comm].clone();
        let (name, rooted, waits) =
            COLLECTIVES[if sides[1].is_empty() { which % COLLECTIVES.len() } else { 0 }];
        let root = root % sides[0].len();
        let (id, inter) = (self.operations.len(), !sides[1].is_empty());
        let members: Vec<usize> = sides.concat();
        self.operations.push(Operation {
            waits,
            root,
            enters: Vec::new(),
            leaves: vec![None; members.len()],
        });
        for (i, &me) in members.iter().enumerate() {
            let mut words: Words = vec![("comm", self.handles[comm][me].unwrap().into())];
            for slot in ["count", "sendcount", "recvcount"] {
                words.push((slot, 1.into()));
            }
            words.extend(rooted.then(|| ("root", int(root).into())));
            let at = self.next(me);
            self.operations[id].enters.push(at);
            // Whether a call starts only is the same for all.
            if started % 2 == 1 && !inter {
                words.push(("request", self.new_request(me, Request::Part(id, i)).into()));
                self.call(me, &format!("MPI_I{}", name.trim_start_matches("MPI_").to_lowercase()), words);
            } else {
                self.call(me, name, words);
                self.operations[id].leaves[i] = Some(exit(at));
            }
        }
        self.slots += members.len() + if rooted { 1 } else { members.len() };
        if inter {
            // Nobody waits for those of his own side.
            let first = sides[0].len();
            self.operations[id].root = first;
            self.operations[id].waits = |from, to, first| (from < first) != (to < first);
        }
    }

    /// Whether a request can complete, and what its status says: source, tag.
    fn completes(&self, me: usize, request: Request) -> Option<(i64, i64)> {
        match request {
            Request::Send(m) => {
                (!self.messages[m].sync || self.messages[m].posted.is_some()).then_some((NONE, NONE))
            }
            Request::Receive(p) => {
                let m = &self.messages[self.posted[p].message?];
                Some((self.position(m.comm, me, m.from), m.tag))
            }
            // All have entered.
            Request::Part(..) => Some((NONE, NONE)),
            Request::Persistent(_, Some((true, m))) => self.completes(me, Request::Send(m)),
            Request::Persistent(_, Some((false, p))) => self.completes(me, Request::Receive(p)),
            Request::Persistent(_, None) => None,
        }
    }

    /// What a request leads to when it completes at a point.
    fn complete(&mut self, request: Request, at: Point) {
        match request {
            Request::Send(m) => {
                let m = &self.messages[m];
                if let Some(posted) = m.posted.filter(|_| m.sync) {
                    self.program.edge(posted, at);
                }
            }
            Request::Receive(p) => {
                let m = self.posted[p].message.unwrap();
                self.program.edge(self.messages[m].sent, at);
            }
            Request::Part(id, member) => self.operations[id].leaves[member] = Some(at),
            Request::Persistent(_, running) => match running.unwrap() {
                (true, m) => self.complete(Request::Send(m), at),
                (false, p) => self.complete(Request::Receive(p), at),
            },
        }
    }

    /// Completes those that can be of a rank's requests whose bits are set in `which`, the last ones first if `turned`.
    pub(crate) fn wait(&mut self, me: usize, which: usize, turned: bool) {
        let chosen = |(i, r): (usize, &(i64, Request))| {
            let status = self.completes(me, r.1)?;
            (which >> (i % 8) & 1 == 1).then_some((*r, status))
        };
        let mut done: Vec<_> = self.requests[me].iter().enumerate().filter_map(chosen).collect();
        if turned {
            done.reverse();
        }
        if done.is_empty() {
            return;
        }
        let list = |of: &dyn Fn(&Done) -> i64| Word::from(done.iter().map(of).collect::<Vec<_>>());
        let bytes = |d: &Done| if d.1.0 == NONE { NONE } else { 4 };
        let words: Words = vec![
            ("n", int(done.len()).into()),
            ("requests", list(&|d| d.0.0)),
            ("completed", (0..int(done.len())).collect::<Vec<_>>().into()),
            ("source", list(&|d| d.1.0)),
            ("tag", list(&|d| d.1.1)),
            ("bytes", list(&bytes)),
        ];
        let at = exit(self.call(me, "MPI_Waitall", words));
        for ((number, request), _) in done {
            self.complete(request, at);
            match request {
                Request::Persistent(template, _) => {
                    let it = self.requests[me].iter_mut().find(|r| r.0 == number).unwrap();
                    it.1 = Request::Persistent(template, None);
                }
                _ => {
                    self.requests[me].retain(|r| r.0 != number);
                    self.program.give_request(me, number);
                }
            }
        }
    }

    /// Lets all that is under way come to its end; the program, with the edges that its recording must give,
    /// and the number of slots.
    pub(crate) fn finish(mut self) -> (Program, usize) {
        while let Some(&p) = self.waiting.first() {
            let posted = &self.posted[p];
            let (comm, me, tag) = (posted.comm, posted.me, posted.tag.unwrap_or(1));
            let from = posted.source.unwrap_or(self.peers(comm, me).unwrap()[0]);
            let to = self.position(comm, from, me);
            self.send(from, comm, usize::try_from(to).unwrap(), tag, 1);
        }
        while let Some(&m) = self.arrived.first() {
            let m = &self.messages[m];
            let (me, comm, tag) = (m.to, m.comm, m.tag);
            let from = usize::try_from(self.position(comm, me, m.from)).unwrap();
            self.receive(me, comm, from, tag, (3, 0));
        }
        for me in 0..self.now.len() {
            self.wait(me, usize::MAX, false);
        }
        for o in &self.operations {
            for (from, enter) in o.enters.iter().enumerate() {
                let leaves =
                    o.leaves.iter().enumerate().filter(|(to, _)| *to != from && (o.waits)(from, *to, o.root));
                leaves.for_each(|(_, leave)| self.program.edge(*enter, leave.unwrap()));
            }
        }
        (self.program, self.slots)
    }
}
