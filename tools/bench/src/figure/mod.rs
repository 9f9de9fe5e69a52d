//! Figures of experiments: a table, a picture, and whether what was found is what the paper says.

mod about;
mod claims;
mod measured;
mod picture;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use st_cli::Output;

use crate::args::Figure;
use about::About;
use measured::Measured;

/// `st-bench figure`.
///
/// # Errors
///
/// If a file cannot be read or written, or is no such table.
pub(crate) fn draw(of: &Figure) -> Result<()> {
    let named = |path: &Path| path.display().to_string();
    let about = fs::read_to_string(&of.about).with_context(|| named(&of.about))?;
    let about: About = serde_json::from_str(&about).with_context(|| named(&of.about))?;
    let mut measured = Measured::default();
    for path in &of.rows {
        let file = fs::File::open(path).with_context(|| named(path))?;
        measured.read(file).with_context(|| named(path))?;
    }
    let to = |ending: &str| {
        let mut name = of.output.clone().into_os_string();
        name.push(ending);
        Output::text(name.as_ref())
    };
    let files = [
        (to(".csv")?, measured.csv()?),
        (to(".txt")?, text(&about, &measured)),
        (to(".svg")?, picture::svg(&about, &measured)?),
    ];
    for (mut out, content) in files {
        out.write_all(content.as_bytes()).with_context(|| out.name().to_owned())?;
        out.commit()?;
    }
    Ok(())
}

/// Table, and what is to be said.
fn text(about: &About, measured: &Measured) -> String {
    let mut text = format!("{}\n{}\n\n", about.title, "=".repeat(about.title.chars().count()));
    let _ = writeln!(text, "Source: {}.\nThe paper: {}", about.source, about.paper);
    for claim in &about.claims {
        let _ = writeln!(text, "We find: {}", claim.found(measured));
    }
    let _ = write!(text, "\n{} by {}: median (95 % interval), runs\n\n", about.y.name, about.x.name);
    text.push_str(&measured.table());
    text
}
