//! The recorder: a library preloaded into an MPI program, built once per MPI.
//!
//! For every function of `mpi.h` the build script generates two exported wrappers, `MPI_x` and `PMPI_x`, each of which
//! forwards to the next definition of its own name; language bindings and other tools may come in by either. The
//! outermost one records: it reads the inputs into words as the call table's row says, makes the real call, reads the
//! outputs, and hands the call to [`st_trace::record::RankRecorder`].
//!
//! * `call`, `scribe`, `lists`, `completion`: one call and its words. `normal`: constants.
//! * `echo`: the loop in progress, whose calls are only compared.
//! * `comms`, `types`, `joint` (windows and files), `infos`, `numbered`, `requests`: from handles to what the trace calls
//!   them. `polls`: series of failed polls. `bindings`: languages.
//! * `state`, `local`, `lock`, `clock`: per process and per thread. `life`, `jobs`: begin and end. `output`: the stream.
//! * `journal`, `mapping`: what is left if the process is killed. `limits`: of the process, that we must not run into;
//!   `memory`: a reserve for when there is no other.
//! * `sync`: compares clocks, with messages of its own on communicators of its own. `merge`: the ranks' streams become one
//!   before the program ends, and while it runs, if that is asked for.
//!
//! What it deliberately does not do: it reads no user buffer, installs no signal handler, sends no message but in
//! `MPI_Init` and `MPI_Finalize` (unless an interval for more is set), and never changes what a call returns. If
//! anything inside fails it says so in one line and gets out of the way.
#![expect(unsafe_code, reason = "interposes C functions")]

mod bindings;
mod call;
mod clock;
mod comms;
mod completion;
mod echo;
mod ffi;
mod follow;
mod generated;
mod infos;
mod jobs;
mod joint;
mod journal;
mod life;
mod limits;
mod lists;
mod local;
mod lock;
mod made;
mod mapping;
mod memory;
mod merge;
mod message;
mod normal;
mod numbered;
mod output;
mod polls;
mod real;
mod requests;
mod scribe;
mod settings;
#[expect(unreachable_pub, reason = "public in the launcher, whose file it is")]
#[path = "../../src/size.rs"]
mod size;
mod state;
mod sync;
mod thread;
mod types;
