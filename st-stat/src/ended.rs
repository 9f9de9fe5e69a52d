//! Where ranks ended that did not come to the end of their program.

use st_model::num::Exact;
use st_stream::directory::{JOURNAL, RankFile};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use st_model::ranklist::RankList;
use st_model::section::{Ended, NO_SYM, Section};
use st_model::sites::CallSites;

use crate::calls::called;
use crate::table::{grouped, named};

/// Places told at most.
const PLACES: usize = 8;

/// Ranks that ended at the same place.
struct Group {
    ranks: RankList,
    /// Fewest and most calls.
    calls: (u64, u64),
    text: String,
}

/// Ranks that have not come to the end of their program since they are still being recorded.
#[derive(Clone, Default, Debug)]
pub(crate) struct Running {
    /// By processes of this machine.
    here: BTreeSet<u32>,
    /// Perhaps, by processes of other machines.
    elsewhere: BTreeSet<u32>,
}

/// How a rank stands that has not come to the end of its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stands {
    /// It is no more.
    Ended,
    /// It still runs.
    Running,
    /// One or the other: its journal is another machine's.
    Unknown,
}

impl Stands {
    /// Each.
    pub(crate) const ALL: [Self; 3] = [Self::Ended, Self::Running, Self::Unknown];

    /// What is said of such ranks.
    pub(crate) fn called(self) -> &'static str {
        match self {
            Self::Ended => "ended early",
            Self::Running => "still running",
            Self::Unknown => "running or ended",
        }
    }
}

impl Running {
    /// By the journals that inputs are, or have in them.
    pub(crate) fn of<'a>(inputs: &[PathBuf], sections: impl Iterator<Item = &'a Section>) -> Self {
        let entries = |dir: &PathBuf| {
            fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let files =
            inputs.iter().flat_map(|path| if path.is_dir() { entries(path) } else { vec![path.clone()] });
        let (mut journals, mut here) = (BTreeSet::new(), BTreeSet::new());
        for path in files {
            let Some(file) = path.file_name().and_then(RankFile::of).filter(|file| file.ends == JOURNAL)
            else {
                continue;
            };
            journals.insert(file.rank);
            if file.is_in_use() {
                here.insert(file.rank);
            }
        }
        let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let elsewhere = away(&journals, sections, own.trim());
        here.retain(|rank| !elsewhere.contains(rank));
        Self { here, elsewhere }
    }

    /// How many run, or may.
    pub(crate) fn number(&self) -> u64 {
        (self.here.len() + self.elsewhere.len()).to_u64()
    }

    /// How many ranks have ended before their program did.
    pub(crate) fn ended(&self, sections: &[Section]) -> u64 {
        let all = sections.iter().flat_map(|section| &section.ended).map(|end| end.rank);
        all.filter(|rank| self.stands(*rank) == Stands::Ended).collect::<BTreeSet<_>>().len().to_u64()
    }

    /// How a rank stands.
    pub(crate) fn stands(&self, rank: u32) -> Stands {
        match () {
            () if self.here.contains(&rank) => Stands::Running,
            () if self.elsewhere.contains(&rank) => Stands::Unknown,
            () => Stands::Ended,
        }
    }
}

/// Those of these ranks that are on other machines than the one of this name, as far as it is known. *Cost:* near linear in ranks, of
/// which hosts have one each or all.
fn away<'a>(of: &BTreeSet<u32>, sections: impl Iterator<Item = &'a Section>, own: &str) -> BTreeSet<u32> {
    let mut away = BTreeSet::new();
    for (_, ranks) in sections.flat_map(|s| &s.hosts).filter(|(host, _)| host != own) {
        if ranks.len() < of.len().to_u64() {
            away.extend(ranks.iter().filter(|rank| of.contains(rank)));
        } else {
            away.extend(of.iter().filter(|rank| ranks.contains(**rank)));
        }
    }
    away
}

/// Lines like `rank 2 ends at call 151, MPI_Allreduce (site 7, main main.c:88)`: places of few ranks first, since those tell most. Of
/// ranks that stand so.
pub(crate) fn places<'a>(
    sections: impl Iterator<Item = &'a Section>,
    sites: &CallSites,
    running: &Running,
    stands: Stands,
) -> Vec<String> {
    let mut groups: BTreeMap<(u32, bool, String), Group> = BTreeMap::new();
    for section in sections {
        for e in section.ended.iter().filter(|e| running.stands(e.rank) == stands) {
            let inside = e.inside != NO_SYM;
            let at = if inside { e.inside } else { e.last };
            let call = e.calls + u64::from(inside);
            let text =
                section.symbols.get(at as usize).map(|s| called(section, s, sites)).unwrap_or_default();
            let group = groups.entry((e.thread, inside, text.clone())).or_insert_with(|| Group {
                ranks: RankList::default(),
                calls: (call, call),
                text: sentence(e, inside, &text, stands),
            });
            group.ranks.extend(&RankList::single(e.rank));
            group.calls = (group.calls.0.min(call), group.calls.1.max(call));
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|g| (g.ranks.len(), g.ranks.lowest()));
    let more = groups.len().saturating_sub(PLACES);
    let mut lines: Vec<_> = groups.iter().take(PLACES).map(|group| line(group, stands)).collect();
    if more > 0 {
        lines.push(format!("… and at {} more places", grouped(more.to_u64())));
    }
    lines
}

/// The same of all, each after how its ranks stand.
pub(crate) fn sentences<'a>(
    sections: impl Iterator<Item = &'a Section> + Clone,
    sites: &CallSites,
    running: &Running,
) -> Vec<String> {
    let told = |stands: Stands| {
        let places = places(sections.clone(), sites, running, stands).into_iter();
        places.map(move |place| format!("{}: {place}", stands.called()))
    };
    Stands::ALL.into_iter().flat_map(told).collect()
}

/// What stands behind the number of the call.
fn sentence(e: &Ended, inside: bool, text: &str, stands: Stands) -> String {
    let no = if stands == Stands::Ended { "did not" } else { "has yet to" };
    let thread = if e.thread == 0 { String::new() } else { format!(" (thread {})", e.thread) };
    match (inside, e.last) {
        (true, _) => format!(", {text}, which {no} return{thread}"),
        (false, NO_SYM) => thread.to_owned(),
        (false, _) => format!(", {text}{thread}"),
    }
}

fn line(g: &Group, stands: Stands) -> String {
    let (one, who) = (g.ranks.len() == 1, named(&g.ranks));
    let verb = match (stands == Stands::Ended, one) {
        (true, true) => "ends",
        (true, false) => "end",
        (false, true) => "is",
        (false, false) => "are",
    };
    let calls = match g.calls {
        (0, 0) => "before its first call".to_owned(),
        (a, b) if a == b => format!("at call {}", grouped(a)),
        (a, b) => format!("at calls {} to {}", grouped(a), grouped(b)),
    };
    format!("{who} {verb} {calls}{}", g.text)
}
