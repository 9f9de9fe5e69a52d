//! How long messages take by their size, as the messages of a trace themselves tell.
//!
//! A message is measured where its receiver waits for nothing else: it is in the call that completes the receive before the
//! message is sent, and no later message is completed by that call. Then all the time from the enter of the call that sends
//! to the exit of the one that receives is the message's. Others waited for their receiver, or it did something else.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use st_match::NO_MESSAGE;
use st_match::graph::{Barriers, Matcher, Message};
use st_match::volume::{Graphs, Volumes, flows};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::project::Error;
use st_model::section::Section;
use st_model::sketch::{Sketch, bucket};

/// A line through the times of messages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// What a message without data takes, ns.
    pub latency: f64,
    /// What each byte takes beyond that, ns; `None` where all messages have one size, or larger ones take no longer.
    pub per_byte: Option<f64>,
    /// Messages that were measured.
    pub messages: u64,
}

impl Fit {
    /// What a message of so many bytes takes, ns.
    #[must_use]
    pub fn time(&self, bytes: u64) -> f64 {
        self.latency + self.per_byte.unwrap_or(0.0) * float(bytes)
    }

    /// Bytes of a message that takes twice its latency: smaller ones are bound by latency, larger ones by bandwidth.
    #[must_use]
    pub fn half(&self) -> Option<f64> {
        self.per_byte.map(|per_byte| self.latency / per_byte)
    }
}

/// Times of messages of about one size, ns.
#[derive(Debug, Default)]
struct Times {
    bytes: u128,
    sketch: Sketch,
}

/// Measured messages.
#[derive(Debug, Default)]
pub struct Transfers {
    /// By whether they go between nodes, and size to 1 %.
    times: BTreeMap<(bool, u16), Times>,
}

/// A thread of a rank: enter and exit of each call; position and bytes of those that send one message.
#[derive(Default)]
struct Ends<'a> {
    host: Option<&'a str>,
    times: Vec<(i64, i64)>,
    sizes: Vec<(u64, u64)>,
}

type Threads<'a> = HashMap<(u32, u32), Ends<'a>, FixedState>;

impl<'a> Ends<'a> {
    fn of(section: &'a Section, rank: u32, volumes: &mut Volumes<'_>, thread: usize) -> Result<Self, Error> {
        let hosts = section.hosts.iter().find(|(_, ranks)| ranks.contains(rank));
        let mut ends = Self { host: hosts.map(|(host, _)| host.as_str()), ..Self::default() };
        let Some(events) = section.events(thread, rank) else { return Ok(ends) };
        let mut events = events.timed();
        while let Some(event) = events.next_event()? {
            let volume = volumes.next_event(&event);
            let mut sent = flows(&event, volume, 1);
            if let (Some((_, flow)), None) = (sent.next(), sent.next()) {
                ends.sizes.push((event.index, saturate(flow.sent)));
            }
            ends.times.extend(event.times);
        }
        Ok(ends)
    }

    fn size(&self, index: u64) -> Option<u64> {
        let at = self.sizes.binary_search_by_key(&index, |(i, _)| *i).ok()?;
        self.sizes.get(at).map(|(_, bytes)| *bytes)
    }

    fn times(&self, index: u64) -> Option<(i64, i64)> {
        self.times.get(index.to_usize()).copied()
    }
}

/// The last message that a call completes: when it is sent, its bytes, how long it takes, and whether it goes between nodes.
type Last = (i64, u64, i64, bool);

impl Transfers {
    /// Measures the messages of a trace with exact times. *Cost:* O(calls) time and memory, for times are kept.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub fn of(sections: &[Section]) -> Result<Self, Error> {
        let graphs = Graphs::of(sections)?;
        let mut threads = Threads::default();
        let mut matcher = Matcher::keeping_messages(Barriers::default());
        let mut last: HashMap<(u32, u32, u64), Last, FixedState> = HashMap::default();
        for section in sections {
            for rank in section.ranks.iter() {
                let mut volumes = Volumes::new(section, rank, &graphs);
                for thread in 0..section.threads.len() {
                    let ends = Ends::of(section, rank, &mut volumes, thread)?;
                    threads.insert((rank, narrow(thread)), ends);
                }
            }
            matcher.add(section)?;
            for message in matcher.take_messages() {
                let to = message.received;
                let Some(found) = measured(&threads, &message) else { continue };
                let latest = last.entry((to.rank, to.thread, to.index)).or_insert(found);
                if found.0 >= latest.0 {
                    *latest = found;
                }
            }
        }
        let mut all = Self::default();
        for (_, bytes, ns, far) in last.into_values().filter(|(_, _, ns, _)| *ns > 0) {
            let times = all.times.entry((far, bucket(bytes))).or_default();
            times.bytes += u128::from(bytes);
            times.sketch.add(saturate(ns), 0);
        }
        Ok(all)
    }

    /// The line through the median times of sizes: its slope is the median of the slopes between any two of them, weighted by
    /// the messages of both; its latency that of what is left without it. (P. K. Sen 1968, Estimates of the regression
    /// coefficient based on Kendall's tau: few outliers change nothing.) `None` where no message was measured.
    #[must_use]
    pub fn fit(&self, far: bool) -> Option<Fit> {
        let of = self.times.range((far, 0)..=(far, u16::MAX));
        let mean = |t: &Times| float(saturate::<u64>(t.bytes / u128::from(t.sketch.count.max(1))));
        let points: Vec<(f64, f64, u64)> =
            of.map(|(_, t)| (mean(t), float(t.sketch.quantile(500)), t.sketch.count)).collect();
        let mut slopes = Vec::new();
        for (i, (x, t, n)) in points.iter().enumerate() {
            let longer = points.iter().skip(i + 1).filter(|(y, _, _)| y > x);
            slopes.extend(longer.map(|(y, u, m)| ((u - t) / (y - x), *n.min(m))));
        }
        let slope = median(slopes).filter(|slope| *slope > 0.0);
        let left = points.iter().map(|(x, t, n)| (t - x * slope.unwrap_or(0.0), *n)).collect();
        let latency = median(left)?.max(0.0);
        Some(Fit { latency, per_byte: slope, messages: points.iter().map(|(_, _, n)| n).sum() })
    }
}

/// A message whose receiver was waiting for it, or would have been but for others that the same call completes.
fn measured(threads: &Threads<'_>, message: &Message) -> Option<Last> {
    if message.channel.is_partitioned() || message.channel.tag < NO_MESSAGE {
        return None;
    }
    let [from, to] = [message.sent, message.received]
        .map(|call| threads.get(&(call.rank, call.thread)).map(|t| (t, call)));
    let ((from, sent), (to, received)) = (from?, to?);
    let (begin, (enter, exit)) = (from.times(sent.index)?.0, to.times(received.index)?);
    let ns = if enter <= begin { exit.saturating_sub(begin) } else { 0 };
    Some((begin, from.size(sent.index)?, ns, from.host != to.host))
}

/// The value on either side of which half of the weight is.
fn median(mut values: Vec<(f64, u64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, n)| n).sum::<u64>().div_ceil(2);
    let mut seen = 0;
    let reached = values.into_iter().find(|(_, n)| {
        seen += n;
        seen >= half
    });
    reached.map(|(value, _)| value)
}

#[expect(clippy::cast_precision_loss, reason = "sizes and times of a model, not of calls")]
fn float(n: u64) -> f64 {
    n as f64
}
