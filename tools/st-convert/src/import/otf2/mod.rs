//! Archives of OTF2, as EZTrace and Score-P write them, read through the format's own library.
//!
//! A location is a thread, its process a rank. Regions of functions of MPI are calls, with what their records say; those of other
//! functions around them are call sites.

mod accesses;
mod amounts;
mod anchor;
mod callbacks;
mod calls;
mod definitions;
mod library;
mod lines;
mod requests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use st_cli::{InvalidStream, UsageError};
use st_import::Importer;
use st_model::header::{Clock, Header};

use self::calls::Reading;
use self::definitions::Known;
use self::library::Archive;
use self::requests::Survey;
use super::source::{Imported, Opened, Source};
use crate::otf2::{LINES, NAME, PROGRAM, Record, SIDES};

pub(super) const SOURCE: Source = Source { name: "otf2", is: |path, begin| is_archive(path, begin), read };

/// How the names of anchor files end.
const ENDING: &str = "otf2";

fn is_archive(path: &Path, begin: &[u8]) -> bool {
    if path.is_dir() {
        anchor(path).is_ok()
    } else {
        path.extension().is_some_and(|e| e == ENDING) && !begin.is_empty()
    }
}

/// The anchor file of an archive: the path itself, or the only such file in a directory.
fn anchor(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let name = path.display();
    let files = path.read_dir().with_context(|| format!("{name}: cannot list"))?;
    let all: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    let mut anchors =
        all.into_iter().filter(|file| file.is_file() && file.extension().is_some_and(|e| e == ENDING));
    match (anchors.next(), anchors.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            bail!(UsageError(format!("{name}: has several files NAME.otf2: name one of them")))
        }
        (None, _) => bail!(InvalidStream(format!("{name}: has no file NAME.otf2"))),
    }
}

/// What stands for a program that is not told: the archive's name, or its directory's.
fn program(anchor: &Path) -> String {
    let stem = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
    let own = stem(anchor).filter(|name| name != NAME);
    own.or_else(|| stem(anchor.parent()?)).unwrap_or_else(|| NAME.into())
}

fn read(inputs: &mut [Opened]) -> Result<Imported> {
    let [input] = inputs else { bail!(UsageError("one archive of OTF2 at a time".into())) };
    let anchor = anchor(&input.path)?;
    let name = anchor.display().to_string();
    anchor::check(&anchor).with_context(|| name.clone())?;
    let archive = Archive::open(&anchor).with_context(|| name.clone())?;
    let wrong = |e: anyhow::Error| anyhow::Error::from(InvalidStream(format!("{name}: {e:#}")));
    let mut definitions = archive.definitions().map_err(wrong)?;
    definitions.own(archive.property(PROGRAM).is_some());
    definitions.sides(&archive.property(SIDES).unwrap_or_default());
    if let Some(told) = archive.property(LINES) {
        return lines::read(&archive, &definitions, &told).map_err(wrong);
    }
    let Some(world) = definitions.world() else {
        bail!(InvalidStream(format!(
            "{name}: has no ranks of MPI: no group of the locations that communicate"
        )));
    };
    let mut importer = Importer::new(world, false);
    definitions.hosts(&mut importer);
    let communicators = definitions.communicators(&mut importer);
    definitions.share(&communicators, &mut importer);
    let located = definitions.located();
    let all: Vec<u64> = located.iter().map(|(_, location)| *location).collect();
    archive.select(&all).map_err(wrong)?;
    let of = Known { definitions: &definitions, communicators: &communicators };
    for threads in located.chunk_by(|(a, _), (b, _)| a == b) {
        read_rank(&archive, threads, of, &mut importer).map_err(wrong)?;
    }
    if importer.is_empty() {
        bail!(InvalidStream(format!("{name}: there is no call of MPI in it")));
    }
    let header = Header {
        world,
        program: archive.property(PROGRAM).unwrap_or_else(|| program(&anchor)),
        started: definitions.started(),
        clock: Clock { source: "otf2".into(), resolution: 1 },
        ..Header::default()
    };
    Ok(Imported { header, steps: Vec::new(), importer })
}

/// Reads the events of a rank's threads: one after the other, or in the order of their times if one completes what another has begun.
fn read_rank(archive: &Archive, threads: &[(u32, u64)], of: Known<'_>, to: &mut Importer) -> Result<()> {
    let all: Vec<(usize, u64)> = threads.iter().map(|(_, location)| *location).enumerate().collect();
    let mut parts: Vec<_> = all.chunks(1).collect();
    let mut survey = survey(archive, &parts)?;
    if survey.is_begun_elsewhere && parts.len() > 1 {
        parts = vec![&all];
        survey = self::survey(archive, &parts)?;
    }
    let mut reading = Reading::new(of, to, threads, survey.completions);
    for part in parts {
        in_time(archive, part, |thread, time, record| reading.record(thread, time, record))?;
    }
    reading.finish();
    Ok(())
}

/// How the requests of a rank end, of whose threads those of a part may complete each other's.
fn survey(archive: &Archive, parts: &[&[(usize, u64)]]) -> Result<Survey> {
    let mut survey = Survey::default();
    for part in parts {
        survey.next_thread();
        in_time(archive, part, |_, _, record| {
            survey.record(&record);
            Ok(())
        })?;
    }
    Ok(survey)
}

/// Hands over the events of threads, which have a number and a location each, in the order of their times.
fn in_time(
    archive: &Archive,
    threads: &[(usize, u64)],
    mut to: impl FnMut(usize, u64, Record) -> Result<()>,
) -> Result<()> {
    let (mut all, mut next) = (Vec::with_capacity(threads.len()), BinaryHeap::new());
    for (at, (_, location)) in threads.iter().enumerate() {
        let mut events = archive.events(*location);
        next.extend(events.time()?.map(|time| Reverse((time, at))));
        all.push(events);
    }
    while let Some(Reverse((_, at))) = next.pop() {
        let (events, (thread, _)) = (&mut all[at], threads[at]);
        if let Some((time, record)) = events.take() {
            to(thread, time, record)?;
        }
        next.extend(events.time()?.map(|time| Reverse((time, at))));
    }
    Ok(())
}
