//! The `st-kernels` program: on paper by itself, for real by becoming the engine of the launcher's MPI.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use st_cli::options::Talk;
use st_cli::{Amount, Launch, Output, Status, UsageError, engine};
use st_model::header::{Clock, Header, Mpi, SIMULATED, Step};
use st_model::section::Section;
use st_stream::{Encoded, Writer};

use crate::paper::{Plan, Planned};
use crate::{Args, Options, Slow, Unfit, paper};

/// The program's name.
const NAME: &str = "st-kernels";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// File name of the program that is built for each MPI: not the engine, for it is recorded.
const PROGRAM: &str = "st-kernels-mpi";

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(NAME, run)
}

fn run(args: &Args) -> Result<Status> {
    if args.paper.paper {
        return on_paper(args);
    }
    let kernel = args.kernel.name();
    if args.paper.names_output() {
        bail!(UsageError("-o goes with --paper; to record a run: st-record -- mpirun …".into()));
    }
    let Some(launch) = Launch::current() else {
        bail!(UsageError(format!(
            "not inside an MPI job: `mpirun -n 4 st-kernels {kernel}` runs it, --paper --ranks P writes its trace \
             without MPI"
        )));
    };
    match engine::become_program(PROGRAM, &launch)? {}
}

/// Writes the trace of a run that never was, a rank after the other, some made ahead.
fn on_paper(args: &Args) -> Result<Status> {
    let ranks = args.paper.ranks.unwrap_or(1);
    let unfit = |unfit: Unfit| UsageError(unfit.to_string());
    // Said before a file is opened.
    args.kernel.check(ranks, &args.options).map_err(unfit)?;
    let ranks = ranks.cast_unsigned();
    let jobs = args.paper.threads();
    let talk = Talk::default();
    let making = talk.progress(NAME, "making", Amount::Things("ranks", ranks.into()));
    let slow: Vec<Slow> = args.paper.slow.iter().flat_map(|slow| slow.each(ranks)).collect();
    let plan = Plan::new(&slow, args.kernel, &args.options, ranks, jobs).map_err(unfit)?;
    let target = &args.paper.output;
    let output = Output::stream(&target.output)?;
    let name = output.name().to_owned();
    let options = target.write_options(&output);
    let write = || format!("{name}: writing");
    let mut writer = Writer::new(output, &header(args, ranks), options).with_context(write)?;
    if !target.no_provenance {
        let step = Step { tool: NAME.into(), version: VERSION.into(), args: arguments(args) };
        writer.provenance(&step).with_context(write)?;
    }
    let encoded = |section: Result<Section, Unfit>| section.map(|s| Encoded::of(&s, options));
    paper::each(
        args.paper.fold,
        Planned { kernel: args.kernel, options: &args.options, plan: &plan, ranks },
        jobs,
        encoded,
        |section| -> Result<()> {
            making.advance(1);
            writer.encoded(section.map_err(unfit)?).with_context(write)
        },
    )?;
    writer.finish().with_context(write)?.commit()?;
    Ok(Status::Ok)
}

fn header(args: &Args, ranks: u32) -> Header {
    Header {
        world: ranks,
        mpi: Mpi { flavour: "paper".into(), version: VERSION.into(), standard: String::new() },
        program: NAME.into(),
        args: arguments(args),
        clock: Clock { source: SIMULATED.into(), resolution: 1 },
        options: [("fold".to_owned(), args.paper.fold.to_string().into())].into(),
        ..Header::default()
    }
}

/// The arguments that decide the trace: not where it goes.
fn arguments(args: &Args) -> Vec<String> {
    let Options { steps, size, seconds, seed, open, noise } = &args.options;
    let mut list = vec![args.kernel.name().to_owned()];
    let mut add = |name: &str, value: Option<String>| list.extend(value.map(|v| format!("--{name}={v}")));
    add("steps", steps.map(|n| n.to_string()));
    add("size", size.map(|n| n.to_string()));
    add("seconds", Some(seconds.to_string()));
    add("seed", Some(seed.to_string()));
    add("noise", (*noise > 0.0).then(|| noise.to_string()));
    args.paper.slow.iter().for_each(|slow| add("slow", Some(slow.to_string())));
    if *open {
        list.push("--open".into());
    }
    list
}
