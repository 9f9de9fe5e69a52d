//! MPI without MPI, as unkind as the standard allows: a send completes only when its receive is posted, a collective
//! operation only when all have come, and who runs next is up to a scheduler that wants a deadlock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use st_model::calls::CallTable;
use st_model::form::Codes;
use st_model::frequencies::Frequencies;
use st_model::section::{Form, Section};
use st_replay::factor::Factor;
use st_replay::sampled_messages::{Arrivals, Message, Sender, destinations};

/// A generator of numbers that are the same for ever (SplitMix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ z >> 31) >> 33).unwrap() % n
    }
}

/// A program of so many ranks that runs to its end: messages of all kinds, in an order in which each is sent before it is
/// received, and collective operations of all.
pub(crate) fn program(chance: &mut Chance, ranks: usize) -> String {
    let mut lines = vec!["* MPI_Init".to_owned()];
    // Receives that have not been made: (receiver, sender, tag, count).
    let mut sent: VecDeque<(usize, usize, usize, usize)> = VecDeque::new();
    let receive = |lines: &mut Vec<String>, chance: &mut Chance, (to, from, tag, count)| {
        lines.push(match chance.below(3) {
            0 => format!("{to} MPI_Recv source={from} tag={tag} count={count}"),
            1 => format!("{to} MPI_Recv source=-2 tag={tag} rsource={from} count={count}"),
            _ => format!(
                "{to} MPI_Irecv source={from} tag={tag} count={count} request=7\n\
                 {to} MPI_Wait requests=7 completed=0 source={from} tag={tag} bytes={}",
                4 * count
            ),
        });
    };
    for _ in 0..5 + chance.below(40) {
        let (from, to) = (chance.below(ranks), chance.below(ranks));
        let (tag, count) = (chance.below(3), chance.below(100));
        match chance.below(9) {
            0 => lines.push("* MPI_Barrier".into()),
            1 => lines.push(format!("* MPI_Allreduce count={count}")),
            2 => lines.push(format!("* MPI_Bcast root={} count={count}", chance.below(ranks))),
            3 => {
                let mut pending = sent.pop_front();
                while let Some(message) = pending {
                    receive(&mut lines, chance, message);
                    pending = (chance.below(4) > 0).then(|| sent.pop_front()).flatten();
                }
            }
            4 => {
                lines.push(format!(
                    "{from} MPI_Send_init dest={to} tag={tag} count={count} request=3\n\
                     {from} MPI_Start request=3\n\
                     {from} MPI_Wait requests=3 completed=0 source=-9 tag=-9 bytes=-9\n\
                     {from} MPI_Request_free request=3"
                ));
                sent.push_back((to, from, tag, count));
            }
            5 | 6 => {
                lines.push(format!(
                    "{from} MPI_Isend dest={to} tag={tag} count={count} request=5\n\
                     {from} MPI_Wait requests=5 completed=0 source=-9 tag=-9 bytes=-9"
                ));
                sent.push_back((to, from, tag, count));
            }
            _ => {
                lines.push(format!("{from} MPI_Send dest={to} tag={tag} count={count}"));
                sent.push_back((to, from, tag, count));
            }
        }
    }
    for message in std::mem::take(&mut sent) {
        receive(&mut lines, chance, message);
    }
    lines.push("* MPI_Finalize".into());
    lines.join("\n")
}

/// Makes histograms of all destinations, sources and counts of messages.
pub(crate) fn blur(section: &mut Section) {
    let table = CallTable::builtin();
    let slots: Vec<Vec<bool>> = section
        .symbols
        .iter()
        .map(|s| {
            let row = table.get(s.call).unwrap();
            let message = row.slots.iter().any(|s| matches!(s.name.as_str(), "dest" | "source"))
                && row.slots.iter().any(|s| s.name == "count");
            let lossy = |n: &str| matches!(n, "dest" | "source" | "rsource" | "count");
            row.slots.iter().map(|s| message && !s.list && lossy(&s.name)).collect()
        })
        .collect();
    let rank = section.ranks.lowest().unwrap();
    let mut made = vec![0; slots.len()];
    section.project(0, rank).unwrap().for_each(|call| made[call.unwrap().sym as usize] += 1);
    let thread = &mut section.threads[0];
    for ((params, slots), made) in thread.params.iter_mut().zip(&slots).zip(made) {
        for (streams, _) in params.iter_mut().zip(slots).filter(|(_, lossy)| **lossy) {
            let values = &mut streams.values;
            for stream in &mut values.streams {
                let mut frequencies = Frequencies::default();
                let mut cursor = stream.cursor();
                (0..made).for_each(|_| frequencies.add(cursor.next(), 1));
                *stream = frequencies.to_stream();
            }
            values.form = Form::Histogram(Codes::Absolute);
        }
    }
}

/// One rank of a replay.
struct Rank<'a> {
    calls: st_model::project::Projection<'a>,
    sender: Sender<'a>,
    arrivals: Arrivals<'a>,
    clock: u64,
    state: State,
    /// Collective operations begun.
    operations: usize,
    sent: Vec<Message>,
    posted: Vec<Message>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    /// In a collective operation.
    Together,
    /// Waiting for all its messages.
    Ending,
    Done,
}

/// Who runs next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unkindness {
    /// Anybody.
    Chance,
    /// The same one as long as it can.
    Greed,
    /// The one that has come least far, or farthest.
    Behind,
    Ahead,
}

/// Replays by the rules of `st_replay::sampled_messages`; what goes wrong is an error.
pub(crate) fn replay(sections: &[Section], how: Unkindness, chance: &mut Chance) -> Result<usize, String> {
    let to: Vec<BTreeSet<u32>> =
        (0..).zip(sections).map(|(rank, s)| destinations(s, rank).unwrap()).collect();
    let ranks = (0u32..).zip(sections).map(|(rank, section)| {
        let senders = (0u32..).zip(sections).zip(&to).filter(|(_, to)| to.contains(&rank)).map(|(s, _)| s);
        Rank {
            calls: section.project(0, rank).unwrap(),
            sender: Sender::new(section, rank, Factor::ONE),
            arrivals: Arrivals::new(rank, senders, Factor::ONE).unwrap(),
            clock: 0,
            state: State::Running,
            operations: 0,
            sent: Vec::new(),
            posted: Vec::new(),
        }
    });
    let mut ranks: Vec<Rank<'_>> = ranks.collect();
    let mut last = 0;
    loop {
        let able: Vec<usize> = (0..ranks.len()).filter(|r| can_run(&ranks, *r)).collect();
        if able.is_empty() {
            break;
        }
        let next = match how {
            Unkindness::Chance => able[chance.below(able.len())],
            Unkindness::Greed if able.contains(&last) => last,
            Unkindness::Greed => able[chance.below(able.len())],
            Unkindness::Behind => *able.iter().min_by_key(|r| ranks[**r].calls.index()).unwrap(),
            Unkindness::Ahead => *able.iter().max_by_key(|r| ranks[**r].calls.index()).unwrap(),
        };
        last = next;
        step(&mut ranks[next], &sections[next]);
    }
    let states: Vec<State> = ranks.iter().map(|r| r.state).collect();
    if states.iter().any(|s| *s != State::Done) {
        return Err(format!("deadlock: {states:?}"));
    }
    let sorted = |mut all: Vec<Message>| {
        all.sort_unstable();
        all
    };
    let sent = sorted(ranks.iter().flat_map(|r| r.sent.clone()).collect());
    let posted = sorted(ranks.iter().flat_map(|r| r.posted.clone()).collect());
    if sent == posted { Ok(sent.len()) } else { Err(format!("sent {sent:?}, received {posted:?}")) }
}

/// Whether a rank can go on.
fn can_run(ranks: &[Rank<'_>], r: usize) -> bool {
    match ranks[r].state {
        State::Running => true,
        State::Together => {
            let n = ranks[r].operations;
            ranks.iter().all(|o| o.operations >= n)
        }
        State::Ending => {
            // All messages of the rank have both ends.
            let mut ends: BTreeMap<Message, i32> = BTreeMap::new();
            for rank in ranks {
                rank.sent.iter().for_each(|m| *ends.entry(*m).or_default() += 1);
                rank.posted.iter().for_each(|m| *ends.entry(*m).or_default() -= 1);
            }
            ranks[r].sent.iter().chain(&ranks[r].posted).all(|m| ends[m] == 0)
        }
        State::Done => false,
    }
}

/// One call of a rank.
fn step(rank: &mut Rank<'_>, section: &Section) {
    if rank.state == State::Ending {
        rank.state = State::Done;
        return;
    }
    rank.state = State::Running;
    let mut words = Vec::new();
    let sym = rank.calls.next_call(&mut words).unwrap().unwrap();
    rank.clock += 15;
    let name = section.symbols[sym as usize].call.to_string();
    let until = if name == "MPI_Finalize" { u64::MAX } else { rank.clock };
    while let Some(message) = rank.arrivals.next(until).unwrap() {
        rank.posted.push(message);
    }
    rank.sender.see(sym, &words, &mut rank.sent);
    match name.as_str() {
        "MPI_Finalize" => rank.state = State::Ending,
        "MPI_Barrier" | "MPI_Allreduce" | "MPI_Bcast" => {
            rank.operations += 1;
            rank.state = State::Together;
        }
        _ => {}
    }
}
