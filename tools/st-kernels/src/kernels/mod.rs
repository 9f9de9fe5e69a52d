//! The kernels.

mod amr;
mod fft;
mod halo;
mod multigrid;
mod ocean;
mod rma;
mod sort;
mod stencil1d;
mod stencil2d;
mod stencil3d;
mod sweeps;
mod threads;
mod transpose;
mod wavefront;
mod workers;

use clap::ValueEnum;

use crate::{Communicator, Digest, Options, Unfit};

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

/// What one rank has to do.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// This rank.
    pub me: i32,
    /// Number of ranks.
    pub ranks: i32,
    /// Time steps.
    pub steps: i32,
    /// Size of messages.
    pub size: i32,
    /// Computing time per step, in seconds.
    pub seconds: f64,
    /// Seed of all that is random.
    pub seed: u64,
    /// Open borders.
    pub open: bool,
}

impl Job {
    /// The job of a rank.
    #[must_use]
    pub fn new(kernel: Kernel, options: &Options, me: i32, ranks: i32) -> Self {
        let (steps, size) = kernel.defaults();
        let steps = options.steps.unwrap_or(steps);
        Self {
            me,
            ranks,
            steps,
            size: options.size.unwrap_or(size),
            seconds: options.seconds / f64::from(steps),
            seed: options.seed,
            open: options.open,
        }
    }
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
            Self::Fft => "fft",
            Self::Sort => "sort",
            Self::Wavefront => "wavefront",
            Self::Sweeps => "sweeps",
            Self::Transpose => "transpose",
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
            Self::Fft => (10, 128),
            Self::Sort => (5, 500),
            Self::Wavefront => (20, 200),
            Self::Sweeps => (20, 25),
            Self::Transpose => (10, 500),
            Self::Ocean => (60, 100),
            Self::Workers => (20, 1000),
            Self::Amr => (40, 64),
            Self::Halo | Self::Rma | Self::Threads => (20, 500),
        }
    }

    /// The largest size whose messages' counts and bytes are below 2^31.
    fn largest_size(self) -> i32 {
        match self {
            // A whole cross section of the domain with 10 values a point.
            Self::Sweeps => 5_000,
            // One side of a cube in planes.
            Self::Fft => 1_000,
            // The whole of a column's share may go to one rank.
            Self::Sort => 100_000,
            _ => 10_000_000,
        }
    }

    /// Whether the kernel runs on so many ranks, with these options.
    ///
    /// # Errors
    ///
    /// If not, with the reason.
    pub fn check(self, ranks: i32, options: &Options) -> Result<(), Unfit> {
        let kernel = self.name();
        if options.open && !matches!(self, Self::Stencil1d | Self::Stencil2d | Self::Stencil3d) {
            return Err(Unfit::Open { kernel });
        }
        if self == Self::Transpose && !ranks.cast_unsigned().is_power_of_two() {
            return Err(Unfit::Ranks { kernel, needs: "a power of two ranks", ranks });
        }
        match options.size {
            Some(size) if size > self.largest_size() => {
                Err(Unfit::Size { kernel, size, most: self.largest_size() })
            }
            _ => Ok(()),
        }
    }

    /// Runs the kernel between `MPI_Init` and `MPI_Finalize`; gives what the rank has seen.
    pub(crate) fn run<C: Communicator>(self, world: &C, job: &Job, seen: Digest) -> Digest {
        match self {
            Self::Stencil1d => stencil1d::run(world, job, seen),
            Self::Stencil2d => stencil2d::run(world, job, seen),
            Self::Stencil3d => stencil3d::run(world, job, seen),
            Self::Multigrid => multigrid::run(world, job, seen),
            Self::Fft => fft::run(world, job, seen),
            Self::Sort => sort::run(world, job, seen),
            Self::Wavefront => wavefront::run(world, job, seen),
            Self::Sweeps => sweeps::run(world, job, seen),
            Self::Transpose => transpose::run(world, job, seen),
            Self::Ocean => ocean::run(world, job, seen),
            Self::Workers => workers::run(world, job, seen),
            Self::Amr => amr::run(world, job, seen),
            Self::Halo => halo::run(world, job, seen),
            Self::Rma => rma::run(world, job, seen),
            Self::Threads => threads::run(world, job, seen),
        }
    }
}
