//! The numbers of findings' words, as columns.

use st_cli::counted;
use st_explain::{Excess, Few, Finding, Matter};
use st_model::num::{Exact as _, saturate};

use super::words::Words;
use crate::causes::Cause;
use crate::table::{Cell, Column};

/// The part of the most that is due to one rank by which those that are alike differ at most: parts are kept to 4.5 %.
const ALIKE: u64 = 20;

/// Columns behind those that say what and where.
pub(super) const NUMBERS: [Column; 20] = [
    Column::right("site", "site", 0),
    Column::right("of cause", "place_site", 0),
    Column::left("for", "for_place"),
    Column::right("site of it", "for_site", 0),
    Column::left("most for", "most_for_ranks"),
    Column::right("for these", "most_for_percent", 0),
    Column::right("few waits", "few_waits", 0),
    Column::right("of calls", "few_of_calls", 0),
    Column::right("in these", "few_percent", 0),
    Column::right("times", "times", 0),
    Column::right("a time", "each_ns", 0),
    Column::right("moved", "moved_bytes", 0),
    Column::right("by rank and second", "bytes_per_second", 0),
    Column::right("longer", "longer_ns", 0),
    Column::right("ranks with noise", "noise_ranks", 0),
    Column::right("operations", "operations", 0),
    Column::right("ranks of a node", "node_ranks", 0),
    Column::right("processors", "processors", 0),
    Column::right("had none for", "without_processor_ns", 0),
    Column::tail("told", "told"),
];

impl Words<'_> {
    /// Their cells.
    pub(super) fn numbers(&self, f: &Finding, cause: Option<&Cause>, few: Option<Few>) -> Vec<Cell> {
        let count = |n: Option<u64>| n.map_or_else(Cell::none, Cell::count);
        let ns = |n: Option<u64>| n.map_or_else(Cell::none, |n| Cell::ns(n.into()));
        let bytes = |n: Option<u64>| n.map_or_else(Cell::none, |n| Cell::bytes(n.into()));
        let part = |n: Option<u64>| {
            n.map_or_else(Cell::none, |n| Cell::percent(n.min(f.cost).into(), f.cost.into()))
        };
        let site = |place: Option<u32>| {
            count(place.and_then(|n| self.explained.place(n, self.sites).1.map(u64::from)))
        };
        let late = Self::waited_for(f);
        let most = Self::most_for(f);
        let ranks = most.as_ref().map_or_else(Cell::none, |(ranks, _)| {
            Cell::text(ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
        });
        let [node_ranks, processors] = match f.matter {
            Matter::Crowded { ranks, processors } => [Some(ranks), Some(processors.into())],
            _ => [None, None],
        };
        let lacked = matches!(f.matter, Matter::Crowded { .. } | Matter::Queued).then(|| self.queued());
        let moved = matches!(f.matter, Matter::Bandwidth | Matter::Files) && f.bytes > 0;
        let longer = f.noise.map(|noise| noise.ns).or_else(|| self.makes_late(f).map(|excess| excess.ns));
        vec![
            site(Some(f.place)),
            site(cause.map(|cause| cause.place)),
            late.map_or_else(Cell::none, |place| Cell::text(self.place(place))),
            site(late),
            ranks,
            part(most.map(|(_, ns)| ns)),
            count(few.map(|few| few.waits)),
            count(few.map(|few| few.calls)),
            part(few.map(|few| few.ns)),
            Cell::count(f.noise.map_or(f.count, |noise| noise.times)),
            ns(Self::each(f)),
            bytes(moved.then_some(f.bytes)),
            bytes(moved.then(|| Self::rate(f))),
            ns(longer),
            count(f.noise.map(|noise| noise.ranks)),
            count(f.noise.map(|noise| noise.of)),
            count(node_ranks),
            count(processors),
            ns(lacked),
            Cell::text(self.at(f, cause, few)),
        ]
    }

    /// The place of those that are waited for, where it is told apart.
    pub(super) fn waited_for(f: &Finding) -> Option<u32> {
        let alone = f.parts == 1 && f.matter != Matter::SlowRank;
        f.culprits.first().filter(|(at, _)| alone && at.place != f.place).map(|(at, _)| at.place)
    }

    /// For whom most of a wait is, and how long, if that is not all of it.
    pub(super) fn most_for(f: &Finding) -> Option<(Vec<u32>, u64)> {
        let (_, most) = f.culprits.first().filter(|(_, most)| *most > 0 && *most < f.cost)?;
        if !matches!(f.matter, Matter::Wait(_) | Matter::Polling) {
            return None;
        }
        let alike = f.culprits.iter().filter(|(_, ns)| most - ns <= most / ALIKE);
        let ns = alike.clone().map(|(_, ns)| *ns).fold(0, u64::saturating_add).min(f.cost);
        let mut whom: Vec<u32> = alike.map(|(at, _)| at.rank).collect();
        whom.sort_unstable();
        whom.dedup();
        Some((whom, ns))
    }

    /// How long a call takes, where calls' own time is the matter.
    pub(super) fn each(f: &Finding) -> Option<u64> {
        let moves = f.matter == Matter::Bandwidth && f.bytes > 0;
        let own = matches!(f.matter, Matter::Latency | Matter::OneSided | Matter::Inside | Matter::Files);
        (moves || own).then(|| f.cost / f.count.max(1))
    }

    /// Bytes that a rank moves in a second of such a call.
    pub(super) fn rate(f: &Finding) -> u64 {
        saturate(u128::from(f.bytes) * 1_000_000_000 / u128::from(f.cost.max(1)))
    }

    /// How long ranks were ready to run and had no processor, ns; 0 where that is not known.
    pub(super) fn queued(&self) -> u64 {
        self.explained.queued.unwrap_or_default().ns
    }

    /// Ranks end late, or what others test for comes late, since they compute so much longer before that: by half of it at least.
    pub(super) fn makes_late(&self, f: &Finding) -> Option<Excess> {
        if f.matter == Matter::Polling {
            let waiting = f.victims.len().to_u64();
            return f.excess.filter(|excess| excess.ns.saturating_mul(waiting).saturating_mul(2) >= f.cost);
        }
        let excess = Some(f).filter(|f| f.matter == Matter::LateEnd).and_then(|f| self.excess(f))?;
        let early = self.told.ranks().saturating_sub(f.culprits.len().to_u64());
        (excess.ns.saturating_mul(early).saturating_mul(2) >= f.cost).then_some(excess)
    }

    /// Where the ranks run, if they are too many.
    pub(super) fn processors(&self) -> String {
        let few = |(_, processors): (u64, u32)| format!(" on {}", counted(processors.into(), "processor"));
        self.explained.crowded.map_or_else(String::new, few)
    }
}
