//! Communicators and groups: from handles to the trace's tables.
//!
//! Members are world ranks, found by local calls only (`MPI_Comm_group`, `MPI_Group_translate_ranks`).
//!
//! SAFETY, for the whole module: handles come from the program, which passed them to an MPI function that uses them,
//! or from an MPI function that made them; results go to variables and buffers of the stated lengths.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::constants as k;
use crate::ffi::{Handle, Handles};
use crate::maker::Maker;
use crate::real;
use foldhash::fast::FixedState;
use st_capture::record::RankRecorder;
use st_model::calls::names;
use st_model::num::{self, narrow};
use st_model::objects::{Comm, Group, Name};
use st_model::ranks::RankSeq;
use std::collections::HashMap;
use std::ffi::c_int;

/// What reading calls on a communicator needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommInfo {
    /// The caller's rank in it.
    pub(crate) rank: c_int,
    /// Size of the local group.
    pub(crate) local: i64,
    /// Size of the group that ranks in calls refer to.
    pub(crate) peers: i64,
    pub(crate) inter: bool,
    /// An intracommunicator of exactly the ranks of the world, in whatever order.
    all: bool,
    /// Numbers of the caller's neighbours in the topology, once they were asked for.
    degrees: Option<(i64, i64)>,
}

/// Communicators and groups in use.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    by_handle: HashMap<u64, i64, FixedState>,
    /// The communicator of most calls.
    last: (u64, i64),
    /// By index in the trace's table.
    infos: Vec<CommInfo>,
    /// Open MPI gives equal groups one handle, and counts.
    groups: HashMap<u64, Vec<i64>, FixedState>,
    /// Group of `MPI_COMM_WORLD`, as a handle of our own.
    world: u64,
    /// Its size.
    size: u32,
}

impl Comms {
    /// Registers `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub(crate) fn start(&mut self, size: u32, recorder: &mut RankRecorder) {
        self.size = size;
        let world = Handle::from_raw(k::MPI_COMM_WORLD());
        let mut group = Handle::from_raw(k::MPI_GROUP_NULL());
        unsafe { real::MPI_Comm_group(world, Handles::of(&mut group)) };
        self.world = group.raw();
        for (handle, kind) in [(k::MPI_COMM_WORLD(), "MPI_COMM_WORLD"), (k::MPI_COMM_SELF(), "MPI_COMM_SELF")]
        {
            let (content, info) = self.describe(handle, kind, 0);
            let index = recorder.objects.comms.predefined(content);
            self.set(handle, index, info);
        }
        let empty = recorder.objects.groups.predefined(Group { members: RankSeq::default() });
        self.groups.insert(k::MPI_GROUP_EMPTY(), vec![empty]);
        self.last = (k::MPI_COMM_NULL(), -1);
    }

    /// Registers the two communicators that every process has but a program of sessions does not, and the group of
    /// `mpi://WORLD`.
    pub(crate) fn start_without_world(
        &mut self,
        rank: u32,
        size: u32,
        group: u64,
        recorder: &mut RankRecorder,
    ) {
        self.world = group;
        self.size = size;
        let me: c_int = narrow(rank);
        for (handle, kind, rank, members) in [
            (k::MPI_COMM_WORLD(), "MPI_COMM_WORLD", me, 0..size),
            (k::MPI_COMM_SELF(), "MPI_COMM_SELF", 0, rank..rank + 1),
        ] {
            let local = narrow(members.len());
            let mut seq = RankSeq::default();
            members.for_each(|r| seq.push(i64::from(r)));
            let content = Comm { kind: kind.into(), parent: 0, members: seq, remote: RankSeq::default() };
            let index = recorder.objects.comms.predefined(content);
            self.set(handle, index, CommInfo { rank, local, peers: local, ..CommInfo::default() });
        }
        let empty = recorder.objects.groups.predefined(Group { members: RankSeq::default() });
        self.groups.insert(k::MPI_GROUP_EMPTY(), vec![empty]);
        self.last = (k::MPI_COMM_NULL(), -1);
    }

    /// Index of a communicator, learned now if some unknown function made it; -1 for the null handle.
    #[inline]
    pub(crate) fn index(&mut self, handle: u64, recorder: &mut RankRecorder) -> i64 {
        if self.last.0 == handle {
            return self.last.1;
        }
        let index = self.find(handle, recorder);
        self.last = (handle, index);
        index
    }

    fn find(&mut self, handle: u64, recorder: &mut RankRecorder) -> i64 {
        if handle == k::MPI_COMM_NULL() {
            return -1;
        }
        match self.by_handle.get(&handle) {
            Some(&i) => i,
            None => self.create(handle, 0, Maker::unknown(), recorder),
        }
    }

    /// What is known of the communicator at an index.
    pub(crate) fn info(&self, index: i64) -> CommInfo {
        num::at(&self.infos, index).copied().unwrap_or_default()
    }

    /// Registers a new communicator made from the one with index `parent`.
    pub(crate) fn create(
        &mut self,
        handle: u64,
        parent: i64,
        maker: Maker<'_>,
        recorder: &mut RankRecorder,
    ) -> i64 {
        if handle == k::MPI_COMM_NULL() {
            return -1;
        }
        let (kind, parent) = agreed(maker.function).map_or((maker.function, parent), |kind| (kind, 0));
        let name: Name = recorder.objects.comms.get(parent).map_or(1, |c| c.name);
        let (content, info) = self.describe(handle, kind, name);
        let index = recorder.objects.comms.create(maker.call, maker.site, content);
        self.set(handle, index, info);
        index
    }

    /// Registers a duplicate whose handle is not usable yet.
    pub(crate) fn promise(&mut self, parent: i64, maker: Maker<'_>, recorder: &mut RankRecorder) -> i64 {
        let Some(of) = recorder.objects.comms.get(parent) else { return -1 };
        let content = Comm { kind: maker.function.to_owned(), parent: of.name, ..of.content.clone() };
        let index = recorder.objects.comms.create(maker.call, maker.site, content);
        let info = self.info(parent);
        self.set_info(index, info);
        index
    }

    /// Gives a communicator its handle.
    pub(crate) fn bind(&mut self, handle: u64, index: i64) {
        if handle != k::MPI_COMM_NULL() {
            self.by_handle.insert(handle, index);
            self.last = (handle, index);
        }
    }

    /// Whether the handle is that of a live communicator of all ranks of the world.
    pub(crate) fn is_of_all(&self, handle: u64) -> bool {
        self.by_handle.get(&handle).is_some_and(|i| self.info(*i).all)
    }

    /// Whether the handle is one of a live communicator.
    pub(crate) fn knows(&self, handle: u64) -> bool {
        self.by_handle.contains_key(&handle)
    }

    /// Forgets a freed communicator.
    pub(crate) fn free(&mut self, handle: u64, recorder: &mut RankRecorder) {
        if let Some(index) = self.by_handle.remove(&handle) {
            recorder.objects.comms.free(index);
        }
        self.last = (k::MPI_COMM_NULL(), -1);
    }

    fn set(&mut self, handle: u64, index: i64, info: CommInfo) {
        self.set_info(index, info);
        self.bind(handle, index);
    }

    fn set_info(&mut self, index: i64, info: CommInfo) {
        if let Ok(i) = usize::try_from(index) {
            if self.infos.len() <= i {
                self.infos.resize(i + 1, CommInfo::default());
            }
            self.infos[i] = info;
        }
    }

    /// Asks the library.
    fn describe(&self, handle: u64, kind: &str, parent: Name) -> (Comm, CommInfo) {
        let comm = Handle::from_raw(handle);
        let (mut rank, mut inter) = (0, 0);
        let mut group = Handle::from_raw(k::MPI_GROUP_NULL());
        unsafe {
            real::MPI_Comm_rank(comm, &raw mut rank);
            real::MPI_Comm_test_inter(comm, &raw mut inter);
            real::MPI_Comm_group(comm, Handles::of(&mut group));
        }
        let members = self.members(group.raw());
        let mut remote = RankSeq::default();
        unsafe {
            real::MPI_Group_free(Handles::of(&mut group));
            if inter != 0 {
                real::MPI_Comm_remote_group(comm, Handles::of(&mut group));
                remote = self.members(group.raw());
                real::MPI_Group_free(Handles::of(&mut group));
            }
        }
        let local = narrow(members.len());
        let peers = if inter != 0 { narrow(remote.len()) } else { local };
        // As many members as the world, and no number beyond it.
        let beyond = |r: i64| r >= i64::from(self.size);
        let all = inter == 0 && local == i64::from(self.size) && !members.iter().any(beyond);
        let info = CommInfo { rank, local, peers, inter: inter != 0, all, degrees: None };
        (Comm { kind: kind.to_owned(), parent, members, remote }, info)
    }

    /// World ranks of a group's members; processes that are not in the world (spawned ones, or whose job is connected) go
    /// by the numbers after its last, in the group's order.
    pub(crate) fn members(&self, group: u64) -> RankSeq {
        let group = Handle::from_raw(group);
        let mut n: c_int = 0;
        unsafe { real::MPI_Group_size(group, &raw mut n) };
        let ranks: Vec<c_int> = (0..n).collect();
        let mut world = vec![-1; ranks.len()];
        if n > 0 {
            // The ranks are only read.
            let (from, to) = (ranks.as_ptr().cast_mut(), world.as_mut_ptr());
            unsafe { real::MPI_Group_translate_ranks(group, n, from, Handle::from_raw(self.world), to) };
        }
        let mut seq = RankSeq::default();
        let mut next = i64::from(self.size);
        for rank in world {
            let foreign = rank < 0;
            seq.push(if foreign { next } else { rank.into() });
            next += i64::from(foreign);
        }
        seq
    }

    /// Index of a group, learned now if some unknown function made it; -1 for the null handle.
    pub(crate) fn group(&mut self, handle: u64, recorder: &mut RankRecorder) -> i64 {
        if handle == k::MPI_GROUP_NULL() {
            return -1;
        }
        match self.groups.get(&handle).and_then(|g| g.last()) {
            Some(&i) => i,
            None => self.new_group(handle, Maker::unknown(), recorder),
        }
    }

    /// Registers a new group. Empty groups are all `MPI_GROUP_EMPTY`.
    pub(crate) fn new_group(&mut self, handle: u64, maker: Maker<'_>, recorder: &mut RankRecorder) -> i64 {
        if handle == k::MPI_GROUP_NULL() {
            return -1;
        }
        let members = self.members(handle);
        let index = if members.is_empty() {
            recorder.objects.groups.predefined(Group { members })
        } else {
            recorder.objects.groups.create(maker.call, maker.site, Group { members })
        };
        if handle != k::MPI_GROUP_EMPTY() {
            self.groups.entry(handle).or_default().push(index);
        }
        index
    }

    /// Forgets a freed group.
    pub(crate) fn free_group(&mut self, handle: u64, recorder: &mut RankRecorder) {
        if handle == k::MPI_GROUP_EMPTY() {
            return;
        }
        if let Some(of) = self.groups.get_mut(&handle) {
            if let Some(index) = of.pop() {
                recorder.objects.groups.free(index);
            }
            if of.is_empty() {
                self.groups.remove(&handle);
            }
        }
    }

    /// Number of dimensions of a cartesian topology; 0 without one.
    pub(crate) fn cart_dims(comm: u64) -> i64 {
        let mut n = 0;
        if topology(comm) == k::MPI_CART() {
            unsafe { real::MPI_Cartdim_get(Handle::from_raw(comm), &raw mut n) };
        }
        i64::from(n)
    }

    /// Nodes and edges of a graph topology; 0 without one.
    pub(crate) fn graph_dims(comm: u64) -> (i64, i64) {
        let (mut nodes, mut edges) = (0, 0);
        if topology(comm) == k::MPI_GRAPH() {
            unsafe { real::MPI_Graphdims_get(Handle::from_raw(comm), &raw mut nodes, &raw mut edges) };
        }
        (i64::from(nodes), i64::from(edges))
    }

    /// Number of a rank's neighbours in a graph topology.
    pub(crate) fn graph_degree(comm: u64, rank: c_int) -> i64 {
        let mut n = 0;
        if topology(comm) == k::MPI_GRAPH() {
            unsafe { real::MPI_Graph_neighbors_count(Handle::from_raw(comm), rank, &raw mut n) };
        }
        i64::from(n)
    }

    /// Numbers of neighbours that the caller receives from and sends to in a neighbourhood collective (MPI-3.1, 7.6); 0
    /// without a topology.
    pub(crate) fn degrees(&mut self, comm: u64, index: i64) -> (i64, i64) {
        let info = self.info(index);
        if let Some(known) = info.degrees {
            return known;
        }
        let degrees = match topology(comm) {
            t if t == k::MPI_CART() => {
                let n = 2 * Self::cart_dims(comm);
                (n, n)
            }
            t if t == k::MPI_GRAPH() => {
                let n = Self::graph_degree(comm, info.rank);
                (n, n)
            }
            t if t == k::MPI_DIST_GRAPH() => Self::dist_degrees(comm),
            _ => (0, 0),
        };
        self.set_info(index, CommInfo { degrees: Some(degrees), ..info });
        degrees
    }

    /// In and out-degree of the caller in a distributed graph topology.
    pub(crate) fn dist_degrees(comm: u64) -> (i64, i64) {
        let (mut into, mut out, mut weighted) = (0, 0, 0);
        if topology(comm) == k::MPI_DIST_GRAPH() {
            let comm = Handle::from_raw(comm);
            unsafe {
                real::MPI_Dist_graph_neighbors_count(comm, &raw mut into, &raw mut out, &raw mut weighted)
            };
        }
        (i64::from(into), i64::from(out))
    }
}

/// What both sides of an intercommunicator take for the function that has made it, where each has a local communicator of its own or a
/// function of its own: its name must not tell them apart.
fn agreed(function: &str) -> Option<&'static str> {
    match function {
        names::MPI_Intercomm_create => Some(names::MPI_Intercomm_create),
        names::MPI_Comm_accept | names::MPI_Comm_connect => Some(names::MPI_Comm_connect),
        _ => None,
    }
}

/// The communicator's kind of topology.
fn topology(comm: u64) -> c_int {
    let mut kind: c_int = k::MPI_UNDEFINED();
    if comm != k::MPI_COMM_NULL() {
        unsafe { real::MPI_Topo_test(Handle::from_raw(comm), &raw mut kind) };
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_connection_name_it_alike() {
        assert_eq!(agreed(names::MPI_Comm_accept), agreed(names::MPI_Comm_connect));
        assert!(agreed(names::MPI_Comm_connect).is_some());
        assert_eq!(agreed(names::MPI_Comm_split), None);
    }
}
