//! Texts that a terminal would obey.

use serde_json::Value;

/// A text without what a terminal would obey.
pub(crate) fn escaped(text: &str) -> String {
    if text.contains(char::is_control) { text.escape_debug().to_string() } else { text.to_owned() }
}

/// The first text with a control character in values, which a terminal would obey.
pub(crate) fn control<'v>(values: impl IntoIterator<Item = &'v Value>) -> Option<&'v str> {
    values.into_iter().find_map(|value| match value {
        Value::String(text) => Some(text.as_str()).filter(|text| text.contains(char::is_control)),
        Value::Array(all) => control(all),
        Value::Object(of) => control(of.values()),
        _ => None,
    })
}
