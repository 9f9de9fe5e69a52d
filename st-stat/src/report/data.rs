//! What a page holds, in the form that its script reads (`st-stat/report/src/data.ts`). Times are ns from the end of the first
//! rank's `MPI_Init`.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::levels::Levels;
use crate::table::Table;

/// Raised when what is below means something else.
const FORM: u32 = 3;

/// All of it.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    pub(super) form: u32,
    /// Program and version that made the page.
    pub(super) made_by: String,
    /// The command that was recorded.
    pub(super) program: String,
    /// What the trace, or the page, lacks: sentences.
    pub(super) lacks: Vec<String>,
    pub(super) summary: Columns,
    pub(super) findings: Option<Columns>,
    pub(super) waits: Option<Columns>,
    pub(super) efficiency: Option<Columns>,
    pub(super) functions: Option<Columns>,
    pub(super) sites: Option<Columns>,
    pub(super) stacks: Option<Stacks>,
    pub(super) spread: Option<Columns>,
    pub(super) ranks: Columns,
    /// Ranks in a row of the grid that partners are in, or nearly of a square.
    pub(super) grid_width: usize,
    pub(super) matrix: Option<Matrix>,
    pub(super) timeline: Option<Timeline>,
    /// What there is in its place, if the trace does not tell when ranks did what.
    pub(super) logical: Option<LogicalTime>,
    pub(super) structure: Vec<Structure>,
    /// Iterations and phases, as `st-stat phases` prints them.
    pub(super) iterations: Option<Columns>,
    pub(super) phases: Option<Columns>,
    pub(super) bands: Vec<Band>,
    pub(super) against: Option<Against>,
    pub(super) kept: Option<Kept>,
    /// Of a run that goes on.
    pub(super) live: Option<Live>,
}

impl Report {
    /// One that holds nothing yet.
    pub(super) fn new(program: String, summary: &Table, ranks: Columns) -> Self {
        Self {
            form: FORM,
            made_by: format!("st-stat {}", env!("CARGO_PKG_VERSION")),
            program,
            lacks: Vec::new(),
            summary: Columns::of(summary, usize::MAX, usize::MAX),
            findings: None,
            waits: None,
            efficiency: None,
            functions: None,
            sites: None,
            stacks: None,
            spread: None,
            ranks,
            grid_width: 1,
            matrix: None,
            timeline: None,
            logical: None,
            structure: Vec::new(),
            iterations: None,
            phases: None,
            bands: Vec::new(),
            against: None,
            kept: None,
            live: None,
        }
    }
}

/// A table column by column.
#[derive(Serialize, Clone, Debug)]
pub(super) struct Columns {
    pub(super) columns: Vec<Values>,
    /// Rows that the table has, of which these are the first.
    pub(super) rows: usize,
    /// Sums over those that are left out, by the names of their columns.
    pub(super) rest: Map<String, Value>,
}

/// A column.
#[derive(Serialize, Clone, Debug)]
pub(super) struct Values {
    /// As JSON calls it, with the unit at its end.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) values: Vec<Value>,
    /// What people read, where the name does not tell the unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) texts: Vec<String>,
}

/// Columns whose sums mean something.
const SUMMED: [&str; 5] = ["calls", "time_ns", "sent_bytes", "received_bytes", "before_ns"];

impl Columns {
    /// The first rows of a table, with texts of so many characters at most, and what the others come to.
    pub(super) fn of(table: &Table, most: usize, texts: usize) -> Self {
        let (shown, left) = table.rows.split_at(table.rows.len().min(most));
        let mut rest = Map::new();
        let column = |(i, column): (usize, &crate::table::Column)| {
            if SUMMED.contains(&column.key) && !left.is_empty() {
                let numbers = left.iter().filter_map(|row| row.get(i)?.value.as_u64());
                rest.insert(column.key.into(), numbers.fold(0, u64::saturating_add).into());
            }
            let cells = || shown.iter().filter_map(|row| row.get(i));
            let units = cells().filter(|_| column.key == "value").map(|cell| cell.text.clone()).collect();
            let values = cells().map(|cell| cut(&cell.value, texts)).collect();
            Values { key: column.key, title: column.title, values, texts: units }
        };
        let columns = table.columns.iter().enumerate().map(column).collect();
        Self { columns, rows: table.rows.len(), rest }
    }
}

/// A value whose text has no more than so many characters.
fn cut(value: &Value, most: usize) -> Value {
    match value {
        Value::String(text) if text.len() > most => {
            text.chars().take(most).chain(['…']).collect::<String>().into()
        }
        value => value.clone(),
    }
}

/// By which call paths call sites are reached.
#[derive(Serialize, Debug)]
pub(super) struct Stacks {
    /// What frames are called.
    pub(super) frames: Vec<String>,
    /// By row of the table of call sites: numbers of these, the outermost first.
    pub(super) of: Vec<Vec<usize>>,
}

/// Who sends how much to whom: a cell per pair of groups between which there is something.
#[derive(Serialize, Debug)]
pub(super) struct Matrix {
    /// Ranks that the groups are made of, and how many there are in each but the last.
    pub(super) ranks: usize,
    pub(super) group: usize,
    /// Numbers of groups.
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    pub(super) messages: Vec<u64>,
    pub(super) bytes: Vec<u64>,
    /// The heaviest pairs of ranks, as `st-stat matrix` has them; all, if there is room.
    pub(super) pairs: Columns,
}

/// What ranks do in logical time.
#[derive(Serialize, Debug)]
pub(super) struct LogicalTime {
    /// What widths are, and whose.
    pub(super) told: String,
    /// Whether widths are times; else they are numbers of calls.
    pub(super) timed: bool,
    /// As `st-stat timeline` has them of such a trace.
    pub(super) boxes: Columns,
}

/// What ranks do when.
#[derive(Serialize, Debug)]
pub(super) struct Timeline {
    pub(super) run_ns: i64,
    /// What `st-stat at` calls the beginning of the run.
    pub(super) origin_ns: i64,
    /// Functions at call sites, by the numbers that calls have.
    pub(super) places: Vec<CallPlace>,
    pub(super) levels: Levels,
    /// Of many ranks those that are waited for, compute or wait most, or compute least, a row each.
    pub(super) extremes: Option<Levels>,
    /// Rows of fewer ranks, or single ones, where those of `levels` are of several, in fewer columns.
    pub(super) fine: Option<Levels>,
    pub(super) nodes: Option<Groups>,
    /// Those that the trace has.
    pub(super) clusters: Option<Groups>,
    pub(super) windows: Vec<Window>,
    pub(super) spots: Vec<Spot>,
    /// The critical path from the beginning of the run to its end, by two: rank, for how long it is there, ns.
    pub(super) path: Vec<i64>,
    /// How often it goes from one rank to another, if that is more than there is room for.
    pub(super) path_more: usize,
}

/// What nodes, or clusters, do when.
#[derive(Serialize, Debug)]
pub(super) struct Groups {
    pub(super) names: Vec<String>,
    /// Which ranks are in each, for people; of many ranks that have no pattern the first.
    pub(super) ranks: Vec<String>,
    /// By rank of the timeline, in order: the number of its node or cluster.
    pub(super) of: Vec<usize>,
    /// A row for each: sums of all its ranks.
    pub(super) levels: Levels,
}

/// A function at a call site.
#[derive(Serialize, Debug)]
pub(super) struct CallPlace {
    pub(super) function: String,
    pub(super) site: Option<u32>,
    pub(super) place: String,
}

/// Times of which single calls are there.
#[derive(Serialize, Debug)]
pub(super) struct Window {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// Whether it is all of the run and of its ranks.
    pub(super) whole: bool,
    pub(super) lanes: Vec<Lane>,
    /// By number of a lane.
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    /// When a message is sent, after the one before, and how long it takes until its receive is complete, ns.
    pub(super) sent: Vec<i64>,
    pub(super) took: Vec<i64>,
    /// −1 where that is not known.
    pub(super) bytes: Vec<i64>,
    /// Messages for which there was no room.
    pub(super) more: usize,
}

/// A thread in a window.
#[derive(Serialize, Debug)]
pub(super) struct Lane {
    pub(super) rank: u32,
    /// Which of its rank's.
    pub(super) thread: u32,
    /// When it was in no call before the first, after the beginning of the run, ns.
    pub(super) begin: i64,
    /// By three: place, time after the end of the call before, how long it takes, ns.
    pub(super) calls: Vec<i64>,
    /// By four: when it begins after the beginning of the one before, how long it is, ns; kind; rank that is waited for.
    pub(super) waits: Vec<i64>,
}

/// Where a finding shows.
#[derive(Serialize, Debug)]
pub(super) struct Spot {
    /// Number of the row.
    pub(super) finding: usize,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// Who waits, and for whom; or who is in a call.
    pub(super) rank: u32,
    pub(super) for_rank: Option<u32>,
    pub(super) ns: u64,
}

/// Iterations of a loop, or phases of one level; of many neighbours are one.
#[derive(Serialize, Debug)]
pub(super) struct Band {
    /// Of phases.
    pub(super) level: Option<i64>,
    /// The first call.
    pub(super) function: String,
    pub(super) site: Option<u32>,
    pub(super) place: String,
    /// How many there are.
    pub(super) turns: usize,
    /// How much longer the last takes than the first by the trend, as a share of the median.
    pub(super) trend: Option<f64>,
    /// By iteration or group of neighbours: the number of the (first) one; when the first rank begins and the last ends;
    /// means of ranks, the longest of them, and which that is.
    pub(super) number: Vec<u64>,
    pub(super) begin_ns: Vec<u64>,
    pub(super) end_ns: Vec<u64>,
    pub(super) time_ns: Vec<u64>,
    pub(super) longest_ns: Vec<u64>,
    pub(super) longest_rank: Vec<u64>,
    pub(super) mpi_ns: Vec<u64>,
    pub(super) wait_ns: Vec<u64>,
    /// Numbers of those that take much longer than others, the longest first, and how many there was no room for.
    pub(super) slow: Vec<u64>,
    pub(super) slow_more: u64,
}

/// A page that is made anew while its program runs.
#[derive(Serialize, Debug)]
pub(super) struct Live {
    /// Until when and of which ranks it is, in words.
    pub(super) told: String,
    /// When it was made, ms since 1970, and how long it was then at most until the next would be begun, ms.
    pub(super) written_ms: u64,
    pub(super) every_ms: u64,
}

/// What has changed since another run.
#[derive(Serialize, Debug)]
pub(super) struct Against {
    /// Its command.
    pub(super) command: String,
    /// How long ranks take, and how many call sites have changed, in the words of `st-stat diff --time`.
    pub(super) runs: String,
    pub(super) counts: String,
    pub(super) changes: Columns,
    /// If both are of one run: what `st-stat violations` says of the other.
    pub(super) violations: Option<Columns>,
}

/// What the trace itself is.
#[derive(Serialize, Debug)]
pub(super) struct Kept {
    /// Programs that made it, with their arguments.
    pub(super) tools: Vec<String>,
    /// Where its bytes go, as `st-stat sizes` says it; or why that is not known.
    pub(super) frames: Option<Columns>,
    pub(super) sites: Option<Columns>,
    pub(super) parameters: Option<Columns>,
    pub(super) no_sizes: Option<String>,
    pub(super) clocks: Clocks,
}

/// How far clocks agree.
#[derive(Serialize, Debug)]
pub(super) struct Clocks {
    /// Whether a program has corrected them.
    pub(super) corrected: bool,
    /// As `st-stat violations` says it; or why that is not known.
    pub(super) violations: Option<Columns>,
    pub(super) pairs: Option<Columns>,
    pub(super) no_violations: Option<String>,
    /// Comparisons with the clock of rank 0 while recording: what is to be added at a time of the rank's own clock.
    pub(super) offsets: Option<Columns>,
}

/// What ranks do as loops and calls.
#[derive(Serialize, Debug)]
pub(super) struct Structure {
    /// As `0-3, 8`.
    pub(super) ranks: String,
    pub(super) thread: usize,
    /// The rank whose numbers these are.
    pub(super) rank: u32,
    /// Nodes in preorder: how deep each is, how often it runs in all, and of calls what is called.
    pub(super) depth: Vec<usize>,
    pub(super) runs: Vec<u64>,
    pub(super) call: Vec<Option<usize>>,
    /// What is called.
    pub(super) calls: Vec<Symbol>,
    /// Nodes that there was no room for.
    pub(super) more: usize,
}

/// A call of a loop.
#[derive(Serialize, Debug)]
pub(super) struct Symbol {
    pub(super) function: String,
    pub(super) site: Option<u32>,
    pub(super) place: String,
    /// Mean time in it and before it, of all ranks, ns, if known.
    pub(super) mean_ns: Option<u64>,
    pub(super) before_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column};

    #[test]
    fn rows_that_are_left_out_are_added_up() {
        let columns = vec![Column::left("place", "place"), Column::right("time", "time_ns", 0)];
        let row = |n: u64| vec![Cell::text("a place of a program"), Cell::ns(n.into())];
        let table = Table { columns, rows: [7, 5, 2, 1].map(row).to_vec(), total: None };
        let few = Columns::of(&table, 2, 7);
        assert_eq!((few.rows, few.columns[1].values.len()), (4, 2));
        assert_eq!(few.rest.get("time_ns"), Some(&Value::from(3)));
        assert_eq!(few.columns[0].values[0], "a place…");
        let all = Columns::of(&table, 4, 100);
        assert!(all.rest.is_empty() && all.columns[0].values[3] == "a place of a program");
    }
}
