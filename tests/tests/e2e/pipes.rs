//! Stages in pipelines, exit statuses, and outputs that are whole or not there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use st_tests::process::{Outcome, Run};
use st_tests::{Failure, conclude, place};

/// All programs.
const PROGRAMS: [&str; 7] =
    ["st-record", "st-cluster", "st-merge", "st-view", "st-stat", "st-replay", "st-kernels"];

/// A shell line in a directory of its own, with st's programs in `PATH` and the status of each stage printed last, as
/// `status: 0 0`.
struct Shell {
    directory: tempfile::TempDir,
}

impl Shell {
    /// In the directory: `a.st`, a trace on paper; `b.st`, another; `text`, no trace; `cut.st`, half a trace.
    fn new() -> Result<Self, Failure> {
        let shell = Self { directory: place::directory()? };
        let kernel = |steps: &str, file: &str| {
            let args = ["stencil2d", "--steps", steps, "--paper", "--ranks", "4", "-o", file];
            Run::st("st-kernels", args)?.within(shell.directory.path()).go()?.ok()
        };
        kernel("40", "a.st")?;
        kernel("41", "b.st")?;
        let told = |e: std::io::Error| e.to_string();
        fs::write(shell.path("text"), "This is no trace, but a text.\n").map_err(told)?;
        let whole = fs::read(shell.path("a.st")).map_err(told)?;
        fs::write(shell.path("cut.st"), &whole[..whole.len() * 9 / 10]).map_err(told)?;
        Ok(shell)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, line: &str) -> Result<Outcome, Failure> {
        let bin = place::program("st-view")?;
        let bin = bin.parent().unwrap_or(Path::new("."));
        let path = std::env::var("PATH").unwrap_or_default();
        let script = format!("{line}\necho status: \"${{PIPESTATUS[@]}}\"");
        Run::new("bash", ["-c", &script])
            .env("PATH", format!("{}:{path}", bin.display()))
            .within(self.directory.path())
            .go()
    }

    /// The files in the directory.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Runs lines; each must end with these statuses and say these words on standard output and error together.
fn lines(cases: &[(&str, &str, &[&str])]) {
    let shell = Shell::new().unwrap();
    let before = shell.files();
    let mut failures = Vec::new();
    for (line, statuses, words) in cases {
        let outcome = shell.run(line).unwrap();
        let all = format!("{}{}", outcome.text(), outcome.stderr);
        let expected = format!("status: {statuses}\n");
        let said = words.iter().all(|w| all.contains(w));
        if !outcome.text().ends_with(&expected) || !said || all.contains("panicked") {
            failures.push(format!("expected {statuses} and {words:?}: {outcome}"));
        }
        if shell.files() != before {
            failures.push(format!("{line}: left {:?}", shell.files()));
            break;
        }
    }
    conclude(cases.len(), &failures);
}

#[test]
fn stages_pass_traces_through_pipes() {
    lines(&[
        ("st-merge a.st | st-stat", "0 0", &["MPI_"]),
        ("cat a.st | st-merge | st-view --check", "0 0 0", &[]),
        ("st-merge - < a.st | st-view --calls - | grep -c MPI_Isend", "0 0 0", &["640"]),
        (
            "st-kernels ocean --paper --ranks 5 | st-merge | st-stat calls --format csv",
            "0 0 0",
            &["MPI_Allreduce,"],
        ),
        (
            "st-merge a.st | st-view --text | st-view --from-text | st-stat diff a.st -",
            "0 0 0 0",
            &["no difference"],
        ),
        ("st-view --text a.st | st-view --from-text | cmp - a.st", "0 0 0", &[]),
    ]);
}

#[test]
fn expressions_are_for_calls_that_are_there() {
    let others: &[&str] = &["there are no such calls, but "];
    lines(&[
        ("st-cluster --param MPI_Sendrecv:dest me+1 a.st >/dev/null", "2", others),
        ("st-merge --param '@site 99:dest' 0 a.st >/dev/null", "2", others),
        ("st-merge --param '@site 0:dest' 0 <a.st >/dev/null", "2", &["take files"]),
        ("st-cluster --param MPI_Send:dest me+ a.st >/dev/null", "2", &["expected"]),
    ]);
}

#[test]
fn clusters_stand_for_their_ranks() {
    let bare = "--no-provenance";
    // In which order ranks were slow only exact times tell, which st-cluster folds.
    let told = "| st-view --text | grep -v '^  slow '";
    let same = |kernel: &str| {
        let ranks = format!("st-kernels {kernel} --paper --ranks 16");
        format!(
            "cmp <({ranks} | st-merge {bare} {told}) <({ranks} | st-cluster {bare} | st-merge {bare} {told}) && {ranks} | st-cluster | st-view --check"
        )
    };
    let kernels = "wavefront sweeps fft sort transpose unstructured multigrid ocean amr threads";
    let mut equal: Vec<String> = kernels.split(' ').map(same).collect();
    // What a user says need be said only once.
    let said = "--let 'q=4' --param 'MPI_Send:dest' 'n % 3 ? me ^ 1 : me % q * q + me / q'";
    let said = format!("{said} --param @transpose.rs:73:33:source 'me % q * q + me / q'");
    let ranks = "st-kernels transpose --paper --ranks 16";
    equal.push(format!(
        "cmp <({ranks} | st-merge {bare} {said} {told}) <({ranks} | st-cluster {bare} {said} | st-merge {bare} {said} {told}) && {ranks} | st-cluster {said} | st-view --check"
    ));
    let ok: &[&str] = &["calls ok, sites ok, endpoints ok, counts ok, tags ok, rest ok"];
    let wavefront = "st-kernels wavefront --steps 3 --paper --ranks 64";
    let sweeps = "st-kernels sweeps --paper --ranks 25 | st-cluster --signature paper --count-tolerance 5%";
    let square = "st-kernels transpose --paper --ranks 64 | st-cluster --signature paper -v";
    let formula = "'me % q * q + me / q'";
    let forced = "st-kernels workers --paper --ranks 24 | st-cluster --force-merge dest,source,count";
    let more: [(String, &str, &[&str]); 16] = [
        (
            format!(
                "{wavefront} | st-cluster | st-stat clusters --draw g.png >/dev/null && head -c4 g.png | tail -c3 && rm g.png"
            ),
            "0",
            &["PNG"],
        ),
        (format!("{square} >/dev/null"), "0 0", &["1 main cluster, 48 sub-clusters"]),
        (
            format!(
                "{square} --let q=8 --param '@transpose.rs:74:15 < transpose.rs:54:13:dest' {formula} --param '@transpose.rs:73:33 < transpose.rs:54:13:source' {formula} >/dev/null"
            ),
            "0 0",
            &["1 main cluster, 8 sub-clusters"],
        ),
        (format!("{forced} | st-view --check"), "0 0 0", &["calls ok", "counts voided"]),
        (format!("{forced} | st-merge | st-view --check"), "0 0 0 0", &["calls ok", "counts voided"]),
        (
            "cmp <(st-cluster --no-provenance -j1 a.st) <(st-cluster --no-provenance -j3 a.st)".into(),
            "0",
            &[],
        ),
        (format!("{wavefront} | st-cluster -v >/dev/null"), "0 0", &["9 main clusters, 9 sub-clusters"]),
        (
            format!("{wavefront} | st-cluster | st-stat clusters"),
            "0 0 0",
            &["call 4: MPI_Recv site ", "D E E E E E E F"],
        ),
        (
            format!("{wavefront} | st-cluster | st-stat clusters --space --format csv"),
            "0 0 0",
            &["ranks,trace_bytes,signature_bytes"],
        ),
        (format!("{sweeps} | st-view --check"), "0 0 0", &["calls ok, sites ok, endpoints ok, counts ok"]),
        (format!("{sweeps} | st-stat clusters"), "0 0 0", &["source me-1, not me+4", "A B B B C"]),
        ("st-cluster --keep-all --table - -o /dev/null a.st".into(), "0", &["0,0,0,4,<1 0 4 1>"]),
        ("st-cluster --keep-all --table /dev/null a.st | st-merge | st-view --check".into(), "0 0 0", ok),
        (
            "st-cluster --keep-columns a.st | st-merge --keep-columns | st-view --json | grep -c '\"enter\"'"
                .into(),
            "0 0 0 0",
            &[],
        ),
        ("st-merge a.st | st-cluster >/dev/null".into(), "0 1", &["cluster before merging"]),
        ("st-cluster --count-tolerance 5 a.st".into(), "2", &["not a percentage"]),
    ];
    let equal = equal.iter().map(|line| (line.as_str(), "0 0 0", ok));
    let more = more.iter().map(|(line, statuses, words)| (line.as_str(), *statuses, *words));
    lines(&equal.chain(more).collect::<Vec<_>>());
}

#[test]
fn rounded_times_are_marked() {
    let rounded = "st-merge --keep-columns --quantise 1000 a.st";
    let cases: [(String, &str, &[&str]); 7] = [
        (format!("{rounded} | st-view --check"), "0 0", &["times rounded to 1000 ns", "rest ok"]),
        (
            format!("{rounded} | st-stat"),
            "0 0",
            &["times of every call, rounded to 1000 ns, and distributions"],
        ),
        (
            format!("{rounded} | st-view --text | st-view --from-text | st-view --check"),
            "0 0 0 0",
            &["to 1000 ns"],
        ),
        // What is rounded stays as it is, and does not become exact.
        (
            format!("{rounded} | st-merge --keep-columns --quantise 7 - | st-view --check"),
            "0 0 0",
            &["to 1000 ns", "already"],
        ),
        (format!("{rounded} | st-sync >/dev/null"), "0 1", &["times are rounded to 1000 ns"]),
        (format!("{rounded} | st-stat violations >/dev/null"), "0 1", &["times are rounded to 1000 ns"]),
        ("st-merge --quantise 1000 a.st".into(), "2", &["--keep-columns"]),
    ];
    let cases: Vec<_> =
        cases.iter().map(|(line, statuses, words)| (line.as_str(), *statuses, *words)).collect();
    lines(&cases);
}

#[test]
fn tags_are_left_out_where_they_tell_nothing_apart() {
    let line = "st-kernels stencil1d --steps 40 --paper --ranks 6";
    let blocks = "st-kernels amr --paper --ranks 6";
    let cases: [(String, &str, &[&str]); 4] = [
        (
            format!("{line} | st-merge --drop-tags | st-view --check"),
            "0 0 0",
            &["counts ok, tags voided, rest ok"],
        ),
        (format!("{line} | st-merge --drop-tags | st-stat | grep -c '^left out  *tags$'"), "0 0 0 0", &["1"]),
        (
            format!("{line} | st-merge --drop-tags | st-view --json | grep -c '\"tag\":[1-9]'"),
            "0 0 0 1",
            &["0"],
        ),
        (
            format!("{blocks} | st-merge --drop-tags | st-view --check"),
            "0 0 0",
            &["tags are needed", "tags ok"],
        ),
    ];
    let cases: Vec<_> =
        cases.iter().map(|(line, statuses, words)| (line.as_str(), *statuses, *words)).collect();
    lines(&cases);
}

#[test]
fn histograms_of_parameters_are_marked_and_refused_where_messages_matter() {
    let line = "st-kernels amr --paper --ranks 6";
    let lossy = format!("{line} | st-merge --histogram dest,source,count --histogram-threshold 1");
    let columns = "st-merge --keep-columns --histogram dest --histogram-threshold 1 a.st";
    let total = "st-stat | grep '^sent '";
    let cases: [(String, &str, &[&str]); 10] = [
        (
            format!("{lossy} | st-view --check"),
            "0 0 0",
            &["calls ok, sites ok, endpoints voided, counts voided, tags ok, rest ok"],
        ),
        (
            format!("{line} | st-merge --force-merge dest | st-view --check"),
            "0 0 0",
            &["endpoints voided, counts ok"],
        ),
        (
            format!("{line} | st-merge --histogram dest --histogram-threshold 100000 | st-view --check"),
            "0 0 0",
            &["endpoints ok, counts ok"],
        ),
        (
            format!("{lossy} | st-view --text | st-view --from-text | st-view --check"),
            "0 0 0 0 0",
            &["endpoints voided, counts voided"],
        ),
        (format!("{lossy} | st-merge - | st-view --check"), "0 0 0 0", &["endpoints voided"]),
        (format!("{lossy} | st-stat"), "0 0 0", &["left out", "endpoints, counts", "histograms"]),
        (format!("{lossy} | st-view --json | grep -c '^{{\"histogram\":\"dest\"'"), "0 0 0 0", &["2"]),
        (format!("{lossy} | st-replay --check -"), "0 0 0", &["ok: "]),
        (format!("{columns} | st-sync >/dev/null"), "0 1", &["parameters are histograms"]),
        (format!("{columns} | st-stat violations >/dev/null"), "0 1", &["parameters are histograms"]),
    ];
    let cases: Vec<_> =
        cases.iter().map(|(line, statuses, words)| (line.as_str(), *statuses, *words)).collect();
    lines(&cases);
    // What is sent in all is not drawn.
    let same = format!("test \"$({lossy} | {total})\" = \"$({line} | st-merge | {total})\"");
    lines(&[(same.as_str(), "0", &[])]);
}

/// Source: Bahmani, Mueller 2014, section 5: traces of representatives are replayed on all ranks.
#[test]
fn representatives_by_the_published_signature_can_be_replayed() {
    let names = "stencil1d stencil2d stencil3d multigrid fft sort wavefront sweeps transpose unstructured ocean amr halo rma threads workers";
    let mut cases = Vec::new();
    for kernel in names.split(' ') {
        for cluster in ["st-cluster --signature paper", "st-cluster --signature paper --count-tolerance 5%"] {
            let made = format!("st-kernels {kernel} --paper --ranks 16");
            cases.push(format!("{made} | {cluster} | st-merge | st-replay --check -"));
        }
    }
    cases.push("st-kernels sweeps --paper --ranks 25 | st-cluster --signature paper | st-merge | st-replay --check -".into());
    let cases: Vec<_> = cases.iter().map(|line| (line.as_str(), "0 0 0 0", &["ok: "][..])).collect();
    lines(&cases);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let many = "st-kernels wavefront --paper --ranks 64 --steps 50";
    let cases: Vec<String> =
        ["st-view --calls", "st-view --json", "st-view --text", "st-view", "st-view --flat"]
            .iter()
            .map(|view| format!("{many} | {view} | head -n 1 >/dev/null"))
            .chain([format!("{many} | st-merge --level 0 | head -c 9 >/dev/null")])
            .chain(["st-kernels wavefront --paper --ranks 4000 --steps 1 | st-stat ranks --format csv | head -n 1 >/dev/null".into()])
            .collect();
    let cases: Vec<_> = cases.iter().map(|line| (line.as_str(), "0 0 0", &[][..])).collect();
    lines(&cases);
}

#[test]
fn impossible_command_lines_are_usage_errors() {
    let mut cases = Vec::new();
    for program in PROGRAMS {
        cases.push((format!("{program} --no-such-option"), "2"));
        cases.push((format!("{program} --help >/dev/null"), "0"));
        cases.push((format!("{program} --version | grep -q '^{program} [0-9]'"), "0 0"));
    }
    cases.push(("st-view --text --json a.st".into(), "2"));
    cases.push(("st-stat diff a.st".into(), "2"));
    cases.push(("st-kernels ocean".into(), "2"));
    let cases: Vec<_> = cases.iter().map(|(line, status)| (line.as_str(), *status, &[][..])).collect();
    lines(&cases);
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    lines(&[
        ("st-view text", "3", &["st-view: text: "]),
        ("st-stat text", "3", &["st-stat: text: "]),
        ("st-merge a.st text -o m.st", "3", &["st-merge: text: "]),
        ("st-stat diff a.st text", "3", &["st-stat: text: "]),
        ("st-replay text", "3", &["st-replay: text: "]),
        ("st-view < text", "3", &["st-view: "]),
        ("st-view /dev/null", "3", &["st-view: /dev/null: "]),
        ("st-view no-such-file", "1", &["st-view: no-such-file: "]),
        ("st-merge no-such-file -o m.st", "1", &["st-merge: no-such-file: "]),
        ("st-stat no-such-file", "1", &["st-stat: no-such-file: "]),
    ]);
}

#[test]
fn what_is_empty_is_called_so() {
    let empty = "standard input: empty (0 bytes), where a trace was expected: st-record makes one";
    let programs =
        ["st-view", "st-stat", "st-stat calls", "st-stat sizes", "st-stat diff a.st -", "st-merge -o m.st"];
    let more = ["st-cluster -o m.st", "st-sync -o m.st"];
    let mut cases: Vec<(String, &str, &[&str])> = Vec::new();
    for program in programs.iter().chain(&more) {
        cases.push((format!(": | {program}"), "0 3", std::slice::from_ref(&empty)));
    }
    // Each rank of a replay opens a copy.
    cases.push((": | st-replay -".into(), "0 3", &["standard-input-", ".st: empty (0 bytes)"]));
    cases.push((
        ": | st-view --from-text -o m.st".into(),
        "0 3",
        &["standard input: line 1: expected", "0 bytes"],
    ));
    cases.push((": | st-stat mape --limit 5 --runs -".into(), "0 1", &["no run"]));
    cases.push(("st-view /dev/null".into(), "3", &["/dev/null: empty (0 bytes)"]));
    let cases: Vec<_> = cases.iter().map(|(line, status, words)| (line.as_str(), *status, *words)).collect();
    lines(&cases);
}

/// `script` runs a command on a terminal of its own.
#[test]
fn terminals_show_how_far_programs_are() {
    let slowly = "(head -c 200 a.st; sleep 2; tail -c +201 a.st)";
    let mut cases = Vec::new();
    for program in ["st-merge -o m.st", "st-cluster -o c.st", "st-view --check", "st-stat"] {
        let tool = program.split(' ').next().unwrap_or_default();
        let said = format!("grep -q '{tool}: reading .*/s' typescript");
        let on_terminal = |command: &str| format!("script -qefc '{command}' typescript >/dev/null");
        for line in [
            format!("{} && {said}", on_terminal(&format!("{slowly} | {program}"))),
            format!("{} && ! {said}", on_terminal(&format!("{slowly} | {program} -q"))),
            // Nor where it is over in a moment, or where there is no terminal.
            format!("{} && ! {said}", on_terminal(&format!("{program} a.st"))),
            format!("{slowly} | {program} >/dev/null 2>typescript; ! {said}"),
        ] {
            cases.push((format!("{line}; s=$?; rm -f typescript m.st c.st; (exit $s)"), "0"));
        }
    }
    let cases: Vec<_> = cases.iter().map(|(line, status)| (line.as_str(), *status, &[][..])).collect();
    lines(&cases);
}

#[test]
fn half_a_trace_is_refused_unless_asked_for() {
    lines(&[
        ("st-view --calls cut.st >/dev/null", "3", &["cut.st", "truncated"]),
        ("st-stat cut.st >/dev/null", "3", &["cut.st", "truncated"]),
        ("st-merge cut.st -o m.st", "3", &["cut.st", "truncated"]),
        ("st-replay cut.st", "3", &["cut.st", "truncated"]),
        ("st-view --partial --calls cut.st | grep -c MPI_Init", "0 0", &[]),
        ("st-stat --partial cut.st", "0", &["MPI_"]),
        ("st-merge --partial cut.st | st-view --partial --calls | grep -c MPI_Init", "0 0 0", &[]),
    ]);
}

#[test]
fn a_difference_has_its_own_status() {
    lines(&[
        ("st-stat diff a.st a.st", "0", &["no difference"]),
        ("st-stat diff a.st b.st", "4", &["differ", "MPI_"]),
    ]);
}

#[test]
fn an_output_is_replaced_whole_or_not_at_all() {
    let shell = Shell::new().unwrap();
    fs::write(shell.path("out.st"), "what was there").unwrap();
    let before = shell.files();
    shell.run("st-merge a.st text -o out.st").unwrap();
    shell.run("st-merge cut.st -o out.st").unwrap();
    shell.run("st-view --from-text text -o out.st").unwrap();
    assert_eq!(fs::read(shell.path("out.st")).unwrap(), b"what was there");
    assert_eq!(shell.files(), before, "nothing else was left");
    let done = shell.run("st-merge a.st -o out.st && st-view --check out.st").unwrap();
    assert!(done.text().ends_with("status: 0\n"), "{done}");
    assert_eq!(shell.files(), before, "nothing else was left");
    let full = shell.run("st-cluster a.st --table /dev/full -o none.st; ls none.st").unwrap();
    assert!(full.stderr.contains("/dev/full: cannot write: No space left"), "{full}");
    assert_eq!(shell.files(), before, "nothing else was left");
    let nowhere = shell.run("st-merge a.st -o no/such/directory/out.st").unwrap();
    assert!(
        nowhere.text().ends_with("status: 1\n") && nowhere.stderr.contains("no/such/directory"),
        "{nowhere}"
    );
}

#[test]
fn a_program_that_is_ended_leaves_no_part_of_its_output() {
    let ended = |signal: &str| {
        format!(
            "mkfifo held; sleep 60 >held & holder=$!; st-merge -o z.st - <held & \
             for _ in $(seq 50); do ls -A | grep -q '^[.]z' && break; sleep 0.1; done; \
             echo there: $(ls -A | grep -c '^[.]z'); kill -{signal} $!; wait $!; echo ended: $?; rm held; kill $holder"
        )
    };
    let [term, hup] = ["TERM", "HUP"].map(ended);
    lines(&[(&term, "0", &["there: 1", "ended: 143"]), (&hup, "0", &["there: 1", "ended: 129"])]);
}

#[test]
fn a_stream_is_not_written_to_a_terminal() {
    if place::in_path("script").is_none() {
        place::say("no script(1) on this machine: output to a terminal is NOT tested");
        return;
    }
    let shell = Shell::new().unwrap();
    for line in ["st-merge a.st", "st-kernels ocean --paper --ranks 2"] {
        let inner = format!("script -qec '{line}' /dev/null");
        let outcome = shell.run(&inner).unwrap();
        let text = outcome.text();
        assert!(text.contains("terminal") && text.ends_with("status: 1\n"), "{outcome}");
    }
}

#[test]
fn the_table_forms_are_well_formed() {
    let shell = Shell::new().unwrap();
    for command in ["st-stat", "st-stat calls", "st-stat sizes"] {
        let json = shell.run(&format!("{command} --format json a.st")).unwrap();
        let text = json.text();
        let (body, _) = text.rsplit_once("status: ").unwrap();
        let values = serde_json::Deserializer::from_str(body).into_iter::<serde_json::Value>();
        let values: Result<Vec<_>, _> = values.collect();
        assert!(values.is_ok_and(|v| !v.is_empty()), "{json}");
        let csv = shell.run(&format!("{command} --format csv a.st")).unwrap().text();
        let (body, _) = csv.rsplit_once("status: ").unwrap();
        // Commas in quotes are text.
        let commas = |l: &str| l.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
        let widths: Vec<_> = body.lines().map(commas).collect();
        assert!(widths.len() > 1 && widths.iter().all(|w| *w == widths[0]), "{csv}");
    }
}

/// So that a program is not taken for another of the same name.
#[test]
fn the_programs_are_those_just_built() {
    let (ours, theirs) = (place::target().unwrap(), place::program("st-view").unwrap());
    assert!(theirs.starts_with(&ours) && theirs.extension() != Some(OsStr::new("d")), "{}", theirs.display());
}
