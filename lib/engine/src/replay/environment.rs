//! Start, end and clocks.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use std::ffi::c_int;
use std::ptr;

use anyhow::{Result, bail};
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::call::mpi;
use crate::replay::state::{Handler, Replay};

/// Longest of `MPI_MAX_PROCESSOR_NAME` and `MPI_MAX_LIBRARY_VERSION_STRING` under any MPI.
const LONGEST_NAME: usize = 8192;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Init, |_, _| mpi!(MPI_Init(ptr::null_mut(), ptr::null_mut()))),
    (names::MPI_Init_thread, init_thread),
    (names::MPI_Finalize, |_, _| mpi!(MPI_Finalize())),
    (names::MPI_Initialized, |_, _| flag(|f| mpi!(MPI_Initialized(f)))),
    (names::MPI_Finalized, |_, _| flag(|f| mpi!(MPI_Finalized(f)))),
    (names::MPI_Wtime, |_, w| {
        repeated(w, || {
            // SAFETY: a clock reading; it takes nothing.
            std::hint::black_box(unsafe { ffi::MPI_Wtime() });
        })
    }),
    (names::MPI_Wtick, |_, w| {
        repeated(w, || {
            // SAFETY: as above.
            std::hint::black_box(unsafe { ffi::MPI_Wtick() });
        })
    }),
    (names::MPI_Get_processor_name, |_, _| name(|text, length| mpi!(MPI_Get_processor_name(text, length)))),
    (names::MPI_Get_library_version, |_, _| name(|text, length| mpi!(MPI_Get_library_version(text, length)))),
    (names::MPI_Query_thread, |_, _| flag(|f| mpi!(MPI_Query_thread(f)))),
    (names::MPI_Is_thread_main, |_, _| flag(|f| mpi!(MPI_Is_thread_main(f)))),
    (names::MPI_Get_version, |_, _| flag(|a| flag(|b| mpi!(MPI_Get_version(a, b))))),
    (names::MPI_Pcontrol, |_, w| {
        let level = w.int()?;
        mpi!(MPI_Pcontrol(level))
    }),
];

/// The word of `MPI_THREAD_MULTIPLE`, which is its value under the MPIs that engines are built for.
const MULTIPLE: c_int = 3;

/// A rank with several threads needs what it needed when it was recorded, and MPI's own protection: the threads no longer
/// wait for each other.
fn init_thread(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let required = w.int()?;
    let (required, mut provided) = (if r.threaded { required.max(MULTIPLE) } else { required }, 0);
    mpi!(MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), required, &raw mut provided))?;
    if r.threaded && provided < MULTIPLE {
        bail!("several threads call MPI, and this MPI gives no MPI_THREAD_MULTIPLE");
    }
    Ok(())
}

/// Calls with an `int` to be written, whose value is of no interest.
fn flag(call: impl FnOnce(*mut c_int) -> Result<()>) -> Result<()> {
    let mut out = 0;
    call(&raw mut out)
}

/// Calls with room for a name.
fn name(call: impl FnOnce(*mut std::ffi::c_char, *mut c_int) -> Result<()>) -> Result<()> {
    let mut text = vec![0; LONGEST_NAME];
    flag(|length| call(text.as_mut_ptr(), length))
}

/// As often as the event says.
fn repeated(w: &mut Words<'_>, call: impl Fn()) -> Result<()> {
    for _ in 0..w.word()? {
        call();
    }
    Ok(())
}
