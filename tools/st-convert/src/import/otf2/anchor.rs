//! What is looked at of an anchor file before the library opens it: that goes through as many properties as are said to be there, which
//! takes minutes and gigabytes of address space where the number is damaged.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use st_cli::InvalidStream;
use st_model::num::Exact as _;

/// Bytes before the names of the machine and the writing program and the description, each of which ends with NUL.
const HEAD: usize = 46;
/// More bytes of it are not looked at.
const MOST: u64 = 1 << 20;

/// # Errors
///
/// If it cannot be read, or has no room for the properties that it says it has.
pub(super) fn check(path: &Path) -> Result<()> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    read.context("cannot be read")?;
    if !has_room(&bytes) {
        bail!(InvalidStream("its anchor file says that it has more properties than fit into it".into()));
    }
    Ok(())
}

/// Whether an anchor file has room for its properties. Of what is none the library says that.
fn has_room(bytes: &[u8]) -> bool {
    let texts = bytes.get(HEAD..).filter(|_| bytes.get(2..6) == Some(b"OTF2")).unwrap_or_default();
    let Some(rest) = texts.splitn(4, |byte| *byte == 0).nth(3) else { return true };
    let Some((number, rest)) = rest.split_first_chunk() else { return true };
    let is_little = bytes.get(1) == Some(&b'B');
    let number = if is_little { u32::from_le_bytes(*number) } else { u32::from_be_bytes(*number) };
    // Name and value end with NUL.
    u64::from(number) * 2 <= rest.len().to_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_must_fit_into_the_file() {
        let anchor = |order: u8, number: [u8; 4]| {
            let mut bytes = vec![3, order];
            bytes.extend(b"OTF2");
            bytes.resize(HEAD, 0);
            bytes.extend(b"\0st-convert\0app\0");
            bytes.extend(number);
            bytes.extend(b"a\0b\0c\0d\0\x01\x02\x03\x04\x05\x06\x07\x08");
            bytes
        };
        assert!(has_room(&anchor(b'B', [2, 0, 0, 0])) && has_room(&anchor(b'#', [0, 0, 0, 2])));
        assert!(!has_room(&anchor(b'B', [2, 0, 0, 1])) && !has_room(&anchor(b'#', [0, 0, 1, 2])));
        assert!(has_room(b"") && has_room(b"\x03BOTF2") && has_room(&[0; 60]));
    }
}
