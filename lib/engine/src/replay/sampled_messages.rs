//! Messages that are drawn: sent and received by the rules of [`st_replay::sampled_messages`], hidden from a recorder, while the
//! recorded calls have no partners.
#![expect(unsafe_code, reason = "calls MPI")]

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ffi::c_int;

use anyhow::{Context, Result};
use mpi::ffi;
use st_model::section::{Section, Sym};
use st_replay::args::Args;
use st_replay::factor::Factor;
use st_replay::load;
use st_replay::pace::EventTimes;
use st_replay::sampled_messages::{Arrivals, Message, Sender, Silence, destinations};

use crate::replay::buffers::{Block, Span};
use crate::replay::call::mpi;
use crate::replay::constants::{predefined_op, predefined_type};
use crate::replay::state::Replay;

/// Tags that every MPI has.
const TAGS: u64 = 32768;

/// Sections of other ranks that are not in this rank's own.
pub(crate) type Others = OnceCell<Vec<(u32, Section)>>;

/// The messages of a rank.
pub(crate) struct Exchange<'a> {
    comm: ffi::MPI_Comm,
    byte: ffi::MPI_Datatype,
    arrivals: Arrivals<'a>,
    sender: Sender<'a>,
    silence: Silence,
    /// Recorded time since `MPI_Init`, ns.
    clock: u64,
    /// What the call at hand sends.
    sent: Vec<Message>,
    sends: VecDeque<ffi::MPI_Request>,
    receives: VecDeque<(ffi::MPI_Request, Block)>,
}

impl<'a> Exchange<'a> {
    /// Right after `MPI_Init`, on all ranks: tells those that the rank sends to. `None` if no rank has histograms.
    pub(crate) fn begin(
        r: &Replay<'_>,
        args: &Args,
        rank: u32,
        section: &'a Section,
        others: &'a Others,
    ) -> Result<Option<Self>> {
        let _hidden = r.pause.hide();
        let named =
            |name| predefined_type(name, r.k.type_null).with_context(|| format!("this MPI has no {name}"));
        let (int, byte, world) = (named("MPI_INT")?, named("MPI_BYTE")?, r.k.comm_world);
        let most = predefined_op("MPI_MAX", r.k.op_null).context("this MPI has no MPI_MAX")?;
        let mine = c_int::from(section.histograms().next().is_some());
        let mut any: c_int = 0;
        mpi!(MPI_Allreduce((&raw const mine).cast(), (&raw mut any).cast(), 1, int, most, world))?;
        if any == 0 {
            return Ok(None);
        }
        let mut comm = r.k.comm_null;
        mpi!(MPI_Comm_dup(world, &raw mut comm))?;
        let mut size: c_int = 0;
        mpi!(MPI_Comm_size(world, &raw mut size))?;
        let to = destinations(section, rank)?;
        let sends: Vec<c_int> = (0..u32::try_from(size)?).map(|r| c_int::from(to.contains(&r))).collect();
        let mut receives = vec![0 as c_int; sends.len()];
        mpi!(MPI_Alltoall(sends.as_ptr().cast(), 1, int, receives.as_mut_ptr().cast(), 1, int, world))?;
        let from = (0u32..).zip(&receives).filter(|(_, sends)| **sends != 0).map(|(r, _)| r);
        let from: Vec<u32> = from.collect();
        let scale = args.scale_bytes.unwrap_or(Factor::ONE);
        let elsewhere = from.iter().filter(|r| !section.ranks.contains(**r));
        let loaded = elsewhere.map(|r| Ok((*r, load::of_rank(&args.trace, &args.input, *r)?)));
        let loaded = loaded.collect::<Result<Vec<_>>>()?;
        let others = others.get_or_init(|| loaded);
        let holder = |r: u32| others.iter().find(|(o, _)| *o == r).map_or(section, |(_, s)| s);
        Ok(Some(Self {
            comm,
            byte,
            arrivals: Arrivals::new(rank, from.iter().map(|r| (*r, holder(*r))), scale)?,
            sender: Sender::new(section, rank, scale),
            silence: Silence::new(section),
            clock: 0,
            sent: Vec::new(),
            sends: VecDeque::new(),
            receives: VecDeque::new(),
        }))
    }

    /// Before the time that the program computed before a call: finds out what the call sends, posts what has been sent to this
    /// rank by then, and takes the partners out of the call.
    pub(crate) fn before(
        &mut self,
        r: &mut Replay<'_>,
        sym: Sym,
        words: &mut [i64],
        step: EventTimes,
    ) -> Result<()> {
        self.sender.see(sym, words, &mut self.sent);
        self.silence.apply(sym, words);
        let at = self.clock.saturating_add(step.gap);
        self.clock = at.saturating_add(step.duration);
        let _hidden = r.pause.hide();
        self.post(r, at)?;
        self.clear(r)
    }

    /// When a call is made, or left out: sends what it sends.
    pub(crate) fn send(&mut self, r: &mut Replay<'_>) -> Result<()> {
        if self.sent.is_empty() {
            return Ok(());
        }
        let _hidden = r.pause.hide();
        for m in std::mem::take(&mut self.sent) {
            let (n, to, tag) = (c_int::try_from(m.bytes)?, c_int::try_from(m.to)?, tag(&m)?);
            let buffer = r.memory.source(Span::bytes(i64::from(n)))?;
            let mut request = r.k.request_null;
            mpi!(MPI_Isend(buffer, n, self.byte, to, tag, self.comm, &raw mut request))?;
            self.sends.push_back(request);
        }
        Ok(())
    }

    /// Before `MPI_Finalize`: receives what is left, and waits for everything.
    pub(crate) fn finish(&mut self, r: &mut Replay<'_>) -> Result<()> {
        let _hidden = r.pause.hide();
        self.post(r, u64::MAX)?;
        let receives = self.receives.iter().map(|(request, _)| *request);
        let mut all: Vec<ffi::MPI_Request> = self.sends.drain(..).chain(receives).collect();
        // SAFETY: a status is a structure of integers.
        let mut statuses: Vec<ffi::MPI_Status> = vec![unsafe { std::mem::zeroed() }; all.len()];
        mpi!(MPI_Waitall(c_int::try_from(all.len())?, all.as_mut_ptr(), statuses.as_mut_ptr()))?;
        self.receives.clear();
        mpi!(MPI_Comm_free(&raw mut self.comm))
    }

    /// Posts what was sent to this rank by a time.
    fn post(&mut self, r: &mut Replay<'_>, until: u64) -> Result<()> {
        while let Some(m) = self.arrivals.next(until)? {
            let (n, from, tag) = (c_int::try_from(m.bytes)?, c_int::try_from(m.from)?, tag(&m)?);
            let (block, address) = r.memory.lease(Span::bytes(i64::from(n)))?;
            let mut request = r.k.request_null;
            mpi!(MPI_Irecv(address, n, self.byte, from, tag, self.comm, &raw mut request))?;
            self.receives.push_back((request, block));
        }
        Ok(())
    }

    /// Forgets the oldest messages that are complete.
    fn clear(&mut self, r: &mut Replay<'_>) -> Result<()> {
        let status = r.status();
        let mut flag: c_int = 0;
        while let Some(request) = self.sends.front_mut() {
            mpi!(MPI_Test(request, &raw mut flag, status))?;
            if flag == 0 {
                break;
            }
            self.sends.pop_front();
        }
        while let Some((request, _)) = self.receives.front_mut() {
            mpi!(MPI_Test(request, &raw mut flag, status))?;
            if flag == 0 {
                break;
            }
            if let Some((_, block)) = self.receives.pop_front() {
                r.memory.release(block);
            }
        }
        Ok(())
    }
}

/// The tag of a message: its number, as far as there are tags.
fn tag(m: &Message) -> Result<c_int> {
    Ok(c_int::try_from(m.number % TAGS)?)
}
