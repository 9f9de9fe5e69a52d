//! Views of a run as pictures for a paper: the numbers that commands print are in them, and the same trace gives the same bytes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

use std::collections::BTreeSet;
use std::fs;

use crate::common::{kernel, printed, rows, tried, untimed, with_slow, write};
use clap::Parser as _;
use st_cli::Status;
use st_kernels::{Kernel, Slow};
use st_model::section::Section;
use st_stat::args::Args;

const VIEWS: [&str; 8] = ["timeline", "path", "profile", "ranks", "matrix", "spread", "efficiency", "waits"];

fn program() -> Vec<Section> {
    with_slow(Kernel::Wavefront, 9, 5, &[Slow { rank: 1, factor: 2.0 }])
}

/// What `st-stat report` draws into a file of this kind, with these options, without a page.
fn drawn_as(kind: &str, sections: Vec<Section>, options: &[&str]) -> anyhow::Result<Vec<u8>> {
    let dir = tempfile::tempdir()?;
    let [stream, to] = ["app.st", "picture"].map(|name| dir.path().join(name));
    write(&stream, sections);
    let files = [kind, to.to_str().unwrap(), stream.to_str().unwrap(), "-q"];
    let words = ["st-stat", "report"].iter().chain(options).chain(&files);
    assert_eq!(st_stat::run(&Args::try_parse_from(words)?)?, Status::Ok);
    Ok(fs::read(to)?)
}

/// The same as SVG.
fn drawn(sections: Vec<Section>, options: &[&str]) -> anyhow::Result<String> {
    Ok(String::from_utf8(drawn_as("--svg", sections, options)?)?)
}

/// Texts of a picture, in their order.
fn texts(svg: &str) -> Vec<String> {
    let labels = svg.split(" aria-label=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    labels.map(|text| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).collect()
}

/// Whether it is a tree of XML elements, each closed, with quoted attributes.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let Some((tag, text)) = tag.split_once('>') else { return false };
        if text.contains('"') || tag.matches('"').count() % 2 > 0 || tag.contains('&') && !tag.contains(';') {
            return false;
        }
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return false,
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    open.is_empty()
}

/// Width, height and different colours of a PNG, and its dots to the metre.
fn decoded(png: &[u8]) -> (u32, u32, usize, u32) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let dots = reader.info().pixel_dims.map_or(0, |dims| dims.xppu);
    (info.width, info.height, pixels.chunks(3).collect::<BTreeSet<_>>().len(), dots)
}

#[test]
fn every_view_is_drawn_twice_alike_in_the_width_of_a_column() {
    for view in VIEWS {
        let svg = drawn(program(), &["--view", view]).unwrap();
        assert_eq!(drawn(program(), &["--view", view]).unwrap(), svg, "{view}");
        assert!(is_well_formed(&svg) && !svg.contains("NaN") && !svg.contains("inf"), "{view}: {svg}");
        assert!(svg.starts_with("<svg ") && svg.contains(" width=\"240.94pt\""), "{view}: {svg}");
        assert!(svg.contains(&format!("<title>app: {view}</title>")), "{view}");
        let png = || drawn_as("--png", program(), &["--view", view, "--dpi", "50"]).unwrap();
        assert_eq!(png(), png(), "{view}");
        let (width, height, colours, dots) = decoded(&png());
        // 85 mm.
        assert_eq!((width, dots), (168, 1969), "{view}");
        let points: f64 =
            svg.split(" height=\"").nth(1).unwrap().split("pt").next().unwrap().parse().unwrap();
        assert!((f64::from(height) - points * 50.0 / 72.0).abs() < 2.0, "{view}: {height} {points}");
        assert!(colours > 8, "{view}: {colours}");
    }
    let (width, _, _, dots) =
        decoded(&drawn_as("--png", program(), &["--view", "waits", "--width", "180"]).unwrap());
    assert_eq!((width, dots), (2126, 11_811));
}

/// A view's texts hold all of these columns of a command.
fn holds(view: &str, command: &[&str], columns: &[&str], most: usize) {
    let printed = printed(program(), &[command, &["--format", "json"]].concat());
    let shown = texts(&drawn(program(), &["--view", view, "--width", "180"]).unwrap());
    let mut compared = 0;
    let rows = printed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    // What begins and ends MPI has no share, and is not drawn.
    for row in rows.filter(|row| !row["share_percent"].is_null()).take(most) {
        for key in columns {
            let text = match &row[key] {
                serde_json::Value::String(text) => text.clone(),
                value if key.ends_with("_ns") => st_stat::table::duration(value.as_u64().unwrap()),
                value if key.ends_with("_percent") => format!("{:.1} %", value.as_f64().unwrap()),
                value => panic!("{key}: {value}"),
            };
            assert!(
                shown.iter().any(|shown| shown.contains(&text)),
                "{view}: {text} of {key} is not in {shown:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 0, "{view}");
}

#[test]
fn numbers_are_those_that_commands_print() {
    holds("profile", &["calls", "--sites"], &["function", "time_ns"], 3);
    holds("waits", &["waits"], &["kind", "wait_ns", "share_percent"], 9);
    let shares = rows(&printed(program(), &["efficiency", "--format", "csv"]));
    let shown = texts(&drawn(program(), &["--view", "efficiency"]).unwrap());
    for row in &shares {
        let value: f64 = row["value"].parse().unwrap();
        let text = if value > 1.0 {
            st_stat::table::duration(row["value"].parse().unwrap())
        } else {
            format!("{value:.3}")
        };
        let at = shown.iter().position(|shown| *shown == row["measure"]).unwrap();
        assert_eq!(shown[at + 1], text, "{}", row["measure"]);
    }
    let ranks = rows(&printed(program(), &["ranks", "--format", "csv"]));
    let shown = texts(&drawn(program(), &["--view", "ranks"]).unwrap());
    for key in ["computation_ns", "mpi_ns", "wait_ns"] {
        let all = || ranks.iter().map(|row| row[key].parse::<u64>().unwrap());
        for ns in [all().min().unwrap(), all().max().unwrap()] {
            assert!(shown.contains(&st_stat::table::duration(ns)), "{key}: {ns} is not in {shown:?}");
        }
    }
    let path = printed(program(), &["path"]);
    let shown = texts(&drawn(program(), &["--view", "path", "--width", "180"]).unwrap());
    assert!(shown.contains(&path.lines().next().unwrap().to_owned()), "{path}{shown:?}");
    let pairs = rows(&printed(program(), &["matrix", "--format", "csv"]));
    let sent = || {
        pairs.iter().filter(|row| !row["to_rank"].is_empty()).map(|row| row["sent_bytes"].parse().unwrap())
    };
    let shown = texts(&drawn(program(), &["--view", "matrix"]).unwrap());
    for bytes in [sent().min().unwrap(), sent().max().unwrap()] {
        assert!(shown.contains(&st_stat::table::bytes(bytes)), "{bytes}: {shown:?}");
    }
}

#[test]
fn a_part_of_the_time_is_drawn_by_itself() {
    let ends = |svg: &str| {
        let shown = texts(svg);
        // Times stand below, before what rows are called.
        let at = shown.iter().position(|text| text == "rank").unwrap();
        [shown[at - 3].clone(), shown[at - 1].clone()]
    };
    for view in ["timeline", "path"] {
        let whole = drawn(program(), &["--view", view]).unwrap();
        let [_, last] = ends(&whole);
        let part = drawn(program(), &["--view", view, "--window", "0.05..0.1"]).unwrap();
        assert_eq!(ends(&part), ["50.0 ms", "100 ms"].map(str::to_owned), "{view}: {last}");
        // Columns are as wide as whole nanoseconds, and reach beyond its end.
        let shown = texts(&drawn(program(), &["--view", view, "--window", "0.05..0.05001"]).unwrap());
        let at = shown.iter().position(|text| text == "rank").unwrap();
        assert_eq!(shown[at - 3..at], ["0.0500000 s", "+5.00 µs", "+10.0 µs"], "{view}");
        // A thousandth of a column of the whole: what lies after it takes no time.
        let short = drawn(program(), &["--view", view, "--window", "0.05..0.050001"]).unwrap();
        for (svg, of_all) in [(&whole, false), (&part, view == "path"), (&short, view == "path")] {
            assert_eq!(svg.contains("of the whole run: critical path"), of_all, "{view}");
        }
        // All of it is the same with and without.
        let all = drawn(program(), &["--view", view, "--window", "0..1000"]).unwrap();
        assert_eq!((ends(&all), &all), (ends(&whole), &whole), "{view}");
    }
    for (words, says) in [
        (&["--view", "waits", "--window", "0.05..0.07"][..], "only --view timeline and path show times"),
        (&["--view", "path", "--window", "0.05..0.07", "--window", "0.07..0.1"], "a picture shows one"),
        (&["--view", "path", "--window", "100..101"], "--window: the run is from"),
    ] {
        let error = drawn(program(), words).unwrap_err();
        assert!(format!("{error:#}").contains(says), "{error:#}");
    }
}

#[test]
fn a_call_site_is_drawn_with_the_ranks_at_its_ends() {
    let hist = printed(program(), &["hist", "MPI_Allreduce"]);
    let svg = drawn(program(), &["--view", "spread", "--site", "MPI_Allreduce", "--width", "180"]).unwrap();
    let shown = texts(&svg);
    assert_eq!(shown[0], hist.lines().next().unwrap());
    // Of both times that are printed, that in the call.
    let inside = hist.split_once("\nin call: ").unwrap().1;
    for line in
        inside.lines().filter(|l| l.contains("shortest") || l.contains("median") || l.contains("least"))
    {
        assert!(shown.iter().any(|shown| shown == line.trim()), "{line}: {shown:?}");
    }
    let error = drawn(program(), &["--view", "spread", "--site", "nowhere"]).unwrap_err();
    assert!(format!("{error:#}").contains("no such call site"), "{error:#}");
    let error = drawn(program(), &["--view", "waits", "--site", "5"]).unwrap_err();
    assert!(format!("{error:#}").contains("only --view spread"), "{error:#}");
}

#[test]
fn what_a_trace_lacks_is_said() {
    for view in ["path", "efficiency", "waits"] {
        let error = drawn(untimed(program()), &["--view", view]).unwrap_err();
        assert!(format!("{error:#}").contains("no exact times"), "{view}: {error:#}");
    }
    let svg = drawn(kernel(Kernel::Fft, 4, 2), &["--view", "matrix"]).unwrap();
    assert!(!texts(&svg).is_empty());
    let error =
        drawn_as("--png", program(), &["--view", "matrix", "--width", "1000", "--dpi", "2400"]).unwrap_err();
    assert!(format!("{error:#}").contains("choose a smaller --dpi"), "{error:#}");
    // A view needs a file, and a file a view.
    for words in [&["--view", "waits"][..], &["--svg", "x.svg"]] {
        assert!(tried(program(), &[&["report"], words].concat()).is_err());
    }
}

#[test]
fn the_page_is_written_beside_a_picture_if_it_has_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("a.svg");
    let page = printed(program(), &["report", "--view", "waits", "--svg", svg.to_str().unwrap()]);
    assert!(page.starts_with("<!DOCTYPE html>") && svg.exists());
}

#[test]
fn why_a_picture_cannot_be_written_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let stream = dir.path().join("app.st");
    write(&stream, program());
    for kind in ["--svg", "--png"] {
        let words =
            ["st-stat", "report", "-q", "--view", "ranks", kind, "/dev/full", stream.to_str().unwrap()];
        let error = st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.starts_with("/dev/full: cannot write: No space left"), "{kind}: {said}");
    }
}
