//! What a coarse clock would have told: the times of a recording, rounded down to its ticks, and distributions of these.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use st_model::anew::{left_out, sketched_anew};
use st_model::columns::{Chunk, Column, ColumnWriter};
use st_stream::{ReadOptions, WriteOptions, read};

/// Writes a trace with the times of another one that a clock would tell which goes on by so many ns at once.
///
/// # Errors
///
/// If one cannot be read or written, or has not the exact times of all calls.
pub(crate) fn write(tick: u32, from: &Path, to: &Path) -> Result<()> {
    let file = File::open(from).with_context(|| format!("{}: cannot open", from.display()))?;
    let mut trace = read(BufReader::new(file), ReadOptions::default())
        .with_context(|| format!("{}: cannot read", from.display()))?;
    for section in &mut trace.sections {
        for thread in 0..section.threads.len() {
            let cuts = left_out(section, thread)?;
            for (_, column) in &mut section.threads[thread].columns {
                *column = coarse(column, tick);
            }
            let anew = sketched_anew(section, thread, &cuts)?;
            let of = &mut section.threads[thread];
            ensure!(
                anew.is_some() || of.sketches.is_empty(),
                "{}: not all calls have exact times: record without --time-budget, merge with --keep-columns",
                from.display()
            );
            if let Some(made) = anew {
                (of.sketches, of.sums) = made;
            }
        }
    }
    let mut out =
        BufWriter::new(File::create(to).with_context(|| format!("{}: cannot write", to.display()))?);
    st_stream::write(&trace, &mut out, WriteOptions { level: trace.level })
        .with_context(|| format!("{}: cannot write", to.display()))?;
    out.flush().with_context(|| format!("{}: cannot write", to.display()))
}

/// A column with its times rounded down.
fn coarse(column: &Column, tick: u32) -> Column {
    let wide = i64::from(tick.max(1));
    let down = |t: i64| t.div_euclid(wide).saturating_mul(wide);
    let mut writer = ColumnWriter::new(down(column.chunks.first().map_or(0, |chunk| chunk.base)));
    let mut chunks: Vec<Chunk> =
        column.times().filter_map(|(enter, exit)| writer.push(down(enter), down(exit))).collect();
    chunks.extend(writer.flush());
    Column { chunks, clock: column.clock.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_last_tick() {
        let mut writer = ColumnWriter::new(-1);
        for (enter, exit) in [(0, 9), (10, 19), (25, 30)] {
            assert!(writer.push(enter, exit).is_none());
        }
        let exact = Column { chunks: writer.flush().into_iter().collect(), ..Column::default() };
        let times = |tick| coarse(&exact, tick).times().collect::<Vec<_>>();
        assert_eq!(times(10), [(0, 0), (10, 10), (20, 30)]);
        assert_eq!(times(1), [(0, 9), (10, 19), (25, 30)]);
        assert_eq!(coarse(&exact, 10).chunks[0].base, -10);
    }
}
