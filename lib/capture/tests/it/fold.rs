//! Properties of folding: exactness for every sequence, the papers' examples, size.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use st_capture::fold::{DEFAULT_WINDOW, Fold, Folder, Likeness, Sym};
use st_model::ints::Sealed;
use st_model::tree::{FlatTree, Item, Walk, WalkError};

type Tree = (FlatTree, Vec<Sealed>);

fn fold_by(mut folder: Folder, symbols: &[Sym]) -> Tree {
    symbols.iter().for_each(|&sym| folder.push(sym));
    folder.finish().flatten()
}

fn fold(symbols: &[Sym]) -> Tree {
    fold_by(Folder::new(DEFAULT_WINDOW), symbols)
}

fn unfold((tree, counts): &Tree) -> Vec<Sym> {
    let cursors: Vec<_> = counts.iter().map(Sealed::cursor).collect();
    Walk::new(tree, cursors).collect::<Result<_, _>>().unwrap()
}

/// Programs are cut off after so many calls.
const LONGEST: usize = 5_000;

/// A program: what a loop does at its n-th visit depends on n only.
#[derive(Clone, Debug)]
enum Code {
    Call(Sym, u8),
    Loop(Vec<Code>, Vec<u8>),
}

fn run(code: &mut [(Code, usize)], out: &mut Vec<Sym>) {
    for (code, visits) in code {
        *visits += 1;
        match code {
            Code::Call(sym, n) => out.extend(std::iter::repeat_n(*sym, usize::from(*n))),
            Code::Loop(body, trips) => {
                let mut body: Vec<_> = body.iter().map(|code| (code.clone(), *visits)).collect();
                for _ in 0..trips[*visits % trips.len()] {
                    if out.len() > LONGEST {
                        return;
                    }
                    run(&mut body, out);
                }
            }
        }
    }
}

fn codes(fewest: u8, symbols: Sym) -> impl Strategy<Value = Vec<Code>> {
    let call = prop_oneof![
        (0..symbols).prop_map(|sym| Code::Call(sym, 1)),
        (0..symbols, 1..4_u8).prop_map(|(sym, n)| Code::Call(sym, n)),
    ];
    let code = call.prop_recursive(5, 40, 5, move |inner| {
        (vec(inner, 1..5), vec(fewest..7, 1..5)).prop_map(|(body, trips)| Code::Loop(body, trips))
    });
    vec(code, 1..6)
}

fn execute(code: Vec<Code>) -> Vec<Sym> {
    let mut out = Vec::new();
    run(&mut code.into_iter().map(|code| (code, 0)).collect::<Vec<_>>(), &mut out);
    out
}

fn programs(fewest: u8, symbols: Sym) -> impl Strategy<Value = Vec<Sym>> {
    codes(fewest, symbols).prop_map(execute)
}

/// Programs in which every call site has its own symbol and every loop repeats.
fn repeating_programs() -> impl Strategy<Value = Vec<Sym>> {
    fn rename(code: &mut [Code], next: &mut Sym) {
        for code in code {
            match code {
                Code::Call(sym, _) => {
                    *sym = *next;
                    *next += 1;
                }
                Code::Loop(body, _) => rename(body, next),
            }
        }
    }
    codes(2, 2)
        .prop_map(|mut code| {
            rename(&mut code, &mut 0);
            execute(code)
        })
        .prop_filter("programs that were cut off may end in a loop that ran once", |symbols| {
            symbols.len() <= LONGEST
        })
}

fn sequences() -> impl Strategy<Value = Vec<Sym>> {
    prop_oneof![
        programs(0, 6),
        programs(1, 3),
        vec(0..3_u32, 0..300),
        vec(0..12_u32, 0..300),
        vec(any::<u32>(), 0..40),
        (vec(0..5_u32, 1..12), vec(0..12_usize, 1..60)).prop_map(|(text, starts)| {
            starts.iter().flat_map(|&start| text[start.min(text.len() - 1)..].to_vec()).collect()
        }),
    ]
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn trees_are_exact(symbols in sequences(), window in prop_oneof![Just(DEFAULT_WINDOW), 1..40_usize]) {
        assert_eq!(unfold(&fold_by(Folder::new(window), &symbols)), symbols);
        assert_eq!(unfold(&fold_by(Folder::without_prediction(window), &symbols)), symbols);
    }

    #[test]
    fn approximate_and_flat_trees_are_exact(
        symbols in sequences(),
        window in prop_oneof![Just(DEFAULT_WINDOW), 1..40_usize],
        length in 0..101_u32,
        common in 0..101_u32,
        reach in 2..200_usize,
    ) {
        let like = Likeness { window: reach, length, common };
        assert_eq!(unfold(&fold_by(Folder::approximate(like, window), &symbols)), symbols);
        let mut both = Folder::by(Fold::Approx(like), window);
        symbols.iter().for_each(|&sym| both.push(sym));
        assert_eq!(unfold(&both.finish().smallest().tree), symbols);
        let flat = fold_by(Folder::by(Fold::None, window), &symbols);
        assert_eq!(unfold(&flat), symbols);
        assert_eq!(flat.0.items().len(), symbols.chunk_by(|a, b| a == b).count());
    }

    #[test]
    fn the_smallest_tree_is_exact(symbols in sequences(), window in prop_oneof![Just(DEFAULT_WINDOW), 1..40_usize]) {
        let mut folder = Folder::new(window);
        // Long enough for other trees to be tried.
        let symbols: Vec<Sym> = symbols.iter().zip(0..).flat_map(|(&sym, i)| [sym, i]).chain(symbols.clone()).collect();
        symbols.iter().for_each(|&sym| folder.push(sym));
        assert_eq!(unfold(&folder.finish().smallest().tree), symbols);
    }

    #[test]
    fn a_folder_that_goes_on_has_a_tree(
        symbols in sequences(),
        more in sequences(),
        window in prop_oneof![Just(DEFAULT_WINDOW), 1..40_usize],
        fold in prop_oneof![Just(Fold::Exact), Just(Fold::None), Just(Fold::Approx(Likeness::default()))],
    ) {
        let mut folder = Folder::by(fold, window);
        symbols.iter().for_each(|&sym| folder.push(sym));
        let mut successor = folder.successor();
        more.iter().for_each(|&sym| successor.push(sym));
        proptest::prop_assert_eq!(unfold(&folder.packed(successor).unpack(usize::MAX).unwrap()), [&symbols[..], &more[..]].concat());
        // The folder itself has not changed.
        proptest::prop_assert_eq!(folder.finish().flatten(), fold_by(Folder::by(fold, window), &symbols));
    }

    #[test]
    fn runs_may_be_pushed_at_once(symbols in sequences()) {
        let mut folder = Folder::new(DEFAULT_WINDOW);
        for run in symbols.chunk_by(|a, b| a == b) {
            folder.push_n(run[0], u64::try_from(run.len()).unwrap());
        }
        assert_eq!(folder.finish().flatten(), fold(&symbols));
    }

    #[test]
    fn rounds_may_be_pushed_at_once(parts in vec((sequences(), 1..12_u64), 1..6), window in prop_oneof![Just(DEFAULT_WINDOW), 1..40_usize]) {
        let (mut at_once, mut singly) = (Folder::new(window), Folder::new(window));
        for (round, n) in &parts {
            let round = &round[..round.len().min(12)];
            at_once.push_rounds(round, *n);
            (0..*n).for_each(|_| round.iter().for_each(|sym| singly.push(*sym)));
        }
        proptest::prop_assert_eq!(at_once.finish().flatten(), singly.finish().flatten());
    }

    #[test]
    fn prediction_leaves_trees_of_repeating_loops_as_they_are(symbols in repeating_programs()) {
        let slow = fold_by(Folder::without_prediction(DEFAULT_WINDOW), &symbols);
        assert_eq!(fold(&symbols), slow);
    }
}

/// `{A{BC}[2 5]}[3]`-like text; counts where they are not all 1, as many as the node has visits.
fn text(tree: &Tree) -> String {
    fn list(tree: &Tree, from: usize, end: usize, visits: i64, out: &mut String) {
        let mut node = from;
        while node < end {
            let after = tree.0.end_of(node);
            let mut cursor = tree.1[node].cursor();
            let counts: Vec<i64> = (0..visits).map(|_| cursor.next()).collect();
            match tree.0.items()[node] {
                Item::Leaf { sym } => out.push(char::from(u8::try_from(sym).unwrap())),
                Item::Body { .. } => {
                    out.push('{');
                    list(tree, node + 1, after, counts.iter().sum(), out);
                    out.push('}');
                }
            }
            if counts.iter().any(|&count| count != 1) {
                let mut runs: Vec<String> = Vec::new();
                for run in counts.chunk_by(|a, b| a == b) {
                    runs.push(if run.len() > 3 {
                        format!("{}x{}", run[0], run.len())
                    } else {
                        vec![run[0].to_string(); run.len()].join(" ")
                    });
                }
                out.push_str(&format!("[{}]", runs.join(" ")));
            }
            node = after;
        }
    }
    let mut out = String::new();
    list(tree, 0, tree.0.items().len(), 1, &mut out);
    out
}

fn letters(text: &str) -> String {
    let symbols: Vec<Sym> = text.bytes().map(u32::from).collect();
    let tree = fold(&symbols);
    assert_eq!(unfold(&tree), symbols);
    self::text(&tree)
}

/// An iteration whose inner loop goes on for longer than one is predicted: what was predicted is taken back.
#[test]
fn a_very_long_iteration_is_exact() {
    let iteration = |inner: usize| [&[6][..], &[7, 8].repeat(inner), &[9]].concat();
    let trips = [3, 2, 5, 3, 40_000, 2, 33_000, 3];
    let symbols: Vec<Sym> = trips.into_iter().flat_map(iteration).collect();
    let tree = fold_by(Folder::new(DEFAULT_WINDOW), &symbols);
    assert!(tree.0.items().len() < 20);
    assert!(unfold(&tree) == symbols);
}

#[test]
fn loops_of_the_papers() {
    let ocean = |trips: &[usize]| {
        letters(&trips.iter().map(|&n| format!("A{}", "SRW".repeat(n))).collect::<String>())
    };
    assert_eq!(ocean(&[3, 3, 3]), "{A{SRW}[3 3 3]}[3]");
    assert_eq!(ocean(&[2, 5, 1, 4]), "{A{SRW}[2 5 1 4]}[4]");
    assert_eq!(ocean(&[1, 2, 3, 4]), "{A{SRW}[1 2 3 4]}[4]");
    assert_eq!(letters("ABCDCDABCDCDCDABCDCDCDCD"), "{AB{CD}[2 3 4]}[3]");
    assert_eq!(letters("AAAAABABABAB"), "{A[5 1 1 1]B}[4]");
    assert_eq!(letters("IRIRIRIRIRJRW"), "{IR}[5]JRW");
    assert_eq!(letters("IRIRIRIRIRIRW"), "{IR}[6]W");
}

fn alike(text: &str) -> String {
    let symbols: Vec<Sym> = text.bytes().map(u32::from).collect();
    let tree = fold_by(Folder::approximate(Likeness::default(), DEFAULT_WINDOW), &symbols);
    assert_eq!(unfold(&tree), symbols);
    self::text(&tree)
}

/// Source: Wu, Mueller 2013, figure 1 (1 to 4 are A to D), and the same with more around it.
#[test]
fn iterations_that_differ() {
    assert_eq!(alike("ABDACD"), "{AB[1 0]C[0 1]D}[2]");
    assert_eq!(letters("ABDACD"), "ABDACD");
    // Iterations that have events of their own, over and over.
    assert_eq!(alike("ABDACDABDADABCD"), "{AB[1 0 1 0 1]C[0 1 0 0 1]D}[5]");
    // Inner loops of varying trip counts, once, or with events of their own.
    assert_eq!(alike("ABCBCZABCZABCBCBCZ"), "{A{BC}[2 1 3]Z}[3]");
    assert_eq!(alike("ABPCBCYABCBPCBCY"), "{A{BP[1 0 0 1 0]C}[2 3]Y}[2]");
    // A loop inside a branch.
    assert_eq!(alike("APQZABCBCQZ"), "{AP[1 0]{BC}[0 2]QZ}[2]");
    // Iterations after a loop that are alike, but not equal.
    assert_eq!(alike("ABCDABCDABDABCD"), "{ABC[1 1 0 1]D}[4]");
    // Nothing alike.
    assert_eq!(alike("ABCDAEFGHD"), "ABCDAEFGHD");
}

/// Calls in a loop that are made by chance: one body, whatever the number of iterations.
fn chance(n: usize) -> Vec<Sym> {
    let bits = noise(n);
    let step = |&chance: &Sym| {
        let made = |bit: Sym, sym: Sym| if chance >> bit & 1 == 1 { vec![sym] } else { Vec::new() };
        [vec![1, 2], made(0, 3), vec![4], made(1, 5), made(2, 6), vec![7, 8]].concat()
    };
    bits.iter().flat_map(step).collect()
}

#[test]
fn random_ifs_make_one_body_if_iterations_may_differ() {
    let symbols = chance(2_000);
    let tree = fold_by(Folder::approximate(Likeness::default(), DEFAULT_WINDOW), &symbols);
    assert!(tree.0.items().len() < 20, "{}", text_of(&tree));
    assert_eq!(unfold(&tree), symbols);
    let exact = fold(&symbols);
    assert!(exact.0.items().len() > 500, "{}", exact.0.items().len());
    let mut folder = Folder::new(DEFAULT_WINDOW);
    symbols.iter().for_each(|&sym| folder.push(sym));
    let smallest = folder.finish().smallest().tree;
    assert_eq!(unfold(&smallest), symbols);
    assert!(smallest.0.items().len() < 100, "{}", smallest.0.items().len());
}

/// Stretches of it tell that approximate matches gain something.
#[test]
fn a_long_sequence_is_folded_by_what_stretches_of_it_gain() {
    let symbols = chance(4_000);
    assert!(symbols.len() > 20_000);
    let smallest = smallest_by(Fold::Exact, &symbols);
    assert!(smallest.0.items().len() < 100, "{}", smallest.0.items().len());
    // By chance alone: nothing is gained.
    let symbols: Vec<Sym> = noise(20_000).iter().map(|chance| chance % 50).collect();
    let stored = packed(&smallest_by(Fold::Exact, &symbols));
    assert!(stored <= packed(&fold(&symbols)), "{stored}");
}

/// One of five calls, by chance, between two that are always made.
fn switch(n: usize) -> Vec<Sym> {
    noise(n).iter().flat_map(|chance| [1, 2 + chance % 5, 7]).collect()
}

/// A molecular dynamics code: steps alike, but for those by chance in which neighbours are looked for anew.
#[test]
fn loops_stay_where_the_bare_sequence_takes_some_bytes_less() {
    let chance = noise(400);
    let step = |i: usize| {
        let anew = if chance[i].is_multiple_of(10) { 20..50 + chance[i + 1] % 3 } else { 0..0 };
        (1..18).chain(anew).collect::<Vec<Sym>>()
    };
    let symbols: Vec<Sym> = (0..160).flat_map(step).collect();
    let chosen = smallest_by(Fold::Exact, &symbols);
    let bodies = chosen.0.items().iter().filter(|item| matches!(item, Item::Body { .. })).count();
    assert!(bodies > 0 && chosen.0.items().len() < symbols.len() / 4, "{bodies} {}", text_of(&chosen));
}

fn smallest_by(fold: Fold, symbols: &[Sym]) -> Tree {
    let mut folder = Folder::by(fold, DEFAULT_WINDOW);
    symbols.iter().for_each(|&sym| folder.push(sym));
    let chosen = folder.finish().smallest();
    assert_eq!(unfold(&chosen.tree), symbols);
    // Only what exact folding does not find is called approximate.
    if !chosen.approximate && fold != Fold::Exact {
        assert_eq!(chosen.tree, smallest_by(Fold::Exact, symbols));
    }
    assert!(!(chosen.approximate && fold == Fold::Exact));
    chosen.tree
}

/// What a tree takes as it is stored, or nearly so.
fn packed(tree: &Tree) -> usize {
    let (mut heads, mut values) = (format!("{:?}", tree.0.items()).into_bytes(), Vec::new());
    tree.1.iter().for_each(|count| count.encode(&mut heads, &mut values));
    zstd::bulk::compress(&[heads, values].concat(), 19).unwrap().len()
}

/// Source: Wu, Mueller 2013, section 3.2: iterations are alike that begin and end with the same event.
#[test]
fn iterations_that_have_only_their_ends_in_common_are_alike_if_asked_for() {
    let papers = Likeness { length: 0, common: 0, ..Likeness::default() };
    let alike = |like, text: &str| {
        let symbols: Vec<Sym> = text.bytes().map(u32::from).collect();
        self::text(&fold_by(Folder::approximate(like, DEFAULT_WINDOW), &symbols))
    };
    assert_eq!(alike(papers, "ABCDEAFGHE"), "{AB[1 0]C[1 0]D[1 0]F[0 1]G[0 1]H[0 1]E}[2]");
    assert_eq!(alike(Likeness::default(), "ABCDEAFGHE"), "ABCDEAFGHE");
    // A switch is a body of all its calls, whatever it was the first time.
    let symbols = switch(400);
    let tree = fold_by(Folder::approximate(papers, DEFAULT_WINDOW), &symbols);
    assert_eq!(unfold(&tree), symbols);
    assert_eq!(tree.0.items().len(), 8, "{}", text_of(&tree));
}

#[test]
fn approximate_matches_are_kept_only_where_they_are_smaller() {
    let chances = [switch(400), chance(300), noise(900), [1, 2, 3, 4].repeat(90), vec![1, 2, 4, 1, 3, 4]];
    for symbols in chances {
        let exact = packed(&smallest_by(Fold::Exact, &symbols));
        for percent in [0, 50, 90] {
            let like = Likeness { length: percent, common: percent, ..Likeness::default() };
            let both = packed(&smallest_by(Fold::Approx(like), &symbols));
            assert!(both <= exact, "{:?}: {both} and {exact}", &symbols[..6]);
        }
    }
}

/// Nodes of a tree without their counts.
fn text_of(tree: &Tree) -> String {
    format!("{:?}", tree.0.items().iter().take(60).collect::<Vec<_>>())
}

#[test]
fn inner_loops_may_run_once_or_not_at_all() {
    let visits = [3, 2, 1, 0, 4, 0, 0, 5, 1, 2];
    let program: String = visits.iter().map(|&n| format!("A{}Z", "SRW".repeat(n))).collect();
    assert_eq!(letters(&program), "{A{SRW}[3 2 1 0 4 0 0 5 1 2]Z}[10]");
}

#[test]
fn rounds_of_a_loop_are_counted_not_pushed() {
    let mut folder = Folder::new(DEFAULT_WINDOW);
    // One by one these would take minutes.
    folder.push_rounds(&[1, 2, 1, 3], 1 << 40);
    let (tree, counts) = folder.finish().flatten();
    assert_eq!(tree.items().len(), 5);
    assert_eq!(counts[0].cursor().next(), 1 << 40);
}

#[test]
fn nested_loops_take_constant_size() {
    let program = |n: usize| -> Vec<Sym> {
        let step = |i: usize| {
            let inner: Vec<Sym> = [[2_u32].repeat(1 + i % 3), [3, 4].repeat(2 + i % 5)].concat();
            [vec![1], inner.repeat(3 + i % 4), vec![5, 6, 6, 6]].concat()
        };
        (0..n).flat_map(step).collect()
    };
    let (small, large) = (fold(&program(100)), fold(&program(5_000)));
    assert_eq!(small.0, large.0);
    assert_eq!(unfold(&large), program(5_000));
    let words = |tree: &Tree| tree.1.iter().map(Sealed::heap_words).sum::<usize>();
    assert!(words(&large) < 2 * words(&small) + 100, "{} and {} words", words(&small), words(&large));
}

/// `n` symbols below 64 without structure.
fn noise(n: usize) -> Vec<Sym> {
    let mut state = 7_u64;
    let step = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(*state >> 58).unwrap()
    };
    (0..n).map(|_| step(&mut state)).collect()
}

#[test]
fn long_periods_fold() {
    for (period, calls) in [(500, 100_000), (5_000, 200_000), (50_000, 1_000_000)] {
        let symbols = noise(period).repeat(calls / period);
        let tree = fold(&symbols);
        let nodes = tree.0.items().len();
        assert!(nodes <= 2 * period + 100, "period {period}: {nodes} nodes");
        assert_eq!(unfold(&tree), symbols);
        let words: usize = tree.1.iter().map(Sealed::heap_words).sum();
        assert!(words < 1_000, "{words} words of counts");
    }
}

/// Beyond the window a call takes a few bytes, also where what no longer folds has been folded into small loops, or long
/// ones that ran twice.
#[test]
fn memory_without_structure_is_bounded_by_the_window() {
    const WINDOW: usize = 1_000;
    let sites = |below: Sym| -> Vec<Sym> { noise(200_000).iter().map(|sym| sym % below).collect() };
    let twice: Vec<Sym> = noise(100_000).chunks(500).flat_map(|block| block.repeat(2)).collect();
    let inputs = [("random of 64", sites(64)), ("random of 3", sites(3)), ("random of 2", sites(2))];
    let others = [("random ifs", chance(30_000)), ("blocks that come twice", twice)];
    for (name, symbols) in inputs.into_iter().chain(others) {
        let mut folder = Folder::new(WINDOW);
        for (n, &sym) in (1..).zip(&symbols) {
            folder.push(sym);
            if n % 10_000 == 0 {
                let words = folder.heap_words();
                assert!(words < 150 * WINDOW + n / 2, "{name}: {words} words after {n} calls");
            }
        }
        assert_eq!(unfold(&folder.finish().flatten()), symbols, "{name}");
    }
}

#[test]
fn damaged_trees_end_with_an_error() {
    let body = Item::Body { below: 1 };
    let walk = |items: Vec<Item>, counts: &[i64]| {
        let counts: Vec<Sealed> = counts.iter().map(|&count| Sealed::from_constant(count)).collect();
        let tree = FlatTree::new(items);
        let mut walk = Walk::new(&tree, counts.iter().map(Sealed::cursor).collect::<Vec<_>>());
        (walk.next_symbol(), walk.next_symbol())
    };
    let leaf = Item::Leaf { sym: 9 };
    let ends = walk(vec![body, leaf], &[i64::MAX, 0]);
    assert!(matches!(ends.0, Err(WalkError::Idle { .. })), "{ends:?}");
    assert_eq!(ends.0, ends.1);
    assert_eq!(walk(vec![body, leaf], &[2, -1]).0, Err(WalkError::Negative { node: 1 }));
    assert_eq!(walk(vec![body, leaf], &[1, i64::MAX]), (Ok(Some(9)), Ok(Some(9))));
    assert_eq!(walk(vec![Item::Body { below: u32::MAX }, leaf], &[1, 1]), (Ok(Some(9)), Ok(None)));
}
