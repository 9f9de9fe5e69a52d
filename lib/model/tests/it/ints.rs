//! Properties of integer streams.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use st_model::ints::{Chain, Ints, Sealed, Together};

/// Values as counts and parameters come: constants, counters, periods with noise, few or many symbols, specials.
fn values() -> impl Strategy<Value = Vec<i64>> {
    let piece = prop_oneof![
        (any::<i64>(), 1..40_usize).prop_map(|(value, n)| vec![value; n]),
        (-3..3_i64, 0..4_i64, 1..60_i64)
            .prop_map(|(from, step, n)| (0..n).map(|i| from + step * i).collect()),
        (0..50_i64, -3..0_i64, 1..60_i64)
            .prop_map(|(from, step, n)| (0..n).map(|i| from + step * i).collect()),
        (vec(-2..5_i64, 1..30), 1..12_usize).prop_map(|(period, n)| period.repeat(n)),
        vec(0..3_i64, 1..80),
        vec(any::<i64>(), 1..20),
    ];
    let once = vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    (once, prop_oneof![Just(1_usize), 2..6_usize]).prop_map(|(values, n)| values.repeat(n))
}

fn round_trip(sealed: &Sealed) -> Sealed {
    let (mut head, mut vals) = (Vec::new(), Vec::new());
    sealed.encode(&mut head, &mut vals);
    let (mut head, mut vals) = (head.as_slice(), vals.as_slice());
    let decoded = Sealed::decode(&mut head, &mut vals).unwrap();
    assert!(head.is_empty() && vals.is_empty());
    decoded
}

fn read(sealed: &Sealed, n: usize) -> Vec<i64> {
    let mut cursor = sealed.cursor();
    (0..n).map(|_| cursor.next()).collect()
}

proptest! {
    #[test]
    fn values_survive(values in values()) {
        let ints = Ints::from(values.clone());
        assert_eq!(ints.len(), u64::try_from(values.len()).unwrap());
        assert_eq!(ints.iter().collect::<Vec<_>>(), values);
        let sealed = ints.seal();
        assert_eq!(read(&sealed, values.len()), values);
        let decoded = round_trip(&sealed);
        assert_eq!(decoded, sealed);
        assert_eq!(read(&decoded, values.len()), values);
    }

    #[test]
    fn encoding_depends_on_content_only(values in values(), cut in 0..400_usize) {
        let whole = Ints::from(values.clone());
        let (front, back) = values.split_at(cut.min(values.len()));
        let mut joined = Ints::from(front.to_vec());
        joined.extend_from(&Ints::from(back.to_vec()));
        let mut runs = Ints::new();
        for run in values.chunk_by(|a, b| a == b) {
            runs.push_run(run[0], u64::try_from(run.len()).unwrap());
        }
        let rebuilt = whole.clone().seal().to_ints(whole.len());
        let sealed = whole.seal();
        assert_eq!(joined.seal(), sealed);
        assert_eq!(runs.seal(), sealed);
        assert_eq!(rebuilt.seal(), sealed);
    }

    #[test]
    fn a_cycle_is_its_values(
        before in proptest::collection::vec(0..4_i64, 0..40),
        rounds in proptest::collection::vec((proptest::collection::vec(0..3_i64, 0..6), 0..40_u64), 0..12),
    ) {
        let (mut cycles, mut plain) = (Ints::from(before.clone()), Ints::from(before));
        for (values, n) in rounds {
            cycles.push_cycle(&values, n);
            (0..n).for_each(|_| plain.extend(values.iter().copied()));
        }
        assert_eq!(cycles.len(), plain.len());
        assert_eq!(cycles.iter().collect::<Vec<_>>(), plain.iter().collect::<Vec<_>>());
        assert_eq!(cycles.seal(), plain.seal());
    }

    #[test]
    fn mapped_values_are_values_of_the_mapped_stream(values in values(), shift in -9..9_i64) {
        let map = |value: i64| if value < 0 { value.wrapping_sub(1_000_000) } else { value.wrapping_add(shift) };
        let sealed = Sealed::from(values.clone());
        let mapped: Vec<i64> = values.iter().map(|&value| map(value)).collect();
        assert_eq!(read(&sealed.map(map), values.len()), mapped);
        let len = u64::try_from(values.len()).unwrap();
        assert_eq!(sealed.rebuild(len, map), Sealed::from(mapped));
    }

    #[test]
    fn elements_cover_all_values(values in values()) {
        let sealed = Sealed::from(values.clone());
        assert_eq!(sealed.any_negative(), values.iter().any(|&value| value < 0));
        if let Some(distinct) = sealed.distinct(1000) {
            let expected: std::collections::BTreeSet<i64> = values.into_iter().collect();
            assert_eq!(distinct, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn arbitrary_bytes_decode_or_fail(head in vec(any::<u8>(), 0..40), vals in vec(any::<u8>(), 0..40)) {
        let (mut head, mut vals) = (head.as_slice(), vals.as_slice());
        if let Ok(sealed) = Sealed::decode(&mut head, &mut vals) {
            let again = round_trip(&sealed);
            assert_eq!(read(&again, 200), read(&sealed, 200));
        }
    }
}

#[test]
fn trip_counts_do_not_matter_to_constants_periods_and_counters() {
    let period = [3, 1, 4, 1, 5, 9, 2];
    assert_eq!(Sealed::from(vec![5; 10]), Sealed::from(vec![5; 20]));
    assert_eq!(Sealed::from(vec![5]), Sealed::from(vec![5; 2]));
    assert_eq!(Sealed::from(period.repeat(100)), Sealed::from(period.repeat(130)));
    let counter = |n: i64| Sealed::from((0..n).collect::<Vec<_>>());
    assert_eq!(counter(10), counter(1000));
    assert_ne!(Sealed::from(period.repeat(100)), Sealed::from(vec![3; 100]));
}

/// Source: `algorithms.md` §4: (1 0)×500 takes constant size, also where the vector ends within a period, and appending in
/// pieces gives what appending at once does.
#[test]
fn presence_in_every_other_iteration_takes_constant_size() {
    let words = |n: usize| Sealed::from([1, 0].repeat(n)).heap_words();
    assert_eq!(words(500), words(50_000));
    assert!(words(500) <= 20, "{} words", words(500));
    let mut pieces = Ints::new();
    for piece in [3, 1, 494, 2] {
        pieces.extend([1, 0].repeat(piece));
    }
    assert_eq!(pieces.seal(), Sealed::from([1, 0].repeat(500)));
    let odd = [[1, 0].repeat(500), vec![1]].concat();
    assert_eq!(read(&Sealed::from(odd.clone()), 1001), odd);
    assert!(Sealed::from(odd).heap_words() <= 24);
}

/// `n` values below 64 without structure of their own.
fn noise(n: usize) -> Vec<i64> {
    let mut state = 1_u64;
    let step = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(*state >> 58).unwrap()
    };
    (0..n).map(|_| step(&mut state)).collect()
}

#[test]
fn long_periods_are_stored_once() {
    for period in [7, 500, 5_000, 50_000_usize] {
        let sealed = Sealed::from(noise(period).repeat(6));
        assert!(sealed.heap_words() < period + 40, "period {period}: {} words", sealed.heap_words());
    }
}

#[test]
fn a_period_that_contains_periods_is_stored_a_few_times() {
    let inner = noise(20).repeat(30);
    let period =
        [inner, noise(50), noise(8).repeat(11), vec![7; 40], noise(60).split_off(50).repeat(200)].concat();
    let words = |n| Sealed::from(period.repeat(n)).heap_words();
    assert_eq!(words(50), words(500));
    assert!(words(50) < 3 * period.len(), "{} words for a period of {}", words(50), period.len());
}

#[test]
fn a_period_of_runs_takes_a_few_words() {
    let mut ints = Ints::new();
    for _ in 0..1000 {
        ints.extend(0..1000);
        ints.push_run(-2, 500);
    }
    assert_eq!(ints.len(), 1_500_000);
    let expected = (0..1000).flat_map(|_| (0..1000).chain(std::iter::repeat_n(-2, 500)));
    assert!(ints.iter().eq(expected));
    assert!(ints.seal().heap_words() < 60);
}

#[test]
fn periods_of_few_values_are_found() {
    for (period, values) in [(500, 3), (500, 2), (5_000, 2)] {
        let period: Vec<i64> = noise(period).iter().map(|value| value % values).collect();
        let words = |n| Sealed::from(period.repeat(n)).heap_words();
        assert_eq!(words(20), words(40));
        assert!(words(20) < 4 * period.len(), "{} words for a period of {}", words(20), period.len());
    }
}

#[test]
fn periods_of_runs_of_varying_length_are_found() {
    let program = |n: i64| -> Ints {
        let mut ints = Ints::new();
        (0..n).for_each(|i| ints.push_run(1 + i % 3, u64::try_from(2 + i % 11).unwrap()));
        ints
    };
    assert_eq!(program(1_000).seal(), program(9_000).seal());
    assert!(program(1_000).seal().heap_words() < 600);
}

/// A sequence by a polynomial over its values, and its length.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Polynomial(u64, u64, u64);

impl Chain for Polynomial {
    fn empty() -> Self {
        Self(0, 1, 0)
    }
    fn then(self, next: Self) -> Self {
        Self(
            self.0.wrapping_mul(next.1).wrapping_add(next.0),
            self.1.wrapping_mul(next.1),
            self.2.wrapping_add(next.2),
        )
    }
}

proptest! {
    #[test]
    fn a_product_is_that_of_the_values(values in values(), len in 0..700_u64) {
        let one = |v: i64| Polynomial(v.cast_unsigned().wrapping_mul(0x9E37_79B9), 0x2545_F491_4F6C_DD1D, 1);
        let sealed = Sealed::from(values);
        let mut cursor = sealed.cursor();
        let plain = (0..len).fold(Polynomial::empty(), |all, _| all.then(one(cursor.next())));
        assert_eq!(sealed.product(len, one), plain);
    }
    #[test]
    fn values_one_by_one_are_those_of_any_stream(values in vec(0..70_000_i64, 1..30), len in 0..60_u64) {
        // Wide ones and small ones.
        for values in [values.clone(), values.iter().map(|v| v % 9).collect()] {
            let (plain, coded) = (Sealed::plain(values.clone()), Sealed::from(values.clone()));
            let (last, n) = (*values.last().unwrap(), values.len());
            let mut open = read(&plain, n + 3);
            assert!(open.drain(n..).all(|v| v == last));
            assert_eq!(&open, &values);
            assert_eq!(read(&round_trip(&plain), n), values.clone());
            assert_eq!(read(&plain.map(|v| v + 70_000), n), values.iter().map(|v| v + 70_000).collect::<Vec<_>>());
            assert_eq!(plain.elements().map(|e| e.first).collect::<Vec<_>>(), values.clone());
            assert_eq!(plain.rebuild(n.try_into().unwrap(), |v| v), coded);
            let one = |v: i64| Polynomial(v.cast_unsigned(), 0x2545_F491_4F6C_DD1D, 1);
            let mut cursor = plain.cursor();
            let folded = (0..len).fold(Polynomial::empty(), |all, _| all.then(one(cursor.next())));
            assert_eq!(plain.product(len, one), folded);
            let mut turns = Together::new(vec![plain.cursor()], len);
            let mut sum = 0;
            while let Some(times) = turns.next_turn() {
                sum += turns.cursors()[0].next() * i64::try_from(times).unwrap();
            }
            assert_eq!(sum, read(&plain, len.try_into().unwrap()).iter().sum::<i64>());
        }
    }
}
