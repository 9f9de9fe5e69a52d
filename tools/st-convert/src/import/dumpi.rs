//! What dumpi2ascii prints, one file for each rank, whose number is the last in its name.

use anyhow::{Result, bail};
use st_cli::{InvalidStream, UsageError};
use st_import::Importer;
use st_import::dumpi::{Sizes, is_dumpi, rank_of, read as read_rank};
use st_model::header::{Clock, Header};

use super::source::{Imported, Opened, Source};

pub(super) const SOURCE: Source =
    Source { name: "dumpi", is: |_, begin| is_dumpi(&String::from_utf8_lossy(begin)), read };

/// Ranks of a job at most: each is a file.
const RANKS: u32 = 1 << 24;

fn read(inputs: &mut [Opened]) -> Result<Imported> {
    let mut ranks = Vec::new();
    for input in &*inputs {
        let name = input.path.file_name().unwrap_or_default().to_string_lossy();
        match rank_of(&name).filter(|rank| *rank < RANKS) {
            Some(rank) if ranks.contains(&rank) => {
                bail!(UsageError(format!("{}: rank {rank} is there twice", input.name)))
            }
            Some(rank) => ranks.push(rank),
            None => bail!(UsageError(format!("{}: the name does not end with the rank", input.name))),
        }
    }
    let world = ranks.iter().max().map_or(1, |highest| highest + 1);
    let mut importer = Importer::new(world, false);
    for (input, rank) in inputs.iter_mut().zip(ranks) {
        let sizes = Sizes::of(input.lines()?);
        let sizes = input.about(sizes)?;
        let done = read_rank(input.lines()?, &sizes, rank, world, &mut importer);
        input.about(done)?;
    }
    if importer.is_empty() {
        bail!(InvalidStream("there is no call in it".into()));
    }
    let header =
        Header { world, clock: Clock { source: "dumpi".into(), resolution: 1 }, ..Header::default() };
    Ok(Imported { header, steps: Vec::new(), importer })
}
