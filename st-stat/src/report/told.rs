//! What other commands find, put together once.

use anyhow::Result;
use st_cli::counted;
use st_cli::options::Steps;
use st_explain::{Analysis, Finding, Stay};
use st_match::Unknown;
use st_model::num::{narrow, saturate};
use st_model::section::Section;
use st_model::sites::CallSites;
use st_model::steps::{Budget, Exceeded};

use super::bands::Cuts;
use super::data::{CallPlace, Columns, LogicalTime, Report, Timeline};
use super::room::Room;
use super::{detail, extremes, groups, pairs, ranks, spots, stacks, structure};
use crate::args::WaitsBy;
use crate::ended::Running;
use crate::explain::{Explained, HISTOGRAMS, efficiency_table, left_out, ranks_table};
use crate::levels::Most;
use crate::logical::Logical;
use crate::matrix::{self, Matrix};
use crate::profile::Profile;
use crate::rank_groups::RankGroups;
use crate::summary::Facts;
use crate::table::{Table, grouped};
use crate::topology::grid_width;
use crate::untimed::{self, NO_TIMES, without};
use crate::waits::waits_table;
use crate::{calls, clusters, ended, hist, levels, logical, spread, why, window};

/// A trace and what is found in it.
pub(super) struct Told {
    pub(super) program: String,
    pub(super) lacks: Vec<String>,
    /// What is said where exact times are needed and are not there.
    pub(super) without: String,
    summary: Table,
    findings: Option<(Table, Vec<Finding>)>,
    pub(super) waits: Option<Table>,
    pub(super) efficiency: Option<Table>,
    pub(super) ranks: Table,
    /// Functions, and call sites.
    pub(super) calls: Option<[Table; 2]>,
    /// How calls of each site are spread.
    spread: Option<Table>,
    pub(super) matrix: Option<Matrix>,
    pub(super) sections: Vec<(Section, Profile)>,
    pub(super) analysis: Option<Analysis>,
    /// Whom the rows of a timeline may be, beside ranks.
    nodes: RankGroups,
    clusters: Option<RankGroups>,
    /// Where the critical path is when.
    path: Vec<Stay>,
    places: Vec<(String, Option<u32>)>,
    /// Where the run begins by the times that `st-stat at` takes, ns.
    pub(super) origin: i64,
    /// Iterations and phases.
    cuts: Option<Cuts>,
    /// From when to when single calls are asked for, ns from the beginning of the run.
    pub(super) windows: Vec<(i64, i64)>,
    /// How much work is done.
    pub(super) steps: Steps,
}

/// What a part comes to that takes more steps than are allowed, or cannot be told of such a trace: nothing, and why.
pub(super) fn unless_too_long<T>(
    result: Result<T>,
    what: &str,
    lacks: &mut Vec<String>,
) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.is::<Exceeded>() || e.is::<Unknown>() => {
            lacks.push(format!("{what}: {e}"));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

fn profiles(sections: &[Section], steps: &Steps) -> Result<Vec<Profile>> {
    let budget = steps.budget();
    for section in sections {
        // What all take is counted before it is refused.
        let _ = Profile::pay(section, &budget);
    }
    budget.check()?;
    Profile::of_all(sections, &budget)
}

impl Told {
    /// All that is told of a trace.
    ///
    /// # Errors
    ///
    /// If calls cannot be read back, or a window is asked for that the run does not have.
    pub(super) fn of(
        mut explained: Explained,
        sites: &CallSites,
        running: &Running,
        windows: &[(f64, f64)],
        steps: &Steps,
    ) -> Result<Self> {
        let mut lacks = lacking(&explained);
        let (mut findings, mut waits, mut efficiency) = (None, None, None);
        if let Some(told) = explained.told() {
            let found = why::findings(&explained, told, false);
            findings = Some((why::table(&explained, told, sites, &found), found));
            waits = Some(waits_table(WaitsBy::Kind, &explained, told, sites));
            efficiency = Some(efficiency_table(&explained, told));
        }
        let ranks = ranks_table(&explained);
        let places = explained.told().map_or(0, |told| told.places().len());
        let places = (0..places).map(|n| explained.place(narrow(n), sites)).collect();
        let (origin, windows) = window::asked(&explained, windows)?;
        let cuts = match &explained.analysis {
            Some(analysis) => {
                let cuts = Cuts::of(&explained, sites, analysis, steps);
                unless_too_long(cuts, "iterations and phases are not shown", &mut lacks)?
            }
            None => None,
        };
        let matrix = matrix::flows(&explained.sections, &steps.budget());
        let matrix = unless_too_long(matrix, "who talks to whom is not shown", &mut lacks)?;
        let matrix = matrix.map(|flows| Matrix::of_ranks(&explained.sections, &flows));
        let profiles = profiles(&explained.sections, steps);
        let profiles = unless_too_long(profiles, "calls and bytes per call site are not shown", &mut lacks)?;
        let spread = hist::gathered(&explained.sections, sites, |_, _| true, &steps.budget());
        let spread = spread.map(|(all, _)| spread::table(&all, sites));
        let spread = unless_too_long(spread, "distributions of call sites are not shown", &mut lacks)?;
        let nodes = RankGroups::nodes(&explained.sections);
        let stored = stored_clusters(&explained, &steps.budget());
        let clusters = unless_too_long(stored, "clusters are no rows", &mut lacks)?.flatten();
        let (known, whole) = (profiles.is_some(), &explained.whole);
        let profiles =
            profiles.unwrap_or_default().into_iter().chain(std::iter::repeat_with(Profile::default));
        let sections: Vec<_> = std::mem::take(&mut explained.sections).into_iter().zip(profiles).collect();
        let ended = ended::sentences(sections.iter().map(|(s, _)| s), sites, running);
        lacks.extend(ended.iter().map(|place| place.chars().take(SENTENCE).collect()));
        let facts = match known {
            true => Facts::of(&whole.header, whole.complete, whole.bytes, &sections, sites, running),
            false => Facts::brief(&whole.header, whole.complete, &sections),
        };
        let calls = known.then(|| [calls::functions(&sections), calls::sites(&sections, false, sites)]);
        Ok(Self {
            program: whole.header.command(),
            without: explained.too_long.map_or_else(|| without(NO_TIMES, &whole.header), too_long),
            lacks,
            summary: facts.table(),
            findings,
            waits,
            efficiency,
            ranks,
            calls,
            spread,
            matrix,
            sections,
            nodes,
            clusters,
            origin,
            path: explained.analysis.as_ref().map(|analysis| analysis.path().stays).unwrap_or_default(),
            analysis: explained.analysis,
            places,
            cuts,
            windows,
            steps: *steps,
        })
    }

    /// How long the run is as far as it is there, ns; if that is known.
    pub(super) fn reaches(&self) -> Option<u64> {
        self.analysis.as_ref().map(|analysis| saturate(analysis.run()))
    }

    /// What fits into the room.
    pub(super) fn report(&self, sites: &CallSites, room: Room) -> Result<Report> {
        let mut report = Report::new(self.program.clone(), &self.summary, ranks::columns(&self.ranks, room));
        report.lacks.clone_from(&self.lacks);
        let all = |table: &Table| Columns::of(table, room.sites, room.texts);
        report.findings = self.findings.as_ref().map(|(table, _)| all(table));
        report.waits = self.waits.as_ref().map(all);
        report.efficiency = self.efficiency.as_ref().map(all);
        if let Some([functions, places]) = &self.calls {
            report.functions = Some(all(functions));
            report.sites = Some(all(places));
            report.stacks = Some(stacks::of(places, sites, room));
        }
        report.spread = self.spread.as_ref().map(all);
        report.matrix = self.matrix.as_ref().map(|matrix| pairs::matrix(matrix, room));
        report.grid_width = grid_width(self.sections.iter().map(|(s, _)| s), self.ranks.rows.len());
        report.structure = structure::all(&self.sections, sites, room);
        if let Some(cuts) = &self.cuts {
            [report.iterations, report.phases] = cuts.tables(room);
            report.bands = cuts.bands(sites, room);
        }
        report.timeline = self.analysis.as_ref().map(|a| self.timeline(a, sites, room)).transpose()?;
        if self.analysis.is_none() {
            let logical = self.logical(sites, room.logical());
            let logical = unless_too_long(logical, "logical time is not shown", &mut report.lacks)?;
            report.logical = logical.filter(|of| !of.rows.is_empty()).map(|of| LogicalTime {
                told: of.told(),
                timed: of.timed,
                boxes: Columns::of(&of.table(sites), usize::MAX, room.texts),
            });
        }
        Ok(report)
    }

    /// What ranks do in logical time.
    pub(super) fn logical(&self, sites: &CallSites, most: logical::Most) -> Result<Logical> {
        let sections: Vec<&Section> = self.sections.iter().map(|(section, _)| section).collect();
        Logical::of(&sections, sites, most, &self.steps.budget())
    }

    fn timeline(&self, analysis: &Analysis, sites: &CallSites, room: Room) -> Result<Timeline> {
        let findings = self.findings.as_ref().map_or(&[][..], |(_, found)| found);
        let spots = spots::of(analysis, findings);
        let windows = detail::windows(analysis, &self.windows, &spots, room)?;
        let mut named = vec![false; self.places.len()];
        let calls = windows.iter().flat_map(|w| &w.lanes).flat_map(|lane| lane.calls.chunks(3));
        for number in calls.filter_map(|call| usize::try_from(*call.first()?).ok()) {
            named.iter_mut().skip(number).take(1).for_each(|is| *is = true);
        }
        // Places of calls that are not there need no names.
        let place = |((function, site), named): (&(String, Option<u32>), &bool)| match named {
            false => CallPlace { function: String::new(), site: None, place: String::new() },
            true => CallPlace {
                function: function.clone(),
                site: *site,
                place: site.map_or_else(String::new, |site| sites.place(site).to_owned()),
            },
        };
        let most = Most { columns: columns(analysis), ..room.levels() };
        let levels = levels::of(analysis, most);
        let fits = self.path.len() <= room.stays;
        let stays = self.path.iter().filter(|_| fits);
        Ok(Timeline {
            path: stays.flat_map(|stay| [stay.rank.into(), stay.until.saturating_sub(stay.from)]).collect(),
            path_more: if fits { 0 } else { self.path.len() },
            run_ns: saturate(analysis.run()),
            origin_ns: self.origin,
            places: self.places.iter().zip(&named).map(place).collect(),
            extremes: extremes::levels(analysis, findings, most),
            fine: extremes::fine(analysis, levels.group, most),
            levels,
            nodes: groups::of(analysis, self.nodes.clone(), most),
            clusters: self.clusters.clone().and_then(|clusters| groups::of(analysis, clusters, most)),
            windows,
            spots,
        })
    }
}

/// Columns of the timeline at least and at most, and for each call of the rank that makes most.
const COLUMNS: (usize, usize) = (512, 4096);
const EACH: usize = 8;

/// As many columns as there is something to see in: calls that are few are there one by one.
fn columns(analysis: &Analysis) -> usize {
    let calls = analysis.threads().map(|thread| thread.calls().take(COLUMNS.1).count()).max();
    calls.unwrap_or(0).saturating_mul(EACH).clamp(COLUMNS.0, COLUMNS.1)
}

/// The clusters that the trace has, if ranks have been put together: those of single ranks are not looked for.
fn stored_clusters(explained: &Explained, budget: &Budget) -> Result<Option<RankGroups>> {
    let Explained { sections, whole, .. } = explained;
    if sections.iter().all(|section| section.ranks.len() == 1) {
        return Ok(None);
    }
    sections.iter().try_for_each(|section| budget.spend_ranks(section))?;
    Ok(Some(RankGroups::clusters(sections, clusters::by_asked(&whole.provenance))))
}

/// What is said where there are so many calls that waits are not looked for.
fn too_long(exceeded: Exceeded) -> String {
    format!(
        "there are no findings, no waits and no timeline but in logical time, only sums of the whole run: {exceeded}"
    )
}

/// Characters of names in a sentence, at most.
const SENTENCE: usize = 200;

/// What is not there, in sentences.
fn lacking(explained: &Explained) -> Vec<String> {
    let (whole, mut lacks) = (&explained.whole, Vec::new());
    if !whole.complete {
        lacks.push("the trace is truncated: this is what is whole of it".to_owned());
    }
    if !whole.doubt.is_empty() {
        lacks.push(whole.doubt.clone());
    }
    let missing = whole.missing();
    if !missing.is_empty() {
        let which: String = st_model::ranklist_notation::plain(&missing).chars().take(SENTENCE).collect();
        lacks.push(format!(
            "{} of {} are missing: {which}",
            grouped(missing.len()),
            counted(whole.header.world.into(), "rank")
        ));
    }
    if explained.kept.is_some() {
        lacks.push(
            "exact times have been folded: the timeline is in logical time, costs of findings are exact, parts of ranks right to 4.5 % \
             where few differ, else means of many ranks (st-merge --keep-columns keeps times)"
                .to_owned(),
        );
    } else if let Some(exceeded) = explained.too_long {
        lacks.push(too_long(exceeded));
    } else if explained.sections.iter().any(|s| s.has_times() && s.histograms().next().is_some()) {
        lacks.push(format!(
            "there are no findings and no waits, and the timeline is in logical time: {HISTOGRAMS}"
        ));
    } else if explained.analysis.is_none() {
        let why = untimed::why(&whole.header).unwrap_or_else(|| "record without --merge".to_owned());
        lacks.push(format!(
            "the trace holds no exact times: there are no findings and no waits, and the timeline is in logical time ({why})"
        ));
    }
    if let Some(told) = explained.told() {
        lacks.extend(left_out(told, &whole.header.clock).map(|(n, what)| format!("{} {what}", grouped(n))));
    }
    lacks
}
