//! What `-h` prints: a line for each option and command, of which `--help` says all.

use clap::{Arg, Command};

/// What stands before the help of an option beside its name: blanks and a short name.
const BESIDE: usize = 8;
/// The same of a command.
const BESIDE_COMMAND: usize = 4;

/// The definition of a program with help that fits lines of this width, where there is one of more lines.
pub(crate) fn brief(mut command: Command, width: usize) -> Command {
    // Only a definition that is complete says how options are written, and has those of clap itself.
    command.build();
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let longest = shown.map(|arg| arg.to_string().chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(longest + BESIDE);
    let names = command.get_subcommands().map(|command| command.get_name().chars().count());
    let room_of_commands = width.saturating_sub(names.max().unwrap_or(0) + BESIDE_COMMAND);
    command.flatten_help(false).term_width(width).mut_args(|arg| in_a_line(arg, room)).mut_subcommands(
        |command| {
            let about = command.get_about().map(|about| shortened(&about.to_string(), room_of_commands));
            let command = brief(command, width);
            match about {
                Some(about) => command.about(about),
                None => command,
            }
        },
    )
}

/// An option whose help fits a line: without its values, else without what it is if it is not given, and else cut short.
fn in_a_line(arg: Arg, room: usize) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let words = |what: &str, words: Vec<String>, sign: &str| match words.is_empty() {
        true => 0,
        false => format!(" [{what}: {}]", words.join(sign)).chars().count(),
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
    let taken = help.chars().count() + aliases;
    if taken + defaults + values <= room {
        return arg;
    }
    let arg = arg.hide_possible_values(true);
    if taken + defaults <= room {
        return arg;
    }
    arg.hide_default_value(true).help(shortened(&help, room.saturating_sub(aliases)))
}

/// As many words as there is room for.
fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for word in text.split(' ') {
        if short.chars().count() + word.chars().count() + 3 > room {
            break;
        }
        short.push_str(if short.is_empty() { "" } else { " " });
        short.push_str(word);
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
    fn each_option_and_command_has_a_line() {
        for width in 56..120 {
            for words in [&["x", "-h"][..], &["x", "look", "-h"]] {
                let text = help(words, width);
                assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
                let options = text.lines().filter(|line| line.trim_start().starts_with('-'));
                let lines = text.lines().skip_while(|line| *line != "Options:").skip(1);
                assert_eq!(options.count(), lines.count(), "{width}: {text}");
            }
        }
        let text = help(&["x", "-h"], 60);
        assert!(text.contains("--steps <STEPS>  Refuse what takes more than so many …\n"), "{text}");
        assert!(text.contains("  look  Look at all that there is to be seen in what was …\n"), "{text}");
        let text = help(&["x", "-h"], 80);
        assert!(text.contains("named at length [alias: --path]\n"), "{text}");
        assert!(help(&["x", "-h"], 140).contains("[possible values: short, long]"));
    }
}
