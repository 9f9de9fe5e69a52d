//! Several processes, here threads, give what one gives.

use st_sync::clc::{Options, Outcome, correct};
use st_sync::team::Team;
use st_tool::transport::{self, Thread, Transport};
use st_trace::graph::{Barriers, Issues, Latency, Matcher, Survey, roll, span, survey, survey_shared};
use st_trace::section::Section;

/// All that comes out.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    corrected: Vec<Vec<i64>>,
    outcome: Outcome,
    issues: Issues,
    before: Survey,
    after: Survey,
}

/// Points of a section's threads; they never decrease.
fn points(section: &Section) -> Vec<Vec<i64>> {
    let of = |(rank, thread): (u32, &st_trace::section::Thread)| {
        let column = thread.columns.iter().find(|(r, _)| *r == rank);
        let mut last = i64::MIN;
        let times = column.into_iter().flat_map(|(_, c)| c.times()).flat_map(|(a, b)| [a, b]);
        times
            .map(|t| {
                last = last.max(t);
                last
            })
            .collect()
    };
    let ranks = section.ranks.iter();
    let threads = ranks.flat_map(|r| section.threads.iter().filter(move |t| t.ranks.contains(r)).map(move |t| (r, t)));
    threads.map(of).collect()
}

fn alone(sections: &[Section], barriers: Barriers, options: &Options) -> Found {
    let mut matcher = Matcher::new(barriers);
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let graph = matcher.finish();
    let times: Vec<Vec<i64>> = sections.iter().flat_map(points).collect();
    let (corrected, outcome) =
        correct(&graph, times.clone(), options, |s| times[s].clone(), &mut Team::alone()).unwrap();
    let of = |times: &[Vec<i64>]| survey(&graph, times, options.latency);
    Found { before: of(&times), after: of(&corrected), corrected, outcome, issues: graph.issues }
}

/// What one of several processes does, with its sections.
fn one(job: &mut Thread, sections: &[Section], barriers: Barriers, options: &Options) -> Found {
    let me = job.rank();
    let rolls = transport::all(job, &roll(sections, |_| true)).unwrap();
    let mut matcher = Matcher::new(barriers);
    matcher.share(me, &rolls).unwrap();
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let sent = matcher.sent();
    let came = transport::swap(job, sent).unwrap();
    let matched = matcher.matched(&came).unwrap();
    let came = transport::swap(job, matched).unwrap();
    let (graph, links) = matcher.finish_shared(&came).unwrap();
    let mut mine = sections.iter().flat_map(points);
    let mut team = Team::of(job);
    team.links = links;
    let times: Vec<Vec<i64>> = (0..graph.streams.len())
        .map(|s| if team.has(s) { mine.next().unwrap() } else { Vec::new() })
        .collect();
    let (corrected, outcome) =
        correct(&graph, times.clone(), options, |s| times[s].clone(), &mut team).unwrap();
    let links = team.links.clone();
    let mut of = |times: &[Vec<i64>]| {
        survey_shared(&graph, &links, times, options.latency, span(times), |out| team.swap_times(out)).unwrap()
    };
    let (before, after) = (of(&times), of(&corrected));
    Found { before, after, corrected, outcome, issues: graph.issues }
}

/// All that does not depend on when anything happened as a whole.
fn comparable(mut f: Found) -> Found {
    for s in [&mut f.before, &mut f.after] {
        s.span = (0, 0);
        s.over_time.clear();
    }
    f
}

/// Several processes find what one finds. Each has some ranks one after the other, or none.
pub(crate) fn check(sections: &[Section], barriers: Barriers, latency: Latency, processes: usize, jobs: usize) {
    let options = Options { latency, jobs, ..Options::default() };
    let expected = alone(sections, barriers, &options);
    let share = |p: usize| &sections[p * sections.len() / processes..(p + 1) * sections.len() / processes];
    let found: Vec<Found> = std::thread::scope(|scope| {
        let start = |(p, mut job)| scope.spawn(move || one(&mut job, share(p), barriers, &options));
        let running: Vec<_> = transport::threads(processes).into_iter().enumerate().map(start).collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    });
    let mut all = found[0].clone();
    for other in &found[1..] {
        assert_eq!(other.outcome, all.outcome);
        for (a, b) in all.corrected.iter_mut().zip(&other.corrected) {
            a.extend(b);
        }
        all.issues.add(&other.issues);
        all.before.absorb(&other.before);
        all.after.absorb(&other.after);
    }
    assert_eq!(comparable(all), comparable(expected));
}
