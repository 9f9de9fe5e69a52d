//! Phases of MPI_Pcontrol: which calls are in one.

use crate::common::Made;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::section::Section;

/// A rank's calls, each of 10 ns and 100 ns after the one before.
pub(crate) fn rank(calls: &[(&str, &str, &[i64])]) -> Section {
    let mut recorder = RankRecorder::new(0, Options::default());
    recorder.open_thread(0);
    let mut column = Column::default();
    for ((name, place, words), now) in calls.iter().zip((0..).step_by(100)) {
        let site = recorder.sites.label(place);
        let symbol = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        column.chunks.extend(recorder.record(0, symbol, words, now, now + 10).map(|chunk| *chunk));
    }
    column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
    let mut section = recorder.finish("host");
    section.threads[0].columns = vec![(0, column)];
    section
}

#[test]
fn a_phase_is_from_one_pcontrol_to_the_next() {
    let phase = |level: &'static [i64]| (names::MPI_Pcontrol, "phase", level);
    let made = Made::of(vec![rank(&[
        (names::MPI_Init, "main", &[]),
        (names::MPI_Barrier, "before", &[0]),
        phase(&[1]),
        (names::MPI_Barrier, "first", &[0]),
        phase(&[2]),
        (names::MPI_Barrier, "second", &[0]),
        phase(&[-1]),
        phase(&[1]),
        (names::MPI_Barrier, "third", &[0]),
        (names::MPI_Finalize, "main", &[]),
    ])]);
    let places = |words: &[&str]| {
        let (path, _) = made.convert(words);
        let mut reader = csv::Reader::from_path(path.join("sites.csv")).unwrap();
        let rows = reader.records().map(Result::unwrap);
        let sites: Vec<String> = rows.map(|row| row.get(2).unwrap().to_owned()).collect();
        let mut reader = csv::Reader::from_path(path.join("events.csv")).unwrap();
        let place = |row: csv::StringRecord| sites[row.get(4).unwrap().parse::<usize>().unwrap()].clone();
        reader.records().map(|row| place(row.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(places(&["-o", "1.csv", "--phase", "1"]), ["phase", "first", "phase", "third"]);
    assert_eq!(places(&["-o", "2.csv", "--phase", "2"]), ["phase", "second"]);
    assert_eq!(places(&["-o", "3.csv", "--phase", "-1"]), ["phase"]);
    let both = ["-o", "4.csv", "--phase", "1", "--sites", names::MPI_Pcontrol];
    assert_eq!(places(&both), ["phase", "phase"]);
    let refused = made.run(&["-o", "5.csv", "--phase", "5"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("--phase 5: there is none: MPI_Pcontrol is called with -1, 1, 2"), "{said}");
}
