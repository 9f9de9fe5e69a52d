//! Functions of the program around a call site.

use st_model::sites::CallSites;

/// Names of the functions on a site's stack, outermost first, as far as they are known.
pub(crate) fn functions(sites: &CallSites, number: u32) -> Vec<&str> {
    let table = sites.table();
    let Some(site) = table.get(number) else { return Vec::new() };
    let mut all = Vec::new();
    for frame in site.frames.iter().rev() {
        let names = table.module_of(frame).and_then(|module| table.names().get((module.key(), frame.offset)));
        // Inlined functions stand before those that they are in.
        all.extend(names.into_iter().flatten().rev().filter_map(|location| location.function.as_deref()));
    }
    all
}
