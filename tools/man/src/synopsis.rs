//! How a program is called: options with their values, and what may be given several times.

use clap::{Arg, ArgAction, Command};

/// The section SYNOPSIS. clap_mangen's own leaves the values of options out, and that arguments repeat.
pub(crate) fn section(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let shown = || command.get_arguments().filter(|a| !a.is_hide_set());
    let options = shown().filter(|a| !a.is_positional()).map(option);
    let operands = shown().filter(|a| a.is_positional()).map(operand);
    let words: Vec<_> = options.chain(operands).collect();
    let mut section = format!(".SH SYNOPSIS\n{} {}\n", bold(name), words.join(" "));
    if command.has_subcommands() {
        section.push_str(&format!(".br\n{} {} ...\n", bold(name), italic("COMMAND")));
    }
    section
}

/// `[-o|--output FILE]`.
fn option(arg: &Arg) -> String {
    let long = arg.get_long().map(|l| bold(&format!("--{l}")));
    let short = arg.get_short().map(|s| bold(&format!("-{s}")));
    let names: Vec<_> = short.into_iter().chain(long).collect();
    let whole = format!("{}{}", names.join("|"), value(arg));
    let whole = if arg.is_required_set() { whole } else { format!("[{whole}]") };
    if matches!(arg.get_action(), ArgAction::Append | ArgAction::Count) {
        format!("{whole} ...")
    } else {
        whole
    }
}

/// What follows the name of an option.
fn value(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let names = italic(&names(arg));
    match (arg.is_require_equals_set(), arg.get_num_args().is_some_and(|n| n.min_values() == 0)) {
        (true, true) => format!("[={names}]"),
        (true, false) => format!("={names}"),
        (false, true) => format!(" [{names}]"),
        (false, false) => format!(" {names}"),
    }
}

/// `[STREAM ...]`, and `[-- COMMAND ...]` where what follows is not the program's own.
fn operand(arg: &Arg) -> String {
    let several = arg.get_num_args().is_some_and(|n| n.max_values() > n.min_values().max(1));
    let dashes = if arg.is_trailing_var_arg_set() || arg.is_last_set() { "\\-\\- " } else { "" };
    let whole = format!("{dashes}{}{}", italic(&names(arg)), if several { " ..." } else { "" });
    if arg.is_required_set() { whole } else { format!("[{whole}]") }
}

fn names(arg: &Arg) -> String {
    arg.get_value_names().map_or_else(|| arg.get_id().to_string(), |names| names.join(" "))
}

/// A page whose arguments are told by their font alone: `FILE` for `<FILE>`.
pub(crate) fn bare(page: &str) -> String {
    page.replace("<\\fI", "\\fI").replace("\\fI<", "\\fI").replace(">\\fR", "\\fR").replace("\\fR>", "\\fR")
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", text.replace('-', "\\-"))
}

fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", text.replace('-', "\\-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: impl IntoIterator<Item = Arg>) -> String {
        let mut command = Command::new("st-x").args(arguments).disable_help_flag(true);
        command.build();
        section(&command)
    }

    #[test]
    fn options_have_their_values() {
        let page = of([
            Arg::new("quiet").short('q').long("quiet").action(ArgAction::SetTrue),
            Arg::new("output").short('o').long("output").value_name("FILE"),
            Arg::new("symbols").long("symbols").value_name("DIR").action(ArgAction::Append),
            Arg::new("merge").long("merge").value_name("HOW").num_args(0..=1).require_equals(true),
        ]);
        let wanted = ".SH SYNOPSIS\n\\fBst\\-x\\fR [\\fB\\-q\\fR|\\fB\\-\\-quiet\\fR] \
                      [\\fB\\-o\\fR|\\fB\\-\\-output\\fR \\fIFILE\\fR] [\\fB\\-\\-symbols\\fR \\fIDIR\\fR] ... \
                      [\\fB\\-\\-merge\\fR[=\\fIHOW\\fR]]\n";
        assert_eq!(page, wanted);
    }

    #[test]
    fn operands_say_whether_they_are_needed_and_repeat() {
        let streams = Arg::new("s").value_name("STREAM").num_args(0..);
        assert_eq!(of([streams]), ".SH SYNOPSIS\n\\fBst\\-x\\fR [\\fISTREAM\\fR ...]\n");
        let one = Arg::new("t").value_name("TRACE").required(true);
        assert_eq!(of([one]), ".SH SYNOPSIS\n\\fBst\\-x\\fR \\fITRACE\\fR\n");
        let command = Arg::new("c").value_name("COMMAND").num_args(1..).trailing_var_arg(true);
        assert_eq!(of([command]), ".SH SYNOPSIS\n\\fBst\\-x\\fR [\\-\\- \\fICOMMAND\\fR ...]\n");
    }
}
