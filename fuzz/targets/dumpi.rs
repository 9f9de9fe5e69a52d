//! Any text is a rank's calls as dumpi2ascii prints them or an error, and what was read is proved.

#![no_main]

use libfuzzer_sys::fuzz_target;
use st_import::Importer;
use st_import::dumpi::{Sizes, read};
use st_model::check::check;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sizes) = Sizes::of(bytes) else { return };
    let mut importer = Importer::new(4, false);
    if read(bytes, &sizes, 1, 4, &mut importer).is_err() {
        return;
    }
    let Ok(_) = importer.finish(|section| {
        assert!(check(&section).expect("it reads back").iter().all(|thread| thread.passed()));
        Ok::<_, std::convert::Infallible>(())
    });
});
