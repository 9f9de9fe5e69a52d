//! What is said of traces that were made without a run.

use std::process::Command;

use st_kernels::{Kernel, Options, paper};
use st_model::header::{Clock, Header, SIMULATED};
use st_model::section::Section;
use st_stream::{Trace, WriteOptions};

/// What `st-stat why` prints and says of ranks on paper that do not wait for each other.
fn said(clock: &str) -> [String; 2] {
    let options = Options { steps: Some(60), ..Options::default() };
    let sections: Vec<Section> =
        paper::sections(Kernel::Stencil2d, &options, 4).map(Result::unwrap).collect();
    let clock = Clock { source: clock.into(), resolution: 1 };
    let header = Header { world: 4, program: "app".into(), clock, ..Header::default() };
    let trace = Trace { header, sections, ..Trace::default() };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.st");
    st_stream::write(&trace, std::fs::File::create(&path).unwrap(), WriteOptions { level: 1 }).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_st-stat")).args(["why", "--all"]).arg(path).output().unwrap();
    assert!(out.status.success());
    [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn clocks_on_paper_are_no_reason_for_a_warning() {
    let [text, warned] = said("CLOCK_MONOTONIC");
    assert!(warned.contains("warning") && warned.contains("clocks disagree"), "{warned}");
    assert!(text.contains("clocks disagree"), "{text}");
    let [text, warned] = said(SIMULATED);
    assert!(!warned.contains("warning") && warned.contains("on paper"), "{warned}");
    assert!(!text.contains("clocks") && text.contains("on paper"), "{text}");
}
