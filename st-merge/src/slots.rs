//! The streams of one slot of one symbol under construction: classes of ranks, in the form that suits them best so far.
//!
//! All ranks' streams are held as codes of one form. When classes become many, and at the end, the form is reviewed:
//! another one is inferred from a sample of ranks and taken if it leaves fewer or shorter streams. Memory therefore
//! follows the number of streams that differ in the best form known, not the number of ranks.

use st_trace::calls::{Meaning, Slot};
use st_trace::form::Form;
use st_trace::ints::Sealed;
use st_trace::ranklist::RankList;
use st_trace::section::{Elastic, SlotStreams};

use crate::callers::{Callers, Lengths, code, decode};
use crate::classes::{Classes, Partitions};
use crate::infer::{HEAD, SAMPLE, Sampled, best, symbolic};

/// Classes at which the form is reviewed first; then at four times as many as were left.
const REVIEW: usize = 12;

/// Streams of one slot.
#[derive(Debug)]
pub(crate) struct SlotClasses {
    pub(crate) lens: Option<Classes>,
    meaning: Meaning,
    form: Form,
    classes: Classes,
    /// Whether symbolic forms are out of the question.
    plain: bool,
    review: usize,
    lengths: Lengths,
    /// What a user says.
    user: Option<Form>,
}

impl SlotClasses {
    pub(crate) fn new(slot: &Slot, user: Option<Form>) -> Self {
        Self {
            lens: slot.list.then(Classes::default),
            meaning: slot.meaning,
            form: Form::Absolute,
            classes: Classes::default(),
            plain: !symbolic(slot.meaning),
            review: REVIEW,
            lengths: Lengths::default(),
            user,
        }
    }

    /// Whether lengths of streams are needed.
    pub(crate) fn asks_lengths(&self, e: &Elastic) -> bool {
        !self.plain && (self.user.is_some() || e.streams.iter().any(|s| s.constant().is_none()))
    }

    /// Adds streams of classes of ranks. `len` is how many values a rank reads.
    pub(crate) fn add(
        &mut self,
        e: &Elastic,
        classes: &[RankList],
        callers: &Callers,
        len: &mut dyn FnMut(u32) -> u64,
    ) {
        if !self.plain && !callers.known() {
            self.give_up(callers);
        }
        let asks = self.asks_lengths(e);
        for (stream, ranks) in e.streams.iter().zip(classes) {
            if asks {
                ranks.iter().for_each(|r| self.lengths.add(r, len(r)));
            }
            if e.form == self.form {
                self.classes.add_all(stream.clone(), ranks);
                continue;
            }
            for rank in ranks.iter() {
                let own = callers.of(rank);
                let (from, to) = (e.form, self.form);
                let recoded = |code| from.code(to.value(code, own), own);
                let near = !self.plain && !from.counts() && !to.counts();
                if near && self.classes.join(rank, |codes| stream.is_mapped(codes, recoded)) {
                    continue;
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
        for (stream, ranks) in self.classes.list() {
            for rank in ranks.iter() {
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
            }
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
        let sample = self.sample(callers);
        // Neighbours can be looked up where ranks in the communicator are ranks in the world.
        let worldly = sample.iter().all(|(rank, s)| i64::from(*rank) == s.own.me);
        let at = |me: i64| {
            let rank = u32::try_from(me).ok().filter(|_| worldly)?;
            let (stream, _) = self.classes.list().iter().find(|(_, ranks)| ranks.contains(rank))?;
            Some(self.head(stream, rank, callers).head)
        };
        let sampled: Vec<Sampled> = sample.into_iter().map(|(_, s)| s).collect();
        let form = best(&sampled, self.meaning, [Some(self.form), self.user], &at);
        if form == self.form {
            return;
        }
        // Values as such are worth many classes where forms explain nothing; a form must leave fewer or shorter ones.
        let most = if form == Form::Absolute { usize::MAX } else { 2 * self.classes.len() };
        let Some(classes) = self.converted(form, callers, most) else { return };
        if classes.cost() < self.classes.cost() || form == Form::Absolute {
            (self.form, self.classes) = (form, classes);
        }
    }

    /// Ranks from all classes, as evenly as may be.
    fn sample(&self, callers: &Callers) -> Vec<(u32, Sampled)> {
        let list = self.classes.list();
        let mut out = Vec::new();
        for (stream, ranks) in list.iter().step_by(list.len().div_ceil(SAMPLE).max(1)) {
            let n = u64::try_from(SAMPLE / list.len()).unwrap_or(1).clamp(1, ranks.len());
            for i in 0..n {
                let Some(rank) = ranks.nth(ranks.len() * i / n) else { continue };
                out.push((rank, self.head(stream, rank, callers)));
            }
        }
        out.sort_by_key(|(rank, _)| *rank);
        out
    }

    fn head(&self, stream: &Sealed, rank: u32, callers: &Callers) -> Sampled {
        let own = callers.of(rank);
        let steady = stream.constant().is_some() && self.user.is_none();
        let n = if steady { 1 } else { HEAD };
        let mut cursor = stream.cursor();
        let len = usize::try_from(self.lengths.of(rank)).unwrap_or(HEAD).clamp(1, HEAD);
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
