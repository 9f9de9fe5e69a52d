//! Forward: ready queues of streams, each running until it needs a time that no other has produced yet.
//!
//! Every thread has a *share*: streams one after the other, which no other thread runs, and a queue of those that can go on.
//! A stream of another share that gets what it waited for is put into that share's inbox. So threads meet only where
//! messages pass between their streams.
//!
//! In several processes each has shares of its own streams. When none of them can go on, the times that others wait for
//! are sent, and those that come in are delivered: see [`super::outside`].

use std::sync::atomic::AtomicUsize;
use std::sync::{Condvar, Mutex, PoisonError};

use st_cli::transport::Gone;
use st_match::graph::Graph;

use super::exchange::{Exchange, FREE};
use super::moves::Moves;
use super::outside::Outside;
use super::points::{Points, Window};
use super::streams::{Mailbox, Progress, Work, lock};
use super::workers::{Worker, bounds};
use super::{Options, Pass};
use crate::team::Team;

/// Runs all streams to their ends.
pub(super) fn forward(
    graph: &Graph,
    exchange: &Exchange,
    points: &(impl Points + ?Sized),
    options: &Options,
    gamma: i64,
    team: &mut Team<'_>,
) -> Result<Pass, Gone> {
    let Team { links, job } = team;
    exchange.reset(graph, links);
    let me = job.as_ref().map_or(0, |job| job.rank());
    let mine = |s: usize| links.owners.get(s).is_none_or(|p| *p as usize == me);
    let n = graph.streams.len();
    let progress = |s: usize| {
        let mut points = Window::new(points.of(s));
        let first = points.from(0).first().copied().unwrap_or(0);
        let (moves, jumps) = (Moves::default(), Vec::new());
        let done = !mine(s);
        Progress { points, op: 0, at: 0, last: None, first, limit: FREE, moves, jumps, largest: 0, done }
    };
    let bounds = bounds(graph, options.jobs.max(1), mine);
    let work = Work {
        graph,
        links,
        exchange,
        options,
        gamma,
        streams: (0..n).map(|s| Mutex::new(progress(s))).collect(),
        prefixes: Mutex::default(),
        mailboxes: bounds.iter().skip(1).map(|_| Mailbox::default()).collect(),
        bounds,
        unfinished: AtomicUsize::new((0..n).filter(|s| mine(*s)).count()),
        idle: AtomicUsize::new(0),
        sleep: Mutex::default(),
        asleep: AtomicUsize::new(0),
        woken: Condvar::new(),
    };
    let circular = std::thread::scope(|scope| {
        for share in 1..work.mailboxes.len() {
            let work = &work;
            scope.spawn(move || Worker::new(work, share).follow());
        }
        let done = match job {
            Some(job) => Worker::new(&work, 0).lead(Some(&mut Outside::new(*job, links))),
            None => Worker::new(&work, 0).lead(None),
        };
        lock(&work.sleep).over = true;
        work.woken.notify_all();
        done
    })?;
    let mut pass = Pass { settled: true, circular, ..Pass::default() };
    for p in work.streams {
        let mut p = p.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (measured, corrected) = p.last.unwrap_or((p.first, p.first));
        let (late, duration) = (i128::from(corrected - measured), i128::from(measured - p.first));
        pass.settled &= duration == 0 || late * 20 <= duration;
        pass.largest = pass.largest.max(p.largest);
        pass.jumps.push(p.jumps);
        p.moves.close();
        pass.moves.push(p.moves);
    }
    Ok(pass)
}
