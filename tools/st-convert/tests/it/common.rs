//! Traces of kernels on paper, what is in them by other ways than st-convert's, and the program itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Output};

use st_kernels::{Kernel, paper};
use st_match::graph::{Barriers, Matcher};
use st_match::volume::{Graphs, Volumes};
use st_model::header::Header;
use st_model::section::Section;
use st_stream::{Trace, WriteOptions};

/// A trace in a file.
pub(crate) struct Made {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) sections: Vec<Section>,
}

/// Kernels that between them have requests, wildcards, collectives of many communicators, one-sided communication and threads.
pub(crate) const KERNELS: [Kernel; 6] =
    [Kernel::Stencil2d, Kernel::Workers, Kernel::Fft, Kernel::Halo, Kernel::Rma, Kernel::Threads];

pub(crate) fn kernel(kernel: Kernel) -> Made {
    kernel_of(kernel, 4)
}

/// A kernel on so many ranks.
pub(crate) fn kernel_of(kernel: Kernel, ranks: u32) -> Made {
    let options = st_kernels::Options { steps: Some(5), ..st_kernels::Options::default() };
    Made::sized(paper::sections(kernel, &options, ranks).map(Result::unwrap).collect(), ranks)
}

/// When the first rank started: on 29 February 2024, 23:59:30 UTC.
const STARTED: u64 = 1_709_251_170_000_000_000;

/// A call of a rank's thread.
pub(crate) type At = (u32, u32, u64);

/// A call by name, with its times since the first rank's `MPI_Init`.
pub(crate) type Known = (String, i64, i64);

impl Made {
    pub(crate) fn of(sections: Vec<Section>) -> Self {
        Self::sized(sections, 4)
    }

    /// The same, of a job of so many ranks.
    fn sized(sections: Vec<Section>, world: u32) -> Self {
        let made = Self { directory: tempfile::tempdir().unwrap(), sections };
        let header = Header { world, program: "app".into(), started: STARTED, ..Header::default() };
        let trace = Trace { header, sections: made.sections.clone(), level: 0, ..Trace::default() };
        let file = std::fs::File::create(made.path("app.st")).unwrap();
        st_stream::write(&trace, file, WriteOptions { level: 0 }).unwrap();
        made
    }

    /// A trace made of calls that are written down as JSON lines.
    pub(crate) fn of_lines(lines: &str) -> Self {
        let mut made = Self { directory: tempfile::tempdir().unwrap(), sections: Vec::new() };
        std::fs::write(made.path("app.jsonl"), lines).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_st-convert"));
        command.current_dir(made.directory.path()).args(["-q", "app.jsonl", "-o", "app.st"]);
        assert!(command.status().unwrap().success());
        let file = std::fs::File::open(made.path("app.st")).unwrap();
        made.sections = st_stream::read(file, st_stream::ReadOptions::default()).unwrap().sections;
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the program on the trace.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_st-convert"));
        command.current_dir(self.directory.path()).arg("app.st").args(words).output().unwrap()
    }

    /// Converts the trace into a file or directory, whose path is returned, and what the program said.
    pub(crate) fn convert(&self, words: &[&str]) -> (PathBuf, String) {
        let output = self.run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let at = words.iter().position(|word| *word == "-o").unwrap();
        (self.path(words[at + 1]), said)
    }

    /// All calls.
    pub(crate) fn calls(&self) -> BTreeMap<At, Known> {
        let mut all = BTreeMap::new();
        for section in &self.sections {
            for rank in section.ranks.iter() {
                for thread in 0..section.threads.len() {
                    let Some(mut events) = section.events(thread, rank).map(|events| events.timed()) else {
                        continue;
                    };
                    while let Some(event) = events.next_event().unwrap() {
                        let (enter, exit) = event.times.unwrap_or_default();
                        let at = (rank, u32::try_from(thread).unwrap(), event.index);
                        all.insert(at, (event.name().unwrap().to_owned(), enter, exit));
                    }
                }
            }
        }
        let inits = all.values().filter(|call| call.0.starts_with("MPI_Init"));
        let zero = inits.map(|call| call.1).min().unwrap_or(0);
        all.values_mut().for_each(|call| (call.1, call.2) = (call.1 - zero, call.2 - zero));
        all
    }

    /// All messages: the calls that send them and that complete their receives, and tags.
    pub(crate) fn messages(&self) -> BTreeSet<(At, At, i64)> {
        let mut matcher = Matcher::keeping_messages(Barriers::default());
        let mut all = BTreeSet::new();
        for section in &self.sections {
            matcher.add(section).unwrap();
            all.extend(matcher.take_messages().iter().map(|m| {
                let (from, to) = (m.sent, m.received);
                let tag = m.channel.tag;
                ((from.rank, from.thread, from.index), (to.rank, to.thread, to.index), tag)
            }));
        }
        all
    }

    /// Bytes that each call sends and receives.
    pub(crate) fn volumes(&self) -> BTreeMap<At, (u64, u64)> {
        let (graphs, mut all) = (Graphs::of(&self.sections).unwrap(), BTreeMap::new());
        for section in &self.sections {
            for rank in section.ranks.iter() {
                for thread in 0..section.threads.len() {
                    let mut volumes = Volumes::new(section, rank, &graphs);
                    let Some(mut events) = section.events(thread, rank) else { continue };
                    while let Some(event) = events.next_event().unwrap() {
                        let volume = volumes.next_event(&event);
                        let bytes = [volume.sent.bytes, volume.received.bytes];
                        let [sent, received] = bytes.map(|n| u64::try_from(n).unwrap());
                        let at = (rank, u32::try_from(thread).unwrap(), event.index);
                        all.insert(at, (sent, received));
                    }
                }
            }
        }
        all
    }

    /// Bytes of all messages between two ranks: of accesses to windows only puts are among what is sent to one rank.
    pub(crate) fn message_bytes(&self) -> u64 {
        let (calls, volumes) = (self.calls(), self.volumes());
        self.messages()
            .iter()
            .map(|(from, _, _)| *from)
            .collect::<BTreeSet<At>>()
            .into_iter()
            .filter(|from| !calls[from].0.contains("put"))
            .map(|from| volumes[&from].0)
            .sum()
    }
}
