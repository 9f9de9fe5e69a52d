//! Windows and files.
//!
//! SAFETY, for the whole module: as in [`crate::comms`].
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::CallEncoder;
use crate::constants as k;
use crate::ffi::{File, Handle, Handles};
use crate::maker::Maker;
use crate::real;
use crate::state::State;
use st_model::calls::names;
use st_model::objects::SharedObject;
use std::ffi::c_int;

/// Content of a window or file that a communicator's members made; of one that some unknown function made, from its own
/// group.
fn content(
    state: &mut State,
    kind: &str,
    comm: Option<u64>,
    group: impl FnOnce(&mut Handle),
) -> SharedObject {
    if let Some(comm) = comm {
        let index = state.comms.index(comm, &mut state.recorder);
        if let Some(of) = state.recorder.objects.comms.get(index) {
            return SharedObject { kind: kind.into(), comm: of.name, members: of.content.members.clone() };
        }
    }
    let mut own = Handle::from_raw(k::MPI_GROUP_NULL());
    group(&mut own);
    let members = state.comms.members(own.raw());
    unsafe { real::MPI_Group_free(Handles::of(&mut own)) };
    SharedObject { kind: kind.into(), comm: 0, members }
}

fn new_win(state: &mut State, comm: Option<u64>, handle: u64, maker: Maker<'_>) -> i64 {
    if handle == k::MPI_WIN_NULL() {
        return -1;
    }
    let of = |group: &mut Handle| unsafe {
        real::MPI_Win_get_group(Handle::from_raw(handle), Handles::of(group));
    };
    let content = content(state, maker.function, comm, of);
    let index = state.wins.create(handle, maker, content, &mut state.recorder.objects.wins);
    if maker.function.starts_with(names::MPI_Win_create_dynamic) {
        state.wins.has_addresses(index);
    }
    index
}

fn new_file(state: &mut State, comm: Option<u64>, handle: u64, maker: Maker<'_>) -> i64 {
    if handle == k::MPI_FILE_NULL() {
        return -1;
    }
    let of = |group: &mut Handle| unsafe {
        real::MPI_File_get_group(File::from_raw(handle), Handles::of(group));
    };
    let content = content(state, maker.function, comm, of);
    state.files.create(handle, maker, content, &mut state.recorder.objects.files)
}

impl CallEncoder<'_> {
    /// Index of a window, learned now if some unknown function made it; -1 for the null handle.
    pub(crate) fn win(&mut self, handle: u64) -> i64 {
        self.state.wins.find(handle).unwrap_or_else(|| new_win(self.state, None, handle, Maker::unknown()))
    }
    /// Registers a window made on a communicator.
    pub(crate) fn new_win(&mut self, comm: u64, handle: u64) -> i64 {
        let maker = self.maker();
        new_win(self.state, Some(comm), handle, maker)
    }
    /// Forgets a window.
    pub(crate) fn free_win(&mut self, handle: u64) {
        self.state.wins.free(handle, &mut self.state.recorder.objects.wins);
    }
    /// Index of a file, learned now if some unknown function made it; -1 for the null handle.
    pub(crate) fn file(&mut self, handle: u64) -> i64 {
        self.state.files.find(handle).unwrap_or_else(|| new_file(self.state, None, handle, Maker::unknown()))
    }
    /// Registers a file opened on a communicator.
    pub(crate) fn new_file(&mut self, comm: u64, handle: u64) -> i64 {
        let maker = self.maker();
        new_file(self.state, Some(comm), handle, maker)
    }
    /// Forgets a file.
    pub(crate) fn free_file(&mut self, handle: u64) {
        self.state.files.free(handle, &mut self.state.recorder.objects.files);
    }
    /// A displacement in a target's window: in a dynamic one relative to the first that the caller used there.
    pub(crate) fn target_disp(&mut self, win: u64, target: c_int, disp: i64) -> i64 {
        let index = self.win(win);
        self.state.wins.displacement(index, target, disp)
    }
}
