//! Option groups of the programs that reduce traces.

use clap::Args;

use crate::lossy::ParamKind;
use crate::user::{Error, Param, constants};

/// What the user knows of parameters.
#[derive(Args, Clone, Debug, Default)]
pub struct Known {
    /// Write a parameter of calls by an expression, where that is true
    ///
    /// TARGET is FUNCTION:PARAMETER, FUNCTION@PLACE:PARAMETER or @PLACE:PARAMETER, with PLACE a
    /// function or a frame of call sites' stacks, as programs print them: exchange, stencil.c:120, exchange stencil.c:120,
    /// solver+0x1234, with or without the path; a label, or how it begins; of files also the number of a call site, as
    /// st-view and st-stat print it of the same files: site 3. One that no call has is an error. TARGET may end in a condition,
    /// as in MPI_Send:dest[n%2==0]. EXPRESSION is one of C, of integers, with me (the rank in the call's
    /// communicator), size (of that) and n (which of the rank's calls from there it is, from 0). Values are stored as
    /// differences from the expression, so that ranks for which it is true become equal, and nothing changes for
    /// those for which it is not; it is used only if it makes the trace smaller.
    #[arg(long, value_names = ["TARGET", "EXPRESSION"], num_args = 2, action = clap::ArgAction::Append)]
    pub param: Vec<String>,
    /// A constant in expressions
    #[arg(long = "let", value_name = "NAME=NUMBER")]
    pub constants: Vec<String>,
}

impl Known {
    /// Whether it matters which call sites there are.
    #[must_use]
    pub fn has_places(&self) -> bool {
        self.param.chunks_exact(2).any(|pair| pair[0].contains('@'))
    }

    /// The expressions.
    ///
    /// # Errors
    ///
    /// If one cannot be understood.
    pub fn params(&self) -> Result<Vec<Param>, Error> {
        let constants = constants(&self.constants)?;
        let pairs = self.param.chunks_exact(2);
        pairs.map(|pair| Param::new(&pair[0], &pair[1], &constants)).collect()
    }
}

/// In which parameters ranks that differ are united.
#[derive(Args, Clone, Debug, Default)]
pub struct Forced {
    /// Unite ranks that differ in these parameters, keeping how often each value was
    ///
    /// Of messages only. Where ranks differ in a parameter of a call site, however it is written, a histogram over them takes
    /// its place: exact for peers, and of at most about 64 bins for counts, whose number and sum stay exact. The trace
    /// says so (as st-stat and st-view --check do). Reading a rank back draws values by chance, the same each time, and so
    /// does st-replay; st-sync and st-stat violations refuse such a trace.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub force_merge: Vec<ParamKind>,
}
