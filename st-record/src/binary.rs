//! What an executable file is: how it is linked, and which functions it calls.

use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache, elf};
use st_cli::Mpi;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a file is executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// By this dynamic loader.
    Dynamic(PathBuf),
    /// An ELF executable without a loader: nothing can be preloaded.
    Static,
    /// An ELF executable of another machine or word size than ours.
    Foreign,
    /// By the interpreter that its first line names.
    Script(String),
    /// None of these.
    Unknown,
}

/// What kind of executable a file is.
#[must_use]
pub fn kind(file: &Path) -> FileKind {
    // Whatever cannot be read or understood is left to the kernel to refuse.
    let Ok((begin, data)) = opened(file) else { return FileKind::Unknown };
    let data = &data;
    if let Some(rest) = begin.strip_prefix(b"#!") {
        let line = rest.split(|b| *b == b'\n').next().unwrap_or_default();
        return FileKind::Script(String::from_utf8_lossy(line).trim_matches([' ', '\t']).to_owned());
    }
    if !begin.starts_with(&elf::ELFMAG) {
        return FileKind::Unknown;
    }
    let loader = || {
        let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        if header.e_machine(endian) != elf::EM_X86_64 {
            return None;
        }
        let segments = header.program_headers(endian, data).ok()?;
        Some(segments.iter().find_map(|s| s.interpreter(endian, data).ok().flatten()).map(<[u8]>::to_vec))
    };
    match loader() {
        None => FileKind::Foreign,
        Some(None) => FileKind::Static,
        Some(Some(path)) => FileKind::Dynamic(PathBuf::from(String::from_utf8_lossy(&path).into_owned())),
    }
}

/// Bytes that the first line of a script has at most: the kernel looks at fewer.
const FIRST_LINE: u64 = 4096;

/// A file: its first bytes, and what is read of it piece by piece. A program may have hundreds of megabytes, and what is looked for
/// lies in a few places; each rank looks for it.
fn opened(file: &Path) -> io::Result<(Vec<u8>, ReadCache<File>)> {
    let mut file = File::open(file)?;
    let mut begin = Vec::new();
    (&mut file).take(FIRST_LINE).read_to_end(&mut begin)?;
    Ok((begin, ReadCache::new(file)))
}

/// A library that the loader would map: its name, and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    /// As a file that needs it names it.
    pub name: String,
    /// `None` if it is not found.
    pub path: Option<PathBuf>,
}

/// The libraries of a program or library, through all levels, as the loader itself lists them. Nothing of it runs.
#[must_use]
pub fn libraries(loader: &Path, file: &Path) -> Vec<Library> {
    let mut ask = Command::new(loader);
    if loader.to_string_lossy().contains("musl") {
        ask.arg("--list");
    } else {
        // As ldd does: --list ends at the first library that is missing.
        ask.env("LD_TRACE_LOADED_OBJECTS", "1");
    }
    let listed = ask.arg(file).env_remove("LD_PRELOAD").output();
    listed.map(|o| parse(&String::from_utf8_lossy(&o.stdout))).unwrap_or_default()
}

/// Reads `libmpi.so.40 => /usr/lib/libmpi.so.40 (0x…)`.
fn parse(listed: &str) -> Vec<Library> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let name = first.rsplit('/').next()?.to_owned();
        let path = words.find(|w| w.starts_with('/')).map(PathBuf::from);
        Some(Library { name, path: path.or_else(|| first.starts_with('/').then(|| first.into())) })
    };
    listed.lines().filter_map(line).collect()
}

/// The binary interface of an MPI.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Interface {
    /// One MPI's own, and that of its kin.
    Of(Mpi),
    /// The one that MPI 5 has standardised.
    Standard,
}

impl Interface {
    /// The MPI whose own it is.
    #[must_use]
    pub fn mpi(self) -> Option<Mpi> {
        match self {
            Self::Of(mpi) => Some(mpi),
            Self::Standard => None,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(mpi) => mpi.fmt(f),
            Self::Standard => f.write_str("MPI with the standard's binary interface"),
        }
    }
}

/// The binary interface that a library has, by the name that it gives itself, if it is an MPI; by that of its file if it has none.
#[must_use]
pub fn interface(library: &Library) -> Option<Interface> {
    // Only what may be one is opened.
    let file = library.path.as_deref().filter(|_| library.name.starts_with("libmpi"));
    let own = file.and_then(|file| entries(file, elf::DT_SONAME).pop());
    named(own.as_deref().unwrap_or(&library.name))
}

/// The binary interface of an MPI of this name.
fn named(library: &str) -> Option<Interface> {
    if library.starts_with("libmpi_abi.so") {
        return Some(Interface::Standard);
    }
    mpi(library).map(Interface::Of)
}

/// The MPI that a library is, by its name.
fn mpi(library: &str) -> Option<Mpi> {
    // Open MPI's libmpi.so is numbered from 20 up; MPICH's ABI name for it is 12.
    let version = || library.strip_prefix("libmpi.so.")?.split('.').next()?.parse::<u32>().ok();
    match library {
        l if l.starts_with("libmpich.so") => Some(Mpi::Mpich),
        l if l.starts_with("libmpi.so") => match version() {
            Some(12) => Some(Mpi::Mpich),
            _ => Some(Mpi::Openmpi),
        },
        _ => None,
    }
}

/// Names of the libraries that a file needs itself.
#[must_use]
pub fn needed(file: &Path) -> Vec<String> {
    entries(file, elf::DT_NEEDED)
}

/// Texts of a file's dynamic section with this tag.
fn entries(file: &Path, tag: elf::DynamicTag) -> Vec<String> {
    let read = || -> Option<Vec<String>> {
        let data = &opened(file).ok()?.1;
        let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let (entries, link) = sections.dynamic(endian, data).ok()??;
        let strings = sections.strings(endian, data, link).ok()?;
        let names = entries.iter().filter(|e| e.tag(endian) == tag);
        let names = names.filter_map(|e| e.string(endian, strings).ok());
        Some(names.map(|n| String::from_utf8_lossy(n).into_owned()).collect())
    };
    read().unwrap_or_default()
}

/// Functions of the C library that load a library or start a program.
const FIND: [&str; 4] = ["dlopen", "dlmopen", "system", "popen"];
const START: [&str; 2] = ["exec", "posix_spawn"];

/// Whether a file can come to an MPI that it does not link: it loads libraries or starts programs.
#[must_use]
pub fn can_find_mpi(file: &Path) -> bool {
    let Ok(data) = fs::read(file) else { return true };
    let Ok(elf) = ElfFile64::<Endianness>::parse(&*data) else { return true };
    let undefined = elf.dynamic_symbols().filter(|s| s.is_undefined());
    let mut names = undefined.filter_map(|s| s.name().ok());
    names.any(|name| {
        let name = name.trim_start_matches('_');
        FIND.contains(&name) || START.iter().any(|start| name.starts_with(start))
            // System calls without the C library's functions for them.
            || name == "syscall"
    })
}

/// The functions of MPI that a file takes from elsewhere.
#[must_use]
pub fn called(file: &Path) -> BTreeSet<String> {
    let Ok(data) = fs::read(file) else { return BTreeSet::new() };
    let Ok(elf) = ElfFile64::<Endianness>::parse(&*data) else { return BTreeSet::new() };
    let undefined = elf.dynamic_symbols().filter(|s| s.is_undefined());
    let names = undefined.filter_map(|s| s.name().ok().map(|name| name.strip_prefix('P').unwrap_or(name)));
    names.filter(|name| name.starts_with("MPI")).map(str::to_owned).collect()
}

/// The language bindings of MPI through which a file calls, by the names of the functions that it takes from elsewhere.
#[must_use]
pub fn bindings(file: &Path) -> BTreeSet<&'static str> {
    let Ok(data) = fs::read(file) else { return BTreeSet::new() };
    let Ok(elf) = ElfFile64::<Endianness>::parse(&*data) else { return BTreeSet::new() };
    let undefined = elf.dynamic_symbols().filter(|s| s.is_undefined());
    undefined.filter_map(|s| binding(s.name().ok()?)).collect()
}

/// The binding that a function belongs to.
fn binding(function: &str) -> Option<&'static str> {
    let c = function.strip_prefix('P').unwrap_or(function);
    if c.strip_prefix("MPI_")
        .or_else(|| c.strip_prefix("MPIX_"))
        .is_some_and(|r| r.starts_with(char::is_uppercase))
    {
        return Some("C");
    }
    if function.starts_with("_ZN3MPI") || function.starts_with("_ZNK3MPI") {
        return Some("C++");
    }
    let fortran =
        function.strip_prefix('p').unwrap_or(function).starts_with("mpi_") && function.ends_with('_');
    match fortran {
        true if function.contains("_f08") => Some("Fortran:mpi_f08"),
        true => Some("Fortran:mpif.h/mpi"),
        false => None,
    }
}

/// Whether a program holds MPI itself, linked from a static library: its symbols, unless they are stripped, say so.
#[must_use]
pub fn holds_mpi(file: &Path) -> bool {
    let Ok(data) = fs::read(file) else { return false };
    let Ok(elf) = ElfFile64::<Endianness>::parse(&*data) else { return false };
    let mut all = elf.symbols().chain(elf.dynamic_symbols());
    all.any(|s| s.is_definition() && s.name() == Ok(LANDMARK))
}

/// What every MPI defines, and no tool that stands in front of one.
const LANDMARK: &str = "PMPI_Init";

/// Why the loader would ignore what is preloaded into a file, if it would: it gives rights to who starts it.
#[must_use]
pub fn privileged(file: &Path) -> Option<&'static str> {
    let mode = fs::metadata(file).map_or(0, |m| m.permissions().mode());
    match mode & 0o6000 {
        0 => has_capabilities(file).then_some("has file capabilities"),
        m if m & 0o4000 != 0 => Some("is setuid"),
        _ => Some("is setgid"),
    }
}

#[expect(unsafe_code, reason = "extended attributes have no safe interface in std")]
fn has_capabilities(file: &Path) -> bool {
    let Ok(path) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: both names are terminated by NUL; with no buffer nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_tell_the_mpi() {
        let listed = "\tlinux-vdso.so.1 (0x1)\n\tlibmpi.so.40 => /y/libmpi.so.40 (0x2)\n\tlibx.so => not found\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let found = parse(listed);
        let path = |i: usize| found[i].path.as_deref().and_then(Path::to_str);
        assert_eq!(
            found.iter().map(|l| l.name.as_str()).collect::<Vec<_>>()[1..3],
            ["libmpi.so.40", "libx.so"]
        );
        assert_eq!([path(0), path(1), path(2)], [None, Some("/y/libmpi.so.40"), None]);
        assert_eq!(path(3), Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!([mpi("libmpi.so.40"), mpi("libmpi.so.12")], [Some(Mpi::Openmpi), Some(Mpi::Mpich)]);
        assert_eq!(
            [mpi("libmpich.so.12"), mpi("libmpi_cxx.so.40"), mpi("libc.so.6")],
            [Some(Mpi::Mpich), None, None]
        );
        assert_eq!(named("libmpi_abi.so.1"), Some(Interface::Standard));
        assert_eq!(named("libmpi.so.12.0.0"), Some(Interface::Of(Mpi::Mpich)));
    }

    #[test]
    fn functions_tell_the_binding() {
        assert_eq!([binding("MPI_Send"), binding("PMPI_Send"), binding("MPIX_Query")], [Some("C"); 3]);
        assert_eq!(binding("_ZN3MPI4InitEv"), Some("C++"));
        assert_eq!(binding("mpi_send_"), Some("Fortran:mpif.h/mpi"));
        assert_eq!([binding("mpi_send_f08_"), binding("mpi_send_f08ts_")], [Some("Fortran:mpi_f08"); 2]);
        assert_eq!([binding("malloc"), binding("mpi_comm"), binding("ompi_mpi_comm_world")], [None; 3]);
    }

    #[test]
    fn only_what_is_needed_of_a_program_is_read() {
        let us = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let large = dir.path().join("large");
        fs::copy(&us, &large).unwrap();
        // A hole: no memory would hold what is in the file.
        File::options().append(true).open(&large).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(kind(&large), kind(&us));
        assert_eq!(needed(&large), needed(&us));
        let script = dir.path().join("script");
        fs::write(&script, "#! /bin/sh -e \necho\n").unwrap();
        assert_eq!(kind(&script), FileKind::Script("/bin/sh -e".into()));
        let of = |bytes: &[u8]| {
            fs::write(&script, bytes).unwrap();
            kind(&script)
        };
        assert_eq!((of(b""), of(b"no program")), (FileKind::Unknown, FileKind::Unknown));
        assert_eq!(of(b"#!/bin/sh"), FileKind::Script("/bin/sh".into()));
        // One that is cut off.
        assert_eq!(of(&fs::read(&us).unwrap()[..40]), FileKind::Foreign);
        assert_eq!(kind(&dir.path().join("none")), FileKind::Unknown);
    }

    #[test]
    fn this_test_is_dynamic_and_shares_no_rights() {
        let us = std::env::current_exe().unwrap();
        let FileKind::Dynamic(loader) = kind(&us) else { panic!("{:?}", kind(&us)) };
        assert!(libraries(&loader, &us).iter().any(|l| l.name.starts_with("libc.so")));
        assert!(needed(&us).iter().any(|l| l.starts_with("libc.so")));
        assert_eq!((privileged(&us), kind(Path::new("/dev/null"))), (None, FileKind::Unknown));
    }
}
