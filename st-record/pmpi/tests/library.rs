//! The built library as the loader sees it.

use object::read::elf::{Dyn, ElfFile64};
use object::{Endianness, Object, ObjectSymbol, elf};

#[test]
fn no_mpi_is_needed_and_both_names_are_exported() {
    // `libst_pmpi.so` of the profile and target directory that this test was built in.
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(|deps| deps.parent()).unwrap().join("libst_pmpi.so");
    let data = std::fs::read(path).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*data).unwrap();
    let endian = file.endian();

    // An MPI of ours would be a second one in the process, and the program might run on it.
    let sections = file.elf_section_table();
    let (entries, link) = sections.dynamic(endian, &*data).unwrap().unwrap();
    let strings = sections.strings(endian, &*data, link).unwrap();
    let needed: Vec<_> = entries
        .iter()
        .filter(|d| d.tag32(endian).map(i64::from) == Some(elf::DT_NEEDED.0))
        .map(|d| String::from_utf8_lossy(d.string(endian, strings).unwrap()).into_owned())
        .collect();
    assert!(needed.iter().any(|n| n.starts_with("libc.so")), "{needed:?}");
    assert!(!needed.iter().any(|n| n.starts_with("libmpi")), "{needed:?}");
    let undefined = file.dynamic_symbols().filter(|s| s.is_undefined()).filter_map(|s| s.name().ok());
    let of_mpi = |name: &&str| ["MPI_", "PMPI_", "ompi_", "MPIR_"].iter().any(|p| name.starts_with(p));
    assert_eq!(undefined.filter(of_mpi).collect::<Vec<_>>(), Vec::<&str>::new());

    let exported = |name: &str| file.dynamic_symbols().any(|s| s.is_definition() && s.name() == Ok(name));
    for name in [
        "MPI_Init",
        "PMPI_Init",
        "MPI_Waitall",
        "PMPI_Waitall",
        "MPI_File_open",
        "MPI_Pcontrol",
        "st_pause",
        "st_made_at",
        "dlsym",
        "st_recorder",
    ] {
        assert!(exported(name), "{name} is not exported");
    }
    // Unwinding must stay the program's own.
    assert!(!exported("_Unwind_Resume"));
}
