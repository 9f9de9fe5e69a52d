//! What papers claim, and whether it is so here.

use serde::Deserialize;

use super::measured::{Measured, short};
use crate::stats::estimate_mean;

/// Something that can be so or not.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// In words.
    says: String,
    /// Of which series.
    series: String,
    /// Of which programs; of all if none is named.
    #[serde(default)]
    programs: Vec<String>,
    /// Where it is not so, something is broken.
    #[serde(default)]
    must: bool,
    is: Test,
    /// Where it is not so, what that comes of.
    #[serde(default)]
    why: String,
}

/// How it is tested.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Test {
    /// At the end of the axis it is so many times what it is at the beginning, at most.
    Grows {
        /// So many times.
        most: f64,
    },
    /// Everywhere it is at most so many times what another series is.
    Below {
        /// The other series.
        than: String,
        /// So many times.
        times: f64,
    },
    /// Everywhere it is at most so many times as far from 0 as another series is.
    Nearer {
        /// The other series.
        than: String,
        /// So many times.
        times: f64,
    },
    /// The mean absolute percentage error: the mean of all runs of all programs, without signs, is at most so much.
    Mape {
        /// Percent.
        most: f64,
    },
    /// No value is less.
    Least {
        /// So much.
        least: f64,
    },
    /// No value is farther from 0.
    Within {
        /// How far.
        most: f64,
    },
}

impl Claim {
    /// The claim, for which programs it holds and for which not, with what was found at worst, and whether something is broken.
    pub(super) fn found(&self, measured: &Measured) -> (String, bool) {
        let (mut holds, mut differs) = (Vec::new(), Vec::new());
        if let Test::Mape { most } = self.is {
            return self.mape(measured, most);
        }
        for (program, name) in self.concerned(measured) {
            let Some((worst, limit)) = self.worst(measured, program) else { continue };
            let what = format!("{name} ({})", short(worst));
            let so = if matches!(self.is, Test::Least { .. }) { worst >= limit } else { worst <= limit };
            if so { holds.push(what) } else { differs.push(what) }
        }
        let told = |how: &str, those: &[String]| {
            if those.is_empty() { String::new() } else { format!("; {how} {}", those.join(", ")) }
        };
        let unknown = holds.is_empty() && differs.is_empty();
        let nothing = if unknown { "; not measured" } else { "" };
        let why =
            if differs.is_empty() || self.why.is_empty() { String::new() } else { format!(": {}", self.why) };
        let text = format!(
            "{}: {} {}{}{}{why}{nothing}",
            self.says,
            self.series,
            self.limit(),
            told("holds for", &holds),
            told("DIFFERS for", &differs)
        );
        // Programs that are named are not there where the user has programs of their own.
        (text, self.must && (!differs.is_empty() || unknown && self.programs.is_empty()))
    }

    /// The programs that it is about.
    fn concerned<'a>(&'a self, measured: &'a Measured) -> impl Iterator<Item = (usize, &'a String)> {
        let concerns = |name: &String| self.programs.is_empty() || self.programs.contains(name);
        measured.programs.iter().enumerate().filter(move |(_, name)| concerns(name))
    }

    /// As [`Self::found`], of all programs together.
    fn mape(&self, measured: &Measured, most: f64) -> (String, bool) {
        let of = |(program, _)| {
            let values: Vec<f64> = measured
                .series_named(&self.series)
                .into_iter()
                .flat_map(|s| measured.all(program, s))
                .collect();
            (!values.is_empty()).then_some(values)
        };
        let programs: Vec<Vec<f64>> = self.concerned(measured).filter_map(of).collect();
        let errors: Vec<f64> = programs.iter().flatten().map(|v| v.abs()).collect();
        let limit = format!("{}: {} {}", self.says, self.series, self.limit());
        if errors.is_empty() {
            return (limit + "; not measured", self.must);
        }
        let found = estimate_mean(&errors);
        let holds = found.median <= most;
        let text = format!(
            "{limit}; {}: {} % ({}–{}) over {} of {}",
            if holds { "holds" } else { "DIFFERS" },
            short(found.median),
            short(found.low),
            short(found.high),
            several(errors.len(), "run"),
            several(programs.len(), "program"),
        );
        (text, self.must && !holds)
    }

    fn limit(&self) -> String {
        match &self.is {
            Test::Grows { most } => format!("grows at most {} times", short(*most)),
            Test::Below { than, times } => format!("at most {} times {than}", short(*times)),
            Test::Nearer { than, times } => {
                format!("at most {} times as far from 0 as {than}", short(*times))
            }
            Test::Mape { most } => format!("MAPE at most {} %", short(*most)),
            Test::Least { least } => format!("at least {}", short(*least)),
            Test::Within { most } => format!("at most {}", short(*most)),
        }
    }

    /// What is worst for it, and what it may be.
    fn worst(&self, measured: &Measured, program: usize) -> Option<(f64, f64)> {
        let points = measured.points(program, measured.series_named(&self.series)?);
        let medians = || points.iter().map(|(_, found)| found.median);
        match &self.is {
            Test::Grows { most } => {
                let (first, last) = (points.first()?, points.last()?);
                (first.0 != last.0).then_some((last.1.median / first.1.median, *most))
            }
            Test::Least { least } => Some((medians().reduce(f64::min)?, *least)),
            Test::Mape { most } | Test::Within { most } => {
                Some((medians().map(f64::abs).reduce(f64::max)?, *most))
            }
            Test::Below { than, times } | Test::Nearer { than, times } => {
                let others = measured.points(program, measured.series_named(than)?);
                let ratio = |(place, found): &(usize, crate::stats::Estimate)| {
                    let other = others.iter().find(|(at, _)| at == place)?;
                    // Nothing is not more than nothing.
                    Some(if found.median == 0.0 { 0.0 } else { found.median / other.1.median })
                };
                let ratios = points.iter().filter_map(ratio);
                let worst = match &self.is {
                    Test::Nearer { .. } => ratios.map(f64::abs).reduce(f64::max),
                    _ => ratios.reduce(f64::max),
                };
                Some((worst?, *times))
            }
        }
    }
}

/// So many of something.
fn several(count: usize, what: &str) -> String {
    if count == 1 { format!("one {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_and_what_does_not_is_said_of_each_program() {
        let mut all = Measured::default();
        let rows = "program,series,x,run,value\na,s,1,1,10\na,s,2,1,11\nb,s,1,1,10\nb,s,2,1,40\na,t,1,1,20\na,t,2,1,20\n";
        all.read(rows.as_bytes()).unwrap();
        let claim = |is: &str, programs: &str| -> Claim {
            serde_json::from_str(&format!(r#"{{"says":"x","series":"s","programs":{programs},"is":{is}}}"#))
                .unwrap()
        };
        let text = |is: &str, programs: &str| claim(is, programs).found(&all).0;
        let found = |is: &str| text(is, "[]");
        let grows = r#"{"grows":{"most":1.2}}"#;
        assert_eq!(found(grows), "x: s grows at most 1.20 times; holds for a (1.10); DIFFERS for b (4)");
        assert_eq!(text(grows, r#"["a"]"#), "x: s grows at most 1.20 times; holds for a (1.10)");
        assert_eq!(text(grows, r#"["c"]"#), "x: s grows at most 1.20 times; not measured");
        assert_eq!(
            found(r#"{"below":{"than":"t","times":0.5}}"#),
            "x: s at most 0.500 times t; DIFFERS for a (0.550)"
        );
        assert_eq!(found(r#"{"least":{"least":10}}"#), "x: s at least 10; holds for a (10), b (10)");
        assert_eq!(found(r#"{"least":{"least":10.5}}"#), "x: s at least 10.5; DIFFERS for a (10), b (10)");
        assert_eq!(
            found(r#"{"within":{"most":20}}"#),
            "x: s at most 20; holds for a (11); DIFFERS for b (40)"
        );
        let because = Claim { why: "it is slow".into(), ..claim(r#"{"within":{"most":20}}"#, "[]") };
        assert!(because.found(&all).0.ends_with("DIFFERS for b (40): it is slow"));
    }
    #[test]
    fn what_is_nearer_to_0_may_be_on_its_other_side() {
        let mut all = Measured::default();
        all.read("program,series,x,run,value\na,s,1,1,-3\na,t,1,1,2\nb,s,1,1,-1\nb,t,1,1,-2\n".as_bytes())
            .unwrap();
        let claim = r#"{"says":"x","series":"s","is":{"nearer":{"than":"t","times":1}}}"#;
        let claim: Claim = serde_json::from_str(claim).unwrap();
        let found = "x: s at most 1 times as far from 0 as t; holds for b (0.500); DIFFERS for a (1.50)";
        assert_eq!(claim.found(&all).0, found);
    }
    #[test]
    fn the_mean_absolute_error_is_of_all_runs_of_all_programs() {
        let mut all = Measured::default();
        all.read("program,series,x,run,value\na,s,1,1,-3\na,s,1,2,1\nb,s,1,1,5\nb,t,1,1,90\n".as_bytes())
            .unwrap();
        let of = |programs: &str, most: f64| {
            let claim = format!(
                r#"{{"says":"x","series":"s","programs":{programs},"is":{{"mape":{{"most":{most}}}}}}}"#
            );
            serde_json::from_str::<Claim>(&claim).unwrap().found(&all).0
        };
        assert_eq!(of("[]", 5.7), "x: s MAPE at most 5.70 %; holds: 3 % (1–5) over 3 runs of 2 programs");
        assert_eq!(
            of(r#"["b"]"#, 4.0),
            "x: s MAPE at most 4 %; DIFFERS: 5 % (5–5) over one run of one program"
        );
        assert_eq!(of(r#"["c"]"#, 4.0), "x: s MAPE at most 4 %; not measured");
    }
    #[test]
    fn nothing_is_not_more_than_nothing() {
        let mut all = Measured::default();
        let rows = "program,series,x,run,value\na,s,1,1,0\na,t,1,1,0\nb,s,1,1,1\nb,t,1,1,0\n";
        all.read(rows.as_bytes()).unwrap();
        let claim = r#"{"says":"x","series":"s","is":{"below":{"than":"t","times":1}}}"#;
        let claim: Claim = serde_json::from_str(claim).unwrap();
        assert_eq!(claim.found(&all).0, "x: s at most 1 times t; holds for a (0); DIFFERS for b (inf)");
    }

    #[test]
    fn what_must_hold_and_does_not_is_broken() {
        let mut all = Measured::default();
        all.read("program,series,x,run,value\na,s,1,1,0\nb,s,1,1,2\n".as_bytes()).unwrap();
        let of = |all: &Measured, must: bool, programs: &str| {
            let claim = format!(
                r#"{{"says":"x","series":"s","programs":{programs},"must":{must},"is":{{"within":{{"most":0}}}}}}"#
            );
            serde_json::from_str::<Claim>(&claim).unwrap().found(all).1
        };
        let broken = |must, programs| of(&all, must, programs);
        assert!(broken(true, "[]"));
        assert!(!broken(false, "[]"));
        assert!(!broken(true, r#"["a"]"#));
        assert!(!broken(true, r#"["c"]"#), "not measured");
        assert!(of(&Measured::default(), true, "[]"), "nothing measured");
    }
}
