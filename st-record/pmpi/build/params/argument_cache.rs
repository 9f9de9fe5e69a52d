//! Functions whose words depend on what they are passed and on nothing else: what is compared to know them again.

use super::{ArgumentCache, Params, argument};
use proc_macro2::TokenStream;
use quote::quote;
use st_model::calls::Length;
use st_model::calls::names;

impl Params<'_> {
    /// What to compare; `None` for functions that are read anew each time.
    pub(super) fn cache(&self) -> Option<ArgumentCache> {
        match self.row.name.as_str() {
            names::MPI_Wait => Some(wait(&quote!(a0), &quote!(1), &quote!(a1))),
            names::MPI_Waitall => Some(wait(&quote!(a1), &quote!(i64::from(a0)), &quote!(a2))),
            _ => self.scalars(),
        }
    }

    /// A function on a communicator that takes no lists and makes nothing but a request.
    fn scalars(&self) -> Option<ArgumentCache> {
        let row = self.row;
        self.role("comm")?;
        if row.properties.poll || row.properties.fold || row.base().ends_with("_init") {
            return None;
        }
        // Of rooted operations and of those in place not all parameters mean something.
        let plain = self.role("root").is_none() && self.role("inplace").is_none();
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let (mut known, mut outs) = (quote!(), None);
        let mut at = 0_u16;
        for (i, p) in row.params.iter().enumerate() {
            let a = argument(i);
            if p.length != Length::None {
                return None;
            }
            let place = quote::format_ident!("p{i}");
            let from = usize::from(at);
            let mut words = 1;
            match p.role.as_str() {
                "_" => words = 0,
                "count" | "dest" | "source" | "tag" | "root" | "rootcount" => {
                    values.push(quote!(#a.word()));
                    let shown = plain && !p.role.starts_with("root");
                    places.push(if shown { quote!(Some(#at)) } else { quote!(None) });
                }
                "type" | "roottype" | "op" | "comm" => {
                    values.push(quote!(#a.raw().cast_signed()));
                    places.push(quote!(None));
                }
                "inplace" => {
                    let mark = quote!(constants::MPI_IN_PLACE());
                    values.push(quote!(i64::from(is_mark(#a, #mark))));
                    places.push(quote!(None));
                }
                "newrequest" if outs.is_none() => {
                    known.extend(quote!(#place = #from;));
                    outs = Some(quote!(Outs::Request(#a)));
                }
                "status" if outs.is_none() => {
                    let wildcard = self.wildcard();
                    known.extend(quote!(#place = #from; #a = c.own_status(#a);));
                    outs = Some(quote!(Outs::Status { status: #a, at: #from, wildcard: #wildcard }));
                    words = 3;
                }
                _ => return None,
            }
            at += words;
        }
        let inputs = quote!(Inputs::Scalars { values: &[#(#values),*], places: &[#(#places),*] });
        Some(ArgumentCache { inputs, known, outs: outs.unwrap_or_else(|| quote!(Outs::Nothing)) })
    }
}

fn wait(requests: &TokenStream, n: &TokenStream, statuses: &TokenStream) -> ArgumentCache {
    ArgumentCache {
        inputs: quote!(Inputs::Requests { first: #requests, n: #n }),
        known: quote!(#statuses = c.own_statuses(#statuses, #n);),
        outs: quote!(Outs::Completed(#statuses)),
    }
}
