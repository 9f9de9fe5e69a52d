//! Rows of the call table from its text.

use super::{CallId, FIRST_UNKNOWN, Kind, Lane, Length, Meaning, Object, Param, Properties, Row, Slot};

/// One line of the table.
pub(super) fn row(line: &str) -> Result<Row, String> {
    let (head, tail) = line.split_once(';').unwrap_or((line, ""));
    let mut words = head.split_whitespace();
    let number = words.next().ok_or("no number")?;
    let id = CallId(number.parse().map_err(|_| format!("{number} is not a call number"))?);
    if id.0 >= FIRST_UNKNOWN {
        return Err(format!("{number} is reserved for functions outside the table"));
    }
    let name = words.next().ok_or("no name")?.to_owned();
    let (mut properties, mut kind) = (Properties::default(), Kind::Other);
    for p in tail.split_whitespace() {
        match p {
            "poll" => properties.poll = true,
            "fold" => properties.fold = true,
            "start" => properties.start = true,
            "local" => properties.local = true,
            "unplayed" => properties.unplayed = true,
            "asks" => properties.asks = true,
            "files" => properties.files = true,
            _ if kind != Kind::Other => return Err(format!("unknown property, or second kind {p}")),
            _ => kind = Kind::of_word(p).ok_or_else(|| format!("unknown property {p}"))?,
        }
    }
    let tokens: Vec<&str> = words.collect();
    let mut params = Vec::new();
    if let ["like", base] = tokens[..] {
        if !tail.trim().is_empty() {
            return Err(format!("{name} has the properties of {base}"));
        }
        let like = Some(base.to_owned());
        return Ok(Row { id, name, params, slots: Vec::new(), kind, properties, base_id: id, like });
    }
    if tokens == ["opaque"] {
        properties.opaque = true;
    } else {
        let names: Vec<&str> = tokens.iter().map(|t| t.split(['=', '[']).next().unwrap_or(t)).collect();
        for token in &tokens {
            params.push(param(token, &names)?);
        }
    }
    let mut slots = Vec::new();
    for p in &params {
        add_slots(p, &mut slots)?;
    }
    if properties.poll || properties.fold {
        slots.push(Slot { name: "times".into(), list: false, meaning: Meaning::Times, lane: Lane::Rest });
    }
    Ok(Row { id, name, params, slots, kind, properties, base_id: id, like: None })
}

/// A parameter: `name=role[length]`, of which only the role must be there.
fn param(token: &str, names: &[&str]) -> Result<Param, String> {
    let (name, role) = token.split_once('=').map_or((None, token), |(n, r)| (Some(n), r));
    let (role, length) = match role.split_once('[') {
        None => (role, Length::None),
        Some((role, rest)) => {
            let x = rest.strip_suffix(']').ok_or_else(|| format!("{token}: no closing bracket"))?;
            let length = match x {
                "comm" => Length::Comm,
                "cart" => Length::Cart,
                "edges" => Length::Edges,
                "sum" => Length::Sum,
                "in" => Length::InDegree,
                "out" => Length::OutDegree,
                _ => match (x.parse(), names.iter().position(|n| *n == x)) {
                    (Ok(n), _) => Length::Fixed(n),
                    (_, Some(i)) => Length::Param(i),
                    _ => return Err(format!("{token}: {x} is no parameter")),
                },
            };
            (role, length)
        }
    };
    Ok(Param { name: name.unwrap_or(role).to_owned(), role: role.to_owned(), length })
}

/// The slots of a recorded call that a parameter of this role fills.
fn add_slots(p: &Param, slots: &mut Vec<Slot>) -> Result<(), String> {
    use Lane::{Count as LCount, Endpoint, Rest, Tag as LTag};
    let mut add = |name: &str, list, meaning, lane| {
        slots.push(Slot { name: name.to_owned(), list, meaning, lane });
    };
    let list = p.length != Length::None;
    let n = p.name.as_str();
    match p.role.as_str() {
        "_" => {}
        "inplace" => add("inplace", false, Meaning::Flag, Rest),
        "count" | "rootcount" | "counts" | "rootcounts" | "outcount64" | "origincount" => {
            add(n, list, Meaning::Count, LCount)
        }
        "displs" | "rootdispls" => add(n, true, Meaning::Count, Rest),
        "int" | "aint" | "color" | "key" | "outint" | "outaint" | "outints" | "inoutints" | "ints"
        | "addresses" | "arrayorder" | "distribs" | "dargs" | "ranges" | "splittype" | "outcompare"
        | "outtopo" | "typeclass" | "weights" | "targetdisp" | "assert" | "amode" | "outamode"
        | "locktype" | "whence" | "threadlevel" | "outthreadlevel" => add(n, list, Meaning::Int, Rest),
        "keyval" | "newkeyval" | "freekeyval" | "errhandler" | "newerrhandler" | "freeerrhandler"
        | "session" | "newsession" | "freesession" | "error" | "outerror" | "errorclass"
        | "outerrorclass" | "outcombiner" => add(n, list, Meaning::Int, Rest),
        "flag" | "flags" => add(n, list, Meaning::Flag, Rest),
        "dest" | "source" | "root" | "peer" | "leader" | "outpeer" | "target" => {
            add(n, list, Meaning::Rank, Endpoint)
        }
        "tag" => add(n, false, Meaning::Tag, LTag),
        "comm" | "newcomm" | "freecomm" => add(n, list, Meaning::Ref(Object::Comm), Rest),
        "group" | "newgroup" | "freegroup" => add(n, list, Meaning::Ref(Object::Group), Rest),
        "type" | "types" | "roottype" | "newtype" | "freetype" | "committype" | "origintype" | "outtype" => {
            add(n, list, Meaning::Ref(Object::Type), LCount);
        }
        "contents" => add(n, true, Meaning::Ref(Object::Type), LCount),
        "op" | "newop" | "freeop" => add(n, list, Meaning::Ref(Object::Op), Rest),
        "win" | "newwin" | "freewin" => add(n, list, Meaning::Ref(Object::Win), Rest),
        "file" | "newfile" | "freefile" => add(n, list, Meaning::Ref(Object::File), Rest),
        "text" | "outtext" | "roottext" | "roottexts" => add(n, list, Meaning::Ref(Object::Text), Rest),
        "info" | "rootinfo" | "newinfo" | "freeinfo" => add(n, list, Meaning::Info, Rest),
        "newrequest" | "startrequest" | "freerequest" | "cancelrequest" | "queryrequest" | "newmessage"
        | "message" => {
            add("request", false, Meaning::Request, Rest);
        }
        "requests" | "startrequests" => add("requests", true, Meaning::Request, Rest),
        "completed" => {
            add("completed", true, Meaning::Position, Rest);
            add("source", true, Meaning::Rank, Endpoint);
            add("tag", true, Meaning::Tag, LTag);
            add("bytes", true, Meaning::Count, LCount);
        }
        "status" => {
            add("rsource", false, Meaning::Rank, Endpoint);
            add("rtag", false, Meaning::Tag, LTag);
            add("bytes", false, Meaning::Count, LCount);
        }
        "buflen" => {
            add("buflen", false, Meaning::Int, Rest);
            add("length", false, Meaning::Int, Rest);
        }
        "iostatus" => add("bytes", false, Meaning::Count, LCount),
        r => return Err(format!("unknown role {r}")),
    }
    Ok(())
}
