//! Figures of experiments: a table, a picture, and whether what was found is what the paper says.

mod about;
mod claims;
mod matrix;
mod measured;
mod picture;
mod scale;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use st_cli::Output;

use crate::args::Figure;
use about::About;
use measured::Measured;

/// `st-bench figure`.
///
/// # Errors
///
/// If a file cannot be read or written, or is no such table; when all is written, if a claim does not hold that must.
pub(crate) fn draw(of: &Figure) -> Result<()> {
    let named = |path: &Path| path.display().to_string();
    let about = fs::read_to_string(&of.about).with_context(|| named(&of.about))?;
    let about: About = serde_json::from_str(&about).with_context(|| named(&of.about))?;
    let mut measured = Measured::default();
    for path in &of.rows {
        let file = fs::File::open(path).with_context(|| named(path))?;
        measured.read(file).with_context(|| named(path))?;
    }
    let (text, broken) = text(&about, &measured);
    let to = |ending: &str| {
        let mut name = of.output.clone().into_os_string();
        name.push(ending);
        Output::text(name.as_ref())
    };
    let files = [
        (to(".csv")?, measured.csv()?),
        (to(".txt")?, text),
        (to(".svg")?, picture::svg(&about, &measured)?),
    ];
    for (mut out, content) in files {
        out.write_all(content.as_bytes()).with_context(|| out.name().to_owned())?;
        out.commit()?;
    }
    if !broken.is_empty() {
        bail!("{}.txt: {}", named(&of.output), broken.join("; "));
    }
    Ok(())
}

/// Table, and what is to be said; and claims that must hold and do not.
fn text(about: &About, measured: &Measured) -> (String, Vec<String>) {
    let mut broken = Vec::new();
    let mut text = format!("{}\n{}\n\n", about.title, "=".repeat(about.title.chars().count()));
    let _ = writeln!(text, "Source: {}.\nThe paper: {}", about.source, about.paper);
    for claim in &about.claims {
        let (found, is_broken) = claim.found(measured);
        let _ = writeln!(text, "We find: {found}");
        broken.extend(is_broken.then_some(found));
    }
    let _ = write!(text, "\n{} by {}: median (95 % interval), runs\n\n", about.y.name, about.x.name);
    text.push_str(&measured.table());
    (text, broken)
}
