//! Corrupting a row of the call table must not go unnoticed: rendered through a table with one wrong row, recordings no
//! longer equal what the programs state.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use st_model::calls::{CallId, CallTable, TABLE};
use st_tests::jobs::Job;
use st_tests::recordings::{self, ABORTS, Recording, Subject};
use st_tests::render::{self, Object, Ranks, Trace};
use st_tests::{compare, conclude, place};

/// Rows that no program makes, and why.
const NOT_MADE: [(&str, &str); 5] = [
    ("MPIX_Comm_agree", TOLERANT),
    ("MPIX_Comm_failure_ack", TOLERANT),
    ("MPIX_Comm_failure_get_acked", TOLERANT),
    ("MPIX_Comm_revoke", TOLERANT),
    ("MPIX_Comm_shrink", TOLERANT),
];
const TOLERANT: &str = "MPICH's device has no code for it: the call ends the program by an assertion";

/// Rows from this number on are of functions that MPI 4.1 and 5.0 brought: neither MPI has them that these programs are built for
/// (`libraries.rs` has one that calls some).
const OF_NEWER_MPIS: CallId = CallId(827);

/// Changes of a row that no program can notice, and why: function, mutation.
const UNNOTICED: [(&str, &str, &str); 2] = [
    (
        "MPI_Init_thread",
        "required and provided swapped",
        "both libraries provide the level that is asked for",
    ),
    ("MPI_Imrecv", "message and newrequest swapped", "both make a slot of the same name and meaning"),
];

/// A recording read, with what its program states.
struct Exhibit {
    name: String,
    stated: Ranks,
    trace: Trace,
    /// What each rank's calls look like through the right table.
    right: Ranks,
    _recording: Arc<Recording>,
}

/// All programs under all MPIs. (Those that fail or differ anyway are the oracle test's business.)
fn exhibits() -> Vec<Exhibit> {
    let mut found = Vec::new();
    for job in Job::all() {
        let aborts = Subject::Program(ABORTS.into());
        for subject in Subject::programs(job).unwrap().into_iter().chain([aborts.clone()]) {
            let Ok(recording) = recordings::of(job, &subject) else { continue };
            // Rank 0 aborts, and only it has a list.
            let alone = subject == aborts;
            let stated = if alone { render::stated(&recording.lists, 1) } else { recording.stated() };
            let (Ok(stated), Ok(mut trace)) = (stated, Trace::read(&recording.trace)) else {
                continue;
            };
            trace.ranks.retain(|d| !alone || d.rank == 0);
            let right = render(&trace, CallTable::builtin(), |_| true, &Ranks::new());
            if compare::ranks(&stated, &right).is_ok() {
                let name = format!("{subject}, {job}");
                found.push(Exhibit { name, stated, trace, right, _recording: recording });
            }
        }
    }
    found
}

/// Renders the calls of some functions through a table; the others are taken from `otherwise`.
fn render(trace: &Trace, table: &CallTable, of: impl Fn(CallId) -> bool, otherwise: &Ranks) -> Ranks {
    let one = |d: &st_tests::render::Decoded| {
        let symbols = &trace.sections[d.section].symbols;
        let call = |(i, call): (usize, &st_model::project::Call)| -> Object {
            match otherwise.get(&d.rank).and_then(|calls| calls.get(i)) {
                Some(right) if !of(symbols[call.sym as usize].call) => right.clone(),
                _ => trace.render(table, d, i),
            }
        };
        (d.rank, d.calls.iter().enumerate().map(call).collect())
    };
    trace.ranks.iter().map(one).collect()
}

impl Exhibit {
    fn makes(&self, id: CallId) -> bool {
        self.trace.ranks.iter().any(|d| {
            let symbols = &self.trace.sections[d.section].symbols;
            d.calls.iter().any(|c| symbols[c.sym as usize].call == id)
        })
    }

    fn notices(&self, table: &CallTable, id: CallId) -> bool {
        let wrong = render(&self.trace, table, |other| other == id, &self.right);
        compare::ranks(&self.stated, &wrong).is_err()
    }

    /// Whether a wrong table prints anything else: a count of 40 looks the same if taken for a tag.
    fn shows(&self, table: &CallTable, id: CallId) -> bool {
        render(&self.trace, table, |other| other == id, &self.right) != self.right
    }
}

/// A row of the table's text in its parts.
#[derive(Clone, PartialEq)]
struct Line {
    number: String,
    name: String,
    params: Vec<String>,
    properties: Vec<String>,
}

impl Line {
    fn parse(text: &str) -> Option<Self> {
        let (head, tail) = text.split_once(';').unwrap_or((text, ""));
        let mut words = head.split_whitespace().map(str::to_owned);
        let (number, name) = (words.next().filter(|n| !n.starts_with('#'))?, words.next()?);
        let properties = tail.split_whitespace().map(str::to_owned).collect();
        Some(Self { number, name, params: words.collect(), properties })
    }

    fn text(&self) -> String {
        let Self { number, name, params, properties } = self;
        format!("{number} {name} {} ; {}", params.join(" "), properties.join(" "))
    }
}

/// All rows; those like another with the other's parameters, so that each can go wrong alone.
fn lines() -> Vec<Line> {
    let written: Vec<_> = TABLE.lines().filter_map(Line::parse).collect();
    let full = |line: &Line| match &line.params[..] {
        [like, base] if like == "like" => {
            let base = written.iter().find(|l| l.name == *base).unwrap();
            Line { number: line.number.clone(), name: line.name.clone(), ..base.clone() }
        }
        _ => line.clone(),
    };
    written.iter().map(full).collect()
}

fn table(lines: &[Line]) -> CallTable {
    let text = lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{}", line.text());
        text
    });
    CallTable::parse(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// The name of a parameter, its role, and the length of an array with its brackets.
fn parts(param: &str) -> (&str, &str, &str) {
    let (name, role) = param.split_once('=').unwrap_or(("", param));
    let (role, length) = role.find('[').map_or((role, ""), |at| role.split_at(at));
    (if name.is_empty() { role } else { name }, role, length)
}

/// Roles to put in the place of a role: one of each meaning, of the same shape. A value that is an object becomes a
/// number or a truth value, a number an object or a truth value, and so on.
fn instead(role: &str) -> &'static [&'static str] {
    match role {
        "completed" => &["status"],
        "status" => &["completed"],
        "inplace" | "flag" | "flags" => &["int", "type"],
        "newrequest" | "startrequest" | "freerequest" | "cancelrequest" | "queryrequest" | "newmessage"
        | "message" | "requests" | "startrequests" => &["_", "status"],
        "win" | "newwin" | "freewin" | "file" | "newfile" | "freefile" | "text" | "outtext" => {
            &["int", "type", "flag"]
        }
        "info" | "newinfo" | "freeinfo" => &["count", "type", "flag"],
        "iostatus" => &["_", "status"],
        "buflen" => &["flag", "int"],
        "comm" | "newcomm" | "freecomm" | "group" | "newgroup" | "freegroup" | "op" | "newop" | "freeop" => {
            &["int", "type", "flag"]
        }
        "type" | "newtype" | "freetype" | "committype" | "types" | "roottype" | "origintype" | "outtype" => {
            &["int", "op", "flag"]
        }
        "locktype" | "whence" | "assert" | "amode" | "outamode" | "outcompare" | "outtopo" | "splittype"
        | "typeclass" | "arrayorder" | "distribs" => &["count", "type"],
        _ => &["flag", "type", "op", "comm"],
    }
}

/// Roles whose slots have names of their own.
const FIXED: [&str; 14] = [
    "iostatus",
    "buflen",
    "inplace",
    "newrequest",
    "startrequest",
    "freerequest",
    "cancelrequest",
    "queryrequest",
    "newmessage",
    "message",
    "requests",
    "startrequests",
    "completed",
    "status",
];

/// Whether two slots hold the same word in every call there can be. An error code is recorded as its class, for the code
/// itself is the library's own number: where a function takes one and gives the other, the two words are one.
fn say_the_same(line: &Line, pair: &[usize]) -> bool {
    let role = |i: usize| parts(&line.params[i]).1;
    let (code, class) = (["error", "outerror"], ["errorclass", "outerrorclass"]);
    [(pair[0], pair[1]), (pair[1], pair[0])]
        .iter()
        .any(|&(a, b)| code.contains(&role(a)) && class.contains(&role(b)))
}

/// The wrong rows made of one, each with its description. A group of rows is noticed if one of them is: which of the
/// other meanings shows depends on the values.
fn mutants(line: &Line) -> Vec<(String, Vec<Line>)> {
    let with = |i: usize, param: String| {
        let mut wrong = line.clone();
        wrong.params[i] = param;
        wrong
    };
    let mut found = Vec::new();
    let made: Vec<usize> = (0..line.params.len()).filter(|i| line.params[*i] != "_").collect();
    for &i in &made {
        let (name, role, length) = parts(&line.params[i]);
        found.push((format!("without {name}"), vec![with(i, format!("{name}=_{length}"))]));
        let other = |role: &&str| with(i, format!("{name}={role}{length}"));
        found.push((format!("{name} not {role}"), instead(role).iter().map(other).collect()));
        if !FIXED.contains(&role) {
            let mut wrong = with(i, format!("wrong={role}{length}"));
            // Arrays as long as it says stay so.
            let (old, new) = (format!("[{name}]"), "[wrong]");
            wrong.params.iter_mut().for_each(|p| *p = p.replace(&old, new));
            found.push((format!("{name} misnamed"), vec![wrong]));
        }
    }
    for pair in made.windows(2).filter(|pair| !say_the_same(line, pair)) {
        let mut wrong = line.clone();
        // The names stay where they are: only the meanings change places. Lengths refer to names.
        let ((a, ra, la), (b, rb, lb)) = (parts(&line.params[pair[0]]), parts(&line.params[pair[1]]));
        wrong.params[pair[0]] = format!("{b}={rb}{lb}");
        wrong.params[pair[1]] = format!("{a}={ra}{la}");
        found.push((format!("{a} and {b} swapped"), vec![wrong]));
    }
    for i in line
        .properties
        .iter()
        .enumerate()
        .filter(|(_, p)| ["poll", "fold"].contains(&p.as_str()))
        .map(|p| p.0)
    {
        let mut wrong = line.clone();
        let property = wrong.properties.remove(i);
        found.push((format!("no {property}"), vec![wrong]));
    }
    found
}

#[test]
fn corrupting_a_row_of_the_call_table_is_noticed() {
    if place::mpis().is_empty() {
        return;
    }
    let exhibits = exhibits();
    let right = lines();
    let mut failures = Vec::new();
    let mut not_made = Vec::new();
    let mut tried = BTreeMap::new();
    for (at, line) in right.iter().enumerate() {
        let row = CallTable::builtin().by_name(&line.name).unwrap();
        let witnesses: Vec<_> = exhibits.iter().filter(|e| e.makes(row.id)).collect();
        if witnesses.is_empty() {
            if row.id < OF_NEWER_MPIS && !NOT_MADE.iter().any(|(name, _)| *name == line.name) {
                not_made.push(line.name.as_str());
            }
            continue;
        }
        if NOT_MADE.iter().any(|(name, _)| *name == line.name) {
            failures.push(format!("{}: is made now", line.name));
        }
        let noticed = |t: &CallTable| witnesses.iter().any(|e| e.notices(t, row.id));
        for (what, variants) in mutants(line) {
            let corrupt = |v: Line| {
                let mut wrong = right.clone();
                wrong[at] = v;
                table(&wrong)
            };
            let other_role = variants.len() > 1;
            let tables: Vec<_> = variants.into_iter().map(corrupt).collect();
            // With large counts it is the same function.
            let name = line.name.trim_end_matches("_c");
            let known = UNNOTICED.iter().any(|(row, change, _)| *row == name && *change == what);
            let found = tables.iter().any(noticed);
            if !found && other_role && !tables.iter().any(|t| witnesses.iter().any(|e| e.shows(t, row.id))) {
                *tried.entry("looks the same").or_insert(0) += 1;
                continue;
            }
            *tried.entry("changed").or_insert(0) += 1;
            if found == known {
                failures.push(format!(
                    "{}: {what}{}",
                    line.name,
                    if known { ": is noticed now" } else { "" }
                ));
            }
        }
        // Its neighbour's name.
        let other = if at + 1 < right.len() { at + 1 } else { at - 1 };
        let mut wrong = right.clone();
        wrong[at].name.clone_from(&right[other].name);
        wrong[other].name.clone_from(&line.name);
        *tried.entry("renamed").or_insert(0) += 1;
        if !noticed(&table(&wrong)) {
            failures.push(format!("{}: named {}", line.name, right[other].name));
        }
    }
    place::say(&format!("mutation: {tried:?} over {} programs", exhibits.len()));
    if !not_made.is_empty() {
        let names: Vec<_> = exhibits.iter().map(|e| e.name.as_str()).collect();
        failures.push(format!("rows that none of {names:?} makes: {not_made:?}"));
    }
    conclude(tried.values().sum(), &failures);
}
