//! Cube's archives, read back.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use crate::common::{KERNELS, kernel};
use st_kernels::Kernel;

/// By metric, function and location the value, and all call paths: functions from the root.
type Profile = (BTreeMap<(String, String, u32), f64>, BTreeSet<Vec<String>>);

/// What stands between two texts, again and again.
fn all<'a>(text: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(from).skip(1).filter_map(move |rest| rest.split_once(to).map(|(inside, _)| inside))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Reads an archive for itself: numbers of call paths must be those of their order.
fn read(path: &Path) -> Profile {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(std::fs::File::open(path).unwrap()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let (name, mut content) = (entry.path().unwrap().display().to_string(), Vec::new());
        entry.read_to_end(&mut content).unwrap();
        files.insert(name, content);
    }
    let anchor = String::from_utf8(files.remove("anchor.xml").unwrap()).unwrap();
    let regions: Vec<&str> = all(&anchor, "<region ", "</region>").collect();
    let names: Vec<&str> =
        regions.iter().map(|region| all(region, "<name>", "</name>").next().unwrap()).collect();
    let (mut open, mut paths, mut functions) = (Vec::<String>::new(), BTreeSet::new(), Vec::new());
    for line in anchor.lines() {
        if let Some(node) = line.strip_prefix("<cnode id=\"") {
            let (id, callee) = node.split_once("\" calleeId=\"").unwrap();
            assert_eq!(id.parse::<usize>().unwrap(), functions.len());
            let name = names[callee.trim_end_matches("\">").parse::<usize>().unwrap()].to_owned();
            open.push(name.clone());
            functions.push(name);
            assert!(paths.insert(open.clone()), "{open:?} is there twice");
        } else if line == "</cnode>" {
            open.pop().unwrap();
        }
    }
    assert!(open.is_empty());
    let ranks = all(&anchor, "<location Id=\"", "\"").count();
    let mut values = BTreeMap::new();
    for (metric, about) in all(&anchor, "<metric id=", "</descr>").enumerate() {
        let unique = all(about, "<uniq_name>", "</uniq_name>").next().unwrap();
        let index = &files[&format!("{metric}.index")];
        let data = files[&format!("{metric}.data")].strip_prefix(b"CUBEX.DATA").unwrap();
        assert!(index.starts_with(b"CUBEX.INDEX\x01\0\0\0"));
        let rows: Vec<u64> = index[22..].chunks(4).map(number).collect();
        assert!(number(&index[18..22]) == rows.len() as u64 && rows.is_sorted() && !rows.is_empty());
        assert_eq!(data.len(), rows.len() * ranks * 8);
        for (row, of) in rows.iter().zip(data.chunks(ranks * 8)) {
            for (location, bytes) in (0u32..).zip(of.chunks(8)) {
                let value = match all(about, "<dtype>", "</dtype>").next().unwrap() {
                    "DOUBLE" => f64::from_bits(number(bytes)),
                    _ => u32::try_from(number(bytes)).unwrap().into(),
                };
                let function = functions[usize::try_from(*row).unwrap()].clone();
                *values.entry((unique.to_owned(), function, location)).or_default() += value;
            }
        }
    }
    (values, paths)
}

fn float(n: impl TryInto<u32>) -> f64 {
    n.try_into().ok().unwrap().into()
}

#[test]
fn each_rank_has_the_time_bytes_and_calls_of_each_function() {
    for which in KERNELS {
        let made = kernel(which);
        let (values, paths) = read(&made.convert(&["-o", "app.cubex"]).0);
        let (calls, volumes) = (made.calls(), made.volumes());
        let mut wanted = BTreeMap::<(String, String, u32), f64>::new();
        let mut whole = BTreeMap::<(u32, u32), (i64, i64)>::new();
        for (at, (name, enter, exit)) in &calls {
            let (sent, received) = volumes[at];
            for (metric, more) in [
                ("time", float(exit - enter) / 1e9),
                ("bytes_sent", float(sent)),
                ("bytes_received", float(received)),
            ] {
                *wanted.entry((metric.into(), name.clone(), at.0)).or_default() += more;
            }
            whole.entry((at.0, at.1)).or_insert((*enter, *exit)).1 = *exit;
        }
        for (key, wanted) in wanted {
            let found = values.get(&key).copied().unwrap_or(0.0);
            assert!((found - wanted).abs() < 1e-9, "{which:?}: {key:?}: {found}, not {wanted}");
        }
        // What is not in MPI is between its calls.
        for rank in 0..4 {
            let time: f64 = values
                .iter()
                .filter(|((metric, _, of), _)| metric == "time" && *of == rank)
                .map(|v| v.1)
                .sum();
            let wanted: f64 =
                whole.iter().filter(|(of, _)| of.0 == rank).map(|(_, (a, b))| float(b - a) / 1e9).sum();
            assert!((time - wanted).abs() < 1e-9, "{which:?}: rank {rank}: {time} s, not {wanted}");
        }
        let visits: f64 = values.iter().filter(|((metric, ..), _)| metric == "visits").map(|v| v.1).sum();
        assert!(visits >= float(calls.len()));
        assert!(paths.iter().all(|path| path[0] == "app"));
    }
}

#[test]
fn waits_are_parts_of_the_time_by_kind() {
    let made = kernel(Kernel::Stencil2d);
    let (path, _) = made.convert(&["--waits", "-o", "app.cubex"]);
    let (values, _) = read(&path);
    let (tables, _) = made.convert(&["--waits", "-o", "app.csv"]);
    let mut wanted = BTreeMap::<(String, String, u32), f64>::new();
    for row in
        csv::Reader::from_path(tables.join("waits.csv")).unwrap().deserialize::<BTreeMap<String, String>>()
    {
        let row = row.unwrap();
        let kind = row["kind"].replace(", ", "_").replace(' ', "_");
        *wanted.entry((kind, row["function"].clone(), row["rank"].parse().unwrap())).or_default() +=
            row["wait_ns"].parse::<f64>().unwrap() / 1e9;
    }
    let others = ["time", "visits", "bytes_sent", "bytes_received"];
    let found: BTreeMap<_, _> = values
        .into_iter()
        .filter(|((metric, ..), value)| !others.contains(&metric.as_str()) && *value > 0.0)
        .collect();
    assert!(!wanted.is_empty());
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    assert!(found.values().zip(wanted.values()).all(|(a, b)| (a - b).abs() < 1e-9));
}

#[test]
fn ranks_that_are_left_out_have_no_location() {
    let made = kernel(Kernel::Stencil2d);
    let (values, _) = read(&made.convert(&["--ranks", "1,3", "-o", "app.cubex"]).0);
    assert_eq!(values.keys().map(|key| key.2).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
    let output = made.run(&["-o", "missing/app.cubex"]);
    assert!(output.status.code() == Some(1) && !made.path("missing").exists(), "{output:?}");
}
