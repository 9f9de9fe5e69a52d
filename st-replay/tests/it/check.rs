//! Bad traces are refused, with channel, communicator and call sites named; good ones, and what cannot be judged, are not.

use crate::script::sections;
use st_model::section::Section;
use st_replay::check::{Checker, Verdict};
use st_replay::factor::Factor;
use st_replay::supported::Where;

/// What is found in a program between `MPI_Init` and `MPI_Finalize`; the first line of it is line 2.
fn verdict(ranks: u32, program: &str, scale: Option<Factor>) -> Verdict {
    let whole = format!("* MPI_Init\n{program}\n* MPI_Finalize");
    let mut checker = Checker::new(scale, None);
    sections(ranks, &whole).iter().for_each(|s| checker.see(s).unwrap());
    checker.finish(&st_cli::Symbols::default(), &|_| ())
}

fn faults(ranks: u32, program: &str) -> Vec<String> {
    verdict(ranks, program, None).faults
}

fn good(ranks: u32, program: &str) {
    let faults = faults(ranks, program);
    assert!(faults.is_empty(), "{program}\n{faults:#?}");
}

/// Exactly one fault, which says all of this.
fn bad(ranks: u32, program: &str, said: &[&str]) {
    let faults = faults(ranks, program);
    assert_eq!(faults.len(), 1, "{program}\n{faults:#?}");
    for word in said {
        let found = match word.split_once(" (line ") {
            // The place stands behind the site's number.
            Some((before, line)) => faults[0].match_indices(before).any(|(at, _)| {
                let rest = faults[0][at + before.len()..].strip_prefix(" (site ");
                let rest = rest.map(|r| r.trim_start_matches(|c: char| c.is_ascii_digit()));
                rest.is_some_and(|r| r.starts_with(&format!(", line {line}")))
            }),
            None => faults[0].contains(word),
        };
        assert!(found, "{word}: {}", faults[0]);
    }
}

#[test]
fn messages_that_nobody_receives_are_found() {
    bad(
        2,
        "0 MPI_Send dest=1 tag=5 count=1\n0 MPI_Send dest=1 tag=5 count=1\n1 MPI_Recv source=0 tag=5 count=1",
        &["MPI_COMM_WORLD", "rank 0 to 1", "tag 5", "2 sent, 1 received", "MPI_Send (line 3)"],
    );
    bad(
        3,
        "2 MPI_Recv source=0 tag=5 count=1",
        &["rank 0 to 2", "1 receives without a send", "MPI_Recv (line 2)"],
    );
    // The same number in all, with another tag.
    let crossed = "0 MPI_Send dest=1 tag=5\n1 MPI_Recv source=0 tag=6";
    assert_eq!(faults(2, crossed).len(), 2);
    good(
        2,
        "0 MPI_Sendrecv dest=1 source=1 sendtag=3 recvtag=4\n1 MPI_Sendrecv dest=0 source=0 sendtag=4 recvtag=3",
    );
    good(2, "0 MPI_Send dest=-1\n1 MPI_Recv source=-1 rsource=-1");
}

#[test]
fn messages_larger_than_their_receive_are_found() {
    bad(
        2,
        "0 MPI_Send dest=1 count=2\n0 MPI_Send dest=1 count=3 type=1\n\
         1 MPI_Recv source=0 count=2\n1 MPI_Recv source=0 count=5",
        &["rank 0 to 1", "MPI_Send (line 3) sends 24 bytes", "MPI_Recv (line 5) has room for 20"],
    );
    // In order, whoever comes first in the trace.
    bad(
        2,
        "1 MPI_Send dest=0 count=9\n0 MPI_Recv source=1 count=8",
        &["rank 1 to 0", "sends 36 bytes", "has room for 32"],
    );
    good(2, "0 MPI_Send dest=1 count=4\n1 MPI_Recv source=0 count=2 type=1");
}

#[test]
fn what_wildcards_got_is_what_counts() {
    good(
        3,
        "0 MPI_Recv source=-2 tag=-1 rsource=2 rtag=7 count=9\n2 MPI_Send dest=0 tag=7\n\
         0 MPI_Irecv source=-2 tag=-1 request=0 count=9\n1 MPI_Send dest=0 tag=3\n\
         0 MPI_Wait requests=0 completed=0 source=1 tag=3 bytes=0",
    );
    bad(
        2,
        "0 MPI_Irecv source=-2 tag=-1 request=0\n0 MPI_Wait requests=0 completed=0 source=1 tag=3 bytes=0",
        &["rank 1 to 0", "tag 3", "MPI_Irecv (line 2)"],
    );
    // What was freed may have got anything.
    good(2, "0 MPI_Irecv source=-2 tag=-1 request=0\n0 MPI_Request_free request=0\n1 MPI_Send dest=0 tag=3");
}

#[test]
fn persistent_cancelled_and_matched_messages_are_counted() {
    good(
        2,
        "0 MPI_Send_init dest=1 tag=4 count=2 request=0\n1 MPI_Recv_init source=0 tag=4 count=2 request=0\n\
         * MPI_Start request=0\n* MPI_Wait requests=0 completed=0 source=0 tag=4 bytes=8\n\
         * MPI_Start request=0\n* MPI_Wait requests=0 completed=0 source=0 tag=4 bytes=8\n* MPI_Request_free request=0",
    );
    bad(
        2,
        "0 MPI_Send_init dest=1 tag=4 count=2 request=0\n0 MPI_Startall n=1 requests=0\n\
         0 MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-9",
        &["rank 0 to 1", "1 sent, 0 received", "MPI_Send_init (line 2)"],
    );
    good(
        2,
        "0 MPI_Irecv source=1 tag=4 request=0\n0 MPI_Cancel request=0\n\
         0 MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-10",
    );
    good(
        2,
        "0 MPI_Mprobe source=-2 tag=-1 rsource=1 rtag=2 request=0\n0 MPI_Mrecv request=0 count=3\n1 MPI_Send dest=0 tag=2 count=3",
    );
    bad(
        2,
        "0 MPI_Mprobe source=-2 tag=-1 rsource=1 rtag=2 request=0\n0 MPI_Mrecv request=0 count=2\n\
         1 MPI_Send dest=0 tag=2 count=3",
        &["sends 12 bytes", "has room for 8"],
    );
}

#[test]
fn intercommunicators_have_two_sides() {
    // Rank 1 of the lower half and rank 0 of the upper one: 1 and 2 of all.
    good(4, "1 MPI_Send dest=0 tag=1 comm=2\n2 MPI_Recv source=1 tag=1 comm=2");
    bad(
        4,
        "1 MPI_Send dest=0 tag=1 comm=2\n2 MPI_Send dest=1 tag=1 comm=2\n2 MPI_Recv source=1 tag=1 comm=2",
        &["two sides", "rank 0 (rank 2 of all) to 1", "1 sent, 0 received"],
    );
    good(
        4,
        "0 MPI_Bcast root=-3 count=1 comm=2\n1 MPI_Bcast root=-1 comm=2\n2 MPI_Bcast root=0 count=1 comm=2\n3 MPI_Bcast root=0 count=1 comm=2",
    );
}

#[test]
fn members_that_do_not_agree_are_found() {
    bad(
        2,
        "0 MPI_Barrier\n1 MPI_Allreduce count=1",
        &[
            "MPI_COMM_WORLD",
            "operation 2",
            "rank 0 in MPI_Barrier (line 2)",
            "rank 1 in MPI_Allreduce (line 3)",
        ],
    );
    bad(3, "0 MPI_Bcast root=0\n1 MPI_Bcast root=0\n2 MPI_Bcast root=1", &["rank 2", "root 0 and 1"]);
    bad(2, "0 MPI_Bcast count=2\n1 MPI_Bcast count=3", &["8 and 12 bytes"]);
    bad(2, "0 MPI_Reduce op=0 count=1\n1 MPI_Reduce op=1 count=1", &["another operation"]);
    bad(
        3,
        "0 MPI_Barrier\n1 MPI_Barrier\n0 MPI_Ibarrier request=0\n1 MPI_Ibarrier request=0\n2 MPI_Barrier\n\
         2 MPI_Ibarrier request=0\n2 MPI_Barrier\n* MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-9",
        &["rank 2 in MPI_Barrier (line 8)", "MPI_Finalize"],
    );
    bad(
        3,
        "* MPI_Barrier\n0 MPI_Gatherv root=0 recvcounts=1,2,2 sendcount=1\n\
         1 MPI_Gatherv root=0 sendcount=2\n2 MPI_Gatherv root=0 sendcount=3",
        &["rank 2 to 0", "MPI_Gatherv (line 5) gives 12 bytes", "MPI_Gatherv (line 3) takes 8"],
    );
    good(2, "0 MPI_Bcast count=2\n1 MPI_Bcast count=1 type=1");
}

#[test]
fn exchanges_agree_pair_by_pair() {
    let exchange = |ten: i64| {
        format!(
            "0 MPI_Alltoallv sendcounts=1,2 recvcounts=1,{ten}\n1 MPI_Alltoallv sendcounts=10,4 recvcounts=2,4"
        )
    };
    good(2, &exchange(10));
    bad(2, &exchange(11), &["rank 1 to 0", "gives 40 bytes", "takes 44"]);
}

#[test]
fn what_is_started_must_complete() {
    bad(
        2,
        "0 MPI_Isend dest=1 request=0\n0 MPI_Isend dest=1 request=1\n1 MPI_Recv source=0\n1 MPI_Recv source=0\n\
         0 MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-9",
        &["rank 0: 1 started by MPI_Isend (line 3) never completed"],
    );
    bad(
        2,
        "1 MPI_Wait requests=4 completed=0 source=-9 tag=-9 bytes=-9",
        &["rank 1: MPI_Wait (line 2) completes 1 that nothing has started"],
    );
}

#[test]
fn what_one_thread_starts_another_cannot_complete() {
    bad(
        1,
        "0/1 MPI_Irecv source=0 tag=4 request=0\n0 MPI_Send dest=0 tag=4\n\
         0 MPI_Wait requests=0 completed=0 source=0 tag=4 bytes=0",
        &["rank 0: MPI_Wait (line 4) completes 1 that another thread has started"],
    );
    good(
        1,
        "0/1 MPI_Irecv source=0 tag=4 request=0\n0 MPI_Send dest=0 tag=4\n\
         0/1 MPI_Wait requests=0 completed=0 source=0 tag=4 bytes=0",
    );
}

#[test]
fn what_cannot_be_judged_is_not_refused() {
    // A receive that failed has taken its message, and may have taken another's place.
    good(
        2,
        "0 MPI_Send dest=1 count=6\n0 MPI_Send dest=1 count=2\n1 MPI_Recv!15 source=0 count=2\n1 MPI_Recv source=0 count=2",
    );
    // A rank that did not come to its end.
    let mut checker = Checker::new(None, None);
    for section in sections(2, "* MPI_Init\n0 MPI_Send dest=1\n0 MPI_Barrier\n0 MPI_Finalize") {
        checker.see(&section).unwrap();
    }
    assert_eq!(checker.finish(&st_cli::Symbols::default(), &|_| ()).faults, [""; 0]);
}

/// What is found where calls and threads that cannot be replayed are left out.
fn faults_as_replayed(no_files: bool, sections: &[Section]) -> Vec<String> {
    faults_where(Where { files: !no_files, ..Where::default() }, None, sections)
}

fn faults_where(here: Where, scale: Option<&str>, sections: &[Section]) -> Vec<String> {
    let mut checker = Checker::new(scale.map(|f| f.parse().unwrap()), Some(here));
    sections.iter().for_each(|s| checker.see(s).unwrap());
    checker.finish(&st_cli::Symbols::default(), &|_| ()).faults
}

#[test]
fn messages_of_a_thread_that_is_left_out_are_missing() {
    let program = "* MPI_Init\n1 MPI_Recv source=0 tag=5\n* MPI_Finalize";
    let mut ranks = sections(2, program);
    // A further thread of rank 0 sends them; it uses an info object, so that it is not replayed.
    let further = "* MPI_Init\n* MPI_Finalize\n0/1 MPI_Info_create\n0/1 MPI_Send dest=1 tag=5";
    ranks[0] = sections(2, further).swap_remove(0);
    let mut checker = Checker::new(None, None);
    ranks.iter().for_each(|s| checker.see(s).unwrap());
    assert_eq!(checker.finish(&st_cli::Symbols::default(), &|_| ()).faults, [""; 0]);
    let found = faults_as_replayed(true, &ranks);
    assert_eq!(found.len(), 1, "{found:#?}");
    for said in ["rank 0 to 1, tag 5", "0 sent, 1 received", "line 2)", "rank 1 would wait for ever"] {
        assert!(found[0].contains(said), "{said}: {}", found[0]);
    }
}

#[test]
fn what_a_call_makes_that_is_left_out_cannot_be_used() {
    let opens = "* MPI_Init\n* MPI_File_open newfile=0\n* MPI_File_iwrite file=0 request=0\n\
                 * MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=4\n* MPI_File_close freefile=0\n* MPI_Finalize";
    for files in [true, false] {
        assert_eq!(faults_as_replayed(files, &sections(1, opens)), [""; 0]);
    }
    let spawns = "* MPI_Init\n* MPI_Comm_spawn comm=0 newcomm=2\n* MPI_Barrier comm=2\n* MPI_Finalize";
    let found = faults_as_replayed(true, &sections(2, spawns));
    let said = "line 3) uses, 1 times, what no call makes that is replayed";
    assert!(found.len() == 2 && found[0].contains(said), "{found:#?}");
}

#[test]
fn a_communicator_that_nothing_makes_cannot_be_used() {
    let program = "* MPI_Init\n* MPI_Ibarrier comm=2 request=0\n\
                   * MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-9\n* MPI_Finalize";
    let mut ranks = sections(2, program);
    let faults = |ranks: &[Section]| {
        let mut checker = Checker::new(None, None);
        ranks.iter().for_each(|s| checker.see(s).unwrap());
        checker.finish(&st_cli::Symbols::default(), &|_| ()).faults
    };
    assert_eq!(faults(&ranks), [""; 0]);
    // What others have recorded does not say what it is made of.
    let communicators = ranks.iter_mut().map(|section| &mut section.tables.comms[2]);
    communicators.flat_map(|comm| &mut comm.of).for_each(|(_, comm)| comm.content.parent = 0);
    let found = faults(&ranks);
    let said = "line 2) uses, 1 times, what no call makes that is replayed";
    assert!(found.len() == 2 && found[0].contains(said), "{found:#?}");
}

#[test]
fn requests_of_calls_that_are_left_out_are_left_out_where_they_complete() {
    let program = "* MPI_Init\n0 MPI_Grequest_start request=0\n0 MPI_Isend dest=1 request=1\n\
                   0 MPI_Waitall n=2 requests=0,1 completed=0,1 source=-9,-9 tag=-9,-9 bytes=-9,-9\n\
                   0 MPI_Isend dest=1 request=0\n\
                   0 MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-9\n\
                   0 MPI_Wait requests=0 completed=0 source=-9 tag=-9 bytes=-9\n\
                   1 MPI_Recv source=0\n1 MPI_Recv source=0\n* MPI_Finalize";
    let found = faults_as_replayed(false, &sections(2, program));
    assert!(found.len() == 1 && found[0].contains("line 7) completes 1"), "{found:#?}");
}

#[test]
fn what_others_wait_for_is_left_out_by_what_calls_are_here_and_have() {
    // Only the receiver has its number as a count that does not fit: of bytes, or of what is 8 bytes long.
    let program = "* MPI_Init\n0 MPI_Send dest=1 type=1 count=300000000\n1 MPI_Recv_c source=0 count=2400000000\n* MPI_Finalize";
    let found = faults_as_replayed(true, &sections(2, program));
    assert!(found.len() == 1 && found[0].ends_with("rank 0 may wait for ever"), "{found:#?}");
    let both =
        program.replace("MPI_Send dest=1 type=1 count=300000000", "MPI_Send_c dest=1 count=2400000000");
    assert_eq!(faults_as_replayed(true, &sections(2, &both)), [""; 0]);
    // What is left out is decided by what scaling makes of counts.
    let half = faults_where(Where::default(), Some("0.5"), &sections(2, &both));
    assert_eq!(half, [""; 0]);
    let plain = "* MPI_Init\n0 MPI_Send dest=1 type=1 count=300000000\n1 MPI_Recv source=0 count=600000000\n* MPI_Finalize";
    assert_eq!(faults_as_replayed(true, &sections(2, plain)), [""; 0]);
    let found = faults_where(Where::default(), Some("4"), &sections(2, plain));
    assert!(found.len() == 1 && found[0].ends_with("rank 0 may wait for ever"), "{found:#?}");
    // And by what this MPI has: here a function is not.
    let message = "* MPI_Init\n0 MPI_Ssend dest=1\n1 MPI_Irecv source=0 request=0\n\
                   1 MPI_Wait requests=0 completed=0 source=0 tag=0 bytes=0\n* MPI_Finalize";
    let without = |name: &str| Where { lacking: [name.to_owned()].into(), ..Where::default() };
    assert_eq!(faults_where(without("MPI_Recv"), None, &sections(2, message)), [""; 0]);
    let found = faults_where(without("MPI_Irecv"), None, &sections(2, message));
    assert!(found.len() == 1 && found[0].ends_with("rank 0 may wait for ever"), "{found:#?}");
}

#[test]
fn others_wait_in_vain_for_a_call_that_failed_and_is_left_out() {
    let program = "* MPI_Init\n0 MPI_Barrier\n1 MPI_Barrier!15\n* MPI_Finalize";
    let found = faults_as_replayed(true, &sections(2, program));
    assert!(found.len() == 1 && found[0].contains("rank 0 in MPI_Barrier ("), "{found:#?}");
    // A message whose receive is left out: a short one is sent all the same, another may wait for it, a synchronous one does.
    let sent = |by: &str, count| {
        format!("* MPI_Init\n0 {by} dest=1 count={count}\n1 MPI_Recv!15 source=0\n* MPI_Finalize")
    };
    assert_eq!(faults_as_replayed(true, &sections(2, &sent("MPI_Send", 1024))), [""; 0]);
    for program in [sent("MPI_Send", 1025), sent("MPI_Ssend", 1)] {
        let found = faults_as_replayed(true, &sections(2, &program));
        assert!(found.len() == 1 && found[0].ends_with("rank 0 may wait for ever"), "{found:#?}");
    }
    let failed = verdict(2, "0 MPI_Send dest=1\n1 MPI_Recv!15 source=0", None).failed.unwrap();
    assert!(failed.starts_with("not judged: calls on rank 1 that failed"), "{failed}");
}

#[test]
fn scaled_messages_are_checked_as_scaled() {
    let half = Some("0.5".parse().unwrap());
    let plain = "0 MPI_Send dest=1 count=3\n1 MPI_Recv source=0 count=3\n* MPI_Bcast count=3";
    assert_eq!(verdict(2, plain, half).faults, [""; 0]);
    let mixed = "0 MPI_Bcast count=2\n1 MPI_Bcast count=1 type=1";
    let faults = verdict(2, mixed, half).faults;
    assert!(faults.len() == 1 && faults[0].contains("4 and 0 bytes"), "{faults:?}");
}

#[test]
fn a_verdict_counts_what_it_saw() {
    let v = verdict(2, "0 MPI_Send dest=1 tag=5\n1 MPI_Recv source=0 tag=5\n* MPI_Barrier", None);
    assert_eq!((v.calls, v.messages, v.channels, v.operations), (8, 1, 1, 3));
    // Each call of a series of polls is one.
    assert_eq!(verdict(1, "0 MPI_Iprobe source=0 tag=5 flag=0 times=7", None).calls, 7 + 2);
}
