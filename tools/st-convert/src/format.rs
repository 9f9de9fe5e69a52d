//! What a format is.

use std::path::Path;

use anyhow::Result;
use st_model::calls::CallId;
use st_model::event::Event;

use crate::exchanges::{Exchange, MovedRequest};
use crate::groups::Groups;
use crate::level::Level;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::message::Message;
use crate::phase::Phase;
use crate::trace::{Lane, Trace};

/// One call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) event: &'a Event<'a>,
    /// Its thread, by number in [`Trace::lanes`].
    pub(crate) at: u32,
    pub(crate) lane: Lane,
    /// Its call site, by number in [`Trace::sites`].
    pub(crate) site: u32,
    /// Enter and exit, ns since the trace's zero, if they are known.
    pub(crate) times: Option<(i64, i64)>,
    /// Bytes as st-stat counts them.
    pub(crate) sent: u64,
    /// Bytes as st-stat counts them.
    pub(crate) received: u64,
    /// What it does with others, in order.
    pub(crate) exchanges: &'a [Exchange],
    /// Requests that it names and that other threads of its rank have made.
    pub(crate) moved: &'a [MovedRequest],
    pub(crate) groups: &'a Groups,
}

impl Call<'_> {
    /// The thread that made a request which the call completes.
    pub(crate) fn starter(&self, request: i64) -> u32 {
        self.moved.iter().find(|moved| moved.number == request).map_or(self.at, |moved| moved.by)
    }
}

/// Calls of a thread that are alike, where these are told without going through them.
#[derive(Debug)]
pub(crate) struct AlikeCalls {
    pub(crate) lane: Lane,
    /// As of a [`Call`].
    pub(crate) site: u32,
    pub(crate) function: CallId,
    /// How many they are, and what all of them move.
    pub(crate) calls: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// What is known when all calls have been read.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) groups: &'a Groups,
}

/// A result being written.
pub(crate) trait Format {
    /// What follows is another run, in the same result; of formats of series only.
    fn next_run(&mut self, _trace: &Trace) {}

    /// The next call of a thread: those of all threads in the order in which they are entered or, if the format is written
    /// rank by rank, those of a rank's threads, of what is played one thread after the other.
    fn call(&mut self, call: &Call<'_>) -> Result<()>;

    /// Calls that are alike, rank by rank, none of which has exact times: of formats that sum up and need none, which are handed no calls then.
    fn alike(&mut self, _calls: &AlikeCalls) -> Result<()> {
        Ok(())
    }

    /// A call likewise that is not written, since it is not chosen.
    fn passed(&mut self, _call: &Call<'_>) -> Result<()> {
        Ok(())
    }

    /// What a rank does in an iteration or phase, rank by rank and in order; of formats that have this level only, which are handed no
    /// calls then.
    fn phase(&mut self, _phase: &Phase<'_>) -> Result<()> {
        Ok(())
    }

    /// A message, as soon as both ends are known.
    fn message(&mut self, _message: &Message, _groups: &Groups) -> Result<()> {
        Ok(())
    }

    /// Writes what is left of a run. What has no place is returned.
    fn finish(&mut self, summary: &Summary<'_>) -> Result<Losses>;

    /// Whether it has a place for all that calls say, when it is finished, whatever its kind may lack.
    fn holds_all(&self) -> bool {
        false
    }

    /// Gives the result its name.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// What is known of a format before anything is written.
#[derive(Debug)]
pub(crate) struct FormatKind {
    pub(crate) name: &'static str,
    /// How names of its files end; the first is that of the format.
    pub(crate) endings: &'static [&'static str],
    /// For whom it is.
    pub(crate) about: &'static str,
    /// It cannot be written without exact times.
    pub(crate) needs_times: bool,
    /// It is written rank by rank, and not told of messages.
    pub(crate) by_rank: bool,
    /// What it has a place for; the first unless another is asked for.
    pub(crate) levels: &'static [Level],
    /// It is played, which a part of the run cannot be: messages that cross the part's borders have one end.
    pub(crate) whole_only: bool,
    /// It has wait states of calls, or their sums over the run, if they are asked for.
    pub(crate) has_waits: bool,
    /// What calls say that it has no place for, where it has calls.
    pub(crate) lacks: &'static [Matter],
    /// Each input is a run by itself.
    pub(crate) is_series: bool,
    /// Files for each thread; 0: as many for any number of threads.
    pub(crate) files_each: u64,
    /// Bytes per call, as it comes out with programs of the test set; 0 of sums.
    pub(crate) bytes: u64,
    /// Bytes that its readers bear.
    pub(crate) bears: u64,
    /// Begins to write it.
    pub(crate) open: for<'a> fn(&Path, &'a Trace) -> Result<Box<dyn Format + 'a>>,
}
