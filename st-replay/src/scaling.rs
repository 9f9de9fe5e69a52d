//! Messages of another size than recorded, still matched.
//!
//! Numbers of elements are multiplied by a factor: of what is sent, and of collective operations, rounded down; of what
//! is received up. So a receive stays large enough, and the members of a collective operation go on agreeing, wherever
//! both sides name types of one size; where they do not, the check before the replay, which sees the words that this
//! module has changed, finds what no longer fits. Displacements are rounded down, too, which keeps blocks apart:
//! ⌊F·(d + c)⌋ ≥ ⌊F·d⌋ + ⌊F·c⌋.

use st_model::calls::roles::{Action, Role};
use st_model::calls::{CallTable, Kind, Row};
use st_model::num::saturate;
use st_model::section::{Section, Sym};

use crate::factor::Factor;

/// What is done with the words of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rounding {
    Leave,
    Down,
    Up,
    /// Only made larger: room for messages, and for what MPI adds to each.
    Room,
}

/// The factor, and where in the words of a section's symbols it applies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scaling {
    factor: Factor,
    /// By symbol: whether each slot is a list, and what is done with it; empty where nothing is scaled.
    slots: Vec<Vec<(bool, Rounding)>>,
}

impl Scaling {
    /// Of a section's calls.
    #[must_use]
    pub fn new(section: &Section, factor: Factor) -> Self {
        let table = CallTable::builtin();
        let of = |call| table.get(call).map(roundings).unwrap_or_default();
        let slots = section.symbols.iter().map(|s| if factor.is_one() { Vec::new() } else { of(s.call) });
        Self { factor, slots: slots.collect() }
    }

    /// Whether words of the symbol's calls become larger.
    #[must_use]
    pub fn enlarges(&self, sym: Sym) -> bool {
        self.factor.enlarges() && self.slots.get(sym as usize).is_some_and(|slots| !slots.is_empty())
    }

    /// Scales the words of one call.
    pub fn apply(&self, sym: Sym, words: &mut [i64]) {
        let Some(slots) = self.slots.get(sym as usize) else { return };
        let mut rest = words;
        for (list, rounding) in slots {
            let Some((first, tail)) = rest.split_first_mut() else { return };
            if !list {
                *first = self.scaled(*first, *rounding);
                rest = tail;
                continue;
            }
            let n = saturate::<usize>(*first).min(tail.len());
            let (elements, tail) = tail.split_at_mut(n);
            elements.iter_mut().for_each(|e| *e = self.scaled(*e, *rounding));
            rest = tail;
        }
    }

    fn scaled(&self, n: i64, rounding: Rounding) -> i64 {
        match rounding {
            Rounding::Down => self.factor.down(n),
            Rounding::Up => self.factor.up(n),
            Rounding::Room if self.factor.enlarges() => self.factor.up(n),
            Rounding::Leave | Rounding::Room => n,
        }
    }
}

fn roundings(row: &Row) -> Vec<(bool, Rounding)> {
    let role = Role::of(row);
    let of = |name: &str| match (role.action, name) {
        _ if role.partitioned => Rounding::Leave,
        (Action::Send { .. }, "count") | (Action::Both { .. }, "sendcount") => Rounding::Down,
        (Action::Receive { .. } | Action::Matched { .. } | Action::Both { .. }, "count" | "recvcount") => {
            Rounding::Up
        }
        (
            Action::Collective { .. },
            "count" | "counts" | "sendcount" | "recvcount" | "sendcounts" | "recvcounts" | "displs"
            | "sdispls" | "rdispls",
        ) => Rounding::Down,
        (_, "size") if row.kind == Kind::Buffer => Rounding::Room,
        _ => Rounding::Leave,
    };
    let all: Vec<_> = row.slots.iter().map(|s| (s.list, of(&s.name))).collect();
    if all.iter().all(|(_, r)| *r == Rounding::Leave) { Vec::new() } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};

    fn scaled(name: &str, factor: &str, words: &[i64]) -> Vec<i64> {
        let mut recorder = RankRecorder::new(0, Options::default());
        let thread = recorder.open_thread(0);
        let site = recorder.sites.stack(Vec::new());
        let sym = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        recorder.record(thread, sym, words, 0, 0);
        let section = recorder.finish("host");
        let mut words = words.to_vec();
        Scaling::new(&section, factor.parse().unwrap()).apply(sym, &mut words);
        words
    }

    #[test]
    fn sends_are_rounded_down_and_receives_up() {
        // count type dest tag comm
        assert_eq!(scaled("MPI_Send", "0.5", &[5, 5, 5, 5, 0]), [2, 5, 5, 5, 0]);
        assert_eq!(scaled("MPI_Recv", "0.5", &[5, 5, 5, 5, 0, -9, -9, 20])[..2], [3, 5]);
        // sendcount sendtype dest sendtag recvcount recvtype source recvtag comm
        assert_eq!(
            scaled("MPI_Sendrecv", "1.5", &[3, 1, 1, 1, 3, 1, 2, 2, 0, -9, -9, 9])[..5],
            [4, 1, 1, 1, 5]
        );
        assert_eq!(scaled("MPI_Send", "1", &[5, 5, 5, 5, 0]), [5, 5, 5, 5, 0]);
    }

    #[test]
    fn lists_and_displacements_of_collective_operations_follow() {
        // inplace sendcounts sdispls sendtype recvcounts rdispls recvtype comm
        let words = [0, 2, 4, 5, 2, 0, 7, 3, 2, 1, 2, 0, 3, 0];
        let half = [0, 2, 2, 2, 2, 0, 3, 3, 2, 0, 1, 0, 3, 0];
        assert_eq!(scaled("MPI_Alltoallv", "0.5", &words), half);
        assert_eq!(scaled("MPI_Type_contiguous", "3", &[4, 0, 9]), [4, 0, 9]);
        assert_eq!(scaled("MPI_Buffer_attach", "0.5", &[100]), [100]);
        assert_eq!(scaled("MPI_Buffer_attach", "2", &[100]), [200]);
    }
}
