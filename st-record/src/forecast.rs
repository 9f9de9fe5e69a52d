//! While a job runs: how large its trace will be, of what its ranks have recorded so far.

use crate::args::Args;
use crate::pack::{self, Job, rank_of};
use crate::summary::size;
use crate::tool::TOOL;
use anyhow::{Context, Result};
use st_cli::options::{Talk, Waits};
use st_cli::{recording, streams_in};
use st_forecast::{Recorded, parts, sum};
use st_model::header::Header;
use st_model::num::{Exact, float, rounded};
use st_model::steps::Budget;
use st_stream::{ReadOptions, Trace, WriteOptions, frame_sizes};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// The run that is foreseen, seconds.
const HOUR: f64 = 3_600.0;

/// What is looked at of a job, whatever its size: ranks, bytes of what they wrote, and steps through it. That takes some seconds.
const RANKS: usize = 16;
const BYTES: u64 = 64 << 20;
const STEPS: u64 = 10_000_000;

/// Says it some time after this, if the job runs until then; dropped at the job's end.
pub(crate) struct Forecaster {
    _runs: Sender<()>,
}

impl Forecaster {
    /// Of a job whose ranks record into this directory. None where nobody wants to hear it, or ranks merge what they have at the end.
    pub(crate) fn of(args: &Args, directory: &Path) -> Option<Self> {
        if !args.talk.verbose || args.merge.is_some() || args.reduce_every.is_some() {
            return None;
        }
        let (runs, ended) = mpsc::channel();
        let (directory, talk) = (directory.to_owned(), args.talk.clone());
        let after = Duration::from_secs_f64(args.forecast_after);
        // Not waited for: what is not told when the job ends interests nobody.
        thread::Builder::new()
            .name("forecast".into())
            .spawn(move || tell(&ended, after, &directory, &talk))
            .ok()?;
        Some(Self { _runs: runs })
    }
}

fn tell(ended: &Receiver<()>, after: Duration, directory: &Path, talk: &Talk) {
    let runs = |wait| matches!(ended.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
    // Before MPI_Init, or between two jobs of a script, there is nothing that it could be told of.
    while runs(after) {
        let text = match running(directory).and_then(|job| foreseen(&job, &|| runs(Duration::ZERO))) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(e) => format!("no forecast of the trace's size: {e:#}"),
        };
        if runs(Duration::ZERO) {
            talk.detail(TOOL, text);
        }
        return;
    }
}

/// The directory of the newest job that runs here, or else of the newest.
fn running(directory: &Path) -> Result<PathBuf> {
    let jobs = pack::jobs(directory)?;
    let launched = || jobs.iter().rev().filter(|job| matches!(job, Job::Launched(..))).map(Job::directory);
    let runs = launched().find(|directory| !recording::ranks(directory).is_empty());
    Ok(runs.or_else(|| launched().next()).unwrap_or(directory).to_owned())
}

/// What is said, as long as the job `runs`. None if there is nothing yet that it could be told of.
fn foreseen(directory: &Path, runs: &dyn Fn() -> bool) -> Result<Option<String>> {
    let found: Vec<PathBuf> =
        streams_in(directory)?.into_iter().filter(|path| rank_of(path).is_some()).collect();
    let Some((trace, looked_at)) = read(&found)?.filter(|_| runs()) else { return Ok(None) };
    let level = WriteOptions::default().level;
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level }).context("writing what was recorded")?;
    let frames = frame_sizes(&bytes[..], ReadOptions::default())?;
    let recorded = Recorded {
        file: bytes.len().to_u64(),
        frames: &frames,
        sections: &trace.sections,
        level,
        budget: trace.header.time_budget(),
        waits: Waits::Auto.most(),
    };
    let run = float(recorded.whole()) / 1e9;
    if run <= 0.0 || !runs() {
        return Ok(None);
    }
    let ranks = found.len().to_u64();
    let scale = float(ranks.into()) / float(looked_at.to_u64().into());
    let shown = |bytes: f64| size(rounded(bytes * scale));
    let now = format!("the trace has about {} after {run:.0} s", shown(float(recorded.file.into())));
    if run >= HOUR {
        return Ok(Some(now));
    }
    let then = sum(&parts(&recorded, HOUR / run, &Budget::new(STEPS), &|_| ())?);
    let [likely, least, most] = [then.likely, then.least, then.most].map(shown);
    Ok(Some(format!("{now}; after an hour about {likely} ({least} to {most})")))
}

/// What some of the ranks have recorded, and how many these are.
fn read(found: &[PathBuf]) -> Result<Option<(Trace, usize)>> {
    let step = found.len().div_ceil(RANKS).max(1);
    let (mut sections, mut header, mut read, mut ranks) = (Vec::new(), None, 0, 0);
    let mut failed = None;
    for path in found.iter().step_by(step) {
        read += fs::metadata(path).map_or(0, |m| m.len());
        if read > BYTES && ranks > 0 {
            break;
        }
        let mut reader = match pack::open(path) {
            Ok(reader) => reader,
            // A rank that ends replaces its journal by its stream.
            Err(e) => {
                failed = Some(e);
                continue;
            }
        };
        header.get_or_insert_with(|| reader.header().clone());
        while let Some(section) = reader.next_section().with_context(|| path.display().to_string())? {
            sections.push(section);
        }
        ranks += 1;
    }
    let header: Option<Header> = header;
    match (header, failed) {
        (Some(header), _) => Ok(Some((Trace { header, sections, ..Trace::default() }, ranks))),
        (None, Some(e)) => Err(e),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallTable;
    use st_stream::directory::{JOURNAL, process};
    use st_stream::write;
    use std::fs::File;

    /// Streams of ranks that have made so many calls in a minute.
    fn record(directory: &Path, ranks: u32, calls: i64) {
        for rank in 0..ranks {
            let mut recorder = RankRecorder::new(rank, Options::default());
            let thread = recorder.open_thread(0);
            let site = recorder.sites.label("step");
            let sym = recorder.symbol(CallTable::builtin().by_name("MPI_Barrier").unwrap().id, site, 0);
            let step = 60_000_000_000 / calls;
            for i in 0..calls {
                let at = step * i + i * i % 97;
                let _ = recorder.record(thread, sym, &[0], at, at + 400 + i * i % 31);
            }
            let header = Header { world: ranks, ..Header::default() };
            let trace = Trace { header, sections: vec![recorder.finish("host")], ..Trace::default() };
            let file = File::create(directory.join(format!("rank-{rank:06}.st"))).unwrap();
            write(&trace, file, WriteOptions { level: 1 }).unwrap();
        }
    }

    /// Bytes, by the first of the words that tell them.
    fn bytes(words: &[&str]) -> f64 {
        let unit = ["bytes", "kB", "MB"].iter().position(|unit| words[1].contains(unit)).unwrap();
        words[0].trim_start_matches('(').parse::<f64>().unwrap()
            * 1_000_f64.powi(i32::try_from(unit).unwrap())
    }

    #[test]
    fn what_is_told_is_of_all_ranks_of_a_run_of_an_hour() {
        let directory = tempfile::tempdir().unwrap();
        assert!(foreseen(directory.path(), &|| true).unwrap().is_none());
        let all = [4, 64].map(|ranks| {
            record(directory.path(), ranks, 3_000);
            let text = foreseen(directory.path(), &|| true).unwrap().unwrap();
            let words: Vec<_> = text.split(' ').collect();
            assert!(
                text.starts_with("the trace has about ")
                    && text.contains(" after 60 s; after an hour about ")
            );
            let [now, likely, least, most] = [4, 13, 15, 18].map(|at| bytes(&words[at..]));
            assert!(least <= likely && likely <= most && now <= 1.1 * likely, "{text}");
            now
        });
        // What they have in common is told once in what is looked at, and so too often for more.
        assert!((12.0..17.0).contains(&(all[1] / all[0])), "{all:?}");
    }

    #[test]
    fn it_is_told_only_while_the_job_runs_and_to_those_who_want_to_hear_it() {
        let args = |words: &[&str]| {
            <Args as clap::Parser>::try_parse_from([&["st-record"], words, &["app"]].concat()).unwrap()
        };
        let told = |words: &[&str]| Forecaster::of(&args(words), Path::new(".")).is_some();
        assert!(told(&["-v"]));
        assert!(!told(&[]) && !told(&["-v", "--merge"]) && !told(&["-v", "--reduce-every", "10m"]));
        let (runs, ended) = mpsc::channel();
        drop(runs);
        // It returns at once.
        tell(&ended, Duration::from_secs(1_000_000), Path::new("."), &Talk::default());
        let directory = tempfile::tempdir().unwrap();
        record(directory.path(), 4, 3_000);
        assert!(foreseen(directory.path(), &|| true).unwrap().is_some());
        assert!(foreseen(directory.path(), &|| false).unwrap().is_none());
    }

    #[test]
    fn of_several_jobs_it_is_the_newest_that_runs() {
        let directory = tempfile::tempdir().unwrap();
        let job = |number: u32| match number {
            1 => directory.path().to_owned(),
            n => directory.path().join(format!("job-{n}")),
        };
        for number in 2..=3 {
            fs::create_dir(job(number)).unwrap();
        }
        // None runs: the newest.
        assert_eq!(running(directory.path()).unwrap(), job(3));
        for number in 1..=2 {
            let name = format!("{}.{JOURNAL}", process(0, std::process::id()));
            fs::write(job(number).join(name), "").unwrap();
            assert_eq!(running(directory.path()).unwrap(), job(number));
        }
    }
}
