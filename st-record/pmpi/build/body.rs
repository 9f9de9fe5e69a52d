//! The body of a wrapper: read the inputs, make the real call, read the outputs.

use crate::params::{ArgumentCache, Code, Params};
use crate::prototypes::{Function, Type};
use crate::signature::{arguments, pointer};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use st_model::calls::names::{self, TOOLS};
use st_model::calls::{FIRST_UNKNOWN, Row};

/// Body of a function that is recorded by name only.
pub(crate) fn opaque(name: &str, id: u16, f: &Function) -> TokenStream {
    let code = Code::opaque();
    assemble(name, id, f, &code)
}

/// Body of a function with a row in the call table.
pub(crate) fn recorded(row: &Row, f: &Function) -> Result<TokenStream, String> {
    if row.params.len() != f.params.len() {
        return Err(format!(
            "{}: the list of functions has {} parameters, the call table (calls.txt) {}",
            row.name,
            f.params.len(),
            row.params.len()
        ));
    }
    let code = Params::new(row).code()?;
    Ok(assemble(&row.name, row.id.0, f, &code))
}

fn assemble(name: &str, id: u16, f: &Function, code: &Code) -> TokenStream {
    let (decl, args) = arguments(f);
    let (pointer, result) = (pointer(f), f.result.tokens());
    let body = format_ident!("body_{name}");
    let sep = if f.params.is_empty() { quote!() } else { quote!(,) };
    let (variables, before, after) = (&code.variables, &code.before, &code.after);
    let repeat = format_ident!("{}", code.repeat);
    let opaque = code.opaque;
    let class = class(name, f);
    let hooks = Hooks::of(name, id, &class);
    let (first, prepared, returned) = (hooks.first, hooks.prepared, hooks.returned);
    let (finished, missed) = (hooks.finished, hooks.missed);
    let nothing = quote!(Outs::Nothing);
    let outs = code.cache.as_ref().map_or(&nothing, |e| &e.outs);
    // Each is put where it stays: it is large, and a copy has to wait for what has just been written.
    let begin = quote! {
        call = Call::begin(inside, #id, Repeat::#repeat, #opaque, registers);
        call.prepare(|c| { #before });
        #prepared
        result = call.real(|| next(#args));
    };
    // Without parameters nothing has to be read.
    let again = if code.repeat == "Always" && f.params.is_empty() {
        quote! {
            let inside = match Again::begin(inside, #id, &registers) {
                Ok(again) => {
                    let result = again.real(|| next());
                    again.finish();
                    return result;
                }
                Err(inside) => inside,
            };
        }
    } else {
        quote!()
    };
    let made = match &code.cache {
        None => quote! {
            let inputs = Inputs::Unknown;
            #begin
        },
        Some(ArgumentCache { inputs, known, .. }) => quote! {
            let inputs = #inputs;
            match Expected::begin(inside, #id, Repeat::#repeat, registers, &inputs, |c| { #known }) {
                Ok(mut expected) => {
                    result = expected.real(|| next(#args));
                    match expected.finish(#class, #outs) {
                        Some(unexpected) => call = unexpected,
                        None => {
                            #finished
                            return result;
                        }
                    }
                }
                Err(inside) => {
                    #again
                    #begin
                }
            }
        },
    };
    quote! {
        #[inline(never)]
        unsafe fn #body(next: #pointer #sep #decl) -> #result {
            unsafe {
                #first
                let registers = capture_registers();
                let Some(inside) = Inside::enter().or_else(|| left::enter(#id, registers)) else {
                    let result = next(#args);
                    #missed
                    return result;
                };
                let (mut call, result);
                #variables
                #made
                #returned
                call.finish(#class, &inputs, #outs, |c| { #after });
                #finished
                result
            }
        }
    }
}

/// The code of the error that it has returned.
fn class(name: &str, f: &Function) -> TokenStream {
    match f.result {
        Type::Int if name.starts_with(TOOLS) => quote!(normal::tools_code(result)),
        Type::Int => quote!(i64::from(result)),
        _ => quote!(0),
    }
}

/// What the functions that begin and end a recording do besides being recorded.
#[derive(Default)]
struct Hooks {
    /// Before anything else.
    first: TokenStream,
    /// After the inputs were read.
    prepared: TokenStream,
    /// After the real call.
    returned: TokenStream,
    /// After the call was recorded.
    finished: TokenStream,
    /// After the real call, which is not recorded.
    missed: TokenStream,
}

impl Hooks {
    fn of(name: &str, id: u16, class: &TokenStream) -> Self {
        match name {
            names::MPI_Init | names::MPI_Init_thread => Self {
                first: quote!(crate::life::before_init();),
                prepared: quote!(call.always();),
                returned: quote!(call.ends(crate::life::after_init(#class));),
                missed: quote!(crate::life::missed_init(#class);),
                ..Self::default()
            },
            names::MPI_Session_init => Self {
                first: quote!(crate::life::before_session();),
                prepared: quote!(call.always();),
                returned: quote! {
                    call.ends(crate::life::after_session(#class, || {
                        let mut group = Handle::from_raw(constants::MPI_GROUP_NULL());
                        let (session, world) = (Handle::from_raw(a2.get(0)), c"mpi://WORLD".as_ptr().cast_mut());
                        real::MPI_Group_from_session_pset(session, world, Handles::of(&mut group));
                        group.raw()
                    }));
                },
                ..Self::default()
            },
            // Everything is written before the real call: `MPI_Abort` does not return, and once a rank has left
            // `MPI_Finalize` and ended with a non-zero status, a launcher kills the others wherever they are.
            names::MPI_Finalize => Self {
                prepared: quote!(call.always(); call.last(); crate::life::finalize();),
                ..Self::default()
            },
            names::MPI_Abort => Self {
                prepared: quote!(call.always(); call.last(); crate::life::abort();),
                ..Self::default()
            },
            names::MPI_Comm_create_errhandler
            | names::MPI_Win_create_errhandler
            | names::MPI_File_create_errhandler
            | names::MPI_Session_create_errhandler
            | names::MPI_Errhandler_create => Self { first: quote!(left::may_happen();), ..Self::default() },
            names::MPI_Pcontrol => Self {
                first: quote!(crate::life::pcontrol(a0);),
                prepared: quote!(call.always();),
                ..Self::default()
            },
            // No rank leaves these before all have entered, if there is anything to bring.
            names::MPI_Barrier => {
                Self { finished: quote!(crate::life::passed(#class, a0.raw());), ..Self::default() }
            }
            names::MPI_Allreduce | names::MPI_Allreduce_c => Self {
                finished: quote!(if a2 > 0 { crate::life::passed(#class, a5.raw()); }),
                ..Self::default()
            },
            names::MPI_Allgather | names::MPI_Allgather_c | names::MPI_Alltoall | names::MPI_Alltoall_c => {
                Self {
                    finished: quote!(if a4 > 0 { crate::life::passed(#class, a6.raw()); }),
                    ..Self::default()
                }
            }
            _ if name.starts_with(TOOLS) => {
                let i = usize::from(id - FIRST_UNKNOWN);
                Self { missed: quote!(crate::outside::count(#i);), ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}
