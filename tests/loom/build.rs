//! Makes of the recorder's lock one whose atomics are loom's.

use std::{env, fs, path::Path};

const LOCK: &str = "../../st-record/pmpi/src/lock.rs";
/// What takes whose place. `membarrier` makes the processors of all running threads pass a full barrier, which is as if the
/// owner had one of its own between its store and its load: there, the compiler's fence becomes one.
const INSTEAD: [(&str, &str); 6] = [
    (
        "use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};",
        "use loom::sync::atomic::{AtomicBool, Ordering, fence};",
    ),
    ("        compiler_fence(Ordering::SeqCst);", "        fence(Ordering::SeqCst);"),
    (
        "    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) >= 0 }",
        "    { fence(Ordering::SeqCst); let _ = command; true }",
    ),
    ("pub(crate) const fn new", "pub(crate) fn new"),
    ("            std::thread::yield_now();", "            loom::thread::yield_now();"),
    ("            std::hint::spin_loop();", "            loom::thread::yield_now();"),
];

fn main() {
    println!("cargo:rerun-if-changed={LOCK}");
    let text = fs::read_to_string(LOCK).unwrap();
    let mut text = text
        .split("#[cfg(test)]")
        .next()
        .unwrap()
        .replace("//!", "//")
        .replace("libc::MEMBARRIER", "crate::MEMBARRIER");
    for (old, new) in INSTEAD {
        assert_eq!(text.matches(old).count(), 1, "{LOCK} is not what it was: {old}");
        text = text.replace(old, new);
    }
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("lock.rs"), text).unwrap();
}
