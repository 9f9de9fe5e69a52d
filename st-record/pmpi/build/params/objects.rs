//! Handles that a call makes or gives up.

use super::{Params, argument};
use quote::{format_ident, quote};
use st_model::calls::Param;

impl Params<'_> {
    pub(super) fn free(&mut self, i: usize, p: &Param) {
        let (a, h) = (argument(i), format_ident!("h{i}"));
        let (lookup, free) = match p.role.as_str() {
            "freecomm" => ("comm", "free_comm"),
            "freegroup" => ("group", "free_group"),
            "freetype" => ("datatype", "free_type"),
            "freewin" => ("win", "free_win"),
            "freefile" => ("file", "free_file"),
            "freeinfo" => ("info", "free_info"),
            _ => ("op", "free_op"),
        };
        let (lookup, free) = (format_ident!("{lookup}"), format_ident!("{free}"));
        self.variable(quote!(let mut #h = 0u64;));
        self.before(quote!(#h = #a.get(0); let v = c.#lookup(#h); c.push(v);));
        self.after(quote!(c.#free(#h);));
    }

    /// What describes the origin's buffer means nothing to an operation that does not read it (MPI-3.1, 11.3.4): there may
    /// be no type.
    pub(super) fn origin(&mut self, i: usize, p: &Param) {
        let a = argument(i);
        let (value, absent) = match p.role.as_str() {
            "origincount" => (quote!(#a.word()), quote!(0)),
            _ => (quote!(c.datatype(#a.raw())), quote!(NULL)),
        };
        let op = self.role("op").map_or_else(|| quote!(true), |op| quote!(!c.is_no_op(#op.raw())));
        self.before(quote!(let v = if #op { #value } else { #absent }; c.push(v);));
    }

    pub(super) fn create(&mut self, i: usize, p: &Param) {
        let (a, at) = (argument(i), self.place(i));
        self.before(quote!(#at = c.reserve(NULL);));
        let first = |role| self.role(role).map_or_else(|| quote!(0), |x| quote!(#x.raw()));
        let code = match p.role.as_str() {
            "newcomm" if self.role("newrequest").is_some() => {
                let comm = first("comm");
                quote!(let promised = c.promise_comm(#comm); let v = promised;)
            }
            "newcomm" if self.role("comm").is_none() => quote!(let v = c.new_comm_alone(#a.get(0));),
            "newcomm" => {
                let comm = first("comm");
                quote!(let v = c.new_comm(#comm, #a.get(0));)
            }
            "newgroup" => quote!(let v = c.new_group(#a.get(0));),
            "newwin" | "newfile" => {
                let (comm, new) = (first("comm"), format_ident!("new_{}", &p.role[3..]));
                quote!(let v = c.#new(#comm, #a.get(0));)
            }
            "newinfo" => quote!(let v = c.info(#a.get(0));),
            "newtype" => quote!(let v = c.new_type(#a.get(0));),
            _ => {
                let commute = self.row.params.iter().position(|p| p.name == "commute").map(argument);
                quote!(let v = c.new_op(#a.get(0), #commute != 0);)
            }
        };
        self.after(quote!(#code c.set(#at, v);));
    }
}
