//! Call sites in Python: what [`PythonSites`](crate::python::PythonSites) is asked, and what the recorder is told.

use crate::message::warn;
use crate::state::State;
use st_model::calls::CallId;
use std::sync::PoisonError;

impl State {
    /// The site of the call of a function that the calling thread makes from Python, `None` if it runs none.
    #[cold]
    pub(crate) fn python_site(&mut self, native: u32, call: CallId) -> Option<u32> {
        match self.python.read(self.settings.stack_depth) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(e) => {
                self.settings.python = false;
                self.unknown_python = Some(e);
                self.say_unknown_python();
                return None;
            }
        }
        let known = self.python.get((native, call));
        if known.is_some() {
            return known;
        }
        let table = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let record = table.sites().get(native as usize)?;
        // SAFETY: the frames were read above, and this thread has not returned to them since.
        let mut frames = unsafe { self.python.frames(&record.frames, &table, &mut self.recorder.sites) };
        frames.truncate(self.settings.stack_depth);
        let site = self.recorder.site(call, frames);
        self.python.put((native, call), site);
        Some(site)
    }

    /// Says that Python's frames are not recorded, if they were to be: once for all ranks.
    pub(crate) fn say_unknown_python(&mut self) {
        if self.output.is_some()
            && let Some(e) = self.unknown_python.take()
            && self.rank == 0
        {
            warn(&format!("--python: {e}; call sites are those of native code"));
        }
    }
}
