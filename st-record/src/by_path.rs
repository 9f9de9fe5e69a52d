//! Launchers that scripts start by their paths: no stand-in comes between, only the environment reaches them.

use crate::env_list::{self, Files};
use crate::launcher::{ENVIRONMENT, LAUNCHERS, PRELOAD, can_tell, preload};
use crate::script::Said;
use crate::target::{self, Starter};
use anyhow::{Context as _, Result};
use st_cli::Mpi;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Settings for launchers that a script starts by their full path: those of [`ENVIRONMENT`]; those
/// that are set already are left out. Where Open MPI's does not go with what the user hands on, or is
/// not known to a launcher, the script and all that it starts are preloaded. The ranks get everything else from the launcher's
/// environment. Hydra's file goes into the directory.
///
/// # Errors
///
/// If that cannot be written.
pub fn by_environment(directory: &Path, said: &Said) -> Result<Vec<(&'static str, OsString)>> {
    let mut all = Vec::new();
    let [openmpi, mpich] = ENVIRONMENT;
    let Ok((name, value)) = preload() else { return Ok(all) };
    if can_tell(Mpi::Mpich) {
        let file = directory.join("hydra.conf");
        let mut option = OsString::from(format!("-genv {name}="));
        option.push(&value);
        option.push("\n");
        std::fs::write(&file, option.as_encoded_bytes()).with_context(|| file.display().to_string())?;
        all.push((mpich, file.into_os_string()));
    }
    let usual = target::resolve(OsStr::new(LAUNCHERS[0]));
    let files = usual.iter().chain(&said.launchers).map(|launcher| Files::of(launcher));
    let files = files.reduce(Files::or).unwrap_or_default();
    let theirs = env_list::variable(&[(name, value.clone())], &files);
    let newer = || said.launchers.iter().any(|launcher| Starter::of(launcher) == Some(Starter::Prrte));
    let refuses = match &theirs {
        _ if said.by_list => true,
        Some(_) => false,
        None => files.hand_on() || !can_tell(Mpi::Openmpi) || newer(),
    };
    match theirs {
        _ if refuses && said.by_path => all.push((PRELOAD, value)),
        _ if refuses => {}
        Some(theirs) => all.push(theirs),
        None => {
            let mut list = OsString::from(format!("{PRELOAD}="));
            list.push(value);
            all.push((openmpi, list));
        }
    }
    Ok(all)
}
