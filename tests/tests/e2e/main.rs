//! End to end: real programs under real MPIs, through every stage. Needs `make build`; see the library.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod accidents;
mod columns;
mod converted;
mod damaged;
mod faults;
mod follow;
mod handmade;
mod inside;
mod interim;
mod jobs;
mod kernels;
mod lacking;
mod launch;
mod libraries;
mod merged;
mod mutation;
mod names;
mod oracle;
mod paced;
mod pipes;
mod predicted;
mod python;
mod recorder;
mod reduced;
mod refusals;
mod replay;
mod several;
mod signatures;
mod situations;
mod slurm;
mod stages;
mod sync;
mod truncation;
mod volumes;
mod what_if;
