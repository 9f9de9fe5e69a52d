//! Whether all ranks of a job run with the recorder: what ranks do together ([`crate::sync`]) they would wait in for ever if one of them
//! never came, since a script has taken `LD_PRELOAD` away from it.
//!
//! On one node ranks sign a list before the library's own `MPI_Init`: a file in the recording's directory that all of them map. When
//! that has returned, all have entered it, so that all have signed that ever will; where a library does not see to that, they are
//! waited for. Whoever finds a signature lacking then closes the list, in one step that succeeds only while one lacks: a list becomes
//! full or closed, and stays it, so that all ranks find the same. The rank that fills or closes it removes the file.
//!
//! Where ranks are on several nodes, or nothing names the job, there is no list.

use crate::mapping::Mapping;
use crate::message::{say, warn};
use crate::run;
use st_model::num::Exact;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long ranks are waited for that have not signed when `MPI_Init` has returned.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a rank sleeps between looks.
const NAP: Duration = Duration::from_millis(5);

/// Where the first rank signs; before that is the number of signatures, and whether the list is closed.
const FIRST: usize = 64;
const CLOSED: u64 = 1 << 63;

/// Lists that are full already, of jobs that nothing tells from this one, until it is given up.
const OTHERS: usize = 64;

/// What this rank has done.
enum Signed {
    /// Nothing: there is no list.
    Nowhere,
    /// It could not, and does what the others do that find it lacking, of so many.
    Failed(u32, String),
    /// It has.
    In(List),
}

static SIGNED: Mutex<Signed> = Mutex::new(Signed::Nowhere);

fn signed() -> MutexGuard<'static, Signed> {
    SIGNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ranks that lack, if they do.
static LACKING: OnceLock<Lacking> = OnceLock::new();

/// Ranks without the recorder.
#[derive(Debug)]
pub(crate) struct Lacking {
    /// As people are told: `rank 1`, `ranks 1-3, 8`.
    pub(crate) ranks: String,
    /// This rank is the one that tells.
    pub(crate) told_here: bool,
}

/// The ranks without the recorder, if that is why ranks do nothing together.
pub(crate) fn lacking() -> Option<&'static Lacking> {
    LACKING.get()
}

/// This rank and the number of ranks, if all of them are on this node and what [`run::identity`] says is this job's alone.
fn place(variable: &dyn Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    let pair = |rank, size| Some((number(rank)?, number(size)?));
    let slurm = || pair("SLURM_PROCID", "SLURM_NTASKS").filter(|_| number("SLURM_STEP_NUM_NODES") == Some(1));
    let [pmix, hydra, pmi] =
        ["PMIX_NAMESPACE", "HYDI_CONTROL_FD", "PMI_RANK"].map(|name| variable(name).is_some());
    match (pmix, hydra) {
        // A launcher below another one leaves its ranks the other's variables, too.
        (true, false) if !pmi => match pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") {
            Some(of) => Some(of).filter(|(_, size)| number("OMPI_COMM_WORLD_LOCAL_SIZE") == Some(*size)),
            None => slurm(),
        },
        // Spawned jobs may be of the same process of Hydra's.
        (false, true) if variable("PMI_SPAWNED").is_none() => {
            pair("PMI_RANK", "PMI_SIZE").filter(|(_, size)| number("MPI_LOCALNRANKS") == Some(*size))
        }
        (false, false) => slurm(),
        _ => None,
    }
}

/// This rank is recorded, and about to enter `MPI_Init`.
pub(crate) fn sign() {
    let variable = |name: &str| env::var(name).ok();
    let Some((rank, size)) = place(&variable).filter(|(rank, size)| *size > 1 && rank < size) else { return };
    let (run, directory) = (run::identity(None), env::var_os("ST_OUTPUT").unwrap_or_default());
    if run.is_empty() || directory.is_empty() {
        return;
    }
    // Whatever happens now, the others find this rank lacking unless it has signed.
    *signed() = Signed::Failed(size, "internal error".into());
    let path = Path::new(&directory).join(format!(".ranks-{run}"));
    let path = std::path::absolute(&path).unwrap_or(path);
    *signed() = match List::sign(&path, rank, size) {
        Ok(list) => Signed::In(list),
        Err(e) => Signed::Failed(size, format!("{}: {e}", path.display())),
    };
}

/// Whether all ranks are recorded, as far as that can be told: the same on all that are. Called when `MPI_Init` has returned; what is
/// said of it is said once.
pub(crate) fn is_full(world: u32) -> bool {
    match std::mem::replace(&mut *signed(), Signed::Nowhere) {
        Signed::Failed(size, why) if size == world => {
            warn(&format!(
                "{why}: clocks are not compared, since other ranks do not know that this one is recorded"
            ));
            let _ = LACKING.set(Lacking { ranks: "some rank".into(), told_here: false });
            false
        }
        Signed::In(list) if list.size == world => {
            let full = list.is_full(PATIENCE);
            if !full {
                tell(&list);
            }
            full
        }
        // What the launcher says is not of this job.
        _ => true,
    }
}

/// Says who lacks.
fn tell(list: &List) {
    let ranks = list.lacking();
    let (number, names) = (if ranks.len() == 1 { "rank" } else { "ranks" }, plain(&ranks));
    let (ranks, first) = (format!("{number} {names}"), (0..list.size).find(|rank| !ranks.contains(*rank)));
    let told_here = first == Some(list.rank);
    if told_here {
        let are = if number == "rank" { "is" } else { "are" };
        say(&format!("{ranks} {are} not recorded: clocks are not compared"));
    }
    let _ = LACKING.set(Lacking { ranks, told_here });
}

/// The list, as this rank has it.
struct List {
    path: PathBuf,
    mapping: Mapping,
    rank: u32,
    size: u32,
}

impl List {
    fn sign(path: &Path, rank: u32, size: u32) -> io::Result<Self> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        for _ in 0..OTHERS {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
            let mapping = Mapping::new(&file, 0, FIRST + size.to_usize())?;
            let list = Self { path: path.to_owned(), mapping, rank, size };
            list.signature(rank).store(1, Ordering::Relaxed);
            // Who sees the number sees the signatures.
            let before = list.word().fetch_add(1, Ordering::AcqRel);
            if before + 1 == u64::from(size) {
                list.remove();
            }
            if before & !CLOSED < u64::from(size) {
                return Ok(list);
            }
            // Its last rank is about to remove it.
            sleep(NAP);
        }
        Err(io::ErrorKind::QuotaExceeded.into())
    }

    /// The number of signatures, with [`CLOSED`].
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the mapping begins with it, aligned as pages are, and lives as long as we do; nobody writes there otherwise.
        unsafe { AtomicU64::from_ptr(self.mapping.address().cast()) }
    }

    fn signature(&self, rank: u32) -> &AtomicU8 {
        let at = FIRST + rank.min(self.size - 1).to_usize();
        // SAFETY: as above; it is within the mapping.
        unsafe { AtomicU8::from_ptr(self.mapping.address().add(at)) }
    }

    fn is_full(&self, patience: Duration) -> bool {
        let since = Instant::now();
        loop {
            let word = self.word().load(Ordering::Acquire);
            if word & CLOSED != 0 || word >= u64::from(self.size) {
                return word & CLOSED == 0;
            }
            if since.elapsed() < patience {
                sleep(NAP);
                continue;
            }
            let closed =
                self.word().compare_exchange(word, word | CLOSED, Ordering::AcqRel, Ordering::Acquire);
            if closed.is_ok() {
                self.remove();
            }
        }
    }

    fn lacking(&self) -> RankList {
        (0..self.size).filter(|rank| self.signature(*rank).load(Ordering::Relaxed) == 0).collect()
    }

    /// Removes the file: once, by the rank that makes the list what it stays.
    fn remove(&self) {
        // Nothing more can be done if even this fails; it has a page, and a name that no other job asks for.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_directory<R>(name: &str, test: impl FnOnce(&Path) -> R) -> R {
        let directory = env::temp_dir().join(format!("st-pmpi-muster-{name}-{}", std::process::id()));
        let result = test(&directory.join("list"));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir_all(&directory).unwrap();
        result
    }

    #[test]
    fn all_ranks_find_the_same_whoever_lacks_and_whoever_is_late() {
        in_directory("same", |path| {
            for round in 0..200_u64 {
                let late = Duration::from_micros(round * 20 % 700);
                let found: Vec<bool> = std::thread::scope(|s| {
                    let rank = |rank: u32| {
                        s.spawn(move || {
                            if rank == 3 {
                                sleep(late);
                            }
                            List::sign(path, rank, 4).unwrap().is_full(Duration::from_micros(300))
                        })
                    };
                    let present = if round % 4 == 0 { 3 } else { 4 };
                    let all: Vec<_> = (0..present).map(rank).collect();
                    all.into_iter().map(|rank| rank.join().unwrap()).collect()
                });
                // One that comes after the list is closed and gone has one of its own.
                assert!(found.iter().all(|full| *full == found[0]), "{found:?}");
                assert!(found[0] <= (found.len() == 4));
            }
        });
    }

    #[test]
    fn who_lacks_is_known_and_a_full_list_is_not_signed_again() {
        in_directory("who", |path| {
            let lists = [0, 2].map(|rank| List::sign(path, rank, 3).unwrap());
            assert!(!lists[0].is_full(Duration::ZERO) && !lists[1].is_full(PATIENCE));
            assert_eq!(lists[1].lacking().iter().collect::<Vec<_>>(), [1]);
            let full = [0, 1].map(|rank| List::sign(path, rank, 2).unwrap());
            assert!(full.iter().all(|list| list.is_full(Duration::ZERO)) && !path.exists());
            let alone = List::sign(path, 0, 2).unwrap();
            assert!(!alone.is_full(Duration::ZERO) && full[0].is_full(Duration::ZERO));
        });
    }

    #[test]
    fn there_is_a_list_only_where_a_launcher_says_that_all_are_here() {
        let of = |pairs: &[(&str, &str)]| {
            place(&|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let openmpi = |local| {
            let [rank, size] = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
            [("PMIX_NAMESPACE", "7"), rank, size, ("OMPI_COMM_WORLD_LOCAL_SIZE", local)]
        };
        assert_eq!([of(&openmpi("4")), of(&openmpi("2"))], [Some((1, 4)), None]);
        let hydra = |local| {
            [("HYDI_CONTROL_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", local)]
        };
        assert_eq!([of(&hydra("4")), of(&hydra("1"))], [Some((2, 4)), None]);
        assert_eq!(of(&[&hydra("4")[..], &[("PMI_SPAWNED", "1")]].concat()), None);
        // Which of two launchers the job is of nothing tells.
        assert_eq!(of(&[&openmpi("4")[..], &hydra("4")].concat()), None);
        let slurm = |nodes| [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "3"), ("SLURM_STEP_NUM_NODES", nodes)];
        assert_eq!([of(&slurm("1")), of(&slurm("2")), of(&[])], [Some((0, 3)), None, None]);
        assert_eq!(of(&[&[("PMIX_NAMESPACE", "slurm.7.0")], &slurm("1")[..]].concat()), Some((0, 3)));
    }
}
