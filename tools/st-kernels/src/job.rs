//! What a rank has to do, and whether it can.

use crate::{Kernel, Options};

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

/// Why a kernel does not run on these ranks with these options.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfit {
    /// The number of ranks is wrong for the kernel.
    #[error("{kernel} runs on {needs}, not on {ranks}")]
    Ranks {
        /// The kernel.
        kernel: &'static str,
        /// Numbers it runs on.
        needs: &'static str,
        /// The number asked for.
        ranks: i32,
    },
    /// A message would be longer than MPI's counts.
    #[error("--size {size} is too large for {kernel}: at most {most}")]
    Size {
        /// The kernel.
        kernel: &'static str,
        /// The size asked for.
        size: i32,
        /// The largest possible.
        most: i32,
    },
    /// An option of another kernel.
    #[error("--open is for stencils, not for {kernel}")]
    Open {
        /// The kernel.
        kernel: &'static str,
    },
    /// A slow rank that is not there.
    #[error("--slow {rank}: there are {ranks} ranks, from 0")]
    Slow {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// Ranks wait for each other with one thread each.
    #[error("--slow and --noise are for kernels with one thread per rank, {kernel} has several")]
    Threads {
        /// The kernel.
        kernel: &'static str,
    },
    /// It cannot be said who waits how long.
    #[error(
        "--slow and --noise do not go with {kernel}: on paper, its ranks would wait for each other in a circle"
    )]
    Circle {
        /// The kernel.
        kernel: &'static str,
    },
}

impl Kernel {
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
        if matches!(self, Self::Transpose | Self::Multigrid3d) && !ranks.cast_unsigned().is_power_of_two() {
            return Err(Unfit::Ranks { kernel, needs: "a power of two ranks", ranks });
        }
        match options.size {
            Some(size) if size > self.largest_size() => {
                Err(Unfit::Size { kernel, size, most: self.largest_size() })
            }
            _ => Ok(()),
        }
    }
}
