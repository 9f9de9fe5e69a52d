//! Reading a trace in batches that several threads work on.

use st_model::num::Exact;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Error, Result, anyhow};
use st_model::section::Section;
use st_stream::Stored;

use crate::options::StreamIn;
use crate::progress::{Amount, Progress};
use crate::traces::{Whole, each_stored_of};

/// A batch has so many bytes, or those of one section.
const BYTES: usize = 1 << 23;

/// Consecutive sections, not decoded yet.
#[derive(Debug)]
pub struct Batch {
    /// Place of the first one among all sections.
    pub first: u64,
    /// The sections.
    pub sections: Vec<Stored>,
    /// Whether others follow.
    pub more: bool,
    /// Names of inputs, each with the number of sections before its first one here.
    names: Vec<(usize, Arc<str>)>,
    bytes: usize,
    /// What shows how many ranks have been decoded, and how many sections were.
    shown: Arc<Progress>,
    decoded: AtomicUsize,
}

impl Batch {
    fn new(first: u64, shown: &Arc<Progress>) -> Self {
        let shown = Arc::clone(shown);
        Self {
            first,
            sections: Vec::new(),
            more: false,
            names: Vec::new(),
            bytes: 0,
            shown,
            decoded: AtomicUsize::new(0),
        }
    }

    fn add(&mut self, name: &Arc<str>, section: Stored) {
        if self.names.last().is_none_or(|(_, last)| !Arc::ptr_eq(last, name)) {
            self.names.push((self.sections.len(), Arc::clone(name)));
        }
        self.bytes += section.bytes();
        self.shown.expect(section.ranks().len());
        self.sections.push(section);
    }

    /// Place after the last section's.
    fn end(&self) -> u64 {
        self.place(self.sections.len())
    }

    /// Place of the `at`-th section.
    #[must_use]
    pub fn place(&self, at: usize) -> u64 {
        self.first.saturating_add(at.to_u64())
    }

    /// Says in which input the `at`-th section is, if something is wrong with it.
    ///
    /// # Errors
    ///
    /// As given.
    pub fn named<T, E>(&self, at: usize, result: std::result::Result<T, E>) -> Result<T>
    where
        std::result::Result<T, E>: Context<T, E>,
    {
        let name = self.names.iter().rev().find(|(from, _)| *from <= at);
        result.with_context(|| name.map(|(_, name)| name.to_string()).unwrap_or_default())
    }

    /// Decodes the `at`-th section by one of its methods.
    ///
    /// # Errors
    ///
    /// If it is damaged, or there is none.
    pub fn section(
        &self,
        at: usize,
        decode: impl FnOnce(&Stored) -> std::result::Result<Section, st_stream::Error>,
    ) -> Result<Section> {
        let stored = self.sections.get(at).ok_or_else(|| anyhow!("no such section"))?;
        // Some are decoded again: where the ranks of a block turn out not to be alike.
        let before = self.decoded.fetch_max(at + 1, Ordering::Relaxed);
        let section = self.named(at, decode(stored));
        let now = self.sections.get(before..=at).into_iter().flatten();
        self.shown.advance(now.map(|stored| stored.ranks().len()).sum());
        section
    }
}

/// Reads all sections of the streams that `paths` stand for, in batches of up to `most` (the places after them are multiples
/// of that, as long as they are not long); hands each to `work` in one of `jobs` threads, and what it makes of them, in
/// order, to `take`.
///
/// # Errors
///
/// If a stream cannot be read, if streams are of different runs or hold a rank twice, or if `work` or `take` fails.
pub fn each_batch<T: Send>(
    paths: &[PathBuf],
    input: &StreamIn,
    most: u64,
    jobs: usize,
    work: impl Fn(&Batch) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<Whole> {
    if jobs < 2 {
        return read(paths, input, most, |batch| take(work(&batch)?));
    }
    let (to_work, of_work) = sync_channel(jobs);
    let (to_take, of_take) = sync_channel(jobs);
    // Gone with the last worker, so that the reader does not wait for ever.
    let of_work = Arc::new(Mutex::new(of_work));
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut numbers = 0u64..;
            read(paths, input, most, |batch| {
                let numbered = (numbers.next().unwrap_or(0), batch);
                to_work.send(numbered).map_err(|_| anyhow!("work on it has stopped"))
            })
        });
        for _ in 0..jobs {
            let (of_work, to_take, work) = (Arc::clone(&of_work), to_take.clone(), &work);
            scope.spawn(move || {
                loop {
                    let next: std::result::Result<(u64, Batch), _> =
                        of_work.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, batch)) = next else { break };
                    if to_take.send((number, work(&batch))).is_err() {
                        break;
                    }
                }
            });
        }
        drop((of_work, to_take));
        let taken = in_order(of_take, &mut take);
        let whole = reader.join().map_err(|_| anyhow!("the reading thread failed"))?;
        taken?;
        whole
    })
}

/// Hands on what was made of batches by their numbers, up to the first that failed.
fn in_order<T>(made: Receiver<(u64, Result<T>)>, take: &mut impl FnMut(T) -> Result<()>) -> Result<()> {
    let (mut waiting, mut next) = (BTreeMap::new(), 0);
    for (number, made) in made {
        waiting.insert(number, made);
        while let Some(made) = waiting.remove(&next) {
            take(made?)?;
            next += 1;
        }
    }
    Ok(())
}

/// Reads sections in batches.
fn read(
    paths: &[PathBuf],
    input: &StreamIn,
    most: u64,
    mut hand_on: impl FnMut(Batch) -> Result<()>,
) -> Result<Whole> {
    let tool = input.reader.unwrap_or_default();
    let ranks = Amount::Things("ranks", 0);
    let shown = Arc::new(Progress::begin(input.reader.is_some(), tool, "decoding", ranks));
    let mut batch = Batch::new(0, &shown);
    // What goes wrong with a whole batch is not said of the input that is read by then.
    let mut failed: Option<Error> = None;
    let whole = each_stored_of(paths, input, |_, name, section| {
        if !batch.sections.is_empty() && (batch.end().is_multiple_of(most) || batch.bytes >= BYTES) {
            let next = Batch::new(batch.end(), &shown);
            let full = std::mem::replace(&mut batch, next);
            if let Err(why) = hand_on(Batch { more: true, ..full }) {
                failed = Some(why);
                return Err(anyhow!("work on it has stopped"));
            }
        }
        batch.add(name, section);
        Ok(())
    });
    if let Some(why) = failed {
        return Err(why);
    }
    let whole = whole?;
    if !batch.sections.is_empty() {
        hand_on(batch)?;
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::header::Header;
    use st_model::ranklist::RankList;
    use st_stream::{Trace, WriteOptions};

    #[test]
    fn each_rank_is_decoded_once_for_who_looks_how_far_it_is() {
        let of = |ranks: &[u32]| Section {
            ranks: ranks.iter().copied().collect::<RankList>(),
            ..Section::default()
        };
        let sections = vec![of(&[0, 1]), of(&[2]), of(&[3])];
        let header = Header { world: 4, ..Header::default() };
        let trace = Trace { header, sections, ..Trace::default() };
        let file = tempfile::NamedTempFile::new().unwrap();
        st_stream::write(&trace, file.as_file(), WriteOptions::PIPE).unwrap();
        let mut seen = Vec::new();
        let whole = read(&[file.path().to_owned()], &StreamIn::default(), 8, |batch| {
            for at in [0, 0, 2, 1] {
                batch.section(at, Stored::section)?;
                seen.push(batch.shown.so_far());
            }
            Ok(())
        });
        assert_eq!(whole.unwrap().ranks, RankList::first(4));
        assert_eq!(seen, [2, 2, 4, 4].map(|done| (done, Some(4))));
    }
}
