//! Compares the ranks' clocks with that of rank 0, in `MPI_Init`, in `MPI_Finalize` and, if an interval is set, in between.
//!
//! In a binomial tree over the nodes, then in one within each node, a parent exchanges a few messages with each child and
//! keeps the fastest exchange: the child read its clock in the middle of it, give or take half its duration (Cristian's
//! method; Becker et al. 2008, section 2). Offsets and errors add up along the tree.
//!
//! All of it happens on communicators of our own, made in `MPI_Init`; their errors return. The first is made of the group
//! of all ranks, with messages only: duplicating would run the program's attribute callbacks, and any collective operation
//! on `MPI_COMM_WORLD` would move the tags that later ones get. Open MPI's (4.1.4) non-blocking operations, which also make
//! communicators, count their tags down from -27, through -50 and -51, which `MPI_Dist_graph_create` uses: what comes
//! 24th or 25th on a communicator may take its messages, and wait for ever. A program must not be moved there by us.
//!
//! Nothing is waited for longer than a time limit: a rank that is late has no comparison, and what was posted for it is
//! left behind.
//!
//! In between, it is done when a collective operation has ended that no rank can leave before all have entered: barriers
//! and operations that bring something from all to all, on communicators of all ranks. A rank then waits for nobody who
//! is not on the way out of the same operation. All ranks come to the same decision without asking: they count these
//! operations, and rank 0 passes down the trees, with each comparison, the number of the next operation at which they
//! meet. The counts agree: the collective operations on a communicator have one order for all of its ranks, and operations
//! of this kind on several communicators of all ranks have one order too as long as one thread calls them, since two ranks
//! that took them in different orders would wait for each other for ever. Where several threads may call MPI at once, only
//! those on `MPI_COMM_WORLD` count. Should counts differ all the same (an operation that failed on some ranks, a rank
//! whose recording has stopped), the time limit ends the wait, and ranks that have missed each other once compare no more.
//!
//! Where they meet like this the ranks also begin interim reductions ([`crate::merge`]), at an interval of its own.
//!
//! SAFETY, for the whole module: MPI is initialised and not finalised; buffers that operations may still use are never
//! freed; results go to variables.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

mod exchange;
mod pace;
mod tree;

use crate::clock::{Reader, processor_time};
use crate::constants as k;
use crate::ffi::{Handle, Handles};
use crate::message::warn;
use crate::muster;
use crate::real;
use crate::settings::{Reductions, interval};
use exchange::{Exchange, Turn};
pub(crate) use exchange::{byte, completes, naps};
use pace::{OFF, Pace};
use st_model::columns::{Comparison, Offset};
use st_model::num::narrow;
use std::ffi::{OsStr, OsString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use tree::Tree;

/// Time for all comparisons at one place, ns: a thousandth of it is enough where every rank has its own processor.
const LIMIT: i64 = 1_000_000_000;

/// Time for one child, ns, after which one exchange must do: at the ends of the program, and within it.
const SLICE: i64 = 50_000_000;
const SHORT_SLICE: i64 = 5_000_000;

/// How long `MPI_Finalize` waits for ranks that are late, before the comparison, ns.
const PATIENCE: i64 = 2_000_000_000;

/// Operations that pass at most until the ranks look whether an interim reduction is due. Looking takes about as long
/// as one of them; where they become rare, such as after a program's beginning, this many come late.
const REDUCES_AT_MOST: i64 = 1_000;

#[derive(Debug, Default)]
struct Sync {
    world: Option<Tree>,
    leaders: Option<Tree>,
    node: Option<Tree>,
    found: Comparison,
    /// The run's identity, the same on all ranks.
    run: Option<u128>,
    /// What all ranks can do.
    ranks: Able,
    /// How long ranks wait for each other between the ends of the program, ns.
    limit: i64,
    /// Rank 0's alone: when clocks are compared and ranks reduced, and how often they have been reduced.
    comparing: Pace,
    reducing: Pace,
    reductions: i64,
}

/// What a rank can do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Able {
    /// It has a clock, and comes to the comparison in `MPI_Init`.
    pub(crate) compares: bool,
    /// It is recorded, and comes to whatever follows.
    pub(crate) records: bool,
}

/// What ranks do that have met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// Time that has gone by for it, and of that the thread's own processor time, ns.
    pub(crate) took: i64,
    pub(crate) own: i64,
    /// Number of the interim reduction that all make now, from 1.
    pub(crate) reduction: Option<i64>,
}

/// What rank 0 tells the others.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// Clocks are compared now.
    compares: bool,
    next: i64,
    /// As in [`Turn`].
    reduction: i64,
}

/// Operations so far that no rank can leave before all have entered.
static PASSED: AtomicI64 = AtomicI64::new(0);
/// After which of them the ranks meet; [`OFF`]: never.
static NEXT: AtomicI64 = AtomicI64::new(OFF);
/// Several threads may call MPI at once.
static MULTIPLE: AtomicBool = AtomicBool::new(false);

/// Tags: of the comparison in `MPI_Init`, of that in `MPI_Finalize`, and the first of those in between. What a rank that
/// came too late has left behind must not be taken for something else; MPI promises tags up to 32,767.
const FIRST: c_int = 1;
const LAST: c_int = 2;
const BETWEEN: c_int = 16;
const TAGS: i64 = 16_384;

/// Held for moments only, never while something is waited for.
static SYNC: Mutex<Option<Sync>> = Mutex::new(None);

fn sync() -> MutexGuard<'static, Option<Sync>> {
    SYNC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A variable that has a value.
fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|v| !v.is_empty())
}

/// Whether clocks are compared, by `ST_SYNC`, and if that says nothing, by whether the job is one of several programs: of these some may
/// run without recorder. Who starts the launcher has looked at all of them. Nothing if what is said is not known.
fn wanted(told: Option<&OsStr>, several: bool) -> Option<bool> {
    match told.map(OsStr::as_bytes) {
        None => Some(!several),
        Some(b"0") => Some(false),
        Some(b"1" | b"all") => Some(true),
        _ => None,
    }
}

/// Whether this rank makes communicators with the others, by its environment; and what that says, if it is not known.
fn makes_communicators() -> (bool, Option<OsString>) {
    let (told, several) = (set("ST_SYNC"), set("OMPI_NUM_APP_CTX").is_some_and(|n| n != "1"));
    match wanted(told.as_deref(), several) {
        _ if set("ST_OUTPUT").is_none() => (false, None),
        Some(is_wanted) => (is_wanted, None),
        None => (!several, told),
    }
}

/// Called before the library's own `MPI_Init`: this rank makes communicators with the others if they are recorded, too.
pub(crate) fn before() {
    if makes_communicators().0 {
        muster::sign();
    }
}

/// Makes the communicators: called by all ranks when `MPI_Init` has returned. All must come to the same answer, since they make them
/// together.
pub(crate) fn split() {
    if sync().is_some() {
        return;
    }
    let (makes, unknown) = makes_communicators();
    let world = Handle::from_raw(k::MPI_COMM_WORLD());
    let (mut rank, mut size) = (0, 0);
    unsafe {
        real::MPI_Comm_rank(world, &raw mut rank);
        real::MPI_Comm_size(world, &raw mut size);
    }
    if let (Some(told), 0) = (unknown, rank) {
        warn(&format!("ST_SYNC={}: not 0, 1 or all; as if it were not set", told.display()));
    }
    if !makes || !muster::is_full(narrow(size)) {
        return;
    }
    let mut made = Sync::default();
    unsafe {
        let mut provided = 0;
        let asked = real::MPI_Query_thread(&raw mut provided);
        MULTIPLE.store(asked != 0 || provided == k::MPI_THREAD_MULTIPLE(), Ordering::Relaxed);
        let mut comm = Handle::from_raw(k::MPI_COMM_NULL());
        let mut group = Handle::from_raw(k::MPI_GROUP_NULL());
        real::MPI_Comm_group(world, Handles::of(&mut group));
        if real::MPI_Comm_create_group(world, group, FIRST, Handles::of(&mut comm)) == 0 {
            made.world = Tree::of(comm);
        }
        real::MPI_Group_free(Handles::of(&mut group));
        let Some(all) = made.world else { return };
        made.run = all.told(if rank == 0 { crate::run::drawn() } else { None });
        let all = Handle::from_raw(all.comm);
        let info = Handle::from_raw(k::MPI_INFO_NULL());
        if real::MPI_Comm_split_type(all, k::MPI_COMM_TYPE_SHARED(), rank, info, Handles::of(&mut comm)) == 0
        {
            made.node = Tree::of(comm);
        }
        let leads = made.node.is_some_and(|n| n.rank == 0);
        let colour = if leads { 0 } else { k::MPI_UNDEFINED() };
        if real::MPI_Comm_split(all, colour, rank, Handles::of(&mut comm)) == 0 {
            made.leaders = Tree::of(comm);
        }
    }
    *sync() = Some(made);
}

/// The run's identity that all ranks have agreed on, if they could.
pub(crate) fn run() -> Option<u128> {
    sync().as_ref().and_then(|made| made.run)
}

/// Finds out what all ranks can do: called by all that have made communicators, when they know themselves. Nobody waits later
/// for a rank that will not come.
pub(crate) fn agree(able: Able) {
    let Some(world) = ranks() else { return };
    let all = world.all_able(able);
    if let Some(made) = sync().as_mut() {
        made.ranks = all;
    }
}

/// Whether all ranks are recorded, as far as they knew in `MPI_Init`.
pub(crate) fn all_record() -> bool {
    sync().as_ref().is_some_and(|made| made.ranks.records)
}

/// Compares the clocks, within the time limit.
pub(crate) fn compare(clock: Reader, reductions: Option<Reductions>) {
    let Some(mut taken) = sync().take_if(|made| made.ranks.compares) else { return };
    let interval = interval().ok().flatten();
    let (every, now) = (reductions.map(|r| r.every), clock.now());
    taken.comparing = Pace::new(interval, i64::MAX, now);
    taken.reducing = Pace::new(every, REDUCES_AT_MOST, now);
    // For one that is late for a reduction ranks wait longer; not as long as in it, for each level of the trees may wait.
    taken.limit = reductions.map_or(LIMIT, |r| LIMIT.max(r.patience / 4));
    let next = if interval.or(every).is_some() && taken.ranks.records { 1 } else { OFF };
    taken.meet(clock, FIRST, SLICE, Order { compares: true, next, reduction: 0 });
    *sync() = Some(taken);
}

/// Compares the clocks once more, when all ranks have reached `MPI_Finalize`.
pub(crate) fn compare_last(clock: Reader) {
    NEXT.store(OFF, Ordering::Relaxed);
    let Some(mut taken) = sync().take_if(|made| made.ranks.records) else { return };
    if taken.world.is_some_and(|w| w.all_here(clock)) {
        taken.meet(clock, LAST, SLICE, Order { compares: true, next: OFF, reduction: 0 });
    }
    *sync() = Some(taken);
}

/// A collective operation on a communicator has ended that its ranks cannot leave before all have entered; `counts` finds
/// out whether it is one that counts here, `clock` hands out the clock. Returns what the ranks do that have met now.
pub(crate) fn passed(
    result: i64,
    counts: impl FnOnce(bool) -> bool,
    clock: impl FnOnce() -> Option<Reader>,
) -> Option<Met> {
    if NEXT.load(Ordering::Relaxed) == OFF {
        return None;
    }
    if result != 0 {
        // Nobody knows how far the others have come.
        NEXT.store(OFF, Ordering::Relaxed);
        return None;
    }
    if !counts(MULTIPLE.load(Ordering::Relaxed)) {
        return None;
    }
    let count = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if count != NEXT.load(Ordering::Relaxed) {
        return None;
    }
    // Whatever happens now: not a second time, unless it is agreed.
    NEXT.store(OFF, Ordering::Relaxed);
    let clock = clock()?;
    let mut taken = sync().take()?;
    let (begun, since) = (clock.now(), processor_time());
    let tag = BETWEEN + narrow::<c_int>(count % TAGS);
    let reduction = taken.between(clock, count, tag);
    *sync() = Some(taken);
    Some(Met { took: clock.now() - begun, own: processor_time() - since, reduction })
}

/// An interim reduction has ended.
pub(crate) fn reduced(clock: Reader) {
    if let Some(made) = sync().as_mut() {
        made.reducing.done(clock.now());
    }
}

/// On rank 0, whether interim reductions should have taken place and have not, and how many have.
pub(crate) fn lacks_reductions(clock: Reader) -> Option<i64> {
    let made = sync();
    let made = made.as_ref().filter(|made| made.world.is_some_and(|w| w.rank == 0))?;
    made.reducing.is_overdue(clock.now()).then_some(made.reductions)
}

/// All ranks, on a communicator of our own, if there is one.
pub(crate) fn ranks() -> Option<Tree> {
    sync().as_ref().and_then(|made| made.world)
}

/// What was found.
pub(crate) fn take() -> Comparison {
    // A process that is ended by a signal handler may hold the lock itself.
    SYNC.try_lock().ok().and_then(|mut s| s.take()).map(|s| s.found).unwrap_or_default()
}

impl Sync {
    /// Meets the other ranks after operation `count`; rank 0 has said so, and says now what for. Returns the number of the
    /// interim reduction, if it is for one.
    fn between(&mut self, clock: Reader, count: i64, tag: c_int) -> Option<i64> {
        let mut order = Order { compares: false, next: OFF, reduction: 0 };
        if self.world.is_some_and(|w| w.rank == 0) {
            let now = clock.now();
            let (compares, compare) = self.comparing.after(count, now);
            let (reduces, reduce) = self.reducing.after(count, now);
            self.reductions += i64::from(reduces);
            let reduction = if reduces { self.reductions } else { 0 };
            order = Order { compares, next: compare.min(reduce), reduction };
        }
        self.meet(clock, tag, SHORT_SLICE, order).filter(|number| *number > 0)
    }

    /// Meets the other ranks, who learn what rank 0 orders. Returns the number of the interim reduction in it, if that
    /// was heard.
    fn meet(&mut self, clock: Reader, tag: c_int, slice: i64, order: Order) -> Option<i64> {
        let world = self.world?;
        let until = clock.now() + if tag < BETWEEN { LIMIT } else { self.limit };
        let Order { compares, next, reduction } = order;
        let own = compares.then(|| Offset { local: clock.now(), offset: 0, error: 0 });
        let mut turn = (world.rank == 0).then_some(Turn { own, next, reduction });
        let mut reached = true;
        for (tree, far) in [(self.leaders, true), (self.node, false)] {
            let Some(tree) = tree else { continue };
            let exchange = Exchange { tree, clock, until, slice, tag, far };
            let mut fastest = i64::MAX;
            let (passed_on, all) = exchange.run(turn, &mut fastest);
            turn = passed_on;
            reached &= all;
            let known = if far { &mut self.found.far } else { &mut self.found.near };
            if fastest != i64::MAX && (*known == 0 || fastest / 2 < *known) {
                *known = (fastest / 2).max(1);
            }
        }
        let turn = turn?;
        self.found.points.extend(turn.own);
        NEXT.store(if reached { turn.next } else { OFF }, Ordering::Relaxed);
        Some(turn.reduction)
    }
}

impl Tree {
    /// Waits for all ranks to come here, but not for ever.
    fn all_here(self, clock: Reader) -> bool {
        let mut request = Handle::from_raw(k::MPI_REQUEST_NULL());
        let begun = unsafe { real::MPI_Ibarrier(Handle::from_raw(self.comm), Handles::of(&mut request)) };
        begun == 0 && completes(&mut request, clock, clock.now() + PATIENCE, naps())
    }

    /// What rank 0 has drawn, on all ranks.
    fn told(self, drawn: Option<u128>) -> Option<u128> {
        let mut bytes = drawn.unwrap_or(0).to_le_bytes();
        let n = narrow(bytes.len());
        let comm = Handle::from_raw(self.comm);
        let told = unsafe { real::MPI_Bcast(bytes.as_mut_ptr().cast(), n, byte(), 0, comm) };
        Some(u128::from_le_bytes(bytes)).filter(|id| told == 0 && *id != 0)
    }

    /// What all ranks can do, if this one can do that.
    fn all_able(self, able: Able) -> Able {
        let own = u8::from(able.compares) | u8::from(able.records) << 1;
        let (mut all, comm) = (0_u8, Handle::from_raw(self.comm));
        let and = Handle::from_raw(k::MPI_BAND());
        let (from, to) = ((&raw const own).cast_mut().cast(), (&raw mut all).cast());
        if unsafe { real::MPI_Allreduce(from, to, 1, byte(), and, comm) } != 0 {
            return Able::default();
        }
        Able { compares: all & 1 != 0, records: all & 2 != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_taken_for_anything() {
        let told = |text: &str, several| wanted(Some(text.as_ref()), several);
        assert_eq!([wanted(None, false), wanted(None, true)], [Some(true), Some(false)]);
        assert_eq!([told("1", false), told("1", true)], [Some(true); 2]);
        assert_eq!([told("0", false), told("all", true)], [Some(false), Some(true)]);
        assert_eq!([told("maybe", false), told("ALL", true), told("00", false)], [None; 3]);
    }
}
