//! Sections with their profiles.

use std::path::PathBuf;

use anyhow::Result;
use st_tool::options::StreamIn;
use st_tool::{Whole, each_section};
use st_trace::section::Section;

use crate::profile::Profile;

/// Reads a trace and profiles each section.
pub(crate) fn profiled(paths: &[PathBuf], input: &StreamIn) -> Result<(Whole, Vec<(Section, Profile)>)> {
    let mut sections = Vec::new();
    let whole = each_section(paths, input, |_, section| {
        let profile = Profile::of(&section)?;
        sections.push((section, profile));
        Ok(())
    })?;
    Ok((whole, sections))
}

/// Reads a trace's sections.
pub(crate) fn sections(path: &std::path::Path, input: &StreamIn) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    each_section(&[path.to_owned()], input, |_, section| {
        sections.push(section);
        Ok(())
    })?;
    Ok(sections)
}
