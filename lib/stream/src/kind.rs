//! What frames hold.

use std::fmt;

/// Flag: a reader that does not know the kind must refuse the stream.
pub(crate) const REQUIRED: u8 = 2;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal, $flags:expr;)*) => {
        /// What a frame holds.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum FrameKind { $($(#[$doc])* $name = $number),* }
        impl FrameKind {
            pub(crate) fn from_number(n: u8) -> Option<Self> {
                match n { $($number => Some(Self::$name),)* _ => None }
            }
            pub(crate) fn number(self) -> u8 {
                match self { $(Self::$name => $number),* }
            }
            /// Flags that frames of this kind are written with, beside those of compression.
            pub(crate) fn flags(self) -> u8 {
                match self { $(Self::$name => $flags),* }
            }
        }
        impl fmt::Display for FrameKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text),* })
            }
        }
    };
}

impl FrameKind {
    /// Whether such frames hold the exact times of many chunks.
    pub(crate) fn joins_times(self) -> bool {
        matches!(self, Self::Spans | Self::Times | Self::Series)
    }

    /// Whether such frames hold exact times.
    pub(crate) fn holds_times(self) -> bool {
        self == Self::Column || self.joins_times()
    }
}

kinds! {
    /// The end of the stream.
    End = 0, "END", REQUIRED;
    /// [`st_model::header::Header`] as JSON.
    Head = 1, "HEAD", REQUIRED;
    /// A [`st_model::header::Step`] as JSON.
    Prov = 2, "PROV", 0;
    /// Modules and call sites, in force until the next such frame.
    Sites = 3, "SITES", REQUIRED;
    /// Object tables, in force until the next such frame.
    Objects = 4, "OBJECTS", REQUIRED;
    /// Beginning of a section: its ranks, hosts and threads.
    Section = 5, "SECTION", REQUIRED;
    /// Symbols, partitions, trees, counts and parameters of a section.
    Struct = 6, "STRUCT", REQUIRED;
    /// Proof lanes of a section.
    Lanes = 7, "LANES", REQUIRED;
    /// Time sketches of a section.
    Sketch = 8, "SKETCH", 0;
    /// Per-rank sums of a section.
    Sums = 9, "SUMS", 0;
    /// A chunk of exact times of a rank's thread.
    Column = 10, "COLUMN", 0;
    /// Where sections lie.
    Index = 11, "INDEX", 0;
    /// How a rank's clock was compared with that of rank 0.
    Clock = 12, "CLOCK", 0;
    /// Where the ranks of a section stopped that ended early.
    Ended = 13, "ENDED", 0;
    /// What addresses of call sites are called.
    Names = 14, "NAMES", 0;
    /// What is kept of wait states: [`st_model::explanation::Explanation`].
    Waits = 15, "WAITS", 0;
    /// As [`FrameKind::Sketch`], which it takes the place of: distributions by durations at fixed ranks.
    Quantiles = 16, "QUANTILES", 0;
    /// As [`FrameKind::Column`], which it takes the place of: exact times compressed as numbers.
    Series = 17, "SERIES", 0;
    /// As [`FrameKind::Quantiles`], which it takes the place of: distributions of events whatever call came before.
    Durations = 18, "DURATIONS", 0;
    /// In the place of [`FrameKind::Sketch`]: distributions that follow from exact times.
    Derived = 19, "DERIVED", 0;
    /// As [`FrameKind::Series`], which it takes the place of: exact times by their places in their distribution.
    Times = 20, "TIMES", 0;
    /// As [`FrameKind::Times`], which it takes the place of: exact times by their places in their distribution, of which one in up to
    /// sixteen is told at a time.
    Spans = 21, "SPANS", 0;
    /// In which order ranks of a section were slow, where exact times are folded.
    Slow = 22, "SLOW", 0;
}
