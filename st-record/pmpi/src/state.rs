//! The recorder's state: one per process, behind one lock.

use crate::argument_cache::{ArgumentCache, ExpectedCall};
use crate::call_sites::KnownSites;
use crate::clock::Clock;
use crate::comms::Comms;
use crate::constants as k;
use crate::cost::Cost;
use crate::infos::Infos;
use crate::journal::{Journal, Mark};
use crate::local::{self, Local};
use crate::lock::Lock;
use crate::maker::Maker;
use crate::message::warn;
use crate::numbered::Minor;
use crate::output::{Output, Rest};
use crate::polls::{QUERY_TIMES, Repeat, Several};
use crate::python::{ModuleNumbers, PythonSites};
use crate::queued::Queued;
use crate::requests::Requests;
use crate::settings::Settings;
use crate::shared_objects::SharedObjects;
use crate::thread::{Event, Thread, tell_end};
use crate::types::Types;
use foldhash::fast::FixedState;
use st_capture::record::RankRecorder;
use st_model::calls::{CallId, CallTable, FIRST_UNKNOWN, Row};
use st_model::columns::Chunk;
use st_model::num::{narrow, saturate};
use st_model::section::{Ended, Sym};
use st_unwind::{Registers, SiteId, SiteInterner, UnknownPython, Unwinder};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether wrappers record: from `MPI_Init` to the end of recording.
pub(crate) static RECORDING: AtomicBool = AtomicBool::new(false);

/// `MPI_Pcontrol(0)` was called: objects are followed, calls not recorded.
pub(crate) static PAUSED: AtomicBool = AtomicBool::new(false);

/// Calls made inside other calls (by the library itself, by callbacks): seen, not recorded.
pub(crate) static NESTED: AtomicU64 = AtomicU64::new(0);

/// The state.
pub(crate) static STATE: Lock<Option<Box<State>>> = Lock::new(None);

/// Everything that is remembered of the program.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) recorder: RankRecorder,
    pub(crate) comms: Comms,
    pub(crate) types: Types,
    pub(crate) wins: SharedObjects,
    pub(crate) files: SharedObjects,
    pub(crate) infos: Infos,
    pub(crate) minor: Minor,
    pub(crate) requests: Requests,
    pub(crate) messages: Requests,
    pub(crate) cache: ArgumentCache,
    pub(crate) threads: Vec<Thread>,
    pub(crate) output: Option<Output>,
    pub(crate) journal: Option<Journal>,
    /// Exact times have stopped at the budget.
    pub(crate) stopped: bool,
    /// World rank, once it is known.
    pub(crate) rank: u32,
    /// The run's identity, then; empty if there is none.
    pub(crate) run: String,
    /// Recording began with a session, and there was no `MPI_Init`.
    pub(crate) sessions_only: bool,
    /// Executions of functions that are recorded by name only.
    opaque: BTreeMap<CallId, u64>,
    pub(crate) cost: Cost,
    pub(crate) queued: Queued,
    /// The process that recording began in: not its children.
    pub(crate) pid: u32,
    pub(crate) sites: Arc<Mutex<SiteInterner>>,
    pub(crate) python: PythonSites,
    modules: ModuleNumbers,
    /// An interpreter whose frames cannot be read, until that is said.
    pub(crate) unknown_python: Option<UnknownPython>,
    /// Unwinders of threads that have ended, for those that begin.
    pub(crate) spare: Vec<Unwinder>,
    /// How often modules had been closed when stacks were looked up last.
    pub(crate) closed: u64,
    pub(crate) known_sites: KnownSites,
    /// By site, in the recorder's table: the function last called from it without error, and its symbol.
    symbols: Vec<(CallId, Sym)>,
    /// Symbols of calls that always repeat and have been made several times in a row.
    pub(crate) several: HashMap<Sym, Several, FixedState>,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let mut recorder = RankRecorder::new(0, settings.recorder_options());
        recorder.unite_sites(settings.similar.1.clone());
        let clock = Clock::start(&settings.clock);
        QUERY_TIMES.store(settings.query_times, Ordering::Relaxed);
        Self {
            settings,
            clock,
            recorder,
            comms: Comms::default(),
            types: Types::default(),
            wins: SharedObjects::new(k::MPI_WIN_NULL()),
            files: SharedObjects::new(k::MPI_FILE_NULL()),
            infos: Infos::default(),
            minor: Minor::start(),
            requests: Requests::default(),
            messages: Requests::default(),
            cache: ArgumentCache::default(),
            threads: Vec::new(),
            output: None,
            journal: None,
            stopped: false,
            rank: 0,
            run: String::new(),
            sessions_only: false,
            opaque: BTreeMap::new(),
            cost: Cost::default(),
            queued: Queued::default(),
            pid: std::process::id(),
            sites: Arc::default(),
            python: PythonSites::default(),
            modules: ModuleNumbers::default(),
            unknown_python: None,
            spare: Vec::new(),
            closed: 0,
            known_sites: KnownSites::default(),
            symbols: Vec::new(),
            several: HashMap::default(),
        }
    }

    /// Position of the calling thread in `threads`, opened on its first call.
    #[inline]
    pub(crate) fn thread(&mut self, local: &Local) -> usize {
        match local.thread.get() {
            0 => self.open_thread(local),
            n => n - 1,
        }
    }

    #[cold]
    fn open_thread(&mut self, local: &Local) -> usize {
        self.settle_cache();
        let unwinder = self.dear(Self::unwinder);
        let start = self.clock.now();
        let index = self.recorder.open_thread(start);
        self.threads.push(Thread::new(index, unwinder, start));
        local.thread.set(self.threads.len());
        tell_end(thread_ends);
        self.threads.len() - 1
    }

    /// An unwinder for the calling thread. One that has served another thread knows the code already.
    fn unwinder(&mut self) -> Unwinder {
        match self.spare.pop() {
            Some(unwinder) => unwinder.of_this_thread(),
            None => Unwinder::new(Arc::clone(&self.sites)).with_depth_limit(self.settings.stack_depth),
        }
    }

    /// A thread has ended: what its unwinder keeps is for the next one. A call that it makes all the same gets another.
    fn end_thread(&mut self, thread: usize) {
        self.spare.extend(self.threads.get_mut(thread).and_then(|t| t.unwinder.take()));
    }

    /// Call site of the calling thread's call of a function, as an index in the recorder's table.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    pub(crate) unsafe fn site(&mut self, thread: usize, call: CallId, registers: Registers) -> u32 {
        if self.has_closed() {
            self.forget_closed();
        }
        // SAFETY: the caller's promise.
        let known = self.threads[thread].unwinder.as_mut().and_then(|u| unsafe { u.known_site(registers) });
        match known {
            Some(SiteId(id)) => self.site_of(thread, id, call),
            None => {
                let before = self.clock.now();
                // SAFETY: the caller's promise.
                let site = unsafe { self.find_site(thread, call, registers) };
                self.cost.brief(self.clock.now() - before);
                site
            }
        }
    }

    /// As [`State::site`], of a site that is new, or of another thread's stack.
    ///
    /// # Safety
    ///
    /// As there.
    #[cold]
    unsafe fn find_site(&mut self, thread: usize, call: CallId, registers: Registers) -> u32 {
        let mut unwinder = self.threads[thread].unwinder.take().unwrap_or_else(|| self.unwinder());
        // SAFETY: the caller's promise.
        let SiteId(id) = unsafe { unwinder.call_site(registers) };
        self.threads[thread].unwinder = Some(unwinder);
        self.site_of(thread, id, call)
    }

    /// Index of the site that the unwinder knows by a number: with frames of Python in the place of native ones, if these
    /// are wanted.
    #[inline]
    fn site_of(&mut self, thread: usize, id: u32, call: CallId) -> u32 {
        self.threads[thread].stack = id;
        if self.settings.python
            && let Some(site) = self.python_site(id, call)
        {
            return site;
        }
        match self.known_sites.last(id, call) {
            Some(site) => site,
            None => self.adopt(id, call),
        }
    }

    #[cold]
    fn adopt(&mut self, id: u32, call: CallId) -> u32 {
        let exact = self.recorder.keeps_sites();
        if let Some(site) = self.known_sites.get(id, call, exact) {
            return site;
        }
        let table = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = table.sites().get(id as usize).map(|s| &*s.frames).unwrap_or_default();
        let frames =
            frames.iter().map(|f| self.modules.stored(f, &table, &mut self.recorder.sites)).collect();
        let site = self.recorder.site(call, frames);
        self.known_sites.put(id, call, site, exact);
        site
    }

    /// Records the thread's call, or counts it as one more of a series, which is recorded when that ends. Says whether it is.
    pub(crate) fn commit(&mut self, thread: usize, event: Event) -> bool {
        if PAUSED.load(Ordering::Relaxed) && !event.always {
            return false;
        }
        if event.opaque {
            self.count_opaque(event.call);
        }
        self.threads[thread].exit = event.exit;
        let sym = self.symbol(&event);
        if event.repeat != Repeat::Never && self.grow(thread, sym, &event) {
            return false;
        }
        if self.threads[thread].series.is_open() {
            self.flush(thread);
        }
        let Thread { index, words, .. } = &self.threads[thread];
        let index = *index;
        let (recorder, journal) = (&mut self.recorder, &mut self.journal);
        let (chunk, full) = enter(recorder, journal, index, sym, words, (event.enter, event.exit));
        self.settle(index, chunk, full);
        true
    }

    /// Makes up for what has not been entered in the book of requests, and follows the loop no longer.
    #[inline]
    pub(crate) fn settle_cache(&mut self) {
        if self.cache.is_followed() {
            let Self { cache, requests, threads, .. } = self;
            cache.make_up(requests, threads);
        }
    }

    /// Records the call that the loop in progress was expected to make next, and that has come out so; `times` if these are kept.
    #[inline]
    pub(crate) fn commit_expected(&mut self, times: Option<(i64, i64)>) {
        let Self { recorder, journal, cache, threads, .. } = self;
        // A loop is followed on the first thread only.
        let index = 0;
        let Some(exit) = threads.get_mut(index).map(|t| &mut t.exit) else { return };
        let times = times.unwrap_or((*exit, *exit));
        *exit = times.1;
        let Some(ExpectedCall { sym, words, changed }) = cache.event() else { return };
        let chunk = recorder.pass(index, sym, words, changed, times.0, times.1);
        let full = journal.as_mut().is_some_and(|j| !j.next(recorder, index, sym, words, times));
        cache.advance();
        self.settle(index, chunk, full);
    }

    /// Writes a chunk of exact times, and begins the journal's next region if the last is full. Nearly always there is neither, and
    /// measuring what that takes would take longer than the call.
    #[inline]
    pub(crate) fn settle(&mut self, index: usize, chunk: Option<Box<Chunk>>, full: bool) {
        if chunk.is_some() || full {
            self.dear(|state| state.put_away(index, chunk, full));
        }
    }

    #[cold]
    fn put_away(&mut self, index: usize, chunk: Option<Box<Chunk>>, full: bool) {
        if let Some(chunk) = chunk {
            self.write(narrow(index), &chunk);
        }
        if full {
            self.snapshot();
        }
    }

    /// The event's symbol. A site nearly always calls one function.
    #[inline]
    pub(crate) fn symbol(&mut self, event: &Event) -> Sym {
        let i = event.site as usize;
        match self.symbols.get(i) {
            Some(&(call, sym)) if call == event.call && event.error == 0 => sym,
            _ => {
                let sym = self.recorder.symbol(event.call, event.site, event.error);
                if event.error == 0 {
                    if self.symbols.len() <= i {
                        // No function has number 0.
                        self.symbols.resize(i + 1, (CallId(0), sym));
                    }
                    self.symbols[i] = (event.call, sym);
                }
                sym
            }
        }
    }

    /// Begins the next region of the journal, all that was recorded until now being in the snapshot or the stream.
    #[cold]
    pub(crate) fn snapshot(&mut self) {
        for (thread, chunk) in self.recorder.flush_columns() {
            self.write(thread, &chunk);
        }
        if let Some(output) = &mut self.output {
            output.flush();
        }
        let Some(j) = &mut self.journal else { return };
        if let Err(e) = j.snapshot(&self.recorder) {
            let path = j.path().display().to_string();
            if let Some(j) = self.journal.take() {
                j.remove();
            }
            warn(&format!("{path}: {e}; recording goes on, but a rank that is killed leaves no trace"));
            return;
        }
        for t in self.threads.iter().filter(|t| t.series.is_open()) {
            // A series that does not fit an empty log is written when it ends.
            j.series(&self.recorder, t.index, t.series.sym, &t.series.words, (t.series.enter, t.series.exit));
        }
    }

    /// Leaves out time that the calling thread has spent with us since its last call, ns: what the program did until
    /// its next one was not that.
    pub(crate) fn leave_out(&mut self, local: &Local, ns: i64) {
        let thread = self.thread(local);
        let index = self.threads[thread].index;
        // A call without times that comes next is made after that time.
        self.threads[thread].exit = self.threads[thread].exit.saturating_add(ns);
        let chunk = self.recorder.leave_out(index, ns);
        // The log tells times from the last call on.
        self.settle(index, chunk, true);
    }

    /// A mark for a call that a thread is about to make.
    #[inline]
    pub(crate) fn mark(&mut self, thread: usize, call: CallId, site: u32) -> Mark {
        let index = self.threads[thread].index;
        self.journal.as_mut().map_or(Mark::NONE, |j| j.mark(&self.recorder, index, call, site))
    }

    /// Passes exact times on to the stream, while the budget lasts.
    pub(crate) fn write(&mut self, thread: u32, chunk: &Chunk) {
        if self.write_whatever(thread, chunk) > self.settings.time_budget {
            // What is left of the open chunks goes too, so that all events before this one have their times.
            for (thread, chunk) in self.recorder.stop_columns() {
                self.write_whatever(thread, &chunk);
            }
            self.stopped = true;
        }
    }

    /// Passes exact times on to the stream, as the last ones, after which nothing stops, whatever the budget. Returns how many bytes
    /// it has of them, if none are lost.
    pub(crate) fn write_whatever(&mut self, thread: u32, chunk: &Chunk) -> u64 {
        let Some(output) = &mut self.output else { return 0 };
        let bytes = output.times(thread, chunk);
        if output.lost() {
            self.recorder.stop_columns();
            return 0;
        }
        bytes
    }

    /// Number of a function without a row.
    #[inline]
    pub(crate) fn call_id(&mut self, id: u16) -> CallId {
        if id < FIRST_UNKNOWN {
            return CallId(id);
        }
        let i = usize::from(id - FIRST_UNKNOWN);
        let name = crate::real::UNKNOWN.get(i).copied().unwrap_or("unknown");
        self.recorder.unknown_call(name)
    }

    /// Counts a call that the trace holds by name only.
    #[cold]
    fn count_opaque(&mut self, call: CallId) {
        *self.opaque.entry(call).or_default() += 1;
    }

    /// Functions recorded by name only, and how often they were called.
    pub(crate) fn opaque_calls(&self) -> impl Iterator<Item = (String, u64)> {
        let table = CallTable::builtin();
        self.opaque.iter().map(move |(id, n)| {
            let name = table.get(*id).map(|r| r.name.as_str()).or_else(|| self.recorder.unknown_name(*id));
            (name.unwrap_or("unknown").to_owned(), *n)
        })
    }

    /// Where the threads were when the program ended before its end: what they had recorded, and the calls that they are in, out of which
    /// it ended itself (an error handler's `exit`).
    fn ended(&mut self) -> Vec<Ended> {
        let Self { recorder, journal, .. } = self;
        let mut ended = recorder.ended();
        let inside = |thread: &Ended| journal.as_ref()?.inside(saturate(thread.thread));
        for thread in &mut ended {
            if let Some((call, site, entered)) = inside(thread) {
                (thread.inside, thread.entered) = (recorder.symbol(call, site, 0), entered);
            }
        }
        ended
    }

    /// What there is of the rank when recording ends, which began to end when the thread's processor time was `since`, ns;
    /// `early` says that the program has not come to its end; `note` is what a launcher is told.
    pub(crate) fn into_rest(mut self, note: String, early: bool, since: i64) -> Rest {
        let own = self.cost.total(local::with(|l| l.timed.since())) - since;
        let ended = if early { self.ended() } else { Vec::new() };
        let Self { settings, recorder, journal, .. } = self;
        // What is merged is told of later.
        let merges = settings.merge.is_some();
        let quiet = settings.quiet || (merges && !early);
        Rest { recorder, journal, directory: settings.output, ended, quiet, note, own, merges }
    }

    /// Does something rare and dear within a call.
    pub(crate) fn dear<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let before = Cost::before(self.clock.now());
        let done = work(self);
        self.cost.after(before, self.clock.now());
        done
    }

    /// What makes an object in the current call.
    pub(crate) fn maker(&self, call: CallId, site: u32) -> Maker<'static> {
        let function = CallTable::builtin().get(call).map_or("unknown", Row::base);
        Maker { function, call, site: self.recorder.sites.get(site).map_or(0, |s| s.id) }
    }
}

/// Called in a thread that ends.
extern "C" fn thread_ends(_: *mut c_void) {
    // One that ends in a signal handler may have been interrupted in the recorder, and hold what others wait for.
    let (thread, is_within, is_owner) =
        local::with(|l| (l.thread.get(), l.depth.get() > 0 || l.in_heap.get(), l.owner.get()));
    if let Some(thread) = thread.checked_sub(1).filter(|_| !is_within && RECORDING.load(Ordering::Relaxed))
        && let Some(state) = STATE.lock(is_owner).as_deref_mut()
    {
        state.end_thread(thread);
    }
}

/// Enters an event of a thread into the recorder and the journal: the chunk of exact times that it has filled, and whether
/// the journal is full.
#[inline]
pub(crate) fn enter(
    recorder: &mut RankRecorder,
    journal: &mut Option<Journal>,
    thread: usize,
    sym: Sym,
    words: &[i64],
    times: (i64, i64),
) -> (Option<Box<Chunk>>, bool) {
    let chunk = recorder.record(thread, sym, words, times.0, times.1);
    let full = journal.as_mut().is_some_and(|j| !j.call(recorder, thread, sym, words, times));
    (chunk, full)
}
