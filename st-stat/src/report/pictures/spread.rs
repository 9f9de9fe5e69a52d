//! How long the calls of one call site take, and the ranks at the ends.

use anyhow::{Result, bail};
use st_cli::{UsageError, counted};
use st_model::num::float;
use st_model::sites::CallSites;
use st_model::sketch::Sketch;

use crate::calls::{at, unknown};
use crate::figure::{Anchor, Figure, INK, MPI, SMALL, TEXT};
use crate::hist::{self, Call, Found, Range};
use crate::input::Lacking;
use crate::report::told::Told;
use crate::table::duration;

/// Bars at most, how high the highest is, and what stands above it.
const BARS: usize = 60;
const HIGH: f64 = 70.0;
const TOP: f64 = 12.0;

/// Of the call site that is asked for, or of that whose calls take most.
pub(super) fn draw(figure: &mut Figure, told: &Told, sites: &CallSites, asked: Option<&str>) -> Result<()> {
    let meant = asked.map(|asked| sites.meant(asked));
    let wanted = |name: &str, site: Option<u32>| match (&meant, asked) {
        (Some(meant), Some(asked)) => name == asked || site.is_some_and(|n| meant.contains(&n)),
        _ => true,
    };
    let sections = told.sections.iter().map(|(section, _)| section);
    let (all, any) = hist::gathered(sections, sites, wanted, &told.steps.budget())?;
    let sum = |(_, found): &(&Call, &Found)| found.durations()[1].sum;
    let Some((call, found)) = all.iter().max_by_key(sum) else {
        match asked.filter(|_| !any) {
            Some(asked) => {
                let sections = told.sections.iter().map(|(section, _)| section);
                bail!(UsageError(format!("--site {}", unknown(asked, sections).0)))
            }
            None => bail!(Lacking("the trace holds no times of these calls".to_owned())),
        }
    };
    let [_, durations] = found.durations();
    let head = format!("{}: {}", at(&call.0, call.1, sites), counted(durations.count, "call"));
    let head = figure.fitting(&head, TEXT, figure.width);
    figure.text([0.0, 7.0], TEXT, Anchor::Start, &head);
    let ranges = hist::lines(&hist::ranges(&durations), BARS);
    bars(figure, &durations, &ranges);
    let told = [hist::quantiles(&durations), hist::extremes(&durations)];
    for line in told.into_iter().chain(hist::sums(&found.ranks, 1)) {
        figure.below(SMALL, &line);
    }
    Ok(())
}

/// Equal ratios of durations are as wide.
fn bars(figure: &mut Figure, durations: &Sketch, ranges: &[Range]) {
    let log = |ns: u64| float(u128::from(ns.max(1))).ln();
    let ends = ranges.first().zip(ranges.last());
    let (low, high) = ends.map_or((0.0, 1.0), |(first, last)| (log(first.0), log(last.1.saturating_add(1))));
    let width = figure.width;
    let x = |ns: u64| (log(ns) - low) / (high - low).max(f64::MIN_POSITIVE) * width;
    let most = ranges.iter().map(|range| range.2).max().unwrap_or(1).max(1);
    let bar = |(from, to, n): &Range| {
        let tall = HIGH * float((*n).into()) / float(most.into());
        let left = x(*from);
        [left, TOP + HIGH - tall, (x(to.saturating_add(1)) - left - 0.3).max(0.3), tall]
    };
    figure.boxes(MPI, ranges.iter().filter(|range| range.2 > 0).map(bar).collect());
    let base = TOP + HIGH;
    figure.boxes(INK, vec![[0.0, base, width, 0.4]]);
    let [least, longest] = [durations.min.0, durations.max.0];
    figure.text([0.0, base + 8.0], TEXT, Anchor::Start, &duration(least));
    figure.text([width, base + 8.0], TEXT, Anchor::End, &duration(longest));
    let median = duration(durations.quantile(500));
    let (at, half) = (x(durations.quantile(500)).clamp(0.0, width), figure.wide(&median, TEXT) / 2.0);
    let ends = [&duration(least), &duration(longest)].map(|text| figure.wide(text, TEXT) + 6.0);
    figure.boxes(INK, vec![[at - 0.3, TOP - 2.0, 0.6, HIGH + 2.0]]);
    // Where it would touch the ends the line below says it.
    if at - half > ends[0] && at + half < width - ends[1] {
        figure.text([at, base + 8.0], TEXT, Anchor::Middle, &median);
    }
    figure.reach(base + 11.0);
}
