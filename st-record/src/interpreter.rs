//! What an interpreter of Python says of itself, and of the MPI that mpi4py loads.

use std::path::Path;
use std::process::Command;

/// Loads mpi4py, and with it the MPI that it finds, but does not begin to use it. Prints the module's file, what the library says of
/// itself, and all files that are loaded.
const MPI4PY: &str = "import importlib.util as u, sys
if not u.find_spec('mpi4py'): sys.exit(3)
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
print(MPI.__file__)
print(*MPI.Get_library_version().strip('\\0').splitlines()[0].split())
print(*sorted({l.split()[-1] for l in open('/proc/self/maps') if ' /' in l}), sep='\\n')";

/// How that ends if there is no mpi4py.
const WITHOUT: i32 = 3;
/// Prints the interpreter's version.
const VERSION: &str = "import sys; print(sys.version)";

/// What importing mpi4py comes to.
pub(crate) enum Mpi4py {
    /// There is none.
    Without,
    /// It cannot be imported: why.
    Broken(String),
    /// The module's file, what the MPI says of itself, and all files that are loaded, a line each.
    Loaded(String),
}

/// Whether a file has an interpreter's name.
pub(crate) fn is_python(file: &Path) -> bool {
    file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python"))
}

/// What an interpreter says of itself.
pub(crate) fn version(interpreter: &Path) -> Option<String> {
    let said = Command::new(interpreter).args(["-c", VERSION]).env_remove("LD_PRELOAD").output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Imports mpi4py; nothing where the interpreter cannot be started.
pub(crate) fn mpi4py(interpreter: &Path) -> Option<Mpi4py> {
    let told = Command::new(interpreter).args(["-c", MPI4PY]).env_remove("LD_PRELOAD").output().ok()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    // What is no interpreter, but has its name, says something else.
    let answered = text.lines().nth(2).is_some();
    Some(match (told.status.success(), told.status.code()) {
        (true, _) if answered => Mpi4py::Loaded(text),
        (true, _) | (false, Some(WITHOUT)) => Mpi4py::Without,
        _ => {
            let errors = String::from_utf8_lossy(&told.stderr);
            Mpi4py::Broken(errors.lines().last().unwrap_or("it ended early").to_owned())
        }
    })
}
