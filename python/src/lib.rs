//! The Python module `st._st`: traces as Arrow tables. What users see is `python/st`.

#![warn(clippy::expect_used)]

mod arrow;
mod errors;
mod stat;
mod trace;
mod waiting;

use pyo3::prelude::*;

#[pymodule]
mod _st {
    #[pymodule_export]
    use crate::arrow::Batches;
    #[pymodule_export]
    use crate::errors::{Error, InvalidTrace, UsageError};
    #[pymodule_export]
    use crate::trace::Trace;
}
