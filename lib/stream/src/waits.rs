//! Payload of WAITS: what is kept of a run's wait states.
//!
//! Call sites are named by their positions in the SITES frame in force, for an identity takes 16 bytes that nothing
//! compresses.

use st_model::calls::CallId;
use st_model::explanation::{Cause, Costs, Excess, Explanation, Found, Other, Place, Totals, Victims, Waits};
use st_model::num::saturate;
use st_model::ranklist::RankList;
use st_model::ranks::Run;
use st_model::sites::SiteTable;
use st_model::spread::{Class, LOWEST, Spread};

use super::bytes::{
    finish, get_id, get_index, get_len, get_ranks, get_u16, get_u64, put_id, put_ranks, put_u64, put_usize,
};
use super::error::{DecodeError, Field as _};
use super::numbers::{self, Budget, Numbers, Readers};

/// Columns of integers: sets of ranks take the first four.
const SET: usize = 0;
const CLASSES: usize = 4;
const BELOW: usize = 5;
const WHAT: usize = 6;
const PLACE: usize = 7;
const COUNT: usize = 8;
const NS: usize = 9;
const LONGEST: usize = 10;
const BYTES: usize = 11;
const COST: usize = 12;
const COLUMNS: usize = 13;

/// Things of all kinds together, and runs of ranks: a writer keeps far fewer.
const MOST: usize = 1 << 18;
const RUNS: usize = 1 << 20;

type Out = Numbers<COLUMNS>;

pub(crate) fn encode(e: &Explanation, sites: Option<&SiteTable>) -> Vec<u8> {
    let mut out = Vec::new();
    put_ranks(&mut out, &e.ranks);
    let Totals { run, ideal, time, mean, longest, delayed, violations, unmatched } = e.totals;
    let totals = [run, ideal, time, mean, longest, delayed, violations];
    totals.into_iter().chain(unmatched).for_each(|n| put_u64(&mut out, n));
    put_usize(&mut out, e.places.len());
    e.places.iter().for_each(|p| put_place(&mut out, p, sites));
    let lengths = [e.victims.len(), e.waits.len(), e.others.len(), e.costs.len()];
    lengths.into_iter().for_each(|n| put_usize(&mut out, n));
    let mut n = Out::new();
    for v in &e.victims {
        n.put(WHAT, v.kind.into());
        put_at(&mut n, v.place);
        put_number(&mut n, LONGEST, v.longest);
        put_spread(&mut n, &v.spread, &e.ranks);
    }
    e.waits.iter().for_each(|w| put_waits(&mut n, w, &e.ranks));
    for o in &e.others {
        n.put(WHAT, o.matter.into());
        put_at(&mut n, o.place);
        put_number(&mut n, NS, o.cost);
        put_number(&mut n, COUNT, o.count);
        put_number(&mut n, BYTES, o.bytes);
        put_spread(&mut n, &o.spread, &e.ranks);
    }
    for c in &e.costs {
        n.put(WHAT, c.in_call.into());
        put_at(&mut n, c.place);
        c.ns.iter().for_each(|ns| put_number(&mut n, COST, *ns));
        put_spread(&mut n, &c.caused, &e.ranks);
        put_spread(&mut n, &c.suffered, &e.ranks);
    }
    n.finish(&mut out);
    out
}

pub(crate) fn decode(mut src: &[u8], sites: Option<&SiteTable>) -> Result<Explanation, DecodeError> {
    let src = &mut src;
    let ranks = get_ranks(src).field("ranks")?;
    let mut totals = [0; 12];
    for n in &mut totals {
        *n = number(get_u64(src)?).field("totals")?;
    }
    let [run, ideal, time, mean, longest, delayed, violations, unmatched @ ..] = totals;
    let totals = Totals { run, ideal, time, mean, longest, delayed, violations, unmatched };
    let mut places = Vec::new();
    for i in 0..get_len(src).field("places")? {
        places.push(get_place(src, sites).nth("place", i)?);
    }
    let mut things = Budget::new(MOST);
    let mut lengths = [0; 4];
    for length in &mut lengths {
        *length = usize::try_from(get_u64(src)?).map_err(|_| DecodeError::Integer)?;
        things.take(*length)?;
    }
    let columns = numbers::get_columns::<COLUMNS>(src)?;
    finish(src)?;
    let n = Readers::new(&columns);
    let mut read = Read { n, ranks: &ranks, places: places.len(), things, runs: Budget::new(RUNS) };
    let [victims, waits, others, costs] = lengths;
    let victims = (0..victims).map(|i| read.victims().nth("victims", i)).collect::<Result<_, _>>()?;
    let waits = (0..waits).map(|i| read.waits().nth("waits", i)).collect::<Result<_, _>>()?;
    let others = (0..others).map(|i| read.other().nth("finding", i)).collect::<Result<_, _>>()?;
    let costs = (0..costs).map(|i| read.costs().nth("costs", i)).collect::<Result<_, _>>()?;
    Ok(Explanation { ranks, totals, places, victims, waits, others, costs })
}

/// A function, then 0 if the site is not known, 1 and its identity, or 2 + its position in the table of sites.
fn put_place(out: &mut Vec<u8>, place: &Place, sites: Option<&SiteTable>) {
    put_u64(out, place.call.0.into());
    let Some(id) = place.site else { return put_u64(out, 0) };
    match sites.and_then(|table| table.sites().iter().position(|site| site.id == id)) {
        Some(at) => put_usize(out, at + 2),
        None => {
            put_u64(out, 1);
            put_id(out, id);
        }
    }
}

fn get_place(src: &mut &[u8], sites: Option<&SiteTable>) -> Result<Place, DecodeError> {
    let call = CallId(get_u16(src)?);
    let table = sites.map_or(&[][..], SiteTable::sites);
    let site = match get_index(src, table.len() + 2)? {
        0 => None,
        1 => Some(get_id(src)?),
        at => table.get(at as usize - 2).map(|site| site.id),
    };
    Ok(Place { call, site })
}

/// Integers of the columns are signed.
fn put_number(n: &mut Out, column: usize, value: u64) {
    n.put(column, saturate(value));
}

fn number(value: u64) -> Result<u64, DecodeError> {
    if i64::try_from(value).is_ok() { Ok(value) } else { Err(DecodeError::Integer) }
}

/// A place by its number; -1 is elsewhere.
fn put_at(n: &mut Out, place: u32) {
    n.put(PLACE, if place == u32::MAX { -1 } else { place.into() });
}

/// All from one rank to another if that are those of a set: it takes one run whatever other ranks the trace does not have.
fn range(ranks: &RankList, all: &RankList) -> Option<RankList> {
    let (first, last) = (ranks.lowest()?, ranks.highest()?);
    let between = all.position(last)?.checked_sub(all.position(first)?)?;
    let run = Run { start: first.into(), step: 1, n: u64::from(last - first) + 1 };
    (ranks != all && run.n > 1 && between + 1 == ranks.len()).then(|| RankList::from_runs([run])).flatten()
}

/// Number of classes, then each with its set of ranks and how far it is below the one before.
fn put_spread(n: &mut Out, spread: &Spread, all: &RankList) {
    n.put_len(CLASSES, spread.classes.len());
    let mut before = 0;
    for class in &spread.classes {
        numbers::put_set(n, SET, &range(&class.ranks, all).unwrap_or_else(|| class.ranks.clone()), all);
        n.put(BELOW, i64::from(class.below) - before);
        before = class.below.into();
    }
}

fn put_waits(n: &mut Out, w: &Waits, all: &RankList) {
    n.put(WHAT, w.kind.into());
    put_at(n, w.place);
    put_at(n, w.culprit);
    put_number(n, COUNT, w.count);
    put_number(n, NS, w.ns);
    put_number(n, LONGEST, w.longest);
    put_spread(n, &w.spread, all);
    // 0: it is no finding; else 1 + number of causes, negative where there is an excess.
    let Some(found) = &w.finding else { return n.put(CLASSES, 0) };
    let causes: i64 = saturate(found.causes.len());
    n.put(CLASSES, if found.excess.is_some() { -1 - causes } else { 1 + causes });
    if let Some(Excess { rank, place, ns }) = found.excess {
        n.put(SET + 1, rank.into());
        put_at(n, place);
        put_number(n, NS, ns);
    }
    for cause in &found.causes {
        n.put(WHAT, cause.in_call.into());
        put_at(n, cause.place);
        put_number(n, NS, cause.ns);
        put_spread(n, &cause.spread, all);
    }
}

/// The columns being read.
struct Read<'a> {
    n: Readers<'a, COLUMNS>,
    ranks: &'a RankList,
    places: usize,
    things: Budget,
    runs: Budget,
}

impl Read<'_> {
    fn what(&mut self) -> Result<u8, DecodeError> {
        u8::try_from(self.n.get(WHAT)).map_err(|_| DecodeError::Integer)
    }

    fn in_call(&mut self) -> Result<bool, DecodeError> {
        match self.n.get(WHAT) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Invalid("neither computation nor call")),
        }
    }

    fn number(&mut self, column: usize) -> Result<u64, DecodeError> {
        u64::try_from(self.n.get(column)).map_err(|_| DecodeError::Integer)
    }

    fn at(&mut self) -> Result<u32, DecodeError> {
        let place = self.n.get(PLACE);
        let known = u32::try_from(place).ok().filter(|p| usize::try_from(*p).is_ok_and(|p| p < self.places));
        if place == -1 { Ok(u32::MAX) } else { known.ok_or(DecodeError::Invalid("no such place")) }
    }

    fn spread(&mut self) -> Result<Spread, DecodeError> {
        let mut below = 0;
        let mut classes = Vec::new();
        for _ in 0..self.n.get_len(CLASSES, &mut self.things)? {
            let mut ranks = numbers::get_set(&mut self.n, SET, self.ranks, &mut self.runs)?;
            if let (&[Run { step: 1, .. }], Some(first), Some(last)) =
                (&*ranks.runs(), ranks.lowest(), ranks.highest())
                && last <= self.ranks.highest().unwrap_or_default()
            {
                ranks = self.ranks.between(first, last);
                self.runs.take(ranks.runs().len())?;
            }
            if ranks.is_empty() || ranks.len() > self.ranks.len() || ranks.highest() > self.ranks.highest() {
                return Err(DecodeError::Invalid("other ranks than the trace's"));
            }
            below = self.n.get(BELOW).checked_add(below).ok_or(DecodeError::Integer)?;
            let below = u16::try_from(below).ok().filter(|b| *b <= LOWEST);
            classes.push(Class { ranks, below: below.ok_or(DecodeError::Invalid("no part"))? });
        }
        Ok(Spread { classes })
    }

    fn victims(&mut self) -> Result<Victims, DecodeError> {
        let (kind, place, longest) = (self.what()?, self.at()?, self.number(LONGEST)?);
        Ok(Victims { kind, place, longest, spread: self.spread()? })
    }

    fn waits(&mut self) -> Result<Waits, DecodeError> {
        let (kind, place, culprit) = (self.what()?, self.at()?, self.at()?);
        let [count, ns, longest] = [self.number(COUNT)?, self.number(NS)?, self.number(LONGEST)?];
        let (spread, finding) = (self.spread()?, self.found()?);
        Ok(Waits { kind, place, culprit, count, ns, longest, spread, finding })
    }

    fn found(&mut self) -> Result<Option<Found>, DecodeError> {
        let number = self.n.get(CLASSES);
        let Some(causes) = number.unsigned_abs().checked_sub(1) else { return Ok(None) };
        let causes = usize::try_from(causes).map_err(|_| DecodeError::Integer)?;
        self.things.take(causes)?;
        let mut found = Found::default();
        if number < 0 {
            let rank = u32::try_from(self.n.get(SET + 1)).map_err(|_| DecodeError::Integer)?;
            found.excess = Some(Excess { rank, place: self.at()?, ns: self.number(NS)? });
        }
        for i in 0..causes {
            found.causes.push(self.cause().nth("cause", i)?);
        }
        Ok(Some(found))
    }

    fn cause(&mut self) -> Result<Cause, DecodeError> {
        let (in_call, place, ns) = (self.in_call()?, self.at()?, self.number(NS)?);
        Ok(Cause { place, in_call, ns, spread: self.spread()? })
    }

    fn other(&mut self) -> Result<Other, DecodeError> {
        let (matter, place) = (self.what()?, self.at()?);
        let [cost, count, bytes] = [self.number(NS)?, self.number(COUNT)?, self.number(BYTES)?];
        Ok(Other { matter, place, cost, count, bytes, spread: self.spread()? })
    }

    fn costs(&mut self) -> Result<Costs, DecodeError> {
        let (in_call, place) = (self.in_call()?, self.at()?);
        let mut ns = [0; 4];
        for ns in &mut ns {
            *ns = self.number(COST)?;
        }
        Ok(Costs { place, in_call, ns, caused: self.spread()?, suffered: self.spread()? })
    }
}
