//! What sites are called.

use super::super::Module;
use super::*;

/// Sites of a program from stacks of `function file line`, innermost first.
fn sites(stacks: &[&[(&str, &str, u32)]]) -> CallSites {
    let mut table = SiteTable::new();
    let module = Module { path: "/bin/app".into(), build_id: "17".into() };
    let (key, program) = (module.key(), table.module(module));
    let library = table.module(Module { path: "/lib/libmpi_mpifh.so.40".into(), build_id: "18".into() });
    let mut addresses = BTreeMap::new();
    let mut names = crate::names::Names::default();
    for (i, stack) in (0..).zip(stacks) {
        let mut frames = vec![Frame { module: library, offset: 0x10 }];
        for step in *stack {
            let next = 0x100 * (1 + u64::try_from(addresses.len()).unwrap());
            let offset = *addresses.entry(*step).or_insert(next);
            frames.push(Frame { module: program, offset });
            let location = Location {
                function: Some(step.0.into()),
                displacement: None,
                file: Some(step.1.into()),
                line: Some(step.2),
            };
            names.insert((key, offset), vec![location]);
        }
        frames.push(Frame { module: library, offset: 0x1_0000 + i });
        table.stack(frames);
    }
    table.add_names(&names);
    CallSites::of([&table])
}

fn places(stacks: &[&[(&str, &str, u32)]]) -> Vec<String> {
    let all = sites(stacks);
    (0..all.len()).map(|i| all.place(i).to_owned()).collect()
}

#[test]
fn the_innermost_function_tells_a_site_unless_others_share_it() {
    let main = |line| ("main", "/src/main.c", line);
    let exchange = |line| ("exchange", "/src/halo.c", line);
    let all = places(&[&[exchange(5), main(7)], &[exchange(9), main(7)], &[main(8)]]);
    assert_eq!(all, ["exchange halo.c:5", "exchange halo.c:9", "main main.c:8"]);
    let all = places(&[&[exchange(5), main(7)], &[exchange(5), main(9)], &[exchange(6), main(9)]]);
    assert_eq!(all, ["main main.c:7", "main main.c:9", "exchange halo.c:6"]);
    // Two calls on one line, and a stack that ends where others go on.
    let all = places(&[&[exchange(5), main(7)], &[exchange(5), main(7)], &[exchange(5)]]);
    assert_eq!(all[..2], ["main main.c:7", "main main.c:7"]);
}

#[test]
fn a_site_is_the_same_where_handles_have_other_types() {
    let of = |handle: &str| {
        let name = format!("void w::reduce<double>({handle}) const");
        sites(&[&[(&name, "/src/w.hpp", 12), ("main", "/src/a.cpp", 3)]])
    };
    let [pointer, integer] = ["ompi_communicator_t*", "int"].map(of);
    assert_eq!(pointer.place(0), "w::reduce<double> w.hpp:12");
    assert!(pointer.by_name(0).is_some() && pointer.by_name(0) == integer.by_name(0));
    assert_eq!(pointer.by_functions(0), integer.by_functions(0));
    assert_eq!(pointer.meant("w::reduce<double>"), [0]);
    assert_eq!(pointer.meant("void w::reduce<double>(ompi_communicator_t*) const"), [0]);
    assert_eq!(
        pointer.location(0).unwrap().function.as_deref(),
        Some("void w::reduce<double>(ompi_communicator_t*) const")
    );
}

#[test]
fn long_template_arguments_are_left_out_of_places() {
    let all = sites(&[&[("run<st_kernels::communicator::Real>", "/src/a.rs", 12)]]);
    assert_eq!(all.place(0), "run<…> a.rs:12");
    assert!(
        all.meaning("run<…> a.rs:12").is_named(0)
            && all.meaning("run<st_kernels::communicator::Real>").is_named(0)
    );
}

#[test]
fn what_is_called_on_one_line_is_told_apart() {
    let main = |line| ("main", "/src/main.c", line);
    let (f, g) = (("f", "/src/f.c", 1), ("g", "/src/g.c", 2));
    let all = sites(&[&[f, main(7)], &[f, main(8)], &[g, main(7)], &[g, main(9)]]);
    let expected =
        ["main main.c:7 via f f.c:1", "main main.c:8", "main main.c:7 via g g.c:2", "main main.c:9"];
    assert_eq!([0, 1, 2, 3].map(|i| all.place(i)), expected);
    assert_eq!([0, 1].map(|i| all.apart(i)), [Some("main main.c:7"), None]);
}

#[test]
fn wrappers_do_not_hide_their_callers() {
    let main = |line| ("main", "/src/main.c", line);
    let all = places(&[
        &[("solver_MPI_Comm_rank", "/src/w.c", 3), main(7)],
        &[("my_mpi_send_", "/src/w.f", 4), main(8)],
    ]);
    assert_eq!(all, ["main main.c:7", "main main.c:8"]);
    // All that is known is a wrapper.
    assert_eq!(places(&[&[("solver_MPI_Comm_rank", "/src/w.c", 3)]]), ["solver_MPI_Comm_rank w.c:3"]);
    // A layer: one call per function, one of them called from two places.
    let layer = |function, line| (function, "/src/communicator.rs", line);
    let all = places(&[
        &[layer("reduce", 219), main(7)],
        &[layer("reduce", 219), main(8)],
        &[layer("barrier", 230), main(9)],
    ]);
    assert_eq!(all, ["main main.c:7", "main main.c:8", "main main.c:9"]);
    // Each called once, as MPI's functions are called; others are no layer.
    let all = places(&[&[layer("irecv", 219), main(7)], &[layer("barrier", 230), main(9)]]);
    assert_eq!(all, ["main main.c:7", "main main.c:9"]);
    let all = places(&[&[layer("left", 219), main(7)], &[layer("right", 230), main(9)]]);
    assert_eq!(all, ["left communicator.rs:219", "right communicator.rs:230"]);
}

#[test]
fn where_lines_have_moved_functions_tell_a_site() {
    let one = |line| sites(&[&[("exchange", "/src/halo.c", line), ("main", "/src/main.c", 7)]]);
    let (a, b) = (one(12), one(14));
    assert!(a.by_functions(0).is_some() && a.by_functions(0) == b.by_functions(0));
    assert!(a.by_name(0).is_some() && a.by_name(0) != b.by_name(0));
    let other = sites(&[&[("exchange", "/src/halo.c", 12), ("start", "/src/main.c", 7)]]);
    assert_ne!(a.by_functions(0), other.by_functions(0));
    let mut unnamed = a.table().clone();
    unnamed.set_names(crate::names::Names::default());
    assert_eq!(CallSites::new(unnamed).by_functions(0), None);
}

#[test]
fn functions_of_python_name_themselves() {
    let mut table = SiteTable::new();
    let binding = "/usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so";
    let binding = table.module(Module { path: binding.into(), build_id: "3e".into() });
    let step = table.module(Module::python("/home/me/solver.py", "Solver.step"));
    let main = table.module(Module::python("/home/me/solver.py", "<module>"));
    for line in [6, 7] {
        let frames = [(binding, 0x95), (step, line), (main, 16)];
        table.stack(frames.map(|(module, offset)| Frame { module, offset }).to_vec());
    }
    let all = CallSites::of([&table]);
    assert_eq!([0, 1].map(|i| all.place(i)), ["Solver.step solver.py:6", "Solver.step solver.py:7"]);
    assert_eq!(all.stack(1)[1..], ["Solver.step solver.py:7", "<module> solver.py:16"]);
    assert!(all.meaning("/home/me/solver.py:6").is_named(0) && !all.meaning("solver.py:6").is_named(1));
}

#[test]
fn users_may_name_a_site_by_all_that_is_printed() {
    let all = sites(&[&[("exchange", "/src/halo.c", 12), ("main", "/src/main.c", 7)]]);
    for text in [
        "exchange",
        "exchange halo.c:12",
        "halo.c:12",
        "/src/halo.c:12",
        "halo.c",
        "app+0x100",
        "/bin/app+0x100",
        "libmpi_mpifh.so.40+0x10",
    ] {
        assert!(all.meaning(text).is_named(0), "{text}");
    }
    for text in ["…e halo.c:12", "exchange ha…"] {
        assert!(all.meaning(text).is_named(0) && all.meaning(text).is_on_stack(0), "{text}");
    }
    for text in ["", "…", "…halo.c:1", "alo…", "exch", "halo.c:1", "main", "app+0x10", "12"] {
        assert!(!all.meaning(text).is_named(0), "{text}");
    }
    for text in ["main", "main.c:7", "/src/main.c:7", "main main.c:7", "halo.c:12", "app+0x200"] {
        assert!(all.meaning(text).is_on_stack(0), "{text}");
    }
    for text in ["", "exch", "main.c:70", "app+0x20"] {
        assert!(!all.meaning(text).is_on_stack(0), "{text}");
    }
    assert_eq!(all.describe(0), "site 0, exchange halo.c:12");
    for text in ["0", "site 0", "site 0, exchange halo.c:12", "exchange", "halo.c:12", "main.c:7"] {
        assert_eq!(all.meant(text), [0], "{text}");
    }
    let more = sites(&[
        &[("foo", "/src/foo.c", 8), ("main", "/src/foo.c", 20)],
        &[("bar", "/src/foo.c", 12), ("main", "/src/foo.c", 21)],
        &[("baz", "/src/halo.c", 3), ("foo", "/src/foo.c", 9)],
    ]);
    // A function of the name of its file, and a file.
    assert_eq!((more.meant("foo"), more.meant("foo.c"), more.meant("halo")), (vec![0], vec![0, 1], vec![2]));
    assert!(more.meaning("foo").is_on_stack(2) && !more.meaning("foo").is_on_stack(1));
    assert!(all.meant("1").is_empty() && all.meant("").is_empty() && all.meant("site").is_empty());
    assert_eq!((all.numbered("site 0"), all.numbered("exchange"), all.numbered("1")), (Some(0), None, None));
    assert_eq!(all.stack(0)[..2], ["libmpi_mpifh.so.40+0x10", "exchange halo.c:12"]);
}
