//! The constants of each family, from `families.txt`, as functions of the family that the program's MPI is of.

use std::fmt::Write as _;

/// The table; its first lines say how it reads.
const TABLE: &str = include_str!("../families.txt");
/// Its columns, in order.
const FAMILIES: [&str; 3] = ["OPENMPI", "MPICH", "STANDARD"];

/// A row.
struct Row<'a> {
    section: &'a str,
    name: &'a str,
    values: [&'a str; FAMILIES.len()],
}

fn rows() -> Result<Vec<Row<'static>>, String> {
    let (mut rows, mut section) = (Vec::new(), "");
    for line in TABLE.lines() {
        if let Some(name) = line.strip_prefix("# == ") {
            section = name;
        } else if !line.starts_with('#') {
            let mut words = line.split_whitespace();
            let mut next = || words.next().ok_or_else(|| format!("families.txt: {line}: too few words"));
            rows.push(Row { section, name: next()?, values: [next()?, next()?, next()?] });
        }
    }
    Ok(rows)
}

/// The module's text.
pub(crate) fn generate() -> Result<String, String> {
    let rows = rows()?;
    let mut text = String::new();
    let of = |sections: &[&str]| rows.iter().filter(|r| sections.contains(&r.section)).collect::<Vec<_>>();
    let integers = of(&["statuses", "integers"]);
    let handles = of(&["pointers", "handles", "datatypes", "operations", "error handlers"]);
    for (i, row) in integers.iter().enumerate() {
        let name = function(row.name);
        let _ =
            writeln!(text, "#[inline]\npub(crate) fn {name}() -> c_int {{ INTEGERS[{i}].load(Relaxed) }}");
    }
    for (i, row) in handles.iter().enumerate() {
        let name = function(row.name);
        let _ = writeln!(text, "#[inline]\npub(crate) fn {name}() -> u64 {{ WORDS[{i}].load(Relaxed) }}");
    }
    let _ = writeln!(
        text,
        "static INTEGERS: [AtomicI32; {0}] = [const {{ AtomicI32::new(0) }}; {0}];",
        integers.len()
    );
    let _ = writeln!(
        text,
        "static WORDS: [AtomicU64; {0}] = [const {{ AtomicU64::new(0) }}; {0}];",
        handles.len()
    );
    for (of, family) in FAMILIES.iter().enumerate() {
        // What a family lacks is a number that none of its constants has.
        let integer =
            |row: &&Row<'_>| if row.values[of] == "-" { "c_int::MIN" } else { row.values[of] }.to_owned();
        let numbers: Vec<_> = integers.iter().map(integer).collect();
        let words = handles.iter().map(|row| word(row.values[of])).collect::<Result<Vec<_>, _>>()?;
        let _ = writeln!(
            text,
            "static {family}: Constants = Constants {{ integers: &[{}], words: &[{}] }};",
            numbers.join(", "),
            words.join(", ")
        );
    }
    let names: Vec<_> = handles.iter().map(|row| format!("({:?}, {:?})", row.section, row.name)).collect();
    let _ = writeln!(text, "static NAMES: [(&str, &str); {}] = [{}];", names.len(), names.join(", "));
    for (name, all) in [
        ("keyvals", &st_model::values::KEYVALS[..]),
        ("combiners", &st_model::values::COMBINERS[..]),
        ("error_classes", &st_model::values::ERROR_CLASSES[..]),
    ] {
        let calls: Vec<_> = all.iter().map(|name| format!("{name}()")).collect();
        let _ =
            writeln!(text, "pub(crate) fn {name}() -> [c_int; {}] {{ [{}] }}", all.len(), calls.join(", "));
    }
    Ok(text)
}

/// `sizeof(MPI_Status)` and `offsetof(MPI_Status,MPI_TAG)` as names of functions.
fn function(name: &str) -> String {
    name.replace(['(', ','], "_").replace(')', "")
}

fn word(value: &str) -> Result<String, String> {
    if let Some(name) = value.strip_prefix('&') {
        return Ok(format!("Word::AddressOf(c\"{name}\")"));
    }
    if let Some(name) = value.strip_prefix('*') {
        return Ok(format!("Word::HeldBy(c\"{name}\")"));
    }
    let number = match value.strip_prefix("0x") {
        _ if value == "-" => return Ok("Word::Absent".into()),
        Some(digits) => i64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    Ok(format!("Word::Is({})", number.map_err(|e| format!("families.txt: {value}: {e}"))?.cast_unsigned()))
}
