//! Everything that is recorded of a call is proved, by the lane that says so and no other.

use st_model::calls::{CallTable, LANES, Lane, Meaning, Row};
use st_model::lanes::{LaneSum, Lanes};
use st_model::proof::{Proof, by_slot};

/// What an object of index 0 is proved as.
const TYPE_0: u64 = 0xABCD;

/// The lanes of one call; objects are what the index says.
fn lanes(row: &Row, error: u32, site: u128, words: &[i64]) -> LaneSum {
    let mut lanes = Lanes::new();
    let proof = Proof { call: u64::from(row.id.0), error, site, slots: &row.slots, words };
    proof.enter(&mut lanes, |_, index| index.cast_unsigned() ^ TYPE_0);
    lanes.keyed(0, 0)
}

/// Lanes that differ.
fn differ(a: &LaneSum, b: &LaneSum) -> Vec<usize> {
    (0..LANES).filter(|i| a.hash[*i] != b.hash[*i]).collect()
}

/// Words of a call: lists have `length` elements; with the lane of each word.
fn words(row: &Row, length: i64) -> Vec<(i64, Lane)> {
    let mut words = Vec::new();
    for (i, slot) in (0i64..).zip(&row.slots) {
        let n = if slot.list { length } else { 1 };
        words.extend(slot.list.then_some((length, slot.lane)));
        words.extend((0..n).map(|k| (1 + 10 * i + k, slot.lane)));
    }
    words
}

fn values(words: &[(i64, Lane)]) -> Vec<i64> {
    words.iter().map(|w| w.0).collect()
}

#[test]
fn each_word_of_each_function_is_proved_by_its_lane() {
    for row in CallTable::builtin().rows() {
        let usual = values(&words(row, 2));
        let as_usual = lanes(row, 0, 7, &usual);
        let mut at = 0;
        for (slot, of_slot) in row.slots.iter().zip(by_slot(&row.slots, &usual)) {
            at += usize::from(slot.list);
            for i in at..at + of_slot.len() {
                let mut changed = usual.clone();
                changed[i] += 1000;
                let found = lanes(row, 0, 7, &changed);
                // What stands for several calls is as many.
                let several = slot.meaning == Meaning::Times;
                let expected = if several { (0..LANES).collect() } else { vec![slot.lane as usize] };
                let of_any = |lane: &usize| *lane < 2 || row.slots.iter().any(|s| s.lane as usize == *lane);
                let expected: Vec<usize> = expected.into_iter().filter(of_any).collect();
                let differ: Vec<usize> = differ(&as_usual, &found).into_iter().filter(of_any).collect();
                assert_eq!(differ, expected, "{}: word {i}, {}", row.name, slot.name);
                assert_eq!(found.calls > as_usual.calls, several, "{}", row.name);
            }
            at += of_slot.len();
        }
    }
}

#[test]
fn function_error_and_site_are_proved() {
    let table = CallTable::builtin();
    let [send, bsend] = ["MPI_Send", "MPI_Bsend"].map(|name| table.by_name(name).unwrap());
    let words = values(&words(send, 0));
    let usual = lanes(send, 0, 7, &words);
    assert_eq!(differ(&usual, &lanes(bsend, 0, 7, &words)), [Lane::Call as usize]);
    assert_eq!(differ(&usual, &lanes(send, 5, 7, &words)), [Lane::Call as usize]);
    assert_eq!(differ(&usual, &lanes(send, 0, 8, &words)), [Lane::Site as usize]);
    assert_eq!(differ(&usual, &lanes(send, 0, 7 | 1 << 100, &words)), [Lane::Site as usize]);
}

#[test]
fn where_a_list_ends_is_proved() {
    let row = CallTable::builtin().by_name("MPI_Alltoallv").unwrap();
    // The same numbers in the same order: one is a count there, and here what type 0 is proved as.
    let t = TYPE_0.cast_signed();
    let [one, other] = [[2, 3, t, 1, 5], [1, 3, 2, t, 5]].map(|counts| {
        let (sent, received) = counts.split_at(usize::try_from(counts[0]).unwrap() + 1);
        [&[0], sent, &[0, 0], received, &[0, 0, 0]].concat()
    });
    assert!(differ(&lanes(row, 0, 7, &one), &lanes(row, 0, 7, &other)).contains(&(Lane::Count as usize)));
}

#[test]
fn order_is_proved() {
    let row = CallTable::builtin().by_name("MPI_Send").unwrap();
    let in_order = |tags: [i64; 2]| {
        let mut lanes = Lanes::new();
        for tag in tags {
            let words = [1, 0, 3, tag, 0];
            Proof { call: 20, error: 0, site: 7, slots: &row.slots, words: &words }
                .enter(&mut lanes, |_, i| i.cast_unsigned());
        }
        lanes.keyed(0, 0)
    };
    assert_eq!(differ(&in_order([1, 2]), &in_order([2, 1])), [Lane::Tag as usize]);
}
