//! The wrappers: for every function two exported symbols (`MPI_x`, `PMPI_x`) over one body. The symbols themselves are jumps
//! (`src/jumps.rs` says where to).

use crate::body;
use crate::prototypes::Function;
use crate::signature::{arguments, pointer};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use st_model::calls::{CallTable, FIRST_UNKNOWN};
use std::collections::BTreeMap;

/// What is generated, as Rust text.
pub(crate) struct Text {
    /// The names that wrappers forward to, and functions that call them.
    pub(crate) real: String,
    /// The wrappers.
    pub(crate) wrappers: String,
    /// The exported symbols.
    pub(crate) exports: String,
}

/// All wrappers, and what they forward to.
pub(crate) fn generate(functions: &BTreeMap<String, Function>) -> Result<Text, String> {
    let table = CallTable::builtin();
    let (mut names, mut items, mut real) = (Vec::new(), Vec::new(), Vec::new());
    let mut unknown: Vec<String> = Vec::new();
    let (mut exported, mut symbols, mut jumps) = (Vec::new(), Vec::new(), Vec::new());
    for (base, f) in functions {
        let (name, slot) = (format!("P{base}"), names.len());
        names.push(name.clone());
        real.push(forward(&format_ident!("{base}"), slot, f));
        let public = names.len();
        names.push(base.clone());
        let body = match table.by_name(base) {
            Some(row) if !row.properties.opaque => body::recorded(row, f)?,
            Some(row) => body::opaque(base, row.id.0, f),
            None => {
                let id = usize::from(FIRST_UNKNOWN) + unknown.len();
                unknown.push(base.clone());
                body::opaque(base, u16::try_from(id).map_err(|e| e.to_string())?, f)
            }
        };
        items.push(body);
        for (symbol, slot) in [(name.as_str(), slot), (base.as_str(), public)] {
            items.push(wrapper(symbol, base, slot, f));
            let wrapper = format_ident!("wrap_{symbol}");
            exported.push(quote!(Exported { slot: #slot, wrapper: erased!(#wrapper) }));
            symbols.push(format_ident!("{symbol}"));
            jumps.push(export(symbol, jumps.len()));
        }
    }
    let n = names.len();
    let c_names = names.iter().map(|s| format!("{s}\0"));
    let real = quote! {
        /// Number of names that wrappers forward to.
        pub(crate) const N: usize = #n;
        /// The names, NUL-terminated.
        pub(crate) static NAMES: [&str; N] = [#(#c_names),*];
        /// Functions without a row in the call table: number `FIRST_UNKNOWN` + index.
        pub(crate) static UNKNOWN: &[&str] = &[#(#unknown),*];
        #(#real)*
    };
    let m = jumps.len();
    let wrappers = quote! {
        #(#items)*
        /// Number of exported symbols.
        pub(crate) const M: usize = #m;
        /// What is behind them.
        pub(crate) static EXPORTED: [Exported; M] = [#(#exported),*];
    };
    let exports = quote! {
        #(#jumps)*
        /// The symbols.
        pub(super) static SYMBOLS: [unsafe extern "C-unwind" fn(); super::M] = [#(#symbols),*];
    };
    Ok(Text { real: real.to_string(), wrappers: wrappers.to_string(), exports: exports.to_string() })
}

fn forward(base: &proc_macro2::Ident, slot: usize, f: &Function) -> TokenStream {
    let (decl, args) = arguments(f);
    let (pointer, result) = (pointer(f), f.result.tokens());
    quote! {
        pub(crate) unsafe fn #base(#decl) -> #result {
            unsafe { ::std::mem::transmute::<usize, #pointer>(next(#slot))(#args) }
        }
    }
}

/// What records a symbol's calls.
fn wrapper(name: &str, base: &str, slot: usize, f: &Function) -> TokenStream {
    let (decl, args) = arguments(f);
    let (pointer, result) = (pointer(f), f.result.tokens());
    let (name, body) = (format_ident!("wrap_{name}"), format_ident!("body_{base}"));
    let pass = if f.params.is_empty() { quote!() } else { quote!(, #args) };
    quote! {
        unsafe extern "C-unwind" fn #name(#decl) -> #result {
            unsafe { #body(::std::mem::transmute::<usize, #pointer>(next(#slot)) #pass) }
        }
    }
}

/// The symbol: it leaves all arguments where they are.
fn export(name: &str, i: usize) -> TokenStream {
    let name = format_ident!("{name}");
    quote! {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn #name() {
            ::std::arch::naked_asm!(
                "mov r11d, {i}",
                "jmp qword ptr [rip + {jumps} + 8 * {i}]",
                i = const #i,
                jumps = sym JUMPS,
            )
        }
    }
}
