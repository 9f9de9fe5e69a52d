//! The kernels: what each does.

mod amr;
mod fft;
mod halo;
mod multigrid;
mod multigrid3d;
mod ocean;
mod rma;
mod sort;
mod stencil1d;
mod stencil2d;
mod stencil3d;
mod sweeps;
mod threads;
mod transpose;
mod unstructured;
mod wavefront;
mod workers;

use crate::{Communicator, Digest, Job, Kernel};

impl Kernel {
    /// Runs the kernel between `MPI_Init` and `MPI_Finalize`; gives what the rank has seen.
    pub(crate) fn run<C: Communicator>(self, world: &C, job: &Job, seen: Digest) -> Digest {
        match self {
            Self::Stencil1d => stencil1d::run(world, job, seen),
            Self::Stencil2d => stencil2d::run(world, job, seen),
            Self::Stencil3d => stencil3d::run(world, job, seen),
            Self::Multigrid => multigrid::run(world, job, seen),
            Self::Multigrid3d => multigrid3d::run(world, job, seen),
            Self::Fft => fft::run(world, job, seen),
            Self::Sort => sort::run(world, job, seen),
            Self::Wavefront => wavefront::run(world, job, seen),
            Self::Sweeps => sweeps::run(world, job, seen),
            Self::Transpose => transpose::run(world, job, seen),
            Self::Unstructured => unstructured::run(world, job, seen),
            Self::Ocean => ocean::run(world, job, seen),
            Self::Workers => workers::run(world, job, seen),
            Self::Amr => amr::run(world, job, seen),
            Self::Halo => halo::run(world, job, seen),
            Self::Rma => rma::run(world, job, seen),
            Self::Threads => threads::run(world, job, seen),
        }
    }
}
