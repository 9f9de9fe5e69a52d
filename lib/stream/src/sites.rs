//! Payload of SITES: modules and call sites.

use super::bytes::{
    finish, get_id, get_index, get_len, get_str, get_u64, put_id, put_str, put_u64, put_usize,
};
use super::error::{DecodeError, Field as _};
use st_model::sites::{Frame, Module, Site, SiteTable};

/// A stack whose identity is the hash of its frames.
const STACK: u64 = 0;
/// A label whose identity is its hash.
const LABEL: u64 = 1;
/// Frames, label and identity as they are.
const EXPLICIT: u64 = 2;

pub(crate) fn encode(table: &SiteTable) -> Vec<u8> {
    let mut out = Vec::new();
    put_usize(&mut out, table.modules().len());
    for m in table.modules() {
        put_str(&mut out, &m.path);
        put_str(&mut out, &m.build_id);
    }
    put_usize(&mut out, table.sites().len());
    let mut before: &[Frame] = &[];
    for (i, s) in table.sites().iter().enumerate() {
        if put_site(&mut out, table, i, before) {
            before = &s.frames;
        }
    }
    out
}

/// Appends the site at an index of a table; returns whether it has frames that the next one may share.
pub fn put_site(out: &mut Vec<u8>, table: &SiteTable, index: usize, before: &[Frame]) -> bool {
    let Some(s) = table.sites().get(index) else { return false };
    let form = form(table, index, s);
    put_u64(out, form);
    if form != STACK {
        put_str(out, &s.label);
    }
    if form != LABEL {
        put_frames(out, before, &s.frames);
    }
    if form == EXPLICIT {
        put_id(out, s.id);
    }
    form != LABEL
}

fn form(table: &SiteTable, index: usize, s: &Site) -> u64 {
    if table.is_stack(index) {
        STACK
    } else if s.frames.is_empty() && s.id == SiteTable::label_id(&s.label) {
        LABEL
    } else {
        EXPLICIT
    }
}

/// Number of outer frames shared with the stack before, number of others, then those, innermost first.
fn put_frames(out: &mut Vec<u8>, before: &[Frame], frames: &[Frame]) {
    let shared = before.iter().rev().zip(frames.iter().rev()).take_while(|(a, b)| a == b).count();
    put_usize(out, shared);
    put_usize(out, frames.len() - shared);
    for f in &frames[..frames.len() - shared] {
        put_u64(out, f.module.into());
        put_u64(out, f.offset);
    }
}

pub(crate) fn decode(mut src: &[u8]) -> Result<SiteTable, DecodeError> {
    let src = &mut src;
    let mut table = SiteTable::new();
    for i in 0..get_len(src).field("modules")? {
        let path = get_str(src).nth("module", i)?;
        let build_id = get_str(src).nth("module", i)?;
        if table.module(Module { path, build_id }) as usize != i {
            return Err(DecodeError::Invalid("a module is listed twice")).nth("module", i);
        }
    }
    let mut before = Vec::new();
    for i in 0..get_len(src).field("sites")? {
        let site = get_site(src, &table, &mut before).nth("site", i)?;
        if table.insert(site) as usize != i {
            return Err(DecodeError::Invalid("a site is listed twice")).nth("site", i);
        }
    }
    finish(src)?;
    Ok(table)
}

/// Reads a call site whose stack may share frames with the one before.
///
/// # Errors
///
/// If it is malformed.
pub fn get_site(src: &mut &[u8], table: &SiteTable, before: &mut Vec<Frame>) -> Result<Site, DecodeError> {
    let form = get_u64(src)?;
    if form > EXPLICIT {
        return Err(DecodeError::Invalid("unknown form"));
    }
    let label = if form == STACK { String::new() } else { get_str(src).field("label")? };
    let mut frames = Vec::new();
    if form != LABEL {
        frames = get_frames(src, table.modules().len(), before).field("frames")?;
        before.clone_from(&frames);
    }
    let id = match form {
        STACK => table.stack_id(&frames),
        LABEL => SiteTable::label_id(&label),
        _ => get_id(src).field("identity")?,
    };
    Ok(Site { id, frames, label })
}

fn get_frames(src: &mut &[u8], modules: usize, before: &[Frame]) -> Result<Vec<Frame>, DecodeError> {
    let shared = get_u64(src)?;
    let shared = usize::try_from(shared).ok().filter(|s| *s <= before.len());
    let shared = shared.ok_or(DecodeError::Invalid("more shared frames than there are"))?;
    let mut frames = Vec::new();
    for _ in 0..get_len(src)? {
        frames.push(Frame { module: get_index(src, modules)?, offset: get_u64(src)? });
    }
    frames.extend_from_slice(&before[before.len() - shared..]);
    Ok(frames)
}
