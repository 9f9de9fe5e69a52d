//! Replays of another program than the recorded one: call sites that compute for longer or shorter, messages of other
//! sizes, ranks in other places.

use st_model::num::Exact;
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;

use anyhow::{Error, Result, bail};
use st_cli::UsageError;
use st_model::section::{Section, Sym};

use crate::args::Args;
use crate::factor::Factor;
use crate::scaling::Scaling;
use crate::supported::name_of;

/// What a section's calls become.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WhatIf {
    /// Factor of the time before the calls of each symbol.
    before: Vec<Factor>,
    scaling: Scaling,
    /// The functions and call sites that were found.
    found: HashSet<String>,
}

impl WhatIf {
    /// Of a section's symbols. Of several factors for one symbol the last holds.
    #[must_use]
    pub fn new(section: &Section, args: &Args) -> Self {
        let mut found = HashSet::new();
        let (sites, _) = args.symbols.named((!args.scale.is_empty()).then_some(&section.sites));
        let meanings: Vec<_> = args.scale.iter().map(|scaled| sites.meaning(&scaled.what)).collect();
        let mut before = vec![Factor::ONE; section.symbols.len()];
        for (symbol, factor) in section.symbols.iter().zip(&mut before) {
            if args.scale.is_empty() {
                break;
            }
            let name = name_of(symbol, &section.tables);
            for (scaled, meaning) in args.scale.iter().zip(&meanings) {
                if name == scaled.what || meaning.is_named(symbol.site) {
                    *factor = scaled.factor;
                    found.insert(scaled.what.clone());
                }
            }
        }
        Self { before, scaling: Scaling::new(section, args.scale_bytes.unwrap_or(Factor::ONE)), found }
    }

    /// How long to wait before a call instead of `ns`.
    #[must_use]
    pub fn wait(&self, sym: Sym, ns: u64) -> u64 {
        self.before.get(sym as usize).map_or(ns, |f| f.time(ns))
    }

    /// Scales the words of a call.
    pub fn scale(&self, sym: Sym, words: &mut [i64]) {
        self.scaling.apply(sym, words);
    }

    /// The functions and call sites that the section has.
    #[must_use]
    pub fn found(&self) -> &HashSet<String> {
        &self.found
    }
}

/// Which process plays each rank of the trace; `None` if each plays its own.
///
/// # Errors
///
/// If that is not each process once, of as many as the trace has ranks.
pub fn placement(args: &Args, world: u32) -> Result<Option<Vec<u32>>> {
    let Some(place) = &args.place else { return Ok(None) };
    let list = place.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b' ');
    let text = if list {
        place.clone()
    } else {
        let neither =
            || format!("--place {place}: neither a list of processes (0,2,1,3) nor a file with one");
        fs::read_to_string(place).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidData => UsageError(neither()).into(),
            _ => Error::new(e).context(neither()),
        })?
    };
    let words = text.split([',', ' ', '\n', '\t', '\r']).filter(|w| !w.is_empty());
    let wrong = |what: String| {
        let last = world.saturating_sub(1);
        UsageError(format!("--place: {what}: name each of the processes 0 to {last} once"))
    };
    let number = |word: &str| word.parse().map_err(|_| wrong(format!("{word} is no process")));
    let places = words.map(number).collect::<Result<Vec<u32>, _>>()?;
    if let Some(beyond) = places.iter().find(|p| **p >= world) {
        bail!(wrong(format!("there is no process {beyond} of {world}")));
    }
    let mut named = HashSet::new();
    if let Some(twice) = places.iter().find(|p| !named.insert(**p)) {
        bail!(wrong(format!("process {twice} is there twice")));
    }
    let n = places.len();
    if n != world.to_usize() {
        bail!(wrong(format!("{n} places for {world} ranks")));
    }
    Ok(Some(places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn args(words: &[&str]) -> Args {
        Args::parse_from(["st-replay", "trace.st"].iter().chain(words))
    }

    #[test]
    fn places_are_a_permutation() {
        let of = |list: &str| placement(&args(&["--place", list]), 4);
        assert_eq!(of("0,2,1,3").unwrap(), Some(vec![0, 2, 1, 3]));
        assert!(of("0,2,1").is_err() && of("0,2,2,3").is_err() && of("1,2,3,4").is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "3 2\n1 0\n").unwrap();
        assert_eq!(of(file.path().to_str().unwrap()).unwrap(), Some(vec![3, 2, 1, 0]));
        assert_eq!(placement(&args(&[]), 4).unwrap(), None);
    }

    #[test]
    fn factors_belong_to_functions_and_call_sites() {
        let mut recorder = st_capture::record::RankRecorder::new(0, st_capture::record::Options::default());
        let call = |name| st_model::calls::CallTable::builtin().by_name(name).unwrap().id;
        let thread = recorder.open_thread(0);
        let sites = ["solve main.c:12", "main.c:7"].map(|l| recorder.sites.label(l));
        let syms = [("MPI_Barrier", 0), ("MPI_Barrier", 1), ("MPI_Allreduce", 0)]
            .map(|(name, site)| recorder.symbol(call(name), sites[site], 0));
        for sym in syms {
            recorder.record(thread, sym, &[0, 0, 0, 0, 0], 0, 0);
        }
        let section = recorder.finish("host");
        let waits = |words: &[&str]| {
            let what = WhatIf::new(&section, &args(words));
            syms.map(|s| what.wait(s, 10))
        };
        assert_eq!(waits(&[]), [10, 10, 10]);
        assert_eq!(waits(&["--scale", "MPI_Barrier=0.5"]), [5, 5, 10]);
        assert_eq!(waits(&["--scale", "solve=2", "--scale", "main.c:7=3"]), [20, 30, 20]);
        assert!(WhatIf::new(&section, &args(&["--scale", "nothing=2"])).found().is_empty());
    }
}
