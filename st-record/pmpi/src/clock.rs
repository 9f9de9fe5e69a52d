//! The clock: nanoseconds of `CLOCK_MONOTONIC`, read through the time stamp counter where the kernel itself trusts it;
//! or, if told so, `CLOCK_MONOTONIC` itself, always through `clock_gettime`, or `MPI_Wtime`.
//! `MPI_Wtime` counts from a moment of its own: a rank's is set to go on from `CLOCK_MONOTONIC` in `MPI_Init`.
//!
//! The counter's rate is measured against `CLOCK_MONOTONIC` all the time: first over a moment in `MPI_Init`, then
//! again at growing intervals, each time over the whole run so far. A correction never jumps, except at the end of
//! `MPI_Init`: the clock keeps its reading and runs a little faster or slower for the next interval.

use st_model::num::saturate;
use std::time::Duration;

/// Bits after the binary point of a rate.
const POINT: u32 = 40;
/// First and longest interval between corrections, ns.
const SHORTEST: i64 = 1_000_000;
const LONGEST: i64 = 1_000_000_000;

/// Readings of both clocks, of which the closest is used.
const PAIRS: u32 = 5;
/// Readings of which together it is found what one takes.
const READINGS: i32 = 32;

/// What is read. As wide as its neighbours in a [`Reader`]: to copy what is between them, byte by byte, takes 5 ns of a call's 60.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Source {
    Counter,
    Monotonic,
    /// `MPI_Wtime`, which is not allowed before `MPI_Init` has returned: `CLOCK_MONOTONIC` as yet.
    Early,
    /// `MPI_Wtime`, set to go on from `CLOCK_MONOTONIC`.
    Wtime,
}

/// Conversion from ticks to ns. `Copy`: a call takes both its times with the same one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// Ticks are the counter's; those of others are ns.
    source: Source,
    /// How far `MPI_Wtime` is ahead of `CLOCK_MONOTONIC`, ns.
    offset: i64,
    /// The reading at `ticks` was `ns`.
    ticks: u64,
    ns: i64,
    /// ns per tick, for so many ticks, in which an error is worked off; and after them, however long nobody asks.
    rate: u64,
    slewed: u64,
    later: u64,
}

/// The clock, which corrects its reader's rate.
#[derive(Debug)]
pub(crate) struct Clock {
    reader: Reader,
    /// The reading at which to correct next, ns.
    due: i64,
    interval: i64,
    /// First reading of both clocks.
    first: (u64, i64),
    /// What a reading takes, ns: plain, and settled.
    plain: i64,
    settled: i64,
}

impl Reader {
    /// Now, in ns.
    #[inline]
    pub(crate) fn now(&self) -> i64 {
        self.at(self.read())
    }

    /// Now, in ns, when all that comes before it is done: a processor works on many things at once, and is done with some of them only
    /// when it has read the clock.
    pub(crate) fn settled(&self) -> i64 {
        // SAFETY: every x86-64 processor has it.
        unsafe { core::arch::x86_64::_mm_lfence() };
        self.now()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "ns since the last correction")]
    fn at(&self, ticks: u64) -> i64 {
        // Another processor's counter may be behind by a few ticks.
        let elapsed = ticks.saturating_sub(self.ticks);
        let mut ns = u128::from(elapsed) * u128::from(self.rate);
        if elapsed > self.slewed {
            ns = u128::from(self.slewed) * u128::from(self.rate)
                + u128::from(elapsed - self.slewed) * u128::from(self.later);
        }
        self.ns + (ns >> POINT) as i64
    }

    /// Goes on from a reading at a rate.
    fn go_on(&mut self, (ticks, ns): (u64, i64), rate: u64) {
        (self.ticks, self.ns) = (ticks, ns);
        (self.rate, self.slewed, self.later) = (rate, u64::MAX, rate);
    }

    /// Both clocks read at one time: the closest of a few readings of one between two of the other. A process that loses
    /// its processor in between would otherwise take the clocks for milliseconds apart.
    fn pair(&self) -> (u64, i64) {
        let read = || {
            let before = self.read();
            let ns = monotonic();
            let width = self.read().saturating_sub(before);
            (width, (before + width / 2, ns))
        };
        (0..PAIRS).map(|_| read()).min_by_key(|(width, _)| *width).map_or((0, 0), |(_, pair)| pair)
    }

    /// What a reading takes of its caller's time, ns.
    fn takes(&self, read: impl Fn(&Self) -> i64) -> i64 {
        let each = |_| {
            let begin = self.settled();
            (0..READINGS).for_each(|_| {
                std::hint::black_box(read(self));
            });
            (self.settled() - begin) / i64::from(READINGS)
        };
        (0..PAIRS).map(each).min().unwrap_or(0)
    }

    #[inline]
    fn read(&self) -> u64 {
        match self.source {
            // SAFETY: x86-64 always has the time stamp counter (st-unwind builds for no other machine).
            Source::Counter => unsafe { core::arch::x86_64::_rdtsc() },
            Source::Monotonic | Source::Early => monotonic().unsigned_abs(),
            Source::Wtime => wtime().wrapping_sub(self.offset).unsigned_abs(),
        }
    }
}

impl Clock {
    /// The clock of this name (as `ST_CLOCK`), or the best. Measures the counter for a tenth of a millisecond.
    pub(crate) fn start(name: &str) -> Self {
        let trusted = || {
            let kernel =
                std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
            kernel.is_ok_and(|s| s.trim() == "tsc")
        };
        let source = match name {
            "monotonic" => Source::Monotonic,
            "mpi_wtime" => Source::Early,
            "tsc" => Source::Counter,
            _ if trusted() => Source::Counter,
            _ => Source::Monotonic,
        };
        let plain = 1 << POINT;
        let mut reader =
            Reader { source, offset: 0, ticks: 0, ns: 0, rate: plain, slewed: u64::MAX, later: plain };
        let mut first = reader.pair();
        if source != Source::Counter {
            // Its readings are the kernel's, and nothing else.
            first.1 = first.0.cast_signed();
        }
        reader.go_on(first, plain);
        let mut due = i64::MAX;
        if source == Source::Counter {
            let end = first.1 + saturate::<i64>(Duration::from_micros(100).as_nanos());
            while monotonic() < end {}
            let now = reader.pair();
            reader.go_on(first, rate(now.0 - first.0, now.1 - first.1).unwrap_or(plain));
            due = first.1 + SHORTEST;
        }
        let (plain, settled) = (reader.takes(Reader::now), reader.takes(Reader::settled));
        Self { reader, due, interval: SHORTEST, first, plain, settled }
    }

    /// Where times come from, for the header.
    pub(crate) fn source(&self) -> &'static str {
        match self.reader.source {
            Source::Counter => "tsc",
            Source::Monotonic => "clock_monotonic",
            Source::Early | Source::Wtime => "mpi_wtime",
        }
    }

    /// `MPI_Init` has returned: readings jump now.
    ///
    /// `MPI_Init` takes long, and the counter's rate has been measured for a moment only: by now the clock may be wrong
    /// by more than a message takes. It is set right while the rank has no other times that this could turn around.
    pub(crate) fn initialised(&mut self) {
        match self.reader.source {
            Source::Early => {
                self.reader.offset = wtime() - monotonic();
                self.reader.source = Source::Wtime;
            }
            Source::Counter if self.interval == SHORTEST => {
                let (t, truth) = self.reader.pair();
                let rate = rate(t - self.first.0, truth - self.first.1).unwrap_or(self.reader.rate);
                self.reader.go_on((t, truth), rate);
                self.interval *= 2;
                self.due = truth + self.interval;
            }
            Source::Counter | Source::Monotonic | Source::Wtime => {}
        }
    }

    /// What a reading takes that is told the time ([`Reader::now`]), ns.
    pub(crate) fn plain(&self) -> i64 {
        self.plain
    }

    /// What one takes that waits for what comes before it ([`Reader::settled`]), ns.
    pub(crate) fn settled(&self) -> i64 {
        self.settled
    }

    /// What a call reads its times with.
    #[inline]
    pub(crate) fn reader(&self) -> Reader {
        self.reader
    }

    /// Now, in ns.
    #[inline]
    pub(crate) fn now(&self) -> i64 {
        self.reader.now()
    }

    /// Corrects the rate if that is due at a reading taken just now.
    #[inline]
    pub(crate) fn tick(&mut self, now: i64) {
        if now >= self.due {
            self.correct();
        }
    }

    #[cold]
    fn correct(&mut self) {
        let (t, truth) = self.reader.pair();
        let shown = self.reader.at(t);
        self.interval = (self.interval * 2).min(LONGEST);
        let r = rate(t - self.first.0, truth - self.first.1).unwrap_or(self.reader.later);
        self.reader.go_on((t, shown), r);
        // The error is worked off over the next interval, at no more than a thousandth, and not beyond that: the next call may
        // be a long one, and what is worked off of a microsecond in a millisecond would be one in each.
        let limit = i128::from(r) / 1000;
        let slew =
            (i128::from(truth - shown) * i128::from(r) / i128::from(self.interval)).clamp(-limit, limit);
        self.reader.rate = saturate(i128::from(r) + slew);
        self.reader.slewed =
            saturate((u128::from(self.interval.unsigned_abs()) << POINT) / u128::from(r.max(1)));
        self.due = shown + self.interval;
    }
}

/// ns per tick in fixed point.
fn rate(ticks: u64, ns: i64) -> Option<u64> {
    u64::try_from((u128::from(ns.unsigned_abs()) << POINT).checked_div(u128::from(ticks))?).ok()
}

/// `MPI_Wtime` in ns.
#[expect(clippy::cast_possible_truncation, reason = "a time of day in ns fits")]
fn wtime() -> i64 {
    // SAFETY: no arguments; MPI is initialised.
    (unsafe { crate::real::MPI_Wtime() } * 1e9) as i64
}

/// Processor time of the calling thread, ns.
pub(crate) fn processor_time() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time of the process, ns.
pub(crate) fn process_time() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// `CLOCK_MONOTONIC` in ns.
pub(crate) fn monotonic() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// A clock of the kernel's, in ns.
fn read(clock: libc::clockid_t) -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the answer.
    unsafe { libc::clock_gettime(clock, &raw mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_kernel_clock_and_never_goes_back() {
        let mut c = Clock::start("");
        let (mut last, end) = (c.now(), monotonic() + 300_000_000);
        while monotonic() < end {
            let now = c.now();
            c.tick(now);
            assert!(now >= last);
            last = now;
        }
        // Both clocks are read one after the other; the machine may switch to another process in between.
        let error = (0..10).map(|_| (c.now() - monotonic()).abs()).min().unwrap();
        assert!(error < 20_000, "{error} ns");
    }

    #[test]
    fn what_is_worked_off_is_not_worked_off_again_by_who_calls_rarely() {
        let mut c = Clock::start("tsc");
        let end = monotonic() + 20_000_000;
        while monotonic() < end {}
        c.initialised();
        // 20 us behind, of which 4 are worked off in as many ms; and no call for a second after that.
        c.reader.ns -= 20_000;
        let t = c.reader.pair().0;
        let shown = c.reader.at(t);
        c.correct();
        let ticks = |ms: u64| (u128::from(ms * 1_000_000) << POINT) / u128::from(c.reader.later);
        let at = |ms: u64| c.reader.at(t + saturate::<u64>(ticks(ms))) - shown;
        let worked_off = [4, 8, 1000].map(|ms| at(ms) - i64::try_from(ms).unwrap() * 1_000_000);
        assert!(worked_off.iter().all(|ns| (3_000..6_000).contains(ns)), "{worked_off:?}");
    }

    #[test]
    fn a_wrong_rate_is_forgotten_when_mpi_is_initialised() {
        let mut c = Clock::start("tsc");
        // As if the process had lost its processor while the rate was measured: ten times too fast.
        c.reader.rate *= 10;
        let end = monotonic() + 20_000_000;
        while monotonic() < end {}
        let before = c.now();
        c.initialised();
        let jump = c.now() - before;
        assert!(jump < -100_000_000, "{jump} ns");
        let error = (0..10).map(|_| (c.now() - monotonic()).abs()).min().unwrap();
        assert!(error < 20_000, "{error} ns");
        // It is set right once.
        c.reader.rate *= 10;
        let (rate, ns) = (c.reader.rate, c.reader.ns);
        c.initialised();
        assert_eq!((c.reader.rate, c.reader.ns), (rate, ns));
    }
}
