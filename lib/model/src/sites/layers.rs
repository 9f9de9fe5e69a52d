//! What belongs to the user's program, and what to the libraries that call MPI on its behalf.

use std::collections::HashSet;
use std::sync::OnceLock;

use crate::calls::CallTable;
use crate::modules::{Module, base_name, python_function};

/// Libraries below the user's code: MPI and its bindings, tracers, language runtimes. A library belongs here if its
/// file name is one of these followed by `.so`, a version or a language (`libmpi_usempif08.so.40`).
const LIBRARIES: [&str; 27] = [
    "libmpi", // libmpich, libmpifort, libmpi_mpifh, libmpi_usempif08, libmpicxx …
    "libpmpi",
    "libpmix",
    "libfmpich",
    "libopen-",
    "libopal",
    "libst_pmpi",
    "libst-pmpi",
    "libucp",
    "libucs",
    "libuct",
    "libfabric",
    "libc.",
    "libc-",
    "libm.",
    "libpthread",
    "libdl.",
    "ld-linux",
    "linux-vdso",
    "libstdc++",
    "libgcc_s",
    "libgfortran",
    "libgomp",
    "libomp",
    "libpython",
    "libffi",
    "_ctypes.",
];

/// Whether a module is part of the user's program; of Python programs, a function.
pub(super) fn is_own_module(path: &str) -> bool {
    let python = python_function(path);
    let file = python.map_or(path, |(file, _)| file);
    // The binding itself, in C and in Python, and what imports it.
    if file.contains("/mpi4py/") || file.starts_with("<frozen ") {
        return false;
    }
    let name = base_name(path);
    python.is_some() || !LIBRARIES.iter().any(|library| name.starts_with(library))
}

/// Paths that functions of bindings and runtimes begin with, when these are compiled into the program.
const FUNCTIONS: [&str; 10] =
    ["_start", "MPI_", "PMPI_", "MPI::", "mpi::", "mpi_sys::", "core::", "alloc::", "std::", "__gnu_cxx::"];

/// Whether a function is the user's: not one of MPI's, its bindings' (the C++ ones and the Rust crate `mpi` are
/// compiled into programs) or a language's standard library.
pub(super) fn is_own_function(name: &str) -> bool {
    let begins = |path: &str| FUNCTIONS.iter().any(|library| path.starts_with(library));
    // `<T as mpi::collective::Communicator>::barrier` is a function of the trait's crate or of the type's; the
    // trait decides, since user types implement foreign traits for the callers' sake.
    let Some(inner) = name.strip_prefix('<') else { return !begins(name) };
    let of_trait = inner.split_once(" as ").map_or(inner, |(_, of_trait)| of_trait);
    let is_fn_trait = of_trait.starts_with("core::ops::function::");
    is_fn_trait || !begins(of_trait.trim_start_matches(['&', '*']))
}

/// Whether a function is called as an MPI function is without its prefix: `irecv`, `Comm::rank`, `grid::allreduce<f64>`.
pub(super) fn is_named_after_mpi(name: &str) -> bool {
    static FUNCTIONS: OnceLock<HashSet<String>> = OnceLock::new();
    let known = || {
        let names = CallTable::builtin().rows().iter().map(|row| row.name.to_lowercase());
        let short = names.filter_map(|name| Some(name.strip_prefix("mpi_")?.to_owned()));
        short.flat_map(|name| [name.strip_prefix("comm_").map(str::to_owned), Some(name)]).flatten().collect()
    };
    let name = name.split(['<', '(']).next().unwrap_or_default();
    let last = name.rsplit("::").next().unwrap_or_default().to_lowercase();
    FUNCTIONS.get_or_init(known).contains(last.trim_end_matches('_'))
}

/// Whether a function is a wrapper of an MPI function by its name, which holds that one's: `solver_MPI_Send`, `my_mpi_send_`.
pub(super) fn wraps_mpi(name: &str) -> bool {
    static FUNCTIONS: OnceLock<HashSet<String>> = OnceLock::new();
    let known = || CallTable::builtin().rows().iter().map(|row| row.name.to_lowercase()).collect();
    let functions = FUNCTIONS.get_or_init(known);
    let name = name.to_lowercase();
    let mut begins = name.match_indices("mpi_").map(|(at, _)| &name[at..]);
    begins.any(|begin| {
        let end = begin.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(begin.len());
        functions.contains(begin[..end].trim_end_matches('_'))
    })
}

impl Module {
    /// Whether it is part of MPI, its bindings, or a language runtime, and not of the program.
    #[must_use]
    pub fn is_library(&self) -> bool {
        !is_own_module(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_and_runtimes_are_not_the_users() {
        for library in [
            "/usr/lib/x86_64-linux-gnu/libmpi_usempif08.so.40",
            "/usr/lib/libmpich.so.12",
            "/usr/lib/libmpichfort.so.12",
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/opt/st/lib/st/libst_pmpi.so",
            "linux-vdso.so.1",
            "/usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so",
            "python:<frozen importlib._bootstrap>::_load_unlocked",
            "python:/venv/lib/python3.12/site-packages/mpi4py/futures/pool.py::Pool.submit",
        ] {
            assert!(!is_own_module(library), "{library}");
        }
        for module in [
            "/home/me/app",
            "/usr/lib/liblammps.so.0",
            "/usr/lib/libmetis.so",
            "/usr/bin/python3",
            "python:/home/me/solver.py::Solver.step",
            "python:<string>::<module>",
        ] {
            assert!(is_own_module(module), "{module}");
        }
    }

    #[test]
    fn functions_of_bindings_are_told_from_the_users() {
        for function in [
            "MPI_Send",
            "MPI::Comm::Send(void const*, int, MPI::Datatype const&, int, int) const",
            "mpi::point_to_point::Destination::send_with_tag",
            "<mpi::topology::SimpleCommunicator as mpi::collective::CommunicatorCollectives>::barrier",
            "<T as mpi::point_to_point::Destination>::send",
            "std::function<void ()>::operator()() const",
        ] {
            assert!(!is_own_function(function), "{function}");
        }
        for function in
            ["main", "mpi_sum_", "mp::mp_sum", "<app::Grid as app::Halo>::exchange", "mpirical::step"]
        {
            assert!(is_own_function(function), "{function}");
        }
    }

    #[test]
    fn layers_have_functions_named_after_mpi() {
        for name in ["irecv", "Comm::rank", "grid::allreduce<f64>", "Waitall", "comm_size"] {
            assert!(is_named_after_mpi(name), "{name}");
        }
        for name in ["exchange", "main", "halo::send_all", ""] {
            assert!(!is_named_after_mpi(name), "{name}");
        }
    }

    #[test]
    fn wrappers_are_known_by_their_names() {
        for name in ["solver_MPI_Comm_rank", "my_mpi_send_", "MPI_Send", "wrap::MPI_Isend(int)"] {
            assert!(wraps_mpi(name), "{name}");
        }
        for name in ["mpi_sum_", "exchange", "mpi_", "solve_mpi_send_all"] {
            assert!(!wraps_mpi(name), "{name}");
        }
    }
}
