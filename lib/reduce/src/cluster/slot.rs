//! The streams of one slot of one symbol in a cluster of ranks with equal call paths.
//!
//! As long as one form leads from the first rank's values to those of all, there is one stream. When no form does, ranks are
//! classes by their relative values (peers) or their values as recorded (all else), or in the form that a user gave where that
//! leaves fewer. What comes out does not depend on the order of the ranks.

mod groups;
mod one;
mod ranks;

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::{Lane, Meaning, Slot};
use st_model::form::{Codes, Form, Own, SPECIAL};
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Section, SlotStreams};
use st_model::unite::{Classes, Partitions, Renaming};

use crate::cluster::signature::{Signature, total};
use crate::codes::code;
use crate::lossy::Counter;
use groups::Groups;
use one::One;
pub(crate) use ranks::{Before, Mine, rewritten};
pub use ranks::{Rules, Stand};

/// Values above this are no ranks, tags or counts of a program.
const SANE: u64 = 1 << 48;

/// How the ranks of a slot are put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) rules: Rules,
    /// The form that a user gave.
    pub(crate) user: Option<Form>,
    /// Whether ranks that differ are united by a histogram.
    pub(crate) forced: bool,
}

/// What the ranks of a section have in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotOfRanks<'a> {
    pub(crate) section: &'a Section,
    pub(crate) ranks: &'a RankList,
    /// Who they are in the calls; `None` if that changes.
    pub(crate) owns: &'a [(u32, Option<Own>)],
    pub(crate) streams: &'a SlotStreams,
    pub(crate) executions: u64,
}

impl SlotOfRanks<'_> {
    /// The streams of an elastic one, and the ranks of each.
    fn classes<'b>(&'b self, e: &'b Elastic) -> impl Iterator<Item = (&'b Sealed, &'b RankList)> {
        let classes = self.section.partitions.get(e.partition as usize).map_or(&[][..], |p| &p.classes);
        let classes = if e.streams.len() == 1 { std::slice::from_ref(self.ranks) } else { classes };
        e.streams.iter().zip(classes)
    }

    /// The first values of a stream with indices of objects as the cluster has them.
    pub(crate) fn renamed(&self, meaning: Meaning, renaming: &Renaming, values: Sealed, len: u64) -> Sealed {
        let Meaning::Ref(object) = meaning else { return values };
        if renaming.keeps(object) {
            return values;
        }
        let to = |v| renaming.object(object, v);
        // A renaming is no affine map.
        let flat = values.elements().all(|e| e.step == 0);
        if flat { values.map(to) } else { values.rebuild(len, to) }
    }
}

/// How a slot ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End {
    /// Whether no other ranks will be added.
    pub(crate) last: bool,
    /// Whether counts near each other are united then.
    pub(crate) tolerant: bool,
    /// The histogram that it becomes.
    pub(crate) histogram: Option<Codes>,
}

/// Streams of one slot.
#[derive(Debug)]
pub(crate) struct SlotCluster {
    pub(crate) meaning: Meaning,
    pub(crate) lane: Lane,
    how: How,
    lens: Option<Groups>,
    state: State,
    /// Whether symbolic forms are out of the question.
    plain: bool,
    /// Whether some rank does not have what is stored.
    lost: bool,
}

#[derive(Debug)]
enum State {
    One(Box<One>),
    Many(Form, Groups),
}

impl SlotCluster {
    /// Of the first rank.
    pub(crate) fn new(slot: &Slot, how: How, first: Mine<'_>) -> Self {
        let plain = !slot.meaning.is_symbolic() || first.own.is_none() || !sane(first.values);
        let one = One::new(first, how.user.filter(|_| !plain));
        let mut out = Self {
            meaning: slot.meaning,
            lane: slot.lane,
            how,
            lens: slot.list.then(Groups::default),
            state: State::One(Box::new(one)),
            plain,
            lost: false,
        };
        if let (Some(into), Some((lens, n))) = (&mut out.lens, first.lens) {
            into.add_plain(first.rank, lens, n);
        }
        out
    }

    /// The form so far.
    pub(crate) fn form(&self) -> Form {
        match &self.state {
            State::One(one) => one.form,
            State::Many(form, _) => *form,
        }
    }

    /// Adds ranks of another cluster at once, if they have what is stored here in the same form. Whether that is so.
    pub(crate) fn takes(&mut self, part: &SlotOfRanks<'_>, renaming: &Renaming) -> bool {
        let values = &part.streams.values;
        let known = |(_, own): &(u32, Option<Own>)| own.is_some();
        let sane = |s: &Sealed| are_sane(s, values.form);
        let sound = self.plain || part.owns.iter().all(known) && values.streams.iter().all(sane);
        if matches!(self.how.rules, Rules::Rigid(_)) || !sound {
            return false;
        }
        let lens = part.streams.lens.as_ref();
        let steady = lens.filter(|l| l.streams.len() == 1).and_then(|l| l.streams.first());
        let len = steady.map(|l| total(l, part.executions)).or(lens.is_none().then_some(part.executions));
        let (Some(len), true) = (len, lens.is_some() == self.lens.is_some()) else { return false };
        let stream = |s: &Sealed| part.renamed(self.meaning, renaming, s.clone(), len);
        match &mut self.state {
            State::One(one) => {
                let size = one.own.size;
                let one_size =
                    self.plain || part.owns.iter().all(|(_, own)| own.is_some_and(|o| o.size == size));
                let [codes] = &values.streams[..] else { return false };
                if one.asks_user() || one.len != len || !one_size {
                    return false;
                }
                let codes = stream(codes);
                let same = values.form == one.form && codes == one.codes;
                if !same && (part.owns.len() == 1 || !one.leads_to_all(values.form, &codes, part.owns)) {
                    return false;
                }
            }
            State::Many(form, groups) => {
                if values.form != *form {
                    return false;
                }
                for (codes, ranks) in part.classes(values) {
                    groups.add_all(&stream(codes), len, ranks);
                }
            }
        }
        if let (Some(into), Some(lens)) = (&mut self.lens, lens) {
            part.classes(lens).for_each(|(l, ranks)| into.add_all(l, part.executions, ranks));
        }
        true
    }

    /// Adds a rank. Whether its values can be read back; always but by [`Rules::Rigid`].
    pub(crate) fn add(&mut self, mine: Mine<'_>, before: Before<'_>) -> bool {
        if let (Some(into), Some((lens, n))) = (&mut self.lens, mine.lens) {
            into.add_plain(mine.rank, lens, n);
        }
        if let Rules::Rigid(stand) = self.how.rules {
            let may = !self.plain && !self.lost && mine.own.is_some() && sane(mine.values);
            let State::One(one) = &mut self.state else { return false };
            one.note(mine);
            let kept = one.leads_to(mine) || (may && one.widen((self.meaning, self.how.rules), mine, before));
            if !kept {
                one.bound(stand, mine);
            }
            self.lost |= !kept;
            return kept;
        }
        if !self.plain && (mine.own.is_none() || !sane(mine.values)) {
            self.plain = true;
            self.give_up(before);
        }
        let plain = self.plain;
        let own = mine.own.unwrap_or_default();
        if let State::One(one) = &mut self.state {
            let how = (self.meaning, self.how.rules);
            one.note(mine);
            let suits = one.suits(own, plain);
            if suits && (one.leads_to(mine) || (!plain && one.widen(how, mine, before))) {
                return true;
            }
            self.split(before);
        }
        if let State::Many(form, groups) = &mut self.state {
            match *form {
                Form::Absolute => groups.add_plain(mine.rank, mine.values, mine.len),
                form => {
                    let code = |v| form.code(v, own);
                    let signature = mine.values.product(mine.len, |v| Signature::of_value(code(v)));
                    groups.add(mine.rank, signature, mine.len, || rewritten(mine.values, mine.len, code));
                }
            }
        }
        true
    }

    /// Adds a rank that the first one stands for.
    pub(crate) fn stand_in(&mut self, rank: u32) {
        let lens = self.lens.as_mut();
        let values = match &mut self.state {
            State::One(_) => None,
            State::Many(_, groups) => Some(groups),
        };
        for (_, _, ranks) in lens.into_iter().chain(values).filter_map(|groups| groups.list.first_mut()) {
            ranks.insert(rank);
        }
    }

    /// Goes back to values as recorded.
    fn give_up(&mut self, before: Before<'_>) {
        match &self.state {
            State::One(one) if one.form != Form::Absolute => self.split(before),
            State::Many(form, groups) if *form != Form::Absolute => {
                let mut out = Groups::default();
                for (codes, len, ranks) in &groups.list {
                    for rank in ranks.iter() {
                        let own = before.owns.of(rank);
                        let values = rewritten(codes, *len, |c| form.value(c, own));
                        out.add_plain(rank, &values, *len);
                    }
                }
                self.state = State::Many(Form::Absolute, out);
            }
            _ => {}
        }
    }

    /// Makes classes of the ranks so far.
    fn split(&mut self, before: Before<'_>) {
        let State::One(one) = &mut self.state else { return };
        let relative = self.meaning == Meaning::Rank && !self.plain;
        let mut groups = Groups::default();
        let (mut form, of_peers) = (Form::Absolute, self.how.rules.of_peers());
        match one.domain().map(<[i64]>::to_vec) {
            Some(domain) if !one.form.counts() && (relative || one.form != Form::Absolute) => {
                if relative {
                    form = of_peers;
                }
                // Ranks whose different values have equal codes are a class.
                let mut known: HashMap<Vec<i64>, usize, FixedState> = HashMap::default();
                for rank in before.ranks.iter() {
                    let own = before.owns.of(rank);
                    let value = |v| one.form.value(one.form.code(v, one.own), own);
                    let codes: Vec<i64> = domain.iter().map(|v| form.code(value(*v), own)).collect();
                    if let Some(&at) = known.get(&codes) {
                        groups.list[at].2.insert(rank);
                        continue;
                    }
                    let stream = rewritten(&one.values, one.len, |v| form.code(value(v), own));
                    groups.add(rank, Signature::of_stream(&stream, one.len), one.len, || stream.clone());
                    known.insert(codes, groups.recent);
                }
            }
            known if matches!(one.form, Form::User(_)) => {
                if relative && known.is_some() {
                    form = of_peers;
                }
                for rank in before.ranks.iter() {
                    let own = before.owns.of(rank);
                    // What was put into a form has led back when that was done.
                    let values = one.users_values(own).unwrap_or_else(|| one.values.clone());
                    let stream = rewritten(&values, one.len, |v| form.code(v, own));
                    groups.add_plain(rank, &stream, one.len);
                }
            }
            _ => {
                groups.add(0, one.signature, one.len, || one.values.clone());
                groups.list[0].2 = before.ranks.clone();
            }
        }
        self.state = State::Many(form, groups);
    }

    /// Makes up its mind, once all ranks are there.
    pub(crate) fn settle(&mut self, before: Before<'_>) {
        let determined = match &mut self.state {
            State::One(one) => one.determine(before),
            State::Many(..) => true,
        };
        if !determined {
            self.split(before);
        }
    }

    /// Whether ranks differ that are to be united; the codes of the histogram that does it.
    pub(crate) fn differs(&self) -> Option<Codes> {
        let State::Many(_, groups) = &self.state else { return None };
        let differs = self.how.forced && groups.list.len() > 1;
        let relative = self.meaning == Meaning::Rank && !self.plain;
        differs.then_some(if relative { Codes::Relative } else { Codes::Absolute })
    }

    /// The codes of ranks in the form that a user gave, if they are fewer.
    fn by_user(&mut self, before: Before<'_>) {
        let (State::Many(form, groups), Some(user)) = (&self.state, self.how.user) else { return };
        let mut out = Groups::default();
        for (codes, len, ranks) in &groups.list {
            for rank in ranks.iter() {
                let own = before.owns.of(rank);
                let values = rewritten(codes, *len, |c| form.value(c, own));
                let Some(codes) = code(&values, user, own, *len) else { return };
                out.add_plain(rank, &codes, *len);
                if out.list.len() >= groups.list.len() {
                    return;
                }
            }
        }
        self.state = State::Many(user, out);
    }

    /// How often each code was.
    fn histogram(&self, codes: Codes, before: Before<'_>) -> Option<Sealed> {
        let mut counter = Counter::only(codes, self.meaning == Meaning::Count);
        match &self.state {
            State::One(one) => {
                let all = [(one.codes.clone(), one.len, before.ranks.clone())];
                counter.add_streams(one.form, all.iter(), |rank| before.owns.of(rank));
            }
            State::Many(form, groups) => {
                counter.add_streams(*form, groups.list.iter(), |rank| before.owns.of(rank));
            }
        }
        Some(counter.smallest()?.1.to_stream())
    }

    /// The classes of ranks with equal values, or counts that are taken for equal.
    pub(crate) fn finish(mut self, before: Before<'_>, end: End, partitions: &mut Partitions) -> SlotStreams {
        let drawn = end.histogram.and_then(|codes| Some((codes, self.histogram(codes, before)?)));
        if end.last && drawn.is_none() && !self.plain && !(end.tolerant && self.meaning == Meaning::Count) {
            self.by_user(before);
        }
        let lens = self.lens.map(|l| partitions.elastic(l.classes(), Form::Absolute));
        let one = |stream| {
            let mut classes = Classes::default();
            classes.add_all(stream, before.ranks);
            classes
        };
        let values = match (drawn, self.state) {
            (Some((codes, stream)), _) => partitions.elastic(one(stream), Form::Histogram(codes)),
            (None, State::One(all)) => partitions.elastic(one(all.codes), all.form),
            (None, State::Many(form, groups)) => partitions.elastic(groups.classes(), form),
        };
        SlotStreams { lens, values }
    }
}

/// Whether forms lead back to all values.
fn sane(values: &Sealed) -> bool {
    are_sane(values, Form::Absolute)
}

/// Whether the codes of a form are those of such values.
fn are_sane(codes: &Sealed, form: Form) -> bool {
    let far = |v: i64| v.unsigned_abs() > SANE;
    let special = |c: i64| form != Form::Absolute && !far(c.wrapping_add(SPECIAL));
    codes.elements().all(|e| {
        let more = e.more.unwrap_or(0);
        (!far(e.first) || e.step == 0 && special(e.first)) && (e.step == 0 || (!far(e.step) && more < SANE))
    })
}
