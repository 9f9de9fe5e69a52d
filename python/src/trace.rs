//! A trace that is open.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use st_cli::Symbols;
use st_cli::options::{Steps, StreamIn, Talk};
use st_convert::{Called, Input, Selection, Source};
use st_model::ranklist::RankList;
use st_model::ranklist_notation::parse_any;

use crate::arrow::{Batches, Room, Rows, table};
use crate::errors::{raised, refused};
use crate::stat::{Options, answer};
use crate::waiting::wait;

/// A trace that is open: as it is stored, in memory.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Trace {
    source: Arc<Source>,
    inputs: Vec<OsString>,
    options: Options,
    steps: Steps,
}

/// Ranks, as they are written or one by one.
#[derive(FromPyObject, Debug)]
enum Ranks {
    Text(String),
    List(Vec<u32>),
}

impl Ranks {
    fn list(self) -> PyResult<RankList> {
        match self {
            Self::Text(text) => parse_any(&text).map_err(|why| refused(format!("ranks: {text}: {why}"))),
            Self::List(all) => {
                let mut list = RankList::default();
                all.into_iter().for_each(|rank| list.insert(rank));
                Ok(list)
            }
        }
    }
}

/// Which calls are asked for, as Python says it.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
struct Asked {
    ranks: Option<Ranks>,
    start: Option<f64>,
    end: Option<f64>,
    functions: Vec<String>,
    sites: Vec<String>,
    phase: Option<i64>,
}

impl Asked {
    fn selection(self) -> PyResult<Selection> {
        Ok(Selection {
            ranks: self.ranks.map(Ranks::list).transpose()?,
            from: self.start,
            until: self.end,
            functions: self.functions,
            sites: self.sites,
            phase: self.phase,
            called: Called::ARGUMENTS,
        })
    }
}

#[pymethods]
impl Trace {
    /// Reads streams, or directories of streams.
    #[new]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        symbols: Vec<PathBuf>,
        partial: bool,
        max_steps: u64,
        quiet: bool,
    ) -> PyResult<Self> {
        let mut options: Options =
            symbols.iter().map(|directory| ("symbols", directory.clone().into_os_string())).collect();
        options.push(("max-steps", max_steps.to_string().into()));
        options.extend(partial.then(|| ("partial", OsString::new())));
        options.extend(quiet.then(|| ("quiet", OsString::new())));
        let inputs = paths.iter().map(|path| path.clone().into_os_string()).collect();
        let mut stream = StreamIn::default();
        stream.partial = partial;
        stream.steps = Steps { max_steps };
        let input = Input {
            paths,
            stream,
            symbols: Symbols { directories: symbols },
            talk: Talk { quiet, verbose: false },
        };
        let source = wait(py, move |_| Source::open(&input))?.into();
        Ok(Self { source, inputs, options, steps: Steps { max_steps } })
    }

    /// What the first stream says of the run: a JSON object.
    fn header(&self) -> PyResult<String> {
        serde_json::to_string(&self.source.whole().header).map_err(|e| raised(&e.into()))
    }

    /// World ranks that are there.
    #[getter]
    fn ranks(&self) -> Vec<u32> {
        self.source.whole().ranks.iter().collect()
    }

    /// Whether all streams had their end.
    #[getter]
    fn complete(&self) -> bool {
        self.source.whole().complete
    }

    /// Calls of all ranks, a series of polls being one.
    #[getter]
    fn calls(&self) -> u64 {
        self.source.calls()
    }

    /// Whether exact times of all calls are there.
    #[getter]
    fn timed(&self) -> bool {
        self.source.is_timed()
    }

    /// Rows of a table, and of these the columns that are named; in so much memory, or in what is free.
    #[pyo3(signature = (name, asked, columns, most_bytes=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        asked: Asked,
        columns: Option<Vec<String>>,
        most_bytes: Option<u64>,
    ) -> PyResult<Batches> {
        let selection = asked.selection()?;
        let Some(which) = table(name) else { return Err(refused(format!("{name}: there is no such table"))) };
        let has = |name: &String| which.1.columns.iter().any(|column| column.name == name);
        if let Some(unknown) = columns.iter().flatten().find(|name| !has(name)) {
            let all: Vec<&str> = which.1.columns.iter().map(|column| column.name).collect();
            return Err(refused(format!("{unknown}: {name} has no such column; it has {}", all.join(", "))));
        }
        let (source, steps) = (self.source.clone(), self.steps);
        let room = most_bytes.map_or_else(Room::free, Room::of);
        wait(py, move |stop| {
            let make = || Rows::new(which, columns.as_deref(), &room);
            let tell = |_| stop.check();
            let all = match which.1.name {
                "events" => source.events(&selection, &steps, make, &tell)?,
                "messages" => vec![source.messages(&selection, &steps, make(), &tell)?],
                "waits" => vec![source.waits(&selection, &steps, make(), &tell)?],
                "sites" => vec![source.call_sites(make())?],
                _ => vec![source.sums(&selection, &steps, make, &tell)?],
            };
            Ok(Batches::of(all, &make()))
        })
    }

    /// What a command of st-stat answers: JSON lines, the first of which says which columns are of numbers.
    fn stat(&self, py: Python<'_>, words: Vec<String>) -> PyResult<String> {
        let (options, inputs) = (self.options.clone(), self.inputs.clone());
        wait(py, move |_| answer(&words, &options, &inputs))
    }
}
