//! Any text is a trace or an error, and a trace that was read is printed and read again unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use st_stream::text::{parse, write};

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = parse(bytes) else { return };
    let mut again = Vec::new();
    write(&trace, &mut again).expect("a vector takes all");
    assert_eq!(parse(&again[..]).expect("what was printed is a trace"), trace);
});
