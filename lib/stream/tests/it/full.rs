//! Sections with anything in every place, whether or not a recorder or a merge would leave it there.

use std::collections::HashMap;

use crate::whole::pair;
use proptest::prelude::*;
use st_model::expr::Expr;
use st_model::form::Grid;
use st_model::frequencies::Frequencies;
use st_model::ints::Sealed;
use st_model::objects::{
    Comm, Content, Group, Named, Op, SharedObject, Text, Type, family_of_predefined, name_of,
};
use st_model::ranklist::RankList;
use st_model::ranks::RankSeq;
use st_model::section::{ANY_SYM, Codes, Elastic, Entry, Form, NO_SYM, Section, Tables};
use st_model::sites::{Frame, Site};
use st_model::sketch::Sketch;
use st_model::sketch::quantiles::ERROR;

/// Ranks of a section of two: either, or both.
fn some() -> impl Strategy<Value = RankList> {
    (1u32..4).prop_map(|bits| (0..2).filter(|r| bits >> r & 1 == 1).collect())
}

fn sequence() -> impl Strategy<Value = RankSeq> {
    prop::collection::vec(0u32..9, 0..4).prop_map(RankSeq::from_iter)
}

fn kind() -> impl Strategy<Value = String> {
    "[a-c]{1,2}"
}

/// A name of an object that the table may have, or not: none, a few, any.
fn reference() -> impl Strategy<Value = u128> {
    prop_oneof![Just(0u128), 1u128..4, any::<u128>()]
}

/// Objects whose names and families follow from what they are, or do not.
fn table<T: Content + Clone + std::fmt::Debug + 'static>(
    content: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Vec<Entry<T>>> {
    let named = (content, any::<u32>(), prop::option::of(reference())).prop_map(|(content, copy, name)| {
        Named { name: name.unwrap_or_else(|| name_of(content.digest(), copy)), copy, content }
    });
    let entry = (prop::option::of(any::<u128>()), prop::collection::vec((some(), named), 1..3)).prop_map(
        |(family, of)| Entry { family: family.unwrap_or_else(|| family_of_predefined(&of[0].1.content)), of },
    );
    prop::collection::vec(entry, 0..4).boxed()
}

pub(crate) fn tables() -> impl Strategy<Value = Tables> {
    let comm = (kind(), reference(), sequence(), sequence())
        .prop_map(|(kind, parent, members, remote)| Comm { kind, parent, members, remote });
    let shared = || {
        (kind(), reference(), sequence()).prop_map(|(kind, comm, members)| SharedObject {
            kind,
            comm,
            members,
        })
    };
    let words = prop::collection::vec(any::<i64>(), 0..3);
    let parts = prop::collection::vec(reference(), 0..3);
    let datatype = (kind(), words, parts, any::<[i64; 3]>())
        .prop_map(|(kind, words, parts, [size, lb, extent])| Type { kind, words, parts, size, lb, extent });
    let op = (kind(), any::<bool>()).prop_map(|(kind, commutes)| Op { kind, commutes });
    let all = (
        table(comm),
        table(shared()),
        table(shared()),
        table(sequence().prop_map(|members| Group { members })),
        table(datatype),
        table(op),
        table("[a-cé]{0,3}".prop_map(Text)),
    );
    all.prop_map(|(comms, wins, files, groups, types, ops, texts)| Tables {
        comms,
        groups,
        types,
        ops,
        wins,
        files,
        texts,
        names: std::collections::BTreeMap::new(),
    })
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let totals = (any::<u32>(), any::<[u128; 2]>(), any::<[u64; 2]>(), prop::array::uniform2(0u32..5));
    let buckets = prop::option::of(prop::collection::btree_map(0u16..600, 1u64..99, 0..4));
    (totals, buckets, 0u8..3).prop_map(|((count, [sum, squares], times, ranks), buckets, kept)| {
        let mut totals = Sketch::default();
        (totals.count, totals.sum, totals.squares) = (count.into(), sum, squares);
        let [least, most] = [times[0].min(times[1]), times[0].max(times[1])];
        (totals.min, totals.max) = ((least, ranks[0]), (most, ranks[1]));
        let Some(buckets) = buckets else { return Sketch::from_totals(totals) };
        totals.count = buckets.values().sum();
        let mut sketch = Sketch::from_parts(totals, buckets);
        match kept {
            0 => {}
            1 => sketch.keep_quantiles(ERROR),
            _ => sketch.keep_mean(ranks[0]),
        }
        sketch
    })
}

/// Forms of values of which one stream is there for both ranks.
fn form() -> impl Strategy<Value = Form> {
    let grid = || (1u32..5, 1u32..5).prop_map(|(middle, inner)| Grid::new(middle, inner).unwrap());
    let of = |text: &str| Form::User(Expr::parse(text, &HashMap::new()).unwrap());
    prop_oneof![
        (grid(), any::<[i64; 3]>()).prop_map(|(grid, factors)| Form::Affine { grid, factors }),
        (grid(), any::<[bool; 3]>()).prop_map(|(grid, wrap)| Form::Shift { grid, wrap }),
        Just(Form::Xor),
        Just(Form::Predicted),
        Just(of("me + 3")),
        Just(of("me ^ 1")),
        prop::sample::select(&Codes::ALL[..]).prop_map(Form::Histogram),
        Just(Form::Absolute),
    ]
}

/// A stream of a parameter or count: of both ranks, or of each its own.
fn elastic(form: Form, values: [i64; 2], apart: bool) -> Elastic {
    if let Form::Histogram(_) = form {
        let mut frequencies = Frequencies::default();
        frequencies.add(values[0] % 9, 4);
        return Elastic { form, partition: 0, streams: [frequencies.to_stream()].into() };
    }
    let streams = values.map(Sealed::from_constant);
    if apart {
        Elastic { form, partition: 1, streams: streams.into_iter().collect() }
    } else {
        Elastic { form, partition: 0, streams: streams.into_iter().take(1).collect() }
    }
}

prop_compose! {
    /// Two ranks in a section.
    pub(crate) fn full()(
        tables in tables(),
        forms in prop::collection::vec((form(), any::<[i32; 2]>(), any::<bool>()), 3),
        counts in prop::collection::vec((prop::array::uniform2(1i64..9), any::<bool>()), 3),
        lanes in (any::<u64>(), any::<u8>(), any::<[u128; 6]>()),
        sketches in prop::collection::vec((0u32..3, prop::option::of(0u32..3), sketch(), sketch()), 0..3),
        site in (any::<u128>(), "[a-c]{0,2}", any::<bool>()),
        ended in (any::<u64>(), prop::array::uniform2(prop::option::of(0u32..3)), any::<i64>()),
        turned in any::<bool>(),
        one_path in any::<bool>(),
    ) -> Section {
        let mut s = pair();
        s.tables = tables;
        let frames = if site.2 { vec![Frame { module: 0, offset: 77 }] } else { Vec::new() };
        s.sites.insert(Site { id: site.0, frames, label: site.1 });
        if turned {
            // Classes are in whatever order.
            s.partitions[1].classes.reverse();
        }
        let thread = &mut s.threads[0];
        // Exact times are those of other calls.
        thread.columns.clear();
        for (slot, (form, values, apart)) in forms.into_iter().enumerate() {
            thread.params[1][slot].values = elastic(form, values.map(i64::from), apart);
        }
        let n = thread.counts.len();
        for (at, (values, apart)) in counts.into_iter().enumerate() {
            thread.counts[at % n] = elastic(Form::Absolute, values, apart);
        }
        (thread.lanes.calls, thread.lanes.voided, thread.lanes.hash) = lanes;
        thread.sketches.clear();
        for (sym, pred, compute, comm) in sketches {
            let pred = pred.map_or(NO_SYM, |pred| if one_path { ANY_SYM } else { pred });
            thread.sketches.push(st_model::section::PathSketch { sym, pred, compute, comm });
        }
        let of = |sym: Option<u32>| sym.unwrap_or(NO_SYM);
        (s.ended[0].calls, s.ended[0].entered) = (ended.0, ended.2);
        (s.ended[0].last, s.ended[0].inside) = (of(ended.1[0]), of(ended.1[1]));
        s
    }
}
