//! Messages that a collective operation consists of.

/// To or from whom, by place among the ranks that are converted, and bytes.
pub(super) type Message = (usize, u64);

/// What a rank does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transfer {
    Send(Message),
    Receive(Message),
    /// Sends the first and receives the second at the same time.
    Exchange(Message, Message),
}

/// A binomial tree of some ranks below a root: up to it (`up`) or down.
pub(super) fn tree(members: &[usize], me: usize, root: usize, bytes: u64, up: bool) -> Vec<Transfer> {
    let n = members.len();
    let me = (me + n - root % n) % n;
    let member = |relative: usize| (members.get((relative + root) % n).copied().unwrap_or_default(), bytes);
    let lowest = if me == 0 { usize::MAX } else { me & me.wrapping_neg() };
    let below = std::iter::successors(Some(1usize), |d| d.checked_mul(2));
    let below: Vec<usize> = below.take_while(|d| *d < lowest && *d < n).filter(|d| me + d < n).collect();
    let parent = (me > 0).then(|| me - lowest);
    if up {
        let children = below.iter().map(|d| Transfer::Receive(member(me + d)));
        children.chain(parent.map(|parent| Transfer::Send(member(parent)))).collect()
    } else {
        let children = below.iter().rev().map(|d| Transfer::Send(member(me + d)));
        parent.map(|parent| Transfer::Receive(member(parent))).into_iter().chain(children).collect()
    }
}
