//! What a run would take under other conditions: on another network, with computation faster or balanced.
//!
//! The search for waits tells a trace's steps ([`RunStep`]): what threads compute, what they send, receive and take part in.
//! A walk over the steps ([`walk`]) finds when each thread is where. A network is fitted to the trace's own messages
//! ([`Model`]); what a call takes beyond the waiting that this network explains is its own, and is kept. The same walk over
//! an ideal network goes along with each search ([`crate::Efficiency::ideal`]).

mod measure;
mod network;
mod pace;
mod scenario;
mod seeing;
mod step;
mod steps;
mod together;
mod walk;

pub use measure::Model;
pub use network::{Link, Network};
pub(crate) use pace::{Calls, Changed, Means, Recorded, Summing};
pub use scenario::Scenario;
pub(crate) use seeing::Seeing;
pub(crate) use step::{Call, Does, Reach, RunStep, Sending};
pub(crate) use steps::Steps;
pub(crate) use walk::Walk;
