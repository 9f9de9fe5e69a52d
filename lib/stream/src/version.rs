//! Which streams can be read.

use std::fmt;

/// First bytes of every stream. As in PNG, the first byte is no text, and line ends show a transfer that changes them.
pub const MAGIC: [u8; 8] = *b"\x89STT\r\n\x1a\n";

/// A stream version: a new major cannot be read by older programs, a new minor only adds what they may ignore.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// Breaks.
    pub major: u8,
    /// Adds.
    pub minor: u8,
}

/// The version that this crate writes.
pub const CURRENT: Version = Version { major: 1, minor: 9 };

/// For each stream major: the last release of st that reads it, `None` if the present one does.
const READERS: [(u8, Option<&str>); 1] = [(1, None)];

impl Version {
    /// Whether this crate reads the version.
    ///
    /// # Errors
    ///
    /// If it does not, with who does.
    pub fn check_readable(self) -> Result<(), VersionError> {
        match READERS.iter().find(|(major, _)| *major == self.major) {
            Some((_, None)) => Ok(()),
            found => Err(VersionError { stream: self, reader: found.and_then(|(_, last)| *last) }),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A stream of a version that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionError {
    stream: Version,
    reader: Option<&'static str>,
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, reader } = self;
        let this = env!("CARGO_PKG_VERSION");
        write!(f, "stream version {stream}; st {this} reads {}.x", CURRENT.major)?;
        match reader {
            Some(last) => write!(f, "; st {last} is the last that reads {}.x", stream.major),
            None if stream.major > CURRENT.major => f.write_str("; a newer st is needed"),
            None => f.write_str("; no released st reads it"),
        }
    }
}

impl std::error::Error for VersionError {}

/// Whether bytes are the beginning of a stream, as far as they go.
pub(super) fn begins(first: &[u8]) -> bool {
    let n = first.len().min(MAGIC.len());
    first[..n] == MAGIC[..n]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_minors_are_read_and_other_majors_are_refused_with_a_reason() {
        assert_eq!(Version { major: 1, minor: 200 }.check_readable(), Ok(()));
        let newer = Version { major: 2, minor: 3 }.check_readable().unwrap_err().to_string();
        assert!(
            newer.starts_with("stream version 2.3; st ") && newer.ends_with("a newer st is needed"),
            "{newer}"
        );
        let older = Version { major: 0, minor: 1 }.check_readable().unwrap_err().to_string();
        assert!(older.ends_with("no released st reads it"), "{older}");
    }

    #[test]
    fn magic_is_recognised_from_its_first_bytes() {
        for first in [&MAGIC[..], &MAGIC[..3], b"\x89STT\r\n\x1a\n\x01\x00"] {
            assert!(begins(first));
        }
        assert!(!begins(b"\x89PNG\r\n\x1a\n"));
    }
}
