//! What another recorder would have told: the times of a recording, rounded down to the ticks of a coarse clock, and distributions of
//! these, kept otherwise.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use st_model::anew::{Cuts, Wanted, left_out, of_rank, sketched_anew};
use st_model::columns::{Chunk, Column, ColumnWriter};
use st_model::section::{PathSketch, Section};
use st_model::sketch::Shape;
use st_model::sketch::histogram::Binning;
use st_stream::{ReadOptions, WriteOptions, read};

/// What ST_TIME names.
///
/// # Errors
///
/// If it is not what distributions can be kept as.
pub(crate) fn shape(text: &str) -> Result<Shape> {
    match (text, text.strip_prefix("hist:")) {
        ("sketch", _) => Ok(Shape::Buckets),
        ("stats", _) => Ok(Shape::Totals),
        ("hist", _) => Ok(Shape::BINS),
        (_, Some(how)) => Ok(Shape::Bins(how.parse::<Binning>()?)),
        _ => bail!("not sketch, stats, hist or hist:BINS:PERCENT"),
    }
}

/// Writes a trace with the times of another one that a clock would tell which goes on by so many ns at once, and distributions of
/// these in a shape, or the one they have.
///
/// # Errors
///
/// If one cannot be read or written, or has not the exact times of all calls.
pub(crate) fn write(tick: u32, time: Option<Shape>, from: &Path, to: &Path) -> Result<()> {
    let file = File::open(from).with_context(|| format!("{}: cannot open", from.display()))?;
    let mut trace = read(BufReader::new(file), ReadOptions::default())
        .with_context(|| format!("{}: cannot read", from.display()))?;
    for section in &mut trace.sections {
        for thread in 0..section.threads.len() {
            let cuts = left_out(section, thread)?;
            for (_, column) in &mut section.threads[thread].columns {
                *column = coarse(column, tick);
            }
            let anew = match time {
                Some(shape) => shaped(section, thread, &cuts, shape)?.map(|sketches| (sketches, Vec::new())),
                None => sketched_anew(section, thread, &cuts)?,
            };
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

/// The distributions of a recorded rank in a shape.
fn shaped(section: &Section, thread: usize, cuts: &Cuts, shape: Shape) -> Result<Option<Vec<PathSketch>>> {
    let of = &section.threads[thread];
    let [(rank, column)] = &of.columns[..] else { return Ok(None) };
    ensure!(of.ranks.len() == 1, "not recorded, but merged");
    Ok(of_rank(section, thread, *rank, column, Wanted { shape, most: usize::MAX, cuts })?)
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
    fn shapes_are_named_as_for_the_recorder() {
        let named = |text| shape(text).ok();
        assert_eq!(named("hist"), named("hist:5:50"));
        assert_eq!(named("hist:10:20"), Binning::new(10, 20).map(Shape::Bins));
        assert_eq!([named("hist:0:20"), named("columns")], [None, None]);
    }

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
