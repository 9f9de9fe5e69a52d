//! Perfetto's trace: a process per rank, a track per thread, a slice per call.
//!
//! Source: `protos/perfetto/trace/perfetto_trace.proto`. A message is a flow from the begin of the slice that sends it to the
//! end of the one that completes its receive; a collective operation is one through the begins of all its slices, so that the
//! next rank that comes is the next slice of it. Flows do not say that they end: one that arrives before it was sent, by clocks that
//! differ, would not be drawn. One that is known when the slice that it ends with had to end arrives at an instant there. Packets
//! stand in the order in which they become known, not of time.

mod counters;
mod interning;
mod schema;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use foldhash::fast::FixedState;
use prost::Message as _;
use serde_json::{Map, Value};
use st_cli::Output;
use st_model::num::{Exact as _, saturate};

use crate::exchanges::Exchange;
use crate::format::{Call, Format, FormatKind, Summary};
use crate::groups::Groups;
use crate::level::Level;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::message::Message;
use crate::phase::Phase;
use crate::trace::Trace;
use crate::words::{function, of_phase, parameters};
use counters::{values, waiting};
use interning::Interning;
use schema::{
    COUNT, COUNTER, CounterDescriptor, INCREMENTAL_STATE_CLEARED, INSTANT, NEEDS_INCREMENTAL_STATE,
    ProcessDescriptor, SIZE_BYTES, SLICE_BEGIN, SLICE_END, ThreadDescriptor, TracePacket, TrackDescriptor,
    TrackEvent,
};

pub(crate) const KIND: FormatKind = FormatKind {
    name: "perfetto",
    endings: &[".pftrace", ".perfetto-trace"],
    about: "Perfetto's trace: ui.perfetto.dev, trace_processor (SQL)",
    needs_times: true,
    by_rank: false,
    levels: &[Level::Calls, Level::Phases],
    whole_only: false,
    has_waits: false,
    lacks: &[Matter::Members],
    is_series: false,
    files_each: 0,
    bytes: 140,
    bears: 100_000_000,
    open,
};

/// The only sequence of packets.
const SEQUENCE: u32 = 1;
/// Field number and wire type of a packet in a trace.
const PACKET: u8 = 0x0a;
/// Tracks have numbers from here on: counters, ranks, threads.
const IN_FLIGHT: u64 = 1;
const WAITING: u64 = 2;
const RANKS: u64 = 1 << 32;
const THREADS: u64 = 2 << 32;

/// What a thread begins: a call or a phase.
struct Slice<'a> {
    at: u32,
    enter: i64,
    name: &'a str,
    category: &'static str,
    arguments: Map<String, Value>,
    flows: Vec<u64>,
}

/// The end of a slice whose messages are not all known.
#[derive(Debug)]
struct Held {
    exit: i64,
    awaited: usize,
    flows: Vec<u64>,
}

struct Perfetto<'a> {
    out: Option<Output>,
    trace: &'a Trace,
    /// Of the first call: Perfetto's times are not negative.
    first: i64,
    interning: Interning,
    held: HashMap<(u32, u64), Held, FixedState>,
    /// Of each thread, the call whose slice has been held last.
    last_held: HashMap<u32, u64, FixedState>,
    /// When how many bytes more are under way.
    in_flight: Vec<(i64, i64)>,
    losses: Losses,
    buffer: Vec<u8>,
    flags: u32,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    // Of sums it is not told who waits when.
    let waits = if trace.level == Level::Calls { waiting(trace)? } else { Vec::new() };
    let mut perfetto = Perfetto {
        out: Some(Output::stream(target)?),
        trace,
        first: trace.first(),
        interning: Interning::default(),
        held: HashMap::default(),
        last_held: HashMap::default(),
        in_flight: Vec::new(),
        losses: Losses::default(),
        buffer: Vec::new(),
        flags: INCREMENTAL_STATE_CLEARED | NEEDS_INCREMENTAL_STATE,
    };
    perfetto.tracks()?;
    waits.iter().try_for_each(|(at, value)| perfetto.count(WAITING, *at, *value))?;
    Ok(Box::new(perfetto))
}

impl Perfetto<'_> {
    fn tracks(&mut self) -> Result<()> {
        let all = [(IN_FLIGHT, "bytes in flight", SIZE_BYTES), (WAITING, "waiting ranks", COUNT)];
        let counters = if self.trace.level == Level::Calls { &all[..] } else { &[] };
        for &(uuid, name, unit) in counters {
            let counter = Some(CounterDescriptor { unit });
            self.track(TrackDescriptor { uuid, name: name.into(), counter, ..Default::default() })?;
        }
        let (trace, mut last) = (self.trace, None);
        for (lane, i) in trace.lanes.iter().zip(0i32..) {
            // Process and thread 0 are those of an idle kernel.
            let pid = i32::try_from(lane.rank)?.saturating_add(1);
            if last.replace(pid) != Some(pid) {
                let process_name = match trace.host(lane) {
                    "" => format!("rank {}", lane.rank),
                    host => format!("rank {} on {host}", lane.rank),
                };
                let process = Some(ProcessDescriptor { pid, process_name });
                let uuid = RANKS + lane.rank.to_u64();
                self.track(TrackDescriptor { uuid, process, ..Default::default() })?;
            }
            let thread_name = format!("thread {}", lane.thread);
            let thread = Some(ThreadDescriptor { pid, tid: i.saturating_add(1), thread_name });
            let (uuid, parent_uuid) = (THREADS + u64::try_from(i)?, RANKS + lane.rank.to_u64());
            self.track(TrackDescriptor { uuid, thread, parent_uuid, ..Default::default() })?;
        }
        Ok(())
    }

    fn track(&mut self, track: TrackDescriptor) -> Result<()> {
        self.packet(TracePacket { track_descriptor: Some(track), ..Default::default() })
    }

    fn packet(&mut self, mut packet: TracePacket) -> Result<()> {
        packet.trusted_packet_sequence_id = SEQUENCE;
        packet.sequence_flags = std::mem::replace(&mut self.flags, NEEDS_INCREMENTAL_STATE);
        packet.interned_data = self.interning.take_new();
        self.buffer.clear();
        self.buffer.push(PACKET);
        packet.encode_length_delimited(&mut self.buffer)?;
        self.out.iter_mut().try_for_each(|out| out.write_all(&self.buffer))?;
        Ok(())
    }

    fn event(&mut self, at: i64, event: TrackEvent) -> Result<()> {
        let timestamp = Some(saturate(at.saturating_sub(self.first)));
        self.packet(TracePacket { timestamp, track_event: Some(event), ..Default::default() })
    }

    fn count(&mut self, track_uuid: u64, at: i64, value: i64) -> Result<()> {
        let counter_value = Some(value);
        self.event(at, TrackEvent { r#type: COUNTER, track_uuid, counter_value, ..Default::default() })
    }

    fn begin(&mut self, slice: Slice<'_>) -> Result<()> {
        let debug_annotations = self.interning.annotations(slice.arguments);
        let name_iid = self.interning.name(slice.name);
        let category_iids = vec![self.interning.category(slice.category)];
        let event = TrackEvent {
            category_iids,
            debug_annotations,
            r#type: SLICE_BEGIN,
            name_iid,
            track_uuid: THREADS + slice.at.to_u64(),
            flow_ids: slice.flows,
            ..Default::default()
        };
        self.event(slice.enter, event)
    }

    fn end(&mut self, at: u32, exit: i64, flow_ids: Vec<u64>) -> Result<()> {
        let track_uuid = THREADS + at.to_u64();
        self.event(exit, TrackEvent { r#type: SLICE_END, track_uuid, flow_ids, ..Default::default() })
    }

    /// Ends the slice of a thread's last call where it is held and must not be longer: the ends of slices that follow at the same time
    /// stand in their order. Of a selection some messages are never known, and slices would be held to the end.
    fn end_last(&mut self, at: u32, enter: i64) -> Result<()> {
        let must_end = |held: &Held| held.exit >= enter || !self.trace.chosen.is_all();
        let Some(key) = self.last_held.get(&at).map(|call| (at, *call)) else { return Ok(()) };
        if !self.held.get(&key).is_some_and(must_end) {
            return Ok(());
        }
        let Some(held) = self.held.remove(&key) else { return Ok(()) };
        self.end(at, held.exit, held.flows)
    }

    /// What arrives at the end of a slice that has been written.
    fn arrive(&mut self, at: u32, exit: i64, flow: u64) -> Result<()> {
        let event = TrackEvent {
            category_iids: vec![self.interning.category("mpi")],
            r#type: INSTANT,
            name_iid: self.interning.name("message"),
            track_uuid: THREADS + at.to_u64(),
            flow_ids: vec![flow],
            ..Default::default()
        };
        self.event(exit, event)
    }

    /// Flows that begin with a call, and messages that it receives and whose flows will end with it.
    fn flows(&self, call: &Call<'_>) -> (Vec<u64>, usize) {
        let (mut flows, mut awaited) = (Vec::new(), 0);
        for exchange in call.exchanges {
            match exchange {
                Exchange::Send { side, .. } if side.peer.is_some_and(|peer| self.trace.has(peer)) => {
                    flows.push(side.id << 1 | 1);
                }
                Exchange::Received { side, .. } => {
                    awaited += usize::from(side.peer.is_some_and(|peer| self.trace.has(peer)));
                }
                Exchange::Join { part, .. } if !part.alone => flows.push(part.operation << 1),
                _ => {}
            }
        }
        (flows, awaited)
    }
}

impl Format for Perfetto<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let Some((enter, exit)) = call.times else {
            self.losses.add("calls whose times are not known", call.event.calls());
            return Ok(());
        };
        self.end_last(call.at, enter)?;
        let (flows, awaited) = self.flows(call);
        let arguments = parameters(call, &self.trace.sites);
        self.begin(Slice { at: call.at, enter, name: &function(call), category: "mpi", arguments, flows })?;
        if awaited == 0 {
            return self.end(call.at, exit, Vec::new());
        }
        self.held.insert((call.at, call.event.index), Held { exit, awaited, flows: Vec::new() });
        self.last_held.insert(call.at, call.event.index);
        Ok(())
    }

    fn phase(&mut self, phase: &Phase<'_>) -> Result<()> {
        let ((enter, exit), at) = (phase.times, phase.at);
        let arguments = of_phase(phase, &self.trace.sites);
        self.begin(Slice { at, enter, name: phase.name(), category: "phase", arguments, flows: Vec::new() })?;
        self.end(at, exit, Vec::new())
    }

    fn message(&mut self, message: &Message, _: &Groups) -> Result<()> {
        let key = (message.received.at, message.received.call);
        let (Some((enter, _)), Some((_, exit))) = (message.sent.times, message.received.times) else {
            self.losses.add("messages whose times are not known", 1);
            return Ok(());
        };
        let bytes: i64 = saturate(message.bytes);
        // Clocks that differ must not let a message arrive before it was sent.
        self.in_flight.extend([(enter, bytes), (exit.max(enter), -bytes)]);
        let flow = message.id << 1 | 1;
        let Some(held) = self.held.get_mut(&key) else { return self.arrive(key.0, exit, flow) };
        held.flows.push(flow);
        held.awaited -= 1;
        if held.awaited > 0 {
            return Ok(());
        }
        let (exit, flows) = (held.exit, std::mem::take(&mut held.flows));
        self.held.remove(&key);
        self.end(key.0, exit, flows)
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        for (at, value) in values(std::mem::take(&mut self.in_flight)) {
            self.count(IN_FLIGHT, at, value)?;
        }
        let mut held: Vec<_> = std::mem::take(&mut self.held).into_iter().collect();
        held.sort_by_key(|(key, _)| *key);
        held.into_iter().try_for_each(|((at, _), held)| self.end(at, held.exit, held.flows))?;
        Ok(std::mem::take(&mut self.losses))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.out.map_or(Ok(()), Output::commit)
    }
}
