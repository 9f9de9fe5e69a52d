//! Numbers of events and states, and what they are called.
//!
//! Source: the numbers that Extrae gives them, which Paraver's configurations look for.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use st_model::calls::Kind;

use crate::matters::is_collective;

/// Types of events: functions of MPI by what they do, call sites, and what collective operations move.
pub(super) const SITE: u32 = 70_000_001;
pub(super) const SENT: u32 = 50_100_001;
pub(super) const RECEIVED: u32 = 50_100_002;
pub(super) const COMM: u32 = 50_100_004;

const POINT_TO_POINT: u32 = 50_000_001;
const COLLECTIVE: u32 = 50_000_002;
const OTHER: u32 = 50_000_003;
const ONE_SIDED: u32 = 50_000_004;
const FILES: u32 = 50_000_005;

pub(super) const RUNNING: u32 = 1;
const STATES: [&str; 17] = [
    "Idle",
    "Running",
    "Not created",
    "Waiting a message",
    "Blocking Send",
    "Synchronization",
    "Test/Probe",
    "Scheduling and Fork/Join",
    "Wait/WaitAll",
    "Blocked",
    "Immediate Send",
    "Immediate Receive",
    "I/O",
    "Group Communication",
    "Tracing Disabled",
    "Others",
    "Send Receive",
];

/// The type of event and the state of a function.
pub(super) fn of(kind: Kind, begins_only: bool) -> (u32, u32) {
    match kind {
        Kind::Send | Kind::SyncSend => (POINT_TO_POINT, if begins_only { 10 } else { 4 }),
        Kind::Receive | Kind::MatchedReceive => (POINT_TO_POINT, if begins_only { 11 } else { 3 }),
        Kind::SendReceive => (POINT_TO_POINT, 16),
        Kind::Probe | Kind::MatchedProbe => (POINT_TO_POINT, 6),
        Kind::Complete => (POINT_TO_POINT, 8),
        Kind::Restart | Kind::Free | Kind::Buffer => (POINT_TO_POINT, 15),
        Kind::Barrier => (COLLECTIVE, 5),
        kind if is_collective(kind) => (COLLECTIVE, 13),
        Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap => (ONE_SIDED, 15),
        Kind::Read | Kind::Write => (FILES, 12),
        _ => (OTHER, 15),
    }
}

/// Names of values, by type of event.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeMap<u32, BTreeMap<u64, String>>);

impl Values {
    pub(super) fn name(&mut self, of: u32, value: u64, name: impl FnOnce() -> String) {
        self.0.entry(of).or_default().entry(value).or_insert_with(name);
    }

    /// Writes the file of names.
    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        writeln!(
            out,
            "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\nSTATES"
        )?;
        STATES.iter().enumerate().try_for_each(|(i, name)| writeln!(out, "{i}    {name}"))?;
        for (of, values) in &self.0 {
            let name = match *of {
                POINT_TO_POINT => "MPI Point-to-point",
                COLLECTIVE => "MPI Collective Comm",
                OTHER => "MPI Other",
                ONE_SIDED => "MPI One-sided",
                FILES => "MPI I/O",
                SITE => "Caller at level 1",
                COMM => "Communicator in MPI Global OP",
                _ => continue,
            };
            writeln!(out, "\n\nEVENT_TYPE\n9    {of}    {name}\nVALUES\n0      End")?;
            values.iter().try_for_each(|(value, name)| writeln!(out, "{value}      {name}"))?;
        }
        for (of, name) in [(SENT, "Send Size in MPI Global OP"), (RECEIVED, "Recv Size in MPI Global OP")] {
            writeln!(out, "\n\nEVENT_TYPE\n1    {of}    {name}")?;
        }
        Ok(())
    }
}
