//! Tables as Parquet, a file each.
//!
//! Rows are gathered into row groups, which threads of their own encode, compress and write, one per table.

use std::collections::HashMap;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use ::parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type as Schema};
use anyhow::{Context as _, Result, anyhow};
use foldhash::fast::FixedState;

use crate::directory::{Directory, Named, plain};
use crate::format::{Format, FormatKind};
use crate::level::Level;
use crate::tables::{Cell, Column, LACKS, Sink, Table, Tables, Type, files};
use crate::trace::Trace;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "parquet",
    endings: &[".parquet"],
    about: "the same tables as Parquet: pandas, polars, DuckDB, Spark",
    needs_times: false,
    by_rank: false,
    levels: Level::ALL,
    whole_only: false,
    has_waits: true,
    lacks: LACKS,
    is_series: false,
    files_each: 0,
    bytes: 15,
    bears: 100_000_000_000,
    open,
};

/// Rows that are written together.
const ROWS: usize = 1 << 18;

/// A column's values of a row group.
#[derive(Debug)]
enum Values {
    Ints(Vec<i64>),
    Texts(Vec<ByteArray>),
}

/// A column of a row group.
#[derive(Debug)]
struct Gathered {
    values: Values,
    /// Of an optional column: whether each row has a value.
    there: Option<Vec<i16>>,
}

/// A row group.
type Group = Vec<Gathered>;

/// A table being written.
struct Writing {
    rows: usize,
    group: Group,
    to: Option<SyncSender<Group>>,
    writer: Option<JoinHandle<Result<()>>>,
    texts: HashMap<String, ByteArray, FixedState>,
    table: &'static Table,
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

fn schema(table: &Table) -> Result<Schema> {
    let column = |column: &Column| {
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let (physical, logical) = match column.holds {
            Type::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Type::Index | Type::Small | Type::Large => (Physical::INT64, None),
        };
        let builder = Schema::primitive_type_builder(column.name, physical);
        Ok(Arc::new(builder.with_repetition(repetition).with_logical_type(logical).build()?))
    };
    let fields = table.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Schema::group_type_builder(table.name).with_fields(fields).build()?)
}

fn properties(table: &Table) -> Result<WriterProperties> {
    let mut properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
    for column in table.columns.iter().filter(|column| column.holds == Type::Large) {
        let path = || ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

fn begin(table: &'static Table, directory: &Directory) -> Result<Writing> {
    let file = directory.file(&format!("{}.parquet", table.name))?;
    let (schema, properties) = (Arc::new(schema(table)?), Arc::new(properties(table)?));
    let (to, groups) = sync_channel::<Group>(1);
    let write = move || -> Result<()> {
        let mut writer = SerializedFileWriter::new(file, schema, properties)?;
        groups.iter().try_for_each(|group| write_group(&mut writer, &group))?;
        writer.close()?;
        Ok(())
    };
    let writer = Some(std::thread::spawn(|| write().map_err(plain)));
    let texts = HashMap::default();
    Ok(Writing { rows: 0, group: fresh(table), to: Some(to), writer, texts, table })
}

fn fresh(table: &Table) -> Group {
    let column = |column: &Column| Gathered {
        values: match column.holds {
            Type::Text => Values::Texts(Vec::new()),
            Type::Index | Type::Small | Type::Large => Values::Ints(Vec::new()),
        },
        there: column.optional.then(Vec::new),
    };
    table.columns.iter().map(column).collect()
}

fn write_group(writer: &mut SerializedFileWriter<BufWriter<Named>>, group: &Group) -> Result<()> {
    let mut rows = writer.next_row_group()?;
    for gathered in group {
        let Some(mut column) = rows.next_column()? else { break };
        let there = gathered.there.as_deref();
        match &gathered.values {
            Values::Ints(values) => drop(column.typed::<Int64Type>().write_batch(values, there, None)?),
            Values::Texts(values) => drop(column.typed::<ByteArrayType>().write_batch(values, there, None)?),
        }
        column.close()?;
    }
    rows.close()?;
    Ok(())
}

impl Writing {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        for (gathered, cell) in self.group.iter_mut().zip(cells) {
            if let Some(there) = &mut gathered.there {
                there.push(i16::from(*cell != Cell::None));
            }
            match (&mut gathered.values, cell) {
                (Values::Ints(values), Cell::Int(n)) => values.push(*n),
                (Values::Texts(values), Cell::Text(text)) => {
                    let known = self.texts.get(*text).cloned();
                    values.push(known.unwrap_or_else(|| {
                        let fresh = ByteArray::from(*text);
                        self.texts.insert((*text).to_owned(), fresh.clone());
                        fresh
                    }));
                }
                (_, Cell::None) => {}
                (_, cell) => {
                    return Err(anyhow!("{}: {cell:?} is not of its column's type", self.table.name));
                }
            }
        }
        self.rows += 1;
        if self.rows == ROWS { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let group = std::mem::replace(&mut self.group, fresh(self.table));
        let taken = self.to.as_ref().is_some_and(|to| to.send(group).is_ok());
        // It ends early only for a reason of its own.
        if taken { Ok(()) } else { self.end() }
    }

    fn end(&mut self) -> Result<()> {
        self.to = None;
        let name = format!("{}.parquet", self.table.name);
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.join().map_err(|_| anyhow!("{name}: its writer ended"))?.with_context(|| name)
    }
}

impl Sink for Files {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) -> Result<()> {
        self.files.get_mut(table).and_then(Option::as_mut).map_or(Ok(()), |file| file.row(cells))
    }

    fn finish(&mut self) -> Result<()> {
        for file in self.files.iter_mut().flatten() {
            file.hand_over()?;
            file.end()?;
        }
        Ok(())
    }

    fn commit(self) -> Result<()> {
        self.directory.commit()
    }
}
