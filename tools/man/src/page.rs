//! One manual page.

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use std::collections::BTreeMap;
use std::io::Write;

/// The version's date; set with the version.
const DATE: &str = "2026-11-21";

/// What every program's page ends with.
const COMMON: &str = r#".SH "EXIT STATUS"
0 done, 1 failed, 2 wrong usage, 3 invalid or truncated stream, 4 a difference or a failed check was found.
.SH "SEE ALSO"
st\-intro(7), st\-stream(5)
"#;

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
    let man = Man::new(command);
    let mut page = Vec::new();
    writeln!(page, r#".TH "{}" "1" "{DATE}" "st {version}" "st""#, name.to_uppercase())?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    page.write_all(COMMON.as_bytes())?;
    Ok(tidy(&String::from_utf8(page)?))
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
    fn line_breaks_beside_space_go() {
        assert_eq!(tidy("a \n.br\n\n.br\nb\n.br\nc\n"), "a\n\nb\n.br\nc\n");
    }
}
