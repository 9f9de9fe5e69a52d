//! Reduction in a tree whose shape follows from the places of the sections alone.
//!
//! [`RADIX`] sections that lie next to each other become one part, as many parts one of the next level, and so on, from
//! the first section on; what is left at the end is joined from the lowest level up. Whoever has some consecutive sections joins
//! what is whole among them, and hands on the rest as it is. So the result does not depend on how many processes share
//! the sections, nor on which has which.
//!
//! Source: the radix trees of Wu, Mueller 2013 and Bahmani, Mueller 2014. We differ in the order: subtrees have
//! neighbouring ranks, which are read from neighbouring files.

use st_model::num::Exact;
use std::io;

use st_model::header::Header;
use st_model::section::Section;
use st_model::varint;
use st_stream::{ReadOptions, Reader, WriteOptions, Writer};

/// Parts that become one. Reading ranks again at each level costs little if there are few levels, and joining is parallel if
/// there are many.
pub const RADIX: u64 = 16;

/// How sections become fewer.
pub trait Reduce {
    /// Why they cannot.
    type Error;
    /// What stands for sections, of parts one after the other, until more is known.
    ///
    /// # Errors
    ///
    /// If they do not go together.
    fn join(&self, sections: Vec<Section>) -> Result<Vec<Section>, Self::Error>;
}

/// Consecutive sections, reduced as far as can be.
#[derive(Debug)]
pub struct Tree<R> {
    how: R,
    parts: Vec<Subtree>,
}

/// What stands for [`RADIX`]^level sections from the `first` on, or for fewer at the end.
#[derive(Debug, PartialEq, Eq)]
struct Subtree {
    level: u32,
    first: u64,
    sections: Vec<Section>,
}

/// Why what another process has handed on cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// The sections.
    #[error(transparent)]
    Stream(#[from] st_stream::Error),
    /// What stands before them.
    #[error("parts of a tree: {0}")]
    Parts(#[from] varint::DecodeError),
    /// There are fewer sections than parts need.
    #[error("parts of a tree: sections are missing")]
    Missing,
}

/// Sections that a part at this level stands for.
fn span(level: u32) -> u64 {
    RADIX.saturating_pow(level)
}

/// Level and sections of the largest whole block that begins at a place and has at most so many sections, and at most so
/// many levels.
#[must_use]
pub fn block(place: u64, most: usize, levels: u32) -> (u32, usize) {
    let size =
        |level| usize::try_from(span(level)).ok().filter(|n| *n <= most && place.is_multiple_of(span(level)));
    (1..=levels).rev().find_map(|level| Some((level, size(level)?))).unwrap_or((0, 1))
}

impl<R: Reduce> Tree<R> {
    /// No section yet.
    #[must_use]
    pub fn new(how: R) -> Self {
        Self { how, parts: Vec::new() }
    }

    /// How it reduces.
    #[must_use]
    pub fn how(&self) -> &R {
        &self.how
    }

    /// How it reduces from now on.
    pub fn how_mut(&mut self) -> &mut R {
        &mut self.how
    }

    /// Adds a section, whose place among all is that after the last one's.
    ///
    /// # Errors
    ///
    /// As [`Reduce::join`].
    pub fn push(&mut self, place: u64, section: Section) -> Result<(), R::Error> {
        self.append(Subtree { level: 0, first: place, sections: vec![section] })
    }

    /// Adds the section after the last one's, or the first.
    ///
    /// # Errors
    ///
    /// As [`Reduce::join`].
    pub fn push_next(&mut self, section: Section) -> Result<(), R::Error> {
        let place = self.parts.last().map_or(0, |p| p.first.saturating_add(span(p.level)));
        self.push(place, section)
    }

    /// Adds what stands for a whole block: for all of [`RADIX`]^level sections from this place on.
    ///
    /// # Errors
    ///
    /// As [`Reduce::join`].
    pub fn push_block(&mut self, level: u32, place: u64, sections: Vec<Section>) -> Result<(), R::Error> {
        self.append(Subtree { level, first: place, sections })
    }

    fn append(&mut self, part: Subtree) -> Result<(), R::Error> {
        self.follow()?;
        self.parts.push(part);
        Ok(())
    }

    /// Says that more sections follow: joins what is whole.
    ///
    /// # Errors
    ///
    /// As [`Reduce::join`].
    pub fn follow(&mut self) -> Result<(), R::Error> {
        while let Some(last) = self.parts.last() {
            let (level, group) = (last.level, span(last.level + 1));
            let begins = last.first / group * group;
            let at = self.parts.iter().rposition(|p| p.first == begins && p.level == level);
            let whole = last.first + span(level) == begins + group;
            let Some(at) = at.filter(|at| whole && (self.parts.len() - at) as u64 == RADIX) else { break };
            self.join(at, level + 1)?;
        }
        Ok(())
    }

    /// Makes the parts from the `at`-th on one.
    fn join(&mut self, at: usize, level: u32) -> Result<(), R::Error> {
        let mut parts = self.parts.split_off(at);
        let first = parts.first().map_or(0, |p| p.first);
        let sections = match &mut parts[..] {
            [one] => std::mem::take(&mut one.sections),
            _ => self.how.join(parts.into_iter().flat_map(|p| p.sections).collect())?,
        };
        self.parts.push(Subtree { level, first, sections });
        Ok(())
    }

    /// The parts of the root, one after the other, of a tree that has all sections.
    ///
    /// # Errors
    ///
    /// As [`Reduce::join`].
    pub fn finish(mut self) -> Result<Vec<Section>, R::Error> {
        while let Some(level) = self.parts.last().map(|p| p.level) {
            let at = self.parts.iter().rposition(|p| p.level != level).map_or(0, |at| at + 1);
            if at == 0 {
                break;
            }
            self.join(at, level + 1)?;
        }
        Ok(self.parts.into_iter().flat_map(|p| p.sections).collect())
    }

    /// Takes in what the process or thread with the sections after these has handed on.
    ///
    /// # Errors
    ///
    /// As [`Reduce::join`].
    pub fn take(&mut self, theirs: Parts) -> Result<(), R::Error> {
        theirs.0.into_iter().try_for_each(|part| self.append(part))
    }

    /// The parts, for another thread.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        Parts(self.parts)
    }

    /// The parts as bytes, for another process.
    ///
    /// # Errors
    ///
    /// If a section cannot be written, which memory always can.
    pub fn pack(self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        varint::put_u64(&mut out, self.parts.len().to_u64());
        for part in &self.parts {
            [u64::from(part.level), part.first, part.sections.len().to_u64()]
                .iter()
                .for_each(|n| varint::put_u64(&mut out, *n));
        }
        let mut writer = Writer::new(&mut out, &Header::default(), WriteOptions::PIPE)?;
        self.parts.iter().flat_map(|p| &p.sections).try_for_each(|s| writer.section(s))?;
        writer.finish()?;
        Ok(out)
    }
}

/// Parts that another process or thread has handed on.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts(Vec<Subtree>);

impl Parts {
    /// From [`Tree::pack`].
    ///
    /// # Errors
    ///
    /// If the bytes are something else.
    pub fn unpack(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let n = varint::get_u64(&mut bytes)?;
        let mut shapes = Vec::new();
        for _ in 0..n {
            let mut next = || varint::get_u64(&mut bytes);
            shapes.push((next()?, next()?, next()?));
        }
        let mut reader = Reader::new(bytes, ReadOptions::default())?;
        let mut parts = Vec::new();
        for (level, first, n) in shapes {
            let level = u32::try_from(level).map_err(|_| Malformed::Missing)?;
            let mut sections = Vec::new();
            for _ in 0..n {
                sections.push(reader.next_section()?.ok_or(Malformed::Missing)?);
            }
            parts.push(Subtree { level, first, sections });
        }
        Ok(Self(parts))
    }
}
