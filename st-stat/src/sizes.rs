//! Where the bytes of a stream go, per kind of frame.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use st_tool::Input;
use st_trace::stream::frame_sizes;

use crate::table::{Cell, Table};

/// One row per kind of frame, and the total.
pub(crate) fn sizes(path: &Path) -> Result<Table> {
    let from = Input::open(path)?;
    let name = from.name().to_owned();
    let mut kinds: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    let mut total = (0, 0, 0);
    for frame in frame_sizes(from).with_context(|| name.clone())? {
        let row = kinds.entry(frame.kind).or_default();
        for t in [row, &mut total] {
            t.0 += 1;
            t.1 += frame.stored;
            t.2 += frame.expanded;
        }
    }
    let row = |(name, (n, stored, expanded)): (String, (u64, u64, u64))| {
        vec![
            Cell::text(name),
            Cell::count(n),
            Cell::count(stored),
            Cell::percent(stored.into(), total.1.into()),
            Cell::count(expanded),
        ]
    };
    let mut list: Vec<_> = kinds.into_iter().collect();
    list.sort_by_key(|(_, t)| std::cmp::Reverse(t.1));
    list.push(("total".into(), total));
    let columns =
        vec![("frame", true), ("number", false), ("bytes", false), ("share", false), ("uncompressed", false)];
    Ok(Table { columns, rows: list.into_iter().map(row).collect() })
}
