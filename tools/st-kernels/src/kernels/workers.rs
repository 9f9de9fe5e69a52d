//! Teams of a master and workers: the master takes results in the order they come.
//!
//! Each worker has a number of tasks of its own, so that the ranks' calls are the same in every run but for the order
//! in which the master meets its workers, and the number of times it has to wait.

use st_model::num::{self, narrow};
use std::collections::VecDeque;

use st_model::ranks::{RankSeq, Run};

use crate::chance::draw_below;
use crate::{ANY_SOURCE, ANY_TAG, Arrival, Communicator, Digest, Job, Kind, Part, Receive};

/// Ranks in a team, the master included.
const TEAM: i32 = 16;
/// Tags of messages.
const TASK: i32 = 1;
const STOP: i32 = 2;
const RESULT: i32 = 3;
const SAMPLE: i32 = 4;
/// Topics of random numbers.
const TASKS: u32 = 10;
const LENGTH: u32 = 11;
/// Numbers in a task's description.
const DESCRIPTION: i32 = 4;

/// Number of tasks of a worker, by its rank in the world.
fn tasks(job: &Job, worker: i32) -> i32 {
    job.steps + draw_below(1 + job.steps / 4, job.seed, TASKS, worker, 0)
}

/// Number of elements in the result of a worker's n-th task.
fn length(job: &Job, worker: i32, n: i32) -> i32 {
    1 + draw_below(job.size, job.seed, LENGTH, worker, n)
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let first = job.me / TEAM * TEAM;
    let members = TEAM.min(job.ranks - first);
    let run = Run { start: i64::from(first), step: 1, n: u64::from(members.cast_unsigned()) };
    let Some(team) = world.split(Some(job.me / TEAM), job.me, &RankSeq::from_runs([run])) else {
        return seen;
    };
    let data = world.buffer(Kind::Byte, job.size);
    let task = world.buffer(Kind::Int, DESCRIPTION);
    let sample = world.buffer(Kind::Double, members);
    if job.me == first {
        let master = Master { job, workers: members - 1, task, data, sample };
        master.hand_out(&team, &mut seen);
        master.collect(&team, &mut seen);
    } else {
        work(&team, job, task, data, &mut seen);
    }
    team.barrier();
    team.free();
    seen
}

/// A worker: tasks until it is told to stop, then as many samples.
fn work<C: Communicator>(team: &C, job: &Job, task: Part, data: Part, seen: &mut Digest) {
    let tasks = tasks(job, job.me);
    for n in 0..=tasks {
        let tag = if n < tasks { TASK } else { STOP };
        let forecast = Arrival { source: 0, tag, count: if tag == TASK { DESCRIPTION } else { 0 } };
        if team.recv(Receive::wild(task, 0, ANY_TAG, forecast)).tag == STOP {
            break;
        }
        seen.absorb(team.digest(task));
        team.compute(job.seconds / 2.0);
        let result = data.first(length(job, job.me, n));
        team.fill(result, job.seed ^ u64::from(n.cast_unsigned()));
        team.send(result, 0, RESULT);
    }
    let sample = team.buffer(Kind::Double, 1);
    for n in 0..tasks {
        team.compute(job.seconds / 2.0);
        team.fill(sample, job.seed.wrapping_add(u64::from(n.cast_unsigned())));
        team.send(sample, 0, SAMPLE);
    }
}

/// The master, rank 0 of its team.
struct Master<'a> {
    job: &'a Job,
    workers: i32,
    task: Part,
    data: Part,
    sample: Part,
}

impl Master<'_> {
    /// Rank in the world of a worker of the team.
    fn name(&self, worker: i32) -> i32 {
        self.job.me + worker
    }

    /// Hands out tasks one by one, the next to whoever has finished one.
    fn hand_out<C: Communicator>(&self, team: &C, seen: &mut Digest) {
        let mut handed = vec![0; narrow(self.workers + 1)];
        let mut busy: VecDeque<i32> = (1..=self.workers).collect();
        for worker in 1..=self.workers {
            self.next_task(team, worker, &mut handed);
        }
        let total: i32 = (1..=self.workers).map(|w| tasks(self.job, self.name(w))).sum();
        for _ in 0..total {
            // On paper, the worker that has waited longest is the first to answer.
            let guess = busy.pop_front().unwrap_or(0);
            let forecast = Arrival { source: guess, tag: RESULT, count: self.due(guess, &handed) };
            let worker = team.probe(ANY_SOURCE, RESULT, forecast).source;
            let result = self.data.first(self.due(worker, &handed));
            team.recv(Receive::exact(result, worker, RESULT));
            seen.add(team.digest(result));
            if self.next_task(team, worker, &mut handed) {
                busy.push_back(worker);
            }
        }
    }

    /// Length of the result that a worker owes.
    fn due(&self, worker: i32, handed: &[i32]) -> i32 {
        let n = num::at(handed, worker).copied().unwrap_or(0);
        length(self.job, self.name(worker), n - 1)
    }

    /// Sends a worker its next task, or tells it to stop; whether there was one.
    fn next_task<C: Communicator>(&self, team: &C, worker: i32, handed: &mut [i32]) -> bool {
        let Some(n) = usize::try_from(worker).ok().and_then(|w| handed.get_mut(w)) else { return false };
        if *n == tasks(self.job, self.name(worker)) {
            team.send(self.task.first(0), worker, STOP);
            return false;
        }
        team.fill(self.task, self.job.seed ^ u64::from(n.cast_unsigned()));
        *n += 1;
        team.send(self.task, worker, TASK);
        true
    }

    /// Takes the samples with one receive open per worker.
    fn collect<C: Communicator>(&self, team: &C, seen: &mut Digest) {
        let part = |at: i32| self.sample.slice(at, 1);
        let mut left: Vec<i32> = (1..=self.workers).map(|w| tasks(self.job, self.name(w))).collect();
        let mut requests: Vec<C::Request> =
            (1..=self.workers).map(|w| team.irecv(Receive::exact(part(w), w, SAMPLE))).collect();
        let mut turn = 0;
        while left.iter().any(|n| *n > 0) {
            // On paper, up to two workers are found ready, in turn.
            let open: Vec<usize> = (0..left.len()).filter(|i| left[*i] > 0).collect();
            let mut forecast: Vec<usize> =
                (0..open.len().min(2)).map(|k| open[(turn + k) % open.len()]).collect();
            forecast.sort_unstable();
            turn += forecast.len();
            for i in team.waitsome(&mut requests, &forecast) {
                let Ok(worker) = i32::try_from(i + 1) else { continue };
                seen.add(team.digest(part(worker)));
                left[i] -= 1;
                if left[i] > 0 {
                    requests[i] = team.irecv(Receive::exact(part(worker), worker, SAMPLE));
                }
            }
        }
    }
}
