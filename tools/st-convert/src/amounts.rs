//! How much of a rank's part in a collective operation is for whom, for who makes messages of it.

use st_match::volume::{Neighbours, Volumes};
use st_model::calls::roles::Rule;
use st_model::calls::words::ABSENT;
use st_model::event::{Event, RECEIVED, SENT};

/// The blocks of one rank's part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Amounts {
    /// Bytes to and from each partner, or one number for all.
    pub(crate) sizes: [Vec<u64>; 2],
    /// Whom the blocks of a neighbourhood operation are for and from, if that is known.
    pub(crate) neighbours: Option<Neighbours>,
}

impl Amounts {
    /// Those of the call that makes or begins the operation.
    pub(crate) fn of(event: &Event<'_>, rule: Rule, volumes: &Volumes<'_>) -> Self {
        let mut sizes = [SENT, RECEIVED].map(|side| sizes(event, side));
        let inplace = event.words().get(event.role.inplace).is_some_and(|inplace| inplace != 0);
        if inplace && matches!(rule, Rule::Alltoall | Rule::Alltoallv | Rule::Allgather | Rule::Allgatherv) {
            sizes[SENT] = sizes[RECEIVED].clone();
        }
        let near = matches!(rule, Rule::Neighbour | Rule::NeighbourV);
        let neighbours = event.comm().filter(|_| near).and_then(|comm| volumes.neighbours_in(comm));
        Self { sizes, neighbours }
    }

    /// Bytes of a partner's block.
    pub(crate) fn size(&self, side: usize, partner: usize) -> u64 {
        let sizes = &self.sizes[side];
        let all_alike = sizes.len() == 1;
        sizes.get(if all_alike { 0 } else { partner }).copied().unwrap_or(0)
    }
}

/// Bytes of each block of a side: one number where all are alike.
fn sizes(event: &Event<'_>, side: usize) -> Vec<u64> {
    let (role, words) = (event.role, event.words());
    let own = event.own_types(side);
    let of = |k: usize, count: i64| {
        let datatype = own.get(k).copied().or_else(|| words.get(role.types[side]));
        datatype.and_then(|datatype| event.size(count, datatype)).unwrap_or(0)
    };
    match words.list(role.counts[side]) {
        [] if role.counts[side] == ABSENT => vec![of(0, words.get(role.count[side]).unwrap_or(0))],
        counts => counts.iter().enumerate().map(|(k, count)| of(k, *count)).collect(),
    }
}
