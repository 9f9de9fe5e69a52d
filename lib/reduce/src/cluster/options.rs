//! How ranks are put together.

use crate::cluster::tolerance::Tolerance;
use crate::lossy::ParamKind;
use crate::user::Param;

/// Which signatures tell ranks apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Signatures {
    /// 128 bits over calls in their order, parameters in the form that makes most ranks equal; nothing is lost
    #[default]
    Exact,
    /// The 64 bits of Bahmani and Mueller 2014: the first rank's calls and counts stand for all of a cluster, and the lanes in
    /// which they are not what others did are void. Partners are relative modulo the number of ranks
    Paper,
    /// All calls with all parameters as they are, peers relative to the own rank (the paper's reference); nothing is lost
    Reference,
}

/// How ranks are put together.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What tells them apart.
    pub signatures: Signatures,
    /// Differences between counts that do not.
    pub tolerance: Option<Tolerance>,
    /// Whether exact times of all ranks are kept, not only of the first of each main cluster.
    pub keep_columns: bool,
    /// Expressions for parameters.
    pub users: Vec<Param>,
    /// Parameters that do not tell ranks apart: where they differ, a histogram takes their place.
    pub force_merge: Vec<ParamKind>,
    /// Whether what ranks asked of their own place (coordinates, neighbours) tells them apart, too. It is kept in any case.
    pub asked: bool,
}
