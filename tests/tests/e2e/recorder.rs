//! The recorder's library: what it is linked to, what it stands in for, and what it leaves alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSymbol, elf};
use st_cli::Mpi;
use st_tests::process::{Outcome, Run};
use st_tests::{Failure, conclude, place, workplace};

use crate::libraries::library;

/// Names of the libraries that a shared object needs.
fn needed(path: &Path) -> Result<Vec<String>, Failure> {
    let data = fs::read(path).map_err(|e| e.to_string())?;
    let read = || -> object::Result<Vec<String>> {
        let header = elf::FileHeader64::<Endianness>::parse(&*data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, &*data)?;
        let Some((entries, link)) = sections.dynamic(endian, &*data)? else { return Ok(Vec::new()) };
        let strings = sections.strings(endian, &*data, link)?;
        let names =
            entries.iter().filter(|e| e.tag(endian) == elf::DT_NEEDED).map(|e| e.string(endian, strings));
        names.map(|n| n.map(|n| String::from_utf8_lossy(n).into_owned())).collect()
    };
    read().map_err(|e| format!("{}: {e}", path.display()))
}

/// Names of the functions that a shared object exports.
fn exports(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let data = fs::read(path).map_err(|e| e.to_string())?;
    let file = ElfFile64::<Endianness>::parse(&*data).map_err(|e| format!("{}: {e}", path.display()))?;
    let defined = file.dynamic_symbols().filter(|s| s.is_definition() && s.is_global());
    Ok(defined.filter_map(|s| Some(s.name().ok()?.to_owned())).collect())
}

/// The library that a program linked with an MPI's compiler wrapper needs.
fn libmpi(mpi: Mpi) -> Result<PathBuf, Failure> {
    let directory = place::directory()?;
    let (source, app) = (place::root().join("tests/fixtures/leaves.c"), directory.path().join("app"));
    let wrapper = place::in_path(&format!("mpicc.{}", mpi.name())).unwrap_or_else(|| "mpicc".into());
    Run::new(wrapper, ["-o".as_ref(), app.as_os_str(), source.as_os_str()]).go()?.ok()?;
    library(&app)
}

/// Functions that are not wrapped, and why.
fn apart(name: &str) -> bool {
    // Conversions of handles between languages: local, and made by every Fortran call.
    let converts =
        name.ends_with("_f2c") || name.ends_with("_c2f") || name.contains("_f082") || name.contains("2f08");
    // Sums of addresses, which the recorder leaves alone.
    let sums = ["MPI_Aint_add", "MPI_Aint_diff"].contains(&name);
    // The profiling layer's own variants, and what the MPI_T interface declares in the same header.
    converts || sums || name.starts_with("MPI_F_") || name.starts_with("MPI_F08_")
}

fn stands_in(mpi: Mpi) -> Result<(), Failure> {
    let library = place::recorder()?;
    let path = libmpi(mpi)?;
    // A program that loads MPI late (Python) must not find one of ours.
    if needed(&library)?.iter().any(|name| name.starts_with("libmpi")) {
        return Err(format!("{} needs an MPI: {:?}", library.display(), needed(&library)?));
    }
    let ours = exports(&library)?;
    let missing: Vec<_> = exports(&path)?
        .into_iter()
        .filter(|f| {
            f.starts_with("MPI_") && !apart(f) && f.as_bytes().get(4).is_some_and(u8::is_ascii_uppercase)
        })
        .filter(|f| declared(mpi, f))
        .filter(|f| !ours.contains(f) || !ours.contains(&format!("P{f}")))
        .collect();
    if !missing.is_empty() {
        return Err(format!("exported by {}, but not stood in for (twice): {missing:?}", path.display()));
    }
    // It must not take the place of anything else in a program, but of what would find our symbols.
    let other: Vec<_> = ours
        .iter()
        .filter(|n| !["dlsym", "dlclose", "dlopen"].contains(&n.as_str()))
        .filter(|n| !["MPI_", "PMPI_", "MPIX_", "PMPIX_", "st_"].iter().any(|p| n.starts_with(p)))
        .collect();
    if other.is_empty() { Ok(()) } else { Err(format!("exports more than MPI: {other:?}")) }
}

#[test]
fn nothing_is_taken_from_an_mpi_and_unwinding_stays_the_programs() {
    let library = place::recorder().unwrap();
    let data = fs::read(&library).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*data).unwrap();
    assert!(needed(&library).unwrap().iter().any(|name| name.starts_with("libc.so")));
    let undefined = file.dynamic_symbols().filter(|s| s.is_undefined()).filter_map(|s| s.name().ok());
    let of_mpi = |name: &&str| ["MPI_", "PMPI_", "ompi_", "MPIR_"].iter().any(|p| name.starts_with(p));
    assert_eq!(undefined.filter(of_mpi).collect::<Vec<_>>(), Vec::<&str>::new());
    let exported = exports(&library).unwrap();
    for name in ["MPI_Init", "PMPI_Init", "MPI_Pcontrol", "st_pause", "st_made_at", "st_recorder", "dlsym"] {
        assert!(exported.contains(name), "{name} is not exported");
    }
    assert!(!exported.contains("_Unwind_Resume"));
}

/// Whether the MPI's header declares a function that the library has.
fn declared(mpi: Mpi, function: &str) -> bool {
    use std::sync::OnceLock;
    static HEADERS: [OnceLock<String>; 2] = [OnceLock::new(), OnceLock::new()];
    let text = HEADERS[usize::from(mpi == Mpi::Mpich)].get_or_init(|| {
        let wrapper = place::in_path(&format!("mpicc.{}", mpi.name())).unwrap_or_else(|| "mpicc".into());
        let directory = place::directory().unwrap();
        let source = directory.path().join("only.c");
        fs::write(&source, "#include <mpi.h>\n").unwrap();
        Run::new(wrapper, ["-E".as_ref(), source.as_os_str()]).go().unwrap().ok().unwrap().text()
    });
    text.contains(&format!(" {function}("))
}

#[test]
fn every_function_of_the_headers_has_a_wrapper_twice() {
    let mpis = place::mpis();
    let failures: Vec<_> =
        mpis.iter().filter_map(|m| stands_in(*m).map_err(|e| format!("{m}: {e}")).err()).collect();
    conclude(mpis.len(), &failures);
}

#[test]
fn nothing_but_engines_depends_on_the_mpi_crate() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages =
        ["st-record", "st-pmpi", "st-cluster", "st-merge", "st-view", "st-stat", "st-replay", "st-kernels"];
    let words = packages.iter().flat_map(|p| ["-p", p]);
    let args = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none"];
    let tree =
        Run::new(cargo, args.into_iter().chain(words)).within(&place::root()).go().unwrap().ok().unwrap();
    let text = tree.text();
    for package in packages {
        assert!(text.lines().any(|l| l.starts_with(&format!("{package} v"))), "{package} is not in the tree");
    }
    let links = |l: &&str| l.starts_with("mpi v") || l.starts_with("mpi-sys v");
    assert_eq!(text.lines().find(links), None);
}

#[test]
fn the_recorder_keeps_nothing_between_the_programs_own_memory() {
    // Compression has a few blocks there, which come and go.
    const COMPRESSION: i64 = 64 << 10;
    workplace::under_each("heap", "heap.c", &[], |p| {
        let growth = |outcome: Outcome| -> Result<i64, Failure> {
            let text = outcome.ok()?.text();
            text.trim().parse().map_err(|_| format!("expected a number of bytes: {text}"))
        };
        let plain = growth(p.plain("./heap")?)?;
        let recorded = growth(p.outside("-q -o trace.st", "./heap")?)?;
        let alike = recorded <= plain + COMPRESSION;
        alike.then_some(()).ok_or_else(|| format!("grows by {plain} bytes, and by {recorded} when recorded"))
    });
}
