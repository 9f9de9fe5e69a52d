//! How much of a trace is written.

use clap::ValueEnum;

/// What is written of a trace, from the most to the least.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Level {
    /// Each call
    #[default]
    Calls,
    /// What each rank does in each iteration of the outermost loops, or from each MPI_Pcontrol to the next, summed up
    Phases,
    /// Sums over the run, of each rank and call site
    Summary,
}

impl Level {
    pub(crate) const ALL: &'static [Self] = &[Self::Calls, Self::Phases, Self::Summary];

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
