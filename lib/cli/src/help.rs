//! What `-h` prints: a line for each command and two at most for each option, of which `--help` says all.

use clap::{Arg, Command};

/// What stands before the help of an option beside its name: blanks and a short name.
const BESIDE: usize = 8;
/// The same of a command.
const BESIDE_COMMAND: usize = 4;
/// Blanks before the help of an option where it stands below its name.
const BELOW: usize = 10;
/// Lines that an option takes at most: in one of 80 columns there is room for half of what most say.
const LINES: usize = 2;

/// The definition of a program with help that fits lines of this width, where there is one of more lines.
pub(crate) fn brief(mut command: Command, width: usize) -> Command {
    // Only a definition that is complete says how options are written, and has those of clap itself.
    command.build();
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let longest = shown.map(|arg| arg.to_string().chars().count()).max().unwrap_or(0);
    // Where names take two fifths of a line (with 12 columns more, as clap reckons), it puts help below them.
    let (room, most) = match 5 * (longest + 12) > 2 * width {
        true => (width.saturating_sub(BELOW), LINES - 1),
        false => (width.saturating_sub(longest + BESIDE), LINES),
    };
    let names = command.get_subcommands().map(|command| command.get_name().chars().count());
    let room_of_commands = width.saturating_sub(names.max().unwrap_or(0) + BESIDE_COMMAND);
    command.flatten_help(false).term_width(width).mut_args(|arg| in_lines(arg, room, most)).mut_subcommands(
        |command| {
            let about =
                command.get_about().map(|about| shortened(&about.to_string(), "", room_of_commands, 1));
            let command = brief(command, width);
            match about {
                Some(about) => command.about(about),
                None => command,
            }
        },
    )
}

/// An option whose help fits its lines: without its values, else without what it is if it is not given, and else cut
/// short.
fn in_lines(arg: Arg, room: usize, most: usize) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let words = |what: &str, words: Vec<String>, sign: &str| match words.is_empty() {
        true => String::new(),
        false => format!(" [{what}: {}]", words.join(sign)),
    };
    let takes = arg.get_action().takes_values();
    let defaults = arg.get_default_values().iter().filter(|_| takes && !arg.is_hide_default_value_set());
    let defaults = words("default", defaults.map(|v| v.to_string_lossy().into_owned()).collect(), " ");
    let values = arg.get_possible_values();
    let values = values.iter().filter(|v| takes && !arg.is_hide_possible_values_set() && !v.is_hide_set());
    let values = words("possible values", values.map(|v| v.get_name().to_owned()).collect(), ", ");
    let aliases = arg.get_visible_aliases().into_iter().flatten();
    let aliases: Vec<_> = aliases.map(|name| format!("--{name}")).collect();
    let aliases = words(if aliases.len() == 1 { "alias" } else { "aliases" }, aliases, ", ");
    let fits =
        |defaults: &str, values: &str| lines(&format!("{help}{defaults}{aliases}{values}"), room) <= most;
    if fits(&defaults, &values) {
        return arg;
    }
    let arg = arg.hide_possible_values(true);
    if fits(&defaults, "") {
        return arg;
    }
    arg.hide_default_value(true).help(shortened(&help, &aliases, room, most))
}

/// Lines of this width that a text takes, broken at blanks.
fn lines(text: &str, width: usize) -> usize {
    let mut lines = 1;
    let mut taken = 0;
    for word in text.split(' ').map(|word| word.chars().count()) {
        if taken > 0 && taken + 1 + word > width {
            lines += 1;
            taken = word;
        } else {
            taken += word + usize::from(taken > 0);
        }
    }
    lines
}

/// As many words as so many lines have room for, where more stands behind them.
fn shortened(text: &str, more: &str, width: usize, most: usize) -> String {
    if lines(&format!("{text}{more}"), width) <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    for word in text.split(' ') {
        let longer = if short.is_empty() { word.to_owned() } else { format!("{short} {word}") };
        if lines(&format!("{longer} …{more}"), width) > most {
            break;
        }
        short = longer;
    }
    short.truncate(short.trim_end_matches([',', ';', ':', '(', '.']).len());
    short + " …"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Parser, Subcommand, ValueEnum};

    #[derive(Clone, Copy, Debug, ValueEnum)]
    enum Way {
        Short,
        Long,
    }

    /// About all
    #[derive(Parser, Debug)]
    #[command(name = "x", flatten_help = true)]
    struct All {
        #[command(subcommand)]
        command: Option<Sub>,
        /// Refuse what takes more than so many steps to go through: a call is one, and so is a turn of a loop
        #[arg(long, default_value_t = 7)]
        steps: u64,
        /// A way to go that is named at length
        #[arg(long, visible_alias = "path", default_value = "short")]
        way: Way,
    }

    #[derive(Subcommand, Debug)]
    enum Sub {
        /// Look at all that there is to be seen in what was recorded, and tell of it
        Look {
            /// Look at each of them twice, in the order in which they came, or in that in which they went
            #[arg(short, long)]
            twice: bool,
        },
    }

    fn help(words: &[&str], width: usize) -> String {
        use clap::CommandFactory as _;
        brief(All::command(), width).try_get_matches_from(words).unwrap_err().to_string()
    }

    #[test]
    fn commands_have_a_line_and_options_two_at_most() {
        for width in 56..120 {
            for words in [&["x", "-h"][..], &["x", "look", "-h"]] {
                let text = help(words, width);
                assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
                let begins = |line: &str| line.trim_start().starts_with('-') || line.starts_with("  look");
                let mut taken = 0;
                for line in
                    text.lines().skip_while(|line| !line.ends_with("tions:")).filter(|l| l.starts_with(' '))
                {
                    taken = if begins(line) { 1 } else { taken + 1 };
                    assert!(taken <= LINES, "{width}: {text}");
                }
            }
        }
        let text = help(&["x", "-h"], 60);
        assert!(
            text.contains("  Refuse what takes more than so many\n                       steps to go …\n"),
            "{text}"
        );
        assert!(text.contains("  look  Look at all that there is to be seen in what was …\n"), "{text}");
        let text = help(&["x", "-h"], 80);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("and so is a turn of a loop [default: 7] --way"), "{text}");
        assert!(words.contains("named at length [default: short] [alias: --path]"), "{text}");
        assert!(help(&["x", "-h"], 140).contains("[possible values: short, long]"));
    }
}
