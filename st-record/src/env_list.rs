//! Open MPI's own list of variables that ranks get (`mca_base_env_list`). Open MPI refuses every other way beside it: where a user's
//! list is set, what ours get goes into it.

use crate::target;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The list: the parameter, and its variable.
pub const LIST: &str = "mca_base_env_list";
const LIST_VARIABLE: &str = "OMPI_MCA_mca_base_env_list";
/// What stands between its variables, and where Open MPI is told so.
const DELIMITER: &str = ";";
const DELIMITER_OPTION: &str = "mca_base_env_list_delimiter";
const DELIMITER_VARIABLE: &str = "OMPI_MCA_mca_base_env_list_delimiter";
/// The option that names a file of parameters, by which a command line may use the list, too.
pub const TUNE: &str = "-tune";
/// Names the files of parameters instead of the usual ones.
const FILES_OPTION: &str = "mca_base_param_files";
const FILES_VARIABLES: [&str; 2] = ["OMPI_MCA_mca_base_param_files", "OMPI_MCA_mca_param_files"];

/// What Open MPI's files of parameters say of the variables that ranks get.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Files {
    list: Option<OsString>,
    delimiter: Option<OsString>,
    /// Whether a file has a list of the other kind, lines of `-x`.
    exports: bool,
}

impl Files {
    /// The files that a launcher reads without being told more.
    #[must_use]
    pub fn of(launcher: &Path) -> Self {
        Self::read(&files(launcher, None))
    }

    /// Of files, the one that counts most first.
    fn read(files: &[PathBuf]) -> Self {
        let mut all = Self::default();
        for text in files.iter().rev().filter_map(|file| target::contents(file, target::MOST_BYTES)) {
            for line in text.split(|b| *b == b'\n') {
                all.line(line.trim_ascii());
            }
        }
        all
    }

    fn line(&mut self, line: &[u8]) {
        let value = |value: &[u8]| (!value.is_empty()).then(|| OsString::from_vec(value.to_vec()));
        let mut words = line.split(|b| b" \t".contains(b)).filter(|word| !word.is_empty());
        match words.next() {
            Some(b"-x" | b"--x") => self.exports = true,
            Some(b"-mca" | b"--mca") => {
                // Several may stand in a line, and `-x` behind them.
                let mut words: Vec<_> = words.collect();
                self.exports |= words.iter().any(|word| [&b"-x"[..], b"--x"].contains(word));
                while let [name, said, rest @ ..] = words.as_slice() {
                    self.parameter(name, value(unquoted(said)));
                    words = rest.get(1..).unwrap_or_default().to_vec();
                }
            }
            _ => {
                if let Some(at) = line.iter().position(|b| *b == b'=') {
                    self.parameter(line[..at].trim_ascii_end(), value(line[at + 1..].trim_ascii_start()));
                }
            }
        }
    }

    fn parameter(&mut self, name: &[u8], value: Option<OsString>) {
        match name {
            name if name == LIST.as_bytes() => self.list = value,
            name if name == DELIMITER_OPTION.as_bytes() => self.delimiter = value,
            _ => {}
        }
    }

    /// What either says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            list: self.list.or(other.list),
            delimiter: self.delimiter.or(other.delimiter),
            exports: self.exports || other.exports,
        }
    }

    /// Whether Open MPI refuses, or ignores these for, the other list, which files fill by `-x`.
    #[must_use]
    pub fn hand_on(&self) -> bool {
        self.list.is_some() || self.exports
    }
}

/// A word as Open MPI takes it: without a quote before it and one behind it, of whichever kind. A blank ends it within quotes, too.
fn unquoted(word: &[u8]) -> &[u8] {
    let quotes = b"\"'";
    let word = word.split_first().filter(|(first, _)| quotes.contains(first)).map_or(word, |(_, rest)| rest);
    word.split_last().filter(|(last, _)| quotes.contains(last)).map_or(word, |(_, rest)| rest)
}

/// The files of parameters that a launcher reads: those that it is told, or the user's and the system's.
fn files(launcher: &Path, told: Option<&OsStr>) -> Vec<PathBuf> {
    let variable = || FILES_VARIABLES.iter().find_map(env::var_os);
    if let Some(told) = told.map(OsStr::to_owned).or_else(variable) {
        return told.as_bytes().split(|b| *b == b',').map(|f| OsStr::from_bytes(f).into()).collect();
    }
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".openmpi/mca-params.conf"));
    let at_prefix = |prefix: &Path| prefix.join("etc/openmpi-mca-params.conf");
    let prefix = env::var_os("OPAL_PREFIX")
        .map(PathBuf::from)
        .or_else(|| Some(fs::canonicalize(launcher).ok()?.parent()?.parent()?.to_owned()));
    // Where distributions have it: which one is this launcher's only it knows.
    let distribution = fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().as_bytes().starts_with(b"openmpi"));
    let distribution = distribution.map(|entry| entry.path().join("openmpi-mca-params.conf"));
    home.into_iter().chain(prefix.as_deref().map(at_prefix)).chain(distribution).collect()
}

/// A user's list with more variables.
fn listed(theirs: &OsStr, variables: &[(String, OsString)], delimiter: &OsStr) -> OsString {
    let mut list = theirs.to_owned();
    for (name, value) in variables {
        list.push(delimiter);
        list.push(format!("{name}="));
        list.push(value);
    }
    list
}

/// The variable of a user's list, with more variables.
#[must_use]
pub fn variable(variables: &[(String, OsString)], files: &Files) -> Option<(&'static str, OsString)> {
    let theirs = env::var_os(LIST_VARIABLE)?;
    Some((LIST_VARIABLE, listed(&theirs, variables, &Told::of_environment().delimiter(files))))
}

/// What the environment says.
#[derive(Default)]
struct Told {
    list: Option<OsString>,
    delimiter: Option<OsString>,
}

impl Told {
    fn of_environment() -> Self {
        Self { list: env::var_os(LIST_VARIABLE), delimiter: env::var_os(DELIMITER_VARIABLE) }
    }

    fn delimiter(&self, files: &Files) -> OsString {
        self.delimiter.clone().or_else(|| files.delimiter.clone()).unwrap_or_else(|| DELIMITER.into())
    }
}

/// The command line of `mpirun`, whose own words end at `options`, with these variables in the user's list, in an option, the environment or a file: none if there is none.
#[must_use]
pub fn with_list(
    words: &[OsString],
    options: usize,
    variables: &[(String, OsString)],
) -> Option<Vec<OsString>> {
    let launcher = &target::resolve(&words[0])?;
    with(words, options, variables, Told::of_environment(), |tuned, told| {
        let mut all = tuned;
        all.extend(files(launcher, told));
        Files::read(&all)
    })
}

/// `read`: reads these files, and those that the parameter names or the usual ones.
fn with(
    words: &[OsString],
    options: usize,
    variables: &[(String, OsString)],
    told: Told,
    read: impl FnOnce(Vec<PathBuf>, Option<&OsStr>) -> Files,
) -> Option<Vec<OsString>> {
    let at = |before: usize, is_it: &dyn Fn(usize) -> bool| {
        (1..options.saturating_sub(before)).find(|at| is_it(*at)).map(|at| at + before)
    };
    let named = |at: usize| words[at].to_string_lossy().trim_start_matches('-').to_owned();
    let parameter =
        |name: &str| at(2, &|at| ["mca", "gmca"].contains(&named(at).as_str()) && words[at + 1] == *name);
    let tuned = at(1, &|at| words[at].as_bytes().ends_with(TUNE.as_bytes())).map(|at| &words[at]);
    let tuned = tuned.map(|said| said.as_bytes().split(|b| *b == b',').map(|f| OsStr::from_bytes(f).into()));
    let files =
        read(tuned.into_iter().flatten().collect(), parameter(FILES_OPTION).map(|at| words[at].as_os_str()));
    // An option hides the variable, and that the files.
    let delimiter =
        parameter(DELIMITER_OPTION).map_or_else(|| told.delimiter(&files), |at| words[at].clone());
    let mut out = words.to_vec();
    if let Some(at) = parameter(LIST) {
        out[at] = listed(&words[at], variables, &delimiter);
    } else {
        let theirs = told.list.or(files.list)?;
        out.splice(1..1, ["--mca".into(), LIST.into(), listed(&theirs, variables, &delimiter)]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_what_open_mpi_reads_in_them() {
        let home = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| {
            fs::write(home.path().join(name), text).unwrap();
            home.path().join(name)
        };
        let of = |text: &str| Files::read(&[written("one", text)]);
        let list = |list: &str| Files { list: Some(list.into()), ..Files::default() };
        assert_eq!(of("# mca_base_env_list = A=1\nbtl = self\n"), Files::default());
        assert_eq!(of("  mca_base_env_list =  A=th is;B=2 # no\t \n"), list("A=th is;B=2 # no"));
        assert_eq!(of("mca_base_env_list = A=1\nmca_base_env_list=B=1"), list("B=1"));
        assert_eq!(of("mca_base_env_list = A=1\nmca_base_env_list =\n"), Files::default());
        assert_eq!(of("-mca btl self --mca mca_base_env_list \"A=2;B=3\"\n"), list("A=2;B=3"));
        assert_eq!(of("-mca mca_base_env_list 'A=1;B=2'\n"), list("A=1;B=2"));
        assert_eq!(of("-mca mca_base_env_list \"A='x';B=2'\n"), list("A='x';B=2"));
        assert_eq!(of("-mca mca_base_env_list ''A=1;B=2''\n"), list("'A=1;B=2'"));
        assert_eq!(of("-mca mca_base_env_list \"A=th is;B=2\"\n"), list("A=th"));
        assert_eq!(of("mca_base_env_list = 'A=1'\n"), list("'A=1'"));
        assert!(of("-x A=1\n").exports && of("-mca btl self -x A\n").exports);
        let comma = of("mca_base_env_list_delimiter = ,\n");
        assert_eq!(comma, Files { delimiter: Some(",".into()), ..Files::default() });
        // The first counts most.
        let [first, second] =
            ["A", "B"].map(|name| written(name, &format!("mca_base_env_list = {name}=1\n")));
        assert_eq!(Files::read(&[first, home.path().join("none"), second]), list("A=1"));
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// Where the program is, or all ends.
    fn end(line: &str) -> usize {
        line.split_whitespace().position(|word| word == "sh").unwrap_or_else(|| words(line).len())
    }

    #[test]
    fn variables_go_with_a_list_of_the_users() {
        let variables = [("A".to_owned(), OsString::from("1")), ("B".to_owned(), OsString::from("2"))];
        let with = |line: &str, list: Option<&str>| {
            let told = Told { list: list.map(OsString::from), ..Told::default() };
            let out = super::with(&words(line), end(line), &variables, told, |_, _| Files::default())?;
            Some(out.join(OsStr::new(" ")).into_string().unwrap())
        };
        assert_eq!(with("mpirun -n 2 sh", None), None);
        assert_eq!(
            with("mpirun -n 2 sh", Some("X=3;Y")).unwrap(),
            "mpirun --mca mca_base_env_list X=3;Y;A=1;B=2 -n 2 sh"
        );
        for list in [None, Some("Y=4")] {
            assert_eq!(
                with("mpirun -n 2 -mca mca_base_env_list X=3 sh", list).unwrap(),
                "mpirun -n 2 -mca mca_base_env_list X=3;A=1;B=2 sh"
            );
        }
        assert_eq!(
            with("mpirun --mca mca_base_env_list_delimiter , --mca mca_base_env_list X=3 sh", None).unwrap(),
            "mpirun --mca mca_base_env_list_delimiter , --mca mca_base_env_list X=3,A=1,B=2 sh"
        );
        // A program's own words.
        assert_eq!(with("mpirun -n 2 sh --mca mca_base_env_list X=3", None), None);
        assert_eq!(with("mpirun --mca mca_base_env_list", None), None);
        let of_file = |line: &str| {
            let files = Files { list: Some("X=3".into()), delimiter: Some(",".into()), exports: false };
            let out = super::with(&words(line), end(line), &variables, Told::default(), |tuned, told| {
                assert_eq!((tuned, told), (vec!["t".into(), "/u".into()], Some(OsStr::new("f"))));
                files
            });
            out.unwrap().join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(
            of_file("mpirun --tune t,/u --mca mca_base_param_files f sh"),
            "mpirun --mca mca_base_env_list X=3,A=1,B=2 --tune t,/u --mca mca_base_param_files f sh"
        );
    }
}
