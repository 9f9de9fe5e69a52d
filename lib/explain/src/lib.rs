//! Where a program waits, and for whom: [`analyse`] goes over all threads of a trace in the order of their exact times,
//! finds who meets whom as it happens, and adds up the wait states.
//!
//! Source of the definitions: Scalasca's trace analyser, version 2.5; of the efficiencies: the POP centre.

mod analysis;
mod efficiency;
mod findings;
mod ledger;
mod messages;
mod operations;
mod phases;
mod places;
mod slab;
mod transfers;
mod waits;

pub use analysis::{Analysis, PlaceTotals, RankTotals, TINY, Unmatched, Waited, analyse, analyse_each};
pub use efficiency::Efficiency;
pub use findings::{Excess, Finding, Matter};
pub use phases::{Loop, Moment, PhasesBy, phases, sum};
pub use places::{Place, Places};
pub use transfers::{Fit, Transfers};
pub use waits::{At, Kind, Sum, Wait, Waits};
