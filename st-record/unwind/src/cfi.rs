//! Call frame information of mapped modules: compiled to rules, or evaluated in full for the forms they lack.
//!
//! Source: DWARF 5, section 6.4; System V ABI AMD64 supplement, section 3.7 (register numbers); Linux Standard Base
//! Core 5.0, sections 10.6.1 and 10.6.2 (`.eh_frame`, `.eh_frame_hdr`).

use crate::modules::{Module, bytes};
use crate::rules::{Cfa, Check, Cursor, Rule, SavedFrame, Trail};
use crate::stack::Window;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, EvaluationResult, LittleEndian,
    Location, Operation, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression,
    UnwindSection, UnwindTableRow, Value,
};

type Reader = EndianSlice<'static, LittleEndian>;
type Frames = EhFrame<Reader>;

const FRAME_POINTER: Register = Register(6);
const STACK_POINTER: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);

/// Keeps rows as lists of the rules that they have. With room for all registers in each, as gimli keeps them if not told otherwise, its
/// functions have 4 KiB of stack for every row that they copy, and programs call MPI on stacks of 16.
struct Lists;

impl UnwindContextStorage<usize> for Lists {
    type Rules = Vec<(Register, RegisterRule<usize>)>;
    type Stack = Vec<UnwindTableRow<usize, Self>>;
}

/// Reads the call frame information of modules.
pub(crate) struct FrameInfo {
    context: UnwindContext<usize, Lists>,
}

impl Default for FrameInfo {
    fn default() -> Self {
        Self { context: UnwindContext::new_in() }
    }
}

impl std::fmt::Debug for FrameInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameInfo").finish_non_exhaustive()
    }
}

/// The row of call frame information for an address.
struct Row<'a> {
    row: &'a UnwindTableRow<usize, Lists>,
    frames: Frames,
    encoding: Encoding,
    function: u64,
    is_signal: bool,
}

/// What a rule was compiled from.
pub(crate) struct Compiled {
    pub(crate) rule: Rule,
    /// Start of the function's code, as its frame description gives it.
    pub(crate) function: u64,
}

impl FrameInfo {
    /// The rule at an address; nothing if the module does not describe it.
    pub(crate) fn compile(&mut self, module: &Module, lookup: u64) -> Option<Compiled> {
        let row = self.row(module, lookup)?;
        Some(Compiled { rule: row.rule(), function: row.function })
    }
    /// Steps out of a frame by full evaluation and returns the return address.
    pub(crate) fn step(
        &mut self,
        module: &Module,
        cursor: &mut Cursor,
        window: &Window,
        trail: &mut Trail,
    ) -> Option<u64> {
        let row = self.row(module, cursor.lookup)?;
        Evaluator { row: &row, cursor: *cursor, window, trail }.step(cursor)
    }
    fn row(&mut self, module: &Module, lookup: u64) -> Option<Row<'_>> {
        let header_at = module.frame_header.clone()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_at.start);
        // SAFETY: the header lies in a segment of a module that holds a live return address, hence is mapped.
        let header = EhFrameHdr::new(unsafe { bytes(header_at) }, LittleEndian);
        let header = header.parse(&bases, 8).ok()?;
        let frames_at = header.eh_frame_ptr().direct().ok()?;
        // SAFETY: from the start of the frames to the end of their segment the same module is mapped.
        let frames = unsafe { bytes(frames_at..module.segment_end(frames_at)?) };
        let frames: Frames = EhFrame::new(frames, LittleEndian);
        let bases = bases.set_eh_frame(frames_at);
        let fde = header.table()?.fde_for_address(&frames, &bases, lookup, Frames::cie_from_offset).ok()?;
        let (encoding, function) = (fde.cie().encoding(), fde.initial_address());
        let is_signal = fde.is_signal_trampoline();
        let row = fde.unwind_info_for_address(&frames, &bases, &mut self.context, lookup).ok()?;
        Some(Row { row, frames, encoding, function, is_signal })
    }
}

impl Row<'_> {
    /// The compact form of the row.
    fn rule(&self) -> Rule {
        match self.row.register(RETURN_ADDRESS) {
            Some(RegisterRule::Undefined) | None => return Rule::plain(Cfa::End),
            _ if self.is_signal => return Rule::plain(Cfa::Complex),
            Some(RegisterRule::Offset(-8)) => {}
            Some(_) => return Rule::plain(Cfa::Complex),
        }
        self.simple().unwrap_or(Rule::plain(Cfa::Complex))
    }
    fn simple(&self) -> Option<Rule> {
        let (cfa, cfa_offset) = match *self.row.cfa() {
            CfaRule::RegisterAndOffset { register: STACK_POINTER, offset } => (Cfa::Stack, offset),
            CfaRule::RegisterAndOffset { register: FRAME_POINTER, offset } => (Cfa::Frame, offset),
            CfaRule::RegisterAndOffset { .. } => return None,
            CfaRule::Expression(e) => match self.operations(&e)?.as_slice() {
                [
                    Operation::RegisterOffset { register: FRAME_POINTER, offset, .. },
                    Operation::Deref { size: 8, .. },
                ] => (Cfa::SavedArgument, *offset),
                _ => return None,
            },
        };
        let (saved_frame, frame_offset) = match self.row.register(FRAME_POINTER) {
            None | Some(RegisterRule::SameValue) => (SavedFrame::Kept, 0),
            Some(RegisterRule::Offset(offset)) => (SavedFrame::AtCfa, offset),
            Some(RegisterRule::Expression(e)) => match self.operations(&e)?.as_slice() {
                [Operation::RegisterOffset { register: FRAME_POINTER, offset, .. }] => {
                    (SavedFrame::AtFrame, *offset)
                }
                _ => return None,
            },
            Some(_) => return None,
        };
        let short = |offset: i64| i32::try_from(offset).ok();
        Some(Rule { cfa, saved_frame, cfa_offset: short(cfa_offset)?, frame_offset: short(frame_offset)? })
    }
    fn operations(&self, expression: &UnwindExpression<usize>) -> Option<Vec<Operation<Reader>>> {
        let mut operations = expression.get(&self.frames).ok()?.operations(self.encoding);
        let mut out = Vec::new();
        while let Some(operation) = operations.next().ok()? {
            out.push(operation);
        }
        Some(out)
    }
}

/// Evaluates all rules of a row in the frame that the cursor is at.
struct Evaluator<'a> {
    row: &'a Row<'a>,
    cursor: Cursor,
    window: &'a Window,
    trail: &'a mut Trail,
}

impl Evaluator<'_> {
    fn step(&mut self, out: &mut Cursor) -> Option<u64> {
        let cfa = match *self.row.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(register)?.wrapping_add_signed(offset)
            }
            CfaRule::Expression(e) => self.expression(&e, None)?,
        };
        let return_address = self.restored(RETURN_ADDRESS, cfa)??;
        let stack_pointer = self.restored(STACK_POINTER, cfa)?.unwrap_or(cfa);
        let mut next = Cursor { stack_pointer, ..self.cursor };
        match self.row.row.register(FRAME_POINTER) {
            None | Some(RegisterRule::SameValue) => {}
            rule => {
                let slot = match rule? {
                    RegisterRule::Offset(offset) => cfa.wrapping_add_signed(offset),
                    RegisterRule::Expression(e) => self.expression(&e, Some(cfa))?,
                    _ => return None,
                };
                next.restore_frame(slot, self.window)?;
            }
        }
        // A signal interrupts between instructions: its return address is the next one to run, not behind a call.
        next.lookup = if self.row.is_signal { return_address } else { return_address.wrapping_sub(1) };
        next.frame_noted |= self.cursor.frame_noted && next.frame_slot == self.cursor.frame_slot;
        *out = next;
        Some(return_address)
    }
    /// Value of the caller's register; `Some(None)` if the row has no rule for it.
    fn restored(&mut self, register: Register, cfa: u64) -> Option<Option<u64>> {
        let Some(rule) = self.row.row.register(register) else { return Some(None) };
        let value = match rule {
            RegisterRule::SameValue => self.register(register)?,
            RegisterRule::Offset(offset) => self.read(cfa.wrapping_add_signed(offset))?,
            RegisterRule::ValOffset(offset) => cfa.wrapping_add_signed(offset),
            RegisterRule::Register(other) => self.register(other)?,
            RegisterRule::Expression(e) => {
                let slot = self.expression(&e, Some(cfa))?;
                self.read(slot)?
            }
            RegisterRule::ValExpression(e) => self.expression(&e, Some(cfa))?,
            _ => return None,
        };
        Some(Some(value))
    }
    fn register(&mut self, register: Register) -> Option<u64> {
        match register {
            STACK_POINTER => Some(self.cursor.stack_pointer),
            FRAME_POINTER => {
                self.cursor.note_frame(self.trail);
                Some(self.cursor.frame_pointer)
            }
            RETURN_ADDRESS => Some(self.cursor.lookup.wrapping_add(1)),
            _ => None,
        }
    }
    fn read(&mut self, slot: u64) -> Option<u64> {
        let value = self.window.read(slot)?;
        self.trail.checks.push(Check { slot, value });
        Some(value)
    }
    fn expression(&mut self, expression: &UnwindExpression<usize>, cfa: Option<u64>) -> Option<u64> {
        let expression = expression.get(&self.row.frames).ok()?;
        let mut evaluation = expression.evaluation(self.row.encoding);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.read(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                _ => None,
            },
            _ => None,
        }
    }
}
