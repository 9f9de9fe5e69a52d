//! The page of a program that runs: what ranks' journals hold, until they have ended.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::common::Rank;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser as _;
use serde_json::Value;
use st_capture::journal;
use st_cli::Status;
use st_model::calls::names;
use st_model::header::{Header, Step};
use st_stat::args::Args;
use st_stream::directory::{JOURNAL, NOTES, RECORDING, TIMES, process, rank};
use st_stream::{Trace, WriteOptions, Writer};

const RUN: &str = "0123456789abcdef0123456789abcdef";

fn header() -> Header {
    Header { world: 3, program: "app".into(), run: RUN.into(), ..Header::default() }
}

/// A rank between barriers, each 1 ms long after 1 ms of computation.
fn recorded(number: u32, turns: i64) -> Rank {
    let mut of = Rank::new(number, 3);
    of.call(names::MPI_Init, "main", &[], (0, 1_000_000));
    for turn in 0..turns {
        let enter = 2_000_000 + turn * 2_000_000;
        of.call(names::MPI_Barrier, "step", &[0], (enter, enter + 1_000_000));
    }
    of
}

/// What a rank leaves while its process records so many turns.
fn journal(directory: &Path, number: u32, pid: u32, turns: i64) {
    journal_on("node", directory, number, pid, turns);
}

fn journal_on(host: &str, directory: &Path, number: u32, pid: u32, turns: i64) {
    let mut of = recorded(number, turns);
    let mut times = Writer::new(Vec::new(), &header(), WriteOptions { level: 0 }).unwrap();
    for (thread, chunk) in of.recorder.flush_columns() {
        times.column_chunk(number, thread, &chunk).unwrap();
    }
    let snapshot = journal::snapshot(&of.recorder, &header(), &[], host).unwrap();
    let name = |ends: &str| directory.join(format!("{}.{ends}", process(number, pid)));
    // As the recorder has it: the times first.
    fs::write(name(TIMES), times.finish().unwrap()).unwrap();
    let hidden = directory.join(".half");
    fs::write(&hidden, journal::whole(&snapshot, &[])).unwrap();
    fs::rename(hidden, name(JOURNAL)).unwrap();
}

fn stream(path: &Path, ranks: &[u32]) {
    stream_of(path, header(), ranks);
}

fn stream_of(path: &Path, header: Header, ranks: &[u32]) {
    let finished = |number: &u32| {
        let mut of = recorded(*number, 3);
        of.call(names::MPI_Finalize, "main", &[], (9_000_000, 9_100_000));
        of.finish("node")
    };
    let sections = ranks.iter().map(finished).collect();
    let args = vec!["--".to_owned(), "./script".to_owned()];
    let provenance = vec![Step { tool: "st-record".into(), version: "1".into(), args }];
    let trace = Trace { header, sections, provenance, ..Trace::default() };
    st_stream::write(&trace, fs::File::create(path).unwrap(), WriteOptions { level: 0 }).unwrap();
}

/// A process that stands for all ranks of a job.
fn ranks() -> Child {
    Command::new("sleep").arg("60").spawn().unwrap()
}

/// It has ended, and nothing is left of it.
fn end(mut ranks: Child) {
    ranks.kill().unwrap();
    ranks.wait().unwrap();
}

/// What st-record has while it records into `app.st` of a directory, and the process that stands for its ranks.
fn recording(home: &Path) -> (PathBuf, Child) {
    let directory = home.join(format!("{RECORDING}abc123"));
    fs::create_dir(&directory).unwrap();
    let all = ranks();
    fs::write(directory.join(NOTES), format!("app.st\nlauncher={}\n", all.id())).unwrap();
    (directory, all)
}

fn follow(directory: &Path, page: &Path) -> JoinHandle<anyhow::Result<Status>> {
    follow_with(directory, page, &[])
}

fn follow_with(directory: &Path, page: &Path, options: &[&str]) -> JoinHandle<anyhow::Result<Status>> {
    let [directory, page] = [directory, page].map(|path| path.to_str().unwrap().to_owned());
    let words = ["st-stat", "report", "-q", "--every", "1", "--follow", &directory, "-o", &page];
    let args = Args::try_parse_from(words.iter().chain(options)).unwrap();
    thread::spawn(move || st_stat::run(&args))
}

/// What the page holds, once it is there and holds what is waited for.
fn awaited(page: &Path, is: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(page).unwrap_or_default();
        if let Some((_, rest)) = text.split_once("id=\"data\">") {
            let gzip = STANDARD.decode(rest.split_once("</script>").unwrap().0).unwrap();
            let mut json = String::new();
            flate2::read::GzDecoder::new(&gzip[..]).read_to_string(&mut json).unwrap();
            let data: Value = serde_json::from_str(&json).unwrap();
            if is(&data) {
                return data;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{}, {}", data["live"], data["lacks"]);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no page");
        sleep(Duration::from_millis(50));
    }
}

fn calls(page: &Value) -> u64 {
    let columns = page["summary"]["columns"].as_array().unwrap();
    columns.iter().find(|c| c["key"] == "calls").unwrap()["values"][0].as_u64().unwrap()
}

#[test]
fn the_page_grows_with_the_run_and_ends_with_it() {
    let home = tempfile::tempdir().unwrap();
    let (job, all) = recording(home.path());
    let page = home.path().join("live.html");
    let following = follow(home.path(), &page);
    // Nobody is past MPI_Init.
    sleep(Duration::from_millis(700));
    assert!(!page.exists() && !following.is_finished());
    [0, 1].into_iter().for_each(|rank| journal(&job, rank, all.id(), 2));
    let of = awaited(&page, |_| true);
    let live = &of["live"];
    assert_eq!(live["told"], "running: state at 4.00 ms, 2 of 3 ranks", "{live}");
    assert!(live["every_ms"].as_u64() >= Some(1000) && calls(&of) == 6, "{live}");
    assert!(live["written_ms"].as_u64().unwrap() > 1_600_000_000_000);
    let lacks = of["lacks"].to_string();
    assert!(lacks.contains("1 of 3 ranks are missing") && !lacks.contains("ended early"), "{lacks}");
    [0, 1, 2].into_iter().for_each(|rank| journal(&job, rank, all.id(), 5));
    // A journal that is just being begun is no reason to stop.
    let begun = job.join(format!("{}.{JOURNAL}", process(2, 1)));
    fs::write(&begun, [0; 100]).unwrap();
    sleep(Duration::from_millis(1500));
    fs::remove_file(&begun).unwrap();
    let of = awaited(&page, |of| calls(of) == 18);
    assert_eq!(of["live"]["told"], "running: state at 10.0 ms, 3 of 3 ranks");
    // One has ended, and has left its stream.
    fs::remove_file(job.join(format!("{}.{JOURNAL}", process(1, all.id())))).unwrap();
    stream(&job.join(format!("{}.st", rank(1))), &[1]);
    let of = awaited(&page, |of| of["live"]["told"].to_string().contains("ended"));
    assert!(of["live"]["told"].as_str().unwrap().ends_with("3 of 3 ranks, 1 of these ended"), "{of}");
    stream(&home.path().join("app.st"), &[0, 1, 2]);
    fs::remove_dir_all(&job).unwrap();
    end(all);
    assert_eq!(following.join().unwrap().unwrap(), Status::Ok);
    let of = awaited(&page, |_| true);
    assert!(
        of["live"].is_null() && calls(&of) == 15 && of["lacks"] == Value::Array(Vec::new()),
        "{}",
        of["lacks"]
    );
}

#[test]
fn ranks_that_are_killed_have_ended_early() {
    let home = tempfile::tempdir().unwrap();
    let all = ranks();
    [0, 1, 2].into_iter().for_each(|rank| journal(home.path(), rank, all.id(), 4));
    let page = home.path().join("live.html");
    let following = follow(home.path(), &page);
    let of = awaited(&page, |_| true);
    assert_eq!(of["live"]["told"], "running: state at 8.00 ms, 3 of 3 ranks");
    end(all);
    assert_eq!(following.join().unwrap().unwrap(), Status::Ok);
    let of = awaited(&page, |_| true);
    assert!(of["live"].is_null() && of["lacks"].to_string().contains("ended early"), "{}", of["lacks"]);
}

#[test]
fn of_several_jobs_the_newest_is_shown_or_the_one_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let (directory, all) = recording(home.path());
    let second = directory.join(format!("{}2", st_cli::recording::JOB));
    fs::create_dir(&second).unwrap();
    // The first has ended, the second has not begun.
    stream(&directory.join(format!("{}.st", rank(0))), &[0]);
    let pages = ["newest", "first", "second", "third"].map(|name| home.path().join(format!("{name}.html")));
    let jobs: [&[&str]; 4] = [&[], &["--job", "1"], &["--job", "2"], &["--job", "3"]];
    let following: Vec<_> =
        pages.iter().zip(jobs).map(|(page, job)| follow_with(home.path(), page, job)).collect();
    for page in &pages[..2] {
        let told = awaited(page, |_| true)["live"]["told"].to_string();
        assert!(!told.contains("job"), "{told}");
    }
    assert!(!pages[2].exists());
    [0, 1].into_iter().for_each(|rank| journal(&second, rank, all.id(), 2));
    for (page, job) in pages[..3].iter().zip([2, 1, 2]) {
        let of =
            awaited(page, |of| of["live"]["told"].to_string().contains(&format!("job {job} of 2 so far")));
        assert_eq!(calls(&of), [5, 6][job - 1], "{job}");
    }
    end(all);
    let ended: Vec<_> = following.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(ended[..3].iter().all(Result::is_ok), "{ended:?}");
    let error = format!("{:#}", ended[3].as_ref().unwrap_err());
    assert!(error.contains("there was no job 3 in it (--job)") && !pages[3].exists(), "{error}");
    assert_eq!(calls(&awaited(&pages[2], |of| of["live"].is_null())), 6);
}

/// A job that comes and goes between two pages is known by its trace only.
#[test]
fn the_last_page_is_that_of_the_last_job_however_short_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (directory, all) = recording(home.path());
    [0, 1, 2].into_iter().for_each(|rank| journal(&directory, rank, all.id(), 2));
    let pages = ["last", "first"].map(|name| home.path().join(format!("{name}.html")));
    let options: [&[&str]; 2] = [&[], &["--job", "1"]];
    let following: Vec<_> =
        pages.iter().zip(options).map(|(page, job)| follow_with(home.path(), page, job)).collect();
    pages.iter().for_each(|page| assert_eq!(calls(&awaited(page, |_| true)), 9));
    stream(&home.path().join("app.st"), &[0, 1, 2]);
    let mut later = Header { run: RUN.replace('0', "f"), ..header() };
    later.options.insert(st_cli::recording::NUMBER.to_owned(), 2.into());
    stream_of(&home.path().join("app-2.st"), later, &[0]);
    fs::remove_dir_all(&directory).unwrap();
    end(all);
    following.into_iter().for_each(|one| assert_eq!(one.join().unwrap().unwrap(), Status::Ok));
    let ended = pages.map(|page| calls(&awaited(&page, |of| of["live"].is_null())));
    assert_eq!(ended, [5, 15]);
}

#[test]
fn what_is_waited_for_is_said_once() {
    let home = tempfile::tempdir().unwrap();
    let (directory, all) = recording(home.path());
    let follows = |job: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_st-stat"))
            .args(["report", "--every", "1", "-o", "live.html", "--follow", "."])
            .args(job)
            .current_dir(home.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    // Nobody is past MPI_Init at first.
    let (newest, second) = (follows(&[]), follows(&["--job", "2"]));
    sleep(Duration::from_millis(1500));
    [0, 1, 2].into_iter().for_each(|rank| journal(&directory, rank, all.id(), 2));
    sleep(Duration::from_millis(2500));
    end(all);
    let said = [newest, second].map(|one| String::from_utf8(one.wait_with_output().unwrap().stderr).unwrap());
    let once = |said: &str, what: &str| assert_eq!(said.matches(what).count(), 1, "{said}");
    once(&said[0], "waiting for a rank that is past MPI_Init");
    once(&said[0], "made anew");
    once(&said[1], "waiting for job 2, none of which has recorded anything yet");
}

#[test]
fn what_does_not_run_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let said = |words: &[&str]| {
        let words = ["st-stat", "report", "-q", "--follow"].iter().chain(words);
        format!("{:#}", st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap_err())
    };
    let here = home.path().to_str().unwrap();
    let page = home.path().join("live.html");
    let to = ["-o", page.to_str().unwrap()];
    let none = said(&[here, to[0], to[1]]);
    assert!(
        none.contains("no process of this machine records into it") && none.contains("-o DIRECTORY"),
        "{none}"
    );
    assert!(said(&["nowhere/at/all", to[0], to[1]]).contains("nowhere/at/all: cannot list"));
    assert!(said(&[here]).contains("name its file with -o"));
    let all = ranks();
    for name in ["a", "b"] {
        let job = home.path().join(format!("{RECORDING}{name}"));
        fs::create_dir(&job).unwrap();
        journal(&job, 0, all.id(), 1);
    }
    let two = said(&[here, to[0], to[1]]);
    assert!(two.contains("2 jobs are recorded here") && two.contains(&format!("{RECORDING}a")), "{two}");
    end(all);
    assert!(!page.exists());
}

#[test]
fn a_run_that_is_over_before_its_first_page_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let (directory, all) = recording(home.path());
    let page = home.path().join("live.html");
    let following = follow(home.path(), &page);
    // Nobody is past MPI_Init at the first look, and all have ended at the next.
    sleep(Duration::from_millis(300));
    stream(&home.path().join("app.st"), &[0, 1, 2]);
    fs::remove_dir_all(&directory).unwrap();
    end(all);
    assert_eq!(following.join().unwrap().unwrap(), Status::Ok);
    let of = awaited(&page, |_| true);
    assert!(of["live"].is_null() && calls(&of) == 15, "{}", of["lacks"]);
}

#[test]
fn ranks_that_still_run_have_not_ended_early() {
    let home = tempfile::tempdir().unwrap();
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    // One of this machine's processes, one that has been one, and one of another machine.
    journal_on(own.trim(), home.path(), 0, std::process::id(), 3);
    journal_on(own.trim(), home.path(), 1, u32::MAX - 1, 3);
    journal(home.path(), 2, u32::MAX - 1, 3);
    let text = crate::common::run(&[home.path().to_str().unwrap()]).unwrap();
    for line in [
        "still running        rank 0 is at call 4",
        "ended early          rank 1 ends at call 4",
        "running or ended     rank 2 is at call 4",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let csv = crate::common::run(&[home.path().to_str().unwrap(), "--format", "csv"]).unwrap();
    let row = &crate::common::rows(&csv)[0];
    let counts =
        ["ended_early_ranks", "running_ranks", "perhaps_running_ranks"].map(|name| row[name].as_str());
    assert_eq!(counts, ["1"; 3]);
    // The page says the same, also when it does not follow the run.
    let page = home.path().join("now.html");
    fs::write(&page, crate::common::run(&["report", home.path().to_str().unwrap()]).unwrap()).unwrap();
    let lacks = awaited(&page, |_| true)["lacks"].to_string();
    for sentence in [
        "still running: rank 0 is at call 4",
        "ended early: rank 1 ends at call 4",
        "running or ended: rank 2 is at call 4",
    ] {
        assert!(lacks.contains(sentence), "{sentence}: {lacks}");
    }
}
