//! Texts that are said once, and their numbers.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use st_model::num::Exact as _;

use super::schema::{DebugAnnotation, Interned, InternedData};

/// Texts of one kind.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<String, u64, FixedState>,
    new: Vec<Interned>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let iid = self.numbers.len().to_u64() + 1;
        self.numbers.insert(text.to_owned(), iid);
        self.new.push(Interned { iid, name: text.to_owned() });
        iid
    }
}

/// All texts of a sequence of packets.
#[derive(Debug, Default)]
pub(super) struct Interning {
    categories: Texts,
    names: Texts,
    keys: Texts,
    texts: Texts,
}

impl Interning {
    pub(super) fn category(&mut self, text: &str) -> u64 {
        self.categories.number(text)
    }
    pub(super) fn name(&mut self, text: &str) -> u64 {
        self.names.number(text)
    }

    /// The fields of an object; those that have no value are left out.
    pub(super) fn annotations(&mut self, object: Map<String, Value>) -> Vec<DebugAnnotation> {
        let there = object.into_iter().filter(|(_, value)| !value.is_null());
        there
            .map(|(name, value)| {
                let name_iid = self.keys.number(&name);
                DebugAnnotation { name_iid, ..self.annotation(value) }
            })
            .collect()
    }

    fn annotation(&mut self, value: Value) -> DebugAnnotation {
        let mut annotation = DebugAnnotation::default();
        match value {
            Value::Bool(value) => annotation.bool_value = Some(value),
            Value::Number(n) if n.is_i64() => annotation.int_value = n.as_i64(),
            Value::Array(values) => {
                annotation.array_values = values.into_iter().map(|value| self.annotation(value)).collect();
            }
            Value::Object(object) => annotation.dict_entries = self.annotations(object),
            Value::String(text) => annotation.string_value_iid = Some(self.texts.number(&text)),
            other => annotation.string_value_iid = Some(self.texts.number(&other.to_string())),
        }
        annotation
    }

    /// What has been numbered since the last packet, for the next one.
    pub(super) fn take_new(&mut self) -> Option<InternedData> {
        let take = |texts: &mut Texts| std::mem::take(&mut texts.new);
        let data = InternedData {
            event_categories: take(&mut self.categories),
            event_names: take(&mut self.names),
            debug_annotation_names: take(&mut self.keys),
            debug_annotation_string_values: take(&mut self.texts),
        };
        let new = [
            &data.event_categories,
            &data.event_names,
            &data.debug_annotation_names,
            &data.debug_annotation_string_values,
        ];
        new.iter().any(|list| !list.is_empty()).then_some(data)
    }
}
