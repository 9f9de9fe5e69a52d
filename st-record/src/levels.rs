//! What merging in `MPI_Finalize` takes by level of the tree that ranks form.

use st_cli::{bytes, counted, duration};

/// Levels that a rank tells at most: ranks are numbered by 31 bits.
const MOST: usize = 33;

/// Each level, summed over ranks: first what ranks make of their own calls, last what rank 0 makes of the whole, in between what
/// ranks pack for their parents and these take in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Levels(Vec<Level>);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Level {
    /// Processor time of all ranks, and the most that one took, ns.
    cpu_ns: u64,
    most_ns: u64,
    /// Ranks that handed on what they had, and bytes of that.
    ranks: u64,
    bytes: u64,
}

impl Levels {
    /// Adds what a rank has noted down: NS/BYTES of each level, separated by commas.
    pub(crate) fn add(&mut self, told: &str) {
        for (i, level) in told.split(',').take(MOST).enumerate() {
            let Some((ns, bytes)) = level.split_once('/') else { continue };
            let [ns, bytes] = [ns, bytes].map(|n| n.parse().unwrap_or(0));
            if self.0.len() <= i {
                self.0.resize(i + 1, Level::default());
            }
            let all = &mut self.0[i];
            all.cpu_ns = all.cpu_ns.saturating_add(ns);
            all.most_ns = all.most_ns.max(ns);
            all.ranks += u64::from(bytes > 0);
            all.bytes = all.bytes.saturating_add(bytes);
        }
    }

    /// A line for each level; none where ranks have told nothing.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let last = self.0.len().saturating_sub(1);
        self.0.iter().enumerate().map(move |(i, level)| {
            let what = match i {
                0 => "own calls".to_owned(),
                i if i == last => "result".to_owned(),
                i => format!("level {i} of {}", last - 1),
            };
            let [all, most] = [level.cpu_ns, level.most_ns].map(duration);
            let handed = match level.ranks {
                0 => String::new(),
                n => format!("; {} handed on by {}", bytes(level.bytes), counted(n, "rank")),
            };
            format!("merging, {what}: {all} of processor time, {most} of that on one rank{handed}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_summed_over_ranks_and_say_which_they_are() {
        let mut levels = Levels::default();
        assert_eq!(levels.lines().next(), None);
        levels.add("5000/0,6000/700");
        levels.add("4000/0,7000/0,1000/1800");
        levels.add("3000/0,1000/900");
        levels.add("2000/0,7000/0,2000/0,1234567/0");
        // What somebody else has written.
        levels.add("x,1/y,/,9");
        levels.add(&"0/0,".repeat(1_000));
        let mut shorter = levels.clone();
        shorter.0.truncate(4);
        assert_eq!(levels.0.len(), MOST);
        assert_eq!(
            shorter.lines().collect::<Vec<_>>(),
            [
                "merging, own calls: 14.0 µs of processor time, 5.00 µs of that on one rank",
                "merging, level 1 of 2: 21.0 µs of processor time, 7.00 µs of that on one rank; 1.60 kB handed on by 2 ranks",
                "merging, level 2 of 2: 3.00 µs of processor time, 2.00 µs of that on one rank; 1.80 kB handed on by 1 rank",
                "merging, result: 1.23 ms of processor time, 1.23 ms of that on one rank",
            ]
        );
    }
}
