//! The page: what `tools/report-page` has built, with the data in it.

use std::io::Write as _;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::data::Report;

/// The page without data.
const PAGE: &str = include_str!("../../report/page.html");

/// Where data and title go in it.
const DATA: &str = "@DATA@";
const TITLE: &str = "@TITLE@";

/// A page that shows this.
///
/// # Errors
///
/// If it cannot be written down.
pub(super) fn of(data: &Report) -> Result<String> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&serde_json::to_vec(data)?)?;
    let data_text = STANDARD.encode(gzip.finish()?);
    let title = escaped(&data.program);
    Ok(PAGE.replacen(TITLE, &title, 1).replacen(DATA, &data_text, 1))
}

/// A text as it stands in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(DATA, "").replace(TITLE, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::Columns;
    use crate::table::Table;

    #[test]
    fn a_program_cannot_write_into_the_page() {
        let none = Table { columns: Vec::new(), rows: Vec::new(), total: None };
        let program = "<script>alert(1)</script>&@DATA@".to_owned();
        let page = of(&Report::new(program, &none, Columns::of(&none, 1, 1))).unwrap_or_default();
        assert!(page.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;&amp;</title>"));
        assert!(!page.contains("<script>alert") && !page.contains(DATA) && !page.contains(TITLE));
        let whole = of(&Report::new(String::new(), &none, Columns::of(&none, 1, 1))).unwrap_or_default();
        assert!(!whole.contains("http:") && !whole.contains("https:"), "a page asks nobody for anything");
    }

    /// The sum that `build.mjs` writes into the page.
    #[test]
    fn the_page_is_made_of_its_sources() -> Result<()> {
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("report/src");
        let mut files: Vec<_> =
            std::fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.sort();
        let mut sum = flate2::Crc::new();
        for file in files {
            sum.update(&std::fs::read(file)?);
        }
        let said = format!("<meta name=\"sources\" content=\"{:08x}\">", sum.sum());
        assert!(PAGE.contains(&said), "page.html is older than its sources: tools/report-page");
        Ok(())
    }
}
