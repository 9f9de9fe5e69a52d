//! The communicator that only logs.

use st_model::num::narrow;
use std::cell::{RefCell, RefMut};
use std::panic::Location;
use std::rc::Rc;

use st_model::ranks::RankSeq;
use st_model::values::{NULL, UNDEFINED};

use super::clock::Cost;
use super::log::{Log, Message, WORLD, arriving, world_rank};
use crate::{Arrival, Communicator, Envelope, Kind, Op, Part, Receive};

/// `MPI_THREAD_MULTIPLE`.
const MULTIPLE: i64 = 3;

/// A communicator on paper.
#[derive(Debug)]
pub(super) struct Paper {
    log: Rc<RefCell<Option<Log>>>,
    index: i64,
    /// Members, as ranks in the world.
    members: RankSeq,
    /// Rank in this communicator.
    me: i64,
}

impl Paper {
    /// The world of a rank.
    pub(super) fn world(log: &Rc<RefCell<Option<Log>>>, ranks: u32, me: u32) -> Self {
        Self { log: Rc::clone(log), index: WORLD, members: RankSeq::first(ranks), me: me.into() }
    }

    #[expect(clippy::expect_used, reason = "the log is taken when the kernel has ended")]
    fn log(&self) -> RefMut<'_, Log> {
        RefMut::map(self.log.borrow_mut(), |log| log.as_mut().expect("a kernel ends before its log"))
    }

    fn len(&self) -> i64 {
        narrow(self.members.len())
    }

    /// Count, type, peer, tag, communicator: the words that all transfers of a part have in common.
    fn transfer(&self, log: &mut Log, part: Part, peer: i32, tag: i32) -> [i64; 5] {
        [part.count.into(), log.kind(part.kind), peer.into(), tag.into(), self.index]
    }

    /// Logs a collective operation in which each rank has `bytes` bytes.
    fn collective(
        &self,
        log: &mut Log,
        name: &'static str,
        at: &'static Location<'static>,
        words: &[i64],
        part: Part,
    ) {
        let cost = Cost::Collective { ranks: self.len(), bytes: bytes(part) };
        log.call(name, at, words, cost);
    }

    fn is(&self, root: i32) -> bool {
        self.me == i64::from(root)
    }
}

/// A list slot: length and elements.
fn list(words: &mut Vec<i64>, elements: impl ExactSizeIterator<Item = i64>) {
    words.push(narrow(elements.len()));
    words.extend(elements);
}

fn counts(words: &mut Vec<i64>, counts: &[i32]) {
    list(words, counts.iter().map(|&c| c.into()));
}

fn bytes(part: Part) -> i64 {
    i64::from(part.count) * i64::from(part.kind.bytes())
}

fn envelope(arrival: Arrival) -> Envelope {
    Envelope { source: arrival.source, tag: arrival.tag }
}

impl Communicator for Paper {
    type Request = i64;
    type Window = i64;

    fn buffer(&self, kind: Kind, count: i32) -> Part {
        let mut log = self.log();
        log.buffers += 1;
        Part { buffer: log.buffers - 1, kind, start: 0, count }
    }
    fn fill(&self, _part: Part, _seed: u64) {}
    fn digest(&self, _part: Part) -> u64 {
        0
    }
    fn compute(&self, seconds: f64) {
        self.log().clock().compute(seconds);
    }
    fn expect_wait(&self, seconds: f64) {
        self.log().clock().expect_wait(seconds);
    }
    fn enter(&self, caller: &'static Location<'static>) {
        self.log().enter(caller);
    }
    fn leave(&self) {
        self.log().leave();
    }

    fn init(&self) {
        self.log().call("MPI_Init", Location::caller(), &[], Cost::Launch);
    }
    fn init_thread(&self) {
        self.log().call("MPI_Init_thread", Location::caller(), &[MULTIPLE, MULTIPLE], Cost::Launch);
    }
    fn query_thread(&self) {
        self.log().call("MPI_Query_thread", Location::caller(), &[MULTIPLE], Cost::Local);
    }
    fn threads<T: Send>(&self, n: i32, body: impl Fn(&Self, i32, &dyn Fn()) -> T + Sync) -> Vec<T> {
        let run = |thread: i32| {
            self.log().run_thread(narrow(thread));
            let own = Self { log: Rc::clone(&self.log), members: self.members.clone(), ..*self };
            let out = body(&own, thread, &|| {});
            self.log().run_thread(0);
            out
        };
        let all = (0..n).map(run).collect();
        self.log().join_threads();
        all
    }
    fn finalize(&self) {
        self.log().call("MPI_Finalize", Location::caller(), &[], Cost::Launch);
    }
    fn wtime(&self) -> f64 {
        let mut log = self.log();
        log.call("MPI_Wtime", Location::caller(), &[1], Cost::Local);
        log.clock().seconds()
    }
    fn rank(&self) -> i32 {
        self.log().call("MPI_Comm_rank", Location::caller(), &[self.index, self.me], Cost::Local);
        narrow(self.me)
    }
    fn size(&self) -> i32 {
        self.log().call("MPI_Comm_size", Location::caller(), &[self.index, self.len()], Cost::Local);
        narrow(self.len())
    }
    fn split(&self, color: Option<i32>, key: i32, forecast: &RankSeq) -> Option<Self> {
        let at = Location::caller();
        let mut log = self.log();
        let cost = Cost::Collective { ranks: self.len(), bytes: 8 };
        let Some(color) = color else {
            log.call("MPI_Comm_split", at, &[self.index, UNDEFINED, key.into(), NULL], cost);
            return None;
        };
        let (index, members) = log.split(at, self.index, &self.members, forecast);
        log.call("MPI_Comm_split", at, &[self.index, color.into(), key.into(), index], cost);
        let me = members.position(log.rank).map_or(-1, narrow);
        debug_assert!(me >= 0, "the forecast members include the caller");
        Some(Self { log: Rc::clone(&self.log), index, members, me })
    }
    fn free(self) {
        let mut log = self.log();
        let cost = Cost::Collective { ranks: self.len(), bytes: 0 };
        log.call("MPI_Comm_free", Location::caller(), &[self.index], cost);
        log.free_comm(self.index);
    }

    fn send(&self, from: Part, dest: i32, tag: i32) {
        let mut log = self.log();
        let words = self.transfer(&mut log, from, dest, tag);
        let cost = Cost::Message { peer: world_rank(&self.members, dest), bytes: bytes(from) };
        log.call("MPI_Send", Location::caller(), &words, cost);
    }
    fn isend(&self, from: Part, dest: i32, tag: i32) -> i64 {
        let mut log = self.log();
        let [count, kind, dest, tag, comm] = self.transfer(&mut log, from, dest, tag);
        let request = log.start(None);
        log.call("MPI_Isend", Location::caller(), &[count, kind, dest, tag, comm, request], Cost::Local);
        request
    }
    fn recv(&self, receive: Receive) -> Envelope {
        let mut log = self.log();
        let message = arriving(receive, &self.members);
        let mut words = self.transfer(&mut log, receive.into, receive.source, receive.tag).to_vec();
        words.extend(message.status(receive.source, receive.tag));
        log.call("MPI_Recv", Location::caller(), &words, message.cost());
        envelope(receive.forecast)
    }
    fn irecv(&self, receive: Receive) -> i64 {
        let mut log = self.log();
        let message = arriving(receive, &self.members);
        let [count, kind, source, tag, comm] =
            self.transfer(&mut log, receive.into, receive.source, receive.tag);
        let request = log.start(Some(message));
        log.call("MPI_Irecv", Location::caller(), &[count, kind, source, tag, comm, request], Cost::Local);
        request
    }
    fn sendrecv(&self, from: Part, dest: i32, tag: i32, receive: Receive) -> Envelope {
        let mut log = self.log();
        let message = arriving(receive, &self.members);
        let mut words = self.transfer(&mut log, from, dest, tag)[..4].to_vec();
        words.extend(self.transfer(&mut log, receive.into, receive.source, receive.tag));
        words.extend(message.status(receive.source, receive.tag));
        log.call("MPI_Sendrecv", Location::caller(), &words, message.cost());
        envelope(receive.forecast)
    }
    fn probe(&self, source: i32, tag: i32, forecast: Arrival) -> Envelope {
        let from = world_rank(&self.members, forecast.source);
        // A probe sees bytes, not elements.
        let message = Message::new(forecast, Kind::Byte, from);
        let mut words = vec![source.into(), tag.into(), self.index];
        words.extend(message.status(source, tag));
        self.log().call("MPI_Probe", Location::caller(), &words, message.cost());
        envelope(forecast)
    }
    fn wait(&self, request: &mut i64) {
        let mut log = self.log();
        let mut words = vec![1, *request];
        let cost = log.complete(std::slice::from_mut(request), &[0], &mut words);
        log.call("MPI_Wait", Location::caller(), &words, cost);
    }
    fn waitall(&self, requests: &mut [i64]) {
        let all: Vec<usize> = (0..requests.len()).collect();
        let words = completion(&mut self.log(), requests, &all);
        self.log().call("MPI_Waitall", Location::caller(), &words.0, words.1);
    }
    fn waitsome(&self, requests: &mut [i64], forecast: &[usize]) -> Vec<usize> {
        let words = completion(&mut self.log(), requests, forecast);
        self.log().call("MPI_Waitsome", Location::caller(), &words.0, words.1);
        forecast.to_vec()
    }

    fn waitany(&self, requests: &mut [i64], forecast: usize) -> Option<usize> {
        let active = requests.iter().any(|r| *r != NULL);
        let words = completion(&mut self.log(), requests, &[forecast]);
        self.log().call("MPI_Waitany", Location::caller(), &words.0, words.1);
        active.then_some(forecast)
    }
    fn test(&self, request: &mut i64, forecast: u32) -> bool {
        let mut log = self.log();
        let mut words = vec![1, *request, i64::from(forecast == 0)];
        let positions: &[usize] = if forecast == 0 { &[0] } else { &[] };
        log.complete(std::slice::from_mut(request), positions, &mut words);
        words.push(i64::from(forecast.max(1)));
        log.call("MPI_Test", Location::caller(), &words, Cost::Local);
        forecast == 0
    }

    fn win_create(&self, part: Part) -> i64 {
        let mut log = self.log();
        let window = log.window(Location::caller(), self.index, &self.members);
        let cost = Cost::Collective { ranks: self.len(), bytes: 8 };
        let words = [bytes(part), part.kind.bytes().into(), NULL, self.index, window];
        log.call("MPI_Win_create", Location::caller(), &words, cost);
        window
    }
    fn win_fence(&self, window: &i64) {
        let cost = Cost::Collective { ranks: self.len(), bytes: 0 };
        self.log().call("MPI_Win_fence", Location::caller(), &[0, *window], cost);
    }
    fn put(&self, window: &i64, from: Part, target: i32, at: i32) {
        let mut log = self.log();
        let words = one_sided(&mut log, from, target, at);
        let cost = Cost::Message { peer: world_rank(&self.members, target), bytes: bytes(from) };
        log.call("MPI_Put", Location::caller(), &[&words[..], &[*window]].concat(), cost);
    }
    fn get(&self, window: &i64, into: Part, target: i32, at: i32) {
        let mut log = self.log();
        let words = one_sided(&mut log, into, target, at);
        let cost = Cost::Message { peer: world_rank(&self.members, target), bytes: bytes(into) };
        log.call("MPI_Get", Location::caller(), &[&words[..], &[*window]].concat(), cost);
    }
    fn accumulate(&self, window: &i64, from: Part, target: i32, at: i32, op: Op) {
        let mut log = self.log();
        let words = one_sided(&mut log, from, target, at);
        let op = log.op(op);
        let cost = Cost::Message { peer: world_rank(&self.members, target), bytes: bytes(from) };
        log.call("MPI_Accumulate", Location::caller(), &[&words[..], &[op, *window]].concat(), cost);
    }
    fn win_free(&self, window: i64) {
        let mut log = self.log();
        let cost = Cost::Collective { ranks: self.len(), bytes: 0 };
        log.call("MPI_Win_free", Location::caller(), &[window], cost);
        log.free_window(window);
    }

    fn barrier(&self) {
        let cost = Cost::Collective { ranks: self.len(), bytes: 0 };
        self.log().call("MPI_Barrier", Location::caller(), &[self.index], cost);
    }
    fn bcast(&self, data: Part, root: i32) {
        let mut log = self.log();
        let words = [data.count.into(), log.kind(data.kind), root.into(), self.index];
        self.collective(&mut log, "MPI_Bcast", Location::caller(), &words, data);
    }
    fn reduce(&self, from: Part, _into: Part, op: Op, root: i32) {
        let mut log = self.log();
        let words = [0, from.count.into(), log.kind(from.kind), log.op(op), root.into(), self.index];
        self.collective(&mut log, "MPI_Reduce", Location::caller(), &words, from);
    }
    fn allreduce(&self, from: Part, _into: Part, op: Op) {
        let mut log = self.log();
        let words = [0, from.count.into(), log.kind(from.kind), log.op(op), self.index];
        self.collective(&mut log, "MPI_Allreduce", Location::caller(), &words, from);
    }
    fn gather(&self, from: Part, into: Part, root: i32) {
        let mut log = self.log();
        let kind = log.kind(from.kind);
        let (count, root_kind) =
            if self.is(root) { (from.count.into(), log.kind(into.kind)) } else { (0, NULL) };
        let words = [0, from.count.into(), kind, count, root_kind, root.into(), self.index];
        self.collective(&mut log, "MPI_Gather", Location::caller(), &words, from);
    }
    fn gatherv(&self, from: Part, into: Part, each: &[i32], root: i32) {
        let mut log = self.log();
        let mut words = vec![0, from.count.into(), log.kind(from.kind)];
        counts(&mut words, if self.is(root) { each } else { &[] });
        // No gaps: the displacements follow from the counts.
        list(&mut words, std::iter::empty());
        words.push(if self.is(root) { log.kind(into.kind) } else { NULL });
        words.extend([root.into(), self.index]);
        self.collective(&mut log, "MPI_Gatherv", Location::caller(), &words, from);
    }
    fn allgather(&self, from: Part, into: Part) {
        let mut log = self.log();
        let (kind, into) = (log.kind(from.kind), log.kind(into.kind));
        let words = [0, from.count.into(), kind, from.count.into(), into, self.index];
        self.collective(&mut log, "MPI_Allgather", Location::caller(), &words, from);
    }
    fn alltoallv(&self, from: Part, sends: &[i32], into: Part, receives: &[i32]) {
        let mut log = self.log();
        let mut words = vec![0];
        for (part, each) in [(from, sends), (into, receives)] {
            counts(&mut words, each);
            list(&mut words, std::iter::empty());
            words.push(log.kind(part.kind));
        }
        words.push(self.index);
        self.collective(&mut log, "MPI_Alltoallv", Location::caller(), &words, from);
    }
}

/// Count and type here, rank, displacement, count and type there.
fn one_sided(log: &mut Log, part: Part, target: i32, at: i32) -> [i64; 6] {
    let (count, kind) = (part.count.into(), log.kind(part.kind));
    [count, kind, target.into(), at.into(), count, kind]
}

/// Words and cost of a completion call that takes a list: number, requests, completed.
fn completion(log: &mut Log, requests: &mut [i64], positions: &[usize]) -> (Vec<i64>, Cost) {
    let n = narrow(requests.len());
    let mut words = vec![n, n];
    words.extend(&*requests);
    let cost = log.complete(requests, positions, &mut words);
    (words, cost)
}
