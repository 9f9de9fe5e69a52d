//! Array parameters.

use super::{Params, argument};
use proc_macro2::Ident;
use proc_macro2::TokenStream;
use quote::quote;
use st_model::calls::names;
use st_model::calls::{Length, Param};

impl Params<'_> {
    fn length(&self, p: &Param) -> Result<TokenStream, String> {
        let comm = self.role("comm");
        let need = || comm.clone().ok_or_else(|| "no communicator to take the length from".to_owned());
        Ok(match p.length {
            Length::None => return Err("not a list".into()),
            Length::Param(j) => {
                let a = argument(j);
                quote!(#a.word())
            }
            Length::Fixed(n) => {
                let n = i64::try_from(n).map_err(|e| e.to_string())?;
                quote!(#n)
            }
            // MPI-3.1, 5.10: on an intercommunicator its counts are those of the local group.
            Length::Comm if self.row.base().contains("educe_scatter") => {
                let comm = need()?;
                quote!(c.local_size(#comm.raw()))
            }
            Length::Comm => {
                let comm = need()?;
                quote!(c.peers(#comm.raw()))
            }
            Length::Cart => {
                let comm = need()?;
                quote!(c.cart_dims(#comm.raw()))
            }
            Length::Edges => {
                let (a, n) = self.named("index")?;
                quote!(c.last(#a, #n))
            }
            Length::Sum => {
                let (a, n) = self.named("degrees")?;
                quote!(c.sum(#a, #n))
            }
            Length::InDegree => {
                let comm = need()?;
                quote!(c.degrees(#comm.raw()).0)
            }
            Length::OutDegree => {
                let comm = need()?;
                quote!(c.degrees(#comm.raw()).1)
            }
        })
    }

    /// The argument with a name and its number of elements.
    fn named(&self, name: &str) -> Result<(Ident, TokenStream), String> {
        let i = self
            .row
            .params
            .iter()
            .position(|p| p.name == name)
            .ok_or_else(|| format!("no parameter {name}"))?;
        let n = match self.row.params[i].length {
            Length::Param(j) => argument(j),
            _ => return Err(format!("{name} has no length parameter")),
        };
        Ok((argument(i), quote!(#n.word())))
    }

    pub(super) fn list(&mut self, i: usize, p: &Param, in_place: bool) -> Result<(), String> {
        let a = argument(i);
        let n = self.length(p)?;
        let push = match p.role.as_str() {
            "counts" | "ints" | "rootcounts" => quote!(c.ints(#a, n);),
            "displs" | "rootdispls" => {
                let counts = argument(i.checked_sub(1).ok_or("no counts before the displacements")?);
                quote!(c.displacements(#a, #counts, n);)
            }
            "flags" => quote!(c.flags(#a, n);),
            "types" => quote!(c.types(#a, n);),
            "roottexts" => quote!(c.texts(#a.cast(), n);),
            "addresses" => quote!(c.addresses(#a, n);),
            "distribs" => quote!(c.distribs(#a, n);),
            "dargs" => quote!(c.dargs(#a, n);),
            "ranges" => quote!(c.ints(#a.cast::<::std::ffi::c_int>(), 3 * n);),
            "weights" => quote!(c.weights(#a, n);),
            "outints" | "inoutints" => return self.output_list(i, &n),
            "requests" => quote!(c.requests(#a, n);),
            "startrequests" => {
                self.after(quote!(c.start_requests();));
                quote!(c.requests(#a, n);)
            }
            r => return Err(format!("no code for a list of role {r}")),
        };
        let condition = match p.role.as_str() {
            "counts" | "types" | "displs" | "rootcounts" | "rootdispls" | "roottexts" => {
                self.significant(p, in_place)
            }
            "ints" if in_place => self.significant(p, true),
            _ => None,
        };
        self.before(match condition {
            Some(s) => quote!(if #s { let n = #n; #push } else { c.push(0); }),
            None => quote!(let n = #n; #push),
        });
        Ok(())
    }

    fn output_list(&mut self, i: usize, n: &TokenStream) -> Result<(), String> {
        let (a, p) = (argument(i), self.place(i));
        // What the library leaves unset must not be read: an array may be longer than what it holds.
        let comm = self.role("comm");
        let limit = match (self.row.base(), self.row.params[i].name.as_str()) {
            (names::MPI_Cart_get | names::MPI_Cart_coords, _) => quote!(c.cart_dims(#comm.raw())),
            (names::MPI_Graph_neighbors, _) => {
                let rank = self.role("peer");
                quote!(c.graph_degree(#comm.raw(), #rank))
            }
            (names::MPI_Graph_get, "index") => quote!(c.graph_dims(#comm.raw()).0),
            (names::MPI_Graph_get, _) => quote!(c.graph_dims(#comm.raw()).1),
            (names::MPI_Dist_graph_neighbors, "sources") => quote!(c.dist_degrees(#comm.raw()).0),
            (names::MPI_Dist_graph_neighbors, _) => quote!(c.dist_degrees(#comm.raw()).1),
            _ => quote!(i64::MAX),
        };
        self.before(quote!(let n = (#n).min(#limit); #p = c.reserve_list(n);));
        self.after(quote!(c.fill(#p, #a);));
        Ok(())
    }
}
