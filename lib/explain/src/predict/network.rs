//! What messages and collective operations take on a network, by the LogGP model.
//!
//! Source: Alexandrov, Ionescu, Schauser, Scheiman 1995 (LogGP: incorporating long messages into the LogP model). The
//! gap between messages (g) is left out: a rank's messages do not wait for each other.

use st_model::num::{float, rounded, saturate};

/// Bytes from which a message is not sent before its receive is posted, unless more is known.
pub(crate) const EAGER: u64 = 32 << 10;

/// What is between two ranks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// L: what a message without data takes from leaving its sender to reaching its receiver, ns.
    pub latency: f64,
    /// G: what each byte takes beyond that, ns.
    pub per_byte: f64,
}

/// A network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Within nodes, and between them.
    pub links: [Link; 2],
    /// o: what sending or receiving a message takes a rank, ns.
    pub overhead: f64,
    /// Messages of more bytes wait until their receive is posted.
    pub eager: u64,
    /// What collective operations take, by what they would take if each of ⌈log₂ members⌉ rounds were a message.
    pub collective: f64,
}

impl Network {
    /// Neither latency nor overhead, and infinite bandwidth.
    pub const IDEAL: Self = Self {
        links: [Link { latency: 0.0, per_byte: 0.0 }; 2],
        overhead: 0.0,
        eager: EAGER,
        collective: 1.0,
    };

    fn link(&self, far: bool) -> Link {
        self.links[usize::from(far)]
    }

    /// Whether a message waits until its receive is posted; -1 bytes are not known.
    #[inline]
    pub(crate) fn waits(&self, bytes: i64, sync: bool) -> bool {
        sync || u64::try_from(bytes).is_ok_and(|bytes| bytes > self.eager)
    }

    /// From sending a message of so many bytes until it can be received, ns: o + L + n·G.
    #[inline]
    pub(crate) fn message(&self, bytes: i64, far: bool) -> i64 {
        let Link { latency, per_byte } = self.link(far);
        ns(self.overhead + latency + size(bytes) * per_byte)
    }

    /// From sending a message of so many bytes until all of it has left, ns: o + n·G.
    #[inline]
    pub(crate) fn leaving(&self, bytes: i64, far: bool) -> i64 {
        ns(self.overhead + size(bytes) * self.link(far).per_byte)
    }

    /// What an operation of so many members takes one that moves so many bytes, ns, if collective operations take what
    /// their rounds do: ⌈log₂ members⌉·(L + 2·o) + n·G.
    pub(crate) fn rounds(&self, members: u32, bytes: u64, far: bool) -> f64 {
        let Link { latency, per_byte } = self.link(far);
        let rounds = members.max(1).next_power_of_two().trailing_zeros();
        f64::from(rounds) * (latency + 2.0 * self.overhead) + float(bytes.into()) * per_byte
    }

    /// What it takes.
    #[inline]
    pub(crate) fn operation(&self, members: u32, bytes: u64, far: bool) -> i64 {
        ns(self.collective * self.rounds(members, bytes, far))
    }
}

fn size(bytes: i64) -> f64 {
    float(saturate::<u64>(bytes).into())
}

/// A time of the model as a time of a trace.
pub(crate) fn ns(time: f64) -> i64 {
    saturate(rounded(time))
}
