//! The document that says what there is: metrics, functions and call paths, nodes and ranks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write as _;

use anyhow::Result;
use foldhash::fast::FixedState;
use st_model::num::Exact as _;

use crate::profile::{Path, Profile};
use crate::trace::Trace;

/// What values of a metric are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Values {
    /// From ns.
    Seconds,
    /// Whole numbers of a unit.
    Whole(&'static str),
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    name: &'static str,
    about: &'static str,
    pub(super) values: Values,
    /// It is a part of the time.
    is_wait: bool,
}

impl Metric {
    pub(super) const TIME: Self = Self {
        name: "time",
        about: "Time in calls of MPI; of functions of the program, before calls that they make",
        values: Values::Seconds,
        is_wait: false,
    };
    pub(super) const VISITS: Self =
        Self { name: "visits", about: "Calls", values: Values::Whole("occ"), is_wait: false };
    pub(super) const SENT: Self =
        Self { name: "bytes_sent", about: "Bytes sent", values: Values::Whole("bytes"), is_wait: false };
    pub(super) const RECEIVED: Self = Self {
        name: "bytes_received",
        about: "Bytes received",
        values: Values::Whole("bytes"),
        is_wait: false,
    };

    /// A kind of wait states.
    pub(super) const fn wait(kind: &'static str) -> Self {
        Self { name: kind, about: "Waiting for others", values: Values::Seconds, is_wait: true }
    }
}

/// A text between tags or quotes; what XML has no place for is left out.
fn escaped(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, '&' | '<' | '>' | '"') && !c.is_control();
    if text.chars().all(plain) {
        return text.into();
    }
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.into()
}

/// The document, with paths numbered in this order and metrics in that of their list.
pub(super) fn document(
    trace: &Trace,
    profile: &Profile,
    order: &[u32],
    metrics: &[&Metric],
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<cube version=\"4.4\">")?;
    writeln!(out, "<attr key=\"Creator\" value=\"st {}\"/>", env!("CARGO_PKG_VERSION"))?;
    write_metrics(&mut out, metrics)?;
    write_program(&mut out, profile, order)?;
    write_system(&mut out, trace, profile)?;
    writeln!(out, "</cube>")?;
    Ok(out)
}

/// Kinds of wait states stand below the time, which comes first and is closed when they end.
fn write_metrics(out: &mut Vec<u8>, metrics: &[&Metric]) -> Result<()> {
    writeln!(out, "<metrics>")?;
    for (number, metric) in metrics.iter().enumerate() {
        let (dtype, unit) = match metric.values {
            Values::Seconds => ("DOUBLE", "sec"),
            Values::Whole(unit) => ("UINT64", unit),
        };
        let unique = metric.name.replace(", ", "_").replace(' ', "_");
        writeln!(
            out,
            "<metric id=\"{number}\" type=\"EXCLUSIVE\"><disp_name>{}</disp_name><uniq_name>{unique}</uniq_name><dtype>{dtype}</dtype>\
             <uom>{unit}</uom><url></url><descr>{}</descr>",
            metric.name, metric.about
        )?;
        let next = metrics.get(number + 1).is_some_and(|next| next.is_wait);
        let closed = match (metric.is_wait, next) {
            (false, true) => "",
            (true, false) => "</metric></metric>",
            _ => "</metric>",
        };
        writeln!(out, "{closed}")?;
    }
    writeln!(out, "</metrics>")?;
    Ok(())
}

fn write_program(out: &mut Vec<u8>, profile: &Profile, order: &[u32]) -> Result<()> {
    writeln!(out, "<program>")?;
    let mut regions: HashMap<(&str, bool), usize, FixedState> = HashMap::default();
    for path in profile.paths() {
        let number = regions.len();
        let std::collections::hash_map::Entry::Vacant(new) = regions.entry((&path.function, path.is_mpi))
        else {
            continue;
        };
        new.insert(number);
        let (name, paradigm) = (escaped(&path.function), if path.is_mpi { "mpi" } else { "user" });
        writeln!(
            out,
            "<region id=\"{number}\" mod=\"\" begin=\"-1\" end=\"-1\"><name>{name}</name><mangled_name>{name}</mangled_name>\
             <paradigm>{paradigm}</paradigm><role>function</role><url></url><descr></descr></region>"
        )?;
    }
    let path = |number: u32| -> Option<&Path> { profile.paths().get(number.to_usize()) };
    let mut open: Vec<u32> = Vec::new();
    for (number, at) in order.iter().enumerate() {
        let Some(this) = path(*at) else { continue };
        while open.last().is_some_and(|last| Some(*last) != this.caller) {
            open.pop();
            writeln!(out, "</cnode>")?;
        }
        let region = regions.get(&(this.function.as_str(), this.is_mpi)).copied().unwrap_or_default();
        writeln!(out, "<cnode id=\"{number}\" calleeId=\"{region}\">")?;
        open.push(*at);
    }
    open.iter().try_for_each(|_| writeln!(out, "</cnode>"))?;
    writeln!(out, "</program>")?;
    Ok(())
}

/// A location per rank, whose number is its place among the ranks, below its node.
fn write_system(out: &mut Vec<u8>, trace: &Trace, profile: &Profile) -> Result<()> {
    writeln!(out, "<system>\n<systemtreenode Id=\"0\"><name>machine</name><class>machine</class>")?;
    let ranks = trace.lanes.chunk_by(|a, b| a.rank == b.rank).filter_map(|lanes| lanes.first());
    let mut by_node: Vec<(u32, usize, u32)> =
        ranks.enumerate().map(|(number, lane)| (lane.host, number, lane.rank)).collect();
    by_node.sort_unstable();
    debug_assert_eq!(by_node.len(), profile.ranks.len());
    for of_node in by_node.chunk_by(|a, b| a.0 == b.0) {
        let Some((node, ..)) = of_node.first() else { continue };
        let name = escaped(trace.hosts.get(node.to_usize()).map_or("", String::as_str));
        writeln!(out, "<systemtreenode Id=\"{}\"><name>{name}</name><class>node</class>", node + 1)?;
        for (_, number, rank) in of_node {
            writeln!(
                out,
                "<locationgroup Id=\"{number}\"><name>rank {rank}</name><rank>{rank}</rank><type>process</type>\
                 <location Id=\"{number}\"><name>rank {rank}</name><rank>0</rank><type>thread</type></location></locationgroup>"
            )?;
        }
        writeln!(out, "</systemtreenode>")?;
    }
    writeln!(out, "</systemtreenode>\n</system>")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_such_as_xml_has_a_place_for() {
        assert_eq!(escaped("main"), "main");
        assert_eq!(escaped("run<\u{1}T&\"> \u{b5}"), "run&lt;T&amp;&quot;&gt; \u{b5}");
    }
}
