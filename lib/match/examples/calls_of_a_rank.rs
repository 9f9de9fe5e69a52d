//! Prints what a rank did, a call a line, with times and call sites: `calls_of_a_rank TRACE RANK`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use st_model::sites::CallSites;
use st_stream::{ReadOptions, call_sites, read};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(rank)) = (args.next(), args.next()) else {
        return Err("usage: calls_of_a_rank TRACE RANK".into());
    };
    let rank: u32 = rank.parse()?;
    let open = || File::open(&path).map(BufReader::new);
    let sites = CallSites::new(call_sites(open()?, ReadOptions::default())?);
    for section in &read(open()?, ReadOptions::default())?.sections {
        let numbers = sites.numbers(&section.sites);
        for thread in 0..section.threads.len() {
            let Some(mut events) = section.events(thread, rank).map(|events| events.timed()) else {
                continue;
            };
            while let Some(event) = events.next_event()? {
                let name = event.name().unwrap_or("a function without a name");
                let site = numbers.get(event.symbol.site as usize).map(|number| sites.describe(*number));
                let site = site.unwrap_or_default();
                let times =
                    event.times.map_or_else(String::new, |(enter, exit)| format!("{enter} to {exit} ns"));
                let to = event.dest().and_then(|dest| event.world(dest));
                let to = to.map_or_else(String::new, |to| format!("to rank {to} "));
                println!("{thread} {} {name} {to}{times} [{site}]", event.index);
            }
        }
    }
    Ok(())
}
