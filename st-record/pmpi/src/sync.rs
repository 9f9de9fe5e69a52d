//! Compares the ranks' clocks with that of rank 0, in `MPI_Init` and in `MPI_Finalize`.
//!
//! In a binomial tree over the nodes, then in one within each node, a parent exchanges a few messages with each child and
//! keeps the fastest exchange: the child read its clock in the middle of it, give or take half its duration (Cristian's
//! method; Becker et al. 2008, section 2). Offsets and errors add up along the tree.
//!
//! All of it happens on communicators of our own, made in `MPI_Init` by splitting (duplicating would run the program's
//! attribute callbacks); their errors return. Nothing is waited for longer than a time limit: a rank that is late has no
//! comparison, and what was posted for it is left behind.
//!
//! SAFETY, for the whole module: MPI is initialised and not finalised; buffers that operations may still use are never
//! freed; results go to variables.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::clock::Reader;
use crate::ffi::{Handle, MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Info, MPI_Request, constants as k};
use crate::generated::real;
use st_trace::columns::{Comparison, Offset};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Exchanges per child, of which the fastest counts; and more, if none was this fast (ns): then the ranks share
/// processors, and one of them slept.
const ROUNDS: usize = 10;
const FAST: i64 = 20_000;

/// Time for all comparisons at one place, ns: a thousandth of it is enough where every rank has its own processor.
const LIMIT: i64 = 1_000_000_000;

/// Time for one child, ns, after which one exchange must do.
const SLICE: i64 = 50_000_000;

/// Polls before another process may have the processor.
const SPINS: u32 = 1_000;

/// How long `MPI_Finalize` waits for ranks that are late, before the comparison, ns.
const PATIENCE: i64 = 2_000_000_000;

/// A rank's place in one of the two trees.
#[derive(Clone, Copy, Debug)]
struct Tree {
    comm: u64,
    rank: c_int,
    size: c_int,
}

#[derive(Debug, Default)]
struct Sync {
    world: Option<Tree>,
    leaders: Option<Tree>,
    node: Option<Tree>,
    found: Comparison,
    /// Comparisons so far: each has tags of its own.
    epoch: c_int,
}

/// Held for moments only, never while something is waited for.
static SYNC: Mutex<Option<Sync>> = Mutex::new(None);

fn sync() -> MutexGuard<'static, Option<Sync>> {
    SYNC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is sent: whether it is the result, and the result.
type Message = [i64; 4];

/// Whether clocks are compared. All ranks must come to the same answer, since they make communicators together.
fn wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    // In a job of several programs some may run without recorder; only the user knows better.
    let several = || set("OMPI_NUM_APP_CTX").is_some_and(|n| n != "1");
    let told = set("ST_SYNC");
    let all = match told.as_ref().and_then(|v| v.to_str()) {
        Some("0") => false,
        Some("all") => true,
        _ => !several(),
    };
    all && set("ST_OUTPUT").is_some()
}

/// Makes the communicators: called by all ranks when `MPI_Init` has returned.
pub(crate) fn split() {
    if !wanted() || sync().is_some() {
        return;
    }
    let world = MPI_Comm::from_raw(k::st_MPI_COMM_WORLD);
    let rank = unsafe {
        let mut rank = 0;
        real::MPI_Comm_rank(world, &raw mut rank);
        rank
    };
    let mut made = Sync::default();
    unsafe {
        let mut comm = MPI_Comm::from_raw(k::st_MPI_COMM_NULL);
        if real::MPI_Comm_split(world, 0, rank, &raw mut comm) == 0 {
            made.world = Tree::of(comm);
        }
        let Some(all) = made.world else { return };
        let all = MPI_Comm::from_raw(all.comm);
        let info = MPI_Info::from_raw(k::st_MPI_INFO_NULL);
        if real::MPI_Comm_split_type(all, k::st_MPI_COMM_TYPE_SHARED, rank, info, &raw mut comm) == 0 {
            made.node = Tree::of(comm);
        }
        let leads = made.node.is_some_and(|n| n.rank == 0);
        let colour = if leads { 0 } else { k::st_MPI_UNDEFINED };
        if real::MPI_Comm_split(all, colour, rank, &raw mut comm) == 0 {
            made.leaders = Tree::of(comm);
        }
    }
    *sync() = Some(made);
}

/// Compares the clocks, within the time limit.
pub(crate) fn compare(clock: Reader) {
    let Some(mut taken) = sync().take() else { return };
    taken.compare(clock);
    *sync() = Some(taken);
}

/// Compares the clocks once more, when all ranks have reached `MPI_Finalize`.
pub(crate) fn compare_last(clock: Reader) {
    let Some(mut taken) = sync().take() else { return };
    if taken.world.is_some_and(|w| w.all_here(clock)) {
        taken.compare(clock);
    }
    *sync() = Some(taken);
}

/// What was found.
pub(crate) fn take() -> Comparison {
    // A process that is ended by a signal handler may hold the lock itself.
    SYNC.try_lock().ok().and_then(|mut s| s.take()).map(|s| s.found).unwrap_or_default()
}

impl Sync {
    fn compare(&mut self, clock: Reader) {
        let Some(world) = self.world else { return };
        let until = clock.now() + LIMIT;
        self.epoch += 1;
        let mut own = (world.rank == 0).then(|| Offset { local: clock.now(), offset: 0, error: 0 });
        for (tree, far) in [(self.leaders, true), (self.node, false)] {
            let Some(tree) = tree else { continue };
            let exchange = Exchange { tree, clock, until, tag: self.epoch, far };
            let mut fastest = i64::MAX;
            own = exchange.run(own, &mut fastest);
            let known = if far { &mut self.found.far } else { &mut self.found.near };
            if fastest != i64::MAX && (*known == 0 || fastest / 2 < *known) {
                *known = (fastest / 2).max(1);
            }
        }
        self.found.points.extend(own);
    }
}

impl Tree {
    /// The tree over a communicator, whose errors return from here on.
    fn of(comm: MPI_Comm) -> Option<Self> {
        if comm.raw() == k::st_MPI_COMM_NULL {
            return None;
        }
        let (mut rank, mut size) = (0, 0);
        unsafe {
            real::MPI_Comm_set_errhandler(comm, MPI_Errhandler::from_raw(k::st_MPI_ERRORS_RETURN));
            real::MPI_Comm_rank(comm, &raw mut rank);
            real::MPI_Comm_size(comm, &raw mut size);
        }
        Some(Self { comm: comm.raw(), rank, size })
    }

    /// Waits for all ranks to come here, but not for ever.
    fn all_here(self, clock: Reader) -> bool {
        let mut request = MPI_Request::from_raw(k::st_MPI_REQUEST_NULL);
        let begun = unsafe { real::MPI_Ibarrier(MPI_Comm::from_raw(self.comm), &raw mut request) };
        begun == 0 && done(&mut request, clock, clock.now() + PATIENCE)
    }
}

/// One comparison in one tree.
struct Exchange {
    tree: Tree,
    clock: Reader,
    until: i64,
    tag: c_int,
    /// Between nodes.
    far: bool,
}

impl Exchange {
    /// Takes the rank's comparison from its parent, unless it has one, and gives its children theirs.
    fn run(&self, own: Option<Offset>, fastest: &mut i64) -> Option<Offset> {
        let Tree { rank, size, .. } = self.tree;
        let own = if rank > 0 { self.follow(rank ^ highest_bit(rank)) } else { own };
        let mut bit = if rank > 0 { highest_bit(rank) << 1 } else { 1 };
        while rank | bit < size && bit > 0 {
            if !self.lead(rank | bit, own, fastest) {
                // The time is up: the other children find out by themselves.
                break;
            }
            bit <<= 1;
        }
        own
    }

    /// The parent's side: false if the time is up.
    fn lead(&self, child: c_int, own: Option<Offset>, fastest: &mut i64) -> bool {
        let mut best: Option<(i64, i64, i64)> = None;
        let begun = self.clock.now();
        for round in 0.. {
            let sent = self.clock.now();
            let fast = best.is_some_and(|(took, ..)| took < FAST);
            if best.is_some() && (sent - begun > SLICE || (round >= ROUNDS && fast)) {
                break;
            }
            if !self.send(child, [0; 4]) {
                return false;
            }
            let Some(answer) = self.receive(child) else { return false };
            let took = self.clock.now() - sent;
            if best.is_none_or(|(b, ..)| took < b) {
                best = Some((took, sent, answer[1]));
            }
        }
        let (Some((took, sent, theirs)), Some(own)) = (best, own) else {
            return self.send(child, [2, 0, 0, 0]);
        };
        *fastest = took.min(*fastest);
        let measured = sent + took / 2 - theirs;
        // Ranks on one node read one clock, unless the exchange proves that they do not.
        let same = !self.far && measured.abs() <= took / 2;
        let offset = own.offset + if same { 0 } else { measured };
        self.send(child, [1, theirs, offset, own.error + (took + 1) / 2])
    }

    /// The child's side.
    fn follow(&self, parent: c_int) -> Option<Offset> {
        loop {
            match self.receive(parent)? {
                [0, ..] => {
                    if !self.send(parent, [0, self.clock.now(), 0, 0]) {
                        return None;
                    }
                }
                [1, local, offset, error] => return Some(Offset { local, offset, error }),
                _ => return None,
            }
        }
    }

    fn send(&self, to: c_int, message: Message) -> bool {
        let buffer = Box::into_raw(Box::new(message));
        let mut request = MPI_Request::from_raw(k::st_MPI_REQUEST_NULL);
        let comm = MPI_Comm::from_raw(self.tree.comm);
        let begun =
            unsafe { real::MPI_Isend(buffer.cast(), bytes(), byte(), to, self.tag, comm, &raw mut request) };
        let sent = begun == 0 && done(&mut request, self.clock, self.until);
        if sent {
            drop(unsafe { Box::from_raw(buffer) });
        }
        sent
    }

    fn receive(&self, from: c_int) -> Option<Message> {
        let buffer = Box::into_raw(Box::new([0i64; 4]));
        let mut request = MPI_Request::from_raw(k::st_MPI_REQUEST_NULL);
        let comm = MPI_Comm::from_raw(self.tree.comm);
        let begun = unsafe {
            real::MPI_Irecv(buffer.cast(), bytes(), byte(), from, self.tag, comm, &raw mut request)
        };
        if begun == 0 && done(&mut request, self.clock, self.until) {
            return Some(*unsafe { Box::from_raw(buffer) });
        }
        if begun == 0 && request.raw() != k::st_MPI_REQUEST_NULL {
            unsafe {
                real::MPI_Cancel(&raw mut request);
                real::MPI_Request_free(&raw mut request);
            }
        }
        None
    }
}

/// Whether an operation completes in time.
fn done(request: &mut MPI_Request, clock: Reader, until: i64) -> bool {
    let mut polls = 0;
    loop {
        let mut flag = 0;
        let mut status = unsafe { std::mem::zeroed() };
        if unsafe { real::MPI_Test(request, &raw mut flag, &raw mut status) } != 0 {
            return false;
        }
        if flag != 0 {
            return true;
        }
        if clock.now() > until {
            return false;
        }
        // The other rank may need this processor.
        polls += 1;
        if polls % SPINS == 0 {
            unsafe { libc::sched_yield() };
        }
    }
}

fn bytes() -> c_int {
    c_int::try_from(size_of::<Message>()).unwrap_or(0)
}

fn byte() -> MPI_Datatype {
    MPI_Datatype::from_raw(k::st_MPI_BYTE)
}

fn highest_bit(n: c_int) -> c_int {
    1 << (31 - n.leading_zeros())
}
