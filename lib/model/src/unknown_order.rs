//! Whether it is known in which order ranks were slow.

use crate::calls::CallTable;
use crate::calls::roles::{Action, Role, Rule, Start};
use crate::section::{NO_SYM, Section, Sym, Symbol, Thread};

/// Whether ranks of a section may have been slow at the same time without the section knowing: how long they computed varies, by more than a
/// twentieth in all, there are no exact times, nor is the order known, and no rank waits for all.
#[must_use]
pub fn is_unknown(section: &Section) -> bool {
    let varies = |t: &Thread| {
        let known = |sym: Sym| t.slow.iter().any(|slow| slow.sym == sym);
        let gaps = || t.sketches.iter().filter(|s| s.pred != NO_SYM);
        let deviation =
            |of: &crate::sketch::Sketch| u128::from(of.count).saturating_mul(of.variance().isqrt());
        let unknown = gaps().filter(|s| !known(s.sym)).map(|s| deviation(&s.compute));
        let sum = gaps().map(|s| s.compute.sum).fold(0, u128::saturating_add);
        t.ranks.len() > 1 && t.columns.is_empty() && unknown.fold(0, u128::saturating_add) > sum / 20
    };
    let joins = |s: &Symbol| CallTable::builtin().get(s.call).is_some_and(|row| joins(Role::of(row).action));
    section.threads.iter().any(varies) && !section.symbols.iter().any(joins)
}

/// Whether a blocking call is left by nobody before all of its communicator have come.
#[must_use]
pub fn joins(action: Action) -> bool {
    matches!(
        action,
        Action::Collective {
            rule: Rule::Barrier
                | Rule::Allgather
                | Rule::Allgatherv
                | Rule::Alltoall
                | Rule::Alltoallv
                | Rule::Allreduce
                | Rule::ReduceScatter,
            start: Start::Blocking
        }
    )
}
