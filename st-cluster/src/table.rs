//! The table of clusters as CSV.

use std::io::{self, Write};

use st_model::groups::Group;
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
    let number = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let subs = table.iter().map(|g| g.subs.len()).sum();
    format!("{}, {}", number(table.len(), "main cluster"), number(subs, "sub-cluster"))
}
