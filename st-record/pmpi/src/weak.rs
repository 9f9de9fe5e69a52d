//! Weak references to functions that the program's MPI lacks. A module asks by them whether its library has a function (mpi4py's wheels
//! do, for large counts), and finds ours, since the recorder knows all functions of the standard and is before all others. So where the
//! library has none the references are made what they would be without us: null.
//!
//! SAFETY, for the whole module: what the dynamic linker has loaded is laid out as the ELF specification says, and stays loaded while it
//! is gone through. What is written are places in which that linker has put an address of ours, as this module will put none.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::library::find;
use object::elf::{
    DT_JMPREL, DT_NEEDED, DT_NULL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_STRTAB, DT_SYMTAB, PT_DYNAMIC,
    PT_GNU_RELRO, R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, SHN_UNDEF, STB_WEAK,
};
use st_model::num::saturate;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU64, Ordering};

/// What begins the names of libraries that a module with such references needs.
const NEEDED: &[u8] = b"libmpi";

/// How many files had been loaded when this was done last.
static LOADED: AtomicU64 = AtomicU64::new(0);

/// A place that holds an address of ours, and the function that it stands for.
struct Place {
    at: *mut usize,
    name: &'static CStr,
    /// What the linker has made read-only of the module when it was done with it.
    closed: Range<usize>,
}

/// What is looked for, and has been found.
struct Search {
    ours: Range<usize>,
    begun: bool,
    found: Vec<Place>,
}

/// Withdraws what the library lacks from all modules, if any has been loaded since the last time. `ours`: where our symbols are.
pub(crate) fn withdraw(ours: Range<usize>) {
    let mut search = Search { ours, begun: false, found: Vec::new() };
    unsafe { libc::dl_iterate_phdr(Some(module), (&raw mut search).cast()) };
    // Not while the dynamic linker goes through its list.
    for Place { at, name, closed } in search.found {
        if !find(name).is_null() {
            continue;
        }
        let is_closed = closed.contains(&at.addr());
        if is_closed && !protect(&closed, libc::PROT_READ | libc::PROT_WRITE) {
            continue;
        }
        unsafe { at.write(0) };
        if is_closed {
            protect(&closed, libc::PROT_READ);
        }
    }
}

fn protect(pages: &Range<usize>, to: c_int) -> bool {
    unsafe { libc::mprotect(with_exposed_provenance_mut(pages.start), pages.len(), to) == 0 }
}

/// Looks at a module; ends the list at its first if nothing has been loaded since the last time.
unsafe extern "C" fn module(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    let begun = std::mem::replace(&mut search.begun, true);
    if !begun && LOADED.swap(info.dlpi_adds, Ordering::Relaxed) == info.dlpi_adds {
        return 1;
    }
    let headers = unsafe { from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = saturate::<usize>(info.dlpi_addr);
    let header = |kind: u32| headers.iter().find(|h| h.p_type == kind);
    let Some(dynamic) = header(PT_DYNAMIC.0) else { return 0 };
    let module = unsafe { Module::new(base, base + saturate::<usize>(dynamic.p_vaddr)) };
    if module.needs_mpi() {
        let page = saturate::<usize>(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        let closed = header(PT_GNU_RELRO.0).map_or(0..0, |h| {
            let (from, length) = (base + saturate::<usize>(h.p_vaddr), saturate::<usize>(h.p_memsz));
            from / page * page..(from + length) / page * page
        });
        module.places(&search.ours, &closed, &mut search.found);
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
struct Module {
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

    /// A table of the module's; the linker has made most of these addresses what they are in memory.
    fn table(&self, tag: i64) -> usize {
        match self.value(tag) {
            0 => 0,
            offset if offset < self.base => self.base + offset,
            address => address,
        }
    }

    fn text(&self, offset: usize) -> &'static CStr {
        unsafe { CStr::from_ptr(with_exposed_provenance::<c_char>(self.table(DT_STRTAB.0) + offset)) }
    }

    fn needs_mpi(&self) -> bool {
        self.entries.iter().any(|e| e.tag == DT_NEEDED.0 && self.text(e.value).to_bytes().starts_with(NEEDED))
    }

    /// Adds the places of weak references that lead to us.
    fn places(&self, ours: &Range<usize>, closed: &Range<usize>, found: &mut Vec<Place>) {
        let symbols = with_exposed_provenance::<libc::Elf64_Sym>(self.table(DT_SYMTAB.0));
        for (table, length) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let (first, n) = (self.table(table.0), self.value(length.0) / size_of::<Relocation>());
            if first == 0 {
                continue;
            }
            for relocation in unsafe { from_raw_parts(with_exposed_provenance::<Relocation>(first), n) } {
                let (symbol, kind) = (relocation.info >> 32, relocation.info & 0xffff_ffff);
                let of_address = [R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT].map(|r| u64::from(r.0));
                if symbol == 0 || !of_address.contains(&kind) {
                    continue;
                }
                let symbol = unsafe { &*symbols.wrapping_add(saturate(symbol)) };
                let at = with_exposed_provenance_mut::<usize>(self.base + relocation.offset);
                let asks = symbol.st_info >> 4 == STB_WEAK.0 && symbol.st_shndx == SHN_UNDEF.0;
                if asks && ours.contains(&unsafe { *at }) {
                    let name = self.text(saturate(symbol.st_name));
                    found.push(Place { at, name, closed: closed.clone() });
                }
            }
        }
    }
}
