//! Calls that functions of the program's make while their thread is inside of another one: error handlers, operations, what copies and
//! deletes attributes, signal handlers. They are counted, not recorded: a trace has a thread's calls one after the other, each made when
//! the one before had returned. One within another would need times that overlap, which nothing downstream reads, and a replay, which has no
//! functions of the program's, would make it where the program did not.
//!
//! MPI libraries call their own public functions, too, which are no calls of the program's. Which it is the file tells from which the call
//! comes.

use crate::bindings::is_layer;
use crate::closed;
use crate::loaded_files::{base, place};
use crate::local::Local;
use crate::real::{self, UNKNOWN};
use foldhash::fast::FixedState;
use st_model::calls::{CallId, CallTable, FIRST_UNKNOWN};
use st_model::num::Exact as _;
use st_unwind::{Registers, Unwinder};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of the table, and those without a row; numbers of both have so many bits.
static COUNTS: [[AtomicU64; 1 << BITS]; 2] = [const { [const { AtomicU64::new(0) }; 1 << BITS] }; 2];
const BITS: u32 = 12;

/// What is known of stacks and of code that calls from inside of calls. Not the unwinder of the thread: the recorder may be in the state, and
/// ask the library for something that calls another of its functions.
struct Known {
    /// The thread whose stack it knows, and how often modules had been closed when it was used last.
    thread: usize,
    closed: u64,
    unwinder: Unwinder,
    /// By return address.
    callers: HashMap<usize, Caller, FixedState>,
    /// By where files begin.
    files: HashMap<usize, Caller, FixedState>,
}

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Caller {
    /// The MPI's, or that of a tool which stands before it.
    Library,
    /// A language's layer: who has called that it is.
    Layer,
    Program,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Does something with what is known, for the calling thread; nothing if a signal handler of the program's has interrupted the thread where
/// that would wait for itself.
fn with_known<R>(local: &Local, work: impl FnOnce(&mut Known) -> R) -> Option<R> {
    let thread = ptr::from_ref(local).addr();
    if local.in_known.get() || local.in_heap.get() {
        return None;
    }
    local.in_known.set(true);
    // For a handler of this thread: no later.
    compiler_fence(Ordering::SeqCst);
    let closed = closed::times();
    let mut last = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = match last.take() {
        Some(mut known) => {
            if known.closed != closed {
                known.unwinder.follow_loader();
                known.callers.clear();
                known.files.clear();
            }
            // To ask for a thread's stack may take longer than all that a call inside of another one does.
            if known.thread != thread {
                known.unwinder = known.unwinder.of_this_thread();
            }
            Known { thread, closed, ..known }
        }
        None => Known {
            thread,
            closed,
            unwinder: Unwinder::new(Arc::default()),
            callers: HashMap::default(),
            files: HashMap::default(),
        },
    };
    let done = work(&mut known);
    *last = Some(known);
    drop(last);
    compiler_fence(Ordering::SeqCst);
    local.in_known.set(false);
    Some(done)
}

/// Whether the wrapper that the thread was inside of is no longer on its stack.
///
/// # Safety
///
/// The function in which the registers were captured must not have returned.
pub(crate) unsafe fn has_left(local: &Local, registers: Registers) -> bool {
    // SAFETY: the caller's promise.
    let left = |known: &mut Known| unsafe { known.unwinder.has_left(registers, local.stack_pointer.get()) };
    with_known(local, left).unwrap_or(false)
}

/// Counts a call of this function if it is the program's.
///
/// # Safety
///
/// As [`has_left`].
pub(crate) unsafe fn count(local: &Local, function: u16, registers: Registers) {
    let asked = with_known(local, |known| {
        let Known { unwinder, callers, files, .. } = known;
        let mut whose = Caller::Library;
        let passed = |address: u64| {
            whose = caller(callers, files, address.to_usize());
            whose == Caller::Layer
        };
        // SAFETY: the caller's promise.
        let found = unsafe { unwinder.caller(registers, passed) };
        found.is_some() && whose == Caller::Program
    });
    // The recorder's own work calls nothing: what comes from within it is a signal handler's.
    if asked.unwrap_or(true) {
        let i = usize::from(function) & ((1 << BITS) - 1);
        COUNTS[usize::from(function >= FIRST_UNKNOWN)][i].fetch_add(1, Ordering::Relaxed);
    }
}

/// Whose the code is at an address.
fn caller(
    callers: &mut HashMap<usize, Caller, FixedState>,
    files: &mut HashMap<usize, Caller, FixedState>,
    address: usize,
) -> Caller {
    *callers.entry(address).or_insert_with(|| {
        // Code in no file is made while the program runs.
        let file = base(ptr::without_provenance(address));
        file.map_or(Caller::Program, |file| *files.entry(file).or_insert_with(|| owner(file, address)))
    })
}

/// Whose the file is that begins here, and that an address is in.
#[cold]
fn owner(file: usize, address: usize) -> Caller {
    if real::leads_to(file) {
        return Caller::Library;
    }
    let Some((path, _)) = place(ptr::without_provenance(address)) else { return Caller::Program };
    let path = path.to_string_lossy();
    if is_layer(&path) {
        return Caller::Layer;
    }
    // Open MPI's plugins, and what several of them share: it finds them by these names.
    let name = Path::new(&*path).file_name().unwrap_or_default().to_string_lossy();
    let is_plugin = ["mca_", "libmca_"].iter().any(|begin| name.starts_with(begin));
    if is_plugin { Caller::Library } else { Caller::Program }
}

/// How many such calls there were, by function.
pub(crate) fn counted() -> BTreeMap<&'static str, u64> {
    let table = CallTable::builtin();
    let name = |i: usize, j: usize| match i {
        0 => table.get(CallId(u16::try_from(j).ok()?)).map(|row| row.name.as_str()),
        _ => UNKNOWN.get(j).copied(),
    };
    let all = COUNTS.iter().enumerate().flat_map(|(i, counts)| {
        counts.iter().enumerate().map(move |(j, n)| (i, j, n.load(Ordering::Relaxed)))
    });
    all.filter(|(.., n)| *n > 0).filter_map(|(i, j, n)| Some((name(i, j)?, n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_tells_whose_a_call_is() {
        let code = the_file_tells_whose_a_call_is as fn() as *const ();
        let [mut callers, mut files] = [HashMap::default(), HashMap::default()];
        // A test is no MPI.
        assert_eq!(caller(&mut callers, &mut files, code.addr()), Caller::Program);
        assert_eq!(caller(&mut callers, &mut files, 1), Caller::Program);
        assert!(is_layer("/usr/lib/libmpi_mpifh.so.40") && is_layer("libmpichfort.so.12"));
        assert!(!is_layer("/usr/lib/libmpi.so.40") && !is_layer("/x/MPI.cpython-311-x86_64-linux-gnu.so"));
    }

    #[test]
    fn counts_are_told_by_name() {
        COUNTS[0][20].fetch_add(3, Ordering::Relaxed);
        COUNTS[1][0].fetch_add(1, Ordering::Relaxed);
        let told = counted();
        assert_eq!((told.len(), told.get("MPI_Send")), (2, Some(&3)), "{told:?}");
    }
}
