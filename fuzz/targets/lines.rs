//! Any text is calls as JSON lines or an error, and what was read is a trace that is written, read again and proved.

#![no_main]

use libfuzzer_sys::fuzz_target;
use st_import::json::{Census, Lines};
use st_model::check::check;
use st_stream::{ReadOptions, Trace, WriteOptions, read, write};

fuzz_target!(|bytes: &[u8]| {
    let mut census = Census::default();
    let Ok(world) = census.add(bytes).and_then(|()| census.world()) else { return };
    let mut lines = Lines::of(world);
    if lines.read(bytes).is_err() {
        return;
    }
    let mut trace = Trace { header: lines.header, ..Trace::default() };
    let Ok(_) = lines.importer.finish(|section| {
        trace.sections.push(section);
        Ok::<_, std::convert::Infallible>(())
    });
    let mut stream = Vec::new();
    write(&trace, &mut stream, WriteOptions { level: 0 }).expect("a vector takes all");
    let again = read(&stream[..], ReadOptions::default()).expect("what was written is a trace");
    for section in &again.sections {
        assert!(check(section).expect("it reads back").iter().all(|thread| thread.passed()));
    }
});
