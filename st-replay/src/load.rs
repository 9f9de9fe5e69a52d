//! One rank's part of a trace, whatever else the trace holds.

use std::path::Path;

use anyhow::{Context, Result, bail};
use st_cli::options::StreamIn;
use st_cli::{Input, expand};
use st_model::section::Section;
use st_stream::{ReadOptions, Reader};

/// The section that holds a rank. Streams with an index are read only there.
///
/// # Errors
///
/// If the trace cannot be read or does not hold the rank.
pub fn of_rank(path: &Path, input: &StreamIn, rank: u32) -> Result<Section> {
    for path in expand(&[path.to_owned()])? {
        let input_name = path.display().to_string();
        let place = || input_name.clone();
        let file = Input::open(&path, &input.steps)?.seekable(None)?;
        let mut reader = Reader::new(file, ReadOptions { partial: input.partial }).with_context(place)?;
        if let Some(places) = reader.index().with_context(place)? {
            let Some(found) = places.iter().find(|p| p.ranks.contains(rank)) else { continue };
            reader.seek(found).with_context(place)?;
        }
        while let Some(section) = reader.next_section().with_context(place)? {
            if section.ranks.contains(rank) {
                return Ok(section);
            }
        }
    }
    bail!("{}: does not hold rank {rank}", path.display())
}
