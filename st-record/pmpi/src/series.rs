//! Calls that repeat the one before, as one event: when a thread's series grows, begins and ends.

use crate::polls::{Repeat, Several};
use crate::state::{State, enter};
use crate::thread::{Event, Thread};
use st_model::section::Sym;

impl State {
    /// Takes a call that may be part of a series, if it is. One that always repeats, but that the loop in progress makes once here
    /// and has not made twice in a row for long, is none: it need not wait for what comes next, and the loop can be followed. So a
    /// rare series of such a site may begin with one call that is an event of its own. Nor are such calls one that come by different
    /// stacks which are one site only since they are similar: a loop that asks for the time before and after something can be followed.
    pub(crate) fn grow(&mut self, thread: usize, sym: Sym, event: &Event) -> bool {
        let t = &mut self.threads[thread];
        let repeats = event.error == 0 && (t.failed || event.repeat == Repeat::Always);
        t.words.push(1);
        if !repeats {
            return false;
        }
        let moves = event.repeat == Repeat::Always && !self.recorder.keeps_sites() && t.series.moves(t.stack);
        if !moves && t.series.grow(sym, &t.words, event.enter, event.exit) {
            if event.repeat == Repeat::Always && t.series.times() == Some(2) {
                self.several.entry(sym).or_default().again();
            }
            if let Some(j) = &self.journal {
                j.grown(t.index, t.series.words.last().copied().unwrap_or(1), event.exit);
            }
            return true;
        }
        self.flush(thread);
        let t = &mut self.threads[thread];
        if event.repeat == Repeat::Always {
            if !moves && self.recorder.last_symbol(t.index) == Some(sym) {
                self.several.entry(sym).or_default().again();
            } else if self.several.get(&sym).is_none_or(Several::is_single)
                && self.recorder.expects(t.index, sym, &t.words)
            {
                return false;
            }
        }
        t.series.begin(sym, &t.words, event.enter, event.exit);
        self.note_series(thread);
        true
    }

    /// Ends the thread's series, if there is one.
    pub(crate) fn flush(&mut self, thread: usize) {
        if self.threads[thread].series.is_open() {
            let mut series = std::mem::take(&mut self.threads[thread].series);
            series.close();
            if let (Some(several), Some(1)) = (self.several.get_mut(&series.sym), series.words.last()) {
                several.once();
            }
            let index = self.threads[thread].index;
            let (recorder, journal) = (&mut self.recorder, &mut self.journal);
            let times = (series.enter, series.exit);
            let (chunk, full) = enter(recorder, journal, index, series.sym, &series.words, times);
            self.settle(index, chunk, full);
            self.threads[thread].series = series;
        }
    }

    /// Writes the thread's open series to the journal.
    #[cold]
    fn note_series(&mut self, thread: usize) {
        let Thread { index, series, .. } = &self.threads[thread];
        if let Some(j) = &mut self.journal
            && !j.series(&self.recorder, *index, series.sym, &series.words, (series.enter, series.exit))
        {
            self.dear(Self::snapshot);
        }
    }
}
