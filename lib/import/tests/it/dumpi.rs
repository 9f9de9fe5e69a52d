//! What dumpi2ascii prints, read: its forms of values, and what is refused.

use st_import::dumpi::{Sizes, is_dumpi, rank_of, read};
use st_import::{Importer, Left};
use st_model::section::Section;

/// A rank's file, of two.
fn text(rank: u32) -> String {
    let other = 1 - rank;
    format!(
        "version=0.9.9
MPI_Init entering at walltime 8153.0493, cputime 0.0044 seconds in thread 0.
int argc=1
string argv[1]=<IGNORED>
MPI_Init returning at walltime 8153.049400000, cputime 0.004400000 seconds in thread 0.
MPI_Comm_dup entering at walltime 8153.050000000, cputime 0.0 seconds in thread 0.
MPI_Comm oldcomm=2 (MPI_COMM_WORLD)
MPI_Comm newcomm=4 (user-defined-comm)
MPI_Comm_dup returning at walltime 8153.050100000, cputime 0.0 seconds in thread 0.
MPI_Irecv entering at walltime 8153.100000000, cputime 0.1 seconds in thread 0.
Perfcounters: [PAPI_TOT_CYC=17]
int count=100
MPI_Datatype datatype=32 (user-defined-datatype)
int source=-1 (MPI_ANY_SOURCE)
int tag=-1 (MPI_ANY_TAG)
MPI_Comm comm=4 (user-defined-comm)
MPI_Request request=[1]
MPI_Irecv returning at walltime 8153.100001000, cputime 0.1 seconds in thread 0.
MPI_Isend entering at walltime 8153.100002000, cputime 0.1 seconds in thread 0.
int count=50
MPI_Datatype datatype=32 (user-defined-datatype)
int dest={other}
int tag=7
MPI_Comm comm=4 (user-defined-comm)
MPI_Request request=[2]
MPI_Isend returning at walltime 8153.100003000, cputime 0.1 seconds in thread 0.
MPI_Waitany entering at walltime 8153.100004000, cputime 0.1 seconds in thread 0.
int count=2
MPI_Request requests[2]=[1, 2]
int index=0
MPI_Status status=[{{bytes=1200, cancelled=0, source={other}, tag=7, error=0}}]
MPI_Waitany returning at walltime 8153.100005000, cputime 0.1 seconds in thread 0.
MPI_Test entering at walltime 8153.100006000, cputime 0.1 seconds in thread 0.
MPI_Request request=[2]
int flag=0
MPI_Status status=<IGNORED>
MPI_Test returning at walltime 8153.100007000, cputime 0.1 seconds in thread 0.
MPI_Wait entering at walltime 8153.100008000, cputime 0.1 seconds in thread 0.
MPI_Request request=[2]
MPI_Status status=<IGNORED>
MPI_Wait returning at walltime 8153.100009000, cputime 0.1 seconds in thread 0.
MPI_Alltoallv entering at walltime 8153.2, cputime 0.1 seconds in thread 0.
int sendcounts[2]=[1, 2]
int senddispls[2]=[0, 1]
MPI_Datatype sendtype=14 (MPI_DOUBLE)
int recvcounts[2]=[3, 4]
MPI_Datatype recvtype=14 (MPI_DOUBLE)
MPI_Comm comm=2 (MPI_COMM_WORLD)
MPI_Alltoallv returning at walltime 8153.3, cputime 0.1 seconds in thread 0.
MPI_Allreduce entering at walltime 8153.3, cputime 0.1 seconds in thread 0.
int count=3
MPI_Datatype datatype=14 (MPI_DOUBLE)
MPI_Op op=3 (MPI_SUM)
MPI_Comm comm=7 (user-defined-comm)
MPI_Allreduce returning at walltime 8153.31, cputime 0.1 seconds in thread 0.
MPI_Finalize entering at walltime 8153.4, cputime 0.0045 seconds in thread 0.
MPI_Finalize returning at walltime 8153.5, cputime 0.0049 seconds in thread 0.
MPI_Send called 0 times and ignored 0 times
Datatype 32 (user-defined-datatype) has size 24
"
    )
}

fn imported(texts: &[String]) -> Result<(Vec<Section>, Left), String> {
    let world = u32::try_from(texts.len()).unwrap();
    let mut importer = Importer::new(world, false);
    for (text, rank) in texts.iter().zip(0..) {
        let sizes = Sizes::of(text.as_bytes()).map_err(|e| e.to_string())?;
        read(text.as_bytes(), &sizes, rank, world, &mut importer).map_err(|e| e.to_string())?;
    }
    let mut sections = Vec::new();
    let left = importer.finish(|section| {
        sections.push(section);
        Ok::<_, String>(())
    })?;
    Ok((sections, left))
}

#[test]
fn values_are_read_in_all_their_forms() {
    assert!(is_dumpi(&text(0)));
    let (sections, left) = imported(&[text(0), text(1)]).unwrap();
    let mut events = sections[1].events(0, 1).unwrap().timed();
    let mut all = Vec::new();
    while let Some(event) = events.next_event().unwrap() {
        all.push((event.name().unwrap().to_owned(), event.words().words.clone(), event.times.unwrap()));
    }
    let want: [(&str, &[i64]); 9] = [
        ("MPI_Init", &[]),
        ("MPI_Comm_dup", &[0, 2]),
        ("MPI_Irecv", &[100, 0, -2, -1, 2, 0]),
        ("MPI_Isend", &[50, 0, 0, 7, 2, 1]),
        ("MPI_Waitany", &[2, 2, 0, 1, 1, 0, 1, 0, 1, 7, 1, 1200]),
        ("MPI_Test", &[1, 1, 0, 0, 0, 0, 0, 1]),
        ("MPI_Wait", &[1, 1, 1, 0, 1, -9, 1, -9, 1, -9]),
        ("MPI_Alltoallv", &[0, 2, 1, 2, 0, 1, 2, 3, 4, 0, 1, 0]),
        ("MPI_Allreduce", &[0, 3, 1, 0, -1]),
    ];
    for ((name, words, _), want) in all.iter().zip(want) {
        assert_eq!((name.as_str(), &words[..]), want);
    }
    assert_eq!(all.len(), 10);
    // Fractions of seconds may have fewer than nine digits.
    assert_eq!(all[0].2, (8_153_049_300_000, 8_153_049_400_000));
    assert_eq!(sections[1].tables.types[0].of[0].1.content.size, 24);
    let comms = |s: &Section| s.tables.comms[2].of[0].1.clone();
    assert_eq!(comms(&sections[0]), comms(&sections[1]));
    let left: Vec<_> = left.iter().collect();
    assert_eq!(
        left,
        [
            ("calls on communicators whose members are not told", 2),
            ("partners, communicators or requests of MPI_Allreduce (null ones stand for them)", 2)
        ]
    );
    let passed = |s| st_model::check::check(s).unwrap().iter().all(|thread| thread.passed());
    assert!(sections.iter().all(passed));
}

/// Calls, each with its parameters, one per microsecond.
fn lines(calls: &[(&str, &str)]) -> String {
    let line = |(at, (name, parameters)): (usize, &(&str, &str))| {
        let when = |verb, part| {
            format!("{name} {verb} at walltime 1.{at:03}{part}, cputime 0.0 seconds in thread 0.\n")
        };
        format!("{}{parameters}{}", when("entering", 1), when("returning", 2))
    };
    calls.iter().enumerate().map(line).collect()
}

#[test]
fn duplicates_are_counted_for_what_they_are_made_of_and_forgotten_when_freed() {
    let own = ("MPI_Comm_dup", "MPI_Comm oldcomm=3 (MPI_COMM_SELF)\nMPI_Comm newcomm=4 (user)\n");
    let of_world =
        |made: &str| format!("MPI_Comm oldcomm=2 (MPI_COMM_WORLD)\nMPI_Comm newcomm={made} (user)\n");
    let (five, four) = (of_world("5"), of_world("4"));
    let texts = [lines(&[own, ("MPI_Comm_dup", &five)]), lines(&[("MPI_Comm_dup", &four)])];
    let (sections, _) = imported(&texts).unwrap();
    let last = |s: &Section| s.tables.comms.last().unwrap().of[0].1.content.kind.clone();
    assert_eq!([last(&sections[0]), last(&sections[1])], ["duplicate 1 of MPI_COMM_WORLD"; 2]);
    let barrier = ("MPI_Barrier", "MPI_Comm comm=4 (user)\n");
    let free = ("MPI_Comm_free", "MPI_Comm comm=4 (user)\n");
    let split = format!("{four}int color=1\nint key=0\n");
    let untold = |calls: &[(&str, &str)]| {
        let (_, left) = imported(&[lines(calls)]).unwrap();
        left.iter().any(|(what, _)| what == "calls on communicators whose members are not told")
    };
    let made = ("MPI_Comm_dup", four.as_str());
    assert!(!untold(&[made, barrier, free]));
    assert!(untold(&[made, free, barrier]));
    assert!(untold(&[made, ("MPI_Comm_split", &split), barrier]));
}

#[test]
fn a_request_that_is_used_again_receives_no_more() {
    let receive = "int count=8\nMPI_Datatype datatype=1 (MPI_CHAR)\nint source=0\nint tag=7\nMPI_Comm comm=2 (MPI_COMM_WORLD)\nMPI_Request request=[1]\n";
    let status = "MPI_Status status=[{bytes=8, source=0, tag=7, cancelled=0, error=0}]\n";
    let wait = format!("MPI_Request request=[1]\n{status}");
    let barrier = "MPI_Comm comm=2 (MPI_COMM_WORLD)\nMPI_Request request=[1]\n";
    let first = [("MPI_Irecv", receive), ("MPI_Wait", &wait)];
    let both = [first[0], first[1], ("MPI_Ibarrier", barrier), ("MPI_Wait", &wait)];
    let (sections, _) = imported(&[lines(&both)]).unwrap();
    let waits: Vec<_> =
        crate::lines::calls(&sections[0]).into_iter().filter(|call| call.0 == "MPI_Wait").collect();
    assert!(waits[0].1.ends_with(&[1, 0, 1, 7, 1, 8]), "{waits:?}");
    assert!(waits[1].1.ends_with(&[1, -9, 1, -9, 1, -9]), "{waits:?}");
}

#[test]
fn what_cannot_be_is_said_with_its_line() {
    let entering = "MPI_Barrier entering at walltime 1.0, cputime 0.1 seconds in thread 0.\n";
    let returning = "MPI_Barrier returning at walltime 2.0, cputime 0.1 seconds in thread 0.\n";
    let cases = [
        (returning.to_owned(), "line 1: MPI_Barrier returns without being entered"),
        (format!("{entering}{entering}"), "line 2: MPI_Barrier is entered before MPI_Barrier returns"),
        (entering.replace("1.0", "x.0"), "line 1: walltime or thread: no number"),
        (entering.replace("1.0", "1.1234567890"), "line 1: walltime"),
        (entering.replace("1.0", "-1.0"), "line 1: walltime"),
        (entering.replace("1.0", "99999999999999.0"), "line 1: walltime"),
        (entering.replace("thread 0", "thread x"), "line 1: walltime or thread"),
        (format!("{entering}{}", returning.replace("2.0", "0.5")), "exit: 500000000 is before enter"),
        (format!("{entering}{returning}").replace("MPI_Barrier", "main"), "call: main is no function of MPI"),
        (
            format!("{entering}int dest=77\nMPI_Comm comm=2 (MPI_COMM_WORLD)\n{returning}")
                .replace("MPI_Barrier", "MPI_Send"),
            "line 4: MPI_Send: dest: 77 is none of 1 ranks of the communicator",
        ),
    ];
    for (text, part) in cases {
        let error = imported(std::slice::from_ref(&text)).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}\n{part}");
    }
    let (_, left) = imported(&[format!("{entering}{returning}{entering}")]).unwrap();
    assert!(left.iter().any(|(what, n)| what == "calls of MPI_Barrier that do not return" && n == 1));
}

#[test]
fn a_file_s_rank_is_the_last_number_in_its_name() {
    assert_eq!(rank_of("dumpi-2013.09.26.10.55.53-0003.txt"), Some(3));
    assert_eq!(rank_of("rank12"), Some(12));
    assert_eq!((rank_of("trace.txt"), rank_of("x-99999999999.txt")), (None, None));
}
