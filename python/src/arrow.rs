//! Rows as Arrow's columns, and how Python gets them: through the Arrow PyCapsule interface.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, anyhow};
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt32Array,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use st_convert::tables::{Cell, Column, Sink, TABLES, Table, Type, WAITS};

/// Rows of a batch.
const ROWS: usize = 1 << 17;

/// Values of a column.
#[derive(Debug)]
enum Values {
    Index(Vec<u32>),
    Int(Vec<i64>),
    Text(Texts),
}

/// Texts by numbers: there are few.
#[derive(Debug, Default)]
struct Texts {
    rows: Vec<i32>,
    all: Vec<String>,
    known: HashMap<String, i32>,
    last: i32,
}

impl Texts {
    fn push(&mut self, text: &str) -> Result<()> {
        let is_last =
            usize::try_from(self.last).ok().and_then(|i| self.all.get(i)).is_some_and(|t| t == text);
        if !is_last {
            self.last = match self.known.get(text) {
                Some(known) => *known,
                None => {
                    let next = i32::try_from(self.all.len()).map_err(|_| anyhow!("too many texts"))?;
                    self.all.push(text.to_owned());
                    self.known.insert(text.to_owned(), next);
                    next
                }
            };
        }
        self.rows.push(self.last);
        Ok(())
    }
}

/// A column being built.
#[derive(Debug)]
struct Building {
    column: &'static Column,
    values: Values,
    /// Whether each row has a value, if one has none.
    there: Option<BooleanBufferBuilder>,
}

impl Building {
    fn new(column: &'static Column) -> Self {
        let values = match column.holds {
            Type::Index => Values::Index(Vec::new()),
            Type::Small | Type::Large => Values::Int(Vec::new()),
            Type::Text => Values::Text(Texts::default()),
        };
        Self { column, values, there: None }
    }

    fn field(column: &Column) -> Field {
        let holds = match column.holds {
            Type::Index => DataType::UInt32,
            Type::Small | Type::Large => DataType::Int64,
            Type::Text => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
        };
        Field::new(column.name, holds, column.optional)
    }

    fn push(&mut self, row: usize, cell: &Cell<'_>) -> Result<()> {
        if *cell == Cell::None {
            let there = self.there.get_or_insert_with(|| {
                let mut there = BooleanBufferBuilder::new(ROWS);
                there.append_n(row, true);
                there
            });
            there.append(false);
            match &mut self.values {
                Values::Index(all) => all.push(0),
                Values::Int(all) => all.push(0),
                Values::Text(all) => all.rows.push(0),
            }
            return Ok(());
        }
        if let Some(there) = &mut self.there {
            there.append(true);
        }
        match (&mut self.values, cell) {
            (Values::Index(all), Cell::Int(n)) => {
                all.push(u32::try_from(*n).map_err(|_| anyhow!("{}: {n} is no index", self.column.name))?);
            }
            (Values::Int(all), Cell::Int(n)) => all.push(*n),
            (Values::Text(all), Cell::Text(text)) => all.push(text)?,
            (_, cell) => return Err(anyhow!("{}: {cell:?} is not of its type", self.column.name)),
        }
        Ok(())
    }

    /// What has been gathered; the next batch begins. Many threads have a few rows each, so that there is room for as many as were met.
    fn take(&mut self) -> Result<ArrayRef> {
        let nulls = self.there.take().map(|mut there| NullBuffer::new(there.finish()));
        Ok(match &mut self.values {
            Values::Index(all) => {
                let all = emptied(all);
                Arc::new(UInt32Array::new(ScalarBuffer::from(all), nulls))
            }
            Values::Int(all) => {
                let all = emptied(all);
                Arc::new(Int64Array::new(ScalarBuffer::from(all), nulls))
            }
            Values::Text(texts) => {
                let rows = emptied(&mut texts.rows);
                // A row without text refers to the first one, which there must be.
                let all = if texts.all.is_empty() { vec![String::new()] } else { texts.all.clone() };
                let keys = Int32Array::new(ScalarBuffer::from(rows), nulls);
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(all)))?)
            }
        })
    }
}

/// Takes all of them, and leaves room for as many.
fn emptied<T>(all: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(all.len());
    std::mem::replace(all, room)
}

/// Bytes that a table may still take: what is free where it begins, so that a few bytes of a file cannot fill the machine.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<AtomicU64>);

/// A table is larger than what is free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the table is larger than the memory that is free: choose columns, ranks or a part of the run",
        )
    }
}

impl std::error::Error for Full {}

impl Room {
    /// What the system says is free.
    pub(crate) fn free() -> Self {
        let said = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = said.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let kib = free.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Self::of(kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024)))
    }

    /// So many bytes.
    pub(crate) fn of(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    fn take(&self, bytes: usize) -> Result<()> {
        let less = |room: u64| room.checked_sub(u64::try_from(bytes).ok()?);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).map_err(|_| Full)?;
        Ok(())
    }
}

/// Rows of one table being gathered.
#[derive(Debug)]
pub(crate) struct Rows {
    room: Room,
    table: usize,
    schema: SchemaRef,
    /// By column of the table; those that are not wanted are not built.
    columns: Vec<Option<Building>>,
    rows: usize,
    pub(crate) batches: Vec<RecordBatch>,
}

/// A table and its index, by name: one of those that a [`st_convert::Source`] has.
pub(crate) fn table(name: &str) -> Option<(usize, &'static Table)> {
    TABLES.iter().enumerate().take(WAITS + 1).find(|(_, table)| table.name == name)
}

impl Rows {
    /// The columns of these names, in the table's order; all of them, if none are named.
    pub(crate) fn new((at, table): (usize, &'static Table), wanted: Option<&[String]>, room: &Room) -> Self {
        let is_wanted = |column: &Column| wanted.is_none_or(|all| all.iter().any(|name| name == column.name));
        let columns: Vec<Option<Building>> =
            table.columns.iter().map(|column| is_wanted(column).then(|| Building::new(column))).collect();
        let fields: Vec<Field> =
            columns.iter().flatten().map(|built| Building::field(built.column)).collect();
        Self {
            room: room.clone(),
            table: at,
            schema: Arc::new(Schema::new(fields)),
            columns,
            rows: 0,
            batches: Vec::new(),
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        let arrays = self.columns.iter_mut().flatten().map(Building::take).collect::<Result<Vec<_>>>()?;
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        self.room.take(batch.get_array_memory_size())?;
        self.batches.push(batch);
        Ok(())
    }
}

impl Sink for Rows {
    fn wants(&self, table: usize) -> bool {
        table == self.table
    }

    fn row(&mut self, table: usize, cells: &[Cell<'_>]) -> Result<()> {
        if table != self.table {
            return Ok(());
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.as_mut().map_or(Ok(()), |column| column.push(self.rows, cell))?;
        }
        self.rows += 1;
        if self.rows == ROWS { self.hand_over() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.hand_over()
    }

    fn commit(self) -> Result<()> {
        Ok(())
    }
}

/// A table for whoever speaks Arrow: an object with `__arrow_c_stream__`.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Batches {
    pub(crate) fn of(all: Vec<Rows>, empty: &Rows) -> Self {
        let batches = all.into_iter().flat_map(|rows| rows.batches).collect();
        Self { schema: empty.schema.clone(), batches }
    }
}

#[pymethods]
impl Batches {
    /// The table as a stream of record batches. Whoever asks for other types converts them.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface leaves it to the producer whether it honours that.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
