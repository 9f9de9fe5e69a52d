//! What a merged trace says of exact times that ended early.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use clap::Parser;
use st_cli::Status;
use st_kernels::{Kernel, Options, paper};
use st_merge::args::Args;
use st_model::header::{Header, SPENT};
use st_model::section::Section;
use st_stream::{ReadOptions, Trace, WriteOptions};

/// Merges two ranks, of which the second has exact times of its first calls only.
fn merged(early: bool) -> Trace {
    let options = Options { steps: Some(400), ..Options::default() };
    let mut sections: Vec<Section> =
        paper::sections(Kernel::Stencil2d, &options, 2).map(Result::unwrap).collect();
    if early {
        let chunks = &mut sections[1].threads[0].columns[0].1.chunks;
        chunks.truncate(1);
        let first = &mut chunks[0];
        let mut events = 0;
        // Varints end with a byte below 128.
        for bytes in [&mut first.gaps, &mut first.durations] {
            events = bytes.iter().filter(|b| **b < 128).count() / 2;
            let ends = bytes.iter().enumerate().filter(|(_, b)| **b < 128).map(|(i, _)| i + 1);
            bytes.truncate(ends.take(events).last().unwrap());
        }
        first.events = u32::try_from(events).unwrap();
    }
    let header = Header { world: 2, program: "app".into(), ..Header::default() };
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["app.st", "merged.st"].map(|n| dir.path().join(n).to_str().unwrap().to_owned());
    let trace = Trace { header, sections, ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(&from).unwrap(), WriteOptions { level: 1 }).unwrap();
    let args = Args::try_parse_from(["st-merge", "-q", "-o", &to, &from]).unwrap();
    assert_eq!(st_merge::run(&args).unwrap(), Status::Ok);
    st_stream::read(std::fs::File::open(to).unwrap(), ReadOptions::default()).unwrap()
}

#[test]
fn that_the_time_budget_was_spent_outlives_merging() {
    let spent = merged(true);
    assert_eq!(spent.header.options.get(SPENT).and_then(|n| n.as_u64()), Some(1));
    assert!(spent.explanation.is_none());
    let whole = merged(false);
    assert!(!whole.header.options.contains_key(SPENT) && whole.explanation.is_some());
}
