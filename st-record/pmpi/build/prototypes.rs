//! The functions of MPI with the types of their parameters, from the standard's list and what libraries add to it. No MPI's header is
//! read: handles and pointers to them have types of our own (`src/ffi.rs`), the same for every family.

use crate::left_out::is_left_out;
use proc_macro2::TokenStream;
use quote::quote;
use st_model::calls::{ADDED, CallTable, STANDARD, names};
use std::collections::BTreeMap;

/// How a parameter or result is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// An `int`.
    Int,
    /// An integer of eight bytes.
    Long,
    Double,
    Handle,
    /// A file's handle, a pointer in every family.
    File,
    /// Whatever fits a register, which is not looked at.
    Word,
    Buffer,
    Status,
    Text,
    /// Pointers to one or several of them.
    Ints,
    Longs,
    Handles,
    Files,
}

impl Type {
    /// In Rust.
    pub(crate) fn tokens(self) -> TokenStream {
        match self {
            Self::Int => quote!(::std::ffi::c_int),
            Self::Long => quote!(i64),
            Self::Double => quote!(f64),
            Self::Handle => quote!(Handle),
            Self::File => quote!(File),
            Self::Word => quote!(usize),
            Self::Buffer => quote!(*mut ::std::ffi::c_void),
            Self::Status => quote!(*mut Status),
            Self::Text => quote!(*mut ::std::ffi::c_char),
            Self::Ints => quote!(*mut ::std::ffi::c_int),
            Self::Longs => quote!(*mut i64),
            Self::Handles => quote!(Handles),
            Self::Files => quote!(Files),
        }
    }

    /// Of a parameter of the list, `NAME=KIND[LENGTH]:WORD...`; `large`: in the form for large counts.
    fn of(parameter: &str, large: bool) -> Result<Self, String> {
        let mut words = parameter.split(':');
        let (_, kind) =
            words.next().and_then(|w| w.split_once('=')).ok_or_else(|| format!("{parameter}: no kind"))?;
        let (kind, array) = kind.split_once('[').map_or((kind, false), |(kind, _)| (kind, true));
        let words: Vec<_> = words.collect();
        let is = |word| words.contains(&word);
        let pointer = array || is("pointer") || (is("out") || is("inout")) && !is("value");
        let one_or = |one, several| if pointer { several } else { one };
        Ok(match kind {
            "BUFFER" => Self::Buffer,
            "STATUS" => Self::Status,
            "STRING" => Self::Text,
            "STRING_ARRAY" | "STRING_2DARRAY" | "ARGUMENT_LIST" => Self::Buffer,
            "COMMUNICATOR" | "DATATYPE" | "ERRHANDLER" | "GROUP" | "INFO" | "MESSAGE" | "OPERATION"
            | "REQUEST" | "SESSION" | "WINDOW" => one_or(Self::Handle, Self::Handles),
            "FILE" => one_or(Self::File, Self::Files),
            "ARGUMENT_COUNT" | "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" | "C_BUFFER" | "C_BUFFER2"
            | "EXTRA_STATE" | "EXTRA_STATE2" | "FUNCTION" | "LOGICAL_VOID" | "POLYFUNCTION" => Self::Word,
            // The tools' interface: objects, which are pointers in every family, places of them, and functions.
            "CVAR"
            | "EVENT_CB_FUNCTION"
            | "EVENT_DROP_CB_FUNCTION"
            | "EVENT_FREE_CB_FUNCTION"
            | "EVENT_INSTANCE"
            | "EVENT_REGISTRATION"
            | "PVAR"
            | "PVAR_SESSION"
            | "TOOLS_ENUM"
            | "TOOL_MPI_OBJ" => Self::Word,
            "ALLOC_MEM_NUM_BYTES"
            | "DISPLACEMENT"
            | "DISPLACEMENT_NNI"
            | "GENERIC_DTYPE_COUNT"
            | "LOCATION_SMALL"
            | "NUM_BYTES"
            | "OFFSET"
            | "POLYDISPLACEMENT_AINT_COUNT"
            | "POLYDISPOFFSET"
            | "POLYDTYPE_PACK_SIZE"
            | "POLYDTYPE_STRIDE_BYTES"
            | "POLYLOCATION"
            | "RMA_DISPLACEMENT_NNI"
            | "TOOLS_TICK_COUNT"
            | "WINDOW_SIZE"
            | "WIN_ATTACH_SIZE"
            | "XFER_NUM_ELEM"
            | "XFER_NUM_ELEM_NNI" => one_or(Self::Long, Self::Longs),
            kind if large && kind.starts_with("POLY") => one_or(Self::Long, Self::Longs),
            _ => one_or(Self::Int, Self::Ints),
        })
    }
}

/// A function.
pub(crate) struct Function {
    /// Types of its parameters.
    pub(crate) params: Vec<Type>,
    /// Type of its result.
    pub(crate) result: Type,
}

/// All functions that are recorded, by name.
pub(crate) fn functions() -> Result<BTreeMap<String, Function>, String> {
    let mut listed = BTreeMap::new();
    for line in STANDARD.lines().chain(ADDED.lines()).filter(|line| !line.starts_with('#')) {
        if let Some((name, params)) =
            line.split_once(' ').or_else(|| (!line.is_empty()).then_some((line, "")))
        {
            listed.insert(name, params);
        }
    }
    let mut functions = BTreeMap::new();
    for (name, params) in &listed {
        functions.insert((*name).to_owned(), function(name, params, false)?);
        // Whatever counts has a form for large counts.
        if params.contains("=POLY") {
            functions.insert(format!("{name}_c"), function(name, params, true)?);
        }
    }
    for row in CallTable::builtin().rows() {
        if !functions.contains_key(&row.name) {
            let params = listed.get(row.base()).ok_or_else(|| format!("{} is in no list", row.name))?;
            functions.insert(row.name.clone(), function(&row.name, params, false)?);
        }
    }
    functions.retain(|name, _| !is_left_out(name));
    Ok(functions)
}

fn function(name: &str, params: &str, large: bool) -> Result<Function, String> {
    let has = |p: &&str| large || !p.ends_with(":large");
    let params = params.split_whitespace().filter(has).map(|p| Type::of(p, large));
    let result = if name == names::MPI_Wtime || name == names::MPI_Wtick { Type::Double } else { Type::Int };
    Ok(Function { params: params.collect::<Result<_, _>>().map_err(|e| format!("{name}: {e}"))?, result })
}

/// All of them as text, a line each, for the tests.
pub(crate) fn text(functions: &BTreeMap<String, Function>) -> String {
    let line = |(name, f): (&String, &Function)| {
        let types = f.params.iter().fold(format!("{:?}", f.result), |all, one| format!("{all} {one:?}"));
        format!("{name} {types}\n")
    };
    functions.iter().map(line).collect()
}
