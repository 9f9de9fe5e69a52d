//! One stream for all ranks: the first one's values, and the form that leads to the others'.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_model::calls::Meaning;
use st_model::form::{Form, Own};
use st_model::ints::Sealed;

use super::ranks::{Before, Mine, Rules, Stand, rewritten};
use crate::cluster::forms::{self, Candidate, Witness, candidates, independent};
use crate::cluster::rank_view::LONG;
use crate::cluster::signature::Signature;
use crate::codes::{code, decode};

/// Most different values for which forms are looked for.
const DOMAIN: usize = 1024;

/// The first rank's values, and the form that leads to the others'.
#[derive(Debug)]
pub(super) struct One {
    pub(super) form: Form,
    pub(super) own: Own,
    /// Whether ranks call on communicators of different sizes.
    mixed: bool,
    pub(super) values: Sealed,
    pub(super) len: u64,
    pub(super) signature: Signature,
    pub(super) codes: Sealed,
    /// Different values, once they are asked for; `None` inside if they are too many.
    domain: Option<Option<Vec<i64>>>,
    /// The form that a user gave and the first rank's codes, as long as it leads to all ranks.
    user: Option<(Form, Sealed)>,
    /// Whether some rank's values are no function of the first one's: only the user's form leads to them.
    apart: bool,
    witnesses: Vec<Witness>,
    candidates: Option<Vec<Candidate>>,
    next: usize,
}

impl One {
    pub(super) fn new(first: Mine<'_>, user: Option<Form>) -> Self {
        let own = first.own.unwrap_or_default();
        Self {
            form: Form::Absolute,
            mixed: false,
            own,
            values: first.values.clone(),
            len: first.len,
            signature: Signature::of_stream(first.values, first.len),
            codes: first.values.clone(),
            domain: None,
            user: user.and_then(|form| Some((form, code(first.values, form, own, first.len)?))),
            apart: false,
            witnesses: Vec::new(),
            candidates: None,
            next: 0,
        }
    }

    fn take(&mut self, form: Form) {
        let own = self.own;
        self.codes = rewritten(&self.values, self.len, |v| form.code(v, own));
        self.form = form;
    }

    /// Whether the form may be that of a rank's calls, too: grids are of communicators of one size.
    pub(super) fn suits(&mut self, own: Own, plain: bool) -> bool {
        if plain || self.mixed || own.size == self.own.size {
            return true;
        }
        self.mixed = true;
        self.candidates.iter_mut().for_each(|all| all.retain(|c| c.of_any_size()));
        self.form == Form::Absolute || self.is_users() || Candidate::Fixed(self.form).of_any_size()
    }

    /// Whether there are more ranks than it takes to fit the form, or another one can be found: as many factors as ranks explain
    /// anything.
    pub(super) fn determine(&mut self, before: Before<'_>) -> bool {
        loop {
            let Some(Candidate::Fitted(grid)) =
                self.candidates.as_ref().and_then(|all| all.get(self.next)).copied()
            else {
                return true;
            };
            let others = before.ranks.iter().map(|r| before.owns.of(r));
            if self.form == Form::Absolute || before.ranks.len() >= independent(grid, self.own, others) + 2 {
                return true;
            }
            self.next += 1;
            if !self.search(before) {
                return false;
            }
        }
    }

    /// Makes the values those that stand for a rank's, too.
    pub(super) fn bound(&mut self, stand: Stand, mine: Mine<'_>) {
        let one = match stand {
            Stand::First => return,
            Stand::Least => i64::min,
            Stand::Most => i64::max,
        };
        if self.form != Form::Absolute || self.len != mine.len || self.len > LONG {
            return;
        }
        let (mut a, mut b) = (self.values.cursor(), mine.values.cursor());
        self.values = match (self.values.constant(), mine.values.constant()) {
            (Some(a), Some(b)) => Sealed::from_constant(one(a, b)),
            _ => (0..self.len).map(|_| one(a.next(), b.next())).collect(),
        };
        self.signature = Signature::of_stream(&self.values, self.len);
        self.codes = self.values.clone();
        self.domain = None;
    }

    /// Whether the form leads to a rank's values.
    pub(super) fn leads_to(&self, mine: Mine<'_>) -> bool {
        if mine.len != self.len {
            return false;
        }
        if self.form == Form::Absolute {
            return *mine.values == self.values
                || Signature::of_stream(mine.values, mine.len) == self.signature;
        }
        // Of the user's form that has been noted.
        if self.is_users() { self.user.is_some() } else { leads_by(self.form, &self.codes, mine) }
    }

    /// Whether the form leads to the values of ranks whose codes are these in another form, without taking the streams apart for
    /// each.
    pub(super) fn leads_to_all(&self, form: Form, codes: &Sealed, owns: &[(u32, Option<Own>)]) -> bool {
        if form.counts() || self.form.counts() {
            return false;
        }
        let Some(pairs) = together(codes, &self.codes, self.len) else { return false };
        owns.iter().all(|(_, own)| {
            let own = own.unwrap_or_default();
            pairs.iter().all(|(theirs, ours)| form.value(*theirs, own) == forms::value(self.form, *ours, own))
        })
    }

    /// Notes whether the user's form still leads to all ranks with one more.
    pub(super) fn note(&mut self, mine: Mine<'_>) {
        if self
            .user
            .as_ref()
            .is_some_and(|(form, codes)| mine.len != self.len || !leads_by(*form, codes, mine))
        {
            self.user = None;
        }
    }

    /// Whether it takes looking at a rank to know that the user's form leads to it, too.
    pub(super) fn asks_user(&self) -> bool {
        self.user.is_some() && !self.is_users()
    }

    /// Whether the form is the one that a user gave.
    fn is_users(&self) -> bool {
        matches!(self.form, Form::User(_))
    }

    /// A rank's values, to which the user's form leads.
    pub(super) fn users_values(&self, own: Own) -> Option<Sealed> {
        decode(&self.codes, self.form, own, self.len).filter(|_| self.is_users())
    }

    /// Looks for a form that leads to one more rank's values.
    pub(super) fn widen(&mut self, how: (Meaning, Rules), mine: Mine<'_>, before: Before<'_>) -> bool {
        let (Some(own), true) = (mine.own, mine.len == self.len) else { return false };
        match self.domain().is_some().then(|| pairs(&self.values, mine.values, self.len)).flatten() {
            Some(pairs) => self.witnesses.push(Witness { own, pairs }),
            None if self.user.is_none() => return false,
            None => self.apart = true,
        }
        if self.candidates.is_none() {
            let (meaning, rules) = how;
            let mut all = match (rules, meaning) {
                (Rules::Common, _) => candidates(meaning, self.own.size),
                (_, Meaning::Rank) => vec![Candidate::Fixed(rules.of_peers())],
                (_, Meaning::Int) => vec![Candidate::Fixed(Form::RELATIVE)],
                _ => Vec::new(),
            };
            if self.user.is_some() {
                // As st-merge prefers forms of equal worth: a text takes more bytes than any other.
                all.push(Candidate::User);
            }
            all.retain(|c| !self.mixed || c.of_any_size());
            self.candidates = Some(all);
        }
        self.search(before)
    }

    /// Takes the first form from the next on that leads to all ranks.
    fn search(&mut self, before: Before<'_>) -> bool {
        let (first, current) = (self.own, self.form);
        let domain = self.domain().map(<[i64]>::to_vec);
        let Some(all) = &self.candidates else { return false };
        while let Some(candidate) = all.get(self.next) {
            if *candidate == Candidate::User
                && let Some((form, codes)) = &self.user
            {
                (self.form, self.codes) = (*form, codes.clone());
                return true;
            }
            let Some(domain) = domain.as_ref().filter(|_| !self.apart) else {
                self.next += 1;
                continue;
            };
            let Some(form) = candidate.form(first, &self.witnesses) else {
                self.next += 1;
                continue;
            };
            // What the ranks before have follows from the form that follows to them.
            let pairs_of = |own| -> Option<Vec<(i64, i64)>> {
                if current.counts() {
                    let values = decode(&self.codes, current, own, self.len)?;
                    return pairs(&self.values, &values, self.len);
                }
                Some(domain.iter().map(|v| (*v, current.value(current.code(*v, first), own))).collect())
            };
            let against = before.ranks.iter().find_map(|rank| {
                let own = before.owns.of(rank);
                let pairs = pairs_of(own);
                let follows = pairs.as_ref().is_some_and(|pairs| forms::leads(form, first, own, pairs));
                (!follows).then_some((own, pairs))
            });
            match against {
                None => {
                    self.take(form);
                    return true;
                }
                Some((own, Some(pairs))) => self.witnesses.push(Witness { own, pairs }),
                Some((_, None)) => self.apart = true,
            }
        }
        false
    }

    /// The different values, if they are few.
    pub(super) fn domain(&mut self) -> Option<&[i64]> {
        let (values, len) = (&self.values, self.len);
        let found = self.domain.get_or_insert_with(|| {
            let same = pairs(values, values, len)?;
            Some(same.into_iter().map(|(v, _)| v).collect())
        });
        found.as_deref()
    }
}

/// Whether a form leads from codes to a rank's values.
fn leads_by(form: Form, codes: &Sealed, mine: Mine<'_>) -> bool {
    let Some(own) = mine.own else { return false };
    if form.counts() {
        return code(mine.values, form, own, mine.len).is_some_and(|mine| mine == *codes);
    }
    let value = |c| forms::value(form, c, own);
    mine.values.is_mapped(codes, value)
        || Signature::of_stream(mine.values, mine.len)
            == codes.product(mine.len, |c| Signature::of_value(value(c)))
}

/// Which values stand in the place of which, all pairs; `None` if there are too many.
fn together(a: &Sealed, b: &Sealed, len: u64) -> Option<Vec<(i64, i64)>> {
    if len > LONG {
        return None;
    }
    let mut found: HashSet<(i64, i64), FixedState> = HashSet::default();
    let (mut x, mut y) = (a.cursor(), b.cursor());
    for _ in 0..len {
        found.insert((x.next(), y.next()));
        if found.len() > DOMAIN {
            return None;
        }
    }
    Some(found.into_iter().collect())
}

/// Which values stand in the place of which, each once; `None` if there are too many or one has several.
fn pairs(a: &Sealed, b: &Sealed, len: u64) -> Option<Vec<(i64, i64)>> {
    let mut found: HashMap<i64, i64, FixedState> = HashMap::default();
    let mut out = Vec::new();
    if len > LONG {
        return None;
    }
    let (mut x, mut y) = (a.cursor(), b.cursor());
    for _ in 0..len {
        let (v, w) = (x.next(), y.next());
        let known = *found.entry(v).or_insert_with(|| {
            out.push((v, w));
            w
        });
        if known != w || out.len() > DOMAIN {
            return None;
        }
    }
    Some(out)
}
