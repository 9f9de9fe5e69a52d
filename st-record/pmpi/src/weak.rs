//! Weak references to functions that the program's MPI lacks. A module asks by them whether its library has a function (mpi4py's wheels
//! do, for large counts), or whether there is an MPI at all, and finds ours, since the recorder knows all functions of the standard and
//! is before all others. So where nobody else has them the references are made what they would be without us: null. That is done when
//! the process begins and when modules have been loaded since: who loads a module looks something up in it before it is called.
//!
//! SAFETY, for the whole module: what the dynamic linker has loaded is laid out as the ELF specification says, and stays loaded while that
//! linker goes through its list. What is written are places of undefined weak references of MPI's names that hold an address within
//! this library; their module is held from then on.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::dl::next;
use crate::loaded_files::containing;
use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_NULL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_STRTAB, DT_SYMTAB,
    PT_DYNAMIC, PT_GNU_RELRO, PT_LOAD, R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, SHN_UNDEF,
    STB_WEAK,
};
use st_model::num::saturate;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice::from_raw_parts;
use std::sync::Mutex;

/// What was found when this was done last. Never waited for: who holds it may wait for the dynamic linker, whose lock the other one
/// may hold.
static LAST: Mutex<Last> = Mutex::new(Last { loaded: 0, unloaded: 0, silent: BTreeSet::new() });

/// What was found last.
struct Last {
    /// How many files had been loaded, and how many of these no longer are.
    loaded: u64,
    unloaded: u64,
    /// Where the dynamic sections are of those that have no such reference: a program that loads a hundred files one after another would
    /// have all symbols of all of them looked at each time.
    silent: BTreeSet<usize>,
}

/// The process begins.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        withdraw();
    }
    begin
};

/// A place that holds the address of what has a name.
pub(crate) struct Place {
    pub(crate) at: *mut usize,
    pub(crate) name: &'static CStr,
    /// What the linker makes read-only of the module when it is done with it.
    pub(crate) closed: Range<usize>,
}

/// What is looked for, and has been found.
struct Search {
    /// Where this library is; empty until that is known.
    ours: Range<usize>,
    /// Number of files that have been loaded, and when it was done last.
    loaded: u64,
    before: u64,
    /// Number of those that have been unloaded again.
    unloaded: u64,
    /// As in [`Last`]: those that were known, and those that were not.
    silent: BTreeSet<usize>,
    new: Reserved<usize>,
    found: Reserved<Place>,
}

/// Items for which there was room before: nothing may be allocated while the dynamic linker goes through its list, for it holds a lock then,
/// and a program's allocator may wait for that while it holds one that we would wait for.
pub(crate) struct Reserved<T> {
    items: Vec<T>,
    /// There were more than there is room for.
    lacks: bool,
}

impl<T> Reserved<T> {
    pub(crate) fn new(room: usize) -> Self {
        Self { items: Vec::with_capacity(room), lacks: false }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.lacks |= self.items.len() == self.items.capacity();
        if !self.lacks {
            self.items.push(item);
        }
    }

    /// All of them, if there was room.
    pub(crate) fn complete(self) -> Option<Vec<T>> {
        (!self.lacks).then_some(self.items)
    }
}

/// Withdraws what nobody else has from all modules, if any has been loaded since the last time.
pub(crate) fn withdraw() {
    withdraw_in(ROOM);
}

/// Room for files and places at first: of the files of most programs.
pub(crate) const ROOM: usize = 64;

fn withdraw_in(mut room: usize) {
    let Ok(mut last) = LAST.try_lock() else { return };
    let (before, silent) = (last.loaded, BTreeSet::new());
    let (new, found) = (Reserved::new(0), Reserved::new(0));
    let mut search = Search { ours: 0..0, loaded: 0, before, unloaded: 0, silent, new, found };
    unsafe {
        libc::dl_iterate_phdr(Some(find_us), (&raw mut search).cast());
        if search.loaded == last.loaded {
            return;
        }
        // Where a file was that is gone there may be another one.
        if search.unloaded == last.unloaded {
            search.silent = std::mem::take(&mut last.silent);
        }
        loop {
            (search.new, search.found) = (Reserved::new(room), Reserved::new(room));
            libc::dl_iterate_phdr(Some(module), (&raw mut search).cast());
            if !search.new.lacks && !search.found.lacks {
                break;
            }
            room *= 2;
        }
    }
    search.silent.extend(search.new.items);
    // Not while the dynamic linker goes through its list.
    for Place { at, name, closed } in search.found.items {
        // This holds the module.
        let Some(its) = containing(at.cast_const().cast()) else { continue };
        if next(name).is_null() && its.symbol_in_scope(name).is_null() {
            clear(at, &closed);
        }
    }
    *last = Last { loaded: search.loaded, unloaded: search.unloaded, silent: search.silent };
}

fn clear(at: *mut usize, closed: &Range<usize>) {
    let write = || unsafe { at.write(0) };
    match is_writable(at.addr()) {
        Some(true) => write(),
        // The linker is done with it.
        Some(false) if closed.contains(&at.addr()) => {
            let protect = |to| unsafe {
                libc::mprotect(with_exposed_provenance_mut(closed.start), closed.len(), to) == 0
            };
            if protect(libc::PROT_READ | libc::PROT_WRITE) {
                write();
                protect(libc::PROT_READ);
            }
        }
        _ => {}
    }
}

/// Whether memory may be written; `None` if that cannot be told.
fn is_writable(address: usize) -> Option<bool> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let number = |digits| usize::from_str_radix(digits, 16).ok();
        (number(from)?..number(to)?).contains(&address).then(|| rest.as_bytes().get(1) == Some(&b'w'))
    })
}

/// Whether a name may be one of MPI's functions.
pub(crate) fn is_of_mpi(name: &CStr) -> bool {
    let name = name.to_bytes();
    let name = name.strip_prefix(b"P").unwrap_or(name);
    name.starts_with(b"MPI_") || name.starts_with(b"MPIX_")
}

/// A file that is loaded: where it begins, and its program headers.
pub(crate) struct File<'a> {
    base: usize,
    headers: &'a [libc::Elf64_Phdr],
}

impl<'a> File<'a> {
    pub(crate) unsafe fn new(info: &'a libc::dl_phdr_info) -> Self {
        let headers = unsafe { from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        Self { base: saturate(info.dlpi_addr), headers }
    }

    fn parts(&self, kind: u32) -> impl Iterator<Item = Range<usize>> {
        self.headers.iter().filter(move |h| h.p_type == kind).map(|h| {
            let from = self.base.wrapping_add(saturate(h.p_vaddr));
            from..from.wrapping_add(saturate(h.p_memsz))
        })
    }

    /// Where its dynamic section is.
    pub(crate) fn dynamic(&self) -> Option<usize> {
        self.parts(PT_DYNAMIC.0).next().map(|part| part.start)
    }

    /// As in [`Place`].
    pub(crate) fn closed(&self) -> Range<usize> {
        let page = saturate::<usize>(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        let whole = |part: Range<usize>| part.start / page * page..part.end / page * page;
        self.parts(PT_GNU_RELRO.0).next().map_or(0..0, whole)
    }

    /// What its dynamic section says.
    pub(crate) unsafe fn module(&self) -> Option<Module> {
        self.dynamic().map(|dynamic| unsafe { Module::new(self.base, dynamic) })
    }
}

/// Finds this library; ends the list at its first file if nothing has been loaded since the last time.
unsafe extern "C" fn find_us(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    (search.loaded, search.unloaded) = (info.dlpi_adds, info.dlpi_subs);
    let file = unsafe { File::new(info) };
    let here = (find_us as *const ()).addr();
    if file.parts(PT_LOAD.0).any(|part| part.contains(&here)) {
        let parts = || file.parts(PT_LOAD.0);
        let (first, last) = (parts().map(|p| p.start).min(), parts().map(|p| p.end).max());
        search.ours = first.unwrap_or(0)..last.unwrap_or(0);
    }
    c_int::from(search.loaded == search.before || !search.ours.is_empty())
}

/// Looks for such references in a file.
unsafe extern "C" fn module(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    let file = unsafe { File::new(info) };
    let Some(dynamic) = file.dynamic() else { return 0 };
    if search.silent.contains(&dynamic) {
        return 0;
    }
    let module = unsafe { Module::new(file.base, dynamic) };
    if module.asks() {
        module.places(&search.ours, &file.closed(), &mut search.found);
    } else {
        search.new.push(dynamic);
    }
    0
}

/// An entry of a module's dynamic section, as ELF has it.
#[repr(C)]
struct Entry {
    tag: i64,
    value: usize,
}

/// A relocation.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// What a module's dynamic section says.
pub(crate) struct Module {
    base: usize,
    entries: &'static [Entry],
}

impl Module {
    unsafe fn new(base: usize, dynamic: usize) -> Self {
        let first = with_exposed_provenance::<Entry>(dynamic);
        let n = (0..).take_while(|i| unsafe { (*first.wrapping_add(*i)).tag } != DT_NULL.0).count();
        Self { base, entries: unsafe { from_raw_parts(first, n) } }
    }

    fn value(&self, tag: i64) -> usize {
        self.entries.iter().find(|e| e.tag == tag).map_or(0, |e| e.value)
    }

    /// A table of the module's, if it has it; the linker has made most of these addresses what they are in memory.
    fn table(&self, tag: i64) -> Option<usize> {
        match self.value(tag) {
            0 => None,
            offset if offset < self.base => Some(self.base + offset),
            address => Some(address),
        }
    }

    fn symbol(&self, i: usize) -> Option<&'static libc::Elf64_Sym> {
        let first = with_exposed_provenance::<libc::Elf64_Sym>(self.table(DT_SYMTAB.0)?);
        Some(unsafe { &*first.wrapping_add(i) })
    }

    /// The name that a symbol stands for without defining it.
    fn undefined_name(&self, symbol: &libc::Elf64_Sym) -> Option<&'static CStr> {
        let text = self.table(DT_STRTAB.0)? + saturate::<usize>(symbol.st_name);
        let name = || unsafe { CStr::from_ptr(with_exposed_provenance::<c_char>(text)) };
        (symbol.st_shndx == SHN_UNDEF.0).then(name)
    }

    /// The name of MPI's that a symbol asks for.
    fn asked(&self, symbol: &libc::Elf64_Sym) -> Option<&'static CStr> {
        let is_weak = symbol.st_info >> 4 == STB_WEAK.0;
        self.undefined_name(symbol).filter(|name| is_weak && is_of_mpi(name))
    }

    /// How many symbols may be undefined: they are before those of the hash table.
    fn undefined(&self) -> usize {
        let second = |table: usize| unsafe { *with_exposed_provenance::<u32>(table + size_of::<u32>()) };
        let table = self.table(DT_GNU_HASH.0).or_else(|| self.table(DT_HASH.0));
        table.map_or(0, |table| saturate(second(table)))
    }

    fn asks(&self) -> bool {
        (1..self.undefined()).filter_map(|i| self.symbol(i)).any(|symbol| self.asked(symbol).is_some())
    }

    /// Adds the places of references that lead to us.
    fn places(&self, ours: &Range<usize>, closed: &Range<usize>, found: &mut Reserved<Place>) {
        self.references(|at, symbol| {
            if let Some(name) = self.asked(symbol).filter(|_| ours.contains(&unsafe { *at })) {
                found.push(Place { at, name, closed: closed.clone() });
            }
        });
    }

    /// Goes through the places of references to what has a name that one of these is, and is defined elsewhere.
    pub(crate) fn references_to(
        &self,
        names: impl Fn(&CStr) -> bool,
        mut each: impl FnMut(*mut usize, &'static CStr),
    ) {
        self.references(|at, symbol| {
            if let Some(name) = self.undefined_name(symbol).filter(|name| names(name)) {
                each(at, name);
            }
        });
    }

    /// Goes through the places that hold addresses of symbols.
    fn references(&self, mut each: impl FnMut(*mut usize, &libc::Elf64_Sym)) {
        for (table, length) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let Some(first) = self.table(table.0) else { continue };
            let n = self.value(length.0) / size_of::<Relocation>();
            for relocation in unsafe { from_raw_parts(with_exposed_provenance::<Relocation>(first), n) } {
                let (symbol, kind) = (relocation.info >> 32, relocation.info & 0xffff_ffff);
                let of_address = [R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT].map(|r| u64::from(r.0));
                if symbol == 0 || !of_address.contains(&kind) {
                    continue;
                }
                if let Some(symbol) = self.symbol(saturate(symbol)) {
                    each(with_exposed_provenance_mut(self.base.wrapping_add(relocation.offset)), symbol);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library of the C library's that nothing here is linked with.
    const OTHER: &CStr = c"libBrokenLocale.so.1";

    #[test]
    fn files_without_references_are_looked_at_once() {
        let silent = || LAST.lock().unwrap().silent.clone();
        withdraw();
        let before = silent();
        assert!(!before.is_empty());
        let opened = unsafe { libc::dlopen(OTHER.as_ptr(), libc::RTLD_NOW) };
        assert!(!opened.is_null());
        withdraw();
        let with = silent();
        assert!(with.len() == before.len() + 1 && with.is_superset(&before));
        // What is known of others that may be in its place is forgotten.
        assert_eq!(unsafe { libc::dlclose(opened) }, 0);
        LAST.lock().unwrap().loaded = 0;
        withdraw();
        assert_eq!(silent(), before);
        // Where there is not enough room at first, there is more the next time.
        *LAST.lock().unwrap() = Last { loaded: 0, unloaded: u64::MAX, silent: BTreeSet::new() };
        withdraw_in(1);
        assert_eq!(silent(), before);
    }

    #[test]
    fn what_has_no_room_is_left_out_and_nothing_is_allocated_for_it() {
        let mut list = Reserved::new(1);
        let (room, at) = (list.items.capacity(), list.items.as_ptr());
        (0..=room).for_each(|n| list.push(n));
        assert_eq!((list.items.len(), list.items.as_ptr(), list.lacks), (room, at, true));
    }
}
