//! The processes that this one descends from.

use std::fs;

/// What the kernel says of a process.
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) parent: u32,
    /// When it began, in the kernel's ticks.
    pub(crate) started: u64,
}

/// `None` if it is gone.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(text: &str) -> Option<Stat> {
    // The name, in parentheses, may hold anything.
    let (head, rest) = text.rsplit_once(')')?;
    let field = |i: usize| rest.split_whitespace().nth(i);
    let name = head.split_once('(')?.1.to_owned();
    Some(Stat { name, parent: field(1)?.parse().ok()?, started: field(19)?.parse().ok()? })
}

/// Nearest first.
pub(crate) fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| stat(*pid).map(|s| s.parent).filter(|p| *p > 1);
    std::iter::successors(Some(std::os::unix::process::parent_id()), parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let text = "77 (a) b (c) S 76 1 1 0 -1 4194304 88 0 0 0 0 0 0 0 20 0 1 0 4711 3 2";
        let of = parse(text).unwrap();
        assert_eq!((of.name.as_str(), of.parent, of.started), ("a) b (c", 76, 4711));
        let own = stat(std::process::id()).unwrap();
        assert_eq!(ancestors().next(), Some(own.parent));
    }
}
