//! Traces that no program has left.

use std::path::Path;

use st_capture::record::{Options, RankRecorder};
use st_cli::Mpi;
use st_model::calls::CallTable;
use st_model::header::{Header, Mpi as Flavour};
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_stream::{Trace, WriteOptions};
use st_tests::Failure;
use st_tests::process::Run;

/// A call: name, words, enter and exit in ns.
pub(crate) type Call = (&'static str, Vec<i64>, i64, i64);

/// Writes a trace of two ranks, which make the calls that follow from the number of the other.
pub(crate) fn two_ranks(path: &Path, mpi: Mpi, calls: impl Fn(i64) -> Vec<Call>) {
    let rank = |rank: u32| {
        let mut r = RankRecorder::new(rank, Options::default());
        let members = RankSeq::first(2);
        let kind = "MPI_COMM_WORLD".into();
        r.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
        let (words, parts) = (Vec::new(), Vec::new());
        r.objects.types.predefined(Type { kind: "MPI_INT".into(), words, parts, size: 4, lb: 0, extent: 4 });
        r.open_thread(0);
        for (name, words, enter, exit) in calls(i64::from(1 - rank)) {
            let site = r.sites.label(&format!("{name} of the test"));
            let sym = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
            r.record(0, sym, &words, enter, exit);
        }
        r.finish("host")
    };
    let flavour = Flavour { flavour: mpi.name().into(), ..Flavour::default() };
    let header = Header { world: 2, mpi: flavour, ..Header::default() };
    let sections = (0..2).map(rank).collect();
    let trace = Trace { header, sections, level: 0, ..Trace::default() };
    st_stream::write(&trace, &mut std::fs::File::create(path).unwrap(), WriteOptions { level: 0 }).unwrap();
}

/// Puts histograms in the place of all partners and sizes of a trace.
pub(crate) fn as_histograms(trace: &Path, to: &Path) -> Result<(), Failure> {
    let kinds = ["--histogram", "dest,source,count", "--histogram-threshold", "1", "-o"].map(AsRef::as_ref);
    let args = kinds.into_iter().chain([to.as_os_str(), trace.as_os_str()]);
    Run::st("st-merge", args)?.go()?.ok().map(drop)
}
