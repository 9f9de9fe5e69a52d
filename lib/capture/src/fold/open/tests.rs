use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_seen_at_a_glance_is_found_place_by_place(
        symbols in proptest::collection::vec(0..3_u32, 200..400),
        frozen in proptest::option::of(20..150_usize),
    ) {
        let (mut open, mut glances) = (Open::new(), 0);
        for (i, sym) in symbols.into_iter().enumerate() {
            open.push(Node::leaf(sym, 1));
            if i == 180 && let Some(keep) = frozen {
                open.freeze(keep).for_each(drop);
            }
            let end = open.end() - 1;
            if let Some(seen) = open.at_a_glance(sym, end) {
                prop_assert_eq!(seen, open.place_by_place(sym, end));
                glances += 1;
            }
        }
        prop_assert!(glances > 0);
    }
}
