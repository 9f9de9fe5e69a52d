//! From the trace's object indices to live handles.
#![expect(unsafe_code, reason = "calls MPI")]

use anyhow::{Context, Result, bail};
use st_model::section::{Section, Tables};
use st_model::values::NULL;
use std::ffi::c_int;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use mpi::ffi;

use crate::replay::buffers::Span;
use crate::replay::call::{integer, mpi};
use crate::replay::constants::{Constants, predefined_op, predefined_type};
use crate::replay::pause::Pause;
use crate::replay::rank_threads::RankThreads;

/// Handles by index, shared by the threads of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    what: &'static str,
    entries: Arc<RwLock<Vec<Option<T>>>>,
    threads: Arc<RankThreads>,
    me: usize,
}

// SAFETY: handles are integers, or addresses at which only MPI looks, which is called by several threads only where it
// provides for that.
unsafe impl<T> Send for Table<T> {}

impl<T: Copy> Table<T> {
    fn new(what: &'static str, threads: &Arc<RankThreads>) -> Self {
        Self { what, entries: Arc::default(), threads: Arc::clone(threads), me: 0 }
    }

    fn entries(&self) -> RwLockWriteGuard<'_, Vec<Option<T>>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, index: i64) -> Option<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(usize::try_from(index).ok()?).copied().flatten()
    }

    /// The live handle at an index. If it is not there, it is waited for as long as another thread may make it.
    pub(crate) fn live(&self, index: i64) -> Result<T> {
        loop {
            let goes_on = self.threads.others_go_on(self.me);
            if let Some(found) = self.get(index) {
                return Ok(found);
            }
            if !goes_on {
                bail!("{} {index} is used but was not made by a replayed call", self.what);
            }
            std::thread::yield_now();
        }
    }

    /// Sets the handle at an index; a null index is left alone.
    pub(crate) fn set(&self, index: i64, value: T) {
        let Ok(i) = usize::try_from(index) else { return };
        let mut entries = self.entries();
        if entries.len() <= i {
            entries.resize(i + 1, None);
        }
        entries[i] = Some(value);
    }

    /// Removes the handle at an index and returns it.
    pub(crate) fn take(&self, index: i64) -> Result<T> {
        let value = self.live(index)?;
        let mut entries = self.entries();
        if let Some(entry) = usize::try_from(index).ok().and_then(|i| entries.get_mut(i)) {
            *entry = None;
        }
        Ok(value)
    }
}

/// A live communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comm {
    pub(crate) handle: ffi::MPI_Comm,
    /// Size of the (local) group.
    pub(crate) members: usize,
    /// Size of the group that ranks in calls refer to.
    pub(crate) peers: usize,
}

/// A live datatype.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub(crate) handle: ffi::MPI_Datatype,
    pub(crate) size: i64,
    pub(crate) extent: i64,
    lower: i64,
    bytes: i64,
}

impl Type {
    /// What `count` elements touch.
    pub(crate) fn span(&self, count: i64) -> Result<Span> {
        self.span_from(0, count)
    }

    /// What `count` elements touch, the first of them `first` extents from the buffer address.
    pub(crate) fn span_from(&self, first: i64, count: i64) -> Result<Span> {
        Span::elements(first, count, self.extent, self.lower, self.bytes)
    }
}

/// All live objects of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Handles<'a> {
    tables: &'a Tables,
    rank: u32,
    k: Constants,
    pause: Pause,
    /// What stands for `MPI_COMM_WORLD`, at 0, if something does.
    world: Table<ffi::MPI_Comm>,
    comms: Table<Comm>,
    groups: Table<ffi::MPI_Group>,
    types: Table<Type>,
    ops: Table<ffi::MPI_Op>,
}

// SAFETY: as for `Table`; the constants are MPI's own addresses.
unsafe impl Send for Handles<'_> {}

impl<'a> Handles<'a> {
    /// The text at an index.
    pub(crate) fn text(&self, index: i64) -> Option<&'a str> {
        Tables::find(&self.tables.texts, index, self.rank).map(|t| t.content.0.as_str())
    }

    /// No objects yet but the predefined ones, which are found by name when they are first used.
    pub(crate) fn new(
        section: &'a Section,
        rank: u32,
        k: Constants,
        pause: Pause,
        threads: &Arc<RankThreads>,
    ) -> Self {
        Self {
            tables: &section.tables,
            rank,
            k,
            pause,
            world: Table::new("communicator", threads),
            comms: Table::new("communicator", threads),
            groups: Table::new("group", threads),
            types: Table::new("datatype", threads),
            ops: Table::new("operation", threads),
        }
    }

    /// What stands for `MPI_COMM_WORLD`, if that is not what the ranks are ranks in.
    pub(crate) fn set_world(&self, world: ffi::MPI_Comm) {
        self.world.set(0, world);
    }

    /// The same objects for another thread.
    pub(crate) fn on_thread(&self, me: usize) -> Self {
        let mut all = self.clone();
        (all.comms.me, all.groups.me, all.types.me, all.ops.me) = (me, me, me, me);
        all
    }

    /// A communicator; null for the null index.
    pub(crate) fn comm(&mut self, index: i64) -> Result<Comm> {
        if let Some(comm) = self.comms.get(index) {
            return Ok(comm);
        }
        if index == NULL {
            return Ok(Comm { handle: self.k.comm_null, members: 0, peers: 0 });
        }
        let kind = Tables::find(&self.tables.comms, index, self.rank).map(|c| c.content.kind.as_str());
        let handle = match kind {
            Some("MPI_COMM_WORLD") => self.world.get(0).unwrap_or(self.k.comm_world),
            Some("MPI_COMM_SELF") => self.k.comm_self,
            _ => return self.comms.live(index),
        };
        self.bind_comm(index, handle)?;
        self.comms.live(index)
    }

    /// A communicator that has just been made gets its index.
    pub(crate) fn bind_comm(&mut self, index: i64, handle: ffi::MPI_Comm) -> Result<()> {
        if handle == self.k.comm_null {
            return Ok(());
        }
        let _hidden = self.pause.hide();
        let (mut inter, mut local, mut remote): (c_int, c_int, c_int) = (0, 0, 0);
        mpi!(MPI_Comm_test_inter(handle, &raw mut inter))?;
        mpi!(MPI_Comm_size(handle, &raw mut local))?;
        if inter != 0 {
            mpi!(MPI_Comm_remote_size(handle, &raw mut remote))?;
        }
        let peers = if inter == 0 { local } else { remote };
        if let Some(recorded) = Tables::find(&self.tables.comms, index, self.rank) {
            let wanted = recorded.content.peers().len();
            if u64::try_from(peers) != Ok(wanted) {
                bail!(
                    "{} has {peers} members here but had {wanted}: start the ranks on the nodes as they were",
                    recorded.label()
                );
            }
        }
        let comm = Comm { handle, members: usize::try_from(local)?, peers: usize::try_from(peers)? };
        self.comms.set(index, comm);
        Ok(())
    }

    /// Takes a communicator that is about to be freed.
    pub(crate) fn take_comm(&mut self, index: i64) -> Result<Comm> {
        let comm = self.comm(index)?;
        if index != NULL {
            self.comms.take(index)?;
        }
        Ok(comm)
    }

    /// A group; null for the null index.
    pub(crate) fn group(&self, index: i64) -> Result<ffi::MPI_Group> {
        if index == NULL {
            return Ok(self.k.group_null);
        }
        let known = Tables::find(&self.tables.groups, index, self.rank);
        match self.groups.get(index) {
            None if known.is_some_and(|g| g.content.members.is_empty()) => Ok(self.k.group_empty),
            _ => self.groups.live(index),
        }
    }

    /// A group that has just been made gets its index.
    pub(crate) fn bind_group(&mut self, index: i64, handle: ffi::MPI_Group) {
        self.groups.set(index, handle);
    }

    /// Takes a group that is about to be freed.
    pub(crate) fn take_group(&mut self, index: i64) -> Result<ffi::MPI_Group> {
        let group = self.group(index)?;
        if self.groups.get(index).is_some() {
            self.groups.take(index)?;
        }
        Ok(group)
    }

    /// A datatype; null for the null index.
    pub(crate) fn datatype(&mut self, index: i64) -> Result<Type> {
        if let Some(datatype) = self.types.get(index) {
            return Ok(datatype);
        }
        if index == NULL {
            return Ok(Type { handle: self.k.type_null, size: 0, extent: 0, lower: 0, bytes: 0 });
        }
        let Some(known) = Tables::find(&self.tables.types, index, self.rank) else {
            return self.types.live(index);
        };
        let kind = &known.content.kind;
        match predefined_type(kind, self.k.type_null) {
            Some(handle) => self.bind_type(index, handle)?,
            None if known.content.words.is_empty() && known.content.parts.is_empty() => {
                bail!("this MPI has no datatype {kind}")
            }
            None => {}
        }
        self.types.live(index)
    }

    /// `MPI_BYTE`, for arguments that are significant elsewhere only.
    pub(crate) fn insignificant_type(&self) -> Type {
        Type { handle: self.k.byte, size: 1, extent: 1, lower: 0, bytes: 1 }
    }

    /// An operation for arguments that are significant elsewhere only.
    pub(crate) fn insignificant_op(&self) -> Result<ffi::MPI_Op> {
        predefined_op("MPI_BOR", self.k.op_null).context("this MPI has no MPI_BOR")
    }

    /// A datatype that has just been made gets its index.
    pub(crate) fn bind_type(&mut self, index: i64, handle: ffi::MPI_Datatype) -> Result<()> {
        if index == NULL || handle == self.k.type_null {
            return Ok(());
        }
        let _hidden = self.pause.hide();
        let (mut lb, mut extent, mut lower, mut bytes): (ffi::MPI_Aint, _, _, _) = (0, 0, 0, 0);
        let mut size = 0;
        mpi!(MPI_Type_get_extent(handle, &raw mut lb, &raw mut extent))?;
        mpi!(MPI_Type_get_true_extent(handle, &raw mut lower, &raw mut bytes))?;
        mpi!(MPI_Type_size_x(handle, &raw mut size))?;
        let datatype = Type {
            handle,
            size: integer(size)?,
            extent: integer(extent)?,
            lower: integer(lower)?,
            bytes: integer(bytes)?,
        };
        self.types.set(index, datatype);
        Ok(())
    }

    /// Takes a datatype that is about to be freed.
    pub(crate) fn take_type(&mut self, index: i64) -> Result<ffi::MPI_Datatype> {
        let datatype = self.datatype(index)?;
        if index != NULL {
            self.types.take(index)?;
        }
        Ok(datatype.handle)
    }

    /// A reduction operation; null for the null index.
    pub(crate) fn op(&mut self, index: i64) -> Result<ffi::MPI_Op> {
        if let Some(op) = self.ops.get(index) {
            return Ok(op);
        }
        if index == NULL {
            return Ok(self.k.op_null);
        }
        let kind = Tables::find(&self.tables.ops, index, self.rank).map(|o| o.content.kind.as_str());
        if let Some(handle) = kind.and_then(|kind| predefined_op(kind, self.k.op_null)) {
            self.ops.set(index, handle);
        }
        self.ops.live(index)
    }

    /// An operation that has just been made gets its index.
    pub(crate) fn bind_op(&mut self, index: i64, handle: ffi::MPI_Op) {
        self.ops.set(index, handle);
    }

    /// Takes an operation that is about to be freed.
    pub(crate) fn take_op(&mut self, index: i64) -> Result<ffi::MPI_Op> {
        let op = self.op(index)?;
        if index != NULL {
            self.ops.take(index)?;
        }
        Ok(op)
    }
}
