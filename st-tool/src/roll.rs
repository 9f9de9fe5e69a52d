//! Which ranks the streams of a run hold. What is refused here is refused by all programs alike: streams of another run, a
//! rank that is there twice, and ranks that the run cannot have.

use std::sync::Arc;

use anyhow::{Result, bail};
use st_trace::header::Header;
use st_trace::ranklist::RankList;
use st_trace::ranks::Run as Ranks;
use st_trace::varint;

use crate::InvalidStream;
use crate::transport::{self, Gone, Transport};

/// Ranks of a job come out of `MPI_Init` together; clocks of nodes may differ by so much, ns.
const TOGETHER: u64 = 600_000_000_000;
/// The same where ranks run different programs, which two jobs rather do than one, ns.
const PROGRAMS_TOGETHER: u64 = 10_000_000_000;

/// What tells runs apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Run {
    world: u32,
    mpi: String,
    command: String,
    started: u64,
}

impl Run {
    fn of(header: &Header) -> Self {
        let words: Vec<&str> =
            std::iter::once(&header.program).chain(&header.args).map(String::as_str).collect();
        Self {
            world: header.world,
            mpi: format!("{} {}", header.mpi.flavour, header.mpi.version),
            command: words.join(" "),
            started: header.started,
        }
    }

    /// What this run has otherwise than another, if it must be another.
    fn unlike(&self, other: &Self) -> Option<String> {
        let of = |what: &dyn Fn(&Self) -> String| Some(format!("{}, not {}", what(self), what(other)));
        if self.world != other.world {
            return of(&|run| format!("{} ranks", run.world));
        }
        if self.mpi != other.mpi {
            return of(&|run| format!("under {}", run.mpi.trim()));
        }
        let apart = self.started.abs_diff(other.started);
        if self.command != other.command && apart > PROGRAMS_TOGETHER {
            return of(&|run| run.command.clone());
        }
        (apart > TOGETHER).then(|| format!("started {} s apart", apart / 1_000_000_000))
    }
}

/// The ranks that streams hold, and the run that these are of.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    /// The first stream, and what it is of.
    run: Option<(Arc<str>, Run)>,
    /// By stream.
    held: Vec<(Arc<str>, RankList)>,
    /// By all streams.
    ranks: RankList,
}

impl Roll {
    /// A stream with this header begins.
    ///
    /// # Errors
    ///
    /// If it is of another run than the first one.
    pub fn stream(&mut self, name: &Arc<str>, header: &Header) -> Result<()> {
        self.begin(name, Run::of(header))
    }

    fn begin(&mut self, name: &Arc<str>, run: Run) -> Result<()> {
        match &self.run {
            None => self.run = Some((Arc::clone(name), run)),
            Some((first, other)) => {
                if let Some(how) = run.unlike(other) {
                    bail!(InvalidStream(format!("{name}: of another run than {first}: {how}")));
                }
            }
        }
        Ok(())
    }

    /// The stream holds a section of these ranks.
    ///
    /// # Errors
    ///
    /// If one of them was there before, or is beyond those of the run.
    pub fn section(&mut self, name: &Arc<str>, ranks: &RankList) -> Result<()> {
        let world = self.run.as_ref().map_or(0, |(_, run)| run.world);
        if let Some(beyond) = ranks.highest().filter(|rank| world > 0 && *rank >= world) {
            bail!(InvalidStream(format!("{name}: holds rank {beyond} of a run of {world} ranks")));
        }
        if let Some(twice) = self.ranks.common(ranks) {
            let before = self.held.iter().find(|(_, held)| held.contains(twice));
            let also = match before {
                Some((other, _)) if other != name => format!("holds rank {twice}, as {other} does"),
                _ => format!("holds rank {twice} twice"),
            };
            bail!(InvalidStream(format!("{name}: {also}: give each rank of one run once")));
        }
        self.ranks.extend(ranks);
        match self.held.last_mut() {
            Some((last, held)) if last == name => held.extend(ranks),
            _ => self.held.push((Arc::clone(name), ranks.clone())),
        }
        Ok(())
    }

    /// All ranks.
    #[must_use]
    pub fn ranks(&self) -> &RankList {
        &self.ranks
    }

    /// The roll of all processes of a job, in their order; on all of them at once.
    ///
    /// # Errors
    ///
    /// As [`Roll::stream`] and [`Roll::section`], on all processes.
    pub fn of_all(job: &mut dyn Transport, mine: &Self) -> Result<Self> {
        let mut all = Self::default();
        let joined = transport::all(job, &mine.pack())?.iter().try_for_each(|theirs| all.join(theirs));
        transport::agree(job, joined)?;
        Ok(all)
    }

    /// The roll as bytes.
    fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, n: usize| varint::put_u64(out, u64::try_from(n).unwrap_or(u64::MAX));
        let text = |out: &mut Vec<u8>, text: &str| {
            number(out, text.len());
            out.extend_from_slice(text.as_bytes());
        };
        number(&mut out, usize::from(self.run.is_some()));
        if let Some((name, run)) = &self.run {
            [name, run.mpi.as_str(), run.command.as_str()].iter().for_each(|t| text(&mut out, t));
            [run.world.into(), run.started].iter().for_each(|n| varint::put_u64(&mut out, *n));
        }
        number(&mut out, self.held.len());
        for (name, ranks) in &self.held {
            text(&mut out, name);
            number(&mut out, ranks.runs().len());
            for run in ranks.runs() {
                varint::put_i64(&mut out, run.start);
                varint::put_i64(&mut out, run.step);
                varint::put_u64(&mut out, run.n);
            }
        }
        out
    }

    /// Adds the roll of the streams, or parts of streams, that come after these, as [`Roll::pack`] made it.
    ///
    /// # Errors
    ///
    /// As [`Roll::stream`] and [`Roll::section`]; [`Gone`] if it is no such roll.
    fn join(&mut self, mut packed: &[u8]) -> Result<()> {
        let src = &mut packed;
        if number(src)? > 0 {
            let (name, mpi, command) = (text(src)?, text(src)?, text(src)?);
            let (world, started) = (u32::try_from(number(src)?).map_err(|_| Gone)?, number(src)?);
            self.begin(&name.into(), Run { world, mpi, command, started })?;
        }
        for _ in 0..number(src)? {
            let name = text(src)?.into();
            let runs: Result<Vec<Ranks>, Gone> = (0..number(src)?)
                .map(|_| Ok(Ranks { start: signed(src)?, step: signed(src)?, n: number(src)? }))
                .collect();
            self.section(&name, &RankList::from_runs(runs?).ok_or(Gone)?)?;
        }
        Ok(())
    }
}

fn number(src: &mut &[u8]) -> Result<u64, Gone> {
    varint::get_u64(src).map_err(|_| Gone)
}

fn signed(src: &mut &[u8]) -> Result<i64, Gone> {
    varint::get_i64(src).map_err(|_| Gone)
}

fn text(src: &mut &[u8]) -> Result<String, Gone> {
    let length = usize::try_from(number(src)?).map_err(|_| Gone)?;
    let (text, rest) = src.split_at_checked(length).ok_or(Gone)?;
    *src = rest;
    String::from_utf8(text.to_vec()).map_err(|_| Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(world: u32, program: &str, started: u64) -> Header {
        Header { world, program: program.into(), started: started * 1_000_000_000, ..Header::default() }
    }

    fn ranks(ranks: &[u32]) -> RankList {
        ranks.iter().copied().collect()
    }

    /// What is said of streams with these headers, each with a section of these ranks, by one process that has the first
    /// and another that has the rest; one that has all says the same.
    fn said(streams: &[(Header, &[u32])]) -> String {
        let read = |roll: &mut Roll, streams: &[(Header, &[u32])], names: &[&str]| {
            streams.iter().zip(names).try_for_each(|((header, held), name)| {
                let name = (*name).into();
                roll.stream(&name, header)?;
                roll.section(&name, &ranks(held))
            })
        };
        let names = ["a.st", "b.st", "c.st"];
        let (mut whole, mut first, mut second) = (Roll::default(), Roll::default(), Roll::default());
        let alone = read(&mut whole, streams, &names).map_err(|e| e.to_string());
        let shared = read(&mut first, &streams[..1], &names).and_then(|()| {
            read(&mut second, &streams[1..], &names[1..])?;
            let mut all = Roll::default();
            all.join(&first.pack())?;
            all.join(&second.pack())?;
            assert_eq!(all.ranks(), whole.ranks());
            Ok(())
        });
        assert_eq!(shared.map_err(|e| e.to_string()), alone);
        alone.err().unwrap_or_default()
    }

    #[test]
    fn each_rank_of_one_run_is_taken_once() {
        let h = |world| header(world, "app", 100);
        assert_eq!(said(&[(h(4), &[0, 2]), (h(4), &[3])]), "");
        assert_eq!(said(&[(h(0), &[0, 2]), (h(0), &[7]), (h(0), &[5])]), "");
        let twice = "b.st: holds rank 2, as a.st does: give each rank of one run once";
        assert_eq!(said(&[(h(4), &[0, 2]), (h(4), &[1, 2])]), twice);
        let twice = "c.st: holds rank 2, as b.st does: give each rank of one run once";
        assert_eq!(said(&[(h(4), &[0]), (h(4), &[1, 2]), (h(4), &[2])]), twice);
        assert_eq!(said(&[(h(4), &[0, 4])]), "a.st: holds rank 4 of a run of 4 ranks");
    }

    #[test]
    fn other_runs_are_told_by_what_they_have_otherwise() {
        let a = || (header(4, "app", 1000), &[0][..]);
        let other = |b: Header| said(&[a(), (b, &[1])]);
        assert_eq!(other(header(8, "app", 1000)), "b.st: of another run than a.st: 8 ranks, not 4 ranks");
        assert_eq!(other(header(4, "app", 2000)), "b.st: of another run than a.st: started 1000 s apart");
        assert_eq!(other(header(4, "cfd", 1060)), "b.st: of another run than a.st: cfd, not app");
        // Several programs may be one job.
        assert_eq!(other(header(4, "cfd", 1001)), "");
        assert_eq!(other(header(4, "app", 1060)), "");
    }

    #[test]
    fn other_bytes_are_no_roll() {
        let mut roll = Roll::default();
        roll.stream(&"a.st".into(), &header(4, "app", 1)).unwrap();
        roll.section(&"a.st".into(), &ranks(&[1, 3])).unwrap();
        let packed = roll.pack();
        for cut in 0..packed.len() {
            assert!(Roll::default().join(&packed[..cut]).is_err(), "{cut}");
        }
    }
}
