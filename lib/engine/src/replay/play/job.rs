//! What all threads of a rank share.

use std::collections::BTreeMap;
use std::sync::Arc;

use st_model::calls::Row;
use st_model::section::Section;
use st_replay::args::Args;
use st_replay::cut::Stop;

use crate::replay::rank_threads::RankThreads;
use crate::replay::state::Handler;

/// Where each rank stops.
pub(crate) type Stops = Option<BTreeMap<u32, Stop>>;

/// Who plays whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assignment {
    /// Rank of the process.
    pub(crate) process: u32,
    /// Rank of the trace.
    pub(crate) rank: u32,
    /// Whether these may differ.
    pub(crate) moved: bool,
}

/// What a symbol's calls come to.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// They failed, or are of a function that is not known and left out.
    Skip,
    /// They cannot be replayed and are left out.
    LeaveOut(&'static Row),
    Make(Handler, &'static Row),
    Abort,
}

/// What all threads of a rank share.
pub(super) struct Job<'a> {
    pub(super) args: &'a Args,
    pub(super) assignment: Assignment,
    pub(super) section: &'a Section,
    pub(super) actions: Vec<Action>,
    pub(super) threads: Arc<RankThreads>,
}
