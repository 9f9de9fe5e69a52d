//! A file whose descriptor the program may close, as one that closes all that it does not know does: what the program opens next
//! has its number. Each write first looks whether the descriptor is still that of the file, and opens it again if not.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// What tells a file from others, for as long as it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let known = file.metadata()?;
        Ok(Self { device: known.dev(), inode: known.ino() })
    }
}

/// A file that is written from its begin to its end.
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
    /// Closed only if it is still that of the file.
    file: ManuallyDrop<File>,
    identity: Identity,
}

impl OwnFile {
    /// Makes an empty one, in the place of what has its name.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::create(&path)?;
        let identity = Identity::of(&file)?;
        Ok(Self { path, file: ManuallyDrop::new(file), identity })
    }

    fn is_open(&self) -> bool {
        Identity::of(&self.file).is_ok_and(|now| now == self.identity)
    }

    /// The file, open.
    fn opened(&mut self) -> io::Result<&mut File> {
        if !self.is_open() {
            let again = OpenOptions::new().append(true).open(&self.path)?;
            if Identity::of(&again)? != self.identity {
                return Err(io::Error::other("the program has closed it, and another file has its name"));
            }
            // The one before is the program's now, or nobody's.
            self.file = ManuallyDrop::new(again);
        }
        Ok(&mut self.file)
    }
}

impl Write for OwnFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.opened()?.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.is_open() {
            // SAFETY: once, for nothing uses it any more.
            unsafe { ManuallyDrop::drop(&mut self.file) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};

    use super::*;

    #[test]
    fn what_the_program_closes_is_opened_again_and_what_it_opens_is_left_alone() {
        let dir = std::env::temp_dir().join(format!("st-own-file-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let [path, other] = ["own", "other"].map(|name| dir.join(name));
        let mut own = OwnFile::create(path.clone()).unwrap();
        own.write_all(b"first ").unwrap();
        let theirs = File::create(&other).unwrap().into_raw_fd();
        // Their file gets our number, as if they had closed ours and opened it; other tests may open files at the same time.
        // SAFETY: descriptors that are open.
        assert!(unsafe { libc::dup2(theirs, own.file.as_raw_fd()) } >= 0);
        let number = own.file.as_raw_fd();
        own.write_all(b"second").unwrap();
        drop(own);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first second");
        // It is as they have left it, and open.
        assert_eq!(fs::read_to_string(&other).unwrap(), "");
        // SAFETY: a descriptor that is open.
        assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_that_is_gone_is_an_error() {
        let path = std::env::temp_dir().join(format!("st-own-file-gone-{}", std::process::id()));
        let mut own = OwnFile::create(path.clone()).unwrap();
        let null = File::options().write(true).open("/dev/null").unwrap();
        // SAFETY: descriptors that are open.
        assert!(unsafe { libc::dup2(null.as_raw_fd(), own.file.as_raw_fd()) } >= 0);
        fs::remove_file(&path).unwrap();
        assert_eq!(own.write_all(b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
