//! What a format that can be read is, and its inputs.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use st_cli::options::Steps;
use st_cli::{Input, InvalidStream};
use st_import::Importer;
use st_model::header::{Header, Step};

/// What has been read.
pub(super) struct Imported {
    pub(super) header: Header,
    pub(super) steps: Vec<Step>,
    pub(super) importer: Importer,
}

/// A format that can be read.
pub(super) struct Source {
    pub(super) name: &'static str,
    /// Whether an input is of it, by its path and its first bytes.
    pub(super) is: fn(&Path, &[u8]) -> bool,
    pub(super) read: fn(&mut [Opened]) -> Result<Imported>,
}

/// An input that can be read twice.
pub(super) struct Opened {
    /// For messages.
    pub(super) name: String,
    pub(super) path: PathBuf,
    steps: Steps,
    /// What is no file, copied to one.
    spooled: Option<File>,
}

impl Opened {
    pub(super) fn open(path: &Path, steps: Steps) -> Result<Self> {
        let name = path.display().to_string();
        // A file is opened when it is read: a job may have more of them than a process may hold.
        if path.is_dir() || path.is_file() {
            return Ok(Self { name, path: path.to_owned(), steps, spooled: None });
        }
        let input = Input::open(path, &steps)?;
        let name = input.name().to_owned();
        Ok(Self { name, path: path.to_owned(), steps, spooled: Some(input.seekable(None)?) })
    }

    /// The input from its beginning.
    pub(super) fn lines(&mut self) -> Result<BufReader<File>> {
        let Some(file) = &mut self.spooled else {
            let file = Input::open(&self.path, &self.steps)?.seekable(None)?;
            return Ok(BufReader::with_capacity(BUFFER, file));
        };
        file.seek(SeekFrom::Start(0)).with_context(|| format!("{}: seeking", self.name))?;
        let again = file.try_clone().with_context(|| format!("{}: reading", self.name))?;
        Ok(BufReader::with_capacity(BUFFER, again))
    }

    /// The first bytes; none of a directory.
    pub(super) fn begin(&mut self) -> Result<Vec<u8>> {
        if self.path.is_dir() {
            return Ok(Vec::new());
        }
        let (mut begin, name) = (Vec::new(), self.name.clone());
        let read = self.lines()?.take(BEGIN).read_to_end(&mut begin);
        read.with_context(|| format!("{name}: reading"))?;
        Ok(begin)
    }

    /// Names the input in what is wrong with it.
    pub(super) fn about<T>(&self, result: Result<T, st_import::Error>) -> Result<T> {
        result.map_err(|e| InvalidStream(format!("{}: {e}", self.name)).into())
    }
}

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;
/// Bytes that tell a format.
const BEGIN: u64 = 4096;
