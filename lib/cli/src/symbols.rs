//! Names of call sites, for programs that print them.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use st_model::sites::{CallSites, SiteTable};
use st_symbols::Resolver;

use crate::expand;
use crate::options::{StreamIn, Talk};
use crate::traces::each_stored_of;

/// Where names of call sites are looked for that are not in a trace.
#[derive(Args, Clone, Debug, Default)]
pub struct Symbols {
    /// Look in DIR for programs, libraries and their debug information (DIR/.build-id/xx/yyyy.debug, DIR/NAME.debug, DIR/NAME), to
    /// name call sites that the trace does not name, or not by file and line; may be given several times
    #[arg(long = "symbols", value_name = "DIR", help_heading = "Input")]
    pub directories: Vec<PathBuf>,
}

impl Symbols {
    /// The call sites of a trace's sections, each with the place that it is called by: of names in the trace, and of those that
    /// are found on this machine in files with the right build-ids. Also what was not found, as sentences.
    pub fn named<'a>(&self, tables: impl IntoIterator<Item = &'a SiteTable>) -> (CallSites, Vec<String>) {
        let mut table = SiteTable::united(tables);
        let mut resolver = Resolver::with(self.directories.clone());
        resolver.name(&mut table);
        (CallSites::new(table), resolver.missing())
    }

    /// As [`Symbols::named`]; says what was not found.
    pub fn call_sites<'a>(
        &self,
        (tool, talk): (&str, &Talk),
        tables: impl IntoIterator<Item = &'a SiteTable>,
    ) -> CallSites {
        let (sites, missing) = self.named(tables);
        for why in &missing {
            talk.warn(tool, format_args!("{why} (--symbols DIR)"));
        }
        sites
    }
}

/// The call sites of the streams that `paths` stand for, by the numbers and names that programs print of them; nothing if not all are
/// files, which can be read again.
///
/// # Errors
///
/// As [`crate::each_section`], but for what is wrong inside sections.
pub fn call_sites(paths: &[PathBuf], input: &StreamIn) -> Result<Option<CallSites>> {
    if !expand(paths)?.iter().all(|path| path.is_file()) {
        return Ok(None);
    }
    let mut tables = Vec::new();
    let _ = each_stored_of(paths, input, |_, _, stored| {
        tables.push(stored.sites().clone());
        Ok(())
    })?;
    Ok(Some(Symbols::default().named(&tables).0))
}
