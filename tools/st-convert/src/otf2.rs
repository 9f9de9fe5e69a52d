//! The OTF2 library, found when it is needed, and what reading and writing have in common.
//!
//! Source: the headers of OTF2 3.0. Types of flags and kinds are bytes there, references 32-bit numbers.
#![expect(unsafe_code, reason = "loads a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

use anyhow::{Result, anyhow};
use libloading::Library;

/// Names of the library, newest first.
const NAMES: [&str; 4] = [
    "libopen-trace-format2.so.12",
    "libopen-trace-format2.so.11",
    "libopen-trace-format2.so.10",
    "libopen-trace-format2.so",
];

/// Name of the archive in its directory, as Score-P has it.
pub(crate) const NAME: &str = "traces";
/// The property that has the name of the program.
pub(crate) const PROGRAM: &str = "ST::PROGRAM";
/// The property that says which communicators are between two groups, as `NUMBER:MEMBERS` of the first group, which come before those
/// of the second.
pub(crate) const SIDES: &str = "ST::INTERCOMMUNICATORS";

/// The property that says where strings are that hold the lines of what records have no place for: the number of the first piece, how many
/// stand before the calls and how many behind them, and when the archive begins, ns since the trace's zero.
pub(crate) const LINES: &str = "ST::LINES";
/// Attributes of calls that have lines: a text of parameters, and the number of the call site. Others have the names of parameters.
pub(crate) const PARAMETERS: &str = "ST::PARAMETERS";
pub(crate) const SITE: &str = "ST::SITE";
/// `OTF2_TYPE_INT64` and `OTF2_TYPE_STRING`.
pub(crate) const INT64: u8 = 8;
pub(crate) const STRING: u8 = 11;

/// `OTF2_PARADIGM_COMPILER`: functions of the program.
pub(crate) const COMPILER: u8 = 2;

/// `OTF2_SUCCESS`.
const SUCCESS: c_int = 0;

/// What the library hands out and takes back.
pub(crate) type Handle = *mut c_void;

/// Declares the functions that are called, by their C names behind `OTF2_`.
macro_rules! functions {
    ($($field:ident = $name:literal ( $($argument:ty),* ) -> $result:ty;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(library: &Library) -> Result<Self> {
                Ok(Self {$(
                    $field: {
                        let name = concat!("OTF2_", $name);
                        // SAFETY: the type is that of the function's declaration in the library's headers, which do not change
                        // it within a major version; the library stays loaded as long as `Functions` (see `Archive`).
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> $result>(name.as_bytes())
                        };
                        *found.map_err(|_| anyhow::anyhow!("the OTF2 library has no {name}: it is too old"))?
                    },
                )*})
            }
        }
    };
}

pub(crate) use functions;

/// One end of a message as a record has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    pub(crate) rank: u32,
    pub(crate) comm: u32,
    pub(crate) tag: u32,
    pub(crate) bytes: u64,
}

/// What a collective operation's record has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) kind: u8,
    pub(crate) comm: u32,
    pub(crate) root: u32,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// An access to a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) win: u32,
    /// Position in the window's communicator.
    pub(crate) remote: u32,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) id: u64,
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opening {
    /// `OTF2_IoAccessMode`.
    pub(crate) access: u8,
    /// `OTF2_IoCreationFlag`.
    pub(crate) creation: u32,
    /// `OTF2_IoStatusFlag`.
    pub(crate) status: u32,
}

/// An event of a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    Enter(u32),
    Leave(u32),
    Send(Peer),
    Isend(Peer, u64),
    IsendComplete(u64),
    IrecvRequest(u64),
    Recv(Peer),
    Irecv(Peer, u64),
    Cancelled(u64),
    CollectiveBegin,
    CollectiveEnd(Operation),
    CollectiveRequest(u64),
    CollectiveComplete(Operation, u64),
    /// Windows, by number.
    WinCreate(u32),
    WinDestroy(u32),
    Put(Access),
    Get(Access),
    /// With its `OTF2_RmaAtomicType`.
    Atomic(Access, u8),
    /// Window and number of an access.
    AccessComplete(u32, u64),
    /// Of an access that is complete here, but not where it goes to.
    AccessLocal(u32, u64),
    /// Of one that has been complete here before.
    AccessRemote(u32, u64),
    /// A synchronisation of all members of a window begins.
    FenceBegin,
    /// Window.
    FenceEnd(u32),
    /// Window, `OTF2_RmaSyncLevel`, number of the group of the others.
    GroupSync(u32, u32, u32),
    /// Window, position of the other rank, or all bits of all, `OTF2_LockType`.
    RequestLock(u32, u32, u8),
    ReleaseLock(u32, u32),
    /// Files that are open, by number.
    FileOpen {
        handle: u32,
        mode: Opening,
    },
    FileClose(u32),
    OperationBegin {
        handle: u32,
        mode: u8,
        flags: u32,
        bytes: u64,
        id: u64,
    },
    /// File and number of an operation.
    OperationIssued(u32, u64),
    /// File, bytes and number.
    OperationComplete(u32, u64, u64),
}

/// Neither string nor group nor communicator, nor one rank but all: all bits are set.
pub(crate) const UNDEFINED: u32 = u32::MAX;
/// `OTF2_RMA_SYNC_LEVEL_PROCESS`: one waits for others.
pub(crate) const SYNC_PROCESS: u32 = 1;
/// The same and `OTF2_RMA_SYNC_LEVEL_MEMORY`: what has been accessed is complete, too.
pub(crate) const SYNC_ALL: u32 = 3;

/// Loads the library.
///
/// # Errors
///
/// If it is not there.
pub(crate) fn library() -> Result<Library> {
    // SAFETY: the library runs no code of its own when it is loaded but that of its C runtime.
    let found = NAMES.into_iter().find_map(|name| unsafe { Library::new(name) }.ok());
    found.ok_or_else(|| {
        anyhow!(
            "the OTF2 library (libopen-trace-format2.so) is not installed; Debian and Ubuntu have it in \
             libopen-trace-format2-dev; elsewhere, put its directory into LD_LIBRARY_PATH"
        )
    })
}

/// A text as C has it.
pub(crate) fn text(text: &str) -> CString {
    // What is behind a NUL nobody would see.
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Hears of errors: user data, file, line, function, code, what is printed of it.
pub(crate) type OnError =
    unsafe extern "C" fn(Handle, *const c_char, u64, *const c_char, c_int, *const c_char, Handle) -> c_int;

/// `OTF2_Error_GetDescription` of a library.
pub(crate) type Describe = unsafe extern "C" fn(c_int) -> *const c_char;

/// # Errors
///
/// With what a library that is loaded says of the code, unless that is success.
pub(crate) fn check(code: c_int, describe: Describe) -> Result<()> {
    if code == SUCCESS {
        return Ok(());
    }
    // SAFETY: the function takes any code, and gives a text of the library's, or none.
    let what = NonNull::new(unsafe { describe(code) }.cast_mut());
    // SAFETY: texts of the library end with NUL and live as long as it.
    let what = what.map(|what| unsafe { CStr::from_ptr(what.as_ptr()) }.to_string_lossy().into_owned());
    Err(anyhow!("the OTF2 library says: {}", what.unwrap_or_else(|| format!("error {code}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_said_in_the_words_of_the_library() {
        let library = library().unwrap();
        // SAFETY: the type is that of the function's declaration in the library's headers, and the library stays loaded.
        let describe = unsafe { *library.get::<Describe>(b"OTF2_Error_GetDescription").unwrap() };
        let told = |code| check(code, describe).map_err(|e| e.to_string());
        assert_eq!(told(SUCCESS), Ok(()));
        let text = told(83).unwrap_err();
        assert!(text.starts_with("the OTF2 library says: ") && !text.contains("83"), "{text}");
    }
}
