//! Work without the interpreter's lock, that Ctrl-C ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use anyhow::{Result, bail};
use pyo3::prelude::*;

use crate::errors::{Error, raised};

/// How often signals are looked at.
const OFTEN: Duration = Duration::from_millis(100);

/// Stack of a thread that works, as programs have it.
const STACK: usize = 8 << 20;

/// Whether the work is not wanted any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Fails once it is not.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }
}

/// Does work on another thread, which is left alone if a signal's handler raises an exception: it ends when it looks at its [`Stop`].
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (stop, (to, mut from)) = (Stop::default(), sync_channel(1));
    let of_work = stop.clone();
    let job = move || drop(to.send(work(&of_work)));
    Builder::new().stack_size(STACK).spawn(job).map_err(|e| raised(&e.into()))?;
    loop {
        // One thread at a time may look at it: it goes there and comes back.
        let came;
        (from, came) = py.detach(move || {
            let came = from.recv_timeout(OFTEN);
            (from, came)
        });
        match came {
            Ok(done) => return done.map_err(|e| raised(&e)),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.0.store(true, Ordering::Relaxed))?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new_err("an error inside of st, which is printed above"));
            }
        }
    }
}
