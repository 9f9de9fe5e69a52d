//! Counts that are products of block sizes: merged without loss whatever disturbs them, and without growth.

use crate::common::recorder;
use proptest::prelude::*;
use st_model::calls::CallTable;
use st_model::check::{ThreadCheck, check};
use st_model::section::{Form, Section};
use st_reduce::merge::merge;
use st_stream::{ReadOptions, Trace, WriteOptions};

const ROUNDS: i64 = 3;

/// Sizes of messages.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// Faces of the cells of a multi-partitioned domain of so many points a side, one after the other.
    Cells(i64),
    /// The faces of all its cells but one at once, across three axes.
    Together(i64),
    /// Faces of blocks of a domain in a plane, across two axes.
    Blocks(i64, i64),
    /// No product of anything.
    Wild(i64),
}

fn share(points: i64, parts: i64, i: i64) -> i64 {
    points / parts + i64::from(i.rem_euclid(parts) < points % parts)
}

impl Sizes {
    fn of(self, side: i64, me: i64, n: i64) -> i64 {
        let (i, j) = (me % side, me / side);
        match self {
            Self::Cells(points) => {
                let k = n % (side - 1).max(1) - i;
                5 * share(points, side, j + k) * share(points, side, k)
            }
            Self::Together(points) => {
                let s = |k| share(points, side, k);
                let cell = |k: i64| match n % 3 {
                    0 => s(j + k - i) * s(k - i),
                    1 => s(i + k - j) * s(k - j),
                    _ => s(i + k) * s(j + k),
                };
                10 * (0..side - 1).map(cell).sum::<i64>()
            }
            Self::Blocks(x, y) if n % 2 == 0 => 3 * share(x, side, i) * share(y, side, j),
            Self::Blocks(x, _) => 2 * share(x, side, i),
            Self::Wild(a) => (me * a + n * n + me * me * n) % 17,
        }
    }
}

/// A rank that sends messages of these sizes from a place each, the last disturbed by so much at one moment.
fn rank(side: i64, rank: u32, sizes: &[Sizes], odd: Option<(u32, i64, i64)>) -> Section {
    let ranks = u32::try_from(side * side).unwrap();
    let (mut r, world, int) = recorder(rank, ranks);
    let send = CallTable::builtin().by_name("MPI_Send").unwrap().id;
    let mut now = 0;
    for (place, sizes) in sizes.iter().enumerate() {
        let site = r.sites.label(&format!("place {place}"));
        let sym = r.symbol(send, site, 0);
        for n in 0..ROUNDS * (side - 1).max(6) {
            let more = odd.filter(|o| (o.0, o.1) == (rank, n)).map_or(0, |o| o.2);
            let count = sizes.of(side, rank.into(), n) + more;
            now += 10;
            r.record(0, sym, &[count, int, 0, 1, world], now, now + 5);
        }
    }
    r.finish("host")
}

fn words(s: &Section, rank: u32) -> Vec<Vec<i64>> {
    s.project(0, rank).unwrap().map(|c| c.unwrap().words).collect()
}

fn sizes() -> impl Strategy<Value = Sizes> {
    prop_oneof![
        (1i64..40).prop_map(Sizes::Cells),
        (1i64..40).prop_map(Sizes::Together),
        (1i64..40, 1i64..40).prop_map(|(x, y)| Sizes::Blocks(x, y)),
        (1i64..9).prop_map(Sizes::Wild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_rank_keeps_its_counts(
        side in 2i64..6,
        sizes in proptest::collection::vec(sizes(), 1..3),
        odd in proptest::option::of((0u32..36, 0i64..18, 1i64..3)),
        missing in 0usize..4,
        turned in 0usize..25,
    ) {
        let ranks = u32::try_from(side * side).unwrap();
        let mut sections: Vec<Section> = (0..ranks).map(|r| rank(side, r, &sizes, odd)).collect();
        let most = sections.len();
        sections.rotate_left(turned % most);
        sections.truncate(most - missing);
        let merged = merge(sections.clone(), false).unwrap();
        // Merged in two steps the same.
        let (first, rest) = sections.split_at(sections.len() / 2);
        let mut steps = vec![merge(first.to_vec(), false).unwrap()];
        steps.extend_from_slice(rest);
        let stepwise = merge(steps, false).unwrap();
        for m in [&merged, &stepwise, &merge([merged.clone()], false).unwrap()] {
            for s in &sections {
                let rank = s.ranks.lowest().unwrap();
                prop_assert_eq!(words(m, rank), words(s, rank));
            }
            prop_assert!(check(m).unwrap().iter().all(ThreadCheck::passed));
        }
    }
}

/// Bytes of structure and parameters, not compressed.
fn structure(section: &Section) -> u64 {
    let trace = Trace { sections: vec![section.clone()], ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level: 0 }).unwrap();
    let frames = st_stream::frame_sizes(&bytes[..], ReadOptions::default()).unwrap();
    frames.iter().filter(|f| f.kind == "STRUCT").map(|f| f.expanded).sum()
}

#[test]
fn uneven_blocks_take_as_much_on_any_number_of_ranks() {
    let all = [Sizes::Cells(41), Sizes::Together(41), Sizes::Blocks(91, 71)];
    // Few classes of blocks stay what they are: a product would be longer.
    let most = [1, 1, 4];
    let merged = |side: i64| {
        let ranks = u32::try_from(side * side).unwrap();
        merge((0..ranks).map(|r| rank(side, r, &all, None)), false).unwrap()
    };
    let bytes = [4, 9, 18].map(|side| {
        let merged = merged(side);
        let counts: Vec<_> = merged.threads[0].params.iter().map(|p| &p[0].values).collect();
        for (c, most) in counts.iter().zip(most) {
            assert!(c.streams.len() <= most, "{} ranks: {}", side * side, c.form);
            assert!(most > 1 || matches!(c.form, Form::User(_)));
        }
        structure(&merged)
    });
    // Numbers get longer, and factors have up to four pieces.
    assert!(bytes.windows(2).all(|w| w[1] <= w[0] + 128), "{bytes:?}");
}
