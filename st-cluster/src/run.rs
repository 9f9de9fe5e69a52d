//! Reading, clustering, writing.

use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Result, anyhow};
use st_reduce::cluster::{Clusterer, Clusters, Error};
use st_tool::{Output, Status, Whole, each_section_of, step};
use st_trace::calls::Lane;
use st_trace::ranklist::RankList;
use st_trace::section::Section;
use st_trace::stream::Writer;

use crate::args::Args;
use crate::table;

/// Sections that are decoded before they are looked at.
const AHEAD: usize = 64;

/// Runs the program.
///
/// # Errors
///
/// If a launcher started several processes, an input cannot be read, holds several ranks in one section, ranks occur twice,
/// or an output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    st_tool::engine::be_alone("st-cluster")?;
    let out = Output::stream(&args.output.output)?;
    let mut table_out = args.table.as_deref().map(Output::text).transpose()?;
    let mut clusterer = Clusterer::new(args.options());
    let options = args.output.write_options(&out);
    let begin = |whole: &Whole, out| -> Result<Writer<Output>> {
        let mut writer = Writer::new(out, &whole.header, options)?;
        for s in &whole.provenance {
            writer.provenance(s)?;
        }
        if !args.output.no_provenance {
            writer.provenance(&step("st-cluster"))?;
        }
        Ok(writer)
    };
    let (mut pending, mut all) = (Some(out), None);
    let mut dropped = false;
    let mut add = |whole: &Whole, section: Section| -> Result<()> {
        if args.keep_all {
            if let Some(out) = pending.take() {
                all = Some(begin(whole, out)?);
            }
            all.iter_mut().try_for_each(|w| w.section(&section))?;
        }
        dropped |= section.threads.iter().any(|t| !t.columns.is_empty());
        Ok(clusterer.add(section)?)
    };
    let whole = if args.threads() > 1 { read_ahead(args, &mut add)? } else { read(args, &mut add)? };
    if !whole.complete {
        args.talk.warn("st-cluster", "an input is truncated; the result holds what is whole");
    }
    let clusters = clusterer.finish();
    report(args, &clusters, dropped);
    let mut writer = match (all, pending) {
        (Some(writer), _) => writer,
        (None, Some(out)) => begin(&whole, out)?,
        (None, None) => return Err(anyhow!("writing has failed before")),
    };
    if !args.keep_all {
        clusters.sections.iter().try_for_each(|s| writer.section(s))?;
    }
    writer.finish()?.commit()?;
    if let Some(mut to) = table_out.take() {
        table::write(&clusters.table, &mut to)?;
        to.commit()?;
    }
    Ok(Status::Ok)
}

fn report(args: &Args, clusters: &Clusters, dropped: bool) {
    args.talk.detail("st-cluster", table::count(&clusters.table));
    if args.keep_all {
        return;
    }
    if dropped && !args.keep_columns {
        args.talk.detail(
            "st-cluster",
            "exact times of all ranks but the first of each main cluster are folded into sketches (--keep-columns keeps them)",
        );
    }
    let void = clusters.sections.iter().flat_map(|s| &s.threads).fold(0, |bits, t| bits | t.lanes.voided);
    let names = [
        (Lane::Call, "calls"),
        (Lane::Site, "sites"),
        (Lane::Endpoint, "endpoints"),
        (Lane::Count, "counts"),
        (Lane::Tag, "tags"),
        (Lane::Rest, "rest"),
    ];
    let lost: Vec<&str> =
        names.iter().filter(|(lane, _)| void >> (*lane as u8) & 1 == 1).map(|(_, name)| *name).collect();
    if !lost.is_empty() {
        args.talk
            .note("st-cluster", format_args!("ranks are not exactly as recorded in: {}", lost.join(", ")));
    }
}

fn read(args: &Args, add: &mut impl FnMut(&Whole, Section) -> Result<()>) -> Result<Whole> {
    each_section_of(&args.inputs, &args.input, |whole, section| {
        single(&section)?;
        add(whole, section)
    })
}

/// Decodes sections in one thread while they are looked at in another, in the same order.
fn read_ahead(args: &Args, add: &mut impl FnMut(&Whole, Section) -> Result<()>) -> Result<Whole> {
    let (to, from) = sync_channel::<(Option<Box<Whole>>, Section)>(AHEAD);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            // Said here, where the name of the stream is known.
            let mut seen = RankList::default();
            each_section_of(&args.inputs, &args.input, |whole, section| {
                single(&section)?;
                if let Some(twice) = section.ranks.iter().find(|&r| seen.contains(r)) {
                    return Err(Error::Duplicate(twice).into());
                }
                let first = seen.is_empty().then(|| Box::new(whole.clone()));
                seen.extend(&section.ranks);
                to.send((first, section)).map_err(|_| anyhow!("clustering has stopped"))
            })
        });
        let mut known = Box::<Whole>::default();
        let added = from.into_iter().try_for_each(|(whole, section)| {
            if let Some(first) = whole {
                known = first;
            }
            add(&known, section)
        });
        let whole = reader.join().map_err(|_| anyhow!("the reading thread failed"))?;
        added?;
        whole
    })
}

fn single(section: &Section) -> Result<(), Error> {
    if section.ranks.len() == 1 { Ok(()) } else { Err(Error::Merged) }
}
