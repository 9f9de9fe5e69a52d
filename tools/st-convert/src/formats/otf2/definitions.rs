//! What an archive says beside its events.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::Result;
use foldhash::fast::FixedState;
use st_model::num::{Exact as _, narrow};
use st_model::objects::Name;

use super::library::{Definition, Definitions, MEASURED};
use super::lines::{Tables, pieces};
use super::members::there;
use super::regions::MPI;
use super::{Otf2, location};
use crate::format::Summary;
use crate::level::Level;
use crate::otf2::{INT64, LINES, PARAMETERS, SIDES, STRING, UNDEFINED};

/// `OTF2_LOCATION_GROUP_TYPE_PROCESS`.
const PROCESS: u8 = 1;
/// `OTF2_LOCATION_TYPE_CPU_THREAD`.
const THREAD: u8 = 1;
/// `OTF2_GROUP_TYPE_COMM_LOCATIONS`.
const COMM_LOCATIONS: u8 = 4;
/// `OTF2_GROUP_TYPE_COMM_GROUP`.
const COMM_GROUP: u8 = 5;
/// Times are in ns.
const TICKS: u64 = 1_000_000_000;

/// Strings that have been defined.
struct Strings<'a> {
    to: &'a Definitions<'a>,
    numbers: HashMap<String, u32, FixedState>,
    next: u32,
}

impl Strings<'_> {
    fn number(&mut self, string: &str) -> Result<u32> {
        if let Some(number) = self.numbers.get(string) {
            return Ok(*number);
        }
        let number = self.add(string)?;
        self.numbers.insert(string.to_owned(), number);
        Ok(number)
    }

    /// Number of a string of its own.
    fn add(&mut self, string: &str) -> Result<u32> {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.to.write(Definition::String(number, string))?;
        Ok(number)
    }
}

impl Otf2<'_> {
    pub(super) fn define(&self, summary: &Summary<'_>) -> Result<()> {
        let lanes = self.trace.lanes.iter().enumerate().filter(|(at, _)| self.has(*at));
        let to = self.archive.definitions(lanes.map(|(_, lane)| location(lane.rank, lane.thread)))?;
        let length = self.written.iter().flatten().map(|written| written.time).max().unwrap_or(0);
        let date = self.trace.whole.header.started;
        to.write(Definition::Clock(TICKS, 0, length.saturating_add(1), date))?;
        let mut strings = Strings { to: &to, numbers: HashMap::default(), next: 0 };
        self.define_lines(&to, &mut strings)?;
        self.define_places(&to, &mut strings)?;
        for (region, number) in self.regions.iter().zip(0..) {
            let name = strings.number(&region.name)?;
            to.write(Definition::Region(number, name, region.role, region.paradigm))?;
        }
        if self.trace.level == Level::Phases {
            self.define_measures(&to, &mut strings)?;
        }
        self.define_communicators(summary, &to, &mut strings)
    }

    /// What calls' attributes and the property [`LINES`] name. Texts of calls have the numbers that these have used already, from 0.
    fn define_lines(&self, to: &Definitions<'_>, strings: &mut Strings<'_>) -> Result<()> {
        let texts = self.lines.texts();
        if texts.is_empty() {
            return Ok(());
        }
        texts.into_iter().try_for_each(|text| strings.add(text).map(drop))?;
        for (name, number) in self.lines.names().into_iter().zip(0..) {
            let kind = if name == PARAMETERS { STRING } else { INT64 };
            to.write(Definition::Attribute(number, strings.number(name)?, strings.number("")?, kind))?;
        }
        if !self.lines.is_whole() {
            return Ok(());
        }
        let tables = Tables::of(self.trace)?;
        let mut add = |text: &str| pieces(text).map(|piece| strings.add(piece)).collect::<Result<Vec<_>>>();
        let (before, behind) = (add(&tables.before)?, add(&tables.behind)?);
        let first = before.first().copied().unwrap_or_default();
        self.archive.property(LINES, &format!("{first} {} {} {}", before.len(), behind.len(), self.first))
    }

    /// What is measured of phases.
    fn define_measures(&self, to: &Definitions<'_>, strings: &mut Strings<'_>) -> Result<()> {
        let unit = strings.number("s")?;
        let names = ["computation", "in MPI", "waiting"];
        let count = if self.trace.waits { names.len() } else { names.len() - 1 };
        for (name, number) in names.iter().zip(0..).take(count) {
            let name = strings.number(name)?;
            to.write(Definition::Measure(number, name, unit))?;
        }
        to.write(Definition::Measures(MEASURED, u8::try_from(count)?))
    }

    /// Nodes, ranks and threads.
    fn define_places(&self, to: &Definitions<'_>, strings: &mut Strings<'_>) -> Result<()> {
        let (machine, node) = (strings.number("machine")?, strings.number("node")?);
        to.write(Definition::Node(0, machine, machine, UNDEFINED))?;
        for (host, number) in self.trace.hosts.iter().zip(1..) {
            let name = strings.number(if host.is_empty() { "unknown node" } else { host })?;
            to.write(Definition::Node(number, name, node, 0))?;
        }
        let ranks = self.trace.lanes.chunk_by(|a, b| a.rank == b.rank);
        let mut events =
            self.written.iter().map(|written| written.map_or(0, |written| written.events)).enumerate();
        for (lanes, process) in ranks.zip(0..) {
            let Some(first) = lanes.first() else { continue };
            let name = strings.number(&format!("MPI Rank {}", first.rank))?;
            to.write(Definition::Process(process, name, PROCESS, first.host + 1))?;
            for (lane, (at, events)) in lanes.iter().zip(&mut events) {
                if !self.has(at) {
                    continue;
                }
                let name = strings.number(&format!("thread {}", lane.thread))?;
                let number = location(lane.rank, lane.thread);
                to.write(Definition::Location(number, name, THREAD, events, process))?;
            }
        }
        Ok(())
    }

    /// The first thread of each rank, and its communicators. One between two groups has the members of both: readers of OTF2 2 do not know
    /// others, and OTF2's module for Python cannot read them.
    fn define_communicators(
        &self,
        summary: &Summary<'_>,
        to: &Definitions<'_>,
        strings: &mut Strings<'_>,
    ) -> Result<()> {
        let firsts: Vec<_> =
            self.trace.lanes.chunk_by(|a, b| a.rank == b.rank).filter_map(<[_]>::first).collect();
        let locations: Vec<u64> = firsts.iter().map(|lane| location(lane.rank, lane.thread)).collect();
        let numbers: HashMap<u32, u64> =
            firsts.iter().enumerate().map(|(i, lane)| (lane.rank, i.to_u64())).collect();
        let none = strings.number("")?;
        to.write(Definition::Group(0, none, COMM_LOCATIONS, MPI, &locations))?;
        let named: u32 = self.define_groups(&numbers, to, none)?;
        let mut sides = Vec::new();
        for (group, number) in summary.groups.iter().zip(0..) {
            let (name, of_comm) = (strings.number(&group.label)?, named + 1 + number);
            let of = |side| there(group, side, self.trace).filter_map(|rank| numbers.get(&rank));
            if !group.sides[1].is_empty() {
                sides.push(format!("{number}:{}", of(0).count()));
            }
            let members: Vec<u64> = of(0).chain(of(1)).copied().collect();
            to.write(Definition::Group(of_comm, none, COMM_GROUP, MPI, &members))?;
            to.write(Definition::Comm(number, name, of_comm))?;
        }
        self.define_accessed(summary, named, &numbers, to, strings)?;
        if sides.is_empty() { Ok(()) } else { self.archive.property(SIDES, &sides.join(" ")) }
    }

    /// Groups of ranks that windows are synchronised with. How many these are is returned.
    fn define_groups(&self, numbers: &HashMap<u32, u64>, to: &Definitions<'_>, name: u32) -> Result<u32> {
        let groups = &self.accesses.groups;
        for (group, number) in groups.iter().zip(1..) {
            let ranks = group.content.members.iter().filter_map(|rank| u32::try_from(rank).ok());
            let members: Vec<u64> = ranks.filter_map(|rank| numbers.get(&rank)).copied().collect();
            to.write(Definition::Group(number, name, COMM_GROUP, MPI, &members))?;
        }
        Ok(narrow(groups.len()))
    }

    /// Windows and files, and the communicators of those that nobody has synchronised.
    fn define_accessed(
        &self,
        summary: &Summary<'_>,
        named: u32,
        numbers: &HashMap<u32, u64>,
        to: &Definitions<'_>,
        strings: &mut Strings<'_>,
    ) -> Result<()> {
        let mut comms: HashMap<Name, u32> = summary.groups.iter().map(|group| group.name).zip(0..).collect();
        let (windows, files) = (&self.accesses.windows.each, &self.accesses.files.each);
        for of in windows.iter().chain(files) {
            let number = narrow(comms.len());
            if let Entry::Vacant(new) = comms.entry(of.comm) {
                new.insert(number);
                let ranks = of.members.iter().filter_map(|rank| u32::try_from(rank).ok());
                let members: Vec<u64> = ranks.filter_map(|rank| numbers.get(&rank)).copied().collect();
                let name = strings.number(&of.group)?;
                let group = named + 1 + number;
                to.write(Definition::Group(group, name, COMM_GROUP, MPI, &members))?;
                to.write(Definition::Comm(number, name, group))?;
            }
        }
        let comm = |name: Name| comms.get(&name).copied().unwrap_or(UNDEFINED);
        for (window, number) in windows.iter().zip(0..) {
            let name = strings.number(&window.label)?;
            to.write(Definition::Window(number, name, comm(window.comm)))?;
        }
        if !files.is_empty() {
            let name = strings.number("MPI-IO")?;
            to.write(Definition::Paradigm(0, name, name))?;
        }
        for (file, number) in files.iter().zip(0..) {
            let name = strings.number(if file.label.is_empty() { "unknown file" } else { &file.label })?;
            to.write(Definition::File(number, name, 0))?;
            let comm = comm(file.comm);
            let Some(mode) = file.before else {
                to.write(Definition::Opened(number, name, number, 0, comm))?;
                continue;
            };
            to.write(Definition::OpenBefore(number, name, number, 0, comm))?;
            to.write(Definition::OpenedBefore(number, mode))?;
        }
        Ok(())
    }
}
