//! Traces that leave the house: what says who ran what, where and on what data is taken out, what the program did stays.
//!
//! Taken out are the names of call sites (functions, files, lines), program, arguments, starting time, unknown facts of the header,
//! arguments of the tools that made the trace, and the folders of modules. Hosts become numbers; file names of modules that
//! are not MPI's or a language's, labels of call sites, and texts (names of files and objects, keys and values of hints) become
//! hashes, so that equal ones stay equal. Build-ids stay: they say nothing, but who has the program can name its
//! call sites again. Identities stay, too, so that the trace is proved and compared as before; that of the run is a random
//! number, or a hash.

use crate::num;
use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::header::{Header, Step};
use crate::names::Names;
use crate::objects::Text;
use crate::section::Section;
use crate::sites::{Module, Site, SiteTable};

/// Words that the standard gives a meaning (MPI 4.1, section 14.5).
const STANDARD: [&str; 3] = ["native", "internal", "external32"];

/// What programs are called in anonymous traces.
pub const PROGRAM: &str = "program";

/// Makes the parts of one trace anonymous.
#[derive(Debug, Default)]
pub struct Anonymiser {
    hosts: HashMap<String, usize>,
}

impl Anonymiser {
    /// Takes out what a header says of program, user and time.
    #[must_use]
    pub fn header(header: &Header) -> Header {
        let Header { world, mpi, run, clock, options, bindings, processors, queued, .. } = header.clone();
        let program = PROGRAM.into();
        Header { world, mpi, run, clock, options, bindings, processors, queued, program, ..Header::default() }
    }

    /// Takes out the arguments of a tool.
    #[must_use]
    pub fn step(step: &Step) -> Step {
        Step { args: Vec::new(), ..step.clone() }
    }

    /// Makes a section anonymous.
    pub fn section(&mut self, section: &mut Section) {
        for (host, _) in &mut section.hosts {
            let next = self.hosts.len() + 1;
            let number = self.hosts.entry(std::mem::take(host)).or_insert(next);
            *host = format!("host-{number}");
        }
        section.sites = sites(&section.sites);
        for (_, text) in section.tables.texts.iter_mut().flat_map(|e| &mut e.of) {
            let Text(content) = &mut text.content;
            if !content.is_empty() && !STANDARD.contains(&content.as_str()) {
                *content = hashed("text", content);
            }
        }
    }
}

/// The same sites in modules without folders, without names.
fn sites(from: &SiteTable) -> SiteTable {
    let mut to = SiteTable::new();
    let module = |m: &Module| {
        let path = if m.is_library() { m.name().to_owned() } else { hashed("module", m.name()) };
        Module { path, build_id: m.build_id.clone() }
    };
    let numbers: Vec<u32> = from.modules().iter().map(|m| to.module(module(m))).collect();
    for site in from.sites() {
        let mut frames = site.frames.clone();
        for f in &mut frames {
            f.module = num::at(&numbers, f.module).copied().unwrap_or(f.module);
        }
        let label = if site.label.is_empty() { String::new() } else { hashed("site", &site.label) };
        to.insert(Site { id: site.id, frames, label });
    }
    to.set_names(Names::default());
    to
}

fn hashed(what: &str, text: &str) -> String {
    format!("{what}-{:016x}", xxh3_64(text.as_bytes()))
}
