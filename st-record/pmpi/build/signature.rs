//! How a function is declared and called, in Rust.

use crate::prototypes::Function;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Type of the function as a pointer.
pub(crate) fn pointer(f: &Function) -> TokenStream {
    let (params, result) = (f.params.iter().map(|p| p.tokens()), f.result.tokens());
    quote!(unsafe extern "C-unwind" fn(#(#params),*) -> #result)
}

/// `a0: T0, a1: T1, …` and `a0, a1, …`.
pub(crate) fn arguments(f: &Function) -> (TokenStream, TokenStream) {
    let names: Vec<_> = (0..f.params.len()).map(|i| format_ident!("a{i}")).collect();
    let params = f.params.iter().map(|p| p.tokens());
    (quote!(#(#names: #params),*), quote!(#(#names),*))
}
