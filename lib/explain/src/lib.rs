//! Where a program waits, and for whom: [`analyse`] goes over all threads of a trace in the order of their exact times,
//! finds who meets whom as it happens, and adds up the wait states. [`analyse_causes`] keeps what each thread did when, too,
//! for [`Analysis::delays`], who is at fault for waits, and [`Analysis::path`], what the run time is made of. [`Prediction`] says
//! what the run would take under other conditions.
//!
//! Source of the definitions: Scalasca's trace analyser, version 2.5; of the efficiencies: the POP centre.

mod ahead;
mod analysis;
mod calls;
mod chain;
mod cursor;
mod delays;
mod doubts;
mod efficiency;
mod findings;
mod folding;
mod gathered;
mod joined;
mod joint;
mod keep;
mod kept;
mod lengths;
mod matter;
mod meetings;
mod messages;
mod noise;
mod operations;
mod order;
mod own;
mod path;
mod pending_calls;
mod phases;
mod places;
mod polls;
mod predict;
mod prediction;
mod progress;
mod reading;
mod search;
mod serial;
mod shared;
mod sizes;
mod slow;
mod throttled;
mod timeline;
mod transfers;
mod usual;
mod waits;

pub use analysis::{Analysis, Called, Message, PlaceTotals, RankTotals, Thread, Unmatched, Waited};
pub use delays::{Cost, Delays, whole_ns};
pub use efficiency::Efficiency;
pub use findings::{Excess, Finding, Noise, has_short_waits};
pub use folding::{Folding, Unkept};
pub use gathered::gathered;
pub use joined::joined;
pub use kept::{Explains, Kept};
pub use lengths::Few;
pub use matter::Matter;
pub use own::{LONG, SHORT};
pub use path::{OnPath, Path, Stay};
pub use phases::{Loop, LoopId, Moment, PhasesBy, Stretch, loops, phases, stretches, sum, waits_of_leads};
pub use places::Places;
pub use predict::{Link, Model, Network, Scenario};
pub use prediction::Prediction;
pub use search::{Tell, analyse, analyse_all, analyse_causes, analyse_each};
pub use sizes::KEPT;
pub use st_model::explanation::Place;
pub use timeline::{Activity, Doing};
pub use transfers::{Fit, Transfers};
pub use waits::{At, Sum, Wait, WaitKind, Waits};
