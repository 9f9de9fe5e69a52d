//! What sketches keep comes back through the stream and the text form.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallId;
use st_model::sketch::Shape;
use st_model::sketch::histogram::Binning;
use st_stream::text;
use st_stream::{ReadOptions, Trace, WriteOptions};

fn trace(shape: Shape) -> Trace {
    let mut r = RankRecorder::new(3, Options { columns: false, shape, ..Options::default() });
    let thread = r.open_thread(0);
    let site = r.sites.label("here");
    let sym = r.symbol(CallId(3), site, 0);
    let mut now = 0;
    for i in 0..200_i64 {
        let enter = now + 100 + i * 37 % 1000;
        now = enter + i * i;
        r.record(thread, sym, &[], enter, now);
    }
    Trace { sections: vec![r.finish("host")], ..Trace::default() }
}

#[test]
fn all_shapes_come_back() {
    for shape in [Shape::Buckets, Shape::BINS, Shape::Bins(Binning::new(10, 50).unwrap()), Shape::Totals] {
        let trace = trace(shape);
        let comm = &trace.sections[0].threads[0].sketches.first().unwrap().comm;
        assert_eq!((comm.shape(), comm.count), (shape, 199));
        assert_eq!(comm.sum, (1..200_u128).map(|i| i * i).sum());
        let mut bytes = Vec::new();
        st_stream::write(&trace, &mut bytes, WriteOptions { level: trace.level }).unwrap();
        assert_eq!(st_stream::read(&bytes[..], ReadOptions::default()).unwrap(), trace, "{shape:?}");
        let mut lines = Vec::new();
        text::write(&trace, &mut lines).unwrap();
        let back = text::parse(&lines[..]).unwrap();
        assert_eq!(back, trace, "{shape:?}");
    }
}

#[test]
fn bins_follow_the_distribution() {
    let trace = trace(Shape::BINS);
    let comm = &trace.sections[0].threads[0].sketches.first().unwrap().comm;
    let most = comm.bins().iter().map(|bin| bin.count).max().unwrap();
    assert!(comm.bins().len() == 5 && most < 150, "{:?}", comm.bins());
    // The median of squares up to 199 is near 100 squared.
    assert!((5_000..20_000).contains(&comm.quantile(500)), "{}", comm.quantile(500));
}

#[test]
fn there_are_as_many_bins_as_asked_for() {
    let fullest = |bins| {
        let trace = trace(Shape::Bins(Binning::new(bins, 50).unwrap()));
        let comm = &trace.sections[0].threads[0].sketches.first().unwrap().comm;
        assert_eq!(comm.bins().len(), usize::try_from(bins).unwrap());
        comm.bins().iter().map(|bin| bin.count).max()
    };
    assert!(fullest(20) < fullest(5));
}
