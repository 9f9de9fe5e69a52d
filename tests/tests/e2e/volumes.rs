//! Bytes sent and received: what st-stat says of a program that knows.

use std::collections::BTreeMap;

use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::workplace::Workplace;
use st_tests::{Failure, conclude};

/// Function: bytes sent and received.
type Volumes = BTreeMap<String, (u64, u64)>;

/// What the ranks of the program print.
fn truth(text: &str) -> Result<Volumes, Failure> {
    let mut all = Volumes::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [name, sent, received] = words[..] else { return Err(format!("the program said {line:?}")) };
        let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{line}: {e}"));
        let sums = all.entry(name.to_owned()).or_default();
        *sums = (sums.0 + number(sent)?, sums.1 + number(received)?);
    }
    Ok(all)
}

fn told(trace: &std::path::Path) -> Result<Volumes, Failure> {
    let words = ["calls", "--functions", "--format", "json"].map(AsRef::as_ref);
    let text = Run::st("st-stat", words.into_iter().chain([trace.as_os_str()]))?.go()?.ok()?.text();
    let mut all = Volumes::new();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
        let number = |key: &str| row[key].as_u64().ok_or_else(|| format!("{line}: no {key}"));
        let name = row["function"].as_str().unwrap_or_default().to_owned();
        all.insert(name, (number("sent_bytes")?, number("received_bytes")?));
    }
    Ok(all)
}

#[test]
fn every_byte_is_counted_once() {
    // Enough ranks for neighbours and groups that are not all the same.
    let jobs: Vec<_> = Job::all().into_iter().map(|job| Job { ranks: 4, ..job }).collect();
    let one = |job: &Job| {
        let p = Workplace::new(*job)?;
        p.compile("volumes", "volumes.c", &["-Wall"])?.ok()?;
        let o = p.outside("-q -o v.st", "./volumes file")?.ok()?;
        let merged = p.path("merged.st");
        let words = [p.path("v.st").into_os_string(), "-o".into(), merged.clone().into()];
        Run::st("st-merge", words)?.go()?.ok()?;
        for trace in [p.path("v.st"), merged] {
            let (truth, told) = (truth(&o.text())?, told(&trace)?);
            let wrong: Vec<_> = truth
                .iter()
                .filter(|(name, sums)| told.get(*name) != Some(sums))
                .map(|(name, sums)| format!("{name}: {:?}, not {sums:?}", told.get(name)))
                .collect();
            let others: Vec<_> =
                told.iter().filter(|(name, sums)| **sums != (0, 0) && !truth.contains_key(*name)).collect();
            if truth.len() < 60 || !wrong.is_empty() || !others.is_empty() {
                return Err(format!("{}: {wrong:#?} {others:?}", trace.display()));
            }
        }
        Ok(())
    };
    let failures: Vec<Failure> =
        jobs.iter().filter_map(|job| one(job).map_err(|e| format!("{job}: {e}")).err()).collect();
    conclude(jobs.len(), &failures);
}
