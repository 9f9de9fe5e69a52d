//! What text is shown on: how wide it is, and whether it has colours.

use std::io::{self, Write};

use anstyle::{AnsiColor, Effects, Style};

use crate::Output;

/// Columns of text that goes to a file or another program.
const USUAL: usize = 80;

/// Fewer columns than these are none that anybody reads in.
const LEAST: usize = 20;

/// What draws over the whole width takes no more columns than these.
const MOST: usize = 10_000;

/// Where text is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Screen {
    /// Characters in a line.
    pub width: usize,
    /// Whether colours are shown.
    pub colour: bool,
}

impl Screen {
    /// Of what is written to `output`: as wide as `COLUMNS` says, else as the terminal, if that is one, else 80. Coloured on
    /// terminals, unless `NO_COLOR` is set (`CLICOLOR_FORCE` colours everything).
    #[must_use]
    pub fn of(output: &Output) -> Self {
        let width = columns_of(output.is_stdout());
        let choice = anstream::AutoStream::choice(&io::stdout());
        Self { width, colour: output.is_stdout() && choice != anstream::ColorChoice::Never }
    }

    /// A text in bold, for heads of tables.
    #[must_use]
    pub fn bold(&self, text: &str) -> String {
        self.styled(text, Style::new().effects(Effects::BOLD))
    }
    /// A text that matters less.
    #[must_use]
    pub fn dim(&self, text: &str) -> String {
        self.styled(text, Style::new().effects(Effects::DIMMED))
    }
    /// A text that says that something is well, or is new.
    #[must_use]
    pub fn good(&self, text: &str) -> String {
        self.styled(text, AnsiColor::Green.on_default())
    }
    /// A text that says that something is not well, or is gone.
    #[must_use]
    pub fn bad(&self, text: &str) -> String {
        self.styled(text, AnsiColor::Red.on_default())
    }

    /// A text in one of some colours that can be told apart, by number; beyond these it stays as it is.
    #[must_use]
    pub fn coloured(&self, text: &str, number: usize) -> String {
        const COLOURS: [AnsiColor; 4] =
            [AnsiColor::Red, AnsiColor::Magenta, AnsiColor::Yellow, AnsiColor::Green];
        match COLOURS.get(number) {
            Some(colour) => self.styled(text, colour.on_default()),
            None => text.to_owned(),
        }
    }

    /// Writes a sentence in lines of this width, of which all but the first are indented.
    ///
    /// # Errors
    ///
    /// Of `out`.
    pub fn sentence(self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        wrapped(text.split(' '), self.width, ["", "  "]).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Columns of standard output.
pub(crate) fn columns() -> usize {
    columns_of(true)
}

fn columns_of(stdout: bool) -> usize {
    let shown = stdout.then(|| terminal_size::terminal_size_of(io::stdout())).flatten();
    width(std::env::var("COLUMNS").ok().as_deref(), shown.map(|(w, _)| w.0.into()))
}

/// Columns of what is shown. Shells know `COLUMNS` by themselves and do not pass it on: who does asks for it.
fn width(asked: Option<&str>, terminal: Option<usize>) -> usize {
    let asked = asked.and_then(|n| n.parse().ok());
    [asked, terminal].into_iter().flatten().find(|n| *n >= LEAST).map_or(USUAL, |n| n.min(MOST))
}

/// Characters that a text takes on a terminal: what colours it takes none.
fn shown(text: &str) -> usize {
    anstream::adapter::strip_str(text).map(|part| part.chars().count()).sum()
}

/// Words in lines of at most `width` characters, as far as words are not longer: what the first line and all others begin with.
pub fn wrapped<W: AsRef<str>>(
    words: impl IntoIterator<Item = W>,
    width: usize,
    [first, others]: [&str; 2],
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let word = word.as_ref();
        match lines.last_mut() {
            Some(line) if shown(line) + 1 + shown(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{others}{word}")),
            None => lines.push(format!("{first}{word}")),
        }
    }
    lines
}

/// 33701 → `33,701`.
#[must_use]
pub fn grouped(n: u64) -> String {
    indicatif::HumanCount(n).to_string()
}

/// Words as they are typed into a shell.
#[must_use]
pub fn typed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    shell_words::join(words)
}

/// `1 rank`, `4,096 ranks`: so many of what has an s in the plural.
#[must_use]
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_a_width_gets_it_on_a_terminal_too() {
        assert_eq!([width(None, None), width(None, Some(60)), width(Some("200"), Some(60))], [80, 60, 200]);
        assert_eq!(width(Some("99999999999"), None), MOST);
        assert_eq!(
            [width(Some(""), Some(60)), width(Some("3"), Some(0)), width(Some("200"), None)],
            [60, 80, 200]
        );
    }

    #[test]
    fn words_are_typed_so_that_a_shell_takes_them_for_what_they_are() {
        assert_eq!(typed(["st-stat", "runs of May/a.st"]), "st-stat 'runs of May/a.st'");
        assert_eq!(typed(["st-stat", "a-64r.st"]), "st-stat a-64r.st");
    }

    #[test]
    fn one_is_no_plural() {
        let shown = [0, 1, 4096, 1_234_567].map(|n| counted(n, "call site"));
        assert_eq!(shown, ["0 call sites", "1 call site", "4,096 call sites", "1,234,567 call sites"]);
    }

    #[test]
    fn lines_break_between_words() {
        let lines = |width| wrapped("one two a_long_word four".split(' '), width, ["", "  "]);
        assert_eq!(lines(80), ["one two a_long_word four"]);
        assert_eq!(lines(8), ["one two", "  a_long_word", "  four"]);
        assert_eq!(wrapped([""; 0], 8, ["", ""]), [""; 0]);
        let red = Screen { width: 8, colour: true }.bad("one");
        assert_eq!(wrapped([&*red, "two", "four"], 8, ["", "  "]), [format!("{red} two"), "  four".into()]);
    }

    #[test]
    fn what_is_no_terminal_has_no_colours() {
        let plain = Screen { width: 80, colour: false };
        assert_eq!(plain.bold("a"), "a");
        let shown = Screen { width: 80, colour: true };
        assert_eq!(shown.bold("a"), "\u{1b}[1ma\u{1b}[0m");
        assert_eq!(shown.bad("a"), "\u{1b}[31ma\u{1b}[0m");
    }
}
