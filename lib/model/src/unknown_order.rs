//! Whether it is known in which order ranks were slow.

use crate::calls::CallTable;
use crate::calls::roles::Role;
use crate::section::{NO_SYM, Section, Sym, Symbol, Thread};
use crate::sketch::Sketch;

/// Whether ranks of a section may have been slow at the same time without the section knowing: how long they computed varies, by more than a
/// twentieth in all, there are no exact times, nor is the order known, and no rank waits for all.
#[must_use]
pub fn is_unknown(section: &Section) -> bool {
    let varies = |t: &Thread| {
        let known = |sym: Sym| t.slow.iter().any(|slow| slow.sym == sym);
        let gaps = || t.sketches.iter().filter(|s| s.pred != NO_SYM);
        let deviation = |of: &Sketch| u128::from(of.count).saturating_mul(of.variance().isqrt());
        let unknown = gaps().filter(|s| !known(s.sym)).map(|s| deviation(&s.compute));
        let sum = gaps().map(|s| s.compute.sum).fold(0, u128::saturating_add);
        t.ranks.len() > 1 && t.columns.is_empty() && unknown.fold(0, u128::saturating_add) > sum / 20
    };
    let joins = |s: &Symbol| CallTable::builtin().get(s.call).is_some_and(|row| Role::of(row).action.joins());
    section.threads.iter().any(varies) && !section.symbols.iter().any(joins)
}
