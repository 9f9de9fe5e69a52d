//! Names of the traces of several jobs.

use std::path::{Path, PathBuf};

/// `app-2.st` of `app.st`.
#[must_use]
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_before_the_extension() {
        let names = ["a/b.st", "b", "-"].map(|path| numbered(Path::new(path), 3));
        assert_eq!(names, ["a/b-3.st", "b-3", "--3"].map(PathBuf::from));
    }
}
