//! Info objects and texts.
//!
//! SAFETY, for the whole module: strings are the program's own, or the call's output after it has succeeded; MPI ends
//! them with a zero byte.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::CallEncoder;
use st_model::num::{narrow, saturate};
use st_model::values::NULL;
use std::ffi::c_char;

impl CallEncoder<'_> {
    /// Number of an info object.
    pub(crate) fn info(&mut self, handle: u64) -> i64 {
        self.state.infos.number(handle)
    }
    /// Forgets an info object.
    pub(crate) fn free_info(&mut self, handle: u64) {
        self.state.infos.free(handle);
    }
    /// Index of a text; -1 for a null pointer.
    pub(crate) unsafe fn text(&mut self, text: *const c_char) -> i64 {
        unsafe { self.text_within(text, i64::MAX) }
    }
    /// A list of texts.
    pub(crate) unsafe fn texts(&mut self, texts: *const *const c_char, n: i64) {
        let n: usize = saturate(n);
        self.push(narrow(n));
        for i in 0..n {
            let text = unsafe { self.text(*texts.wrapping_add(i)) };
            self.push(text);
        }
    }
    /// As [`CallEncoder::text`]; at most `room` bytes are read.
    pub(crate) unsafe fn text_within(&mut self, text: *const c_char, room: i64) -> i64 {
        let room = saturate::<usize>(room);
        if text.is_null() || room == 0 {
            return NULL;
        }
        let text = text.cast::<u8>();
        let n = (0..room).take_while(|&i| unsafe { *text.wrapping_add(i) } != 0).count();
        let bytes = unsafe { std::slice::from_raw_parts(text, n) };
        let text = String::from_utf8_lossy(bytes).into_owned();
        let maker = self.maker();
        self.state.recorder.text(maker.call, maker.site, text)
    }
}
