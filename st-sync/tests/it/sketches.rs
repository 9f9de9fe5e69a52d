//! Sketches and sums follow the corrected times.

use crate::cli::{load, said, save, sync};
use crate::program::Program;
use st_capture::record::{Options, RankRecorder};
use st_model::columns::{Column, Comparison, Offset};
use st_model::section::{PathSketch, Section, Thread};
use st_model::sketch::Shape;
use st_model::unite::one_path;
use st_stream::Trace;

/// Two ranks on two nodes that exchange messages; the second one's clock gains a tenth, as its comparisons say.
fn sections(shape: Shape) -> Vec<Section> {
    let options = Options { shape, ..Options::default() };
    let mut p = Program::with(&[0, 1], options);
    for i in 0..300 {
        let t = 1_000 * i;
        p.call(0, "MPI_Send", &[("count", 1.into()), ("dest", 1.into())], (t, t + 100 + i % 7));
        p.call(1, "MPI_Recv", &[("count", 1.into())], ((t + 300) * 11 / 10, (t + 700) * 11 / 10));
    }
    let mut sections = p.sections();
    let point = |true_time: i64| {
        let local = true_time * 11 / 10;
        Offset { local, offset: true_time - local, error: 1 }
    };
    let points = vec![point(0), point(1_000_000)];
    sections[1].threads[0].columns[0].1.clock = Comparison { points, near: 0, far: 0 };
    sections
}

/// What a recorder that read correct clocks would have: the calls again, with other times.
fn recorded(section: &Section, shape: Shape) -> Vec<PathSketch> {
    let rank = section.ranks.lowest().unwrap();
    let mut r = RankRecorder::new(rank, Options { shape, ..Options::default() });
    let thread = r.open_thread(0);
    for s in &section.symbols {
        r.symbol(s.call, s.site, s.error);
    }
    let mut times = section.threads[0].columns[0].1.times();
    let mut calls = section.project(0, rank).unwrap();
    let mut words = Vec::new();
    while let Some(sym) = calls.next_call(&mut words).unwrap() {
        let (enter, exit) = times.next().unwrap();
        r.record(thread, sym, &words, enter, exit);
    }
    r.finish("n").threads.remove(0).sketches
}

fn total(t: &Thread) -> u128 {
    t.sketches.iter().map(|s| s.compute.sum + s.comm.sum).sum()
}

fn corrected(sections: &[Section], args: &[&str]) -> (Trace, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    save(&path, sections.to_vec());
    let o = sync(args, Some(&path));
    assert!(o.status.success(), "{}", said(&o));
    (load(&o.stdout), said(&o))
}

#[test]
fn what_tells_no_paths_apart_stays_so() {
    let each = sections(Shape::Buckets);
    let mut one = each.clone();
    for thread in one.iter_mut().flat_map(|s| &mut s.threads) {
        thread.sketches = one_path(std::mem::take(&mut thread.sketches));
    }
    let [each, one] = [each, one].map(|sections| corrected(&sections, &["--method", "clc"]).0.sections);
    for (each, one) in each.iter().zip(one) {
        let paths = &each.threads[0].sketches;
        assert_eq!(one.threads[0].sketches, one_path(paths.clone()));
        assert_eq!(one.threads[0].sketches.len(), 2);
    }
}

#[test]
fn a_corrected_clock_makes_the_sketches_of_a_correct_one() {
    for shape in [Shape::Buckets, Shape::BINS, Shape::Totals] {
        let before = sections(shape);
        for method in ["linear", "clc"] {
            let (trace, note) = corrected(&before, &["--method", method]);
            assert!(!note.contains("as recorded"), "{note}");
            for (old, new) in before.iter().zip(&trace.sections) {
                assert_eq!(new.threads[0].sketches, recorded(new, shape), "{shape:?} {method}");
                let moved = old.ranks.contains(1);
                assert_eq!(total(&old.threads[0]) != total(&new.threads[0]), moved);
            }
            // A tenth less, give or take what was rounded.
            let (gained, correct) = (total(&before[1].threads[0]), total(&trace.sections[1].threads[0]));
            assert!((gained * 10 / 11).abs_diff(correct) < 20, "{gained} {correct}");
        }
        assert_eq!(corrected(&before, &["--method", "none"]).0.sections[1].threads, before[1].threads);
    }
}

#[test]
fn what_the_recorder_left_out_stays_left_out() {
    // Clocks were compared after every hundredth call, which took long.
    let mut r = RankRecorder::new(0, Options::default());
    let thread = r.open_thread(0);
    r.sites.label("program");
    let row = st_model::calls::CallTable::builtin().by_name("MPI_Barrier").unwrap();
    let sym = r.symbol(row.id, 0, 0);
    let (mut now, mut chunks) = (0, Vec::new());
    for i in 0..400 {
        chunks.extend(r.record(thread, sym, &vec![0; row.slots.len()], now + 10 + i % 5, now + 30));
        now += 30;
        if i % 100 == 99 {
            chunks.extend(r.leave_out(thread, 50_000));
            now += 50_000;
        }
    }
    let mut column = Column { chunks: chunks.into_iter().map(|c| *c).collect(), ..Column::default() };
    column.chunks.extend(r.flush_columns().into_iter().map(|(_, c)| c));
    let mut section = r.finish("n");
    let left = section.threads[0].sketches.clone();
    // The clock loses a thousandth.
    let point = |local: i64| Offset { local, offset: local / 1_000, error: 1 };
    column.clock = Comparison { points: vec![point(0), point(1_000_000)], near: 0, far: 0 };
    section.threads[0].columns = vec![(0, column)];
    let (trace, _) = corrected(&[section], &[]);
    let found = &trace.sections[0].threads[0].sketches;
    assert_eq!(found.len(), left.len());
    for (found, left) in found.iter().zip(&left) {
        assert_eq!(found.compute.count, left.compute.count);
        // In ns, some gaps have one more.
        assert!(found.compute.sum.abs_diff(left.compute.sum) < 30, "{found:?} {left:?}");
        assert!(found.compute.max.0 < 100, "{found:?}");
    }
}

#[test]
fn where_not_every_call_has_a_time_sketches_stay_and_that_is_said() {
    let mut before = sections(Shape::Buckets);
    // The budget was spent after two hundred calls.
    let column = &mut before[1].threads[0].columns[0].1;
    let times: Vec<(i64, i64)> = column.times().take(200).collect();
    let mut writer = st_model::columns::ColumnWriter::new(0);
    times.iter().for_each(|t| assert!(writer.push(t.0, t.1).is_none()));
    column.chunks = writer.flush().into_iter().collect();
    let (trace, note) = corrected(&before, &[]);
    assert!(note.contains("rank 1: sketches and sums stay as recorded"), "{note}");
    assert_eq!(trace.sections[1].threads[0].sketches, before[1].threads[0].sketches);
    assert_ne!(trace.sections[1].threads[0].columns, before[1].threads[0].columns);
}
