//! Datatypes and reduction operations: from handles to the trace's tables.
//!
//! SAFETY, for the whole module: as in [`crate::comms`].
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::constants as k;
use crate::ffi::Handle;
use crate::maker::Maker;
use crate::real;
use foldhash::fast::FixedState;
use st_capture::record::RankRecorder;
use st_model::calls::{CallTable, Kind, Meaning, Object};
use st_model::objects::{Name, Op, Type};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};

/// Datatypes and operations in use.
#[derive(Debug, Default)]
pub(crate) struct Types {
    by_handle: HashMap<u64, i64, FixedState>,
    /// Further references that the library handed out (`MPI_Type_get_contents`).
    references: HashMap<u64, u32, FixedState>,
    /// The type of most calls.
    last: (u64, i64),
    ops: HashMap<u64, i64, FixedState>,
    /// Standard names of predefined handles, not all of which are registered.
    predefined: HashMap<u64, &'static str, FixedState>,
    predefined_ops: HashMap<u64, &'static str, FixedState>,
}

impl Types {
    /// Learns the predefined handles.
    pub(crate) fn start(&mut self) {
        self.predefined = k::predefined("datatypes", k::MPI_DATATYPE_NULL());
        self.predefined_ops = k::predefined("operations", k::MPI_OP_NULL());
        self.last = (k::MPI_DATATYPE_NULL(), -1);
    }

    /// Index of a type, learned now if it is predefined or some unknown function made it; -1 for the null handle.
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
        if handle == k::MPI_DATATYPE_NULL() {
            return -1;
        }
        if let Some(&i) = self.by_handle.get(&handle) {
            return i;
        }
        let index = match self.predefined.get(&handle) {
            Some(name) => {
                recorder.objects.types.predefined(content(handle, (*name).to_owned(), Vec::new(), Vec::new()))
            }
            None => {
                // Made by a function without a row; the library may know a name for it.
                let mut t = content(handle, own_name(handle), Vec::new(), Vec::new());
                t.words = vec![t.size, t.lb, t.extent];
                let maker = Maker::unknown();
                recorder.objects.types.create(maker.call, maker.site, t)
            }
        };
        self.by_handle.insert(handle, index);
        index
    }

    /// Registers the type that a constructor made, from the words of its call.
    pub(crate) fn create(
        &mut self,
        handle: u64,
        maker: Maker<'_>,
        call: &[i64],
        recorder: &mut RankRecorder,
    ) -> i64 {
        // Functions that look types up return one that is already there.
        let lookup = CallTable::builtin().get(maker.call).is_some_and(|row| row.kind == Kind::TypeLookup);
        if self.predefined.contains_key(&handle) || handle == k::MPI_DATATYPE_NULL() {
            return self.index(handle, recorder);
        }
        if let Some(&i) = self.by_handle.get(&handle).filter(|_| lookup) {
            return i;
        }
        let (mut words, mut parts): (Vec<i64>, Vec<Name>) = (Vec::new(), Vec::new());
        let mut rest = call.iter().copied();
        for slot in CallTable::builtin().slots(maker.call) {
            let is_type = slot.meaning == Meaning::Ref(Object::Type);
            let n = if slot.list { rest.next().unwrap_or(0) } else { 1 };
            if slot.list && !is_type {
                words.push(n);
            }
            for _ in 0..n {
                let w = rest.next().unwrap_or(0);
                if !is_type {
                    words.push(w);
                } else if slot.name != "newtype" {
                    parts.push(recorder.objects.types.get(w).map_or(0, |t| t.name));
                }
            }
        }
        let t = content(handle, maker.function.to_owned(), words, parts);
        let index = recorder.objects.types.create(maker.call, maker.site, t);
        self.by_handle.insert(handle, index);
        self.last = (handle, index);
        index
    }

    /// Forgets a freed type.
    pub(crate) fn free(&mut self, handle: u64, recorder: &mut RankRecorder) {
        if let Some(n) = self.references.get_mut(&handle) {
            *n -= 1;
            if *n == 0 {
                self.references.remove(&handle);
            }
            return;
        }
        if let Some(index) = self.by_handle.remove(&handle) {
            recorder.objects.types.free(index);
        }
        self.last = (k::MPI_DATATYPE_NULL(), -1);
    }

    /// Whether the handle is one of a registered type.
    pub(crate) fn knows(&self, handle: u64) -> bool {
        self.by_handle.contains_key(&handle)
    }

    /// Notes one more reference to a type that a program made.
    pub(crate) fn retain(&mut self, handle: u64) {
        if handle != k::MPI_DATATYPE_NULL() && !self.predefined.contains_key(&handle) {
            *self.references.entry(handle).or_default() += 1;
        }
    }

    /// Index of an operation; -1 for the null handle.
    pub(crate) fn op(&mut self, handle: u64, recorder: &mut RankRecorder) -> i64 {
        if handle == k::MPI_OP_NULL() {
            return -1;
        }
        if let Some(&i) = self.ops.get(&handle) {
            return i;
        }
        let index = match self.predefined_ops.get(&handle) {
            // REPLACE and NO_OP, which are for one-sided communication, do not commute.
            Some(name) => {
                let commutes = !matches!(*name, "MPI_REPLACE" | "MPI_NO_OP");
                recorder.objects.ops.predefined(Op { kind: (*name).to_owned(), commutes })
            }
            None => {
                let maker = Maker::unknown();
                recorder.objects.ops.create(
                    maker.call,
                    maker.site,
                    Op { kind: "unknown".into(), commutes: true },
                )
            }
        };
        self.ops.insert(handle, index);
        index
    }

    /// Registers a user's operation.
    pub(crate) fn new_op(
        &mut self,
        handle: u64,
        commutes: bool,
        maker: Maker<'_>,
        recorder: &mut RankRecorder,
    ) -> i64 {
        let op = Op { kind: maker.function.to_owned(), commutes };
        let index = recorder.objects.ops.create(maker.call, maker.site, op);
        self.ops.insert(handle, index);
        index
    }

    /// Forgets a freed operation.
    pub(crate) fn free_op(&mut self, handle: u64, recorder: &mut RankRecorder) {
        if let Some(index) = self.ops.remove(&handle) {
            recorder.objects.ops.free(index);
        }
    }
}

/// A type's content; size and extent from the library.
fn content(handle: u64, kind: String, words: Vec<i64>, parts: Vec<Name>) -> Type {
    let t = Handle::from_raw(handle);
    let (mut size, mut lb, mut extent) = (0, 0, 0);
    unsafe {
        real::MPI_Type_size_x(t, &raw mut size);
        real::MPI_Type_get_extent_x(t, &raw mut lb, &raw mut extent);
    }
    Type { kind, words, parts, size, lb, extent }
}

/// The name that the library or the program gave the type.
fn own_name(handle: u64) -> String {
    let mut text: [c_char; 512] = [0; 512];
    let mut n = 0;
    unsafe { real::MPI_Type_get_name(Handle::from_raw(handle), text.as_mut_ptr(), &raw mut n) };
    let name = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    if name.is_empty() { "unknown".into() } else { name }
}
