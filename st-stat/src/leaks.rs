//! What a program leaves behind, per call site.

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status, Whole};
use st_match::leaks::{Leaks, What};
use st_model::header::Header;
use st_model::num::Exact as _;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::print;
use st_model::section::Section;
use st_model::sites::CallSites;

use crate::args::LeaksArgs;
use crate::calls::{SITE, function, site_cells};
use crate::ended::Running;
use crate::input::{self, Lacking};
use crate::table::{Cell, Column, Format, Table, grouped, ranks as named_ranks};

/// `st-stat leaks`.
pub(crate) fn leaks(args: &LeaksArgs) -> Result<Status> {
    let of = &args.of;
    let (whole, sections) = input::sections(&of.inputs, &of.input, &of.talk)?;
    if !whole.complete {
        bail!(Lacking("the stream does not hold the end of the run, where leaks show".into()));
    }
    let budget = of.input.steps.budget();
    let mut leaks = Leaks::of(&sections, &budget)?;
    let paused = (leaks.paused > 0).then_some("ranks paused recording (MPI_Pcontrol)");
    match paused.or_else(|| unmatchable(&whole, &sections)) {
        None => leaks.add_unmatched(&sections, &budget)?,
        Some(why) => {
            of.talk.warn(input::NAME, format!("{why}: whether messages are received is not looked at"))
        }
    }
    let still = Running::of(&of.inputs, sections.iter()).number();
    remark(&leaks, still, |text| of.talk.warn(input::NAME, text));
    if let Some(told) = inside(&whole.header).filter(|_| !leaks.left.is_empty()) {
        of.talk.warn(input::NAME, told);
    }
    let sites = args.symbols.call_sites((input::NAME, &of.talk), sections.iter().map(|s| &s.sites));
    let mut out = Output::text(&of.output.output)?;
    let screen = Screen::of(&out);
    if leaks.left.is_empty() && of.format == Format::Text {
        let all = "nothing is left: all requests complete, all that is made is freed";
        let told = match (leaks.paused, leaks.early) {
            (1.., _) => "no request is left of what is recorded",
            (_, 1..) => "nothing is left by ranks that came to their end",
            _ => all,
        };
        screen.sentence(told, &mut out)?;
    } else {
        table(&leaks, &sections, &sites).write(of.format, screen, &mut out)?;
    }
    out.commit()?;
    Ok(Status::Ok)
}

/// What may end what seems to be left, and is not recorded.
fn inside(header: &Header) -> Option<String> {
    let ends = |name: &str| {
        let parts =
            ["_free", "_close", "_disconnect", "_Wait", "_Test", "_Send", "_Recv", "_Mrecv", "_Imrecv"];
        parts.iter().any(|part| name.contains(part))
    };
    let calls: Vec<_> = header.inside().into_iter().filter(|(name, _)| ends(name)).collect();
    let named: Vec<_> = calls.iter().map(|(name, n)| format!("{name} {}", grouped(*n))).collect();
    (!named.is_empty()).then(|| {
        format!("calls inside of others, of error handlers and the like, are not recorded ({}): what is listed may have ended there", named.join(", "))
    })
}

/// Why messages cannot be matched.
fn unmatchable(whole: &Whole, sections: &[Section]) -> Option<&'static str> {
    let ranks: u64 = sections.iter().map(|s| s.ranks.len()).sum();
    if ranks < u64::from(whole.header.world) {
        return Some("the trace does not hold all ranks");
    }
    sections.iter().any(|s| s.histograms().next().is_some()).then_some("parameters are histograms")
}

/// Says what is not listed; so many ranks have not come to their end since they still run, or may.
fn remark(leaks: &Leaks, still: u64, warn: impl Fn(String)) {
    let remarks = [
        (leaks.early.saturating_sub(still), "ranks ended early: what they left is not listed"),
        (still, "ranks are still running, as far as is known: what they have in use is not listed"),
        (
            leaks.paused,
            "ranks paused recording (MPI_Pcontrol): of what they made only requests made after it are listed",
        ),
        (leaks.elsewhere, "completions of requests of other threads: these are listed as never completed"),
        (
            leaks.outside,
            "messages from or to processes of other jobs: whether these are received is not looked at",
        ),
    ];
    remarks.iter().filter(|(n, _)| *n > 0).for_each(|(n, what)| warn(format!("{} {what}", grouped(*n))));
}

/// One row per kind and call site, most first.
fn table(leaks: &Leaks, sections: &[Section], sites: &CallSites) -> Table {
    let columns = vec![
        Column::left("left", "left"),
        Column::left("function", "function"),
        Column::right("number", "number", 0),
        Column::right("ranks", "ranks", 0),
        Column::left("which", "ranklist"),
    ];
    let mut list: Vec<_> =
        leaks.left.iter().map(|(place, ranks)| (place, ranks, ranks.values().sum())).collect();
    list.sort_by_key(|(place, _, n): &(_, _, u64)| (u64::MAX - n, *place));
    let row = |((what, call, id), ranks, n): (
        &(What, _, Option<u128>),
        &std::collections::BTreeMap<u32, u64>,
        u64,
    )| {
        let named = sections.iter().find(|s| s.tables.names.contains_key(call)).or(sections.first());
        let mut which = RankList::default();
        ranks.keys().for_each(|rank| which.insert(*rank));
        let mut cells = vec![
            Cell::text(what.name()),
            Cell::text(named.map_or_else(String::new, |s| function(*call, &s.tables))),
            Cell::count(n),
            Cell::count(ranks.len().to_u64()),
            Cell::shown(print(&which).into(), named_ranks(&ranks.keys().copied().collect::<Vec<_>>())),
        ];
        cells.extend(site_cells(id.and_then(|id| sites.number(id)), sites));
        cells
    };
    Table {
        columns: columns.into_iter().chain(SITE).collect(),
        rows: list.into_iter().map(row).collect(),
        total: None,
    }
}
