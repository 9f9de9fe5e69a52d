//! Which call sites a user means by a text.

use super::CallSites;
use crate::num::Exact as _;

impl CallSites {
    /// The sites that a user means by a text that is printed of them: a number (`3`, `site 3`, `site 3, exchange stencil.c:120`),
    /// which means one, or a name ([`Meaning::is_named`]); if it is none, the name of a caller ([`Meaning::is_on_stack`]).
    #[must_use]
    pub fn meant(&self, text: &str) -> Vec<u32> {
        let all = || 0..self.len();
        if let Some(site) = self.numbered(text) {
            return vec![site];
        }
        let meaning = self.meaning(text);
        let named: Vec<u32> = all().filter(|n| meaning.is_named(*n)).collect();
        if named.is_empty() { all().filter(|n| meaning.is_on_stack(*n)).collect() } else { named }
    }

    /// What a text that a user gives means among these sites. *Cost:* that of all their names.
    #[must_use]
    pub fn meaning<'a>(&'a self, text: &'a str) -> Meaning<'a> {
        let mut meaning = Meaning { sites: self, text, function: true };
        meaning.function = (0..self.len()).any(|n| meaning.is_on_stack(n));
        meaning
    }

    /// The site whose number a text is, as programs print it: `3`, `site 3`, `site 3, exchange stencil.c:120`.
    #[must_use]
    pub fn numbered(&self, text: &str) -> Option<u32> {
        let number = text.strip_prefix("site ").unwrap_or(text);
        let one = number.parse().ok().filter(|n| *n < self.len());
        one.or_else(|| (0..self.len()).find(|n| self.describe(*n) == text))
    }
}

/// What a text means.
#[derive(Clone, Copy, Debug)]
pub struct Meaning<'a> {
    sites: &'a CallSites,
    text: &'a str,
    /// A function has that name: files and programs of the same name are not meant.
    function: bool,
}

impl Meaning<'_> {
    /// Whether a site is meant: by a text that is printed of its place or of its innermost function or
    /// frame, or by what one of these begins with up to the end of a word. So are `exchange`, `stencil.c:120`, `exchange
    /// stencil.c:120`, `/home/me/stencil.c:120`, `solver+0x1234` and `/home/me/solver+0x1234`.
    #[must_use]
    pub fn is_named(&self, number: u32) -> bool {
        let others = self.sites.others.get(number.to_usize());
        self.begins(self.sites.place(number)) || others.is_some_and(|all| all.iter().any(|n| self.begins(n)))
    }

    /// Whether a function or a frame of a site's stack is meant, wherever it is in it; as [`Meaning::is_named`].
    #[must_use]
    pub fn is_on_stack(&self, number: u32) -> bool {
        let Some(site) = self.sites.table.get(number) else { return false };
        // Labels of synthetic traces are stacks, too: any part of them, or what they begin with.
        let label = site.label.split(" < ").chain([&*site.label]).map(str::to_owned);
        let mut names = site.frames.iter().flat_map(|f| self.sites.names_of(f)).chain(label);
        names.any(|name| self.begins(&name))
    }

    /// Whether a name begins with the text up to the end of a word, or is what a table without room for it made that text of. A
    /// function's name ends where what it takes, or its place, follows.
    fn begins(&self, name: &str) -> bool {
        if let Some(end) = self.text.strip_prefix('…') {
            return !end.is_empty() && name.ends_with(end);
        }
        if let Some(beginning) = self.text.strip_suffix('…') {
            return !beginning.is_empty() && name.starts_with(beginning);
        }
        let Some(rest) = name.strip_prefix(self.text).filter(|_| !self.text.is_empty()) else { return false };
        match rest.chars().next() {
            None => true,
            Some(c) if self.function => matches!(c, ' ' | '(' | '<'),
            Some(c) => !(c.is_alphanumeric() || c == '_'),
        }
    }
}
