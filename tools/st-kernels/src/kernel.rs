//! Which kernels there are.

use clap::ValueEnum;

/// An MPI mini-program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub enum Kernel {
    /// Halo exchange on a ring, blocking, a reduction every five steps
    #[value(name = "stencil1d")]
    Stencil1d,
    /// Halo exchange on a periodic two-dimensional grid, a reduction every five steps
    #[value(name = "stencil2d")]
    Stencil2d,
    /// Halo exchange with all 26 neighbours of a periodic three-dimensional grid
    #[value(name = "stencil3d")]
    Stencil3d,
    /// V-cycles over levels on which fewer and fewer ranks work, exchanges on a ring per level
    Multigrid,
    /// V-cycles on a cube of points of so many a side, cut along three axes, on whose coarse levels fewer and fewer ranks work (a
    /// power of two ranks)
    #[value(name = "multigrid3d")]
    Multigrid3d,
    /// Fourier transforms of a cube cut into pencils: exchanges among rows and columns of a grid of ranks
    Fft,
    /// Sample sort: message sizes that depend on the data
    Sort,
    /// Pipelined sweeps over a two-dimensional grid, there and back
    Wavefront,
    /// Sweeps in three alternating directions over a multi-partitioned domain, with varying sizes
    Sweeps,
    /// Conjugate gradients with exclusive-or and transposed partners (a power of two ranks)
    Transpose,
    /// Conjugate gradients on an unstructured mesh: neighbours and message sizes that follow no rule
    Unstructured,
    /// Ocean model: iteration counts that vary by step, diagnostics, output, many call sites
    Ocean,
    /// Teams of a master and workers: wildcard receives, probes, completions in any order
    Workers,
    /// Adaptive mesh: ranks hand blocks to neighbours as the load moves, exchanges of a changing number of messages
    Amr,
    /// Halo exchange completed one by one (Waitany) and by polling (Test)
    Halo,
    /// Halo exchange by one-sided communication
    Rma,
    /// Halo exchange by several threads of each rank at once
    Threads,
}

impl Kernel {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stencil1d => "stencil1d",
            Self::Stencil2d => "stencil2d",
            Self::Stencil3d => "stencil3d",
            Self::Multigrid => "multigrid",
            Self::Multigrid3d => "multigrid3d",
            Self::Fft => "fft",
            Self::Sort => "sort",
            Self::Wavefront => "wavefront",
            Self::Sweeps => "sweeps",
            Self::Transpose => "transpose",
            Self::Unstructured => "unstructured",
            Self::Ocean => "ocean",
            Self::Workers => "workers",
            Self::Amr => "amr",
            Self::Halo => "halo",
            Self::Rma => "rma",
            Self::Threads => "threads",
        }
    }

    /// Steps and size if none are given.
    #[must_use]
    pub fn defaults(self) -> (i32, i32) {
        match self {
            Self::Stencil1d | Self::Stencil2d => (50, 1000),
            Self::Stencil3d => (20, 300),
            Self::Multigrid => (10, 256),
            Self::Multigrid3d => (10, 128),
            Self::Fft => (10, 128),
            Self::Sort => (5, 500),
            Self::Wavefront => (20, 200),
            Self::Sweeps => (20, 25),
            Self::Transpose => (10, 500),
            Self::Unstructured => (30, 400),
            Self::Ocean => (60, 100),
            Self::Workers => (20, 1000),
            Self::Amr => (40, 64),
            Self::Halo | Self::Rma | Self::Threads => (20, 500),
        }
    }

    /// The largest size whose messages' counts and bytes are below 2^31.
    pub(crate) fn largest_size(self) -> i32 {
        match self {
            // A whole cross section of the domain with 10 values a point.
            Self::Sweeps => 5_000,
            // One side of a cube in planes.
            Self::Fft => 1_000,
            // One side of a cube, and somewhat more.
            Self::Multigrid3d => 10_000,
            // The whole of a column's share may go to one rank.
            Self::Sort => 100_000,
            _ => 10_000_000,
        }
    }
}
