//! What a user knows: expressions for parameters of calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use st_model::calls::{CallId, CallTable};
use st_model::expr::{self, Expr};
use st_model::form::Form;
use st_model::section::Section;
use st_model::sites::{CallSites, Site, SiteTable};

/// An expression for a slot of a function's calls, or of the calls from a place.
#[derive(Debug, Clone)]
pub struct Param {
    call: Option<CallId>,
    /// A function or a frame of call sites' stacks, or how it begins.
    place: String,
    /// Which call sites that means, of those met by this one and its copies.
    sites: Arc<Mutex<HashMap<u128, bool>>>,
    slot: String,
    expr: Expr,
    /// As it was given.
    target: String,
    /// Of this one and its copies.
    met: Arc<AtomicBool>,
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)
    }
}

/// Why an expression for a parameter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The target is not of the form that it must have.
    #[error("{0}: not FUNCTION:PARAMETER, FUNCTION@PLACE:PARAMETER or @PLACE:PARAMETER")]
    Target(String),
    /// There is no such function.
    #[error("{0}: no function of the call table")]
    Function(String),
    /// The function has no such parameter.
    #[error("{function} has no parameter {slot}; it has {has}")]
    Slot {
        /// The function.
        function: String,
        /// The parameter asked for.
        slot: String,
        /// Its parameters.
        has: String,
    },
    /// No expression.
    #[error("{text}")]
    Expr {
        /// The text.
        text: String,
        /// What is wrong with it.
        #[source]
        source: expr::Error,
    },
    /// A definition that is none.
    #[error("{0}: not NAME=NUMBER")]
    Let(String),
}

/// Named constants from `NAME=NUMBER`, where numbers are expressions of constants before them.
///
/// # Errors
///
/// If one is something else.
pub fn constants(definitions: &[String]) -> Result<HashMap<String, i64>, Error> {
    let mut all = HashMap::new();
    for text in definitions {
        let bad = || Error::Let(text.clone());
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let named = begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !named || ["me", "size", "n"].contains(&name) {
            return Err(bad());
        }
        let parsed = Expr::parse(value, &all).map_err(|source| Error::Expr { text: text.clone(), source })?;
        let value = parsed.constant().ok_or_else(bad)?;
        all.insert(name.to_owned(), value);
    }
    Ok(all)
}

impl Param {
    /// From a target such as `MPI_Send:dest[n%2==0]` or `MPI_Send@cg.f:12:dest`, and an expression.
    ///
    /// # Errors
    ///
    /// If one of them cannot be understood.
    pub fn new(target: &str, text: &str, constants: &HashMap<String, i64>) -> Result<Self, Error> {
        let bad = || Error::Target(target.to_owned());
        let parse = |text: &str| {
            Expr::parse(text, constants).map_err(|source| Error::Expr { text: text.to_owned(), source })
        };
        let (head, condition) = match target.split_once('[') {
            Some((head, rest)) => (head, Some(rest.strip_suffix(']').ok_or_else(bad)?)),
            None => (target, None),
        };
        let (calls, slot) = head.rsplit_once(':').ok_or_else(bad)?;
        let (function, place) = calls.split_once('@').unwrap_or((calls, ""));
        if slot.is_empty() || calls.is_empty() {
            return Err(bad());
        }
        let call = if function.is_empty() { None } else { Some(known(function, slot)?) };
        let mut expr = parse(text)?;
        if let Some(condition) = condition {
            let nothing = parse("0")?;
            let condition = parse(condition)?;
            expr = expr
                .only_if(condition, nothing)
                .map_err(|source| Error::Expr { text: text.to_owned(), source })?;
        }
        Ok(Self {
            call,
            place: place.to_owned(),
            sites: Arc::default(),
            slot: slot.to_owned(),
            expr,
            target: target.to_owned(),
            met: Arc::default(),
        })
    }

    /// Whether it is for the calls of a table's site.
    fn means(&self, table: &SiteTable, site: &Site) -> bool {
        let mut known = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(site.id).or_insert_with(|| {
            let mut alone = SiteTable::new();
            let number = alone.adopt(table, site);
            alone.set_names(table.names().clone());
            CallSites::new(alone).is_on_stack(number, &self.place)
        })
    }

    /// Whether some call was met that it is for.
    #[must_use]
    pub fn met(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }
}

fn known(function: &str, slot: &str) -> Result<CallId, Error> {
    let row = CallTable::builtin().by_name(function).ok_or_else(|| Error::Function(function.to_owned()))?;
    if !row.slots.iter().any(|s| s.name == slot) {
        let has = row.slots.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Error::Slot { function: function.to_owned(), slot: slot.to_owned(), has });
    }
    Ok(row.id)
}

/// The form that users' expressions give to a slot of a symbol of a section: the sum of those that apply, of which
/// conditions leave at most one different from 0.
pub(crate) fn form(params: &[Param], section: &Section, sym: usize, slot: &str) -> Option<Form> {
    let symbol = section.symbols.get(sym)?;
    let mut found: Option<Expr> = None;
    for p in params.iter().filter(|p| p.slot == slot && p.call.is_none_or(|c| c == symbol.call)) {
        let site = section.sites.get(symbol.site);
        if !p.place.is_empty() && !site.is_some_and(|s| p.means(&section.sites, s)) {
            continue;
        }
        p.met.store(true, Ordering::Relaxed);
        found = match found {
            None => Some(p.expr),
            Some(before) => before.plus(p.expr).ok().or(Some(before)),
        };
    }
    found.map(Form::User)
}
