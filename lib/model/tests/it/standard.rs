//! The call table beside the MPI standard's own list of procedures, and beside what names say: with `--nocapture` it prints
//! all rows with their kinds.

mod by_name;
mod changed;

use std::collections::BTreeMap;

use by_name::Said;
use st_model::calls::names::TOOLS;
use st_model::calls::{CallTable, Kind, Meaning, Object, Param, Row, STANDARD, TABLE};

/// Procedures that no row has: they compute without MPI, or convert handles.
const WITHOUT_ROW: [&str; 2] = [
    "MPI_Aint_add MPI_Aint_diff MPI_Status_c2f MPI_Status_c2f08 MPI_Status_f082c MPI_Status_f082f MPI_Status_f2c MPI_Status_f2f08",
    "MPI_Status_get_error MPI_Status_get_source MPI_Status_get_tag MPI_Status_set_error MPI_Status_set_source MPI_Status_set_tag",
];
/// Endings of functions that convert handles.
const CONVERSIONS: [&str; 4] = ["_c2f", "_f2c", "_toint", "_fromint"];

/// Functions of earlier versions of the standard, which the list does not have any more.
const REMOVED: &str = "MPI_Address MPI_Errhandler_create MPI_Errhandler_get MPI_Errhandler_set MPI_Type_extent \
    MPI_Type_hindexed MPI_Type_hvector MPI_Type_lb MPI_Type_struct MPI_Type_ub";
/// What begins the names of functions that libraries add.
const ADDED: &str = "MPIX_";

/// A parameter of the standard's list.
struct Listed<'a> {
    name: &'a str,
    kind: &'a str,
    array: bool,
    words: Vec<&'a str>,
}

impl<'a> Listed<'a> {
    fn new(word: &'a str) -> Self {
        let mut words = word.split(':');
        let (name, kind) = words.next().and_then(|w| w.split_once('=')).unwrap_or((word, ""));
        let (kind, array) = kind.split_once('[').map_or((kind, false), |(kind, _)| (kind, true));
        Self { name, kind, array, words: words.collect() }
    }
    /// Its kind, whether it is an array, and whether MPI sets it.
    fn signature(&self) -> String {
        let array = if self.array { "[]" } else { "" };
        let out =
            ["out", "inout"].into_iter().find(|w| self.is(w)).map_or(String::new(), |w| format!(":{w}"));
        format!("{}{array}{out}", self.kind)
    }
    fn is(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
    /// Whether it is a number of elements of a datatype that are handed over or make a datatype.
    fn counts(&self) -> bool {
        !self.is("out")
            && (self.kind.contains("XFER_NUM_ELEM")
                || self.kind.contains("DTYPE_NUM_ELEM") && self.name.ends_with("count"))
    }
    /// Whether only the root has it, in functions that are no collective operations on data.
    fn is_of_root(&self, row: &Row) -> bool {
        let of_root =
            ["array_of_commands", "array_of_maxprocs", "command", "count", "info", "maxprocs", "port_name"];
        matches!(row.kind, Kind::Other | Kind::Connect)
            && row.slot("root").is_some()
            && of_root.contains(&self.name)
    }
    /// Whether what a role of the table says of a parameter may be said of this one.
    fn allows(&self, param: &Param, row: &Row) -> bool {
        let role = param.role.as_str();
        if role == "_" {
            return !matches!(
                self.kind,
                "COMMUNICATOR" | "DATATYPE" | "OPERATION" | "WINDOW" | "TAG" | "REQUEST"
            );
        }
        let goes_out = role.starts_with("new") || role.starts_with("out");
        let handle = role != "contents"
            && matches!(
                self.kind,
                "COMMUNICATOR" | "GROUP" | "DATATYPE" | "OPERATION" | "WINDOW" | "FILE" | "STRING"
            );
        if goes_out != self.is("out") && (goes_out || handle)
            || self.is("out") && matches!(role, "int" | "count" | "ints" | "aint")
        {
            return false;
        }
        let meaning = row.slots.iter().find(|s| s.name == param.name).map(|s| s.meaning);
        let number = matches!(meaning, Some(Meaning::Int | Meaning::Count | Meaning::Flag));
        let counts = ["count", "counts", "rootcount", "rootcounts", "origincount"].contains(&role);
        if counts != self.counts() && (counts || role.starts_with("int")) && !self.is_of_root(row) {
            return false;
        }
        match self.kind {
            "BUFFER" => role == "inplace",
            "COMMUNICATOR" => meaning == Some(Meaning::Ref(Object::Comm)),
            "GROUP" => meaning == Some(Meaning::Ref(Object::Group)),
            "DATATYPE" => meaning == Some(Meaning::Ref(Object::Type)),
            "OPERATION" => meaning == Some(Meaning::Ref(Object::Op)),
            "WINDOW" => meaning == Some(Meaning::Ref(Object::Win)),
            "FILE" => meaning == Some(Meaning::Ref(Object::File)),
            "STRING" | "STRING_ARRAY" => meaning == Some(Meaning::Ref(Object::Text)),
            "INFO" => meaning == Some(Meaning::Info),
            "TAG" => meaning == Some(Meaning::Tag),
            "THREAD_LEVEL" => role.ends_with("threadlevel"),
            "REQUEST" | "MESSAGE" => {
                role.ends_with("request") || role.ends_with("requests") || role.ends_with("message")
            }
            "STATUS" => matches!(role, "status" | "completed" | "iostatus") && self.is("out"),
            "RANK" | "RANK_NNI" => meaning == Some(Meaning::Rank) || number,
            _ => number || role == "buflen",
        }
    }
}

/// Kinds that a procedure's parameters tell: all procedures with these are of the kind, and no others.
const EXACT: [(Kind, &[&str]); 16] = [
    (Kind::Abort, &["COMMUNICATOR ERROR_CODE"]),
    (Kind::Probe, &["RANK TAG COMMUNICATOR STATUS:out", "RANK TAG COMMUNICATOR LOGICAL:out STATUS:out"]),
    (
        Kind::Buffer,
        &[
            "BUFFER POLYNUM_BYTES_NNI",
            "COMMUNICATOR BUFFER POLYNUM_BYTES_NNI",
            "SESSION BUFFER POLYNUM_BYTES_NNI",
        ],
    ),
    (
        Kind::Duplicate,
        &[
            "COMMUNICATOR COMMUNICATOR:out",
            "COMMUNICATOR INFO COMMUNICATOR:out",
            "COMMUNICATOR COMMUNICATOR:out REQUEST:out",
            "COMMUNICATOR INFO COMMUNICATOR:out REQUEST:out",
        ],
    ),
    (Kind::Intercomm, &["COMMUNICATOR RANK COMMUNICATOR RANK TAG COMMUNICATOR:out"]),
    (
        Kind::GroupCreation,
        &[
            "COMMUNICATOR GROUP TAG COMMUNICATOR:out",
            "GROUP STRING INFO ERRHANDLER COMMUNICATOR:out",
            "GROUP RANK GROUP RANK STRING INFO ERRHANDLER COMMUNICATOR:out",
        ],
    ),
    (Kind::Cart, &["COMMUNICATOR NUM_DIMS DIMENSION[] LOGICAL[] LOGICAL COMMUNICATOR:out"]),
    (Kind::CartSub, &["COMMUNICATOR LOGICAL[] COMMUNICATOR:out"]),
    (Kind::Graph, &["COMMUNICATOR COMM_SIZE INDEX[] RANK[] LOGICAL COMMUNICATOR:out"]),
    (
        Kind::DistGraph,
        &[
            "COMMUNICATOR ARRAY_LENGTH_NNI RANK_NNI[] DEGREE[] RANK_NNI[] WEIGHT[] INFO LOGICAL COMMUNICATOR:out",
        ],
    ),
    (
        Kind::Adjacent,
        &["COMMUNICATOR DEGREE RANK_NNI[] WEIGHT[] DEGREE RANK_NNI[] WEIGHT[] INFO LOGICAL COMMUNICATOR:out"],
    ),
    (
        Kind::Connect,
        &[
            "FILE_DESCRIPTOR COMMUNICATOR:out",
            "STRING INFO RANK COMMUNICATOR COMMUNICATOR:out",
            "STRING STRING_ARRAY COMM_SIZE INFO RANK COMMUNICATOR COMMUNICATOR:out ERROR_CODE[]:out",
            "ARRAY_LENGTH_PI STRING_ARRAY STRING_2DARRAY[] COMM_SIZE[] INFO[] RANK COMMUNICATOR COMMUNICATOR:out ERROR_CODE[]:out",
        ],
    ),
    (Kind::Parent, &["COMMUNICATOR:out"]),
    (Kind::CommFree, &["COMMUNICATOR:inout"]),
    (
        Kind::TypeLookup,
        &[
            "DATATYPE DATATYPE DATATYPE:out",
            "MATH DATATYPE:out",
            "MATH MATH DATATYPE:out",
            "TYPECLASS TYPECLASS_SIZE DATATYPE:out",
        ],
    ),
    (Kind::WinAttach, &["WINDOW BUFFER WIN_ATTACH_SIZE"]),
];

/// It calls a handler with what `MPI_Abort` is given.
const NO_ABORT: &str = "MPI_Comm_call_errhandler";

/// What a function of a kind has: buffers that it reads (`r`), writes (`w`), or both at once (`b`), an operation (`o`); and
/// what it works on.
fn has(kind: Kind) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match kind {
        // These have nothing in common, or buffers that are not messages.
        Kind::Other | Kind::Init | Kind::Finalize => return None,
        Kind::Abort | Kind::Probe | Kind::Buffer | Kind::Connect | Kind::Parent | Kind::CommFree => {
            return None;
        }
        Kind::Duplicate | Kind::Intercomm | Kind::GroupCreation | Kind::Cart | Kind::CartSub => return None,
        Kind::Graph | Kind::DistGraph | Kind::Adjacent | Kind::TypeLookup | Kind::WinAttach => return None,
        Kind::Send | Kind::SyncSend => (&["r"], &["COMMUNICATOR"]),
        Kind::Receive => (&["w"], &["COMMUNICATOR"]),
        Kind::SendReceive => (&["rw", "b"], &["COMMUNICATOR"]),
        Kind::MatchedProbe => (&[""], &["MESSAGE"]),
        Kind::MatchedReceive => (&["w"], &["MESSAGE"]),
        Kind::Restart | Kind::Free | Kind::Complete => (&[""], &["REQUEST"]),
        Kind::Barrier => (&[""], &["COMMUNICATOR"]),
        Kind::Bcast => (&["b"], &["COMMUNICATOR"]),
        Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall => (&["rw"], &["COMMUNICATOR"]),
        Kind::NeighborAllgather | Kind::NeighborAlltoall => (&["rw"], &["COMMUNICATOR"]),
        Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter | Kind::Scan | Kind::Exscan => {
            (&["orw"], &["COMMUNICATOR"])
        }
        Kind::Creation => (&[""], &["COMMUNICATOR", "WINDOW", "FILE"]),
        Kind::Close => (&[""], &["FILE"]),
        Kind::WinFence | Kind::WinPost | Kind::WinStart | Kind::WinComplete => (&[""], &["WINDOW"]),
        Kind::WinWait | Kind::WinLock | Kind::WinFree => (&[""], &["WINDOW"]),
        Kind::Put => (&["r", "or"], &["WINDOW"]),
        Kind::Get => (&["w"], &["WINDOW"]),
        Kind::GetPut => (&["orw"], &["WINDOW"]),
        Kind::CompareSwap => (&["rrw"], &["WINDOW"]),
        Kind::Read => (&["w"], &["FILE"]),
        Kind::Write => (&["r"], &["FILE"]),
    })
}

/// Functions of kinds that move no data, with a buffer and something to move it by: they pack, and the halves of reads and
/// writes that move nothing yet, or nothing more.
const NO_DATA: [&str; 9] = [
    "MPI_Pack",
    "MPI_Unpack",
    "MPI_Win_detach",
    "MPI_File_read_all_begin",
    "MPI_File_read_at_all_begin",
    "MPI_File_read_ordered_begin",
    "MPI_File_write_all_end",
    "MPI_File_write_at_all_end",
    "MPI_File_write_ordered_end",
];

/// Whether a row's kind is that of a procedure with these parameters.
fn fits(row: &Row, listed: &[Listed<'_>]) -> bool {
    let parameters = listed.iter().map(Listed::signature).collect::<Vec<_>>().join(" ");
    if let Some((kind, _)) = EXACT.iter().find(|(_, all)| all.contains(&parameters.as_str())) {
        return (row.kind == *kind) != (row.base() == NO_ABORT);
    }
    if EXACT.iter().any(|(kind, _)| *kind == row.kind) {
        return false;
    }
    let Some((buffers, objects)) = has(row.kind) else {
        let moves = listed.iter().any(|p| p.kind == "BUFFER")
            && listed.iter().any(|p| matches!(p.kind, "COMMUNICATOR" | "WINDOW" | "FILE"));
        return !moves || NO_DATA.contains(&row.base());
    };
    let letter = |p: &Listed<'_>| match p.kind {
        "BUFFER" if p.is("inout") => Some('b'),
        "BUFFER" if p.is("const") => Some('r'),
        "BUFFER" => Some('w'),
        "OPERATION" => Some('o'),
        _ => None,
    };
    let mut found: Vec<char> = listed.iter().filter_map(letter).collect();
    found.sort_unstable();
    // What windows and files are made of is no message.
    let made = matches!(row.kind, Kind::Creation);
    (made || buffers.contains(&found.iter().collect::<String>().as_str()))
        && listed.iter().any(|p| objects.contains(&p.kind))
}

/// The standard's procedures.
fn listed() -> BTreeMap<&'static str, Vec<Listed<'static>>> {
    STANDARD
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .map(|(name, rest)| (name, rest.split_whitespace().map(Listed::new).collect()))
        .collect()
}

/// The procedure that a row is of.
fn procedure<'a>(
    row: &Row,
    listed: &'a BTreeMap<&str, Vec<Listed<'a>>>,
) -> Option<(&'a [Listed<'a>], Vec<&'a Listed<'a>>)> {
    let name = row.name.as_str();
    let large = name.strip_suffix("_c").filter(|_| !listed.contains_key(name));
    let procedure = listed.get(large.unwrap_or(name))?;
    let of_c = procedure.iter().filter(|p| large.is_some() || !p.is("large")).collect();
    Some((procedure, of_c))
}

/// Whether a role says that only the root has it where that is so: of gathers what is received, of scatters what is sent.
fn has_root(row: &Row, listed: &Listed<'_>, param: &Param) -> bool {
    let side = match row.kind {
        Kind::Gather => "recv",
        Kind::Scatter => "send",
        _ => {
            return param.role == "_"
                || listed.is_of_root(row) == param.role.starts_with("root")
                || param.role == "root";
        }
    };
    let counts = listed.name.starts_with(side) || listed.name == "displs";
    (counts && listed.kind != "BUFFER") == (param.role.starts_with("root") && param.role != "root")
}

/// What is wrong with a row.
fn faults(row: &Row, listed: &BTreeMap<&str, Vec<Listed<'_>>>) -> Vec<String> {
    let (mut wrong, name) = (Vec::new(), row.name.as_str());
    let Some((procedure, of_c)) = procedure(row, listed) else {
        if !name.starts_with(ADDED) && !REMOVED.split(' ').any(|r| r == name) {
            wrong.push("the standard does not have it".into());
        }
        return wrong;
    };
    if of_c.len() != row.params.len() {
        wrong.push(format!("{} parameters instead of {}", row.params.len(), of_c.len()));
    }
    for (p, param) in of_c.iter().zip(&row.params) {
        if !p.allows(param, row) || !has_root(row, p, param) {
            wrong.push(format!("{} is no {} {:?} {}", param.role, p.kind, p.words, p.name));
        }
        // A row like another has the other's names.
        if row.like.is_none() && !by_name::is_called(param, p.name) {
            wrong.push(format!("{}={} is called {}", param.name, param.role, p.name));
        }
    }
    if !fits(row, procedure) {
        wrong.push(format!("is not {:?}", row.kind));
    }
    wrong
}

#[test]
fn rows_say_what_the_standard_says() {
    let (listed, table) = (listed(), CallTable::builtin());
    let (mut wrong, mut beside) = (Vec::new(), 0);
    for row in table.rows() {
        println!("{}: {:?}", row.name, row.kind);
        beside += usize::from(procedure(row, &listed).is_some());
        wrong.extend(faults(row, &listed).into_iter().map(|fault| format!("{}: {fault}", row.name)));
        let (says, should) = (Said::by(row), Said::by_name(row));
        if says != should {
            wrong.push(format!("{}: {says:?} instead of {should:?}", row.name));
        }
    }
    let without: Vec<&str> = WITHOUT_ROW.iter().flat_map(|names| names.split_whitespace()).collect();
    for name in listed.keys() {
        let is_row = table.by_name(name).is_some();
        let left_out = without.contains(name)
            || name.starts_with(TOOLS)
            || CONVERSIONS.iter().any(|c| name.ends_with(c));
        if is_row == left_out {
            wrong.push(format!("{name}: {}", if is_row { "has a row" } else { "has no row" }));
        }
    }
    println!(
        "call table: {} rows, {beside} beside the standard's {} procedures",
        table.rows().len(),
        listed.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each row with one thing changed: another kind or none, a property more or less, two names exchanged, another role.
#[test]
fn a_row_in_which_anything_is_wrong_is_noticed() {
    let (listed, mut tried, mut unnoticed) = (listed(), 0, Vec::new());
    for line in TABLE.lines().filter_map(changed::Line::parse) {
        // Nothing is known of the parameters of functions that the standard does not have.
        let right = CallTable::builtin().by_name(&line.name).unwrap();
        let (said, known) = (Said::by_name(right), procedure(right, &listed).is_some());
        let params = if known { line.params_changed() } else { Vec::new() };
        for (what, changed) in line.words_changed().into_iter().chain(params) {
            // A change that leaves no table is noticed where it is read.
            let Ok(table) = CallTable::parse(&changed.text()) else { continue };
            tried += 1;
            let row = &table.rows()[0];
            if Said::by(row) == said && faults(row, &listed).is_empty() {
                unnoticed.push(format!("{}: {what}", line.name));
            }
        }
    }
    println!("call table: {tried} changes of rows");
    assert!(tried > 10_000 && unnoticed.is_empty(), "{tried} changes, not noticed: {}", unnoticed.join("\n"));
}
