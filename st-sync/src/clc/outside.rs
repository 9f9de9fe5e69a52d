//! The other processes during the forward pass.
//!
//! Times are sent by the numbers of the links that they belong to (see [`st_match::graph::Links`]). Nobody knows beforehand
//! when all is over: streams may wait for each other in a circle. So the first process finds out, by a token that goes
//! round and that each process passes on when it has nothing to do: when in two rounds as many messages had been
//! received as sent, and no more than in the round before, all processes wait for each other, or have done (Mattern
//! 1987, four counters).

use st_model::num::narrow;
use std::time::Duration;

use st_cli::transport::{Gone, Tag, Transport};
use st_match::graph::Links;

use super::waiting::{Waiting, in_circle};
use crate::team::{get_times, get_words, put_times, put_words};

/// Tag of all messages of the forward pass.
const FORWARD: Tag = 1;

/// How long the first process waits for times that it needs before it asks the others whether there will be any.
const PATIENCE: Duration = Duration::from_millis(2);

// Kinds of messages: their first byte.
const TIMES: u8 = 0;
const TOKEN: u8 = 1;
const ASK: u8 = 2;
const ANSWER: u8 = 3;
const SET_FREE: u8 = 4;
const OVER: u8 = 5;

/// What a process may meet when it has nothing to do.
#[derive(Debug)]
pub(super) enum Event {
    /// Times have come: place, time.
    Times(Vec<(usize, i64)>),
    /// A stream of this process is to be freed, since it waits in a circle.
    Free(u32),
    /// All streams of all processes are at their ends; so many had to be freed.
    Over(u64),
}

/// The other processes.
pub(super) struct Outside<'a> {
    job: &'a mut dyn Transport,
    links: &'a Links,
    /// Messages with times.
    sent: u64,
    received: u64,
    /// On the first process: the token is on its way; the counts of the last round; streams freed.
    going: bool,
    last: Option<[u64; 2]>,
    circular: u64,
    /// On the first process: who waits for whom, and how many have answered.
    waiting: Vec<Waiting>,
    answers: usize,
}

impl<'a> Outside<'a> {
    pub(super) fn new(job: &'a mut dyn Transport, links: &'a Links) -> Self {
        Self {
            job,
            links,
            sent: 0,
            received: 0,
            going: false,
            last: None,
            circular: 0,
            waiting: Vec::new(),
            answers: 0,
        }
    }

    /// Sends times: process, link, time.
    pub(super) fn send(&mut self, times: &[(u32, u32, i64)]) -> Result<(), Gone> {
        if times.is_empty() {
            return Ok(());
        }
        let mut by_process: Vec<Vec<(u32, i64)>> = vec![Vec::new(); self.job.size()];
        times.iter().for_each(|(process, link, time)| by_process[*process as usize].push((*link, *time)));
        for (process, times) in by_process.into_iter().enumerate().filter(|(_, t)| !t.is_empty()) {
            let mut bytes = vec![TIMES];
            put_times(&mut bytes, &times);
            self.sent += 1;
            self.job.send(process, FORWARD, bytes)?;
        }
        Ok(())
    }

    /// Waits until there is something to do. `unfinished` streams of this process are not at their ends; `waiting` says
    /// which these are.
    pub(super) fn wait(
        &mut self,
        unfinished: usize,
        waiting: impl Fn() -> Vec<Waiting>,
    ) -> Result<Event, Gone> {
        loop {
            // What is there already is delivered first.
            let asks = self.job.rank() == 0 && !self.going && self.answers == 0;
            let limit = asks.then_some(if unfinished > 0 { PATIENCE } else { Duration::ZERO });
            let Some((from, bytes)) = self.job.wait(None, FORWARD, limit)? else {
                self.going = true;
                self.pass_on([0; 3], unfinished)?;
                continue;
            };
            let (kind, rest) = bytes.split_first().ok_or(Gone)?;
            match *kind {
                TIMES => {
                    self.received += 1;
                    let places = &self.links.places[from];
                    let times = get_times(rest).ok_or(Gone)?;
                    let place = |(link, time): (u32, i64)| Some((*places.get(link as usize)? as usize, time));
                    return Ok(Event::Times(times.into_iter().filter_map(place).collect()));
                }
                TOKEN => {
                    let counts = get_words(rest).and_then(|w| w.try_into().ok()).ok_or(Gone)?;
                    if self.job.rank() > 0 {
                        self.pass_on(counts, unfinished)?;
                    } else if let Some(event) = self.round(counts, &waiting)? {
                        return Ok(event);
                    }
                }
                ASK => {
                    let mut bytes = vec![ANSWER];
                    let all = waiting();
                    let words = all.iter().flat_map(|w| [i64::from(w.stream), i64::from(w.sender)]);
                    put_words(&mut bytes, &words.collect::<Vec<_>>());
                    self.job.send(0, FORWARD, bytes)?;
                }
                ANSWER => {
                    let id = |v: i64| u32::try_from(v).map_err(|_| Gone);
                    let words = get_words(rest).ok_or(Gone)?;
                    let theirs = words.as_chunks::<2>().0;
                    for [stream, sender] in theirs {
                        self.waiting.push(Waiting { stream: id(*stream)?, sender: id(*sender)? });
                    }
                    self.answers += 1;
                    if self.answers == self.job.size()
                        && let Some(event) = self.free()?
                    {
                        return Ok(event);
                    }
                }
                SET_FREE => {
                    self.received += 1;
                    let words = get_words(rest).ok_or(Gone)?;
                    let stream = words.first().and_then(|w| u32::try_from(*w).ok()).ok_or(Gone)?;
                    return Ok(Event::Free(stream));
                }
                OVER => {
                    let words = get_words(rest).ok_or(Gone)?;
                    return Ok(Event::Over(words.first().map_or(0, |w| w.unsigned_abs())));
                }
                _ => return Err(Gone),
            }
        }
    }

    /// Adds this process to a round of the token: messages sent, received, streams not at their ends.
    fn pass_on(&mut self, counts: [i64; 3], unfinished: usize) -> Result<(), Gone> {
        let mine = [self.sent, self.received, unfinished as u64].map(narrow::<i64>);
        let counts: Vec<i64> = counts.iter().zip(mine).map(|(a, b)| a.saturating_add(b)).collect();
        let mut bytes = vec![TOKEN];
        put_words(&mut bytes, &counts);
        let next = (self.job.rank() + 1) % self.job.size();
        self.job.send(next, FORWARD, bytes)
    }

    /// The token is back at the first process.
    fn round(
        &mut self,
        [sent, received, unfinished]: [i64; 3],
        waiting: &impl Fn() -> Vec<Waiting>,
    ) -> Result<Option<Event>, Gone> {
        self.going = false;
        let counts = [sent.unsigned_abs(), received.unsigned_abs()];
        let quiet = sent == received && self.last == Some(counts);
        self.last = Some(counts);
        if !quiet {
            return Ok(None);
        }
        self.last = None;
        if unfinished > 0 {
            self.waiting = waiting();
            self.answers = 1;
            self.everyone(&[ASK])?;
            return if self.job.size() == 1 { self.free() } else { Ok(None) };
        }
        let mut bytes = vec![OVER];
        put_words(&mut bytes, &[narrow(self.circular)]);
        self.everyone(&bytes)?;
        Ok(Some(Event::Over(self.circular)))
    }

    /// All have said who waits: one is freed.
    fn free(&mut self) -> Result<Option<Event>, Gone> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable_by_key(|w| w.stream);
        self.answers = 0;
        self.circular += 1;
        let stream = in_circle(&waiting);
        let owner = self.links.owners.get(stream as usize).map_or(0, |p| *p as usize);
        if owner == 0 {
            return Ok(Some(Event::Free(stream)));
        }
        let mut bytes = vec![SET_FREE];
        put_words(&mut bytes, &[i64::from(stream)]);
        self.sent += 1;
        self.job.send(owner, FORWARD, bytes)?;
        Ok(None)
    }

    fn everyone(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        (1..self.job.size()).try_for_each(|p| self.job.send(p, FORWARD, bytes.to_vec()))
    }
}
