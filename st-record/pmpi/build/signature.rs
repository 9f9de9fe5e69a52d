//! How a function is declared and called, in Rust.

use crate::header::Function;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Type of the function as a pointer.
pub(crate) fn pointer(f: &Function) -> TokenStream {
    let (params, result) = (&f.params, result(f));
    quote!(unsafe extern "C-unwind" fn(#(#params),*) -> #result)
}

/// Result type.
pub(crate) fn result(f: &Function) -> TokenStream {
    f.result.as_ref().map_or_else(|| quote!(()), |t| quote!(#t))
}

/// `a0: T0, a1: T1, …` and `a0, a1, …`.
pub(crate) fn arguments(f: &Function) -> (TokenStream, TokenStream) {
    let names: Vec<_> = (0..f.params.len()).map(|i| format_ident!("a{i}")).collect();
    let params = &f.params;
    (quote!(#(#names: #params),*), quote!(#(#names),*))
}
