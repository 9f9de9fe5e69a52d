//! Forms of values, in STRUCT.

use std::collections::HashMap;

use super::bytes::{get_i64, get_index, get_str, get_u32, get_u64, put_i64, put_str, put_u64, put_usize};
use super::error::{DecodeError, Field as _};
use st_model::expr::Expr;
use st_model::form::{Codes, Grid};
use st_model::section::{Form, Section};

/// The symbolic forms in use, in the order in which streams first have them.
pub(super) fn forms_of(s: &Section) -> Vec<Form> {
    let mut forms = Vec::new();
    for t in &s.threads {
        let params = t.params.iter().flatten().flat_map(|p| p.lens.iter().chain([&p.values]));
        for e in t.counts.iter().chain(params) {
            if e.form != Form::Absolute && !forms.contains(&e.form) {
                forms.push(e.form);
            }
        }
    }
    forms
}

/// 0 and the grid and factors; 1 and the grid and a bit per dimension that wraps, outermost highest; 2 exclusive or;
/// 3 and the text of an expression; 4 and the kind of a histogram's codes; 5 for what is predicted.
pub(super) fn put_form(out: &mut Vec<u8>, form: Form) {
    let grid = |out: &mut Vec<u8>, kind, grid: Grid| {
        put_u64(out, kind);
        let (middle, inner) = grid.extents();
        put_u64(out, middle.into());
        put_u64(out, inner.into());
    };
    match form {
        Form::Affine { grid: g, factors } => {
            grid(out, 0, g);
            factors.iter().for_each(|f| put_i64(out, *f));
        }
        Form::Shift { grid: g, wrap } => {
            grid(out, 1, g);
            put_u64(out, wrap.iter().fold(0, |bits, w| bits << 1 | u64::from(*w)));
        }
        Form::Xor | Form::Absolute => put_u64(out, 2),
        Form::User(e) => {
            put_u64(out, 3);
            put_str(out, &e.to_string());
        }
        Form::Histogram(codes) => {
            put_u64(out, 4);
            put_usize(out, Codes::ALL.into_iter().position(|c| c == codes).unwrap_or(0));
        }
        Form::Predicted => put_u64(out, 5),
    }
}

pub(super) fn get_form(src: &mut &[u8]) -> Result<Form, DecodeError> {
    let kind = get_u64(src)?;
    if kind == 2 {
        return Ok(Form::Xor);
    }
    if kind == 3 {
        let text = get_str(src).field("expression")?;
        let parsed = Expr::parse(&text, &HashMap::new());
        return parsed.map(Form::User).map_err(|_| DecodeError::Invalid("no expression")).field("expression");
    }
    if kind == 5 {
        return Ok(Form::Predicted);
    }
    if kind == 4 {
        let at = get_index(src, Codes::ALL.len()).field("codes")?;
        return Ok(Form::Histogram(Codes::ALL[at as usize]));
    }
    let (middle, inner) = (get_u32(src).field("grid")?, get_u32(src).field("grid")?);
    let grid = Grid::new(middle, inner).ok_or(DecodeError::Invalid("no grid of ranks")).field("grid")?;
    match kind {
        0 => {
            let mut factors = [0; 3];
            for f in &mut factors {
                *f = get_i64(src).field("factors")?;
            }
            Ok(Form::Affine { grid, factors })
        }
        1 => {
            let bits = get_index(src, 8).field("wrap")?;
            Ok(Form::Shift { grid, wrap: [bits & 4 != 0, bits & 2 != 0, bits & 1 != 0] })
        }
        _ => Err(DecodeError::Invalid("unknown form of values")),
    }
}
