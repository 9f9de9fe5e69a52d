//! JSON lines, those of `st-view --json` or like them. Several files are read as one.

use anyhow::Result;
use st_import::json::{Census, Lines, MARK};

use super::source::{Imported, Opened, Source};

pub(super) const SOURCE: Source = Source { name: "json", is: |_, begin| is_object(begin), read };

fn is_object(begin: &[u8]) -> bool {
    begin.strip_prefix(MARK).unwrap_or(begin).trim_ascii_start().first() == Some(&b'{')
}

fn read(inputs: &mut [Opened]) -> Result<Imported> {
    let mut census = Census::default();
    for input in &mut *inputs {
        let counted = census.add(input.lines()?);
        input.about(counted)?;
    }
    let world = census.world();
    let world = match inputs {
        [one] => one.about(world)?,
        _ => world.map_err(|e| st_cli::InvalidStream(e.to_string()))?,
    };
    let mut lines = Lines::of(world);
    for input in inputs {
        let read = lines.read(input.lines()?);
        input.about(read)?;
    }
    let Lines { header, steps, importer, .. } = lines;
    Ok(Imported { header, steps, importer })
}
