//! Lines of the text form as words. A word ends at a space outside quotes and brackets.

use st_model::calls::{CallId, CallTable};
use st_model::section::Section;

/// The words of a line.
#[derive(Debug, Clone)]
pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line.trim() }
    }

    /// What has not been taken yet.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start_matches(' ');
        let (mut depth, mut quoted, mut escaped) = (0u32, false, false);
        let mut end = self.rest.len();
        for (i, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ if quoted => {}
                '<' | '[' => depth += 1,
                '>' | ']' => depth = depth.saturating_sub(1),
                ' ' if depth == 0 => {
                    end = i;
                    break;
                }
                _ => {}
            }
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

/// A string as JSON writes it.
pub(super) fn quote(s: &str) -> String {
    serde_json::Value::from(s).to_string()
}

/// Reads what [`quote`] wrote.
pub(super) fn unquote(word: &str) -> Option<String> {
    serde_json::from_str(word).ok()
}

/// Name of a function; its number, where a name would not lead back to it.
pub(super) fn call_name(s: &Section, call: CallId) -> String {
    match CallTable::builtin().get(call) {
        Some(row) => row.name.clone(),
        None => s
            .tables
            .names
            .get(&call)
            .map_or_else(|| call.0.to_string(), |n| format!("{}/{}", call.0, quote(n))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_quotes_hold_spaces() {
        let line = r#"  a <1 0 4 1>+<1 9 1 0> "x \" > y" [1 <2x*>] | b"#;
        let words: Vec<_> = Words::new(line).collect();
        assert_eq!(words, ["a", "<1 0 4 1>+<1 9 1 0>", r#""x \" > y""#, "[1 <2x*>]", "|", "b"]);
        assert_eq!(unquote(words[2]).unwrap(), r#"x " > y"#);
        assert_eq!(unquote(&quote("a\nb\u{7f}")).unwrap(), "a\nb\u{7f}");
    }
}
