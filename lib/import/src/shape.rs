//! What is known of a function's fields beforehand.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::{CallId, Length, Meaning, Param, Row};
use st_stream::json::read::keys;
use st_stream::json::{INDEX, OUTCOUNT};

/// A slot as a field of a line.
#[derive(Debug)]
pub(crate) struct Field {
    /// What it is called.
    pub(crate) key: String,
    /// Role of its parameter; none of what a status or a completion has.
    pub(crate) role: &'static str,
    /// The field of the list whose length it is.
    pub(crate) length_of: Option<String>,
}

impl Field {
    /// Whether it is a request that the call makes.
    pub(crate) fn makes_request(&self) -> bool {
        matches!(self.role, "newrequest" | "newmessage")
    }

    /// Whether it is a request that is no more when the call is done.
    pub(crate) fn frees_request(&self) -> bool {
        matches!(self.role, "freerequest" | "message")
    }
}

/// A function and its fields, in the order of its slots.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) row: &'static Row,
    pub(crate) fields: Vec<Field>,
    /// Whether a field is of each completed request.
    lists: Vec<bool>,
}

/// Fields that calls of all functions may have.
const ALL: [&str; 8] = ["rank", "thread", "i", "call", "site", "enter", "exit", "error"];

/// Whether a field is one that calls of all functions may have.
pub(crate) fn is_common(key: &str) -> bool {
    ALL.contains(&key)
}

/// Roles of parameters that are one request.
const REQUEST: [&str; 7] =
    ["newrequest", "startrequest", "freerequest", "cancelrequest", "queryrequest", "newmessage", "message"];

impl Shape {
    fn of(row: &'static Row) -> Self {
        // The n-th request of the slots is the n-th of the parameters.
        let mut requests = row.params.iter().filter(|p| REQUEST.contains(&p.role.as_str()));
        let mut fields = Vec::new();
        for (slot, key) in row.slots.iter().zip(keys(row)) {
            let of = match slot.name.as_str() {
                "request" if !slot.list => requests.next(),
                name => row.params.iter().find(|p| p.name == name),
            };
            let at = of.and_then(|of| row.params.iter().position(|p| std::ptr::eq(p, of)));
            let counts = |p: &&Param| matches!(p.length, Length::Param(n) if Some(n) == at);
            let list = row.params.iter().find(counts).map(|p| match p.role.as_str() {
                "requests" | "startrequests" => "requests".to_owned(),
                _ => p.name.clone(),
            });
            fields.push(Field { key, role: of.map_or("", |p| &p.role), length_of: list });
        }
        let first = row.slots.iter().position(|slot| slot.meaning == Meaning::Position);
        let lists =
            (0..fields.len()).map(|i| first.is_some_and(|first| i > first && i <= first + 3)).collect();
        Self { row, fields, lists }
    }

    /// Whether a field means something in calls of the function.
    pub(crate) fn knows(&self, key: &str) -> bool {
        let single = key == "request" && self.fields.iter().any(|f| f.key == "requests");
        // What each completed request got stands in the list of these.
        let fields = self.fields.iter().zip(&self.lists).filter(|(_, inner)| !**inner);
        // No request was active, as that none is completed says already.
        let none = [OUTCOUNT, INDEX].contains(&key) && self.lists.contains(&true);
        is_common(key) || single || none || fields.into_iter().any(|(f, _)| f.key == key)
    }
}

/// Those of the functions that have been met.
#[derive(Debug, Default)]
pub(crate) struct Shapes(HashMap<CallId, Shape, FixedState>);

impl Shapes {
    pub(crate) fn of(&mut self, row: &'static Row) -> &Shape {
        self.0.entry(row.id).or_insert_with(|| Shape::of(row))
    }
}
