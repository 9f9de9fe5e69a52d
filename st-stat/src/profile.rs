//! What a trace's calls add up to, per symbol and per rank.

use std::collections::BTreeSet;

use st_trace::calls::{CallTable, Meaning, Object, Row, Slot};
use st_trace::frequencies::Frequencies;
use st_trace::project::Error;
use st_trace::section::{Form, PathSketch, Section, Tables, Thread};
use st_trace::values::NONE;

/// Totals of one symbol over all ranks and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymTotals {
    /// Calls, poll series expanded.
    pub calls: u64,
    /// Bytes: what sends, collectives and one-sided calls hand over; what receives and completions got; what was read from
    /// and written to files.
    pub bytes: u128,
    /// Total time in the call, ns.
    pub time: u128,
    /// Longest single event in ns, with its rank.
    pub max: (u64, u32),
    /// Number of timed events; 0 if the trace holds no times.
    pub timed: u64,
}

impl SymTotals {
    /// Adds another symbol's totals.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.time += other.time;
        if other.timed > 0 && (self.timed == 0 || other.max.0 > self.max.0) {
            self.max = other.max;
        }
        self.timed += other.timed;
    }
}

/// Totals of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankTotals {
    /// World rank.
    pub rank: u32,
    /// Calls.
    pub calls: u64,
    /// World ranks that it sends to point to point, or whose windows it reaches.
    pub neighbours: BTreeSet<i64>,
    /// Bytes sent point to point and moved by one-sided calls.
    pub sent: u128,
}

/// The profile of a section.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// By symbol.
    pub symbols: Vec<SymTotals>,
    /// By rank, ascending. Where counts or peers are histograms, ranks have what they draw.
    pub ranks: Vec<RankTotals>,
    /// Bytes sent point to point and moved by one-sided calls by all ranks.
    pub sent: u128,
}

/// What the calls of a symbol and thread added up to as they were read: drawn, where parameters are histograms.
#[derive(Clone, Copy, Default)]
struct Drawn {
    /// Number of elements handed over.
    count: u128,
    /// Their bytes.
    sent: u128,
    /// Those of them that a rank got.
    arrived: u128,
    /// Bytes received.
    received: u128,
}

impl Profile {
    /// Reads a section. *Cost:* O(calls), for bytes depend on every call's parameters; times come from the sketches.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub fn of(section: &Section) -> Result<Self, Error> {
        let symbols = vec![SymTotals::default(); section.symbols.len()];
        let mut p = Self { symbols, ranks: Vec::new(), sent: 0 };
        let mut drawn = vec![vec![Drawn::default(); section.symbols.len()]; section.threads.len()];
        for rank in section.ranks.iter() {
            let mut totals = RankTotals { rank, ..RankTotals::default() };
            for (thread, drawn) in drawn.iter_mut().enumerate() {
                p.read(section, thread, rank, (&mut totals, drawn))?;
            }
            p.ranks.push(totals);
        }
        for (thread, drawn) in section.threads.iter().zip(&drawn) {
            p.total(section, thread, drawn);
        }
        for sketch in section.threads.iter().flat_map(|t| &t.sketches) {
            p.time(sketch);
        }
        Ok(p)
    }

    fn read(
        &mut self,
        section: &Section,
        thread: usize,
        rank: u32,
        (totals, drawn): (&mut RankTotals, &mut [Drawn]),
    ) -> Result<(), Error> {
        let Some(mut calls) = section.project(thread, rank) else { return Ok(()) };
        let table = CallTable::builtin();
        let rows: Vec<Option<&Row>> = section.symbols.iter().map(|s| table.get(s.call)).collect();
        let mut words = Vec::new();
        while let Some(sym) = calls.next_call(&mut words)? {
            let into = &mut self.symbols[sym as usize];
            let mut facts = Facts { times: 1, ..Facts::default() };
            if let Some(row) = rows[sym as usize] {
                facts.read(row, &words, section, rank);
            }
            into.calls += facts.times;
            totals.calls += facts.times;
            let drawn = &mut drawn[sym as usize];
            drawn.count += facts.count;
            drawn.sent += facts.sent;
            drawn.received += facts.received;
            if let Some(dest) = facts.dest {
                drawn.arrived += facts.sent;
                totals.sent += facts.sent;
                totals.neighbours.insert(dest);
            }
        }
        Ok(())
    }

    /// Adds up the bytes of a thread: exactly, also where counts are histograms.
    fn total(&mut self, section: &Section, thread: &Thread, drawn: &[Drawn]) {
        for (sym, (symbol, drawn)) in section.symbols.iter().zip(drawn).enumerate() {
            let slots = CallTable::builtin().slots(symbol.call);
            let params = thread.params.get(sym).map_or(&[][..], |p| p);
            // What the histogram of a slot adds up to, if it is one.
            let counted = |wanted: &dyn Fn(&Slot) -> bool| {
                let values = &params.get(slots.iter().position(wanted)?)?.values;
                let streams = matches!(values.form, Form::Histogram(_)).then_some(&values.streams)?;
                let sums = streams.iter().filter_map(Frequencies::from_stream).map(|f| f.sum());
                Some(sums.fold(0, u128::saturating_add))
            };
            let count = counted(&|s| s.meaning == Meaning::Count && s.name.contains("count"));
            let exact = |bytes: u128| match count {
                Some(count) if drawn.count > 0 => bytes.saturating_mul(count) / drawn.count,
                _ => bytes,
            };
            let received = counted(&|s| s.name == "bytes").unwrap_or(drawn.received);
            self.symbols[sym].bytes += exact(drawn.sent) + received;
            self.sent += exact(drawn.arrived);
        }
    }

    fn time(&mut self, s: &PathSketch) {
        let Some(into) = self.symbols.get_mut(s.sym as usize) else { return };
        into.time += s.comm.sum;
        into.timed += s.comm.count;
        if s.comm.max.0 > into.max.0 || into.timed == s.comm.count {
            into.max = s.comm.max;
        }
    }

    /// Calls of all symbols.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.symbols.iter().map(|s| s.calls).sum()
    }
}

/// What one call contributes.
#[derive(Debug, Default)]
struct Facts {
    times: u64,
    sent: u128,
    received: u128,
    dest: Option<i64>,
    count: u128,
    size_known: bool,
}

impl Facts {
    fn read(&mut self, row: &Row, words: &[i64], section: &Section, rank: u32) {
        let tables = &section.tables;
        let mut rest = words;
        let (mut dest, mut peers) = (None, None);
        let one_sided = row.slot("targetdisp").is_some();
        // Atomic operations on one element have no count.
        self.count = u128::from(one_sided && row.slot("targetcount").is_none());
        for slot in &row.slots {
            let Some((&first, tail)) = rest.split_first() else { break };
            let n = if slot.list { usize::try_from(first).unwrap_or(0) } else { 1 };
            let from = if slot.list { tail } else { rest };
            let mine = from.get(..n).unwrap_or(&[]);
            rest = from.get(n..).unwrap_or(&[]);
            match slot.meaning {
                Meaning::Times => self.times = mine.first().and_then(|&t| u64::try_from(t).ok()).unwrap_or(1),
                Meaning::Count if slot.name == "bytes" => self.received += sum(mine),
                Meaning::Count if slot.name.contains("count") && !self.size_known => self.count = sum(mine),
                // Datatype queries and constructors name types too, but hand no data over.
                Meaning::Ref(Object::Type) if !self.size_known && !slot.list && moves_data(row) => {
                    let size = mine.first().and_then(|&t| Tables::find(&tables.types, t, rank));
                    if one_sided && size.is_none() {
                        // Nothing goes out; what comes back is next.
                        continue;
                    }
                    self.sent += self.count * size.map_or(0, |t| u128::try_from(t.content.size).unwrap_or(0));
                    self.size_known = true;
                }
                Meaning::Rank
                    if slot.name == "dest" && row.slot("count").or(row.slot("sendcount")).is_some()
                        || slot.name == "target" && one_sided =>
                {
                    dest = mine.first().copied().filter(|&d| d >= 0);
                }
                Meaning::Ref(Object::Comm) if peers.is_none() => {
                    let comm = mine.first().and_then(|&c| Tables::find(&tables.comms, c, rank));
                    peers = comm.map(|c| c.content.peers());
                }
                Meaning::Ref(Object::Win) if peers.is_none() => {
                    let win = mine.first().and_then(|&w| Tables::find(&tables.wins, w, rank));
                    peers = win.map(|w| &w.content.members);
                }
                _ => {}
            }
        }
        self.dest = dest.and_then(|d| peers?.get(u64::try_from(d).ok()?));
    }
}

/// Whether a call's count and type say what it hands over: not a receive, nor a read or write of a file (their statuses say
/// more), nor a local call.
fn moves_data(row: &Row) -> bool {
    !row.properties.local
        && row.slot("bytes").is_none()
        && row.slot("file").is_none()
        && !(row.slot("source").is_some() && row.slot("dest").is_none())
        || row.slot("dest").is_some()
}

fn sum(words: &[i64]) -> u128 {
    words.iter().filter(|&&w| w != NONE).map(|&w| u128::try_from(w).unwrap_or(0)).sum()
}
