//! The recorder: a library preloaded into an MPI program, one for every MPI. It is built without any, and links none: it serves the MPI
//! that the program has loaded, in the binary interface of that one's family.
//!
//! For every function of the standard the build script generates two exported wrappers, `MPI_x` and `PMPI_x`, each of which
//! forwards to the next definition of its own name; language bindings and other tools may come in by either. The
//! outermost one records: it reads the inputs into words as the call table's row says, makes the real call, reads the
//! outputs, and hands the call to [`st_capture::record::RankRecorder`].
//!
//! From the bottom up; none imports one of a later line, and there are no circles within a line:
//!
//! * `message`: what we say. `family`, `constants`: what families of MPI differ in. `ffi`: MPI's types. `dl`, `loaded_files`: the
//!   dynamic linker, and what it has loaded. `library`: the MPI that the program has loaded. `left_out`, `exports`: its functions. `real`:
//!   their next definitions. `normal`, `statuses`: its constants and results as the trace has them. `limits`: of the process, that we must not run into. `local`,
//!   `lock`, `clock`: per thread and per process. `memory`: a heap of our own. `cost`: our own time.
//! * `comms`, `types`, `shared_objects` (windows and files), `infos`, `numbered`, `requests`: from handles to what the trace calls
//!   them; `maker`: what made an object. `polls`: series of failed polls. `bindings`: languages. `thread`: a thread, and its call. `python`: call sites in an interpreter.
//! * `settings`. `ancestry`: of the process. `journal`, `mapping`: what is left if the process is killed. `output`: the stream.
//!   `run`: its identity. `attributes`: of the world. `jobs`: where each has its streams. `muster`: whether all ranks are recorded. `sync`: compares clocks, with messages of its own on communicators of its own. `merge`:
//!   the ranks' streams become one before the program ends, and while it runs, if that is asked for.
//! * `argument_cache`: the loop in progress, whose calls are only compared.
//! * `state`: all of it, behind one lock; `follow`: its side of `argument_cache`; `interpreted`: of `python`; `closed`: modules that are gone; `nested`: calls inside of others; `outside`: calls of the tools' interface where nothing is recorded. `call_encoder`: writes a call's words down.
//! * `life`: begin and end. `call`: one call on its way; `left`: one that the program leaves by `longjmp`. `generated`: the wrappers. `jumps`: the exported symbols,
//!   which lead there. `lookup`: programs that look symbols up; `weak`: those that ask by references whether a function is there; `deep`: modules that are bound past us.
//!
//! What it deliberately does not do: it reads no user buffer, installs no signal handler, sends no message but in
//! `MPI_Init` and `MPI_Finalize` (unless an interval for more is set), and never changes what a call returns. If
//! anything inside fails it says so in one line and gets out of the way.
#![expect(unsafe_code, reason = "interposes C functions")]

mod again;
mod ancestry;
mod argument_cache;
mod attributes;
mod bindings;
mod call;
mod call_encoder;
mod call_sites;
mod clock;
mod closed;
mod comms;
mod constants;
mod cost;
mod deep;
mod dl;
#[expect(unreachable_pub, reason = "public in the launcher, whose file it is")]
#[path = "../../src/exports.rs"]
mod exports;
mod family;
mod ffi;
mod follow;
mod generated;
mod host;
mod infos;
mod inside;
mod interpreted;
mod jobs;
mod journal;
mod jumps;
mod left;
#[expect(unreachable_pub, reason = "public in the launcher, whose file it is")]
#[path = "../../src/left_out.rs"]
mod left_out;
mod library;
mod life;
mod limits;
mod loaded_files;
mod local;
mod lock;
mod lookup;
mod maker;
mod mapping;
mod memory;
mod merge;
mod message;
mod muster;
mod nested;
mod normal;
mod note;
mod numbered;
mod output;
mod outside;
mod own_file;
mod polls;
mod python;
mod queued;
mod real;
mod requests;
mod run;
mod series;
mod settings;
mod shared_objects;
mod state;
mod statuses;
mod sync;
mod thread;
#[expect(unreachable_pub, reason = "public in the launcher, whose file it is")]
#[path = "../../src/trace_name.rs"]
mod trace_name;
mod types;
mod weak;
