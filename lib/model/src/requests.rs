//! What follows from the life of requests: which number a new one gets, which ones a completion is asked for, and what a
//! completed one has received.
//!
//! A [`Requests`] follows the calls of one thread of a rank and says, word by word, what it expects next: a new request has
//! the lowest number that is free; a completion asks for what its call site asked for before, without what is done, as long
//! as that is under way, else for what another call site asked for lately, or else for the requests started last; it finds the first that is active; and a receive brings what it was posted
//! for. What a stream of [`Form::Predicted`](crate::form::Form::Predicted) holds is how far off that is: 0, as a rule.
//!
//! Source: our own. Wu, Mueller 2013, section 3.1, record the offsets of completed requests from the newest; numbers of
//! slots do the same for requests alone.

use crate::num::{self, narrow, saturate};
use std::collections::BTreeSet;

use crate::calls::{CallTable, Meaning, Object, Row};
use crate::section::{Section, Tables};
use crate::values::{NONE, NULL, PROC_NULL};

/// Numbers of requests that are followed.
const MOST: usize = 1 << 20;
/// Started requests that are looked through for one that was asked for.
const NEAR: usize = 1 << 12;
/// Call sites of completions that are remembered, in the order of their last calls.
const SITES: usize = 8;

/// Where a row has what.
#[derive(Clone, Debug, Default)]
struct Role {
    /// Whether each slot is a list.
    lists: Vec<bool>,
    /// A request that is made, and whether it outlives its completion.
    new: Option<(usize, bool)>,
    /// Requests that are started, and one that is freed.
    started: Option<usize>,
    freed: Option<usize>,
    /// The list of requests of a completion; that of what it completed is next but for a flag.
    requests: Option<usize>,
    completed: Option<usize>,
    /// Peer, tag, number of elements and type of a receive.
    source: Option<usize>,
    tag: Option<usize>,
    count: Option<usize>,
    datatype: Option<usize>,
    /// Bytes that the call itself received.
    bytes: Option<usize>,
}

impl Role {
    fn of(row: &Row) -> Option<Self> {
        let with = |roles: &[&str]| row.params.iter().any(|p| roles.contains(&p.role.as_str()));
        let slot = |name: &str| row.slot(name);
        let last = |wanted: &dyn Fn(Meaning, &str) -> bool| {
            row.slots.iter().rposition(|s| !s.list && wanted(s.meaning, &s.name))
        };
        let completed = slot("completed");
        let request = slot("request");
        // A function that takes a message has its number first.
        let newest = row.slots.iter().rposition(|s| s.name == "request");
        let role = Self {
            lists: row.slots.iter().map(|s| s.list).collect(),
            new: newest.filter(|_| with(&["newrequest", "newmessage"])).map(|at| (at, !row.properties.start)),
            started: request
                .filter(|_| with(&["startrequest"]))
                .or(slot("requests").filter(|_| completed.is_none())),
            freed: request.filter(|_| with(&["freerequest", "message"])),
            requests: slot("requests").filter(|_| completed.is_some()),
            completed,
            source: slot("source").filter(|_| completed.is_none()),
            tag: slot("recvtag").or(slot("tag")).filter(|_| completed.is_none()),
            count: last(&|m, name| m == Meaning::Count && name.contains("count")),
            datatype: last(&|m, _| m == Meaning::Ref(Object::Type)),
            bytes: slot("bytes").filter(|_| completed.is_none() && slot("source").is_some()),
        };
        let plays = role.new.is_some() || role.started.is_some() || role.freed.is_some();
        (plays || role.requests.is_some() || role.bytes.is_some()).then_some(role)
    }
}

/// Whether a slot's words may be predicted.
#[must_use]
pub fn is_predictable(row: &Row, slot: usize) -> bool {
    let Some(role) = Role::of(row) else { return false };
    let of_completion = role.completed.is_some_and(|at| (at..at + 4).contains(&slot));
    of_completion || [role.requests, role.bytes, role.new.map(|n| n.0)].contains(&Some(slot))
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// What a receive was posted for, as far as it is one: source, tag, bytes.
    posted: [i64; 3],
    persistent: bool,
    /// When it was started, if it is active.
    active: Option<u64>,
}

/// What a call site's completions asked for last.
#[derive(Clone, Debug, Default)]
struct Asked {
    requests: Vec<i64>,
    /// When each of them was started.
    starts: Vec<Option<u64>>,
    /// Number of requests started after those that were asked for.
    later: usize,
}

/// A request that has been started.
#[derive(Clone, Copy, Debug)]
struct Started {
    number: i64,
    /// How many had been started before.
    when: u64,
}

/// The requests of a thread, as its calls go by.
#[derive(Debug)]
pub struct Requests<'a> {
    section: &'a Section,
    rank: u32,
    roles: Vec<Option<Role>>,
    requests: Vec<Option<Request>>,
    /// Numbers that are free below the highest in use.
    free: BTreeSet<usize>,
    /// Requests and when they were started, in that order; also some that are no longer active.
    order: Vec<Started>,
    /// How many have been started, and are active.
    started: u64,
    active: usize,
    asked: Vec<Asked>,
    /// The symbols whose completions were called last, the last one first.
    recent: Vec<usize>,
    /// Where each slot of the call in hand begins, and its words.
    places: Vec<(usize, usize)>,
}

impl<'a> Requests<'a> {
    /// Before the first call of a rank's thread.
    #[must_use]
    pub fn new(section: &'a Section, rank: u32) -> Self {
        let table = CallTable::builtin();
        let roles = section.symbols.iter().map(|s| table.get(s.call).and_then(Role::of)).collect();
        Self {
            section,
            rank,
            roles,
            requests: Vec::new(),
            free: BTreeSet::new(),
            order: Vec::new(),
            started: 0,
            active: 0,
            asked: vec![Asked::default(); section.symbols.len()],
            recent: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Goes through the words of the next call that can be predicted, in their order: `each` is given the slot, the word
    /// and what is expected there, and leaves the word as it was recorded. All others are.
    pub fn next_call(&mut self, sym: u32, words: &mut [i64], mut each: impl FnMut(usize, &mut i64, i64)) {
        let Some(role) = self.roles.get_mut(sym as usize).and_then(Option::take) else { return };
        self.split(&role, words);
        if let (Some(asked), Some(completed)) = (role.requests, role.completed) {
            self.completion(sym as usize, asked, completed, words, &mut each);
        }
        if let Some(at) = role.bytes {
            let expected = self.posted(&role, words)[2];
            self.words(at, words).iter_mut().for_each(|w| each(at, w, expected));
        }
        if let Some((at, persistent)) = role.new {
            let expected = narrow(self.lowest_free());
            let posted = self.posted(&role, words);
            for w in self.words(at, words) {
                each(at, w, expected);
            }
            if let Some(&mut number) = self.words(at, words).first_mut() {
                self.make(number, Request { posted, persistent, active: None });
                if !persistent {
                    self.start(number);
                }
            }
        }
        for number in role.started.map(|at| self.words(at, words).to_vec()).unwrap_or_default() {
            self.start(number);
        }
        for number in role.freed.map(|at| self.words(at, words).to_vec()).unwrap_or_default() {
            self.free(number);
        }
        if let Some(place) = self.roles.get_mut(sym as usize) {
            *place = Some(role);
        }
    }

    /// Finds the slots' places.
    fn split(&mut self, role: &Role, words: &[i64]) {
        self.places.clear();
        let mut at = 0;
        for list in &role.lists {
            let n = if *list { words.get(at).map_or(0, |n| saturate::<usize>(*n)) } else { 1 };
            let from = (at + usize::from(*list)).min(words.len());
            at = from.saturating_add(n).min(words.len());
            self.places.push((from, at));
        }
    }

    fn words<'w>(&self, slot: usize, words: &'w mut [i64]) -> &'w mut [i64] {
        let (from, to) = self.places.get(slot).copied().unwrap_or_default();
        words.get_mut(from..to).unwrap_or_default()
    }

    /// Source, tag and bytes of a receive; of anything else, that there is nothing to say.
    fn posted(&self, role: &Role, words: &mut [i64]) -> [i64; 3] {
        let mut one = |slot: Option<usize>| slot.and_then(|s| self.words(s, words).first().copied());
        let (Some(source), Some(tag)) = (one(role.source), one(role.tag)) else { return [NONE; 3] };
        let datatype = one(role.datatype);
        let of = datatype.and_then(|t| Tables::find(&self.section.tables.types, t, self.rank));
        let size = of.map_or(0, |t| t.content.size);
        let bytes = if source == PROC_NULL { 0 } else { one(role.count).unwrap_or(0).wrapping_mul(size) };
        [source, tag, bytes]
    }

    fn request(&self, number: i64) -> Option<&Request> {
        self.requests.get(usize::try_from(number).ok()?)?.as_ref()
    }

    fn lowest_free(&self) -> usize {
        self.free.first().copied().unwrap_or(self.requests.len())
    }

    fn make(&mut self, number: i64, request: Request) {
        let Some(at) = usize::try_from(number).ok().filter(|at| *at < MOST) else { return };
        if at >= self.requests.len() {
            self.free.extend(self.requests.len()..at);
            self.requests.resize(at + 1, None);
        }
        self.stop(number);
        self.free.remove(&at);
        self.requests[at] = Some(request);
    }

    fn start(&mut self, number: i64) {
        self.stop(number);
        let at = usize::try_from(number).ok().and_then(|at| self.requests.get_mut(at)?.as_mut());
        if let Some(request) = at {
            request.active = Some(self.started);
            self.order.push(Started { number, when: self.started });
            self.started += 1;
            self.active += 1;
        }
        if self.order.len() > 64 + 2 * self.active {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|request| self.is_active(request));
            self.order = order;
        }
    }

    fn stop(&mut self, number: i64) {
        let at = usize::try_from(number).ok().and_then(|at| self.requests.get_mut(at)?.as_mut());
        if at.is_some_and(|request| request.active.take().is_some()) {
            self.active -= 1;
        }
    }

    fn is_active(&self, started: &Started) -> bool {
        self.request(started.number).is_some_and(|r| r.active == Some(started.when))
    }

    fn active_latest_first(&self) -> impl Iterator<Item = i64> {
        self.order.iter().rev().filter(|request| self.is_active(request)).map(|request| request.number)
    }

    fn free(&mut self, number: i64) {
        self.stop(number);
        if let Some(at) = usize::try_from(number).ok().filter(|at| *at < self.requests.len()) {
            self.requests[at] = None;
            self.free.insert(at);
        }
    }

    /// A completion: what it asks for, what it finds, and what that has received.
    fn completion(
        &mut self,
        sym: usize,
        asked: usize,
        completed: usize,
        words: &mut [i64],
        each: &mut impl FnMut(usize, &mut i64, i64),
    ) {
        let n = self.words(asked, words).len();
        let expected = self.expected(sym, n);
        for (w, expected) in self.words(asked, words).iter_mut().zip(expected) {
            each(asked, w, expected);
        }
        let requests = self.words(asked, words).to_vec();
        let mut next = 0;
        for w in self.words(completed, words) {
            let active = |number: &i64| self.request(*number).is_some_and(|r| r.active.is_some());
            let rest = requests.get(next..).unwrap_or_default();
            let first = next + rest.iter().position(active).unwrap_or(0);
            each(completed, w, narrow(first));
            next = saturate::<usize>(w.saturating_add(1));
        }
        let done = self.words(completed, words).to_vec();
        for field in 0..3 {
            let slot = completed + 1 + field;
            for (w, position) in self.words(slot, words).iter_mut().zip(&done) {
                let request = num::at(&requests, *position).and_then(|number| self.request(*number));
                each(slot, w, request.map_or(NONE, |r| r.posted[field]));
            }
        }
        self.complete(sym, requests, &done);
    }

    /// The requests that a completion at a call site will ask for.
    fn expected(&self, sym: usize, n: usize) -> Vec<i64> {
        let asked = &self.asked[sym];
        let others = self.recent.iter().filter(|other| **other != sym).map(|other| &self.asked[*other]);
        if let Some(left) = std::iter::once(asked).chain(others).find_map(|asked| self.left(asked, n)) {
            return left;
        }
        let mut latest: Vec<i64> = self.active_latest_first().skip(asked.later).take(n).collect();
        latest.reverse();
        latest.resize(n, NULL);
        latest
    }

    /// What is left of the requests that were asked for, if these are `n` in all, or as many are left, and none of them has
    /// become another one since.
    fn left(&self, asked: &Asked, n: usize) -> Option<Vec<i64>> {
        let left = || asked.requests.iter().zip(&asked.starts).filter(|(number, _)| **number != NULL);
        let open = left().count();
        let same = |(number, start): (&i64, &Option<u64>)| {
            self.request(*number).is_some_and(|r| r.persistent || r.active == *start)
        };
        if open == 0 || !left().all(same) {
            return None;
        }
        if asked.requests.len() == n {
            return Some(asked.requests.clone());
        }
        (open == n).then(|| left().map(|(number, _)| *number).collect())
    }

    /// Takes note of what a completion asked for and found.
    fn complete(&mut self, sym: usize, mut requests: Vec<i64>, done: &[i64]) {
        let last = requests.iter().rev().find(|number| **number != NULL);
        let near = self.active_latest_first().take(NEAR).position(|number| Some(&number) == last);
        let later = near.unwrap_or(0);
        let starts = requests.iter().map(|number| self.request(*number).and_then(|r| r.active)).collect();
        for position in done {
            let Some(asked) = usize::try_from(*position).ok().and_then(|at| requests.get_mut(at)) else {
                continue;
            };
            let number = *asked;
            if self.request(number).is_some_and(|r| r.persistent) {
                self.stop(number);
            } else {
                *asked = NULL;
                self.free(number);
            }
        }
        self.asked[sym] = Asked { requests, starts, later };
        self.recent.retain(|other| *other != sym);
        self.recent.insert(0, sym);
        self.recent.truncate(SITES);
    }
}
