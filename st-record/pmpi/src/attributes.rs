//! Predefined attributes of `MPI_COMM_WORLD` that are the same on all its ranks.

use crate::constants as k;
use crate::ffi::Handle;
use crate::real;
use st_model::values::KEYVALS;
use std::ffi::c_int;
use std::ptr;

/// Positions of their keys: of `MPI_TAG_UB` and `MPI_WTIME_IS_GLOBAL`. Of `MPI_UNIVERSE_SIZE` nobody may ask whom the program does not: where
/// that was started without a launcher MPICH starts one to find it out.
const ALIKE: [usize; 2] = [0, 3];

/// Their values by the names of their keys. MPI is initialised.
pub(crate) fn of_world() -> Vec<(String, i64)> {
    let world = Handle::from_raw(k::MPI_COMM_WORLD());
    let keys = k::keyvals();
    let one = |i: usize| {
        let mut place: *const c_int = ptr::null();
        let mut flag = 0;
        // SAFETY: the value of a predefined attribute is the address of an integer, which the library keeps.
        unsafe {
            real::MPI_Comm_get_attr(world, keys[i], (&raw mut place).expose_provenance(), &raw mut flag);
            (flag != 0 && !place.is_null()).then(|| (KEYVALS[i].to_owned(), i64::from(*place)))
        }
    };
    ALIKE.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_that_are_alike() {
        let names = ALIKE.map(|i| KEYVALS[i]);
        assert_eq!(names, ["MPI_TAG_UB", "MPI_WTIME_IS_GLOBAL"]);
    }
}
