//! What the run would take under other conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status, counted, wrapped};
use st_explain::{Analysis, Fit, Link, Model, Network, Prediction, Scenario};
use st_model::num::{float, rounded};
use st_model::sites::CallSites;

use crate::args::PredictArgs;
use crate::calls::{SITE, site_cells, unknown};
use crate::explain::{Explained, tell_of_threads};
use crate::input::{self, Lacking};
use crate::table::{Cell, Column, Format, Table, bytes, duration};
use crate::untimed::{NO_TIMES, without};

/// Sites of which is said what they could gain, those with most computation.
const SITES: usize = 8;

/// Error of the model's run time from which on it is doubtful, percent.
const DOUBTFUL: f64 = 10.0;

/// Gains below that are not shown to people, percent.
const LITTLE: f64 = 0.1;

/// A change of the run, and where it is.
struct Change {
    what: String,
    place: Option<u32>,
    scenario: Scenario,
}

/// `st-stat predict`.
pub(crate) fn predict(args: &PredictArgs) -> Result<Status> {
    let (explained, prediction) = Explained::read_with(&args.of, Prediction::of)?;
    let Some((analysis, prediction)) = explained.analysis.as_ref().zip(prediction) else {
        bail!(Lacking(without(NO_TIMES, &explained.whole.header)))
    };
    let tables = explained.sections.iter().map(|s| &s.sites);
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables);
    let told = Told { args, explained: &explained, analysis, prediction: &prediction, sites: &sites };
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    if args.model {
        told.model().write(args.of.format, screen, &mut out)?;
    } else {
        let changes = if told.asks() { told.asked()? } else { told.usual() };
        told.write(&told.times(changes), screen, &mut out)?;
    }
    out.commit()?;
    tell_of_threads(&explained.sections, &args.of.talk);
    Ok(Status::Ok)
}

/// Run times, ns.
struct Times {
    recorded: u64,
    model: u64,
    /// With each change.
    changed: Vec<(Change, u64)>,
}

impl Times {
    /// How far the model is off, percent; `None` of a run that took no time.
    fn error(&self) -> Option<f64> {
        (self.recorded > 0).then(|| (ns(self.model) / ns(self.recorded) - 1.0) * 100.0)
    }

    /// What is gained by a time in percent of the model's.
    fn gain(&self, time: u64) -> Option<f64> {
        (self.model > 0).then(|| (1.0 - ns(time) / ns(self.model)) * 100.0)
    }
}

fn ns(time: u64) -> f64 {
    float(time.into())
}

struct Told<'a> {
    args: &'a PredictArgs,
    explained: &'a Explained,
    analysis: &'a Analysis,
    prediction: &'a Prediction,
    sites: &'a CallSites,
}

impl Told<'_> {
    fn network(&self) -> Network {
        self.prediction.model().network
    }

    /// Whether a change is asked for.
    fn asks(&self) -> bool {
        let a = self.args;
        let network = a.latency.is_some() || a.bandwidth.is_some() || a.overhead.is_some();
        network || a.eager.is_some() || a.ideal_network || !a.speedup.is_empty() || !a.balance.is_empty()
    }

    /// The link that a user means: that between nodes, if there are several.
    fn link(&self) -> usize {
        usize::from(self.prediction.nodes() > 1)
    }

    /// The places that a user means by a text.
    fn meant(&self, text: &str) -> Result<BTreeSet<u32>> {
        let meant = self.sites.meant(text);
        let all = 0..st_model::num::narrow(self.analysis.places.len());
        let is = |number: &u32| {
            let (function, site) = self.explained.place(*number, self.sites);
            function == text || site.is_some_and(|site| meant.contains(&site))
        };
        let found: BTreeSet<u32> = all.filter(is).collect();
        if found.is_empty() {
            bail!(unknown(text, &self.explained.sections));
        }
        Ok(found)
    }

    /// The changes that are asked for, one by one.
    fn single(&self) -> Result<Vec<Change>> {
        let (args, base, link) = (self.args, self.network(), self.link());
        let with = |change: &dyn Fn(&mut Network)| {
            let mut network = base;
            change(&mut network);
            Scenario::on(network)
        };
        let mut all = Vec::new();
        let mut add = |what: String, place: Option<u32>, scenario| all.push(Change { what, place, scenario });
        if args.ideal_network {
            add("ideal network".into(), None, Scenario::ideal());
        }
        if let Some(time) = args.latency {
            let what = format!("latency {}", duration(rounded(time)));
            add(what, None, with(&|n| n.links[link].latency = time));
        }
        if let Some(rate) = args.bandwidth {
            let what = match rate.is_finite() {
                true => format!("bandwidth {}/s", bytes(rounded(rate))),
                false => "infinite bandwidth".into(),
            };
            add(what, None, with(&|n| n.links[link].per_byte = 1e9 / rate));
        }
        if let Some(time) = args.overhead {
            add(format!("overhead {}", duration(rounded(time))), None, with(&|n| n.overhead = time));
        }
        if let Some(limit) = args.eager {
            add(format!("eager up to {}", bytes(limit)), None, with(&|n| n.eager = limit));
        }
        for faster in &args.speedup {
            let places = self.meant(&faster.site)?;
            let what = format!("computation {} times as fast before {}", faster.times, faster.site);
            let faster = places.iter().map(|place| (*place, faster.times)).collect();
            add(what, only(&places), Scenario { faster, ..Scenario::on(base) });
        }
        for site in &args.balance {
            let balanced = self.meant(site)?;
            let what = format!("balanced computation before {site}");
            add(what, only(&balanced), Scenario { balanced, ..Scenario::on(base) });
        }
        Ok(all)
    }

    /// The changes that are asked for: all together, and if there are several, one by one.
    fn asked(&self) -> Result<Vec<Change>> {
        let single = self.single()?;
        let (args, base, link) = (self.args, self.network(), self.link());
        let mut whole = if args.ideal_network { Scenario::ideal() } else { Scenario::on(base) };
        let network = &mut whole.network;
        let Link { latency, per_byte } = network.links[link];
        network.links[link] = Link {
            latency: args.latency.unwrap_or(latency),
            per_byte: args.bandwidth.map_or(per_byte, |rate| 1e9 / rate),
        };
        network.overhead = args.overhead.unwrap_or(network.overhead);
        network.eager = args.eager.unwrap_or(network.eager);
        for change in &single {
            whole.faster.extend(&change.scenario.faster);
            whole.balanced.extend(&change.scenario.balanced);
        }
        let what: Vec<&str> = single.iter().map(|change| change.what.as_str()).collect();
        let place = if let [one] = &*single { one.place } else { None };
        let mut all = vec![Change { what: what.join(", "), place, scenario: whole }];
        if single.len() > 1 {
            all.extend(single);
        }
        Ok(all)
    }

    /// What might help.
    fn usual(&self) -> Vec<Change> {
        let (base, link) = (self.network(), self.link());
        let [mut quick, mut wide] = [base; 2];
        quick.links[link].latency /= 2.0;
        wide.links[link].per_byte /= 2.0;
        let change = |what: &str, place, scenario| Change { what: what.into(), place, scenario };
        let mut all = vec![
            change("ideal network", None, Scenario::ideal()),
            change("half the latency", None, Scenario::on(quick)),
            change("twice the bandwidth", None, Scenario::on(wide)),
        ];
        let mut computed: BTreeMap<u32, u64> = BTreeMap::new();
        for (at, totals) in &self.analysis.totals {
            *computed.entry(at.place).or_default() += totals.before;
        }
        let mut places: Vec<(u32, u64)> = computed.into_iter().filter(|(_, ns)| *ns > 0).collect();
        if places.len() > 1 {
            let balanced = places.iter().map(|(place, _)| *place).collect();
            all.push(change("all computation balanced", None, Scenario { balanced, ..Scenario::on(base) }));
        }
        places.sort_by_key(|(place, ns)| (u64::MAX - ns, *place));
        for (place, _) in places.into_iter().take(SITES) {
            let faster = Scenario { faster: [(place, 2.0)].into(), ..Scenario::on(base) };
            let balanced = Scenario { balanced: [place].into(), ..Scenario::on(base) };
            all.push(change("half the computation", Some(place), faster));
            all.push(change("balanced computation", Some(place), balanced));
        }
        all
    }

    /// What the run takes with each change: those that are asked for in their order, others by what they gain.
    fn times(&self, changes: Vec<Change>) -> Times {
        let base = Scenario::on(self.network());
        let scenarios: Vec<Scenario> =
            [base].into_iter().chain(changes.iter().map(|c| c.scenario.clone())).collect();
        let mut times = self.prediction.times(&scenarios).into_iter();
        let model = times.next().unwrap_or(0);
        let mut changed: Vec<(Change, u64)> = changes.into_iter().zip(times).collect();
        if !self.asks() {
            changed.sort_by_key(|(_, time)| *time);
        }
        Times { recorded: self.analysis.run(), model, changed }
    }

    fn write(&self, times: &Times, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        self.warn(times);
        if self.args.of.format != Format::Text {
            return self.table(times, |_| true).write(self.args.of.format, screen, out);
        }
        let mut lines = vec![format!(
            "{} recorded; {} by the model, {} off",
            duration(times.recorded),
            duration(times.model),
            Cell::number(times.error(), 1, " %").signed().text
        )];
        lines.extend(self.said());
        for line in lines {
            for line in wrapped(line.split(' '), screen.width, ["", "    "]) {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(out)?;
        if let (true, Some((change, time))) = (self.asks(), times.changed.first()) {
            let gain = times.gain(*time).map(|gain| 0.0 - gain);
            let line = format!(
                "{}: the run would take {} instead of {} ({})",
                change.what,
                duration(*time),
                duration(times.model),
                Cell::number(gain, 1, " %").signed().text
            );
            for line in wrapped(line.split(' '), screen.width, ["", "    "]) {
                writeln!(out, "{}", screen.bold(&line))?;
            }
            if times.changed.len() == 1 {
                return Ok(());
            }
            writeln!(out)?;
        }
        let shown = |time: u64| self.asks() || times.gain(time).is_some_and(|gain| gain.abs() >= LITTLE);
        let rest = times.changed.iter().filter(|(_, time)| !shown(*time)).count();
        if rest == times.changed.len() {
            return writeln!(out, "nothing of what is tried would gain {LITTLE} %");
        }
        self.table(times, shown).write(Format::Text, screen, out)?;
        if rest > 0 {
            writeln!(out, "… and {rest} that gain less than {LITTLE} % (--format csv)")?;
        }
        Ok(())
    }

    fn warn(&self, times: &Times) {
        let talk = &self.args.of.talk;
        if let Some(error) = times.error().filter(|error| error.abs() >= DOUBTFUL) {
            let text = format!(
                "the run time by the model is {error:+.1} % off the recorded one: what is said of changes is no surer"
            );
            talk.warn(input::NAME, text);
        }
        if let Some((ranks, processors)) = self.explained.crowded {
            let text = format!(
                "{} on {}: what one computes less the others have more, which is not predicted",
                counted(ranks, "rank"),
                counted(processors.into(), "processor")
            );
            talk.warn(input::NAME, text);
        }
    }

    /// What the network is, in words.
    fn said(&self) -> Vec<String> {
        let Model { network, fits, spread, overheads, limits, operations } = *self.prediction.model();
        let mut lines = Vec::new();
        for (i, way) in ["within nodes", "between nodes"].into_iter().enumerate() {
            if let Some(fit) = &fits[i] {
                lines.push(format!("{way}: {}", link(&network.links[i], fit, spread[i])));
            }
        }
        if lines.is_empty() {
            let latency = duration(rounded(network.links[0].latency));
            let from =
                if operations > 0 { "a round of collective operations" } else { "nothing being known" };
            lines.push(format!("no receiver waited for a message: latency {latency}, {from}"));
        }
        let measured = |n: u64, what: &str| match n {
            0 => "assumed".to_owned(),
            n => format!("{} measured", counted(n, what)),
        };
        lines.push(format!(
            "overhead {} ({}); eager up to {} ({}); collective operations take {:.2} of ⌈log₂ ranks⌉ messages one after the other ({})",
            duration(rounded(network.overhead)),
            measured(overheads, "call"),
            bytes(network.eager),
            measured(limits, "send"),
            network.collective,
            measured(operations, "part")
        ));
        lines
    }

    fn cells(&self, place: Option<u32>) -> (Cell, [Cell; 2]) {
        let Some(place) = place else { return (Cell::none(), [Cell::none(), Cell::none()]) };
        let (function, site) = self.explained.place(place, self.sites);
        (Cell::text(function), site_cells(site, self.sites))
    }

    /// Run times; for programs also those without a change.
    fn table(&self, times: &Times, shown: impl Fn(u64) -> bool) -> Table {
        let text = self.args.of.format == Format::Text;
        let row = |what: &str, place: Option<u32>, time: u64, gains: bool, error: Option<f64>| {
            let (function, site) = self.cells(place);
            let gain = i128::from(times.model) - i128::from(time);
            let mut cells = vec![Cell::text(what), function, Cell::ns(time.into())];
            cells.push(if gains { signed(gain) } else { Cell::none() });
            cells.push(Cell::number(times.gain(time).filter(|_| gains), 1, " %"));
            cells.extend((!text).then(|| Cell::number(error, 1, " %")));
            cells.extend(site);
            cells
        };
        let mut rows = Vec::new();
        if !text {
            rows.push(row("recorded", None, times.recorded, false, None));
            rows.push(row("model", None, times.model, true, times.error()));
        }
        for (i, (change, time)) in times.changed.iter().enumerate().filter(|(_, (_, time))| shown(*time)) {
            let all = self.asks() && i == 0 && times.changed.len() > 1;
            rows.push(row(if all { "changed" } else { &change.what }, change.place, *time, true, None));
        }
        let mut columns = vec![
            Column::left("what if", "what"),
            Column::left("function", "function"),
            Column::right("time", "time_ns", 0).spare(),
            Column::right("saves", "gain_ns", 1),
            Column::right("gain", "gain_percent", 0),
        ];
        columns.extend((!text).then(|| Column::right("error", "error_percent", 0)));
        columns.extend(SITE);
        Table { columns, rows, total: None }
    }

    /// What the network is, as a table.
    fn model(&self) -> Table {
        let Model { network, fits, spread, overheads, limits, operations } = *self.prediction.model();
        let columns = vec![
            Column::left("link", "link"),
            Column::right("latency", "latency_ns", 0),
            Column::right("overhead", "overhead_ns", 0),
            Column::right("bytes per s", "bytes_per_second", 0),
            Column::right("eager", "eager_bytes", 0),
            Column::right("collective", "collective", 1),
            Column::right("messages", "messages", 1),
            Column::right("sends", "eager_calls", 3),
            Column::right("calls", "overhead_calls", 3),
            Column::right("operations", "operations", 3),
            Column::right("25 %", "lower_quartile", 2),
            Column::right("75 %", "upper_quartile", 2),
        ];
        let row = |i: usize| {
            let Link { latency, per_byte } = network.links[i];
            let [low, high] = spread[i].map_or([None; 2], |q| q.map(Some));
            let rate = (per_byte > 0.0).then(|| rounded(1e9 / per_byte));
            vec![
                Cell::text(["within nodes", "between nodes"][i]),
                Cell::ns(rounded(latency).into()),
                Cell::ns(rounded(network.overhead).into()),
                rate.map_or_else(Cell::none, |rate| Cell::bytes(rate.into())),
                Cell::bytes(network.eager.into()),
                Cell::number(Some(network.collective), 3, ""),
                Cell::count(fits[i].map_or(0, |fit| fit.messages)),
                Cell::count(limits),
                Cell::count(overheads),
                Cell::count(operations),
                Cell::number(low, 2, ""),
                Cell::number(high, 2, ""),
            ]
        };
        let rows = (0..=self.link()).map(row).collect();
        Table { columns, rows, total: None }
    }
}

/// What messages take, in words.
fn link(link: &Link, fit: &Fit, spread: Option<[f64; 2]>) -> String {
    let rate = match fit.per_byte {
        Some(per_byte) if per_byte > 0.0 => format!("{}/s", bytes(rounded(1e9 / per_byte))),
        _ => "no bandwidth that shows".into(),
    };
    let (latency, n) = (duration(rounded(link.latency)), counted(fit.messages, "message"));
    let spread = spread.filter(|_| fit.messages > 1).map_or_else(String::new, |[low, high]| {
        format!(", half of them take {low:.2} to {high:.2} times what this says")
    });
    format!("latency {latency}, {rate} ({n} measured{spread})")
}

/// The place, if it is only one.
fn only(places: &BTreeSet<u32>) -> Option<u32> {
    places.first().copied().filter(|_| places.len() == 1)
}

/// A time that may be lost.
fn signed(time: i128) -> Cell {
    let whole = duration(st_model::num::saturate(time.unsigned_abs()));
    let value: i64 = st_model::num::saturate(time);
    Cell::shown(value.into(), if time < 0 { format!("-{whole}") } else { whole })
}
