//! Processes that are threads of one program.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::{Gone, Tag, Transport};

/// Sender, tag, bytes.
type Message = (usize, Tag, Vec<u8>);

/// Tag of the last message of a thread that panics.
const LOST: Tag = Tag::MAX;

/// One of a number of processes that are threads of one program.
#[derive(Debug)]
pub struct Thread {
    rank: usize,
    to: Vec<Sender<Message>>,
    from: Receiver<Message>,
    /// What has arrived and not been asked for.
    early: VecDeque<Message>,
}

/// So many processes that are threads of one program.
#[must_use]
pub fn threads(n: usize) -> Vec<Thread> {
    let (to, from): (Vec<_>, Vec<_>) = (0..n).map(|_| channel()).unzip();
    let one = |(rank, from)| Thread { rank, to: to.clone(), from, early: VecDeque::new() };
    from.into_iter().enumerate().map(one).collect()
}

impl Transport for Thread {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.to.len()
    }
    fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), Gone> {
        self.to.get(to).ok_or(Gone)?.send((self.rank, tag, bytes)).map_err(|_| Gone)
    }
    fn wait(
        &mut self,
        from: Option<usize>,
        tag: Tag,
        limit: Option<Duration>,
    ) -> Result<Option<(usize, Vec<u8>)>, Gone> {
        let fits = |m: &Message| m.1 == tag && from.is_none_or(|f| f == m.0);
        if let Some(i) = self.early.iter().position(fits) {
            return Ok(self.early.remove(i).map(|(from, _, bytes)| (from, bytes)));
        }
        let until = limit.map(|l| Instant::now() + l);
        loop {
            let next = match until {
                None => self.from.recv().map_err(|_| Gone)?,
                Some(until) => {
                    match self.from.recv_timeout(until.saturating_duration_since(Instant::now())) {
                        Ok(message) => message,
                        Err(RecvTimeoutError::Timeout) => return Ok(None),
                        Err(RecvTimeoutError::Disconnected) => return Err(Gone),
                    }
                }
            };
            if next.1 == LOST {
                return Err(Gone);
            }
            if fits(&next) {
                return Ok(Some((next.0, next.2)));
            }
            self.early.push_back(next);
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Whoever waits for this one must not do so for ever.
            self.to.iter().for_each(|to| drop(to.send((self.rank, LOST, Vec::new()))));
        }
    }
}
