//! What must be known before the first call is made: can this trace be replayed here at all?

use std::collections::{BTreeMap, BTreeSet};

use st_cli::counted;
use st_model::calls::CallTable;
use st_model::header::Header;
use st_model::project::Error;
use st_model::ranklist::RankList;
use st_model::section::{Section, Symbol};

use crate::check::Verdict;
use crate::factor::Factor;
use crate::scaling::Scaling;
use crate::supported::{Refused, Where, is_of_tools, is_suspect, name_of, needs_files, refusal};
use crate::threads::Threads;

/// Name of the pseudo call under which calls of further threads are listed.
pub const OTHER_THREADS: &str = "calls of threads other than the first";

/// What is said behind the names of functions whose calls have numbers that do not fit.
pub const WIDE: &str = "with more than a C int holds";

/// A function that is recorded but cannot be replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// MPI's name.
    pub name: String,
    /// Number of events, all ranks.
    pub calls: u64,
}

/// What is gathered over the sections of a trace.
#[derive(Clone, Debug, Default)]
pub struct Preflight {
    here: Where,
    factor: Option<Factor>,
    /// Functions that a replay makes calls of.
    functions: BTreeSet<String>,
    left_out_files: bool,
    unsupported: BTreeMap<String, u64>,
    /// Calls that a replay does without, whatever was asked for.
    ignored: BTreeMap<String, u64>,
    ranks: RankList,
    histograms: bool,
    /// Whether there are ranks with several threads, or ones that did not come to their end.
    threads: bool,
    ended: bool,
    /// Whether it is not known of drawn times which ranks were slow together.
    unknown_order: bool,
    verdict: Verdict,
}

impl Preflight {
    /// Nothing seen yet of a replay here, with messages scaled by a factor.
    #[must_use]
    pub fn new(here: Where, scale_bytes: Option<Factor>) -> Self {
        Self { here, factor: scale_bytes, ..Self::default() }
    }

    /// Functions that a replay makes calls of, where the MPI has them.
    #[must_use]
    pub fn functions(&self) -> &BTreeSet<String> {
        &self.functions
    }

    /// Looks at a section.
    /// *Cost:* one pass over its calls if it has unsupported or enlarged ones or threads, else its symbols.
    ///
    /// # Errors
    ///
    /// If the section is malformed.
    pub fn see(&mut self, section: &Section) -> Result<(), Error> {
        self.ranks = self.ranks.union(&section.ranks);
        self.histograms |= section.histograms().next().is_some();
        self.threads |= section.threads.len() > 1;
        self.ended |= !section.ended.is_empty();
        self.unknown_order |= st_model::unknown_order::is_unknown(section);
        self.left_out_files |= !self.here.files && section.symbols.iter().any(needs_files);
        let row = |s: &Symbol| CallTable::builtin().get(s.call).filter(|_| s.error == 0);
        self.functions.extend(section.symbols.iter().filter_map(row).map(|row| row.base().to_owned()));
        let Self { here, unsupported, ignored, .. } = self;
        let scaling = Scaling::new(section, self.factor.unwrap_or(Factor::ONE));
        let refused: Vec<bool> = section.symbols.iter().map(|s| here.refuses(s)).collect();
        let suspect = |(sym, s)| refused[sym as usize] || is_suspect(s, scaling.enlarges(sym));
        let suspect: Vec<bool> = (0..).zip(&section.symbols).map(suspect).collect();
        let mut count = |name: String| *unsupported.entry(name).or_insert(0) += 1;
        for (index, thread) in section.threads.iter().enumerate() {
            for rank in thread.ranks.iter() {
                let left_out_thread = index > 0 && Threads::of(section, rank)?.is_none();
                if !left_out_thread && !suspect.contains(&true) {
                    continue;
                }
                let Some(mut calls) = section.project(index, rank) else { continue };
                let mut words = Vec::new();
                while let Some(sym) = calls.next_call(&mut words)? {
                    if left_out_thread {
                        count(OTHER_THREADS.into());
                    } else if suspect.get(sym as usize) == Some(&true) {
                        let symbol = &section.symbols[sym as usize];
                        scaling.apply(sym, &mut words);
                        let own = || refusal(symbol, &words);
                        let why = if refused[sym as usize] { Some(Refused::Itself) } else { own() };
                        let name = || name_of(symbol, &section.tables);
                        match why {
                            None => {}
                            Some(Refused::Itself) if is_of_tools(symbol, &section.tables) => {
                                *ignored.entry(name()).or_insert(0) += 1;
                            }
                            Some(Refused::Itself) => count(name()),
                            Some(Refused::Wide) => count(format!("{} {WIDE}", name())),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The unsupported calls seen, ordered by name.
    #[must_use]
    pub fn unsupported(&self) -> Vec<Unsupported> {
        named(&self.unsupported)
    }

    /// The calls seen of the tools' interface, ordered by name: a replay leaves them out unasked.
    #[must_use]
    pub fn ignored(&self) -> Vec<Unsupported> {
        named(&self.ignored)
    }

    /// Keeps what the check of the whole trace found, if there was one.
    pub fn judged(&mut self, verdict: Option<Verdict>) {
        self.verdict = verdict.unwrap_or_default();
    }

    /// What the check found; nothing if there was none.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether calls are left out only because there is no place for files.
    #[must_use]
    pub fn leaves_out_files(&self) -> bool {
        self.left_out_files
    }

    /// Whether parameters are histograms: what is read back is drawn, and sends need not match receives.
    #[must_use]
    pub fn has_histograms(&self) -> bool {
        self.histograms
    }

    /// Whether times are drawn, and it is not known which ranks were slow together.
    #[must_use]
    pub fn has_unknown_order(&self) -> bool {
        self.unknown_order
    }

    /// Whether there are ranks with several threads.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        self.threads
    }

    /// Why messages cannot be drawn, if they cannot.
    #[must_use]
    pub fn undrawable(&self) -> Option<&'static str> {
        match (self.threads, self.ended) {
            (true, _) => Some("ranks have several threads"),
            (_, true) => Some("ranks did not come to their end"),
            _ => None,
        }
    }

    /// Number of ranks to start: the world's size by the header, or by the highest rank if the header does not say.
    #[must_use]
    pub fn world(&self, header: &Header) -> u32 {
        if header.world > 0 { header.world } else { self.ranks.highest().map_or(0, |r| r.saturating_add(1)) }
    }

    /// Ranks of a world of this size that the trace does not hold.
    #[must_use]
    pub fn missing(&self, world: u32) -> RankList {
        self.ranks.others(world)
    }
}

fn named(calls: &BTreeMap<String, u64>) -> Vec<Unsupported> {
    calls.iter().map(|(name, &calls)| Unsupported { name: name.clone(), calls }).collect()
}

/// One line for people: `2 calls cannot be replayed: MPI_Put (10), MPI_Win_create (2)`.
#[must_use]
pub fn summary(unsupported: &[Unsupported]) -> String {
    let calls: u64 = unsupported.iter().map(|u| u.calls).sum();
    let names: Vec<String> = unsupported.iter().map(|u| format!("{} ({})", u.name, u.calls)).collect();
    format!("{} cannot be replayed: {}", counted(calls, "call"), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallTable;

    fn section(rank: u32, calls: &[(&str, u32)]) -> Section {
        let mut recorder = RankRecorder::new(rank, Options::default());
        let thread = recorder.open_thread(0);
        let site = recorder.sites.stack(Vec::new());
        for (name, error) in calls {
            let call = CallTable::builtin().by_name(name).map(|row| row.id);
            let call = call.unwrap_or_else(|| recorder.unknown_call(name));
            let sym = recorder.symbol(call, site, *error);
            recorder.record(thread, sym, &[], 0, 0);
        }
        recorder.finish("host")
    }

    #[test]
    fn unsupported_calls_are_counted_and_missing_ranks_named() {
        let mut preflight = Preflight::default();
        preflight
            .see(&section(
                0,
                &[("MPI_Init", 0), ("MPI_New_thing", 0), ("MPI_File_sync", 0), ("MPI_File_sync", 0)],
            ))
            .unwrap();
        preflight
            .see(&section(
                2,
                &[
                    ("MPI_Init", 0),
                    ("MPI_T_cvar_get_num", 0),
                    ("MPI_File_sync", 0),
                    ("MPI_File_sync", 9),
                    ("MPI_Info_set", 0),
                ],
            ))
            .unwrap();
        let found = preflight.unsupported();
        assert_eq!(summary(&found), "4 calls cannot be replayed: MPI_File_sync (3), MPI_New_thing (1)");
        assert_eq!(preflight.ignored(), [Unsupported { name: "MPI_T_cvar_get_num".into(), calls: 1 }]);
        assert_eq!(preflight.world(&Header::default()), 3);
        assert_eq!(preflight.world(&Header { world: 4, ..Header::default() }), 4);
        assert_eq!(preflight.missing(4).iter().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn what_is_too_large_or_not_there_is_counted() {
        let mut recorder = RankRecorder::new(0, Options::default());
        let (thread, site) = (recorder.open_thread(0), recorder.sites.stack(Vec::new()));
        // count type dest tag comm; partition request
        let calls: [(&str, &[i64]); 4] = [
            ("MPI_Send_c", &[2_200_000_000, 0, 1, 0, 0]),
            ("MPI_Send_c", &[2, 0, 1, 0, 0]),
            ("MPI_Pready", &[0, 0]),
            ("MPI_Send", &[3000, 0, 1, 0, 0]),
        ];
        for (name, words) in calls {
            let sym = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
            recorder.record(thread, sym, words, 0, 0);
        }
        let section = recorder.finish("host");
        let here = Where { lacking: HashSet::from(["MPI_Pready".to_owned()]), ..Where::default() };
        let seen = |factor: Option<&str>| {
            let mut preflight = Preflight::new(here.clone(), factor.map(|f| f.parse().unwrap()));
            preflight.see(&section).unwrap();
            preflight
        };
        let preflight = seen(None);
        let found = summary(&preflight.unsupported());
        assert_eq!(
            found,
            "2 calls cannot be replayed: MPI_Pready (1), MPI_Send_c with more than a C int holds (1)"
        );
        assert!(preflight.functions().contains("MPI_Send"));
        // As they are replayed.
        assert_eq!(seen(Some("0.5")).unsupported().len(), 1);
        let larger = summary(&seen(Some("1000000")).unsupported());
        assert!(larger.contains("MPI_Send with more than a C int holds (1)"), "{larger}");
        assert!(larger.contains("MPI_Send_c with more than a C int holds (1)"), "{larger}");
    }
}
