//! Reading lines, and the calls that come of it.

use st_import::Left;
use st_import::json::{Census, Lines};
use st_model::section::Section;

pub(crate) fn read(text: &str) -> Result<(Vec<Section>, Left), String> {
    let mut census = Census::default();
    census.add(text.as_bytes()).map_err(|e| e.to_string())?;
    let mut lines = Lines::of(census.world().map_err(|e| e.to_string())?);
    lines.read(text.as_bytes()).map_err(|e| e.to_string())?;
    let mut sections = Vec::new();
    let left = lines.importer.finish(|section| {
        sections.push(section);
        Ok::<_, String>(())
    })?;
    Ok((sections, left))
}

/// Name, words and times of a call.
pub(crate) type Known = (String, Vec<i64>, Option<(i64, i64)>);

pub(crate) fn calls(section: &Section) -> Vec<Known> {
    calls_of(section, 0)
}

pub(crate) fn calls_of(section: &Section, thread: usize) -> Vec<Known> {
    let rank = section.ranks.lowest().unwrap();
    let mut events = section.events(thread, rank).unwrap().timed();
    let mut all = Vec::new();
    while let Some(event) = events.next_event().unwrap() {
        all.push((event.name().unwrap().to_owned(), event.words().words.clone(), event.times));
    }
    all
}
