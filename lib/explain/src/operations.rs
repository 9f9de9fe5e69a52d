//! Collective operations under way.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use slab::Slab;
use st_match::graph::Part;
use st_model::calls::roles::Rule;
use st_model::num::{Exact as _, narrow};

use crate::joint::Joints;
use crate::pending_calls::{CallNumber, Cause, Certainty, Finished, Ledger, Reason, Visit};
use crate::predict::{RunStep, Steps};
use crate::sizes::needs_both;
use crate::waits::WaitKind;

/// A rank's part in an operation.
#[derive(Debug)]
struct Member {
    visit: Visit,
    part: Part,
    /// Number of the operation.
    serial: u64,
    /// The call that completes it, as far as that has been read.
    by: Option<CallNumber>,
    /// That is the call that begins it.
    blocks: bool,
    /// What it waits for, once that is known.
    known: Option<Option<Reason>>,
    /// Who comes later, and has nothing for it.
    perhaps: Option<Reason>,
    /// That it has left has been told.
    left: bool,
    /// All members have come, or no more will: who comes last is known.
    whole: bool,
    /// The operation among those whose members wait for the calls that complete others.
    joint: Option<u32>,
}

#[derive(Debug)]
struct Instance {
    serial: u64,
    rule: Rule,
    root: Option<u32>,
    members: Vec<u32>,
    /// How many there will be.
    of: u32,
    /// Its number among those that other calls complete.
    joint: Option<u32>,
}

/// All collective operations under way.
#[derive(Default, Debug)]
pub(crate) struct Operations {
    members: Slab<Member>,
    open: HashMap<(u32, u64), Instance, FixedState>,
    /// Operations of each rank on each communicator.
    sequence: HashMap<(u32, u32), u64, FixedState>,
    joints: Joints,
    serial: u64,
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
        self.serial += 1;
        let (serial, of_all) = (self.serial, narrow(of));
        let fresh = || Instance { serial, rule, root: None, members: Vec::new(), of: of_all, joint: None };
        let instance = self.open.entry(key).or_insert_with(fresh);
        let id: u32 = narrow(self.members.insert(Member {
            visit: *visit,
            serial: instance.serial,
            part,
            by,
            blocks: by.is_some(),
            known: None,
            perhaps: None,
            left: false,
            whole: false,
            joint: None,
        }));
        ledger.steps.tell(RunStep::Join { thread: visit.thread, member: id, bytes: visit.bytes });
        if let Some(call) = by {
            ledger.expect(call, false);
            tell_reach(visit, rule, instance.serial, &mut ledger.steps);
        }
        if instance.rule != rule {
            self.disagreements += 1;
        }
        instance.members.push(id);
        if (by.is_none() || instance.joint.is_some()) && !matches!(rule, Rule::Neighbour | Rule::NeighbourV) {
            // Those that have come before the first that another call completes are complete.
            let joint = *instance.joint.get_or_insert_with(|| {
                self.joints.begin(instance.of.saturating_sub(narrow(instance.members.len() - 1)))
            });
            if by.is_none() && i64::try_from(visit.bytes).is_ok_and(needs_both) {
                self.members[id.to_usize()].joint = Some(joint);
            } else {
                self.joints.complete(joint, None, ledger);
            }
        }
        if is_root {
            instance.root = Some(id);
        }
        let whole = instance.members.len() >= of;
        if matches!(rule, Rule::Bcast | Rule::Scatter) {
            // Nobody but the root is waited for.
            let (root, of) = (instance.root, instance.of);
            let who = if is_root { instance.members.clone() } else { vec![id] };
            if let Some(root) = root {
                who.into_iter().for_each(|m| self.meet_root(m, root, of, ledger));
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
        let (joint, rule, serial) = (member.joint, member.part.rule, member.serial);
        if let Some(joint) = joint {
            self.joints.complete(joint, Some(call), ledger);
        }
        if let Some(visit) = ledger.visit(call).copied() {
            tell_reach(&visit, rule, serial, &mut ledger.steps);
        }
        self.tell(id, ledger);
    }

    /// Tells that a part is complete as soon as what it surely waited for is known, and the call that completes it what that may have
    /// waited for as soon as all members have come.
    fn tell(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(member) = self.members.get_mut(id.to_usize()) else { return };
        let (Some(call), Some(reason)) = (member.by, member.known) else { return };
        if !std::mem::replace(&mut member.left, true) {
            ledger.steps.tell(RunStep::Leave(id));
        }
        if member.whole {
            if let Some(perhaps) = member.perhaps {
                ledger.suspect(call, perhaps);
            }
            ledger.give(call, false, reason);
            self.members.remove(id.to_usize());
        }
    }

    /// No more calls come: operations that lack a member make nobody wait for it.
    pub(crate) fn end(&mut self, ledger: &mut Ledger) {
        let members: Vec<u32> = self.members.iter().map(|(id, _)| narrow(id)).collect();
        for id in members {
            if let Some(member) = self.members.get_mut(id.to_usize()) {
                member.whole = true;
            }
            self.tell(id, ledger);
        }
        self.joints.end(ledger);
    }

    fn know(&mut self, id: u32, reason: Option<Reason>, ledger: &mut Ledger) {
        if let Some(member) = self.members.get_mut(id.to_usize()) {
            member.known.get_or_insert(reason);
        }
        self.tell(id, ledger);
    }

    /// A member and the root have come to an operation of so many, in which it waits for nobody else.
    fn meet_root(&mut self, id: u32, root: u32, of: u32, ledger: &mut Ledger) {
        let member = |id: u32| self.members.get(id.to_usize());
        let Some(cause) = member(root).map(|root| Cause::of(&root.visit)) else { return };
        let Some(receives) = member(id).map(|member| member.part.receives) else { return };
        if receives {
            let steps = [RunStep::Clear, RunStep::From(root), RunStep::To { member: id, of }];
            steps.into_iter().for_each(|step| ledger.steps.tell(step));
        }
        let reason = Reason::of(WaitKind::LateBroadcast, cause);
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
        tell_order(instance, &members, &mut ledger.steps);
        let unlikely = unlikely(instance.rule, &members, ledger);
        for ((id, reason), perhaps) in reasons(instance.rule, &members).into_iter().zip(unlikely) {
            if let Some(member) = self.members.get_mut(id.to_usize()) {
                (member.whole, member.perhaps) = (true, perhaps);
            }
            self.know(id, reason, ledger);
        }
        ledger.finished.extend(rest);
    }
}

/// A call completes a part in an operation. Where not all give to all, who waits for one that has nothing for it depends on the way
/// that data take.
fn tell_reach(visit: &Visit, rule: Rule, serial: u64, steps: &mut Steps) {
    let some = matches!(rule, Rule::Bcast | Rule::Scatter | Rule::Gather | Rule::Reduce | Rule::Scan);
    // Nobody waits for others than neighbours.
    if !matches!(rule, Rule::Neighbour | Rule::NeighbourV) {
        steps.tell(visit.reaches_operation(serial, !some));
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
    let reason = Reason::of(WaitKind::LateContribution, Cause::of(last));
    (last.enter > visit.enter).then_some(Finished { visit, reason, older: None })
}

/// Per member: what it waits for.
fn reasons(rule: Rule, members: &[(u32, &Member)]) -> Vec<(u32, Option<Reason>)> {
    let last = last_for(members, sends);
    let first = members.iter().map(|(_, m)| *m).filter(|m| sends(m)).min_by_key(|m| m.visit.enter);
    let before = if rule == Rule::Scan { prefixes(members) } else { HashMap::default() };
    let named = matches!(rule, Rule::Alltoallv | Rule::Neighbour | Rule::NeighbourV);
    let at = if named { by_sender(members) } else { HashMap::default() };
    let of = |(id, m): &(u32, &Member)| {
        let last = last[usize::from(m.part.side)];
        let (kind, cause) = match rule {
            _ if !receives(m) => (WaitKind::AllToAll, None),
            Rule::Barrier => (WaitKind::Barrier, last),
            Rule::Bcast | Rule::Scatter => (WaitKind::LateBroadcast, last),
            // Another call completes it, which waits once.
            Rule::Gather | Rule::Reduce if !m.blocks => (WaitKind::LateContribution, last),
            Rule::Gather | Rule::Reduce => (WaitKind::EarlyReduce, first),
            Rule::Scan => (WaitKind::EarlyScan, before.get(id).copied()),
            Rule::Alltoallv | Rule::Neighbour | Rule::NeighbourV => {
                (WaitKind::AllToAll, sources(m, &at).map(|(_, o)| o).max_by_key(|o| o.visit.enter))
            }
            _ => (WaitKind::AllToAll, last),
        };
        let reason = cause.map(|c| Reason::of(kind, Cause::of(&c.visit)));
        (*id, reason)
    };
    members.iter().map(of).collect()
}

/// Per member: who comes last before it leaves. A library may wait for it though it has nothing to give, or nothing to this member:
/// where data go through others, and where they are too many to be kept for one that comes late.
fn unlikely(rule: Rule, members: &[(u32, &Member)], ledger: &mut Ledger) -> Vec<Option<Reason>> {
    if matches!(rule, Rule::Neighbour | Rule::NeighbourV) {
        return vec![None; members.len()];
    }
    // Of a root that takes from all it is known when it waits for the last.
    let known = |m: &Member| matches!(rule, Rule::Gather | Rule::Reduce) && m.blocks && receives(m);
    let mut order: Vec<&Member> = members.iter().map(|(_, m)| *m).collect();
    order.sort_by_key(|m| m.visit.enter);
    let of = |(_, m): &(u32, &Member)| {
        // Where the call that completes it has not been read it comes after all.
        let until = m.by.and_then(|by| ledger.visit(by)).map_or(i64::MAX, |visit| visit.exit);
        let last = order[..order.partition_point(|o| o.visit.enter <= until)].last().filter(|_| !known(m));
        Some(Reason { certainty: Certainty::Seen, ..Reason::of(WaitKind::AllToAll, Cause::of(&last?.visit)) })
    };
    members.iter().map(of).collect()
}

/// Who comes last of those that are asked for, for members of either group: on an intercommunicator these get what they get
/// from the other one.
fn last_for<'a>(members: &[(u32, &'a Member)], asked: impl Fn(&Member) -> bool) -> [Option<&'a Member>; 2] {
    let two = of_two_groups(members);
    [0, 1].map(|side| {
        let others = members.iter().map(|(_, m)| *m).filter(|m| asked(m) && !(two && m.part.side == side));
        others.max_by_key(|m| m.visit.enter)
    })
}

/// Whether the operation is one of an intercommunicator.
fn of_two_groups(members: &[(u32, &Member)]) -> bool {
    members.iter().any(|(_, m)| m.part.side != 0)
}

/// Members, by the group that gets something from them, the other one if there are two, and their positions.
type BySender<'a> = HashMap<(u8, u32), (u32, &'a Member), FixedState>;

fn by_sender<'a>(members: &[(u32, &'a Member)]) -> BySender<'a> {
    let two = of_two_groups(members);
    let of = |(id, m): &(u32, &'a Member)| {
        let seen_from = if two { 1 - m.part.side } else { 0 };
        ((seen_from, m.part.me), (*id, *m))
    };
    members.iter().map(of).collect()
}

/// Members that one gets something from, where it names them: its neighbours, or who has something for it.
fn sources<'a>(m: &Member, at: &BySender<'a>) -> impl Iterator<Item = (u32, &'a Member)> {
    let named = m.part.pairs.as_ref().map_or(&[][..], |p| &p[1]);
    named.iter().filter_map(|position| at.get(&(m.part.side, *position)).copied())
}

/// Says who must have come before which member can leave, whatever the times.
fn tell_order(instance: &Instance, members: &[(u32, &Member)], steps: &mut Steps) {
    let to = |id| RunStep::To { member: id, of: instance.of };
    let senders = || members.iter().filter(|(_, m)| sends(m)).map(|(id, _)| RunStep::From(*id));
    let receivers = || members.iter().filter(|(_, m)| receives(m));
    steps.tell(RunStep::Clear);
    match instance.rule {
        // Who has met the root knows it.
        Rule::Bcast | Rule::Scatter if instance.root.is_some() => {}
        Rule::Scan => {
            for (id, m) in by_position(members) {
                if receives(m) {
                    steps.tell(to(id));
                }
                steps.tell(RunStep::From(id));
            }
        }
        Rule::Neighbour | Rule::NeighbourV => {
            let at = by_sender(members);
            for (id, m) in receivers() {
                let near = sources(m, &at).map(|(id, _)| RunStep::From(id));
                let all = [RunStep::Clear].into_iter().chain(near).chain([to(*id)]);
                all.for_each(|step| steps.tell(step));
            }
        }
        _ if of_two_groups(members) => {
            for side in [0, 1] {
                let from = members.iter().filter(|(_, m)| sends(m) && m.part.side != side);
                let into = receivers().filter(|(_, m)| m.part.side == side).map(|(id, _)| to(*id));
                let all =
                    [RunStep::Clear].into_iter().chain(from.map(|(id, _)| RunStep::From(*id))).chain(into);
                all.for_each(|step| steps.tell(step));
            }
        }
        _ => {
            let all = senders().chain(receivers().map(|(id, _)| to(*id)));
            all.for_each(|step| steps.tell(step));
        }
    }
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
    let all = !some && members.iter().all(|(_, m)| m.blocks && sends(m) && receives(m) && m.part.side == 0);
    members.iter().map(|(_, m)| m.visit.enter).max().filter(|_| all)
}

/// Members in the order of their positions.
fn by_position<'a>(members: &[(u32, &'a Member)]) -> Vec<(u32, &'a Member)> {
    let mut sorted = members.to_vec();
    sorted.sort_by_key(|(_, m)| m.part.me);
    sorted
}

/// Of each member the last of those up to it.
fn prefixes<'a>(members: &[(u32, &'a Member)]) -> HashMap<u32, &'a Member, FixedState> {
    let mut found = HashMap::default();
    let mut so_far: Option<&Member> = None;
    for (id, m) in by_position(members) {
        let last = so_far.filter(|last| m.visit.enter <= last.visit.enter).unwrap_or(m);
        so_far = Some(last);
        found.insert(id, last);
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
