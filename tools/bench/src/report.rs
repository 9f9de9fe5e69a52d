//! BENCHMARKS.md, from `benchmarks/BENCHMARKS.md.in` and the results beside it.
//!
//! In the template `{{GROUP CASE MEASURE}}` stands for what was measured; `[a,b]` in CASE or MEASURE for several, as cells of
//! a table; `{{about GROUP}}` for when, where and how. What was run more than once has the interval of its median in brackets.
//! `{{found FIGURE}}` is what a paper found and what an experiment does, from `benchmarks/figures`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::results::{Results, Row, path};

/// Written in front, for those who would change it.
const WARNING: &str =
    "<!-- Written by `make bench-report` from benchmarks/: change benchmarks/BENCHMARKS.md.in instead. -->\n";

/// The words that a word with alternatives in brackets stands for.
fn expanded(word: &str) -> Vec<String> {
    let parts = word.split_once('[').and_then(|(a, rest)| Some((a, rest.split_once(']')?)));
    let Some((before, (choices, after))) = parts else { return vec![word.to_owned()] };
    let rest = expanded(after);
    let both = |c: &str| rest.iter().map(|r| format!("{before}{c}{r}")).collect::<Vec<_>>();
    choices.split(',').flat_map(both).collect()
}

/// A number with commas between thousands.
fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::new();
    for (i, c) in whole.char_indices() {
        if i > 0 && (whole.len() - i) % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out + fraction
}

/// A value for people: what is counted in full, everything else to three digits.
fn number(value: f64, counted: bool) -> String {
    let digits = match value.abs() {
        _ if counted => 0,
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    grouped(&format!("{value:.digits$}"))
}

/// What a cell shows.
fn shown(row: &Row) -> String {
    let counted = ["bytes", "count", "instructions"].iter().any(|c| row.measure.ends_with(c));
    let number = |v| number(v, counted);
    let value = number(row.median);
    let interval = (number(row.low), number(row.high));
    if row.runs < 2 || interval.0 == interval.1 {
        return value;
    }
    format!("{value} ({}–{})", interval.0, interval.1)
}

fn about(results: &Results) -> String {
    let a = &results.about;
    let runs = |f: fn(usize, usize) -> usize| results.rows.values().map(|r| r.runs).reduce(f).unwrap_or(0);
    let runs = match (runs(usize::min), runs(usize::max)) {
        (1, 1) => "one run of each".to_owned(),
        (a, b) if a == b => format!("{a} runs of each"),
        (a, b) => format!("{a} to {b} runs of each"),
    };
    let (least, most) = a.load;
    format!(
        "Measured on {} at commit {}: {}; {}; load {least:.1} to {most:.1}; {runs}.",
        a.date, a.commit, a.machine, a.software
    )
}

/// What a figure's text says, below what it was measured with (tools/experiments/about): its title, what the paper found, what we find.
fn found(text: &str, name: &str) -> Result<String> {
    let lines: Vec<&str> = text.lines().collect();
    let [with, on, ..] = lines[..] else { bail!("{name}: no figure") };
    let title = lines.windows(2).find(|pair| pair[1].starts_with("===")).map(|pair| pair[0]);
    let said = |what: &'static str| lines.iter().filter_map(move |line| line.strip_prefix(what));
    let (title, source, paper) = (title, said("Source: ").next(), said("The paper: ").next());
    let (Some(title), Some(source), Some(paper)) = (title, source, paper) else { bail!("{name}: no figure") };
    let source = source.trim_end_matches('.');
    let ours: String = said("We find: ").map(|line| format!("- {line}\n")).collect();
    Ok(format!("**{title}** ({source}). The paper: {paper}\n\n{ours}\n[All values]({name}): {with}; {on}."))
}

/// What is put into a template.
struct Sources<R, F> {
    results: R,
    /// The text of a figure, and what it is called.
    figures: F,
}

/// The text that a template stands for.
fn filled<R, F>(template: &str, mut sources: Sources<R, F>) -> Result<String>
where
    R: FnMut(&str) -> Result<Results>,
    F: FnMut(&str) -> Result<(String, String)>,
{
    let mut read = BTreeMap::new();
    let (mut out, mut rest) = (WARNING.to_owned(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        out += before;
        let (inside, after) = after.split_once("}}").context("{{ without }}")?;
        rest = after;
        let words: Vec<&str> = inside.split(' ').collect();
        let group = match words[..] {
            ["found", figure] => {
                let (text, name) = (sources.figures)(figure)?;
                out += &found(&text, &name)?;
                continue;
            }
            ["about", group] | [group, _, _] => group,
            _ => bail!("{{{{{inside}}}}}: expected GROUP CASE MEASURE, about GROUP or found FIGURE"),
        };
        if !read.contains_key(group) {
            read.insert(group.to_owned(), (sources.results)(group)?);
        }
        let of = &read[group];
        let [_, case, measure] = words[..] else {
            out += &about(of);
            continue;
        };
        let keys = expanded(case)
            .into_iter()
            .flat_map(|c| expanded(measure).into_iter().map(move |m| (c.clone(), m)));
        let cells: Vec<String> = keys
            .map(|key| {
                of.rows.get(&key).map(shown).with_context(|| format!("no {} of {group} {}", key.1, key.0))
            })
            .collect::<Result<_>>()?;
        out += &cells.join(" | ");
    }
    Ok(out + rest)
}

/// Writes BENCHMARKS.md, or only compares it.
///
/// # Errors
///
/// If the template or a result is missing, the file cannot be written, or is another one.
pub(crate) fn write(root: &Path, check: bool) -> Result<()> {
    let template = root.join("benchmarks/BENCHMARKS.md.in");
    let name = template.display().to_string();
    let text = fs::read_to_string(&template).with_context(|| format!("{name}: cannot read"))?;
    let results = |group: &str| Results::read(&path(root, group));
    let figures = |figure: &str| {
        let name = format!("benchmarks/figures/{figure}.txt");
        let text = fs::read_to_string(root.join(&name)).with_context(|| format!("{name}: cannot read"))?;
        Ok((text, name))
    };
    let text = filled(&text, Sources { results, figures }).with_context(|| name)?;
    let target = root.join("BENCHMARKS.md");
    if !check {
        return fs::write(&target, text).with_context(|| format!("{}: cannot write", target.display()));
    }
    let current =
        fs::read_to_string(&target).with_context(|| format!("{}: cannot read", target.display()))?;
    if current != text {
        bail!(st_cli::FailedCheck(
            "BENCHMARKS.md is not what benchmarks/ gives: change the results or the template there, then make bench-report".into()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(_: &str) -> Result<Results> {
        let mut out = Results::default();
        for (case, values) in [("a/4", vec![1331.0]), ("a/16", vec![2.0]), ("b", vec![1.0, 3.0, 2.0])] {
            let row = Row::new(case, if case == "b" { "ns" } else { "bytes" }, &values);
            out.rows.insert((row.case.clone(), row.measure.clone()), row);
        }
        Ok(out)
    }

    fn text(template: &str) -> String {
        let figures = |figure: &str| {
            let text = match figure {
                "sizes" => {
                    "st 1, commit, day\nmachine\nSeeds.\n\nSizes\n=====\n\nSource: them, figure 7.\nThe paper: small.\nWe find: so: s at most 1; holds for a (1)\nWe find: not: t\n\nbytes by ranks\n"
                }
                _ => "",
            };
            Ok((text.to_owned(), format!("{figure}.txt")))
        };
        filled(template, Sources { results, figures })
            .map_or_else(|e| format!("{e:#}"), |t| t.replacen(WARNING, "", 1))
    }

    #[test]
    fn figures_stand_where_the_template_asks_for_them() {
        assert_eq!(text("| x | {{g a/[4,16] bytes}} |\n"), "| x | 1,331 | 2 |\n");
        assert_eq!(text("{{g b ns}} ns"), "2.00 (1.00–3.00) ns");
    }

    #[test]
    fn what_a_paper_found_stands_beside_what_we_find() {
        assert_eq!(
            text("{{found sizes}}\n"),
            "**Sizes** (them, figure 7). The paper: small.\n\n- so: s at most 1; holds for a (1)\n- not: t\n\n[All values](sizes.txt): st 1, commit, day; machine.\n"
        );
        assert_eq!(text("{{found other}}"), "other.txt: no figure");
    }

    #[test]
    fn what_is_missing_or_misspelt_is_named() {
        assert_eq!(text("{{g a/64 bytes}}"), "no bytes of g a/64");
        assert_eq!(text("{{g}}"), "{{g}}: expected GROUP CASE MEASURE, about GROUP or found FIGURE");
        assert_eq!(text("{{g a"), "{{ without }}");
    }

    #[test]
    fn results_read_back() {
        let file = std::env::temp_dir().join(format!("st-bench-{}.csv", std::process::id()));
        let all = results("").unwrap();
        all.write(&file).unwrap();
        let back = Results::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(back.rows, all.rows);
    }

    #[test]
    fn numbers_are_for_people() {
        let said: Vec<_> = [0.5, 12.34, 123.4, 1_234_567.0].map(|v| number(v, false)).into();
        assert_eq!(said, ["0.50", "12.3", "123", "1,234,567"]);
        assert_eq!(grouped("-123456"), "-123,456");
    }
}
