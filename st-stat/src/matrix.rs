//! Who talks to whom: bytes and messages per pair of ranks, nodes or clusters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Result;
use st_cli::{Output, Screen, Status, counted, wrapped};
use st_match::volume::{Flow, Flows, Graphs};
use st_model::num::Exact as _;
use st_model::section::Section;
use st_model::steps::Budget;

use crate::args::{MatrixArgs, RanksBy};
use crate::clusters;
use crate::input;
use crate::rank_groups::RankGroups;
use crate::table::{Cell, Column, Format, Table, bytes, grouped};

/// Rows and columns that are drawn at most: of more, neighbours are drawn together.
const DRAWN: usize = 32;
/// Pairs that are named below the drawing.
const TOP: usize = 8;
/// Shades, heaviest first; each goes down to so much less than the one before.
const SHADES: [char; 4] = ['█', '▓', '▒', '░'];
const LESS: u128 = 4;

/// `st-stat matrix`.
pub(crate) fn matrix(args: &MatrixArgs) -> Result<Status> {
    let of = &args.of;
    let (whole, sections) = input::sections(&of.inputs, &of.input, &of.talk)?;
    if sections.iter().any(|s| s.histograms().next().is_some()) {
        of.talk.warn(input::NAME, "parameters are histograms: what ranks send to each other is drawn");
    }
    let budget = of.input.steps.budget();
    let flows = flows(&sections, &budget)?;
    let asked = clusters::by_asked(&whole.provenance);
    let groups = match args.by {
        RanksBy::Rank => RankGroups::ranks(&sections, whom(&flows)),
        RanksBy::Node => RankGroups::nodes(&sections),
        RanksBy::Cluster => {
            sections.iter().try_for_each(|section| budget.spend_ranks(section))?;
            RankGroups::clusters(&clusters::found(sections, asked, &|_| ())?, asked)
        }
    };
    let matrix = Matrix::new(args.by, groups, &flows);
    let mut out = Output::text(&of.output.output)?;
    let screen = Screen::of(&out);
    if of.format == Format::Text {
        matrix.write(screen, &mut out)?;
    } else {
        matrix.table().write(of.format, screen, &mut out)?;
    }
    out.commit()?;
    Ok(Status::Ok)
}

/// Who sends how much to whom.
pub(crate) fn flows(sections: &[Section], budget: &Budget) -> Result<Flows> {
    let (graphs, mut flows) = (Graphs::of(sections)?, Flows::default());
    budget.spend_rows(sections)?;
    let (mut done, all) = (0, sections.iter().map(|section| section.ranks.len()).sum());
    for section in sections {
        for rank in section.ranks.iter() {
            done += 1;
            flows.add(section, rank, &graphs, budget).map_err(|why| why.of_part(done, all))?;
        }
    }
    Ok(flows)
}

/// Whom ranks send to.
fn whom(flows: &Flows) -> impl Iterator<Item = u32> {
    flows.pairs.keys().map(|(_, to)| *to)
}

/// Flows between groups.
pub(crate) struct Matrix {
    by: RanksBy,
    names: Vec<String>,
    pairs: BTreeMap<(usize, usize), Flow>,
    shared: BTreeMap<usize, Flow>,
}

impl Matrix {
    /// Between ranks.
    pub(crate) fn of_ranks(sections: &[Section], flows: &Flows) -> Self {
        Self::new(RanksBy::Rank, RankGroups::ranks(sections, whom(flows)), flows)
    }

    /// How many there are.
    pub(crate) fn groups(&self) -> usize {
        self.names.len()
    }

    /// What goes from whom to whom, by their numbers.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = ((usize, usize), &Flow)> {
        self.pairs.iter().map(|(pair, flow)| (*pair, flow))
    }

    fn new(by: RanksBy, mut groups: RankGroups, flows: &Flows) -> Self {
        let (mut pairs, mut shared) = (BTreeMap::new(), BTreeMap::new());
        let mut sorted: Vec<_> = flows.pairs.iter().collect();
        sorted.sort_by_key(|(ranks, _)| **ranks);
        for ((from, to), flow) in sorted {
            let key = (groups.number(*from), groups.number(*to));
            pairs.entry(key).or_insert_with(Flow::default).add(flow);
        }
        for (rank, flow) in &flows.shared {
            shared.entry(groups.number(*rank)).or_insert_with(Flow::default).add(flow);
        }
        Self { by, names: groups.names, pairs, shared }
    }

    fn table(&self) -> Table {
        let pairs = self.pairs.iter().map(|((from, to), flow)| (*from, Some(*to), flow));
        let shared = self.shared.iter().map(|(from, flow)| (*from, None, flow));
        let mut rows: Vec<_> = pairs.chain(shared).collect();
        rows.sort_by_key(|(from, to, _)| (*from, to.is_none(), *to));
        let row = |(from, to, flow): (usize, Option<usize>, &Flow)| {
            let to = to.map_or_else(Cell::none, |to| self.name(to));
            vec![
                self.name(from),
                to,
                Cell::count(flow.messages),
                Cell::bytes(flow.sent),
                Cell::bytes(flow.fetched),
            ]
        };
        Table { columns: self.columns(), rows: rows.into_iter().map(row).collect(), total: None }
    }

    /// A number where groups have numbers.
    fn name(&self, party: usize) -> Cell {
        let name = self.names.get(party).map_or("", String::as_str);
        let number = name.parse::<u64>().ok().filter(|_| self.by != RanksBy::Node);
        number.map_or_else(|| Cell::text(name), |n| Cell::shown(n.into(), name))
    }

    fn columns(&self) -> Vec<Column> {
        let [from, to] = match self.by {
            RanksBy::Rank => ["from_rank", "to_rank"],
            RanksBy::Node => ["from_node", "to_node"],
            RanksBy::Cluster => ["from_cluster", "to_cluster"],
        };
        let party = |title, key| match self.by {
            RanksBy::Node => Column::left(title, key),
            _ => Column::right(title, key, 0),
        };
        vec![
            party("from", from),
            party("to", to),
            Column::right("messages", "messages", 0),
            Column::right("sent", "sent_bytes", 0),
            Column::right("fetched", "fetched_bytes", 0),
        ]
    }

    fn write(&self, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let sum = |flows: &mut dyn Iterator<Item = &Flow>| {
            flows.fold(Flow::default(), |mut sum, flow| {
                sum.add(flow);
                sum
            })
        };
        let (all, shared) = (sum(&mut self.pairs.values()), sum(&mut self.shared.values()));
        let what = self.by.one();
        let n = self.pairs.len().to_u64();
        writeln!(
            out,
            "{} in {}",
            shown(all.sent.saturating_add(all.fetched)),
            counted(all.messages, "message")
        )?;
        writeln!(out, "{} of {}", counted(n, "pair"), counted(self.names.len().to_u64(), what))?;
        if shared.sent > 0 {
            writeln!(out, "{} more are sent in collective operations and to files", shown(shared.sent))?;
        }
        if self.pairs.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.draw(screen, out)?;
        writeln!(out, "\n{}", screen.bold("heaviest pairs"))?;
        self.heaviest(&all).write(Format::Text, screen, out)?;
        if self.pairs.len() > TOP {
            writeln!(out, "… and {} more (--format csv)", grouped(n - TOP.to_u64()))?;
        }
        Ok(())
    }

    /// All pairs, those between which most goes first.
    pub(crate) fn heaviest_first(&self) -> Table {
        let row = |((from, to), flow): (&(usize, usize), &Flow)| {
            let [messages, sent, fetched] =
                [Cell::count(flow.messages), Cell::bytes(flow.sent), Cell::bytes(flow.fetched)];
            vec![self.name(*from), self.name(*to), messages, sent, fetched]
        };
        Table { columns: self.columns(), rows: self.sorted().into_iter().map(row).collect(), total: None }
    }

    fn sorted(&self) -> Vec<(&(usize, usize), &Flow)> {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by_key(|(key, flow)| (u128::MAX - carried(flow), u64::MAX - flow.messages, **key));
        pairs
    }

    /// The pairs between which most goes.
    fn heaviest(&self, all: &Flow) -> Table {
        let pairs = self.sorted();
        let row = |((from, to), flow): (&(usize, usize), &Flow)| {
            vec![
                self.name(*from),
                self.name(*to),
                Cell::count(flow.messages),
                Cell::bytes(flow.sent),
                Cell::bytes(flow.fetched),
                Cell::percent(carried(flow), carried(all)),
            ]
        };
        let mut columns = self.columns();
        columns.push(Column::right("share", "share_percent", 0));
        let mut table = Table { columns, rows: pairs.into_iter().take(TOP).map(row).collect(), total: None };
        if all.fetched == 0 {
            table.columns.remove(4);
            table.rows.iter_mut().for_each(|row| drop(row.remove(4)));
        }
        table
    }

    /// A row per sender and a column per receiver, neighbours together where there is no room.
    fn draw(&self, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let n = self.names.len();
        let room = |label: usize| (screen.width.saturating_sub(label + 1) / 2).clamp(1, DRAWN);
        let label = |i: usize, block: usize| {
            let name = |i: usize| self.names.get(i).map_or("", String::as_str);
            let last = (i + block).min(n) - 1;
            if last == i { name(i).to_owned() } else { format!("{}–{}", name(i), name(last)) }
        };
        let long = (0..n).map(|i| self.names[i].chars().count()).max().unwrap_or(0).min(24);
        let block = if n <= room(long) { 1 } else { n.div_ceil(room(2 * long + 1)) };
        let mut cells: BTreeMap<(usize, usize), (u128, u64)> = BTreeMap::new();
        for ((from, to), flow) in &self.pairs {
            let cell = cells.entry((from / block, to / block)).or_default();
            *cell = (cell.0.saturating_add(carried(flow)), cell.1.saturating_add(flow.messages));
        }
        let most = cells.values().map(|c| c.0).max().unwrap_or(0);
        let labels: Vec<String> = (0..n).step_by(block).map(|i| label(i, block)).collect();
        let width = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0).min(2 * long + 1);
        let blocks = labels.len();
        writeln!(out, "{:>width$} {}", "", ticks(blocks, |i| self.names[i * block].clone()))?;
        for (y, label) in labels.iter().enumerate() {
            let shade = |x: usize| match cells.get(&(y, x)) {
                Some(&(bytes, _)) => shade(bytes, most).to_string().repeat(2),
                None => "· ".to_owned(),
            };
            let line: String = (0..blocks).map(shade).collect();
            let short: String = label.chars().take(width).collect();
            writeln!(out, "{short:>width$} {}", line.trim_end())?;
        }
        let lines = wrapped(legend(most).split(' '), screen.width, ["", "  "]);
        lines.iter().try_for_each(|line| writeln!(out, "{}", screen.dim(line)))
    }
}

/// What goes between two groups, either way.
fn carried(flow: &Flow) -> u128 {
    flow.sent.saturating_add(flow.fetched)
}

fn shown(n: u128) -> String {
    bytes(st_model::num::saturate(n))
}

/// Numbers over every fourth column.
fn ticks(n: usize, name: impl Fn(usize) -> String) -> String {
    let of = |i: usize| format!("{:<8}", name(i).chars().take(7).collect::<String>());
    (0..n).step_by(4).map(of).collect::<String>().trim_end().to_owned()
}

fn shade(bytes: u128, most: u128) -> char {
    let mut least = most;
    for shade in &SHADES[..3] {
        least /= LESS;
        if bytes > least {
            return *shade;
        }
    }
    SHADES[3]
}

fn legend(most: u128) -> String {
    let (mut least, mut text) = (most, "from row to column, more than".to_owned());
    for shade in &SHADES[..3] {
        least /= LESS;
        text = format!("{text} {} {shade}", shown(least));
    }
    format!("{text}, less {}", SHADES[3])
}
