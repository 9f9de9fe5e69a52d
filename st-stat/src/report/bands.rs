//! Iterations of the outermost loops, and phases: above the timeline, and as tables.

use anyhow::Result;
use st_cli::options::Steps;
use st_explain::{Analysis, Loop, Moment, PhasesBy};
use st_model::calls::{CallTable, names};
use st_model::num::{Exact as _, saturate};
use st_model::section::Section;
use st_model::sites::CallSites;

use super::data::{Band, Columns};
use super::room::Room;
use crate::explain::{Explained, pay};
use crate::phases::{Phases, TENTHS};
use crate::table::Table;

/// A loop, and the first call in it.
struct Known {
    of: Loop,
    function: String,
    site: Option<u32>,
}

/// What a run is cut into.
pub(super) struct Cuts {
    /// Those that are drawn: phases, then loops.
    known: Vec<Known>,
    /// When the run begins.
    begin: i64,
    /// A row each; of phases, if the program tells of any.
    loops: Table,
    phases: Option<Table>,
}

/// Whether a program tells of phases.
fn tells(sections: &[Section]) -> bool {
    let symbols = sections.iter().flat_map(|section| &section.symbols);
    let mut names = symbols.filter_map(|symbol| CallTable::builtin().get(symbol.call));
    names.any(|row| row.name == names::MPI_Pcontrol)
}

impl Cuts {
    /// Of a trace with exact times. *Cost:* O(calls).
    ///
    /// # Errors
    ///
    /// If that takes more steps than are allowed, or a rank cannot be read back.
    pub(super) fn of(
        explained: &Explained,
        sites: &CallSites,
        analysis: &Analysis,
        steps: &Steps,
    ) -> Result<Self> {
        let sections = &explained.sections;
        let tells = tells(sections);
        pay(&explained.whole, sections, steps, if tells { 4 } else { 2 })?;
        let mut known = Vec::new();
        let mut cut = |by| -> Result<Table> {
            let phases = Phases::of(by, sections, sites, analysis, &analysis.each)?;
            for of in phases.shown() {
                let (function, site) = phases.place(of);
                known.push(Known { of: of.clone(), function, site });
            }
            Ok(phases.table())
        };
        let phases = if tells { Some(cut(PhasesBy::Pcontrol)?) } else { None };
        let loops = cut(PhasesBy::Loop)?;
        Ok(Self { known, begin: analysis.begin(), loops, phases })
    }

    /// Tables of iterations and of phases, as `st-stat phases` prints them.
    pub(super) fn tables(&self, room: Room) -> [Option<Columns>; 2] {
        let held = |table: &Table| Columns::of(table, room.turns, room.texts);
        [Some(&self.loops).filter(|table| !table.rows.is_empty()), self.phases.as_ref()]
            .map(|table| table.map(held))
    }

    /// What is drawn above the timeline: where there are too many iterations, neighbours are one.
    pub(super) fn bands(&self, sites: &CallSites, room: Room) -> Vec<Band> {
        let most = room.turns / self.known.len().max(1);
        self.known.iter().map(|known| self.band(known, sites, most)).collect()
    }

    fn band(&self, Known { of, function, site }: &Known, sites: &CallSites, most: usize) -> Band {
        let moments = of.groups(most);
        let slow: Vec<u64> =
            of.outliers().iter().filter_map(|i| of.turns.get(*i)).map(|turn| turn.number).collect();
        let each = |of: &dyn Fn(&Moment) -> u64| moments.iter().map(of).collect::<Vec<u64>>();
        let since = |at: i64| saturate::<u64>(at.saturating_sub(self.begin));
        Band {
            level: of.level,
            function: function.clone(),
            site: *site,
            place: site.map_or_else(String::new, |site| sites.place(site).to_owned()),
            turns: of.turns.len(),
            trend: of.trend().filter(|_| of.turns.len() >= TENTHS),
            number: each(&|m| m.number),
            begin_ns: each(&|m| since(m.begin)),
            end_ns: each(&|m| since(m.end)),
            time_ns: each(&Moment::mean),
            longest_ns: each(&|m| m.longest.0),
            longest_rank: each(&|m| m.longest.1.into()),
            mpi_ns: each(&|m| m.mpi / m.ranks.max(1)),
            wait_ns: each(&|m| m.wait / m.ranks.max(1)),
            slow_more: slow.len().to_u64().saturating_sub(most.to_u64()),
            slow: slow.into_iter().take(most).collect(),
        }
    }
}
