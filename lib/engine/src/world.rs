//! `MPI_COMM_WORLD` as a transport.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::num::narrow;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mpi::environment::Universe;
use mpi::ffi;
use mpi::topology::Communicator;
use st_cli::transport::{Gone, Tag, Transport};

/// Bytes of a message's pieces: counts are of 32 bits.
const PIECE: usize = 1 << 30;
/// Last byte of a piece that others follow, and of one that none follow.
const MORE: u8 = 1;
const LAST: u8 = 0;

/// Looks for a message before the processor is left to others for longer.
const LOOKS: u32 = 2_000;
/// How long it is then left.
const PAUSE: Duration = Duration::from_micros(50);

/// The processes of an MPI job.
pub(crate) struct World {
    rank: usize,
    size: usize,
    /// Sends that have begun, with their bytes.
    going: VecDeque<(ffi::MPI_Request, Vec<u8>)>,
    /// Dropped last: ends MPI.
    _universe: Universe,
}

/// `MPI_COMM_WORLD`.
fn world() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library, set when it is loaded.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library, set when it is loaded.
    unsafe { ffi::RSMPI_UINT8_T }
}

fn number(n: usize) -> c_int {
    narrow(n)
}

/// Ends the job at once.
fn abort() -> ! {
    // SAFETY: MPI has been initialized. It does not return; if it does all the same, this ends this process.
    unsafe { ffi::MPI_Abort(world(), 1) };
    std::process::abort()
}

impl World {
    /// Joins the job.
    pub(crate) fn join() -> Result<Self> {
        let universe = mpi::initialize().context("MPI has been initialized before")?;
        let world = universe.world();
        let [rank, size] = [world.rank(), world.size()].map(narrow::<usize>);
        Ok(Self { rank, size, going: VecDeque::new(), _universe: universe })
    }

    /// Number of processes, as MPI has it.
    pub(crate) fn processes(&self) -> i32 {
        number(self.size)
    }

    /// A process that panics ends the job, for the others would wait for it.
    pub(crate) fn end_with_panics(&self) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            before(what);
            abort()
        }));
    }

    /// Ends the job at once.
    pub(crate) fn abort(self) -> ! {
        abort()
    }

    /// Waits until everything that was sent is on its way, and ends MPI.
    pub(crate) fn leave(mut self) {
        while !self.going.is_empty() {
            self.reap();
            thread::yield_now();
        }
    }

    /// Frees the bytes of the oldest sends, as far as these are complete.
    fn reap(&mut self) {
        while let Some((request, _)) = self.going.front_mut() {
            let mut done = 0;
            // SAFETY: a live request of MPI_Isend, and a flag to write to; the status may be ignored.
            unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
            if done == 0 {
                return;
            }
            self.going.pop_front();
        }
    }

    /// A message that is there already: its sender and bytes.
    fn look(from: c_int, tag: Tag) -> Option<(usize, Vec<u8>)> {
        let (mut there, mut length) = (0, 0);
        let mut message = MaybeUninit::uninit();
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        // SAFETY: all places to write to are of the types that MPI_Improbe wants.
        unsafe {
            let tag = c_int::from(tag);
            ffi::MPI_Improbe(from, tag, world(), &raw mut there, message.as_mut_ptr(), status.as_mut_ptr())
        };
        if there == 0 {
            return None;
        }
        // SAFETY: MPI_Improbe has found a message, and so has set its status.
        let status = unsafe { status.assume_init() };
        // SAFETY: a status that MPI has set, and a place to write to.
        unsafe { ffi::MPI_Get_count(&raw const status, byte(), &raw mut length) };
        let mut bytes = vec![0u8; narrow(length)];
        // SAFETY: MPI_Improbe has set the message, whose length the buffer has.
        unsafe {
            ffi::MPI_Mrecv(
                bytes.as_mut_ptr().cast(),
                length,
                byte(),
                message.as_mut_ptr(),
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        Some((narrow(status.MPI_SOURCE), bytes))
    }

    /// The next piece.
    fn piece(&mut self, from: c_int, tag: Tag, until: Option<Instant>) -> Option<(usize, Vec<u8>)> {
        for looks in 0u32.. {
            if let Some(found) = Self::look(from, tag) {
                return Some(found);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
            self.reap();
            // There may be fewer processors than processes.
            if looks < LOOKS { thread::yield_now() } else { thread::sleep(PAUSE) }
        }
        None
    }
}

impl Transport for World {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }

    fn send(&mut self, to: usize, tag: Tag, mut bytes: Vec<u8>) -> Result<(), Gone> {
        self.reap();
        let mut pieces = Vec::new();
        while bytes.len() > PIECE {
            let rest = bytes.split_off(PIECE);
            bytes.push(MORE);
            pieces.push(std::mem::replace(&mut bytes, rest));
        }
        bytes.push(LAST);
        pieces.push(bytes);
        for piece in pieces {
            let mut request = MaybeUninit::uninit();
            // SAFETY: the bytes stay where they are and as they are until the request is complete, see `reap`.
            unsafe {
                ffi::MPI_Isend(
                    piece.as_ptr().cast(),
                    number(piece.len()),
                    byte(),
                    number(to),
                    c_int::from(tag),
                    world(),
                    request.as_mut_ptr(),
                )
            };
            // SAFETY: MPI_Isend has set it: errors end the job.
            self.going.push_back((unsafe { request.assume_init() }, piece));
        }
        Ok(())
    }

    fn wait(
        &mut self,
        from: Option<usize>,
        tag: Tag,
        limit: Option<Duration>,
    ) -> Result<Option<(usize, Vec<u8>)>, Gone> {
        // SAFETY: a constant of the library, set when it is loaded.
        let any = unsafe { ffi::RSMPI_ANY_SOURCE };
        let until = limit.map(|limit| Instant::now() + limit);
        let Some((from, mut bytes)) = self.piece(from.map_or(any, number), tag, until) else {
            return Ok(None);
        };
        while bytes.pop() == Some(MORE) {
            let (_, more) = self.piece(number(from), tag, None).ok_or(Gone)?;
            bytes.extend(more);
        }
        Ok(Some((from, bytes)))
    }
}
