//! Calls that may have waited for the other end of a short message, until it is known whether messages of its size wait.

use crate::sizes::{Size, Sizes};

/// Calls that are held at most. Of more, the earlier half is taken not to have waited: where so many did not show it others will not.
const HELD: usize = 1 << 16;

/// A call: what it has waited for if messages of the size do, and if they do not.
#[derive(Clone, Copy, Debug)]
struct Doubtful<T> {
    size: Size,
    learned: T,
    surely: Option<T>,
}

/// What is known of sizes, and calls of which it is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Doubts<T> {
    pub(crate) sizes: Sizes,
    calls: Vec<Doubtful<T>>,
}

impl<T> Default for Doubts<T> {
    fn default() -> Self {
        Self { sizes: Sizes::default(), calls: Vec::new() }
    }
}

impl<T> Doubts<T> {
    /// A long call tells of messages of a size. What others have waited for may be known by it: what is known is added to `finished`.
    pub(crate) fn tell(&mut self, size: Size, surely: Option<T>, learned: Option<T>, finished: &mut Vec<T>) {
        if self.sizes.tell(size, learned.is_some()) {
            let sizes = &self.sizes;
            finished.extend(self.calls.extract_if(.., |call| sizes.wait(call.size)).map(|call| call.learned));
        }
        match learned {
            Some(learned) if self.sizes.wait(size) => finished.push(learned),
            Some(learned) => {
                if self.calls.len() >= HELD {
                    finished.extend(self.calls.drain(..HELD / 2).filter_map(|call| call.surely));
                }
                self.calls.push(Doubtful { size, learned, surely });
            }
            None => finished.extend(surely),
        }
    }

    /// No more calls come: sizes of which it has not been seen that they wait do not.
    pub(crate) fn end(&mut self, finished: &mut Vec<T>) {
        finished.extend(self.calls.drain(..).filter_map(|call| call.surely));
    }
}
