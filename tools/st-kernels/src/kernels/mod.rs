//! The kernels.

mod ocean;
mod stencil2d;
mod sweeps;
mod transpose;
mod wavefront;
mod workers;

use clap::ValueEnum;

use crate::{Communicator, Digest, Options, Unfit};

/// An MPI mini-program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub enum Kernel {
    /// Halo exchange on a periodic two-dimensional grid, a reduction every five steps
    #[value(name = "stencil2d")]
    Stencil2d,
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
    /// All kernels.
    pub const ALL: [Self; 6] =
        [Self::Stencil2d, Self::Wavefront, Self::Sweeps, Self::Transpose, Self::Ocean, Self::Workers];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stencil2d => "stencil2d",
            Self::Wavefront => "wavefront",
            Self::Sweeps => "sweeps",
            Self::Transpose => "transpose",
            Self::Ocean => "ocean",
            Self::Workers => "workers",
        }
    }

    /// Steps and size if none are given.
    #[must_use]
    pub fn defaults(self) -> (i32, i32) {
        match self {
            Self::Stencil2d => (50, 1000),
            Self::Wavefront => (20, 200),
            Self::Sweeps => (20, 25),
            Self::Transpose => (10, 500),
            Self::Ocean => (60, 100),
            Self::Workers => (20, 1000),
        }
    }

    /// The largest size whose messages' counts and bytes are below 2^31.
    fn largest_size(self) -> i32 {
        match self {
            // A whole cross section of the domain with 10 values a point.
            Self::Sweeps => 5_000,
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
        if options.open && self != Self::Stencil2d {
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
            Self::Stencil2d => stencil2d::run(world, job, seen),
            Self::Wavefront => wavefront::run(world, job, seen),
            Self::Sweeps => sweeps::run(world, job, seen),
            Self::Transpose => transpose::run(world, job, seen),
            Self::Ocean => ocean::run(world, job, seen),
            Self::Workers => workers::run(world, job, seen),
        }
    }
}
