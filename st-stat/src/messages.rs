//! Messages per call site: how many, how large, how often, and what bounds them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

use anyhow::Result;
use st_cli::options::Talk;
use st_cli::{Output, Screen, Status};
use st_explain::{Fit, SHORT, Transfers};
use st_match::volume::{Graphs, each_sent, flows};
use st_model::num::{float, saturate};
use st_model::rank_times::rank_times;
use st_model::section::Section;
use st_model::sites::CallSites;
use st_model::steps::Budget;

use crate::args::MessagesArgs;
use crate::calls::{SITE, function, site_cells};
use crate::explain::explaining;
use crate::input;
use crate::table::{Cell, Column, Format, Table, bytes, duration, grouped};

/// What is sent from one place.
#[derive(Default)]
struct Sent {
    /// How many messages, by whether they go between nodes, and size.
    sizes: BTreeMap<(bool, u64), u64>,
    ranks: BTreeSet<u32>,
}

/// A function and the id of the call site that it is called from.
type FunctionSite = (String, Option<u128>);

/// What is said of a trace's messages.
struct Messages {
    sites: BTreeMap<FunctionSite, Sent>,
    /// How long each rank took, ns; 0 if that is not known.
    ranks: HashMap<u32, u128>,
    /// How long messages take within and between nodes, as far as that is known.
    fits: [Option<Fit>; 2],
    timed: bool,
}

/// `st-stat messages`.
pub(crate) fn messages(args: &MessagesArgs) -> Result<Status> {
    let of = &args.of;
    let (_, sections) = input::sections(&of.inputs, &of.input, &of.talk)?;
    let messages = Messages::of(&sections, &of.input.steps.budget(), &of.talk)?;
    let sites = args.symbols.call_sites((input::NAME, &of.talk), sections.iter().map(|s| &s.sites));
    let mut out = Output::text(&of.output.output)?;
    let screen = Screen::of(&out);
    messages.write(of.format, &sites, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

impl Messages {
    fn of(sections: &[Section], budget: &Budget, talk: &Talk) -> Result<Self> {
        let graphs = Graphs::of(sections)?;
        let mut hosts: HashMap<u32, &str> = HashMap::new();
        for (host, ranks) in sections.iter().flat_map(|s| &s.hosts) {
            hosts.extend(ranks.iter().map(|rank| (rank, host.as_str())));
        }
        let mut sites: BTreeMap<FunctionSite, Sent> = BTreeMap::new();
        budget.spend_rows(sections)?;
        let (mut done, all) = (0, sections.iter().map(|section| section.ranks.len()).sum());
        for section in sections {
            let mut symbols: Vec<Sent> = section.symbols.iter().map(|_| Sent::default()).collect();
            for rank in section.ranks.iter() {
                done += 1;
                let told = each_sent(section, rank, &graphs, budget, |event, volume, times| {
                    let Some(sent) = symbols.get_mut(event.sym as usize) else { return };
                    for (to, flow) in flows(event, volume, times) {
                        let size = (flow.sent + flow.fetched) / u128::from(times);
                        let far = hosts.get(&rank) != hosts.get(&to);
                        *sent.sizes.entry((far, saturate(size))).or_default() += times;
                        sent.ranks.insert(rank);
                    }
                });
                told.map_err(|why| why.of_part(done, all))?;
            }
            for (symbol, sent) in section.symbols.iter().zip(symbols).filter(|(_, s)| !s.ranks.is_empty()) {
                let id = section.sites.get(symbol.site).map(|site| site.id);
                let into = sites.entry((function(symbol.call, &section.tables), id)).or_default();
                sent.sizes.into_iter().for_each(|(key, n)| *into.sizes.entry(key).or_default() += n);
                into.ranks.extend(sent.ranks);
            }
        }
        let histograms = sections.iter().any(|s| s.histograms().next().is_some());
        let timed = sections.iter().any(Section::has_times) && !histograms;
        let mut fits = [None, None];
        if timed {
            budget.spend_all(sections, None, 2)?;
            let progress = explaining(sections, talk);
            let transfers = Transfers::of(sections, &|n| progress.advance(n))?;
            drop(progress);
            fits = [false, true].map(|far| transfers.fit(far));
        }
        let ranks = sections.iter().flat_map(rank_times).map(|r| (r.rank, r.whole)).collect();
        Ok(Self { sites, ranks, fits, timed })
    }

    fn write(
        &self,
        format: Format,
        sites: &CallSites,
        screen: Screen,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if format == Format::Text && self.sites.is_empty() {
            return writeln!(out, "no messages");
        }
        self.table(sites).write(format, screen, out)?;
        if format != Format::Text {
            return Ok(());
        }
        writeln!(out)?;
        let (mut all, mut tiny) = (0, 0);
        for sent in self.sites.values() {
            (all, tiny) = (all + sent.messages(), tiny + sent.tiny());
        }
        if tiny > 0 {
            let share = Cell::percent(tiny.into(), all.into()).text;
            let tiny = grouped(tiny);
            let told = format!("{tiny} messages ({share}) have at most {} bytes: tiny", grouped(SHORT));
            screen.sentence(&told, out)?;
        }
        if !self.timed {
            return writeln!(out, "without exact times latency and bandwidth cannot be told apart");
        }
        let known = ["within nodes", "between nodes"].into_iter().zip(&self.fits);
        for (way, fit) in known.filter_map(|(way, fit)| Some((way, (*fit)?))) {
            screen.sentence(&format!("{way}: {}", said(&fit)), out)?;
        }
        if self.fits.iter().all(Option::is_none) {
            writeln!(out, "no receiver waited for a message: how long these take is not known")?;
        }
        Ok(())
    }

    fn table(&self, sites: &CallSites) -> Table {
        let columns = vec![
            Column::left("function", "function"),
            Column::right("messages", "messages", 0),
            Column::right("bytes", "bytes", 2),
            Column::right("smallest", "smallest_bytes", 7),
            Column::right("median", "median_bytes", 1),
            Column::right("90 %", "ninth_decile_bytes", 6),
            Column::right("largest", "largest_bytes", 3),
            Column::right("tiny", "tiny_percent", 4),
            Column::right("per s", "per_rank_second", 5),
            Column::right("each", "fitted_ns", 8),
            Column::right("latency", "latency_percent", 1),
            Column::left("bound by", "bound_by"),
        ];
        let mut list: Vec<_> = self.sites.iter().collect();
        list.sort_by_key(|(_, sent)| u64::MAX - sent.messages());
        let row = |((name, id), sent): (&FunctionSite, &Sent)| {
            let site = id.and_then(|id| sites.number(id));
            let n = sent.messages();
            let sum = |(key, times): (&(bool, u64), &u64)| u128::from(key.1) * u128::from(*times);
            let sizes = [0, 500, 900, 1000].map(|q| Cell::bytes(sent.quantile(q).into()));
            let [smallest, median, ninth, largest] = sizes;
            let mut cells = vec![
                Cell::text(name),
                Cell::count(n),
                Cell::bytes(sent.sizes.iter().map(sum).sum()),
                smallest,
                median,
                ninth,
                largest,
                Cell::percent(sent.tiny().into(), n.into()),
                self.rate(sent),
            ];
            cells.extend(self.bound(sent));
            cells.extend(site_cells(site, sites));
            cells
        };
        let columns = columns.into_iter().chain(SITE).collect();
        Table { columns, rows: list.into_iter().map(row).collect(), total: None }
    }

    /// Messages per second of the ranks that send them.
    fn rate(&self, sent: &Sent) -> Cell {
        let time: u128 = sent.ranks.iter().filter_map(|rank| self.ranks.get(rank)).sum();
        let rate = (u128::from(sent.messages()) * 1_000_000_000).checked_div(time);
        rate.map_or_else(Cell::none, |rate| Cell::count(saturate(rate)))
    }

    /// What a message takes by the fit, how much of that is latency, and what bounds it.
    fn bound(&self, sent: &Sent) -> [Cell; 3] {
        let (mut latency, mut whole, mut told) = (0.0, 0.0, true);
        for ((far, size), n) in &sent.sizes {
            let Some(fit) = self.fits[usize::from(*far)] else {
                return [Cell::none(), Cell::none(), Cell::none()];
            };
            let n = float((*n).into());
            (latency, whole) = (latency + n * fit.latency, whole + n * fit.time(*size));
            told &= fit.per_byte.is_some();
        }
        let each = Cell::ns(rounded(whole / float(sent.messages().into())).into());
        if !told || whole <= 0.0 {
            return [each, Cell::none(), Cell::none()];
        }
        let share = latency / whole;
        let bound = if share >= 0.5 { "latency" } else { "bandwidth" };
        [each, Cell::percent(rounded(share * 1000.0).into(), 1000), Cell::text(bound)]
    }
}

impl Sent {
    fn messages(&self) -> u64 {
        self.sizes.values().sum()
    }

    fn tiny(&self) -> u64 {
        self.sizes.iter().filter(|((_, size), _)| *size <= SHORT).map(|(_, n)| n).sum()
    }

    /// The size that so many thousandths of the messages do not exceed.
    fn quantile(&self, thousandths: u64) -> u64 {
        let mut sorted: Vec<(u64, u64)> = self.sizes.iter().map(|((_, size), n)| (*size, *n)).collect();
        sorted.sort_unstable();
        let all = u128::from(self.messages());
        let (target, mut seen) = ((all * u128::from(thousandths)).div_ceil(1000).max(1), 0);
        let reached = sorted.into_iter().find(|(_, n)| {
            seen += u128::from(*n);
            seen >= target
        });
        reached.map_or(0, |(size, _)| size)
    }
}

/// A fit in words.
fn said(fit: &Fit) -> String {
    let (latency, n) = (duration(rounded(fit.latency)), grouped(fit.messages));
    let Some((half, per_byte)) = fit.half().zip(fit.per_byte) else {
        return format!("{latency} a message ({n} measured); what bytes take does not show");
    };
    let (half, per_second) = (bytes(rounded(half)), bytes(rounded(1e9 / per_byte)));
    format!("{latency} a message and {per_second}/s, alike at {half} ({n} measured)")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and cut at the largest"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}
