//! Jobs of a real Slurm, in a cluster of this machine alone (`tools/slurm`).

use std::time::Duration;

use st_cli::Mpi;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::Workplace;
use st_tests::{Failure, place};

use crate::launch::{check, complete, under_each};

/// `tools/slurm` says so: something is missing.
const NO_CLUSTER: i32 = 3;

/// Runs lines of the shell in a cluster.
fn cluster(p: &Workplace, lines: &[String]) -> Result<Outcome, Failure> {
    let lines = format!("set -e\n{}", lines.join("\n"));
    p.go(Run::new(place::root().join("tools/slurm"), ["sh", "-c", &lines]).limit(Duration::from_secs(150)))
}

#[test]
fn ranks_that_srun_starts_are_recorded() {
    under_each(|p| {
        let n = p.job.ranks;
        let start = match p.job.mpi {
            Mpi::Openmpi => "srun --mpi=pmix",
            Mpi::Mpich => "srun --mpi=pmi2",
        };
        let st_record = place::program("st-record")?;
        let record = format!("{} -q", st_record.display());
        // Programs from which nothing tells the MPI before they run.
        p.script("wrapped", "#!/bin/sh\nexec ./leaves\n")?;
        p.script("several", &format!("0-{} ./leaves\n", n - 1))?;
        p.script("job", &format!("#!/bin/sh\n#SBATCH -n {n} -o said\n{start} -n {n} ./leaves\n"))?;
        let lines = [
            format!("{record} -o outside.st -- {start} -n {n} ./leaves"),
            format!("{start} -n {n} {record} -o inside -- ./leaves"),
            format!("{record} -o script.st -- {start} -J test -n {n} ./wrapped"),
            format!("{start} -n {n} {record} -o within -- ./wrapped"),
            format!("{record} -o several.st -- {start} -n {n} --multi-prog several"),
            format!(
                "{record} --check -- {start} -n {n} --multi-prog several | grep -q './leaves: dynamically linked'"
            ),
            format!("{record} -o none.st -- {start} --export=NONE -n {n} ./leaves"),
            format!("{record} -o batch.st -- sbatch --wait job"),
        ];
        let o = cluster(p, &lines)?;
        if o.status == NO_CLUSTER {
            place::say(&format!("not tested under Slurm: {}", o.stderr.trim()));
            return Ok(());
        }
        let o = o.ok()?;
        for trace in ["outside.st", "inside", "script.st", "within", "several.st", "none.st", "batch.st"] {
            complete(p, &p.path(trace)).map_err(|e| format!("{trace}: {e}\n{o}"))?;
        }
        check(p.names(".").iter().all(|name| !name.contains("-2")), "one trace of each", &o)
    });
}
