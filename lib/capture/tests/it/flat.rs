//! The papers' leaf lists of the papers' examples.

use st_capture::fold::{DEFAULT_WINDOW, Fold, Folder, Likeness};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallId;
use st_model::form::Form;
use st_model::section::Elastic;
use st_stream::text::flat;

/// The leaf list of a sequence of one-letter events: `A(4,3) S(3,3 3 3) R W`.
fn list(events: &str) -> String {
    list_by(events, Folder::new(DEFAULT_WINDOW))
}

/// That of the tree that a folder makes of it, be it the smallest or not.
fn list_by(events: &str, mut folder: Folder) -> String {
    let mut r = RankRecorder::new(0, Options::default());
    r.open_thread(0);
    let mut names = Vec::new();
    for name in events.chars() {
        let site = r.sites.label(&name.to_string());
        // MPI_Finalize has no parameters.
        let sym = r.symbol(CallId(3), site, 0);
        if names.len() <= sym as usize {
            names.push(name);
        }
        r.record(0, sym, &[], 0, 0);
        folder.push(sym);
    }
    let mut s = r.finish("host");
    let (tree, counts) = folder.finish().flatten();
    let count = |c| Elastic { form: Form::Absolute, partition: 0, streams: [c].into() };
    s.threads[0].tree = tree;
    s.threads[0].counts = counts.into_iter().map(count).collect();
    let leaf = |line: &String| {
        let rest = line.strip_prefix("<1 0 1 0> s").unwrap();
        let (number, rest) = rest.split_once(' ').unwrap();
        let stack = rest.strip_prefix("MPI_Finalize").unwrap().trim();
        format!("{}{stack}", names[number.parse::<usize>().unwrap()])
    };
    flat::Lists::default().leaves(&s, &s.threads[0]).iter().map(leaf).collect::<Vec<_>>().join(" ")
}

/// Outer work, then `n` rounds of send, receive, wait, for each `n`.
fn rounds(n: &[usize]) -> String {
    n.iter().map(|n| format!("A{}", "SRW".repeat(*n))).collect()
}

/// Source: `algorithms.md` §3.4, where exact folding reaches the papers' form.
#[test]
fn the_papers_loops() {
    assert_eq!(list(&rounds(&[3, 3, 3])), "A(4,3) S(3,3 3 3) R W");
    assert_eq!(list(&rounds(&[2, 5, 1, 4])), "A(4,4) S(3,2 5 1 4) R W");
    assert_eq!(list(&"IR".repeat(5)), "I(2,5) R");
    assert_eq!(list(&format!("{}JQW", "IR".repeat(5))), "I(2,5) R J Q W");
    assert_eq!(list("ABCDCDABCDCDCDABCDCDCDCD"), "A(4,3) B C(2,2 3 4) D");
    assert_eq!(list("AAAAABABABAB"), "A(2,4)(1,5 1 1 1) B");
}

/// Source: Wu, Mueller 2013, figures 1, 2 and 4, as `algorithms.md` §3.4 has them.
#[test]
fn the_papers_loops_of_iterations_that_differ() {
    let list = |events: &str| list_by(events, Folder::approximate(Likeness::default(), DEFAULT_WINDOW));
    assert_eq!(list("124134"), "1(4,2) 2(1,1 0) 3(1,0 1) 4");
    assert_eq!(list(&rounds(&[3, 3, 3])), "A(4,3) S(3,3 3 3) R W");
    assert_eq!(list(&rounds(&[2, 5, 1, 4])), "A(4,4) S(3,2 5 1 4) R W");
    assert_eq!(list(&rounds(&[1, 2, 3, 4])), "A(4,4) S(3,1 2 3 4) R W");
    assert_eq!(list("ABCDCDABCDCDCDABCDCDCDCD"), "A(4,3) B C(2,2 3 4) D");
    assert_eq!(list("AAAAABABABAB"), "A(2,4)(1,5 1 1 1) B");
    assert_eq!(list(&format!("{}JQW", "IR".repeat(5))), "I(2,5) R J Q W");
}

/// Source: `algorithms.md` §3.4, figure 4: ranks 0 and 1, distinct call sites.
#[test]
fn the_papers_nonblocking_exchange() {
    assert_eq!(list(&format!("{}JQW", "IR".repeat(5))), "I(2,5) R J Q W");
    assert_eq!(list(&format!("{}W", "IR".repeat(6))), "I(2,6) R W");
    assert_eq!(list(&"IRW".repeat(6)), "I(3,6) R W");
    assert_eq!(list(&rounds(&[1, 2, 3, 4])), "A(4,4) S(3,1 2 3 4) R W");
}

/// Source: `algorithms.md` §3.2: the nested loops of 1000 by 100 iterations make 201,000 events.
#[test]
fn the_papers_nested_loops() {
    let events = format!("{}B", "AC".repeat(100)).repeat(1000);
    assert_eq!(events.len(), 201_000);
    assert_eq!(list(&events), "A(3,1000)(2,100*1000) C B");
}

#[test]
fn nothing_is_folded_if_so_wanted() {
    assert_eq!(list_by("ABABAAB", Folder::by(Fold::None, DEFAULT_WINDOW)), "A B A B A(1,2) B");
}

#[test]
fn long_vectors_are_runs() {
    let many = rounds(&[vec![7; 9], vec![1, 2]].concat());
    assert_eq!(list(&many), "A(4,11) S(3,7*9 1 2) R W");
}
