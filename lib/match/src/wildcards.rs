//! What receives with wildcards got that do not wait: known when they complete, and asked for where they are posted.
//!
//! [`Wildcards`] takes a thread's events in order and tells what each such receive got, by the position of the call that
//! posted it; of a persistent one, that made its request. Who asks keeps the calls, in whatever form it needs them.
//!
//! *Cost:* that of [`Communication`].

use st_model::calls::roles::{Action, Rule, Start};
use st_model::event::{Completed, Event, RECEIVED};
use st_model::num::saturate;
use st_model::values::{ANY_SOURCE, ANY_TAG, PROC_NULL};

use crate::UNKNOWN;
use crate::communication::{Communication, End, Listener, UNKNOWN_TAG};
use crate::standing::{Scope, Standing};

/// Whether a receive from this source with this tag does not say what it will get. From `MPI_PROC_NULL` it gets nothing,
/// whatever its tag.
#[must_use]
pub fn is_open(source: i64, tag: i64) -> bool {
    source != PROC_NULL && (source == ANY_SOURCE || tag == ANY_TAG)
}

/// How a call posts or makes a receive of which only a completion says what it got; `None` if it does not.
#[must_use]
pub fn opened(event: &Event<'_>) -> Option<Start> {
    let (Action::Receive { start } | Action::Both { start }) = event.action() else { return None };
    // Messages in parts have no wildcards (MPI 4.1, section 4.2.1).
    let (words, role) = (event.words(), event.role);
    let open = is_open(words.one(role.peer[RECEIVED]), words.one(role.tag[RECEIVED]));
    (start != Start::Blocking && !role.partitioned && open).then_some(start)
}

/// Follows the requests of one thread.
#[derive(Debug, Default)]
pub struct Wildcards {
    communication: Communication<()>,
    news: News,
}

/// What the call at hand ends: the receive's call, and what it got. Nothing: no more will be known of it.
#[derive(Debug, Default)]
struct News(Vec<(u64, Option<Completed>)>);

/// Stands for receives that say what they will get.
const NAMED: usize = usize::MAX;

impl Wildcards {
    /// Looks at the thread's next call. `tell` hears of each receive with wildcards that it completes: the position of the
    /// call that posted the receive or made it, and what it got; nothing if its request is freed.
    pub fn event(&mut self, event: &Event<'_>, mut tell: impl FnMut(u64, Option<&Completed>)) {
        self.communication.event(event, &mut self.news);
        for (call, got) in self.news.0.drain(..) {
            tell(call, got.as_ref());
        }
    }
}

impl Listener for News {
    type Part = ();

    /// Who takes part does not matter here: each rank is taken for one of as many as there can be, alone in collective
    /// operations.
    fn standing(&mut self, _: &Event<'_>, _: Scope) -> Option<Standing> {
        Some(Standing { group: 0, side: 0, me: 0, inter: false, peers: u32::MAX, members: 1 })
    }
    fn send(&mut self, _: &Event<'_>, _: &End, _: bool) -> usize {
        0
    }
    fn sent(&mut self, _: &Event<'_>, _: usize, _: &End, _: bool) {}
    fn post(&mut self, _: &Event<'_>, end: &End, _: bool) -> usize {
        if end.peer == UNKNOWN || end.tag == UNKNOWN_TAG { saturate(end.made) } else { NAMED }
    }
    fn received(&mut self, _: &Event<'_>, number: usize, got: &Completed) {
        if number != NAMED {
            self.0.push((saturate(number), Some(*got)));
        }
    }
    fn forget(&mut self, number: usize) {
        if number != NAMED {
            self.0.push((saturate(number), None));
        }
    }
    fn release(&mut self, made: u64) {
        self.0.push((made, None));
    }
    fn part(&mut self, _: &Event<'_>, _: Standing, _: Rule) {}
    fn join(&mut self, _: &Event<'_>, (): (), _: Option<(u32, u32)>, _: bool) -> usize {
        0
    }
    fn leave(&mut self, _: &Event<'_>, _: usize) {}
    fn unknown(&mut self, _: &Event<'_>) {}
}
