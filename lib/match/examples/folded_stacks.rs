//! Writes where a run's time in MPI goes, as lines that inferno, flamegraph.pl and speedscope draw: `folded_stacks TRACE`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use st_model::sites::CallSites;
use st_stream::{ReadOptions, Reader, call_sites};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: folded_stacks TRACE")?;
    let open = || File::open(&path).map(BufReader::new);
    let sites = CallSites::new(call_sites(open()?, ReadOptions::default())?);
    let mut reader = Reader::new(open()?, ReadOptions::default())?;
    let mut times = BTreeMap::<(u32, String), i64>::new();
    while let Some(section) = reader.next_section()? {
        let numbers = sites.numbers(&section.sites);
        for rank in section.ranks.iter() {
            for thread in 0..section.threads.len() {
                let Some(events) = section.events(thread, rank) else { continue };
                let mut events = events.timed();
                while let Some(event) = events.next_event()? {
                    let site = numbers.get(event.symbol.site as usize);
                    let (Some(site), Some((enter, exit))) = (site, event.times) else { continue };
                    let name = event.name().unwrap_or("a function without a name");
                    *times.entry((*site, name.to_owned())).or_default() += exit - enter;
                }
            }
        }
    }
    for ((site, name), ns) in times {
        let outermost_first = sites.stack(site).into_iter().rev();
        let frames: Vec<String> = outermost_first.map(|frame| frame.replace(';', ",")).collect();
        println!("{};{name} {ns}", frames.join(";"));
    }
    Ok(())
}
