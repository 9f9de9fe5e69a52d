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
