//! Ranks without the recorder: the others do not wait for them, and say which they are.

use st_tests::process::{Outcome, Run};
use st_tests::workplace::Workplace;
use st_tests::{Failure, place, render};

use crate::launch::{check, complete, under_each};

/// A rank's number, in a script.
const RANK: &str = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}";

/// Whether a trace has so many ranks, each with its 20 exchanges.
fn exchanged(p: &Workplace, trace: &str, ranks: u32) -> Result<(), Failure> {
    let found = render::viewed(&p.path(trace))?;
    let whole = |calls: &&Vec<render::Object>| {
        calls.iter().filter(|c| c["call"] == "MPI_Sendrecv").count() == 20 && calls.len() >= 24
    };
    let all = found.values().filter(whole).count();
    if all == found.len() && u32::try_from(all) == Ok(ranks) {
        Ok(())
    } else {
        Err(format!("{trace}: {all} of {} ranks are whole", found.len()))
    }
}

/// Runs the program, one rank of it without the recorder, in the way that it is with all.
fn without(p: &Workplace, rank: u32, options: &str) -> Result<Outcome, Failure> {
    p.script("rank", &format!("#!/bin/sh\n[ {RANK} = {rank} ] && unset LD_PRELOAD\nexec ./leaves\n"))?;
    let o = p.outside(&format!("{options} -o one.st"), "./rank")?.ok()?;
    check(o.text() == format!("got {}\n", p.job.ranks - 1), "the program's output", &o)?;
    let said = format!("st-record: rank {rank} is not recorded: clocks are not compared");
    check(o.stderr.lines().filter(|line| *line == said).count() == 1, "who lacks, once", &o)?;
    exchanged(p, "one.st", p.job.ranks - 1)?;
    Ok(o)
}

#[test]
fn a_rank_without_the_recorder_is_named_and_not_waited_for() {
    under_each(|p| {
        for rank in [p.job.ranks - 1, 0] {
            let o = without(p, rank, "")?;
            let why =
                format!("1 of {} ranks left no trace (rank {rank} ran without the recorder)", p.job.ranks);
            check(o.stderr.contains(&why), "the closing line", &o)?;
            let o = without(p, rank, "--merge")?;
            let why = format!("rank {rank} ran without the recorder; the ranks' streams are not merged");
            check(o.stderr.lines().filter(|line| line.ends_with(&why)).count() == 1, "merging", &o)?;
            without(p, rank, "-q --reduce-every 0.001")?;
        }
        p.outside("-q --must-record -o one.st", "./rank")?.expect(125)?;
        // A list that was full and one that was closed are gone, and leave the next job as it is.
        p.outside("-q --merge -o all.st", "./leaves")?.ok()?;
        complete(p, &p.path("all.st"))
    });
}

#[test]
fn ranks_that_start_the_recorder_themselves_do_not_wait_for_others_either() {
    under_each(|p| {
        let st_record = place::program("st-record")?;
        let record = format!("exec {} -q --sync -o run -- ./leaves", st_record.display());
        let script = format!("case {RANK} in 1) exec ./leaves;; *) {record};; esac");
        let words = p.job.words(["sh", "-c", &script])?;
        let o = p.go(Run::new(&words[0], &words[1..]))?.ok()?;
        check(o.stderr.contains("rank 1 is not recorded"), "who lacks", &o)?;
        exchanged(p, "run", p.job.ranks - 1)?;
        let left = p.names("run");
        check(left.iter().all(|name| name.starts_with("rank-")), &format!("files {left:?}"), &o)
    });
}
