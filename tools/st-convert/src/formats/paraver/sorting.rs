//! Lines in the order of their times, more than fit into memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write};

use anyhow::{Context as _, Result, bail};

/// Lines that are held, before they are sorted and written to a temporary file.
const HELD: usize = 1 << 18;

/// A line and its time; of equal times the first that came is the first.
type Line = (i64, u64, String);

/// Files that are read at the same time: each is open.
const MERGED: usize = 64;

/// What has been collected.
#[derive(Debug)]
pub(super) struct Lines {
    held: Vec<Line>,
    /// How many of these there may be.
    room: usize,
    next: u64,
    /// Sorted lines, by how often they have been merged.
    runs: Vec<Vec<File>>,
}

impl Default for Lines {
    fn default() -> Self {
        Self { held: Vec::new(), room: HELD, next: 0, runs: Vec::new() }
    }
}

impl Lines {
    pub(super) fn push(&mut self, time: i64, line: String) -> Result<()> {
        self.held.push((time, self.next, line));
        self.next += 1;
        if self.held.len() < self.room {
            return Ok(());
        }
        self.held.sort_unstable();
        let mut run = Run::new()?;
        self.held.drain(..).try_for_each(|line| run.push(line))?;
        self.keep(run.finish()?, 0)
    }

    /// Keeps a file of lines that have been merged so often.
    fn keep(&mut self, file: File, times: usize) -> Result<()> {
        if self.runs.len() == times {
            self.runs.push(Vec::new());
        }
        let of = &mut self.runs[times];
        of.push(file);
        if of.len() < MERGED {
            return Ok(());
        }
        let (files, mut run) = (std::mem::take(of), Run::new()?);
        merge(files, Vec::new(), |line| run.push(line))?;
        self.keep(run.finish()?, times + 1)
    }

    /// Writes all lines in order.
    pub(super) fn write(mut self, out: &mut impl Write) -> Result<()> {
        self.held.sort_unstable();
        merge(self.runs.into_iter().flatten().collect(), self.held, |(_, _, line)| {
            out.write_all(line.as_bytes())?;
            Ok(out.write_all(b"\n")?)
        })
    }
}

/// Sorted lines in a temporary file.
struct Run(BufWriter<File>);

impl Run {
    fn new() -> Result<Self> {
        Ok(Self(BufWriter::new(tempfile::tempfile().context(FILE)?)))
    }

    fn push(&mut self, (time, number, line): Line) -> Result<()> {
        writeln!(self.0, "{time} {number} {line}").context(FILE)
    }

    fn finish(self) -> Result<File> {
        let mut file = self.0.into_inner().context(FILE)?;
        file.rewind().context(FILE)?;
        Ok(file)
    }
}

/// What the files are called if they fail.
const FILE: &str = "temporary file of sorted lines";

/// Hands on the lines of some files, and some more, which are sorted each.
fn merge(files: Vec<File>, held: Vec<Line>, mut to: impl FnMut(Line) -> Result<()>) -> Result<()> {
    let mut held = held.into_iter();
    let mut runs: Vec<BufReader<File>> = files.into_iter().map(BufReader::new).collect();
    let last = runs.len();
    let mut next = BinaryHeap::new();
    for (i, run) in runs.iter_mut().enumerate() {
        next.extend(read(run)?.map(|line| Reverse((line, i))));
    }
    next.extend(held.next().map(|line| Reverse((line, last))));
    while let Some(Reverse((line, i))) = next.pop() {
        to(line)?;
        let following = match runs.get_mut(i) {
            Some(run) => read(run)?,
            None => held.next(),
        };
        next.extend(following.map(|line| Reverse((line, i))));
    }
    Ok(())
}

fn read(run: &mut BufReader<File>) -> Result<Option<Line>> {
    let mut text = String::new();
    if run.read_line(&mut text).context(FILE)? == 0 {
        return Ok(None);
    }
    let mut words = text.trim_end_matches('\n').splitn(3, ' ');
    let (Some(time), Some(number), Some(line)) = (words.next(), words.next(), words.next()) else {
        bail!("a temporary file of sorted lines is not what was written");
    };
    Ok(Some((time.parse()?, number.parse()?, line.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_runs_come_in_order() {
        let mut lines = Lines { room: 10, ..Lines::default() };
        let n = 10 * MERGED * (MERGED + 2) + 25;
        for i in 0..n {
            let time = i64::try_from(i * 7919 % n).unwrap();
            lines.push(time, format!("{time} x")).unwrap();
        }
        // No more files are open than are merged at once, of each kind.
        assert_eq!(lines.runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
        let mut out = Vec::new();
        lines.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let times: Vec<usize> = text.lines().map(|l| l.split(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(times, (0..n).collect::<Vec<_>>());
    }
}
