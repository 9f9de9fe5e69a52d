//! What an archive defines.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_import::{Definition, Importer};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::objects::{Comm, Group, SharedObject};
use st_model::ranks::RankSeq;

use super::amounts::Reach;
use crate::otf2::COMPILER;

/// `OTF2_GROUP_TYPE_COMM_LOCATIONS`.
const COMM_LOCATIONS: u8 = 4;
/// `OTF2_GROUP_TYPE_COMM_GROUP`.
const COMM_GROUP: u8 = 5;
/// `OTF2_GROUP_TYPE_COMM_SELF`.
const COMM_SELF: u8 = 6;

/// The communicator of all ranks.
pub(super) const WORLD: &str = "MPI_COMM_WORLD";
const SELF: &str = "MPI_COMM_SELF";

/// Ticks per second where nothing is said.
const TICKS: u64 = 1_000_000_000;

/// Definitions by number.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    is_own: bool,
    ticks: u64,
    offset: u64,
    /// ns since 1970, or all bits.
    date: u64,
    strings: HashMap<u32, String, FixedState>,
    /// Names of attributes.
    attributes: HashMap<u32, u32, FixedState>,
    nodes: HashMap<u32, u32, FixedState>,
    /// Node of each process.
    processes: HashMap<u32, u32, FixedState>,
    /// In the archive's order: number and process.
    locations: Vec<(u64, u32)>,
    /// Name of each region, and whether it is a function of the program, whatever it is called.
    regions: HashMap<u32, (u32, bool), FixedState>,
    /// Locations by rank.
    ranks: Vec<u64>,
    /// Members, as ranks; `None` of the caller alone.
    groups: HashMap<u32, Option<Vec<u64>>, FixedState>,
    /// In the archive's order: number, name, both groups, which are one but between groups, and what it is made of.
    comms: Vec<(u32, u32, [u32; 2], u32)>,
    /// Of those that are between two groups and yet in one: how many members the first has.
    sides: HashMap<u32, u32, FixedState>,
    /// Of windows: name and communicator.
    windows: HashMap<u32, [u32; 2], FixedState>,
    /// Those through which files are opened, with their names.
    paradigms: HashMap<u32, u32, FixedState>,
    /// Names of files.
    files: HashMap<u32, u32, FixedState>,
    /// Of files that are open: file, what it is opened through, communicator.
    handles: HashMap<u32, [u32; 3], FixedState>,
    /// Windows and open files as the trace has them ([`Definitions::share`]).
    shared_windows: HashMap<u32, Shared, FixedState>,
    shared_files: HashMap<u32, Shared, FixedState>,
}

/// A window or file as the trace has it.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    /// Name of its communicator, if it has one.
    pub(super) comm: Option<String>,
    /// Of a file.
    pub(super) path: String,
    /// Number of its members; 0 if it is not known.
    pub(super) members: usize,
}

/// A communicator.
#[derive(Clone, Debug)]
pub(super) struct Communicator {
    /// What it is called in the trace.
    pub(super) name: String,
    /// Both groups, as ranks in the world.
    sides: [Vec<u32>; 2],
    inter: bool,
    /// Positions are among the members of both groups.
    united: bool,
    /// Number of what it is made of; another number if that is not told.
    parent: u32,
}

impl Communicator {
    /// Whom a rank's operations reach.
    pub(super) fn reach(&self, rank: u32) -> Reach {
        let [a, b] = &self.sides;
        let first = a.iter().position(|r| *r == rank);
        let peers = if self.inter && first.is_some() { b } else { a };
        let me = first.or_else(|| b.iter().position(|r| *r == rank));
        let (peers, me) = (peers.len().to_u64(), me.unwrap_or(0).to_u64());
        Reach { peers, me, inter: self.inter, counted_once: false }
    }

    /// A position as MPI counts it: in its group.
    pub(super) fn position(&self, told: u32) -> u32 {
        let [a, b] = &self.sides;
        let second = told.checked_sub(narrow(a.len())).filter(|at| self.united && at.to_usize() < b.len());
        second.unwrap_or(told)
    }
}

/// The communicators of an archive, by number.
pub(super) type Communicators = HashMap<u32, Communicator, FixedState>;

/// What is known of an archive when its events are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) communicators: &'a Communicators,
}

/// What all communicators of a rank are made of that are made of any; `None` if that is not one.
pub(super) fn parent(of: &Communicators, rank: u32) -> Option<&Communicator> {
    let own = of.values().filter(|comm| comm.sides.iter().any(|side| side.contains(&rank)));
    let mut parents = own.filter_map(|comm| of.get(&comm.parent));
    let first = parents.next()?;
    parents.all(|other| other.name == first.name).then_some(first)
}

impl Definitions {
    pub(super) fn clock(&mut self, ticks: u64, offset: u64, date: u64) {
        (self.ticks, self.offset, self.date) = (ticks, offset, date);
    }
    pub(super) fn string(&mut self, number: u32, text: String) {
        self.strings.insert(number, text);
    }
    pub(super) fn define_attribute(&mut self, number: u32, name: u32) {
        self.attributes.insert(number, name);
    }
    pub(super) fn node(&mut self, number: u32, name: u32) {
        self.nodes.insert(number, name);
    }
    pub(super) fn process(&mut self, number: u32, node: u32) {
        self.processes.insert(number, node);
    }
    pub(super) fn location(&mut self, number: u64, process: u32) {
        self.locations.push((number, process));
    }
    pub(super) fn region(&mut self, number: u32, name: u32, paradigm: u8) {
        self.regions.insert(number, (name, paradigm == COMPILER));
    }
    pub(super) fn group(&mut self, number: u32, kind: u8, members: &[u64]) {
        match kind {
            COMM_LOCATIONS => self.ranks = members.to_vec(),
            COMM_GROUP => drop(self.groups.insert(number, Some(members.to_vec()))),
            COMM_SELF => drop(self.groups.insert(number, None)),
            _ => {}
        }
    }
    pub(super) fn comm(&mut self, number: u32, name: u32, groups: [u32; 2], parent: u32) {
        self.comms.push((number, name, groups, parent));
    }

    pub(super) fn define_window(&mut self, number: u32, name: u32, comm: u32) {
        self.windows.insert(number, [name, comm]);
    }
    pub(super) fn define_paradigm(&mut self, number: u32, name: u32) {
        self.paradigms.insert(number, name);
    }
    pub(super) fn define_file(&mut self, number: u32, name: u32) {
        self.files.insert(number, name);
    }
    pub(super) fn define_handle(&mut self, number: u32, of: [u32; 3]) {
        self.handles.insert(number, of);
    }

    /// The archive is one of st-convert.
    pub(super) fn own(&mut self, is_own: bool) {
        self.is_own = is_own;
    }

    /// Whether it is.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// What the property [`SIDES`](crate::otf2::SIDES) says.
    pub(super) fn sides(&mut self, told: &str) {
        let each = told.split(' ').filter_map(|one| one.split_once(':'));
        self.sides = each.filter_map(|(comm, of)| Some((comm.parse().ok()?, of.parse().ok()?))).collect();
    }

    /// Number of ranks.
    pub(super) fn world(&self) -> Option<u32> {
        u32::try_from(self.ranks.len()).ok().filter(|world| *world > 0)
    }

    /// When the run began, ns since 1970; 0 if that is not known.
    pub(super) fn started(&self) -> u64 {
        if self.date == u64::MAX { 0 } else { self.date }
    }

    /// A time in ns.
    pub(super) fn ns(&self, time: u64) -> i64 {
        let ticks = if self.ticks == 0 { TICKS } else { self.ticks };
        let since = u128::from(time.saturating_sub(self.offset));
        let ns = since * u128::from(TICKS) / u128::from(ticks);
        saturate(ns)
    }

    /// A string.
    pub(super) fn text(&self, number: u32) -> Option<&str> {
        self.strings.get(&number).map(String::as_str)
    }

    /// What an attribute is called.
    pub(super) fn attribute(&self, number: u32) -> Option<&str> {
        self.text(*self.attributes.get(&number)?)
    }

    /// What a region is called.
    pub(super) fn region_name(&self, region: u32) -> Option<&str> {
        self.strings.get(&self.regions.get(&region)?.0).map(String::as_str)
    }

    /// Whether a region is one that the compiler has marked: wrappers of MPI are called like its functions.
    pub(super) fn is_of_program(&self, region: u32) -> bool {
        self.regions.get(&region).is_some_and(|(_, of_program)| *of_program)
    }

    /// Locations whose process is a rank, with that, by rank.
    pub(super) fn located(&self) -> Vec<(u32, u64)> {
        let process: HashMap<u64, u32, FixedState> = self.locations.iter().copied().collect();
        let of = self.ranks.iter().zip(0u32..);
        let rank: HashMap<u32, u32, FixedState> =
            of.filter_map(|(location, rank)| Some((*process.get(location)?, rank))).collect();
        let mut all: Vec<_> =
            self.locations.iter().filter_map(|(number, of)| Some((*rank.get(of)?, *number))).collect();
        all.sort_unstable();
        all.dedup();
        // The first thread of a rank is the one that stands for it.
        all.sort_by_key(|(rank, number)| (*rank, self.ranks.get(rank.to_usize()) != Some(number)));
        all
    }

    /// Says on which nodes ranks are.
    pub(super) fn hosts(&self, to: &mut Importer) {
        let process: HashMap<u64, u32, FixedState> = self.locations.iter().copied().collect();
        for (location, rank) in self.ranks.iter().zip(0u32..) {
            let node = process.get(location).and_then(|of| self.nodes.get(self.processes.get(of)?));
            if let Some(name) = node.and_then(|name| self.strings.get(name)) {
                to.host(name, [rank]);
            }
        }
    }

    /// The communicators, by number, each of which the trace is told of.
    pub(super) fn communicators(&self, to: &mut Importer) -> Communicators {
        let (mut all, mut names) = (HashMap::default(), HashSet::new());
        for (number, name, groups, parent) in &self.comms {
            let mut inter = groups[0] != groups[1];
            let members = groups.map(|group| self.groups.get(&group));
            let called = self.strings.get(name).filter(|name| !name.is_empty()).cloned();
            let mut called = called.unwrap_or_else(|| format!("communicator {number}"));
            let mut sides =
                members.map(|m| m.and_then(Option::as_ref).map_or(Vec::new(), |m| self.in_range(m)));
            let first = self.sides.get(number).map(|first| first.to_usize()).filter(|_| !inter);
            let united = first.is_some_and(|first| first < sides[0].len());
            if let Some(first) = first.filter(|_| united) {
                inter = true;
                sides[1] = sides[0].split_off(first);
            }
            if members[0].is_some_and(Option::is_none) {
                called = SELF.into();
            } else if called.contains("WORLD") && !inter && self.is_all(&sides[0]) && !names.contains(WORLD) {
                called = WORLD.into();
            } else if called == SELF || called == WORLD || !names.insert(called.clone()) {
                // Another one has its name.
                called = format!("{called} ({number})");
            }
            names.insert(called.clone());
            let communicator = Communicator { name: called, sides, inter, united, parent: *parent };
            define(&communicator, to);
            all.insert(*number, communicator);
        }
        all
    }

    /// Says which windows, files and groups there are, and tells the trace of them.
    pub(super) fn share(&mut self, comms: &Communicators, to: &mut Importer) {
        let text = |number: &u32| self.strings.get(number).filter(|text| !text.is_empty());
        let windows = self
            .windows
            .iter()
            .map(|(number, [name, comm])| (*number, shared("window", *number, text(name), comms.get(comm))));
        self.shared_windows = windows.collect();
        let through_mpi = |paradigm: &u32| {
            self.paradigms.get(paradigm).and_then(text).is_some_and(|name| name.starts_with("MPI"))
        };
        let files = self.handles.iter().filter(|(_, [_, through, _])| through_mpi(through));
        let files = files.map(|(number, [file, _, comm])| {
            let path = self.files.get(file).and_then(text);
            (*number, shared("file", *number, path, comms.get(comm)))
        });
        self.shared_files = files.collect();
        for (of, comm) in self.windows.iter().map(|(number, [_, comm])| (&self.shared_windows[number], comm))
        {
            describe(of, comms.get(comm), Definition::Win, to);
        }
        for (number, of) in &self.shared_files {
            let comm = self.handles.get(number).and_then(|[_, _, comm]| comms.get(comm));
            describe(of, comm, Definition::File, to);
        }
        let of_comms: HashSet<u32> = self.comms.iter().flat_map(|(_, _, groups, _)| *groups).collect();
        for (number, members) in self.groups.iter().filter(|(number, _)| !of_comms.contains(number)) {
            let members = self.in_range(members.as_deref().unwrap_or_default()).into_iter().collect();
            to.define(&group_name(*number), None, 0, Definition::Group(Group { members }));
        }
    }

    pub(super) fn window(&self, number: u32) -> Option<&Shared> {
        self.shared_windows.get(&number)
    }

    pub(super) fn file(&self, number: u32) -> Option<&Shared> {
        self.shared_files.get(&number)
    }

    /// What a group is called that is no communicator's.
    pub(super) fn group_name(&self, number: u32) -> Option<String> {
        let of_comm = self.comms.iter().any(|(_, _, groups, _)| groups.contains(&number));
        self.groups.get(&number).filter(|_| !of_comm).map(|_| group_name(number))
    }

    /// Whether these are all ranks in their order.
    fn is_all(&self, side: &[u32]) -> bool {
        side.len() == self.ranks.len() && side.iter().zip(0u32..).all(|(rank, at)| *rank == at)
    }

    fn in_range(&self, members: &[u64]) -> Vec<u32> {
        let world = self.ranks.len().to_u64();
        members.iter().filter(|member| **member < world).map(|member| narrow(*member)).collect()
    }
}

fn group_name(number: u32) -> String {
    format!("group {number}")
}

/// A window or file, whose name in the archive others may have, too.
fn shared(kind: &str, number: u32, called: Option<&String>, comm: Option<&Communicator>) -> Shared {
    let called = called.cloned().unwrap_or_default();
    Shared {
        name: format!("{kind} {number} {called}").trim_end().into(),
        comm: comm.map(|comm| comm.name.clone()),
        path: called,
        members: comm.map_or(0, |comm| if comm.name == SELF { 1 } else { comm.sides[0].len() }),
    }
}

fn describe(
    of: &Shared,
    comm: Option<&Communicator>,
    what: fn(SharedObject) -> Definition,
    to: &mut Importer,
) {
    let object = |members| what(SharedObject { kind: of.name.clone(), comm: 0, members });
    if of.comm.as_deref() == Some(SELF) {
        return to.define_alone(&of.name, object(RankSeq::default()));
    }
    let members = comm.map(|comm| comm.sides[0].iter().copied().collect());
    to.define(&of.name, None, 0, object(members.unwrap_or_default()));
}

fn define(of: &Communicator, to: &mut Importer) {
    if of.name == SELF || of.name == WORLD {
        return;
    }
    let seq = |side: &[u32]| side.iter().copied().collect::<RankSeq>();
    let comm = |members: &[u32], remote: RankSeq| {
        Definition::Comm(Comm { kind: of.name.clone(), parent: 0, members: seq(members), remote })
    };
    let [a, b] = &of.sides;
    if of.inter {
        to.define(&of.name, Some(a.iter().copied().collect()), 0, comm(a, seq(b)));
        to.define(&of.name, Some(b.iter().copied().collect()), 0, comm(b, seq(a)));
    } else {
        to.define(&of.name, None, 0, comm(a, RankSeq::default()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use anyhow::anyhow;
    use serde_json::json;
    use st_import::{Call, Site};

    use super::*;

    /// Members of the window that the call of a rank names.
    fn members(of: &st_model::section::Section) -> Vec<i64> {
        let (_, win) = &of.tables.wins[0].of[0];
        win.content.members.iter().collect()
    }

    #[test]
    fn windows_of_one_rank_alone_are_told_once_for_all_ranks() {
        let (world, windows) = (100_000, 100);
        let mut definitions = Definitions::default();
        definitions.group(0, COMM_LOCATIONS, &(0..world).collect::<Vec<_>>());
        definitions.group(1, COMM_SELF, &[]);
        definitions.comm(0, 0, [1, 1], u32::MAX);
        (0..windows).for_each(|number| definitions.define_window(number, 0, 0));
        let mut to = Importer::new(narrow(world), true);
        let communicators = definitions.communicators(&mut to);
        let begin = Instant::now();
        definitions.share(&communicators, &mut to);
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        for rank in [3, 7] {
            let parameters = json!({"win": definitions.window(5).unwrap().name});
            let parameters = parameters.as_object().unwrap();
            let times = Some((0, 1));
            let (site, name) = (Site::Unknown, "MPI_Win_fence");
            let call = Call { rank, thread: 0, name, site, error: 0, times, parameters, partial: true };
            to.call(&call).map_err(|what| anyhow!(what)).unwrap();
        }
        let mut all = Vec::new();
        to.finish(|section| {
            all.push(members(&section));
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(all, [[3], [7]]);
    }
}
