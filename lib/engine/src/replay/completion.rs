//! Completion calls, their outcomes forced to the recorded ones.
//!
//! A call that completes some of its requests is made on exactly these, in their places, the others null. One that
//! returns at once, complete or not, is made when its requests are known to be complete, or until they are.
#![expect(unsafe_code, reason = "calls MPI")]

use anyhow::{Context, Result, bail};
use mpi::ffi;
use st_model::calls::names;
use st_model::num::saturate;
use st_model::values::NULL;
use st_replay::words::Words;
use std::ffi::c_int;

use crate::replay::call::mpi;
use crate::replay::pause::Named;
use crate::replay::state::{Handler, Replay};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Wait, wait),
    (names::MPI_Waitall, wait_all),
    (names::MPI_Waitany, wait_any),
    (names::MPI_Waitsome, wait_some),
    (names::MPI_Test, test),
    (names::MPI_Testall, test_all),
    (names::MPI_Testany, test_any),
    (names::MPI_Testsome, test_some),
];

impl Replay<'_> {
    /// Puts the handles of the slots into `array`, for the next call.
    pub(crate) fn load(&mut self, slots: &[i64]) -> Result<Named> {
        self.array.clear();
        self.places.clear();
        for &slot in slots {
            let null = slot == NULL;
            let place = if null { &raw const self.k.request_null } else { self.requests.live(slot)? };
            // SAFETY: a variable of ours.
            self.array.push(unsafe { *place });
            self.places.push(place);
        }
        Ok(self.made_at.tell(&self.places))
    }

    /// The request of a call on one: in its own place, or null.
    fn single(&mut self, slots: &[i64]) -> Result<*mut ffi::MPI_Request> {
        match slots {
            [slot] if *slot != NULL => self.requests.live(*slot),
            _ => {
                let _null = self.load(slots)?;
                Ok(self.array.as_mut_ptr())
            }
        }
    }

    /// Room for `n` statuses.
    fn statuses(&mut self, n: usize) -> *mut ffi::MPI_Status {
        if self.statuses.len() < n {
            // SAFETY: a status is a structure of integers.
            self.statuses.resize(n, unsafe { std::mem::zeroed() });
        }
        self.statuses.as_mut_ptr()
    }

    /// Room for one status.
    pub(crate) fn status(&mut self) -> *mut ffi::MPI_Status {
        self.statuses(1)
    }
}

/// Which slots the completed positions mean, without those of requests that are not there.
fn completed(slots: &[i64], positions: &[i64]) -> Result<Vec<i64>> {
    let slot = |&p| usize::try_from(p).ok().and_then(|p: usize| slots.get(p)).copied();
    let slots: Option<Vec<i64>> = positions.iter().map(slot).filter(|slot| *slot != Some(NULL)).collect();
    slots.context("a completed position beyond the requests")
}

/// Polls, hidden from a recorder, until all these requests are complete. They stay as they are.
pub(crate) fn until_complete(r: &mut Replay<'_>, slots: &[i64]) -> Result<()> {
    let _hidden = r.pause.hide();
    let status = r.status();
    for &slot in slots {
        if slot == NULL || r.requests.is_silent(slot) {
            continue;
        }
        let request = r.requests.handle(slot, &r.k)?;
        let mut flag = 0;
        loop {
            mpi!(MPI_Request_get_status(request, &raw mut flag, status))?;
            if flag != 0 {
                break;
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// The slots of `slots` that are in `wanted`, the others null. With none wanted, all: nothing was to be completed.
fn only(slots: &[i64], positions: &[i64]) -> Vec<i64> {
    if positions.is_empty() {
        return slots.to_vec();
    }
    let wanted = |i: usize| i64::try_from(i).is_ok_and(|i| positions.contains(&i));
    slots.iter().enumerate().map(|(i, &s)| if wanted(i) { s } else { NULL }).collect()
}

fn finish(r: &mut Replay<'_>, slots: &[i64]) -> Result<()> {
    slots.iter().try_for_each(|&s| r.complete(s))
}

fn wait(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let slots = w.list()?;
    let done = completed(slots, w.list()?)?;
    let request = r.single(slots)?;
    let status = r.status();
    mpi!(MPI_Wait(request, status))?;
    finish(r, &done)
}

fn wait_all(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    let done = completed(slots, w.list()?)?;
    let _named = r.load(slots)?;
    let statuses = r.statuses(slots.len());
    mpi!(MPI_Waitall(n, r.array.as_mut_ptr(), statuses))?;
    finish(r, &done)
}

fn wait_any(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    let positions = w.list()?;
    let done = completed(slots, positions)?;
    let _named = r.load(&only(slots, positions))?;
    let mut index = 0;
    let status = r.status();
    mpi!(MPI_Waitany(n, r.array.as_mut_ptr(), &raw mut index, status))?;
    finish(r, &done)
}

/// Makes a call that completes some of `n` requests until it has completed those that are wanted: once, unless there was
/// no asking beforehand.
fn some(n: usize, wanted: usize, call: impl Fn(*mut c_int, *mut c_int) -> Result<()>) -> Result<()> {
    let (mut count, mut list, mut done) = (0, vec![0; n], 0);
    loop {
        call(&raw mut count, list.as_mut_ptr())?;
        done += saturate::<usize>(count);
        if wanted == 0 || done == wanted {
            return Ok(());
        }
        if done > wanted {
            bail!("{done} requests completed where {wanted} had");
        }
        std::thread::yield_now();
    }
}

fn wait_some(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    let positions = w.list()?;
    let done = completed(slots, positions)?;
    until_complete(r, &done)?;
    let _named = r.load(&only(slots, positions))?;
    let (array, statuses) = (r.array.as_mut_ptr(), r.statuses(slots.len()));
    some(slots.len(), done.len(), |count, list| mpi!(MPI_Waitsome(n, array, count, list, statuses)))?;
    finish(r, &done)
}

// Failed tests are not replayed: only successful ones get here.

fn test(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let slots = w.list()?;
    w.word()?;
    let done = completed(slots, w.list()?)?;
    until_complete(r, slots)?;
    let request = r.single(slots)?;
    let mut flag = 0;
    let status = r.status();
    until(&mut flag, |flag| mpi!(MPI_Test(request, flag, status)))?;
    finish(r, &done)
}

fn test_all(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    w.word()?;
    let done = completed(slots, w.list()?)?;
    until_complete(r, slots)?;
    let _named = r.load(slots)?;
    let mut flag = 0;
    let statuses = r.statuses(slots.len());
    let array = r.array.as_mut_ptr();
    until(&mut flag, |flag| mpi!(MPI_Testall(n, array, flag, statuses)))?;
    finish(r, &done)
}

fn test_any(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    w.word()?;
    let positions = w.list()?;
    let done = completed(slots, positions)?;
    until_complete(r, &done)?;
    let _named = r.load(&only(slots, positions))?;
    let (mut index, mut flag) = (0, 0);
    let status = r.status();
    let array = r.array.as_mut_ptr();
    until(&mut flag, |flag| mpi!(MPI_Testany(n, array, &raw mut index, flag, status)))?;
    finish(r, &done)
}

fn test_some(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    let positions = w.list()?;
    let done = completed(slots, positions)?;
    until_complete(r, &done)?;
    let _named = r.load(&only(slots, positions))?;
    let (array, statuses) = (r.array.as_mut_ptr(), r.statuses(slots.len()));
    some(slots.len(), done.len(), |count, list| mpi!(MPI_Testsome(n, array, count, list, statuses)))?;
    finish(r, &done)
}

/// Makes a call until it sets its flag: once, unless there was no asking beforehand.
fn until(flag: &mut c_int, mut call: impl FnMut(*mut c_int) -> Result<()>) -> Result<()> {
    loop {
        call(flag)?;
        if *flag != 0 {
            return Ok(());
        }
        std::thread::yield_now();
    }
}
