//! Sums per call path, read back.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{KERNELS, Made, kernel, kernel_of};
use serde_json::Value;
use st_kernels::Kernel;

/// Values of the lines by number of ranks, call path and metric.
type Lines = BTreeMap<(u64, String, String), Vec<f64>>;

fn lines(path: &Path) -> Lines {
    let mut all = Lines::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line.as_object().unwrap().len(), 4, "{line}");
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        let key = (line["params"]["p"].as_u64().unwrap(), text("callpath"), text("metric"));
        all.entry(key).or_default().push(line["value"].as_f64().unwrap());
    }
    all
}

/// Sums of a metric over all call paths that end with a function; of all if there is none.
fn sum(lines: &Lines, ranks: u32, metric: &str, function: Option<&str>) -> f64 {
    let ends = |path: &str| function.is_none_or(|function| path.rsplit("->").next() == Some(function));
    let of = lines.iter().filter(|((p, path, of), _)| *p == u64::from(ranks) && of == metric && ends(path));
    of.map(|(_, values)| values.iter().sum::<f64>()).sum::<f64>() * f64::from(ranks)
}

fn same(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-9 * wanted.abs().max(1e-3)
}

fn float(n: impl TryInto<u32>) -> f64 {
    n.try_into().ok().unwrap().into()
}

/// Calls, seconds and bytes of each function, and all the time that threads take, by other ways than st-convert's.
fn known(made: &Made) -> (BTreeMap<String, [f64; 4]>, f64) {
    let (volumes, mut all) = (made.volumes(), BTreeMap::<String, [f64; 4]>::new());
    let mut ends = BTreeMap::<(u32, u32), (i64, i64)>::new();
    for (at, (name, enter, exit)) in made.calls() {
        let (sent, received) = volumes[&at];
        let sums = all.entry(name).or_default();
        let section = made.sections.iter().find(|section| section.ranks.contains(at.0)).unwrap();
        let mut events = section.events(usize::try_from(at.1).unwrap(), at.0).unwrap();
        let event = std::iter::from_fn(|| events.next_event().unwrap().map(|e| (e.index, e.calls())));
        let calls = event.into_iter().find(|(index, _)| *index == at.2).unwrap().1;
        for (sum, more) in
            sums.iter_mut().zip([float(calls), float(exit - enter) / 1e9, float(sent), float(received)])
        {
            *sum += more;
        }
        let (_, last) = ends.entry((at.0, at.1)).or_insert((enter, exit));
        *last = exit;
    }
    (all, ends.values().map(|(first, last)| float(last - first) / 1e9).sum())
}

#[test]
fn sums_of_call_paths_are_those_of_calls_and_of_what_lies_between() {
    for which in KERNELS {
        let made = kernel(which);
        let (path, said) = made.convert(&["-o", "app.jsonl"]);
        assert!(said.contains("summed up"), "{said}");
        let (lines, (functions, whole)) = (lines(&path), known(&made));
        assert!(lines.keys().all(|(p, path, _)| *p == 4 && path.split("->").next() == Some("app")));
        for (function, wanted) in functions {
            for (metric, wanted) in ["visits", "time", "bytes_sent", "bytes_received"].iter().zip(wanted) {
                let found = sum(&lines, 4, metric, Some(&function));
                assert!(same(found, wanted), "{which:?}: {metric} of {function}: {found}, not {wanted}");
            }
        }
        let found = sum(&lines, 4, "time", None);
        assert!(same(found, whole), "{which:?}: {found} s, not {whole}");
        for ((p, path, metric), longest) in lines.iter().filter(|((.., metric), _)| metric == "time_longest")
        {
            let mean = lines[&(*p, path.clone(), metric.replace("_longest", ""))][0];
            assert!(mean <= longest[0] * (1.0 + 1e-9), "{path}: {mean} of {longest:?}");
        }
    }
}

#[test]
fn inputs_are_runs_and_runs_of_one_size_are_repetitions() {
    let (four, eight) = (kernel(Kernel::Stencil2d), kernel_of(Kernel::Stencil2d, 8));
    let more = [&eight, &four].map(|made| made.path("app.st").to_str().unwrap().to_owned());
    let (path, said) = four.convert(&[&more[0], &more[1], "-o", "series.jsonl"]);
    assert_eq!(said.matches("summed up").count(), 3, "{said}");
    let all = lines(&path);
    assert!(all.iter().all(|((p, ..), values)| values.len() == if *p == 4 { 2 } else { 1 }));
    for (made, ranks) in [(&four, 4), (&eight, 8)] {
        let alone = lines(&made.convert(&["-o", "alone.jsonl"]).0);
        let of: Lines =
            all.iter().filter(|((p, ..), _)| *p == ranks).map(|(k, v)| (k.clone(), v[..1].into())).collect();
        assert_eq!(of, alone);
    }
}

#[test]
fn what_is_no_series_is_said_or_refused() {
    let (four, eight) = (kernel(Kernel::Stencil2d), kernel_of(Kernel::Stencil2d, 8));
    let renamed = |made: &Made, name: &str, program: &str, run: &str| {
        let mut trace =
            st_stream::read(&std::fs::read(made.path("app.st")).unwrap()[..], Default::default()).unwrap();
        (trace.header.program, trace.header.run) = (program.into(), run.into());
        let path = four.path(name);
        let file = std::fs::File::create(&path).unwrap();
        st_stream::write(&trace, file, st_stream::WriteOptions { level: 0 }).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (a, b) = (
        renamed(&four, "a.st", "/bin/app", &"a".repeat(32)),
        renamed(&eight, "b.st", "/opt/app", &"b".repeat(32)),
    );
    let other = renamed(&eight, "c.st", "/bin/other", &"c".repeat(32));
    let said = |inputs: &[&String]| {
        let words: Vec<&str> = inputs.iter().map(|i| i.as_str()).chain(["-o", "series.jsonl"]).collect();
        let output = four.run(&words);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, good) = said(&[&a, &b]);
    assert!(status == Some(0) && !good.contains("warning"), "{good}");
    let (status, doubtful) = said(&[&a, &other]);
    assert!(status == Some(0) && doubtful.contains("c.st is of other, "), "{doubtful}");
    let (status, level) = said(&[&a]);
    assert!(status == Some(0) && level.contains("all runs are on 4 ranks"), "{level}");
    std::fs::remove_file(four.path("series.jsonl")).unwrap();
    let (status, refused) = said(&[&a, &b, &a]);
    assert!(status == Some(2) && refused.contains("a.st: is of the same run as "), "{refused}");
    assert!(!four.path("series.jsonl").exists());
}

#[test]
fn waits_are_those_of_the_table_of_waits() {
    let made = kernel(Kernel::Stencil2d);
    let (tables, _) = made.convert(&["--waits", "-o", "app.csv"]);
    let mut waits = csv::Reader::from_path(tables.join("waits.csv")).unwrap();
    let rows = waits.deserialize::<BTreeMap<String, String>>();
    let mut wanted = BTreeMap::<String, f64>::new();
    rows.for_each(|row| {
        let row = row.unwrap();
        *wanted.entry(row["function"].clone()).or_default() += row["wait_ns"].parse::<f64>().unwrap() / 1e9;
    });
    let lines = lines(&made.convert(&["--waits", "-o", "app.jsonl"]).0);
    assert!(wanted.len() > 1, "{wanted:?}");
    for (function, wanted) in &wanted {
        let found = sum(&lines, 4, "wait", Some(function));
        assert!(same(found, *wanted), "{function}: {found}, not {wanted}");
    }
    assert!(same(sum(&lines, 4, "wait", None), wanted.values().sum()));
}

#[test]
fn what_is_left_out_leaves_no_computation() {
    let made = kernel(Kernel::Stencil2d);
    let (whole, part) = (
        lines(&made.convert(&["-o", "app.jsonl"]).0),
        lines(&made.convert(&["--sites", "MPI_Waitall", "-o", "part.jsonl"]).0),
    );
    let waitall = sum(&whole, 4, "time", Some("MPI_Waitall"));
    assert!(waitall > 0.0 && same(sum(&part, 4, "time", None), waitall));
    assert!(part.iter().filter(|((.., metric), _)| metric == "visits").count() == 1);
}

#[test]
fn a_run_that_cannot_be_read_leaves_no_series() {
    let made = kernel(Kernel::Stencil2d);
    for (words, status) in [(["nothing.st", "-o", "a.jsonl"], 1), (["app.st", "-o", "missing/a.jsonl"], 1)] {
        let output = made.run(&words);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(!made.path(words[2]).exists());
    }
}
