//! From which size on messages wait for their other end, as calls of the trace themselves tell.
//!
//! Libraries keep short messages until they are received, and move long ones only while both ranks are in MPI. Where the limit is depends
//! on the library, its settings and the way between the ranks. Of messages that most keep, a call that goes on for long, and ends
//! soon after the call that completes the other end is entered, may have waited for that, or it was long for another reason. It has
//! waited if calls with messages of about its size do so repeatedly, and most of those that are long, or with shorter ones.
//!
//! What calls may have waited for is kept until that is known: [`super::doubts`].

use st_model::num::narrow;

/// Messages of more bytes than this may wait for their other end whatever others do: the least limit of common libraries (Open MPI's shared
/// memory).
pub const KEPT: u64 = 4096;

/// A call that ends sooner has waited for no other end of a short message: 1 ms, ns. They are not that long on their way.
pub(crate) const ON_ITS_WAY: i64 = 1_000_000;

/// So many calls with messages of about one size have waited, or it is chance.
const REPEATEDLY: u64 = 5;

/// Whether a message of so many bytes may wait for its other end whatever others do.
pub(crate) fn needs_both(bytes: i64) -> bool {
    u64::try_from(bytes).is_ok_and(|bytes| bytes > KEPT)
}

/// Whether a call that takes so long may have waited for the other end of a message of so many bytes: it may not have if these are not known.
pub(crate) fn may_wait(bytes: i64, enter: i64, exit: i64) -> bool {
    needs_both(bytes) || (bytes >= 0 && exit.saturating_sub(enter) >= ON_ITS_WAY)
}

/// Messages of about one size, that most libraries keep: up to twice as many bytes as the next shorter ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Size {
    /// They go between nodes.
    pub(crate) far: bool,
    bits: u8,
}

/// As many as bits that the longest has, and none.
const BITS: usize = 14;

impl Size {
    /// That of a message, unless it may wait whatever others do.
    pub(crate) fn of(bytes: i64, far: bool) -> Option<Self> {
        let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes <= KEPT)?;
        Some(Self { far, bits: narrow(u64::BITS - bytes.leading_zeros()) })
    }
}

/// What calls with messages of about one size tell.
#[derive(Clone, Copy, Default, Debug)]
struct Told {
    /// Calls that are long.
    long: u64,
    /// Those of them that end soon after the other end comes.
    waited: u64,
}

/// What is known of sizes.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    told: [[Told; BITS]; 2],
    /// The shortest messages that are seen to wait within and between nodes, by their bits.
    from: [usize; 2],
}

impl Default for Sizes {
    fn default() -> Self {
        Self { told: Default::default(), from: [BITS; 2] }
    }
}

impl Sizes {
    /// A long call with such a message ends soon after the other end comes, or not. Returns whether more is known by it.
    pub(crate) fn tell(&mut self, size: Size, waited: bool) -> bool {
        let (far, bits) = (usize::from(size.far), usize::from(size.bits));
        let told = &mut self.told[far][bits];
        told.long += 1;
        told.waited += u64::from(waited);
        let shown = told.waited >= REPEATEDLY && told.waited > told.long / 2;
        let more = shown && bits < self.from[far];
        if more {
            self.from[far] = bits;
        }
        more
    }

    /// Whether messages of this size are seen to wait.
    pub(crate) fn wait(&self, size: Size) -> bool {
        usize::from(size.bits) >= self.from[usize::from(size.far)]
    }

    /// What is seen of the shortest messages that wait: their bytes at least, and how many calls have waited with these and longer ones.
    pub(crate) fn shortest(&self) -> Option<(u64, u64)> {
        let bits = self.from.into_iter().min().filter(|bits| *bits < BITS)?;
        let waited = |told: &[Told; BITS]| told[bits..].iter().map(|t| t.waited).sum::<u64>();
        Some((1 << bits >> 1, self.told.iter().map(waited).sum()))
    }
}
