//! Everything that calls MPI for the programs: the stages as several processes of a job ([`job`]), one rank of a replay
//! ([`replay`]), and the kernels for real ([`kernels`]).
//!
//! It is built once per MPI. Two programs come of it: `st-engine`, which stands for every stage, and `st-kernels-mpi`, which is
//! recorded, and so a program of its own, with nothing in it that kernels do not need.

pub mod job;
pub mod kernels;
pub mod replay;
mod world;

use st_cli::Mpi;

/// The MPI that the build was asked for: engines hold it against that of the launcher.
const MPI: Mpi = if cfg!(mpi_is = "openmpi") { Mpi::Openmpi } else { Mpi::Mpich };

// mpi-sys looks for an MPI by itself and falls back silently; handles tell which one it took.
#[cfg(mpi_is = "openmpi")]
const _: fn(mpi::ffi::MPI_Comm) -> *mut mpi::ffi::ompi_communicator_t = |comm| comm.0;
#[cfg(mpi_is = "mpich")]
const _: fn(mpi::ffi::MPI_Comm) -> std::ffi::c_int = |comm| comm.0;
