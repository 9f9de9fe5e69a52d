//! Whether the calls of all threads of a rank can be replayed, each thread by itself, and what they have to wait for.
//!
//! A trace holds the order of each thread's calls, not how threads of a rank wait for each other outside of MPI. Where
//! only one thread makes, frees and collectively uses an object, that is enough: its uses by others come after it is
//! made, and before it is freed. So no thread waits for anything that came later when it was recorded, and no replay
//! stops that the program did not.

use std::collections::{BTreeSet, HashMap};

use st_model::calls::words::find;
use st_model::calls::{CallTable, Kind, Meaning, Object, Row, Slot};
use st_model::project::Error;
use st_model::section::Section;

/// An object by its index.
pub type Item = (Object, i64);

/// What a thread does with objects.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// Position of its last call that uses the object.
    pub last: HashMap<Item, u64>,
    makes: HashMap<Item, u64>,
    freed: HashMap<Item, u64>,
    together: BTreeSet<i64>,
    /// It uses what is known to the thread alone that made it.
    private: bool,
}

/// What threads of a rank do, by thread.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// What each does; nothing of threads that the rank has not.
    pub uses: Vec<Uses>,
}

impl Threads {
    /// Looks at all threads of a rank. `None` if they cannot be replayed beside each other.
    /// *Cost:* one pass over the calls of all threads if there are several, else nothing.
    ///
    /// # Errors
    ///
    /// If the section is malformed.
    pub fn of(section: &Section, rank: u32) -> Result<Option<Self>, Error> {
        let present = section.threads.iter().filter(|t| t.ranks.contains(rank)).count();
        if present < 2 {
            return Ok(Some(Self { uses: vec![Uses::default()] }));
        }
        let uses = (0..section.threads.len()).map(|t| uses(section, t, rank)).collect::<Result<_, _>>()?;
        let threads = Self { uses };
        Ok(threads.are_apart().then_some(threads))
    }

    fn are_apart(&self) -> bool {
        if self.uses.iter().skip(1).any(|u| u.private) {
            return false;
        }
        let shared = |item: &Item| self.uses.iter().filter(|u| u.last.contains_key(item)).count() > 1;
        let made = |item: &Item| self.uses.iter().filter_map(|u| u.makes.get(item)).sum::<u64>();
        let freed_anew = |u: &Uses| u.freed.keys().any(|item| shared(item) && made(item) > 1);
        let comms: Vec<&i64> = self.uses.iter().flat_map(|u| &u.together).collect();
        let distinct: BTreeSet<&i64> = comms.iter().copied().collect();
        comms.len() == distinct.len() && !self.uses.iter().any(freed_anew)
    }

    /// What a call that frees an object waits for: threads other than `me`, and how many calls they must have made.
    #[must_use]
    pub fn before_free(&self, me: usize, item: Item) -> Vec<(usize, u64)> {
        let others = self.uses.iter().enumerate().filter(|(t, _)| *t != me);
        others.filter_map(|(t, u)| Some((t, u.last.get(&item)? + 1))).collect()
    }
}

/// The object that a call frees.
#[must_use]
pub fn freed(row: &Row, words: &[i64]) -> Option<Item> {
    let frees = |s: &Slot| s.name.starts_with("free") && matches!(s.meaning, Meaning::Ref(_));
    let Meaning::Ref(object) = row.slots.iter().find(|s| frees(s))?.meaning else { return None };
    Some((object, *find(row, words, frees).first()?))
}

fn uses(section: &Section, thread: usize, rank: u32) -> Result<Uses, Error> {
    let mut uses = Uses::default();
    let Some(mut calls) = section.project(thread, rank) else { return Ok(uses) };
    let mut words = Vec::new();
    for index in 0.. {
        let Some(sym) = calls.next_call(&mut words)? else { break };
        let symbol = section.symbols.get(sym as usize).filter(|s| s.error == 0);
        if let Some(row) = symbol.and_then(|s| CallTable::builtin().get(s.call)) {
            uses.see(row, &words, index);
        }
    }
    Ok(uses)
}

impl Uses {
    fn see(&mut self, row: &Row, words: &[i64], index: u64) {
        let mut first_comm = true;
        for (i, s) in row.slots.iter().enumerate() {
            // The i-th slot: names may come twice.
            let mut n = 0;
            let found = find(row, words, |_| {
                n += 1;
                n == i + 1
            });
            self.private |= match s.meaning {
                Meaning::Info | Meaning::Ref(Object::Win | Object::File) => found.iter().any(|w| *w != -1),
                _ => s.name.ends_with("keyval") || s.name.ends_with("errhandler"),
            };
            let Meaning::Ref(object) = s.meaning else { continue };
            for &word in found.iter().filter(|w| **w >= 0) {
                let item = (object, word);
                if s.name.starts_with("new") {
                    *self.makes.entry(item).or_default() += 1;
                } else if s.name.starts_with("free") {
                    *self.freed.entry(item).or_default() += 1;
                }
                self.last.insert(item, index);
                if object == Object::Comm && std::mem::take(&mut first_comm) && acts_together(row) {
                    self.together.insert(word);
                }
            }
        }
    }
}

/// Whether all members of the communicator make the call, in one order with others of the kind.
fn acts_together(row: &Row) -> bool {
    let point_to_point = matches!(
        row.kind,
        Kind::Send
            | Kind::SyncSend
            | Kind::Receive
            | Kind::SendReceive
            | Kind::Probe
            | Kind::MatchedProbe
            | Kind::MatchedReceive
    );
    !row.properties.local && !point_to_point && row.kind != Kind::Abort
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};

    /// Threads of rank 0 with these calls.
    fn threads(calls: &[&[(&str, &[i64])]]) -> Option<Threads> {
        let mut recorder = RankRecorder::new(0, Options::default());
        for calls in calls {
            let thread = recorder.open_thread(0);
            let site = recorder.sites.stack(Vec::new());
            for (name, words) in *calls {
                let sym = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
                recorder.record(thread, sym, words, 0, 0);
            }
        }
        Threads::of(&recorder.finish("host"), 0).unwrap()
    }

    // comm newcomm; freecomm; count type dest tag comm
    const DUP: (&str, &[i64]) = ("MPI_Comm_dup", &[0, 2]);
    const FREE: (&str, &[i64]) = ("MPI_Comm_free", &[2]);
    const SEND: (&str, &[i64]) = ("MPI_Send", &[1, 0, 0, 0, 2]);
    const BARRIER: (&str, &[i64]) = ("MPI_Barrier", &[2]);

    #[test]
    fn a_free_waits_for_the_last_use_on_other_threads() {
        let found = threads(&[&[DUP, BARRIER, FREE], &[SEND, SEND], &[("MPI_Query_thread", &[3])]]).unwrap();
        assert_eq!(
            freed(CallTable::builtin().by_name("MPI_Comm_free").unwrap(), &[2]),
            Some((Object::Comm, 2))
        );
        assert_eq!(found.before_free(0, (Object::Comm, 2)), [(1, 2)]);
        assert_eq!(found.before_free(1, (Object::Comm, 2)), [(0, 3)]);
    }

    #[test]
    fn collective_operations_of_two_threads_on_one_communicator_have_no_known_order() {
        assert!(threads(&[&[DUP, BARRIER], &[BARRIER]]).is_none());
        assert!(threads(&[&[DUP, BARRIER], &[("MPI_Barrier", &[3])]]).is_some());
    }

    #[test]
    fn an_object_made_again_is_not_shared() {
        assert!(threads(&[&[DUP, FREE, DUP, FREE], &[SEND]]).is_none());
        assert!(threads(&[&[DUP, FREE, DUP, FREE], &[("MPI_Send", &[1, 0, 0, 0, 0])]]).is_some());
    }

    #[test]
    fn windows_are_known_to_the_first_thread_alone() {
        let fence: (&str, &[i64]) = ("MPI_Win_fence", &[0, 0]);
        assert!(threads(&[&[fence], &[SEND]]).is_some());
        assert!(threads(&[&[SEND], &[fence]]).is_none());
    }
}
