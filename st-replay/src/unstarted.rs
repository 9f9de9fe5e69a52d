//! Requests of calls that are left out: what is done with them is left out, too.

use std::collections::HashSet;
use std::ops::Range;

use st_model::calls::{Meaning, Row};
use st_model::values::NULL;

/// The requests of a thread that its replay does not have.
#[derive(Debug, Default)]
pub struct Unstarted {
    requests: HashSet<i64>,
}

impl Unstarted {
    /// A call is left out, and with it the request that it makes.
    pub fn leave_out(&mut self, row: &Row, words: &[i64]) {
        let made = named(row, words).filter(|n| n.made);
        self.requests.extend(made.filter_map(|n| words.get(n.words)).flatten().filter(|r| **r != NULL));
    }

    /// Whether a call is made: not if all requests that it names are ones that are not there. Those that it waits for beside
    /// others become null. *Cost:* none without such requests, else O(words).
    pub fn keep(&mut self, row: &Row, words: &mut [i64]) -> bool {
        if self.requests.is_empty() {
            return true;
        }
        let completes = row.slot("completed").is_some();
        let (mut there, mut missing) = (0, 0);
        let named: Vec<Named> = named(row, words).collect();
        for Named { made, words: at } in named {
            for request in words.get_mut(at).into_iter().flatten().filter(|r| **r != NULL) {
                if made {
                    self.requests.remove(request);
                } else if self.requests.contains(request) {
                    missing += 1;
                    if completes {
                        *request = NULL;
                    }
                } else {
                    there += 1;
                }
            }
        }
        missing == 0 || there > 0
    }
}

/// Requests, or a message, that a call names.
struct Named {
    /// By making it.
    made: bool,
    /// Where they are among the call's words.
    words: Range<usize>,
}

fn named<'a>(row: &'a Row, words: &'a [i64]) -> impl Iterator<Item = Named> + 'a {
    let makes = row.params.iter().any(|p| matches!(p.role.as_str(), "newrequest" | "newmessage"));
    // The last one, where a message becomes a request.
    let last = row.slots.iter().rposition(|s| s.meaning == Meaning::Request).filter(|_| makes);
    let places = row.slots.iter().enumerate().scan(0, |at, (i, slot)| {
        let from = if slot.list { *at + 1 } else { *at };
        let n = if slot.list { usize::try_from(*words.get(*at)?).ok()? } else { 1 };
        *at = from.checked_add(n)?;
        Some((i, slot, from..*at))
    });
    places
        .filter(|(_, slot, _)| slot.meaning == Meaning::Request)
        .map(move |(i, _, words)| Named { made: Some(i) == last, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::calls::CallTable;

    fn row(name: &str) -> &'static Row {
        CallTable::builtin().by_name(name).unwrap()
    }

    /// A thread whose request 5 is not there.
    fn without_5() -> Unstarted {
        let mut unstarted = Unstarted::default();
        // file offset count type request
        unstarted.leave_out(row("MPI_File_iread_at"), &[0, 64, 8, 1, 5]);
        unstarted
    }

    #[test]
    fn a_wait_for_what_is_not_there_is_left_out_or_waits_for_the_others() {
        let mut unstarted = without_5();
        // requests completed source tag bytes
        assert!(!unstarted.keep(row("MPI_Wait"), &mut [1, 5, 1, 0, 1, -9, 1, -9, 1, 8]));
        let all: &mut [i64] = &mut [3, 3, 4, 5, NULL, 2, 0, 1, 2, -9, -9, 2, -9, -9, 2, 8, 8];
        assert!(unstarted.keep(row("MPI_Waitall"), all));
        assert_eq!(all[..5], [3, 3, 4, NULL, NULL]);
        assert!(unstarted.keep(row("MPI_Wait"), &mut [1, 4, 1, 0, 1, -9, 1, -9, 1, 8]));
        assert!(unstarted.keep(row("MPI_Barrier"), &mut [0]));
    }

    #[test]
    fn a_request_takes_the_number_of_one_that_is_not_there() {
        let mut unstarted = without_5();
        assert!(!unstarted.keep(row("MPI_Cancel"), &mut [5]));
        // count type dest tag comm request
        assert!(unstarted.keep(row("MPI_Isend"), &mut [1, 0, 1, 0, 0, 5]));
        assert!(unstarted.keep(row("MPI_Cancel"), &mut [5]));
        let mut unstarted = without_5();
        let probe = row("MPI_Mprobe");
        let mut words: Vec<i64> =
            probe.slots.iter().map(|s| if s.name == "request" { 5 } else { 0 }).collect();
        assert!(unstarted.keep(probe, &mut words));
        // count type message request
        assert!(unstarted.keep(row("MPI_Imrecv"), &mut [1, 0, 5, 6]));
    }
}
