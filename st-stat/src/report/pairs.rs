//! Who sends how much to whom, in groups of ranks.

use std::collections::BTreeMap;

use st_match::volume::Flow;
use st_model::num::saturate;

use super::data::{Columns, Matrix};
use super::room::Room;
use crate::matrix;

/// All pairs of a trace, with no more groups than there is room for.
pub(super) fn matrix(of: &matrix::Matrix, room: Room) -> Matrix {
    let ranks = of.groups();
    let group = ranks.div_ceil(room.side.max(1)).max(1);
    let mut cells: BTreeMap<(usize, usize), Flow> = BTreeMap::new();
    for ((from, to), flow) in of.pairs() {
        cells.entry((from / group, to / group)).or_default().add(flow);
    }
    let mut all = Matrix {
        ranks,
        group,
        from: Vec::new(),
        to: Vec::new(),
        messages: Vec::new(),
        bytes: Vec::new(),
        pairs: Columns::of(&of.heaviest_first(), room.pairs, room.texts),
    };
    for ((from, to), flow) in cells {
        all.from.push(from);
        all.to.push(to);
        all.messages.push(flow.messages);
        all.bytes.push(saturate(flow.sent.saturating_add(flow.fetched)));
    }
    all
}
