//! Ranks of a slot in classes.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::unite::Classes;

use crate::cluster::signature::Signature;

/// Ranks by the content of streams.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) list: Vec<(Sealed, u64, RankList)>,
    index: HashMap<(Signature, u64), usize, FixedState>,
    pub(super) recent: usize,
}

impl Groups {
    /// Adds a rank with the first `len` values of a stream; `codes` makes the stream to keep.
    pub(super) fn add(&mut self, rank: u32, signature: Signature, len: u64, codes: impl FnOnce() -> Sealed) {
        self.group(signature, len, codes).insert(rank);
    }
    /// Adds a rank with values as they are.
    pub(super) fn add_plain(&mut self, rank: u32, values: &Sealed, len: u64) {
        self.plain(values, len).insert(rank);
    }
    /// Adds ranks with values as they are.
    pub(super) fn add_all(&mut self, values: &Sealed, len: u64, ranks: &RankList) {
        if !ranks.is_empty() {
            self.plain(values, len).extend(ranks);
        }
    }
    /// The ranks with values as they are.
    fn plain(&mut self, values: &Sealed, len: u64) -> &mut RankList {
        match self.list.get(self.recent) {
            Some((last, n, _)) if *n == len && last == values => &mut self.list[self.recent].2,
            _ => self.group(Signature::of_stream(values, len), len, || values.clone()),
        }
    }
    fn group(&mut self, signature: Signature, len: u64, codes: impl FnOnce() -> Sealed) -> &mut RankList {
        self.recent = *self.index.entry((signature, len)).or_insert_with(|| {
            self.list.push((codes(), len, RankList::default()));
            self.list.len() - 1
        });
        &mut self.list[self.recent].2
    }
    pub(super) fn classes(self) -> Classes {
        let mut out = Classes::default();
        self.list.iter().for_each(|(stream, _, ranks)| out.add_all(stream.clone(), ranks));
        out
    }
}
