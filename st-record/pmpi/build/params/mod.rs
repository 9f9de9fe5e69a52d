//! From the roles of a row to the code that reads its parameters.

mod argument_cache;
mod lists;
mod numbered;
mod objects;
mod requests;

use proc_macro2::Ident;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use st_model::calls::{Length, Param, Row};

/// How a wrapper knows that a call is the next one of the loop in progress.
pub(crate) struct ArgumentCache {
    /// The `Inputs` of the call.
    pub(crate) inputs: TokenStream,
    /// Before the real call, if it is: what the statements after the call need.
    pub(crate) known: TokenStream,
    /// The `Outs` of the call.
    pub(crate) outs: TokenStream,
}

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
    /// How a loop's next call is known, if that can be.
    pub(crate) cache: Option<ArgumentCache>,
}

impl Code {
    /// No parameters.
    pub(crate) fn opaque() -> Self {
        let nothing = TokenStream::new;
        Self {
            variables: nothing(),
            before: nothing(),
            after: nothing(),
            repeat: "Never",
            opaque: true,
            cache: None,
        }
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
        self.code.cache = self.cache();
        Ok(self.code)
    }

    fn param(&mut self, i: usize, p: &Param, in_place: bool) -> Result<(), String> {
        let a = argument(i);
        if p.length != Length::None {
            return self.list(i, p, in_place);
        }
        match p.role.as_str() {
            "_" => {}
            "inplace" => self.before(quote!(let in_place = c.in_place(#a);)),
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
            "origincount" | "origintype" => self.origin(i, p),
            "targetdisp" => {
                let (win, target) = (self.need("win")?, self.need("target")?);
                self.before(quote!(let v = c.target_disp(#win.raw(), #target, #a.word()); c.push(v);));
            }
            "assert" => self.before(quote!(c.push(normal::assertion(#a));)),
            "buflen" => self.buflen(i),
            "text" => self.before(quote!(let v = c.text(#a); c.push(v);)),
            "int" | "aint" | "key" => self.before(quote!(c.push(#a.word());)),
            "color" | "arrayorder" | "splittype" | "typeclass" | "amode" | "locktype" | "whence"
            | "threadlevel" => {
                let f = format_ident!("{}", p.role);
                self.before(quote!(c.push(normal::#f(#a));));
            }
            "dest" | "source" | "root" | "leader" | "peer" | "target" => {
                self.before(quote!(c.push(normal::rank(#a));))
            }
            "tag" => self.before(quote!(c.push(normal::tag(#a));)),
            "comm" | "group" | "win" | "file" | "info" => {
                let f = format_ident!("{}", p.role);
                self.before(quote!(let v = c.#f(#a.raw()); c.push(v);));
            }
            "committype" => self.before(quote!(let v = c.datatype(#a.get(0)); c.push(v);)),
            "freecomm" | "freegroup" | "freetype" | "freeop" | "freewin" | "freefile" | "freeinfo" => {
                self.free(i, p);
            }
            "newcomm" | "newgroup" | "newtype" | "newop" | "newwin" | "newfile" | "newinfo" => {
                self.create(i, p);
            }
            "outint" | "outthreadlevel" | "outaint" | "outcount64" | "flag" | "outcompare" | "outtopo"
            | "outpeer" | "outamode" | "outtype" | "outtext" => self.output(i, p),
            "newrequest" | "newmessage" | "message" | "startrequest" | "freerequest" | "cancelrequest"
            | "queryrequest" => {
                self.request(i, p);
            }
            "status" => self.status(i)?,
            "iostatus" => self.iostatus(i),
            "completed" => self.completed(i)?,
            _ if self.numbered(i, p) => {}
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

    fn output(&mut self, i: usize, p: &Param) {
        let (a, at) = (argument(i), self.place(i));
        let value = self.brought(p, &a);
        let default = match p.role.as_str() {
            "flag" => quote!(0),
            "outtype" | "outtext" => quote!(NULL),
            _ => quote!(NONE),
        };
        self.before(quote!(#at = c.reserve(#default);));
        let failed = if p.role == "flag" && self.row.properties.poll {
            quote!(if *#a == 0 { c.poll_failed(); })
        } else {
            quote!()
        };
        let set = quote!(let v = #value; c.set(#at, v););
        // What is there only if the call says so.
        let condition = self.role("flag").filter(|_| ["outtext", "outint"].contains(&p.role.as_str()));
        self.after(match condition {
            Some(flag) => quote!(if *#flag != 0 { #set }),
            None => quote!(#set #failed),
        });
    }

    /// The word of what a call has brought.
    fn brought(&self, p: &Param, a: &Ident) -> TokenStream {
        match p.role.as_str() {
            "flag" => quote!(i64::from(*#a != 0)),
            "outcompare" => quote!(normal::compare(*#a)),
            "outtopo" => quote!(normal::topology(*#a)),
            "outthreadlevel" => quote!(normal::threadlevel(*#a)),
            "outpeer" => quote!(normal::rank(*#a)),
            "outamode" => quote!(normal::amode(*#a)),
            "outtype" => quote!(c.datatype(#a.get(0))),
            "outtext" => {
                let room = self.room();
                quote!(c.text_within(#a, #room))
            }
            _ => quote!((*#a).word()),
        }
    }

    /// A length that the call reads and writes.
    fn buflen(&mut self, i: usize) {
        let (a, at) = (argument(i), self.place(i));
        self.variable(quote!(let mut room = 0i64;));
        self.before(quote!(room = (*#a).word(); c.push(room); #at = c.reserve(NONE);));
        let flag = self.role("flag").map_or_else(|| quote!(true), |f| quote!(*#f != 0));
        self.after(quote!(if #flag { let v = (*#a).word(); c.set(#at, v); }));
    }

    /// Number of bytes that the program has room for in a text that the call returns.
    fn room(&self) -> TokenStream {
        if self.role("buflen").is_some() {
            return quote!(room);
        }
        match self.row.params.iter().position(|p| p.name == "valuelen").map(argument) {
            Some(n) => quote!(#n.word() + 1),
            None => quote!(i64::MAX),
        }
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
    fn need(&self, role: &str) -> Result<Ident, String> {
        self.role(role).ok_or_else(|| format!("no parameter of role {role}"))
    }
}

fn argument(i: usize) -> Ident {
    format_ident!("a{i}")
}
