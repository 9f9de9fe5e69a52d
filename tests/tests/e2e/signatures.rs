//! Approximate call sites: fewer of them, and nothing else is lost.

use std::collections::BTreeSet;
use std::path::Path;

use st_tests::process::Run;
use st_tests::workplace::Workplace;
use st_tests::{Failure, render};

use crate::launch::{check, under_each};

/// Call sites of barriers, how many each rank made, and whether calls of other functions were made at one of their sites.
fn barriers(trace: &Path) -> Result<(usize, Vec<usize>, bool), Failure> {
    let ranks = render::viewed(trace)?;
    let of = |calls: &Vec<render::Object>, barriers: bool| -> Vec<String> {
        let calls = calls.iter().filter(|c| (c["call"] == "MPI_Barrier") == barriers);
        calls.map(|c| c["site"].to_string()).collect()
    };
    let sites: Vec<Vec<String>> = ranks.values().map(|calls| of(calls, true)).collect();
    let different: BTreeSet<&String> = sites.iter().flatten().collect();
    let mixed = ranks.values().flat_map(|calls| of(calls, false)).any(|site| different.contains(&site));
    Ok((different.len(), sites.iter().map(Vec::len).collect(), mixed))
}

/// Call sites of the program's barriers.
const DEPTHS: usize = 8;

/// Records the program with options, and says how many call sites its barriers have. Only those may be given up, and only if
/// there are fewer than the program has.
fn sites(p: &Workplace, options: &str) -> Result<usize, Failure> {
    let words = format!("-q -o deep.st {options}");
    p.outside(&words, "./deep")?.ok()?;
    let o = p.go(Run::st("st-view", ["--check", "deep.st"])?)?.ok()?;
    let (sites, calls, mixed) = barriers(&p.path("deep.st"))?;
    let kept = if sites == DEPTHS { "sites ok" } else { "sites voided" };
    check(
        o.text().contains(&format!("calls ok, {kept}, endpoints ok, counts ok, tags ok, rest ok")),
        kept,
        &o,
    )?;
    if mixed {
        return Err(format!("{options}: another function has the call site of a barrier"));
    }
    let expected = vec![24; calls.len()];
    if calls == expected { Ok(sites) } else { Err(format!("{options}: {calls:?} barriers")) }
}

#[test]
fn similar_call_sites_are_one_if_asked_for() {
    under_each(|p| {
        p.compile("deep", "deep.c", &["-O0"])?.ok()?;
        // One level deeper is one frame more and another in the place of one: by two frames stacks differ. Where all places are
        // one, depths still differ.
        let cases = [
            ("", DEPTHS),
            ("--sig-threshold 2", DEPTHS),
            ("--sig-threshold 3", 4),
            ("--sig-threshold 100", 1),
            ("--sig-range deep+0x0-0xffffff", DEPTHS),
            ("--sig-range deep+0x0-0xffffff --sig-threshold 2", 4),
        ];
        for (options, expected) in cases {
            let found = sites(p, options)?;
            if found != expected {
                return Err(format!("{options}: {found} call sites instead of {expected}"));
            }
        }
        Ok(())
    });
}
