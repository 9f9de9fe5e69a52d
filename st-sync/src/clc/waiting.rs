//! Streams that wait for each other.

/// A stream that waits for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) stream: u32,
    /// The stream that it waits for, or none in particular.
    pub(super) sender: u32,
}

/// The stream that is freed of those that wait: the first that is met twice or waits for nobody in particular on the way
/// from the first stream to whom it waits for.
pub(super) fn in_circle(waiting: &[Waiting]) -> u32 {
    let place = |stream: u32| waiting.binary_search_by_key(&stream, |w| w.stream).ok();
    let mut seen = vec![false; waiting.len()];
    let mut at = 0;
    while let Some(w) = waiting.get(at) {
        seen[at] = true;
        match place(w.sender) {
            Some(next) if !seen[next] => at = next,
            _ => return w.stream,
        }
    }
    0
}
