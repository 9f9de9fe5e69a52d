//! Expressions that users give: the formulas of the papers, and what is not true.

use std::collections::HashMap;
use std::slice;

use crate::common::recorder;
use st_capture::record::RankRecorder;
use st_model::calls::CallTable;
use st_model::check::check;
use st_model::names::{Location, Names};
use st_model::section::{Elastic, Form, Section};
use st_model::sites::{CallSites, Frame, Module, SiteTable};
use st_reduce::cluster::{Clusterer, Options as ClusterOptions};
use st_reduce::merge::Merger;
use st_reduce::user::{Error, Param, check as check_params, constants, find};
use st_stream::{Trace, WriteOptions};

const ROUNDS: i64 = 6;

/// A rank of a program in which one place sends in turn to the transposed rank and to a neighbour, as CG does where its
/// exchanges share a function, and two places split the world, as FT does.
fn rank(rank: u32, ranks: u32, transposed: impl Fn(i64) -> i64, np2: i64) -> Section {
    let (mut r, world, int) = recorder(rank, ranks);
    let mut now = 0;
    let mut call = |r: &mut RankRecorder, name: &str, site: &str, words: &[i64]| {
        let id = CallTable::builtin().by_name(name).unwrap().id;
        let site = r.sites.label(site);
        let sym = r.symbol(id, site, 0);
        now += 10;
        r.record(0, sym, words, now, now + 5);
    };
    let me = i64::from(rank);
    for (site, color, key) in [("ft.f:12", me / np2, me % np2), ("ft.f:13", me % np2, me / np2)] {
        call(&mut r, "MPI_Comm_split", site, &[world, color, key, -1]);
    }
    for n in 0..ROUNDS {
        let dest = if n % 2 == 0 { transposed(me) } else { me ^ 1 };
        call(&mut r, "MPI_Send", "cg.f:7", &[1, int, dest, n, world]);
    }
    r.finish("host")
}

fn merged(sections: &[Section], params: Vec<Param>) -> Section {
    let mut m = Merger::new(false).with(params);
    sections.iter().for_each(|s| m.add(s.clone()).unwrap());
    check_params(m.params(), sections).unwrap();
    let merged = m.finish();
    for (s, rank) in sections.iter().flat_map(|s| s.ranks.iter().map(move |r| (s, r))) {
        let words = |s: &Section| -> Vec<Vec<i64>> {
            s.project(0, rank).unwrap().map(|c| c.unwrap().words).collect()
        };
        assert_eq!(words(&merged), words(s), "rank {rank}");
    }
    assert!(check(&merged).unwrap().iter().all(st_model::check::ThreadCheck::passed));
    merged
}

fn slot<'a>(s: &'a Section, name: &str, nth: usize, slot: &str) -> &'a Elastic {
    let row = CallTable::builtin().by_name(name).unwrap();
    let at = row.slots.iter().position(|s| s.name == slot).unwrap();
    let mut syms = (0..s.symbols.len()).filter(|i| s.symbols[*i].call == row.id);
    &s.threads[0].params[syms.nth(nth).unwrap()][at].values
}

fn param(target: &str, text: &str, lets: &[&str]) -> Param {
    let lets: Vec<String> = lets.iter().map(|l| (*l).to_owned()).collect();
    Param::new(target, text, &constants(&lets).unwrap()).unwrap()
}

#[test]
fn the_papers_formulas_for_cg_unite_all_ranks() {
    for (ranks, nr, text) in [
        (16, 4i64, "(me % nr) * nr + me / nr"),
        (64, 8, "(me % nr) * nr + me / nr"),
        (32, 4, "2 * ((me / 2 % nr) * nr + me / 2 / nr) + me % 2"),
    ] {
        let transposed = |me: i64| {
            if nr * nr == i64::from(ranks) {
                (me % nr) * nr + me / nr
            } else {
                2 * ((me / 2 % nr) * nr + me / 2 / nr) + me % 2
            }
        };
        let sections: Vec<Section> = (0..ranks).map(|r| rank(r, ranks, transposed, 4)).collect();
        let without = merged(&sections, vec![]);
        assert!(slot(&without, "MPI_Send", 0, "dest").streams.len() > 1);
        let lets = [&*format!("nr={nr}")];
        let params = vec![
            param("MPI_Send:dest[n%2==0]", text, &lets),
            param("MPI_Send@cg.f:7:dest[n%2==1]", "me ^ 1", &lets),
        ];
        let with = merged(&sections, params);
        let dest = slot(&with, "MPI_Send", 0, "dest");
        assert_eq!(dest.streams.len(), 1, "{ranks} ranks");
        assert!(matches!(dest.form, Form::User(_)));
    }
}

#[test]
fn the_papers_formulas_for_ft_hold() {
    for (np, nz) in [(16, 32), (64, 32), (1, 32)] {
        let lets = [&*format!("np={np}"), &format!("nz={nz}"), "np2=np==1 ? 1 : np<=nz ? np : np/nz"];
        let np2 = constants(&lets.map(str::to_owned)).unwrap()["np2"];
        let sections: Vec<Section> = (0..np).map(|r| rank(r, np, |me| me, np2)).collect();
        let params = vec![
            param("@ft.f:12:color", "me / np2", &lets),
            param("@ft.f:12:key", "me % np2", &lets),
            param("MPI_Comm_split@ft.f:13:color", "me % np2", &lets),
            param("MPI_Comm_split@ft.f:13:key", "me / np2", &lets),
        ];
        let with = merged(&sections, params);
        for (nth, name) in [(0, "color"), (0, "key"), (1, "color"), (1, "key")] {
            let streams = &slot(&with, "MPI_Comm_split", nth, name).streams;
            assert_eq!(streams.len(), 1, "{np} ranks");
        }
    }
}

/// What clustering makes of the ranks, all of which are in one sub-cluster or in so many; merged without saying anything again.
fn clustered(sections: &[Section], users: Vec<Param>, subs: usize) -> Section {
    let mut c = Clusterer::new(ClusterOptions { users, ..ClusterOptions::default() });
    sections.iter().for_each(|s| c.add(s.clone()).unwrap());
    let clusters = c.finish();
    assert_eq!((clusters.table.len(), clusters.table[0].subs.len()), (1, subs));
    assert!(check(&clusters.sections[0]).unwrap().iter().all(st_model::check::ThreadCheck::passed));
    merged(&clusters.sections, vec![])
}

#[test]
fn clustering_finds_them_as_merging_does() {
    // Of all ranks, and but for two, which are of no class with others.
    for (strangers, subs) in [(0, 1), (3, 3)] {
        let transposed = |me: i64| (me % 8) * 8 + me / 8;
        let of = |me: i64| if me >= 64 - strangers { me } else { transposed(me) };
        let sections: Vec<Section> = (0..64).map(|r| rank(r, 64, of, 8)).collect();
        let params = || vec![param("MPI_Send:dest", "n % 2 ? me ^ 1 : me % 8 * 8 + me / 8", &[])];
        let alone = merged(&sections, params());
        let dest = slot(&alone, "MPI_Send", 0, "dest");
        assert!(matches!(dest.form, Form::User(_)) && dest.streams.len() == subs);
        assert_eq!(clustered(&sections, params(), subs), alone);
    }
}

#[test]
fn what_is_not_true_changes_no_cluster() {
    let sections: Vec<Section> = (0..16).map(|r| rank(r, 16, |me| me * me * 7 % 16, 4)).collect();
    let without = clustered(&sections, vec![], 16);
    for text in ["me * me", "1 / (me - me)", "me * 9223372036854775807", "n"] {
        let with = clustered(&sections, vec![param("MPI_Send:dest", text, &[])], 16);
        assert_eq!(with, without, "{text}");
    }
}

#[test]
fn what_is_not_true_changes_nothing() {
    let sections: Vec<Section> = (0..16).map(|r| rank(r, 16, |me| 15 - me, 4)).collect();
    let without = merged(&sections, vec![]);
    for text in ["me * me", "1 / (me - me)", "me * 9223372036854775807", "n"] {
        let with = merged(&sections, vec![param("MPI_Send:dest", text, &[])]);
        assert_eq!(with, without, "{text}");
    }
}

#[test]
fn what_is_true_makes_no_trace_larger() {
    let bytes = |section: &Section| {
        let trace = Trace { sections: vec![section.clone()], ..Trace::default() };
        let mut bytes = Vec::new();
        st_stream::write(&trace, &mut bytes, WriteOptions { level: 19 }).unwrap();
        bytes.len()
    };
    type Dest = fn(i64) -> i64;
    let texts: [(&str, Dest); 3] = [
        ("n % 2 ? me ^ 1 : size - 1 - me", |me| 15 - me),
        ("n % 2 ? me ^ 1 : (me + 3 * 7 - 20) * (1 + 2 - 3) + me ^ 1", |me| me ^ 1),
        ("n % 2 ? me ^ 1 : me < 1 ? 1 : me < 2 ? 0 : me < 3 ? 3 : 2", |me| me ^ 1),
    ];
    for (text, dest) in texts {
        for ranks in [4, 16] {
            let sections: Vec<Section> = (0..ranks).map(|r| rank(r, ranks, dest, 4)).collect();
            let without = bytes(&merged(&sections, vec![]));
            let with = bytes(&merged(&sections, vec![param("MPI_Send:dest", text, &[])]));
            assert!(with <= without, "{text}, {ranks} ranks: {with} and {without} bytes");
        }
    }
}

#[test]
fn places_are_called_what_programs_call_them() {
    let mut section = rank(3, 4, |me| me ^ 1, 2);
    let module = |sites: &mut SiteTable, path: &str| {
        sites.module(Module { path: path.into(), build_id: String::new() })
    };
    // As under Fortran: the innermost frame is the library's.
    let mut sites = SiteTable::new();
    let (library, app) = (module(&mut sites, "/lib/libmpi_mpifh.so.40"), module(&mut sites, "/home/me/cg"));
    let frames = |offset| {
        vec![
            Frame { module: library, offset: 0x10 },
            Frame { module: app, offset },
            Frame { module: app, offset: 0x900 },
        ]
    };
    for at in 0..3 {
        sites.stack(frames(0x100 + at));
    }
    let mut names = Names::default();
    for at in 0..3u32 {
        let location = Location {
            function: Some("exchange".into()),
            displacement: None,
            file: Some("/src/cg.f".into()),
            line: Some(12 + at),
        };
        names.insert((sites.modules()[1].key(), 0x100 + u64::from(at)), vec![location]);
    }
    sites.set_names(names);
    // The third site is that of the sends.
    section.sites = sites;
    for (place, met) in [
        ("cg.f:14", true),
        ("/src/cg.f:14", true),
        ("exchange cg.f:14", true),
        ("exchange", true),
        ("cg+0x102", true),
        ("/home/me/cg+0x102", true),
        ("libmpi_mpifh.so.40+0x10", true),
        ("cg+0x900", true),
        ("cg.f:1", false),
        ("cg.f:12", false),
        ("cg+0x101", false),
        ("exch", false),
    ] {
        let params = [param(&format!("MPI_Send@{place}:dest"), "me ^ 1", &[])];
        // One by one, and among all.
        let checked = || check_params(&params, slice::from_ref(&section)).is_ok();
        assert_eq!(checked(), met, "{place}");
        find(&params, Some(&CallSites::of([&section.sites]))).unwrap();
        assert_eq!(checked(), met, "{place}");
    }
}

#[test]
fn call_sites_have_their_numbers_where_all_are_known() {
    let section = rank(3, 4, |me| me ^ 1, 2);
    let all = CallSites::of([&section.sites]);
    for (place, met) in
        [("site 2", true), ("2", true), ("site 2, cg.f:7", true), ("site 1", false), ("7", false)]
    {
        let params = [param(&format!("MPI_Send@{place}:dest"), "me ^ 1", &[])];
        let alone = find(&params, None);
        assert_eq!(alone.is_err(), !place.contains(','), "{place}");
        find(&params, Some(&all)).unwrap();
        assert_eq!(check_params(&params, slice::from_ref(&section)).is_ok(), met, "{place}");
    }
}

#[test]
fn what_no_call_has_is_said_with_what_there_is() {
    let section = rank(3, 4, |me| me ^ 1, 2);
    for (target, said) in [
        ("MPI_Send@nowhere:dest", ", but MPI_Send@cg.f:7:dest"),
        ("@nowhere:key", ", but MPI_Comm_split@ft.f:12:key, MPI_Comm_split@ft.f:13:key"),
        ("MPI_Isend:dest", ", but MPI_Send:dest"),
        ("@cg.f:7:op", ", none has op"),
    ] {
        let error = check_params(&[param(target, "me", &[])], slice::from_ref(&section)).unwrap_err();
        let expected = Error::Unmet { target: target.into(), others: said.into() };
        assert_eq!(error, expected);
    }
}

#[test]
fn merging_again_keeps_what_was_merged() {
    let transposed = |me: i64| (me % 4) * 4 + me / 4;
    let sections: Vec<Section> = (0..16).map(|r| rank(r, 16, transposed, 4)).collect();
    let params = || vec![param("MPI_Send:dest", "n % 2 ? me ^ 1 : me % 4 * 4 + me / 4", &[])];
    let half = merged(&sections[..8], params());
    let mut again = Merger::new(false).with(params());
    again.add(half).unwrap();
    sections[8..].iter().for_each(|s| again.add(s.clone()).unwrap());
    let again = again.finish();
    assert_eq!(slot(&again, "MPI_Send", 0, "dest").streams.len(), 1);
    assert!(check(&again).unwrap().iter().all(st_model::check::ThreadCheck::passed));
}

#[test]
fn what_cannot_be_understood_is_said() {
    let none = HashMap::new();
    let error = |target: &str, text: &str| Param::new(target, text, &none).unwrap_err();
    assert_eq!(error("dest", "me"), Error::Target("dest".into()));
    assert_eq!(error("MPI_Sent:dest", "me"), Error::Function("MPI_Sent".into()));
    assert!(matches!(error("MPI_Send:root", "me"), Error::Slot { .. }));
    assert!(matches!(error("MPI_Send:dest", "me +"), Error::Expr { .. }));
    assert!(matches!(error("MPI_Send:dest[n", "me"), Error::Target(_)));
    assert!(Param::new("MPI_Send@f<[i32]> a.rs:3:dest[n ? 1:0]", "me", &none).is_ok());
    for bad in ["nr", "me=3", "3=3", "nr=me", "="] {
        assert!(constants(&[bad.to_owned()]).is_err(), "{bad}");
    }
}
