//! What a job writes on standard output, apart from what MPI and its launcher put there.

use std::collections::BTreeSet;

use crate::process::Outcome;

/// A job's standard output, comparable between two runs of it.
#[derive(PartialEq, Eq, Debug)]
pub struct Said {
    /// Lines of the program, and those of a launcher that are the same in each run, in order.
    pub lines: Vec<String>,
    /// Lines that name processes or times, with `#` in place of each number. MPICH's launcher names a process that ended
    /// badly, and how it ended: one that failed, or another that it has killed since. UCX says again and again what it lacks:
    /// as often as it happens to try.
    pub numbered: BTreeSet<String>,
}

impl Said {
    /// Of a job that has ended.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let text = outcome.text();
        let (numbered, lines): (Vec<_>, Vec<_>) = text.lines().partition(|l| is_numbered(l));
        Self {
            lines: lines.into_iter().map(str::to_owned).collect(),
            numbered: numbered.into_iter().map(without_numbers).collect(),
        }
    }
}

fn is_numbered(line: &str) -> bool {
    let time =
        |l: &str| l.starts_with(|c: char| c.is_ascii_digit()) && l.contains("] [") && l.contains(" UCX ");
    line.starts_with("=   PID ")
        || line.starts_with("=   EXIT CODE: ")
        || line.strip_prefix('[').is_some_and(time)
}

fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        Said::of(&Outcome { line: String::new(), status: 0, stdout: text.into(), stderr: String::new() })
    }

    #[test]
    fn numbers_of_processes_do_not_count_and_those_of_the_program_do() {
        let ucx = |pid| format!("[1795.4{pid}] [vm:{pid}:0]   sock.c:46   UCX  ERROR no socket\n");
        let block = |pid| format!("sum 6\n=   PID {pid} RUNNING AT vm\n=   EXIT CODE: 11\n");
        assert_eq!(said(&(ucx(10) + &block(10))), said(&(block(7) + &ucx(7) + &ucx(7))));
        assert_ne!(said("sum 6\n"), said("sum 7\n"));
        assert_ne!(said("[1] 6\n"), said("[1] 7\n"));
        assert_eq!(said(&block(1)), said(&block(1).replace("11", "9")));
        assert_ne!(said(&block(1)), said(&block(1).replace("EXIT", "NO EXIT")));
        assert_ne!(said("a\nb\n"), said("b\na\n"));
    }
}
