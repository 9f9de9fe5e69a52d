//! Neighbours of ranks in graphs that no rank alone has said.

use st_model::num::saturate;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use st_model::calls::words::slot;
use st_model::calls::{CallTable, Kind, Row};
use st_model::objects::Name;
use st_model::project::Error;
use st_model::section::{Section, Tables};

/// What `MPI_Dist_graph_create` made: each rank may give any edges, so that a rank's neighbours are known only from the
/// calls of all.
#[derive(Clone, Debug, Default)]
pub struct Graphs {
    /// By communicator and rank in it.
    neighbours: HashMap<(Name, u64), Around, FixedState>,
    /// Number of edges of all, twice.
    edges: u64,
}

/// Destinations and sources of a rank: how many, and these, in no order that a library would have to keep, unless there are too many
/// of all.
#[derive(Clone, Debug, Default)]
struct Around {
    degrees: [usize; 2],
    others: [Vec<i64>; 2],
}

/// Edges that are kept, twice: a few bytes may stand for any number.
const MOST: u64 = 1 << 24;

impl Graphs {
    /// Reads the calls of all sections of a trace, if some make such graphs.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub fn of<'a>(sections: impl IntoIterator<Item = &'a Section>) -> Result<Self, Error> {
        let mut graphs = Self::default();
        for section in sections {
            let rows: Vec<Option<&Row>> = section
                .symbols
                .iter()
                .map(|s| CallTable::builtin().get(s.call).filter(|r| gives_edges(r)))
                .collect();
            if rows.iter().all(Option::is_none) {
                continue;
            }
            for rank in section.ranks.iter() {
                for thread in 0..section.threads.len() {
                    graphs.read(section, &rows, rank, thread)?;
                }
            }
        }
        Ok(graphs)
    }

    fn read(
        &mut self,
        section: &Section,
        rows: &[Option<&Row>],
        rank: u32,
        thread: usize,
    ) -> Result<(), Error> {
        let Some(mut events) = section.events(thread, rank) else { return Ok(()) };
        while let Some(event) = events.next_event()? {
            let Some(Some(row)) = rows.get(event.sym as usize) else { continue };
            let words = event.words();
            let new = words.get(slot(row, "newcomm")).unwrap_or(-1);
            let Some(comm) = Tables::find(&section.tables.comms, new, rank) else { continue };
            let list = |name| words.list(slot(row, name));
            let mut destinations = list("destinations").iter();
            for (source, degree) in list("sources").iter().zip(list("degrees")) {
                let n = saturate(*degree);
                for to in destinations.by_ref().take(n) {
                    self.add(comm.name, *source, 0, *to);
                    self.add(comm.name, *to, 1, *source);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, comm: Name, rank: i64, side: usize, other: i64) {
        let Ok(rank) = u64::try_from(rank) else { return };
        let around = self.neighbours.entry((comm, rank)).or_default();
        around.degrees[side] += 1;
        self.edges += 1;
        if self.edges <= MOST {
            around.others[side].push(other);
        }
    }

    /// Destinations and sources of a rank of a communicator, if it is such a graph and the rank has some.
    pub(super) fn neighbours(&self, comm: Name, rank: u64) -> Option<&[Vec<i64>; 2]> {
        self.neighbours.get(&(comm, rank)).map(|around| &around.others).filter(|_| self.edges <= MOST)
    }

    /// Number of destinations and sources of a rank of a communicator.
    pub(super) fn degrees(&self, comm: Name, rank: u64) -> [usize; 2] {
        self.neighbours.get(&(comm, rank)).map_or([0; 2], |around| around.degrees)
    }
}

fn gives_edges(row: &Row) -> bool {
    row.kind == Kind::DistGraph
}
