//! The streams of one slot of one symbol under construction: classes of ranks, in the form that suits them best so far.
//!
//! All ranks' streams are held as codes of one form. When classes become many, and at the end, the form is reviewed:
//! another one is inferred from a sample of ranks and taken if it leaves fewer or shorter streams. Memory therefore
//! follows the number of streams that differ in the best form known, not the number of ranks.

use st_model::calls::{Lane, Meaning, Slot};
use st_model::form::Form;
use st_model::ints::Sealed;
use st_model::num::{Exact, saturate};
use st_model::ranklist::RankList;
use st_model::section::{Elastic, SlotStreams};
use st_model::steps::Budget;

use crate::codes::{code, decode};
use crate::lossy::{Counter, Rule, codes};
use crate::merge::callers::{Callers, Lengths};
use crate::merge::error::Error;
use crate::merge::factor;
use crate::merge::infer::{HEAD, SAMPLE, Sampled, best};
use crate::merge::products;
use st_model::unite::{Classes, Partitions};

/// Classes at which the form is reviewed first; then at four times as many as were left.
pub(crate) const REVIEW: usize = 12;
/// The same in parts of a trace, of which there are many, and which learn of few ranks.
pub(crate) const REVIEW_PART: usize = 8192;
/// Classes from which on a product is looked for, and bytes of its text for each of which it must save a word.
const PRODUCT: (usize, usize) = (5, 8);

/// Short steps for each rank: to learn how many values it reads, to put classes of ranks between each other, and to put a
/// rank's values into another form.
const LENGTH: u64 = 3;
const CLASSES: u64 = 8;
const RECODED: u64 = 4;
/// Steps for each class that comes of that: measured in memory, 330 bytes.
const CLASS: u64 = 10;

/// Streams of one slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotClasses {
    pub(crate) lens: Option<Classes>,
    meaning: Meaning,
    lane: Lane,
    form: Form,
    classes: Classes,
    /// Whether symbolic forms are out of the question.
    plain: bool,
    review: usize,
    lengths: Lengths,
    /// What a user says.
    user: Option<Form>,
    /// When it becomes a histogram.
    lossy: Option<Rule>,
}

impl SlotClasses {
    pub(crate) fn new(slot: &Slot, user: Option<Form>, lossy: Option<Rule>, review: usize) -> Self {
        Self {
            lens: slot.list.then(Classes::default),
            meaning: slot.meaning,
            lane: slot.lane,
            form: Form::Absolute,
            classes: Classes::default(),
            plain: !slot.meaning.is_symbolic(),
            review,
            lengths: Lengths::default(),
            user,
            lossy,
        }
    }

    /// Whether lengths of streams are needed.
    pub(crate) fn asks_lengths(&self, e: &Elastic) -> bool {
        let counts = e.form.counts() || self.user.is_some() || self.meaning == Meaning::Count;
        self.lossy.is_some() || !self.plain && (counts || e.streams.iter().any(|s| s.constant().is_none()))
    }

    /// Short steps that adding streams of classes of ranks takes, and looking at them again once all ranks are there; none for
    /// a rank alone, and few where all ranks have one stream in the form that the others are in.
    fn steps(&self, e: &Elastic, classes: &[RankList], callers: &Callers) -> u64 {
        let ranks = classes.iter().fold(0, |n: u64, ranks| n.saturating_add(ranks.len()));
        if ranks <= 1 {
            return 0;
        }
        let first = self.classes.is_empty() && !self.plain && !e.form.counts();
        let again = !self.plain && !callers.known();
        let recoded = again || !first && e.form != self.form;
        let before = if again { self.classes.ranks().len() } else { 0 };
        let each = u64::from(self.asks_lengths(e)) * LENGTH
            + u64::from(classes.len() > 1) * CLASSES
            + u64::from(recoded) * RECODED;
        ranks.saturating_mul(each).saturating_add(before.saturating_mul(RECODED))
    }

    /// Adds streams of classes of ranks. `len` is how many values a rank reads.
    ///
    /// # Errors
    ///
    /// If histograms are to be added to what is in another form, or the other way round, or it takes more steps than are
    /// allowed.
    pub(crate) fn add(
        &mut self,
        e: &Elastic,
        classes: &[RankList],
        (callers, budget): (&Callers, &Budget),
        len: &mut dyn FnMut(u32) -> u64,
    ) -> Result<(), Error> {
        let drawn = |form| matches!(form, Form::Histogram(_));
        if !self.classes.is_empty() && e.form != self.form && (drawn(e.form) || drawn(self.form)) {
            return Err(Error::Histograms);
        }
        let steps = self.steps(e, classes, callers);
        budget.take_short(steps)?;
        if drawn(e.form) {
            (self.form, self.plain, self.lossy) = (e.form, true, None);
        } else if !self.plain && !callers.known() {
            self.give_up(callers);
        }
        if self.classes.is_empty() && !self.plain {
            // Ranks that come as a cluster have been looked at.
            match e.form {
                form if form.counts() => self.user = self.user.or(Some(form)),
                form => self.form = form,
            }
        }
        if self.asks_lengths(e) {
            classes.iter().flat_map(RankList::iter).for_each(|r| self.lengths.add(r, len(r)));
        }
        let of_classes = || e.streams.iter().zip(classes);
        if e.form == self.form {
            of_classes().for_each(|(stream, ranks)| self.classes.add_all(stream.clone(), ranks));
        } else {
            for (rank, stream) in by_rank(of_classes()) {
                let own = callers.of(rank);
                let (from, to) = (e.form, self.form);
                let recoded = |code| from.code(to.value(code, own), own);
                let near = !self.plain && !from.counts() && !to.counts();
                if near && self.classes.join(rank, |codes| stream.is_mapped(codes, recoded)) {
                    continue;
                }
                if steps > 0 {
                    budget.take(CLASS)?;
                }
                let n = if e.form == Form::Absolute { 0 } else { len(rank) };
                // What was put into a form has led back when that was done.
                let values = decode(stream, e.form, own, n).unwrap_or_else(|| stream.clone());
                let codes = code(&values, self.form, own, self.lengths.of(rank));
                if let Some(codes) = codes {
                    self.classes.add(codes, rank);
                } else {
                    self.give_up(callers);
                    self.classes.add(values, rank);
                }
            }
        }
        if !self.plain && self.classes.len() >= self.review {
            self.review(callers);
            self.review = 4 * self.classes.len().max(REVIEW);
        }
        Ok(())
    }

    /// Takes other streams, of values as such.
    pub(crate) fn replace(&mut self, classes: Classes) {
        (self.form, self.classes, self.plain) = (Form::Absolute, classes, true);
    }

    /// Becomes no histogram for the sake of room.
    pub(crate) fn keep(&mut self) {
        self.lossy = self.lossy.map(Rule::without_room);
    }

    /// Becomes a histogram, if it is to: once all ranks are there.
    pub(crate) fn lose(&mut self, callers: &Callers) {
        let list = self.classes.list();
        let stored = list.iter().map(|(s, _)| s.elements().count()).sum();
        let steady = matches!(list, [(one, _)] if one.constant().is_some());
        let Some(rule) = self.lossy.filter(|rule| !steady && rule.may_apply(list.len(), stored)) else {
            return;
        };
        let mut counter = Counter::new(self.meaning, callers.known());
        for (stream, ranks) in list {
            let mut read: Option<(u64, Vec<(i64, u64)>)> = None;
            for rank in ranks.iter() {
                let (own, len) = (callers.of(rank), self.lengths.of(rank));
                if self.form.counts() || read.as_ref().is_none_or(|(n, _)| *n != len) {
                    read = Some((len, codes(stream, len, self.form.counts())));
                }
                for (&(code, times), n) in read.iter().flat_map(|(_, codes)| codes).zip(0..) {
                    counter.add(self.form.value_at(code, own, n), own, times);
                }
            }
        }
        let Some((codes, frequencies)) = counter.smallest() else { return };
        let histogram = frequencies.to_stream();
        if !rule.applies(list.len(), stored) && !rule.prefers(&histogram, list.iter().map(|(s, _)| s)) {
            return;
        }
        let all = self.classes.ranks();
        (self.form, self.plain) = (Form::Histogram(codes), true);
        self.classes = Classes::default();
        self.classes.add_all(histogram, &all);
    }

    /// Bit of the lane that this slot's values can no longer prove.
    pub(crate) fn voided(&self) -> u8 {
        if matches!(self.form, Form::Histogram(_)) { 1 << self.lane as u8 } else { 0 }
    }

    /// Goes back to values as recorded, for good.
    fn give_up(&mut self, callers: &Callers) {
        self.plain = true;
        if let Some(classes) = self.converted(Form::Absolute, callers, usize::MAX) {
            self.classes = classes;
            self.form = Form::Absolute;
        }
    }

    /// All ranks' streams in another form; `None` if that does not hold them exactly, or in more than `most` classes.
    fn converted(&self, form: Form, callers: &Callers, most: usize) -> Option<Classes> {
        let mut out = Classes::default();
        for (rank, stream) in by_rank(self.classes.list().iter().map(|(stream, ranks)| (stream, ranks))) {
            let (own, len) = (callers.of(rank), self.lengths.of(rank));
            let recoded = |code| self.form.code(form.value(code, own), own);
            if !self.form.counts()
                && !form.counts()
                && out.join(rank, |codes| stream.is_mapped(codes, recoded))
            {
                continue;
            }
            let values = decode(stream, self.form, own, len)?;
            out.add(code(&values, form, own, len)?, rank);
            if out.len() > most {
                return None;
            }
        }
        Some(out)
    }

    /// Takes a better form, if there is one.
    pub(crate) fn review(&mut self, callers: &Callers) {
        if self.plain || self.classes.len() < 2 {
            return;
        }
        let sample = self.sample(callers, HEAD);
        let by_world_rank = by_world_rank(&sample);
        let at = |me: i64| self.first_values(me, by_world_rank, HEAD, callers);
        let sampled: Vec<Sampled> = sample.iter().map(|(_, s)| s.clone()).collect();
        let form = best(&sampled, self.meaning, [Some(self.form), self.user], &at);
        if form != self.form {
            // Values as such are worth many classes where forms explain nothing; a form must leave fewer or shorter ones.
            let most = if form == Form::Absolute { usize::MAX } else { 2 * self.classes.len() };
            if let Some(classes) = self.converted(form, callers, most)
                && (classes.cost() < self.classes.cost() || form == Form::Absolute)
            {
                (self.form, self.classes) = (form, classes);
            }
        }
        if self.meaning == Meaning::Count && self.classes.len() >= PRODUCT.0 {
            self.review_products(callers);
        }
    }

    /// Takes a product of factors, once all ranks are there that it is to explain.
    fn review_products(&mut self, callers: &Callers) {
        let Some(size) = self.sample(callers, 1).first().map(|(_, s)| s.own.size) else { return };
        let ranks: u64 = self.classes.list().iter().map(|(_, ranks)| ranks.len()).sum();
        if i64::try_from(ranks) != Ok(size) {
            return;
        }
        let head = products::head(size);
        let sample = self.sample(callers, head);
        if !by_world_rank(&sample) {
            return;
        }
        let mut class_of = vec![usize::MAX; saturate(size)];
        for (class, (_, ranks)) in self.classes.list().iter().enumerate() {
            for rank in ranks.iter() {
                if let Some(of) = class_of.get_mut(rank as usize) {
                    *of = class;
                }
            }
        }
        let at = |me: i64| {
            let class = class_of.get(usize::try_from(me).ok()?)?;
            let (stream, _) = self.classes.list().get(*class)?;
            Some(self.head(stream, u32::try_from(me).ok()?, head, callers).head)
        };
        let sampled: Vec<Sampled> = sample.iter().map(|(_, s)| s.clone()).collect();
        let all = || {
            let all = self.classes.list().iter().flat_map(|(s, ranks)| ranks.iter().map(move |r| (s, r)));
            all.map(|(s, rank)| self.head(s, rank, factor::PLACES, callers)).collect()
        };
        let Some(form) = products::product(&sampled, &at, &all) else { return };
        if let Some(classes) = self.converted(form, callers, self.classes.len())
            && classes.cost() + form.to_string().len() / PRODUCT.1 < self.classes.cost()
        {
            (self.form, self.classes) = (form, classes);
        }
    }

    /// The first values of the rank of a number in the communicator, if that is its number in the world.
    fn first_values(&self, me: i64, by_world_rank: bool, most: usize, callers: &Callers) -> Option<Vec<i64>> {
        let rank = u32::try_from(me).ok().filter(|_| by_world_rank)?;
        let (stream, _) = self.classes.list().iter().find(|(_, ranks)| ranks.contains(rank))?;
        Some(self.head(stream, rank, most, callers).head)
    }

    /// Ranks from all classes, as evenly as may be.
    fn sample(&self, callers: &Callers, most: usize) -> Vec<(u32, Sampled)> {
        let list = self.classes.list();
        let mut out = Vec::new();
        for (stream, ranks) in list.iter().step_by(list.len().div_ceil(SAMPLE).max(1)) {
            let n = (SAMPLE / list.len()).to_u64().clamp(1, ranks.len());
            for i in 0..n {
                let Some(rank) = ranks.nth(ranks.len() * i / n) else { continue };
                out.push((rank, self.head(stream, rank, most, callers)));
            }
        }
        out.sort_by_key(|(rank, _)| *rank);
        out
    }

    fn head(&self, stream: &Sealed, rank: u32, most: usize, callers: &Callers) -> Sampled {
        let own = callers.of(rank);
        let steady = stream.constant().is_some() && self.user.is_none();
        let n = if steady && most == HEAD { 1 } else { most };
        let mut cursor = stream.cursor();
        let len = self.lengths.of(rank).to_usize().clamp(1, most);
        let n = if self.lengths.of(rank) == 0 { n } else { n.min(len) };
        let mut at = 0..;
        let mut next = || self.form.value_at(cursor.next(), own, at.next().unwrap_or(0));
        Sampled { own, head: (0..n).map(|_| next()).collect() }
    }

    pub(crate) fn finish(self, partitions: &mut Partitions) -> SlotStreams {
        let lens = self.lens.map(|l| partitions.elastic(l, Form::Absolute));
        SlotStreams { lens, values: partitions.elastic(self.classes, self.form) }
    }
}

/// Ranks with their streams, ascending: so that sets of them grow at their ends.
fn by_rank<'a>(classes: impl Iterator<Item = (&'a Sealed, &'a RankList)>) -> Vec<(u32, &'a Sealed)> {
    let mut all: Vec<_> =
        classes.flat_map(|(stream, ranks)| ranks.iter().map(move |r| (r, stream))).collect();
    all.sort_unstable_by_key(|(rank, _)| *rank);
    all
}

/// Whether ranks in the communicator are ranks in the world.
fn by_world_rank(sample: &[(u32, Sampled)]) -> bool {
    sample.iter().all(|(rank, s)| i64::from(*rank) == s.own.me)
}
