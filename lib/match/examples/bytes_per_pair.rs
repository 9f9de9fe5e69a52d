//! Prints how many bytes each rank sent to each other: `bytes_per_pair TRACE`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use st_match::volume::{Graphs, Volumes};
use st_stream::{ReadOptions, read};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: bytes_per_pair TRACE")?;
    let trace = read(BufReader::new(File::open(path)?), ReadOptions::default())?;
    let graphs = Graphs::of(&trace.sections)?;
    let mut pairs = BTreeMap::<(u32, u32), u128>::new();
    for section in &trace.sections {
        for rank in section.ranks.iter() {
            let mut volumes = Volumes::new(section, rank, &graphs);
            for thread in 0..section.threads.len() {
                let Some(mut events) = section.events(thread, rank) else { continue };
                while let Some(event) = events.next_event()? {
                    for (to, bytes) in &volumes.next_event(&event).partners {
                        *pairs.entry((rank, *to)).or_default() += bytes;
                    }
                }
            }
        }
    }
    for ((from, to), bytes) in pairs {
        println!("{from} {to} {bytes}");
    }
    Ok(())
}
