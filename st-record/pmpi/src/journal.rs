//! The rank's journal: a file that holds the trace up to the last call, whatever ends the process.
//!
//! The format is [`st_capture::journal`]'s; here it is mapped and written. All stores go to memory that the file owns, so
//! that what has been stored stays when the process is killed; the order of the stores that matter is that of the
//! program. Between the mappings no descriptor is kept: a program that closes descriptors it does not know closes none
//! of ours, and writes into none of our files.

use crate::mapping::Mapping;
use st_capture::journal::{self, CallTimes, LOG_LENGTH, LogWriter, PAGE, REGIONS, SLOT, SLOTS, SLOTTED};
use st_capture::record::{Change, RankRecorder};
use st_model::calls::CallId;
use st_model::header::{Header, Step};
use st_model::num::Exact;
use st_model::section::Sym;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A log is at least this long: a small structure is not written again and again.
const LOG: usize = 512 << 10;
/// A log is at least this many times as long as the snapshot before it, which bounds the cost per call. What cannot be
/// compressed takes several times more memory in the recorder than in its snapshot: the log does not double that.
const FACTOR: usize = 8;
/// Numbers of a slot.
const INSIDE: usize = 0;
const ENTERED: usize = 1;
const TIMES: usize = 2;
const EXIT: usize = 3;

/// The journal of this process.
pub(crate) struct Journal {
    path: PathBuf,
    header: Header,
    provenance: Vec<Step>,
    host: String,
    /// Never unmapped: threads write their slots without a lock, also after the end of recording.
    head: Head,
    region: Option<Mapping>,
    /// The region before, which the next one takes the place of: while that is large enough none of its pages has to be touched
    /// for the first time again.
    other: Option<Mapping>,
    /// Offset and length of the two regions in the file.
    places: [(u64, usize); 2],
    end: u64,
    generation: u64,
    log: LogWriter,
    /// Where the log begins in the region, and its length and capacity.
    from: usize,
    length: usize,
    capacity: usize,
}

#[derive(Clone, Copy)]
struct Head(*const u8);

// SAFETY: points to a mapping that is never unmapped, reached by atomic operations only.
unsafe impl Send for Head {}

impl Head {
    /// The number at an offset, a multiple of 8 below [`PAGE`].
    #[inline]
    fn number(self, at: usize) -> &'static AtomicU64 {
        // SAFETY: within the head, aligned, and mapped for ever.
        unsafe { &*self.0.add(at).cast() }
    }
}

impl Journal {
    /// Makes a journal that holds what has been recorded so far.
    ///
    /// # Errors
    ///
    /// If there is no room for it on the disk or in memory, or no descriptor.
    pub(crate) fn create(
        path: PathBuf,
        recorder: &RankRecorder,
        header: Header,
        provenance: Vec<Step>,
        host: String,
    ) -> io::Result<Self> {
        // One of an earlier process of this number.
        let _ = fs::remove_file(&path);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let begun = Mapping::new(&file, 0, PAGE).and_then(|mut head| {
            head.rest(0)[..16].copy_from_slice(&journal::opening());
            let at = Head(head.address());
            std::mem::forget(head);
            let mut journal = Self {
                path: path.clone(),
                header,
                provenance,
                host,
                head: at,
                region: None,
                other: None,
                places: [(0, 0); 2],
                end: PAGE.to_u64(),
                generation: 0,
                log: LogWriter::default(),
                from: 0,
                length: 0,
                capacity: 0,
            };
            journal.snapshot(recorder)?;
            Ok(journal)
        });
        if begun.is_err() {
            // Nothing more can be done if even this fails.
            let _ = fs::remove_file(&path);
        }
        begun
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins the next region with all that was recorded.
    ///
    /// # Errors
    ///
    /// If there is no room for it; what the journal holds stays.
    pub(crate) fn snapshot(&mut self, recorder: &RankRecorder) -> io::Result<()> {
        let snapshot = journal::snapshot(recorder, &self.header, &self.provenance, &self.host)?;
        let capacity = LOG.max(FACTOR * snapshot.len());
        let generation = self.generation + 1;
        let slot = usize::from(!generation.is_multiple_of(2));
        let needed = snapshot.len() + capacity;
        let ((offset, length), mut region) = match self.other.take() {
            Some(region) if needed <= self.places[slot].1 => (self.places[slot], region),
            other => {
                drop(other);
                self.map(slot, needed)?
            }
        };
        region.rest(0)[..snapshot.len()].copy_from_slice(&snapshot);
        let capacity = length - snapshot.len();
        let fields = journal::descriptor(generation, offset, &snapshot, capacity.to_u64());
        let at = REGIONS[slot];
        // The generation last: until then the descriptor does not fit its checksum.
        self.head.number(at).store(0, Ordering::Release);
        self.head.number(at + LOG_LENGTH).store(0, Ordering::Relaxed);
        for (i, f) in fields.iter().enumerate().skip(1) {
            self.head.number(at + 8 * i).store(*f, Ordering::Relaxed);
        }
        self.head.number(at).store(generation, Ordering::Release);
        self.places[slot] = (offset, length);
        self.end = self.end.max(offset + length.to_u64());
        (self.from, self.length, self.capacity) = (snapshot.len(), 0, capacity);
        self.generation = generation;
        self.other = self.region.replace(region);
        self.log = LogWriter::after(recorder);
        Ok(())
    }

    /// Maps a place for a region, which nothing maps any longer: where it is, and its length.
    fn map(&mut self, slot: usize, needed: usize) -> io::Result<((u64, usize), Mapping)> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        let place = self.place(slot, needed, &file);
        Ok((place, Mapping::new(&file, place.0, place.1)?))
    }

    /// A place for a region: the slot's last one if it is large enough, else a larger one at the end of the file.
    fn place(&self, slot: usize, needed: usize, file: &File) -> (u64, usize) {
        let (offset, length) = self.places[slot];
        if needed <= length {
            return (offset, length);
        }
        if length > 0 {
            give_back(file, offset, length);
        }
        // A quarter to spare, so that a structure that grows slowly moves rarely.
        (self.end, (needed + needed / 4).next_multiple_of(16 * PAGE))
    }

    /// Writes the call that was recorded last; `false` if the log is full.
    #[inline]
    pub(crate) fn call(
        &mut self,
        recorder: &RankRecorder,
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: (i64, i64),
    ) -> bool {
        // What repeats its symbol's last words names nothing that is new.
        let repeats = match recorder.change() {
            Change::None => true,
            Change::Next => recorder.changed().is_empty(),
            Change::Some | Change::New => false,
        };
        let repeats = repeats && !self.log.has_to_stop(recorder);
        if !repeats && !self.log.knows(recorder) && !self.define(recorder) {
            return false;
        }
        let times = CallTimes { enter: times.0, exit: times.1 };
        self.append(|log, room| log.call(room, recorder, thread, sym, words, times))
    }

    /// Writes the first call of what may become a series; `false` if the log is full.
    #[cold]
    pub(crate) fn series(
        &mut self,
        recorder: &RankRecorder,
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: (i64, i64),
    ) -> bool {
        if !self.log.knows(recorder) && !self.define(recorder) {
            return false;
        }
        self.grown(thread, words.last().copied().unwrap_or(1), times.1);
        let times = CallTimes { enter: times.0, exit: times.1 };
        self.append(|log, room| log.series(room, thread, sym, words, times))
    }

    /// Writes the call that was recorded last, and whose words name nothing that is new; `false` if the log is full.
    #[inline]
    pub(crate) fn next(
        &mut self,
        recorder: &RankRecorder,
        thread: usize,
        sym: Sym,
        words: &[i64],
        times: (i64, i64),
    ) -> bool {
        let at = CallTimes { enter: times.0, exit: times.1 };
        if recorder.change() == Change::Next
            && !self.log.has_to_stop(recorder)
            && let Some(region) = &mut self.region
            && let Some(bytes) =
                self.log.next(region.rest(self.from + self.length), recorder, thread, words, at)
        {
            self.grow(bytes);
            return true;
        }
        self.call(recorder, thread, sym, words, times)
    }

    /// Lets an entry be written at the log's end; `false` if there is no room.
    #[inline]
    fn append(&mut self, write: impl FnOnce(&mut LogWriter, &mut [u8]) -> Option<usize>) -> bool {
        let Some(region) = &mut self.region else { return false };
        match write(&mut self.log, region.rest(self.from + self.length)) {
            Some(n) => {
                self.grow(n);
                true
            }
            None => false,
        }
    }

    /// The thread's series stands for so many calls, and ends later.
    #[inline]
    pub(crate) fn grown(&self, thread: usize, times: i64, exit: i64) {
        if thread < SLOTTED {
            let at = SLOTS + thread * SLOT;
            self.head.number(at + 8 * EXIT).store(exit.cast_unsigned(), Ordering::Relaxed);
            self.head.number(at + 8 * TIMES).store(times.cast_unsigned(), Ordering::Release);
        }
    }

    /// A mark for a call that the thread is about to make.
    #[inline]
    pub(crate) fn mark(&mut self, recorder: &RankRecorder, thread: usize, call: CallId, site: u32) -> Mark {
        // Without room the next call makes a snapshot; until then nobody can say where this call is.
        let known = self.log.knows_site(call, site) || self.log.knows(recorder) || self.define(recorder);
        let slot = (thread < SLOTTED && known).then(|| self.head.number(SLOTS + thread * SLOT));
        Mark { slot, value: journal::inside(call, site) }
    }

    /// The call that a thread is in, its site, and when it was entered.
    pub(crate) fn inside(&self, thread: usize) -> Option<(CallId, u32, i64)> {
        let at = (thread < SLOTTED).then_some(SLOTS + thread * SLOT)?;
        let (call, site) = journal::inside_of(self.head.number(at + 8 * INSIDE).load(Ordering::Acquire))?;
        Some((call, site, self.head.number(at + 8 * ENTERED).load(Ordering::Relaxed).cast_signed()))
    }

    /// Writes what the tables hold that the log does not; `false` if it is full.
    #[cold]
    fn define(&mut self, recorder: &RankRecorder) -> bool {
        // As much as a deep call site takes: there is one with most definitions.
        let mut definitions = Vec::with_capacity(256);
        self.log.define(recorder, &mut definitions);
        let Some(region) = &mut self.region else { return false };
        let Some(room) = region.rest(self.from + self.length).get_mut(..definitions.len()) else {
            // What has been defined is lost to this log: nothing may follow.
            self.length = self.capacity;
            return false;
        };
        room.copy_from_slice(&definitions);
        self.grow(definitions.len());
        true
    }

    #[inline]
    fn grow(&mut self, bytes: usize) {
        self.length += bytes;
        let length = self.length.to_u64();
        let at = REGIONS[usize::from(!self.generation.is_multiple_of(2))];
        self.head.number(at + LOG_LENGTH).store(length, Ordering::Release);
    }

    /// Removes the file.
    pub(crate) fn remove(mut self) {
        (self.region, self.other) = (None, None);
        let file = File::options().write(true).open(&self.path);
        // Its name first: whoever kills the process in between would leave a journal without what it held beside the stream.
        // Nothing more can be done if even this fails.
        let _ = fs::remove_file(&self.path);
        // The head stays mapped, and would keep all blocks on the disk, which may be full.
        let _ = file.and_then(|file| file.set_len(PAGE.to_u64()));
    }
}

/// Gives the blocks of a region back to the disk; where that is not supported they stay until the end.
fn give_back(file: &File, offset: u64, length: usize) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(length)) = (libc::off_t::try_from(offset), libc::off_t::try_from(length)) else {
        return;
    };
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a call on an open descriptor; nothing maps the region.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) };
}

/// Says in the journal which call a thread is in, from entering it until the mark is taken back.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    slot: Option<&'static AtomicU64>,
    value: u64,
}

impl Mark {
    /// No journal.
    pub(crate) const NONE: Self = Self { slot: None, value: 0 };

    /// The call is entered.
    #[inline]
    pub(crate) fn enter(&self, time: i64) {
        if let Some(slot) = self.slot {
            // SAFETY: the number after the first of a slot.
            let entered = unsafe { &*std::ptr::from_ref(slot).add(ENTERED - INSIDE) };
            entered.store(time.cast_unsigned(), Ordering::Relaxed);
            slot.store(self.value, Ordering::Release);
        }
    }

    /// When the call was entered, if it is still marked.
    pub(crate) fn entered(&self) -> Option<i64> {
        let slot = self.slot.filter(|slot| slot.load(Ordering::Acquire) == self.value)?;
        // SAFETY: as in `enter`.
        let entered = unsafe { &*std::ptr::from_ref(slot).add(ENTERED - INSIDE) };
        Some(entered.load(Ordering::Relaxed).cast_signed())
    }

    /// The call has returned.
    #[inline]
    pub(crate) fn leave(&self) {
        if let Some(slot) = self.slot {
            slot.store(0, Ordering::Release);
        }
    }
}
