//! Frames in their order, made by several threads if there are some.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::packer::{Made, Packer, Work};

/// What threads may have before them, each: with less they would wait for each other.
const AHEAD: usize = 4;

/// Work, and where its frames go.
type Task = (Work, Sender<io::Result<Made>>);

/// Work that was begun, with what is to be done with its frames.
#[derive(Default)]
pub(super) struct Queue<T> {
    packer: Packer,
    threads: Vec<JoinHandle<()>>,
    /// To the threads; none of these without it.
    tasks: Option<Sender<Task>>,
    waiting: VecDeque<(T, Receiver<io::Result<Made>>)>,
}

impl<T> std::fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("threads", &self.threads.len())
            .field("waiting", &self.waiting.len())
            .finish()
    }
}

impl<T> Queue<T> {
    /// Without threads, work is done as it comes.
    pub(super) fn new() -> Self {
        Self { packer: Packer::default(), threads: Vec::new(), tasks: None, waiting: VecDeque::new() }
    }

    /// Has work done by so many threads from now on.
    pub(super) fn start(&mut self, threads: usize) -> io::Result<()> {
        let (tasks, from) = channel::<Task>();
        let from = Arc::new(Mutex::new(from));
        for _ in 0..threads {
            let from = Arc::clone(&from);
            self.threads.push(Builder::new().name("frames".to_owned()).spawn(move || work(&from))?);
        }
        self.tasks = Some(tasks);
        Ok(())
    }

    /// Adds work. Returns the frames that are next, if they are made.
    pub(super) fn push(&mut self, of: T, work: Work) -> io::Result<Option<(T, Made)>> {
        let Some(tasks) = &self.tasks else {
            return Ok(Some((of, self.packer.make(work)?)));
        };
        let (made, to) = channel();
        tasks.send((work, made)).map_err(|_| ended())?;
        self.waiting.push_back((of, to));
        if self.waiting.len() > AHEAD * self.threads.len() { self.next() } else { self.ready() }
    }

    /// The next frames; none if all have been handed out.
    pub(super) fn next(&mut self) -> io::Result<Option<(T, Made)>> {
        let Some((of, made)) = self.waiting.pop_front() else { return Ok(None) };
        Ok(Some((of, made.recv().map_err(|_| ended())??)))
    }

    fn ready(&mut self) -> io::Result<Option<(T, Made)>> {
        let Some((_, made)) = self.waiting.front() else { return Ok(None) };
        let made = match made.try_recv() {
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => return Err(ended()),
            Ok(made) => made?,
        };
        Ok(self.waiting.pop_front().map(|(of, _)| (of, made)))
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            // What it could not do has been told.
            drop(thread.join());
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("a thread that compresses has ended")
}

fn work(from: &Mutex<Receiver<Task>>) {
    let mut packer = Packer::default();
    loop {
        let task = from.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((work, to)) = task else { return };
        // Who does not want it any more has given up.
        drop(to.send(packer.make(work)));
    }
}
