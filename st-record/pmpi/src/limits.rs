//! The limit on the size of files: beyond it a write would end the program by SIGXFSZ.

/// Whether a file of this process may become `bytes` long.
pub(crate) fn file_may_have(bytes: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the result goes to a variable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    !known || limit.rlim_cur == libc::RLIM_INFINITY || bytes <= limit.rlim_cur
}

/// What a write beyond the limit would say.
pub(crate) fn too_large() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::EFBIG)
}
