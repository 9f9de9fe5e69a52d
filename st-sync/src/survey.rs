//! Surveys the messages of a trace, with all processes of a team.

use anyhow::Result;
use st_match::graph::{Ends, Graph, Latency, Seen, Shortest, Span, Survey};
use st_model::num::narrow;

use crate::clocks::Clocks;
use crate::lags::Lags;
use crate::pack;
use crate::surveyed::Surveyed;
use crate::team::Team;
use crate::trace::parallel;

/// Collective operations that a thread counts at once.
const INSTANCES: usize = 512;

/// How messages are surveyed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surveying<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) latency: Latency,
    pub(crate) jobs: usize,
    /// The clocks between which the quickest messages are looked for; nothing is, of one clock.
    pub(crate) clocks: &'a Clocks,
}

impl Surveying<'_> {
    /// Surveys the messages of the whole team.
    pub(crate) fn survey<I: Iterator<Item = i64>>(
        &self,
        points: impl Fn(usize) -> I + Sync,
        team: &mut Team<'_>,
    ) -> Result<Surveyed> {
        let &Self { graph, latency, jobs, clocks } = self;
        let mut ends = Ends::unread(graph);
        let (n, links) = (graph.streams.len(), &team.links);
        let read = parallel(n, jobs, |s| ends.read(graph, links, s, points(s)));
        ends.close(links, read);
        let Span { first, last } = ends.span.unwrap_or(Span { first: i64::MAX, last: i64::MIN });
        let spans = team.all(&[first, last])?;
        let first = spans.iter().filter_map(|s| s.first().copied()).min().unwrap_or(0);
        let last = spans.iter().filter_map(|s| s.get(1).copied()).max().unwrap_or(0);
        let span = Span { first, last };
        let came = team.swap_times(std::mem::take(&mut ends.out))?;
        ends.take_in(&team.links, &came);
        // Streams first, then collective operations.
        let all = graph.instances.len();
        let empty = || (Survey::none(span), Lags::new(span, clocks.all.len()));
        let parts = parallel(n + all.div_ceil(INSTANCES), jobs, |part| {
            let (mut found, mut lags) = empty();
            let mut see = |ranks: [u32; 2], [sent, received]: [i64; 2]| {
                if let Some(pair) = clocks.pair(ranks) {
                    let least = clocks.latency(pair, latency);
                    lags.add(pair, received.saturating_sub(sent).saturating_sub(least), received);
                }
            };
            let seen: Option<&mut Seen<'_>> = if clocks.all.len() > 1 { Some(&mut see) } else { None };
            match part.checked_sub(n) {
                None => ends.received(graph, part, points(part), latency, &mut found, seen),
                Some(part) => {
                    let instances = part * INSTANCES..all.min((part + 1) * INSTANCES);
                    ends.collective(graph, instances, latency, &mut found, seen);
                }
            }
            (found, lags)
        });
        let (mut found, mut lags) = empty();
        for part in parts {
            found.absorb(&part.0);
            lags.absorb(part.1);
        }
        self.of_all(found, lags, team)
    }

    /// What all processes have found.
    fn of_all(&self, mut found: Survey, mut lags: Lags, team: &mut Team<'_>) -> Result<Surveyed> {
        let Shortest { near, far } = found.shortest;
        let violated = narrow(found.all().violated);
        let mut words = vec![violated, near, far];
        lags.put(&mut words);
        let (mut violated, mut shortest) = (0, Shortest::default());
        for (process, words) in team.all(&words)?.iter().enumerate() {
            let mut words = pack::Words(words.iter());
            violated += words.one().unsigned_abs();
            shortest.absorb(Shortest { near: words.one(), far: words.one() });
            if process != team.me() {
                lags.get(&mut words);
            }
        }
        let mut words = Vec::new();
        if team.me() > 0 {
            pack::put_survey(&mut words, &found);
        }
        team.gather(&words, |theirs| found.absorb(&theirs.survey()))?;
        Ok(Surveyed { found, violated, shortest, lags })
    }
}
