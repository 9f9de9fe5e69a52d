//! Findings as a table.

use st_explain::{Few, Finding, Matter};
use st_model::num::Exact as _;

use super::numbers::NUMBERS;
use super::words::Words;
use crate::calls::site_cells;
use crate::causes::{Cause, activity};
use crate::table::{Cell, Column, Table, grouped};

impl Words<'_> {
    /// What a finding is called.
    fn kind(&self, f: &Finding) -> &'static str {
        match f.matter {
            Matter::Wait(_) if f.noise.is_some() => "noise",
            Matter::Wait(kind) => kind.name(),
            Matter::Polling => "polling",
            Matter::Latency => "latency",
            Matter::Bandwidth => "bandwidth",
            Matter::Files => "files",
            Matter::OneSided => "one-sided",
            Matter::Inside => "MPI itself",
            Matter::LeakedRequests => "leaked requests",
            Matter::LeakedObjects => "leaked objects",
            Matter::Crowded { .. } => "crowded",
            Matter::Queued => "no processor",
            Matter::Paused => "recording paused",
            Matter::SlowRank if self.nodes(&Self::culprits(f)).is_empty() => "slow rank",
            Matter::SlowRank => "slow node",
            Matter::Serialised => "serialised",
            Matter::LateEnd => "late end",
        }
    }

    /// Findings, one a row.
    pub(super) fn table(&self, findings: &[Finding]) -> Table {
        let first = [
            Column::left("kind", "kind"),
            Column::right("cost", "cost_ns", 0),
            Column::right("share", "share_percent", 0),
            Column::left("ranks", "ranks"),
            Column::right("victims", "victims", 0),
            Column::left("what", "what"),
            Column::left("cause", "cause"),
            Column::left("of ranks", "cause_ranks"),
            Column::right("due to it", "cause_percent", 0),
            Column::tail("place", "place"),
            Column::tail("where", "where"),
            Column::right("sites", "sites", 0),
        ];
        let last = [Column::left("sure", "sure"), Column::left("share of", "share_of")];
        let columns = first.into_iter().chain(NUMBERS).chain(last).collect();
        let row = |((f, cause), few): ((&Finding, Option<&Cause>), Option<Few>)| {
            let excess = f.excess.map(|e| e.at.place);
            let culprit = cause.map(|c| c.place).or(excess).or(f.culprits.first().map(|(at, _)| at.place));
            let numbers = |ranks: &[u32]| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            let [what, of, part] = match cause {
                None => [Cell::none(), Cell::none(), Cell::none()],
                Some(c) => [
                    Cell::text(activity(self.explained, c.place, c.what)),
                    Cell::text(numbers(&c.ranks)),
                    Cell::percent(c.part[0].into(), c.part[1].into()),
                ],
            };
            let site = |number: u32, others: usize| {
                let (function, site) = self.explained.place(number, self.sites);
                let [_, place] = site_cells(site, self.sites);
                let at = format!("{function} {}", if site.is_some() { &place.text } else { "" });
                Cell::text(match others {
                    0 => at.trim_end().to_owned(),
                    n => format!("{} and {} others", at.trim_end(), grouped(n.to_u64())),
                })
            };
            let others = cause.map_or(0, |c| c.places.saturating_sub(1));
            let first = [
                Cell::text(self.kind(f)),
                Cell::ns(f.cost.into()),
                self.share(f),
                Cell::text(numbers(&Self::culprits(f))),
                Cell::count(match f.matter {
                    Matter::LateEnd => self.told.ranks().saturating_sub(f.culprits.len().to_u64()),
                    Matter::Wait(_) | Matter::SlowRank => Self::victims(f).len().to_u64(),
                    _ => f.victims.len().to_u64(),
                }),
                Cell::text(self.what(f, cause)),
                what,
                of,
                part,
                culprit.map_or_else(Cell::none, |place| site(place, others)),
                site(f.place, 0),
                Cell::count(f.places),
            ];
            let last = [Cell::text(self.sure(f)), Cell::text(self.base(f))];
            first.into_iter().chain(self.numbers(f, cause, few)).chain(last).collect()
        };
        let causes = self.causes.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let few = self.few.iter().copied().chain(std::iter::repeat(None));
        Table { columns, rows: findings.iter().zip(causes).zip(few).map(row).collect(), total: None }
    }
}
