//! One thread being read.

use anyhow::Result;
use st_match::volume::Volumes;
use st_model::columns::Points;
use st_model::event::Events;
use st_model::num::{Exact as _, narrow, saturate};
use st_model::section::Section;

use crate::choice::Chosen;
use crate::exchanges::{Exchange, Reading, Sequences, Shared};
use crate::format::{Call, Format};
use crate::level::Level;
use crate::message::Moment;
use crate::requests::Of;
use crate::trace::{Lane, Trace};
use crate::window::Window;

/// Calls of a thread without times that are read one after the other, before those of others: where there are ten thousands, a thread
/// has left the processor's caches when its turn comes again.
const TOGETHER: u64 = 16;

/// One thread being read.
pub(crate) struct Thread<'a> {
    lane: Lane,
    at: u32,
    section: &'a Section,
    chosen: &'a Chosen,
    /// Calls are summed up; of those without times it is known how many they are.
    is_summed: bool,
    sites: &'a [u32],
    events: Events<'a>,
    points: Option<Points<'a>>,
    zero: i64,
    times: Option<(i64, i64)>,
    key: i64,
    volumes: Volumes<'a>,
}

impl<'a> Thread<'a> {
    pub(crate) fn new(trace: &'a Trace, at: usize) -> Option<Self> {
        let lane = *trace.lanes.get(at)?;
        let section = trace.section(&lane);
        let thread = section.threads.get(lane.thread.to_usize())?;
        let column = thread.column(lane.rank);
        let mut this = Self {
            lane,
            at: narrow(at),
            section,
            chosen: &trace.chosen,
            is_summed: trace.level == Level::Summary,
            sites: &trace.numbers[lane.section],
            events: section.events(lane.thread.to_usize(), lane.rank)?,
            points: trace.zero.and(column).map(|column| column.points()),
            zero: trace.zero.unwrap_or(0),
            times: None,
            key: i64::MIN,
            volumes: Volumes::new(section, lane.rank, &trace.graphs),
        };
        this.advance();
        Some(this)
    }

    pub(crate) fn rank(&self) -> u32 {
        self.lane.rank
    }

    /// Its number.
    pub(crate) fn at(&self) -> u32 {
        self.at
    }

    /// What its next call comes after: when it is entered or, without times, about its position.
    pub(crate) fn key(&self) -> i64 {
        self.key
    }

    /// Looks up when the next call is.
    fn advance(&mut self) {
        let last = self.times;
        let next = self.points.as_mut().and_then(|points| Some((points.next()?, points.next()?)));
        let since = |time: i64| time.saturating_sub(self.zero);
        self.times = next.map(|(enter, exit)| (since(enter), since(exit)));
        self.key = match (self.times, last) {
            (Some((enter, _)), _) => enter,
            // Exact times may end before the calls do.
            (None, Some((_, exit))) => exit,
            (None, None) if self.points.is_some() => self.key,
            (None, None) => saturate(self.events.index() / TOGETHER),
        };
    }

    /// Reads the next call and hands it on; `false` if there is none.
    pub(crate) fn read(
        &mut self,
        window: &Window,
        shared: &mut Shared,
        sequences: &mut Sequences,
        requests: Of<'_>,
        exchanges: &mut Vec<Exchange>,
        format: &mut dyn Format,
    ) -> Result<bool> {
        let times = self.times;
        let Some(mut event) = self.events.next_event()? else { return Ok(false) };
        event.times = times;
        let of = (event.sym, self.lane.rank);
        let timely = times.map_or(window.is_all(), |times| window.has(times));
        let chosen = timely && self.chosen.has(self.lane.section, of, times);
        if times.is_none() && !window.is_all() && !self.is_summed {
            shared.losses.add("calls whose times are not known", event.calls());
        }
        exchanges.clear();
        shared.moved.clear();
        let volume = self.volumes.next_event(&event);
        let (sent, received) = (saturate(volume.sent.bytes), saturate(volume.received.bytes));
        let by = Moment { at: self.at, call: event.index, times };
        let mut reading = Reading {
            shared,
            section: self.section,
            volumes: &self.volumes,
            others: requests.others,
            sequences,
            exchanges,
            by,
            bytes: received,
            chosen,
        };
        requests.own.event(&event, &mut reading);
        let site = self.sites.get(event.symbol.site.to_usize()).copied().unwrap_or(u32::MAX);
        let call = Call {
            event: &event,
            at: self.at,
            lane: self.lane,
            site,
            times,
            sent,
            received,
            exchanges,
            moved: &shared.moved,
            groups: &shared.groups,
        };
        if chosen {
            format.call(&call)?;
            shared.said.add(&event);
        } else {
            format.passed(&call)?;
        }
        self.advance();
        Ok(true)
    }
}
