//! What the words of a call refer to.

use st_model::calls::{Object, Slot};

use crate::shape::Field;

/// The objects and requests of the rank that makes a call.
pub(crate) trait Numbers {
    /// Number of an object, by its name, in a slot of the call.
    ///
    /// # Errors
    ///
    /// If nothing is known of it.
    fn object(&mut self, object: Object, slot: &Slot, name: &str) -> Result<i64, String>;

    /// Number of a request, by its name, which the call makes or uses.
    ///
    /// # Errors
    ///
    /// If one of that name is under way.
    fn request(&mut self, name: &str, makes: bool) -> Result<i64, String>;

    /// Says that a call makes, frees or only uses a request by its number.
    ///
    /// # Errors
    ///
    /// If it cannot be one, or one of that number is under way.
    fn numbered_request(&mut self, number: i64, field: &Field) -> Result<(), String>;

    /// Bytes of an element of a datatype, by its number.
    fn size(&self, datatype: i64) -> Option<i64>;

    /// Number of ranks that can be named in a communicator or window, by its number; `known`: as what the call has found.
    fn reach(&self, object: Object, number: i64, known: bool) -> Option<u64>;

    /// Whether a request is a receive from any rank.
    fn is_from_any(&self, request: i64) -> bool;
}
