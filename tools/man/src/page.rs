//! One manual page.

use crate::synopsis;
use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use std::collections::BTreeMap;
use std::io::Write;

/// The version's date; set with the version.
const DATE: &str = "2026-11-21";

/// The exit statuses of a program that says nothing else.
const EXIT_STATUS: &str = "0 done, 1 failed, 2 wrong usage, 3 invalid or truncated stream, 4 a difference or a failed check was found.";

/// What every page ends with.
const SEE_ALSO: &str = ".SH \"SEE ALSO\"\nst\\-intro(7), st\\-limits(7), st\\-stream(5)\n";

/// The pages of all programs and their subcommands: file name to text.
///
/// # Errors
///
/// If a page cannot be rendered.
pub(crate) fn all(programs: Vec<Command>) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for program in programs {
        add(program, &mut pages)?;
    }
    Ok(pages)
}

fn add(mut command: Command, pages: &mut BTreeMap<String, String>) -> Result<()> {
    command = command.disable_help_subcommand(true);
    command.build();
    let subcommands: Vec<_> = command.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    pages.insert(format!("{name}.1"), render(command, &name)?);
    for subcommand in subcommands {
        add(subcommand, pages)?;
    }
    Ok(())
}

fn render(command: Command, name: &str) -> Result<String> {
    let version = command.get_version().unwrap_or(env!("CARGO_PKG_VERSION")).to_owned();
    let has_subcommands = command.has_subcommands();
    let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let synopsis = synopsis::section(&command);
    let man = Man::new(command);
    let mut page = Vec::new();
    writeln!(page, r#".TH "{}" "1" "{DATE}" "st {version}" "st""#, name.to_uppercase())?;
    man.render_name_section(&mut page)?;
    page.write_all(synopsis.as_bytes())?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    let after = sections(after.as_deref().unwrap_or_default());
    page.write_all(after.as_bytes())?;
    if !after.contains("EXIT STATUS") {
        writeln!(page, ".SH \"EXIT STATUS\"\n{EXIT_STATUS}")?;
    }
    page.write_all(SEE_ALSO.as_bytes())?;
    Ok(tidy(&synopsis::bare(&String::from_utf8(page)?)))
}

/// Words of a title at most: what stands before a colon is a sentence's begin else.
const TITLE: usize = 4;

/// The text after a program's help: paragraphs `Title: text` as sections, indented lines as they are.
fn sections(help: &str) -> String {
    let (mut page, mut last) = (String::new(), "");
    for paragraph in help.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let (title, text) = match paragraph.split_once(':') {
            Some((title, text)) if title.split_whitespace().count() <= TITLE && !title.contains('\n') => {
                (title, text)
            }
            _ => ("Notes", paragraph),
        };
        if title == last {
            page.push_str(".PP\n");
        } else {
            page.push_str(&format!(".SH \"{}\"\n", title.trim().to_uppercase()));
        }
        last = title;
        let mut literal = false;
        let text = sentence(text);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if line.starts_with("  ") != literal {
                literal = !literal;
                page.push_str(if literal { ".nf\n" } else { ".fi\n" });
            }
            let line = line.strip_prefix("  ").unwrap_or(line).replace('\\', "\\e").replace('-', "\\-");
            // A dot or an apostrophe would begin a request.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            page.push_str(&format!("{guard}{line}\n"));
        }
        if literal {
            page.push_str(".fi\n");
        }
    }
    page
}

/// The text with its first letter in upper case.
fn sentence(text: &str) -> String {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Drops what mandoc warns of: blanks at the ends of lines, and line breaks next to vertical space.
fn tidy(page: &str) -> String {
    let lines: Vec<_> = page.lines().map(str::trim_end).collect();
    let is_space =
        |i: Option<usize>| i.and_then(|i| lines.get(i)).is_some_and(|line| matches!(*line, "" | ".sp"));
    let mut tidied = String::with_capacity(page.len());
    for (i, line) in lines.iter().enumerate() {
        if *line != ".br" || !(is_space(i.checked_sub(1)) || is_space(Some(i + 1))) {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn a_program_and_its_subcommands_have_pages() {
        let program = Command::new("st-x")
            .about("About x")
            .version("1.2")
            .arg(Arg::new("depth").long("depth").help("How deep"))
            .subcommand(Command::new("calls").about("About calls"));
        let pages = all(vec![program]).unwrap();
        assert_eq!(pages.keys().collect::<Vec<_>>(), ["st-x-calls.1", "st-x.1"]);
        let page = &pages["st-x.1"];
        for wanted in ["st\\-x \\- About x", "\\-\\-depth", "How deep", "EXIT STATUS", "st\\-x\\-calls(1)"] {
            assert!(page.contains(wanted), "{wanted} in {page}");
        }
        assert!(pages["st-x-calls.1"].contains("About calls"));
    }

    #[test]
    fn the_text_after_the_help_becomes_sections() {
        let page = sections("Examples:\n  st-x -- a\n\nExit status: its own;\n125 else.");
        let wanted =
            ".SH \"EXAMPLES\"\n.nf\nst\\-x \\-\\- a\n.fi\n.SH \"EXIT STATUS\"\nIts own;\n125 else.\n";
        assert_eq!(page, wanted);
        // A sentence with a colon in it is no title.
        let page = sections("The kinds are these three, and more: a.\n\nB.");
        assert_eq!(page, ".SH \"NOTES\"\nThe kinds are these three, and more: a.\n.PP\nB.\n");
    }

    #[test]
    fn line_breaks_beside_space_go() {
        assert_eq!(tidy("a \n.br\n\n.br\nb\n.br\nc\n"), "a\n\nb\n.br\nc\n");
    }
}
