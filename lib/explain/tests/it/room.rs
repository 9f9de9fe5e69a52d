//! Blocking sends that wait for room, and those that are long for another reason.

use crate::simulator::Machine;
use st_explain::{Finding, Matter, WaitKind, analyse};
use st_model::calls::names;

/// Rank 0 sends messages that the library keeps, which rank 1 takes every 2 ms. Each sixteenth takes so long that as many as said, by turns,
/// are left when it ends, `soon` after a receive.
fn keeps_sending(left: &[i64], soon: i64, elements: i64) -> Vec<Finding> {
    let (mut machine, messages) = (Machine::new(2), 320);
    let taken = |n: i64| (n + 1) * 2_000_000;
    let mut left = left.iter().cycle();
    for n in 0..messages {
        let enter = machine.now(0) + 1000;
        let is_long = n > 0 && n % 16 == 0;
        let until = if is_long { taken(n - left.next().unwrap()) + soon } else { enter };
        let words = vec![("dest", vec![1]), ("count", vec![elements])];
        machine.record(0, names::MPI_Send, 1, words, enter, enter.max(until) + 1000);
    }
    (0..messages).for_each(|n| {
        machine.record(1, names::MPI_Recv, 2, vec![("source", vec![0])], taken(n), taken(n) + 1000);
    });
    let found = analyse(&machine.finish().0, &|_| ()).unwrap().findings();
    found.into_iter().filter(|f| f.matter == Matter::Wait(WaitKind::LateReceiver)).collect()
}

/// As where the room is for so many messages, and where it is not: the sender is held up at any time.
const ROOM: [i64; 1] = [9];
const ANY: [i64; 4] = [9, 24, 39, 54];

#[test]
fn a_sender_that_waits_for_room_waits_for_who_takes_its_messages() {
    for elements in [700, 3000] {
        let found = keeps_sending(&ROOM, 5000, elements);
        let [f] = &found[..] else { panic!("{found:?}") };
        assert_eq!(f.culprits.iter().map(|(at, _)| at.rank).collect::<Vec<_>>(), [1]);
        // Nineteen sends, each for sixteen messages but the first, which is for seven.
        let expected = (18 * 16 + 7) * 2_000_000;
        assert!(f.count == 19 && f.cost.abs_diff(expected) < expected / 50, "{f:?}");
    }
}

#[test]
fn a_sender_that_is_told_late_of_room_waits_for_it_where_it_is_always_as_much() {
    let count = |left: &[i64], soon| keeps_sending(left, soon, 700).iter().map(|f| f.count).sum::<u64>();
    // How much room there is shows by the third of them: of the first one fewer messages were under way.
    assert_eq!(count(&ROOM, 1_500_000), 16);
    // Sends that end anywhere between two receives have waited for something else; within a sixteenth of all their time, too.
    assert_eq!(count(&ANY, 1_500_000), 0);
    assert_eq!(count(&ANY, 900_000), 0);
    assert!(count(&ANY, 5000) > 0);
}
