//! Functions whose words depend on what they are passed, and on what they bring, which is read each time: what is compared to know them
//! again.

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
            // Called once at a time: a series of several is longer than what it was taken for (`State::grow`).
            _ if self.row.properties.fold && self.row.params.is_empty() => {
                let inputs = quote!(Inputs::Scalars { values: &[], places: &[] });
                Some(ArgumentCache { inputs, known: quote!(), outs: quote!(Outs::Nothing) })
            }
            _ => self.scalars(),
        }
    }

    /// A function on a communicator, a window or a type that takes no lists and makes nothing but a request.
    fn scalars(&self) -> Option<ArgumentCache> {
        let row = self.row;
        self.role("comm").or(self.role("win")).or(self.role("type"))?;
        if row.properties.poll || row.properties.fold || row.base().ends_with("_init") {
            return None;
        }
        // Of rooted operations and of those in place not all parameters mean something.
        let plain = self.role("root").is_none() && self.role("inplace").is_none();
        // Displacements may be counted from where the first one was, which each target has for itself.
        let displaced = self.role("targetdisp").is_some();
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let mut brought = Vec::new();
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
                "count" | "dest" | "source" | "tag" | "root" | "rootcount" | "origincount" | "target"
                | "targetdisp" | "assert" | "locktype" => {
                    values.push(quote!(#a.word()));
                    let shown = match p.role.as_str() {
                        "target" => !displaced,
                        "root" | "rootcount" | "origincount" | "assert" | "locktype" => false,
                        _ => plain,
                    };
                    places.push(if shown { quote!(Some(#at)) } else { quote!(None) });
                }
                "type" | "roottype" | "origintype" | "op" | "comm" | "win" => {
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
                "outint" | "outaint" | "outcount64" | "outpeer" | "outcompare" | "flag" if outs.is_none() => {
                    known.extend(quote!(#place = #from;));
                    brought.push((at, self.brought(p, &a)));
                }
                _ => return None,
            }
            at += words;
        }
        if let Some(&(first, _)) = brought.first() {
            // Two at most, which follow each other.
            let in_a_row = brought.iter().zip(first..).all(|((at, _), expected)| *at == expected);
            if outs.is_some() || !in_a_row || brought.len() > 2 {
                return None;
            }
            let (n, mut values) = (brought.len(), brought.into_iter().map(|b| b.1).collect::<Vec<_>>());
            values.resize(2, quote!(0));
            let from = usize::from(first);
            // What a failed call leaves there is not read.
            outs = Some(quote! {
                if result == 0 { Outs::Words { from: #from, words: [#(#values),*], n: #n } } else { Outs::Nothing }
            });
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
