//! Lines of call sites, written and read.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use st_model::names::{Location, Names};
use st_model::sites::{CallSites, Frame, Module, Site, SiteTable};

/// A call site as an object: `site` (number), `id`, `place`, and `frames` (innermost first, each with its functions, if these
/// are known, inlined ones first) or `label`.
#[must_use]
pub fn site(sites: &CallSites, number: u32) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("site".into(), number.into());
    let table = sites.table();
    let Some(s) = table.get(number) else { return out };
    out.insert("id".into(), format!("{:032x}", s.id).into());
    out.insert("place".into(), sites.place(number).into());
    if !s.label.is_empty() {
        out.insert("label".into(), s.label.clone().into());
    }
    if !s.frames.is_empty() {
        let frame = |f: &Frame| {
            let module = table.module_of(f);
            let mut frame = json!({
                "module": module.map(|m| &m.path),
                "build_id": module.map(|m| &m.build_id).filter(|b| !b.is_empty()),
                "offset": format!("{:#x}", f.offset),
            });
            let names = module.and_then(|m| table.names().get((m.key(), f.offset)));
            if let (Some(names), Some(frame)) = (names, frame.as_object_mut()) {
                frame.insert("functions".into(), names.iter().map(location).collect());
            }
            frame
        };
        out.insert("frames".into(), s.frames.iter().map(frame).collect());
    }
    out
}

/// What is known of a location: `function`, `file`, `line`, and `displacement` from the start of the function's symbol.
fn location(l: &Location) -> Value {
    let mut out = Map::new();
    let mut add = |name: &str, value: Option<Value>| value.map(|v| out.insert(name.to_owned(), v));
    add("function", l.function.as_deref().map(Value::from));
    add("file", l.file.as_deref().map(Value::from));
    add("line", l.line.map(Value::from));
    add("displacement", l.displacement.map(|d| format!("{d:#x}").into()));
    out.into()
}

/// Adds the call site that a line tells to a table, and the names of its frames to names; its printed number, and its number in
/// the table.
///
/// # Errors
///
/// With what is wrong.
pub fn read_site(
    line: &Map<String, Value>,
    to: &mut SiteTable,
    names: &mut Names,
) -> Result<(u32, u32), String> {
    let printed = line.get("site").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let printed = printed.ok_or("site: no number")?;
    let label = match line.get("label") {
        None => "",
        Some(label) => label.as_str().ok_or("label: no text")?,
    };
    let all = match line.get("frames") {
        None => &[][..],
        Some(frames) => frames.as_array().ok_or("frames: no list")?,
    };
    let mut frames = Vec::new();
    for frame in all {
        let (module, offset) = read_frame(frame)?;
        let functions = frame.get("functions").and_then(Value::as_array);
        names.insert((module.key(), offset), functions.into_iter().flatten().map(read_location).collect());
        frames.push(Frame { module: to.module(module), offset });
    }
    // What neither has a stack nor a label is known by its place.
    let place = line.get("place").and_then(Value::as_str).unwrap_or_default();
    let label = if label.is_empty() && frames.is_empty() { place } else { label };
    let id = match line.get("id").map(|id| id.as_str().and_then(|id| u128::from_str_radix(id, 16).ok())) {
        Some(Some(id)) => id,
        Some(None) => return Err("id: no 32 hexadecimal digits".into()),
        None if frames.is_empty() => SiteTable::label_id(label),
        None => to.stack_id(&frames),
    };
    Ok((printed, to.insert(Site { id, frames, label: label.to_owned() })))
}

fn read_frame(frame: &Value) -> Result<(Module, u64), String> {
    let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
    let offset = text("offset").strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let offset = offset.ok_or("frames: offset: no hexadecimal number behind 0x")?;
    Ok((Module { path: text("module").into(), build_id: text("build_id").into() }, offset))
}

fn read_location(from: &Value) -> Location {
    let text = |key: &str| from.get(key).and_then(Value::as_str).map(Arc::from);
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    Location {
        function: text("function"),
        displacement: from.get("displacement").and_then(Value::as_str).and_then(hex),
        file: text("file"),
        line: from.get("line").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok()),
    }
}
