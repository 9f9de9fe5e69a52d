//! Ranks, or groups of neighbours where there are many.

use serde_json::{Map, Value};
use st_model::num::Exact as _;

use super::data::{Columns, Values};
use super::room::Room;
use crate::table::Table;

/// What is added up, and what of it the most loaded rank of a group has is told.
const TIMES: [(&str, [&str; 3]); 4] = [
    ("time_ns", ["time_ns", "time_most_ns", "time_most_rank"]),
    ("computation_ns", ["computation_ns", "computation_most_ns", "computation_most_rank"]),
    ("mpi_ns", ["mpi_ns", "mpi_most_ns", "mpi_most_rank"]),
    ("wait_ns", ["wait_ns", "wait_most_ns", "wait_most_rank"]),
];

/// Titles of these.
const TITLES: [[&str; 3]; 4] = [
    ["time", "longest", "on rank"],
    ["computation", "longest", "on rank"],
    ["in MPI", "longest", "on rank"],
    ["waiting", "longest", "on rank"],
];

/// The table of ranks, if there is room for all of its rows; else one of groups, with sums and the ranks that have most.
pub(super) fn columns(table: &Table, room: Room) -> Columns {
    let rows = &table.rows;
    if rows.len() <= room.ranks {
        return Columns::of(table, usize::MAX, room.texts);
    }
    // A group has three times as many columns.
    let group = (3 * rows.len()).div_ceil(room.ranks.max(1));
    let at = |key: &str| table.columns.iter().position(|c| c.key == key);
    let value = |row: &[crate::table::Cell], i: Option<usize>| row.get(i?)?.value.as_u64();
    let rank = at("rank");
    let named = |key, title, values| Values { key, title, values, texts: Vec::new() };
    let ends = |last: bool| -> Vec<Value> {
        let end = |rows: &[Vec<_>]| value(if last { rows.last()? } else { rows.first()? }, rank);
        rows.chunks(group).map(|rows| end(rows).map_or(Value::Null, Value::from)).collect()
    };
    let mut columns =
        vec![named("first_rank", "from rank", ends(false)), named("last_rank", "to rank", ends(true))];
    for ((key, names), titles) in TIMES.into_iter().zip(TITLES) {
        let of = at(key);
        let mut values: [Vec<Value>; 3] = Default::default();
        for rows in rows.chunks(group) {
            let known = || rows.iter().filter_map(|row| Some((value(row, of)?, value(row, rank)?)));
            let sum = known().map(|(ns, _)| ns).reduce(u64::saturating_add);
            let most = known().max_by_key(|(ns, rank)| (*ns, u64::MAX - rank));
            let cells = [sum, most.map(|m| m.0), most.map(|m| m.1)];
            values.iter_mut().zip(cells).for_each(|(list, n)| list.push(n.map_or(Value::Null, Value::from)));
        }
        let both = names.into_iter().zip(titles).zip(values);
        columns.extend(both.map(|((key, title), values)| named(key, title, values)));
    }
    let groups = rows.len().to_u64().div_ceil(group.to_u64()).to_usize();
    Columns { columns, rows: groups, rest: Map::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column};

    #[test]
    fn groups_have_sums_and_the_rank_with_most() {
        let keys = ["rank", "time_ns", "computation_ns", "mpi_ns", "wait_ns"];
        let columns = keys.map(|key| Column::right(key, key, 0)).to_vec();
        let row = |rank: u64| [rank, 100, rank * 10 % 70, 30, 7].map(Cell::count).to_vec();
        let table = Table { columns, rows: (0..10).map(row).collect(), total: None };
        let few = columns_of(&table, 6);
        // Five a group: 0, 10, 20, 30, 40 and 50, 60, 0, 10, 20.
        assert_eq!(few["first_rank"], [0, 5]);
        assert_eq!(few["last_rank"], [4, 9]);
        assert_eq!((&few["time_ns"][..], &few["computation_ns"][..]), (&[500, 500][..], &[100, 140][..]));
        assert_eq!(few["computation_most_ns"], [40, 60]);
        assert_eq!(few["computation_most_rank"], [4, 6]);
        assert_eq!(columns_of(&table, 10)["rank"].len(), 10);
    }

    fn columns_of(table: &Table, ranks: usize) -> std::collections::BTreeMap<&'static str, Vec<u64>> {
        let of = columns(table, Room { ranks, ..Room::default() });
        let values = |v: &Values| v.values.iter().filter_map(Value::as_u64).collect();
        of.columns.iter().map(|v| (v.key, values(v))).collect()
    }
}
