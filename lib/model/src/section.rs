//! The trace model: what a set of ranks did, as structure, elastic parameters and payloads.
//!
//! A [`Section`] holds a set of ranks with one shared structure: one rank's own trace while it is recorded, many
//! ranks' after merging. Control is a tree of symbols and counts per thread; parameters lie beside it, one stream per
//! (symbol, slot) in execution order. Every count and parameter is [`Elastic`]: ranks with equal content form
//! classes. [`Section::project`] reads one rank back, exactly.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::calls::{CallId, Object};
use crate::columns::Column;
pub use crate::form::{Codes, Form, Own};
use crate::ints::Sealed;
use crate::lanes::LaneSum;
use crate::objects::{Comm, Content, Group, Named, Op, SharedObject, Text, Type};
use crate::ranklist::RankList;
use crate::sites::SiteTable;
use crate::sketch::Sketch;
use crate::slow::Slow;
use crate::tree::FlatTree;

/// Index of a symbol in its section.
pub type Sym = u32;

/// No predecessor: the first call of a thread.
pub const NO_SYM: Sym = Sym::MAX;

/// Any predecessor: of distributions that are kept whatever call came before, but none.
pub const ANY_SYM: Sym = Sym::MAX - 1;

/// The number of a symbol when symbols are numbered anew; [`NO_SYM`] and [`ANY_SYM`] stay.
#[must_use]
pub fn number_anew(sym: Sym, number: impl FnOnce(Sym) -> Sym) -> Sym {
    if matches!(sym, NO_SYM | ANY_SYM) { sym } else { number(sym) }
}

/// What the tree's leaves stand for: an MPI function called from a place, with an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol {
    /// The function.
    pub call: CallId,
    /// Index in the section's site table.
    pub site: u32,
    /// MPI error class; 0 is success. A call that failed has its inputs recorded, its outputs null.
    pub error: u32,
}

/// One stream per class of ranks: mostly there is one.
pub type Streams = SmallVec<[Sealed; 1]>;

/// A stream that differs between ranks: one sealed stream per class of a partition of the ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elastic {
    /// How values are written, for all classes.
    pub form: Form,
    /// Index into [`Section::partitions`]; ranks outside all classes read zeros, if they read the stream at all.
    pub partition: u32,
    /// One stream per class, in the partition's order.
    pub streams: Streams,
}

impl Elastic {
    /// One of a section's only class.
    pub fn only(stream: Sealed) -> Self {
        Self { form: Form::Absolute, partition: 0, streams: [stream].into() }
    }

    /// The stream that a rank reads; zeros if it is outside all classes.
    #[must_use]
    pub fn of_rank(&self, partitions: &[Partition], rank: u32) -> &Sealed {
        let class = partitions.get(self.partition as usize).and_then(|p| p.class_of(rank));
        class.and_then(|c| self.streams.get(c)).unwrap_or(Sealed::zero())
    }

    /// Whether it is one stream that all of these ranks read.
    #[must_use]
    pub fn is_of_all(&self, partitions: &[Partition], ranks: &RankList) -> bool {
        let partition = partitions.get(self.partition as usize);
        self.streams.len() == 1 && partition.is_some_and(|p| p.classes.first() == Some(ranks))
    }
}

/// Disjoint classes of ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Partition {
    /// The classes.
    pub classes: Vec<RankList>,
}

impl Partition {
    /// The class that a rank is in.
    #[must_use]
    pub fn class_of(&self, rank: u32) -> Option<usize> {
        self.classes.iter().position(|c| c.contains(rank))
    }
}

/// The streams of one slot of one symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotStreams {
    /// Lengths, for a list slot: one per execution.
    pub lens: Option<Elastic>,
    /// Values: one per execution, or the elements of all lists one after the other.
    pub values: Elastic,
}

/// An object table entry: what the index stands for on which ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry<T> {
    /// What made the object: the key on which tables of ranks are united.
    pub family: u128,
    /// The object, by rank.
    pub of: Vec<(RankList, Named<T>)>,
}

impl<T> Entry<T> {
    /// The object on a rank.
    #[must_use]
    pub fn on(&self, rank: u32) -> Option<&Named<T>> {
        self.of.iter().find(|(r, _)| r.contains(rank)).map(|(_, o)| o)
    }
}

/// The objects that words refer to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tables {
    /// Communicators; 0 is world and 1 is self in recorded traces.
    pub comms: Vec<Entry<Comm>>,
    /// Groups.
    pub groups: Vec<Entry<Group>>,
    /// Datatypes.
    pub types: Vec<Entry<Type>>,
    /// Reduction operations.
    pub ops: Vec<Entry<Op>>,
    /// Windows.
    pub wins: Vec<Entry<SharedObject>>,
    /// Files.
    pub files: Vec<Entry<SharedObject>>,
    /// Texts.
    pub texts: Vec<Entry<Text>>,
    /// Names of functions outside the call table, by number.
    pub names: BTreeMap<CallId, String>,
}

impl Tables {
    /// The object an index stands for on a rank; `None` for null and unknown indices.
    pub fn find<T>(table: &[Entry<T>], index: i64, rank: u32) -> Option<&Named<T>> {
        table.get(usize::try_from(index).ok()?)?.on(rank)
    }
    /// Lane word of the object: its name's low half, 0 for null, and the complement of the index if unknown.
    pub fn lane_word<T: Content>(table: &[Entry<T>], index: i64, rank: u32) -> u64 {
        if index < 0 {
            return 0;
        }
        Self::find(table, index, rank).map_or(!index.unsigned_abs(), Named::lane_word)
    }
    /// [`Tables::lane_word`] of an object of any kind.
    #[must_use]
    pub fn word_of(&self, object: Object, index: i64, rank: u32) -> u64 {
        match object {
            Object::Comm => Self::lane_word(&self.comms, index, rank),
            Object::Group => Self::lane_word(&self.groups, index, rank),
            Object::Type => Self::lane_word(&self.types, index, rank),
            Object::Op => Self::lane_word(&self.ops, index, rank),
            Object::Win => Self::lane_word(&self.wins, index, rank),
            Object::File => Self::lane_word(&self.files, index, rank),
            Object::Text => Self::lane_word(&self.texts, index, rank),
        }
    }
    /// Name for people of an object of any kind; `None` for null and unknown indices.
    #[must_use]
    pub fn label(&self, object: Object, index: i64, rank: u32) -> Option<String> {
        fn label<T: Content>(table: &[Entry<T>], index: i64, rank: u32) -> Option<String> {
            Tables::find(table, index, rank).map(Named::label)
        }
        match object {
            Object::Comm => label(&self.comms, index, rank),
            Object::Group => label(&self.groups, index, rank),
            Object::Type => label(&self.types, index, rank),
            Object::Op => label(&self.ops, index, rank),
            Object::Win => label(&self.wins, index, rank),
            Object::File => label(&self.files, index, rank),
            Object::Text => label(&self.texts, index, rank),
        }
    }
}

/// Compute and communication times of a symbol after a predecessor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathSketch {
    /// The event.
    pub sym: Sym,
    /// The event before it on the same thread, [`NO_SYM`] for the first, [`ANY_SYM`] if it is not told apart ([`Predecessors`]).
    pub pred: Sym,
    /// From the end of the predecessor to the start of the event, ns.
    pub compute: Sketch,
    /// From the start to the end of the event, ns.
    pub comm: Sketch,
}

/// Whether a thread's distributions tell apart which call came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Predecessors {
    /// One per event and the event before it.
    Each,
    /// One per event, but for the thread's first.
    Any,
}

impl Predecessors {
    /// How a thread's distributions are kept.
    #[must_use]
    pub fn of(sketches: &[PathSketch]) -> Self {
        if sketches.iter().any(|s| s.pred == ANY_SYM) { Self::Any } else { Self::Each }
    }
    /// The predecessor under which an event's distribution is found that comes after another one.
    #[must_use]
    pub fn pred(self, before: Sym) -> Sym {
        match self {
            Self::Any if before != NO_SYM => ANY_SYM,
            _ => before,
        }
    }
}

/// Per-rank sums of a symbol's times, quantised to 1 % ([`crate::sketch::bucket`]), in the order of the thread's ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankSums {
    /// The event.
    pub sym: Sym,
    /// Bucket of the rank's total compute time before the event.
    pub compute: Sealed,
    /// Bucket of the rank's total time in the event.
    pub comm: Sealed,
}

/// One thread index of the section's ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// Ranks that have this thread.
    pub ranks: RankList,
    /// Control: leaves are symbols.
    pub tree: FlatTree,
    /// Count per visit of the parent, per node of the tree (preorder).
    pub counts: Vec<Elastic>,
    /// Streams by symbol, then by slot of its row. Symbols that the thread never executes have none.
    pub params: Vec<Vec<SlotStreams>>,
    /// Proof.
    pub lanes: LaneSum,
    /// Time sketches, ordered by (sym, pred); empty if not recorded.
    pub sketches: Vec<PathSketch>,
    /// Per-rank sums; empty for a single rank, whose sketches hold them exactly.
    pub sums: Vec<RankSums>,
    /// In which order ranks were slow, by symbol: what merging keeps where it folds exact times.
    pub slow: Vec<Slow>,
    /// Exact times by rank, ascending; empty if not recorded.
    pub columns: Vec<(u32, Column)>,
}

impl Thread {
    /// Exact times of a rank, if they are there.
    #[must_use]
    pub fn column(&self, rank: u32) -> Option<&Column> {
        let at = self.columns.binary_search_by_key(&rank, |(of, _)| *of).ok()?;
        self.columns.get(at).map(|(_, column)| column)
    }
}

/// Where a thread of a rank stopped that did not come to the end of its program: killed, aborted, or left without
/// `MPI_Finalize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The rank.
    pub rank: u32,
    /// Its thread.
    pub thread: u32,
    /// Calls of the thread that the trace holds, each of a poll series counted.
    pub calls: u64,
    /// The last of them; [`NO_SYM`] if there is none.
    pub last: Sym,
    /// The call that the thread was in, after those; [`NO_SYM`] if it was in none. It is not among the calls.
    pub inside: Sym,
    /// When it entered that call, ns on the rank's clock; 0 if it was in none.
    pub entered: i64,
}

/// What a set of ranks did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Section {
    /// The world ranks.
    pub ranks: RankList,
    /// Host of each rank, as ranklists.
    pub hosts: Vec<(String, RankList)>,
    /// Call sites.
    pub sites: SiteTable,
    /// Objects.
    pub tables: Tables,
    /// Symbols.
    pub symbols: Vec<Symbol>,
    /// Partitions of the ranks, shared by all elastic streams.
    pub partitions: Vec<Partition>,
    /// Threads, by index.
    pub threads: Vec<Thread>,
    /// Threads of ranks that ended early, by rank and thread. Ranks not listed came to their end.
    pub ended: Vec<Ended>,
}

impl Section {
    /// The threads of a rank that ended early.
    #[must_use]
    pub fn ended_of(&self, rank: u32) -> &[Ended] {
        let from = self.ended.partition_point(|ended| ended.rank < rank);
        let to = self.ended.partition_point(|ended| ended.rank <= rank);
        self.ended.get(from..to).unwrap_or_default()
    }

    /// Whether every parameter can be read off its streams and the caller's own rank: none is a histogram, and none the
    /// difference from what is expected after the calls before. Sections of recorders are so.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let mut params = self.threads.iter().flat_map(|t| t.params.iter().flatten());
        !params.any(|s| matches!(s.values.form, Form::Histogram(_) | Form::Predicted))
    }

    /// Whether any call has an exact time.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.threads.iter().flat_map(|t| &t.columns).any(|(_, c)| c.events() > 0)
    }

    /// The parameters that are histograms ([`Form::Histogram`]): symbol, slot of its row, and its streams, by thread.
    pub fn histograms(&self) -> impl Iterator<Item = (Sym, usize, &SlotStreams)> {
        let params = self.threads.iter().flat_map(|t| (0..).zip(&t.params));
        let slots = params.flat_map(|(sym, slots)| (0..).zip(slots).map(move |(i, s)| (sym, i, s)));
        slots.filter(|(_, _, s)| matches!(s.values.form, Form::Histogram(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Comparison;

    #[test]
    fn what_is_there_of_a_rank_is_found_among_many() {
        let ended = |rank, thread| Ended { rank, thread, calls: 0, last: NO_SYM, inside: NO_SYM, entered: 0 };
        let ended = vec![ended(2, 0), ended(5, 0), ended(5, 1), ended(9, 0)];
        let section = Section { ended, ..Section::default() };
        let threads = |rank| section.ended_of(rank).iter().map(|e| e.thread).collect::<Vec<_>>();
        assert_eq!([2, 5, 9, 0, 6, 10].map(threads), [vec![0], vec![0, 1], vec![0], vec![], vec![], vec![]]);
        let column = |rank: u32| {
            let clock = Comparison { near: rank.into(), ..Comparison::default() };
            (rank, Column { clock, ..Column::default() })
        };
        let thread = Thread { columns: [1, 4, 7].map(column).to_vec(), ..Thread::default() };
        let near = |rank| thread.column(rank).map(|column| column.clock.near);
        assert_eq!([0, 1, 4, 5, 7, 8].map(near), [None, Some(1), Some(4), None, Some(7), None]);
    }
}
