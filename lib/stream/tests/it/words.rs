//! Values of parameters in JSON, written and read back, of all functions.

use serde_json::Value;
use st_model::calls::{CallTable, Meaning};
use st_model::values;
use st_stream::json::read::{Read, value};
use st_stream::json::{plain, word};

#[test]
fn words_read_back() {
    let mut read = 0;
    for row in CallTable::builtin().rows() {
        for slot in &row.slots {
            let some = match slot.meaning {
                Meaning::Flag => 0..=1,
                Meaning::Times => 1..=9,
                // Objects have labels; positions are told by requests.
                Meaning::Ref(_) | Meaning::Position => continue,
                _ => -12..=70,
            };
            let far = [values::UNDEFINED, 1 << 33, (1 << 32) | 3, 123_456_789];
            let plain_integers = !matches!(slot.meaning, Meaning::Flag | Meaning::Times);
            for w in some.chain(far.into_iter().filter(|_| plain_integers)) {
                let printed = word(row, slot, w);
                let role = row.params.iter().find(|p| p.name == slot.name).map_or("", |p| p.role.as_str());
                let ambiguous = match role {
                    // Two words are undefined.
                    "outtopo" => w == values::UNDEFINED,
                    // No sum of constants is below 0, or has bits between those with names and foreign ones.
                    "assert" => w < 0 || w & 0xffff_ffff >= 1 << values::ASSERT.len(),
                    "amode" | "outamode" => w < 0 || w & 0xffff_ffff >= 1 << values::AMODE.len(),
                    _ => false,
                };
                let back = value(row, slot, &printed);
                let same = back == Some(Read::Word(w));
                assert!(same || ambiguous, "{} {}: {w} is {printed} is {back:?}", row.name, slot.name);
                read += 1;
            }
        }
    }
    assert!(read > 50_000, "{read}");
}

#[test]
fn what_a_slot_cannot_have_is_none() {
    let send = CallTable::builtin().by_name("MPI_Send");
    let dest = send.and_then(|row| Some((row, row.slots.get(row.slot("dest")?)?)));
    let Some((row, dest)) = dest else { panic!("MPI_Send sends to somebody") };
    for no in [Value::from(1.5), true.into(), "MPI_ANY_TAG".into(), "".into(), Value::Array(vec![])] {
        assert_eq!(value(row, dest, &no), None, "{no}");
    }
    assert_eq!(value(row, dest, &plain(dest, values::PROC_NULL)), Some(Read::Word(values::PROC_NULL)));
}
