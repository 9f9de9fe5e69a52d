//! Requests, messages, statuses and completions.

use super::{Params, argument};
use proc_macro2::TokenStream;
use quote::quote;
use st_model::calls::Param;
use st_model::calls::names;

impl Params<'_> {
    pub(super) fn request(&mut self, i: usize, p: &Param) {
        let (a, at) = (argument(i), self.place(i));
        let (receive, persistent) = (
            // The status of a combined operation says nothing under MPICH 4.0.
            (self.row.base().contains("recv") || self.row.base().contains("Recv"))
                && !self.row.base().starts_with(names::MPI_Isendrecv),
            self.row.base().ends_with("_init"),
        );
        let sized = self.row.name.starts_with("MPI_File_i");
        let wildcard = self.wildcard();
        match p.role.as_str() {
            "newrequest" => {
                self.before(quote!(#at = c.reserve(NULL);));
                let promise =
                    self.role_index("newcomm").map(argument).map(|n| quote!(c.keep_promise(#n, promised);));
                self.after(quote! {
                    let v = c.new_request(#a, RequestKind { receive: #receive, sized: #sized, persistent: #persistent, wildcard: #wildcard });
                    c.set(#at, v);
                    #promise
                });
            }
            "newmessage" => {
                self.before(quote!(#at = c.reserve(NULL);));
                // An unsuccessful Improbe leaves the message unset.
                let flag = self.role("flag").map_or_else(|| quote!(true), |f| quote!(*#f != 0));
                self.after(quote!(if #flag { let v = c.new_message(#a.get(0)); c.set(#at, v); }));
            }
            "message" => self.before(quote!(let v = c.take_message(#a.get(0)); c.push(v);)),
            "queryrequest" => self.before(quote!(let v = c.request(#a.raw(), Handles::NOWHERE); c.push(v);)),
            role => {
                self.before(quote!(let v = c.request(#a.get(0), #a); c.push(v);));
                match role {
                    "startrequest" => self.after(quote!(c.start_requests();)),
                    "freerequest" => self.after(quote!(c.free_request();)),
                    _ => {}
                }
            }
        }
    }

    /// Whether the receive or probe names a wildcard.
    pub(super) fn wildcard(&self) -> TokenStream {
        let source = self.role("source");
        let tag = self.row.params.iter().rposition(|p| p.role == "tag").map(argument);
        match (source, tag) {
            (Some(s), Some(t)) => quote!(normal::is_wildcard(#s, #t)),
            _ => quote!(false),
        }
    }

    pub(super) fn status(&mut self, i: usize) -> Result<(), String> {
        let (a, at) = (argument(i), self.place(i));
        let wildcard = self.wildcard();
        self.variable(quote!(let mut #a = #a;));
        self.before(quote!(#at = c.reserve_status(); #a = c.own_status(#a);));
        let flag = self.role("flag");
        self.after(match flag {
            Some(f) => quote!(if *#f != 0 { c.status(#at, #a, #wildcard); }),
            None => quote!(c.status(#at, #a, #wildcard);),
        });
        Ok(())
    }

    pub(super) fn iostatus(&mut self, i: usize) {
        let (a, at) = (argument(i), self.place(i));
        self.variable(quote!(let mut #a = #a;));
        self.before(quote!(#at = c.reserve(-1); #a = c.own_iostatus(#a);));
        self.after(quote!(c.iostatus(#at, #a);));
    }

    pub(super) fn completed(&mut self, i: usize) -> Result<(), String> {
        let a = argument(i);
        self.variable(quote!(let mut #a = #a;));
        let name = self.row.name.as_str();
        let many =
            if name.ends_with("all") || name.ends_with("some") { quote!(i64::from(a0)) } else { quote!(1) };
        self.before(quote!(#a = c.own_statuses(#a, #many);));
        let after = match name {
            names::MPI_Wait | names::MPI_Waitall => quote!(c.completed_all(#a);),
            names::MPI_Waitany => quote!(c.completed_some(a2, 1, #a);),
            names::MPI_Waitsome => quote!(c.completed_some(a3, i64::from(*a2), #a);),
            names::MPI_Test => quote!(if *a1 != 0 { c.completed_all(#a); } else { c.completed_none(); }),
            names::MPI_Testall => quote!(if *a2 != 0 { c.completed_all(#a); } else { c.completed_none(); }),
            names::MPI_Testany => {
                quote!(if *a3 != 0 { c.completed_some(a2, 1, #a); } else { c.completed_none(); })
            }
            names::MPI_Testsome => quote! {
                if *a2 > 0 { c.completed_some(a3, i64::from(*a2), #a); } else { c.completed_none(); c.poll_failed(); }
            },
            _ => return Err("no code for this completion".into()),
        };
        self.after(after);
        Ok(())
    }
}
