//! The structure for people: trees with names, counts and parameters; or the papers' leaf lists.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use st_cli::{Output, Screen, counted, wrapped};
use st_model::calls::{CallTable, Meaning, Object, Row, Slot};
use st_model::form::{Grid, SPECIAL};
use st_model::frequencies::Frequencies;
use st_model::header::Header;
use st_model::ints::Sealed;
use st_model::num::Exact as _;
use st_model::objects::{Content, Text};
use st_model::ranklist::RankList;
use st_model::ranklist_notation;
use st_model::section::{Elastic, Entry, Form, Section, SlotStreams, Symbol, Thread};
use st_model::sites::CallSites;
use st_model::tree::Item;
use st_stream::json;
use st_stream::text;

use crate::args::Args;
use crate::input::Named;

/// Classes of ranks whose values are shown; of more only the number.
const CLASSES: usize = 3;
/// Values of a histogram that are shown.
const SHOWN: usize = 6;
/// Values of a long list that are shown.
const BEGINNING: usize = 3;
/// Characters of an expression that are shown.
const WIDTH: usize = 48;

/// Prints all sections.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<()> {
    let mut begun = false;
    let width = Screen::of(out).width;
    let named = Named::read(args)?;
    let mut lists = text::flat::Lists::default();
    named.each(args, |header, section| {
        if !begun {
            begun = true;
            lines(vec![title(header)], "", width, out)?;
        }
        let places = counted(section.sites.sites().len().to_u64(), "call site");
        lines(vec![format!("{}: {places}", ranks(&section.ranks))], "", width, out)?;
        for (i, thread) in section.threads.iter().enumerate() {
            let calls = counted(thread.lanes.calls, "call");
            lines(vec![format!("thread {i} of {}: {calls}", ranks(&thread.ranks))], " ", width, out)?;
            if args.flat {
                lists.leaves(&section, thread).iter().try_for_each(|leaf| writeln!(out, "  {leaf}"))?;
            } else {
                tree(&section, thread, &named.sites, width, out)?;
            }
        }
        Ok(())
    })
}

/// `rank 3`, `ranks 0-3, 8`.
pub(crate) fn ranks(of: &RankList) -> String {
    format!("rank{} {}", if of.len() == 1 { "" } else { "s" }, ranklist_notation::plain(of))
}

/// `./app -n 5: 64 ranks, openmpi 4.1.4`.
fn title(header: &Header) -> String {
    let mut line = if header.program.is_empty() { "trace".to_owned() } else { header.command() };
    let _ = write!(line, ": {}", counted(header.world.into(), "rank"));
    if !header.mpi.flavour.is_empty() {
        let _ = write!(line, ", {}", header.mpi.called());
    }
    line
}

fn tree(section: &Section, thread: &Thread, sites: &CallSites, width: usize, out: &mut Output) -> Result<()> {
    let mut ends = Vec::new();
    let mut shown = vec![Shown::default(); section.symbols.len()];
    for item in thread.tree.items() {
        if let Item::Leaf { sym } = item
            && let Some(shown) = shown.get_mut(*sym as usize)
        {
            shown.places += 1;
        }
    }
    for (i, (item, counts)) in thread.tree.items().iter().zip(&thread.counts).enumerate() {
        while ends.last() == Some(&i) {
            ends.pop();
        }
        // However deep a call lies, half of the line is left for it.
        let indent = " ".repeat(2 + 2 * ends.len().min(width / 4));
        let times = values(section, counts, &|v| format!("x{v}"));
        match *item {
            Item::Body { below } => {
                lines(vec![format!("loop {times}")], &indent, width, out)?;
                ends.push(i + 1 + below as usize);
            }
            Item::Leaf { sym } => {
                let times = if times == "x1" { String::new() } else { format!(" {times}") };
                let symbols = section.symbols.get(sym as usize).zip(shown.get_mut(sym as usize));
                let Some((symbol, shown)) = symbols else { continue };
                let params = thread.params.get(sym as usize).map_or(&[][..], |p| p);
                let mut all = vec![call(section, symbol, &times, sites)];
                all.extend_from_slice(shown.next(|| (parameters(section, symbol, params), vary(params))));
                lines(all, &indent, width, out)?;
            }
        }
    }
    Ok(())
}

/// What is said of a call's parameters: where they vary, and the call stands at several places of the tree, only at the first of
/// them, since the values of each place are not told apart.
#[derive(Clone, Default)]
struct Shown {
    places: usize,
    said: bool,
    /// At the first place, if that is another.
    first: Vec<String>,
    words: Vec<String>,
}

impl Shown {
    /// What is said at the next place; `make` makes the parameters, and says whether they vary.
    fn next(&mut self, make: impl FnOnce() -> (Vec<String>, bool)) -> &[String] {
        if !std::mem::replace(&mut self.said, true) {
            let (words, vary) = make();
            self.words = words;
            if vary && self.places > 1 {
                let all = format!("at {} together:", counted(self.places.to_u64(), "place"));
                let first = std::mem::replace(&mut self.words, vec!["as above".into()]);
                self.first = std::iter::once(all).chain(first).collect();
                return &self.first;
            }
        }
        &self.words
    }
}

/// Whether parameters vary from call to call.
fn vary(params: &[SlotStreams]) -> bool {
    let vary = |e: &Elastic| e.streams.iter().any(|s| s.constant().is_none());
    params.iter().any(|p| vary(&p.values) || p.lens.as_ref().is_some_and(vary))
}

/// Writes words in lines, the second and later ones indented further.
fn lines(words: Vec<String>, indent: &str, width: usize, out: &mut Output) -> Result<()> {
    let further = format!("{indent}    ");
    let room = width.saturating_sub(further.chars().count());
    let words = words.iter().flat_map(|word| pieces(word, room));
    Ok(wrapped(words, width, [indent, &further]).iter().try_for_each(|line| writeln!(out, "{line}"))?)
}

/// A word that does not fit into a line of its own, broken between classes of ranks, these at spaces if they do not fit, and
/// lists of long names between these.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let fits = |text: &str| text.chars().count() <= room;
    if fits(word) {
        return vec![word.to_owned()];
    }
    let classes = word.split(" | ").enumerate();
    let classes = classes.map(|(i, class)| if i == 0 { class.to_owned() } else { format!("| {class}") });
    let broken = |class: String| {
        let parts = class.split(if fits(&class) { '\n' } else { ' ' });
        let parts = parts.flat_map(|part| part.split_inclusive(if fits(part) { '\n' } else { ',' }));
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    classes.flat_map(broken).collect()
}

/// A call, how often it is made, and where.
fn call(section: &Section, symbol: &Symbol, times: &str, sites: &CallSites) -> String {
    let name = section.tables.names.get(&symbol.call).cloned().unwrap_or_else(|| symbol.call.to_string());
    let site = section.sites.get(symbol.site).and_then(|s| sites.number(s.id)).unwrap_or(u32::MAX);
    format!("{name}{times} [{}]", sites.describe(site))
}

/// A call's parameters and error, in words that lines may break between.
fn parameters(section: &Section, symbol: &Symbol, params: &[SlotStreams]) -> Vec<String> {
    let mut words = Vec::new();
    let row = CallTable::builtin().get(symbol.call);
    let pairs = row.into_iter().flat_map(|row| row.slots.iter().zip(params).map(move |(s, p)| (row, s, p)));
    for (row, slot, streams) in pairs {
        let form = streams.values.form;
        let all = match form {
            Form::Histogram(codes) => {
                histogram(&streams.values, &|v| value(section, row, slot, codes.form(), v))
            }
            _ => values(section, &streams.values, &|v| value(section, row, slot, form, v)),
        };
        let grid = in_grid(form).map_or_else(String::new, |grid| format!(" in {grid}"));
        let all = all + &grid;
        let all = streams.lens.as_ref().map_or(all.clone(), |lens| {
            list(&values(section, lens, &|v| v.to_string()), lens.streams.len() > 1, &all)
        });
        words.push(format!("{}={all}", slot.name));
    }
    if symbol.error != 0 {
        let class = st_model::values::error_class(symbol.error);
        words.push(format!("error={}", class.map_or_else(|| symbol.error.to_string(), str::to_owned)));
    }
    words
}

/// A list's parameter, by its length, or the `lengths` of several classes of ranks, and the values in it: `none`, `[7]`, `3 of {7}`.
fn list(length: &str, lengths: bool, values: &str) -> String {
    let several = values.starts_with(['{', '(', '~']) || values.contains(" | ");
    match length {
        "0" => "none".to_owned(),
        "1" if !several => format!("[{values}]"),
        _ => {
            let length =
                if lengths && !length.starts_with('(') { format!("({length})") } else { length.to_owned() };
            // A number alone would read as that of which there are so many.
            let values = if several { values.to_owned() } else { format!("{{{values}}}") };
            format!("{length} of {values}")
        }
    }
}

/// The most frequent values of a histogram: `~{me+1:60,MPI_PROC_NULL:4,…}`.
fn histogram(e: &Elastic, show: &dyn Fn(i64) -> String) -> String {
    let mut all: Vec<(i64, u64)> = e
        .streams
        .iter()
        .filter_map(Frequencies::from_stream)
        .flat_map(|f| f.iter().collect::<Vec<_>>())
        .collect();
    all.sort_by_key(|(code, n)| (std::cmp::Reverse(*n), *code));
    let more = if all.len() > SHOWN { ",…" } else { "" };
    let shown: Vec<_> = all.iter().take(SHOWN).map(|(code, n)| format!("{}:{n}", show(*code))).collect();
    format!("~{{{}{more}}}", shown.join(","))
}

/// The values of each class of ranks.
fn values(section: &Section, e: &Elastic, show: &dyn Fn(i64) -> String) -> String {
    let one = |s: &Sealed| match s.constant() {
        Some(v) => show(v),
        None => match s.distinct(4) {
            Some(few) => format!("{{{}}}", few.into_iter().map(show).collect::<Vec<_>>().join(",")),
            None => {
                let mut values = s.cursor();
                let first: Vec<_> = (0..BEGINNING).map(|_| show(values.next())).collect();
                format!("{{{},…}}", first.join(","))
            }
        },
    };
    match &e.streams[..] {
        [] => "-".into(),
        [only] if e.partition == 0 => one(only),
        many if many.len() > CLASSES => format!("({} groups of ranks)", many.len()),
        many => {
            let classes = section.partitions.get(e.partition as usize).map_or(&[][..], |p| &p.classes);
            let pairs = many.iter().zip(classes).map(|(s, r)| format!("{} on {}", one(s), ranks(r)));
            pairs.collect::<Vec<_>>().join(" | ")
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Coordinates as functions of the own rank, outermost first: `me/16`, `me%16`.
fn coordinates(grid: Grid) -> [String; 3] {
    let [plane, row, _] = grid.strides();
    match grid.extents() {
        (1, 1) => ["me".into(), String::new(), String::new()],
        (1, _) => [format!("me/{row}"), String::new(), format!("me%{row}")],
        (rows, _) => [format!("me/{plane}"), format!("me/{row}%{rows}"), format!("me%{row}")],
    }
}

/// A sum of own coordinates, each times a factor, and a number: `4*(me%16)+3`.
fn affine(grid: Grid, factors: [i64; 3], number: i64) -> String {
    let mut sum = String::new();
    let terms = factors.into_iter().zip(coordinates(grid));
    // A dimension of one rank has no coordinate.
    for (factor, of) in terms.filter(|(factor, of)| *factor != 0 && !of.is_empty()) {
        let sign = if factor < 0 {
            "-"
        } else if sum.is_empty() {
            ""
        } else {
            "+"
        };
        let _ = match factor.unsigned_abs() {
            1 if factor > 0 => write!(sum, "{sign}{of}"),
            1 => write!(sum, "{sign}({of})"),
            n => write!(sum, "{sign}{n}*({of})"),
        };
    }
    if sum.is_empty() {
        return number.to_string();
    }
    if number != 0 {
        let _ = write!(sum, "{number:+}");
    }
    sum
}

/// A place beside the own one in a grid: `me+(-1,0)` is in the row before and the same column.
fn beside(grid: Grid, code: i64) -> String {
    let [plane, row, column] = Form::ways(grid, code);
    match grid.extents() {
        (1, 1) => format!("me{plane:+}"),
        (1, _) => format!("me+({plane},{column})"),
        _ => format!("me+({plane},{row},{column})"),
    }
}

/// The grid that [`beside`] is about: `8 columns, wrapping`.
fn in_grid(form: Form) -> Option<String> {
    let Form::Shift { grid, wrap } = form else { return None };
    let (text, wraps) = match grid.extents() {
        (1, 1) => return None,
        (1, columns) => (format!("{columns} columns"), vec![("rows", wrap[0]), ("columns", wrap[2])]),
        (rows, columns) => (
            format!("planes of {rows}x{columns}"),
            ["planes", "rows", "columns"].into_iter().zip(wrap).collect(),
        ),
    };
    let wrapping: Vec<_> = wraps.iter().filter(|(_, wrap)| *wrap).map(|(what, _)| *what).collect();
    Some(match wrapping.len() {
        0 => text,
        n if n == wraps.len() => format!("{text}, wrapping"),
        _ => format!("{text}, {} wrapping", wrapping.join(" and ")),
    })
}

/// A word as JSON would name it; those of a form as functions of the own rank.
fn value(section: &Section, row: &Row, slot: &Slot, form: Form, word: i64) -> String {
    if form != Form::Absolute && word > -SPECIAL / 2 {
        return match form {
            Form::Predicted if word == 0 => "expected".into(),
            Form::Predicted => format!("expected{word:+}"),
            Form::Xor => format!("me^{word}"),
            f if f == Form::RELATIVE && word == 0 => "me".into(),
            f if f == Form::RELATIVE => format!("me{word:+}"),
            f if f == Form::MODULO => format!("(me{word:+}) mod size"),
            f if f == Form::MIRRORED => format!("{word}-me"),
            Form::User(e) if word == 0 => shortened(&e.to_string()),
            Form::User(e) => format!("({}){word:+}", shortened(&e.to_string())),
            Form::Affine { grid, factors } => affine(grid, factors, word),
            Form::Shift { grid, .. } => beside(grid, word),
            // Neither is a form of single values.
            Form::Absolute | Form::Histogram(_) => word.to_string(),
        };
    }
    let word = if form == Form::Absolute { word } else { word.wrapping_add(SPECIAL) };
    match slot.meaning {
        Meaning::Ref(object) => object_name(section, object, word),
        _ => json::bare(&json::word(row, slot, word)),
    }
}

/// Label of an object: of all ranks that have it if they agree, else its index.
fn object_name(section: &Section, object: Object, word: i64) -> String {
    fn label<T: Content>(table: &[Entry<T>], word: i64) -> Option<String> {
        let entry = table.get(usize::try_from(word).ok()?)?;
        let (_, first) = entry.of.first()?;
        let kind = first.content.label();
        if entry.of.iter().all(|(_, o)| o.label() == first.label()) {
            return Some(first.label());
        }
        // Different objects made in the same place, as the row communicators of a grid.
        Some(format!("{}#{word}", kind.split('-').next().unwrap_or(&kind)))
    }
    /// Texts have no kind that they share.
    fn texts(table: &[Entry<Text>], word: i64) -> Option<String> {
        let entry = table.get(usize::try_from(word).ok()?)?;
        match &entry.of[..] {
            [(_, only)] => Some(only.label()),
            many => Some(format!("({} texts)", many.len())),
        }
    }
    let t = &section.tables;
    let name = match object {
        Object::Comm => label(&t.comms, word),
        Object::Group => label(&t.groups, word),
        Object::Type => label(&t.types, word),
        Object::Op => label(&t.ops, word),
        Object::Win => label(&t.wins, word),
        Object::File => label(&t.files, word),
        Object::Text => texts(&t.texts, word),
    };
    name.unwrap_or_else(|| if word < 0 { "-".into() } else { word.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::form::Own;

    #[test]
    fn forms_are_functions_of_the_own_rank() {
        let own = |me| Own { me, size: 64 };
        let grids = [Grid::new(1, 8), Grid::new(4, 4)].map(Option::unwrap);
        assert_eq!(affine(grids[0], [1, 0, 0], 0), "me/8");
        assert_eq!(affine(grids[0], [0, 0, -1], 3), "-(me%8)+3");
        assert_eq!(affine(grids[1], [1, -2, 3], -1), "me/16-2*(me/4%4)+3*(me%4)-1");
        assert_eq!([affine(grids[0], [0, 3, 0], 0), affine(grids[0], [0, 3, 1], 0)], ["0", "me%8"]);
        assert_eq!(beside(Grid::LINE, -2), "me-2");
        let shift = |grid| Form::Shift { grid, wrap: [true, false, true] };
        assert_eq!(in_grid(shift(grids[0])).as_deref(), Some("8 columns, wrapping"));
        assert_eq!(in_grid(shift(grids[1])).as_deref(), Some("planes of 4x4, planes and columns wrapping"));
        // Rank 8 is in the first column: the place before it is at the end of its row.
        assert_eq!(beside(grids[0], shift(grids[0]).code(15, own(8))), "me+(0,-1)");
        assert_eq!(beside(grids[0], shift(grids[0]).code(17, own(8))), "me+(1,1)");
        assert_eq!(beside(grids[1], shift(grids[1]).code(16 + 4 + 3, own(32))), "me+(-1,1,-1)");
    }

    #[test]
    fn lists_say_how_many_values_they_have_and_which() {
        let of = |length, values| list(length, false, values);
        assert_eq!([of("0", "0"), of("1", "0"), of("1", "{0,1}")], ["none", "[0]", "1 of {0,1}"]);
        assert_eq!([of("3", "4"), of("{0,1}", "-")], ["3 of {4}", "{0,1} of {-}"]);
        assert_eq!(of("1", "me+1 on rank 0 | me-1 on rank 1"), "1 of me+1 on rank 0 | me-1 on rank 1");
        let classes = "1 on rank 0 | 2 on rank 1";
        assert_eq!(list(classes, true, "4"), "(1 on rank 0 | 2 on rank 1) of {4}");
        assert_eq!(
            list("(7 groups of ranks)", true, "(9 groups of ranks)"),
            "(7 groups of ranks) of (9 groups of ranks)"
        );
    }

    #[test]
    fn long_parameters_are_broken_between_classes_and_then_at_spaces() {
        let word = "dest=me+1 on ranks 0-3 | {1,2} on ranks 4, 5, 7, 9, 11, 13 | - on ranks 6, 8";
        let of = |room| pieces(word, room);
        assert_eq!(of(80), [word]);
        let classes = ["dest=me+1 on ranks 0-3", "| {1,2} on ranks 4, 5, 7, 9, 11, 13", "| - on ranks 6, 8"];
        assert_eq!(of(40), classes);
        for room in 5..90 {
            assert_eq!(of(room).join(" "), word);
            assert!(of(room).iter().all(|p| !p.contains(' ') || p.chars().count() <= room), "{room}");
        }
        assert_eq!(
            pieces("newtype={one-type,another-type,…}", 20),
            ["newtype={one-type,", "another-type,", "…}"]
        );
    }
}
