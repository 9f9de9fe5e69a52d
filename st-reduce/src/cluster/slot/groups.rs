//! Ranks of a slot in classes.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_trace::ints::Sealed;
use st_trace::ranklist::RankList;
use st_trace::unite::Classes;

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
        self.recent = *self.index.entry((signature, len)).or_insert_with(|| {
            self.list.push((codes(), len, RankList::default()));
            self.list.len() - 1
        });
        self.list[self.recent].2.insert(rank);
    }
    /// Adds a rank with values as they are.
    pub(super) fn add_plain(&mut self, rank: u32, values: &Sealed, len: u64) {
        if let Some((last, n, ranks)) = self.list.get_mut(self.recent)
            && *n == len
            && last == values
        {
            return ranks.insert(rank);
        }
        self.add(rank, Signature::of_stream(values, len), len, || values.clone());
    }
    /// Adds ranks with values as they are.
    pub(super) fn add_all(&mut self, values: &Sealed, len: u64, ranks: &RankList) {
        if let Some(lowest) = ranks.lowest() {
            self.add_plain(lowest, values, len);
            self.list[self.recent].2.extend(ranks);
        }
    }
    pub(super) fn classes(self) -> Classes {
        let mut out = Classes::default();
        self.list.iter().for_each(|(stream, _, ranks)| out.add_all(stream.clone(), ranks));
        out
    }
}
