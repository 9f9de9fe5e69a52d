//! How long the program's own thread is ready to run and has no processor, from `MPI_Init` to `MPI_Finalize`.

use std::fs;

/// The thread that initialises MPI, which also finalises it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Queued {
    since: Option<u64>,
    total: Option<u64>,
}

impl Queued {
    /// MPI is initialised.
    pub(crate) fn begin(&mut self) {
        self.since = so_far();
    }

    /// The program's part is over: what follows is the recorder's.
    pub(crate) fn end(&mut self) {
        self.total = self.total();
    }

    /// How long it was, ns; nothing where the kernel does not say, or another thread asks than the one that began.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total.or_else(|| so_far()?.checked_sub(self.since?))
    }
}

/// What the kernel has counted for the calling thread, ns.
fn so_far() -> Option<u64> {
    waited(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The second of three numbers: time on a processor, time ready to run without one, turns. A kernel that does not count has zeros.
fn waited(counted: &str) -> Option<u64> {
    let mut numbers = counted.split_whitespace().map(str::parse);
    let (Some(Ok(ran)), Some(Ok(waited)), Some(Ok(turns))) = (numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    ([ran, waited, turns] != [0_u64; 3]).then_some(waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_long_a_thread_waited() {
        assert_eq!(waited("123 456 7\n"), Some(456));
        assert_eq!(waited("0 0 0\n"), None);
        assert_eq!(waited("123 456\n"), None);
        assert_eq!(waited("1 2 x\n"), None);
    }

    #[test]
    fn the_end_is_kept() {
        let mut queued = Queued { since: Some(5), total: Some(9) };
        queued.end();
        assert_eq!(queued.total(), Some(9));
        assert_eq!(Queued::default().total(), None);
    }
}
