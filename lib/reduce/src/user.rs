//! What a user knows: expressions for parameters of calls.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use st_model::calls::{CallId, CallTable};
use st_model::expr::{self, Expr};
use st_model::form::Form;
use st_model::section::{Section, Symbol};
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
    /// A number of a call site, where not all call sites are known.
    #[error("--param {0}: numbers of call sites take files, which can be read twice; names do not")]
    Number(String),
    /// It is for none of the calls.
    #[error("--param {target}: there are no such calls{others}")]
    Unmet {
        /// The target.
        target: String,
        /// Targets that would have been met.
        others: String,
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
        // Names of functions may have brackets, too.
        let (head, condition) = match target.strip_suffix(']').and_then(|all| all.rsplit_once('[')) {
            Some((head, condition)) => (head, Some(condition)),
            None => (target, None),
        };
        let (calls, slot) = head.rsplit_once(':').ok_or_else(bad)?;
        let (function, place) = calls.split_once('@').unwrap_or((calls, ""));
        if slot.is_empty() || calls.is_empty() || slot.contains('[') {
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
        })
    }

    /// Whether it is for the calls of a table's site.
    fn means(&self, table: &SiteTable, site: &Site) -> bool {
        let mut known = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(site.id).or_insert_with(|| {
            let mut alone = SiteTable::new();
            let number = alone.adopt(table, site);
            alone.set_names(table.names().clone());
            CallSites::new(alone).meaning(&self.place).is_on_stack(number)
        })
    }

    /// Whether it is for a symbol's calls, if they have its parameter.
    fn is_for(&self, section: &Section, symbol: Symbol) -> bool {
        let here = |site| self.means(&section.sites, site);
        self.call.is_none_or(|call| call == symbol.call)
            && (self.place.is_empty() || section.sites.get(symbol.site).is_some_and(here))
    }
}

/// Finds the call sites that expressions, and copies of these, are for, among all of an input, by what programs print of them:
/// numbers, too. Where not all of them are known, each is found by its own names when it is met.
///
/// # Errors
///
/// If one is a number then.
pub fn find(params: &[Param], all: Option<&CallSites>) -> Result<(), Error> {
    for p in params.iter().filter(|p| !p.place.is_empty()) {
        let Some(all) = all else {
            let number = p.place.strip_prefix("site ").unwrap_or(&p.place);
            if number.starts_with(|c: char| c.is_ascii_digit()) && number.parse::<u32>().is_ok() {
                return Err(Error::Number(p.target.clone()));
            }
            continue;
        };
        let one = all.numbered(&p.place);
        let meaning = all.meaning(&p.place);
        let named = |n| meaning.is_named(n) || meaning.is_on_stack(n);
        let mut known = p.sites.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, site) in (0..).zip(all.table().sites()) {
            known.insert(site.id, one.map_or_else(|| named(n), |one| one == n));
        }
    }
    Ok(())
}

/// Most targets that are named.
const NAMED: usize = 4;

/// Whether each expression is for some of the sections' calls.
///
/// # Errors
///
/// Of the first that is for none: which targets would be for some.
pub fn check(params: &[Param], sections: &[Section]) -> Result<(), Error> {
    let symbols = || sections.iter().flat_map(|s| s.symbols.iter().map(move |symbol| (s, *symbol)));
    for p in params {
        let has = |symbol: &Symbol| CallTable::builtin().slots(symbol.call).iter().any(|s| s.name == p.slot);
        if !symbols().any(|(section, symbol)| has(&symbol) && p.is_for(section, symbol)) {
            return Err(Error::Unmet { target: p.target.clone(), others: others(p, sections, has) });
        }
    }
    Ok(())
}

/// Targets that would be met in the place of one that is not: of other places, else of other functions.
fn others(p: &Param, sections: &[Section], has: impl Fn(&Symbol) -> bool) -> String {
    let name = |symbol: &Symbol| CallTable::builtin().get(symbol.call).map_or("", |row| &*row.name);
    let (mut here, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for section in sections {
        let sites = CallSites::of([&section.sites]);
        for symbol in section.symbols.iter().filter(|s| has(s)) {
            elsewhere.insert(format!("{}:{}", name(symbol), p.slot));
            let place = sites.apart(symbol.site).unwrap_or_else(|| sites.place(symbol.site));
            if p.call.is_none_or(|call| call == symbol.call) && !place.is_empty() {
                here.insert(format!("{}@{place}:{}", name(symbol), p.slot));
            }
        }
    }
    let all = if here.is_empty() { elsewhere } else { here };
    let mut listed: Vec<String> = all.iter().take(NAMED).cloned().collect();
    if all.len() > NAMED {
        listed.push(format!("{} more", all.len() - NAMED));
    }
    if listed.is_empty() { format!(", none has {}", p.slot) } else { format!(", but {}", listed.join(", ")) }
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
    for p in params.iter().filter(|p| p.slot == slot && p.is_for(section, *symbol)) {
        found = match found {
            None => Some(p.expr),
            Some(before) => before.plus(p.expr).ok().or(Some(before)),
        };
    }
    found.map(Form::User)
}
