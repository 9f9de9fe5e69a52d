//! What is kept of wait states: any of it comes back, as a stream and as text, and no bytes of it are a panic.

use crate::full::full;
use crate::sections::recorded;
use crate::stream::{bytes, read};
use crate::whole::{pair, sample};
use proptest::prelude::*;
use st_model::calls::CallId;
use st_model::explanation::{
    Cause, Costs, ELSEWHERE, Excess, Explanation, Found, Other, Place, Totals, Victims, Waits,
};
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::spread::{Class, LOWEST, Spread};
use st_stream::{Trace, text};

const RANKS: u32 = 40;
const PLACES: usize = 4;

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..1000, 0u64..1 << 63]
}

fn place() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..4, 1 => Just(ELSEWHERE)]
}

fn spread() -> impl Strategy<Value = Spread> {
    let ranks = prop_oneof![
        prop::collection::btree_set(0..RANKS, 1..20).prop_map(|set| set.into_iter().collect()),
        Just(RankList::first(RANKS)),
    ];
    let class = (ranks, 0..=LOWEST).prop_map(|(ranks, below)| Class { ranks, below });
    prop::collection::vec(class, 0..4).prop_map(|classes| Spread { classes })
}

fn found() -> impl Strategy<Value = Found> {
    let excess = (0..RANKS, place(), time()).prop_map(|(rank, place, ns)| Excess { rank, place, ns });
    let cause = (place(), any::<bool>(), time(), spread()).prop_map(|(place, in_call, ns, spread)| Cause {
        place,
        in_call,
        ns,
        spread,
    });
    let causes = prop::collection::vec(cause, 0..3);
    (prop::option::of(excess), causes).prop_map(|(excess, causes)| Found { excess, causes })
}

fn waits() -> impl Strategy<Value = Waits> {
    let what = (any::<u8>(), place(), place());
    let sums = (time(), time(), time());
    (what, sums, spread(), prop::option::of(found())).prop_map(|(what, sums, spread, finding)| {
        let ((kind, place, culprit), (count, ns, longest)) = (what, sums);
        Waits { kind, place, culprit, count, ns, longest, spread, finding }
    })
}

fn explanation() -> impl Strategy<Value = Explanation> {
    let ids: Vec<u128> = sample(0).sites.sites().iter().map(|site| site.id).collect();
    let site = prop_oneof![prop::sample::select(ids), any::<u128>()];
    let places =
        (0u16..500, prop::option::of(site)).prop_map(|(call, site)| Place { call: CallId(call), site });
    let victims = (any::<u8>(), place(), time(), spread())
        .prop_map(|(kind, place, longest, spread)| Victims { kind, place, longest, spread });
    let other = ((any::<u8>(), place()), [time(), time(), time()], spread()).prop_map(|(what, n, spread)| {
        let ((matter, place), [cost, count, bytes]) = (what, n);
        Other { matter, place, cost, count, bytes, spread }
    });
    let costs = (place(), any::<bool>(), [time(), time(), time(), time()], spread(), spread())
        .prop_map(|(place, in_call, ns, caused, suffered)| Costs { place, in_call, ns, caused, suffered });
    let totals = (prop::collection::vec(time(), 7), [time(), time(), time(), time(), time()]);
    let totals = totals.prop_map(|(t, unmatched)| {
        let [run, ideal, time, mean, longest, delayed, violations] = t[..].try_into().unwrap();
        Totals { run, ideal, time, mean, longest, delayed, violations, unmatched }
    });
    let rows = (
        prop::collection::vec(victims, 0..4),
        prop::collection::vec(waits(), 0..4),
        prop::collection::vec(other, 0..4),
        prop::collection::vec(costs, 0..4),
    );
    (totals, prop::collection::vec(places, PLACES), rows).prop_map(|(totals, places, rows)| {
        let (victims, waits, others, costs) = rows;
        Explanation { ranks: RankList::first(RANKS), totals, places, victims, waits, others, costs }
    })
}

/// The same of a trace that lacks every third rank.
fn with_gaps(mut e: Explanation) -> Explanation {
    let with_gaps = |ranks: &mut RankList| *ranks = ranks.iter().map(|rank| rank + rank / 2).collect();
    let mut spreads = Vec::new();
    spreads.extend(e.victims.iter_mut().map(|v| &mut v.spread));
    for w in &mut e.waits {
        let causes = w.finding.iter_mut().flat_map(|f| &mut f.causes);
        spreads.extend(causes.map(|c| &mut c.spread).chain([&mut w.spread]));
    }
    spreads.extend(e.others.iter_mut().map(|o| &mut o.spread));
    spreads.extend(e.costs.iter_mut().flat_map(|c| [&mut c.caused, &mut c.suffered]));
    spreads.into_iter().flat_map(|spread| &mut spread.classes).for_each(|class| with_gaps(&mut class.ranks));
    with_gaps(&mut e.ranks);
    e
}

fn trace(sections: Vec<Section>, explanation: Explanation, level: u8) -> Trace {
    Trace { sections, explanation: Some(explanation), level, ..Trace::default() }
}

proptest! {
    #[test]
    fn it_is_read_as_it_was_written(
        e in explanation(),
        section in prop::option::of(full()),
        plan in recorded(),
        level in 0u8..4,
        gaps: bool,
    ) {
        let e = if gaps { with_gaps(e) } else { e };
        // With the sites that it names, others, or none.
        for sections in [vec![sample(0)], section.into_iter().collect(), vec![plan.section(3), sample(1)]] {
            let trace = trace(sections, e.clone(), level);
            let written = bytes(&trace);
            let back = read(&written).unwrap();
            prop_assert_eq!(&back, &trace);
            prop_assert_eq!(bytes(&back), written);
            let mut out = Vec::new();
            text::write(&trace, &mut out).unwrap();
            prop_assert_eq!(&text::parse(&out[..]).unwrap(), &trace);
        }
    }

    #[test]
    fn damage_behind_a_good_checksum_is_never_a_panic(
        e in explanation(),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let written = bytes(&trace(vec![pair()], e, 0));
        let mut frames = st_damage::frames(&written).unwrap();
        let waits = frames.iter_mut().find(|f| f.kind == 15).unwrap();
        let at = at.index(waits.payload.len());
        waits.payload[at] = with;
        let damaged = st_damage::stream(&written, &frames);
        match read(&damaged) {
            Ok(accepted) => {
                // What is taken for one is one.
                prop_assert_eq!(&read(&bytes(&accepted)).unwrap(), &accepted);
                let e = accepted.explanation.unwrap();
                for w in e.waits.iter().filter(|w| w.spread.rows() < 10_000) {
                    let parts = w.spread.parts(w.ns);
                    prop_assert_eq!(u64::try_from(parts.len()).unwrap(), w.spread.rows());
                }
            }
            Err(why) => prop_assert!(format!("{why}").starts_with("frame"), "{}", why),
        }
    }
}

/// One class of all ranks a hundred thousand times over takes a few bytes.
#[test]
fn no_more_is_read_than_a_writer_keeps() {
    let other = Other {
        matter: 0,
        place: ELSEWHERE,
        cost: 0,
        count: 0,
        bytes: 0,
        spread: Spread::even(RankList::first(RANKS)),
    };
    let many = |n| Explanation {
        ranks: RankList::first(RANKS),
        others: vec![other.clone(); n],
        ..Explanation::default()
    };
    assert!(read(&bytes(&trace(vec![], many(1 << 16), 0))).is_ok());
    let much = bytes(&trace(vec![], many(1 << 18), 0));
    assert!(much.len() < 10_000, "{}", much.len());
    let error = read(&much).unwrap_err();
    assert!(format!("{:?}", error.kind()).contains("more than a trace can hold"), "{error:?}");
}

/// The frame of a kind that older versions do not know is one that they may skip.
#[test]
fn an_older_reader_skips_it() {
    let e = Explanation { ranks: RankList::first(RANKS), ..Explanation::default() };
    let frames = st_damage::frames(&bytes(&trace(vec![sample(0)], e, 0))).unwrap();
    let waits = frames.iter().find(|f| f.kind == 15).unwrap();
    assert_eq!(waits.flags & 2, 0);
    assert_eq!(frames.iter().rposition(|f| f.kind == 15).unwrap(), frames.len() - 2);
}
