//! What is not recorded on purpose. The recorder and what writes it compile this file, too.

/// Whether a function is no communication, and no local query that a program's text would show, but is called by the
/// language layers themselves: conversions between handles and statuses of C and Fortran, callbacks that the library
/// provides, and address arithmetic.
#[must_use]
pub fn is_left_out(name: &str) -> bool {
    let ends = [
        "_f2c", "_c2f", "_f2f08", "_f082f", "_c2f08", "_f082c", "_FN", "_fn", "_FN_NULL", "_fromint",
        "_toint",
    ];
    ends.iter().any(|e| name.ends_with(e)) || name == "MPI_Aint_add" || name == "MPI_Aint_diff"
}
