//! Resolves call sites of this test program and of small C programs.
#![expect(unsafe_code, reason = "walks its own stack")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use st_model::names::{Location, Names};
use st_model::sites::{CallSites, Frame, Module, SiteTable};
use st_symbols::Resolver;
use st_unwind::{SiteInterner, Unwinder, capture_registers};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A table with the call site of the caller.
#[inline(never)]
fn call_site() -> SiteTable {
    let sites = Arc::new(Mutex::new(SiteInterner::new()));
    let mut unwinder = Unwinder::new(Arc::clone(&sites)).with_own_frames();
    // SAFETY: this function has not returned.
    let _ = unsafe { unwinder.call_site(capture_registers()) };
    let from = sites.lock().unwrap_or_else(|e| e.into_inner());
    let mut table = SiteTable::new();
    let frame = |f: &st_unwind::SiteFrame| {
        let module = &from.modules()[usize::try_from(f.module).unwrap_or(usize::MAX)];
        let module = Module { path: module.path.clone(), build_id: module.build_id.clone() };
        Frame { module: table.module(module), offset: f.offset }
    };
    let frames = from.sites()[0].frames.iter().map(frame).collect();
    table.stack(frames);
    table
}

/// A table with a site of these addresses of modules with build-ids.
fn site(frames: &[(&str, &str, u64)]) -> SiteTable {
    let mut table = SiteTable::new();
    let frame = |(path, build_id, offset): &(&str, &str, u64)| {
        let module = Module { path: (*path).into(), build_id: (*build_id).into() };
        Frame { module: table.module(module), offset: *offset }
    };
    let frames = frames.iter().map(frame).collect();
    table.stack(frames);
    table
}

/// Its place and stack, looked up, and what was not found.
fn named(mut table: SiteTable, mut resolver: Resolver) -> (String, Vec<String>, Vec<String>) {
    resolver.name(&mut table);
    let sites = CallSites::of([&table]);
    (sites.place(0).to_owned(), sites.stack(0), resolver.missing())
}

fn place(frames: &[(&str, &str, u64)]) -> String {
    named(site(frames), Resolver::default()).0
}

mod halo {
    #[inline(never)]
    pub(crate) fn exchange() -> (super::SiteTable, u32) {
        std::hint::black_box((super::call_site(), line!()))
    }
    #[inline(always)]
    pub(crate) fn exchange_inlined() -> (super::SiteTable, u32) {
        std::hint::black_box((super::call_site(), line!()))
    }
}

#[test]
fn describes_a_function_of_this_program() {
    let (site, line) = halo::exchange();
    let (place, stack, missing) = named(site, Resolver::default());
    assert_eq!(place, format!("own_program::halo::exchange own_program.rs:{line}"));
    assert_eq!(stack[0], place);
    let test = "own_program::describes_a_function_of_this_program own_program.rs:";
    assert!(stack[1].starts_with(test), "{stack:?}");
    assert_eq!(missing, [""; 0]);
}

#[test]
fn inlined_functions_are_locations_of_their_own() {
    let (mut site, line) = halo::exchange_inlined();
    Resolver::default().name(&mut site);
    let frame = site.get(0).unwrap().frames[0];
    let locations = site.names().get((site.module_of(&frame).unwrap().key(), frame.offset)).unwrap();
    let names: Vec<_> = locations.iter().filter_map(|l| l.function.as_deref()).collect();
    let outer = "own_program::inlined_functions_are_locations_of_their_own";
    assert_eq!(names, ["own_program::halo::exchange_inlined", outer]);
    assert_eq!(locations[0].line, Some(line));
    assert!(locations[0].file.as_deref().unwrap().ends_with("tests/own_program.rs"));
}

#[test]
fn another_build_or_a_missing_file_leaves_module_and_offset() {
    let (site, _) = halo::exchange();
    let frame = site.get(0).unwrap().frames[0];
    let module = site.module_of(&frame).unwrap();
    let (path, offset) = (module.path.as_str(), frame.offset);
    let other = self::site(&[(path, "0123456789abcdef", offset)]);
    let (place, _, missing) = named(other, Resolver::default());
    assert_eq!(place, format!("{}+{offset:#x}", module.name()));
    let build_id = &module.build_id;
    let why = format!(
        "{path}: is another build than the recorded one (build-id {build_id}); its call sites have no names"
    );
    assert_eq!(missing, [why]);
    let (place, _, missing) = named(self::site(&[("/nowhere/solver", "", 0x1234)]), Resolver::default());
    assert_eq!(place, "solver+0x1234");
    assert_eq!(missing, ["/nowhere/solver: is not there; its call sites have no names"]);
    for no_module in ["/dev/zero", "/proc/self/maps", "[unknown]", ""] {
        assert!(self::place(&[(no_module, "", 16)]).ends_with("+0x10"));
    }
}

const SOURCE: &str = "
int probe(void) { return 1; }
__attribute__((noinline)) int exchange(void) {
    return probe() + 1; /* line 4 */
}
int main(void) { return exchange(); }
";

fn run(command: &mut Command) -> String {
    let output = command.output().expect("a C compiler and binutils");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles the C program and returns it with its build-id and the address of a symbol.
fn compile(folder: &Path, name: &str, flags: &[&str], symbol: &str) -> (PathBuf, String, u64) {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    run(Command::new(compiler).args(["-O0", "-no-pie", "-o"]).args([&program, &source]).args(flags));
    let table = run(Command::new("nm").arg(&program));
    let line = table.lines().find(|l| l.ends_with(&format!(" T {symbol}"))).expect("a symbol");
    let address = u64::from_str_radix(line.split(' ').next().unwrap_or(""), 16).unwrap();
    let notes = run(Command::new("readelf").arg("-n").arg(&program));
    let build_id =
        notes.split("Build ID: ").nth(1).map(|id| id.split_whitespace().next().unwrap_or_default());
    (program.clone(), build_id.unwrap_or_default().to_owned(), address)
}

const BUILD_ID: &str = "-Wl,--build-id";

#[test]
fn a_program_with_and_without_line_information() {
    let folder = tempfile::tempdir().unwrap();
    let at = |(program, build_id, address): &(PathBuf, String, u64), further: u64| {
        place(&[(program.to_str().unwrap(), build_id, address + further)])
    };
    let lines = compile(folder.path(), "with_lines", &["-g", BUILD_ID], "exchange");
    assert_eq!(at(&lines, 10), "exchange with_lines.c:4");
    // A return address at the very end of a function belongs to that function.
    let main = compile(folder.path(), "with_lines", &["-g", BUILD_ID], "main");
    assert_eq!(at(&main, 0), "exchange with_lines.c:5");

    let none = compile(folder.path(), "without_lines", &["-g0", BUILD_ID], "exchange");
    assert_eq!(at(&none, 10), "exchange+0xa (without_lines)");
    run(Command::new("strip").arg(&none.0));
    assert_eq!(at(&none, 10), format!("without_lines+{:#x}", none.2 + 10));
    // What may be linked to is left in a stripped program: the nearest function before an address.
    let dynamic = compile(folder.path(), "dynamic", &["-g0", "-rdynamic", BUILD_ID], "main");
    run(Command::new("strip").arg(&dynamic.0));
    assert_eq!(at(&dynamic, 10), "main+0xa (dynamic)");
    // Not the nearest of all if it is far: 40,000 bytes lie between functions here.
    let far = ["-g0", "-rdynamic", "-fpatchable-function-entry=40000,40000", BUILD_ID];
    let far = compile(folder.path(), "far", &far, "exchange");
    run(Command::new("strip").arg(&far.0));
    assert_eq!(at(&far, 1000), "exchange+0x3e8 (far)");
    assert_eq!(at(&far, 30_000), format!("far+{:#x}", far.2 + 30_000));

    // The program's frame is the innermost one outside of MPI.
    let (program, offset) = (lines.0.to_str().unwrap(), lines.2 + 10);
    let binding = ("/usr/lib/libmpi_mpifh.so.40", "", 64);
    assert_eq!(place(&[binding, (program, &lines.1, offset)]), "exchange with_lines.c:4");
    assert_eq!(place(&[binding]), "libmpi_mpifh.so.40+0x40");
}

#[test]
fn debug_information_may_lie_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (program, build_id, address) = compile(folder.path(), "app", &["-g", BUILD_ID], "exchange");
    let elsewhere = folder.path().join("symbols");
    let by_id = elsewhere.join(".build-id").join(&build_id[..2]);
    std::fs::create_dir_all(&by_id).unwrap();
    let debug = by_id.join(format!("{}.debug", &build_id[2..]));
    run(Command::new("objcopy").arg("--only-keep-debug").args([&program, &debug]));
    run(Command::new("strip").arg(&program));
    let table = || site(&[(program.to_str().unwrap(), &build_id, address + 10)]);
    let with = || Resolver::with(vec![elsewhere.clone()]);
    let stripped = format!("app+{:#x}", address + 10);
    assert_eq!(named(table(), Resolver::default()).0, stripped);
    assert_eq!(named(table(), with()).0, "exchange app.c:4");
    // The program itself need not be there, and the debug file may have a plain name.
    std::fs::remove_file(&program).unwrap();
    assert_eq!(named(table(), with()).0, "exchange app.c:4");
    std::fs::rename(&debug, elsewhere.join("app.debug")).unwrap();
    assert_eq!(named(table(), with()).0, "exchange app.c:4");
    // What a trace says already is kept unless there is better.
    let mut known = table();
    let symbol = Location { function: Some("near".into()), displacement: Some(3), ..Location::default() };
    let key = known.modules()[0].key();
    let mut names = Names::default();
    names.insert((key, address + 10), vec![symbol]);
    known.set_names(names);
    assert_eq!(named(known.clone(), Resolver::default()).0, "near+0x3 (app)");
    assert_eq!(named(known, with()).0, "exchange app.c:4");
    // Debug information of another build is none.
    let (_, _, _) = compile(&elsewhere, "app", &["-g", "-DOTHER", "-O2", BUILD_ID], "exchange");
    std::fs::remove_file(elsewhere.join("app.debug")).unwrap();
    assert_eq!(named(table(), with()).0, stripped);
}

#[test]
fn modules_without_build_id_are_believed_where_they_have_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (program, build_id, address) =
        compile(folder.path(), "unmarked", &["-g", "-Wl,--build-id=none"], "exchange");
    assert_eq!(build_id, "");
    let table = || site(&[(program.to_str().unwrap(), "", address + 10)]);
    let (_, _, missing) = named(table(), Resolver::default());
    assert!(missing[0].contains("has no build-id"), "{missing:?}");
    let now = || SystemTime::now() + Duration::from_secs(1);
    assert_eq!(named(table(), Resolver::default().recorded_at(now())).0, "exchange unmarked.c:4");
    let before = SystemTime::UNIX_EPOCH;
    assert_ne!(named(table(), Resolver::default().recorded_at(before)).0, "exchange unmarked.c:4");
    // The user names it.
    let directory = vec![folder.path().to_owned()];
    assert_eq!(named(table(), Resolver::with(directory)).0, "exchange unmarked.c:4");
}
