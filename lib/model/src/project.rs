//! Reading one rank back out of a section, call by call.

use crate::num::{narrow, saturate};
use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::calls::{CallTable, Meaning, Object, Slot};
use crate::frequencies::{Draw, Frequencies, Values};
use crate::ints::{Cursor, Sealed};
use crate::objects::{Comm, SharedObject};
use crate::requests::Requests;
use crate::section::{Elastic, Entry, Form, Own, Section, Sym, Tables, Thread};
use crate::tree::{Counts, Found, Limits, Turn, Walk, WalkError};

/// The longest list that a call may have: lists are as long as communicators.
pub const LONGEST_LIST: i64 = 1 << 24;

/// Turns of loops that are looked at before a search goes through all calls.
const LOOKS: u64 = 1 << 20;

/// Why a section cannot be read back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The tree does not terminate sensibly.
    #[error("tree of rank {rank}")]
    Tree {
        /// The rank being read.
        rank: u32,
        /// What the walk met.
        #[source]
        source: WalkError,
    },
    /// A list length is negative or larger than any communicator.
    #[error("rank {rank}: call {index}: a list of length {len}")]
    Length {
        /// The rank being read.
        rank: u32,
        /// Position of the call's event on the rank.
        index: u64,
        /// The length found.
        len: i64,
    },
}

/// The calls of one rank and thread, in order. Memory does not depend on the number of calls.
#[derive(Debug)]
pub struct Projection<'a> {
    section: &'a Section,
    rank: u32,
    thread: u32,
    walk: Walk<'a, Vec<Source<'a>>>,
    symbols: Vec<Vec<SlotCursor<'a>>>,
    /// Who the rank is, per communicator or window, as met; the last apart, since call after call names the same.
    own: HashMap<(Object, i64), Own, FixedState>,
    last_own: Option<((Object, i64), Own)>,
    /// What is expected, if some values are stored as differences from that.
    requests: Option<Requests<'a>>,
    index: u64,
}

/// Reads the words of a slot. There is one per rank and slot, and each call reads several: it is small, and most stand for one
/// value.
#[derive(Debug)]
struct SlotCursor<'a> {
    values: Source<'a>,
    lens: Option<Box<Source<'a>>>,
    /// Values are other than they are stored: [`Projection::resolve`] turns them absolute.
    symbolic: bool,
    slot: &'static Slot,
    /// What the values are of.
    stream: &'a Sealed,
    form: &'a Form,
    /// Number of values that were turned absolute.
    read: u64,
    /// What values are drawn from, if they are, and for whom.
    drawn: Option<Box<(Frequencies, Own, Values)>>,
}

/// A stream that is read.
#[derive(Debug)]
enum Source<'a> {
    Constant(i64),
    Varying(Box<Cursor<'a>>),
}

impl<'a> Source<'a> {
    fn new(stream: &'a Sealed) -> Self {
        match stream.constant() {
            Some(value) => Self::Constant(value),
            None => Self::Varying(Box::new(stream.cursor())),
        }
    }

    #[inline]
    fn next(&mut self) -> i64 {
        match self {
            Self::Constant(value) => *value,
            Self::Varying(cursor) => cursor.next(),
        }
    }
}

/// Most counts of a tree are constant, too.
impl Counts for Vec<Source<'_>> {
    #[inline]
    fn next_count(&mut self, node: usize) -> i64 {
        self.get_mut(node).map_or(0, Source::next)
    }
}

impl Section {
    /// The calls of a rank's thread; `None` if the section does not hold it.
    #[must_use]
    pub fn project(&self, thread: usize, rank: u32) -> Option<Projection<'_>> {
        let t = self.threads.get(thread).filter(|t| t.ranks.contains(rank))?;
        let classes = self.classes_of(rank);
        let symbols = (0..self.symbols.len()).map(|s| self.slot_cursors(t, s, &classes)).collect();
        Some(Projection {
            section: self,
            rank,
            thread: narrow(thread),
            walk: Walk::new(&t.tree, t.counts.iter().map(|c| Source::new(stream(c, &classes))).collect()),
            symbols,
            own: HashMap::default(),
            last_own: None,
            requests: predicted(t).then(|| Requests::new(self, rank)),
            index: 0,
        })
    }

    /// The symbols of the calls of a rank's thread, in order, without their words; `None` if the section does not hold it.
    #[must_use]
    pub fn symbols_of(&self, thread: usize, rank: u32) -> Option<Walk<'_>> {
        let t = self.threads.get(thread).filter(|t| t.ranks.contains(rank))?;
        Some(walk(t, &self.classes_of(rank)))
    }

    /// The call of a rank's thread at whose end the weights of all up to it exceed `target`; see [`Walk::seek`]. `None` also if the
    /// section does not hold the thread. `most` runs of equal calls are gone through where they follow no pattern.
    ///
    /// # Errors
    ///
    /// If the tree is malformed in a way that its decoder cannot see, or the search takes too long.
    pub fn seek(
        &self,
        thread: usize,
        rank: u32,
        weights: &[u64],
        target: u128,
        most: u64,
    ) -> Result<Option<Found<'_>>, Error> {
        let Some(t) = self.threads.get(thread).filter(|t| t.ranks.contains(rank)) else { return Ok(None) };
        let classes = self.classes_of(rank);
        let counts = t.counts.iter().map(|c| stream(c, &classes).cursor()).collect();
        Walk::seek(&t.tree, counts, weights, target, Limits { looks: LOOKS, runs: most })
            .map_err(|source| Error::Tree { rank, source })
    }

    /// The class of a rank in each partition.
    fn classes_of(&self, rank: u32) -> Vec<Option<usize>> {
        self.partitions.iter().map(|p| p.class_of(rank)).collect()
    }

    fn slot_cursors<'a>(&'a self, t: &'a Thread, s: usize, classes: &[Option<usize>]) -> Vec<SlotCursor<'a>> {
        let slots = CallTable::builtin().slots(self.symbols[s].call);
        let streams = t.params.get(s).map_or(&[][..], |p| &p[..]);
        let cursors = streams.iter().zip(slots).map(|(c, slot)| SlotCursor {
            slot,
            lens: c.lens.as_ref().map(|l| Box::new(Source::new(stream(l, classes)))),
            values: Source::new(stream(&c.values, classes)),
            stream: stream(&c.values, classes),
            symbolic: !matches!(c.values.form, Form::Absolute | Form::Predicted),
            form: &c.values.form,
            read: 0,
            drawn: None,
        });
        cursors.collect()
    }

    /// Who a rank is in a communicator or window of its table: its rank in the local group, among as many as there are
    /// peers. `None` if it is not known there. For index -1 (no communicator) its rank in the world.
    #[must_use]
    pub fn own(&self, base: (Object, i64), rank: u32) -> Option<Own> {
        let (kind, index) = base;
        if index < 0 {
            let world = Tables::find(&self.tables.comms, 0, rank);
            let size = world.map_or(0, |w| narrow(w.content.members.len()));
            return Some(Own { me: i64::from(rank), size });
        }
        match kind {
            Object::Win => among_members(&Tables::find(&self.tables.wins, index, rank)?.content, rank),
            _ => among(&Tables::find(&self.tables.comms, index, rank)?.content, rank),
        }
    }

    /// [`Section::own`] of all ranks that are known in a communicator or window of the table. *Cost:* O(ranks).
    #[must_use]
    pub fn owns(&self, base: (Object, i64)) -> HashMap<u32, Own> {
        fn all<T>(table: &[Entry<T>], index: i64, own: impl Fn(&T, u32) -> Option<Own>) -> HashMap<u32, Own> {
            let mut out = HashMap::new();
            let entry = usize::try_from(index).ok().and_then(|i| table.get(i));
            for (ranks, object) in entry.iter().flat_map(|e| &e.of) {
                for rank in ranks.iter() {
                    // The first object of a rank counts, as where one rank is looked up.
                    out.entry(rank).or_insert_with(|| own(&object.content, rank));
                }
            }
            out.into_iter().filter_map(|(rank, own)| Some((rank, own?))).collect()
        }
        match base {
            (Object::Win, index) => all(&self.tables.wins, index, among_members),
            (_, index) => all(&self.tables.comms, index, among),
        }
    }
}

/// Who a rank is among the members of a communicator.
fn among(comm: &Comm, rank: u32) -> Option<Own> {
    let me = i64::try_from(comm.members.position(i64::from(rank))?).ok()?;
    Some(Own { me, size: i64::try_from(comm.peers().len()).ok()? })
}

/// Who a rank is among the members of a window.
fn among_members(of: &SharedObject, rank: u32) -> Option<Own> {
    let me = i64::try_from(of.members.position(i64::from(rank))?).ok()?;
    Some(Own { me, size: i64::try_from(of.members.len()).ok()? })
}

impl SlotCursor<'_> {
    /// What is drawn from by a caller.
    fn values_of(&mut self, own: Own) -> &Values {
        let (form, ranks) = (*self.form, self.slot.meaning == Meaning::Rank);
        let stream = self.stream;
        let new = || {
            let of = Frequencies::from_stream(stream).unwrap_or_default();
            let values = Values::new(&of, form, own, ranks);
            Box::new((of, own, values))
        };
        let (of, before, values) = &mut **self.drawn.get_or_insert_with(new);
        if *before != own {
            (*before, *values) = (own, Values::new(of, form, own, ranks));
        }
        values
    }
}

/// The stream that a rank reads; a rank outside all classes reads zeros.
pub(crate) fn stream<'a>(e: &'a Elastic, classes: &[Option<usize>]) -> &'a Sealed {
    let class = classes.get(e.partition as usize).copied().flatten();
    class.and_then(|c| e.streams.get(c)).unwrap_or(Sealed::zero())
}

/// The walk of a rank, by its classes.
fn walk<'a>(t: &'a Thread, classes: &[Option<usize>]) -> Walk<'a> {
    Walk::new(&t.tree, t.counts.iter().map(|c| stream(c, classes).cursor()).collect())
}

/// Whether values of a thread are stored as differences from what is expected.
fn predicted(t: &Thread) -> bool {
    t.params.iter().flatten().any(|s| s.values.form == Form::Predicted)
}

/// What a call's symbolic words refer to: its first communicator or window word, communicator -1 if it names none.
#[must_use]
pub fn base_word(slots: &[Slot], words: &[i64]) -> (Object, i64) {
    let mut rest = words;
    for s in slots {
        let Some((&first, tail)) = rest.split_first() else { break };
        rest = tail;
        if s.list {
            rest = rest.get(saturate(first)..).unwrap_or(&[]);
        } else if let Some(kind) = s.base() {
            return (kind, first);
        }
    }
    (Object::Comm, -1)
}

impl Projection<'_> {
    /// The next call: its symbol, and its words put into `words` (cleared first), as recorded. `None` at the end.
    ///
    /// # Errors
    ///
    /// If the section is malformed in a way that its decoder cannot see.
    pub fn next_call(&mut self, words: &mut Vec<i64>) -> Result<Option<Sym>, Error> {
        words.clear();
        let rank = self.rank;
        let Some(sym) = self.walk.next_symbol().map_err(|source| Error::Tree { rank, source })? else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        let Some(slots) = self.symbols.get_mut(sym as usize) else { return Ok(Some(sym)) };
        let mut symbolic = false;
        for c in slots.iter_mut() {
            let mut n = 1;
            if let Some(lens) = &mut c.lens {
                n = lens.next();
                if !(0..=LONGEST_LIST).contains(&n) {
                    return Err(Error::Length { rank, index, len: n });
                }
                words.push(n);
            }
            for _ in 0..n {
                words.push(c.values.next());
            }
            symbolic |= c.symbolic;
        }
        if symbolic {
            self.resolve(sym, words);
        }
        if let Some(requests) = &mut self.requests {
            let slots = &self.symbols[sym as usize];
            requests.next_call(sym, words, |slot, word, expected| {
                if slots.get(slot).is_some_and(|c| *c.form == Form::Predicted) {
                    *word = word.wrapping_add(expected);
                }
            });
        }
        Ok(Some(sym))
    }

    /// Number of the calls that are left. *Cost:* that of the runs of equal symbols among them.
    ///
    /// # Errors
    ///
    /// As [`Projection::next_call`], but for the words.
    pub fn remaining(mut self) -> Result<u64, Error> {
        let (rank, mut calls) = (self.rank, 0u64);
        while let Some((_, n)) = self.walk.next_run().map_err(|source| Error::Tree { rank, source })? {
            calls = calls.saturating_add(n.unsigned_abs());
        }
        Ok(calls)
    }

    /// Where the last call is in the outermost loop around it.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        self.walk.turn()
    }

    /// Position of the next event on the rank.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Turns symbolic values into absolute ones.
    fn resolve(&mut self, sym: Sym, words: &mut [i64]) {
        let slots = CallTable::builtin().slots(self.section.symbols[sym as usize].call);
        let base = base_word(slots, words);
        let (section, rank) = (self.section, self.rank);
        let own = match self.last_own {
            Some((last, own)) if last == base => own,
            _ => *self.own.entry(base).or_insert_with(|| section.own(base, rank).unwrap_or_default()),
        };
        self.last_own = Some((base, own));
        let mut rest = words;
        let (symbol, thread) = (section.symbols[sym as usize], self.thread);
        for (slot, c) in (0u32..).zip(&mut self.symbols[sym as usize]) {
            let n = match (c.slot.list, rest.split_first()) {
                (true, Some((&n, _))) => {
                    rest = rest.split_first_mut().map_or(&mut [], |(_, t)| t);
                    saturate::<usize>(n)
                }
                _ => 1,
            };
            let (mine, tail) = rest.split_at_mut(n.min(rest.len()));
            rest = tail;
            if !c.symbolic {
                continue;
            }
            if matches!(c.form, Form::Histogram(_)) {
                let call = u64::from(symbol.call.0) | u64::from(symbol.error) << 16;
                let site = section.sites.get(symbol.site).map_or(0, |s| s.id);
                for w in mine {
                    let draw = Draw { rank, thread, call, site, slot, n: c.read };
                    *w = c.values_of(own).draw(draw.number());
                    c.read += 1;
                }
            } else {
                for w in mine {
                    *w = c.form.value_at(*w, own, c.read);
                    c.read += 1;
                }
            }
        }
    }
}

/// One call of a projection with its words, for iteration where speed does not matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Symbol.
    pub sym: Sym,
    /// Words in slot order, as recorded.
    pub words: Vec<i64>,
}

impl Iterator for Projection<'_> {
    type Item = Result<Call, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        let mut words = Vec::new();
        match self.next_call(&mut words) {
            Ok(Some(sym)) => Some(Ok(Call { sym, words })),
            Ok(None) => None,
            Err(e) => Some(Err(e)),
        }
    }
}
