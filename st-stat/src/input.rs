//! Sections with their profiles.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use st_cli::options::{StreamIn, Talk};
use st_cli::{Whole, each_section};
use st_model::section::Section;

use crate::profile::Profile;

/// Name of the program in what it says.
pub(crate) const NAME: &str = "st-stat";

/// What all streams of a trace together do not hold, and the command needs.
#[derive(Debug)]
pub(crate) struct Lacking(pub(crate) String);

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Lacking {}

/// Reads a trace and profiles each section, and says what is missing.
pub(crate) fn profiled(
    paths: &[PathBuf],
    input: &StreamIn,
    talk: &Talk,
) -> Result<(Whole, Vec<(Section, Profile)>)> {
    let (mut sections, budget) = (Vec::new(), input.steps.budget());
    let whole = each_section(paths, &input.shown(NAME, talk), |_, section| {
        if Profile::pay(&section, &budget).is_ok() {
            sections.push(section);
        }
        Ok(())
    })?;
    budget.check()?;
    whole.remark(NAME, talk);
    let profiles = Profile::of_all(&sections, &budget)?;
    Ok((whole, sections.into_iter().zip(profiles).collect()))
}

/// Reads a trace and its sections, and says what is missing.
pub(crate) fn sections(paths: &[PathBuf], input: &StreamIn, talk: &Talk) -> Result<(Whole, Vec<Section>)> {
    let mut sections = Vec::new();
    let whole = each_section(paths, &input.shown(NAME, talk), |_, section| {
        sections.push(section);
        Ok(())
    })?;
    whole.remark(NAME, talk);
    Ok((whole, sections))
}
