//! Reading the log.

use super::log::{
    AGAIN_SHORT, CALL, COMM, EDIT, EDIT_SHORT, FILE, GROUP, MODULE, NAME, NEXT, NEXT_SHORT, NEXT_SHORT_EDIT,
    NEXT_SLOW, OP, SITE, SYMBOL, TEXT, TYPE, WIN,
};
use crate::record::RankRecorder;
use st_model::calls::{CallId, CallTable, Slot};
use st_model::num::Exact;
use st_model::project::LONGEST_LIST;
use st_model::section::Sym;
use st_stream::DecodeError;
use st_stream::bytes::{get_i64, get_index, get_len, get_str, get_u16, get_u32};
use st_stream::objects::get_object;
use st_stream::sites::get_site;

/// A call as the log has it; its times are relative to the exit before it.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) sym: Sym,
    pub(super) gap: i64,
    pub(super) duration: i64,
    pub(super) words: Vec<i64>,
}

/// A loop as the log has it.
#[derive(Clone, Debug, Default)]
pub(super) struct LoggedRound {
    places: Vec<(Sym, Vec<i64>)>,
    next: usize,
}

impl LoggedRound {
    /// Reads a loop after its tag.
    pub(super) fn get(src: &mut &[u8], r: &RankRecorder) -> Result<Self, DecodeError> {
        let length = get_len(src)?;
        let next = get_index(src, length)? as usize;
        let mut places = Vec::new();
        for _ in 0..length {
            let sym = get_index(src, r.symbols().len())?;
            let words = (0..get_len(src)?).map(|_| get_i64(src)).collect::<Result<Vec<_>, _>>()?;
            check(sym, &words, r)?;
            places.push((sym, words));
        }
        Ok(Self { places, next })
    }

    /// Reads the call at its next place after its tag.
    pub(super) fn call(
        &mut self,
        tag: u64,
        src: &mut &[u8],
        r: &RankRecorder,
    ) -> Result<Logged, DecodeError> {
        let (gap, duration) = match tag {
            NEXT_SLOW => (get_i64(src)?, get_i64(src)?),
            NEXT_SHORT | NEXT_SHORT_EDIT => (get_short(src)?.into(), get_short(src)?.into()),
            _ => {
                let [gap, duration] = get_numbers(src)?;
                (gap.into(), duration.into())
            }
        };
        let (sym, words) = self.places.get_mut(self.next).ok_or(DecodeError::Invalid("no loop"))?;
        if !matches!(tag, NEXT | NEXT_SHORT) {
            get_changes(src, words)?;
            check(*sym, words, r)?;
        }
        let call = Logged { sym: *sym, gap, duration, words: words.clone() };
        self.next = (self.next + 1) % self.places.len();
        Ok(call)
    }
}

/// Reads a number of 16 bits.
fn get_short(src: &mut &[u8]) -> Result<u32, DecodeError> {
    let (bytes, rest) = src.split_first_chunk().ok_or(DecodeError::End)?;
    *src = rest;
    Ok(u16::from_le_bytes(*bytes).into())
}

/// Reads numbers of 32 bits.
fn get_numbers<const N: usize>(src: &mut &[u8]) -> Result<[u32; N], DecodeError> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        let (bytes, rest) = src.split_first_chunk().ok_or(DecodeError::End)?;
        (*number, *src) = (u32::from_le_bytes(*bytes), rest);
    }
    Ok(numbers)
}

/// Reads the words that differ, into their places.
fn get_changes(src: &mut &[u8], words: &mut [i64]) -> Result<(), DecodeError> {
    for _ in 0..get_len(src)? {
        let i = get_index(src, words.len())?;
        words[i as usize] = get_i64(src)?;
    }
    Ok(())
}

/// Whether words are those of a symbol.
fn check(sym: Sym, words: &[i64], r: &RankRecorder) -> Result<(), DecodeError> {
    let symbol = usize::try_from(sym).ok().and_then(|i| r.symbols().get(i));
    if symbol.is_some_and(|s| readable(CallTable::builtin().slots(s.call), words)) {
        Ok(())
    } else {
        Err(DecodeError::Invalid("words that are none of its function"))
    }
}

/// Reads a call with the words of the thread's last one of its symbol, or all but some, after its tag.
pub(super) fn get_again(
    tag: u64,
    src: &mut &[u8],
    r: &RankRecorder,
    thread: usize,
) -> Result<Logged, DecodeError> {
    let [sym, gap, duration] = match tag {
        AGAIN_SHORT | EDIT_SHORT => [get_short(src)?, get_short(src)?, get_short(src)?],
        _ => get_numbers(src)?,
    };
    let words = r.last_words(thread, sym).ok_or(DecodeError::Invalid("a first call that is a repetition"))?;
    let mut words = words.to_vec();
    if matches!(tag, EDIT | EDIT_SHORT) {
        get_changes(src, &mut words)?;
        check(sym, &words, r)?;
    }
    Ok(Logged { sym, gap: gap.into(), duration: duration.into(), words })
}

/// Reads a call after its first number.
pub(super) fn get_call(first: u64, src: &mut &[u8], r: &RankRecorder) -> Result<Logged, DecodeError> {
    let index = first.checked_sub(CALL).ok_or(DecodeError::Invalid("no call"))?;
    let len = r.symbols().len();
    if usize::try_from(index).is_ok_and(|i| i >= len) {
        return Err(DecodeError::Index { index, len: len.to_u64() });
    }
    let sym = Sym::try_from(index).map_err(|_| DecodeError::Integer)?;
    let (gap, duration) = (get_i64(src)?, get_i64(src)?);
    let n = get_len(src)?;
    let mut words = Vec::with_capacity(n);
    for _ in 0..n {
        words.push(get_i64(src)?);
    }
    check(sym, &words, r)?;
    Ok(Logged { sym, gap, duration, words })
}

/// Whether a recorder takes these words in a way that they can be read back.
fn readable(slots: &[Slot], words: &[i64]) -> bool {
    let mut rest = words;
    for s in slots {
        let first = rest.first().copied().unwrap_or(0);
        rest = rest.get(1..).unwrap_or(&[]);
        if s.list {
            match usize::try_from(first) {
                Ok(n) if first <= LONGEST_LIST && n <= rest.len() => rest = &rest[n..],
                _ => return false,
            }
        }
    }
    true
}

/// Reads a definition into the recorder's tables; `false` if `tag` is none.
pub(super) fn get_definition(tag: u64, src: &mut &[u8], r: &mut RankRecorder) -> Result<bool, DecodeError> {
    let before = r.extent();
    let rank = r.rank();
    match tag {
        MODULE => {
            let (path, build_id) = (get_str(src)?, get_str(src)?);
            r.sites.module(st_model::sites::Module { path, build_id });
        }
        SITE => {
            let mut before = r.sites.sites().last().map_or_else(Vec::new, |s| s.frames.clone());
            let site = get_site(src, &r.sites, &mut before)?;
            r.sites.insert(site);
        }
        SYMBOL => {
            let (call, site) = (CallId(get_u16(src)?), get_index(src, before.sites)?);
            if CallTable::builtin().get(call).is_none() && !r.names().any(|n| n.0 == call) {
                return Err(DecodeError::Invalid("a function that has no name"));
            }
            r.symbol(call, site, get_u32(src)?);
        }
        COMM => drop(get_object(src, rank).map(|(family, o)| r.objects.comms.adopt(family, o))?),
        GROUP => drop(get_object(src, rank).map(|(family, o)| r.objects.groups.adopt(family, o))?),
        TYPE => drop(get_object(src, rank).map(|(family, o)| r.objects.types.adopt(family, o))?),
        OP => drop(get_object(src, rank).map(|(family, o)| r.objects.ops.adopt(family, o))?),
        WIN => drop(get_object(src, rank).map(|(family, o)| r.objects.wins.adopt(family, o))?),
        FILE => drop(get_object(src, rank).map(|(family, o)| r.objects.files.adopt(family, o))?),
        TEXT => drop(get_object(src, rank).map(|(family, o)| r.objects.texts.adopt(family, o))?),
        NAME => {
            r.unknown_call(&get_str(src)?);
        }
        _ => return Ok(false),
    }
    if r.extent() == before { Err(DecodeError::Invalid("defined twice")) } else { Ok(true) }
}
