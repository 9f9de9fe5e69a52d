//! The communicator trait that kernels are written over.

use std::panic::Location;

use st_model::ranks::RankSeq;

/// Source of a receive that takes a message from anyone.
pub const ANY_SOURCE: i32 = -2;
/// Tag of a receive that takes a message with any tag.
pub const ANY_TAG: i32 = -1;

/// Element type of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `MPI_UINT8_T`.
    Byte,
    /// `MPI_INT32_T`.
    Int,
    /// `MPI_UINT64_T`.
    Long,
    /// `MPI_DOUBLE`.
    Double,
}

impl Kind {
    /// Bytes of one element.
    #[must_use]
    pub fn bytes(self) -> i32 {
        match self {
            Self::Byte => 1,
            Self::Int => 4,
            Self::Long | Self::Double => 8,
        }
    }
    /// MPI's name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "MPI_UINT8_T",
            Self::Int => "MPI_INT32_T",
            Self::Long => "MPI_UINT64_T",
            Self::Double => "MPI_DOUBLE",
        }
    }
}

/// A reduction operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// `MPI_SUM`.
    Sum,
    /// `MPI_MAX`.
    Max,
    /// `MPI_MIN`.
    Min,
}

impl Op {
    /// MPI's name of the operation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "MPI_SUM",
            Self::Max => "MPI_MAX",
            Self::Min => "MPI_MIN",
        }
    }
}

/// Some consecutive elements of a buffer, from [`Communicator::buffer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The buffer's number.
    pub buffer: usize,
    /// Element type.
    pub kind: Kind,
    /// First element.
    pub start: i32,
    /// Number of elements.
    pub count: i32,
}

impl Part {
    /// `count` elements from the part's `start`-th on; cut at the part's end.
    #[must_use]
    pub fn slice(self, start: i32, count: i32) -> Self {
        let start = start.clamp(0, self.count);
        Self { start: self.start + start, count: count.clamp(0, self.count - start), ..self }
    }
    /// The first `count` elements.
    #[must_use]
    pub fn first(self, count: i32) -> Self {
        self.slice(0, count)
    }
}

/// A message as its sender sends it: what a receive or probe will find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Rank of the sender.
    pub source: i32,
    /// Its tag.
    pub tag: i32,
    /// Number of elements.
    pub count: i32,
}

/// A receive: its arguments, and what will arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receive {
    /// Where the message goes.
    pub into: Part,
    /// Rank, or [`ANY_SOURCE`].
    pub source: i32,
    /// Tag, or [`ANY_TAG`].
    pub tag: i32,
    /// The message that comes, where the program's text can tell.
    pub forecast: Arrival,
}

impl Receive {
    /// A receive that its message fills.
    #[must_use]
    pub fn exact(into: Part, source: i32, tag: i32) -> Self {
        Self { into, source, tag, forecast: Arrival { source, tag, count: into.count } }
    }
    /// The same receive, of a message with fewer elements.
    #[must_use]
    pub fn carrying(mut self, count: i32) -> Self {
        self.forecast.count = count;
        self
    }
    /// A receive with wildcards in place of source, tag, or both.
    #[must_use]
    pub fn wild(into: Part, source: i32, tag: i32, forecast: Arrival) -> Self {
        Self { into, source, tag, forecast }
    }
}

/// Where a message came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Rank of the sender.
    pub source: i32,
    /// Tag.
    pub tag: i32,
}

/// One rank's view of a communicator.
///
/// Each method named like an MPI function is one call of it, and no other method makes any. Arguments called
/// `forecast` say what the program expects to learn from the call: the paper communicator takes them for the
/// answer, the real one ignores them. Errors are left to MPI's error handler, which ends the job.
pub trait Communicator: Sized {
    /// A request handle; null once completed.
    type Request: Copy;
    /// A window handle.
    type Window;

    /// Makes a buffer of `count` elements.
    fn buffer(&self, kind: Kind, count: i32) -> Part;
    /// Fills a part with small non-negative integers that follow from `seed`.
    fn fill(&self, part: Part, seed: u64);
    /// Digest of a part's content.
    fn digest(&self, part: Part) -> u64;
    /// Keeps the processor busy for about so many seconds.
    fn compute(&self, seconds: f64);
    /// Says that the next call that waits for others will wait so many seconds for them.
    fn expect_wait(&self, _seconds: f64) {}
    /// Says that a function called from `caller` begins; use [`nested`].
    fn enter(&self, _caller: &'static Location<'static>) {}
    /// Says that the function ends.
    fn leave(&self) {}

    /// `MPI_Init`.
    #[track_caller]
    fn init(&self);
    /// `MPI_Init_thread` for calls from several threads at once.
    #[track_caller]
    fn init_thread(&self);
    /// `MPI_Query_thread`.
    #[track_caller]
    fn query_thread(&self);
    /// Runs `body` on so many threads at once, the calling one being number 0, each with the communicator and its own
    /// buffers; gives what each returns, by number. A thread calls what it is given after its first MPI call: threads are
    /// numbered by their first calls, so the next thread starts then.
    fn threads<T: Send>(&self, n: i32, body: impl Fn(&Self, i32, &dyn Fn()) -> T + Sync) -> Vec<T>;
    /// `MPI_Finalize`.
    #[track_caller]
    fn finalize(&self);
    /// `MPI_Wtime`.
    #[track_caller]
    fn wtime(&self) -> f64;
    /// `MPI_Comm_rank`.
    #[track_caller]
    fn rank(&self) -> i32;
    /// `MPI_Comm_size`.
    #[track_caller]
    fn size(&self) -> i32;
    /// `MPI_Comm_split`; no colour is `MPI_UNDEFINED`. The forecast is the new communicator's members, in order, as
    /// ranks in this one.
    #[track_caller]
    fn split(&self, color: Option<i32>, key: i32, forecast: &RankSeq) -> Option<Self>;
    /// `MPI_Comm_free`.
    #[track_caller]
    fn free(self);

    /// `MPI_Send`.
    #[track_caller]
    fn send(&self, from: Part, dest: i32, tag: i32);
    /// `MPI_Isend`.
    #[track_caller]
    fn isend(&self, from: Part, dest: i32, tag: i32) -> Self::Request;
    /// `MPI_Recv`.
    #[track_caller]
    fn recv(&self, receive: Receive) -> Envelope;
    /// `MPI_Irecv`.
    #[track_caller]
    fn irecv(&self, receive: Receive) -> Self::Request;
    /// `MPI_Sendrecv`.
    #[track_caller]
    fn sendrecv(&self, from: Part, dest: i32, tag: i32, receive: Receive) -> Envelope;
    /// `MPI_Probe`.
    #[track_caller]
    fn probe(&self, source: i32, tag: i32, forecast: Arrival) -> Envelope;
    /// `MPI_Wait`.
    #[track_caller]
    fn wait(&self, request: &mut Self::Request);
    /// `MPI_Waitall`.
    #[track_caller]
    fn waitall(&self, requests: &mut [Self::Request]);
    /// `MPI_Waitany`: position of the completed request; `None` if none is active. The forecast is such a position.
    #[track_caller]
    fn waitany(&self, requests: &mut [Self::Request], forecast: usize) -> Option<usize>;
    /// `MPI_Test`: whether the request is completed. The forecast says how often it is not, from this call on: on paper the
    /// call stands for all of these, or, if there are none, for the one that succeeds.
    #[track_caller]
    fn test(&self, request: &mut Self::Request, forecast: u32) -> bool;
    /// `MPI_Waitsome`: positions of the completed requests. The forecast is such a list.
    #[track_caller]
    fn waitsome(&self, requests: &mut [Self::Request], forecast: &[usize]) -> Vec<usize>;

    /// `MPI_Win_create` over a part, in units of its elements.
    #[track_caller]
    fn win_create(&self, part: Part) -> Self::Window;
    /// `MPI_Win_fence`.
    #[track_caller]
    fn win_fence(&self, window: &Self::Window);
    /// `MPI_Put` into a rank's window, from its `at`-th element on.
    #[track_caller]
    fn put(&self, window: &Self::Window, from: Part, target: i32, at: i32);
    /// `MPI_Get` from a rank's window, from its `at`-th element on.
    #[track_caller]
    fn get(&self, window: &Self::Window, into: Part, target: i32, at: i32);
    /// `MPI_Accumulate` into a rank's window, from its `at`-th element on.
    #[track_caller]
    fn accumulate(&self, window: &Self::Window, from: Part, target: i32, at: i32, op: Op);
    /// `MPI_Win_free`.
    #[track_caller]
    fn win_free(&self, window: Self::Window);

    /// `MPI_Barrier`.
    #[track_caller]
    fn barrier(&self);
    /// `MPI_Bcast`.
    #[track_caller]
    fn bcast(&self, data: Part, root: i32);
    /// `MPI_Reduce`.
    #[track_caller]
    fn reduce(&self, from: Part, into: Part, op: Op, root: i32);
    /// `MPI_Allreduce`.
    #[track_caller]
    fn allreduce(&self, from: Part, into: Part, op: Op);
    /// `MPI_Gather`: each rank's `from`, one after the other, in the root's `into`.
    #[track_caller]
    fn gather(&self, from: Part, into: Part, root: i32);
    /// `MPI_Gatherv` of `counts` elements per rank without gaps. Only the root's counts matter.
    #[track_caller]
    fn gatherv(&self, from: Part, into: Part, counts: &[i32], root: i32);
    /// `MPI_Allgather`.
    #[track_caller]
    fn allgather(&self, from: Part, into: Part);
    /// `MPI_Alltoallv` without gaps.
    #[track_caller]
    fn alltoallv(&self, from: Part, sends: &[i32], into: Part, receives: &[i32]);
}

/// Runs the body of a function that is called from several places: makes its calls distinct sites on paper, as they are
/// in a real stack. The function is `#[track_caller]`, and its body a closure, whose calls have places of their own.
#[track_caller]
pub fn nested<C: Communicator, T>(world: &C, body: impl FnOnce() -> T) -> T {
    world.enter(Location::caller());
    let out = body();
    world.leave();
    out
}
