//! Making and freeing datatypes and operations.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};

use anyhow::{Context, Result};
use mpi::ffi;
use st_model::calls::names;
use st_model::values::DFLT_DARG;
use st_replay::words::Words;

use crate::replay::call::{apply, integer, mpi};
use crate::replay::state::{Handler, Replay};

type ByExponents = unsafe extern "C" fn(c_int, c_int, *mut ffi::MPI_Datatype) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Type_contiguous, contiguous),
    (names::MPI_Type_vector, vector),
    (names::MPI_Type_create_hvector, hvector),
    (names::MPI_Type_indexed, indexed),
    (names::MPI_Type_create_hindexed, hindexed),
    (names::MPI_Type_create_indexed_block, indexed_block),
    (names::MPI_Type_create_hindexed_block, hindexed_block),
    (names::MPI_Type_create_struct, structure),
    (names::MPI_Type_create_subarray, subarray),
    (names::MPI_Type_create_darray, darray),
    (names::MPI_Type_create_resized, resized),
    (names::MPI_Type_dup, |r, w| {
        let old = r.handles.datatype(w.word()?)?.handle;
        made(r, w, |new| mpi!(MPI_Type_dup(old, new)))
    }),
    (names::MPI_Type_commit, |r, w| {
        let mut datatype = r.handles.datatype(w.word()?)?.handle;
        mpi!(MPI_Type_commit(&raw mut datatype))
    }),
    (names::MPI_Type_free, |r, w| {
        let mut datatype = r.handles.take_type(w.word()?)?;
        mpi!(MPI_Type_free(&raw mut datatype))
    }),
    (names::MPI_Type_create_f90_integer, |r, w| {
        let range = w.int()?;
        made(r, w, |new| mpi!(MPI_Type_create_f90_integer(range, new)))
    }),
    (names::MPI_Type_create_f90_real, |r, w| by_exponents(r, w, ffi::MPI_Type_create_f90_real)),
    (names::MPI_Type_create_f90_complex, |r, w| by_exponents(r, w, ffi::MPI_Type_create_f90_complex)),
    (names::MPI_Type_match_size, match_size),
    (names::MPI_Op_create, |r, w| {
        let commute = w.int()?;
        let mut new = r.k.op_null;
        mpi!(MPI_Op_create(Some(nothing), commute, &raw mut new))?;
        r.handles.bind_op(w.word()?, new);
        Ok(())
    }),
    (names::MPI_Op_free, |r, w| {
        let mut op = r.handles.take_op(w.word()?)?;
        mpi!(MPI_Op_free(&raw mut op))
    }),
];

/// A program's reduction operation, replayed: nobody looks at the result.
unsafe extern "C" fn nothing(
    _in: *mut c_void,
    _inout: *mut c_void,
    _n: *mut c_int,
    _datatype: *mut ffi::MPI_Datatype,
) {
}

/// Makes a datatype, whose index is the next word.
fn made(
    r: &mut Replay<'_>,
    w: &mut Words<'_>,
    make: impl FnOnce(&mut ffi::MPI_Datatype) -> Result<()>,
) -> Result<()> {
    let mut new = r.k.type_null;
    make(&mut new)?;
    r.handles.bind_type(w.word()?, new)
}

fn address(word: i64) -> Result<ffi::MPI_Aint> {
    integer(word)
}

fn addresses(words: &[i64]) -> Result<Vec<ffi::MPI_Aint>> {
    words.iter().map(|&a| address(a)).collect()
}

fn contiguous(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_contiguous(count, old, new)))
}

fn vector(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, length, stride) = (w.int()?, w.int()?, w.int()?);
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_vector(count, length, stride, old, new)))
}

fn hvector(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, length, stride) = (w.int()?, w.int()?, address(w.word()?)?);
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_create_hvector(count, length, stride, old, new)))
}

fn indexed(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, lengths, at) = (w.int()?, w.ints()?, w.ints()?);
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_indexed(count, lengths.as_ptr(), at.as_ptr(), old, new)))
}

fn hindexed(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, lengths, at) = (w.int()?, w.ints()?, addresses(w.list()?)?);
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_create_hindexed(count, lengths.as_ptr(), at.as_ptr(), old, new)))
}

fn indexed_block(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, length, at) = (w.int()?, w.int()?, w.ints()?);
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_create_indexed_block(count, length, at.as_ptr(), old, new)))
}

fn hindexed_block(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, length, at) = (w.int()?, w.int()?, addresses(w.list()?)?);
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Type_create_hindexed_block(count, length, at.as_ptr(), old, new)))
}

fn structure(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (count, lengths, at) = (w.int()?, w.ints()?, addresses(w.list()?)?);
    let mut parts = Vec::new();
    for &index in w.list()? {
        parts.push(r.handles.datatype(index)?.handle);
    }
    made(r, w, |new| mpi!(MPI_Type_create_struct(count, lengths.as_ptr(), at.as_ptr(), parts.as_ptr(), new)))
}

/// The library's constant for a word that numbers it.
fn constant(word: i64, all: &[c_int]) -> Result<c_int> {
    let found = usize::try_from(word).ok().and_then(|i| all.get(i));
    found.copied().with_context(|| format!("{word} stands for no constant"))
}

fn subarray(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let (sizes, parts, starts) = (w.ints()?, w.ints()?, w.ints()?);
    let order = constant(w.word()?, &r.k.order)?;
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| {
        mpi!(MPI_Type_create_subarray(n, sizes.as_ptr(), parts.as_ptr(), starts.as_ptr(), order, old, new))
    })
}

fn darray(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (size, rank, n) = (w.int()?, w.int()?, w.int()?);
    let sizes = w.ints()?;
    let kinds: Vec<c_int> = w.list()?.iter().map(|&d| constant(d, &r.k.distribute)).collect::<Result<_>>()?;
    let mut arguments = w.ints()?;
    for a in &mut arguments {
        if i64::from(*a) == DFLT_DARG {
            *a = r.k.default_argument;
        }
    }
    let grid = w.ints()?;
    let order = constant(w.word()?, &r.k.order)?;
    let old = r.handles.datatype(w.word()?)?.handle;
    made(r, w, |new| {
        mpi!(MPI_Type_create_darray(
            size,
            rank,
            n,
            sizes.as_ptr(),
            kinds.as_ptr(),
            arguments.as_ptr(),
            grid.as_ptr(),
            order,
            old,
            new
        ))
    })
}

fn resized(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let old = r.handles.datatype(w.word()?)?.handle;
    let (lower, extent) = (address(w.word()?)?, address(w.word()?)?);
    made(r, w, |new| mpi!(MPI_Type_create_resized(old, lower, extent, new)))
}

fn by_exponents(r: &mut Replay<'_>, w: &mut Words<'_>, function: ByExponents) -> Result<()> {
    let (precision, range) = (r.k.plain(w.word()?)?, r.k.plain(w.word()?)?);
    made(r, w, |new| apply!(function, (precision, range, new)))
}

fn match_size(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let class = constant(w.word()?, &r.k.type_class)?;
    let size = w.int()?;
    made(r, w, |new| mpi!(MPI_Type_match_size(class, size, new)))
}
