//! Time-independent traces of SimGrid, which SMPI replays: a file of actions per rank, and what `smpirun -replay` needs beside.
//!
//! Source: SimGrid's documentation, "Replaying a Time-Independent Trace", and its `smpi_replay.cpp` (3.32 and 4.1): sizes are in
//! bytes since `init` stands alone, one flop of computation is 1 ns, a wait names the ends and tag of its request.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use st_model::num::Exact as _;

use crate::directory::{Directory, Named};
use crate::format::{Call, Format, FormatKind, Summary};
use crate::level::Level;
use crate::losses::Losses;
use crate::script::{ALGORITHMS, End, LACKS, Op, Script, network};
use crate::trace::Trace;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "simgrid",
    endings: &[".ti"],
    about: "a time-independent trace in a directory: SimGrid's smpirun -replay",
    needs_times: false,
    by_rank: true,
    levels: &[Level::Calls],
    whole_only: true,
    has_waits: false,
    lacks: LACKS,
    is_series: false,
    files_each: 1,
    bytes: 40,
    bears: 20_000_000_000,
    open,
};

struct SimGrid<'a> {
    directory: Directory,
    script: Script,
    trace: &'a Trace,
    /// The rank that is being written, by its place.
    out: Option<(usize, BufWriter<Named>)>,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    let script = Script::new(trace, KIND.name)?;
    Ok(Box::new(SimGrid { directory: Directory::create(target)?, script, trace, out: None }))
}

fn name(rank: u32) -> String {
    format!("rank-{rank:06}.txt")
}

fn write(out: &mut impl std::io::Write, me: usize, op: Op) -> Result<()> {
    let end = |End { peer, tag, bytes }| format!("{peer} {tag} {bytes}");
    match op {
        Op::Compute(ns) => writeln!(out, "{me} compute {ns}")?,
        Op::Send(to) => writeln!(out, "{me} send {}", end(to))?,
        Op::Receive(from) => writeln!(out, "{me} recv {}", end(from))?,
        Op::Isend(to, _) => writeln!(out, "{me} isend {}", end(to))?,
        Op::Ireceive(from, _) => writeln!(out, "{me} irecv {}", end(from))?,
        Op::Wait(End { peer, tag, .. }, _, true) => writeln!(out, "{me} wait {peer} {me} {tag}")?,
        Op::Wait(End { peer, tag, .. }, _, false) => writeln!(out, "{me} wait {me} {peer} {tag}")?,
    }
    Ok(())
}

impl SimGrid<'_> {
    fn end_rank(&mut self) -> Result<()> {
        let Some((me, mut out)) = self.out.take() else { return Ok(()) };
        self.script.end(|op| write(&mut out, me, op))?;
        writeln!(out, "{me} finalize")?;
        out.flush().context("writing actions")
    }

    /// What `smpirun` needs: the list of files, hosts, and a network like the recorded one.
    fn surroundings(&self) -> Result<()> {
        let (mut list, mut hosts) = (self.directory.file("trace.txt")?, self.directory.file("hosts.txt")?);
        let ranks = self.script.ranks();
        for (rank, place) in ranks.iter().zip(0..) {
            writeln!(list, "{}", name(*rank))?;
            writeln!(hosts, "node-{place}")?;
        }
        list.flush()?;
        hosts.flush()?;
        let fit = network(self.trace)?;
        let latency = fit.map_or(1000.0, |fit| fit.latency.max(0.0));
        let per_byte = fit.and_then(|fit| fit.per_byte).filter(|ns| *ns > 0.0).unwrap_or(0.1);
        let (bandwidth, last) = (1e9 / per_byte, ranks.len().saturating_sub(1));
        let mut platform = self.directory.file("platform.xml")?;
        writeln!(
            platform,
            "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n\
             <!-- 1 flop is 1 ns. {ALGORITHMS}. -->\n\
             <cluster id=\"nodes\" prefix=\"node-\" suffix=\"\" radical=\"0-{last}\" speed=\"1Gf\" bw=\"{bandwidth:.0}Bps\" \
             lat=\"{:.0}ns\" loopback_bw=\"{bandwidth:.0}Bps\" loopback_lat=\"0ns\"/>\n</platform>",
            latency / 2.0,
        )?;
        platform.flush().context("writing the platform")
    }
}

impl Format for SimGrid<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let me = call.at.to_usize();
        if self.out.as_ref().is_none_or(|(rank, _)| *rank != me) {
            self.end_rank()?;
            let mut out = self.directory.file(&name(call.lane.rank))?;
            writeln!(out, "{me} init")?;
            self.out = Some((me, out));
        }
        let Some((me, out)) = &mut self.out else { return Ok(()) };
        self.script.call(call, |op| write(out, *me, op))
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        self.end_rank()?;
        self.surroundings()?;
        Ok(std::mem::take(&mut self.script.losses))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.directory.commit()
    }
}
