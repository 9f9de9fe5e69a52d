//! What the calls of each call path come to on each rank, for formats that hold sums.

use std::collections::HashMap;

use anyhow::Result;
use foldhash::fast::FixedState;
use st_explain::WaitKind;
use st_model::calls::CallId;
use st_model::num::{Exact as _, narrow, saturate};

use crate::format::Call;
use crate::frames::functions;
use crate::losses::Losses;
use crate::trace::Trace;
use crate::waits::{is_local, name, of_calls};

/// A function as the last of a call path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Number of the path that calls it; those of callers are lower.
    pub(crate) caller: Option<u32>,
    pub(crate) function: String,
    /// A function of MPI, and not of the program.
    pub(crate) is_mpi: bool,
    /// It has nothing to do with other ranks.
    pub(crate) is_local: bool,
}

/// Sums of one call path on one rank.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sums {
    /// Calls; of functions of the program nothing is known of these.
    pub(crate) visits: u64,
    /// Time in calls, ns; of functions of the program, what they compute before calls that they make.
    pub(crate) ns: u64,
    /// Bytes as st-stat counts them.
    pub(crate) sent: u64,
    /// Bytes as st-stat counts them.
    pub(crate) received: u64,
    /// How much of the time is waiting for others, ns, if that is asked for.
    pub(crate) waits: u64,
}

/// The profile of a trace.
///
/// *Cost:* O(1) per call; memory for each call path on each rank.
#[derive(Debug)]
pub(crate) struct Profile {
    trace: Trace,
    /// World ranks of which calls are written, ascending.
    pub(crate) ranks: Vec<u32>,
    paths: Vec<Path>,
    numbers: HashMap<(Option<u32>, String), u32, FixedState>,
    /// By call site and function: the path, and that of the function of the program that makes the call.
    known: HashMap<(u32, CallId), (u32, u32), FixedState>,
    /// By path and rank.
    sums: HashMap<(u32, u32), Sums, FixedState>,
    /// The same of waits, by kind.
    waits: HashMap<(u32, u32, WaitKind), u64, FixedState>,
    /// When each thread's last call ended.
    last: Vec<Option<i64>>,
    losses: Losses,
}

impl Profile {
    pub(crate) fn new(trace: &Trace) -> Self {
        let mut ranks: Vec<u32> = trace.lanes.iter().map(|lane| lane.rank).collect();
        ranks.dedup();
        let program = trace.whole.header.program.rsplit('/').next().unwrap_or_default();
        let program = if program.is_empty() { "program" } else { program };
        let root = Path { caller: None, function: program.to_owned(), is_mpi: false, is_local: true };
        Self {
            ranks,
            numbers: [((None, root.function.clone()), 0)].into_iter().collect(),
            paths: vec![root],
            known: HashMap::default(),
            sums: HashMap::default(),
            waits: HashMap::default(),
            last: vec![None; trace.lanes.len()],
            losses: Losses::default(),
            trace: trace.clone(),
        }
    }

    /// All call paths, by number. The first is the program.
    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Sums of a path on a rank.
    pub(crate) fn of(&self, path: u32, rank: u32) -> Sums {
        self.sums.get(&(path, rank)).copied().unwrap_or_default()
    }

    /// How long a rank waits on a path in one way, ns.
    pub(crate) fn waits(&self, path: u32, rank: u32, kind: WaitKind) -> u64 {
        self.waits.get(&(path, rank, kind)).copied().unwrap_or_default()
    }

    /// Adds a call, and the computation before it.
    pub(crate) fn add(&mut self, call: &Call<'_>) {
        let (path, program) = self.path(call.site, call.event.symbol.call);
        let sums = self.sums.entry((path, call.lane.rank)).or_default();
        sums.visits = sums.visits.saturating_add(call.event.calls());
        sums.sent = sums.sent.saturating_add(call.sent);
        sums.received = sums.received.saturating_add(call.received);
        let last = self.last.get_mut(call.at.to_usize());
        let Some((enter, exit)) = call.times else {
            if let Some(last) = last {
                *last = None;
            }
            return self.losses.add("calls whose times are not known", call.event.calls());
        };
        sums.ns = sums.ns.saturating_add(saturate(exit.saturating_sub(enter)));
        // Between calls that are chosen others may lie.
        let before = last.and_then(|last| last.replace(exit)).filter(|_| self.trace.chosen.is_all());
        if let Some(before) = before {
            let sums = self.sums.entry((program, call.lane.rank)).or_default();
            sums.ns = sums.ns.saturating_add(saturate(enter.saturating_sub(before)));
        }
    }

    /// How often nobody knows whether calls of a path wait on a rank, since they may wait for ranks that are missing.
    pub(crate) fn unknown_waits(&self) -> u64 {
        if !self.trace.waits || self.trace.whole.missing().is_empty() {
            return 0;
        }
        let meets = |path: u32| self.paths.get(path.to_usize()).is_some_and(|path| !path.is_local);
        let unknown = self.sums.iter().filter(|((path, _), sums)| sums.waits == 0 && meets(*path));
        unknown.count().to_u64()
    }

    /// Adds waits, if they are asked for. What could not be summed up is returned.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub(crate) fn finish(&mut self) -> Result<Losses> {
        if self.trace.waits {
            let found = of_calls(&self.trace, &|_| Ok(()))?;
            for wait in &found.each {
                let Some(place) = found.places.get(wait.place) else { continue };
                let site = place.site.and_then(|id| self.trace.sites.number(id)).unwrap_or(u32::MAX);
                let (path, _) = self.path(site, place.call);
                let sums = self.sums.entry((path, wait.rank)).or_default();
                sums.waits = sums.waits.saturating_add(wait.ns);
                let of_kind = self.waits.entry((path, wait.rank, wait.kind)).or_default();
                *of_kind = of_kind.saturating_add(wait.ns);
            }
        }
        Ok(std::mem::take(&mut self.losses))
    }

    /// The path of a call: the functions on the stack of its site or, if they are not known, the site's place, and its own.
    /// Beside it that of the function that computes before: the innermost that is no wrapper of MPI.
    fn path(&mut self, site: u32, call: CallId) -> (u32, u32) {
        if let Some(known) = self.known.get(&(site, call)) {
            return *known;
        }
        let sites = self.trace.sites.clone();
        let mut callers = functions(&sites, site);
        if callers.is_empty() {
            callers.extend(Some(sites.place(site)).filter(|place| !place.is_empty()));
        }
        let own = sites.location(site).and_then(|location| location.function.as_deref());
        let (mut caller, mut program) = (0, None);
        for function in callers {
            caller = self.number(caller, function.to_owned(), None);
            program = if own == Some(function) { Some(caller) } else { program };
        }
        let path = self.number(caller, name(&self.trace, call), Some(call));
        let known = (path, program.unwrap_or(caller));
        self.known.insert((site, call), known);
        known
    }

    /// The number of a path; of a function of MPI with that, too.
    fn number(&mut self, caller: u32, function: String, mpi: Option<CallId>) -> u32 {
        let paths = &mut self.paths;
        *self.numbers.entry((Some(caller), function)).or_insert_with_key(|(caller, function)| {
            let (is_mpi, is_local) = (mpi.is_some(), mpi.is_none_or(is_local));
            paths.push(Path { caller: *caller, function: function.clone(), is_mpi, is_local });
            narrow(paths.len() - 1)
        })
    }
}
