//! Damaged traces whose checksums are right: an error that says what is wrong, or a result; in bounded memory, and nothing half
//! written.

use std::process::Command;

use crate::common::{Made, kernel};
use st_kernels::Kernel;

const NAMES: [&str; 8] = ["a.pftrace", "a.json", "a.csv", "a.parquet", "a.arrow", "a.ti", "a.goal", "a.prv"];

/// kB of address space that the program may take.
const MEMORY: u32 = 3_000_000;

#[test]
fn damage_is_said_and_leaves_nothing_behind() {
    let (mut refused, mut converted) = (0, 0);
    for which in [Kernel::Workers, Kernel::Stencil2d, Kernel::Fft] {
        let made = kernel(which);
        let whole = std::fs::read(made.path("app.st")).unwrap();
        for seed in 0..70 {
            let name = NAMES[usize::try_from(seed).unwrap() % NAMES.len()];
            let place = tempfile::tempdir().unwrap();
            std::fs::write(place.path().join("app.st"), st_damage::damaged(&whole, seed).unwrap()).unwrap();
            let line = format!(
                "ulimit -v {MEMORY}; exec '{}' app.st --max-steps 300000 -o {name}",
                env!("CARGO_BIN_EXE_st-convert")
            );
            let output = Command::new("sh").arg("-c").arg(&line).current_dir(place.path()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            assert!(matches!(code, Some(0..=3)), "{which:?} {seed} {name}: {code:?} {said}");
            assert!(!said.contains("panicked"), "{which:?} {seed} {name}: {said}");
            let files = place.path().read_dir().unwrap().count();
            if code == Some(0) {
                converted += 1;
                assert!(place.path().join(name).exists(), "{which:?} {seed} {name}");
            } else {
                refused += 1;
                assert!(said.contains("st-convert: "), "{said}");
                assert_eq!(files, 1, "{which:?} {seed} {name}: something is left of {said}");
            }
        }
    }
    assert!(refused > 20 && converted > 20, "{refused} {converted}");
}

/// To hand a call on takes longer than to read it: a trace of many in a few bytes is refused in time.
#[test]
fn a_call_that_is_handed_on_is_two_steps() {
    let made = kernel(Kernel::Stencil1d);
    let output = Command::new(env!("CARGO_BIN_EXE_st-convert"))
        .args(["app.st", "--max-steps", "1", "-o", "a.csv"])
        .current_dir(made.path("app.st").parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // And each of the four threads is 128.
    let steps: u64 = made.sections.iter().map(|section| 2 * section.steps(None) + 128).sum();
    assert!(said.contains(&format!(" {steps} steps or more")) && said.contains("--ranks"), "{said}");
}

#[test]
fn that_times_are_not_there_is_said_before_more_steps_are_advised() {
    let mut sections = kernel(Kernel::Stencil1d).sections;
    sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|t| t.columns.clear());
    let output = Made::of(sections).run(&["--max-steps", "1", "-o", "a.otf2"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let times = said.contains("exact times") && !said.contains("--max-steps");
    assert!(output.status.code() == Some(2) && times, "{said}");
}
