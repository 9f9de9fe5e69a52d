//! A trace that is put together from calls.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use st_model::calls::{CallTable, Row};
use st_model::columns::Comparison;
use st_model::names::Names;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_stream::json::read_site;

use crate::call::{Call, Site, Stop};
use crate::escaped::{control, escaped};
use crate::left::Left;
use crate::objects::Definition;
use crate::rank::{Common, Rank};
use crate::shape::Shapes;

/// Functions that the call table lacks, at most: their numbers have twelve bits.
const UNKNOWN: usize = 4000;

/// A trace that is put together from calls.
///
/// Objects and call sites are said before the calls that name them. Calls of a thread come in their order, threads and ranks in any.
#[derive(Debug)]
pub struct Importer {
    world: u32,
    /// The source has all that the ranks did.
    complete: bool,
    common: Common,
    names: Names,
    ranks: BTreeMap<u32, Rank>,
    hosts: HashMap<u32, String, FixedState>,
    clocks: HashMap<u32, Comparison, FixedState>,
    shapes: Shapes,
    unknown: HashSet<String, FixedState>,
    left: Left,
}

impl Importer {
    /// Of a job of so many ranks; `complete`: the source has all that they did, from the beginning of MPI to the end.
    #[must_use]
    pub fn new(world: u32, complete: bool) -> Self {
        Self {
            world,
            complete,
            common: Common::default(),
            names: Names::default(),
            ranks: BTreeMap::new(),
            hosts: HashMap::default(),
            clocks: HashMap::default(),
            shapes: Shapes::default(),
            unknown: HashSet::default(),
            left: Left::default(),
        }
    }

    /// Says, before the first call, that the source has all that the ranks did.
    pub fn complete(&mut self) {
        self.complete |= self.is_empty();
    }

    /// Says what the name of an object stands for, on some ranks, or all, and which copy of equal objects it is. What is said first
    /// holds, and is asked for when a rank first names the object.
    pub fn define(&mut self, name: &str, ranks: Option<RankList>, copy: u32, what: Definition) {
        self.common.definitions.add(name, ranks, copy, what);
    }

    /// Says that the name of a window or file stands for one that each rank has for itself alone.
    pub fn define_alone(&mut self, name: &str, what: Definition) {
        self.common.definitions.add_alone(name, what);
    }

    /// Adds a call site, as [`st_stream::json::site`] writes it.
    ///
    /// # Errors
    ///
    /// With what is wrong.
    pub fn site(&mut self, line: &Map<String, Value>) -> Result<(), String> {
        if let Some(text) = control(line.values()) {
            return Err(format!("site: {text:?} has a control character"));
        }
        let (printed, number) = read_site(line, &mut self.common.sites, &mut self.names)?;
        self.common.numbers.insert(printed, number);
        Ok(())
    }

    /// Says on which node ranks are.
    pub fn host(&mut self, name: &str, ranks: impl IntoIterator<Item = u32>) {
        self.hosts.extend(ranks.into_iter().map(|rank| (rank, escaped(name))));
    }

    /// Says how a rank's clock was compared.
    pub fn clock(&mut self, rank: u32, clock: Comparison) {
        self.clocks.insert(rank, clock);
    }

    /// Counts what the source does not tell.
    pub fn leave(&mut self, what: &str, times: u64) {
        self.left.add(what, times);
    }

    /// Enters a call.
    ///
    /// # Errors
    ///
    /// With what is wrong.
    pub fn call(&mut self, call: &Call<'_>) -> Result<(), String> {
        let name = call.name;
        if call.rank >= self.world {
            return Err(format!("rank: {} is none of {} ranks", call.rank, self.world));
        }
        let row = self.function("call", name)?;
        let function = row.map(|row| self.shapes.of(row));
        let rank = self.ranks.entry(call.rank).or_insert_with(|| {
            Rank::new(call.rank, self.world, call.times.is_some(), self.complete, &self.common)
        });
        rank.call(call, function, &self.common, &mut self.left).map_err(|what| format!("{name}: {what}"))
    }

    /// The row of a function; `None` of one that the call table lacks.
    fn function(&mut self, field: &str, name: &str) -> Result<Option<&'static Row>, String> {
        let row = CallTable::builtin().by_name(name);
        if row.is_none() && !self.unknown.contains(name) {
            if !name.starts_with("MPI") || name.contains(char::is_control) {
                return Err(format!("{field}: {} is no function of MPI", name.escape_debug()));
            }
            if self.unknown.len() >= UNKNOWN {
                return Err(format!("{field}: {name}: more than {UNKNOWN} functions that st does not know"));
            }
            self.unknown.insert(name.to_owned());
        }
        Ok(row)
    }

    /// Says where a thread stopped that has made its last call.
    ///
    /// # Errors
    ///
    /// With what is wrong.
    pub fn stop(&mut self, stop: &Stop<'_>) -> Result<(), String> {
        let row = stop.inside.map(|(name, ..)| self.function("inside", name)).transpose()?.flatten();
        if stop.rank >= self.world {
            return Err(format!("ended: {} is none of {} ranks", stop.rank, self.world));
        }
        if let Some((_, Site::Number(site), _)) = stop.inside
            && !self.common.numbers.contains_key(&site)
        {
            return Err(format!("site: {site} is not described"));
        }
        let rank = self.ranks.get_mut(&stop.rank);
        let known = rank.map(|rank| rank.stop(stop, row, &self.common)).transpose()?.unwrap_or(false);
        self.left.add("ends of threads that have made no call before", (!known).into());
        Ok(())
    }

    /// Whether there is no call yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Hands over the ranks' traces in the order of ranks. What the source did not tell is returned, by name and number.
    ///
    /// # Errors
    ///
    /// What `take` says.
    pub fn finish<E>(self, mut take: impl FnMut(Section) -> Result<(), E>) -> Result<Left, E> {
        let Self { ranks, hosts, mut clocks, names, mut left, .. } = self;
        for (number, rank) in ranks {
            let host = hosts.get(&number).map_or("", String::as_str);
            left.add(
                "ends of ranks that did not come to MPI_Finalize (as if they had)",
                rank.is_endless().into(),
            );
            left.add("ends of requests whose numbers are those of later ones", rank.again());
            take(rank.finish(host, clocks.remove(&number), &names))?;
        }
        Ok(left)
    }
}
