//! What a trace holds, as lines that do not depend on how any program prints it: facts of the run, and per function of all
//! ranks how many calls there are, a digest of them in order (ranks, threads, call sites, error classes, parameters,
//! objects by what they are), and of their times what sketches and columns say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use st_model::calls::{CallTable, Meaning, Slot};
use st_model::check::check;
use st_model::section::{NO_SYM, Section, Sym, Tables};
use st_model::sites::CallSites;
use st_model::sketch::Sketch;
use st_stream::Trace;
use st_tests::Failure;
use xxhash_rust::xxh3::Xxh3;

/// What is known of the calls of a function.
#[derive(Default)]
pub(crate) struct Function {
    calls: u64,
    digest: Xxh3,
    compute: Sketch,
    comm: Sketch,
    times: (u64, Xxh3),
}

fn name(section: &Section, sym: Sym) -> String {
    let call = section.symbols[sym as usize].call;
    let known = CallTable::builtin().get(call).map(|row| row.name.clone());
    let named = || section.tables.names.iter().find(|(id, _)| **id == call).map(|(_, name)| name.clone());
    known.or_else(named).unwrap_or_else(|| format!("function {}", call.0))
}

/// Adds a call's words: references to objects as what these are, since tables of other stages have another order.
fn add_words(
    digest: &mut Xxh3,
    tables: &Tables,
    rank: u32,
    slots: &[Slot],
    words: &[i64],
) -> Result<(), Failure> {
    let mut words = words.iter();
    for slot in slots {
        let n = if slot.list { words.next().copied().ok_or("a list without length")? } else { 1 };
        digest.update(&n.to_le_bytes());
        for _ in 0..n {
            let word = *words.next().ok_or("too few words")?;
            match slot.meaning {
                Meaning::Ref(object) => digest.update(&tables.word_of(object, word, rank).to_le_bytes()),
                _ => digest.update(&word.to_le_bytes()),
            }
        }
    }
    if words.next().is_some() { Err("too many words".into()) } else { Ok(()) }
}

/// Adds the calls of one thread of one rank, and their exact times.
fn add_thread(
    functions: &mut BTreeMap<String, Function>,
    (section, thread, rank): (&Section, usize, u32),
) -> Result<(), Failure> {
    let of = &section.threads[thread];
    let mut times = of.columns.iter().filter(|(r, _)| *r == rank).flat_map(|(_, c)| c.times());
    let calls = section.project(thread, rank).ok_or("a thread without calls")?;
    for (index, call) in calls.enumerate() {
        let call = call.map_err(|e| e.to_string())?;
        let symbol = section.symbols[call.sym as usize];
        let f = functions.entry(name(section, call.sym)).or_default();
        f.calls += 1;
        let site = section.sites.get(symbol.site).ok_or("a call without site")?;
        f.digest.update(format!("{rank} {thread} {index} {} {}", site.id, symbol.error).as_bytes());
        add_words(
            &mut f.digest,
            &section.tables,
            rank,
            CallTable::builtin().slots(symbol.call),
            &call.words,
        )?;
        if let Some((enter, exit)) = times.next() {
            f.times.0 += 1;
            f.times.1.update(&[enter.to_le_bytes(), exit.to_le_bytes()].concat());
        }
    }
    Ok(())
}

/// Functions by name.
pub(crate) fn functions(trace: &Trace) -> Result<BTreeMap<String, Function>, Failure> {
    let mut out = BTreeMap::new();
    let sections = || trace.sections.iter().enumerate();
    let mut places: Vec<_> = sections()
        .flat_map(|(i, s)| {
            let threads = s.threads.iter().enumerate();
            threads.flat_map(move |(t, of)| of.ranks.iter().map(move |rank| (rank, t, i)))
        })
        .collect();
    places.sort_unstable();
    for (rank, thread, section) in places {
        add_thread(&mut out, (&trace.sections[section], thread, rank))?;
    }
    for section in &trace.sections {
        for sketch in section.threads.iter().flat_map(|t| &t.sketches) {
            let f = out.entry(name(section, sketch.sym)).or_default();
            f.compute.merge(&sketch.compute);
            f.comm.merge(&sketch.comm);
        }
    }
    Ok(out)
}

/// Number and digest of the calls of each function: what no stage changes.
pub(crate) fn calls(trace: &Trace) -> Result<Vec<String>, Failure> {
    let functions = functions(trace)?;
    Ok(functions
        .iter()
        .map(|(name, f)| format!("{name}: {} calls {:016x}", f.calls, f.digest.digest()))
        .collect())
}

fn ns(out: &mut String, what: &str, s: &Sketch) {
    if s.count > 0 {
        let (count, sum, min, max) = (s.count, s.sum, s.min.0, s.max.0);
        let _ = write!(out, ", {what} {count} of {sum} ns, {min} to {max}");
    }
}

/// What all sections have: modules, ranks that ended early, and by thread index the calls and what became of their lanes.
fn sections(trace: &Trace, out: &mut String) -> Result<(), Failure> {
    let (mut modules, mut ended, mut threads) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for s in &trace.sections {
        modules.extend(s.sites.modules().iter().map(|m| (&m.path, &m.build_id)));
        for e in &s.ended {
            let inside = if e.inside == NO_SYM { "no call".into() } else { name(s, e.inside) };
            ended.insert((e.rank, e.thread, e.calls, inside));
        }
        for t in check(s).map_err(|e| e.to_string())? {
            let of = threads.entry((t.thread, t.lanes.map(|v| format!("{v:?}")))).or_insert((0, 0));
            *of = (of.0 + s.threads[t.thread].ranks.len(), of.1 + t.calls.1);
        }
    }
    let _ = writeln!(out, "sections {}", trace.sections.len());
    modules.iter().for_each(|(path, id)| _ = writeln!(out, "module {path} {id}"));
    let sites = CallSites::of(trace.sections.iter().map(|s| &s.sites));
    for site in (0..sites.len()).filter(|site| sites.by_name(*site).is_some()) {
        let _ = writeln!(out, "{}", sites.describe(site));
    }
    for (rank, thread, calls, inside) in ended {
        let _ = writeln!(out, "rank {rank} thread {thread} ended after {calls} calls in {inside}");
    }
    for ((thread, lanes), (ranks, calls)) in threads {
        let _ = writeln!(out, "thread {thread} of {ranks} ranks: {calls} calls {}", lanes.join(" "));
    }
    Ok(())
}

/// All of it, a fact a line.
pub(crate) fn content(trace: &Trace) -> Result<String, Failure> {
    let h = &trace.header;
    let mut out = String::new();
    let _ = writeln!(out, "world {}, {} {}", h.world, h.mpi.flavour, h.mpi.version);
    let _ = writeln!(out, "program {} {:?}", h.program, h.args);
    for step in &trace.provenance {
        let _ = writeln!(out, "step {} {} {:?}", step.tool, step.version, step.args);
    }
    sections(trace, &mut out)?;
    for (name, f) in functions(trace)? {
        let _ = write!(out, "{name}: {} calls {:016x}", f.calls, f.digest.digest());
        ns(&mut out, "computing", &f.compute);
        ns(&mut out, "inside", &f.comm);
        if f.times.0 > 0 {
            let _ = write!(out, ", exact {} {:016x}", f.times.0, f.times.1.digest());
        }
        out.push('\n');
    }
    Ok(out)
}

/// Compares what is found with what is stored, and says which lines differ.
pub(crate) fn same(stored: &str, found: &str) -> Result<(), Failure> {
    if stored == found {
        return Ok(());
    }
    let of = |a: &str, b: &str, sign: char| {
        let there: Vec<_> = b.lines().collect();
        let lines = a.lines().filter(|l| !there.contains(l)).map(|l| format!("\n{sign} {l}"));
        lines.collect::<String>()
    };
    Err(format!("reads otherwise than before:{}{}", of(stored, found, '-'), of(found, stored, '+')))
}
