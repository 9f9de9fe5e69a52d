//! By which call paths the call sites of a table are reached.

use std::collections::HashMap;

use st_model::num::saturate;
use st_model::sites::CallSites;

use super::data::Stacks;
use super::room::Room;
use crate::table::Table;

/// Between the parts of a call site that is known by a text only.
const PARTS: &str = " < ";

/// Of the rows of a table of call sites that a page holds.
pub(super) fn of(table: &Table, sites: &CallSites, room: Room) -> Stacks {
    let column = table.columns.iter().position(|column| column.key == "site");
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut all = Stacks { frames: Vec::new(), of: Vec::new() };
    for row in table.rows.iter().take(room.sites) {
        let site = column.and_then(|at| row.get(at)?.value.as_u64());
        let stack = site.map_or_else(Vec::new, |site| sites.stack(saturate(site)));
        let frames = stack.iter().flat_map(|text| text.split(PARTS));
        let mut path: Vec<usize> = frames
            .map(|frame| {
                let text: String = frame.chars().take(room.texts).collect();
                *numbers.entry(text).or_insert_with_key(|text| {
                    all.frames.push(text.clone());
                    all.frames.len() - 1
                })
            })
            .collect();
        path.reverse();
        all.of.push(path);
    }
    all
}
