//! Parallel efficiency and what it is made of.

/// What the run time is made of, in the multiplicative convention of the POP centre: parallel efficiency is load balance
/// times communication efficiency, which is serialisation times transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Efficiency {
    /// From the first rank's end of `MPI_Init` to the last rank's start of `MPI_Finalize`, ns.
    pub run: u64,
    /// The same on a network without latency and with infinite bandwidth, ns.
    pub ideal: u64,
    /// Time outside of MPI, mean of all ranks, ns.
    pub mean: u64,
    /// Time outside of MPI of the rank that computes longest, ns.
    pub longest: u64,
    /// Time for which recording was paused on all ranks, at least, ns: what ranks did then is not known, and ratios are of the rest.
    /// Not among what is kept of a run.
    pub paused: u64,
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a share, not a time")]
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Efficiency {
    fn recorded(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.paused)
    }

    /// Mean computation by run time; `None` of a run that took no time.
    #[must_use]
    pub fn parallel(&self) -> Option<f64> {
        ratio(self.mean, self.recorded(self.run))
    }

    /// Mean computation by the longest.
    #[must_use]
    pub fn load_balance(&self) -> Option<f64> {
        ratio(self.mean, self.longest)
    }

    /// Longest computation by run time.
    #[must_use]
    pub fn communication(&self) -> Option<f64> {
        ratio(self.longest, self.recorded(self.run))
    }

    /// Longest computation by the time on an ideal network.
    #[must_use]
    pub fn serialisation(&self) -> Option<f64> {
        ratio(self.longest, self.recorded(self.ideal))
    }

    /// Time on an ideal network by run time.
    #[must_use]
    pub fn transfer(&self) -> Option<f64> {
        ratio(self.recorded(self.ideal), self.recorded(self.run))
    }
}
