//! The program st-record.

use std::process::ExitCode;

fn main() -> ExitCode {
    st_record::main()
}
