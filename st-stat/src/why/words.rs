//! Findings in words.

use std::collections::BTreeMap;

use st_cli::counted;
use st_explain::{
    At, Delays, Excess, Explains, Few, Finding, Matter, Noise, SHORT, WaitKind, has_short_waits,
};
use st_match::leaks::{What, made_by};
use st_model::calls::names;
use st_model::header::SIMULATED;
use st_model::num::{Exact as _, saturate};
use st_model::rank_times::rank_times;
use st_model::sites::CallSites;

use crate::causes::{Cause, most};
use crate::explain::{Explained, computed_before};
use crate::table::{Cell, bytes, duration, grouped, ranks};

/// Findings that people are shown at most unless they ask for all, and whose causes are looked for: that takes time at each wait.
pub(super) const MOST: usize = 20;

/// How many times as long as ranks that are waited for the others wait where they hardly do, both in the mean.
const HARDLY: u128 = 4;

/// What shares are of: all ranks' time, or the part of it that exact times tell of where these end early.
const WHOLE: &str = "the whole run";
const TIMED: &str = "what has exact times";
/// With what ranks that end early have nothing to do, where that is told.
const UNTIL_END: &str = "the run until the last rank's end";

/// Findings of a trace, and what is said of them.
pub(super) struct Words<'a> {
    pub(super) explained: &'a Explained,
    pub(super) told: &'a dyn Explains,
    pub(super) sites: &'a CallSites,
    time: u64,
    /// How long ranks have nothing to do until the last one ends, ns; 0 unless it is told of.
    beyond: u64,
    /// All ranks' time by their totals, where that is longer: exact times may end before the run does.
    whole: u64,
    /// Of the first findings.
    pub(super) causes: Vec<Option<Cause>>,
    pub(super) few: Vec<Option<Few>>,
}

impl<'a> Words<'a> {
    pub(super) fn of(
        explained: &'a Explained,
        told: &'a dyn Explains,
        sites: &'a CallSites,
        findings: &[Finding],
    ) -> Self {
        let shown = &findings[..findings.len().min(MOST)];
        let Delays { causes: due, few, .. } = told.delays(shown);
        let cause = |(f, due): (&Finding, &Vec<_>)| match f.parts {
            _ if f.matter == Matter::Serialised => None,
            1 => Cause::of(due),
            _ => Cause::of_many(due),
        };
        let causes = shown.iter().zip(&due).map(cause).collect();
        let totals = explained.sections.iter().flat_map(rank_times).map(|t| t.whole);
        let whole = saturate::<u64>(totals.fold(0, u128::saturating_add)).max(told.time());
        let late = findings.iter().filter(|f| f.matter == Matter::LateEnd);
        let beyond = late.map(|f| f.cost).fold(0, u64::saturating_add);
        Self { explained, told, sites, time: told.time(), beyond, whole, causes, few }
    }
}

impl Words<'_> {
    /// Of all ranks' time: of all findings the same, but that what the kernel counts is of the whole run, also where exact times end
    /// before it does. Several threads of a rank may wait for more than the rank's time.
    pub(super) fn share(&self, f: &Finding) -> Cell {
        let of = if self.is_of_whole(f) { self.whole } else { self.common() };
        Cell::percent(f.cost.into(), of.into())
    }

    fn is_of_whole(&self, f: &Finding) -> bool {
        self.ends_early() && matches!(f.matter, Matter::Crowded { .. } | Matter::Queued | Matter::Paused)
    }

    /// Exact times end before the run does.
    fn ends_early(&self) -> bool {
        self.whole / 100 > self.time / 99
    }

    /// What most shares are of, ns: what ranks have nothing to do in the end is no part of their time.
    pub(super) fn common(&self) -> u64 {
        self.time.saturating_add(self.beyond)
    }

    fn common_base(&self) -> &'static str {
        match self.ends_early() {
            _ if self.beyond > 0 => UNTIL_END,
            true => TIMED,
            false => WHOLE,
        }
    }

    /// The same in the first line, behind their time.
    pub(super) fn of_what(&self) -> &'static str {
        match self.common_base() {
            UNTIL_END => " until the last one's end",
            TIMED => " that has exact times",
            _ => "",
        }
    }

    /// What a finding's share is of.
    pub(super) fn base(&self, f: &Finding) -> &'static str {
        if self.is_of_whole(f) { WHOLE } else { self.common_base() }
    }

    /// Function and place.
    pub(super) fn place(&self, number: u32) -> String {
        let (function, site) = self.explained.place(number, self.sites);
        match site {
            Some(site) => format!("{function} ({})", self.sites.describe(site)),
            None => function,
        }
    }

    /// Whom a finding blames.
    pub(super) fn culprits(f: &Finding) -> Vec<u32> {
        let parts: Vec<(u32, u64)> = f.culprits.iter().map(|(at, ns)| (at.rank, *ns)).collect();
        most(&parts)
    }

    /// Who waits and is not waited for.
    fn apart(f: &Finding) -> Vec<u32> {
        let culprits = Self::culprits(f);
        most(&f.victims).into_iter().filter(|v| culprits.binary_search(v).is_err()).collect()
    }

    /// Who waits: without those that are waited for, too, if the others wait for most of the time, or it is one alone that is waited for.
    pub(super) fn victims(f: &Finding) -> Vec<u32> {
        let (apart, all) = (Self::apart(f), most(&f.victims));
        let waited = |ranks: &[u32]| {
            let among = f.victims.iter().filter(|(rank, _)| ranks.binary_search(rank).is_ok());
            among.map(|(_, ns)| u128::from(*ns)).sum::<u128>()
        };
        let alone = Self::culprits(f).len() == 1 && !apart.is_empty();
        if alone || waited(&apart) * 4 > waited(&all) * 3 { apart } else { all }
    }

    /// One rank after the other comes last: that is no rank's fault. Then who comes last now waits another time. If it hardly does, there are
    /// several groups of ranks, or ranks that are as late as each other.
    fn moves(&self, f: &Finding) -> bool {
        let culprits = Self::culprits(f);
        let wait = |blamed: bool| {
            let among = f.victims.iter().filter(|(rank, _)| culprits.binary_search(rank).is_ok() == blamed);
            among.fold((0_u128, 0_u128), |(ns, n), (_, one)| (ns + u128::from(*one), n + 1))
        };
        let ((own, _), (others, n)) = (wait(true), wait(false));
        let waits_in_turn = own * n * HARDLY >= others * u128::from(culprits.len().to_u64());
        let most = f.culprits.first().map_or(0, |(_, ns)| *ns);
        let steady = f.excess.map_or(0, |e| e.ns) * 4 * f.victims.len().to_u64() > most * 3;
        f.culprits.len() > 2.min(self.told.ranks().to_usize().saturating_sub(1))
            && most * 10 < f.cost * 6
            && waits_in_turn
            && !steady
    }

    /// What a wait is for one rank after the other, most of which is due to one alone: that holds up whoever comes last.
    fn held_up(&self, f: &Finding, cause: Option<&Cause>) -> Option<String> {
        let cause = cause.filter(|cause| cause.part[0] / 3 >= cause.part[1] / 5)?;
        let [root] = cause.ranks[..] else { return None };
        let waiters = most(&f.victims);
        let mutual = Self::apart(f).len() * 2 < waiters.len();
        let others: Vec<u32> = waiters.into_iter().filter(|rank| *rank != root).collect();
        let waiting = format!("{} {}", ranks(&others), if others.len() == 1 { "waits" } else { "wait" });
        match f.matter {
            _ if others.is_empty() || f.noise.is_some() => None,
            Matter::Wait(WaitKind::LateSender) if mutual => {
                Some(format!("late sender: {waiting} for messages that rank {root} holds up"))
            }
            Matter::Wait(WaitKind::Barrier | WaitKind::AllToAll) if mutual || self.moves(f) => {
                Some(format!("imbalance: {waiting} for rank {root}, which holds up whoever comes last"))
            }
            _ => None,
        }
    }

    /// Who does what; `cause`: what that is due to.
    pub(super) fn what(&self, f: &Finding, cause: Option<&Cause>) -> String {
        self.held_up(f, cause).unwrap_or_else(|| self.itself(f))
    }

    /// The same by itself.
    fn itself(&self, f: &Finding) -> String {
        let (culprits, waiters) = (Self::culprits(f), most(&f.victims));
        let who = ranks(&culprits);
        let (all, mutual) = (ranks(&waiters), Self::apart(f).len() * 2 < waiters.len());
        let victims = Self::victims(f);
        let waiting = format!("{} {}", ranks(&victims), if victims.len() == 1 { "waits" } else { "wait" });
        let receive = if culprits.len() == 1 { "receives" } else { "receive" };
        let verb = |several, one| if f.count == 1 { one } else { several };
        let calls = counted(f.count, "call");
        match f.matter {
            Matter::Wait(kind) => match kind {
                WaitKind::LateSender if mutual => {
                    format!("late sender: {all} wait for each other's messages")
                }
                WaitKind::LateSender => format!("late sender: {waiting} for messages of {who}"),
                WaitKind::WrongOrderSame | WaitKind::WrongOrderOther => {
                    format!("wrong order: {waiting} for {who} while older messages are there")
                }
                WaitKind::LateReceiver => format!("late receiver: {waiting} until {who} {receive}"),
                WaitKind::LateBroadcast => format!("late root: {waiting} for the data of {who}"),
                WaitKind::EarlyReduce => format!("early root: {waiting} for {who}"),
                WaitKind::LateContribution => format!("late contribution: {waiting} for the data of {who}"),
                WaitKind::EarlyScan => format!("serialised: {waiting} for {who} before"),
                WaitKind::LatePost => format!("late post: {waiting} for {who} to post a window"),
                WaitKind::EarlyWait => format!("early wait: {waiting} for the accesses of {who}"),
                _ if f.noise.is_some() => Self::noisy(f),
                WaitKind::Barrier | WaitKind::AllToAll if self.moves(f) => {
                    let n = grouped(f.culprits.len().to_u64());
                    format!("imbalance that moves: {n} ranks come last, now one, now another")
                }
                WaitKind::Barrier | WaitKind::AllToAll if mutual => {
                    format!("imbalance: {all} wait for each other")
                }
                WaitKind::Barrier | WaitKind::AllToAll => format!("imbalance: {waiting} for {who}"),
            },
            Matter::Polling => Self::polls(f),
            Matter::Latency => {
                format!(
                    "latency: {calls} of {who} {} at most {} each",
                    verb("carry", "carries"),
                    bytes(SHORT)
                )
            }
            Matter::Bandwidth => {
                let [send, receive] = [verb("send", "sends"), verb("receive", "receives")];
                format!("bandwidth: {calls} of {who} {send} and {receive} {} together", bytes(f.bytes))
            }
            Matter::Files if f.bytes > 0 => {
                format!("files: {calls} of {who} {} {}", verb("move", "moves"), bytes(f.bytes))
            }
            Matter::Files => format!("files: {calls} of {who}"),
            Matter::OneSided => format!("one-sided: {calls} of {who} on others' windows"),
            Matter::Inside => format!("MPI itself: {calls} of {who}"),
            Matter::LeakedRequests | Matter::LeakedObjects => self.leaked(f, &who),
            Matter::Crowded { ranks, processors } => {
                format!(
                    "crowded: {} of a node run on {}",
                    counted(ranks, "rank"),
                    counted(processors.into(), "processor")
                )
            }
            Matter::Queued => {
                let most = f.culprits.first().map_or(0, |(_, ns)| *ns);
                let longest = f.culprits.first().map_or(0, |(at, _)| at.rank);
                format!(
                    "no processor: ranks are ready to run and others run, rank {longest} {}",
                    duration(most)
                )
            }
            Matter::Paused => format!(
                "recording paused: what {who} {} then is not in the trace",
                if culprits.len() == 1 { "does" } else { "do" }
            ),
            Matter::SlowRank | Matter::Serialised => self.of_reason(f, &waiting, &culprits),
            Matter::LateEnd => {
                let end = if culprits.len() == 1 { "ends" } else { "end" };
                format!("late end: {who} {end} last, and the others have nothing to do until then")
            }
        }
    }

    /// Tests that find nothing, and for whom they are made, if that is known.
    fn polls(f: &Finding) -> String {
        let testers = most(&f.victims);
        let wait = if testers.len() == 1 { "it waits" } else { "they wait" };
        let whom = match f.culprits.first() {
            Some((_, ns)) if *ns > 0 => format!(" while {wait} for {}", ranks(&Self::culprits(f))),
            _ => String::new(),
        };
        format!("polling: {} tests of {} find nothing{whom}", grouped(f.count), ranks(&testers))
    }

    /// What waits for computations that are rarely longer are.
    fn noisy(f: &Finding) -> String {
        let [times, ranks] = f.noise.map_or([0; 2], |noise| [noise.times, noise.ranks]);
        let (times, ranks) = (counted(times, "computation"), counted(ranks, "rank"));
        format!(
            "noise: {times} of {ranks}, now of one, now of another, take much longer than usual, and the others wait"
        )
    }

    /// What waits that have one reason are.
    fn of_reason(&self, f: &Finding, waiting: &str, culprits: &[u32]) -> String {
        if f.matter == Matter::Serialised {
            let mut chain: Vec<u32> = most(&f.victims).into_iter().chain(culprits.iter().copied()).collect();
            chain.sort_unstable();
            chain.dedup();
            return format!("serialised: {} run one after another, and wait meanwhile", ranks(&chain));
        }
        let [s, which, do_so] = match culprits.len() {
            1 => ["", "computes", "it does"],
            _ => ["s", "compute", "they do"],
        };
        // Tests are at no two places.
        let waiting = match f.together.is_empty() {
            true => format!("{} again and again", waiting.replace("wait", "test")),
            false => waiting.to_owned(),
        };
        match self.nodes(culprits) {
            nodes if nodes.is_empty() => {
                format!(
                    "slow rank{s}: {waiting} for {}, which {which} longer wherever {do_so}",
                    ranks(culprits)
                )
            }
            nodes => format!(
                "slow node{}: {waiting} for {}, all of {}, which compute longer wherever they do",
                if nodes.len() == 1 { "" } else { "s" },
                ranks(culprits),
                nodes.join(", ")
            ),
        }
    }

    /// The nodes whose ranks these are, where they are all of several nodes' with several ranks each, but not of all nodes.
    pub(super) fn nodes(&self, slow: &[u32]) -> Vec<&str> {
        let mut hosts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (host, ranks) in self.explained.sections.iter().flat_map(|section| &section.hosts) {
            hosts.entry(host).or_default().extend(ranks.iter());
        }
        let is_slow = |rank: &u32| slow.binary_search(rank).is_ok();
        let all = hosts.len();
        let nodes: Vec<(&str, Vec<u32>)> =
            hosts.into_iter().filter(|(_, ranks)| ranks.iter().any(is_slow)).collect();
        let whole = nodes.len() < all && nodes.iter().all(|(_, of)| of.len() > 1 && of.iter().all(is_slow));
        nodes.into_iter().filter(|_| whole).map(|(host, _)| host).collect()
    }

    fn leaked(&self, f: &Finding, who: &str) -> String {
        let are = if f.count == 1 { "is" } else { "are" };
        if f.matter == Matter::LeakedRequests {
            return format!("leak: {} of {who} {are} never completed", counted(f.count, "request"));
        }
        let call = self.told.places().get(f.place).map(|place| place.call);
        let made = call.and_then(made_by).map_or("object", What::name);
        format!("leak: {} of {who} {are} never freed", counted(f.count, made))
    }

    /// How long calls take, and how fast they move what they move.
    fn pace(f: &Finding) -> String {
        let Some(each) = Self::each(f).map(duration) else { return String::new() };
        match f.matter {
            Matter::Bandwidth | Matter::Files if f.bytes > 0 => {
                format!("; {each} a call, {}/s and rank", bytes(Self::rate(f)))
            }
            _ => format!("; {each} a call"),
        }
    }

    /// How long ranks were ready to run and had no processor, of which a part is what it costs.
    fn lacked(&self, f: &Finding, base: &str) -> String {
        let part = match f.cost {
            0 => {
                "all of which may be in calls, where a rank that waits and asks again and again is ready, too"
                    .to_owned()
            }
            cost => format!("at least {} of it outside of calls", duration(cost)),
        };
        let all = duration(self.queued());
        format!(
            "they were ready to run and had none for {all}, {part}{base}; what else is found may come of that"
        )
    }

    /// How much of their time ranks were ready to run and had no processor, if that may matter.
    pub(super) fn had_none(&self) -> String {
        if self.queued() <= self.whole / 100 {
            return String::new();
        }
        let share = Cell::percent(self.queued().into(), self.whole.max(self.queued()).into()).text;
        format!("; {share} of it they were ready to run and had no processor")
    }

    /// Where, why, and how sure.
    pub(super) fn at(&self, f: &Finding, cause: Option<&Cause>, few: Option<Few>) -> String {
        // What most are a share of the first line says.
        let base = match self.base(f) {
            base if base == self.common_base() => String::new(),
            base => format!("; its share is of {base}"),
        };
        if let Matter::Crowded { .. } = f.matter {
            let queued = self.queued();
            // A kernel that does not count says 0.
            let text = match (queued > 0, queued > self.whole / 100) {
                (true, true) => self.lacked(f, &base),
                (true, false) => format!("but they hardly ever were ready to run and had none, by what the kernel counts{base}"),
                (false, _) => "how long they were ready to run and had none is not known: if they were, all of the above may come of that".into(),
            };
            return format!("{text} ({})", self.sure(f));
        }
        if f.matter == Matter::Queued {
            let lacked = self.lacked(f, &base);
            return format!(
                "other programs or more threads share their processors: {lacked} ({})",
                self.sure(f)
            );
        }
        if f.matter == Matter::Paused {
            return format!(
                "from {0}(0) to {0}(1): neither computation nor waiting{base} ({1})",
                names::MPI_Pcontrol,
                self.sure(f)
            );
        }
        let mut text = if f.places == 1 {
            format!("at {}", self.place(f.place))
        } else if f.matter.is_reason() {
            format!("at {} call sites, most at {}", grouped(f.places), self.place(f.place))
        } else {
            let (function, _) = self.explained.place(f.place, self.sites);
            let n = grouped(f.places);
            format!("at {function}, {n} call sites, most at {}", self.place(f.place))
        };
        if let Some(place) = Self::waited_for(f) {
            text = format!("{text}, for {}", self.place(place));
        }
        text.push_str(&Self::how_often(f, few));
        if let Some(excess) = self.makes_late(f) {
            let place =
                if excess.at.place == f.place { "it".to_owned() } else { self.place(excess.at.place) };
            let late = Self::culprits(f);
            let compute = if late.len() == 1 { "computes" } else { "compute" };
            text =
                format!("{text}; {} {compute} {} longer before {place}", ranks(&late), duration(excess.ns));
        }
        if f.matter == Matter::Serialised {
            text = format!("{text}; over the run they compute alike");
        }
        if let Some((whom, ns)) = Self::most_for(f) {
            let share = Cell::percent(ns.into(), f.cost.into()).text;
            text = format!("{text}; {share} for {}", ranks(&whom));
        }
        if let Some(cause) = cause {
            let place = if cause.place == f.place { "it".to_owned() } else { self.place(cause.place) };
            text = format!("{text}; {}", cause.words(self.explained, &ranks(&cause.ranks), &place));
        }
        format!("{text}{}{base} ({})", Self::pace(f), self.sure(f))
    }

    /// In how few calls most is waited, and how much longer than usual those who are late compute.
    fn how_often(f: &Finding, few: Option<Few>) -> String {
        let few = few.map_or_else(String::new, |Few { waits, ns, calls }| {
            let part = Cell::percent(ns.min(f.cost).into(), f.cost.into()).text;
            let [waits, calls] = [waits, calls].map(grouped);
            format!("; {part} in {waits} of {calls} calls")
        });
        let noise = f.noise.map_or_else(String::new, |Noise { ns, of, .. }| {
            format!("; {} longer than usual in the mean, of {} operations", duration(ns), grouped(of))
        });
        few + &noise
    }

    /// What ranks compute longer than the others, each in the mean, also where exact times are folded: then by ranks' totals.
    pub(super) fn excess(&self, f: &Finding) -> Option<Excess> {
        f.excess.or_else(|| {
            let place = self.told.places().get(f.place)?;
            let computed = computed_before(&self.explained.sections, place);
            let late = Self::culprits(f);
            let (own, others): (Vec<_>, Vec<_>) =
                computed.into_iter().partition(|(rank, _)| late.contains(rank));
            let rank = own.iter().max_by_key(|(_, ns)| *ns)?.0;
            let mean = |of: &[(u32, u128)]| {
                let sum = of.iter().fold(0_u128, |sum, (_, ns)| sum.saturating_add(*ns));
                sum.checked_div(of.len().to_u64().into())
            };
            let ns = saturate(mean(&own)?.saturating_sub(mean(&others)?));
            (ns > 0).then_some(Excess { at: At { rank, place: f.place }, ns })
        })
    }

    pub(super) fn sure(&self, f: &Finding) -> &'static str {
        let waits = self.told.waits();
        let unsure = match self.explained.whole.header.clock.source.as_str() {
            SIMULATED => "unsure: on paper no rank waits for others",
            _ => "unsure: clocks disagree, st-sync",
        };
        match f.matter {
            Matter::Wait(_) | Matter::LateEnd | Matter::SlowRank | Matter::Serialised
                if waits.violations * 100 > waits.total().count =>
            {
                unsure
            }
            Matter::SlowRank if f.together.is_empty() => {
                "measured, but for whom they test: by how long, and that it hardly does"
            }
            Matter::Wait(_) | Matter::LateEnd | Matter::SlowRank | Matter::Serialised => "measured",
            Matter::Polling | Matter::Queued | Matter::Paused => "measured",
            // That there are fewer processors than ranks is certain, what ranks lacked them for the kernel has measured.
            Matter::Crowded { .. } if self.queued() > 0 => "measured",
            Matter::LeakedRequests | Matter::LeakedObjects | Matter::Crowded { .. } => "certain",
            Matter::Latency if has_short_waits(waits, f.place) => {
                "the calls' own time, short waits for messages included: st-stat waits"
            }
            Matter::Latency | Matter::Bandwidth | Matter::Files | Matter::OneSided | Matter::Inside => {
                "the calls' own time, and waits that no message tells of"
            }
        }
    }
}
