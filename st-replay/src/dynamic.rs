//! What a rank does with its dynamic windows, known before it makes them.

use st_model::num::narrow;
use std::collections::HashMap;

use st_model::calls::words::find;
use st_model::calls::{CallTable, Kind, Meaning, Object};
use st_model::project::Error;
use st_model::section::Section;

/// What a rank does with one dynamic window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Sum of what it attaches, in bytes, rounded up to 16 each.
    pub bytes: i64,
    /// By target the lowest of the displacements that it names, relative to the first that it names.
    pub lowest: HashMap<i64, i64>,
}

/// What a rank's calls on all its threads do, by the index of the window.
/// *Cost:* one pass over the rank's calls if it makes dynamic windows, else a look at the symbols.
///
/// # Errors
///
/// If the trace is malformed.
pub fn used(section: &Section, rank: u32) -> Result<HashMap<i64, Used>, Error> {
    let row = |sym: &u32| CallTable::builtin().get(section.symbols.get(*sym as usize)?.call);
    let mut all: HashMap<i64, Used> = HashMap::new();
    let symbols = 0..narrow(section.symbols.len());
    if !symbols.filter_map(|s| row(&s)).any(|row| row.kind == Kind::WinAttach) {
        return Ok(all);
    }
    for thread in 0..section.threads.len() {
        let Some(mut calls) = section.project(thread, rank) else { continue };
        let mut words = Vec::new();
        while let Some(sym) = calls.next_call(&mut words)? {
            let Some(row) = row(&sym) else { continue };
            let value = |name| find(row, &words, |s| s.name == name).first().copied();
            let win = find(row, &words, |s| s.meaning == Meaning::Ref(Object::Win)).first().copied();
            let Some(win) = win else { continue };
            if row.kind == Kind::WinAttach {
                let size = value("size").unwrap_or(0).max(0).saturating_add(15) & !15;
                let used = all.entry(win).or_default();
                used.bytes = used.bytes.saturating_add(size);
            } else if let (Some(target), Some(disp)) = (value("target"), value("targetdisp")) {
                let lowest = all.entry(win).or_default().lowest.entry(target).or_insert(disp);
                *lowest = disp.min(*lowest);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};

    #[test]
    fn attached_bytes_are_summed_and_the_lowest_displacement_found() {
        let mut recorder = RankRecorder::new(0, Options::default());
        let thread = recorder.open_thread(0);
        let site = recorder.sites.stack(Vec::new());
        let calls: [(&str, &[i64]); 5] = [
            ("MPI_Win_attach", &[3, 100]),
            ("MPI_Win_attach", &[3, 16]),
            // origincount origintype target targetdisp targetcount targettype win
            ("MPI_Put", &[1, 0, 2, 0, 1, 0, 3]),
            ("MPI_Put", &[1, 0, 2, -24, 1, 0, 3]),
            ("MPI_Put", &[1, 0, 1, 8, 1, 0, 4]),
        ];
        for (name, words) in calls {
            let sym = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
            recorder.record(thread, sym, words, 0, 0);
        }
        let used = used(&recorder.finish("host"), 0).unwrap();
        assert_eq!(used[&3], Used { bytes: 128, lowest: HashMap::from([(2, -24)]) });
        assert_eq!(used[&4].lowest[&1], 8);
    }
}
