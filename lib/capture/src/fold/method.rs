//! The method by which a sequence is folded, as options and environment variables name it.

/// When iterations that differ are taken for iterations of one loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Likeness {
    /// Events, each place of the program counted once, that a comparison looks back over.
    pub window: usize,
    /// The shorter of two iterations has at least so many events per hundred of the longer one. The original has 80.
    pub length: u32,
    /// Of a hundred events that either iteration has, both have at least so many. With 0, and 0 for the length, it is enough
    /// that they begin and end with the same event, as in the paper.
    pub common: u32,
}

impl Default for Likeness {
    /// A window of 5,000 events, iterations of at least half the length, and half of the events common.
    fn default() -> Self {
        Self { window: 5_000, length: 50, common: 50 }
    }
}

/// How loops are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fold {
    /// Not at all: the sequence as it is, equal events in a row counted.
    None,
    /// Iterations of equal structure.
    #[default]
    Exact,
    /// Also iterations that have some events of their own.
    Approx(Likeness),
}

/// Not a way of folding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not none, exact, approx or approx:WINDOW:PERCENT:PERCENT")]
pub struct NoFold;

impl std::str::FromStr for Fold {
    type Err = NoFold;

    fn from_str(text: &str) -> Result<Self, NoFold> {
        match text {
            "none" => return Ok(Self::None),
            "exact" => return Ok(Self::Exact),
            "approx" => return Ok(Self::Approx(Likeness::default())),
            _ => {}
        }
        let mut words = text.strip_prefix("approx:").ok_or(NoFold)?.split(':');
        let window = words.next().and_then(|word| word.parse().ok()).ok_or(NoFold)?;
        let mut percent = || words.next().and_then(|word| word.parse().ok()).filter(|p| *p <= 100);
        let like = Likeness { window, length: percent().ok_or(NoFold)?, common: percent().ok_or(NoFold)? };
        words.next().is_none().then_some(Self::Approx(like)).ok_or(NoFold)
    }
}

impl std::fmt::Display for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Exact => f.write_str("exact"),
            Self::Approx(Likeness { window, length, common }) => {
                write!(f, "approx:{window}:{length}:{common}")
            }
        }
    }
}
