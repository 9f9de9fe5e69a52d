//! What happens in a trace, step by step in the order of its times: what a walk needs to find out how long it would take
//! under other conditions. The steps are told by the search for waits, so that both know the same of who meets whom.

use super::measure::Measures;
use super::network::Network;
use super::walk::{Computing, Walk};

/// What a call of a thread does beside what the steps after it say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Does {
    /// It takes its time.
    Work,
    /// It finds nothing: tests and probes that the program repeats until it is reached by what it waits for.
    Poll,
    /// It ends MPI: what comes after it is not looked at.
    End,
}

/// A call, and the computation before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) thread: u32,
    pub(crate) place: u32,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    pub(crate) does: Does,
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sending {
    pub(crate) thread: u32,
    /// -1 if that is not known.
    pub(crate) bytes: i64,
    /// It cannot be complete before its receive is posted, however short it is.
    pub(crate) sync: bool,
    /// The call that sends it also completes it.
    pub(crate) blocks: bool,
    /// It is a message, and not what begins or ends an epoch.
    pub(crate) message: bool,
}

/// A step. Ends of messages and parts in operations have numbers, which are used again once nothing more is said of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A thread begins.
    Begin(u32, i64),
    /// A thread makes its next call. The steps after it, up to its next one, belong to it.
    Call(Call),
    /// The thread sends.
    Send(u32, Sending),
    /// A thread posts a receive.
    Post { thread: u32, receive: u32 },
    /// The receiver of a message completes it.
    Receive { send: u32, receive: u32 },
    /// The sender of a message completes it.
    Sent { send: u32, receive: u32 },
    /// A thread takes part in a collective operation, to and from which it moves so many bytes.
    Join { thread: u32, member: u32, bytes: u64 },
    /// Who is waited for begins anew.
    Clear,
    /// A member is waited for.
    From(u32),
    /// A member waits for these, in an operation of so many.
    To { member: u32, of: u32 },
    /// It completes its part.
    Leave(u32),
}

/// Where the search tells its steps to.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Number of the node of each thread.
    pub(crate) nodes: Vec<u32>,
    ideal: Walk<1, Computing>,
    /// What messages take, if that is measured.
    measures: Option<Box<Walk<1, Measures>>>,
    /// All steps, if they are kept.
    pub(crate) kept: Option<Vec<Step>>,
}

impl Default for Steps {
    fn default() -> Self {
        let ideal = Walk::new([Network::IDEAL], Computing, Vec::new());
        Self { nodes: Vec::new(), ideal, measures: None, kept: None }
    }
}

impl Steps {
    /// What messages take is measured, and all steps are kept if that is asked for.
    pub(crate) fn measured(keep: bool) -> Self {
        let measures = Walk::new([Network::IDEAL], Measures::default(), Vec::new());
        Self { measures: Some(Box::new(measures)), kept: keep.then(Vec::new), ..Self::default() }
    }

    #[inline]
    pub(crate) fn tell(&mut self, step: Step) {
        self.ideal.step(&step);
        self.measures.iter_mut().for_each(|measures| measures.step(&step));
        self.kept.iter_mut().for_each(|kept| kept.push(step));
    }

    /// The next thread is there, on a node.
    pub(crate) fn add_thread(&mut self, node: u32) {
        self.nodes.push(node);
        self.ideal.add_thread(node);
        self.measures.iter_mut().for_each(|measures| measures.add_thread(node));
    }

    /// What has been measured: nothing if that was not asked for.
    pub(crate) fn measures(&mut self) -> Measures {
        let mut walk = self.measures.take();
        walk.iter_mut().for_each(|walk| _ = walk.finish());
        walk.map(|walk| walk.pace).unwrap_or_default()
    }

    /// When the last thread is at its end on an ideal network, ns.
    pub(crate) fn ideal(&mut self) -> i64 {
        self.ideal.finish()[0]
    }
}
