//! The unwinder of one thread.

use crate::cfi::FrameInfo;
use crate::exits::Exits;
use crate::frame::{Registers, StartFrame, capture_registers};
use crate::memo::Memo;
use crate::modules::{Module, ModuleMap, generation};
use crate::proof::Proof;
use crate::rules::{Cfa, Check, Cursor, Rule, RuleCache, Trail, Unnoted};
use crate::sites::{ModuleRecord, SiteFrame, SiteId, SiteInterner};
use crate::stack::{Stacks, Window, read_word};
use std::sync::{Arc, Mutex, PoisonError};

/// Frames kept per call site, innermost first, unless said otherwise.
pub const DEPTH_LIMIT: usize = 64;
/// Frames below one that may have been left which are looked at at most.
const BELOW_LIMIT: usize = 4096;
/// Frames of layers between a program and MPI skipped at most.
const LAYER_LIMIT: usize = 16;
/// Frames of our own module skipped at most.
const OWN_LIMIT: usize = 64;

/// How often the slower levels were needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Stacks walked, because the memo did not know them.
    pub walks: u64,
    /// Rules compiled from call frame information.
    pub rules: u64,
}

/// Finds the call sites of one thread. Cheap to make: tables fill on use.
///
/// Works on any thread (it checks that a stack is readable before reading it), but only the thread that made it
/// has the fast path. A thread-local one is best kept behind a plain pointer: handlers of `atexit` may still call
/// MPI after the destructors of the main thread's variables have run.
#[derive(Debug)]
pub struct Unwinder {
    sites: Arc<Mutex<SiteInterner>>,
    depth_limit: usize,
    /// Address range of the module that this code is linked into; its frames are skipped. Empty: none are.
    own_module: (u64, u64),
    stacks: Stacks,
    memo: Memo,
    rules: RuleCache,
    exits: Exits,
    modules: ModuleMap,
    frame_info: FrameInfo,
    /// Address of the C library's function that starts programs.
    start_main: u64,
    /// A module was closed during this walk: it must be repeated.
    stale: bool,
    statistics: Statistics,
    trail: Trail,
    addresses: Vec<u64>,
    /// The same with their modules.
    frames: Vec<SiteFrame>,
}

impl Unwinder {
    /// An unwinder for the calling thread, keeping [`DEPTH_LIMIT`] frames and skipping those of the module (the
    /// preloaded library) that it is linked into.
    #[must_use]
    pub fn new(sites: Arc<Mutex<SiteInterner>>) -> Self {
        let modules = ModuleMap::load();
        let own_code = capture_registers as fn() -> Registers as *const ();
        Self {
            sites,
            depth_limit: DEPTH_LIMIT,
            own_module: modules.range_of(own_code.addr() as u64),
            stacks: Stacks::of_this_thread(),
            memo: Memo::new(),
            rules: RuleCache::new(),
            exits: Exits::new(),
            modules,
            frame_info: FrameInfo::default(),
            start_main: address_of_start_main(),
            stale: false,
            statistics: Statistics::default(),
            trail: Trail::default(),
            addresses: Vec::new(),
            frames: Vec::new(),
        }
    }
    /// Makes one that has served another thread an unwinder for the calling one: what it knows of code stays, what it knows of
    /// stacks goes.
    #[must_use]
    pub fn of_this_thread(mut self) -> Self {
        self.stacks = Stacks::of_this_thread();
        self.memo = Memo::new();
        self
    }
    /// Keeps at most this many frames, innermost first.
    #[must_use]
    pub fn with_depth_limit(mut self, frames: usize) -> Self {
        self.depth_limit = frames;
        self
    }
    /// Keeps frames of its own module too: sites begin with the caller of the function that captured the
    /// registers. For programs that look at their own stack.
    #[must_use]
    pub fn with_own_frames(mut self) -> Self {
        self.own_module = (0, 0);
        self
    }
    /// How often the slower levels were needed so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The call site of the function outside our own module that led to the frame of these registers.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    #[inline]
    pub unsafe fn call_site(&mut self, registers: Registers) -> SiteId {
        // SAFETY: the caller's promise.
        unsafe {
            match self.known_site(registers) {
                Some(site) => site,
                None => self.call_site_slowly(registers),
            }
        }
    }

    /// As [`Unwinder::call_site`], without a walk: `None` if the stack is not the thread's own, or was not seen before.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    #[inline]
    pub unsafe fn known_site(&mut self, registers: Registers) -> Option<SiteId> {
        let window = self.stacks.own_window(registers.rsp)?;
        let known = self.exits.start(&registers, &window);
        let start = known.or_else(|| self.leave_own_module(registers, &window))?;
        // SAFETY: callers of a running function are running, and this one is on the thread's own stack.
        unsafe { self.memo.lookup(&start) }
    }

    /// What proves that a later call of the same function comes from the site that this one comes from.
    ///
    /// `None` if the call site was not found the fast way.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned, and must run on the unwinder's thread.
    pub unsafe fn proof(&self, registers: Registers) -> Option<Proof> {
        let window = self.stacks.own_window(registers.rsp)?;
        let start = self.exits.start(&registers, &window)?;
        let (slots, frame) = self.exits.slots(&registers)?;
        // SAFETY: callers of a running function are running, and this one is on the thread's own stack.
        let (checks, frame_matters) = unsafe { self.memo.proof(&start) }?;
        // SAFETY: slots that the exits have just read.
        let now = |slot: u64| Check { slot, value: unsafe { read_word(slot) } };
        let mut all: Vec<Check> = slots.into_iter().map(now).collect();
        all.extend(frame.filter(|_| frame_matters).map(now));
        all.extend_from_slice(checks);
        all.sort_unstable_by_key(|c| c.slot);
        all.dedup_by_key(|c| c.slot);
        Some(Proof::new(registers, frame_matters && frame.is_none(), all.into()))
    }

    /// The call site of a known starting frame.
    ///
    /// # Safety
    ///
    /// The frame must not have returned.
    #[inline]
    pub unsafe fn call_site_from(&mut self, start: StartFrame) -> SiteId {
        if self.stacks.own_window(start.stack_pointer).is_some() {
            // SAFETY: the frame is live and on the thread's own stack; only walks on it are inserted.
            if let Some(site) = unsafe { self.memo.lookup(&start) } {
                return site;
            }
        }
        self.walk_and_intern(start)
    }

    /// Steps out of our own module: the frame that called into it.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    #[inline]
    pub unsafe fn start_frame(&mut self, registers: Registers) -> Option<StartFrame> {
        let fast = self.stacks.own_window(registers.rsp).and_then(|w| self.leave_own_module(registers, &w));
        fast.or_else(|| self.leave_own_module_slowly(registers))
    }

    /// Whether a function of our own module that ran with this stack pointer, which called what led to the function of these registers,
    /// another one of it, or was left without returning (`longjmp`), has been left. Only the thread's own stack is looked at: on others
    /// nothing has.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    pub unsafe fn has_left(&mut self, registers: Registers, stack_pointer: u64) -> bool {
        if self.stacks.own_window(stack_pointer).is_none() {
            return false;
        }
        let Some(window) = self.stacks.own_window(registers.rsp) else { return false };
        self.trail.clear();
        let mut cursor = Cursor::new(registers.rip, registers.rsp, registers.rbp);
        // What it has called lies below its own frame, and returns into our own module; at once if that has jumped to the other one.
        for _ in 0..BELOW_LIMIT {
            let rule = self.rule(cursor.lookup);
            let next = match cursor.step(rule, &window, &mut Unnoted) {
                None if rule.cfa == Cfa::Complex => self.complex_step(&mut cursor, &window),
                next => next,
            };
            if next.is_none_or(|address| self.is_own(address)) {
                return false;
            }
            if cursor.stack_pointer >= stack_pointer {
                return true;
            }
        }
        false
    }

    /// Where the function outside our own module that led to the frame of these registers called from: its own address, or that of the
    /// first of its callers that `passed` does not let by; nothing if that is further up than layers of calls are.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    pub unsafe fn caller(
        &mut self,
        registers: Registers,
        mut passed: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        // SAFETY: the caller's promise.
        let start = unsafe { self.start_frame(registers) }?;
        let own = self.stacks.own_window(start.stack_pointer);
        let mut window = own.or_else(|| self.stacks.any_window(start.stack_pointer))?;
        self.trail.clear();
        let mut cursor = Cursor::new(start.return_address, start.stack_pointer, start.frame_pointer);
        let mut address = start.return_address;
        for _ in 0..LAYER_LIMIT {
            if !passed(address) {
                return Some(address);
            }
            let rule = self.rule(cursor.lookup);
            address = match cursor.step(rule, &window, &mut Unnoted) {
                None if rule.cfa == Cfa::Complex => {
                    let next = self.complex_step(&mut cursor, &window)?;
                    // As in a walk: out of a signal frame it goes on on another stack.
                    window = self.stacks.any_window(cursor.stack_pointer)?;
                    next
                }
                next => next?,
            };
        }
        None
    }

    /// Steps out of our own module by known rules of the simple forms.
    fn leave_own_module(&mut self, registers: Registers, window: &Window) -> Option<StartFrame> {
        let mut cursor = Cursor::new(registers.rip, registers.rsp, registers.rbp);
        let mut before: Option<(Rule, u64)> = None;
        for i in 0..OWN_LIMIT {
            let rule = self.rules.get(cursor.lookup)?;
            let return_address = cursor.step(rule, window, &mut Unnoted)?;
            if !self.is_own(return_address) {
                if i <= 1 {
                    self.exits.learn(&registers, before, rule);
                }
                return Some(cursor.start_at(return_address));
            }
            before = Some((rule, return_address));
        }
        None
    }
    /// Steps out of our own module by any rule, on any stack.
    #[cold]
    fn leave_own_module_slowly(&mut self, registers: Registers) -> Option<StartFrame> {
        let window = self.stacks.any_window(registers.rsp)?;
        self.trail.clear();
        let mut cursor = Cursor::new(registers.rip, registers.rsp, registers.rbp);
        for _ in 0..OWN_LIMIT {
            let rule = self.rule(cursor.lookup);
            let return_address = match cursor.step(rule, &window, &mut Unnoted) {
                Some(address) => address,
                None if rule.cfa == Cfa::Complex => self.complex_step(&mut cursor, &window)?,
                None => return None,
            };
            if !self.is_own(return_address) {
                return Some(cursor.start_at(return_address));
            }
        }
        None
    }
    #[inline(always)]
    fn is_own(&self, address: u64) -> bool {
        address.wrapping_sub(self.own_module.0) < self.own_module.1 - self.own_module.0
    }
    #[cold]
    unsafe fn call_site_slowly(&mut self, registers: Registers) -> SiteId {
        // SAFETY: the caller's promise.
        match unsafe { self.start_frame(registers) } {
            // SAFETY: callers of a running function are running.
            Some(start) => unsafe { self.call_site_from(start) },
            None => {
                self.addresses.clear();
                self.intern()
            }
        }
    }

    /// Return addresses from a starting frame up, innermost first, by the cached rules and without the memo.
    ///
    /// # Safety
    ///
    /// The frame must not have returned.
    pub unsafe fn walk(&mut self, start: StartFrame, out: &mut Vec<u64>) {
        self.walk_stack(start);
        out.clear();
        out.extend_from_slice(&self.addresses);
    }

    #[cold]
    fn walk_and_intern(&mut self, start: StartFrame) -> SiteId {
        self.statistics.walks += 1;
        let on_own_stack = self.walk_stack(start);
        let site = self.intern();
        if on_own_stack {
            self.memo.insert(start, &self.trail, site);
        }
        site
    }

    /// Walks into `addresses` and `trail`, and says whether all slots were on the thread's own stack.
    fn walk_stack(&mut self, start: StartFrame) -> bool {
        loop {
            self.stale = false;
            self.addresses.clear();
            self.trail.clear();
            let on_own_stack = self.walk_once(start);
            if !self.stale {
                self.addresses.truncate(self.depth_limit);
                return on_own_stack;
            }
        }
    }
    fn walk_once(&mut self, start: StartFrame) -> bool {
        let own = self.stacks.own_window(start.stack_pointer);
        let Some(mut window) = own.or_else(|| self.stacks.any_window(start.stack_pointer)) else {
            return false;
        };
        let mut on_own_stack = own.is_some();
        let mut cursor = Cursor::new(start.return_address, start.stack_pointer, start.frame_pointer);
        let mut address = start.return_address;
        // One frame beyond the limit is looked at, so that the C library's own start is seen, hence left out, at
        // the limit too.
        while address != 0 && self.addresses.len() <= self.depth_limit {
            let rule = self.rule(cursor.lookup);
            match rule.cfa {
                Cfa::Origin => {
                    self.leave_out_before_origin();
                    break;
                }
                Cfa::BeforeOrigin => break,
                _ => self.addresses.push(address),
            }
            let next = match cursor.step(rule, &window, &mut self.trail) {
                Some(next) => next,
                None if rule.cfa == Cfa::Complex => {
                    let Some(next) = self.complex_step(&mut cursor, &window) else { break };
                    // Out of a signal frame the walk may go on on another stack.
                    let Some(there) = self.stacks.any_window(cursor.stack_pointer) else { break };
                    if window.read(cursor.stack_pointer).is_none() {
                        on_own_stack = false;
                    }
                    window = there;
                    next
                }
                None => break,
            };
            address = next;
        }
        on_own_stack
    }
    /// The C library calls `main`, and the functions of threads, through a function of its own below the origin.
    fn leave_out_before_origin(&mut self) {
        let Some(&last) = self.addresses.last() else { return };
        if self.modules.find(last).is_some_and(|(_, module)| module.is_libc) {
            self.addresses.pop();
            self.rules.insert(last.wrapping_sub(1), Rule::plain(Cfa::BeforeOrigin));
        }
    }

    #[inline]
    fn rule(&mut self, lookup: u64) -> Rule {
        match self.rules.get(lookup) {
            Some(rule) => rule,
            None => self.compile(lookup),
        }
    }
    #[cold]
    fn compile(&mut self, lookup: u64) -> Rule {
        self.follow_loader();
        self.statistics.rules += 1;
        let rule = match self.modules.find(lookup) {
            None => Rule::plain(Cfa::End),
            Some((_, module)) => match self.frame_info.compile(module, lookup) {
                Some(compiled) if compiled.function == self.start_main => Rule::plain(Cfa::Origin),
                Some(compiled) if compiled.rule.cfa == Cfa::End && module.is_libc => Rule::plain(Cfa::Origin),
                Some(compiled) => compiled.rule,
                None if module.is_libc => Rule::plain(Cfa::Origin),
                None => Rule::plain(Cfa::End),
            },
        };
        self.rules.insert(lookup, rule);
        rule
    }
    /// Reads the list of modules again if some were opened or closed; what is known of closed ones is forgotten. Addresses that have not
    /// been met before do so by themselves: to be called when modules were closed, since others may be where they were.
    pub fn follow_loader(&mut self) {
        let now = generation();
        if now == self.modules.generation {
            return;
        }
        if now.closed != self.modules.generation.closed {
            self.rules.clear();
            self.exits = Exits::new();
            self.memo.clear();
            self.stale = true;
        }
        self.modules = ModuleMap::load();
    }
    #[cold]
    fn complex_step(&mut self, cursor: &mut Cursor, window: &Window) -> Option<u64> {
        let (_, module) = self.modules.find(cursor.lookup)?;
        self.frame_info.step(module, cursor, window, &mut self.trail)
    }

    /// The site of `addresses`.
    fn intern(&mut self) -> SiteId {
        let mut table = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        // Mostly a frame is in the module of the one before.
        let mut last = None;
        let frame = |&address: &u64| {
            let module = last.filter(|module: &&Module| module.holds(address));
            last = module.or_else(|| self.modules.find(address).map(|(_, module)| module));
            match last {
                Some(module) => {
                    SiteFrame { module: module.number(&mut table), offset: address.wrapping_sub(module.bias) }
                }
                None => {
                    let unknown = ModuleRecord { path: "[unknown]".to_owned(), build_id: String::new() };
                    SiteFrame { module: table.module(&unknown), offset: 0 }
                }
            }
        };
        self.frames.clear();
        self.frames.extend(self.addresses.iter().map(frame));
        table.intern(&self.frames)
    }
}

/// Address of `__libc_start_main`, 0 if there is none.
fn address_of_start_main() -> u64 {
    // SAFETY: looks a name up among the loaded modules.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_start_main".as_ptr()) };
    symbol.addr() as u64
}
