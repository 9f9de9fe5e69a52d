//! Runs so long that nobody could go through their calls: what is asked of them costs what their structure does.

use serde_json::Value;
use st_kernels::Kernel;
use st_model::ints::Sealed;
use st_model::section::{Elastic, Section};
use st_model::tree::Item;
use st_reduce::merge::merge;

use crate::common::{kernel, printed, run, tried, untimed, write};

/// Ten million calls of each of 64 ranks, or so.
const TURNS: i64 = 1_000_000;
/// Steps that any question may take: a thousandth of the calls would be more.
const STEPS: &str = "300000";

/// Ranks put together, whose outermost loops make so many turns. Times are those of the short run.
fn long(sections: Vec<Section>, turns: i64) -> Section {
    let mut section = merge(untimed(sections), false).unwrap();
    for thread in &mut section.threads {
        let (mut end, mut loops) = (0, 0);
        for (node, item) in thread.tree.items().iter().enumerate() {
            if node >= end && matches!(item, Item::Body { .. }) {
                end = thread.tree.end_of(node);
                thread.counts[node] = Elastic::only(Sealed::from_constant(turns));
                loops += 1;
            }
        }
        assert!(loops > 0);
    }
    section
}

fn stencil(turns: i64) -> Section {
    long(kernel(Kernel::Stencil2d, 64, 40), turns)
}

/// What a command says in as few steps.
fn told(section: &Section, command: &[&str]) -> Vec<Value> {
    let words = [command, &["--format", "json", "--max-steps", STEPS]].concat();
    printed(vec![section.clone()], &words).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn sums_of_a_long_run_are_those_of_a_short_one_so_many_times() {
    let [one, two, all] = [1, 2, TURNS].map(stencil);
    assert!(all.steps(None) > 64 * 10_000_000);
    for command in [&[][..], &["calls", "--sites"], &["calls", "--functions"]] {
        let [one, two, all] = [&one, &two, &all].map(|section| told(section, command));
        assert!(!one.is_empty());
        for (row, short) in one.iter().enumerate() {
            // Rows stand in the order of their times, which are the same.
            for key in ["calls", "sent_bytes", "received_bytes"] {
                let of = |rows: &[Value]| rows[row][key].as_u64().unwrap();
                let turn = of(&two) - of(&one);
                assert_eq!(
                    of(&all),
                    of(&one) + turn * (TURNS.unsigned_abs() - 1),
                    "{command:?} {key} of {short}"
                );
            }
        }
    }
    assert_eq!(told(&all, &[])[0]["partners_most"], 4);
}

/// Boxes are those of a short run; of a loop all turns are there.
#[test]
fn a_long_run_is_drawn_in_logical_time() {
    let [one, all] = [1, TURNS].map(|turns| told(&stencil(turns), &["timeline"]));
    assert_eq!(one.len(), all.len());
    let calls = |of: &[Value], what: &str| {
        of.iter().filter(|of| of["what"] == what).filter_map(|of| of["calls"].as_u64()).max().unwrap()
    };
    assert_eq!(calls(&all, "loop"), calls(&one, "loop") * TURNS.unsigned_abs());
}

#[test]
fn that_nothing_is_left_by_a_long_run_is_known() {
    assert!(told(&stencil(TURNS), &["leaks"]).is_empty());
    // Of receives from anybody it takes the calls.
    let open = long(kernel(Kernel::Workers, 5, 40), TURNS);
    let refused = tried(vec![open], &["leaks", "--max-steps", STEPS]).unwrap_err();
    assert!(refused.chain().any(|e| e.to_string().contains("--max-steps")), "{refused:?}");
}

#[test]
fn long_runs_that_do_the_same_do_not_differ() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a.st", "b.st"].map(|name| dir.path().join(name));
    paths.iter().for_each(|path| write(path, vec![stencil(TURNS)]));
    let [a, b] = paths.each_ref().map(|path| path.to_str().unwrap());
    let text = run(&["diff", "--max-steps", STEPS, a, b]).unwrap();
    assert!(text.contains("no difference: ") && text.contains(", 0 different"), "{text}");
}
