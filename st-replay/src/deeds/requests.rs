//! Messages that are under way, and the requests that stand for them.

use st_model::calls::Row;
use st_model::calls::roles::{Role, Start};
use st_model::calls::words::{Words, slot};
use st_model::values::{ANY_TAG, CANCELLED, NONE, NULL};

use super::deed::{Channel, Deed, End, Part};
use super::{OPEN, PARTITIONED, Posted, Request, Standing, Template, Walker};

/// Numbers of requests: the lowest free ones, so they stay small in any trace that a recorder made.
const REQUESTS: usize = 1 << 24;

impl<F: FnMut(Deed)> Walker<'_, F> {
    pub(super) fn send(&mut self, end: Option<End>, start: Start, request: i64) {
        if start == Start::Persistent {
            let template = end.map_or(Template::Nothing, Template::Send);
            self.set(request, Some(Request::Persistent(Box::new(template), None)));
            return;
        }
        if let Some(end) = end {
            (self.tell)(Deed::Send(end));
        }
        if start == Start::Request {
            self.set(request, Some(end.map_or(Request::Nothing, Request::Send)));
        }
    }

    pub(super) fn receive(&mut self, end: Option<End>, start: Start, request: i64) {
        match (start, end) {
            (Start::Persistent, end) => {
                let template = end.map_or(Template::Nothing, Template::Receive);
                self.set(request, Some(Request::Persistent(Box::new(template), None)));
            }
            (Start::Blocking, None) => {}
            (Start::Blocking, Some(end)) => {
                self.post(end, true);
            }
            (Start::Request, None) => self.set(request, Some(Request::Nothing)),
            (Start::Request, Some(end)) => {
                let n = self.post(end, false);
                self.set(request, Some(Request::Receive(n, self.sym)));
            }
        }
    }

    /// Posts a receive; returns its number.
    pub(super) fn post(&mut self, end: End, settled: bool) -> u64 {
        self.posted.push_back(Posted { end, settled, void: false });
        let n = self.told + u64::try_from(self.posted.len()).unwrap_or(u64::MAX) - 1;
        self.flush();
        n
    }

    /// Tells what is settled, in the order of posting.
    pub(super) fn flush(&mut self) {
        while let Some(p) = self.posted.front().filter(|p| p.settled) {
            let p = *p;
            self.posted.pop_front();
            self.told += 1;
            let known = p.end.channel.from != OPEN && p.end.channel.tag != NONE;
            if !p.void {
                (self.tell)(if known { Deed::Receive(p.end) } else { Deed::Open(p.end) });
            }
        }
    }

    pub(super) fn settle(&mut self, number: u64, change: impl FnOnce(&mut Posted)) {
        let at = number.checked_sub(self.told).and_then(|i| usize::try_from(i).ok());
        if let Some(p) = at.and_then(|i| self.posted.get_mut(i)) {
            change(p);
        }
        self.flush();
    }

    pub(super) fn probe(&mut self, row: &Row, words: &Words, at: Option<Standing>) {
        let Some(at) = at else { return };
        let named = |own, resolved| {
            let r = words.get(slot(row, resolved)).filter(|v| *v != NONE);
            r.unwrap_or_else(|| words.one(slot(row, own)))
        };
        let (source, tag) = (named("source", "rsource"), named("tag", "rtag"));
        if let (Ok(from), true) = (u32::try_from(source), tag != ANY_TAG) {
            let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
            (self.tell)(Deed::Probe(End { channel, bytes: -1, sym: self.sym, call: self.call }));
        }
    }

    pub(super) fn found(&mut self, role: &Role, words: &Words, at: Option<Standing>) {
        if words.get(role.flag) == Some(0) {
            return;
        }
        let Some(end) = at.and_then(|at| self.receiving(words, role, at)) else { return };
        let n = self.post(End { bytes: -1, ..end }, false);
        self.set(words.one(role.request), Some(Request::Found(n, self.call)));
    }

    pub(super) fn take(&mut self, role: &Role, words: &Words, start: Start) {
        let room = self.bytes(words.one(role.count[1]), words.one(role.types[1]));
        let message = usize::try_from(words.one(role.request)).ok();
        let taken = message.and_then(|i| self.requests.get_mut(i)?.take());
        let Some(Request::Found(n, call)) = taken else {
            // What a probe of MPI_PROC_NULL finds, or a message that another thread has found.
            if start != Start::Blocking {
                self.set(words.one(role.new_request), Some(Request::Nothing));
            }
            return;
        };
        (self.tell)(Deed::Held(call, self.call));
        let now = start == Start::Blocking;
        self.settle(n, |p| (p.end.bytes, p.settled) = (room, now));
        if !now {
            self.set(words.one(role.new_request), Some(Request::Receive(n, self.sym)));
        }
    }

    pub(super) fn start(&mut self, role: &Role, words: &Words) {
        if role.requests == u8::MAX {
            self.start_one(words.one(role.request));
        }
        for &r in words.list(role.requests) {
            self.start_one(r);
        }
    }

    pub(super) fn start_one(&mut self, request: i64) {
        let (sym, call) = (self.sym, self.call);
        let slot = usize::try_from(request).ok().and_then(|i| self.requests.get(i));
        let started = match slot {
            Some(Some(Request::Persistent(template, _))) => match **template {
                Template::Nothing => Request::Nothing,
                Template::Send(end) => {
                    let end = End { call, ..end };
                    (self.tell)(Deed::Send(end));
                    Request::Send(end)
                }
                Template::Receive(end) => Request::Receive(self.post(End { call, ..end }, false), sym),
                Template::Part(part) => {
                    (self.tell)(Deed::Part(Part { sym, call, ..part }));
                    Request::Part(sym)
                }
            },
            _ => return,
        };
        let slot = usize::try_from(request).ok().and_then(|i| self.requests.get_mut(i));
        if let Some(Some(Request::Persistent(_, running))) = slot {
            *running = Some(Box::new(started));
        }
    }

    pub(super) fn complete(&mut self, role: &Role, words: &Words) {
        let requests = words.list(role.requests);
        let [positions, sources, tags, bytes] = role.completed.map(|s| words.list(s));
        for (k, position) in positions.iter().enumerate() {
            let request = usize::try_from(*position).ok().and_then(|p| requests.get(p)).copied();
            let of = |list: &[i64]| list.get(k).copied().unwrap_or(NONE);
            self.complete_one(request.unwrap_or(NULL), (of(sources), of(tags), of(bytes)));
        }
    }

    pub(super) fn complete_one(&mut self, request: i64, (source, tag, bytes): (i64, i64, i64)) {
        let slot = usize::try_from(request).ok().and_then(|i| self.requests.get_mut(i));
        let done = match slot {
            Some(Some(Request::LeftOut)) => return,
            Some(Some(Request::Persistent(_, running))) => running.take().map_or(Request::Nothing, |r| *r),
            Some(slot @ Some(_)) => slot.take().unwrap_or(Request::Nothing),
            _ if request == NULL => return,
            _ => return (self.tell)(Deed::Unknown(self.sym)),
        };
        let cancelled = bytes == CANCELLED;
        if let (Request::Send(end), true) = (&done, cancelled) {
            (self.tell)(Deed::Held(end.call, self.call));
            (self.tell)(Deed::Unsent(*end));
        }
        if let Request::Receive(n, _) = done {
            let mut posted = self.call;
            self.settle(n, |p| {
                posted = p.end.call;
                p.settled = true;
                p.void = cancelled;
                if let Ok(from) = u32::try_from(source) {
                    p.end.channel.from = from;
                }
                if tag >= 0 && p.end.channel.tag < PARTITIONED {
                    p.end.channel.tag = tag;
                }
            });
            if cancelled {
                (self.tell)(Deed::Held(posted, self.call));
            }
        }
    }

    pub(super) fn free(&mut self, request: i64) {
        let slot = usize::try_from(request).ok().and_then(|i| self.requests.get_mut(i));
        let freed = slot.and_then(Option::take);
        let running = match freed {
            Some(Request::Persistent(_, running)) => running.map(|r| *r),
            other => other,
        };
        if let Some(Request::Receive(n, _)) = running {
            self.settle(n, |p| p.settled = true);
        }
    }

    pub(super) fn set(&mut self, request: i64, to: Option<Request>) {
        let Some(i) = usize::try_from(request).ok().filter(|i| *i < REQUESTS) else { return };
        if i >= self.requests.len() {
            self.requests.resize(i + 1, None);
        }
        self.requests[i] = to;
    }

    /// After the last call.
    pub(super) fn end(&mut self, complete: bool) {
        for request in std::mem::take(&mut self.requests).into_iter().flatten() {
            let active = match request {
                Request::Persistent(_, running) => running.map(|r| *r),
                other => Some(other),
            };
            let active = match active {
                Some(Request::Send(end)) => Some(end.sym),
                Some(Request::Receive(_, sym) | Request::Part(sym)) => Some(sym),
                _ => None,
            };
            if let Some(sym) = active.filter(|_| complete) {
                (self.tell)(Deed::Incomplete(sym));
            }
        }
        self.posted.iter_mut().for_each(|p| p.settled = true);
        self.flush();
    }
}
