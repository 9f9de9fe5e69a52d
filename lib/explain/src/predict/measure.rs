//! What messages and collective operations take, as the trace itself tells.
//!
//! A message is measured where its receiver waits for nothing else: it is in the call that completes the receive before the
//! message is sent, and no later message is completed by that call. Then all the time from the enter of the call that sends
//! to the exit of the one that receives is the message's. Others waited for their receiver, or it did something else: of
//! these it is known what they take at most. A
//! collective operation is measured where one call is all of it, from the enter of the last member that is waited for.

use std::collections::BTreeMap;

use st_model::num::{Exact as _, float, saturate};
use st_model::sketch::{Sketch, bucket};

use super::network::{EAGER, Link, Network};
use super::step::{Call, Does, Sending};
use super::walk::{Pace, PredictedPart, Sent, Thread};
use crate::own::SHORT;
use crate::transfers::{Fit, Transfers, median};

/// A message that a call completes: when it was sent, its bytes, and whether it goes between nodes.
type Last = (i64, u64, bool);

/// The call that a thread is in.
#[derive(Clone, Copy, Debug)]
struct Doing {
    call: Call,
    /// Bytes of a message that it sends.
    sent: Option<i64>,
    /// The last message that it completes.
    last: Option<Last>,
    /// The collective operation that it is: when the last of those waited for came, members, bytes, and whether they are on
    /// several nodes.
    operation: Option<(i64, u32, u64, bool)>,
}

/// Messages of about one size whose receives were posted while a call still sent them.
#[derive(Clone, Copy, Default, Debug)]
struct Late {
    least: u64,
    largest: u64,
    /// Calls that had ended before.
    ended: u64,
    /// Calls that had not.
    waited: u64,
}

/// Operations alike: how many bytes they move in all, and what they take, ns.
#[derive(Default, Debug)]
struct Alike {
    bytes: u128,
    times: Sketch,
}

/// What has been measured: a walk in which each thread is where it was recorded.
#[derive(Default, Debug)]
pub(crate) struct Measures {
    doing: Vec<Option<Doing>>,
    pub(crate) transfers: Transfers,
    /// From sending to receiving each short message within and between nodes, ns: it takes no longer than that.
    most: [Sketch; 2],
    /// Calls that send a short message and wait for nothing, ns.
    pub(crate) overhead: Sketch,
    late: BTreeMap<u16, Late>,
    /// The bytes of the shortest messages that are seen to wait for their other end, and how many calls have.
    pub(crate) shortest: Option<(u64, u64)>,
    /// By members, size to 1 %, and whether they are on several nodes.
    operations: BTreeMap<(u32, u16, bool), Alike>,
}

impl Pace<1> for Measures {
    fn enter(&mut self, thread: &mut Thread<1>, call: &Call) {
        self.leave(thread);
        thread.clock = [call.enter];
        let n = call.thread.to_usize();
        if self.doing.len() <= n {
            self.doing.resize(n + 1, None);
        }
        let doing = Doing { call: *call, sent: None, last: None, operation: None };
        self.doing[n] = (call.does == Does::Work).then_some(doing);
    }

    fn end(&mut self, thread: &mut Thread<1>) {
        self.leave(thread);
    }

    fn sends(&mut self, what: &Sending) {
        if let Some(doing) = self.doing(what.thread).filter(|_| what.message) {
            doing.sent = Some(what.bytes);
        }
    }

    fn received(&mut self, thread: u32, message: &Sent<1>, far: bool) {
        let Ok(bytes) = u64::try_from(message.what.bytes) else { return };
        let Some(doing) = self.doing(thread) else { return };
        let took = saturate::<u64>(doing.call.exit.saturating_sub(message.at[0]));
        if message.what.message && doing.last.is_none_or(|last| last.0 <= message.at[0]) {
            doing.last = Some((message.at[0], bytes, far));
        }
        if message.what.message && bytes <= SHORT {
            self.most[usize::from(far)].add(took, 0);
        }
    }

    fn sent(&mut self, message: &Sent<1>, posted: &[i64; 1]) {
        let Ok(bytes) = u64::try_from(message.what.bytes) else { return };
        if message.what.sync || !message.what.blocks || !message.what.message || posted[0] <= message.at[0] {
            return;
        }
        let late = self.late.entry(bucket(bytes)).or_insert(Late { least: bytes, ..Late::default() });
        late.least = late.least.min(bytes);
        late.largest = late.largest.max(bytes);
        *(if message.exit < posted[0] { &mut late.ended } else { &mut late.waited }) += 1;
    }

    fn left(&mut self, thread: &Thread<1>, part: &PredictedPart<1>) {
        let Some(doing) = self.doing(part.thread) else { return };
        if thread.call == part.call && part.of > 1 {
            doing.operation = Some((part.ready[0], part.of, part.bytes, part.far));
        }
    }
}

impl Measures {
    fn doing(&mut self, thread: u32) -> Option<&mut Doing> {
        self.doing.get_mut(thread.to_usize())?.as_mut()
    }

    /// A thread is at the end of its call, of which all is known.
    fn leave(&mut self, thread: &Thread<1>) {
        let Some(doing) = self.doing.get_mut(thread.number.to_usize()).and_then(Option::take) else { return };
        let Doing { call: Call { enter, exit, .. }, sent, last, operation } = doing;
        let took = |since: i64| saturate::<u64>(exit.saturating_sub(since));
        let short = sent.and_then(|bytes| u64::try_from(bytes).ok()).is_some_and(|bytes| bytes <= SHORT);
        if short && thread.ends == 1 && thread.clock == [enter] {
            self.overhead.add(took(enter), 0);
        }
        if let Some((at, bytes, far)) = last.filter(|last| enter <= last.0 && last.0 < exit) {
            self.transfers.add(far, bytes, took(at));
        }
        if let Some((at, of, bytes, far)) = operation {
            let alike = self.operations.entry((of, bucket(bytes), far)).or_default();
            alike.bytes += u128::from(bytes);
            alike.times.add(took(at.max(enter)), 0);
        }
    }

    /// The network that the trace was recorded on.
    pub(crate) fn model(&self) -> Model {
        let fits = [false, true].map(|far| self.fit(far));
        let spread = [false, true].map(|far| self.transfers.spread(far, fits[usize::from(far)].as_ref()?));
        // No message takes less than both its ends do.
        let least = fits.iter().flatten().map(|fit| fit.latency / 2.0).fold(f64::INFINITY, f64::min);
        let overhead = float(self.overhead.quantile(500).into()).min(least);
        let link = |fit: &Fit| Link {
            latency: (fit.latency - 2.0 * overhead).max(0.0),
            per_byte: fit.per_byte.unwrap_or(0.0),
        };
        let known = fits.map(|fit| fit.as_ref().map(link));
        let other = || Link { latency: self.round() - 2.0 * overhead, per_byte: 0.0 };
        let links = [0, 1].map(|far: usize| known[far].or(known[1 - far]).unwrap_or_else(other));
        let links = links.map(|link| Link { latency: link.latency.max(0.0), ..link });
        let mut network = Network { links, overhead, eager: self.eager(), collective: 1.0 };
        network.collective = self.collective(&network).unwrap_or(1.0);
        Model {
            network,
            fits,
            spread,
            overheads: self.overhead.count,
            limits: self.late.values().map(|late| late.ended + late.waited).sum::<u64>()
                + self.shortest.map_or(0, |(_, calls)| calls),
            operations: self.operations.values().map(|alike| alike.times.count).sum(),
        }
    }

    /// The line through the times of messages, which takes short ones no longer than half of all have taken at most: on a
    /// machine that is disturbed, few but those that were held up find their receiver waiting.
    fn fit(&self, far: bool) -> Option<Fit> {
        let fit = self.transfers.fit(far)?;
        let most = &self.most[usize::from(far)];
        let most = if most.count > 0 { float(most.quantile(500).into()) } else { f64::INFINITY };
        Some(Fit { latency: fit.latency.min(most), ..fit })
    }

    /// The most bytes with which calls end before their receive is posted: that with which fewest calls do otherwise.
    fn eager(&self) -> u64 {
        let otherwise = |limit: u64| -> u64 {
            let late = self.late.values();
            let late = late.map(|late| if late.largest <= limit { late.waited } else { late.ended });
            let seen = self.shortest.filter(|(bytes, _)| *bytes <= limit).map(|(_, calls)| calls);
            late.chain(seen).sum()
        };
        // Where calls wait with the shortest messages that tell, the limit is below these.
        let around = |late: &Late| [late.least.saturating_sub(1), late.largest];
        let below = self.shortest.map(|(bytes, _)| bytes.saturating_sub(1));
        let limits = [EAGER].into_iter().chain(below).chain(self.late.values().flat_map(around));
        limits.min_by_key(|limit| otherwise(*limit)).unwrap_or(EAGER)
    }

    /// What collective operations take by what their rounds would: the median of the operations; `None` where none was
    /// measured, or the rounds would take nothing.
    fn collective(&self, network: &Network) -> Option<f64> {
        let ratio = |((of, _, far), alike): (&(u32, u16, bool), &Alike)| {
            let count = alike.times.count;
            let bytes = saturate(alike.bytes / u128::from(count.max(1)));
            let rounds = network.rounds(*of, bytes, *far);
            (rounds > 0.0).then(|| (float(alike.times.quantile(500).into()) / rounds, count))
        };
        median(self.operations.iter().filter_map(ratio).collect())
    }

    /// What a round of a collective operation that moves little takes, ns; 0 where none was measured.
    fn round(&self) -> f64 {
        let unit = Network { links: [Link { latency: 1.0, per_byte: 0.0 }; 2], ..Network::IDEAL };
        let short = self.operations.iter().filter(|((_, size, _), _)| *size <= bucket(SHORT));
        let each = |((of, _, far), alike): (&(u32, u16, bool), &Alike)| {
            (float(alike.times.quantile(500).into()) / unit.rounds(*of, 0, *far), alike.times.count)
        };
        median(short.map(each).collect()).unwrap_or(0.0)
    }
}

/// The network that a trace was recorded on, as its own messages tell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// What it is taken to be.
    pub network: Network,
    /// The lines through the times of messages within and between nodes; where there is none, that of the others is taken,
    /// or else the rounds of collective operations.
    pub fits: [Option<Fit>; 2],
    /// What the messages take by these lines: the quartiles.
    pub spread: [Option<[f64; 2]>; 2],
    /// Calls by which the overhead was measured.
    pub overheads: u64,
    /// Calls by which the eager limit was measured.
    pub limits: u64,
    /// Parts in collective operations that were measured.
    pub operations: u64,
}
