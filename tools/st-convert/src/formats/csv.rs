//! Tables as CSV (RFC 4180), a file each.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;

use crate::directory::{Directory, Named};
use crate::format::{Format, FormatKind};
use crate::level::Level;
use crate::tables::{Cell, LACKS, Sink, Tables, files};
use crate::trace::Trace;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "csv",
    endings: &[".csv"],
    about: "tables in a directory: events, messages, sites, ranks, comms, waits, phases, totals",
    needs_times: false,
    by_rank: false,
    levels: Level::ALL,
    whole_only: false,
    has_waits: true,
    lacks: LACKS,
    is_series: false,
    files_each: 0,
    bytes: 80,
    bears: 20_000_000_000,
    open,
};

struct Files {
    directory: Directory,
    /// By table; those of other levels are not there.
    writers: Vec<Option<csv::Writer<BufWriter<Named>>>>,
    number: String,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    let directory = Directory::create(target)?;
    let mut writers = Vec::new();
    for table in files(trace) {
        let Some(table) = table else {
            writers.push(None);
            continue;
        };
        let mut writer = csv::Writer::from_writer(directory.file(&format!("{}.csv", table.name))?);
        writer.write_record(table.columns.iter().map(|column| column.name))?;
        writers.push(Some(writer));
    }
    Ok(Box::new(Tables::new(Files { directory, writers, number: String::new() }, trace)))
}

impl Sink for Files {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) -> Result<()> {
        use std::fmt::Write as _;
        let Some(Some(writer)) = self.writers.get_mut(table) else { return Ok(()) };
        for cell in cells {
            match cell {
                Cell::None => writer.write_field("")?,
                Cell::Text(text) => writer.write_field(text)?,
                Cell::Int(n) => {
                    self.number.clear();
                    write!(self.number, "{n}")?;
                    writer.write_field(&self.number)?;
                }
            }
        }
        writer.write_record(None::<&[u8]>)?;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        for writer in std::mem::take(&mut self.writers).into_iter().flatten() {
            let mut file = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
            file.flush()?;
        }
        Ok(())
    }

    fn commit(self) -> Result<()> {
        self.directory.commit()
    }
}
