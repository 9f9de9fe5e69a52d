//! What the end-to-end tests share: finding what was built, running MPI jobs that leave nothing behind, recording
//! programs once, and comparing lists of calls.
//!
//! The tests need `make build` and `--release`: they use the programs of the profile that they were built in themselves, and
//! the recorder and engines that these programs find. `ST_TESTS_TARGET` names another target directory.

pub mod compare;
pub mod job_output;
pub mod jobs;
pub mod place;
pub mod process;
pub mod recordings;
pub mod render;
pub mod workplace;

/// What went wrong, for people.
pub type Failure = String;

/// Ends a test that looked at many cases: fails with all failures at once, if there are any.
///
/// # Panics
///
/// If there are.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn conclude(cases: usize, failures: &[Failure]) {
    assert!(cases > 0, "nothing was tested");
    if !failures.is_empty() {
        panic!("{} of {cases} cases failed:\n\n{}\n", failures.len(), failures.join("\n\n"));
    }
}
