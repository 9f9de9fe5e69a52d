//! The text form: what it looks like, and that it reads back.

use crate::full::full;
use crate::sections::{recorded, recorder};
use crate::whole::{pair, sample};
use proptest::prelude::*;
use st_model::calls::CallTable;
use st_model::columns::{Comparison, Offset};
use st_model::frequencies::Frequencies;
use st_model::header::{Header, Step};
use st_model::ints::Sealed;
use st_model::section::{Codes, Elastic, Form, Section};
use st_model::sketch::Shape;
use st_model::tree::{FlatTree, Item};
use st_stream::text;
use st_stream::{ReadOptions, Trace, WriteOptions, Writer};

fn trace(sections: Vec<Section>, level: u8) -> Trace {
    let header = Header { world: 8, program: "a \"quoted\" name".into(), ..Header::default() };
    let step = Step { tool: "st-test".into(), version: "1".into(), args: vec!["--x".into()] };
    Trace { header, provenance: vec![step], sections, level, ..Trace::default() }
}

fn print(trace: &Trace) -> String {
    let mut out = Vec::new();
    text::write(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn text_reads_back(ranks in prop::collection::vec(recorded(), 0..3), level in 0u8..3) {
        let sections: Vec<Section> = (0..).zip(&ranks).map(|(r, calls)| calls.section(r)).collect();
        let trace = trace(sections, level);
        let text = print(&trace);
        let back = text::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&back, &trace);
        let bytes = |t: &Trace| {
            let mut out = Vec::new();
            st_stream::write(t, &mut out, WriteOptions { level: t.level }).unwrap();
            out
        };
        prop_assert_eq!(bytes(&back), bytes(&trace));
    }

    #[test]
    fn every_field_reads_back(section in full(), clock: (i64, i64, [i64; 3])) {
        let mut with_times = sample(0);
        let (near, far, [local, offset, error]) = clock;
        let points = vec![Offset { local, offset, error }, Offset { local: error, offset: local, error: offset }];
        with_times.threads[0].columns[0].1.clock = Comparison { points, near, far };
        let trace = trace(vec![section, with_times], 0);
        prop_assert_eq!(&text::parse(print(&trace).as_bytes()).unwrap(), &trace);
    }

    #[test]
    fn damaged_text_is_never_a_panic(at in any::<prop::sample::Index>(), with in "[ -~]{0,3}", cut in 0usize..4) {
        let mut text = print(&trace(vec![sample(0)], 0));
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            text.replace_range(at..end, &with);
            if let Err(e) = text::parse(text.as_bytes()) {
                prop_assert!(e.line() <= text.lines().count() + 1);
            }
        }
    }
}

#[test]
fn a_merged_section_shows_classes_and_reads_back() {
    let t = trace(vec![pair()], 0);
    let text = print(&t);
    for line in [
        "   dest P0~relative 1 @<1 0 2 1>",
        "   rsource P1 7 @<1 0 1 0> | 0 @<1 1 1 0>",
        "# <1 0 2 1> s0 MPI_Send (3,10)",
        "  sums s1 [30 31] 40",
        "  slow s1 steps 3 limits 70,900 number 3 [4 3 4]",
        "  slow s2 chance -64",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert_eq!(text::parse(text.as_bytes()).unwrap(), t);
}

#[test]
fn deep_trees_and_vectors_read_back() {
    let mut s = sample(0);
    let body = 100;
    let mut items: Vec<Item> = (0..body).map(|i| Item::Body { below: body - i }).collect();
    items.push(Item::Leaf { sym: 0 });
    items.extend([Item::Body { below: 2 }, Item::Leaf { sym: 1 }, Item::Leaf { sym: 2 }]);
    let thread = &mut s.threads[0];
    // Exact times are those of other calls.
    thread.columns.clear();
    let one = Elastic { streams: [Sealed::from_constant(1)].into(), ..thread.counts[0].clone() };
    thread.counts = vec![one; items.len()];
    let n = items.len();
    thread.counts[n - 3].streams = [Sealed::from_constant(4)].into();
    thread.counts[n - 2].streams = [Sealed::from(vec![1, 0, 1, 1])].into();
    thread.counts[n - 1].streams = [Sealed::from(vec![0, 1, 0, 1])].into();
    thread.tree = FlatTree::new(items);
    let t = trace(vec![s], 0);
    let text = print(&t);
    assert!(text.contains(" ^100 s0 MPI_Send P0 1 @<1 0 1 0>\n"), "{text}");
    assert!(
        text.contains("# <1 0 1 0> s1 MPI_Recv (2,4)(1,1 0 1 1)\n# <1 0 1 0> s2 MPI_Allreduce (1,0 1 0 1)\n"),
        "{text}"
    );
    assert_eq!(text::parse(text.as_bytes()).unwrap(), t);
}

#[test]
fn a_truncated_trace_says_so() {
    let mut t = trace(vec![sample(0)], 0);
    t.complete = false;
    let text = print(&t);
    assert!(text.ends_with("truncated\n"));
    assert_eq!(text::parse(text.as_bytes()).unwrap(), t);
}

#[test]
fn faults_name_their_line() {
    let text = print(&trace(vec![sample(0)], 0));
    let lines: Vec<&str> = text.lines().collect();
    let replaced = |i: usize, with: &str| {
        let mut lines = lines.clone();
        lines[i] = with;
        lines.join("\n")
    };
    for (i, with, expected) in [
        (0, "st 9.0 level 1", "line 1: expected a version that this st reads"),
        (1, "header {", "line 2: expected JSON"),
        (3, "address 12+0x1 \"f\" - x -", "line 4: expected a line"),
        (6, " host x <1 0 1 0>", "line 7: expected a host"),
        (6, " hast \"x\" <1 0 1 0>", "line 7: expected a line that may stand here"),
    ] {
        let e = text::parse(replaced(i, with).as_bytes()).unwrap_err().to_string();
        assert!(e.starts_with(expected), "{e}");
    }
    let e = text::parse(lines[..lines.len() - 1].join("\n").as_bytes()).unwrap_err().to_string();
    assert!(e.contains("the text ends without \"end\""), "{e}");
    // What no single line shows.
    let e = text::parse(text.replace("section <1 0 1 0>", "section <1 0 4000000000 1>").as_bytes());
    let e = e.unwrap_err().to_string();
    assert!(
        e.contains("do not agree: frame") && e.ends_with("SECTION: ranks: ranks above 16,777,215"),
        "{e}"
    );
}

/// Rewrite with `ST_BLESS=1 cargo test`.
#[test]
fn the_sample_looks_like_this() {
    let text = print(&trace(vec![sample(3)], 19));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/sample.txt");
    if std::env::var_os("ST_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert!(text == golden, "expected\n{golden}\ngot\n{text}");
    let bytes = |t: &Trace| {
        let mut out = Vec::new();
        st_stream::write(t, &mut out, WriteOptions { level: t.level }).unwrap();
        out
    };
    let parsed = text::parse(golden.as_bytes()).unwrap();
    assert_eq!(st_stream::read(&bytes(&parsed)[..], ReadOptions::default()).unwrap(), parsed);
}

#[test]
fn a_histogram_is_marked_reads_back_and_must_be_one() {
    let mut s = pair();
    let mut f = Frequencies::default();
    [(-1, 4), (1, 9), (2, 7)].into_iter().for_each(|(code, n)| f.add(code, n));
    let form = Form::Histogram(Codes::Relative);
    let histogram = |stream| Elastic { form, partition: 0, streams: [stream].into() };
    s.threads[0].params[0][2].values = histogram(f.to_stream());
    let t = trace(vec![s.clone()], 0);
    let text = print(&t);
    let line = "   dest P0~histogram:relative [3 -1 1 2 4 9 7] @<1 0 2 1>";
    assert!(text.lines().any(|l| l == line), "{text}");
    assert_eq!(text::parse(text.as_bytes()).unwrap(), t);
    assert_eq!(s.histograms().map(|(sym, slot, _)| (sym, slot)).collect::<Vec<_>>(), [(0, 2)]);
    for bad in [vec![3, 1, -1, 2, 4, 9, 7], vec![1, 4, 0], vec![-1, 2], vec![1 << 40, 1]] {
        s.threads[0].params[0][2].values = histogram(bad.into_iter().collect());
        let text = print(&trace(vec![s.clone()], 0));
        assert!(text::parse(text.as_bytes()).is_err());
    }
    s.threads[0].params[0][2].values = histogram(f.to_stream());
    s.threads[0].counts[0] = histogram(f.to_stream());
    assert!(text::parse(print(&trace(vec![s], 0)).as_bytes()).is_err());
}

#[test]
fn what_a_histogram_gives_back_follows_from_its_codes() {
    let mut s = pair();
    let mut f = Frequencies::default();
    [(-1, 4), (1, 9)].into_iter().for_each(|(code, n)| f.add(code, n));
    let form = Form::Histogram(Codes::Relative);
    s.threads[0].params[0][2].values = Elastic { form, partition: 0, streams: [f.to_stream()].into() };
    let dests = |rank| {
        let calls = s.project(0, rank).unwrap().map(Result::unwrap);
        calls.filter(|c| c.sym == 0).map(|c| c.words[2]).collect::<Vec<_>>()
    };
    // Rank 0 has no neighbour below, rank 1 has both; again gives the same.
    assert_eq!(dests(0), [1; 10]);
    assert_eq!(dests(1), dests(1));
    assert!(dests(1).contains(&0) && dests(1).contains(&2));
    // The other parameters are what they were.
    assert_eq!(s.project(0, 1).unwrap().count(), 30);
}

/// A rank with several threads is recorded so: at its end what is left of their exact times, one thread after the other, and then
/// how its clock was compared.
#[test]
fn text_gives_back_the_bytes_that_were_recorded_of_several_threads() {
    let mut r = recorder(0, Shape::Buckets);
    let sym = r.symbol(CallTable::builtin().by_name("MPI_Barrier").unwrap().id, 0, 0);
    for thread in 0..3 {
        assert_eq!(r.open_thread(0), thread);
        (0..5).for_each(|i| assert!(r.record(thread, sym, &[0], 100 * i, 100 * i + 50).is_none()));
    }
    let whole = trace(Vec::new(), 1);
    let mut writer = Writer::new(Vec::new(), &whole.header, WriteOptions { level: 1 }).unwrap();
    whole.provenance.iter().for_each(|step| writer.provenance(step).unwrap());
    let chunks = r.flush_columns();
    let section = r.finish("host");
    // As st-record has it in the file of a job.
    writer.names(section.sites.names()).unwrap();
    chunks.iter().for_each(|(thread, chunk)| writer.column_chunk(0, *thread, chunk).unwrap());
    let points = vec![Offset { local: 1, offset: 2, error: 3 }];
    writer.clock(0, &Comparison { points, near: 0, far: 9 }).unwrap();
    writer.section(&section).unwrap();
    let recorded = writer.finish().unwrap();
    let read = st_stream::read(&recorded[..], ReadOptions::default()).unwrap();
    let back = text::parse(print(&read).as_bytes()).unwrap();
    let mut written = Vec::new();
    st_stream::write(&back, &mut written, WriteOptions { level: 1 }).unwrap();
    let differs = written.iter().zip(&recorded).position(|(a, b)| a != b);
    assert!(written == recorded, "{} and {} bytes, from {differs:?} on", written.len(), recorded.len());
}
