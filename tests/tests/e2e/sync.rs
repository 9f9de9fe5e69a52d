//! Clocks that drift by a known amount, corrected, and compared with the truth.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::{Failure, conclude, place};
use st_tool::Mpi;
use st_trace::stream::{ReadOptions, read};

/// A rank's fake clock: offset in ns, drift in ns per s, and after how many ms another drift.
#[derive(Clone, Copy)]
struct Fake {
    offset: i64,
    drift: i64,
    kink: Option<(i64, i64)>,
}

impl Fake {
    /// What the preloaded library is told.
    fn words(self) -> String {
        let Self { offset, drift, kink } = self;
        let (at, later) = kink.unwrap_or((1 << 40, 0));
        format!("{offset}:{drift}:{at}:{later}")
    }
    /// The true time of a reading.
    fn truth(self, reading: i64, base: i64) -> i64 {
        let since = reading - self.offset - base;
        let undrifted = |t: i64, drift: i64| part(t, 1_000_000_000, 1_000_000_000 + drift);
        match self.kink {
            Some((at, later)) if undrifted(since, self.drift) > at * 1_000_000 => {
                let first = at * 1_000_000;
                let shown = first + part(first, self.drift, 1_000_000_000);
                base + first + undrifted(since - shown, later)
            }
            _ => base + undrifted(since, self.drift),
        }
    }
}

/// `t · a / b`.
fn part(t: i64, a: i64, b: i64) -> i64 {
    i64::try_from(i128::from(t) * i128::from(a) / i128::from(b)).unwrap()
}

/// Seconds since the machine started, as ns: where drifting begins.
fn now() -> Result<i64, Failure> {
    let text = std::fs::read_to_string("/proc/uptime").map_err(|e| e.to_string())?;
    let seconds: f64 = text.split(' ').next().and_then(|w| w.parse().ok()).ok_or("/proc/uptime")?;
    #[expect(clippy::cast_possible_truncation, reason = "an uptime")]
    Ok(seconds as i64 * 1_000_000_000)
}

/// All times of all ranks, in order.
fn times(trace: &Path) -> Result<Vec<Vec<i64>>, Failure> {
    let file = std::fs::File::open(trace).map_err(|e| format!("{}: {e}", trace.display()))?;
    let trace = read(std::io::BufReader::new(file), ReadOptions::default()).map_err(|e| e.to_string())?;
    let columns = trace.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    Ok(columns.map(|(_, c)| c.times().flat_map(|(a, b)| [a, b]).collect()).collect())
}

/// Mean and largest distance of times from the truth, ns.
fn residual(trace: &Path, truth: &[Vec<i64>]) -> Result<(u64, u64), Failure> {
    let found = times(trace)?;
    let errors: Vec<u64> =
        found.iter().flatten().zip(truth.iter().flatten()).map(|(a, b)| a.abs_diff(*b)).collect();
    let n = u64::try_from(errors.len()).unwrap_or(1).max(1);
    Ok((errors.iter().sum::<u64>() / n, errors.iter().copied().max().unwrap_or(0)))
}

/// Messages violated, as st-stat counts them.
fn violated(trace: &Path) -> Result<(u64, u64), Failure> {
    let args = ["violations".as_ref(), "--format".as_ref(), "json".as_ref(), trace.as_os_str()];
    let text = Run::st("st-stat", args)?.go()?.ok()?.text();
    let mut sums = (0, 0);
    for line in text.lines().take(2) {
        let row: serde_json::Value = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
        sums.0 += row["reversed"].as_u64().unwrap_or(0);
        sums.1 += row["all"].as_u64().unwrap_or(0);
    }
    Ok(sums)
}

struct Case {
    raw: PathBuf,
    truth: Vec<Vec<i64>>,
    /// Largest error bound that the recorder states, ns.
    bound: u64,
}

/// Records a kernel under fake clocks.
fn recorded(name: &str, fakes: &[Fake], steps: &str) -> Result<Case, Failure> {
    let job = Job::of(Mpi::Openmpi);
    let directory = place::scratch();
    let shim = directory.join("clocks.so");
    let source = place::root().join("tests/fixtures/clocks.c");
    let flags: [&std::ffi::OsStr; 6] =
        ["-O2".as_ref(), "-shared".as_ref(), "-fPIC".as_ref(), "-o".as_ref(), shim.as_ref(), source.as_ref()];
    Run::new("cc", flags).go()?.ok()?;
    let raw = directory.join(format!("{name}.st"));
    let base = now()?;
    let spec: Vec<String> = fakes.iter().map(|f| f.words()).collect();
    let app =
        [place::program("st-kernels")?.into_os_string(), "stencil2d".into(), "--steps".into(), steps.into()];
    let run = job.record(&raw, app)?.env("LD_PRELOAD", &shim).env("ST_CLOCK", "monotonic");
    let run = run.env("ST_FAKE_CLOCKS", spec.join(" ")).env("ST_FAKE_BASE", base.to_string());
    job.go(run)?.ok()?;
    let seen = times(&raw)?;
    let truth = seen.iter().zip(fakes).map(|(t, f)| t.iter().map(|t| f.truth(*t, base)).collect());
    let truth = truth.collect();
    let file = std::fs::File::open(&raw).map_err(|e| e.to_string())?;
    let trace = read(std::io::BufReader::new(file), ReadOptions::default()).map_err(|e| e.to_string())?;
    let columns = trace.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    let mut bound = 0;
    for (rank, column) in columns {
        if column.clock.points.len() != 2 {
            return Err(format!("rank {rank}: {} comparisons instead of 2", column.clock.points.len()));
        }
        bound = column.clock.points.iter().map(|p| p.error.unsigned_abs()).fold(bound, u64::max);
    }
    Ok(Case { raw, truth, bound })
}

/// Residual error (mean, largest), or reversed messages (how many, of how many).
type Two = (u64, u64);

/// Corrects with a method; residual error and reversed messages.
fn corrected(case: &Case, method: &str) -> Result<(PathBuf, Two, Two), Failure> {
    let out = case.raw.with_extension(format!("{method}.st"));
    let args = [
        "--method".as_ref(),
        method.as_ref(),
        "--lmin-intra=0".as_ref(),
        "-o".as_ref(),
        out.as_os_str(),
        case.raw.as_os_str(),
    ];
    Run::st("st-sync", args)?.go()?.ok()?;
    let (error, counts) = (residual(&out, &case.truth)?, violated(&out)?);
    Ok((out, error, counts))
}

fn failures(test: impl FnOnce() -> Result<(), Failure>) -> Vec<Failure> {
    test().err().into_iter().collect()
}

fn has_openmpi() -> bool {
    place::mpis().contains(&Mpi::Openmpi)
}

#[test]
fn linear_clocks_come_back_within_the_stated_error() {
    if !has_openmpi() {
        return place::say("Open MPI is not installed: drifting clocks are not tested");
    }
    let fake = |offset, drift| Fake { offset, drift, kink: None };
    let fakes = [fake(0, 0), fake(5_000_000, 40_000), fake(-3_000_000, -25_000), fake(900_000, 10_000)];
    conclude(
        1,
        &failures(|| {
            let case = recorded("drift", &fakes, "200")?;
            let mut table = String::new();
            let mut by_method = Vec::new();
            for method in ["none", "offset", "linear", "clc"] {
                let (_, (mean, largest), (reversed, all)) = corrected(&case, method)?;
                let _ = writeln!(
                    table,
                    "{method:<8} mean {mean:>9} ns  largest {largest:>9} ns  reversed {reversed} of {all}"
                );
                by_method.push((mean, largest, reversed));
            }
            place::say(&table);
            let [none, _, linear, clc] = by_method[..] else { return Err("four methods".into()) };
            if none.2 == 0 || none.1 < 5_000_000 {
                return Err(format!("the clocks were not faked:\n{table}"));
            }
            // Outside of the comparisons the line is extended: twice the bound there.
            if linear.1 > 2 * case.bound + 1_000 {
                return Err(format!("more than the stated error of {} ns:\n{table}", case.bound));
            }
            if clc.2 != 0 { Err(format!("messages are still reversed:\n{table}")) } else { Ok(()) }
        }),
    );
}

#[test]
fn a_kink_in_mid_run_is_repaired_by_the_logical_clock() {
    if !has_openmpi() {
        return place::say("Open MPI is not installed: drifting clocks are not tested");
    }
    let straight = Fake { offset: 0, drift: 0, kink: None };
    // The drift turns soon after the beginning, in seconds by a millisecond each.
    let bent = Fake { offset: 2_000_000, drift: 2_000_000, kink: Some((2_500, -1_500_000)) };
    conclude(
        1,
        &failures(|| {
            let case = recorded("kink", &[straight, bent, straight, bent], "200")?;
            let (_, _, (linear, all)) = corrected(&case, "linear")?;
            let (out, _, (clc, _)) = corrected(&case, "clc")?;
            place::say(&format!(
                "kink: {linear} of {all} messages reversed after interpolation, {clc} after the logical clock"
            ));
            if clc != 0 {
                return Err(format!("{clc} messages are reversed"));
            }
            // The result is a fixed point, and a sound trace.
            let again = out.with_extension("again.st");
            let args = ["--lmin-intra=0".as_ref(), "-o".as_ref(), again.as_os_str(), out.as_os_str()];
            Run::st("st-sync", args)?.go()?.ok()?;
            if times(&again)? != times(&out)? {
                return Err("a second run changes times".into());
            }
            Run::st("st-view", ["--check".as_ref(), out.as_os_str()])?.go()?.ok()?;
            Ok(())
        }),
    );
}

#[test]
fn correct_clocks_are_left_alone() {
    // One machine, one clock: whatever is reversed would be a mistake of ours.
    for job in Job::all() {
        for subject in st_tests::recordings::Subject::kernels() {
            let recording = st_tests::recordings::of(job, &subject).unwrap();
            let (reversed, _) = violated(&recording.trace).unwrap();
            assert_eq!(reversed, 0, "{subject}, {job}");
        }
    }
}
