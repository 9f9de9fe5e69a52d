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

/// What has been collected.
#[derive(Debug, Default)]
pub(super) struct Lines {
    held: Vec<Line>,
    next: u64,
    runs: Vec<File>,
}

impl Lines {
    pub(super) fn push(&mut self, time: i64, line: String) -> Result<()> {
        self.held.push((time, self.next, line));
        self.next += 1;
        if self.held.len() < HELD {
            return Ok(());
        }
        self.held.sort_unstable();
        let mut run = BufWriter::new(tempfile::tempfile().context("temporary file of sorted lines")?);
        for (time, number, line) in self.held.drain(..) {
            writeln!(run, "{time} {number} {line}").context("temporary file of sorted lines")?;
        }
        let mut run = run.into_inner().context("temporary file of sorted lines")?;
        run.rewind().context("temporary file of sorted lines")?;
        self.runs.push(run);
        Ok(())
    }

    /// Writes all lines in order.
    pub(super) fn write(mut self, out: &mut impl Write) -> Result<()> {
        self.held.sort_unstable();
        let mut held = self.held.into_iter();
        let mut runs: Vec<BufReader<File>> = self.runs.into_iter().map(BufReader::new).collect();
        let last = runs.len();
        let mut next = BinaryHeap::new();
        for (i, run) in runs.iter_mut().enumerate() {
            next.extend(read(run)?.map(|line| Reverse((line, i))));
        }
        next.extend(held.next().map(|line| Reverse((line, last))));
        while let Some(Reverse(((_, _, line), i))) = next.pop() {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
            let following = match runs.get_mut(i) {
                Some(run) => read(run)?,
                None => held.next(),
            };
            next.extend(following.map(|line| Reverse((line, i))));
        }
        Ok(())
    }
}

fn read(run: &mut BufReader<File>) -> Result<Option<Line>> {
    let mut text = String::new();
    if run.read_line(&mut text).context("temporary file of sorted lines")? == 0 {
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
        let mut lines = Lines::default();
        let n = 2 * HELD + 1000;
        for i in 0..n {
            let time = i64::try_from(i * 7919 % n).unwrap();
            lines.push(time, format!("{time} x")).unwrap();
        }
        assert_eq!(lines.runs.len(), 2);
        let mut out = Vec::new();
        lines.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let times: Vec<usize> = text.lines().map(|l| l.split(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(times, (0..n).collect::<Vec<_>>());
    }
}
