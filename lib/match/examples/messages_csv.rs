//! Writes a trace's messages as CSV, with both ends: `messages_csv TRACE`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use st_match::graph::{Barriers, Matcher};
use st_stream::{ReadOptions, Reader};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: messages_csv TRACE")?;
    let mut reader = Reader::new(BufReader::new(File::open(path)?), ReadOptions::default())?;
    let mut matcher = Matcher::keeping_messages(Barriers::default());
    println!("from,from_call,from_complete,to,to_posted,to_call,tag");
    while let Some(section) = reader.next_section()? {
        matcher.add(&section)?;
        for m in matcher.take_messages() {
            let complete = m.sent_by.map_or_else(String::new, |call| call.to_string());
            let (from, to) = (m.sent, m.received);
            println!(
                "{},{},{complete},{},{},{},{}",
                from.rank, from.index, to.rank, m.posted, to.index, m.channel.tag
            );
        }
    }
    let open = matcher.finish().issues;
    for (what, n) in open.counts() {
        eprintln!("messages_csv: {n} {what}");
    }
    Ok(())
}
