//! Call sites of Python programs (`--python`): frames of the interpreter in the place of the native ones that run it.

use foldhash::fast::FixedState;
use st_model::calls::CallId;
use st_model::sites::{Frame, Module, SiteTable};
use st_unwind::{ModuleRecord, Python, PythonFrame, SiteFrame, SiteInterner, UnknownPython};
use std::collections::HashMap;

/// Sites by the interpreter's frames.
type ByFrames = HashMap<Box<[PythonFrame]>, u32, FixedState>;

/// What is known of the interpreter's frames.
#[derive(Debug, Default)]
pub(crate) struct PythonSites {
    interpreter: Option<Python>,
    /// Sites by the native call site, the function called there, and the interpreter's frames.
    known: HashMap<(u32, CallId), ByFrames, FixedState>,
    /// Frames of the call that is being made.
    frames: Vec<PythonFrame>,
}

impl PythonSites {
    /// Reads the frames of the calling thread, and says whether there are any.
    ///
    /// # Errors
    ///
    /// If there is an interpreter whose frames cannot be read.
    pub(crate) fn read(&mut self, depth: usize) -> Result<bool, UnknownPython> {
        self.frames.clear();
        if self.interpreter.is_none() {
            self.interpreter = Python::find()?;
        }
        if let Some(interpreter) = &self.interpreter {
            interpreter.walk(depth, &mut self.frames);
        }
        Ok(!self.frames.is_empty())
    }

    /// The site of the frames that were read last, in a call of a function from a native site, if it has come before.
    pub(crate) fn get(&self, from: (u32, CallId)) -> Option<u32> {
        self.known.get(&from)?.get(self.frames.as_slice()).copied()
    }

    /// Remembers a site for the frames that were read last.
    pub(crate) fn put(&mut self, from: (u32, CallId), site: u32) {
        self.known.entry(from).or_default().insert(self.frames.as_slice().into(), site);
    }

    /// The frames of a site, innermost first: native ones up to the interpreter, those of the interpreter that were read last,
    /// and native ones outside of it.
    ///
    /// # Safety
    ///
    /// The frames that were read last must not have returned.
    pub(crate) unsafe fn frames(
        &self,
        native: &[SiteFrame],
        table: &SiteInterner,
        sites: &mut SiteTable,
    ) -> Vec<Frame> {
        let Some(interpreter) = &self.interpreter else { return Vec::new() };
        let is_interpreter =
            |f: &SiteFrame| table.modules().get(f.module as usize) == Some(interpreter.module());
        let inside = native.iter().take_while(|f| !is_interpreter(f)).count();
        let outside = native.iter().rev().take_while(|f| !is_interpreter(f)).count();
        let mut frames: Vec<Frame> = native[..inside].iter().map(|f| stored(f, table, sites)).collect();
        for frame in &self.frames {
            // SAFETY: the caller's promise.
            let place = unsafe { interpreter.place(frame) };
            let module = sites.module(Module::python(&place.file, &place.function));
            frames.push(Frame { module, offset: place.line.into() });
        }
        let outside = native.len() - outside.min(native.len() - inside);
        frames.extend(native[outside..].iter().map(|f| stored(f, table, sites)));
        frames
    }
}

/// Numbers of modules in a rank's table, by those that they have where frames are interned: a path is looked up once.
#[derive(Default)]
pub(crate) struct ModuleNumbers(Vec<Option<u32>>);

impl ModuleNumbers {
    /// A native frame as the trace has it.
    pub(crate) fn stored(&mut self, frame: &SiteFrame, table: &SiteInterner, sites: &mut SiteTable) -> Frame {
        let at = frame.module as usize;
        if let Some(Some(module)) = self.0.get(at) {
            return Frame { module: *module, offset: frame.offset };
        }
        let frame = stored(frame, table, sites);
        if at < table.modules().len() {
            self.0.resize(table.modules().len(), None);
            self.0[at] = Some(frame.module);
        }
        frame
    }
}

/// A native frame as the trace has it.
fn stored(frame: &SiteFrame, table: &SiteInterner, sites: &mut SiteTable) -> Frame {
    let module = |m: &ModuleRecord| Module { path: m.path.clone(), build_id: m.build_id.clone() };
    let module = table.modules().get(frame.module as usize).map(module).unwrap_or_default();
    Frame { module: sites.module(module), offset: frame.offset }
}
