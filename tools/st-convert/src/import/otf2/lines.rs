//! Archives of st-convert that have what no record has a place for, too: calls and tables are JSON lines again, and come back as these do.

use std::io::Cursor;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Map, Value};
use st_import::json::{Census, Lines};
use st_import::{Call, Site};
use st_stream::json::read::error_class;

use super::callbacks::Attributes;
use super::definitions::Definitions;
use super::library::Archive;
use crate::import::source::Imported;
use crate::otf2::{PARAMETERS, Record, SITE};

/// Where lines are.
struct Told {
    before: String,
    behind: String,
    /// When the archive begins, ns.
    first: i64,
}

/// What the archive's property says.
fn told(property: &str, definitions: &Definitions) -> Option<Told> {
    let mut words = property.split(' ');
    let mut number = || words.next()?.parse::<u32>().ok();
    let (first, before, behind) = (number()?, number()?, number()?);
    let text = |from: u32, count: u32| -> Option<String> {
        (from..from.checked_add(count)?).map(|piece| definitions.text(piece)).collect()
    };
    let second = first.checked_add(before)?;
    Some(Told {
        before: text(first, before)?,
        behind: text(second, behind)?,
        first: words.next()?.parse().ok()?,
    })
}

/// Reads an archive whose property says where its lines are.
pub(super) fn read(archive: &Archive, definitions: &Definitions, property: &str) -> Result<Imported> {
    let told =
        told(property, definitions).context("its property of lines names strings that are not there")?;
    let mut census = Census::default();
    census.add(Cursor::new(&told.before))?;
    let mut lines = Lines::of(census.world()?);
    lines.read(Cursor::new(&told.before))?;
    let located: Vec<u64> = definitions.located().into_iter().map(|(_, location)| location).collect();
    archive.select(&located)?;
    for location in located {
        read_location(archive, definitions, location, told.first, &mut lines)
            .with_context(|| format!("location {location}"))?;
    }
    lines.read(Cursor::new(&told.behind))?;
    let Lines { header, steps, importer, .. } = lines;
    Ok(Imported { header, steps, importer })
}

/// A call that has been entered.
struct Inside<'a> {
    name: &'a str,
    enter: i64,
    parameters: Map<String, Value>,
    site: Site<'static>,
}

fn read_location(
    archive: &Archive,
    of: &Definitions,
    location: u64,
    first: i64,
    to: &mut Lines,
) -> Result<()> {
    let rank = u32::try_from(location & u64::from(u32::MAX))?;
    let mut events = archive.events_with_attributes(location);
    let mut inside = None;
    while events.time()?.is_some() {
        let Some((time, record)) = events.take() else { break };
        let time = of.ns(time).saturating_add(first);
        match record {
            Record::Enter(region) => {
                if let Some((parameters, site)) = parameters(of, events.attributes())? {
                    let name = of.region_name(region).context("a function has no name")?;
                    inside = Some(Inside { name, enter: time, parameters, site });
                }
            }
            Record::Leave(_) => {
                let Some(Inside { name, enter, parameters, site }) = inside.take() else { continue };
                let error = parameters.get("error").map_or(Some(0), error_class);
                let error = error.context("error: no class of errors")?;
                let (times, parameters) = (Some((enter, time)), &parameters);
                let thread = location >> 32;
                let call = Call { rank, thread, name, site, error, times, parameters, partial: false };
                to.importer.call(&call).map_err(|what| anyhow!(what))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A call's parameters and call site; `None` of what is no call.
fn parameters(of: &Definitions, told: &Attributes) -> Result<Option<(Map<String, Value>, Site<'static>)>> {
    let (mut numbers, mut text, mut site) = (Vec::new(), None, Site::Unknown);
    for (attribute, value) in told {
        match of.attribute(*attribute) {
            Some(PARAMETERS) => text = Some(*value),
            Some(SITE) => site = Site::Number(u32::try_from(*value).context("no number of a call site")?),
            Some(name) => numbers.push((name, *value)),
            None => bail!("an attribute is not defined"),
        }
    }
    let Some(text) = text else { return Ok(None) };
    // A reference to a string is the lower half of the value.
    let text =
        of.text(u32::try_from(text & i64::from(u32::MAX))?).context("a text of parameters is not there")?;
    let mut all: Map<String, Value> = serde_json::from_str(text).context("parameters")?;
    all.extend(numbers.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
    Ok(Some((all, site)))
}
