//! Which calls are written, where that is not told by ranks and times: of which functions and call sites, in which phase.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use foldhash::fast::FixedState;
use st_cli::UsageError;
use st_model::calls::{CallTable, Kind, names};
use st_model::event::{Arg, Event};
use st_model::lead::lead_thread;
use st_model::num::Exact as _;
use st_model::section::{Section, Sym};
use st_model::sites::CallSites;

/// Calls that are written; all of them unless something is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// By section and symbol.
    symbols: Option<Arc<[Vec<bool>]>>,
    /// By rank: from when to when phases last, ns since the trace's zero, ascending.
    phases: Option<Arc<Phases>>,
}

/// By rank: from when to when phases last, ascending.
type Phases = HashMap<u32, Vec<(i64, i64)>, FixedState>;

impl Chosen {
    /// Chooses calls of functions and call sites, by the texts that are printed of these; of phases, by the level that
    /// `MPI_Pcontrol` was called with.
    ///
    /// # Errors
    ///
    /// If a text means none, or if there is no such phase.
    pub(crate) fn find(
        (functions, patterns, level): (&[String], &[String], Option<i64>),
        (sections, sites, numbers): (&[Section], &CallSites, &[Vec<u32>]),
        zero: i64,
    ) -> Result<Self> {
        let mut chosen = Self::default();
        let of = (sections, sites, numbers);
        let mut all: Option<Vec<Vec<bool>>> = None;
        for (texts, is_place) in [(functions, false), (patterns, true)] {
            if texts.is_empty() {
                continue;
            }
            let mut wanted: Vec<Vec<bool>> = sections.iter().map(|s| vec![false; s.symbols.len()]).collect();
            texts.iter().try_for_each(|text| mean((text, is_place), of, &mut wanted))?;
            // What is chosen by both is written.
            for (wanted, before) in wanted.iter_mut().flatten().zip(all.iter().flatten().flatten()) {
                *wanted &= before;
            }
            all = Some(wanted);
        }
        chosen.symbols = all.map(Into::into);
        if let Some(level) = level {
            chosen.phases = Some(Arc::new(phases(sections, level, zero)?));
        }
        Ok(chosen)
    }

    /// Whether all calls are written.
    pub(crate) fn is_all(&self) -> bool {
        self.symbols.is_none() && self.phases.is_none()
    }

    /// Whether calls are written whenever they are.
    pub(crate) fn is_of_any_time(&self) -> bool {
        self.phases.is_none()
    }

    /// Of a section's symbols, which are written; `None` of all.
    pub(crate) fn symbols(&self, section: usize) -> Option<&[bool]> {
        self.symbols.as_ref()?.get(section).map(Vec::as_slice)
    }

    /// Whether what a rank does is in a phase that is written.
    pub(crate) fn is_in_phase(&self, rank: u32, times: Option<(i64, i64)>) -> bool {
        let timely = |phases: &Arc<Phases>| {
            let (Some(of), Some((enter, _))) = (phases.get(&rank), times) else { return false };
            let after = of.partition_point(|(begin, _)| *begin <= enter);
            after.checked_sub(1).and_then(|at| of.get(at)).is_some_and(|(_, end)| enter < *end)
        };
        self.phases.as_ref().is_none_or(timely)
    }

    /// Whether a call of a section is written.
    pub(crate) fn has(&self, section: usize, (sym, rank): (Sym, u32), times: Option<(i64, i64)>) -> bool {
        let named =
            self.symbols(section).is_none_or(|all| all.get(sym.to_usize()).is_some_and(|wanted| *wanted));
        named && self.is_in_phase(rank, times)
    }
}

/// Chooses what one text means: a function, or also a place.
fn mean(
    (text, is_place): (&str, bool),
    (sections, sites, numbers): (&[Section], &CallSites, &[Vec<u32>]),
    all: &mut [Vec<bool>],
) -> Result<()> {
    let meant = if is_place { sites.meant(text) } else { Vec::new() };
    let mut any = false;
    for ((section, numbers), wanted) in sections.iter().zip(numbers).zip(all) {
        for (symbol, wanted) in section.symbols.iter().zip(wanted) {
            let listed = CallTable::builtin().get(symbol.call).map(|row| row.name.as_str());
            let name = listed.or_else(|| section.tables.names.get(&symbol.call).map(String::as_str));
            let site = numbers.get(symbol.site.to_usize());
            if name == Some(text) || site.is_some_and(|site| meant.contains(site)) {
                (*wanted, any) = (true, true);
            }
        }
    }
    if !any {
        let what = if is_place { "call site or function" } else { "function" };
        bail!(UsageError(format!("{text}: the trace has no such {what} (st-stat calls lists them)")));
    }
    Ok(())
}

/// When ranks are in a phase: from an `MPI_Pcontrol` of its level to the next one of any, or to the end, on the thread that stands for a rank.
fn phases(sections: &[Section], wanted: i64, zero: i64) -> Result<Phases> {
    let (mut all, mut levels) = (Phases::default(), BTreeSet::new());
    for section in sections {
        for rank in section.ranks.iter() {
            let Some(events) = section.events(lead_thread(section, rank), rank) else { continue };
            let (mut events, mut begun) = (events.timed(), None::<i64>);
            let mut own = Vec::new();
            while let Some(event) = events.next_event().context("decoding")? {
                let level = level(&event);
                levels.extend(level);
                let ends = event.row.is_some_and(|row| row.kind == Kind::Finalize);
                let Some((enter, _)) = event.times.filter(|_| level.is_some() || ends) else { continue };
                let enter = enter.saturating_sub(zero);
                own.extend(begun.take().map(|begin| (begin, enter)));
                begun = level.filter(|level| *level == wanted).map(|_| enter);
            }
            own.extend(begun.map(|begin| (begin, i64::MAX)));
            if !own.is_empty() {
                all.insert(rank, own);
            }
        }
    }
    if all.is_empty() {
        let listed: Vec<String> = levels.iter().map(i64::to_string).collect();
        let pcontrol = names::MPI_Pcontrol;
        let have = if listed.is_empty() {
            format!("the program does not call {pcontrol}")
        } else {
            format!("{pcontrol} is called with {}", listed.join(", "))
        };
        bail!(UsageError(format!("--phase {wanted}: there is none: {have}")));
    }
    Ok(all)
}

fn level(event: &Event<'_>) -> Option<i64> {
    if event.name() != Some(names::MPI_Pcontrol) {
        return None;
    }
    match event.arg("level") {
        Some(Arg::One(level)) => Some(level),
        _ => None,
    }
}
