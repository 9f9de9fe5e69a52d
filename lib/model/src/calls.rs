//! The call table: what each MPI function's parameters mean, and which integers a recorded call holds.
//!
//! One text table, `calls.txt`, lists every function with a stable number, its name and its parameters as
//! roles. The wrappers (generated from the standard's list and this table), the text form, statistics, signatures and
//! the replayer all read it. A recorded call is a sequence of *words* (`i64`), one group per [`Slot`] of its
//! row in row order: a scalar slot is one word; a list slot is its length followed by its elements.
//!
//! Values are the same under every MPI library (see [`crate::values`]): ranks are ranks in the call's
//! communicator, handles are indices into the trace's object tables, requests are slot numbers.

mod kind;
pub mod names;
mod parse;
pub mod roles;
mod table;
pub mod words;

pub use kind::Kind;
pub use table::{CallTable, TableError};

/// The table's text, for generators.
pub const TABLE: &str = include_str!("calls.txt");
/// The procedures of the MPI standard with the kinds of their parameters; its first lines say how it reads.
pub const STANDARD: &str = include_str!("calls/standard.txt");
/// The same of functions that the standard's list does not have.
pub const ADDED: &str = include_str!("calls/added.txt");

/// Stable number of an MPI function. Streams hold it; [`CallTable::get`] gives the row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct CallId(pub u16);

/// Numbers from here on are not in the table: functions of a header newer than the table, named by the
/// stream itself ([`crate::section::Tables::names`]).
pub const FIRST_UNKNOWN: u16 = 0xF000;

/// A kind of object that calls refer to by its index in the trace's table of that kind; -1 is the null handle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Object {
    /// Communicators.
    Comm,
    /// Groups.
    Group,
    /// Datatypes.
    Type,
    /// Reduction operations.
    Op,
    /// Windows.
    Win,
    /// Open files.
    File,
    /// Texts: names, keys and values.
    Text,
}

/// What the words of a slot mean: how they are printed, hashed and made symbolic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Meaning {
    /// A plain integer.
    Int,
    /// A number of elements, displacement or length.
    Count,
    /// Truth value, 0 or 1.
    Flag,
    /// A message tag, or [`crate::values::ANY_TAG`].
    Tag,
    /// A rank in the communicator or window of the call's first [`Object::Comm`] or [`Object::Win`] slot (the remote
    /// group's rank for an intercommunicator), or one of the negative values in [`crate::values`].
    Rank,
    /// An index into an object table.
    Ref(Object),
    /// A request slot number, -1 for a null request.
    Request,
    /// Number of an info object: the lowest that is free in the process when it is made, free again when it is freed;
    /// -1 for the null handle, or [`crate::values::INFO_ENV`].
    Info,
    /// A position in the list of the same call's `requests`.
    Position,
    /// Number of calls that the event stands for (1 or more): a poll series.
    Times,
}

impl Meaning {
    /// Whether its values may be stored in a symbolic form ([`crate::form`]).
    #[must_use]
    pub fn is_symbolic(self) -> bool {
        matches!(self, Self::Rank | Self::Tag | Self::Count | Self::Int)
    }
}

/// Which proof lane a slot's words are hashed into (see [`crate::lanes`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Lane {
    /// Function, order, and error class. Every call enters here.
    Call = 0,
    /// Call site.
    Site = 1,
    /// Destinations, sources, roots, resolved peers.
    Endpoint = 2,
    /// Counts, types, bytes.
    Count = 3,
    /// Tags.
    Tag = 4,
    /// Everything else.
    Rest = 5,
}

/// Number of lanes.
pub const LANES: usize = 6;

/// One recorded parameter (or part of one).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Name in the text and JSON forms.
    pub name: String,
    /// Length-prefixed list (`true`) or one word (`false`).
    pub list: bool,
    /// What the words mean.
    pub meaning: Meaning,
    /// The lane that proves it.
    pub lane: Lane,
}

impl Slot {
    /// Whether it has an object that the call makes.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.name.starts_with("new")
    }
    /// Whether it has an object that the call frees or closes.
    #[must_use]
    pub fn is_freed(&self) -> bool {
        self.name.starts_with("free")
    }
    /// The kind of object, if rank slots of the call may be ranks in the one that this slot refers to.
    #[must_use]
    pub fn base(&self) -> Option<Object> {
        match self.meaning {
            Meaning::Ref(o @ (Object::Comm | Object::Win)) if !self.list => Some(o),
            _ => None,
        }
    }
}

/// How many elements an array parameter has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Length {
    /// Not an array.
    None,
    /// The value of the C parameter with this index.
    Param(usize),
    /// A literal number.
    Fixed(usize),
    /// Size of the communicator's peer group.
    Comm,
    /// Number of dimensions of the communicator's cartesian topology.
    Cart,
    /// The last element of the `index` array (`MPI_Graph_create`).
    Edges,
    /// The sum of the `degrees` array (`MPI_Dist_graph_create`).
    Sum,
    /// In-degree of the communicator's topology.
    InDegree,
    /// Out-degree of the communicator's topology.
    OutDegree,
}

/// One C parameter: its role decides how the recorder reads it and which slots it makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name in the table.
    pub name: String,
    /// The role's word in the table. The roles:
    ///
    /// | role | C parameter | slots |
    /// |---|---|---|
    /// | `_` | anything | none |
    /// | `inplace` | buffer | flag `inplace`: 1 if it is `MPI_IN_PLACE` |
    /// | `count`, `int`, `color`, `key`, `aint`, … | integer | one word |
    /// | `dest`, `source`, `root`, `leader`, `peer` | rank | one word, normalised |
    /// | `tag` | tag | one word, normalised |
    /// | `comm`, `group`, `type`, `op`, `win`, `file` | handle | table index |
    /// | `freecomm`, … | handle, in and out | table index before the call |
    /// | `newcomm`, …, `outtype` | handle, out | table index; -1 for a null handle |
    /// | `info`, `freeinfo`, `newinfo` | info object | its number |
    /// | `text`, `outtext` | string | index of the text, -1 for a null pointer (`outtext`: if the call says that there is none) |
    /// | `buflen` | length, in and out | `buflen` before the call, `length` after it |
    /// | `target` | rank in the window | one word, normalised |
    /// | `targetdisp` | displacement in the target's window | one word; in a dynamic window, where it is an address, relative to the first that the caller used with that window and target |
    /// | `origincount`, `origintype` | ignored with `MPI_NO_OP` | 0 and -1 there |
    /// | `assert`, `amode`, `outamode` | sum of constants | bits in the order of [`crate::values::ASSERT`], [`crate::values::AMODE`]; others of the library's 32 bits higher up |
    /// | `threadlevel`, `outthreadlevel` | level of thread support | 0 for `MPI_THREAD_SINGLE` to 3 for `MPI_THREAD_MULTIPLE` |
    /// | `locktype`, `whence` | constant | position in [`crate::values::LOCK_TYPE`], [`crate::values::WHENCE`] |
    /// | `rootcount`, `roottype`, `rootcounts`, `rootdispls`, `roottext`, `roottexts[X]`, `rootinfo` | significant at the root only | 0, -1 or an empty list elsewhere |
    /// | `counts[X]`, `ints[X]`, `flags[X]`, `types[X]`, … | array | list |
    /// | `displs[X]`, `rootdispls[X]` | array | list; empty if it is the exclusive prefix sum of the counts before it |
    /// | `addresses[X]` | `MPI_Aint` array | list, relative to the smallest element if that is an absolute address (above 2^32), else as given |
    /// | `keyval`, `errhandler`, `session` | handle | its number: the lowest free one when it was made, or one that stands for a predefined object ([`crate::values::FIRST_NAMED`]) |
    /// | `newkeyval`, `freekeyval`, … | the same, out; in and out | the same |
    /// | `error`, `outerror`, `errorclass`, `outerrorclass` | error code or class | the class, numbered as the class of a call; 0 is success |
    /// | `outcombiner` | combiner, out | position in [`crate::values::COMBINERS`] |
    /// | `contents` | types, out, of `MPI_Type_get_contents` | list of table indices |
    /// | `flag`, `outint`, `outints[X]`, … | out | read after the call |
    /// | `newrequest` | request, out | request slot |
    /// | `startrequest`, `freerequest`, `cancelrequest`, `queryrequest` | request | request slot |
    /// | `requests[X]` | requests, in and out | list of request slots, nulls -1 |
    /// | `completed` | status or statuses | four lists: `completed` (positions in `requests`), and per completed receive `source`, `tag`, `bytes` ([`crate::values::NONE`] for what is not a receive; `bytes` also of reads and writes of files) |
    /// | `status` | status of a receive or probe | `rsource`, `rtag` (NONE unless the call named a wildcard), `bytes` (-1 if unknown) |
    /// | `iostatus` | status of a read or write | `bytes` (-1 if unknown) |
    /// | `newmessage`, `message` | matched-probe message | request slot number of the message |
    pub role: String,
    /// Length of an array.
    pub length: Length,
}

/// Properties of a row (after the `;`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Properties {
    /// May fail and be repeated; has a `times` slot.
    pub poll: bool,
    /// Every call repeats the one before (`MPI_Wtime`); has a `times` slot.
    pub fold: bool,
    /// Starts an operation.
    pub start: bool,
    /// Needs no other process.
    pub local: bool,
    /// Recorded by name only.
    pub opaque: bool,
    /// Recorded, but not made again by a replay.
    pub unplayed: bool,
    /// Only tells the caller who or where it is, or who its neighbours are: nothing that others could see.
    pub asks: bool,
    /// Works on files: made again by a replay only where it is given a place for them.
    pub files: bool,
}

/// One row of the call table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Stable number.
    pub id: CallId,
    /// MPI's name.
    pub name: String,
    /// The C parameters, in order.
    pub params: Vec<Param>,
    /// The recorded words, in order: parameters first to last, then `times` for poll and fold rows.
    pub slots: Vec<Slot>,
    /// What it does.
    pub kind: Kind,
    /// Properties.
    pub properties: Properties,
    /// Number of the function that this one is like, or its own.
    pub base_id: CallId,
    /// The function whose roles these are, for a row that says `like` one: the same call with other C types (a
    /// large-count function) or under an older name.
    pub like: Option<String>,
}

impl Row {
    /// Name of the function that this one is like, or its own: what it does, whatever its C types.
    #[must_use]
    pub fn base(&self) -> &str {
        self.like.as_deref().unwrap_or(&self.name)
    }
    /// Index of the slot with this name.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.slots.iter().position(|s| s.name == name)
    }
    /// Index of the first slot that refers to a communicator.
    #[must_use]
    pub fn comm_slot(&self) -> Option<usize> {
        self.slots.iter().position(|s| s.meaning == Meaning::Ref(Object::Comm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_table_parses_and_numbers_are_stable() {
        let t = CallTable::parse(TABLE).unwrap();
        assert_eq!(t.by_name("MPI_Send").unwrap().id, CallId(20));
        assert_eq!(t.get(CallId(101)).unwrap().name, "MPI_Bcast");
    }

    #[test]
    fn slots_follow_parameters() {
        let row = CallTable::builtin().by_name("MPI_Testany").unwrap();
        let names: Vec<_> = row.slots.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["n", "requests", "flag", "completed", "source", "tag", "bytes", "times"]);
        assert_eq!(row.params[1].length, Length::Param(0));
    }

    #[test]
    fn kinds_agree_with_parameters() {
        let requests = |k| matches!(k, Kind::Free | Kind::Complete | Kind::Restart);
        let memory = |k| matches!(k, Kind::Buffer | Kind::WinAttach | Kind::TypeLookup);
        let local = |k| requests(k) || memory(k) || matches!(k, Kind::Other | Kind::Parent);
        for row in CallTable::builtin().rows() {
            let has = |name| row.slot(name).is_some();
            let (name, kind) = (&row.name, row.kind);
            assert!(!row.properties.local || local(kind), "{name} is local and {kind:?}");
            let sends = matches!(kind, Kind::Send | Kind::SyncSend | Kind::SendReceive);
            assert_eq!(has("dest") && has("comm") && !row.properties.local, sends, "{name}: {kind:?}");
            let accesses = matches!(kind, Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap);
            assert_eq!(has("targetdisp"), accesses, "{name}: {kind:?}");
            assert_eq!(has("completed"), kind == Kind::Complete, "{name}: {kind:?}");
            assert_eq!(
                has("newcomm") && has("ndims") || has("remain"),
                matches!(kind, Kind::Cart | Kind::CartSub),
                "{name}: {kind:?}"
            );
            let rooted = matches!(kind, Kind::Bcast | Kind::Gather | Kind::Scatter | Kind::Reduce);
            assert_eq!(has("root") && !row.properties.unplayed, rooted, "{name}: {kind:?}");
            let file = matches!(kind, Kind::Read | Kind::Write);
            assert!(!(has("file") && has("bytes")) || file || name.ends_with("_end"), "{name}: {kind:?}");
        }
    }

    #[test]
    fn a_row_like_another_has_its_roles() {
        let t = CallTable::parse("9 B_c like B\n3 B _ count ; poll send\n4 C opaque\n5 C_c like C").unwrap();
        let (c, b) = (t.get(CallId(9)).unwrap(), t.by_name("B").unwrap());
        assert_eq!((&c.params, &c.slots, c.properties), (&b.params, &b.slots, b.properties));
        assert_eq!((c.kind, b.kind), (Kind::Send, Kind::Send));
        assert_eq!((c.name.as_str(), c.base(), b.base()), ("B_c", "B", "B"));
        assert_eq!((c.base_id, b.base_id), (CallId(3), CallId(3)));
        assert!(t.by_name("C_c").unwrap().properties.opaque);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, part) in [
            ("1 A x", "line 1: unknown role x"),
            ("1 A _\n1 B _", "line 2: B is listed twice"),
            ("x A", "x is not a call number"),
            ("1 A ints[n]", "n is no parameter"),
            ("1 A _ ; quick", "unknown property quick"),
            ("1 A _\n2 B like C", "line 2: C is not listed"),
            ("1 A _\n2 B like C\n3 C like A", "line 2: C is like another itself"),
            ("1 A _\n2 B like A ; local", "B has the properties of A"),
        ] {
            let e = CallTable::parse(text).unwrap_err().to_string();
            assert!(e.contains(part), "{e}");
        }
    }
}
