//! Damaged traces whose checksums are right: an error that says what is wrong, or a result; in bounded memory, and nothing half
//! written.

use std::process::Command;

use crate::common::kernel;
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
