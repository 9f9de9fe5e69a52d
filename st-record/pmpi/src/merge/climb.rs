//! How ranks hand what they have to rank 0, in a binomial tree in which each rank has its own and the following ones.
//!
//! A parent posts the receives of its children's headers first. A child sends a header, how much it has or why it has
//! nothing, and then all of it when it is asked for it: nothing large is on its way to a rank that has gone. Last comes the word from
//! rank 0 how it ended. All of it is non-blocking, and every wait has an end: for children after the patience, and an
//! eighth of it more for each level below, so that the rank next to one that is late finds out first; for a parent after
//! twice what rank 0 may take for that. A rank that was told nothing goes on as if it had failed.

use super::levels::Levels;
use super::post::{Post, Receive, Sent};
use crate::clock::Reader;
use crate::sync::Tree as Ranks;
use st_model::num::{Exact, narrow};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tags of a climb in `MPI_Finalize`: how much a child has, whether it is wanted, the bytes, and how it ended.
const HEAD: c_int = 3;
const ASK: c_int = 4;
const BODY: c_int = 5;
const END: c_int = 6;

/// Interim climbs have tags of their own, so that what a late rank has left behind is not taken for something else. MPI
/// promises tags up to 32,767.
const TAGS: c_int = 4;
const CLIMBS: i64 = 8_000;

/// Bytes of a header: a length and, if that is 0, why.
const HEAD_BYTES: usize = 256;
const LENGTH_BYTES: usize = 8;

const NO: u8 = 0;
const YES: u8 = 1;

/// What a rank has, with what those below it have handed to it.
pub(super) trait Load: Sized {
    /// Takes in what a child has packed: children come in the order of their ranks.
    fn take(&mut self, bytes: &[u8]) -> Result<(), String>;
    /// For the parent; says whether there are ranks that follow these.
    fn pack(self, more_follow: bool) -> Result<Vec<u8>, String>;
}

/// A rank's place, and its time.
pub(super) struct Climb {
    ranks: Ranks,
    post: Post,
    clock: Reader,
    /// Added to the tags.
    tags: c_int,
    /// When this rank came, on its clock, ns.
    begun: i64,
    patience: i64,
}

impl Climb {
    /// The climb in `MPI_Finalize` has number 0, interim ones have others.
    pub(super) fn new(ranks: Ranks, clock: Reader, patience: i64, number: i64) -> Self {
        let tags = tags(number);
        Self { ranks, post: Post::new(ranks.comm, clock), clock, tags, begun: clock.now(), patience }
    }

    /// Takes in what ranks have sent for this climb that came after it had failed.
    pub(super) fn discard(&self) {
        [HEAD, ASK, BODY, END].into_iter().for_each(|tag| self.post.discard(self.tags + tag));
    }

    pub(super) fn rank(&self) -> c_int {
        self.ranks.rank
    }

    /// Hands all ranks' loads to rank 0, which commits them if it is still in time then. Success is that of all ranks. Work and
    /// bytes are added to `levels`.
    ///
    /// # Errors
    ///
    /// Why not: on rank 0 the first reason, on others their own, or that there is one.
    pub(super) fn run<L: Load>(
        &self,
        levels: &Levels,
        own: impl FnOnce() -> Result<L, String>,
        commit: impl FnOnce(L, &dyn Fn() -> bool) -> Result<(), String>,
    ) -> Result<(), String> {
        let Ranks { rank, size, .. } = self.ranks;
        let steps = (0..31).map(|bit| 1 << bit).take_while(|step| rank & step == 0 && *step < size - rank);
        let children: Vec<c_int> = steps.map(|step| rank + step).collect();
        let heads: Vec<Receive> = children.iter().map(|c| self.receive(*c, HEAD, HEAD_BYTES)).collect();
        let parent = (rank > 0).then(|| rank & (rank - 1));
        let told = parent.map(|p| (p, self.receive(p, ASK, 1), self.receive(p, END, 1)));
        let last = narrow::<u32>(self.levels()) + 1;
        if rank == 0 {
            // It is told of even if nothing comes so far.
            levels.hand_on(last, 0);
        }
        let mut load = levels.spend(0, || guarded(own));
        for (child, head) in children.iter().zip(heads) {
            load = self.gather(levels, load, *child, head);
        }
        let end = match told {
            Some((parent, ask, end)) => self.hand_up(levels, load, parent, ask, end),
            None => {
                let until = self.begun + 2 * self.limit(self.levels());
                let in_time = || self.clock.now() < until;
                load.and_then(|load| levels.spend(last, || guarded(|| commit(load, &in_time))))
            }
        };
        let word = if end.is_ok() { YES } else { NO };
        let sent: Vec<_> = children.iter().map(|c| self.send(*c, END, vec![word])).collect();
        sent.into_iter().for_each(|s| s.settle(&self.post));
        end
    }

    /// Adds what a child has, if it can.
    fn gather<L: Load>(
        &self,
        levels: &Levels,
        load: Result<L, String>,
        child: c_int,
        head: Receive,
    ) -> Result<L, String> {
        let refuse = || self.send(child, ASK, vec![NO]).settle(&self.post);
        let mut load = match load {
            Ok(load) => load,
            Err(e) => {
                refuse();
                head.cancel();
                return Err(e);
            }
        };
        let level = child.trailing_zeros() + 1;
        let until = self.begun + self.limit(i64::from(level));
        let late = || format!("rank {child} was not there in time");
        let length = head.wait(&self.post, until).ok_or_else(late).and_then(|head| announced(&head));
        let length = length.inspect_err(|_| refuse())?;
        let body = self.receive(child, BODY, length);
        self.send(child, ASK, vec![YES]).settle(&self.post);
        let bytes = body.wait(&self.post, until).ok_or_else(late)?;
        levels.spend(level, || guarded(|| load.take(&bytes).map(|()| load)))
    }

    /// Hands what a rank has to its parent, and hears how it ended.
    fn hand_up<L: Load>(
        &self,
        levels: &Levels,
        load: Result<L, String>,
        parent: c_int,
        ask: Receive,
        end: Receive,
    ) -> Result<(), String> {
        let Ranks { rank, size, .. } = self.ranks;
        let more_follow = rank & -rank < size - rank;
        let level = rank.trailing_zeros() + 1;
        let packed = load.and_then(|load| levels.spend(level, || guarded(|| load.pack(more_follow))));
        let head = self.send(parent, HEAD, header(packed.as_ref().map(Vec::len)));
        // Ranks further below have waited longer.
        let patience = 2 * self.limit(self.levels()) + i64::from(rank.count_ones()) * self.patience / 8;
        let wanted = ask.wait(&self.post, self.begun + patience).is_some_and(|word| word == [YES]);
        let body = match packed {
            Ok(bytes) if wanted => {
                levels.hand_on(level, bytes.len());
                Ok(Some(self.send(parent, BODY, bytes)))
            }
            Ok(_) => Ok(None),
            Err(e) => Err(e),
        };
        // Who has asked has come.
        let since = if wanted { self.clock.now() } else { self.begun };
        let word = end.wait(&self.post, since + patience);
        head.settle(&self.post);
        let body = body?;
        let handed = body.is_some();
        if let Some(body) = body {
            body.settle(&self.post);
        }
        match word.as_deref() {
            Some([YES]) if handed => Ok(()),
            Some(_) => Err("another rank failed".into()),
            None => Err("not told how the merge ended".into()),
        }
    }

    fn send(&self, to: c_int, tag: c_int, bytes: Vec<u8>) -> Sent {
        self.post.send(to, self.tags + tag, bytes)
    }

    fn receive(&self, from: c_int, tag: c_int, length: usize) -> Receive {
        self.post.receive(from, self.tags + tag, length)
    }

    /// Time for so many levels of ranks.
    fn limit(&self, levels: i64) -> i64 {
        self.patience + levels * (self.patience / 8)
    }

    /// Levels of ranks below rank 0.
    fn levels(&self) -> i64 {
        i64::from(c_int::BITS - (self.ranks.size - 1).leading_zeros())
    }
}

fn tags(number: i64) -> c_int {
    let number = if number > 0 { (number - 1) % CLIMBS + 1 } else { 0 };
    narrow::<c_int>(number) * TAGS
}

fn header(length: Result<usize, &String>) -> Vec<u8> {
    let (length, why) = match length {
        Ok(n) => (n.to_u64(), ""),
        Err(why) => (0, why.as_str()),
    };
    let mut head = length.to_le_bytes().to_vec();
    head.extend(why.bytes());
    head.resize(HEAD_BYTES, 0);
    head
}

/// How much a child has.
fn announced(head: &[u8]) -> Result<usize, String> {
    let (length, why) = head.split_first_chunk::<LENGTH_BYTES>().ok_or("a header is cut off")?;
    match u64::from_le_bytes(*length).to_usize() {
        n if n > 0 => Ok(n),
        _ => Err(String::from_utf8_lossy(why).trim_end_matches(['\0', '\u{fffd}']).to_owned()),
    }
}

/// A panic of ours is a failure, of which the others must hear.
fn guarded<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|_| Err("internal error".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbs_share_no_tag_and_none_is_too_large() {
        assert_eq!([tags(0), tags(1), tags(CLIMBS + 1)], [0, TAGS, TAGS]);
        let highest = (0..3 * CLIMBS).map(tags).max().unwrap() + END;
        assert!(END - HEAD < TAGS && highest <= 32_767);
    }

    #[test]
    fn a_header_says_how_much_or_why_nothing() {
        assert_eq!(announced(&header(Ok(70_000))), Ok(70_000));
        let why = "rank 3 was not there in time".to_owned();
        assert_eq!(announced(&header(Err(&why))), Err(why));
        let long = format!("x{}", "é".repeat(200));
        let head = header(Err(&long));
        let said = announced(&head).unwrap_err();
        assert_eq!((head.len(), said.len()), (HEAD_BYTES, HEAD_BYTES - LENGTH_BYTES - 1));
        assert!(long.starts_with(&said));
    }
}
