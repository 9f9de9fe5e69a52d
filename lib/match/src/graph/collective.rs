//! What one rank gives to and takes from a collective operation.

use super::topology::Topologies;
use crate::standing::Standing;
use st_model::calls::roles::{Role, Rule};
use st_model::calls::words::Words;
use st_model::event::Event;
use st_model::section::Tables;
use st_model::values::ROOT;

/// A rank's part in one collective operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The communicator, by its number among all that have been met.
    pub group: u32,
    /// The rank's side of an intercommunicator; else 0.
    pub side: u8,
    /// Its position in that side.
    pub me: u32,
    /// Which operation it is.
    pub rule: Rule,
    /// The root's side and position, for operations that have one.
    pub root: Option<(u8, u32)>,
    /// Which persistent operation it is: the how-many-th made on the communicator, and its how-many-th start.
    pub persistent: Option<(u32, u32)>,
    /// Its data reach others.
    pub sends: bool,
    /// Others' data reach it.
    pub receives: bool,
    /// The point at which it is entered.
    pub enter: u32,
    /// The point at which it is left; [`u32::MAX`] while it has not completed.
    pub exit: u32,
    /// Partners of operations in which each pair is its own: destinations, sources.
    pub pairs: Option<Box<[Vec<u32>; 2]>>,
}

impl Part {
    /// Nothing is sent or received, but it counts in the order of the communicator's operations.
    #[must_use]
    pub fn internal(at: Standing, rule: Rule) -> Self {
        Self {
            group: at.group,
            side: at.side,
            me: at.me,
            rule,
            root: None,
            persistent: None,
            sends: false,
            receives: false,
            enter: 0,
            exit: u32::MAX,
            pairs: None,
        }
    }

    /// What a call's part is; `None` if the rank's neighbours are needed and not known.
    #[must_use]
    pub fn of(event: &Event<'_>, at: Standing, rule: Rule, topologies: &Topologies) -> Option<Self> {
        let tables = &event.section().tables;
        let bytes_of = |t| Tables::find(&tables.types, t, event.rank).map_or(1, |t| t.content.size);
        let neighbours = topologies.neighbours(event.comm().unwrap_or(0));
        part(event.role, rule, at, event.words(), neighbours, bytes_of)
    }
}

/// The neighbours of a rank in a topology, destinations and sources; negative for none.
type Neighbours<'a> = Option<[&'a [i64]; 2]>;

/// A rank's part; `None` if its neighbours are needed and not known. `bytes_of` gives the size of a type.
fn part(
    role: &Role,
    rule: Rule,
    at: Standing,
    words: &Words,
    neighbours: Neighbours<'_>,
    bytes_of: impl Fn(i64) -> i64,
) -> Option<Part> {
    let carries = |i: usize| words.one(role.count[i]) > 0 && bytes_of(words.one(role.types[i])) != 0;
    let inplace = words.one(role.inplace) != 0;
    let (root, is_root, takes_part) = root(role, at, words);
    let me = at.me as usize;
    let mine = |counts: &[i64]| counts.get(me).is_some_and(|c| *c > 0);
    let mut pairs = None;
    let (sends, receives) = match rule {
        Rule::Barrier => (true, true),
        Rule::Bcast => (is_root, !is_root && carries(0)),
        Rule::Scatter => (is_root, !is_root && carries(1)),
        Rule::Gather | Rule::Reduce => (!is_root && carries(0), is_root),
        Rule::Allgather | Rule::Alltoall => (carries(usize::from(inplace)), carries(1)),
        Rule::Allgatherv => {
            let counts = words.list(role.counts[1]);
            let others = counts.iter().enumerate().any(|(q, c)| *c > 0 && (at.inter || q != me));
            (if inplace { mine(counts) } else { carries(0) }, others)
        }
        // Scans are not defined on intercommunicators (MPI 4.1, section 6.12): nobody is before anybody there.
        Rule::Scan if at.inter => (false, false),
        Rule::Allreduce | Rule::Scan => (carries(0), carries(0)),
        Rule::ReduceScatter => match words.list(role.counts[0]) {
            [] => (carries(0), carries(0)),
            counts => (counts.iter().any(|c| *c > 0), mine(counts)),
        },
        Rule::Alltoallv => {
            let receive = words.list(role.counts[1]);
            let send = if inplace { receive } else { words.list(role.counts[0]) };
            pairs = Some(Box::new([partners(send, at), partners(receive, at)]));
            (false, false)
        }
        Rule::Neighbour | Rule::NeighbourV => {
            let [to, from] = neighbours?;
            let counted = |i: usize, n: &[i64]| match words.list(role.counts[i]) {
                [] if role.counts[i] == st_model::calls::words::ABSENT => listed(n, |_| carries(i)),
                counts => listed(n, |k| counts.get(k).is_some_and(|c| *c > 0)),
            };
            pairs = Some(Box::new([counted(0, to), counted(1, from)]));
            (false, false)
        }
    };
    let (sends, receives) = (sends && takes_part, receives && takes_part);
    Some(Part { root, sends, receives, pairs, ..Part::internal(at, rule) })
}

/// The root's side and position, whether this rank is it, and whether this rank takes part.
fn root(role: &Role, at: Standing, words: &Words) -> (Option<(u8, u32)>, bool, bool) {
    let Some(named) = words.get(role.root) else { return (None, false, true) };
    if named == ROOT {
        return (Some((at.side, at.me)), true, true);
    }
    // MPI_PROC_NULL: a bystander in the root's group, who does not say who the root is.
    let Ok(position) = u32::try_from(named) else { return (None, false, false) };
    let side = if at.inter { 1 - at.side } else { 0 };
    (Some((side, position)), !at.inter && position == at.me, true)
}

/// Ranks with a count above zero.
fn partners(counts: &[i64], at: Standing) -> Vec<u32> {
    let own = |q: u32| !at.inter && q == at.me;
    (0u32..).zip(counts).filter(|(q, c)| **c > 0 && !own(*q)).map(|(q, _)| q).collect()
}

/// Neighbours that exist and have something to carry.
fn listed(neighbours: &[i64], carries: impl Fn(usize) -> bool) -> Vec<u32> {
    let of = |(k, n): (usize, &i64)| u32::try_from(*n).ok().filter(|_| carries(k));
    neighbours.iter().enumerate().filter_map(of).collect()
}
