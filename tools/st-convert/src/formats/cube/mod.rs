//! Profiles for Cube, Scalasca's viewer: a tar archive (.cubex) of an XML document and, for each metric, an index and its values.
//!
//! Source: pyCubexR, `docs/CUBE_FORMAT.md`, of version 4 of the format (Saviankou et al. 2015, Cube v4). Values of all metrics are
//! exclusive: of a call path without those that it calls.

mod anchor;

use std::path::Path;

use anyhow::Result;
use st_cli::Output;
use st_explain::WaitKind;
use st_model::num::{Exact as _, float, narrow, saturate};

use crate::format::{Call, Format, FormatKind, Summary};
use crate::level::Level;
use crate::losses::Losses;
use crate::profile::{Profile, Sums};
use crate::trace::Trace;
use anchor::{Metric, Values};

pub(crate) const KIND: FormatKind = FormatKind {
    name: "cube",
    endings: &[".cubex"],
    about: "sums per call path and rank for Cube, Scalasca and pyCubexR",
    needs_times: true,
    by_rank: true,
    levels: &[Level::Summary],
    whole_only: false,
    has_waits: true,
    lacks: &[],
    is_series: false,
    files_each: 0,
    bytes: 0,
    bears: u64::MAX,
    open,
};

struct Cube<'a> {
    out: Output,
    trace: &'a Trace,
    profile: Profile,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    Ok(Box::new(Cube { out: Output::stream(target)?, trace, profile: Profile::new(trace) }))
}

/// What a metric's value is on a path and rank.
type Of<'p> = Box<dyn Fn(u32, u32) -> u64 + 'p>;

impl Cube<'_> {
    /// The metrics with their values. Waits are parts of the time, by kind, if they are asked for.
    fn metrics(&self) -> Vec<(Metric, Of<'_>)> {
        let of = |value: fn(&Sums) -> u64| -> Of<'_> {
            Box::new(move |path, rank| value(&self.profile.of(path, rank)))
        };
        let waits = WaitKind::ALL.iter().filter(|_| self.trace.waits).map(|kind| {
            let values: Of<'_> = Box::new(move |path, rank| self.profile.waits(path, rank, *kind));
            (Metric::wait(kind.name()), values)
        });
        let time = [(Metric::TIME, of(|sums| sums.ns))];
        let others = [
            (Metric::VISITS, of(|sums| sums.visits)),
            (Metric::SENT, of(|sums| sums.sent)),
            (Metric::RECEIVED, of(|sums| sums.received)),
        ];
        time.into_iter().chain(waits).chain(others).collect()
    }

    /// The paths in the order in which they are numbered there: each before what it calls, and that before the next.
    fn order(&self) -> Vec<u32> {
        let mut called: Vec<Vec<u32>> = vec![Vec::new(); self.profile.paths().len()];
        for (path, number) in self.profile.paths().iter().zip(0..) {
            if let Some(callees) = path.caller.and_then(|caller| called.get_mut(caller.to_usize())) {
                callees.push(number);
            }
        }
        let (mut order, mut next) = (Vec::new(), vec![0]);
        while let Some(path) = next.pop() {
            order.push(path);
            next.extend(called.get(path.to_usize()).into_iter().flatten().rev());
        }
        order
    }
}

/// The index of a metric: the paths, by their number in the order, that have values; then these, rank by rank.
fn values(of: &Of<'_>, metric: &Metric, order: &[u32], ranks: &[u32]) -> (Vec<u8>, Vec<u8>) {
    let (mut numbers, mut data) = (Vec::new(), b"CUBEX.DATA".to_vec());
    for (path, number) in order.iter().zip(0u32..) {
        let row: Vec<u64> = ranks.iter().map(|rank| of(*path, *rank)).collect();
        // An index without entries is none.
        if number > 0 && row.iter().all(|value| *value == 0) {
            continue;
        }
        numbers.push(number);
        data.extend(row.iter().flat_map(|value| match metric.values {
            Values::Seconds => (float((*value).into()) / 1e9).to_le_bytes(),
            Values::Whole(_) => value.to_le_bytes(),
        }));
    }
    // The byte order, the version, and that not all paths are in it.
    let mut index = b"CUBEX.INDEX\x01\0\0\0\0\0\x01".to_vec();
    index.extend(narrow::<u32>(numbers.len()).to_le_bytes());
    index.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    (index, data)
}

impl Format for Cube<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        self.profile.add(call);
        Ok(())
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        let mut losses = self.profile.finish()?;
        losses.add(
            "waits of a call path on a rank that nobody knows, since ranks are missing: 0 stands for them",
            self.profile.unknown_waits(),
        );
        let (order, metrics) = (self.order(), self.metrics());
        let known: Vec<&Metric> = metrics.iter().map(|(metric, _)| metric).collect();
        let document = anchor::document(self.trace, &self.profile, &order, &known)?;
        let mut files = vec![("anchor.xml".to_owned(), document)];
        for (number, (metric, of)) in metrics.iter().enumerate() {
            let (index, data) = values(of, metric, &order, &self.profile.ranks);
            files.extend([(format!("{number}.index"), index), (format!("{number}.data"), data)]);
        }
        drop(metrics);
        let mut archive = tar::Builder::new(&mut self.out);
        for (name, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len().to_u64());
            header.set_mode(0o644);
            header.set_mtime(saturate(self.trace.whole.header.started / 1_000_000_000));
            archive.append_data(&mut header, name, &content[..])?;
        }
        archive.finish()?;
        drop(archive);
        Ok(losses)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.out.commit()
    }
}
