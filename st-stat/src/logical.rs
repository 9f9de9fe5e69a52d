//! What ranks do where the trace does not tell when: in logical time. A loop is there once, as wide as what all its turns take, and filled
//! by its body ([`boxes`]); a call is as wide as all of its calls and the computation before them take in the mean of the ranks of the
//! row, which all do the same ([`rows`]). Where nothing is known of times, widths are numbers of calls.
//!
//! *Cost:* by what is stored, not by how long the run is: O(nodes) per class of ranks, O(calls of the text) per rank.

mod boxes;
mod drawn;
mod rows;
pub(crate) mod shape;
mod text;

pub(crate) use self::drawn::draw;

use std::collections::HashMap;

use anyhow::Result;
use st_cli::{counted as numbered, grouped};
use st_model::groups::refine;
use st_model::num::{Exact as _, saturate};
use st_model::rank_times::{counted, totals};
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;
use st_model::section::{Section, Sym, Thread};
use st_model::sites::CallSites;
use st_model::steps::Budget;

use self::boxes::{Boxed, What, boxes};
use self::rows::{Member, rows};
use self::shape::{Shape, shape};
use crate::calls::{SITE, site_cells};
use crate::table::{Cell, Column, Table};

/// Characters that numbers of ranks may take in a table.
const NAMED: usize = 200;

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) rows: usize,
    /// Of all rows.
    pub(crate) boxes: usize,
}

/// Rows that a program of many loops and calls has at least, and boxes that a row may have beyond which there are fewer rows.
const FEWEST: usize = 8;
const EACH: usize = 512;

/// Ranks that do the same.
pub(crate) struct Row {
    pub(crate) ranks: RankList,
    pub(crate) thread: usize,
    /// The number of its shape; none if these are ranks for whose shapes there are no rows.
    shape: Option<usize>,
    boxes: Vec<Boxed>,
    /// Of one rank, in the mean: before calls, in calls, ns, and calls.
    times: [u128; 2],
    calls: u64,
}

/// All rows.
pub(crate) struct Logical {
    shapes: Vec<Shape>,
    pub(crate) rows: Vec<Row>,
    /// Whether times are known.
    pub(crate) timed: bool,
}

/// A section's thread.
struct Part<'a> {
    section: &'a Section,
    thread: &'a Thread,
    /// What ranks do, and the calls of that, by the class of the rank; and the class of each rank, in their order.
    shapes: Vec<(usize, Vec<Sym>)>,
    class: Vec<usize>,
}

impl Logical {
    /// What sections' ranks do.
    ///
    /// # Errors
    ///
    /// If that takes more steps than there are.
    pub(crate) fn of(sections: &[&Section], sites: &CallSites, most: Most, budget: &Budget) -> Result<Self> {
        let (mut known, mut parts): (HashMap<Shape, usize>, Vec<Part<'_>>) = (HashMap::new(), Vec::new());
        for section in sections {
            budget.spend_ranks(section)?;
            for (number, thread) in section.threads.iter().enumerate().filter(|(_, t)| !t.ranks.is_empty()) {
                parts.push(part(section, number, thread, sites, &mut known, budget)?);
            }
        }
        let mut shapes: Vec<(usize, Shape)> =
            known.into_iter().map(|(shape, number)| (number, shape)).collect();
        shapes.sort_unstable_by_key(|(number, _)| *number);
        let shapes: Vec<Shape> = shapes.into_iter().map(|(_, shape)| shape).collect();
        let largest = shapes.iter().map(|shape| shape.nodes.len()).max().unwrap_or(0).clamp(1, EACH);
        let most_rows = most.rows.min((most.boxes / largest).max(FEWEST)).max(1);
        let (of, others) = rows(members(&parts), most_rows);
        let each = most.boxes / (of.len() + 1);
        let mut rows = added(&parts, &shapes, of, others);
        let timed = rows.iter().any(|row| row.sums.iter().any(|times| *times != [0, 0]));
        let rows = rows.drain(..).map(|row| row.boxed(&shapes, each)).collect();
        Ok(Self { shapes, rows, timed })
    }

    /// The time of the row that takes longest, or the calls of the one that has most.
    pub(crate) fn span(&self) -> u128 {
        self.rows.iter().map(|row| self.width(row.times, row.calls)).max().unwrap_or(0).max(1)
    }

    /// How wide something is.
    fn width(&self, times: [u128; 2], calls: u64) -> u128 {
        if self.timed { times[0] + times[1] } else { calls.into() }
    }

    /// Where a box begins.
    fn begin(&self, of: &Boxed) -> u128 {
        if self.timed { of.begin } else { of.begin_calls.into() }
    }

    /// What a box is called.
    fn name(&self, row: &Row, of: &Boxed) -> String {
        match of.what {
            What::Loop => "loop".to_owned(),
            What::Call(call) => self.called(row, call).map_or_else(String::new, |(name, _)| name.clone()),
            What::Others => format!("({})", numbered(of.runs, "other")),
        }
    }

    fn called(&self, row: &Row, call: usize) -> Option<&(String, Option<u32>)> {
        self.shapes.get(row.shape?)?.calls.get(call)
    }

    /// A row per box.
    pub(crate) fn table(&self, sites: &CallSites) -> Table {
        let right = |title, key, goes| Column::right(title, key, goes);
        let columns = [
            right("row", "row", 0),
            Column::left("ranks", "ranks"),
            right("thread", "thread", 5),
            right("level", "level", 0),
            Column::left("what", "what"),
            right("runs", "runs", 0),
            right("calls", "calls", 3),
            right("begin", "begin_ns", 2),
            right("computation", "computation_ns", 0),
            right("in MPI", "mpi_ns", 0),
        ];
        let mut cells = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut ranks: String = plain(&row.ranks).chars().take(NAMED).collect();
            if ranks.chars().count() == NAMED {
                ranks.push('…');
            }
            let ns = |n: u128| if self.timed { Cell::ns(n) } else { Cell::none() };
            let head = [Cell::count(number.to_u64()), Cell::text(&*ranks), Cell::count(row.thread.to_u64())];
            let one =
                |level: u64, what: String, runs: Cell, calls: u64, begin: Cell, times: [u128; 2], site| {
                    let what = [Cell::count(level), Cell::text(what), runs, Cell::count(calls), begin];
                    let all = head.iter().cloned().chain(what).chain(times.map(ns));
                    all.chain(site_cells(site, sites)).collect::<Vec<_>>()
                };
            for of in &row.boxes {
                let site = match of.what {
                    What::Call(call) => self.called(row, call).and_then(|(_, site)| *site),
                    What::Loop | What::Others => None,
                };
                let runs = if of.what == What::Others { Cell::none() } else { Cell::count(of.runs) };
                let times = [of.computation, of.mpi];
                let (level, name) = (of.depth.to_u64(), self.name(row, of));
                cells.push(one(level, name, runs, of.calls, ns(of.begin), times, site));
            }
            if row.shape.is_none() {
                cells.push(one(0, OTHER_RANKS.to_owned(), Cell::none(), row.calls, ns(0), row.times, None));
            }
        }
        Table { columns: columns.into_iter().chain(SITE).collect(), rows: cells, total: None }
    }

    /// What widths are, and of whom rows are, in a sentence.
    pub(crate) fn told(&self) -> String {
        let ranks: u64 = self.rows.iter().map(|row| row.ranks.len()).sum();
        let boxes: usize = self.rows.iter().map(|row| row.boxes.len()).sum();
        let widths = match self.timed {
            true => {
                "loops and calls are as wide as all their turns and the computation before them take on a rank of the row in the mean"
            }
            false => "loops and calls are as wide as their numbers of calls: the trace holds no times",
        };
        let rows = self.rows.len().to_u64();
        let what = if self.shapes.iter().any(|shape| shape.thread > 0) { "thread" } else { "rank" };
        let (ranks, rows) = (numbered(ranks, what), numbered(rows, "row"));
        let boxes = grouped(boxes.to_u64());
        format!(
            "logical time: {widths}; {ranks} in {rows} of ranks that do the same, {boxes} loops and calls in all"
        )
    }
}

/// What the row of ranks is called for which there are no boxes.
const OTHER_RANKS: &str = "(ranks that do otherwise)";

fn part<'a>(
    section: &'a Section,
    number: usize,
    thread: &'a Thread,
    sites: &CallSites,
    known: &mut HashMap<Shape, usize>,
    budget: &Budget,
) -> Result<Part<'a>> {
    let mut partitions: Vec<u32> = thread.counts.iter().map(|counts| counts.partition).collect();
    partitions.sort_unstable();
    partitions.dedup();
    let partitions = partitions.into_iter().filter_map(|n| section.partitions.get(n.to_usize()));
    let classes = refine(&thread.ranks, partitions);
    let nodes = thread.counts.len() + section.partitions.len();
    budget.take_short(classes.len().to_u64().saturating_mul(nodes.to_u64()))?;
    let (mut shapes, mut class) = (Vec::new(), vec![0; thread.ranks.len().to_usize()]);
    for (number_of_class, ranks) in classes.iter().enumerate() {
        let (shape, symbols) = shape(section, sites, number, thread, ranks.lowest().unwrap_or_default());
        let next = known.len();
        shapes.push((*known.entry(shape).or_insert(next), symbols));
        for position in ranks.iter().filter_map(|rank| thread.ranks.position(rank)) {
            class[position.to_usize()] = number_of_class;
        }
    }
    budget.take_short(thread.ranks.len().saturating_mul(section.symbols.len().to_u64()))?;
    Ok(Part { section, thread, shapes, class })
}

/// Threads of all ranks, those that are alike with equal numbers.
fn members(parts: &[Part<'_>]) -> Vec<Member> {
    let (mut all, mut alike) = (Vec::new(), 0);
    for (number, part) in parts.iter().enumerate() {
        let mut labels: Vec<usize> = part.class.clone();
        for sums in &part.thread.sums {
            // Times that are kept to 1 %: what they are scaled to differs from rank to rank by what is rounded.
            let (mut compute, mut comm) = (sums.compute.cursor(), sums.comm.cursor());
            let mut known = HashMap::new();
            for label in &mut labels {
                let next = known.len();
                *label = *known.entry((*label, compute.next(), comm.next())).or_insert(next);
            }
        }
        let mut computation = vec![0u128; labels.len()];
        for of in totals(part.thread) {
            let [before, _] = part.counted(of.sym);
            computation.iter_mut().zip(of.compute).for_each(|(sum, ns)| *sum += before * ns);
        }
        let of_rank = |(position, rank): (usize, u32)| Member {
            rank,
            shape: part.shapes.get(part.class[position]).map_or(0, |(shape, _)| *shape),
            alike: alike + labels[position],
            computation: computation[position],
            of: (number, position),
        };
        all.extend(part.thread.ranks.iter().enumerate().map(of_rank));
        alike += labels.iter().max().map_or(0, |most| most + 1);
    }
    all
}

impl Part<'_> {
    /// Whether the times before and in a call are part of a rank's time: 1, or 0.
    fn counted(&self, sym: Sym) -> [u128; 2] {
        let call = self.section.symbols.get(sym.to_usize()).map(|symbol| symbol.call);
        call.map_or([true; 2], counted).map(u128::from)
    }
}

/// Sums of a row's ranks.
struct Added {
    ranks: Vec<u32>,
    thread: usize,
    shape: Option<usize>,
    /// By call of the shape; all together, if there is none.
    sums: Vec<[u128; 2]>,
    calls: u128,
}

/// What the ranks of each row take together.
fn added(parts: &[Part<'_>], shapes: &[Shape], rows: Vec<Vec<Member>>, others: Vec<Member>) -> Vec<Added> {
    let mut row_of: Vec<Vec<usize>> = parts.iter().map(|part| vec![0; part.class.len()]).collect();
    let mut all = Vec::new();
    let with_others = rows.into_iter().map(|row| (true, row)).chain([(false, others)]);
    for (number, (is_shown, row)) in with_others.filter(|(_, row)| !row.is_empty()).enumerate() {
        let shape = row.first().map(|member| member.shape);
        let calls = |member: &Member| {
            let nodes = shapes.get(member.shape).map_or(&[][..], |shape| &shape.nodes);
            nodes.iter().filter(|node| node.call.is_some()).map(|node| u128::from(node.runs)).sum::<u128>()
        };
        let of = shape.filter(|_| is_shown);
        all.push(Added {
            ranks: row.iter().map(|member| member.rank).collect(),
            thread: shape.and_then(|shape| shapes.get(shape)).map_or(0, |shape| shape.thread),
            shape: of,
            sums: vec![[0; 2]; of.and_then(|of| shapes.get(of)).map_or(1, |shape| shape.calls.len())],
            calls: row.iter().map(calls).sum(),
        });
        row.iter().for_each(|member| row_of[member.of.0][member.of.1] = number);
    }
    for (part, rows) in parts.iter().zip(&row_of) {
        let mut calls: Vec<HashMap<Sym, usize>> = Vec::new();
        for (_, symbols) in &part.shapes {
            calls.push(symbols.iter().copied().zip(0..).collect());
        }
        for of in totals(part.thread) {
            let [before, within] = part.counted(of.sym);
            let times = of.compute.iter().zip(&of.comm);
            for ((row, class), (compute, comm)) in rows.iter().zip(&part.class).zip(times) {
                let Some(row) = all.get_mut(*row) else { continue };
                let call = match row.shape {
                    Some(_) => calls.get(*class).and_then(|calls| calls.get(&of.sym)).copied(),
                    None => Some(0),
                };
                if let Some(sum) = call.and_then(|call| row.sums.get_mut(call)) {
                    *sum = [sum[0] + before * compute, sum[1] + within * comm];
                }
            }
        }
    }
    all
}

impl Added {
    /// The mean of the ranks, in boxes.
    fn boxed(self, shapes: &[Shape], most: usize) -> Row {
        let n = u128::from(self.ranks.len().to_u64().max(1));
        let means: Vec<[u128; 2]> = self.sums.iter().map(|times| times.map(|ns| ns / n)).collect();
        let shape = self.shape.and_then(|shape| shapes.get(shape));
        let boxes = shape.map_or_else(Vec::new, |shape| boxes(&shape.nodes, &means, most));
        Row {
            ranks: self.ranks.into_iter().collect(),
            thread: self.thread,
            shape: self.shape,
            boxes,
            times: means.iter().fold([0; 2], |sum, time| [sum[0] + time[0], sum[1] + time[1]]),
            calls: saturate(self.calls / n),
        }
    }
}
