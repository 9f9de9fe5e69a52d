//! The page of a program that runs: made anew of what its ranks have recorded so far, until they have ended. Ranks' journals are
//! read like streams; nothing is written where they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail};
use st_cli::{Input, Status, UsageError, recording, streams_in};
use st_model::header::Step;
use st_model::num::saturate;
use st_model::ranklist::RankList;
use st_stream::directory::RECORDING;
use st_stream::{ReadOptions, Reader};

use super::all::{named, told, write};
use super::going::{Going, IDLE};
use crate::args::ReportArgs;
use crate::input::NAME;
use crate::table::duration;

/// How often it is asked whether the run goes on.
const STEP: Duration = Duration::from_millis(500);

/// How often in a row no page can be made, since what is read is just being written, until that is an error.
const FAILURES: u32 = 5;

/// `st-stat report --follow`.
pub(super) fn follow(args: &ReportArgs, path: &Path) -> Result<Status> {
    let output = &args.output.output;
    if output.as_os_str() == "-" {
        bail!(UsageError("--follow writes its page again and again: name its file with -o".to_owned()));
    }
    let directory = recorded_in(path)?;
    let every = Duration::from_secs_f64(args.every);
    let begun = SystemTime::now();
    let mut follower = Follower { args, directory, run: None, failures: 0, waits: false, every, begun };
    while follower.runs() {
        let begun = Instant::now();
        follower.page(begun)?;
        // The first page comes as soon as there is something: a short run has no second chance.
        let least = if follower.run.is_some() { every } else { STEP.min(every) };
        follower.pause(least.max(begun.elapsed().saturating_mul(IDLE)));
    }
    follower.last()?;
    Ok(Status::Ok)
}

/// The directory that a job's ranks record into: this one, or the only one below it.
fn recorded_in(path: &Path) -> Result<PathBuf> {
    let shown = path.display();
    let entries = fs::read_dir(path).with_context(|| format!("{shown}: cannot list"))?;
    if may_run(path) {
        return Ok(path.to_owned());
    }
    let ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(RECORDING.as_bytes()))
    };
    let mut found: Vec<_> = entries.flatten().map(|e| e.path()).filter(ours).filter(|d| may_run(d)).collect();
    found.sort();
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => bail!(
            "{shown}: no process of this machine records into it, nor into a directory {RECORDING}… in it: name the directory where \
             the trace of a job will be that st-record records now, or that of mpirun … st-record -o DIRECTORY (a recording that \
             has ended needs no --follow)"
        ),
        [first, ..] => bail!(
            "{shown}: {} jobs are recorded here: name the directory of one, as {}",
            found.len(),
            first.display()
        ),
    }
}

/// Whether a job records into the directory, as far as this machine can tell: another one's removes it when it ends.
fn may_run(directory: &Path) -> bool {
    !recording::running(directory).is_empty() || recording::elsewhere(directory).is_some()
}

struct Follower<'a> {
    args: &'a ReportArgs,
    directory: PathBuf,
    /// Which run it is, once a page has been made of it.
    run: Option<String>,
    /// How often in a row no page could be made.
    failures: u32,
    /// Whether it has said what it waits for.
    waits: bool,
    /// From one page to the next, at least.
    every: Duration,
    /// Since when it follows.
    begun: SystemTime,
}

impl Follower<'_> {
    fn runs(&self) -> bool {
        may_run(&self.directory)
    }

    /// Waits for the next page, or the end of the run.
    fn pause(&self, long: Duration) {
        let begun = Instant::now();
        while let Some(left) = long.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            sleep(left.min(STEP));
            if !self.runs() {
                return;
            }
        }
    }

    /// Makes a page of what is there, unless that is nothing yet, or is just being replaced.
    fn page(&mut self, begun: Instant) -> Result<()> {
        // Before MPI_Init nobody records; where the run ends, all goes.
        let Some((job, directory)) = self.job() else {
            self.wait();
            return Ok(());
        };
        let ranks: RankList = recording::ranks(&directory).into_iter().map(|(rank, _)| rank).collect();
        let going = Going { ranks: &ranks, every: self.every, begun, job };
        let all = told(&self.of(directory), Some(going));
        match all.and_then(|all| Ok((all.page(Some(going))?, all.run))) {
            Ok((page, run)) => {
                write(self.args, &page)?;
                if self.run.is_none() {
                    let (name, from) = (self.args.output.output.display(), self.directory.display());
                    let each = duration(saturate(self.every.as_nanos()));
                    let text = format!(
                        "{name}: made anew every {each} from {from} until the run ends; open it in a browser"
                    );
                    self.args.talk.note(NAME, text);
                }
                (self.run, self.failures) = (Some(run), 0);
                Ok(())
            }
            // A rank that ends replaces its journal by its stream.
            Err(_) if self.failures < FAILURES || !self.runs() => {
                self.failures += 1;
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Says once what has to come before there is a page.
    fn wait(&mut self) {
        if self.run.is_none() && !std::mem::replace(&mut self.waits, true) {
            let what = match self.args.job {
                Some(job) => format!("job {job}, none of which has recorded anything yet"),
                None => "a rank that is past MPI_Init".to_owned(),
            };
            self.args.talk.note(NAME, format!("{}: waiting for {what}", self.directory.display()));
        }
    }

    /// The job that is shown, and where it records: the one that is asked for, or the newest; none, if that has recorded nothing yet.
    fn job(&self) -> Option<((usize, usize), PathBuf)> {
        let records = |directory: &Path| streams_in(directory).is_ok_and(|found| !found.is_empty());
        let jobs = recording::jobs(&self.directory).into_iter().filter(|(_, directory)| records(directory));
        let mut jobs: Vec<_> = jobs.collect();
        let all = jobs.last()?.0;
        let at = jobs.iter().rposition(|(number, _)| self.args.job.is_none_or(|asked| asked == *number))?;
        let (number, directory) = jobs.swap_remove(at);
        Some(((number, all), directory))
    }

    /// The command line of a page of this, which says nothing.
    fn of(&self, input: PathBuf) -> ReportArgs {
        let mut args = ReportArgs { inputs: vec![input], ..self.args.clone() };
        (args.talk.quiet, args.talk.verbose) = (true, false);
        args
    }

    /// The page of the run that has ended.
    fn last(&self) -> Result<()> {
        let left = self.job().map(|(_, directory)| directory);
        let Some(input) = left.or_else(|| self.trace()) else {
            let (shown, output) = (self.directory.display(), self.args.output.output.display());
            let job = self.args.job.filter(|_| self.run.is_none());
            let why = match job {
                Some(job) => format!("there was no job {job} in it (--job)"),
                None => "beside it is no trace of its run".to_owned(),
            };
            bail!("{shown}: the recording has ended, and {why}: {output} is as it was before");
        };
        let page = told(&self.of(input.clone()), None)?.page(None)?;
        write(self.args, &page)?;
        let said = format!("the run has ended; {}", named(self.args, &page));
        self.args.talk.note(NAME, format!("{said} (of {})", input.display()));
        Ok(())
    }

    /// What has become of the recording: beside its directory the trace of the run that was shown, or of its last job, if none was
    /// asked for: a short one may have come and gone since the last page.
    fn trace(&self) -> Option<PathBuf> {
        let home = self.directory.parent().filter(|home| !home.as_os_str().is_empty());
        let beside = streams_in(home.unwrap_or(Path::new("."))).ok()?;
        let written = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).ok();
        // Not all launchers give a run an identity.
        let new = |path: &PathBuf| written(path).filter(|at| *at >= self.begun);
        let read = |path: PathBuf| {
            let at = new(&path)?;
            let reader =
                Reader::new(Input::open(&path, &self.args.input.steps).ok()?, ReadOptions::default()).ok()?;
            let (header, steps) = (reader.header(), reader.provenance().to_vec());
            Some(Left { at, number: recording::number(header), run: header.run.clone(), steps, path })
        };
        let all: Vec<Left> = beside.into_iter().filter_map(read).collect();
        // Of a job that never came there is none. A run that was over before its first page is that of the only new trace.
        let shown = match &self.run {
            Some(run) => all.iter().filter(|left| left.run == *run).max_by_key(|left| left.at)?,
            None => only(&all).filter(|_| self.args.job.is_none())?,
        };
        let later = |left: &&Left| left.number > shown.number && left.steps == shown.steps;
        let last =
            all.iter().filter(later).filter(|_| self.args.job.is_none()).max_by_key(|left| left.number);
        Some(last.unwrap_or(shown).path.clone())
    }
}

/// The first of traces that are of one recording.
fn only(all: &[Left]) -> Option<&Left> {
    let first = all.iter().min_by_key(|left| left.number)?;
    let numbers: BTreeSet<u64> = all.iter().map(|left| left.number).collect();
    (numbers.len() == all.len() && all.iter().all(|left| left.steps == first.steps)).then_some(first)
}

/// A trace that was written since it is followed.
struct Left {
    at: SystemTime,
    /// Which job of its recording it is of.
    number: u64,
    run: String,
    /// How it was made: all traces of a recording alike.
    steps: Vec<Step>,
    path: PathBuf,
}
