//! Collective operations under way.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use slab::Slab;
use st_match::graph::Part;
use st_model::calls::roles::Rule;
use st_model::num::{Exact as _, narrow};

use crate::ledger::{CallNumber, Cause, Finished, Ledger, Reason, Visit};
use crate::waits::Kind;

/// A rank's part in an operation.
#[derive(Debug)]
struct Member {
    visit: Visit,
    part: Part,
    ideal: i64,
    /// The call that completes it, as far as that has been read.
    by: Option<CallNumber>,
    /// That is the call that begins it.
    blocks: bool,
    /// What it waits for, once that is known.
    known: Option<Option<Reason>>,
    /// That has been told to the call that completes it.
    told: bool,
    /// All members have come.
    whole: bool,
}

#[derive(Debug)]
struct Instance {
    rule: Rule,
    root: Option<u32>,
    members: Vec<u32>,
}

/// All collective operations under way.
#[derive(Default, Debug)]
pub(crate) struct Operations {
    members: Slab<Member>,
    open: HashMap<(u32, u64), Instance, FixedState>,
    /// Operations of each rank on each communicator.
    sequence: HashMap<(u32, u32), u64, FixedState>,
    pub(crate) disagreements: u64,
}

impl Operations {
    /// A rank takes part in an operation of so many; `by`: the call that completes it, if that is this one.
    pub(crate) fn join(
        &mut self,
        visit: &Visit,
        part: Part,
        of: usize,
        by: Option<CallNumber>,
        ledger: &mut Ledger,
    ) -> u32 {
        let n = match part.persistent {
            Some((made, start)) => 1 << 63 | u64::from(made) << 32 | u64::from(start),
            None => {
                let n = self.sequence.entry((ledger.rank(visit.thread), part.group)).or_default();
                *n += 1;
                *n - 1
            }
        };
        let (key, rule, is_root) = ((part.group, n), part.rule, part.root == Some((part.side, part.me)));
        ledger.tracks[visit.thread as usize].told = visit.call;
        let ideal = ledger.ideal(visit.thread);
        let id: u32 = narrow(self.members.insert(Member {
            visit: *visit,
            part,
            ideal,
            by,
            blocks: by.is_some(),
            known: None,
            told: false,
            whole: false,
        }));
        if let Some(call) = by {
            ledger.expect(call, false);
        }
        let fresh = || Instance { rule, root: None, members: Vec::new() };
        let instance = self.open.entry(key).or_insert_with(fresh);
        if instance.rule != rule {
            self.disagreements += 1;
        }
        instance.members.push(id);
        if is_root {
            instance.root = Some(id);
        }
        let whole = instance.members.len() >= of;
        if matches!(rule, Rule::Bcast | Rule::Scatter) {
            // Nobody but the root is waited for.
            let (root, members) = (instance.root, instance.members.clone());
            let who = if is_root { members } else { vec![id] };
            if let Some(root) = root {
                who.into_iter().for_each(|m| self.meet_root(m, root, ledger));
            }
        }
        if whole && let Some(instance) = self.open.remove(&key) {
            self.resolve(&instance, ledger);
        }
        id
    }

    /// A call completes a part.
    pub(crate) fn leave(&mut self, id: u32, call: CallNumber, ledger: &mut Ledger) {
        let Some(member) = self.members.get_mut(id.to_usize()) else { return };
        member.by = Some(call);
        ledger.expect(call, false);
        self.tell(id, ledger);
    }

    /// Tells the call that completes a part what it waited for, as soon as both are known.
    fn tell(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(member) = self.members.get_mut(id.to_usize()) else { return };
        if let (Some(call), Some(reason), false) = (member.by, member.known, member.told) {
            member.told = true;
            ledger.give(call, false, reason);
        }
        if member.told && member.whole {
            self.members.remove(id.to_usize());
        }
    }

    fn know(&mut self, id: u32, reason: Option<Reason>, ledger: &mut Ledger) {
        if let Some(member) = self.members.get_mut(id.to_usize()) {
            member.known.get_or_insert(reason);
        }
        self.tell(id, ledger);
    }

    fn meet_root(&mut self, id: u32, root: u32, ledger: &mut Ledger) {
        let Some(root) = self.members.get(root.to_usize()) else { return };
        let (cause, ideal) = (Cause::of(&root.visit), root.ideal);
        let Some(member) = self.members.get(id.to_usize()) else { return };
        let receives = member.part.receives;
        if receives {
            ledger.no_sooner(member.visit.thread, ideal);
        }
        let reason = Reason { kind: Kind::LateBroadcast, cause };
        self.know(id, receives.then_some(reason), ledger);
    }

    /// All members have come.
    fn resolve(&mut self, instance: &Instance, ledger: &mut Ledger) {
        let members: Vec<(u32, &Member)> =
            instance.members.iter().filter_map(|id| Some((*id, self.members.get(id.to_usize())?))).collect();
        if let Some(meetings) = &mut ledger.meetings
            && let Some(at) = meeting(instance.rule, &members)
        {
            let threads: Vec<u32> = members.iter().map(|(_, m)| m.visit.thread).collect();
            meetings.meet(at, &threads);
        }
        let rest = waits_for_the_last(instance.rule, &members);
        for (id, thread, reason, ideal) in reasons(instance.rule, &members) {
            ledger.no_sooner(thread, ideal);
            if let Some(member) = self.members.get_mut(id.to_usize()) {
                member.whole = true;
            }
            self.know(id, reason, ledger);
        }
        ledger.finished.extend(rest);
    }
}

/// The second wait of a root that takes from all: it has the first of what it needs, and not yet the last.
fn waits_for_the_last(rule: Rule, members: &[(u32, &Member)]) -> Option<Finished> {
    let takes = matches!(rule, Rule::Gather | Rule::Reduce);
    // Where another call completes the operation, that may have done other things in between.
    let root = members.iter().map(|(_, m)| *m).find(|m| takes && m.blocks && receives(m))?;
    let others = members.iter().map(|(_, m)| *m).filter(|m| sends(m));
    let senders = || others.clone().map(|m| &m.visit);
    let (first, last) = (senders().map(|v| v.enter).min()?, senders().max_by_key(|v| v.enter)?);
    let visit = Visit { enter: root.visit.enter.max(first), ..root.visit };
    let reason = Reason { kind: Kind::LateContribution, cause: Cause::of(last) };
    (last.enter > visit.enter).then_some(Finished { visit, reason, older: None })
}

/// Per member: its thread, what it waits for, and how soon it could go on on an ideal network.
fn reasons(rule: Rule, members: &[(u32, &Member)]) -> Vec<(u32, u32, Option<Reason>, i64)> {
    let senders: Vec<&Member> = members.iter().map(|(_, m)| *m).filter(|m| sends(m)).collect();
    let last = senders.iter().copied().max_by_key(|m| m.visit.enter);
    let first = senders.iter().copied().min_by_key(|m| m.visit.enter);
    let ideal = senders.iter().map(|m| m.ideal).max().unwrap_or(i64::MIN);
    let before = if rule == Rule::Scan { prefixes(members) } else { HashMap::default() };
    let of = |(id, m): &(u32, &Member)| {
        let (kind, cause, ideal) = match rule {
            _ if !receives(m) => (Kind::AllToAll, None, i64::MIN),
            Rule::Barrier => (Kind::Barrier, last, ideal),
            Rule::Bcast | Rule::Scatter => (Kind::LateBroadcast, last, ideal),
            Rule::Gather | Rule::Reduce => (Kind::EarlyReduce, first, ideal),
            Rule::Scan => {
                let before = before.get(id).copied();
                (Kind::EarlyScan, before.map(|b| b.0), before.map_or(i64::MIN, |b| b.1))
            }
            Rule::Neighbour | Rule::NeighbourV => {
                let sources = m.part.pairs.as_ref().map_or(&[][..], |p| &p[1]);
                let near = members.iter().map(|(_, o)| *o).filter(|o| sources.contains(&o.part.me));
                let latest = near.clone().max_by_key(|o| o.visit.enter);
                (Kind::AllToAll, latest, near.map(|o| o.ideal).max().unwrap_or(i64::MIN))
            }
            _ => (Kind::AllToAll, last, ideal),
        };
        let reason = cause.map(|c| Reason { kind, cause: Cause::of(&c.visit) });
        (*id, m.visit.thread, reason, ideal)
    };
    members.iter().map(of).collect()
}

/// When all members have waited for all others, if they do.
fn meeting(rule: Rule, members: &[(u32, &Member)]) -> Option<i64> {
    let some = matches!(
        rule,
        Rule::Bcast
            | Rule::Scatter
            | Rule::Gather
            | Rule::Reduce
            | Rule::Scan
            | Rule::Neighbour
            | Rule::NeighbourV
    );
    let all = !some && members.iter().all(|(_, m)| m.blocks && sends(m) && receives(m));
    members.iter().map(|(_, m)| m.visit.enter).max().filter(|_| all)
}

/// Of each member the last of those up to it, and how soon all of these have come on an ideal network.
fn prefixes<'a>(members: &[(u32, &'a Member)]) -> HashMap<u32, (&'a Member, i64), FixedState> {
    let mut sorted = members.to_vec();
    sorted.sort_by_key(|(_, m)| m.part.me);
    let mut found = HashMap::default();
    let mut so_far: Option<(&Member, i64)> = None;
    for (id, m) in sorted {
        let (last, ideal) = so_far.unwrap_or((m, m.ideal));
        let last = if m.visit.enter > last.visit.enter { m } else { last };
        so_far = Some((last, ideal.max(m.ideal)));
        found.insert(id, (last, ideal.max(m.ideal)));
    }
    found
}

fn sends(m: &Member) -> bool {
    m.part.pairs.as_ref().map_or(m.part.sends, |p| !p[0].is_empty())
}

fn receives(m: &Member) -> bool {
    m.part.pairs.as_ref().map_or(m.part.receives, |p| !p[1].is_empty())
}

impl Operations {
    /// Operations that lack a member.
    pub(crate) fn lacking(&self) -> u64 {
        self.open.len() as u64
    }
}
