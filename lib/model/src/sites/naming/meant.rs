//! Which call sites a user means by a text.

use super::CallSites;
use crate::num::Exact as _;

impl CallSites {
    /// The sites that a user means by a text that is printed of them: a number (`3`, `site 3`, `site 3, exchange stencil.c:120`),
    /// which means one, or a name ([`CallSites::is_named`]); if it is none, the name of a caller ([`CallSites::is_on_stack`]).
    #[must_use]
    pub fn meant(&self, text: &str) -> Vec<u32> {
        let all = || 0..self.len();
        if let Some(site) = self.numbered(text) {
            return vec![site];
        }
        let named: Vec<u32> = all().filter(|n| self.is_named(*n, text)).collect();
        if named.is_empty() { all().filter(|n| self.is_on_stack(*n, text)).collect() } else { named }
    }

    /// The site whose number a text is, as programs print it: `3`, `site 3`, `site 3, exchange stencil.c:120`.
    #[must_use]
    pub fn numbered(&self, text: &str) -> Option<u32> {
        let number = text.strip_prefix("site ").unwrap_or(text);
        let one = number.parse().ok().filter(|n| *n < self.len());
        one.or_else(|| (0..self.len()).find(|n| self.describe(*n) == text))
    }

    /// Whether a text that a user gives means a site: a text that is printed of its place or of its innermost function or
    /// frame, or what one of these begins with up to the end of a word. So are `exchange`, `stencil.c:120`, `exchange
    /// stencil.c:120`, `/home/me/stencil.c:120`, `solver+0x1234` and `/home/me/solver+0x1234`.
    #[must_use]
    pub fn is_named(&self, number: u32, text: &str) -> bool {
        let begins = |name: &str| begins(name, text);
        let others = self.others.get(number.to_usize());
        !text.is_empty()
            && (begins(self.place(number)) || others.is_some_and(|all| all.iter().any(|n| begins(n))))
    }

    /// Whether a text means a function or a frame of a site's stack, wherever it is in it; as [`CallSites::is_named`]. It does not
    /// depend on what other sites there are.
    #[must_use]
    pub fn is_on_stack(&self, number: u32, text: &str) -> bool {
        let Some(site) = self.table.get(number) else { return false };
        // Labels of synthetic traces are stacks, too: any part of them, or what they begin with.
        let label = site.label.split(" < ").chain([&*site.label]).map(str::to_owned);
        let mut names = site.frames.iter().flat_map(|f| self.names_of(f)).chain(label);
        !text.is_empty() && names.any(|name| begins(&name, text))
    }
}

/// Whether a name begins with a text up to the end of a word, or is what a table without room for it made that text of.
fn begins(name: &str, text: &str) -> bool {
    if let Some(end) = text.strip_prefix('…') {
        return !end.is_empty() && name.ends_with(end);
    }
    if let Some(beginning) = text.strip_suffix('…') {
        return !beginning.is_empty() && name.starts_with(beginning);
    }
    let rest = name.strip_prefix(text);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}
