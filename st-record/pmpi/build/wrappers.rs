//! The wrappers: for every function two exported symbols (`MPI_x`, `PMPI_x`) over one body.

use crate::body;
use crate::header::{Function, Header};
use crate::signature::{arguments, pointer, result};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use st_model::calls::{CallTable, FIRST_UNKNOWN};

/// Functions that are not communication, not local queries that a program's text would show, and called by the
/// language layers themselves: conversions between handles and statuses of C and Fortran, address arithmetic,
/// and the tool interface.
fn is_noise(name: &str) -> bool {
    ["_f2c", "_c2f", "_f2f08", "_f082f", "_c2f08", "_f082c", "_FN", "_fn", "_FN_NULL"]
        .iter()
        .any(|e| name.ends_with(e))
        || name.starts_with("MPI_T_")
        || name == "MPI_Aint_add"
        || name == "MPI_Aint_diff"
}

/// What is generated, as Rust text.
pub(crate) struct Text {
    /// The names that wrappers forward to, and functions that call them.
    pub(crate) real: String,
    /// The wrappers.
    pub(crate) wrappers: String,
}

/// All wrappers, and what they forward to.
pub(crate) fn generate(header: &Header) -> Result<Text, String> {
    let table = CallTable::builtin();
    let (mut names, mut items, mut real) = (Vec::new(), Vec::new(), Vec::new());
    let mut unknown: Vec<String> = Vec::new();
    for (name, f) in &header.functions {
        let Some(base) = name.strip_prefix('P').filter(|b| header.functions.contains_key(*b)) else {
            continue;
        };
        if let Some(k) = f.params.iter().position(|p| quote!(#p).to_string().contains("__va_list")) {
            return Err(format!("{name}: parameter {k} is a va_list"));
        }
        let slot = names.len();
        names.push(name.clone());
        real.push(forward(&format_ident!("{base}"), slot, f));
        if is_noise(base) {
            continue;
        }
        let public = names.len();
        names.push(base.to_owned());
        let body = match table.by_name(base) {
            Some(row) if !row.properties.opaque => body::recorded(row, f)?,
            Some(row) => body::opaque(base, row.id.0, f),
            None => {
                let id = usize::from(FIRST_UNKNOWN) + unknown.len();
                unknown.push(base.to_owned());
                body::opaque(base, u16::try_from(id).map_err(|e| e.to_string())?, f)
            }
        };
        items.push(body);
        items.push(export(name, base, slot, f));
        items.push(export(base, base, public, f));
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
    let wrappers = quote!(#(#items)*);
    Ok(Text { real: real.to_string(), wrappers: wrappers.to_string() })
}

fn forward(base: &syn::Ident, slot: usize, f: &Function) -> TokenStream {
    let (decl, args) = arguments(f);
    let (pointer, result) = (pointer(f), result(f));
    quote! {
        pub(crate) unsafe fn #base(#decl) -> #result {
            unsafe { ::std::mem::transmute::<usize, #pointer>(next(#slot))(#args) }
        }
    }
}

fn export(name: &str, base: &str, slot: usize, f: &Function) -> TokenStream {
    let (decl, args) = arguments(f);
    let (pointer, result) = (pointer(f), result(f));
    let (name, body) = (format_ident!("{name}"), format_ident!("body_{base}"));
    let pass = if f.params.is_empty() { quote!() } else { quote!(, #args) };
    quote! {
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn #name(#decl) -> #result {
            unsafe { #body(::std::mem::transmute::<usize, #pointer>(next(#slot)) #pass) }
        }
    }
}
