//! A result of several files, which is not seen under its name until all of them are whole.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use st_cli::{UsageError, directory_goes_before_end};
use tempfile::TempDir;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 16;

/// A file of a directory being written, whose errors name it as it would be.
#[derive(Debug)]
pub(crate) struct Named {
    file: File,
    name: String,
}

impl Named {
    fn unwritten(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: cannot write: {error}", self.name))
    }
}

impl Write for Named {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write(buf).map_err(|e| self.unwritten(&e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| self.unwritten(&e))
    }
}

/// An error without what libraries say around that of a file, which says all.
pub(crate) fn plain(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match error.chain().find_map(|e| e.downcast_ref::<io::Error>()) {
        Some(own) => anyhow!("{own}"),
        None => error,
    }
}

fn exists(target: &Path) -> String {
    format!("{}: exists; remove it, or name another directory", target.display())
}

/// A directory being written, under a temporary name beside its target. Dropped, it leaves nothing behind, nor does a signal
/// that ends the program.
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
            bail!(exists(target));
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
        // What is wrong with it is said before a name comes into that which nobody has chosen.
        let cannot = || format!("{name}: cannot create");
        let beside = fs::canonicalize(beside).with_context(cannot)?;
        let directory = builder.tempdir_in(beside).with_context(cannot)?;
        directory_goes_before_end(target, directory.path()).with_context(cannot)?;
        Ok(Self { directory, target: target.to_owned() })
    }

    /// Where a file of it is written.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file of it.
    pub(crate) fn file(&self, name: &str) -> Result<BufWriter<Named>> {
        let shown = self.target.join(name).display().to_string();
        let file = File::create(self.path(name)).with_context(|| format!("{shown}: cannot create"))?;
        Ok(BufWriter::with_capacity(BUFFER, Named { file, name: shown }))
    }

    /// What is said of a part of it that another library cannot write.
    pub(crate) fn unwritten(&self) -> String {
        format!("{}: cannot write", self.target.display())
    }

    /// Gives it its name. All files must be closed.
    pub(crate) fn commit(self) -> Result<()> {
        let Self { directory, target } = self;
        // Only an empty directory can be replaced by renaming, and that may be somebody else's by now.
        fs::rename(directory.path(), &target).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => anyhow!(exists(&target)),
            _ => anyhow!("{}: renaming: {error}", target.display()),
        })?;
        let _ = directory.keep();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let mut out = BufWriter::new(Named { file, name: "app.csv/events.csv".into() });
        out.write_all(b"rank").unwrap();
        let error = out.flush().unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("app.csv/events.csv: cannot write: No space left"), "{said}");
        // Libraries put their own words around it, and it below them.
        let around = ::parquet::errors::ParquetError::External(Box::new(error));
        assert_eq!(format!("{:#}", plain(around)), said);
    }

    #[test]
    fn a_place_that_is_not_there_is_told_by_the_name_that_was_given() {
        let error = Directory::create(Path::new("/no/such/place/app.csv")).unwrap_err();
        let said = format!("{error:#}");
        assert!(
            said.starts_with("/no/such/place/app.csv: cannot create: ") && !said.contains(".tmp"),
            "{said}"
        );
    }
}
