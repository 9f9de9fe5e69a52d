//! Call sites of a whole trace, however many sections it has, with names for people.

use std::collections::HashMap;

use st_symbols::{Frame, Resolver};
use st_trace::calls::CallId;
use st_trace::section::Section;
use st_trace::sites::SiteTable;

use crate::preflight::name_of;

/// A function and the place it is called from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlaceId(u32);

/// Functions by call site.
#[derive(Debug, Default)]
pub struct Places {
    sites: SiteTable,
    all: Vec<(String, u32)>,
    index: HashMap<(CallId, u128), PlaceId>,
}

impl Places {
    /// The places of a section's symbols, by symbol.
    pub fn of(&mut self, section: &Section) -> Vec<PlaceId> {
        let all = section.symbols.iter().map(|symbol| {
            let site = section.sites.get(symbol.site);
            let key = (symbol.call, site.map_or(0, |s| s.id));
            if let Some(known) = self.index.get(&key) {
                return *known;
            }
            let place = PlaceId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
            let site = site.map_or(u32::MAX, |s| self.sites.adopt(&section.sites, s));
            self.all.push((name_of(symbol, &section.tables), site));
            self.index.insert(key, place);
            place
        });
        all.collect()
    }

    /// `MPI_Send (main.c:12)`; without the place where nothing is known of it.
    #[must_use]
    pub fn describe(&self, place: PlaceId, resolver: &mut Resolver) -> String {
        let Some((function, site)) = usize::try_from(place.0).ok().and_then(|i| self.all.get(i)) else {
            return "(unknown)".into();
        };
        let site = describe(&self.sites, *site, resolver);
        if site.is_empty() { function.clone() } else { format!("{function} ({site})") }
    }
}

/// Where a call site is: its label, or function, file and line; empty if nothing is known of it.
pub fn describe(sites: &SiteTable, site: u32, resolver: &mut Resolver) -> String {
    let Some(site) = sites.get(site) else { return String::new() };
    if !site.label.is_empty() {
        return site.label.clone();
    }
    let frame = |f: &st_trace::sites::Frame| {
        let m = sites.modules().get(usize::try_from(f.module).ok()?)?;
        Some(Frame { module: &m.path, build_id: &m.build_id, offset: f.offset })
    };
    let frames: Vec<_> = site.frames.iter().filter_map(frame).collect();
    if frames.is_empty() { String::new() } else { resolver.describe(&frames) }
}
