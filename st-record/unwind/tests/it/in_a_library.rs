//! The walker in a library that a C program is linked against, as the recorder is: frames of the library and of the C
//! library's start-up code are left out.

use std::path::PathBuf;
use std::process::Command;

#[test]
fn sites_begin_and_end_with_the_programs_own_frames() {
    let library = std::env::current_exe()
        .unwrap()
        .ancestors()
        .map(|folder| folder.join("examples/libpreloaded.so"))
        .find(|path| path.exists())
        .expect("cargo test builds examples; so does cargo build --examples");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/native/program.c");
    for flags in [["-O2", "-fomit-frame-pointer"], ["-O0", "-fno-omit-frame-pointer"]] {
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("program{}", flags[0]));
        let status = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
            .args(flags)
            .args(["-no-pie", "-pthread", "-o"])
            .args([&program, &source, &library])
            .status()
            .expect("a C compiler");
        assert!(status.success());
        let output = Command::new(&program).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        assert!(output.status.success(), "{:?}", output.status);
    }
}
