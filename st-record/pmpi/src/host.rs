//! The machine that a rank runs on.

use std::fs;

/// The processors that the process may run on, as `0-3,8`.
pub(crate) fn allowed() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// The name of this machine; empty if it has none.
pub(crate) fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer has the stated length.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|b| *b == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..end]).into_owned()
}
