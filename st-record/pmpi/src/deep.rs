//! Modules that the program opens with `RTLD_DEEPBIND`: they are bound to what they were linked with, past all that is preloaded. When
//! the program next asks the dynamic linker for something, or calls MPI, what they refer to in its MPI is led to us, and so is what they
//! ask the dynamic linker for: Python's `ctypes`, opened like that, would look for an MPI past us, and find us. What their constructors
//! call is gone by then.
//!
//! SAFETY, for the whole module: what the dynamic linker has loaded is laid out as the ELF specification says. Places are read and
//! written only while that linker goes through its list, and so unloads nothing, and only of modules that it is done with.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::dl::{function, next};
use crate::library::{Mode, library, mode};
use crate::loaded_files::{base, containing};
use crate::weak::{File, Place, ROOM, Reserved, is_of_mpi};
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A module may have been opened like that.
static OPENED: AtomicBool = AtomicBool::new(false);

/// What was there before.
static BEFORE: Mutex<Before> = Mutex::new(Before { files: Vec::new(), thread: 0, ours: |_| None });

/// What was there when a module was about to be opened.
struct Before {
    /// Where the dynamic sections of files are.
    files: Vec<usize>,
    /// The thread that opens it.
    thread: libc::pthread_t,
    ours: Ours,
}

/// How often a thread looks whether another one is done with [`BEFORE`]. Not for ever: who holds it may wait for the dynamic linker, whose
/// lock the one that looks may hold.
const LOOKS: u32 = 1_000;

fn before() -> Option<MutexGuard<'static, Before>> {
    (0..LOOKS).find_map(|_| {
        let held = BEFORE.try_lock().ok();
        if held.is_none() {
            unsafe { libc::sched_yield() };
        }
        held
    })
}

/// What this library has by a name, with that name as it has it itself: what modules call it is gone with them. Allocates nothing.
type Ours = fn(&CStr) -> Option<(&'static CStr, *const c_void)>;

/// A module is about to be opened with the flag.
pub(crate) fn opening(ours: Ours) {
    if let Some(mut before) = before() {
        *before = Before { files: files().list, thread: unsafe { libc::pthread_self() }, ours };
        OPENED.store(true, Ordering::Relaxed);
    }
}

/// Leads to us what has been opened like that.
#[inline]
pub(crate) fn settle() {
    if OPENED.load(Ordering::Relaxed) {
        lead();
    }
}

/// Files that are loaded.
struct Files {
    /// Where their dynamic sections are.
    list: Vec<usize>,
    /// How many had been loaded that no longer are.
    unloaded: u64,
}

fn files() -> Files {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> c_int {
        let (info, all) = unsafe { (&*info, &mut *all.cast::<(Reserved<usize>, u64)>()) };
        let dynamic = unsafe { File::new(info) }.dynamic();
        dynamic.into_iter().for_each(|at| all.0.push(at));
        all.1 = info.dlpi_subs;
        0
    }
    let mut room = ROOM;
    loop {
        let mut all = (Reserved::new(room), 0);
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut all).cast()) };
        match all.0.complete() {
            Some(list) => return Files { list, unloaded: all.1 },
            None => room *= 2,
        }
    }
}

#[cold]
fn lead() {
    let Some(before) = before() else { return };
    let mut found = files();
    let all = loop {
        // Another thread may be about to bind what it has loaded. It holds the dynamic linker's lock until that is done, which is waited
        // for here: what was there before that, and still is, is bound.
        next(c"dlopen");
        let now = files();
        if now.list == found.list && now.unloaded == found.unloaded {
            break now;
        }
        found = now;
    };
    let new: Vec<usize> = all.list.into_iter().filter(|file| !before.files.contains(file)).collect();
    if !new.is_empty() || before.thread == unsafe { libc::pthread_self() } {
        OPENED.store(false, Ordering::Relaxed);
    }
    if new.is_empty() {
        return;
    }
    let mut search = Search {
        files: new,
        unloaded: all.unloaded,
        found: Reserved::new(0),
        ours: before.ours,
        changes: Vec::new(),
    };
    let mut room = ROOM;
    let places = loop {
        search.found = Reserved::new(room);
        unsafe { libc::dl_iterate_phdr(Some(find), (&raw mut search).cast()) };
        match std::mem::replace(&mut search.found, Reserved::new(0)).complete() {
            Some(places) => break places,
            None => room *= 2,
        }
    };
    search.changes = places.into_iter().filter_map(change).collect();
    unsafe { libc::dl_iterate_phdr(Some(write), (&raw mut search).cast()) };
}

/// What is looked for, has been found, and is to be changed.
struct Search {
    /// Where the dynamic sections are of the files that are looked at.
    files: Vec<usize>,
    /// As in [`Files`]: where one was that is gone there may be another one.
    unloaded: u64,
    found: Reserved<Reference>,
    ours: Ours,
    changes: Vec<Change>,
}

/// A place of a file that refers to a function that we have, too.
struct Reference {
    file: usize,
    place: Place,
    /// What it holds.
    now: usize,
    ours: *const c_void,
}

/// A place that is to lead to us.
struct Change {
    file: usize,
    at: *mut usize,
    closed: Range<usize>,
    from: usize,
    to: usize,
}

/// The functions of the dynamic linker that are led to us.
const OF_LINKER: [&CStr; 3] = [c"dlsym", c"dlopen", c"dlclose"];

/// Whether what has this name may be led to us.
fn is_led(name: &CStr) -> bool {
    is_of_mpi(name) || OF_LINKER.contains(&name)
}

/// Whether this is what our function of this name leads on to. What stands in front of it must come by it.
fn is_next(name: &CStr, theirs: *const c_void) -> bool {
    let next = next(name);
    if !is_of_mpi(name) {
        return theirs == next || theirs.addr() == function();
    }
    let holds = || library().is_some_and(|library| library.holds(theirs));
    (next.is_null() || next == theirs) && matches!(mode(), Mode::Record) && holds()
}

/// Finds what a file refers to.
unsafe extern "C" fn find(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_subs != search.unloaded {
        // Next time.
        OPENED.store(true, Ordering::Relaxed);
        return 1;
    }
    let file = unsafe { File::new(info) };
    let Some(dynamic) = file.dynamic().filter(|at| search.files.contains(at)) else { return 0 };
    let (closed, ours, found) = (file.closed(), search.ours, &mut search.found);
    if let Some(module) = unsafe { file.module() } {
        module.references_to(is_led, |at, name| {
            if let Some((name, ours)) = ours(name) {
                let place = Place { at, name, closed: closed.clone() };
                found.push(Reference { file: dynamic, place, now: unsafe { *at }, ours });
            }
        });
    }
    0
}

/// What becomes of a place that holds an address now: nothing unless it leads to what we lead on to, or will when it is first used.
fn change(reference: Reference) -> Option<Change> {
    let Reference { file, place: Place { at, name, closed }, now, ours } = reference;
    if now == 0 || now == ours.addr() {
        return None;
    }
    let mut theirs = with_exposed_provenance::<c_void>(now);
    if base(theirs) == base(at.cast_const().cast()) {
        // It is bound by its first call.
        let its = containing(at.cast_const().cast())?;
        theirs = its.symbol_in_scope(name);
        its.release();
    }
    is_next(name, theirs).then(|| Change { file, at, closed, from: now, to: ours.expose_provenance() })
}

/// Makes what is to be changed in a file.
unsafe extern "C" fn write(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_subs != search.unloaded {
        // Next time.
        OPENED.store(true, Ordering::Relaxed);
        return 1;
    }
    let Some(dynamic) = unsafe { File::new(info) }.dynamic() else { return 0 };
    for Change { at, closed, from, to, .. } in search.changes.iter().filter(|c| c.file == dynamic) {
        // Read-only since the module is bound.
        let protect = |mode| {
            let start = with_exposed_provenance_mut(closed.start);
            !closed.contains(&at.addr()) || unsafe { libc::mprotect(start, closed.len(), mode) == 0 }
        };
        if protect(libc::PROT_READ | libc::PROT_WRITE) {
            let place = unsafe { AtomicUsize::from_ptr(*at) };
            // Its first call may just have bound it: to what we would have led on to.
            let _ = place.compare_exchange(*from, *to, Ordering::Relaxed, Ordering::Relaxed);
            protect(libc::PROT_READ);
        }
    }
    0
}
