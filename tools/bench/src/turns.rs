//! Measuring: case by case, the versions in turns.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use st_cli::options::Talk;
use st_cli::{Output, Status};

use crate::args::{Run, TOOL};
use crate::group::{self, ALL, Bench, Case};
use crate::results::{Results, Row, path};
use crate::stats;
use crate::version::{about, built, load};

/// The word for the quick cases of all groups.
const QUICK: &str = "quick";

/// Values of each measure, by version.
type Values = BTreeMap<String, Vec<Vec<f64>>>;

/// The cases that are asked for.
fn cases(place: &Bench, args: &Run, quick: bool) -> Result<Vec<Case>> {
    if let Some(other) = args.only.iter().find(|o| *o != QUICK && !ALL.contains(&o.as_str())) {
        bail!("{other}: no such group; there are {QUICK}, {}", ALL.join(", "));
    }
    let mut out = Vec::new();
    for group in ALL {
        let asked = args.only.is_empty() || args.only.iter().any(|o| o == group);
        if asked || (quick && group::QUICK.contains(&group)) {
            let of = place.cases(group)?.into_iter().filter(|c| c.name.contains(&args.case));
            out.extend(of.filter(|c| asked || c.quick));
        }
    }
    if out.is_empty() { bail!("no case has {:?} in its name", args.case) } else { Ok(out) }
}

/// Runs a case with all versions in turns, the first one first and last in turns, too. `None` if it cannot be run here.
fn values(place: &Bench, case: &Case, runs: u32, versions: &[PathBuf]) -> Result<Option<Values>> {
    let mut out = Values::new();
    for run in 0..runs {
        let mut order: Vec<usize> = (0..versions.len()).collect();
        if run % 2 == 1 {
            order.reverse();
        }
        for v in order {
            let Some(measures) = place.measured(case, &versions[v])? else { return Ok(None) };
            for (measure, value) in measures {
                out.entry(measure).or_insert_with(|| vec![Vec::new(); versions.len()])[v].push(value);
            }
        }
    }
    Ok(Some(out))
}

/// Instructions of the same work differ by less than this: addresses are random, and so is what is hashed by them.
const SAME_WORK: f64 = 0.001;

/// A line for people about a measure of two versions, and the word that it ends in; `None` unless both were measured as often.
fn compared(case: &Case, measure: &str, values: &[Vec<f64>]) -> Option<(String, &'static str)> {
    let [old, new] = values else { return None };
    if old.len() != new.len() {
        return None;
    }
    let (o, n, r) = (stats::estimate(old), stats::estimate(new), stats::ratio(old, new));
    let margin = if measure.ends_with("instructions") { SAME_WORK } else { 0.0 };
    let word = match () {
        () if r.low > 1.0 + margin => "more",
        () if r.high < 1.0 - margin => "less",
        () => "as before",
    };
    let interval = if old.len() < 2 { String::new() } else { format!("[{:.3}, {:.3}] ", r.low, r.high) };
    let name = format!("{} {}", case.group, case.name);
    let (o, n, r) = (o.median, n.median, r.median);
    Some((format!("{name:<40} {measure:<22} {o:>14} {n:>14} {r:>8.4} {interval}{word}"), word))
}

/// Where results go: ratios are printed, results of one version are kept for its files, too.
struct Told {
    out: Output,
    words: BTreeMap<&'static str, u32>,
    kept: BTreeMap<&'static str, Results>,
}

impl Told {
    /// Takes what was measured of a case by two versions.
    fn ratios(&mut self, case: &Case, values: &Values) -> Result<()> {
        for (line, word) in values.iter().filter_map(|(m, v)| compared(case, m, v)) {
            writeln!(self.out, "{line}")?;
            *self.words.entry(word).or_default() += 1;
        }
        Ok(self.out.flush()?)
    }

    /// Takes what was measured of a case by this version, beginning at a load.
    fn results(&mut self, root: &Path, case: &Case, values: Values, before: f64) -> Result<()> {
        let results = self.kept.entry(case.group).or_default();
        if results.about.date.is_empty() {
            results.about = about(root)?;
        }
        let load = &mut results.about.load;
        *load = (load.0.min(before), load.1.max(crate::version::load()));
        for (measure, v) in values {
            let row = Row::new(&case.name, &measure, v.first().map_or(&[], Vec::as_slice));
            let Row { median, low, high, .. } = row;
            writeln!(
                self.out,
                "{} {:<40} {measure:<22} {median:>14} [{low}, {high}]",
                case.group, case.name
            )?;
            results.rows.insert((row.case.clone(), measure), row);
        }
        Ok(self.out.flush()?)
    }

    /// Writes the file of a group.
    fn keep(&self, root: &Path, group: &str) -> Result<()> {
        self.kept.get(group).map_or(Ok(()), |results| results.write(&path(root, group)))
    }

    /// Ends: says how often which word was said.
    fn end(mut self) -> Result<()> {
        if !self.words.is_empty() {
            let words: Vec<_> = self.words.iter().map(|(word, n)| format!("{n} {word}")).collect();
            writeln!(self.out, "{}", words.join(", "))?;
        }
        self.out.commit()
    }
}

/// The versions that are measured, the older one first, and where inputs for both are: for this run only, as this version may
/// change, and others may run at the same time.
fn prepared(root: &Path, against: Option<&str>) -> Result<(Vec<PathBuf>, Bench)> {
    let old = against.map(|rev| built(root, rev)).transpose()?;
    let inputs = root.join("target/bench");
    fs::create_dir_all(&inputs).with_context(|| format!("{}: cannot create", inputs.display()))?;
    let input = tempfile::Builder::new().prefix("input-").tempdir_in(&inputs);
    let input = input.with_context(|| format!("{}: cannot create a directory", inputs.display()))?;
    let base = old.clone().unwrap_or_else(|| root.to_owned());
    let versions = old.into_iter().chain([root.to_owned()]).collect();
    Ok((versions, Bench { root: root.to_owned(), base, input }))
}

/// Measures what is asked for.
///
/// # Errors
///
/// If a version cannot be built or a case fails; the others are measured nevertheless.
pub(crate) fn run(root: &Path, args: &Run, talk: &Talk) -> Result<Status> {
    let (versions, place) = prepared(root, args.against.as_deref())?;
    let quick = args.only.iter().any(|o| o == QUICK);
    let cases = cases(&place, args, quick)?;
    let out = Output::text(Path::new("-"))?;
    let mut told = Told { out, words: BTreeMap::new(), kept: BTreeMap::new() };
    if let Some(rev) = &args.against {
        writeln!(
            told.out,
            "{rev}, this version, and the median of the ratios of pairs with its 95 % interval (bootstrap)"
        )?;
    }
    let (mut failed, mut broken) = (0, None);
    for (i, case) in cases.iter().enumerate() {
        let before = load();
        let runs = if case.runs > 1 { args.runs.unwrap_or(case.runs) } else { 1 };
        talk.detail(TOOL, format!("{} {} ({runs} runs)", case.group, case.name));
        match values(&place, case, runs, &versions) {
            Ok(Some(values)) if versions.len() > 1 => told.ratios(case, &values)?,
            Ok(Some(values)) => told.results(root, case, values, before)?,
            Ok(None) => talk.warn(TOOL, format!("{} {}: skipped", case.group, case.name)),
            Err(e) => {
                (failed, broken) = (failed + 1, Some(case.group));
                talk.warn(TOOL, format!("{e:#}"));
            }
        }
        // A file holds a whole group, as soon as there is one: what was measured in part is not mixed with older results.
        let last = cases.get(i + 1).is_none_or(|next| next.group != case.group);
        if last && broken != Some(case.group) && args.case.is_empty() && !quick {
            told.keep(root, case.group)?;
        }
    }
    told.end()?;
    if failed > 0 { bail!("{failed} cases of {} failed", cases.len()) } else { Ok(Status::Ok) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(measure: &str, old: &[f64], new: &[f64]) -> Option<&'static str> {
        let case = Case { group: "sizes", name: "x".into(), runs: 1, quick: true };
        compared(&case, measure, &[old.to_vec(), new.to_vec()]).map(|(_, word)| word)
    }

    #[test]
    fn a_byte_more_is_told_and_a_few_instructions_are_not() {
        assert_eq!(word("bytes", &[400.0], &[401.0]), Some("more"));
        assert_eq!(word("instructions", &[1e9], &[1.0005e9]), Some("as before"));
        assert_eq!(word("instructions", &[1e9], &[0.9e9]), Some("less"));
        assert_eq!(
            word("cpu_ms", &[10.0, 12.0, 11.0, 10.0, 12.0], &[11.0, 10.0, 12.0, 12.0, 10.0]),
            Some("as before")
        );
        assert_eq!(word("bytes", &[400.0], &[]), None);
    }
}
