//! Which ranks the streams of a run hold. What is refused here is refused by all programs alike: streams of another run, a
//! rank that is there twice, and ranks that the run cannot have.

use st_model::num::Exact;
use std::sync::Arc;

use anyhow::{Result, bail};
use st_model::header::Header;
use st_model::ranklist::RankList;
use st_model::ranks::Run as Ranks;
use st_model::varint;

use crate::InvalidStream;
use crate::screen::counted;
use crate::transport::{self, Gone, Transport};

/// Ranks of a job come out of `MPI_Init` together; clocks of nodes may differ by so much, ns.
const TOGETHER: u64 = 600_000_000_000;
/// The same where ranks run different programs, which two jobs rather do than one, ns.
const PROGRAMS_TOGETHER: u64 = 10_000_000_000;

/// Where nothing says which run a stream is of, ranks that started further apart are doubted, ns.
const DOUBTED: u64 = 1_000_000_000;

/// What tells runs apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Run {
    /// Its identity; empty if that is not known.
    id: String,
    world: u32,
    mpi: String,
    command: String,
    started: u64,
}

impl Run {
    fn of(header: &Header) -> Self {
        Self {
            id: header.run.clone(),
            world: header.world,
            mpi: format!("{} {}", header.mpi.flavour, header.mpi.version),
            command: header.command(),
            started: header.started,
        }
    }

    /// What this run has otherwise than another, if it must be another.
    fn unlike(&self, other: &Self) -> Option<String> {
        let of = |what: &dyn Fn(&Self) -> String| Some(format!("{}, not {}", what(self), what(other)));
        if self.world != other.world {
            return of(&|run| counted(run.world.into(), "rank"));
        }
        if self.mpi != other.mpi {
            return of(&|run| format!("under {}", run.mpi.trim()));
        }
        let apart = self.started.abs_diff(other.started);
        let (programs, all) = match (self.is_known(), other.is_known()) {
            (true, true) if self.id == other.id => return None,
            (true, true) => (0, 0),
            _ => (PROGRAMS_TOGETHER, TOGETHER),
        };
        if self.command != other.command && apart >= programs {
            return of(&|run| run.command.clone());
        }
        (apart >= all).then(|| self.apart(other))
    }

    fn is_known(&self) -> bool {
        !self.id.is_empty()
    }

    /// How far from another it started, in words.
    fn apart(&self, other: &Self) -> String {
        let ms = self.started.abs_diff(other.started) / 1_000_000;
        format!("started {}.{:03} s apart", ms / 1000, ms % 1000)
    }

    /// Whether it may be another run, though nothing proves it.
    fn may_be_unlike(&self, other: &Self) -> bool {
        !(self.is_known() && other.is_known()) && self.started.abs_diff(other.started) > DOUBTED
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
    /// What may be wrong, and is not refused; empty if nothing is.
    doubt: String,
    /// The programs of all streams, and their arguments, as on a launcher's command line; only these are set.
    programs: Option<Header>,
}

impl Roll {
    /// A stream with this header begins.
    ///
    /// # Errors
    ///
    /// If it is of another run than the first one.
    pub fn stream(&mut self, name: &Arc<str>, header: &Header) -> Result<()> {
        self.begin(name, Run::of(header))?;
        self.runs(&header.program, &header.args);
        Ok(())
    }

    fn runs(&mut self, program: &str, args: &[String]) {
        let only = || Header { program: program.to_owned(), args: args.to_vec(), ..Header::default() };
        self.programs.get_or_insert_with(only).add_programs(program, args);
    }

    /// Makes the header of one stream name the programs of all.
    pub fn name_programs(&self, header: &mut Header) {
        // A process that has none of the streams knows none.
        if let Some(all) = self.programs.as_ref().filter(|_| !header.program.is_empty()) {
            header.add_programs(&all.program, &all.args);
        }
    }

    fn begin(&mut self, name: &Arc<str>, run: Run) -> Result<()> {
        match &self.run {
            None => self.run = Some((Arc::clone(name), run)),
            Some((first, other)) => {
                if let Some(how) = run.unlike(other) {
                    let advice = "give the streams of one run";
                    bail!(InvalidStream(format!("{name}: of another run than {first}: {how}: {advice}")));
                }
                if self.doubt.is_empty() && run.may_be_unlike(other) {
                    let apart = run.apart(other);
                    self.doubt =
                        format!("{name} and {first} {apart}, and do not say whether they are of one run");
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

    /// What may be wrong, and is not refused; empty if nothing is.
    #[must_use]
    pub fn doubt(&self) -> &str {
        &self.doubt
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
        let number = |out: &mut Vec<u8>, n: usize| varint::put_u64(out, n.to_u64());
        let text = |out: &mut Vec<u8>, text: &str| {
            number(out, text.len());
            out.extend_from_slice(text.as_bytes());
        };
        number(&mut out, usize::from(self.run.is_some()));
        if let Some((name, run)) = &self.run {
            [name, run.id.as_str(), run.mpi.as_str(), run.command.as_str()]
                .iter()
                .for_each(|t| text(&mut out, t));
            [run.world.into(), run.started].iter().for_each(|n| varint::put_u64(&mut out, *n));
        }
        let programs = self.programs.iter().flat_map(|all| std::iter::once(&all.program).chain(&all.args));
        number(&mut out, programs.clone().count());
        programs.for_each(|word| text(&mut out, word));
        text(&mut out, &self.doubt);
        number(&mut out, self.held.len());
        for (name, ranks) in &self.held {
            text(&mut out, name);
            number(&mut out, ranks.runs().len());
            for run in ranks.runs().iter() {
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
            let (name, id, mpi, command) = (text(src)?, text(src)?, text(src)?, text(src)?);
            let (world, started) = (u32::try_from(number(src)?).map_err(|_| Gone)?, number(src)?);
            self.begin(&name.into(), Run { id, world, mpi, command, started })?;
        }
        let words = (0..number(src)?).map(|_| text(src)).collect::<Result<Vec<_>, Gone>>()?;
        if let Some((program, args)) = words.split_first() {
            self.runs(program, args);
        }
        let doubt = text(src)?;
        if self.doubt.is_empty() {
            self.doubt = doubt;
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
            assert_eq!((all.ranks(), &all.programs), (whole.ranks(), &whole.programs));
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
        let how = |said: String| {
            let how = said.strip_prefix("b.st: of another run than a.st: ").unwrap_or(&said);
            how.strip_suffix(": give the streams of one run").unwrap_or(how).to_owned()
        };
        let other = |b: Header| how(said(&[a(), (b, &[1])]));
        assert_eq!(other(header(8, "app", 1000)), "8 ranks, not 4 ranks");
        assert_eq!(other(header(4, "app", 2000)), "started 1000.000 s apart");
        assert_eq!(other(header(4, "cfd", 1060)), "cfd, not app");
        // Several programs may be one job, and are named as one.
        let (mut all, [first, second]) = (Roll::default(), ["app", "cfd"].map(|p| header(4, p, 1000)));
        [&first, &second, &first].iter().for_each(|of| all.stream(&"a.st".into(), of).unwrap());
        let mut named = first;
        all.name_programs(&mut named);
        assert_eq!(named.command(), "app : cfd");
        assert_eq!(other(header(4, "cfd", 1001)), "");
        assert_eq!(other(header(4, "app", 1060)), "");
        // Whose identities are known need no guess.
        let known = |of: Header, run: &str| Header { run: run.into(), ..of };
        let pair = |b: Header| how(said(&[(known(header(4, "app", 1000), "7"), &[0]), (b, &[1])]));
        let started = header(4, "app", 1000).started + 508_723_683;
        let soon = Header { started, ..header(4, "app", 0) };
        assert_eq!(pair(known(soon.clone(), "8")), "started 0.508 s apart");
        assert_eq!(pair(known(header(4, "cfd", 1000), "8")), "cfd, not app");
        assert_eq!(pair(known(header(4, "cfd", 2000), "7")), "");
        assert_eq!(pair(soon), "");
        assert_eq!(pair(header(4, "app", 2000)), "started 1000.000 s apart");
    }

    #[test]
    fn what_does_not_say_its_run_is_doubted() {
        let doubt = |run: &str, apart: u64| {
            let mut all = Roll::default();
            for (name, started) in [("a.st", 1000), ("b.st", 1000 + apart)] {
                let mut one = Roll::default();
                one.stream(&name.into(), &Header { run: run.into(), ..header(4, "app", started) }).unwrap();
                all.join(&one.pack()).unwrap();
            }
            let mut again = Roll::default();
            again.join(&all.pack()).unwrap();
            assert_eq!(again.doubt(), all.doubt());
            all.doubt().to_owned()
        };
        assert_eq!([doubt("", 1), doubt("7", 60)], ["", ""]);
        let said = "b.st and a.st started 3.000 s apart, and do not say whether they are of one run";
        assert_eq!(doubt("", 3), said);
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
