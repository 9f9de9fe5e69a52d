//! The communicator that calls MPI: every method exactly one call.
#![expect(unsafe_code, reason = "calls of the MPI C interface")]

use st_model::num::{narrow, saturate};
use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request, MPI_Status, MPI_Win};
use st_kernels::{ANY_SOURCE, ANY_TAG, Arrival, Communicator, Envelope, Kind, Op, Part, Receive};
use st_model::ranks::RankSeq;

use crate::kernels::buffers::Buffers;

/// A communicator of the job.
pub(crate) struct Real {
    comm: MPI_Comm,
    buffers: Rc<Buffers>,
}

impl Real {
    /// `MPI_COMM_WORLD`; MPI is not initialised yet.
    pub(crate) fn world() -> Self {
        // SAFETY: a constant of the C shim.
        Self { comm: unsafe { ffi::RSMPI_COMM_WORLD }, buffers: Rc::default() }
    }
}

fn datatype(kind: Kind) -> MPI_Datatype {
    // SAFETY: constants of the C shim.
    unsafe {
        match kind {
            Kind::Byte => ffi::RSMPI_UINT8_T,
            Kind::Int => ffi::RSMPI_INT32_T,
            Kind::Long => ffi::RSMPI_UINT64_T,
            Kind::Double => ffi::RSMPI_DOUBLE,
        }
    }
}

fn operation(op: Op) -> MPI_Op {
    // SAFETY: constants of the C shim.
    unsafe {
        match op {
            Op::Sum => ffi::RSMPI_SUM,
            Op::Max => ffi::RSMPI_MAX,
            Op::Min => ffi::RSMPI_MIN,
        }
    }
}

/// A source and a tag as this MPI writes them.
fn wild(source: i32, tag: i32) -> (c_int, c_int) {
    // SAFETY: constants of the C shim.
    let (any_source, any_tag) = unsafe { (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG) };
    (if source == ANY_SOURCE { any_source } else { source }, if tag == ANY_TAG { any_tag } else { tag })
}

/// A communicator that several threads call on.
#[derive(Clone, Copy)]
struct Shared(MPI_Comm);

// SAFETY: a handle may be used by all threads after `MPI_Init_thread` for several of them.
unsafe impl Send for Shared {}
// SAFETY: as above; nothing is changed through it.
unsafe impl Sync for Shared {}

impl Shared {
    /// The communicator for the calling thread, with buffers of its own.
    fn here(self) -> Real {
        Real { comm: self.0, buffers: Rc::default() }
    }
}

fn length<T>(list: &[T]) -> c_int {
    narrow(list.len())
}

/// Displacements without gaps.
fn displacements(counts: &[c_int]) -> Vec<c_int> {
    let sums = counts.iter().scan(0, |sum, count| {
        let at = *sum;
        *sum += count;
        Some(at)
    });
    sums.collect()
}

/// Elements as a displacement: an `MPI_Aint`, which is not the same integer under every MPI.
fn displacement<T: TryFrom<i32>>(at: i32) -> T {
    narrow(at)
}

/// Calls that take a status, with one of their own.
fn envelope(call: impl FnOnce(*mut MPI_Status)) -> Envelope {
    let mut status = MaybeUninit::<MPI_Status>::uninit();
    call(status.as_mut_ptr());
    // SAFETY: a receive or probe that returns has set both fields; errors end the job instead of returning.
    unsafe {
        let status = status.as_ptr();
        Envelope { source: (*status).MPI_SOURCE, tag: (*status).MPI_TAG }
    }
}

// SAFETY, for all calls below: handles come from MPI itself, addresses are of parts of buffers that outlive the job's
// communication and have room for the counts given (`Buffers::address` checks), lists have the lengths passed. Return
// values carry nothing: errors are fatal by default.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one reason for all, above")]
impl Communicator for Real {
    type Request = MPI_Request;
    type Window = MPI_Win;

    fn buffer(&self, kind: Kind, count: i32) -> Part {
        self.buffers.make(kind, count)
    }
    fn fill(&self, part: Part, seed: u64) {
        self.buffers.fill(part, seed);
    }
    fn digest(&self, part: Part) -> u64 {
        self.buffers.digest(part)
    }
    fn compute(&self, seconds: f64) {
        let start = Instant::now();
        let until = Duration::from_secs_f64(seconds);
        while start.elapsed() < until {
            std::hint::spin_loop();
        }
    }

    fn init(&self) {
        unsafe { ffi::MPI_Init(null_mut(), null_mut()) };
    }
    fn init_thread(&self) {
        let mut provided = 0;
        let wanted = unsafe { ffi::RSMPI_THREAD_MULTIPLE };
        unsafe { ffi::MPI_Init_thread(null_mut(), null_mut(), wanted, &raw mut provided) };
    }
    fn query_thread(&self) {
        let mut provided = 0;
        unsafe { ffi::MPI_Query_thread(&raw mut provided) };
    }
    fn threads<T: Send>(&self, n: i32, body: impl Fn(&Self, i32, &dyn Fn()) -> T + Sync) -> Vec<T> {
        let (shared, body) = (Shared(self.comm), &body);
        std::thread::scope(|scope| {
            let others = RefCell::new(Vec::new());
            let start_others = || {
                for thread in 1..n {
                    let (to, from) = std::sync::mpsc::channel();
                    // Who waits is there until then.
                    let run = move || body(&shared.here(), thread, &|| to.send(()).unwrap_or_default());
                    others.borrow_mut().push(scope.spawn(run));
                    // An error says that the thread has ended.
                    from.recv().unwrap_or_default();
                }
            };
            let first = body(self, 0, &start_others);
            let rest = others.into_inner().into_iter().filter_map(|thread| thread.join().ok());
            std::iter::once(first).chain(rest).collect()
        })
    }
    fn finalize(&self) {
        unsafe { ffi::MPI_Finalize() };
    }
    fn wtime(&self) -> f64 {
        unsafe { ffi::MPI_Wtime() }
    }
    fn rank(&self) -> i32 {
        let mut rank = 0;
        unsafe { ffi::MPI_Comm_rank(self.comm, &raw mut rank) };
        rank
    }
    fn size(&self) -> i32 {
        let mut size = 0;
        unsafe { ffi::MPI_Comm_size(self.comm, &raw mut size) };
        size
    }
    fn split(&self, color: Option<i32>, key: i32, _forecast: &RankSeq) -> Option<Self> {
        unsafe {
            let mut comm = ffi::RSMPI_COMM_NULL;
            ffi::MPI_Comm_split(self.comm, color.unwrap_or(ffi::RSMPI_UNDEFINED), key, &raw mut comm);
            (comm != ffi::RSMPI_COMM_NULL).then(|| Self { comm, buffers: Rc::clone(&self.buffers) })
        }
    }
    fn free(self) {
        let mut comm = self.comm;
        unsafe { ffi::MPI_Comm_free(&raw mut comm) };
    }

    fn send(&self, from: Part, dest: i32, tag: i32) {
        let address = self.buffers.address(from);
        unsafe { ffi::MPI_Send(address, from.count, datatype(from.kind), dest, tag, self.comm) };
    }
    fn isend(&self, from: Part, dest: i32, tag: i32) -> MPI_Request {
        let address = self.buffers.address(from);
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let kind = datatype(from.kind);
            ffi::MPI_Isend(address, from.count, kind, dest, tag, self.comm, &raw mut request);
            request
        }
    }
    fn recv(&self, receive: Receive) -> Envelope {
        let Receive { into, source, tag, .. } = receive;
        let (source, tag) = wild(source, tag);
        let address = self.buffers.address(into);
        envelope(|status| unsafe {
            ffi::MPI_Recv(address, into.count, datatype(into.kind), source, tag, self.comm, status);
        })
    }
    fn irecv(&self, receive: Receive) -> MPI_Request {
        let Receive { into, source, tag, .. } = receive;
        let (source, tag) = wild(source, tag);
        let address = self.buffers.address(into);
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let kind = datatype(into.kind);
            ffi::MPI_Irecv(address, into.count, kind, source, tag, self.comm, &raw mut request);
            request
        }
    }
    fn sendrecv(&self, from: Part, dest: i32, tag: i32, receive: Receive) -> Envelope {
        let into = receive.into;
        let (source, back) = wild(receive.source, receive.tag);
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (sent, received) = (datatype(from.kind), datatype(into.kind));
        envelope(|status| unsafe {
            ffi::MPI_Sendrecv(
                out, from.count, sent, dest, tag, room, into.count, received, source, back, self.comm, status,
            );
        })
    }
    fn probe(&self, source: i32, tag: i32, _forecast: Arrival) -> Envelope {
        let (source, tag) = wild(source, tag);
        envelope(|status| unsafe {
            ffi::MPI_Probe(source, tag, self.comm, status);
        })
    }
    fn wait(&self, request: &mut MPI_Request) {
        unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) };
    }
    fn waitall(&self, requests: &mut [MPI_Request]) {
        unsafe { ffi::MPI_Waitall(length(requests), requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE) };
    }
    fn waitsome(&self, requests: &mut [MPI_Request], _forecast: &[usize]) -> Vec<usize> {
        let mut positions: Vec<c_int> = vec![0; requests.len()];
        let mut done = 0;
        unsafe {
            ffi::MPI_Waitsome(
                length(requests),
                requests.as_mut_ptr(),
                &raw mut done,
                positions.as_mut_ptr(),
                ffi::RSMPI_STATUSES_IGNORE,
            );
        }
        // MPI_UNDEFINED, if no request was active, is negative.
        positions.truncate(saturate(done));
        positions.into_iter().filter_map(|p| usize::try_from(p).ok()).collect()
    }

    fn waitany(&self, requests: &mut [MPI_Request], _forecast: usize) -> Option<usize> {
        let mut position = 0;
        let status = unsafe { ffi::RSMPI_STATUS_IGNORE };
        unsafe { ffi::MPI_Waitany(length(requests), requests.as_mut_ptr(), &raw mut position, status) };
        // MPI_UNDEFINED, if no request was active, is negative.
        usize::try_from(position).ok()
    }
    fn test(&self, request: &mut MPI_Request, _forecast: u32) -> bool {
        let mut done = 0;
        unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
        done != 0
    }

    fn win_create(&self, part: Part) -> MPI_Win {
        let address = self.buffers.address(part);
        let unit = part.kind.bytes();
        let bytes = i64::from(part.count) * i64::from(unit);
        unsafe {
            let mut window = ffi::RSMPI_WIN_NULL;
            let size = narrow::<ffi::MPI_Aint>(bytes);
            ffi::MPI_Win_create(address, size, unit, ffi::RSMPI_INFO_NULL, self.comm, &raw mut window);
            window
        }
    }
    fn win_fence(&self, window: &MPI_Win) {
        unsafe { ffi::MPI_Win_fence(0, *window) };
    }
    fn put(&self, window: &MPI_Win, from: Part, target: i32, at: i32) {
        let (address, kind) = (self.buffers.address(from), datatype(from.kind));
        let (n, at) = (from.count, displacement(at));
        unsafe { ffi::MPI_Put(address, n, kind, target, at, n, kind, *window) };
    }
    fn get(&self, window: &MPI_Win, into: Part, target: i32, at: i32) {
        let (address, kind) = (self.buffers.address(into), datatype(into.kind));
        let (n, at) = (into.count, displacement(at));
        unsafe { ffi::MPI_Get(address, n, kind, target, at, n, kind, *window) };
    }
    fn accumulate(&self, window: &MPI_Win, from: Part, target: i32, at: i32, op: Op) {
        let (address, kind) = (self.buffers.address(from), datatype(from.kind));
        let (n, at, op) = (from.count, displacement(at), operation(op));
        unsafe { ffi::MPI_Accumulate(address, n, kind, target, at, n, kind, op, *window) };
    }
    fn win_free(&self, mut window: MPI_Win) {
        unsafe { ffi::MPI_Win_free(&raw mut window) };
    }

    fn barrier(&self) {
        unsafe { ffi::MPI_Barrier(self.comm) };
    }
    fn bcast(&self, data: Part, root: i32) {
        let address = self.buffers.address(data);
        unsafe { ffi::MPI_Bcast(address, data.count, datatype(data.kind), root, self.comm) };
    }
    fn reduce(&self, from: Part, into: Part, op: Op, root: i32) {
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (kind, op) = (datatype(from.kind), operation(op));
        unsafe { ffi::MPI_Reduce(out, room, from.count, kind, op, root, self.comm) };
    }
    fn allreduce(&self, from: Part, into: Part, op: Op) {
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (kind, op) = (datatype(from.kind), operation(op));
        unsafe { ffi::MPI_Allreduce(out, room, from.count, kind, op, self.comm) };
    }
    fn gather(&self, from: Part, into: Part, root: i32) {
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (sent, received) = (datatype(from.kind), datatype(into.kind));
        unsafe { ffi::MPI_Gather(out, from.count, sent, room, from.count, received, root, self.comm) };
    }
    fn gatherv(&self, from: Part, into: Part, counts: &[i32], root: i32) {
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (sent, received) = (datatype(from.kind), datatype(into.kind));
        let displs = displacements(counts);
        unsafe {
            ffi::MPI_Gatherv(
                out,
                from.count,
                sent,
                room,
                counts.as_ptr(),
                displs.as_ptr(),
                received,
                root,
                self.comm,
            );
        }
    }
    fn allgather(&self, from: Part, into: Part) {
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (sent, received) = (datatype(from.kind), datatype(into.kind));
        unsafe { ffi::MPI_Allgather(out, from.count, sent, room, from.count, received, self.comm) };
    }
    fn alltoallv(&self, from: Part, sends: &[i32], into: Part, receives: &[i32]) {
        let (out, room) = (self.buffers.address(from), self.buffers.address(into));
        let (sent, received) = (datatype(from.kind), datatype(into.kind));
        let (out_at, room_at) = (displacements(sends), displacements(receives));
        unsafe {
            ffi::MPI_Alltoallv(
                out,
                sends.as_ptr(),
                out_at.as_ptr(),
                sent,
                room,
                receives.as_ptr(),
                room_at.as_ptr(),
                received,
                self.comm,
            );
        }
    }
}
