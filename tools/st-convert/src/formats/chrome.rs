//! Trace events as JSON, which Chrome's and many other viewers read.
//!
//! Source: Trace Event Format, Google, 2016. A call is a complete event (`X`) of a process per rank, a message a flow from the
//! call that sends it to the one that completes its receive.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use st_cli::Output;
use st_model::num::Exact as _;

use crate::exchanges::Exchange;
use crate::format::{Call, Format, FormatKind, Summary};
use crate::groups::Groups;
use crate::level::Level;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::message::{Message, Moment};
use crate::phase::Phase;
use crate::trace::{Lane, Trace};
use crate::words::{function, of_phase, parameters};

pub(crate) const KIND: FormatKind = FormatKind {
    name: "chrome",
    endings: &[".json"],
    about: "trace events as JSON: chrome://tracing, Perfetto, Speedscope",
    needs_times: true,
    by_rank: false,
    levels: &[Level::Calls, Level::Phases],
    whole_only: false,
    has_waits: false,
    lacks: &[Matter::Members],
    is_series: false,
    files_each: 0,
    bytes: 370,
    bears: 100_000_000,
    open,
};

struct Chrome<'a> {
    out: Option<Output>,
    trace: &'a Trace,
    losses: Losses,
    begun: bool,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    let mut chrome =
        Chrome { out: Some(Output::text(target)?), trace, losses: Losses::default(), begun: false };
    chrome.head()?;
    Ok(Box::new(chrome))
}

/// A time in µs, exactly.
fn micros(ns: i64) -> String {
    let n = ns.unsigned_abs();
    format!("{}{}.{:03}", if ns < 0 { "-" } else { "" }, n / 1000, n % 1000)
}

impl Chrome<'_> {
    fn head(&mut self) -> Result<()> {
        let header = &self.trace.whole.header;
        let facts = json!({
            "program": header.command(),
            "mpi": header.mpi.called(),
            "started_ns": header.started,
            "zero": "when the first rank entered MPI_Init",
        });
        self.write(&format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{facts},\"traceEvents\":["))?;
        let mut last = None;
        for lane in &self.trace.lanes {
            let (pid, tid) = (lane.rank, lane.thread);
            if last.replace(pid) != Some(pid) {
                let name = match self.trace.host(lane) {
                    "" => format!("rank {pid}"),
                    host => format!("rank {pid} on {host}"),
                };
                self.event(&json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}))?;
                self.event(
                    &json!({"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}),
                )?;
            }
            let name = format!("thread {tid}");
            self.event(
                &json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}),
            )?;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        // Perfetto does not see the end of a string behind an escaped backslash.
        let text = text.replace(r"\\", r"\u005c");
        self.out.iter_mut().try_for_each(|out| out.write_all(text.as_bytes()))?;
        Ok(())
    }

    fn event(&mut self, event: &Value) -> Result<()> {
        self.line(&event.to_string())
    }

    fn line(&mut self, text: &str) -> Result<()> {
        self.write(if self.begun { ",\n" } else { "\n" })?;
        self.begun = true;
        self.write(text)
    }

    fn slice(
        &mut self,
        category: &str,
        lane: &Lane,
        times: Range<i64>,
        name: &Value,
        args: &Value,
    ) -> Result<()> {
        let (pid, tid, ts, dur) =
            (lane.rank, lane.thread, micros(times.start), micros(times.end.saturating_sub(times.start)));
        self.line(&format!(
            "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{name},\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\
             \"dur\":{dur},\"args\":{args}}}"
        ))
    }

    /// One end of a message, inside of its call.
    fn end(&mut self, phase: &str, message: &Message, (of, at): (Moment, i64)) -> Result<()> {
        let Some(lane) = self.trace.lanes.get(of.at.to_usize()) else { return Ok(()) };
        let (pid, tid, ts, id) = (lane.rank, lane.thread, micros(at), message.id);
        let (bytes, tag) = (message.bytes, message.tag);
        self.line(&format!(
            "{{\"ph\":{phase},\"cat\":\"message\",\"name\":\"message\",\"id\":{id},\"pid\":{pid},\"tid\":{tid},\
             \"ts\":{ts},\"args\":{{\"bytes\":{bytes},\"tag\":{tag}}}}}"
        ))
    }
}

impl Format for Chrome<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let Some((enter, exit)) = call.times else {
            self.losses.add("calls whose times are not known", call.event.calls());
            return Ok(());
        };
        let joined = call
            .exchanges
            .iter()
            .filter(|exchange| matches!(exchange, Exchange::Join { part, .. } if !part.alone));
        self.losses.add("parts in collective operations", joined.count().to_u64());
        let args = Value::Object(parameters(call, &self.trace.sites));
        let name = Value::String(function(call));
        self.slice("mpi", &call.lane, enter..exit, &name, &args)
    }

    fn phase(&mut self, phase: &Phase<'_>) -> Result<()> {
        let args = Value::Object(of_phase(phase, &self.trace.sites));
        let name = Value::from(phase.name());
        self.slice("phase", &phase.lane, phase.times.0..phase.times.1, &name, &args)
    }

    fn message(&mut self, message: &Message, _: &Groups) -> Result<()> {
        let (Some((sent, _)), Some((enter, exit))) = (message.sent.times, message.received.times) else {
            self.losses.add("messages whose times are not known", 1);
            return Ok(());
        };
        self.end("\"s\"", message, (message.sent, sent))?;
        // An arrow ends in the call that encloses it, which its last ns does and its end may not, and points forward.
        let arrives = exit.saturating_sub(1).max(enter).max(sent).min(exit);
        self.end("\"f\",\"bp\":\"e\"", message, (message.received, arrives))
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        self.write("\n]}\n")?;
        Ok(std::mem::take(&mut self.losses))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.out.map_or(Ok(()), Output::commit)
    }
}
