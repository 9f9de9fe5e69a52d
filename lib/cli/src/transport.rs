//! Several processes that do one program's work: bytes from one to another, and what is built on that.
//!
//! A program that can run as an MPI job is written against [`Transport`], which knows no MPI. Its engine, which links
//! MPI, brings a transport over MPI; tests bring [`threads`], processes that are threads of one program.

mod collective;
mod threads;

pub use collective::{agree, all, climb, gather, swap, tell};
pub use threads::{Thread, threads};

use std::time::Duration;

/// Keeps messages of different purposes apart. Below 2^14.
pub type Tag = u16;

/// Tag of the functions of this module; programs use tags above it.
pub const COLLECTIVE: Tag = 0;

/// Another process is gone: nothing more will come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("another process of the job is gone")]
pub struct Gone;

/// The processes of a job, seen from one of them.
///
/// Messages from one process to another with one tag arrive in the order in which they were sent.
pub trait Transport {
    /// This process, from 0.
    fn rank(&self) -> usize;
    /// Number of processes.
    fn size(&self) -> usize;
    /// Sends bytes. Never waits for the receiver.
    ///
    /// # Errors
    ///
    /// If the receiver is gone.
    fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), Gone>;
    /// Waits for the next message with a tag, from one process or from any; at most so long, if a limit is given.
    /// Returns the sender and the bytes, or nothing when the time is over.
    ///
    /// # Errors
    ///
    /// If nobody is left who could send.
    fn wait(
        &mut self,
        from: Option<usize>,
        tag: Tag,
        limit: Option<Duration>,
    ) -> Result<Option<(usize, Vec<u8>)>, Gone>;

    /// Waits for the next message with a tag from one process.
    ///
    /// # Errors
    ///
    /// As [`Transport::wait`].
    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Gone> {
        self.wait(Some(from), tag, None)?.map(|(_, bytes)| bytes).ok_or(Gone)
    }
}
