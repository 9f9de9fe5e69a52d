//! Traces in memory, and what commands print of them.

use std::path::Path;

use clap::Parser;
use st_capture::record::{Options, RankRecorder};
use st_cli::Status;
use st_kernels::{Kernel, Slow, Unfit, paper};
use st_match::volume::{Graphs, Volume, Volumes};
use st_model::calls::CallTable;
use st_model::columns::Column;
use st_model::event::Event;
use st_model::header::Header;
use st_model::objects::{Comm, Op, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_stat::args::Args;
use st_stream::{Trace, WriteOptions};

/// A kernel's ranks on paper.
pub(crate) fn kernel(kernel: Kernel, ranks: u32, steps: i32) -> Vec<Section> {
    let options = st_kernels::Options { steps: Some(steps), ..st_kernels::Options::default() };
    paper::sections(kernel, &options, ranks).map(Result::unwrap).collect()
}

/// The same with ranks that are slow, which others wait for.
pub(crate) fn with_slow(kernel: Kernel, ranks: u32, steps: i32, slow: &[Slow]) -> Vec<Section> {
    let options = st_kernels::Options { steps: Some(steps), ..st_kernels::Options::default() };
    let plan = paper::Plan::new(slow, kernel, &options, ranks, 2).unwrap();
    let mut all = Vec::new();
    let keep = |section: Result<Section, Unfit>| -> Result<(), Unfit> {
        all.push(section?);
        Ok(())
    };
    let what = paper::Planned { kernel, options: &options, plan: &plan, ranks };
    paper::each("exact".parse().unwrap(), what, 2, |section| section, keep).unwrap();
    all
}

/// Writes a trace.
pub(crate) fn write(stream: &Path, sections: Vec<Section>) {
    let world = sections.iter().filter_map(|s| s.ranks.highest()).max().map_or(1, |r| r + 1);
    let header = Header { world, program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections, level: 0, ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(stream).unwrap(), WriteOptions { level: 0 }).unwrap();
}

/// What a command prints, or says.
pub(crate) fn tried(sections: Vec<Section>, command: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir().unwrap();
    let stream = dir.path().join("app.st");
    write(&stream, sections);
    let words: Vec<&str> = command.iter().copied().chain(stream.to_str()).collect();
    run(&words)
}

/// The same of streams that it names.
pub(crate) fn run(command: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let to = ["-q", "-o", out.to_str().unwrap()];
    let words = ["st-stat"].iter().chain(command).chain(&to);
    assert_eq!(st_stat::run(&Args::try_parse_from(words)?)?, Status::Ok);
    Ok(std::fs::read_to_string(&out)?)
}

/// What a command prints.
pub(crate) fn printed(sections: Vec<Section>, command: &[&str]) -> String {
    tried(sections, command).unwrap()
}

/// All calls of all ranks, one after the other, with what each sends and receives: slow, and obvious.
pub(crate) fn each_call(sections: &[Section], mut told: impl FnMut(u32, &Event<'_>, &Volume)) {
    let graphs = Graphs::of(sections).unwrap();
    for section in sections {
        for rank in section.ranks.iter() {
            let mut volumes = Volumes::new(section, rank, &graphs);
            for thread in 0..section.threads.len() {
                let Some(mut events) = section.events(thread, rank) else { continue };
                while let Some(event) = events.next_event().unwrap() {
                    told(rank, &event, volumes.next_event(&event));
                }
            }
        }
    }
}

/// Rows of CSV, by the names of their columns.
pub(crate) fn rows(csv: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

/// A rank that is recorded call by call, with bytes, doubles and a sum at hand.
pub(crate) struct Rank {
    pub(crate) recorder: RankRecorder,
    column: Column,
    rank: u32,
}

impl Rank {
    pub(crate) fn new(rank: u32, world: u32) -> Self {
        let mut recorder = RankRecorder::new(rank, Options::default());
        let (members, remote) = (RankSeq::first(world), RankSeq::default());
        recorder.objects.comms.predefined(Comm { kind: "world".into(), parent: 0, members, remote });
        for (kind, size) in [("MPI_BYTE", 1), ("MPI_DOUBLE", 8)] {
            let (words, parts) = (Vec::new(), Vec::new());
            recorder.objects.types.predefined(Type {
                kind: kind.into(),
                words,
                parts,
                size,
                lb: 0,
                extent: size,
            });
        }
        recorder.objects.ops.predefined(Op { kind: "sum".into(), commutes: true });
        recorder.open_thread(0);
        Self { recorder, column: Column::default(), rank }
    }

    /// A call at a place, with its words and its times in ns.
    pub(crate) fn call(&mut self, name: &str, place: &str, words: &[i64], (enter, exit): (i64, i64)) {
        let site = self.recorder.sites.label(place);
        let id = CallTable::builtin().by_name(name).unwrap().id;
        let symbol = self.recorder.symbol(id, site, 0);
        self.column.chunks.extend(self.recorder.record(0, symbol, words, enter, exit).map(|c| *c));
    }

    /// Its section, on a host.
    pub(crate) fn finish(mut self, host: &str) -> Section {
        self.column.chunks.extend(self.recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
        let mut section = self.recorder.finish(host);
        section.threads[0].columns = vec![(self.rank, self.column)];
        section
    }
}

/// The same without exact times.
pub(crate) fn untimed(mut sections: Vec<Section>) -> Vec<Section> {
    sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|t| t.columns.clear());
    sections
}
