//! Payload of NAMES: functions, files and lines of addresses.

use st_model::num::Exact;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::bytes::{finish, get_bytes, get_len, get_u32, get_u64, put_bytes, put_u64, put_usize};
use super::error::{DecodeError, Field as _};
use super::frame::MAX_EXPANDED;
use st_model::names::{Address, Location, MOST, Names};

/// Functions inlined at one address, with the one that it is in, at most.
const DEEPEST: usize = 1 << 12;

pub(crate) fn encode(names: &Names) -> Vec<u8> {
    let all: Vec<(Address, &[Location])> = names.iter().collect();
    let locations = || all.iter().flat_map(|(_, l)| *l);
    let functions: BTreeSet<&str> = locations().filter_map(|l| l.function.as_deref()).collect();
    let files: BTreeSet<&str> = locations().filter_map(|l| l.file.as_deref()).collect();
    let (functions, files): (Vec<&str>, Vec<&str>) =
        (functions.into_iter().collect(), files.into_iter().collect());
    let mut out = Vec::new();
    put_strings(&mut out, &functions);
    put_strings(&mut out, &files);
    let modules: Vec<_> = all.chunk_by(|a, b| a.0.0 == b.0.0).collect();
    put_usize(&mut out, modules.len());
    for of in &modules {
        out.extend_from_slice(&of.first().map_or(0, |(address, _)| address.0).to_le_bytes());
        put_usize(&mut out, of.len());
        let mut before = 0;
        for ((_, offset), _) in *of {
            put_u64(&mut out, offset.wrapping_sub(before));
            before = *offset;
        }
    }
    // Column by column, for like things are compressed together.
    all.iter().for_each(|(_, l)| put_usize(&mut out, l.len() - 1));
    let index = |of: &[&str], text: Option<&str>| text.map_or(0, |t| of.binary_search(&t).unwrap_or(0) + 1);
    locations().for_each(|l| put_usize(&mut out, index(&functions, l.function.as_deref())));
    locations().for_each(|l| put_usize(&mut out, index(&files, l.file.as_deref())));
    locations().for_each(|l| put_u64(&mut out, l.line.unwrap_or(0).into()));
    locations().for_each(|l| put_u64(&mut out, l.displacement.map_or(0, |d| d.saturating_add(1))));
    out
}

/// Number of strings, then per string how many bytes it begins with of the one before, and the rest.
fn put_strings(out: &mut Vec<u8>, strings: &[&str]) {
    put_usize(out, strings.len());
    let mut before: &[u8] = &[];
    for s in strings {
        let shared = before.iter().zip(s.as_bytes()).take_while(|(a, b)| a == b).count();
        put_usize(out, shared);
        put_bytes(out, &s.as_bytes()[shared..]);
        before = s.as_bytes();
    }
}

fn get_strings(src: &mut &[u8]) -> Result<Vec<Arc<str>>, DecodeError> {
    let mut strings = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    let mut all = 0_usize;
    for i in 0..get_len(src)? {
        let shared = usize::try_from(get_u64(src)?).ok().filter(|n| *n <= before.len());
        let shared = shared.ok_or(DecodeError::Invalid("shares more than there is")).nth("string", i)?;
        before.truncate(shared);
        before.extend_from_slice(get_bytes(src)?);
        // Strings that share much expand to many times what is stored.
        all = all.saturating_add(before.len());
        if all > MAX_EXPANDED {
            return Err(DecodeError::Invalid("more than 64 MiB of text"));
        }
        let text = std::str::from_utf8(&before).map_err(|_| DecodeError::Text).nth("string", i)?;
        strings.push(text.into());
    }
    Ok(strings)
}

pub(crate) fn decode(mut src: &[u8]) -> Result<Names, DecodeError> {
    let src = &mut src;
    let functions = get_strings(src).field("functions")?;
    let files = get_strings(src).field("files")?;
    let addresses = get_addresses(src).field("addresses")?;
    let mut depths = Vec::with_capacity(addresses.len());
    let mut total = 0_usize;
    for i in 0..addresses.len() {
        let depth = usize::try_from(get_u64(src)?).ok().filter(|d| *d < DEEPEST);
        let depth = depth.ok_or(DecodeError::Invalid("too many functions")).nth("address", i)? + 1;
        total += depth;
        depths.push(depth);
    }
    // Each location takes a byte of each column at least.
    if total > src.len() {
        return Err(DecodeError::End);
    }
    let mut locations = vec![Location::default(); total];
    locations
        .iter_mut()
        .try_for_each(|l| get_string(src, &functions).map(|s| l.function = s))
        .field("function")?;
    locations.iter_mut().try_for_each(|l| get_string(src, &files).map(|s| l.file = s)).field("file")?;
    for l in &mut locations {
        l.line = Some(get_u32(src).field("line")?).filter(|line| *line > 0);
    }
    for l in &mut locations {
        l.displacement = get_u64(src).field("displacement")?.checked_sub(1);
    }
    finish(src)?;
    let mut names = Names::default();
    let mut locations = locations.into_iter();
    for (address, depth) in addresses.into_iter().zip(depths) {
        names.insert(address, locations.by_ref().take(depth).collect());
    }
    Ok(names)
}

fn get_addresses(src: &mut &[u8]) -> Result<Vec<Address>, DecodeError> {
    let mut addresses = Vec::new();
    for i in 0..get_len(src)? {
        let (key, rest) = src.split_first_chunk::<8>().ok_or(DecodeError::End)?;
        *src = rest;
        let mut offset = 0_u64;
        for at in 0..get_len(src)? {
            let distance = get_u64(src)?;
            if at > 0 && distance == 0 || addresses.len() >= MOST {
                return Err(DecodeError::Invalid("listed twice, or too many")).nth("module", i);
            }
            offset = offset.checked_add(distance).ok_or(DecodeError::Integer).nth("module", i)?;
            addresses.push((u64::from_le_bytes(*key), offset));
        }
    }
    Ok(addresses)
}

/// A string by its index + 1; 0 is none.
fn get_string(src: &mut &[u8], of: &[Arc<str>]) -> Result<Option<Arc<str>>, DecodeError> {
    let Some(index) = get_u64(src)?.checked_sub(1) else { return Ok(None) };
    let found = usize::try_from(index).ok().and_then(|i| of.get(i));
    let len = of.len().to_u64();
    found.cloned().map(Some).ok_or(DecodeError::Index { index, len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn location() -> impl Strategy<Value = Location> {
        let text = || prop::option::of("[a-c:é/]{0,6}".prop_map(Arc::from));
        (text(), text(), prop::option::of(1..9u32), prop::option::of(0..u64::MAX))
            .prop_map(|(function, file, line, displacement)| Location { function, displacement, file, line })
    }

    proptest! {
        #[test]
        fn names_come_back(all in prop::collection::vec(((0..3u64, any::<u64>()), prop::collection::vec(location(), 1..4)), 0..20)) {
            let mut names = Names::default();
            all.into_iter().for_each(|(address, locations)| names.insert(address, locations));
            let bytes = encode(&names);
            prop_assert_eq!(&decode(&bytes).unwrap(), &names);
            prop_assert!((0..bytes.len()).all(|n| decode(&bytes[..n]).is_err()));
        }

        #[test]
        fn damage_is_noticed_or_reads_as_other_names(at in 0usize..60, byte: u8) {
            let mut names = Names::default();
            for offset in [3, 400, 70_000] {
                let location = Location { function: Some("f".into()), file: Some("a/b.c".into()), line: Some(7), displacement: None };
                names.insert((9, offset), vec![location.clone(), location]);
            }
            let mut bytes = encode(&names);
            let at = at % bytes.len();
            bytes[at] = byte;
            // What still decodes is encoded again as other names, or the same.
            if let Ok(other) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&other)).unwrap(), other);
            }
        }
    }

    #[test]
    fn text_that_expands_beyond_all_measure_is_refused() {
        let mut bytes = Vec::new();
        put_usize(&mut bytes, 100_000);
        put_u64(&mut bytes, 0);
        put_bytes(&mut bytes, &[b'a'; 1 << 16]);
        for _ in 1..100_000 {
            put_u64(&mut bytes, 1 << 16);
            put_bytes(&mut bytes, &[]);
        }
        assert!(decode(&bytes).unwrap_err().to_string().contains("functions"));
    }
}
