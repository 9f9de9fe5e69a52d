//! Runs of a program whose computation varies by chance, on ranks that wait for each other.

use rand::Rng;
use rand_pcg::Pcg64;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::num::{float, rounded};
use st_model::section::Section;

/// Places of the program: a function, its call site, and ns that ranks compute before each call.
pub(crate) const PLACES: [(&str, &str, f64); 4] = [
    (names::MPI_Sendrecv, "west", 40_000.0),
    (names::MPI_Sendrecv, "east", 3_000.0),
    (names::MPI_Barrier, "step", 100_000.0),
    (names::MPI_Allreduce, "norm", 10_000.0),
];

/// A run of it.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) ranks: u32,
    pub(crate) steps: u32,
    pub(crate) seed: u64,
    /// How long computation takes before the calls of each place, as a factor.
    pub(crate) factors: [f64; 4],
    /// How much all ranks vary together, and for the whole run three tenths of it.
    pub(crate) wave: f64,
    /// How much each rank differs for the whole run.
    pub(crate) apart: f64,
    /// How much each rank differs before the calls of each place, apart from the others, for the whole run.
    pub(crate) placed: f64,
    /// How many times as long this rank computes before the calls of this place.
    pub(crate) alone: (u32, usize, f64),
    /// How many times as long this rank computes before all calls.
    pub(crate) everywhere: (u32, f64),
    /// How many times as long computation takes at the end as at the beginning, less one.
    pub(crate) rise: f64,
    /// How long interruptions are, ns.
    pub(crate) late: f64,
    /// Whether exact times are kept.
    pub(crate) exact: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            ranks: 8,
            steps: 200,
            seed: 1,
            factors: [1.0; 4],
            wave: 0.02,
            apart: 0.01,
            placed: 0.0,
            alone: (0, 0, 1.0),
            everywhere: (0, 1.0),
            rise: 0.0,
            late: 1e5,
            exact: true,
        }
    }
}

/// What is random, and how it is shared.
pub(crate) struct Chance(Pcg64);

impl Chance {
    /// A stream of its own for each topic.
    pub(crate) fn new(seed: u64, topic: u32) -> Self {
        let mut generator = Pcg64::new(seed.into(), topic.into());
        // The first outputs of neighbouring streams are related.
        for _ in 0..3 {
            generator.next_u64();
        }
        Self(generator)
    }
    pub(crate) fn uniform(&mut self) -> f64 {
        float((self.0.next_u64() >> 11).into()) / float(1 << 53)
    }
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Computation of all ranks before all calls, ns: by rank, then step and place. Each duration varies by 10 %, all ranks together by a
/// slow wave, each rank for the whole run, also place by place, and one in 300 is interrupted.
pub(crate) fn computation(run: Run) -> Vec<Vec<f64>> {
    let (mut wave, mut common) = (0.0, Chance::new(run.seed, 1 << 20));
    let whole = 0.3 * run.wave * common.normal();
    let calls: Vec<(usize, f64)> = (0..run.steps)
        .flat_map(|_| 0..PLACES.len())
        .map(|place| {
            wave = 0.95 * wave + run.wave * (1.0f64 - 0.95 * 0.95).sqrt() * common.normal();
            (place, whole + wave)
        })
        .collect();
    let of_rank = |number| {
        let mut own = Chance::new(run.seed, number);
        let rank = run.apart * own.normal();
        let mut of_places = Chance::new(run.seed, number + (1 << 22));
        let (slow, at, times) = run.alone;
        let everywhere = if number == run.everywhere.0 { run.everywhere.1 } else { 1.0 };
        let here = |place| everywhere * if (number, place) == (slow, at) { times } else { 1.0 };
        let placed = [0, 1, 2, 3].map(|place| here(place) * (run.placed * of_places.normal()).exp());
        let each = calls.iter().enumerate().map(|(i, (place, wave))| {
            let (noise, late) =
                (0.1 * own.normal(), if own.uniform() < 1.0 / 300.0 { run.late } else { 0.0 });
            let now = float(u128::try_from(i).unwrap()) / float(u128::try_from(calls.len()).unwrap());
            PLACES[*place].2
                * run.factors[*place]
                * placed[*place]
                * (1.0 + run.rise * now)
                * (rank + wave + noise).exp()
                + late
        });
        each.collect()
    };
    (0..run.ranks).map(of_rank).collect()
}

/// The trace of a run whose ranks wait for the last in all calls of the second half of the places.
pub(crate) fn recorded(run: Run) -> Vec<Section> {
    let computed = computation(run);
    let mut now: Vec<f64> = vec![1e6; computed.len()];
    let mut times: Vec<Vec<(f64, f64)>> = vec![Vec::new(); computed.len()];
    for call in 0..computed.first().map_or(0, Vec::len) {
        let enters: Vec<f64> = now.iter().zip(&computed).map(|(now, c)| now + c[call]).collect();
        let last = enters.iter().copied().fold(0.0, f64::max);
        let together = call % PLACES.len() >= 2;
        for (rank, enter) in enters.into_iter().enumerate() {
            let exit = if together { last } else { enter } + 1_500.0;
            times[rank].push((enter, exit));
            now[rank] = exit;
        }
    }
    (0..).zip(times).map(|(rank, times)| section(rank, &times, run.exact)).collect()
}

pub(crate) fn ns(t: f64) -> i64 {
    i64::try_from(rounded(t)).unwrap()
}

pub(crate) fn section(rank: u32, times: &[(f64, f64)], exact: bool) -> Section {
    let mut r = RankRecorder::new(rank, Options::default());
    r.open_thread(0);
    let id = |name| CallTable::builtin().by_name(name).unwrap().id;
    let main = r.sites.label("main");
    let [init, end] = [names::MPI_Init, names::MPI_Finalize].map(|name| r.symbol(id(name), main, 0));
    let symbols = PLACES.map(|(name, site, _)| {
        let site = r.sites.label(site);
        r.symbol(id(name), site, 0)
    });
    r.record(0, init, &[], 0, 1_000_000);
    for (i, (enter, exit)) in times.iter().enumerate() {
        let sym = symbols[i % symbols.len()];
        let words: &[i64] = match PLACES[i % PLACES.len()].0 {
            names::MPI_Barrier => &[0],
            names::MPI_Allreduce => &[0, 1, 0, 0, 0],
            _ => &[1, 0, 0, 1, 1, 0, 0, 1, 0, -9, -9, 8],
        };
        r.record(0, sym, words, ns(*enter), ns(*exit));
    }
    let last = times.last().map_or(1_000_000, |t| ns(t.1));
    r.record(0, end, &[], last, last + 1_000);
    let chunks = r.flush_columns().into_iter().map(|(_, chunk)| chunk).collect();
    let mut section = r.finish("host");
    section.threads[0].columns.clear();
    if exact {
        section.threads[0].columns = vec![(rank, Column { chunks, ..Column::default() })];
    }
    section
}
