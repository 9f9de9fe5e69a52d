//! What functions do.

/// What a function does with data and with other processes: a word after the `;` of its row.
///
/// Whether the call itself does it, or starts it, or only makes a persistent request for it, its row says otherwise
/// (property `start`, role `newrequest`); so does it whether there is one count for all partners or one for each (a list).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Kind {
    /// Nothing of the below.
    #[default]
    Other,
    /// Begins MPI.
    Init,
    /// Ends MPI.
    Finalize,
    /// Ends the job.
    Abort,
    /// Sends.
    Send,
    /// Sends, and is done when the receive has begun.
    SyncSend,
    /// Receives.
    Receive,
    /// Sends and receives.
    SendReceive,
    /// Finds a message, which it leaves in the queue.
    Probe,
    /// Finds a message, which it takes out of the queue.
    MatchedProbe,
    /// Receives a message that was found.
    MatchedReceive,
    /// Starts persistent requests.
    Restart,
    /// Frees a request.
    Free,
    /// Waits for requests, or tests them.
    Complete,
    /// Gives MPI memory for messages on their way.
    Buffer,
    /// All wait for all.
    Barrier,
    /// One to all.
    Bcast,
    /// All to one.
    Gather,
    /// One to all, to each its own.
    Scatter,
    /// All to all, to all the same.
    Allgather,
    /// All to all, to each its own.
    Alltoall,
    /// All to one, combined.
    Reduce,
    /// All to all, combined.
    Allreduce,
    /// All to all, combined, to each a part.
    ReduceScatter,
    /// To each what those up to it combine to.
    Scan,
    /// To each what those before it combine to.
    Exscan,
    /// To all neighbours the same.
    NeighborAllgather,
    /// To each neighbour its own.
    NeighborAlltoall,
    /// Makes a communicator, window or file, with all members of a communicator.
    Creation,
    /// Makes a communicator like another, with all members of it.
    Duplicate,
    /// Makes a communicator of two groups, with all members of both.
    Intercomm,
    /// Makes a communicator, with those alone who are to be its members.
    GroupCreation,
    /// Makes a communicator whose ranks form a grid.
    Cart,
    /// Makes communicators of the layers of a grid.
    CartSub,
    /// Makes a communicator with a graph that every member knows.
    Graph,
    /// Makes a communicator with a graph of which every member gives any edges.
    DistGraph,
    /// Makes a communicator with a graph of which every member gives its own edges.
    Adjacent,
    /// Makes a communicator with processes that began MPI apart.
    Connect,
    /// Tells of the communicator with those that began this job.
    Parent,
    /// Frees a communicator.
    CommFree,
    /// Closes a file.
    Close,
    /// `MPI_Win_fence`.
    WinFence,
    /// `MPI_Win_post`.
    WinPost,
    /// `MPI_Win_start`.
    WinStart,
    /// `MPI_Win_complete`.
    WinComplete,
    /// `MPI_Win_wait`, `MPI_Win_test`.
    WinWait,
    /// `MPI_Win_lock`, `MPI_Win_lock_all`.
    WinLock,
    /// `MPI_Win_free`.
    WinFree,
    /// Adds memory to a window.
    WinAttach,
    /// Puts data into another's window, or combines them with what is there.
    Put,
    /// Gets data from another's window.
    Get,
    /// Both in one.
    GetPut,
    /// As that, where the window has what is expected: hands over two elements.
    CompareSwap,
    /// Reads from a file: the call that ends it, of one in two halves.
    Read,
    /// Writes to a file: the call that begins it, of one in two halves.
    Write,
    /// Looks a datatype up that MPI has, or makes it at first.
    TypeLookup,
}

impl Kind {
    /// The kinds with their words.
    const WORDS: [(&str, Self); 55] = [
        ("init", Self::Init),
        ("finalize", Self::Finalize),
        ("abort", Self::Abort),
        ("send", Self::Send),
        ("ssend", Self::SyncSend),
        ("receive", Self::Receive),
        ("sendrecv", Self::SendReceive),
        ("probe", Self::Probe),
        ("mprobe", Self::MatchedProbe),
        ("mrecv", Self::MatchedReceive),
        ("restart", Self::Restart),
        ("free", Self::Free),
        ("complete", Self::Complete),
        ("buffer", Self::Buffer),
        ("barrier", Self::Barrier),
        ("bcast", Self::Bcast),
        ("gather", Self::Gather),
        ("scatter", Self::Scatter),
        ("allgather", Self::Allgather),
        ("alltoall", Self::Alltoall),
        ("reduce", Self::Reduce),
        ("allreduce", Self::Allreduce),
        ("reduce_scatter", Self::ReduceScatter),
        ("scan", Self::Scan),
        ("exscan", Self::Exscan),
        ("neighbor_allgather", Self::NeighborAllgather),
        ("neighbor_alltoall", Self::NeighborAlltoall),
        ("creation", Self::Creation),
        ("duplicate", Self::Duplicate),
        ("intercomm", Self::Intercomm),
        ("group_creation", Self::GroupCreation),
        ("cart", Self::Cart),
        ("cart_sub", Self::CartSub),
        ("graph", Self::Graph),
        ("dist_graph", Self::DistGraph),
        ("adjacent", Self::Adjacent),
        ("connect", Self::Connect),
        ("parent", Self::Parent),
        ("comm_free", Self::CommFree),
        ("close", Self::Close),
        ("win_fence", Self::WinFence),
        ("win_post", Self::WinPost),
        ("win_start", Self::WinStart),
        ("win_complete", Self::WinComplete),
        ("win_wait", Self::WinWait),
        ("win_lock", Self::WinLock),
        ("win_free", Self::WinFree),
        ("win_attach", Self::WinAttach),
        ("put", Self::Put),
        ("get", Self::Get),
        ("get_put", Self::GetPut),
        ("compare_swap", Self::CompareSwap),
        ("read", Self::Read),
        ("write", Self::Write),
        ("type_lookup", Self::TypeLookup),
    ];

    /// Whether it makes a communicator whose members have neighbours.
    #[must_use]
    pub fn is_topology(self) -> bool {
        matches!(self, Self::Cart | Self::CartSub | Self::Graph | Self::DistGraph | Self::Adjacent)
    }
    /// Whether it makes something with all members of a communicator, of any topology.
    #[must_use]
    pub fn is_creation(self) -> bool {
        matches!(self, Self::Creation | Self::Duplicate | Self::Intercomm) || self.is_topology()
    }
    /// The kind that a word of the table names.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(w, _)| *w == word).map(|(_, kind)| *kind)
    }
}
