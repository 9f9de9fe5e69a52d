//! Resolves call sites of this test program and of small C programs.
#![expect(unsafe_code, reason = "walks its own stack")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use st_symbols::{Frame, Resolver};
use st_unwind::{SiteInterner, Unwinder, capture_registers};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// The call site of the caller, as (module, build-id, offset) from the innermost frame.
#[inline(never)]
fn call_site() -> Vec<(String, String, u64)> {
    let sites = Arc::new(Mutex::new(SiteInterner::new()));
    let mut unwinder = Unwinder::new(Arc::clone(&sites)).with_own_frames();
    // SAFETY: this function has not returned.
    let _ = unsafe { unwinder.call_site(capture_registers()) };
    let table = sites.lock().unwrap_or_else(|e| e.into_inner());
    let frame = |f: &st_unwind::SiteFrame| {
        let module = &table.modules()[usize::try_from(f.module).unwrap_or(usize::MAX)];
        (module.path.clone(), module.build_id.clone(), f.offset)
    };
    table.sites()[0].frames.iter().map(frame).collect()
}

fn frames(site: &[(String, String, u64)]) -> Vec<Frame<'_>> {
    site.iter().map(|(module, build_id, offset)| Frame { module, build_id, offset: *offset }).collect()
}

mod halo {
    #[inline(never)]
    pub(crate) fn exchange() -> (Vec<(String, String, u64)>, u32) {
        std::hint::black_box((super::call_site(), line!()))
    }
    #[inline(always)]
    pub(crate) fn exchange_inlined() -> (Vec<(String, String, u64)>, u32) {
        std::hint::black_box((super::call_site(), line!()))
    }
}

#[test]
fn describes_a_function_of_this_program() {
    let (site, line) = halo::exchange();
    let mut resolver = Resolver::new();
    let text = resolver.describe(&frames(&site));
    assert_eq!(text, format!("own_program::halo::exchange own_program.rs:{line}"));
    let stack = resolver.stack(&frames(&site));
    assert_eq!(stack[0], text);
    assert!(
        stack[1].starts_with("own_program::describes_a_function_of_this_program own_program.rs:"),
        "{stack:?}"
    );
    let location = &resolver.resolve(&frames(&site)[0])[0];
    assert!(format!("{location:#}").ends_with(&format!("tests/own_program.rs:{line}")));
}

#[test]
fn inlined_functions_are_frames_of_their_own() {
    let (site, line) = halo::exchange_inlined();
    let mut resolver = Resolver::new();
    let locations = resolver.resolve(&frames(&site)[0]);
    let names: Vec<_> = locations.iter().filter_map(|l| l.function.as_deref()).collect();
    assert_eq!(
        names,
        ["own_program::halo::exchange_inlined", "own_program::inlined_functions_are_frames_of_their_own"]
    );
    assert_eq!(locations[0].line, Some(line));
}

#[test]
fn another_build_or_a_missing_file_leaves_module_and_offset() {
    let (site, _) = halo::exchange();
    let (module, _, offset) = &site[0];
    let mut resolver = Resolver::new();
    let name = Path::new(module).file_name().and_then(|n| n.to_str()).unwrap();
    let other = Frame { module, build_id: "0123456789abcdef", offset: *offset };
    assert_eq!(resolver.describe(&[other]), format!("{name}+{offset:#x}"));
    let missing = Frame { module: "/nowhere/solver", build_id: "", offset: 0x1234 };
    assert_eq!(resolver.describe(&[missing]), "solver+0x1234");
    for no_module in ["/dev/zero", "/proc/self/maps", "[unknown]", ""] {
        let frame = Frame { module: no_module, build_id: "", offset: 16 };
        assert!(resolver.describe(&[frame]).ends_with("+0x10"));
    }
    assert_eq!(resolver.describe(&[]), "");
}

const SOURCE: &str = "
int probe(void);
__attribute__((noinline)) int exchange(void) {
    return probe() + 1; /* line 4 */
}
int main(void) { return exchange(); }
";

/// Compiles a C program whose functions are at known places and returns it with the addresses of its symbols.
fn compile(name: &str, flags: &[&str]) -> (PathBuf, impl Fn(&str) -> u64) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, SOURCE.replace("int probe(void);", "int probe(void) { return 1; }")).unwrap();
    let run = |command: &mut Command| {
        let output = command.output().expect("a C compiler and binutils");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    run(Command::new(compiler).args(["-O0", "-no-pie", "-o"]).args([&program, &source]).args(flags));
    let table = run(Command::new("nm").arg(&program));
    let address = move |symbol: &str| {
        let line = table.lines().find(|l| l.ends_with(&format!(" T {symbol}"))).expect("a symbol");
        u64::from_str_radix(line.split(' ').next().unwrap_or(""), 16).unwrap()
    };
    (program, address)
}

#[test]
fn a_program_with_and_without_line_information() {
    let (program, address) = compile("with_lines", &["-g"]);
    let mut resolver = Resolver::new();
    let at = |program: &Path, offset| {
        let frame = Frame { module: program.to_str().unwrap(), build_id: "", offset };
        Resolver::new().describe(&[frame])
    };
    assert_eq!(at(&program, address("exchange") + 10), "exchange with_lines.c:4");
    // A return address at the very end of a function belongs to that function.
    assert_eq!(at(&program, address("main")), "exchange with_lines.c:5");

    let (program, address) = compile("without_lines", &["-g0"]);
    assert_eq!(at(&program, address("exchange") + 10), "exchange+0xa (without_lines)");
    let offset = address("exchange") + 10;
    let status = Command::new("strip").arg(&program).status().unwrap();
    assert!(status.success());
    assert_eq!(at(&program, offset), format!("without_lines+{offset:#x}"));

    // The user's frame is the innermost one outside of MPI.
    let user = Frame { module: program.to_str().unwrap(), build_id: "", offset };
    let binding = Frame { module: "/usr/lib/libmpi_mpifh.so.40", build_id: "", offset: 64 };
    assert_eq!(resolver.describe(&[binding, user]), format!("without_lines+{offset:#x}"));
    assert_eq!(resolver.describe(&[binding]), "libmpi_mpifh.so.40+0x40");
    assert_eq!(resolver.stack(&[binding, user]).len(), 2);
}
