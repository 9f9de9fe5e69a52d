//! From the roles of a row to the code that reads its parameters.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use st_trace::calls::{Length, Param, Row};
use syn::Ident;

/// Statements of a body.
pub(crate) struct Code {
    /// Variables shared by both phases.
    pub(crate) variables: TokenStream,
    /// Before the real call.
    pub(crate) before: TokenStream,
    /// After it, if it succeeded.
    pub(crate) after: TokenStream,
    /// Variant of `Repeat`.
    pub(crate) repeat: &'static str,
    /// Recorded by name only.
    pub(crate) opaque: bool,
}

impl Code {
    /// No parameters.
    pub(crate) fn opaque() -> Self {
        let nothing = TokenStream::new;
        Self { variables: nothing(), before: nothing(), after: nothing(), repeat: "Never", opaque: true }
    }
}

/// A row being translated.
pub(crate) struct Params<'a> {
    row: &'a Row,
    code: Code,
}

impl<'a> Params<'a> {
    pub(crate) fn new(row: &'a Row) -> Self {
        let repeat = match (row.properties.poll, row.properties.fold) {
            (true, _) => "WhileFailing",
            (_, true) => "Always",
            _ => "Never",
        };
        Self { row, code: Code { repeat, opaque: false, ..Code::opaque() } }
    }

    /// Code for all parameters.
    pub(crate) fn code(mut self) -> Result<Code, String> {
        let row = self.row;
        if let (Some(root), Some(comm)) = (self.role("root"), self.role("comm")) {
            let by_root = row.params.iter().any(|p| p.role.starts_with("root") && p.role != "root");
            self.before(quote!(let significant = c.significance(#comm.raw(), #root, #by_root);));
        }
        let mut in_place = false;
        for (i, p) in row.params.iter().enumerate() {
            let side = matches!(p.role.as_str(), "count" | "type" | "counts" | "displs" | "ints" | "types");
            in_place = in_place && side || p.role == "inplace";
            self.param(i, p, in_place && p.role != "inplace")
                .map_err(|e| format!("{}: {}: {e}", row.name, p.name))?;
        }
        Ok(self.code)
    }

    fn param(&mut self, i: usize, p: &Param, in_place: bool) -> Result<(), String> {
        let a = argument(i);
        if p.length != Length::None {
            return self.list(i, p, in_place);
        }
        match p.role.as_str() {
            "_" => {}
            "inplace" => self.before(quote!(let in_place = c.in_place(#a.cast());)),
            "count" | "type" | "rootcount" | "roottype" | "op" => {
                let value = match p.role.as_str() {
                    "count" | "rootcount" => quote!(#a.word()),
                    "op" => quote!(c.op(#a.raw())),
                    _ => quote!(c.datatype(#a.raw())),
                };
                let absent = if p.role.ends_with("count") { quote!(0) } else { quote!(NULL) };
                let condition = self.significant(p, in_place);
                self.before(match condition {
                    Some(s) => quote!(let v = if #s { #value } else { #absent }; c.push(v);),
                    None => quote!(let v = #value; c.push(v);),
                });
            }
            "int" | "aint" | "key" => self.before(quote!(c.push(#a.word());)),
            "color" | "arrayorder" | "splittype" | "typeclass" => {
                let f = format_ident!("{}", p.role);
                self.before(quote!(c.push(normal::#f(#a));));
            }
            "dest" | "source" | "root" | "leader" | "peer" => self.before(quote!(c.push(normal::rank(#a));)),
            "tag" => self.before(quote!(c.push(normal::tag(#a));)),
            "comm" | "group" => {
                let f = format_ident!("{}", p.role);
                self.before(quote!(let v = c.#f(#a.raw()); c.push(v);));
            }
            "committype" => self.before(quote!(let v = c.datatype((*#a).raw()); c.push(v);)),
            "freecomm" | "freegroup" | "freetype" | "freeop" => self.free(i, p),
            "newcomm" | "newgroup" | "newtype" | "newop" => self.create(i, p),
            "outint" | "outaint" | "outcount64" | "flag" | "outcompare" | "outtopo" | "outpeer" => {
                self.output(i, p)
            }
            "newrequest" | "newmessage" | "message" | "startrequest" | "freerequest" | "cancelrequest"
            | "queryrequest" => {
                self.request(i, p);
            }
            "status" => self.status(i)?,
            "completed" => self.completed(i)?,
            r => return Err(format!("no code for role {r}")),
        }
        Ok(())
    }

    /// Condition under which a parameter of a collective means something.
    fn significant(&self, p: &Param, in_place: bool) -> Option<TokenStream> {
        let rooted = self.role("root").is_some();
        match (p.role.starts_with("root"), rooted, in_place) {
            (true, _, false) => Some(quote!(significant.at_root)),
            (true, _, true) => Some(quote!(significant.at_root && !in_place)),
            (false, true, false) => Some(quote!(significant.elsewhere)),
            (false, true, true) => Some(quote!(significant.elsewhere && !in_place)),
            (false, false, true) => Some(quote!(!in_place)),
            (false, false, false) => None,
        }
    }

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
            Length::Comm if self.row.name.contains("educe_scatter") => {
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
            Length::InDegree | Length::OutDegree => return Err("lengths by degree have no code".into()),
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

    fn list(&mut self, i: usize, p: &Param, in_place: bool) -> Result<(), String> {
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
            "addresses" => quote!(c.addresses(#a, n);),
            "distribs" => quote!(c.distribs(#a, n);),
            "dargs" => quote!(c.dargs(#a, n);),
            "ranges" => quote!(c.ints(#a.cast(), 3 * n);),
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
            "counts" | "types" | "displs" | "rootcounts" | "rootdispls" => self.significant(p, in_place),
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
        let limit = match (self.row.name.as_str(), self.row.params[i].name.as_str()) {
            ("MPI_Cart_get" | "MPI_Cart_coords", _) => quote!(c.cart_dims(#comm.raw())),
            ("MPI_Graph_neighbors", _) => {
                let rank = self.role("peer");
                quote!(c.graph_degree(#comm.raw(), #rank))
            }
            ("MPI_Graph_get", "index") => quote!(c.graph_dims(#comm.raw()).0),
            ("MPI_Graph_get", _) => quote!(c.graph_dims(#comm.raw()).1),
            ("MPI_Dist_graph_neighbors", "sources") => quote!(c.dist_degrees(#comm.raw()).0),
            ("MPI_Dist_graph_neighbors", _) => quote!(c.dist_degrees(#comm.raw()).1),
            _ => quote!(i64::MAX),
        };
        self.before(quote!(let n = (#n).min(#limit); #p = c.reserve_list(n);));
        self.after(quote!(c.fill(#p, #a);));
        Ok(())
    }

    fn output(&mut self, i: usize, p: &Param) {
        let (a, at) = (argument(i), self.place(i));
        let value = match p.role.as_str() {
            "flag" => quote!(i64::from(*#a != 0)),
            "outcompare" => quote!(normal::compare(*#a)),
            "outtopo" => quote!(normal::topology(*#a)),
            "outpeer" => quote!(normal::rank(*#a)),
            _ => quote!((*#a).word()),
        };
        let default = if p.role == "flag" { quote!(0) } else { quote!(NONE) };
        self.before(quote!(#at = c.reserve(#default);));
        let failed = if p.role == "flag" && self.row.properties.poll {
            quote!(if *#a == 0 { c.poll_failed(); })
        } else {
            quote!()
        };
        self.after(quote!(let v = #value; c.set(#at, v); #failed));
    }

    fn free(&mut self, i: usize, p: &Param) {
        let (a, h) = (argument(i), format_ident!("h{i}"));
        let (lookup, free) = match p.role.as_str() {
            "freecomm" => ("comm", "free_comm"),
            "freegroup" => ("group", "free_group"),
            "freetype" => ("datatype", "free_type"),
            _ => ("op", "free_op"),
        };
        let (lookup, free) = (format_ident!("{lookup}"), format_ident!("{free}"));
        self.variable(quote!(let mut #h = 0u64;));
        self.before(quote!(#h = (*#a).raw(); let v = c.#lookup(#h); c.push(v);));
        self.after(quote!(c.#free(#h);));
    }

    fn create(&mut self, i: usize, p: &Param) {
        let (a, at) = (argument(i), self.place(i));
        self.before(quote!(#at = c.reserve(NULL);));
        let first = |role| self.role(role).map_or_else(|| quote!(0), |x| quote!(#x.raw()));
        let code = match p.role.as_str() {
            "newcomm" if self.role("newrequest").is_some() => {
                let comm = first("comm");
                quote!(let promised = c.promise_comm(#comm); let v = promised;)
            }
            "newcomm" => {
                let comm = first("comm");
                quote!(let v = c.new_comm(#comm, (*#a).raw());)
            }
            "newgroup" => quote!(let v = c.new_group((*#a).raw());),
            "newtype" => quote!(let v = c.new_type((*#a).raw());),
            _ => {
                let commute = self.row.params.iter().position(|p| p.name == "commute").map(argument);
                quote!(let v = c.new_op((*#a).raw(), #commute != 0);)
            }
        };
        self.after(quote!(#code c.set(#at, v);));
    }

    fn request(&mut self, i: usize, p: &Param) {
        let (a, at) = (argument(i), self.place(i));
        let (receive, persistent) = (
            self.row.name.contains("recv") || self.row.name.contains("Recv"),
            self.row.name.ends_with("_init"),
        );
        let wildcard = self.wildcard();
        match p.role.as_str() {
            "newrequest" => {
                self.before(quote!(#at = c.reserve(NULL);));
                let promise =
                    self.role_index("newcomm").map(argument).map(|n| quote!(c.keep_promise(#n, promised);));
                self.after(quote! {
                    let v = c.new_request(#a, Kind { receive: #receive, persistent: #persistent, wildcard: #wildcard });
                    c.set(#at, v);
                    #promise
                });
            }
            "newmessage" => {
                self.before(quote!(#at = c.reserve(NULL);));
                // An unsuccessful Improbe leaves the message unset.
                let flag = self.role("flag").map_or_else(|| quote!(true), |f| quote!(*#f != 0));
                self.after(quote!(if #flag { let v = c.new_message((*#a).raw()); c.set(#at, v); }));
            }
            "message" => self.before(quote!(let v = c.take_message((*#a).raw()); c.push(v);)),
            "queryrequest" => self.before(quote!(let v = c.request(#a, ::std::ptr::null()); c.push(v);)),
            role => {
                self.before(quote!(let v = c.request(*#a, #a); c.push(v);));
                match role {
                    "startrequest" => self.after(quote!(c.start_requests();)),
                    "freerequest" => self.after(quote!(c.free_request();)),
                    _ => {}
                }
            }
        }
    }

    /// Whether the receive or probe names a wildcard.
    fn wildcard(&self) -> TokenStream {
        let source = self.role("source");
        let tag = self.row.params.iter().rposition(|p| p.role == "tag").map(argument);
        match (source, tag) {
            (Some(s), Some(t)) => quote!(normal::is_wildcard(#s, #t)),
            _ => quote!(false),
        }
    }

    fn status(&mut self, i: usize) -> Result<(), String> {
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

    fn completed(&mut self, i: usize) -> Result<(), String> {
        let a = argument(i);
        self.variable(quote!(let mut #a = #a;));
        let name = self.row.name.as_str();
        let many =
            if name.ends_with("all") || name.ends_with("some") { quote!(i64::from(a0)) } else { quote!(1) };
        self.before(quote!(#a = c.own_statuses(#a, #many);));
        let after = match name {
            "MPI_Wait" | "MPI_Waitall" => quote!(c.completed_all(#a);),
            "MPI_Waitany" => quote!(c.completed_some(a2, 1, #a);),
            "MPI_Waitsome" => quote!(c.completed_some(a3, i64::from(*a2), #a);),
            "MPI_Test" => quote!(if *a1 != 0 { c.completed_all(#a); } else { c.completed_none(); }),
            "MPI_Testall" => quote!(if *a2 != 0 { c.completed_all(#a); } else { c.completed_none(); }),
            "MPI_Testany" => {
                quote!(if *a3 != 0 { c.completed_some(a2, 1, #a); } else { c.completed_none(); })
            }
            "MPI_Testsome" => quote! {
                if *a2 > 0 { c.completed_some(a3, i64::from(*a2), #a); } else { c.completed_none(); c.poll_failed(); }
            },
            _ => return Err("no code for this completion".into()),
        };
        self.after(after);
        Ok(())
    }

    fn before(&mut self, t: TokenStream) {
        self.code.before.extend(t);
    }
    fn after(&mut self, t: TokenStream) {
        self.code.after.extend(t);
    }
    fn variable(&mut self, t: TokenStream) {
        self.code.variables.extend(t);
    }
    /// Declares the place of an output's words.
    fn place(&mut self, i: usize) -> Ident {
        let p = format_ident!("p{i}");
        self.variable(quote!(let mut #p = 0usize;));
        p
    }
    fn role_index(&self, role: &str) -> Option<usize> {
        self.row.params.iter().position(|p| p.role == role)
    }
    fn role(&self, role: &str) -> Option<Ident> {
        self.role_index(role).map(argument)
    }
}

fn argument(i: usize) -> Ident {
    format_ident!("a{i}")
}
