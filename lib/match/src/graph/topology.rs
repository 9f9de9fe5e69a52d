//! Who a rank's neighbours are, from the calls that made its communicators.

use std::collections::HashMap;

use st_model::calls::words::{Words, slot};
use st_model::calls::{Kind, Row};
use st_model::event::Event;

use crate::standing::Standing;

#[derive(Clone, Debug)]
enum Topology {
    Cart {
        dims: Vec<i64>,
        periods: Vec<i64>,
    },
    /// Neighbour lists: destinations, sources.
    Graph([Vec<i64>; 2]),
}

/// The topologies of one rank's communicators, by index.
#[derive(Debug, Default)]
pub struct Topologies(HashMap<i64, (Topology, [Vec<i64>; 2])>);

impl Topologies {
    /// Learns from a call that may have made a communicator. `stand` says where the rank stands in a communicator of its
    /// tables.
    pub fn learn_of(&mut self, event: &Event<'_>, stand: impl FnOnce(i64) -> Option<Standing>) {
        let Some(row) = event.row else { return };
        let new = event.words().get(slot(row, "newcomm")).unwrap_or(-1);
        if let Some(at) = (new >= 0).then(|| stand(new)).flatten() {
            self.learn(row, event.words(), event.comm().unwrap_or(0), new, at.me.into());
        }
    }

    /// Learns from a call that made communicator `new` (in which the rank is `me`) from `old`.
    pub(crate) fn learn(&mut self, row: &Row, words: &Words, old: i64, new: i64, me: i64) {
        let list = |name| words.list(slot(row, name)).to_vec();
        let topology = match row.kind {
            Kind::Cart => Some(Topology::Cart { dims: list("dims"), periods: list("periods") }),
            Kind::CartSub => self.sub(old, words.list(slot(row, "remain"))),
            Kind::Graph => graph(words.list(slot(row, "index")), words.list(slot(row, "edges")), me),
            Kind::Adjacent => Some(Topology::Graph([list("destinations"), list("sources")])),
            // Duplicates have their parent's topology.
            Kind::Duplicate => self.0.get(&old).map(|(t, _)| t.clone()),
            _ => None,
        };
        let Some(topology) = topology else {
            self.0.remove(&new);
            return;
        };
        let neighbours = match &topology {
            Topology::Graph(lists) => lists.clone(),
            Topology::Cart { dims, periods } => {
                let both = cart_neighbours(dims, periods, me);
                [both.clone(), both]
            }
        };
        self.0.insert(new, (topology, neighbours));
    }

    /// Destinations and sources of the rank in a communicator.
    pub(crate) fn neighbours(&self, comm: i64) -> Option<[&[i64]; 2]> {
        self.0.get(&comm).map(|(_, lists)| [&lists[0][..], &lists[1][..]])
    }

    /// Whether a communicator is a grid.
    pub(crate) fn is_grid(&self, comm: i64) -> bool {
        matches!(self.0.get(&comm), Some((Topology::Cart { .. }, _)))
    }

    fn sub(&self, old: i64, remain: &[i64]) -> Option<Topology> {
        let (Topology::Cart { dims, periods }, _) = self.0.get(&old)? else { return None };
        let kept = |of: &[i64]| of.iter().zip(remain).filter(|(_, r)| **r != 0).map(|(d, _)| *d).collect();
        Some(Topology::Cart { dims: kept(dims), periods: kept(periods) })
    }
}

fn graph(index: &[i64], edges: &[i64], me: i64) -> Option<Topology> {
    let me = usize::try_from(me).ok()?;
    let at = |i: usize| index.get(i).and_then(|v| usize::try_from(*v).ok());
    let from = if me == 0 { 0 } else { at(me - 1)? };
    let mine = edges.get(from..at(me)?)?.to_vec();
    Some(Topology::Graph([mine.clone(), mine]))
}

/// Lower and upper neighbour in each dimension, -1 where there is none (MPI 3.1, section 7.6).
fn cart_neighbours(dims: &[i64], periods: &[i64], me: i64) -> Vec<i64> {
    let mut out = Vec::with_capacity(dims.len() * 2);
    let mut stride: i64 = dims.iter().product();
    for (d, periodic) in dims.iter().zip(periods) {
        if *d <= 0 || stride == 0 {
            return Vec::new();
        }
        stride /= d;
        let mine = me / stride % d;
        for step in [-1, 1] {
            let there = mine + step;
            let wrapped = there.rem_euclid(*d);
            let exists = there == wrapped || *periodic != 0;
            out.push(if exists { me + (wrapped - mine) * stride } else { -1 });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_a_grid() {
        // 2 × 3, the second dimension periodic: rank 4 is at (1, 1).
        assert_eq!(cart_neighbours(&[2, 3], &[0, 1], 4), [1, -1, 3, 5]);
        assert_eq!(cart_neighbours(&[2, 3], &[0, 1], 0), [-1, 3, 2, 1]);
        assert!(cart_neighbours(&[0, 3], &[0, 1], 0).is_empty());
    }
}
