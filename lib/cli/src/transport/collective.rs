//! What all processes do together. Every process calls the same functions in the same order.

use anyhow::Result;

use super::{COLLECTIVE, Gone, Transport};
use crate::status::{Elsewhere, line_and_code};

/// Sends to each process what is its, and returns what each sent here. What a process sends to itself stays there.
///
/// # Errors
///
/// If a process is gone.
pub fn swap(job: &mut dyn Transport, mut out: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Gone> {
    let (me, n) = (job.rank(), job.size());
    out.resize_with(n, Vec::new);
    let mut found: Vec<Vec<u8>> = (0..n).map(|_| Vec::new()).collect();
    // Each begins with its neighbour, so that not all send to the same one.
    for step in 1..n {
        let to = (me + step) % n;
        job.send(to, COLLECTIVE, std::mem::take(&mut out[to]))?;
    }
    found[me] = std::mem::take(&mut out[me]);
    for step in 1..n {
        let from = (me + n - step) % n;
        found[from] = job.receive(from, COLLECTIVE)?;
    }
    Ok(found)
}

/// What every process has to say, by process.
///
/// # Errors
///
/// If a process is gone.
pub fn all(job: &mut dyn Transport, mine: &[u8]) -> Result<Vec<Vec<u8>>, Gone> {
    let n = job.size();
    swap(job, (0..n).map(|_| mine.to_vec()).collect())
}

/// What the first process has to say.
///
/// # Errors
///
/// If a process is gone.
pub fn tell(job: &mut dyn Transport, mine: Vec<u8>) -> Result<Vec<u8>, Gone> {
    if job.rank() > 0 {
        return job.receive(0, COLLECTIVE);
    }
    for to in 1..job.size() {
        job.send(to, COLLECTIVE, mine.clone())?;
    }
    Ok(mine)
}

/// Hands what every process has to say to the first, one after the other, by process; `take` is called there only.
///
/// # Errors
///
/// If a process is gone, or as `take`; the latter on the first process only.
pub fn gather(
    job: &mut dyn Transport,
    mine: Vec<u8>,
    mut take: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    if job.rank() > 0 {
        return Ok(job.send(0, COLLECTIVE, mine)?);
    }
    let mut taken = take(0, mine);
    for from in 1..job.size() {
        // All are heard, so that nobody's message is left over.
        let theirs = job.receive(from, COLLECTIVE)?;
        taken = taken.and_then(|()| take(from, theirs));
    }
    taken
}

/// Hands what processes have up a binomial tree: each takes in what those after it have, from neighbours to those farther
/// away, and hands on the whole. The first one has all in the end, the others nothing.
///
/// A process that fails is taken to have nothing: the others go on, until all [`agree`].
///
/// # Errors
///
/// If a process is gone, or on a process where `pack` or `take` fails.
pub fn climb<T>(
    job: &mut dyn Transport,
    mine: T,
    pack: impl FnOnce(T) -> Result<Vec<u8>>,
    mut take: impl FnMut(&mut T, &[u8]) -> Result<()>,
) -> Result<Option<T>> {
    let (me, n) = (job.rank(), job.size());
    let mut mine = Ok(mine);
    let mut step = 1;
    while step < n {
        if me & step != 0 {
            let packed = mine.and_then(pack);
            job.send(me - step, COLLECTIVE, packed.as_ref().ok().cloned().unwrap_or_default())?;
            return packed.map(|_| None);
        }
        if me + step < n {
            let theirs = job.receive(me + step, COLLECTIVE)?;
            mine = mine.and_then(|mut all| {
                let taken = if theirs.is_empty() { Ok(()) } else { take(&mut all, &theirs) };
                taken.map(|()| all)
            });
        }
        step *= 2;
    }
    mine.map(Some)
}

/// Goes on only if all processes can: if some failed, all fail, and the first of them says why.
///
/// # Errors
///
/// If a process failed: the error itself on the one that says why, [`Elsewhere`] on the others.
pub fn agree<T>(job: &mut dyn Transport, mine: Result<T>) -> Result<T> {
    let code = match &mine {
        Ok(_) => None,
        Err(error) => Some(line_and_code(error).1),
    };
    let codes = all(job, code.as_slice())?;
    let first = codes.iter().enumerate().find_map(|(p, c)| Some((p, *c.first()?)));
    match (first, mine) {
        (None, mine) => mine,
        (Some((process, _)), Err(error)) if process == job.rank() => Err(error),
        (Some((_, code)), _) => Err(Elsewhere(code).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UsageError;
    use crate::transport::threads;

    fn each<T: Send>(n: usize, act: impl Fn(&mut dyn Transport) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let act = &act;
            let running: Vec<_> =
                threads(n).into_iter().map(|mut t| scope.spawn(move || act(&mut t))).collect();
            running.into_iter().map(|r| r.join().unwrap()).collect()
        })
    }

    #[test]
    fn everybody_has_what_was_sent_to_it() {
        for n in 1..5 {
            let found = each(n, |job| {
                let me = u8::try_from(job.rank()).unwrap();
                let out = (0..job.size()).map(|to| vec![me; to + 1]).collect();
                (swap(job, out).unwrap(), tell(job, vec![me]).unwrap())
            });
            for (me, (from, told)) in found.into_iter().enumerate() {
                assert_eq!(told, [0]);
                let expected: Vec<_> = (0..n).map(|p| vec![u8::try_from(p).unwrap(); me + 1]).collect();
                assert_eq!(from, expected);
            }
        }
    }

    #[test]
    fn the_first_has_all_in_order() {
        let found = each(3, |job| {
            let (me, mut heard) = (u8::try_from(job.rank()).unwrap(), Vec::new());
            gather(job, vec![me; 2], |from, bytes| {
                heard.push((from, bytes));
                Ok(())
            })
            .unwrap();
            heard
        });
        assert_eq!(found[0], [(0, vec![0, 0]), (1, vec![1, 1]), (2, vec![2, 2])]);
        assert!(found[1].is_empty() && found[2].is_empty());
    }

    #[test]
    fn what_climbs_comes_in_order() {
        for n in 1..8 {
            let found = each(n, |job| {
                let me = u8::try_from(job.rank()).unwrap();
                climb(job, vec![me], Ok, |all, theirs| {
                    all.extend(theirs);
                    Ok(())
                })
                .unwrap()
            });
            let all: Vec<u8> = (0..).take(n).collect();
            assert_eq!(found[0], Some(all));
            assert!(found[1..].iter().all(Option::is_none));
        }
        let failed = each(4, |job| {
            let rank = job.rank();
            climb(
                job,
                (),
                |()| if rank == 2 { Err(UsageError("no".into()).into()) } else { Ok(vec![1]) },
                |_, _| Ok(()),
            )
            .is_err()
        });
        assert_eq!(failed, [false, false, true, false]);
    }

    #[test]
    fn one_failure_is_everybodys_and_said_once() {
        let found = each(4, |job| {
            let mine = if job.rank() >= 2 { Err(UsageError("no".into()).into()) } else { Ok(job.rank()) };
            agree(job, mine).map_err(|e| line_and_code(&e))
        });
        let silent = Err((None, 2));
        assert_eq!(found, [silent.clone(), silent.clone(), Err((Some("no".into()), 2)), silent]);
        assert_eq!(each(2, |job| agree(job, Ok(7)).unwrap()), [7, 7]);
    }
}
