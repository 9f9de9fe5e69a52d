//! The summary: what the program did, at a glance.

use st_cli::{counted, wrapped};
use st_model::calls::names;
use st_model::num::{Exact, float};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::mem::discriminant;

use st_model::calls::Lane;
use st_model::header::{Header, RANK_SUMS, SKETCH_ERROR, UNRECORDED};
use st_model::rank_times::{OtherThreads, RankTime, other_threads, rank_times};
use st_model::section::{Elastic, Predecessors, Section, Sym};
use st_model::sites::CallSites;
use st_model::sketch::Shape;
use st_model::tree::{FlatTree, Item};

use crate::calls::{function, is_start_up};
use crate::clusters::identity;
use crate::ended::{self, Running, Stands};
use crate::profile::Profile;
use crate::table::{Cell, Column, Table, bytes, grouped};

/// A fact of a trace: a line for people, and columns with plain values for programs.
struct Fact {
    name: &'static str,
    /// `None` where there is nothing to tell.
    text: Option<String>,
    values: Vec<(&'static str, Cell)>,
}

/// What is known of a trace, in order.
pub(crate) struct Facts(Vec<Fact>);

impl Facts {
    fn add(
        &mut self,
        name: &'static str,
        text: impl Into<Option<String>>,
        values: Vec<(&'static str, Cell)>,
    ) {
        self.0.push(Fact { name, text: text.into(), values });
    }

    /// Those of a trace.
    pub(crate) fn of(
        header: &Header,
        complete: bool,
        size: Option<u64>,
        sections: &[(Section, Profile)],
        sites: &CallSites,
        running: &Running,
    ) -> Self {
        let mut facts = Self(Vec::new());
        facts.run(header, complete, sections);
        facts.calls(sections, sites, running);
        facts.times(&Times::of(sections));
        facts.bytes(sections);
        facts.structure(sections);
        facts.payload(header, size, sections);
        facts
    }

    /// Those that are known without going through calls; profiles are not looked at.
    pub(crate) fn brief(header: &Header, complete: bool, sections: &[(Section, Profile)]) -> Self {
        let mut facts = Self(Vec::new());
        facts.run(header, complete, sections);
        facts.times(&Times::of(sections));
        facts
    }

    fn run(&mut self, header: &Header, complete: bool, sections: &[(Section, Profile)]) {
        let ranks: u64 = sections.iter().map(|(s, _)| s.ranks.len()).sum();
        let world = u64::from(header.world);
        let command = header.command();
        self.add("program", command.clone(), vec![("program", Cell::text(command))]);
        let (flavour, version) = (&header.mpi.flavour, &header.mpi.version);
        let values = vec![("mpi", Cell::text(flavour.clone())), ("mpi_version", Cell::text(version.clone()))];
        self.add("mpi", header.mpi.called(), values);
        let missed = header.options.get(UNRECORDED).and_then(|names| names.as_array());
        let said = missed.map(|names| {
            let named = names.iter().filter_map(|n| n.as_str()).take(3).collect::<Vec<_>>().join(", ");
            let more = if names.len() > 3 { ", …" } else { "" };
            format!("{} of this MPI, if called ({named}{more})", counted(names.len().to_u64(), "function"))
        });
        self.add("unrecorded", said, Vec::new());
        let inside = header.inside();
        let named: Vec<_> = inside.iter().map(|(name, n)| format!("{name} {}", grouped(*n))).collect();
        let said = (!named.is_empty()).then(|| format!("not recorded: {}", named.join(", ")));
        self.add("inside others", said, Vec::new());
        let held = if ranks == world { grouped(ranks) } else { format!("{ranks} of {world}") };
        self.add("ranks", held, vec![("ranks", Cell::count(ranks)), ("world", Cell::count(world))]);
        let mut names: Vec<&str> =
            sections.iter().flat_map(|(s, _)| &s.hosts).map(|(h, _)| h.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let hosts = names.len();
        let text = if hosts > 4 { hosts.to_string() } else { names.join(", ") };
        self.add("hosts", text, vec![("hosts", count(hosts))]);
        let cut = "no: the stream is truncated; this is what is whole";
        let complete_value = Cell::shown(complete.into(), complete.to_string());
        self.add("complete", (!complete).then(|| cut.to_owned()), vec![("complete", complete_value)]);
    }

    fn calls(&mut self, sections: &[(Section, Profile)], sites: &CallSites, running: &Running) {
        let calls: u64 = sections.iter().map(|(_, p)| p.calls()).sum();
        self.add("calls", grouped(calls), vec![("calls", Cell::count(calls))]);
        for stands in Stands::ALL {
            for place in ended::places(sections.iter().map(|(s, _)| s), sites, running, stands) {
                self.add(stands.called(), place, Vec::new());
            }
            let key = match stands {
                Stands::Ended => "ended_early_ranks",
                Stands::Running => "running_ranks",
                Stands::Unknown => "perhaps_running_ranks",
            };
            let all = sections.iter().flat_map(|(s, _)| &s.ended).map(|e| e.rank);
            let ranks: BTreeSet<u32> = all.filter(|rank| running.stands(*rank) == stands).collect();
            self.add("", None, vec![(key, count(ranks.len()))]);
        }
        let failed = failed_calls(sections);
        self.add(
            "failed calls",
            (failed > 0).then(|| grouped(failed)),
            vec![("failed_calls", Cell::count(failed))],
        );
        let opaque = opaque_calls(sections);
        let names: Vec<_> = opaque.iter().map(|(name, n)| format!("{name} ({})", grouped(*n))).collect();
        let values = vec![("name_only_calls", Cell::count(opaque.values().sum()))];
        self.add("by name only", (!names.is_empty()).then(|| names.join(", ")), values);
    }

    fn times(&mut self, times: &Times) {
        let known = |cell: Cell| if times.timed { cell } else { Cell::none() };
        let mean = Cell::ns(times.mean());
        let (longest, rank, about) = times.longest;
        let (longest, about) = (Cell::ns(longest), if about { "about " } else { "" });
        let text = format!("{} (mean), {about}{} (longest: rank {rank})", mean.text, longest.text);
        let values = vec![
            ("rank_time_mean_ns", known(mean)),
            ("rank_time_longest_ns", known(longest)),
            ("rank_time_longest_rank", known(Cell::count(rank.into()))),
        ];
        self.add("time per rank", times.timed.then_some(text), values);
        let OtherThreads { threads, mpi } = times.others;
        let within = Cell::ns(mpi);
        let others_text = format!("{}, {} in MPI, which is not part of it", grouped(threads), within.text);
        let others = vec![("other_threads", Cell::count(threads)), ("other_threads_mpi_ns", known(within))];
        let share = Cell::percent(times.mpi, times.whole);
        let text = times.timed.then(|| format!("{} of it", share.text));
        self.add("in MPI", text, vec![("mpi_percent", known(share))]);
        let (paused, share) = (
            Cell::ns(times.paused / u128::from(times.ranks.max(1))),
            Cell::percent(times.paused, times.whole),
        );
        let (most, rank) = times.most_paused;
        let most = Cell::ns(most);
        let text = format!(
            "{} per rank (mean), {} of its time, longest {} (rank {rank}): what it did then is not in the trace",
            paused.text, share.text, most.text
        );
        let values = vec![
            ("paused_mean_ns", known(paused)),
            ("paused_percent", known(share)),
            ("paused_longest_ns", known(most)),
            (
                "paused_longest_rank",
                if times.paused > 0 { known(Cell::count(rank.into())) } else { Cell::none() },
            ),
        ];
        self.add("recording paused", (times.paused > 0).then_some(text), values);
        self.add("other threads", (times.timed && threads > 0).then_some(others_text), others);
        let start_up = Cell::ns(times.start_up);
        let text = times.timed.then(|| format!("{} more per rank (mean)", start_up.text));
        self.add(names::MPI_Init, text, vec![("start_up_mean_ns", known(start_up))]);
    }

    fn bytes(&mut self, sections: &[(Section, Profile)]) {
        let names = [("sent", "sent_bytes"), ("received", "received_bytes")];
        for (i, (name, key)) in names.into_iter().enumerate() {
            let symbols = sections.iter().flat_map(|(_, p)| &p.symbols).map(|s| s.bytes[i]);
            let n = Cell::bytes(symbols.fold(0, u128::saturating_add));
            self.add(name, n.text.clone(), vec![(key, n)]);
        }
        let ranks = sections.iter().flat_map(|(_, p)| &p.ranks);
        let degrees: Vec<usize> = ranks.map(|r| r.neighbours.len()).collect();
        let (min, max) = (degrees.iter().min().copied(), degrees.iter().max().copied());
        let cell = |n: Option<usize>| n.map_or_else(Cell::none, count);
        let text = min.zip(max).map(|(min, max)| {
            if min == max { format!("{min} per rank") } else { format!("{min} to {max} per rank") }
        });
        let values = vec![("partners_least", cell(min)), ("partners_most", cell(max))];
        self.add("send partners", text, values);
    }

    fn structure(&mut self, sections: &[(Section, Profile)]) {
        let trees = || sections.iter().flat_map(|(s, _)| &s.threads).map(|t| &t.tree);
        let nodes: usize = trees().map(|t| t.items().len()).sum();
        let loops = loops(sections.iter().map(|(s, _)| s));
        let threads = sections.iter().flat_map(|(s, _)| &s.threads);
        let depth = threads.map(|t| depth(&t.tree, &t.counts)).max().unwrap_or(0);
        let of =
            |s: &Section| s.symbols.iter().filter_map(|y| s.sites.get(y.site)).map(|site| site.id).collect();
        let sites: BTreeSet<u128> = sections.iter().flat_map(|(s, _)| -> Vec<u128> { of(s) }).collect();
        let text = format!(
            "{}, {}, nested {depth} deep",
            counted(sites.len().to_u64(), "call site"),
            counted(loops.to_u64(), "loop"),
        );
        let values = vec![
            ("call_sites", count(sites.len())),
            ("loops", count(loops)),
            ("loop_depth", count(depth)),
            ("tree_nodes", count(nodes)),
            ("sections", count(sections.len())),
        ];
        self.add("structure", text, values);
    }

    fn payload(&mut self, header: &Header, size: Option<u64>, sections: &[(Section, Profile)]) {
        let calls: u64 = sections.iter().map(|(_, p)| p.calls()).sum();
        let per = |n: u64| if calls == 0 { 0.0 } else { float(n.into()) / float(calls.into()) };
        let text = size.map(|size| format!("{}, {:.3} bytes per call", bytes(size), per(size)));
        let cell = size.map_or_else(Cell::none, |size| Cell::bytes(size.into()));
        self.add("file", text, vec![("file_bytes", cell)]);
        let times = time_payload(header, sections);
        self.add("times", times.clone(), vec![("times", Cell::text(times))]);
        let lost = lost(sections).join(", ");
        let text = (!lost.is_empty()).then(|| lost.clone());
        self.add("left out", text, vec![("left_out", Cell::text(lost))]);
        let histograms: usize = sections.iter().map(|(s, _)| s.histograms().count()).sum();
        let text = format!("of {histograms} parameters; totals are exact, what single ranks send is drawn");
        self.add("histograms", (histograms > 0).then_some(text), vec![("histograms", count(histograms))]);
    }

    /// Lines `name value` for people, what does not fit below.
    pub(crate) fn write_text(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        for fact in &self.0 {
            let Some(text) = &fact.text else { continue };
            let [first, others] = [fact.name, ""].map(|name| format!("{name:<20} "));
            let lines = wrapped(text.split(' '), width, [&first, &others]);
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    /// One row of plain values.
    pub(crate) fn table(&self) -> Table {
        let values = || self.0.iter().flat_map(|f| &f.values);
        // What is not known is a number.
        let column = |(key, cell): &(&'static str, Cell)| {
            if cell.value.is_string() { Column::left(key, key) } else { Column::right(key, key, 0) }
        };
        let columns = values().map(column).collect();
        Table { columns, rows: vec![values().map(|(_, cell)| cell.clone()).collect()], total: None }
    }
}

fn count(n: usize) -> Cell {
    Cell::count(n.to_u64())
}

/// Times over all ranks.
struct Times {
    timed: bool,
    /// How many ranks have one, their sum, and what of it was in MPI.
    ranks: u64,
    whole: u128,
    mpi: u128,
    /// What of it passed while recording was paused, and the most of a rank.
    paused: u128,
    most_paused: (u128, u32),
    /// The longest, its rank, and whether it is kept to 1 % only.
    longest: (u128, u32, bool),
    /// Mean time in `MPI_Init` and `MPI_Finalize`, which the others leave out.
    start_up: u128,
    /// Threads of which it is not.
    others: OtherThreads,
}

impl Times {
    fn of(sections: &[(Section, Profile)]) -> Self {
        let ranks: u64 = sections.iter().map(|(s, _)| s.ranks.len()).sum();
        let all = sections
            .iter()
            .flat_map(|(s, _)| s.threads.iter().flat_map(|t| &t.sketches).map(move |k| (s, k)));
        let starts = |s: &Section, sym: Sym| s.symbols.get(sym as usize).is_some_and(|s| is_start_up(s.call));
        let start_up: u128 = all.clone().filter(|(s, k)| starts(s, k.sym)).map(|(_, k)| k.comm.sum).sum();
        let start_up = start_up / u128::from(ranks.max(1));
        let timed = all.count() > 0;
        let others = other_threads(sections.iter().map(|(s, _)| s));
        let mut times = Self {
            timed,
            ranks: 0,
            whole: 0,
            mpi: 0,
            paused: 0,
            most_paused: (0, 0),
            longest: (0, 0, false),
            start_up,
            others,
        };
        for (section, profile) in sections {
            let kept_about = section.threads.first().is_some_and(|t| !t.sums.is_empty());
            let exact: BTreeMap<u32, RankTime> =
                profile.ranks.iter().filter_map(|r| Some((r.rank, r.time?))).collect();
            for kept in rank_times(section) {
                let told = exact.get(&kept.rank);
                let (about, RankTime { rank, whole, mpi, paused }) =
                    (kept_about && told.is_none(), *told.unwrap_or(&kept));
                times.ranks += 1;
                times.whole += whole;
                times.mpi += mpi;
                times.paused += paused;
                if paused > times.most_paused.0 {
                    times.most_paused = (paused, rank);
                }
                times.longest = times.longest.max((whole, rank, about));
            }
        }
        times
    }

    fn mean(&self) -> u128 {
        self.whole / u128::from(self.ranks.max(1))
    }
}

/// How many loops there are, also of one call: those around the same calls in sections of several ranks are the same, as call sites are.
fn loops<'a>(sections: impl Iterator<Item = &'a Section>) -> usize {
    let mut most: HashMap<u64, usize> = HashMap::new();
    for section in sections {
        let mut own: HashMap<u64, usize> = HashMap::new();
        for thread in &section.threads {
            let shapes = shapes(section, thread.tree.items());
            for (shape, counts) in shapes.into_iter().zip(&thread.counts) {
                if repeats(counts) {
                    *own.entry(shape).or_default() += 1;
                }
            }
        }
        for (key, n) in own {
            let most = most.entry(key).or_default();
            *most = n.max(*most);
        }
    }
    most.into_values().sum()
}

/// For each node of a tree what stands for it and all below it: calls by what is called where. *Cost:* O(nodes).
fn shapes(section: &Section, items: &[Item]) -> Vec<u64> {
    let mut shapes = vec![0; items.len()];
    for (i, item) in items.iter().enumerate().rev() {
        let mut hasher = DefaultHasher::new();
        match item {
            Item::Leaf { sym } => identity(section, *sym).hash(&mut hasher),
            Item::Body { below } => {
                let (mut child, end) = (i + 1, (i + 1 + below.to_usize()).min(items.len()));
                while let Some(inner) = items.get(child).filter(|_| child < end) {
                    shapes[child].hash(&mut hasher);
                    child += 1 + if let Item::Body { below } = inner { below.to_usize() } else { 0 };
                }
            }
        }
        shapes[i] = hasher.finish();
    }
    shapes
}

/// Whether some rank executes a node more than once at a visit.
fn repeats(counts: &Elastic) -> bool {
    counts.streams.iter().any(|stream| stream.distinct(2).is_none_or(|few| few.iter().any(|n| *n > 1)))
}

fn depth(tree: &FlatTree, counts: &[Elastic]) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let mut deepest = 0;
    for (at, (item, counts)) in tree.items().iter().zip(counts).enumerate() {
        while open.last().is_some_and(|&end| at >= end) {
            open.pop();
        }
        if let Item::Body { below } = item {
            open.push(at + 1 + *below as usize);
            deepest = deepest.max(open.len());
        } else if repeats(counts) {
            deepest = deepest.max(open.len() + 1);
        }
    }
    deepest
}

fn failed_calls(sections: &[(Section, Profile)]) -> u64 {
    let of = |(s, p): &(Section, Profile)| -> u64 {
        s.symbols.iter().zip(&p.symbols).filter(|(s, _)| s.error != 0).map(|(_, t)| t.calls).sum()
    };
    sections.iter().map(of).sum()
}

/// What lossy options have changed, by their lanes.
fn lost(sections: &[(Section, Profile)]) -> Vec<&'static str> {
    let names = [
        (Lane::Call, "calls"),
        (Lane::Site, "differences between call sites"),
        (Lane::Endpoint, "endpoints"),
        (Lane::Count, "counts"),
        (Lane::Tag, "tags"),
        (Lane::Rest, "other parameters"),
    ];
    let voided =
        |lane: &Lane| sections.iter().flat_map(|(s, _)| &s.threads).any(|t| t.lanes.is_voided(*lane));
    names.into_iter().filter(|(lane, _)| voided(lane)).map(|(_, name)| name).collect()
}

/// Functions recorded by name only, with their counts.
fn opaque_calls(sections: &[(Section, Profile)]) -> BTreeMap<String, u64> {
    let table = st_model::calls::CallTable::builtin();
    let mut counts = BTreeMap::new();
    for (s, p) in sections {
        for (symbol, totals) in s.symbols.iter().zip(&p.symbols) {
            if totals.calls > 0 && table.get(symbol.call).is_none_or(|r| r.properties.opaque) {
                *counts.entry(function(symbol.call, &s.tables)).or_default() += totals.calls;
            }
        }
    }
    counts
}

fn time_payload(header: &Header, sections: &[(Section, Profile)]) -> String {
    let threads = || sections.iter().flat_map(|(s, _)| &s.threads);
    // A phase that never was has no shape of its own.
    let paths =
        || threads().flat_map(|t| &t.sketches).flat_map(|s| [&s.compute, &s.comm]).filter(|s| s.count > 0);
    let near = header.options.get(SKETCH_ERROR).and_then(|error| error.as_str());
    let near = near.map(|error| format!(", {error} of the sum apart at most")).unwrap_or_default();
    let bins = paths().map(|s| s.bins().len()).max().unwrap_or_default();
    let names = [
        (Shape::Buckets, "sketches (1 %)".to_owned()),
        (Shape::Quantiles, format!("distributions at fixed ranks (1 %{near})")),
        (Shape::BINS, format!("histograms of {}", counted(bins.to_u64(), "bin"))),
        (Shape::Totals, "number, sum, squares and extremes".to_owned()),
    ];
    let kept = names
        .into_iter()
        .filter(|(shape, _)| paths().any(|s| discriminant(&s.shape()) == discriminant(shape)));
    let how = header.options.get(RANK_SUMS).and_then(|how| how.as_str()).unwrap_or("1 %");
    let sums = threads().any(|t| !t.sums.is_empty()).then(|| format!(", totals of ranks ({how})"));
    let one = threads().any(|t| Predecessors::of(&t.sketches) == Predecessors::Any);
    let paths = one.then(|| "whatever call came before".to_owned());
    let kept: Vec<String> = kept.map(|(_, name)| name).chain(paths).collect();
    // Without exact times a column still holds comparisons of clocks.
    let columns = threads().flat_map(|t| &t.columns).filter(|(_, column)| column.events() > 0);
    // Every event has a duration, if it has a sketch; a series of polls is one.
    let events: u64 = threads().flat_map(|t| &t.sketches).map(|s| s.comm.count).sum();
    let timed: u64 = columns.clone().map(|(_, column)| column.events()).sum();
    let which = match events {
        e if e > timed => format!("{} of {} (a series of polls is one)", grouped(timed), counted(e, "call")),
        _ => "every call".into(),
    };
    let times = columns.map(|(_, column)| column.unit()).max().map(|unit| match unit {
        1 => format!("exact times of {which}"),
        _ => format!("times of {which}, rounded to {unit} ns"),
    });
    let said = match (times, kept.is_empty()) {
        (Some(times), false) => format!("{times}, and {}", kept.join(", ")),
        (Some(times), true) => times,
        (None, false) => format!("{}, no exact times", kept.join(", ")),
        (None, true) => "none".into(),
    };
    said + &sums.unwrap_or_default()
}
