//! Tables as files of Arrow IPC (Feather, version 2), a file each.

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use arrow_array::builder::{Int64Builder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::directory::{Directory, Named, plain};
use crate::format::{Format, FormatKind};
use crate::level::Level;
use crate::tables::{Cell, Column, LACKS, Sink, Table, Tables, Type, files};
use crate::trace::Trace;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "arrow",
    endings: &[".arrow", ".feather"],
    about: "the same tables as Arrow IPC files (Feather): pandas, polars, R, Julia",
    needs_times: false,
    by_rank: false,
    levels: Level::ALL,
    whole_only: false,
    has_waits: true,
    lacks: LACKS,
    is_series: false,
    files_each: 0,
    bytes: 25,
    bears: 100_000_000_000,
    open,
};

/// Rows of a batch.
const ROWS: usize = 1 << 17;

/// Values of a column of a batch. Texts are as they are, not numbers of a dictionary: not all readers know one that grows from batch to
/// batch, and compressed they take no more.
#[derive(Debug)]
enum Values {
    Index(UInt32Builder),
    Int(Int64Builder),
    Text(StringBuilder),
}

impl Values {
    fn new(column: &Column) -> Self {
        match column.holds {
            Type::Index => Self::Index(UInt32Builder::new()),
            Type::Small | Type::Large => Self::Int(Int64Builder::new()),
            Type::Text => Self::Text(StringBuilder::new()),
        }
    }

    fn field(column: &Column) -> Field {
        let holds = match column.holds {
            Type::Index => DataType::UInt32,
            Type::Small | Type::Large => DataType::Int64,
            Type::Text => DataType::Utf8,
        };
        Field::new(column.name, holds, column.optional)
    }

    /// Adds a cell; `false` if it is not of the column's type.
    fn push(&mut self, cell: &Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Index(all), Cell::None) => all.append_null(),
            (Self::Int(all), Cell::None) => all.append_null(),
            (Self::Text(all), Cell::None) => all.append_null(),
            (Self::Index(all), Cell::Int(n)) => match u32::try_from(*n) {
                Ok(n) => all.append_value(n),
                Err(_) => return false,
            },
            (Self::Int(all), Cell::Int(n)) => all.append_value(*n),
            (Self::Text(all), Cell::Text(text)) => all.append_value(text),
            _ => return false,
        }
        true
    }

    /// What has been added; the next batch begins.
    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Index(all) => Arc::new(all.finish()),
            Self::Int(all) => Arc::new(all.finish()),
            Self::Text(all) => Arc::new(all.finish()),
        }
    }
}

/// A table being written.
struct Writing {
    table: &'static Table,
    schema: SchemaRef,
    columns: Vec<Values>,
    rows: usize,
    writer: FileWriter<BufWriter<Named>>,
}

struct Files {
    directory: Directory,
    /// By table; those of other levels are not there.
    files: Vec<Option<Writing>>,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    let directory = Directory::create(target)?;
    let begin = |table: Option<&'static Table>| table.map(|table| begin(table, &directory)).transpose();
    let files = files(trace).map(begin).collect::<Result<_>>()?;
    Ok(Box::new(Tables::new(Files { directory, files }, trace)))
}

fn begin(table: &'static Table, directory: &Directory) -> Result<Writing> {
    let file = directory.file(&format!("{}.arrow", table.name))?;
    let schema = Arc::new(Schema::new(table.columns.iter().map(Values::field).collect::<Vec<_>>()));
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let writer = FileWriter::try_new_with_options(file, &schema, options)?;
    Ok(Writing { table, schema, columns: table.columns.iter().map(Values::new).collect(), rows: 0, writer })
}

impl Writing {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            if !column.push(cell) {
                return Err(anyhow!("{}: {cell:?} is not of its column's type", self.table.name));
            }
        }
        self.rows += 1;
        if self.rows == ROWS { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.rows > 0 {
            self.rows = 0;
            let columns = self.columns.iter_mut().map(Values::take).collect();
            self.writer.write(&RecordBatch::try_new(self.schema.clone(), columns)?).map_err(plain)?;
        }
        Ok(())
    }
}

impl Sink for Files {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) -> Result<()> {
        self.files.get_mut(table).and_then(Option::as_mut).map_or(Ok(()), |file| file.row(cells))
    }

    fn finish(&mut self) -> Result<()> {
        for mut file in std::mem::take(&mut self.files).into_iter().flatten() {
            file.hand_over()?;
            file.writer.finish().map_err(plain)?;
            file.writer.get_mut().flush()?;
        }
        Ok(())
    }

    fn commit(self) -> Result<()> {
        self.directory.commit()
    }
}
