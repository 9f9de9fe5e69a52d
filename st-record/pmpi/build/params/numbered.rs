//! Attribute keys, texts of a root, error handlers, sessions, error codes, and what a type is made of.

use super::{Params, argument};
use proc_macro2::Ident;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use st_model::calls::Param;

impl Params<'_> {
    /// Code for a parameter of these roles; `false` if it has another role.
    pub(super) fn numbered(&mut self, i: usize, p: &Param) -> bool {
        let a = argument(i);
        match p.role.as_str() {
            "keyval" | "error" | "errorclass" => {
                let f = format_ident!("{}", p.role);
                self.before(quote!(let v = c.#f(#a); c.push(v);));
            }
            "errhandler" | "session" => {
                let f = format_ident!("{}", p.role);
                self.before(quote!(let v = c.#f(#a.raw()); c.push(v);));
            }
            "roottext" | "rootinfo" => {
                let value = if p.role == "roottext" { quote!(c.text(#a)) } else { quote!(c.info(#a.raw())) };
                self.before(quote!(let v = if significant.at_root { #value } else { NULL }; c.push(v);));
            }
            "freekeyval" | "freeerrhandler" | "freesession" => {
                let (kind, free) =
                    (format_ident!("{}", &p.role[4..]), format_ident!("free_{}", &p.role[4..]));
                let h = format_ident!("h{i}");
                let given = at(p, &a);
                self.variable(quote!(let #h = #given;));
                self.before(quote!(let v = c.#kind(#h); c.push(v);));
                self.after(quote!(c.#free(#h);));
            }
            "newkeyval" | "newerrhandler" | "newsession" => {
                let (at, new) = (self.place(i), format_ident!("new_{}", &p.role[3..]));
                self.before(quote!(#at = c.reserve(NULL);));
                let made = self::at(p, &a);
                self.after(quote!(let v = c.#new(#made); c.set(#at, v);));
            }
            "outerror" | "outerrorclass" => {
                let (at, f) = (self.place(i), format_ident!("{}", &p.role[3..]));
                self.before(quote!(#at = c.reserve(NONE);));
                self.after(quote!(let v = c.#f(*#a); c.set(#at, v);));
            }
            "outcombiner" => {
                let at = self.place(i);
                self.before(quote!(#at = c.reserve(NONE);));
                self.after(quote!(c.set(#at, normal::combiner(*#a));));
            }
            "contents" => {
                let at = self.place(i);
                self.before(quote!(#at = c.reserve(0);));
                let n = if self.row.name.ends_with("_c") {
                    quote!({
                        let (mut n, mut a, mut l, mut t, mut combiner) = (0, 0, 0, 0, 0);
                        real::MPI_Type_get_envelope_c(
                            a0,
                            &raw mut n,
                            &raw mut a,
                            &raw mut l,
                            &raw mut t,
                            &raw mut combiner,
                        );
                        t
                    })
                } else {
                    quote!(crate::call_encoder::parts(a0))
                };
                self.after(quote!(let n = #n; c.contents(#at, #a, n);));
            }
            _ => return false,
        }
        true
    }
}

/// What is where the parameter points to: a key, or a handle's word.
fn at(p: &Param, a: &Ident) -> TokenStream {
    if p.role.ends_with("keyval") { quote!(*#a) } else { quote!(#a.get(0)) }
}
