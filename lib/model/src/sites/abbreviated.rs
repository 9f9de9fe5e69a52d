//! Names of functions without what makes them long.

/// Most characters of template arguments that a place shows.
const ARGUMENTS: usize = 16;

/// A function's text with long template arguments left out: `run<st_kernels_mpi::communicator::Real> a.rs:3` becomes `run<…> a.rs:3`.
pub(super) fn abbreviated(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        // Behind a word: `operator<` and the types that Rust's functions begin with are no arguments.
        let of_name = rest[..open].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let is_operator = rest[..open].ends_with("operator");
        let Some(close) = closing(&rest[open..]).filter(|_| of_name && !is_operator) else {
            short.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            continue;
        };
        let arguments = &rest[open..=open + close];
        short.push_str(&rest[..open]);
        short.push_str(if arguments.chars().count() > ARGUMENTS { "<…>" } else { arguments });
        rest = &rest[open + close + 1..];
    }
    short + rest
}

/// A function as a C++ name calls it, without what it returns and takes: `void halo::swap<int>(std::vector<int>&) const` becomes
/// `halo::swap<int>`. Types of parameters are not the same under every MPI, whose handles are pointers to structures here and
/// integers there, and file and line tell overloads apart. Other names stay as they are.
pub(super) fn concise(function: &str) -> String {
    let mut name = String::with_capacity(function.len());
    let mut rest = function;
    // Behind parameters: `const`, `&` and such up to the next name.
    while let Some(open) = parameters(rest) {
        let Some(close) = end_of_parameters(&rest[open..]) else { break };
        name.push_str(&rest[..open]);
        rest = &rest[open + close + 1..];
        let qualified = rest.find([':', '#', '[', '.']).unwrap_or(rest.len());
        rest = &rest[qualified..];
    }
    name.push_str(rest);
    match returned(&name) {
        Some(end) if name.len() < function.len() => name.split_off(end),
        _ => name,
    }
}

/// Where the parenthesis that a text begins with closes.
fn end_of_parameters(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Where a name's first parameters begin: at a parenthesis behind a word that is not in template arguments. Those of
/// `operator()` and `(anonymous namespace)` are names.
fn parameters(name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(c) = name[from..].chars().next() {
        let (before, here) = (&name[..from], &name[from..]);
        let skipped = match c {
            '<' if !before.ends_with("operator") && !before.ends_with("operator<") => closing(here)?,
            '(' if here.starts_with("()") && before.ends_with("operator") => 1,
            '(' if here.starts_with("(anonymous namespace)") => 20,
            '(' if before.ends_with(|c: char| !c.is_whitespace() && c != ':') => return Some(from),
            _ => 0,
        };
        from += skipped;
        from += name[from..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// Where what a function returns ends: behind the last space that is in no brackets, before the name of an operator.
fn returned(name: &str) -> Option<usize> {
    let head = name.find("operator").map_or(name, |at| &name[..at]);
    let (mut depth, mut end) = (0_usize, None);
    for (at, c) in head.char_indices() {
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => end = Some(at + 1),
            _ => {}
        }
    }
    end
}

/// Where the bracket that a text begins with closes; those of `->` are none.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut before) = (0_usize, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_without_what_it_takes_and_returns() {
        for (text, short) in [
            (
                "void w::comm::exchange<double>(std::vector<double, std::allocator<double> >&, int) const",
                "w::comm::exchange<double>",
            ),
            ("Solver<double, 100>::Solver(ompi_communicator_t*)", "Solver<double, 100>::Solver"),
            (
                "Solver<int, 2>::step(int)::{lambda(int)#1}::operator()(int) const",
                "Solver<int, 2>::step::{lambda#1}::operator()",
            ),
            ("(anonymous namespace)::halo(int (*)(int, void*))", "(anonymous namespace)::halo"),
            ("std::pair<int, int> a::operator<<<b>(b const&)", "a::operator<<<b>"),
            ("a::operator bool() const", "a::operator bool"),
            ("solve(int) [clone .part.0]", "solve[clone .part.0]"),
            ("<a::B as c::D<fn(i32) -> u8>>::run", "<a::B as c::D<fn(i32) -> u8>>::run"),
            ("run<a::B>", "run<a::B>"),
            ("exchange", "exchange"),
            ("half(open", "half(open"),
            ("<module>", "<module>"),
        ] {
            assert_eq!(concise(text), short);
        }
    }

    #[test]
    fn long_template_arguments_are_left_out() {
        for (text, short) in [
            ("run<st_kernels_mpi::communicator::Real> multigrid.rs:29", "run<…> multigrid.rs:29"),
            ("exchange<double> halo.cpp:7", "exchange<double> halo.cpp:7"),
            ("map<std::vector<int>, f() -> std::string> a.cpp:1", "map<…> a.cpp:1"),
            ("operator<(a const&, b const&) a.cpp:1", "operator<(a const&, b const&) a.cpp:1"),
            ("operator<< a.cpp:1", "operator<< a.cpp:1"),
            ("a<very::long::type::name>::b<an::other::long::name> c:1", "a<…>::b<…> c:1"),
            ("half<open", "half<open"),
        ] {
            assert_eq!(abbreviated(text), short);
        }
    }
}
