//! How streams are written.

use super::packer::PIPE;

/// How a stream is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteOptions {
    /// Compression level of zstd, 1 to 22; 0 for none.
    pub level: u8,
}

impl WriteOptions {
    /// For files: as small as zstd makes them without its slowest levels.
    pub const FILE: Self = Self { level: 19 };
    /// For pipes: as fast as possible.
    pub const PIPE: Self = Self { level: 1 };

    /// Whether what follows from exact times is left out. Of what goes through a pipe it would be made again at its other end.
    pub(crate) fn derives(self) -> bool {
        i32::from(self.level) > PIPE
    }
}

impl Default for WriteOptions {
    /// For files.
    fn default() -> Self {
        Self::FILE
    }
}
