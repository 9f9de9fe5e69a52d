//! Paraver's records, read back.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{At, KERNELS, Known, kernel};

/// A time on a rank's thread.
type Time = (u32, u32, i64);

#[test]
fn records_are_all_calls_and_messages_in_the_order_of_time() {
    for which in KERNELS {
        let made = kernel(which);
        let (path, _) = made.convert(&["-o", "app.prv"]);
        let names = std::fs::read_to_string(path.with_extension("pcf")).unwrap();
        let rows = std::fs::read_to_string(path.with_extension("row")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        // Names of functions by type and number.
        let (mut functions, mut of) = (BTreeMap::new(), 0u64);
        for line in names.lines() {
            let words: Vec<&str> = line.splitn(3, "    ").collect();
            match words[..] {
                ["9" | "1", number, _] => of = number.parse().unwrap(),
                _ => {
                    let value = line.split_once("      ").map(|(n, name)| (n.parse::<u64>(), name));
                    functions.extend(value.and_then(|(n, name)| Some(((of, n.ok()?), name.to_owned()))));
                }
            }
        }
        let calls = made.calls();
        let mut threads: Vec<(u32, u32)> = calls.keys().map(|at| (at.0, at.1)).collect();
        threads.dedup();
        assert!(rows.contains(&format!("LEVEL THREAD SIZE {}\n", threads.len())), "{rows}");
        let rank_and_thread = |fields: &[i64]| -> (u32, u32) {
            let rank = u32::try_from(fields[2] - 1).unwrap();
            let of_rank: Vec<_> = threads.iter().filter(|t| t.0 == rank).collect();
            *of_rank[usize::try_from(fields[3] - 1).unwrap()]
        };
        let mut found: BTreeMap<At, Known> = BTreeMap::new();
        let mut next: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let (mut messages, mut bytes, mut last, mut end) = (BTreeSet::new(), 0, 0, 0);
        let mut in_mpi = 0;
        for line in text.lines() {
            if let Some(header) = line.strip_prefix("#Paraver (29/02/2024 at 23:59):") {
                end = header.split_once("_ns:").unwrap().0.parse().unwrap();
                assert!(header.ends_with(')') && header.contains("):1:4("), "{header}");
                continue;
            }
            let fields: Vec<i64> = line.split(':').map(|field| field.parse().unwrap()).collect();
            assert!(fields[5] >= last, "{which:?}: {line} comes after {last}");
            last = fields[5];
            let (rank, thread) = rank_and_thread(&fields[1..]);
            match fields[0] {
                1 => in_mpi += if fields[7] == 1 { 0 } else { fields[6] - fields[5] },
                2 => {
                    let at = next.entry((rank, thread)).or_default();
                    let key = (u64::try_from(fields[6]).unwrap(), u64::try_from(fields[7]).unwrap());
                    assert_eq!(fields[8], 70_000_001);
                    if key.1 == 0 {
                        found.get_mut(&(rank, thread, *at)).unwrap().2 = fields[5];
                        *at += 1;
                    } else {
                        let name = functions[&key].clone();
                        found.insert((rank, thread, *at), (name, fields[5], fields[5]));
                    }
                }
                3 => {
                    let to = rank_and_thread(&fields[7..]);
                    assert!(messages.insert((
                        (rank, thread, fields[5]),
                        (to.0, to.1, fields[12]),
                        messages.len()
                    )));
                    bytes += u64::try_from(fields[13]).unwrap();
                }
                other => unreachable!("{other}"),
            }
        }
        assert_eq!(found, calls, "{which:?}");
        assert_eq!(end, calls.values().map(|call| call.2).max().unwrap());
        assert_eq!(in_mpi, calls.values().map(|call| call.2 - call.1).sum::<i64>(), "{which:?}");
        assert_eq!(bytes, made.message_bytes(), "{which:?}");
        let times = |all: &mut dyn Iterator<Item = (Time, Time)>| {
            let mut all: Vec<_> = all.collect();
            all.sort_unstable();
            all
        };
        let known = made.messages();
        let ends = |(f, t): (At, At)| ((f.0, f.1, calls[&f].1), (t.0, t.1, calls[&t].2));
        let wanted = times(&mut known.iter().map(|(f, t, _)| ends((*f, *t))));
        assert_eq!(times(&mut messages.into_iter().map(|(f, t, _)| (f, t))), wanted, "{which:?}");
    }
}
