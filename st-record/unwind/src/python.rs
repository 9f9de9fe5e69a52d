//! Frames of the Python interpreter on the calling thread: file, function and line of what called into native code.
//!
//! They are read where the interpreter keeps them, without its lock, which a thread that is in an MPI call has mostly given
//! back (mpi4py releases it): no other thread changes the frames of one that is not running Python code, and what they
//! refer to (code objects, their names) lives as long as they do. No function of the interpreter is called but two that only
//! read: which state is this thread's, and which line an instruction belongs to.
//!
//! Where fields lie depends on the version; [`LAYOUTS`] has them as the headers of each release series say (`offsetof`, x86-64,
//! builds with a global lock and without reference tracing). Other versions are refused by name.

use crate::modules::ModuleMap;
use crate::sites::ModuleRecord;
use crate::stack::{read_word, word};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

/// Frames walked over at most, those of generators and of the interpreter's own included.
const WALK_LIMIT: usize = 10_000;
/// Characters of a file's or function's name that are kept.
const NAME_LIMIT: u64 = 4096;

/// Where a version keeps what is read here: offsets in bytes.
#[derive(Debug)]
struct Layout {
    /// Release series.
    version: (u32, u32),
    /// The innermost frame in a thread's state: behind which pointers.
    innermost: &'static [u64],
    /// In a frame: the caller's frame.
    previous: u64,
    /// In a frame: its code object.
    code: u64,
    /// In a frame: how far it has come.
    position: Position,
    /// In a frame: a byte that tells frames of the interpreter's own, which stand for native code, by this value.
    native: Option<(u64, u8)>,
    /// In a code object: name of its file, of its function, and its first line.
    file: u64,
    function: u64,
    first_line: u64,
    /// In a text: where characters begin, of texts that are ASCII and of others.
    characters: (u64, u64),
}

/// How far a frame has come.
#[derive(Debug)]
enum Position {
    /// A number at this offset, of units of so many bytes.
    Index(u64, i32),
    /// An address at this offset, of an instruction; instructions begin at that offset in the code object.
    Address(u64, u64),
}

/// Checked by compiling a program against the headers of 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0.
const LAYOUTS: [Layout; 5] = [
    Layout {
        version: (3, 9),
        innermost: &[24],
        previous: 24,
        code: 32,
        position: Position::Index(104, 1),
        native: None,
        file: 104,
        function: 112,
        first_line: 40,
        characters: (48, 72),
    },
    Layout {
        version: (3, 10),
        innermost: &[24],
        previous: 24,
        code: 32,
        position: Position::Index(96, 2),
        native: None,
        file: 104,
        function: 112,
        first_line: 40,
        characters: (48, 72),
    },
    Layout {
        version: (3, 11),
        innermost: &[56, 8],
        previous: 48,
        code: 32,
        position: Position::Address(56, 184),
        native: None,
        file: 112,
        function: 128,
        first_line: 72,
        characters: (48, 72),
    },
    Layout {
        version: (3, 12),
        innermost: &[56, 0],
        previous: 8,
        code: 0,
        position: Position::Address(56, 192),
        native: Some((70, 3)),
        file: 112,
        function: 128,
        first_line: 68,
        characters: (40, 56),
    },
    Layout {
        version: (3, 13),
        innermost: &[72],
        previous: 8,
        code: 0,
        position: Position::Address(56, 200),
        native: Some((70, 3)),
        file: 112,
        function: 128,
        first_line: 68,
        characters: (40, 56),
    },
];

/// A Python whose frames cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPython {
    /// What the interpreter says of itself: `3.15.0 (main, …`.
    version: String,
}

impl fmt::Display for UnknownPython {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.split(" (").next().unwrap_or_default();
        let known: Vec<_> = LAYOUTS.iter().map(|l| format!("{}.{}", l.version.0, l.version.1)).collect();
        write!(f, "Python {version}: its frames cannot be read, only those of Python {}", known.join(", "))
    }
}

impl std::error::Error for UnknownPython {}

impl UnknownPython {
    /// Nothing, if the frames of an interpreter can be read that says this of itself (`sys.version`).
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        layout(version).is_none().then(|| Self { version: version.to_owned() })
    }
}

/// A frame: a code object and how far it has come in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PythonFrame {
    /// Address of the code object.
    code: u64,
    /// Bytes from its first instruction.
    instruction: i32,
    /// Address of the function's name and first line, so that another function is noticed whose code object has come to lie
    /// where a deleted one was.
    function: u64,
    first_line: i32,
}

/// What a frame is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PythonPlace {
    /// File, as the interpreter was given it: mostly absolute.
    pub file: String,
    /// Function, with the classes and functions around it from Python 3.11 on; `<module>` outside of any.
    pub function: String,
    /// Line, from 1.
    pub line: u32,
}

/// `Py_GetVersion`.
type Version = unsafe extern "C" fn() -> *const c_char;
/// `PyGILState_GetThisThreadState`: the state of the calling thread, null if it has none.
type ThisThread = unsafe extern "C" fn() -> *mut c_void;
/// `PyCode_Addr2Line`: the line that an instruction (bytes from the first) of a code object belongs to.
type Line = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// The Python interpreter of this process.
#[derive(Debug)]
pub struct Python {
    layout: &'static Layout,
    this_thread: ThisThread,
    line: Line,
    module: ModuleRecord,
}

impl Python {
    /// The interpreter that the process has loaded with its symbols for all to see, if it has; it may come later.
    ///
    /// # Errors
    ///
    /// If its version is not known here.
    pub fn find() -> Result<Option<Self>, UnknownPython> {
        let (Some(version), Some(this_thread), Some(line)) =
            (symbol(c"Py_GetVersion"), symbol(c"PyGILState_GetThisThreadState"), symbol(c"PyCode_Addr2Line"))
        else {
            return Ok(None);
        };
        let module = ModuleMap::load().find(this_thread.addr() as u64).map(|(_, m)| m.record.clone());
        let Some(module) = module else { return Ok(None) };
        // SAFETY: functions of these types by these names in every version of the interpreter's interface.
        let (version, this_thread, line) = unsafe {
            (
                CStr::from_ptr(std::mem::transmute::<*mut c_void, Version>(version)()),
                std::mem::transmute::<*mut c_void, ThisThread>(this_thread),
                std::mem::transmute::<*mut c_void, Line>(line),
            )
        };
        let version = version.to_string_lossy().into_owned();
        let layout = layout(&version).ok_or(UnknownPython { version })?;
        Ok(Some(Self { layout, this_thread, line, module }))
    }

    /// The module that the interpreter's own native frames lie in.
    #[must_use]
    pub fn module(&self) -> &ModuleRecord {
        &self.module
    }

    /// Appends the frames of the calling thread, innermost first, at most `limit`. None if it runs no Python.
    pub fn walk(&self, limit: usize, out: &mut Vec<PythonFrame>) {
        // SAFETY: reads a variable of the thread; needs no lock.
        let state = unsafe { (self.this_thread)() }.expose_provenance() as u64;
        let mut frame = state;
        for offset in self.layout.innermost {
            frame = pointer(frame, *offset);
        }
        let end = out.len() + limit;
        for _ in 0..WALK_LIMIT {
            if frame == 0 || out.len() >= end {
                return;
            }
            if !self.is_native(frame) {
                out.extend(self.frame(frame));
            }
            frame = pointer(frame, self.layout.previous);
        }
    }

    fn is_native(&self, frame: u64) -> bool {
        // The byte lies in an aligned word that is part of the frame.
        self.layout.native.is_some_and(|(at, value)| byte(frame, at) == value)
    }

    fn frame(&self, frame: u64) -> Option<PythonFrame> {
        let l = self.layout;
        let code = Some(pointer(frame, l.code)).filter(|c| *c != 0)?;
        let instruction = match l.position {
            Position::Index(at, unit) => int(frame, at).saturating_mul(unit),
            Position::Address(at, first) => {
                i32::try_from(pointer(frame, at).wrapping_sub(code.wrapping_add(first))).unwrap_or(-1)
            }
        };
        let (function, first_line) = (pointer(code, l.function), int(code, l.first_line));
        Some(PythonFrame { code, instruction, function, first_line })
    }

    /// What a frame is called that [`Python::walk`] has just found on the calling thread.
    ///
    /// # Safety
    ///
    /// The frame must not have returned.
    #[must_use]
    pub unsafe fn place(&self, frame: &PythonFrame) -> PythonPlace {
        let code = word(frame.code);
        // SAFETY: the frame's code object is alive, and the function only reads it.
        let line = unsafe { (self.line)(std::ptr::with_exposed_provenance_mut(code), frame.instruction) };
        let line = if line > 0 { line } else { frame.first_line };
        PythonPlace {
            file: self.text(pointer(frame.code, self.layout.file)),
            function: self.text(frame.function),
            line: line.max(0).cast_unsigned(),
        }
    }

    /// The characters of a text object: its length, a word of flags (behind 2 bits, 3 of how many bytes a character has; then whether
    /// it is compact, and ASCII), and the characters.
    fn text(&self, text: u64) -> String {
        if text == 0 {
            return String::new();
        }
        let length = pointer(text, 16).min(NAME_LIMIT);
        let flags = pointer(text, 32);
        let (kind, ascii) = ((flags >> 2) & 7, (flags >> 6) & 1 == 1);
        let first = if ascii { self.layout.characters.0 } else { self.layout.characters.1 };
        let character = |i: u64| {
            let bytes = (0..kind).map(|b| u32::from(byte(text, first + i * kind + b)) << (8 * b));
            char::from_u32(bytes.sum()).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        (0..length).map(character).collect()
    }
}

fn layout(version: &str) -> Option<&'static Layout> {
    // Builds without the global lock have other objects.
    let (numbers, rest) = version.split_once(' ').unwrap_or((version, ""));
    let mut parts = numbers.split('.').map(|part| part.trim_end_matches('+').parse().ok());
    let series = (parts.next()??, parts.next()??);
    LAYOUTS.iter().find(|l| l.version == series).filter(|_| !rest.starts_with("experimental free-threading"))
}

/// A symbol of any loaded module.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up.
    Some(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }).filter(|s| !s.is_null())
}

/// The word at an aligned offset of an object of the interpreter; 0 of no object.
fn pointer(object: u64, offset: u64) -> u64 {
    if object == 0 {
        return 0;
    }
    // SAFETY: an object that the thread's frames refer to, and an offset in it by the version's layout.
    unsafe { read_word(object.wrapping_add(offset)) }
}

/// A number of 32 bits in an object.
fn int(object: u64, offset: u64) -> i32 {
    let word = pointer(object, offset & !7) >> (8 * (offset & 4));
    let [a, b, c, d, ..] = word.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// A byte of an object.
fn byte(object: u64, offset: u64) -> u8 {
    let [low, ..] = (pointer(object, offset & !7) >> (8 * (offset & 7))).to_le_bytes();
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        let series = |v: &str| layout(v).map(|l| l.version);
        assert_eq!(series("3.11.2 (main, Nov 30 2024, 21:22:50) [GCC 12.2.0]"), Some((3, 11)));
        assert_eq!(series("3.13.0+ (heads/3.13) [GCC]"), Some((3, 13)));
        assert_eq!(series("3.13.0 experimental free-threading build (main) [GCC]"), None);
        assert_eq!(series("3.14.0 (main)"), None);
        assert_eq!(series(""), None);
        let unknown = UnknownPython { version: "3.15.1 (main, x) [GCC]".into() };
        assert_eq!(
            unknown.to_string(),
            "Python 3.15.1: its frames cannot be read, only those of Python 3.9, 3.10, 3.11, 3.12, 3.13"
        );
    }

    #[test]
    fn texts_are_read_by_their_flags() {
        let python = Python {
            layout: &LAYOUTS[2],
            this_thread: no_thread,
            line: no_line,
            module: ModuleRecord { path: String::new(), build_id: String::new() },
        };
        // A compact ASCII text of three characters as 3.11 has it: flags are interned 2 bits, kind 3, compact, ASCII, ready.
        let flags = |kind: u64, ascii: u64| (kind << 2) | (1 << 5) | (ascii << 6) | (1 << 7);
        let mut words = [0_u64; 12];
        (words[2], words[4]) = (3, flags(1, 1));
        words[6] = u64::from_le_bytes(*b"abcdefgh");
        let at = (&raw const words).expose_provenance() as u64;
        assert_eq!(python.text(at), "abc");
        let mut wide = [0_u64; 12];
        (wide[2], wide[4]) = (2, flags(2, 0));
        wide[9] = 0x0142_00e9;
        let at = (&raw const wide).expose_provenance() as u64;
        assert_eq!(python.text(at), "éł");
        assert_eq!(python.text(0), "");
        let mut none = Vec::new();
        python.walk(64, &mut none);
        assert!(none.is_empty());
    }

    unsafe extern "C" fn no_thread() -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe extern "C" fn no_line(_: *mut c_void, _: c_int) -> c_int {
        0
    }

    #[test]
    fn there_is_no_interpreter_in_this_process() {
        assert!(Python::find().unwrap().is_none());
    }
}
