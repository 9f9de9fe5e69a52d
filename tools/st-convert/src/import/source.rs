//! What a format that can be read is, and its inputs.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
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
    /// `None` of a directory.
    file: Option<File>,
}

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if path.is_dir() {
            return Ok(Self { name, path: path.to_owned(), file: None });
        }
        let input = Input::open(path)?;
        let name = input.name().to_owned();
        Ok(Self { name, path: path.to_owned(), file: Some(input.seekable(None)?) })
    }

    /// The input from its beginning.
    pub(super) fn lines(&mut self) -> Result<BufReader<&File>> {
        let Some(file) = &mut self.file else { bail!("{}: is a directory", self.name) };
        file.seek(SeekFrom::Start(0)).with_context(|| format!("{}: seeking", self.name))?;
        Ok(BufReader::with_capacity(BUFFER, file))
    }

    /// The first bytes; none of a directory.
    pub(super) fn begin(&mut self) -> Result<Vec<u8>> {
        if self.file.is_none() {
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
