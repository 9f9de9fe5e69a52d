//! The modules mapped into the process, as the dynamic loader lists them.

use crate::sites::{ModuleRecord, SiteInterner};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::fmt::Write as _;
use std::ops::Range;

/// A mapped executable or shared library.
#[derive(Debug)]
pub(crate) struct Module {
    /// First address of its segments, and the one after its last.
    start: u64,
    end: u64,
    /// What the loader added to the file's addresses.
    pub(crate) bias: u64,
    /// Mapped `PT_LOAD` segments.
    segments: Vec<Range<u64>>,
    /// `.eh_frame_hdr`, (start, end); absent in modules without call frame information.
    pub(crate) frame_header: Option<Range<u64>>,
    /// Whether this is the C library, in which the stacks of the program and its threads begin.
    pub(crate) is_libc: bool,
    /// Path and build-id.
    pub(crate) record: ModuleRecord,
    /// Its number among those that frames are interned with, once it has one: the path of each frame's module would be compared.
    number: Cell<Option<u32>>,
}

impl Module {
    /// Its number in the table, which is always the same one.
    pub(crate) fn number(&self, table: &mut SiteInterner) -> u32 {
        if let Some(number) = self.number.get() {
            return number;
        }
        let number = table.module(&self.record);
        self.number.set(Some(number));
        number
    }
    /// Whether an address lies in it.
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
    /// End of the segment that an address lies in.
    pub(crate) fn segment_end(&self, address: u64) -> Option<u64> {
        self.segments.iter().find(|segment| segment.contains(&address)).map(|segment| segment.end)
    }
}

/// The loader's counters of modules opened and closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Generation {
    /// Modules opened so far.
    pub(crate) opened: u64,
    /// Modules closed so far.
    pub(crate) closed: u64,
}

/// All modules at one moment.
#[derive(Debug, Default)]
pub(crate) struct ModuleMap {
    /// By start address; their address ranges do not overlap.
    modules: Vec<Module>,
    pub(crate) generation: Generation,
}

impl ModuleMap {
    /// Asks the loader for all modules.
    pub(crate) fn load() -> Self {
        let mut map = Self::default();
        // SAFETY: `collect` matches the callback's type and its argument is the map, alive during the call.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut map).cast()) };
        // A stable sort would put 4 KiB on the stack.
        map.modules.sort_unstable_by_key(|m| m.start);
        map
    }
    /// The module that an address lies in, with its index.
    pub(crate) fn find(&self, address: u64) -> Option<(usize, &Module)> {
        let i = self.modules.partition_point(|m| m.start <= address).checked_sub(1)?;
        let module = self.modules.get(i)?;
        (address < module.end).then_some((i, module))
    }
    /// Address range of the module that holds an address; empty if there is none.
    pub(crate) fn range_of(&self, address: u64) -> (u64, u64) {
        self.find(address).map_or((0, 0), |(_, m)| (m.start, m.end))
    }
}

/// The loader's counters now.
pub(crate) fn generation() -> Generation {
    let mut now = Generation::default();
    // SAFETY: `count` matches the callback's type and its argument is the counters, alive during the call.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut now).cast()) };
    now
}

/// Callback of `dl_iterate_phdr` that reads the counters and stops.
unsafe extern "C" fn count(info: *mut libc::dl_phdr_info, _: libc::size_t, out: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description; `out` is the `Generation` of `generation`.
    let (info, out) = unsafe { (&*info, &mut *out.cast::<Generation>()) };
    *out = Generation { opened: info.dlpi_adds, closed: info.dlpi_subs };
    1
}

/// Callback of `dl_iterate_phdr` that adds one module to the map.
unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: libc::size_t, out: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description; `out` is the `ModuleMap` of `load`.
    let (info, map) = unsafe { (&*info, &mut *out.cast::<ModuleMap>()) };
    map.generation = Generation { opened: info.dlpi_adds, closed: info.dlpi_subs };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's array of `dlpi_phnum` program headers stays as long as the module is mapped.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let range = |h: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(h.p_vaddr);
        start..start.saturating_add(h.p_memsz)
    };
    let segments: Vec<_> = headers.iter().filter(|h| h.p_type == libc::PT_LOAD).map(range).collect();
    let (Some(start), Some(end)) =
        (segments.iter().map(|s| s.start).min(), segments.iter().map(|s| s.end).max())
    else {
        return 0;
    };
    let mapped = |part: &Range<u64>| segments.iter().any(|s| s.start <= part.start && part.end <= s.end);
    let frame_header = headers.iter().find(|h| h.p_type == libc::PT_GNU_EH_FRAME).map(range).filter(mapped);
    let build_id = headers
        .iter()
        .filter(|h| h.p_type == libc::PT_NOTE)
        .filter(|h| mapped(&range(h)))
        // SAFETY: the note lies in a mapped, readable segment of the module.
        .find_map(|h| build_id(unsafe { bytes(range(h)) }, h.p_align))
        .unwrap_or_default();
    let path = path_of(info.dlpi_name);
    let is_libc = path.rsplit('/').next().is_some_and(|name| name.starts_with("libc.so"));
    let record = ModuleRecord { path, build_id };
    let (bias, number) = (info.dlpi_addr, Cell::new(None));
    map.modules.push(Module { start, end, bias, segments, frame_header, is_libc, record, number });
    0
}

/// Path of a module: the loader gives none for the program itself and may give a relative one for others.
fn path_of(name: *const libc::c_char) -> String {
    let name = if name.is_null() {
        String::new()
    } else {
        // SAFETY: the loader's names are nul-terminated strings.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    };
    if name.is_empty() {
        return std::fs::read_link("/proc/self/exe")
            .map_or_else(|_| "[program]".to_owned(), |p| p.to_string_lossy().into_owned());
    }
    if name.contains('/') && !name.starts_with('/') {
        return std::path::absolute(&name).map_or(name, |p| p.to_string_lossy().into_owned());
    }
    name
}

/// A mapped range as bytes.
///
/// # Safety
///
/// The range must be mapped and readable as long as the result is used.
pub(crate) unsafe fn bytes(range: Range<u64>) -> &'static [u8] {
    let (Ok(start), Ok(len)) = (usize::try_from(range.start), usize::try_from(range.end - range.start))
    else {
        return &[];
    };
    // SAFETY: the caller vouches for the range.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), len) }
}

/// Build-id in hexadecimal from the contents of a `PT_NOTE` segment.
///
/// Source: System V ABI, chapter 5, "Note Section"; `NT_GNU_BUILD_ID` is note 3 of owner "GNU".
fn build_id(mut notes: &[u8], align: u64) -> Option<String> {
    let align = if align == 8 { 8 } else { 4 };
    let word = |b: &[u8], at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    loop {
        let (name_len, desc_len, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let desc_at = (12 + name_len).next_multiple_of(align);
        let desc = notes.get(desc_at..desc_at + desc_len)?;
        if kind == 3 && notes.get(12..12 + name_len)? == b"GNU\0" {
            let mut hex = String::with_capacity(desc.len() * 2);
            for byte in desc {
                write!(hex, "{byte:02x}").ok()?;
            }
            return Some(hex);
        }
        notes = notes.get((desc_at + desc_len).next_multiple_of(align)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_module_of_its_own_code_and_of_the_c_library() {
        let map = ModuleMap::load();
        let own = generation as fn() -> Generation as *const () as u64;
        let (_, module) = map.find(own).expect("our code is in a module");
        assert_eq!(module.record.path, std::env::current_exe().unwrap().to_str().unwrap());
        assert!(module.frame_header.is_some());
        assert_eq!(map.modules.iter().filter(|m| m.is_libc).count(), 1);
        assert_eq!(map.range_of(8), (0, 0));
        assert_eq!(map.generation, generation());
    }

    #[test]
    fn reads_the_build_id_behind_another_note() {
        let mut notes = Vec::new();
        for (kind, desc) in [(1_u32, &[9_u8; 6][..]), (3, &[0x0a, 0xff, 0x10, 0x20])] {
            notes.extend(4_u32.to_le_bytes());
            notes.extend(u32::try_from(desc.len()).unwrap().to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(b"GNU\0");
            notes.extend(desc);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes, 4).as_deref(), Some("0aff1020"));
        assert_eq!(build_id(&notes[..20], 4), None);
    }
}
