//! Traces with histograms: no schedule deadlocks them, and every message that is sent is received.

use crate::script::sections;
use crate::simulator::{Chance, Unkindness, blur, program, replay};
use st_replay::check::Checker;
use st_replay::factor::Factor;
use st_replay::sampled_messages::{Message, Silence, destinations};

/// Random traces that are replayed: 10,000 take minutes in a debug build, so by default there are fewer.
fn traces() -> u64 {
    std::env::var("ST_SIMULATED_TRACES").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

#[test]
fn no_schedule_deadlocks_and_every_message_is_received() {
    use Unkindness::{Ahead, Behind, Chance as Random, Greed};
    let mut messages = 0;
    for seed in 0..traces() {
        let mut chance = Chance(seed);
        let ranks = 2 + chance.below(5);
        let text = program(&mut chance, ranks);
        let mut all = sections(u32::try_from(ranks).unwrap(), &text);
        let mut checker = Checker::new(None, None);
        all.iter().for_each(|s| checker.see(s).unwrap());
        assert_eq!(
            checker.finish(&st_cli::Symbols::default(), &|_| ()).faults,
            [""; 0],
            "seed {seed}\n{text}"
        );
        all.iter_mut().for_each(blur);
        for how in [Random, Greed, Behind, Ahead] {
            match replay(&all, how, &mut chance) {
                Ok(n) => messages += n,
                Err(e) => panic!("seed {seed}, {how:?}: {e}\n{text}"),
            }
        }
    }
    assert!(messages > 0);
}

#[test]
fn sender_and_receiver_draw_the_same() {
    let text = "* MPI_Init\n0 MPI_Send dest=1 count=3\n0 MPI_Send dest=2 count=5\n* MPI_Finalize";
    let mut all = sections(3, text);
    all.iter_mut().for_each(blur);
    let to = destinations(&all[0], 0).unwrap();
    let mut received = Vec::new();
    for rank in 1..3 {
        let mut arrivals =
            st_replay::sampled_messages::Arrivals::new(rank, [(0, &all[0])], Factor::ONE).unwrap();
        while let Some(m) = arrivals.next(u64::MAX).unwrap() {
            received.push(m);
        }
    }
    assert_eq!(received.len(), 2);
    assert!(received.iter().all(|m: &Message| to.contains(&m.to) && [12, 20].contains(&m.bytes)));
}

#[test]
fn receives_are_due_when_the_sender_s_clock_has_not_passed() {
    // Calls take 5 ns and come 10 ns after each other; the clock begins at the end of MPI_Init.
    let text =
        "* MPI_Init\n0 MPI_Send dest=1 count=1\n0 MPI_Barrier\n0 MPI_Send dest=1 count=1\n* MPI_Finalize";
    let all = sections(2, text);
    let mut arrivals = st_replay::sampled_messages::Arrivals::new(1, [(0, &all[0])], Factor::ONE).unwrap();
    let mut by = |until| std::iter::from_fn(|| arrivals.next(until).unwrap()).count();
    assert_eq!([by(9), by(10), by(39), by(40), by(u64::MAX)], [0, 1, 0, 1, 0]);
}

#[test]
fn partners_are_taken_out_of_calls_that_have_messages() {
    let text = "0 MPI_Send dest=1 count=3 tag=2\n0 MPI_Bcast root=1\n0 MPI_Iprobe source=1 tag=2 flag=1\n\
                0 MPI_Wait requests=3 completed=0 source=1 tag=2 bytes=4";
    let section = &sections(2, text)[0];
    let silence = Silence::new(section);
    let mut calls = section.project(0, 0).unwrap();
    let mut words = Vec::new();
    let mut all = Vec::new();
    while let Some(sym) = calls.next_call(&mut words).unwrap() {
        silence.apply(sym, &mut words);
        all.push(words.clone());
    }
    assert_eq!(all[0], [3, 0, -1, 2, 0]);
    assert_eq!(all[1], [0, 0, 1, 0]);
    assert_eq!(all[2][..2], [-1, 2]);
    assert_eq!(all[3], [1, 3, 1, 0, 1, 1, 1, 2, 1, 4]);
}
