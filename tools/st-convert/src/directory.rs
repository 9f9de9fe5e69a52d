//! A result of several files, which is not seen under its name until all of them are whole.

use std::fs::{self, File, Permissions};
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use st_cli::UsageError;
use tempfile::TempDir;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 16;

/// A directory being written, under a temporary name beside its target. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Directory {
    directory: TempDir,
    target: PathBuf,
}

impl Directory {
    /// # Errors
    ///
    /// If there is something of that name, or the directory cannot be created.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let name = target.display();
        if target.as_os_str() == "-" {
            bail!(UsageError("this format is several files: name a directory with -o".into()));
        }
        if fs::symlink_metadata(target).is_ok() {
            bail!("{name}: exists; remove it, or name another directory");
        }
        let beside = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(target.file_name().unwrap_or_default());
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp").permissions(Permissions::from_mode(0o777));
        let directory = builder.tempdir_in(beside).with_context(|| format!("{name}: cannot create"))?;
        Ok(Self { directory, target: target.to_owned() })
    }

    /// Where a file of it is written.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file of it.
    pub(crate) fn file(&self, name: &str) -> Result<BufWriter<File>> {
        let path = self.path(name);
        let file = File::create(&path).with_context(|| format!("{}: cannot create", path.display()))?;
        Ok(BufWriter::with_capacity(BUFFER, file))
    }

    /// Gives it its name. All files must be closed.
    pub(crate) fn commit(self) -> Result<()> {
        let Self { directory, target } = self;
        // Only an empty directory can be replaced by renaming, and that may be somebody else's by now.
        fs::rename(directory.path(), &target).with_context(|| format!("{}: renaming", target.display()))?;
        let _ = directory.keep();
        Ok(())
    }
}
