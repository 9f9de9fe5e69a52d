//! Call sites of a whole trace, however many sections it has, with names for people.

use st_model::num::narrow;
use std::collections::HashMap;

use st_cli::Symbols;
use st_model::calls::CallId;
use st_model::section::Section;
use st_model::sites::{CallSites, SiteTable};

use crate::supported::name_of;

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
        self.sites.unite(&section.sites);
        let all = section.symbols.iter().map(|symbol| {
            let site = section.sites.get(symbol.site);
            let key = (symbol.call, site.map_or(0, |s| s.id));
            if let Some(known) = self.index.get(&key) {
                return *known;
            }
            let place = PlaceId(narrow(self.all.len()));
            let site = site.and_then(|s| self.sites.number(s.id)).unwrap_or(u32::MAX);
            self.all.push((name_of(symbol, &section.tables), site));
            self.index.insert(key, place);
            place
        });
        all.collect()
    }

    /// The call sites, named, and what was not found of their names.
    #[must_use]
    pub fn named(&self, symbols: &Symbols) -> (CallSites, Vec<String>) {
        symbols.named([&self.sites])
    }

    /// `MPI_Send (site 3, exchange stencil.c:120)`.
    #[must_use]
    pub fn describe(&self, place: PlaceId, sites: &CallSites) -> String {
        let Some((function, site)) = usize::try_from(place.0).ok().and_then(|i| self.all.get(i)) else {
            return "(unknown)".into();
        };
        described(function, *site, sites)
    }
}

/// A function and its call site; the function alone where there is no such site.
#[must_use]
pub fn described(function: &str, site: u32, sites: &CallSites) -> String {
    match site < sites.len() {
        true => format!("{function} ({})", sites.describe(site)),
        false => function.to_owned(),
    }
}
