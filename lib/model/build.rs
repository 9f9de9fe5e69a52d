//! Writes a constant for each function of the call table, so that a name that is misspelt does not compile.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let table = "src/calls.txt";
    println!("cargo::rerun-if-changed={table}");
    let mut out = String::new();
    for line in fs::read_to_string(table)?.lines() {
        let mut words = line.split_whitespace();
        if let (Some(number), Some(name)) = (words.next(), words.next())
            && number.parse::<u16>().is_ok()
        {
            writeln!(out, "/// `{name}`.\npub const {name}: &str = \"{name}\";")?;
        }
    }
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("names.rs"), out)?)
}
