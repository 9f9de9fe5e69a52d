//! The table of clusters as CSV.

use std::io::{self, Write};

use st_cli::counted;
use st_model::groups::Group;
use st_model::num::Exact as _;
use st_model::ranklist_notation::print;

/// Writes a line per sub-cluster.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write(table: &[Group], mut to: impl Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(["main", "sub", "head", "size", "ranks"])?;
    for (i, main) in table.iter().enumerate() {
        for (k, sub) in main.subs.iter().enumerate() {
            let head = sub.lowest().unwrap_or(0);
            out.write_record([
                i.to_string(),
                k.to_string(),
                head.to_string(),
                sub.len().to_string(),
                print(sub),
            ])?;
        }
    }
    // Its errors would hide the kind and the cause of those of `to`.
    to.write_all(&out.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

/// `3 main clusters, 5 sub-clusters`.
pub(crate) fn count(table: &[Group]) -> String {
    let subs: usize = table.iter().map(|g| g.subs.len()).sum();
    format!("{}, {}", counted(table.len().to_u64(), "main cluster"), counted(subs.to_u64(), "sub-cluster"))
}
